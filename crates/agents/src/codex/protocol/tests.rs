//! Recorded lines of the real program in, domain events out.
//!
//! A transcript has one JSON object a line: `purpose` (else a serving process with a key), `do` a command, `in` a line
//! from Codex (with `to`: the answer to the oldest open request of that method), `close` the end of the transport.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test picks the events that it is about")]

mod entries;
mod hostile;
mod people;
mod threads;
mod turns;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
};

use expect_test::expect_file;
use serde_json::Value;
use turnkeep_model::{
    MessageId, SessionId, ThreadRef, TurnId,
    port::{AgentCommand, AgentEvent, SessionSettings, SignInMethod, TransportRecord, TurnOutcome},
};

use super::Machine;
use crate::port::{Clock, Frame, Out, Protocol, Purpose};

/// A machine, and what came out of it.
pub(super) struct Play {
    machine: Machine,
    pub(super) now: Clock,
    open: BTreeMap<String, VecDeque<Value>>,
    pub(super) sent: Vec<Value>,
    pub(super) events: Vec<AgentEvent>,
    pub(super) stops: Vec<String>,
    pub(super) wake: Option<Clock>,
    log: String,
}

impl Play {
    pub(super) fn new(purpose: &Purpose) -> Self {
        let mut play = Self {
            machine: Machine::new(purpose),
            now: 1_000_000,
            open: BTreeMap::new(),
            sent: Vec::new(),
            events: Vec::new(),
            stops: Vec::new(),
            wake: None,
            log: String::new(),
        };
        play.drain();
        play
    }

    /// Serving, signed in with a key, the handshake done.
    pub(super) fn ready() -> Self {
        let mut play = Self::new(&Purpose::Serve { needs_key: false });
        play.answer("initialize", r#"{"result":{"userAgent":"turnkeep/0.171.0 (x)"}}"#);
        play.answer("config/read", r#"{"result":{"config":{"model_provider":null}}}"#);
        play.answer("account/read", r#"{"result":{"account":{"type":"apiKey"},"requiresOpenaiAuth":true}}"#);
        play
    }

    /// As [`Play::ready`], with session 1 open on "thread-1".
    pub(super) fn open() -> Self {
        let mut play = Self::ready();
        play.command(&open_session(None));
        play.answer("thread/start", OPENED);
        play
    }

    /// As [`Play::open`], with turn 1 running as "turn-1".
    pub(super) fn running() -> Self {
        let mut play = Self::open();
        play.command(&start_turn(1, "go"));
        play.answer("turn/start", r#"{"result":{"turn":{"id":"turn-1","status":"inProgress"}}}"#);
        play.hear("turn/started", r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"inProgress"}}"#);
        play
    }

    pub(super) fn command(&mut self, command: &AgentCommand) {
        self.machine.command(self.now, command.clone()).expect("Codex can do all of it");
        self.drain();
    }

    pub(super) fn line(&mut self, line: &[u8]) {
        self.machine.receive(self.now, line);
        self.drain();
    }

    pub(super) fn hear(&mut self, method: &str, params: &str) {
        self.line(format!("{{\"method\":\"{method}\",\"params\":{params}}}").as_bytes());
    }

    /// Answer the oldest open request of this method.
    pub(super) fn answer(&mut self, method: &str, body: &str) {
        let id = self.open.get_mut(method).and_then(VecDeque::pop_front);
        let id = id.unwrap_or_else(|| panic!("{method} was not asked\n{}", self.log));
        let mut body: Value = serde_json::from_str(body).expect("an answer in a test");
        body["id"] = id;
        self.line(body.to_string().as_bytes());
    }

    pub(super) fn pass(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        while let Some(at) = self.wake.filter(|at| *at <= self.now) {
            self.wake = None;
            self.machine.wake(at.max(self.now));
            self.drain();
        }
    }

    pub(super) fn close(&mut self) {
        self.machine.closed(self.now, record());
        self.drain();
    }

    /// Methods that were asked and not answered.
    pub(super) fn unanswered(&self, method: &str) -> usize {
        self.open.get(method).map_or(0, VecDeque::len)
    }

    /// The events since the last call.
    pub(super) fn take(&mut self) -> Vec<AgentEvent> {
        std::mem::take(&mut self.events)
    }

    fn drain(&mut self) {
        while let Some(out) = self.machine.poll() {
            match out {
                Out::Send(frame) => {
                    let text = match frame {
                        Frame::Text(text) => text,
                        Frame::WithSecret { head, slot, tail } => format!("{head}\"<{slot:?}>\"{tail}"),
                    };
                    assert!(!text.contains('\n'), "a frame is one line: {text}");
                    let message: Value = serde_json::from_str(&text).expect("what is sent is JSON");
                    let method = message["method"].as_str().unwrap_or("(answer)");
                    if let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) {
                        self.open.entry(method.to_owned()).or_default().push_back(id.clone());
                    }
                    let body = message.get("params").or(message.get("result")).or(message.get("error"));
                    writeln!(self.log, "> {method} {}", body.unwrap_or(&Value::Null)).expect("a string takes all");
                    self.sent.push(message);
                }
                Out::Event(event) => {
                    writeln!(self.log, "  {}", shown(&event)).expect("a string takes all");
                    self.events.push(event);
                }
                Out::Serve(errand) => panic!("it has no errands: {errand:?}"),
                Out::WakeAt(at) => self.wake = Some(at),
                Out::Stop { why } => {
                    writeln!(self.log, "! stop: {why}").expect("a string takes all");
                    self.stops.push(why);
                }
            }
        }
    }
}

pub(super) const OPENED: &str = r#"{"result":{"thread":{"id":"thread-1","status":{"type":"idle"}},"model":"gpt-5.5",
    "modelProvider":"openai","approvalPolicy":"on-request","sandbox":{"type":"readOnly"}}}"#;

pub(super) fn open_session(thread: Option<&str>) -> AgentCommand {
    AgentCommand::OpenSession {
        session: SessionId(1),
        thread: thread.map(ThreadRef::new),
        fork_of: None,
        history: false,
        folder: "/home/sam/project".to_owned(),
        settings: SessionSettings::default(),
        goal: None,
    }
}

pub(super) fn start_turn(turn: u64, text: &str) -> AgentCommand {
    AgentCommand::StartTurn {
        session: SessionId(1),
        turn: TurnId(turn),
        message: MessageId(format!("msg-{turn}")),
        text: text.to_owned(),
        settings: SessionSettings::default(),
    }
}

pub(super) fn record() -> TransportRecord {
    TransportRecord {
        pid: Some(4321),
        status: "signalled".to_owned(),
        exit_code: None,
        signal: Some(9),
        stream: "stdout".to_owned(),
        how: "eof".to_owned(),
        stderr: vec!["last words".to_owned()],
        ..TransportRecord::default()
    }
}

pub(super) const SESSION: SessionId = SessionId(1);
pub(super) const COMPLETED: &str = r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"completed"}}"#;
pub(super) const STARTED: &str = r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"inProgress"}}"#;

pub(super) fn names(play: &mut Play) -> Vec<String> {
    play.take().iter().map(|event| shown(event).split(' ').next().unwrap_or_default().to_owned()).collect()
}

pub(super) fn outcome(play: &mut Play) -> Option<TurnOutcome> {
    play.take().into_iter().find_map(|event| match event {
        AgentEvent::TurnEnded { outcome, .. } => Some(outcome),
        _ => None,
    })
}

pub(super) fn asked(play: &Play, method: &str) -> usize {
    play.sent.iter().filter(|message| message["method"] == method).count()
}

pub(super) fn message(text: &str, phase: &str, id: &str) -> String {
    format!(
        r#"{{"threadId":"thread-1","turnId":"turn-1","item":{{"type":"agentMessage","id":"{id}","text":"{text}","phase":{phase}}}}}"#
    )
}

/// The event as its name and its members, without those that say nothing.
pub(super) fn shown(event: &AgentEvent) -> String {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.values_mut().for_each(strip);
                members.retain(|_, member| !member.is_null());
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut value = serde_json::to_value(event).expect("events are data");
    strip(&mut value);
    match value.as_object().and_then(|members| members.iter().next()) {
        Some((name, members)) => format!("{name} {members}"),
        None => value.to_string(),
    }
}

fn purpose(word: &str) -> Purpose {
    match word {
        "sign in: Browser" => Purpose::SignIn { method: SignInMethod::Browser },
        "sign in: DeviceCode" => Purpose::SignIn { method: SignInMethod::DeviceCode },
        "sign out" => Purpose::SignOut,
        "serve" => Purpose::Serve { needs_key: false },
        other => panic!("unknown purpose {other}"),
    }
}

/// Play a transcript to its end.
pub(super) fn play(transcript: &str) -> Play {
    let mut lines: Vec<Value> =
        transcript.lines().map(|line| serde_json::from_str(line).expect("a line of a transcript")).collect();
    let with_key = lines.iter().any(|line| line["to"] == "account/login/start");
    let what = match lines.first().and_then(|first| first["purpose"].as_str()) {
        Some(word) => {
            let what = purpose(word);
            lines.remove(0);
            what
        }
        None => Purpose::Serve { needs_key: with_key },
    };
    let mut play = Play::new(&what);
    for line in &lines {
        if let Some(command) = line.get("do") {
            let command = serde_json::from_value(command.clone()).expect("a command in a transcript");
            writeln!(play.log, "\n{}", serde_json::to_string(&command).expect("commands are data")).expect("a string");
            play.command(&command);
        } else if line.get("close").is_some() {
            play.close();
        } else if let Some(method) = line["to"].as_str() {
            play.answer(method, &line["in"].to_string());
        } else {
            play.line(line["in"].to_string().as_bytes());
        }
    }
    play
}

macro_rules! transcripts {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let play = play(include_str!(concat!("../transcripts/", stringify!($name), ".jsonl")));
            expect_file![concat!("../transcripts/", stringify!($name), ".events.txt")].assert_eq(&play.log);
        }
    )*};
}

transcripts! {
    turn questions interrupt steer retry rejected_key killed background goal reopened signed_out
    sign_in_browser sign_in_denied sign_in_stolen sign_in_cancelled sign_in_device_code sign_in_device_refused sign_out
}

/// Every recorded transcript, for tests that bend them.
pub(super) const ALL: &[&str] = &[
    include_str!("../transcripts/turn.jsonl"),
    include_str!("../transcripts/questions.jsonl"),
    include_str!("../transcripts/interrupt.jsonl"),
    include_str!("../transcripts/steer.jsonl"),
    include_str!("../transcripts/retry.jsonl"),
    include_str!("../transcripts/killed.jsonl"),
    include_str!("../transcripts/background.jsonl"),
    include_str!("../transcripts/goal.jsonl"),
    include_str!("../transcripts/reopened.jsonl"),
    include_str!("../transcripts/signed_out.jsonl"),
    include_str!("../transcripts/sign_in_browser.jsonl"),
];
