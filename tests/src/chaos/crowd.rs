//! Many runtimes at once: opened, measured, and stopped in one go.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::app::{App, Programs, guarded, plant, yes};
use super::census::strike;
use super::round::{Killer, alone, no_runtime, quit, strays, watched};
use super::shape::Shape;
use crate::process;
use crate::wait::PATIENCE;

/// How many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crowd {
    pub runtimes: usize,
    /// Processes beside each agent.
    pub members: usize,
    /// [`Killer::Stop`]: each session is put away; else the application is asked to quit.
    pub killer: Killer,
}

/// What it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stopped {
    /// From the first wish to the last runtime that is ready and has its whole tree, in milliseconds.
    pub opened: f64,
    /// From the first wish to end to the last process that was gone.
    pub gone: f64,
    /// From the first wish to end to the word that all is gone.
    pub word: f64,
    /// Of the application alone, while all run, in KiB.
    pub pss_kib: u64,
    pub threads: u32,
    /// Of one guard, in KiB; none where there is no guard.
    pub guard_kib: Option<u64>,
    pub strays: Vec<String>,
}

/// Opens them all, and stops them all.
pub fn gather(folder: &Path, programs: &Programs, crowd: &Crowd) -> Result<Stopped> {
    alone(&folder.join("crowd"), |root| {
        let wanted: Vec<_> = (0..crowd.runtimes).map(|number| (format!("a{number:03}"), Shape::Plain, crowd.members)).collect();
        let trees = plant(root, programs, &wanted)?;
        let begun = Instant::now();
        let mut app = App::start(root, programs)?;
        app.open_all(&trees, super::SHORT)?;
        app.rest()?;
        let opened = millis(begun);
        let guards = guarded(&app, programs, trees.len())?;
        let guard_kib = guards.first().map(|guard| process::pss_kib(guard.pid)).transpose()?;
        let pss_kib = process::pss_kib(app.pid())?;
        let threads = process::row(app.pid()).context("the engine is gone")?.threads;
        let start = Instant::now();
        let (gone, word) = watched(&trees, PATIENCE, || {
            if crowd.killer == Killer::Stop {
                for name in trees.keys() {
                    app.put_away(name);
                }
                yes(app.engine.until("end of all runtimes", no_runtime)?)?;
            } else {
                ensure!(strike(app.pid(), app.start_ticks, Signal::TERM), "the engine was gone");
                ensure!(app.engine.wait_exit()?.success(), "the quit went badly: {:?}", app.engine.last);
            }
            Ok((millis(start), true))
        })?;
        ensure!(gone.len() == trees.len(), "{} of {} trees were gone at the word", gone.len(), trees.len());
        let last = gone.values().max().context("no tree")?;
        if crowd.killer == Killer::Stop {
            quit(&mut app)?;
        }
        let gone = last.saturating_duration_since(start).as_secs_f64() * 1000.0;
        Ok(Stopped { opened, gone, word, pss_kib, threads, guard_kib, strays: strays() })
    })
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
