//! A relay in front of a real agent: passes lines, and does to them what its file says.
//!
//! It ends when the agent ends, with its code, and ends the agent when its own input ends.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, exit};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, thread};

use anyhow::{Context, Result};
use harness::relay::{Act, From, Relay};

fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let file = PathBuf::from(arguments.next().context("the file that says what to do")?);
    let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
    let relay: Relay = serde_json::from_slice(&text).with_context(|| format!("in {}", file.display()))?;
    for act in &relay.start {
        begin(act, &file)?;
    }
    let mut child = Command::new(&relay.program)
        .args(&relay.arguments)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", relay.program.display()))?;
    let input = child.stdin.take().context("the agent has no input")?;
    let output = BufReader::new(child.stdout.take().context("the agent has no output")?);
    let child = Arc::new(Mutex::new(child));
    let passing = Passing { relay: Arc::new(relay), file, child: Arc::clone(&child) };
    let down = passing.clone();
    // Dropping the agent's input closes it.
    thread::spawn(move || down.pass(From::Client, stdin().lock(), input));
    passing.pass(From::Agent, output, stdout());
    let status = child.lock().unwrap_or_else(PoisonError::into_inner).wait()?;
    exit(status.code().unwrap_or(1))
}

/// What is done before the agent is there.
fn begin(act: &Act, file: &Path) -> Result<()> {
    match act {
        Act::WaitFor(gate) => harness::wait::until("file that the relay waits for", || gate.exists().then_some(())),
        Act::Touch(mark) => fs::write(mark, "").context("making a mark"),
        Act::Say(bytes) => stdout().write_all(bytes).and_then(|()| stdout().flush()).context("saying"),
        Act::Exit(code) => exit(*code),
        Act::ExitOnce(code) => {
            if first(&file.with_extension("start")) {
                exit(*code);
            }
            Ok(())
        }
        Act::Drop | Act::Pass | Act::PassUnfinished | Act::Replace { .. } => Ok(()),
    }
}

/// Whether nobody was here before.
fn first(mark: &Path) -> bool {
    OpenOptions::new().write(true).create_new(true).open(mark).is_ok()
}

#[derive(Clone)]
struct Passing {
    relay: Arc<Relay>,
    file: PathBuf,
    child: Arc<Mutex<Child>>,
}

impl Passing {
    fn pass(&self, from: From, mut input: impl BufRead, mut output: impl Write) {
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            if self.handle(from, &line, &mut output).is_err() {
                // Whom it goes to has gone; its own end is seen elsewhere.
                return;
            }
            line.clear();
        }
    }

    fn handle(&self, from: From, line: &[u8], output: &mut impl Write) -> Result<()> {
        let mut text = String::from_utf8_lossy(line).into_owned();
        let mut pass = true;
        for (number, rule) in self.relay.rules.iter().enumerate() {
            let fits = rule.from == from && rule.at.iter().any(|at| text.contains(at));
            if !fits || rule.once && !first(&self.file.with_extension(format!("rule-{number}"))) {
                continue;
            }
            for act in &rule.then {
                match act {
                    Act::Drop => pass = false,
                    Act::Say(bytes) => output.write_all(bytes).and_then(|()| output.flush())?,
                    Act::Replace { this, by } => text = text.replace(this, by),
                    Act::WaitFor(gate) => {
                        harness::wait::until("file that the relay waits for", || gate.exists().then_some(()))?;
                    }
                    Act::Touch(mark) => drop(File::create(mark)?),
                    Act::Pass => {
                        output.write_all(text.as_bytes()).and_then(|()| output.flush())?;
                        pass = false;
                    }
                    Act::PassUnfinished => {
                        output.write_all(text.trim_end().as_bytes()).and_then(|()| output.flush())?;
                        pass = false;
                    }
                    Act::Exit(code) => self.exit(*code),
                    Act::ExitOnce(code) => {
                        if first(&self.file.with_extension("exit")) {
                            self.exit(*code);
                        }
                    }
                }
            }
        }
        if pass {
            output.write_all(text.as_bytes()).and_then(|()| output.flush())?;
        }
        Ok(())
    }

    fn exit(&self, code: i32) -> ! {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have ended already.
        let _ = child.kill();
        let _ = child.wait();
        exit(code)
    }
}
