//! Keeps one agent's processes together: the program `turnkeep-guard`, one a runtime, and the words that it and the
//! application exchange.
//!
//! The guard is the parent of the runtime and adopts what the runtime's children leave behind. It ends all of it when it is
//! told to, and when the application goes away. It never signals a process that does not descend from it, reads nothing of
//! the conversation, and decides nothing else.

#[cfg(unix)]
pub mod child;
#[cfg(target_os = "linux")]
mod leaf;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod tree;
pub mod wire;

use std::process::ExitCode;

/// The guard's exit code where it was started by something else than the application, or by another version of it.
pub const NOT_UNDERSTOOD: u8 = 64;

/// The mark of all that descends from a runtime whose marker this is; see [`child::tag`].
#[must_use]
pub fn tag_of(marker: &str) -> u64 {
    #[cfg(unix)]
    {
        child::tag::of(marker)
    }
    #[cfg(not(unix))]
    {
        let _ = marker;
        0
    }
}

/// The program: `turnkeep-guard VERSION DESCRIPTOR`, started by the application and by nobody else.
#[must_use]
pub fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    {
        serve::main(std::env::args_os().skip(1))
    }
    #[cfg(not(target_os = "linux"))]
    ExitCode::from(NOT_UNDERSTOOD)
}
