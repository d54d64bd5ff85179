//! The dead that fall to this application: what agents left behind becomes its child, and its end is waited for by nobody else.
//!
//! Without that, a tool that keeps forking fills the process table of the whole computer. Never takes an exit status that
//! somebody else waits for.

#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use super::reap::bury_adopted;

/// One that was dead at two looks is buried.
#[cfg(unix)]
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Bury as they come, for as long as the engine runs.
#[cfg(unix)]
pub(crate) async fn bury_as_they_come() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut ends = match signal(SignalKind::child()) {
        Ok(ends) => ends,
        Err(error) => {
            tracing::warn!(%error, "the ends of processes are not told; what agents leave behind stays in the process table until they are stopped");
            return;
        }
    };
    while ends.recv().await.is_some() {
        for _ in 0..2 {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            let _ = tokio::task::spawn_blocking(bury_adopted).await;
        }
    }
}

#[cfg(not(unix))]
#[expect(clippy::unused_async, reason = "elsewhere it waits")]
pub(crate) async fn bury_as_they_come() {}
