//! What clients see: the newest state, and the live end of the transcripts that somebody looks at.
//!
//! Streaming text lives here and nowhere else. It never waits for a client: one that cannot keep up loses its place and
//! begins again with a page.

mod growing;
mod watcher;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::{sync::watch, time::Instant};
use turnkeep_model::{
    Change, ItemId, SessionId, State, TurnId,
    port::{DeltaStream, TurnDiff},
};

pub use self::watcher::{Events, TranscriptEvent};
use self::{growing::Growing, watcher::Watcher};
use crate::store::{Committed, Entry, abandon_body};

/// Least time between two flushes of streaming text to one session's watchers.
const FLUSH_EVERY: Duration = Duration::from_millis(33);
/// Running entries of one session whose text is kept.
const RUNNING_LIMIT: usize = 256;

/// Everything but transcripts, as of the last commit. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// `seen_messages` is always empty here: it grows with the history and is nobody's business outside the machine.
    pub state: Arc<State>,
    /// Why nothing goes on, if so.
    pub trouble: Option<Trouble>,
    /// What the start of this run found.
    pub recovery: Option<Arc<Recovery>>,
}

/// Why the supervisor holds still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// It goes on by itself once the cause is gone; otherwise only a new start helps.
    pub passing: bool,
    /// What happened and what to do.
    pub message: String,
}

/// What an earlier run left, told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Unix milliseconds.
    pub at: i64,
    pub lines: Vec<String>,
}

/// The live part of one session.
#[derive(Debug, Default)]
struct Live {
    running: BTreeMap<ItemId, Growing>,
    watchers: Vec<Watcher>,
    /// Text that is not with the watchers yet, in order.
    pending: Vec<(ItemId, DeltaStream, String)>,
    flushed: Option<Instant>,
    due: Option<Instant>,
}

/// The one source of what is shown.
#[derive(Debug)]
pub(crate) struct Feed {
    snapshot: watch::Sender<Snapshot>,
    sessions: BTreeMap<SessionId, Live>,
    due: BTreeSet<(Instant, SessionId)>,
}

impl Feed {
    /// Shows this state from now on.
    pub(crate) fn new(mut state: State, recovery: Option<Recovery>) -> Self {
        state.seen_messages = BTreeSet::new();
        let snapshot = Snapshot { state: Arc::new(state), trouble: None, recovery: recovery.map(Arc::new) };
        Self { snapshot: watch::Sender::new(snapshot), sessions: BTreeMap::new(), due: BTreeSet::new() }
    }

    /// The newest state, whenever it changes.
    pub(crate) fn watch(&self) -> watch::Receiver<Snapshot> {
        self.snapshot.subscribe()
    }

    /// What was published last.
    pub(crate) fn state(&self) -> Arc<State> {
        Arc::clone(&self.snapshot.borrow().state)
    }

    /// Says why nothing goes on, or that it goes on again.
    pub(crate) fn trouble(&self, trouble: Option<Trouble>) {
        self.snapshot.send_if_modified(|snapshot| {
            let news = snapshot.trouble != trouble;
            snapshot.trouble = trouble;
            news
        });
    }

    /// Takes streaming text in. It is sent by the next [`Self::flush`] that is due.
    pub(crate) fn absorb(&mut self, session: SessionId, item: ItemId, stream: DeltaStream, text: &str, now: Instant) {
        let live = self.sessions.entry(session).or_default();
        if live.running.len() < RUNNING_LIMIT || live.running.contains_key(&item) {
            live.running.entry(item.clone()).or_default().grow(stream, text);
        }
        if live.watchers.is_empty() {
            return;
        }
        match live.pending.last_mut() {
            Some((last, of, pending)) if *last == item && *of == stream => pending.push_str(text),
            _ => live.pending.push((item, stream, text.to_owned())),
        }
        if live.due.is_none() {
            let due = live.flushed.map_or(now, |flushed| (flushed + FLUSH_EVERY).max(now));
            live.due = Some(due);
            self.due.insert((due, session));
        }
    }

    /// When the next text wants to be sent.
    pub(crate) fn next_flush(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Sends what is due.
    pub(crate) fn flush(&mut self, now: Instant) {
        while let Some((due, session)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, session));
            if let Some(live) = self.sessions.get_mut(&session) {
                live.flush(now);
            }
        }
    }

    /// Shows what was committed: `state` is what the changes lead to.
    pub(crate) fn publish(&mut self, state: Arc<State>, changes: &[Change], committed: &Committed) {
        let mut placed = committed.items.iter();
        for change in changes {
            if let Change::ItemRecorded { session, turn, item, completed } = change {
                let Some(place) = placed.next() else { continue };
                let live = self.sessions.entry(*session).or_default();
                live.record(Entry {
                    session: *session,
                    ordinal: place.ordinal,
                    turn: *turn,
                    item: item.clone(),
                    completed: *completed,
                    at: place.at,
                });
            } else if let Change::TurnDiffed { session, turn, diff } = change {
                if let Some(live) = self.sessions.get_mut(session) {
                    let counts = TurnDiff { text: String::new(), ..diff.clone() };
                    live.send(&TranscriptEvent::Diff { turn: *turn, counts });
                }
            } else if let Change::TurnEnded { turn, .. } | Change::TurnReturned { turn } = change {
                let owners: Vec<SessionId> = self.sessions.keys().copied().collect();
                for session in owners {
                    self.abandon(session, |of| of.is_none_or(|of| of == *turn));
                }
            }
        }
        self.sessions.retain(|session, live| {
            let kept = !live.running.is_empty() || !live.watchers.is_empty();
            if let (false, Some(due)) = (kept, live.due) {
                self.due.remove(&(due, *session));
            }
            kept
        });
        self.snapshot.send_modify(|snapshot| snapshot.state = state);
    }

    /// Everything that ran and was told of is over.
    fn abandon(&mut self, session: SessionId, which: impl Fn(Option<TurnId>) -> bool) {
        let Some(live) = self.sessions.get_mut(&session) else { return };
        let gone: Vec<ItemId> = live
            .running
            .iter()
            .filter(|(_, growing)| which(growing.entry.as_ref().map(|entry| entry.turn)))
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            if let Some(Growing { entry: Some(mut entry), .. }) = live.running.remove(&id) {
                entry.completed = true;
                abandon_body(&mut entry.item.body);
                live.record(entry);
            }
        }
    }

    /// A new watcher of a session, and its running entries with their text so far.
    pub(crate) fn subscribe(&mut self, session: SessionId, now: Instant) -> (Events, Vec<Entry>) {
        let live = self.sessions.entry(session).or_default();
        // What the text so far already holds must not be sent again.
        live.flush(now);
        let (watcher, events) = watcher::pair();
        live.watchers.push(watcher);
        let running = live.running.values().filter_map(Growing::whole).collect();
        (events, running)
    }
}

impl Live {
    /// An entry began, changed or ended.
    fn record(&mut self, entry: Entry) {
        let shown = if entry.completed {
            self.running.remove(&entry.item.id);
            self.pending.retain(|(item, ..)| *item != entry.item.id);
            Some(entry)
        } else if self.running.len() < RUNNING_LIMIT || self.running.contains_key(&entry.item.id) {
            // The text so far goes with the entry: what waits would say it twice.
            self.pending.retain(|(item, ..)| *item != entry.item.id);
            let growing = self.running.entry(entry.item.id.clone()).or_default();
            growing.restart(entry);
            growing.whole()
        } else {
            Some(entry)
        };
        if self.watchers.is_empty() {
            return;
        }
        if let Some(entry) = shown {
            self.send(&TranscriptEvent::Upsert(Arc::new(entry)));
        }
    }

    fn flush(&mut self, now: Instant) {
        self.due = None;
        if self.pending.is_empty() {
            return;
        }
        self.flushed = Some(now);
        for (item, stream, text) in std::mem::take(&mut self.pending) {
            self.send(&TranscriptEvent::Delta { item, stream, text: text.into() });
        }
    }

    fn send(&mut self, event: &TranscriptEvent) {
        self.watchers.retain_mut(|watcher| watcher.send(event));
    }
}
