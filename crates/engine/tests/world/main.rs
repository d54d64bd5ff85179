//! The edges of the engine against real processes, files, buses and keychains.

#![cfg(target_os = "linux")]

mod accounts;
mod bus;
mod fake;
mod keychain;
mod leftovers;
mod runtimes;
