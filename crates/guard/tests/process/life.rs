//! What the runtime sees of its guard, which is nothing; and what the guard says.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::time::{Duration, Instant};

use turnkeep_guard::wire::{Order, Word};

use crate::rig::Rig;

#[test]
fn the_streams_are_the_runtimes_alone() {
    let mut rig = Rig::new("read -r line; echo \"got $line\"; read -r line || echo end; exec >&- 2>&-; sleep 600");
    rig.started();
    rig.guard.stdin.as_mut().unwrap().write_all(b"a line\n").unwrap();
    assert_eq!(rig.line(), "got a line");
    drop(rig.guard.stdin.take());
    assert_eq!(rig.line(), "end");
    // The guard lives and does not hold them open.
    let mut rest = String::new();
    rig.guard.stdout.as_mut().unwrap().read_to_string(&mut rest).unwrap();
    rig.guard.stderr.as_mut().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert!(rig.guard.try_wait().unwrap().is_none());
}

#[test]
fn a_runtime_leads_its_session_and_inherits_nothing_but_its_streams() {
    let mut rig = Rig::new("pwd; read -r _");
    let pid = rig.started();
    assert_eq!(rig.line(), rig.folder.to_string_lossy());
    let mut open: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(|it| it.unwrap().file_name()).collect();
    open.sort();
    assert_eq!(open, ["0", "1", "2"]);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let expected = [rig.guard.id().to_string(), pid.to_string(), pid.to_string()];
    assert_eq!(fields[1..4], expected, "parent, group, session");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    for name in ["SigBlk", "SigIgn"] {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        assert_eq!(line.trim_start_matches([':', '\t']), "0000000000000000", "{name}");
    }
    assert_eq!(fs::read_link(format!("/proc/{}/cwd", rig.guard.id())).unwrap().to_str(), Some("/"));
}

#[test]
fn the_end_of_the_runtime_is_told_and_what_it_left_waits_for_the_order() {
    let mut rig = Rig::new("setsid sleep 600 & exit 7");
    rig.started();
    assert_eq!(rig.word(), Some(Word::Exited { status: 7 << 8 }));
    assert_eq!(rig.living().len(), 1, "it was ended before anybody said so");
    rig.tell(Order::Stop { grace: 2_000 });
    assert_eq!(rig.word(), Some(Word::Gone));
    assert!(rig.living().is_empty());
    assert_eq!(rig.word(), None);
}

#[test]
fn a_signal_is_handed_on_to_the_runtime() {
    let mut rig = Rig::new("trap 'echo heard; exit 3' TERM; echo up; while :; do sleep 0.01; done");
    rig.started();
    assert_eq!(rig.line(), "up");
    rig.tell(Order::Signal { number: 15 });
    assert_eq!(rig.line(), "heard");
    assert_eq!(rig.word(), Some(Word::Exited { status: 3 << 8 }));
}

#[test]
fn a_stop_is_polite_first() {
    let mut rig = Rig::new("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done");
    rig.started();
    assert_eq!(rig.line(), "up");
    let begun = Instant::now();
    rig.tell(Order::Stop { grace: 20_000 });
    assert_eq!(rig.line(), "bye");
    assert_eq!((rig.word(), rig.word()), (Some(Word::Exited { status: 0 }), Some(Word::Gone)));
    assert!(begun.elapsed() < Duration::from_secs(20), "the grace was waited for although all had gone");
}

#[test]
fn a_second_stop_shortens_the_first() {
    let mut rig = Rig::new("trap '' TERM; echo up; while :; do sleep 0.01; done");
    rig.started();
    assert_eq!(rig.line(), "up");
    let begun = Instant::now();
    rig.tell(Order::Stop { grace: 60_000 });
    rig.tell(Order::Stop { grace: 0 });
    assert_eq!((rig.word(), rig.word()), (Some(Word::Exited { status: 9 }), Some(Word::Gone)));
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn what_cannot_be_started_says_why() {
    let mut rig = Rig::of("/no/such/program", &[]);
    assert_eq!(rig.word(), Some(Word::NotStarted { error: 2 }));
    assert_eq!(rig.word(), None);
    let mut rig = Rig::of("/etc/passwd", &[]);
    assert_eq!(rig.word(), Some(Word::NotStarted { error: 13 }));
}

#[test]
fn it_does_nothing_for_others() {
    let guard = env!("CARGO_BIN_EXE_turnkeep-guard");
    for arguments in [&[][..], &["1"], &["2", "3"], &["x", "y"]] {
        assert_eq!(Command::new(guard).args(arguments).status().unwrap().code(), Some(64), "{arguments:?}");
    }
    for descriptor in ["0", "-1", "900"] {
        assert_eq!(Command::new(guard).args(["1", descriptor]).status().unwrap().code(), Some(1), "{descriptor}");
    }
}

#[test]
fn it_is_small() {
    // The program's own pages count whole while there is but one of it, so some are looked at.
    let rigs: Vec<Rig> = (0..8)
        .map(|_| {
            let mut rig = Rig::new("echo up; read -r _");
            rig.started();
            assert_eq!(rig.line(), "up");
            rig
        })
        .collect();
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", rigs[0].guard.id())).unwrap();
    let of = |name: &str| -> u64 {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap()
    };
    let private = of("Private_Clean:") + of("Private_Dirty:");
    println!("one of eight guards: PSS {} KiB, private {private} KiB, RSS {} KiB", of("Pss:"), of("Rss:"));
    assert!(of("Pss:") <= 300, "PSS {} KiB", of("Pss:"));
}
