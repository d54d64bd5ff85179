//! The engine in a child process without a desktop (the binary `engine_alone`), driven by hand.
//!
//! It remembers what the engine said, so that a test can hold it to that after an end without warning.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::wait::{self, PATIENCE};

/// Names a file: for as long as that is there, the disk keeps nothing of what is written to it.
pub const DISK_FAILS: &str = "ENGINE_ALONE_DISK_FAILS";

/// What the engine is asked for, a line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Wish {
    SignIn {
        key: String,
    },
    Create {
        folder: String,
        /// The scripted agent's own, where it is left out.
        #[serde(default)]
        provider: Option<String>,
    },
    Send {
        session: u64,
        message: String,
        text: String,
    },
    Interrupt {
        session: u64,
    },
    Archive {
        session: u64,
    },
    Allow {
        approval: u64,
    },
    /// From a notification.
    Deny {
        approval: u64,
    },
    SignOut {
        account: u64,
    },
    Quit,
    /// Every change in the journal.
    Journal,
}

/// How a wait on the engine ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard<T> {
    Yes(T),
    /// The process ended before.
    Gone,
}

/// The running engine. Dropping it kills it.
#[derive(Debug)]
pub struct EngineAlone {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Value>,
    started: Instant,
    /// The newest state.
    pub state: Value,
    /// How long anything is waited for.
    pub patience: Duration,
    /// Why it holds still, if so.
    pub trouble: Option<String>,
    /// The highest number of a change that it showed or acknowledged.
    pub seen: u64,
    /// Its last word, or why it did not start.
    pub last: Option<Value>,
}

impl EngineAlone {
    /// Starts it; `command` is the binary with its folder and its environment.
    pub fn start(command: &mut Command) -> Result<Self> {
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {:?}", command.get_program()))?;
        let output = child.stdout.take().context("the engine has no output")?;
        let input = child.stdin.take().context("the engine has no input")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The last line of a process that was aborted may be half of one.
                if let Ok(line) = serde_json::from_str(&line)
                    && sender.send(line).is_err()
                {
                    return;
                }
            }
        });
        Ok(Self { child, input, lines, started, patience: PATIENCE, state: Value::Null, trouble: None, seen: 0, last: None })
    }

    /// The process number.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    /// Kills it without warning, and waits for its end.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill().context("killing the engine")?;
        self.child.wait().context("waiting for the killed engine")?;
        Ok(())
    }

    /// When it was started.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Sends a wish; a process that is gone takes none, which the next wait finds out.
    pub fn wish(&mut self, wish: &Wish) {
        let line = serde_json::to_string(wish).unwrap_or_default();
        drop(writeln!(self.input, "{line}").and_then(|()| self.input.flush()));
    }

    /// Waits for a line for which `look` gives something; states are remembered on the way.
    pub fn hear<T>(&mut self, what: &str, mut look: impl FnMut(&Self, &Value) -> Option<T>) -> Result<Heard<T>> {
        let end = Instant::now() + self.patience;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.remember(&line);
                    if let Some(found) = look(self, &line) {
                        return Ok(Heard::Yes(found));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(Heard::Gone),
                Err(RecvTimeoutError::Timeout) => bail!("no {what}; the state is {}, {:?}", self.state, self.trouble),
            }
        }
    }

    fn remember(&mut self, line: &Value) {
        let seq = if let Some(state) = line.get("state") {
            self.state = state.clone();
            self.trouble = line["trouble"].as_str().map(str::to_owned);
            state["seq"].as_u64()
        } else if let Some(ack) = line.get("ack") {
            ack["seq"].as_u64()
        } else {
            if line.get("ended").is_some() || line.get("refused").is_some() {
                self.last = Some(line.clone());
            }
            None
        };
        self.seen = self.seen.max(seq.unwrap_or(0));
    }

    /// Waits until the state is so; it may be so already.
    pub fn until(&mut self, what: &str, so: impl Fn(&Value) -> bool) -> Result<Heard<()>> {
        if so(&self.state) {
            return Ok(Heard::Yes(()));
        }
        self.hear(what, |engine, line| (line.get("state").is_some() && so(&engine.state)).then_some(()))
    }

    /// Sends a wish and waits until it was taken in.
    pub fn ask(&mut self, wish: &Wish) -> Result<Heard<Value>> {
        self.wish(wish);
        let answer = self.hear(&format!("answer to {wish:?}"), |_, line| {
            ["ack", "not", "journal"].iter().find_map(|name| line.get(name).map(|it| ((*name).to_owned(), it.clone())))
        })?;
        match answer {
            Heard::Gone => Ok(Heard::Gone),
            Heard::Yes((name, it)) if name != "not" => Ok(Heard::Yes(it)),
            Heard::Yes((_, why)) => bail!("{wish:?} was refused: {why}"),
        }
    }

    /// Waits until the process has ended.
    pub fn wait_exit(&mut self) -> Result<ExitStatus> {
        let Heard::Gone = self.hear("end of the engine", |_, _| None::<()>)? else { bail!("a wish for nothing was heard") };
        wait::until_within(self.patience, "end of the engine's process", || self.child.try_wait().ok()?)
    }
}

/// Whether a process ended as it does at a crash point.
#[must_use]
pub fn was_aborted(status: ExitStatus) -> bool {
    const ABORTED: i32 = 6;
    status.signal() == Some(ABORTED)
}

impl Drop for EngineAlone {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
