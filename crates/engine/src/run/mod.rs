//! The loop: wait, decide, write down, show, act.
//!
//! *Invariant:* nothing is shown and nothing is done before it is committed; nothing outside is ever waited for.
//! When what was decided cannot be written, nothing more is decided.

mod ask;
mod pass;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use secrecy::SecretString;
use tokio::sync::{Notify, mpsc, oneshot};
use turnkeep_model::{
    CredentialId, Effect, Input, ProviderId, RuntimeId, ServerAddress, StagedSecret, Step, Supervisor,
    port::Failure,
    state::{Credential, Now},
};

pub(crate) use self::ask::Ask;
pub use self::ask::{Ack, Notice, Refused};
use self::pass::{Loop, Stop};
use crate::{
    crash::{Crash, Point},
    feed::{Feed, Trouble},
    perform::Owed,
    store::Writer,
    world::{Arrival, Greeting, ThreadsAnswer},
};

/// How long a stop may take once nothing is decided any more.
const SHUT_WITHIN: Duration = Duration::from_secs(5);
/// How long a forced quit may take before the loop is abandoned where it stands.
const FORCED_WITHIN: Duration = Duration::from_millis(1_800);

/// What the loop needs of the world.
pub(crate) trait Outside {
    /// Carry out one wish, without waiting.
    fn perform(&self, effect: Effect);
    /// So many words of this process were taken in and written down.
    fn taken(&self, runtime: RuntimeId, words: usize);
    /// These credentials are to be watched from now on.
    fn attend(&self, credentials: &BTreeMap<CredentialId, Credential>);
    /// Keep a secret until the machine says where it belongs.
    fn stage(&self, secret: SecretString) -> StagedSecret;
    /// Ask the person to unlock the keychain.
    fn unlock(&self);
    /// Look for programs again.
    fn rescan(&self);
    /// See who a server is that somebody else started.
    fn greet(&self, provider: ProviderId, address: ServerAddress, answer: oneshot::Sender<Result<Greeting, Failure>>);
    /// What a process wrote to its standard error last.
    fn last_lines(&self, runtime: RuntimeId) -> Vec<String>;
    /// Ask a process which threads it knows.
    fn threads(&self, runtime: RuntimeId, cursor: Option<String>, answer: oneshot::Sender<ThreadsAnswer>);
    /// Stop what still runs.
    fn shut(self) -> impl Future<Output = ()>;
}

/// The time.
pub(crate) trait Clock {
    fn now(&self) -> Now;
    /// Ring at so many milliseconds since boot, or never.
    fn set(&mut self, at: Option<u64>);
    /// Waits until it rings. Nothing is lost when this is given up.
    fn rung(&mut self) -> impl Future<Output = ()>;
}

/// What decides.
pub(crate) trait Machine {
    /// Comes to terms with what an earlier run left; before any input.
    fn recover(&mut self, now: Now) -> Step;
    /// Takes an input in.
    fn handle(&mut self, now: Now, input: Input) -> Step;
    /// When to tick, in boot milliseconds.
    fn next_deadline(&self) -> Option<u64>;
}

impl Machine for Supervisor {
    fn recover(&mut self, now: Now) -> Step {
        Self::recover(self, now)
    }

    fn handle(&mut self, now: Now, input: Input) -> Step {
        Self::handle(self, now, input)
    }

    fn next_deadline(&self) -> Option<u64> {
        Self::next_deadline(self)
    }
}

/// How the loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Asked to, with everything written down and no child left.
    Quit,
    /// Asked to a second time, and something would not end.
    Forced,
    /// It could not go on; what was wrong was shown.
    Stopped(Trouble),
    /// Nobody holds a handle any more.
    Abandoned,
    /// A test ended it here.
    Crashed(Point),
}

/// How often a quit was asked for, seen without the loop's help.
#[derive(Debug, Default)]
pub(crate) struct Insistence {
    asked: AtomicU32,
    news: Notify,
}

impl Insistence {
    /// Asked once more.
    pub(crate) fn insist(&self) {
        self.asked.fetch_add(1, Ordering::AcqRel);
        self.news.notify_waiters();
        self.news.notify_one();
    }

    /// Not asked for any more, unless it was insisted on already.
    pub(crate) fn relent(&self) {
        let _ = self.asked.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Waits until it was asked for twice.
    async fn twice(&self) {
        while self.asked.load(Ordering::Acquire) < 2 {
            self.news.notified().await;
        }
    }
}

/// What the loop is made of.
pub(crate) struct Parts<M, O, C> {
    pub(crate) machine: M,
    pub(crate) writer: Writer,
    pub(crate) feed: Feed,
    pub(crate) notices: mpsc::UnboundedSender<Notice>,
    pub(crate) outside: O,
    pub(crate) clock: C,
    pub(crate) crash: Crash,
    pub(crate) insistence: Arc<Insistence>,
}

/// Runs until the end. `arrivals` is the world's inbox, `asks` what handles want.
pub(crate) async fn run<M: Machine, O: Outside, C: Clock>(
    parts: Parts<M, O, C>,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    asks: mpsc::UnboundedReceiver<Ask>,
) -> Ended {
    let insistence = Arc::clone(&parts.insistence);
    let forced = async {
        insistence.twice().await;
        tokio::time::sleep(FORCED_WITHIN).await;
    };
    tokio::select! {
        ended = whole(parts, arrivals, asks) => ended,
        () = forced => Ended::Forced,
    }
}

async fn whole<M: Machine, O: Outside, C: Clock>(
    parts: Parts<M, O, C>,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    mut asks: mpsc::UnboundedReceiver<Ask>,
) -> Ended {
    let Parts { machine, writer, feed, notices, outside, clock, crash, insistence: _ } = parts;
    outside.attend(&feed.state().credentials);
    let mut passes = Loop {
        machine,
        writer: Some(writer),
        feed,
        owed: Owed::default(),
        notices,
        outside,
        clock,
        crash,
        exit: false,
        heard: BTreeMap::new(),
    };
    let stop = passes.go(arrivals, &mut asks).await;
    let Loop { writer, feed, outside, .. } = passes;
    let shut = |outside: O| async {
        if tokio::time::timeout(SHUT_WITHIN, outside.shut()).await.is_err() {
            tracing::warn!("not everything outside stopped in time; the next start finds what is left");
        }
    };
    match stop {
        Ok(ended) => {
            shut(outside).await;
            if let Some(writer) = writer {
                let closed = tokio::task::spawn_blocking(move || writer.close());
                let _ = tokio::time::timeout(SHUT_WITHIN, closed).await;
            }
            ended
        }
        Err(Stop::Crashed(point)) => Ended::Crashed(point),
        Err(Stop::Quit) => {
            shut(outside).await;
            Ended::Quit
        }
        Err(Stop::Trouble(trouble)) => {
            tracing::warn!(message = trouble.message, "the supervisor stopped");
            feed.trouble(Some(trouble.clone()));
            shut(outside).await;
            // Whoever asks is told; nobody is left waiting.
            while let Some(ask) = asks.recv().await {
                if ask.refuse(&trouble) {
                    break;
                }
            }
            Ended::Stopped(trouble)
        }
    }
}
