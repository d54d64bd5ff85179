//! One pass of the loop after the other.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use turnkeep_model::{
    Change, Effect, Input, RuntimeId, SessionId, State, Step,
    port::{AgentEvent, SignInMethod},
    state::Now,
};

use super::{Ack, Ask, Clock, Ended, Machine, Notice, Outside, Refused};
use crate::{
    crash::{Crash, Crashed, Point},
    feed::{Feed, Trouble},
    perform::Owed,
    store::{Committed, Draft, StoreError, Writer},
    world::Arrival,
};

/// Inputs that are decided on and written down together.
const TOGETHER: usize = 256;
/// How often a write that may yet work is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(2);
/// A deadline that its own tick did not clear is a defect; it must not become a busy loop.
const TICK_PAUSE: Duration = Duration::from_millis(20);

/// Why a pass of the loop is the last one.
pub(super) enum Stop {
    Trouble(Trouble),
    Crashed(Point),
    /// Asked for while nothing could be written.
    Quit,
}

impl From<Crashed> for Stop {
    fn from(Crashed(point): Crashed) -> Self {
        Self::Crashed(point)
    }
}

/// The state of the loop between two passes.
pub(super) struct Loop<M, O, C> {
    pub(super) machine: M,
    /// Away while it writes.
    pub(super) writer: Option<Writer>,
    pub(super) feed: Feed,
    pub(super) owed: Owed,
    pub(super) notices: mpsc::UnboundedSender<Notice>,
    pub(super) outside: O,
    pub(super) clock: C,
    pub(super) crash: Crash,
    pub(super) exit: bool,
    /// When text of each session came last. The machine is told before it judges a deadline.
    pub(super) heard: BTreeMap<SessionId, Now>,
}

/// What one pass decided.
#[derive(Default)]
struct Pass {
    changes: Vec<Change>,
    effects: Vec<Effect>,
    answers: Vec<(oneshot::Sender<Result<Ack, Refused>>, Ack)>,
}

impl Pass {
    fn take(&mut self, step: Step, answer: Option<oneshot::Sender<Result<Ack, Refused>>>) {
        if let Some(answer) = answer {
            self.answers.push((answer, Ack::of(&step.changes)));
        }
        self.changes.extend(step.changes);
        self.effects.extend(step.effects);
    }
}

impl<M: Machine, O: Outside, C: Clock> Loop<M, O, C> {
    /// Passes until the last one.
    pub(super) async fn go(
        &mut self,
        mut arrivals: mpsc::UnboundedReceiver<Arrival>,
        asks: &mut mpsc::UnboundedReceiver<Ask>,
    ) -> Result<Ended, Stop> {
        let mut pass = Pass::default();
        let now = self.clock.now();
        pass.take(self.guarded("the recovery", |machine| machine.recover(now))?, None);
        self.carry_out(pass, asks).await?;

        let mut arrived = Vec::with_capacity(TOGETHER);
        let mut asked = Vec::new();
        let mut ticked: Option<Instant> = None;
        while !self.exit {
            self.clock.set(self.machine.next_deadline());
            let flush = self.feed.next_flush();
            let mut tick = false;
            tokio::select! {
                count = arrivals.recv_many(&mut arrived, TOGETHER) => {
                    if count == 0 {
                        return Err(Stop::Trouble(bug("the world ended by itself")));
                    }
                }
                count = asks.recv_many(&mut asked, TOGETHER) => {
                    if count == 0 {
                        return Ok(Ended::Abandoned);
                    }
                }
                () = rung(&mut self.clock, ticked) => {
                    tick = true;
                    ticked = Some(Instant::now());
                }
                () = flush_at(flush) => {}
            }
            let mut pass = Pass::default();
            let mut taken = BTreeMap::<RuntimeId, usize>::new();
            for arrival in arrived.drain(..) {
                if let Arrival::Event { runtime, .. } | Arrival::Input(Input::Agent { runtime, .. }) = &arrival {
                    *taken.entry(*runtime).or_default() += 1;
                }
                self.arrival(arrival, &mut pass)?;
            }
            for ask in asked.drain(..) {
                self.ask(ask, &mut pass)?;
            }
            if tick {
                for (session, at) in std::mem::take(&mut self.heard) {
                    self.input(Input::Heard { session, at }, None, &mut pass)?;
                }
                self.input(Input::Tick, None, &mut pass)?;
            }
            self.carry_out(pass, asks).await?;
            for (runtime, words) in taken {
                self.outside.taken(runtime, words);
            }
            self.feed.flush(Instant::now());
        }
        Ok(Ended::Quit)
    }

    fn arrival(&mut self, arrival: Arrival, pass: &mut Pass) -> Result<(), Stop> {
        match arrival {
            Arrival::Event { event: AgentEvent::Delta { session, item, stream, text }, .. } => {
                self.feed.absorb(session, item, stream, &text, Instant::now());
                self.text_came(session, pass)
            }
            Arrival::Event { runtime, event } => self.input(Input::Agent { runtime, event }, None, pass),
            Arrival::Input(input) => self.input(input, None, pass),
        }
    }

    /// The end of a silence is told at once; else the moment is only noted.
    fn text_came(&mut self, session: SessionId, pass: &mut Pass) -> Result<(), Stop> {
        let at = self.clock.now();
        let state = self.feed.state();
        let turn = state.sessions.get(&session).and_then(|entry| state.turns.get(&entry.turn?));
        if turn.is_some_and(|turn| turn.quiet.is_some()) {
            return self.input(Input::Heard { session, at }, None, pass);
        }
        self.heard.insert(session, at);
        Ok(())
    }

    fn ask(&mut self, ask: Ask, pass: &mut Pass) -> Result<(), Stop> {
        match ask {
            Ask::Submit { input, answer } => self.input(input, answer, pass)?,
            Ask::SignInWithKey { provider, account, label, key, answer } => {
                let key = Some(self.outside.stage(key));
                let method = SignInMethod::ApiKey;
                self.input(Input::SignIn { provider, account, label, method, key }, Some(answer), pass)?;
            }
            Ask::Subscribe { session, answer } => {
                let _ = answer.send(self.feed.subscribe(session, Instant::now()));
            }
            Ask::Unlock => self.outside.unlock(),
            Ask::Rescan => self.outside.rescan(),
            Ask::Greet { provider, address, answer } => self.outside.greet(provider, address, answer),
            Ask::LastLines { runtime, answer } => {
                let _ = answer.send(self.outside.last_lines(runtime));
            }
            Ask::Threads { runtime, cursor, answer } => self.outside.threads(runtime, cursor, answer),
        }
        Ok(())
    }

    fn input(
        &mut self,
        input: Input,
        answer: Option<oneshot::Sender<Result<Ack, Refused>>>,
        pass: &mut Pass,
    ) -> Result<(), Stop> {
        self.owed.answered(&input);
        let now = self.clock.now();
        let shown = input.clone();
        let step = self.guarded(&shown, |machine| machine.handle(now, input))?;
        pass.take(step, answer);
        Ok(())
    }

    /// A decision that panics leaves a state that nobody can vouch for.
    fn guarded(&mut self, what: impl std::fmt::Debug, decide: impl FnOnce(&mut M) -> Step) -> Result<Step, Stop> {
        catch_unwind(AssertUnwindSafe(|| decide(&mut self.machine))).map_err(|panic| {
            let said = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("without a word");
            let input: String = format!("{what:?}").chars().take(4_096).collect();
            tracing::error!(input, said, "deciding panicked");
            Stop::Trouble(bug(said))
        })
    }

    /// Writes down, shows, answers, acts: in this order.
    async fn carry_out(&mut self, pass: Pass, asks: &mut mpsc::UnboundedReceiver<Ask>) -> Result<(), Stop> {
        let Pass { changes, effects, mut answers } = pass;
        if !changes.is_empty() {
            self.crash.pass(Point::BeforeCommit).await?;
            let before = self.feed.state();
            let at = self.clock.now().wall;
            let (next, changes, committed) = self.write(Arc::clone(&before), changes, at, asks).await?;
            self.crash.pass(Point::AfterCommit).await?;
            if next.credentials != before.credentials {
                self.outside.attend(&next.credentials);
            }
            self.feed.publish(Arc::new(next), &changes, &committed);
        }
        let seq = self.feed.state().seq;
        for (answer, mut ack) in answers.drain(..) {
            ack.seq = seq;
            let _ = answer.send(Ok(ack));
        }
        for effect in effects {
            self.act(effect).await?;
        }
        Ok(())
    }

    async fn act(&mut self, effect: Effect) -> Result<(), Stop> {
        self.owed.superseded(&effect);
        if !self.owed.take(&effect) {
            return Ok(());
        }
        self.crash.pass(Point::BeforeEffect).await?;
        match effect {
            Effect::Notify { key } => match self.feed.state().notifications.get(&key).cloned() {
                Some(notification) => drop(self.notices.send(Notice::Show { key, notification })),
                None => tracing::error!(key, "a notification was asked for that does not exist"),
            },
            Effect::CloseNotification { key } => {
                drop(self.notices.send(Notice::Close { key: key.clone() }));
                // Nobody reports a closing.
                self.owed.closed(&key);
            }
            Effect::Exit => self.exit = true,
            effect @ (Effect::Spawn { .. }
            | Effect::Stop { .. }
            | Effect::Reap { .. }
            | Effect::Command { .. }
            | Effect::Open { .. }
            | Effect::ReadHistory { .. }
            | Effect::Release { .. }
            | Effect::SignIn { .. }
            | Effect::CancelSignIn { .. }
            | Effect::Revoke { .. }
            | Effect::Probe { .. }) => self.outside.perform(effect),
        }
        self.crash.pass(Point::AfterEffect).await?;
        Ok(())
    }

    /// Commits, and holds everything still for as long as the disk is full or somebody else holds the file.
    async fn write(
        &mut self,
        before: Arc<State>,
        changes: Vec<Change>,
        at: i64,
        asks: &mut mpsc::UnboundedReceiver<Ask>,
    ) -> Result<(State, Vec<Change>, Committed), Stop> {
        let mut changes = changes;
        loop {
            let Some(mut writer) = self.writer.take() else { return Err(Stop::Trouble(bug("the store was lost"))) };
            let base = Arc::clone(&before);
            let written = tokio::task::spawn_blocking(move || {
                let mut next = State::clone(&base);
                let mut draft = Draft::new(&mut next, at);
                changes.iter().for_each(|change| draft.add(change));
                let result = writer.commit(&draft.finish());
                (writer, changes, next, result)
            })
            .await;
            let (writer, back, next, result) = match written {
                Ok(written) => written,
                Err(error) => {
                    tracing::error!(%error, "writing panicked");
                    return Err(Stop::Trouble(bug("writing panicked")));
                }
            };
            self.writer = Some(writer);
            match result {
                Ok(committed) => {
                    self.feed.trouble(None);
                    return Ok((next, back, committed));
                }
                Err(error) if error.passing() => {
                    changes = back;
                    self.hold(&error, asks).await?;
                }
                Err(error) => return Err(Stop::Trouble(Trouble { passing: false, message: error.to_string() })),
            }
        }
    }

    /// Nothing can be written: whoever asks is told so, until it is time to try again.
    async fn hold(&mut self, error: &StoreError, asks: &mut mpsc::UnboundedReceiver<Ask>) -> Result<(), Stop> {
        let trouble = Trouble { passing: true, message: error.to_string() };
        tracing::warn!(message = trouble.message, "nothing is done until this is over");
        self.feed.trouble(Some(trouble.clone()));
        let again = tokio::time::sleep(TRY_AGAIN);
        tokio::pin!(again);
        loop {
            tokio::select! {
                () = &mut again => return Ok(()),
                ask = asks.recv() => match ask {
                    None => return Err(Stop::Quit),
                    Some(Ask::Subscribe { session, answer }) => {
                        let _ = answer.send(self.feed.subscribe(session, Instant::now()));
                    }
                    Some(ask) => if ask.refuse(&trouble) {
                        return Err(Stop::Quit);
                    },
                },
            }
        }
    }
}

/// Something that cannot happen did.
fn bug(what: &str) -> Trouble {
    tracing::error!(what, "a defect");
    Trouble {
        passing: false,
        message: format!("Turnkeep met a defect of its own and stopped so that nothing is done wrongly ({what}): start it again"),
    }
}

async fn rung(clock: &mut impl Clock, ticked: Option<Instant>) {
    clock.rung().await;
    if let Some(ticked) = ticked {
        tokio::time::sleep_until(ticked + TICK_PAUSE).await;
    }
}

async fn flush_at(due: Option<Instant>) {
    match due {
        None => std::future::pending().await,
        Some(due) => tokio::time::sleep_until(due).await,
    }
}
