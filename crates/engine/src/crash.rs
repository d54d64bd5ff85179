//! Named places at which a test ends the engine as a crash would: nothing after them happens.
//!
//! Because everything is committed before it is acted on, these are the only places a crash can be told apart by.
//! Never active in a release build.

use std::cell::Cell;

/// The variable with the number of the crash point, from 1, at which a debug build aborts.
pub const CRASH_VARIABLE: &str = "TURNKEEP_CRASH_AT";

/// For what was asked for before the point to reach the world: an abort would outrun it, and hide what was asked for too
/// early.
const LAST_MOMENT: std::time::Duration = std::time::Duration::from_millis(60);

/// Where a crash may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// Decided, not written.
    BeforeCommit,
    /// Written, nobody told.
    AfterCommit,
    /// Told, nothing done.
    BeforeEffect,
    /// One wish is on its way, the others are not.
    AfterEffect,
}

/// The engine must end here, at once and without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crashed(pub Point);

/// Counts the points that are passed.
#[derive(Debug, Default)]
pub struct Crash {
    at: Option<u64>,
    abort: bool,
    passed: Cell<u64>,
}

impl Crash {
    /// What the environment asks for: nothing, except in a debug build.
    #[must_use]
    pub fn from_environment() -> Self {
        let at =
            if cfg!(debug_assertions) { std::env::var(CRASH_VARIABLE).ok().and_then(|text| text.parse().ok()) } else { None };
        Self { at, abort: true, passed: Cell::new(0) }
    }

    /// Ends the loop, not the process, at the `at`-th point.
    #[cfg(test)]
    pub(crate) fn at(at: u64) -> Self {
        Self { at: Some(at), ..Self::default() }
    }

    /// Passes a point.
    ///
    /// # Errors
    /// [`Crashed`] at the one that was asked for, and ever after.
    pub async fn pass(&self, point: Point) -> Result<(), Crashed> {
        let passed = self.passed.get() + 1;
        self.passed.set(passed);
        match self.at {
            Some(at) if passed >= at => {
                if self.abort {
                    tokio::time::sleep(LAST_MOMENT).await;
                    std::process::abort();
                }
                Err(Crashed(point))
            }
            _ => Ok(()),
        }
    }
}
