//! Plays rounds of the chaos harness: a job a line on its input, a report a line on its output. The end of its input ends it.
//!
//! It is the reaper of everything that its rounds start, and leaves nothing of it behind.

use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::path::PathBuf;

use anyhow::{Context, Result};
use harness::chaos::{self, Done, Job, Programs, bury};

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).context("the folder for the rounds is missing")?);
    let programs = Programs::find()?;
    bury::begin()?;
    for line in stdin().lock().lines() {
        let job: Job = serde_json::from_str(&line?).context("a job")?;
        let played = match job {
            Job::Round { whose, killer, number } => chaos::play(&folder, &programs, whose, killer, number).map(Done::Round),
            Job::Crowd(crowd) => chaos::gather(&folder, &programs, &crowd).map(Done::Crowd),
        };
        let played = played.map_err(|error| format!("{error:#}"));
        let mut out = stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&played)?).and_then(|()| out.flush())?;
    }
    Ok(())
}
