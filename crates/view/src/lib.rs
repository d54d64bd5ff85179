//! What a client sees: snapshots and transcripts as JSON types, the tray and notifications as pure functions of the state.
//!
//! It never does I/O and decides nothing: what is true comes from the machine, and every word of it from [`words`].

pub mod answer;
pub mod display;
pub mod dto;
pub mod notification;
pub mod snapshot;
pub mod transcript;
pub mod tray;
pub mod unified;
pub mod words;

#[cfg(test)]
mod sample;
