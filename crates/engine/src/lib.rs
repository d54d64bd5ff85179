//! Makes it happen: the loop, processes, storage, the keychain and the clock.

pub mod clock;
mod consult;
pub mod crash;
#[cfg(target_os = "linux")]
mod descriptor;
mod discover;
mod environment;
pub mod feed;
mod handle;
pub mod lock;
pub mod logs;
pub mod own_agents;
mod perform;
pub mod places;
#[cfg(test)]
mod play;
mod run;
mod runtime;
mod sign_in;
mod start;
pub mod store;
pub mod vault;
mod watch;
pub mod world;

pub use consult::Unanswered;
pub use feed::{Recovery, Snapshot, TranscriptEvent, Trouble};
pub use handle::{Handle, ReadError, Transcript};
pub use places::Places;
pub use run::{Ack, Ended, Notice, Refused};
pub use start::{Config, Engine, StartError};
