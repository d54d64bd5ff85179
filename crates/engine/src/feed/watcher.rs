//! One client that looks at one session: a bounded queue that loses its place rather than holding anybody up.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::mpsc;
use turnkeep_model::{
    ItemId, TurnId,
    port::{DeltaStream, TurnDiff},
};

use crate::store::{Entry, Page};

/// Events that may wait for a client.
pub(super) const EVENTS_WAITING: usize = 1024;
/// Bytes that may wait for a client; one event alone may be larger.
pub(super) const BYTES_WAITING: usize = 4 * 1024 * 1024;

/// What happens to a transcript, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscriptEvent {
    /// Begin anew with this page; anything before it is void.
    Page(Page),
    /// A new entry, or the new form of one with this ordinal.
    Upsert(Arc<Entry>),
    /// What a turn changed so far, in numbers: its text is left out.
    Diff { turn: TurnId, counts: TurnDiff },
    /// More text of a running entry. Means nothing for one that is completed.
    Delta { item: ItemId, stream: DeltaStream, text: Arc<str> },
}

impl TranscriptEvent {
    /// Roughly, in bytes.
    fn weight(&self) -> usize {
        match self {
            Self::Page(page) => page.entries.iter().map(Entry::weight).sum(),
            Self::Upsert(entry) => entry.weight(),
            Self::Diff { .. } => 128,
            Self::Delta { item, text, .. } => item.0.len() + text.len() + 64,
        }
    }
}

/// Shared by both ends.
#[derive(Debug, Default)]
struct Measure {
    bytes: AtomicUsize,
    lost: AtomicBool,
}

/// The sending end.
#[derive(Debug)]
pub(super) struct Watcher {
    sender: mpsc::Sender<TranscriptEvent>,
    measure: Arc<Measure>,
}

/// The receiving end: events since the subscription, until [`Self::lost`].
#[derive(Debug)]
pub struct Events {
    receiver: mpsc::Receiver<TranscriptEvent>,
    measure: Arc<Measure>,
}

pub(super) fn pair() -> (Watcher, Events) {
    let (sender, receiver) = mpsc::channel(EVENTS_WAITING);
    let measure = Arc::new(Measure::default());
    (Watcher { sender, measure: Arc::clone(&measure) }, Events { receiver, measure })
}

impl Watcher {
    /// Whether this client is still to be told things.
    pub(super) fn send(&mut self, event: &TranscriptEvent) -> bool {
        let weight = event.weight();
        let waiting = self.measure.bytes.load(Ordering::Acquire);
        let room = waiting == 0 || waiting + weight <= BYTES_WAITING;
        self.measure.bytes.fetch_add(weight, Ordering::AcqRel);
        let kept = room && self.sender.try_send(event.clone()).is_ok();
        if !kept {
            self.measure.lost.store(true, Ordering::Release);
        }
        kept
    }
}

impl Events {
    /// The next one; `None` when there will be no more, because the client was too slow or the engine ended.
    pub async fn next(&mut self) -> Option<TranscriptEvent> {
        if self.lost() {
            return None;
        }
        let event = self.receiver.recv().await?;
        self.measure.bytes.fetch_sub(event.weight(), Ordering::AcqRel);
        Some(event)
    }

    /// The next one if it is there already.
    pub fn ready(&mut self) -> Option<TranscriptEvent> {
        let event = self.receiver.try_recv().ok()?;
        self.measure.bytes.fetch_sub(event.weight(), Ordering::AcqRel);
        Some(event)
    }

    /// Events were dropped: only a new page helps.
    #[must_use]
    pub fn lost(&self) -> bool {
        self.measure.lost.load(Ordering::Acquire)
    }
}
