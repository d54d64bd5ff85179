//! The guard between the application and a runtime: that it is there, that it goes with it, and what is done where it is
//! taken away.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use turnkeep_model::state::AccountKind::System;

use crate::fake::{FakeAgent, Stage, alive, is_alive};
use crate::runtimes::failed;

fn parent(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    stat.rsplit(')').next().expect("fields").split_whitespace().nth(1).expect("a parent").parse().expect("a number")
}

fn words(pid: u32, of: &str) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/{of}")).unwrap_or_default();
    text.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("it is ours");
}

/// Everybody whose folder is the agent's home, whatever became of its environment, its session and its parents.
fn in_home(stage: &Stage) -> Vec<u32> {
    let home = stage.path(".fake");
    let pids = fs::read_dir("/proc").expect("/proc").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_alive(*pid) && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|it| it == home)).collect()
}

#[tokio::test]
async fn a_runtime_lives_in_a_guard_that_goes_with_it() {
    let mut stage = Stage::new("echo ready; read -r _");
    stage.spawn(1, System);
    let process = stage.started().await;
    stage.ready().await;
    let guard = parent(process.pid);
    assert_eq!(words(guard, "cmdline")[0], "turnkeep-guard");
    assert_eq!(parent(guard), std::process::id());
    assert!(words(guard, "environ").contains(&format!("TURNKEEP_RUNTIME={}-1", stage.instance)));
    stage.stop(1, false);
    stage.gone().await;
    assert!(!is_alive(guard) && !is_alive(process.pid));
    assert_eq!(alive(&stage.instance), []);
}

/// Only where the system lets us make groups: as a person with a delegated one, or as root.
#[tokio::test]
async fn a_runtime_is_in_a_group_of_its_own_where_that_can_be_and_the_group_goes_with_it() {
    let mut stage = Stage::new("(trap '' TERM; setsid sleep 600) & echo ready; read -r _");
    stage.spawn(1, System);
    let process = stage.started().await;
    stage.ready().await;
    let own = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("0::").map(str::to_owned)).unwrap_or_default()
    };
    let (group, guards) = (own(process.pid), own(parent(process.pid)));
    assert_eq!(guards, own(std::process::id()), "the guard must outlive the group");
    stage.stop(1, true);
    stage.gone().await;
    assert_eq!(alive(&stage.instance), []);
    if group == guards {
        println!("no control groups here: this layer was not looked at");
        return;
    }
    assert!(group.ends_with(&format!("turnkeep-{}-1", stage.instance)), "{group}");
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let there = mounts.lines().filter_map(|line| line.split(' ').nth(4)).any(|mount| {
        let below = group.trim_start_matches('/');
        mount.starts_with("/sys/fs/cgroup") && fs::exists(format!("{mount}/{below}")).unwrap_or(false)
    });
    assert!(!there, "{group} is left");
}

/// Each in a home of its own, so that who is left is seen without asking for a marker, a session or a parent.
const TREES: [(&str, &str); 5] = [
    ("plain", "sleep 600 &"),
    ("a new session", "setsid sleep 600 &"),
    ("stubborn", "(trap '' TERM HUP INT; sleep 600 & wait; sleep 600) &"),
    (
        "a daemon with a cleared environment",
        "env -i /usr/bin/perl -e 'use POSIX; exit if fork; setsid; exit if fork; POSIX::close($_) for 0..255; sleep 600';",
    ),
    (
        "a respawner with a cleared environment",
        "env -i /usr/bin/perl -e 'use POSIX; POSIX::close($_) for 0..255; while (1) { exit if fork; setsid; open F, q(>>beat); print F 1; close F }' &",
    ),
];

/// Nobody is seen in many looks, and nobody writes between them: a respawner lives shorter than one look takes.
fn left(stage: &Stage, but: u32) -> Vec<u32> {
    let beats = || fs::metadata(stage.path(".fake/beat")).map_or(0, |it| it.len());
    let before = beats();
    let seen = (0..20).map(|_| in_home(stage)).find(|seen| seen.iter().any(|pid| *pid != but)).unwrap_or_default();
    if beats() > before { vec![0] } else { seen }
}

#[tokio::test]
async fn a_guard_that_is_killed_is_told_of_and_what_it_held_is_ended_all_the_same() {
    for (name, tree) in TREES {
        let mut stage = Stage::new(&format!("{tree} echo ready; read -r _; echo working; sleep 600"));
        stage.spawn(1, System);
        let process = stage.started().await;
        stage.ready().await;
        stage.start_turn(1, "x");
        stage.notice("working").await;
        kill(parent(process.pid));
        let record = stage.event("the failed turn", failed).await;
        assert!(record.how.contains("holds its processes together was ended"), "{name}: {record:?}");
        assert_eq!((record.exit_code, record.signal), (None, None));
        // It is not asked for the proof of its end before what it held is gone.
        stage.gone().await;
        let left = left(&stage, 0);
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}

/// That the look sees what is left: it is made of processes that nobody ended.
#[tokio::test]
async fn every_tree_is_seen_before_it_is_ended() {
    for (name, tree) in TREES {
        let agent = FakeAgent { eof_grace: 10, ..FakeAgent::new() };
        let mut stage = Stage::with(&format!("{tree} echo ready; read -r _"), agent);
        stage.spawn(1, System);
        let process = stage.started().await;
        stage.ready().await;
        assert!(!left(&stage, process.pid).is_empty(), "{name}");
        stage.stop(1, true);
        stage.gone().await;
        let left = left(&stage, 0);
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}
