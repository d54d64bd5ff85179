//! Recorded lines of the real adapters in, domain events out; and what no adapter was seen to do.
//!
//! A transcript has one JSON object a line: `agent` its id, `do` a command, `answer` a person's answer to the oldest open
//! question, `in` a line from the agent (with `to`: the answer to the oldest open request of that method), `close` the end of
//! the transport. A choice of a mode is answered as all adapters answer it: with an empty result.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test picks the events that it is about")]

mod errands;
mod hostile;
mod past;
mod people;
mod sessions;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
    sync::Arc,
};

use expect_test::expect_file;
use serde_json::{Value, json};
use turnkeep_model::{
    ApprovalId, MessageId, RequestKey, SessionId, ThreadRef, TurnId,
    port::{AgentCommand, AgentEvent, Answer, Choice, SessionSettings, TransportRecord, TurnOutcome, Unsupported},
};

use super::Machine;
use crate::{
    acp::registry,
    errand::{Errand, Outcome},
    port::{Clock, Frame, Out, Protocol, Purpose},
};

pub(super) const SESSION: SessionId = SessionId(1);
pub(super) const TURN: TurnId = TurnId(1);
pub(super) const EVERYTHING: &str = r#"{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"auth":{"logout":{}},"sessionCapabilities":{"resume":{},"list":{},"close":{},"fork":{}}},"_meta":{"steering":{"supported":true}}}"#;

/// A machine, and what came out of it.
pub(super) struct Play {
    machine: Machine,
    pub(super) now: Clock,
    open: BTreeMap<String, VecDeque<Value>>,
    pub(super) sent: Vec<Value>,
    pub(super) events: Vec<AgentEvent>,
    pub(super) stops: Vec<String>,
    pub(super) errands: Vec<Errand>,
    wake: Option<Clock>,
    log: String,
    answers_settings: bool,
}

impl Play {
    pub(super) fn new(agent: &str, purpose: &Purpose) -> Self {
        let entry = registry::entries().into_iter().find(|entry| entry.id.as_str() == agent).expect("it is listed");
        let mut play = Self {
            machine: Machine::new(purpose, Arc::new(entry)),
            now: 1_000_000,
            open: BTreeMap::new(),
            sent: Vec::new(),
            events: Vec::new(),
            stops: Vec::new(),
            errands: Vec::new(),
            wake: None,
            log: String::new(),
            answers_settings: true,
        };
        play.drain();
        play
    }

    /// Ready, with everything that an agent may say of itself, or with what `says`.
    pub(super) fn ready(agent: &str, says: &str) -> Self {
        let mut play = Self::new(agent, &Purpose::Serve { needs_key: false });
        play.result("initialize", says);
        play
    }

    /// As [`Play::ready`], with the session open as "s".
    pub(super) fn open(agent: &str) -> Self {
        let mut play = Self::ready(agent, EVERYTHING);
        play.command(&open(None)).expect("it can");
        play.result("session/new", r#"{"sessionId":"s"}"#);
        play
    }

    /// As [`Play::open`], with a turn running.
    pub(super) fn running(agent: &str) -> Self {
        let mut play = Self::open(agent);
        play.command(&start_turn(1, "go")).expect("it can");
        play
    }

    pub(super) fn command(&mut self, command: &AgentCommand) -> Result<(), Unsupported> {
        let result = self.machine.command(self.now, command.clone());
        self.drain();
        result
    }

    pub(super) fn line(&mut self, line: &[u8]) {
        self.machine.receive(self.now, line);
        self.drain();
    }

    pub(super) fn update(&mut self, update: &str) {
        self.line(
            format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#).as_bytes(),
        );
    }

    /// What came of the errand that was asked for last.
    pub(super) fn serve(&mut self, outcome: Outcome) {
        let key = self.errands.last().expect("an errand").key;
        self.machine.served(self.now, key, outcome);
        self.drain();
    }

    /// Answer the oldest open request of this method.
    pub(super) fn answer(&mut self, method: &str, mut body: Value) {
        let id = self.open.get_mut(method).and_then(VecDeque::pop_front);
        body["id"] = id.unwrap_or_else(|| panic!("{method} was not asked\n{}", self.log));
        self.line(body.to_string().as_bytes());
    }

    pub(super) fn result(&mut self, method: &str, result: &str) {
        let result: Value = serde_json::from_str(result).expect("an answer in a test");
        self.answer(method, json!({"result": result}));
    }

    pub(super) fn refuse(&mut self, method: &str, error: &str) {
        let error: Value = serde_json::from_str(error).expect("an answer in a test");
        self.answer(method, json!({"error": error}));
    }

    pub(super) fn pass(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        while self.wake.is_some_and(|at| at <= self.now) {
            self.wake = None;
            self.machine.wake(self.now);
            self.drain();
        }
    }

    pub(super) fn close(&mut self) {
        self.machine.closed(self.now, TransportRecord { exit_code: Some(1), ..TransportRecord::default() });
        self.drain();
    }

    pub(super) fn unanswered(&self, method: &str) -> usize {
        self.open.get(method).map_or(0, VecDeque::len)
    }

    pub(super) fn take(&mut self) -> Vec<AgentEvent> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn outcome(&self) -> Option<TurnOutcome> {
        self.events.iter().rev().find_map(|event| match event {
            AgentEvent::TurnEnded { outcome, .. } => Some(outcome.clone()),
            _ => None,
        })
    }

    fn drain(&mut self) {
        while let Some(out) = self.machine.poll() {
            match out {
                Out::Send(frame) => {
                    let Frame::Text(text) = frame else { panic!("no secret is asked for") };
                    assert!(!text.contains('\n'), "a frame is one line: {text}");
                    let message: Value = serde_json::from_str(&text).expect("what is sent is JSON");
                    let method = message["method"].as_str().unwrap_or("(answer)").to_owned();
                    let body = message.get("params").or(message.get("result")).or(message.get("error"));
                    writeln!(self.log, "> {method} {}", body.unwrap_or(&Value::Null)).expect("a string takes all");
                    let id = message.get("id").filter(|_| message.get("method").is_some()).cloned();
                    self.sent.push(message);
                    match id {
                        Some(id) if method == "session/set_mode" && self.answers_settings => {
                            self.machine.receive(self.now, json!({"id": id, "result": {}}).to_string().as_bytes());
                        }
                        Some(id) => self.open.entry(method).or_default().push_back(id),
                        None => {}
                    }
                }
                Out::Event(event) => {
                    writeln!(self.log, "  {event:?}").expect("a string takes all");
                    self.events.push(event);
                }
                Out::Serve(errand) => {
                    writeln!(self.log, "+ {errand:?}").expect("a string takes all");
                    self.errands.push(errand);
                }
                Out::WakeAt(at) => self.wake = Some(at),
                Out::Stop { why } => {
                    writeln!(self.log, "! stop: {why}").expect("a string takes all");
                    self.stops.push(why);
                }
            }
        }
    }
}

pub(super) fn open(thread: Option<&str>) -> AgentCommand {
    AgentCommand::OpenSession {
        session: SESSION,
        thread: thread.map(|id| ThreadRef(id.to_owned())),
        fork_of: None,
        history: false,
        folder: "/folder".to_owned(),
        settings: SessionSettings::default(),
        goal: None,
    }
}

/// A second session that goes on from where a thread is.
pub(super) fn fork(of: &str) -> AgentCommand {
    AgentCommand::OpenSession {
        session: SessionId(2),
        thread: None,
        fork_of: Some(ThreadRef(of.to_owned())),
        history: false,
        folder: "/folder".to_owned(),
        settings: SessionSettings::default(),
        goal: None,
    }
}

pub(super) fn start_turn(turn: u64, text: &str) -> AgentCommand {
    AgentCommand::StartTurn {
        session: SESSION,
        turn: TurnId(turn),
        message: MessageId::new(format!("m{turn}")),
        text: text.to_owned(),
        settings: SessionSettings::default(),
    }
}

fn check(text: &str, expected: &expect_test::ExpectFile) {
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of a transcript"));
    let agent = lines.next().expect("it names its agent");
    let mut play = Play::new(agent["agent"].as_str().expect("an id"), &Purpose::Serve { needs_key: false });
    for line in lines {
        let turn = TurnId(line["turn"].as_u64().unwrap_or(0));
        let said = line["text"].as_str().unwrap_or_default();
        match (line["do"].as_str(), line.get("in"), line["to"].as_str()) {
            (Some("open"), ..) => play.command(&open(None)).expect("it can"),
            (Some("turn"), ..) => play.command(&start_turn(turn.0, said)).expect("it can"),
            (Some("interrupt"), ..) => play.command(&AgentCommand::Interrupt { session: SESSION, turn }).expect("it can"),
            (Some("release"), ..) => play.command(&AgentCommand::ReleaseSession { session: SESSION }).expect("it can"),
            (Some(other), ..) => panic!("{other} is no command of a transcript"),
            (None, Some(body), Some(method)) => play.answer(method, body.clone()),
            (None, Some(message), None) => play.line(message.to_string().as_bytes()),
            (None, None, _) if line.get("answer").is_some() => {
                let asked = play.events.iter().rev().find_map(|event| match event {
                    AgentEvent::ApprovalRequested { request, .. } => Some(request.clone()),
                    _ => None,
                });
                let allow = line["answer"]["optionId"].as_str().is_some_and(|id| id.starts_with("allow") || id == "once");
                let choice = if allow { Choice::Allow } else { Choice::Deny };
                play.command(&answer(asked.expect("something was asked").as_str(), choice)).expect("it can");
            }
            (None, None, _) => play.close(),
        }
    }
    expected.assert_eq(&play.log);
}

pub(super) fn answer(request: &str, choice: Choice) -> AgentCommand {
    let (approval, answer) = (ApprovalId(0), Answer::Choice(choice));
    AgentCommand::Answer { session: SESSION, approval, request: RequestKey::new(request), answer }
}

macro_rules! transcripts {
    ($($test:ident: $file:literal,)*) => {$(
        #[test]
        fn $test() {
            check(
                include_str!(concat!("../transcripts/", $file, ".jsonl")),
                &expect_file![concat!("../transcripts/", $file, ".events")],
            );
        }
    )*};
}

transcripts! {
    an_agent_whose_own_mode_asks_nothing_is_told_to_ask: "claude-agent-acp",
    warnings_of_an_adapter_are_no_answers_and_a_terminal_is_a_command: "codex-acp",
    a_rule_for_later_commands_is_on_offer: "codex-acp-asks",
    a_question_is_answered_and_its_command_runs: "opencode",
}
