//! This process as the reaper of what it started: orphans become its children, their dead are buried, and what lives on is
//! ended by pid and start time.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use super::census::strike;
use crate::process;
use crate::wait;

/// Children that somebody waits for.
static KEPT: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Becomes the reaper, for good.
pub fn begin() -> Result<()> {
    process::adopt_orphans()?;
    thread::Builder::new().name("undertaker".to_owned()).spawn(|| {
        loop {
            {
                let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
                for pid in children().into_iter().filter(|pid| !kept.contains(pid)) {
                    // One that lives is left as it is.
                    let _ = Pid::from_raw(pid).map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
                }
            }
            thread::sleep(BETWEEN_LOOKS);
        }
    })?;
    Ok(())
}

/// Starts a child that whoever asks for it waits for itself.
pub fn keep<T>(start: impl FnOnce() -> Result<(i32, T)>) -> Result<T> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let (pid, started) = start()?;
    kept.insert(pid);
    Ok(started)
}

fn children() -> Vec<i32> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists.flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Kills every descendant of this process until none is left.
pub fn end_all() -> Result<()> {
    let none = wait::until("end of everything that was started", || {
        // A generation that lives for a millisecond is a child of ours once its ancestors are gone: it is met here.
        for _ in 0..200 {
            for pid in children() {
                if let Some(row) = process::row(pid) {
                    strike(pid, row.start_ticks, Signal::KILL);
                }
            }
        }
        let left = process::descendants(process::me());
        for row in &left {
            strike(row.pid, row.start_ticks, Signal::KILL);
        }
        left.is_empty().then_some(())
    });
    if none.is_err() {
        let left = process::descendants(process::me());
        let named: Vec<String> = left.iter().map(|row| format!("{} {}", row.pid, process::command_line(row.pid))).collect();
        bail!("still there: {}", named.join("; "));
    }
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).clear();
    Ok(())
}
