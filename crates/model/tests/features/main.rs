//! What the machine does, feature by feature: a script in, facts and wishes out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod accounts;
mod approvals;
mod clocks;
mod goals;
mod leaving;
mod processes;
mod quit;
mod script;
mod threads;
mod turns;

use expect_test::Expect;

use crate::script::Stage;

/// Plays the script and compares what was shown.
fn check(script: &str, expected: Expect) {
    expected.assert_eq(&Stage::new().play(script));
}
