//! What the suite stands on: a private desktop, a browser driver, a mock model, the real agent and the process table.
//!
//! It must never touch the person's own desktop, home, keychain or network, and never signal a process that is not a
//! descendant of the test.

pub mod agent;
pub mod browser;
pub mod chaos;
pub mod desktop;
pub mod engine;
pub mod fake_agent;
#[cfg(target_os = "linux")]
pub mod guard;
pub mod mock_model;
pub mod process;
pub mod real_codex;
pub mod relay;
pub mod wait;
pub mod webdriver;
