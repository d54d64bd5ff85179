//! One binary for every test that talks to real processes, so that the harness is linked once.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod alone;
mod chaos;
mod conformance;
mod crashes;
mod harness;
mod tidy;
mod whole;
