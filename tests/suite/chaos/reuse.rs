//! No process that is not ours is ever signalled, although it has the number of one that was.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::matrix::{ready, rounds};

/// Runtimes whose numbers are taken again by others, at each start of the engine.
const RUNTIMES: usize = 20;
const STARTS: usize = 2;

/// A namespace of processes: as root, or as whoever the kernel lets have one.
fn namespace() -> Option<Command> {
    let ways: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];
    ways.into_iter().find_map(|way| {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(way).args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
            command
        };
        unshare().arg("true").output().is_ok_and(|out| out.status.success()).then(unshare)
    })
}

#[test]
fn a_process_that_has_the_number_of_one_of_ours_is_let_be() -> Result<()> {
    let Some(mut command) = namespace() else {
        println!("skipped: no PID namespace can be made here");
        return Ok(());
    };
    ready()?;
    let folder = tempfile::Builder::new().prefix("tk-reuse-").tempdir_in("/var/tmp")?;
    // So many rounds are so many starts at most: each takes some seconds.
    let starts = rounds(STARTS).min(50);
    let played = command
        .arg(env!("CARGO_BIN_EXE_pid_reuse"))
        .arg(folder.path())
        .args([RUNTIMES.to_string(), starts.to_string()])
        .output()
        .context("starting in a namespace")?;
    let told = String::from_utf8_lossy(&played.stderr);
    ensure!(played.status.success(), "{}: {told}", played.status);
    let said: Value = serde_json::from_slice(&played.stdout).with_context(|| told.clone().into_owned())?;
    if let Some(why) = said["skipped"].as_str() {
        println!("skipped: {why}");
        return Ok(());
    }
    println!("process numbers that others had by then: {}, others signalled: {}", said["reused"], said["signalled"]);
    ensure!(said["seen"] == true, "a decoy that was signalled on purpose is not seen");
    ensure!(said["reused"].as_u64() >= Some((starts * RUNTIMES / 2) as u64), "too few numbers were taken again: {said}");
    ensure!(said["signalled"] == 0, "processes of others were signalled: {said}");
    Ok(())
}
