//! Questions that somebody asks of a process in passing: the answer goes to whoever asked, and nobody waits for ever.

use std::collections::BTreeMap;

use tokio::sync::oneshot;
use turnkeep_model::{
    RuntimeId,
    port::{Failure, ThreadPage},
};

/// Threads that a provider knows, or why it did not say.
pub type ThreadsAnswer = Result<ThreadPage, Failure>;

/// The questions that have no answer yet.
#[derive(Debug, Default)]
pub(super) struct Questions {
    next: u64,
    open: BTreeMap<u64, (RuntimeId, oneshot::Sender<ThreadsAnswer>)>,
}

impl Questions {
    /// A new one, by its number.
    pub(super) fn ask(&mut self, runtime: RuntimeId, answer: oneshot::Sender<ThreadsAnswer>) -> u64 {
        self.open.retain(|_, (_, answer)| !answer.is_closed());
        self.next += 1;
        self.open.insert(self.next, (runtime, answer));
        self.next
    }

    pub(super) fn answered(&mut self, ask: u64, answer: ThreadsAnswer) {
        if let Some((_, asker)) = self.open.remove(&ask) {
            let _ = asker.send(answer);
        }
    }

    /// No answer comes from this process any more.
    pub(super) fn let_go(&mut self, of: RuntimeId) {
        self.open.retain(|_, (runtime, _)| *runtime != of);
    }
}
