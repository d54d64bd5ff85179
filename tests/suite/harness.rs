//! The harness tried on itself: each guard is also seen to fail.

mod codex;
mod desktop;
mod fake_agent;
mod sample;
mod webdriver;
