//! Waiting for a condition that has no event to wait for (a process table, an X server, a bus), with a deadline.
//!
//! It must never be used where a message can be awaited instead, and never returns quietly when the time is over.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How long a condition may take on a machine that is busy with other work.
pub const PATIENCE: Duration = Duration::from_secs(30);

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Looks again until `look` gives a value; fails with `what` after [`PATIENCE`].
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> Result<T> {
    until_within(PATIENCE, what, look)
}

/// As [`until`], with a limit of its own.
pub fn until_within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = look() {
            return Ok(value);
        }
        if Instant::now() > end {
            bail!("after {limit:?} there was still no {what}");
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}
