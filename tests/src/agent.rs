//! An agent process that speaks JSON lines over its pipes, driven by hand: no supervisor between.
//!
//! Used to see what an agent itself does, so that a difference can be laid at the right door.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::wait::{self, PATIENCE};

/// What came out of the agent's standard output.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    Message(Value),
    /// Not JSON, without its newline.
    Raw(Vec<u8>),
    /// The last bytes before the end, which had no newline.
    Unfinished(Vec<u8>),
    /// The end of the output, without an error.
    End,
}

/// A running agent. Dropping it kills it.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Line>,
    seen: Vec<Value>,
    looked: usize,
    next_id: u64,
}

impl Agent {
    /// Starts it; its standard error goes where `command` says.
    pub fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {:?}", command.get_program()))?;
        let output = child.stdout.take().context("the agent has no output")?;
        let (sender, lines) = channel();
        thread::spawn(move || read(BufReader::new(output), &sender));
        let input = child.stdin.take();
        Ok(Self { child, input, lines, seen: Vec::new(), looked: 0, next_id: 0 })
    }

    /// The process number.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<()> {
        let input = self.input.as_mut().context("the agent's input is closed")?;
        input.write_all(bytes).and_then(|()| input.flush()).context("writing to the agent")
    }

    /// Sends one message.
    pub fn send(&mut self, message: &Value) -> Result<()> {
        self.send_raw(format!("{message}\n").as_bytes())
    }

    /// Sends a request without waiting; gives its id.
    pub fn post(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.next_id += 1;
        self.send(&json!({ "id": self.next_id, "method": method, "params": params }))?;
        Ok(self.next_id)
    }

    /// Sends a request and gives its result; an error answer is an error.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.post(method, params)?;
        let answer =
            self.wait(&format!("answer to {method}"), |message| message.get("method").is_none() && message["id"] == id)?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => bail!("{method} was refused: {answer}"),
        }
    }

    /// The handshake of Codex's app-server.
    pub fn initialize(&mut self) -> Result<Value> {
        let client = json!({ "name": "turnkeep-tests", "title": "Turnkeep tests", "version": "0" });
        let capabilities = json!({ "experimentalApi": true });
        let params = json!({ "clientInfo": client, "capabilities": capabilities });
        let answer = self.ask("initialize", &params)?;
        self.send(&json!({ "method": "initialized" }))?;
        Ok(answer)
    }

    /// Waits for a notification or request of this method that has not been waited for yet.
    pub fn wait_method(&mut self, method: &str) -> Result<Value> {
        self.wait(method, |message| message["method"] == method)
    }

    /// Waits for a message that fits, among those after the last one that was found.
    pub fn wait(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let end = Instant::now() + PATIENCE;
        loop {
            while let Some(message) = self.seen.get(self.looked) {
                self.looked += 1;
                if fits(message) {
                    return Ok(message.clone());
                }
            }
            match self.line(end.saturating_duration_since(Instant::now())) {
                Ok(Line::Message(message)) => self.seen.push(message),
                Ok(Line::End | Line::Unfinished(_)) => {
                    bail!("the agent's output ended before: {what}; it said {}", self.said())
                }
                Ok(Line::Raw(_)) => {}
                Err(error) => return Err(error).with_context(|| format!("no {what}; {}", self.said())),
            }
        }
    }

    /// Everything it has said that was waited through, in order.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        &self.seen
    }

    fn said(&self) -> String {
        let names = self.seen.iter().map(|message| match message.get("method") {
            Some(method) => method.to_string(),
            None => message.to_string(),
        });
        names.collect::<Vec<_>>().join(", ")
    }

    /// The next line as it came.
    pub fn line(&self, limit: Duration) -> Result<Line> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => bail!("the agent said nothing for {limit:?}"),
            Err(RecvTimeoutError::Disconnected) => Ok(Line::End),
        }
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits until it has ended.
    pub fn wait_exit(&mut self, limit: Duration) -> Result<ExitStatus> {
        wait::until_within(limit, "end of the agent", || self.child.try_wait().ok()?)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(mut output: impl std::io::BufRead, lines: &Sender<Line>) {
    loop {
        let mut bytes = Vec::new();
        let length = (&mut output).take(u64::MAX).read_until(b'\n', &mut bytes).unwrap_or(0);
        let line = if length == 0 {
            Line::End
        } else if bytes.pop_if(|last| *last == b'\n').is_none() {
            Line::Unfinished(bytes)
        } else {
            match serde_json::from_slice(&bytes) {
                Ok(message) => Line::Message(message),
                Err(_) => Line::Raw(bytes),
            }
        };
        let end = line == Line::End;
        if lines.send(line).is_err() || end {
            return;
        }
    }
}
