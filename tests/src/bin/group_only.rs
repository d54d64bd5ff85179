//! The baseline: a supervisor that starts an agent in a process group of its own and signals that group at the end.
//!
//! `group_only PROGRAM [WORD…]`. The end of its input is the order to stop. It knows nothing better, on purpose.

use std::io::{Read as _, stdin};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_millis(500);

fn main() -> Result<()> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().context("the program is missing")?;
    let mut child = Command::new(program).args(words).process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    // Nothing is sent: only the end counts.
    let _ = stdin().read_to_end(&mut Vec::new());
    drop(child.stdin.take());
    let group = Pid::from_raw(i32::try_from(child.id())?).context("a child has a number")?;
    // A group that is gone takes no signal.
    let _ = kill_process_group(group, Signal::TERM);
    child.wait()?;
    let gone = harness::wait::until_within(GRACE, "end of the group", || test_kill_process_group(group).is_err().then_some(()));
    if gone.is_err() {
        let _ = kill_process_group(group, Signal::KILL);
    }
    Ok(())
}
