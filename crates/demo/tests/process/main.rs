//! The real process, through all its scripts, with bad input, and stopped in every state.
#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

mod client;
mod ends;
mod requests;
mod scripts;
