//! Processes that do not want to end, against every way in which a guard is told to end them.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use turnkeep_guard::wire::{Order, Word};

use crate::rig::{PATIENCE, Rig, is_dead};

const STUBBORN: &str = "trap '' TERM HUP INT QUIT";

/// Name, and what the runtime does before it says `up` and sleeps.
const TREES: [(&str, &str); 9] = [
    ("plain", "sleep 600 &"),
    ("a new group", "perl -e 'setpgrp; sleep 600' &"),
    ("a new session", "setsid sleep 600 &"),
    (
        "a double fork that closes everything",
        "perl -e 'use POSIX; exit if fork; setsid; exit if fork; POSIX::close($_) for 0..255; sleep 600' &",
    ),
    ("ignores every polite signal", "(trap '' TERM HUP INT QUIT; sleep 600 & wait; sleep 600) &"),
    ("a respawner", "perl -e 'while (1) { exit if fork; select undef, undef, undef, 0.0005 }' &"),
    ("a respawner that leaves its session", "perl -e 'use POSIX; while (1) { exit if fork; setsid }' &"),
    ("a cleared environment", "env -i setsid /bin/sh -c 'sleep 600 & exec sleep 600' &"),
    ("halted", "sleep 600 & kill -STOP $!;"),
];

fn up(tree: &str, stubborn: bool) -> Rig {
    up_with_pid(tree, stubborn).0
}

fn up_with_pid(tree: &str, stubborn: bool) -> (Rig, i32) {
    let trap = if stubborn { STUBBORN } else { ":" };
    let mut rig = Rig::new(&format!("{trap}; {tree} echo up; while :; do sleep 600; done"));
    let pid = rig.started();
    assert_eq!(rig.line(), "up");
    assert!(rig.living().len() > 1, "the tree is not there");
    (rig, pid)
}

fn goes_on(rig: &mut Rig, name: &str) {
    loop {
        match rig.word() {
            Some(Word::Exited { .. }) => {}
            Some(Word::Gone) => break,
            other => panic!("{name}: {other:?}"),
        }
    }
    // The proof is given when nothing is left, not before.
    let left = rig.living();
    assert!(left.is_empty(), "{name}: {left:?} outlived the proof");
}

#[test]
fn a_stop_ends_every_tree_and_proves_it() {
    for (name, tree) in TREES {
        let mut rig = up(tree, false);
        rig.tell(Order::Stop { grace: 300 });
        goes_on(&mut rig, name);
        assert!(rig.guard.wait().unwrap().success(), "{name}");
    }
}

#[test]
fn the_end_of_the_application_ends_every_tree() {
    for (name, tree) in TREES {
        let mut rig = up(tree, false);
        rig.contact = None;
        assert!(rig.guard.wait().unwrap().success(), "{name}");
        let left = rig.living();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}

#[test]
fn a_tree_whose_leader_has_gone_and_who_ignores_everything_ends_too() {
    for (name, tree) in TREES {
        let mut rig = Rig::new(&format!("{STUBBORN}; {tree} echo up"));
        rig.started();
        assert_eq!(rig.line(), "up");
        assert_eq!(rig.word(), Some(Word::Exited { status: 0 }), "{name}");
        rig.tell(Order::Stop { grace: 100 });
        goes_on(&mut rig, name);
    }
}

#[test]
fn a_polite_signal_to_the_guard_begins_the_stop() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut rig = up("setsid sleep 600 &", false);
        kill_process(Pid::from_child(&rig.guard), signal).unwrap();
        goes_on(&mut rig, "a signal from outside");
    }
}

#[test]
fn the_stop_at_once_is_within_a_hundred_milliseconds() {
    for (name, tree) in TREES {
        let mut rig = up(tree, true);
        let begun = Instant::now();
        rig.tell(Order::Stop { grace: 0 });
        goes_on(&mut rig, name);
        // A figure for a machine that does nothing else; tests run beside others.
        assert!(begun.elapsed() < Duration::from_secs(1), "{name}: {:?}", begun.elapsed());
    }
}

/// That the look at who is left sees something: a guard that is killed takes only the runtime's own process with it.
#[test]
fn a_killed_guard_alone_leaves_what_the_application_has_to_end() {
    // One that respawns cannot be ended by what this test has at hand, and would outlive it.
    for (name, tree) in TREES.iter().filter(|(name, _)| !name.contains("respawner")) {
        let (mut rig, pid) = up_with_pid(tree, false);
        rig.kill_guard();
        let until = Instant::now() + PATIENCE;
        while !is_dead(pid) {
            assert!(Instant::now() < until, "{name}: the runtime outlived its guard");
        }
        let left = (0..50).map(|_| rig.living().len()).max();
        assert!(left > Some(0), "{name}: nothing was left, so the look is blind");
        rig.clean_up();
    }
}
