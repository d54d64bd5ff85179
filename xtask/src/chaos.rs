//! `cargo xtask chaos`: the containment tests with many rounds, and their tables and figures on the screen.
//!
//! With the guards as they are shipped first, then without: each layer is to be seen by itself.

use std::process::ExitCode;

use anyhow::Result;

use crate::command::{cargo, run};
use crate::{Options, say};

const ROUNDS: u32 = 1000;

/// The name of the variable that turns the guards off.
const GUARD: &str = "TURNKEEP_GUARD";

pub(crate) fn chaos(options: Options) -> Result<ExitCode> {
    let rounds = options.rounds.unwrap_or(ROUNDS).to_string();
    // The guard lies beside the programs that start it.
    run(&mut cargo(&["build", "-p", "turnkeep-tests", "-p", "turnkeep-guard", "--bins"]))?;
    let mut good = true;
    for (name, guard) in [("with guards", None), ("without guards", Some("off"))] {
        say(&format!("\n== {name}, {rounds} rounds"));
        let words = [
            "test",
            "-p",
            "turnkeep-tests",
            "--test",
            "suite",
            "chaos::",
            "--",
            "--nocapture",
            "--include-ignored",
            "--test-threads",
            "1",
        ];
        let mut command = cargo(&words);
        command.env("TURNKEEP_CHAOS_ROUNDS", &rounds).envs(guard.map(|guard| (GUARD, guard)));
        if let Err(error) = run(&mut command) {
            say(&format!("{error:#}"));
            good = false;
        }
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
