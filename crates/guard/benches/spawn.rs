//! What a guard costs at a start: the same program directly and within a guard, in turns, from the fork until it has ended.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on ends here")]
#![expect(clippy::print_stdout, reason = "its figures are its purpose")]
#![expect(dead_code, reason = "the rig of the tests can do more")]

#[path = "../tests/process/rig.rs"]
mod rig;

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rig::Rig;
use turnkeep_guard::child::Fresh;
use turnkeep_guard::wire::Word;

const ROUNDS: usize = 200;

fn main() {
    let (mut direct, mut guarded): (Vec<Duration>, Vec<Duration>) =
        (0..ROUNDS).map(|_| (time_of(directly), time_of(within_a_guard))).unzip();
    let (alone, within) = (middle(&mut direct), middle(&mut guarded));
    println!(
        "start to end of /bin/true, median of {ROUNDS}: directly {alone:?}, within a guard {within:?}: {:.2} times, {:?} more",
        within.as_secs_f64() / alone.as_secs_f64(),
        within.saturating_sub(alone)
    );
}

/// What it gives is dropped when the time is known.
fn time_of<T>(what: impl FnOnce() -> T) -> Duration {
    let begun = Instant::now();
    let _made = what();
    begun.elapsed()
}

fn middle(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[expect(unsafe_code, reason = "as the application does")]
fn directly() {
    let fresh = Fresh::default();
    let mut command = Command::new("/bin/true");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: system calls only.
    unsafe {
        command.pre_exec(move || fresh.enter());
    }
    command.spawn().unwrap().wait().unwrap();
}

fn within_a_guard() -> Rig {
    let mut rig = Rig::of("/bin/true", &[]);
    rig.started();
    assert!(matches!(rig.word(), Some(Word::Exited { .. })));
    // The end of the guard itself is nobody's wait.
    rig
}
