//! What a client sees: snapshots and transcripts as JSON types, and the tray as a pure function of the state.
//!
//! It never does I/O and decides nothing.

pub mod dto;
