//! A started process with its pipes: alone, or within a guard. To its actor both are the same.

use std::{io, process::ExitStatus, time::Duration};

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use turnkeep_model::state::ProcessIdentity;

use super::{
    guard::Guarded,
    reap::{self, Ask, Which},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Process {
    /// `None` where the system cannot tell one process from a later one with its pid.
    pub(super) identity: Option<ProcessIdentity>,
    /// Taken by who talks to it.
    pub(super) pipes: Option<Pipes>,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Alone(Child),
    Guarded(Box<Guarded>),
}

/// Its three streams.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl Process {
    pub(super) fn alone(mut child: Child) -> io::Result<Self> {
        let identity = child.id().and_then(reap::identity);
        Ok(Self { identity, pipes: Some(pipes(&mut child)?), held: Held::Alone(child) })
    }

    pub(super) fn guarded(mut guarded: Guarded) -> io::Result<Self> {
        let pipes = pipes(&mut guarded.child)?;
        Ok(Self { identity: Some(guarded.identity.clone()), pipes: Some(pipes), held: Held::Guarded(Box::new(guarded)) })
    }

    /// Until its own process has ended. May be given up and asked again.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.held {
            Held::Alone(child) => child.wait().await,
            Held::Guarded(guarded) => guarded.wait().await,
        }
    }

    /// Ask it to end; within a guard, all that it started too.
    pub(super) fn ask(&mut self, ask: Ask) {
        match &mut self.held {
            Held::Guarded(guarded) => guarded.stop(if ask == Ask::Politely { reap::GRACE } else { Duration::ZERO }),
            Held::Alone(child) => {
                if let Some(identity) = &self.identity {
                    reap::signal(identity, ask);
                }
                // Where a process has no identity, the handle that is held is the proof that it has not been waited for.
                #[cfg(all(unix, not(target_os = "linux")))]
                if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw) {
                    let signal = if ask == Ask::Politely { rustix::process::Signal::TERM } else { rustix::process::Signal::KILL };
                    let _ = rustix::process::kill_process_group(pid, signal);
                }
                #[cfg(any(target_os = "linux", not(unix)))]
                let _ = child;
            }
        }
    }

    /// Whether its guard was ended by somebody else: nothing is known of what the guard held then.
    pub(super) fn lost_its_guard(&self) -> bool {
        matches!(&self.held, Held::Guarded(guarded) if guarded.is_lost())
    }

    /// What it started while it runs, to be found when it is gone; nothing where a guard holds it together.
    pub(super) async fn family(&self, marker: &str) -> Vec<ProcessIdentity> {
        let known = self.identity.iter().cloned().collect();
        match &self.held {
            Held::Alone(_) => reap::family(marker.to_owned(), known).await,
            Held::Guarded(_) => known,
        }
    }

    pub(super) const fn is_guarded(&self) -> bool {
        matches!(self.held, Held::Guarded(_))
    }

    /// End all that it left, which is found by `left`. Its own process has ended; everything is gone when this returns.
    pub(super) async fn end(&mut self, left: Which, known: Vec<ProcessIdentity>, grace: Duration) {
        if let Held::Guarded(guarded) = &mut self.held {
            guarded.end(grace).await;
        }
        // A guard that says that nothing is left is believed, and looked after all the same.
        reap::end_all(left, known, grace, self.is_guarded() && !self.lost_its_guard()).await;
    }
}

fn pipes(child: &mut Child) -> io::Result<Pipes> {
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Pipes { stdin, stdout, stderr }),
        _ => Err(io::Error::other("it was started without its pipes")),
    }
}
