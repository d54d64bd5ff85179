//! Process numbers that belong to others by now: played inside a PID namespace, in which this program is the first process.
//!
//! `pid_reuse FOLDER RUNTIMES STARTS`. The engine is killed with all its agents, decoys take exactly their numbers, and the engine
//! starts again with a ledger that names them. Says one line of JSON: how many numbers were taken again, how many decoys
//! were signalled, and whether a decoy that is signalled on purpose is seen. It signals nothing outside its namespace.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use harness::chaos::{self, App, Programs, Shape, bury};
use harness::process;
use harness::wait;
use rustix::process::{Pid, Signal, getpid, kill_process};
use serde_json::{Value, json};

/// The next process of this namespace gets the number after the one that is written here.
const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

/// By pid, the start ticks.
type Known = BTreeMap<i32, u64>;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, runtimes, starts] = &words[..] else { bail!("pid_reuse FOLDER RUNTIMES STARTS") };
    let (runtimes, starts): (usize, usize) = (runtimes.parse()?, starts.parse()?);
    // Anywhere else it would take the numbers of others.
    ensure!(getpid().is_init(), "this is no namespace of its own");
    if let Err(error) = fs::write(LAST_PID, "100") {
        return say(&json!({ "skipped": format!("{LAST_PID} cannot be written: {error}") }));
    }
    bury::begin()?;
    let (mut reused, mut signalled, mut seen) = (0, 0, false);
    for number in 0..starts {
        let root = PathBuf::from(folder).join(number.to_string());
        let (ledger, decoys) = once(&root, runtimes)?;
        reused += decoys.len();
        ensure!(decoys.keys().all(|pid| ledger.contains_key(pid)), "a decoy has another number");
        signalled += gone(&decoys);
        if number == 0 {
            // The negative control: by its bare number, as a careless supervisor would.
            let first = *ledger.keys().find(|pid| decoys.contains_key(pid)).context("no number was taken again")?;
            kill_process(Pid::from_raw(first).context("a number")?, Signal::TERM)?;
            wait::until("end of the decoy", || (gone(&decoys) == signalled + 1).then_some(()))?;
            seen = true;
        }
        bury::end_all()?;
        fs::remove_dir_all(&root)?;
    }
    say(&json!({ "reused": reused, "signalled": signalled, "seen": seen }))
}

fn say(line: &Value) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("nobody listens")
}

/// How many of these do not run any more.
fn gone(known: &Known) -> usize {
    let runs =
        |(pid, ticks): &(&i32, &u64)| process::row(**pid).is_some_and(|row| row.start_ticks == **ticks && row.state != 'Z');
    known.len() - known.iter().filter(runs).count()
}

/// What the ledger names, and who has those numbers once the engine has recovered.
fn once(root: &PathBuf, runtimes: usize) -> Result<(Known, Known)> {
    fs::create_dir_all(root)?;
    let programs = Programs::find()?;
    let wanted: Vec<_> = (0..runtimes).map(|number| (format!("a{number:03}"), Shape::Plain, 0)).collect();
    let trees = chaos::plant(root, &programs, &wanted)?;
    let mut app = App::start(root, &programs)?;
    app.open_all(&trees, chaos::SHORT)?;
    app.rest()?;
    let ledger = ledger(&app.engine.state);
    ensure!(ledger.len() == runtimes, "the ledger names {} processes of {runtimes}", ledger.len());
    // The engine and its agents, and whatever stands between them.
    bury::end_all()?;
    let mut decoys = Known::new();
    for pid in ledger.keys() {
        if let Some(ticks) = decoy(*pid)? {
            decoys.insert(*pid, ticks);
        }
    }
    let differ = decoys.iter().all(|(pid, ticks)| ledger[pid] != *ticks);
    ensure!(differ, "a decoy began in the same tick as the process whose number it has");
    let next =
        chaos::again(root, &programs, &app).with_context(|| fs::read_to_string(root.join("engine.log")).unwrap_or_default())?;
    ensure!(App::runtimes(&next.engine.state).is_empty(), "runtimes are left in the ledger");
    drop(next);
    Ok((ledger, decoys))
}

/// The processes that the engine wrote down.
fn ledger(state: &Value) -> Known {
    let all = state["runtimes"].as_object().into_iter().flatten();
    all.filter_map(|(_, it)| Some((i32::try_from(it["process"]["pid"].as_i64()?).ok()?, it["process"]["start_ticks"].as_u64()?)))
        .collect()
}

/// A process that has this number. None: the number was taken by another meanwhile.
fn decoy(pid: i32) -> Result<Option<u64>> {
    for _ in 0..20 {
        fs::write(LAST_PID, (pid - 1).to_string())?;
        let mut child = bury::keep(|| {
            let child = Command::new("sleep").arg("600").stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
            Ok((i32::try_from(child.id())?, child))
        })?;
        let got = i32::try_from(child.id())?;
        if got == pid {
            return Ok(Some(process::row(pid).context("a decoy without a row")?.start_ticks));
        }
        child.kill()?;
        child.wait()?;
    }
    Ok(None)
}
