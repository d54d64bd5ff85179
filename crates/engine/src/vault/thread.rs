//! One thread for all calls to the keychain, because they block. A call that does not return in time is left to itself
//! with its thread, and a new one takes over; a thread is never waited for.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// So many calls may hang before no further one is tried.
const STUCK_AT_MOST: usize = 4;

#[derive(Debug, Default)]
pub(super) struct KeychainThread {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    /// Threads that were left to themselves and have not come back.
    stuck: Arc<AtomicUsize>,
}

impl KeychainThread {
    /// Do it there; `None` when it takes longer than `at_most`.
    pub(super) async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static, at_most: Duration) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let late = Arc::new(Mutex::new(Waiting::Yes));
        let stuck = Arc::clone(&self.stuck);
        let waited_for = Arc::clone(&late);
        self.submit(Box::new(move || {
            {
                let mut waiting = waited_for.lock().unwrap_or_else(PoisonError::into_inner);
                // Given up before it was its turn.
                if *waiting == Waiting::No {
                    return;
                }
                *waiting = Waiting::AtWork;
            }
            let done = job();
            let mut waiting = waited_for.lock().unwrap_or_else(PoisonError::into_inner);
            if *waiting == Waiting::Abandoned {
                stuck.fetch_sub(1, Ordering::Relaxed);
            }
            *waiting = Waiting::No;
            let _ = answer.send(done);
        }))?;
        match tokio::time::timeout(at_most, answered).await {
            Ok(Ok(done)) => Some(done),
            Ok(Err(_)) => None,
            Err(_) => {
                let mut waiting = late.lock().unwrap_or_else(PoisonError::into_inner);
                if *waiting == Waiting::AtWork {
                    *waiting = Waiting::Abandoned;
                    self.stuck.fetch_add(1, Ordering::Relaxed);
                    self.leave();
                } else if *waiting == Waiting::Yes {
                    *waiting = Waiting::No;
                }
                None
            }
        }
    }

    fn submit(&self, job: Job) -> Option<()> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let to = match jobs.take() {
            Some(to) => to,
            None if self.stuck.load(Ordering::Relaxed) >= STUCK_AT_MOST => return None,
            None => start()?,
        };
        to.send(job).ok()?;
        *jobs = Some(to);
        Some(())
    }

    /// The next call gets a thread of its own.
    fn leave(&self) {
        *self.jobs.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Whether somebody waits for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Yes,
    AtWork,
    Abandoned,
    No,
}

fn start() -> Option<mpsc::Sender<Job>> {
    let (to, jobs) = mpsc::channel::<Job>();
    let started = std::thread::Builder::new().name("keychain".to_owned()).spawn(move || {
        while let Ok(job) = jobs.recv() {
            job();
        }
    });
    match started {
        Ok(_) => Some(to),
        Err(error) => {
            tracing::warn!(%error, "no thread for the keychain");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_that_hangs_keeps_no_later_one_waiting_and_is_counted() {
        let thread = KeychainThread::default();
        let (release, hold) = mpsc::channel::<()>();
        let short = Duration::from_millis(30);
        assert_eq!(thread.run(move || hold.recv().unwrap_or(()), short).await, None);
        assert_eq!(thread.run(|| 7, Duration::from_secs(5)).await, Some(7));
        assert_eq!(thread.stuck.load(Ordering::Relaxed), 1);
        drop(release);
        tokio::time::timeout(Duration::from_secs(5), async {
            while thread.stuck.load(Ordering::Relaxed) > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await
        .expect("a call that comes back is not counted any more");
    }

    #[tokio::test]
    async fn when_too_many_hang_no_more_are_tried() {
        let thread = KeychainThread::default();
        let mut holds = Vec::new();
        for _ in 0..STUCK_AT_MOST {
            let (release, hold) = mpsc::channel::<()>();
            holds.push(release);
            assert_eq!(thread.run(move || hold.recv().unwrap_or(()), Duration::from_millis(20)).await, None);
        }
        assert_eq!(thread.run(|| 7, Duration::from_secs(60)).await, None);
    }
}
