//! Rounds in processes of their own, several at a time: each is the reaper of what its rounds start.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::crowd::{Crowd, Stopped};
use super::round::{Killer, Report, Whose};

/// What a worker is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Job {
    Round { whose: Whose, killer: Killer, number: usize },
    Crowd(Crowd),
}

/// What it says of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Done {
    Round(Report),
    Crowd(Stopped),
}

/// A process that plays rounds. Dropping it closes its input, which ends it, and what it started with it.
struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Worker {
    fn start(program: &Path, folder: &Path) -> Result<Self> {
        let mut child = Command::new(program).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("a worker without an output")?);
        Ok(Self { child, input, output })
    }

    fn play(&mut self, job: &Job) -> Result<Done> {
        let input = self.input.as_mut().context("a worker without an input")?;
        writeln!(input, "{}", serde_json::to_string(job)?)?;
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "the worker ended in {job:?}");
        match serde_json::from_str::<Result<Done, String>>(&line).with_context(|| line.clone())? {
            Ok(report) => Ok(report),
            Err(why) => bail!("{why}"),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.input = None;
        // It ends what it started before it ends.
        let _ = self.child.wait();
    }
}

/// Does all jobs, so many at a time, below `folder`. What is done comes in no order; `heard` is told of each at once.
pub fn work(program: &Path, folder: &Path, at_a_time: usize, jobs: Vec<Job>, heard: impl Fn(&Done) + Sync) -> Result<Vec<Done>> {
    let jobs = Mutex::new(VecDeque::from(jobs));
    let done = thread::scope(|scope| {
        let one = |number: usize| {
            let (jobs, heard) = (&jobs, &heard);
            move || -> Result<Vec<Done>> {
                let mut worker = Worker::start(program, &folder.join(number.to_string()))?;
                let mut reports = Vec::new();
                loop {
                    let Some(job) = jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else { return Ok(reports) };
                    let played = worker.play(&job);
                    if played.is_err() {
                        // The others need not go on.
                        jobs.lock().unwrap_or_else(PoisonError::into_inner).clear();
                    }
                    let report = played?;
                    heard(&report);
                    reports.push(report);
                }
            }
        };
        let all: Vec<_> = (0..at_a_time).map(|number| scope.spawn(one(number))).collect();
        all.into_iter().map(|worker| worker.join().ok().context("a worker's thread panicked")?).collect::<Vec<_>>()
    });
    let mut reports = Vec::new();
    for one in done {
        reports.extend(one?);
    }
    Ok(reports)
}
