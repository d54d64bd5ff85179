//! The process table as `/proc` shows it: who descends from whom, since when, and how much memory it holds.
//!
//! A process is its pid *and* its start ticks; nothing here signals a process that does not descend from the caller.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper, waitpid,
};

use crate::wait;

/// One row of the process table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub pid: i32,
    pub parent: i32,
    /// One letter, as in `ps`: `R`, `S`, `Z`, …
    pub state: char,
    /// The first one may have ended while others run on.
    pub threads: u32,
    /// Clock ticks between boot and the start of the process.
    pub start_ticks: u64,
    /// The kernel's name for it, at most 15 bytes.
    pub name: String,
}

/// The row of `pid`, or nothing when there is no such process.
#[must_use]
pub fn row(pid: i32) -> Option<Row> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&stat))
}

/// Reads one `/proc/PID/stat` line. The name may itself hold spaces and parentheses.
fn parse_stat(line: &str) -> Option<Row> {
    let (head, rest) = line.rsplit_once(')')?;
    let (pid, name) = head.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Row {
        pid: pid.trim().parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        state: fields.first()?.chars().next()?,
        threads: fields.get(17)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
        name: name.to_owned(),
    })
}

/// Every process that the kernel shows, zombies included.
#[must_use]
pub fn table() -> Vec<Row> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(row).collect()
}

/// Every live descendant of `root`, parents before children. Zombies are left out: they hold nothing but a number.
#[must_use]
pub fn descendants(root: i32) -> Vec<Row> {
    below(root, table())
}

fn below(root: i32, rows: Vec<Row>) -> Vec<Row> {
    let mut children: BTreeMap<i32, Vec<Row>> = BTreeMap::new();
    for row in rows {
        children.entry(row.parent).or_default().push(row);
    }
    let mut found = Vec::new();
    let mut todo = vec![root];
    while let Some(pid) = todo.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            todo.push(child.pid);
            if child.state != 'Z' || child.threads > 1 {
                found.push(child);
            }
        }
    }
    found
}

/// This process.
#[must_use]
pub fn me() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// The command line, words separated by spaces; empty for a zombie and for a process that is gone.
#[must_use]
pub fn command_line(pid: i32) -> String {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&raw).trim_end_matches('\0').replace('\0', " ")
}

/// The environment that the process was started with, as `NAME=value` entries.
#[must_use]
pub fn environment(pid: i32) -> Vec<String> {
    let raw = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    raw.split(|byte| *byte == 0)
        .filter(|entry| !entry.is_empty())
        .map(|entry| String::from_utf8_lossy(entry).into_owned())
        .collect()
}

/// The working directory, if it can be read.
#[must_use]
pub fn folder(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Proportional set size in KiB: memory shared by n processes counts one n-th in each.
pub fn pss_kib(pid: i32) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix("kB")?.trim().parse().ok())
        .with_context(|| format!("{path} has no Pss line"))
}

/// The descendants of `root` that render web pages. The window's process is `WebKitWebProcess`.
#[must_use]
pub fn web_processes(root: i32) -> Vec<Row> {
    // The kernel cuts the name after 15 bytes.
    descendants(root).into_iter().filter(|row| row.name.starts_with("WebKitWebProces")).collect()
}

/// Makes this process the parent of every descendant whose own parent ends, so that none escapes.
pub fn adopt_orphans() -> Result<()> {
    set_child_subreaper(Some(getpid())).context("becoming the reaper of orphaned descendants")
}

/// Waits until the process is gone or a zombie. `start_ticks` guards against another process under the same number.
pub fn wait_gone(pid: i32, start_ticks: u64, limit: Duration) -> Result<()> {
    let Some(id) = Pid::from_raw(pid) else { bail!("{pid} is no process number") };
    let handle = match pidfd_open(id, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("watching process {pid}")),
    };
    if row(pid).is_none_or(|row| row.start_ticks != start_ticks) {
        return Ok(());
    }
    let limit_spec =
        Timespec { tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX), tv_nsec: limit.subsec_nanos().into() };
    let mut fds = [PollFd::new(&handle, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&limit_spec)) {
            Ok(0) => bail!("process {pid} ({}) still ran after {limit:?}", command_line(pid)),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).with_context(|| format!("waiting for {pid}")),
        }
    }
}

/// Sends `signal` to `pid` if it still is the process that started at `start_ticks` and descends from this one.
/// Returns whether it was sent.
pub fn signal_own(pid: i32, start_ticks: u64, signal: Signal) -> Result<bool> {
    let ours = descendants(me()).iter().any(|row| row.pid == pid && row.start_ticks == start_ticks);
    if ours { signal_same(pid, start_ticks, signal) } else { Ok(false) }
}

/// Sends `signal` to `pid` if it still is the process that started at `start_ticks`. Returns whether it was sent.
pub fn signal_same(pid: i32, start_ticks: u64, signal: Signal) -> Result<bool> {
    let Some(id) = Pid::from_raw(pid) else { bail!("{pid} is no process number") };
    // What the handle holds is compared, since it was opened first.
    let sent = pidfd_open(id, PidfdFlags::empty()).and_then(|handle| match row(pid) {
        Some(row) if row.start_ticks == start_ticks => pidfd_send_signal(&handle, signal),
        _ => Err(Errno::SRCH),
    });
    match sent {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error).with_context(|| format!("signalling {pid}")),
    }
}

/// Ends every process that `select` picks, politely first, and proves that none is left.
///
/// The selection is made anew on each look, so that a process that is born meanwhile is found too.
pub fn end_all(select: impl Fn() -> Vec<Row>) -> Result<()> {
    for (signal, limit) in [(Signal::TERM, Duration::from_secs(2)), (Signal::KILL, Duration::from_secs(10))] {
        let gone = wait::until_within(limit, "end of the processes", || {
            let left = select();
            for row in &left {
                // A process that refuses the signal is found again by the next look.
                let _ = signal_own(row.pid, row.start_ticks, signal);
            }
            left.is_empty().then_some(())
        });
        if gone.is_ok() {
            return Ok(());
        }
    }
    let left: Vec<String> = select().iter().map(|row| format!("{} {}", row.pid, command_line(row.pid))).collect();
    bail!("these processes survived SIGKILL: {}", left.join("; "))
}

/// Takes the exit status of a dead direct child from the kernel, so that its number is free again. Its last threads may
/// need a moment; a child that does not end is left.
pub fn reap(pid: i32) {
    let Some(id) = Pid::from_raw(pid) else { return };
    let taken = wait::until_within(Duration::from_secs(2), "exit status", || match waitpid(Some(id), WaitOptions::NOHANG) {
        Ok(None) | Err(Errno::INTR) => None,
        // No such child: somebody else has waited for it, which is as good.
        Ok(Some(_)) | Err(_) => Some(()),
    });
    drop(taken);
}

/// How often any thread of the process has gone to sleep of its own will so far.
fn naps(pid: i32) -> Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(thread?.path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        sum += line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

/// How often the process's threads wake up in this time, which passes while it is measured.
pub fn wake_ups(pid: i32, time: Duration) -> Result<u64> {
    let before = naps(pid)?;
    std::thread::sleep(time);
    Ok(naps(pid)?.saturating_sub(before))
}

#[cfg(test)]
mod tests;
