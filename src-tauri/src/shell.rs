//! What every part of the shell shares: the engine's handle, what the person looks at, and the way to the window.
//!
//! It decides nothing about sessions or accounts: it asks the engine, and says what came of it.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::{mpsc, watch};
use turnkeep_agents::{Agent, Card, ProgramSource};
use turnkeep_engine::{Handle, Places, Snapshot, clock};
use turnkeep_model::{ApprovalId, Input, ProviderId, SessionId, port, state::Asker};
use turnkeep_view::{answer, dto, snapshot::Facts};

use crate::pump::Pump;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Shared by all of the shell; equal copies.
pub(crate) type Shell = Arc<Inner>;

/// See [`Shell`].
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) engine: Handle,
    pub(crate) places: Places,
    pub(crate) home: String,
    cards: Vec<Card>,
    /// What is wrong with the person's own agents, and when that was found.
    problems: (i64, Vec<String>),
    /// The window has the keyboard.
    focused: AtomicBool,
    looking: Mutex<Looking>,
    /// Told whenever the person may look at something else.
    looked: watch::Sender<()>,
    /// Wishes to see the window.
    shows: mpsc::UnboundedSender<Show>,
}

/// What the window shows, and what feeds it.
#[derive(Debug, Default)]
struct Looking {
    session: Option<SessionId>,
    /// Where to go once the window is there.
    view: Option<dto::View>,
    pump: Option<Pump>,
}

/// A wish to see the window.
#[derive(Debug)]
pub(crate) struct Show {
    /// Lets the window come to the front where the desktop wants a proof that a person asked.
    pub(crate) token: Option<String>,
}

impl Inner {
    /// With the receiver of wishes to see the window.
    pub(crate) fn new(
        engine: Handle,
        places: Places,
        agents: &[Arc<dyn Agent>],
        problems: Vec<String>,
    ) -> (Shell, mpsc::UnboundedReceiver<Show>) {
        let (shows, showing) = mpsc::unbounded_channel();
        let shell = Self {
            engine,
            places,
            home: std::env::home_dir().map(|home| home.to_string_lossy().into_owned()).unwrap_or_default(),
            problems: (clock::now().wall, problems),
            cards: agents.iter().map(|agent| agent.card().clone()).collect(),
            focused: AtomicBool::new(false),
            looking: Mutex::default(),
            looked: watch::Sender::new(()),
            shows,
        };
        (Arc::new(shell), showing)
    }

    /// The provider that is part of this program.
    pub(crate) fn built_in(&self) -> Option<ProviderId> {
        self.cards.iter().find(|card| card.program == ProgramSource::Own).map(|card| card.id.clone())
    }

    fn looking(&self) -> MutexGuard<'_, Looking> {
        self.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine's snapshot in the terms of the views.
    pub(crate) fn view<T>(&self, snapshot: &Snapshot, look: impl FnOnce(&Facts<'_>) -> T) -> T {
        let recovery = snapshot.recovery.as_ref();
        let mut recovery = recovery.map(|found| dto::Recovery { at: found.at, lines: found.lines.clone() });
        let (at, problems) = &self.problems;
        if !problems.is_empty() {
            recovery.get_or_insert_with(|| dto::Recovery { at: *at, lines: Vec::new() }).lines.extend(problems.iter().cloned());
        }
        look(&Facts {
            state: &snapshot.state,
            cards: &self.cards,
            now: clock::now(),
            version: VERSION,
            home: &self.home,
            recovery: recovery.as_ref(),
            fatal: snapshot.trouble.as_ref().map(|trouble| trouble.message.as_str()),
        })
    }

    /// What every window and the tray show.
    pub(crate) fn snapshot(&self, snapshot: &Snapshot) -> dto::Snapshot {
        self.view(snapshot, turnkeep_view::snapshot::snapshot)
    }

    // ---- the window --------------------------------------------------------------------------

    /// Opens the window, or brings it to the front, at this place. Never waits.
    pub(crate) fn show(&self, view: Option<dto::View>, token: Option<String>) {
        let mut looking = self.looking();
        match (&looking.pump, view) {
            (Some(pump), Some(view)) => pump.show(view),
            (None, Some(view)) => looking.view = Some(view),
            (_, None) => {}
        }
        drop(looking);
        // Nobody listens only when everything ends.
        let _ = self.shows.send(Show { token });
    }

    /// A window's page is there and wants to be fed: the place that it was opened for comes first.
    pub(crate) fn feed(&self, pump: Pump) {
        let mut looking = self.looking();
        if let Some(view) = looking.view.take() {
            pump.show(view);
        }
        looking.session = None;
        looking.pump = Some(pump);
    }

    /// The window is gone, and with it what it looked at.
    pub(crate) fn closed(&self) {
        self.focused.store(false, Ordering::Relaxed);
        let mut looking = self.looking();
        looking.pump = None;
        looking.session = None;
        drop(looking);
        self.looked.send_replace(());
    }

    pub(crate) fn focus(&self, focused: bool) {
        self.focused.store(focused, Ordering::Relaxed);
        self.looked.send_replace(());
    }

    /// The window shows this session now.
    pub(crate) fn look_at(&self, session: Option<SessionId>, transcript: Option<turnkeep_engine::Transcript>) {
        let mut looking = self.looking();
        looking.session = session;
        if let Some(pump) = &looking.pump {
            pump.follow(transcript);
        }
        drop(looking);
        self.looked.send_replace(());
    }

    /// Tells whenever the person may look at something else than before.
    pub(crate) fn looks(&self) -> watch::Receiver<()> {
        self.looked.subscribe()
    }

    /// The session that is open in the window.
    pub(crate) fn session(&self) -> Option<SessionId> {
        self.looking().session
    }

    /// The person sees this session at this moment.
    pub(crate) fn is_watched(&self, session: SessionId) -> bool {
        self.focused.load(Ordering::Relaxed) && self.looking().session == Some(session)
    }

    // ---- wishes ------------------------------------------------------------------------------

    /// Answers a question from outside the window. What is not open any more is left alone.
    pub(crate) fn answer(&self, approval: ApprovalId, kind: dto::ChoiceKind, by: Asker) {
        let state = self.engine.snapshot().state;
        match answer::answer(&state, approval, dto::Answer::Choice { kind }) {
            Ok(port::Answer::Choice(choice)) => {
                self.engine.tell(Input::AnswerApproval { approval, answer: port::Answer::Choice(choice), by });
            }
            Ok(_) => tracing::warn!(%approval, "a choice became something else"),
            Err(refused) => tracing::info!(%approval, ?kind, ?by, why = refused.words(), "an answer came too late"),
        }
    }

    /// The first time: when running turns are done. The second time: now.
    pub(crate) fn quit(&self) {
        self.engine.quit(None);
    }
}
