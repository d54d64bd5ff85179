//! The guard as the application starts it, around real and hostile processes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

mod hostile;
mod life;
mod rig;
