//! The edges of the engine against real processes, files, buses and keychains.

#![cfg(target_os = "linux")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test waits for one thing and passes over the rest")]

mod accounts;
mod acp;
mod bus;
mod fake;
mod guards;
mod keychain;
mod leftovers;
mod real_codex;
mod real_server;
mod runtimes;
mod servers;
