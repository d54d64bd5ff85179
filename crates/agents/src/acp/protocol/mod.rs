//! The machine that speaks with one process: lines and commands in, lines and events out.
//!
//! It ends a turn only by the agent's own word or by the close of the transport, and answers no question by itself but
//! those that no person could answer. What the agent did not say that it can do is never asked of it.

mod account;
mod asking;
mod closing;
mod errands;
mod heard;
mod opening;
mod past;
mod session;
mod turns;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::{Value, value::RawValue};
use turnkeep_model::{
    MessageId, RequestKey, SessionId, ThreadRef, TurnId,
    port::{AgentCommand, AgentEvent, Failure, FailureClass, TransportRecord, Unsupported},
};

use self::{account::Account, asking::Question, errands::Errands, opening::From, session::Session};
use super::{Entry, settings::Setting, wire, words};
use crate::{
    errand::Outcome,
    jsonrpc::{Dialect, Incoming, Params, Requests, parse},
    port::{Clock, Out, Protocol, Purpose},
    timers::Timers,
};

/// Requests that may be unanswered at one time. A message of a session stays so for as long as its turn runs.
const IN_FLIGHT: usize = 512;

/// Milliseconds that the agent has for an answer.
mod patience {
    /// Somebody else's limit counts: the launch plan's, a person's, or none.
    pub(super) const UNLIMITED: u64 = u64::MAX;
    /// The first one of some installs something.
    pub(super) const OPEN: u64 = 120_000;
    pub(super) const CLOSE: u64 = 10_000;
    /// From asking it to stop a turn until that counts as ignored; agents were seen to take less than one second.
    pub(super) const CANCEL: u64 = 10_000;
    pub(super) const SETTING: u64 = 30_000;
    pub(super) const STEER: u64 = 30_000;
    pub(super) const LIST: u64 = 60_000;
    pub(super) const SIGN_OUT: u64 = 55_000;
}

/// What a request was for.
#[derive(Clone, Debug)]
enum Asked {
    Initialize,
    Authenticate,
    SignOut,
    Open {
        session: SessionId,
        attempt: u64,
    },
    Setting {
        session: SessionId,
        attempt: u64,
        setting: Setting,
    },
    Close {
        session: SessionId,
        attempt: u64,
    },
    /// A session that was opened too late for anyone to want it.
    Forget,
    Prompt {
        session: SessionId,
        attempt: u64,
        turn: TurnId,
    },
    Steer {
        session: SessionId,
        turn: TurnId,
        message: MessageId,
        text: String,
    },
    Sessions {
        ask: u64,
    },
}

/// What is done at a time.
#[derive(Clone, Debug)]
enum Timer {
    /// The agent did not close the session when it was asked to.
    CloseAgain { session: SessionId, attempt: u64 },
    /// The agent did not stop the turn when it was asked to.
    Ignored { session: SessionId, attempt: u64, turn: TurnId },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Handshake,
    Ready,
    Closed,
}

/// What the agent said that it can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Can {
    load: bool,
    resume: bool,
    list: bool,
    close: bool,
    fork: bool,
    steer: bool,
    logout: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Machine {
    entry: Arc<Entry>,
    purpose: Purpose,
    stage: Stage,
    can: Can,
    version: String,
    account: Account,
    requests: Requests<Asked>,
    out: VecDeque<Out>,
    /// Commands that came before the handshake was done.
    early: Vec<AgentCommand>,
    sessions: BTreeMap<SessionId, Session>,
    /// Joined by the agent's exact id.
    threads: BTreeMap<ThreadRef, SessionId>,
    questions: BTreeMap<RequestKey, Question>,
    errands: Errands,
    attempts: u64,
    timers: Timers<Timer>,
    /// Lines that could not be understood.
    odd: u64,
    /// Methods and updates that are not known, and how often they came.
    unknown: BTreeMap<String, u64>,
}

impl Machine {
    pub(crate) fn new(purpose: &Purpose, entry: Arc<Entry>) -> Self {
        let mut machine = Self {
            entry,
            purpose: purpose.clone(),
            stage: Stage::Handshake,
            can: Can::default(),
            version: String::new(),
            account: Account::default(),
            requests: Requests::new(Dialect::Version2, IN_FLIGHT),
            out: VecDeque::new(),
            early: Vec::new(),
            sessions: BTreeMap::new(),
            threads: BTreeMap::new(),
            questions: BTreeMap::new(),
            errands: Errands::default(),
            attempts: 0,
            timers: Timers::new(),
            odd: 0,
            unknown: BTreeMap::new(),
        };
        machine.initialize();
        machine
    }

    fn event(&mut self, event: AgentEvent) {
        self.out.push_back(Out::Event(event));
    }

    fn fault(&mut self, session: Option<SessionId>, failure: Failure) {
        self.event(AgentEvent::Fault { session, failure });
    }

    fn notice(&mut self, session: SessionId, text: String) {
        self.event(AgentEvent::Notice { session: Some(session), text });
    }

    fn ask(&mut self, method: &'static str, params: &Value, patience: u64, asked: Asked) {
        self.requests.ask(method, Params::Json(params.to_string()), patience, asked);
    }

    /// Send what may be sent, and say when to wake.
    fn pump(&mut self, now: Clock) {
        if self.stage == Stage::Closed {
            return;
        }
        self.timers.pump(now, &mut self.requests, &mut self.out);
    }

    /// A line that makes no sense. Told when its count is a power of two, so that a flood of them stays small.
    fn odd(&mut self, what: &str) {
        self.odd += 1;
        if self.odd.is_power_of_two() {
            let message = format!("{} sent {what}; it was skipped ({} such lines so far).", self.entry.name, self.odd);
            self.fault(None, words::plain(FailureClass::Protocol, message));
        }
    }

    /// Count a method or an update of a newer agent; more kinds than this are counted together.
    fn unknown(&mut self, name: &str) {
        const NAMES: usize = 64;
        let name: String = name.chars().take(100).collect();
        let full = self.unknown.len() >= NAMES && !self.unknown.contains_key(&name);
        *self.unknown.entry(if full { "others".to_owned() } else { name }).or_default() += 1;
    }

    fn line(&mut self, now: Clock, line: &[u8]) {
        let incoming = match Incoming::read(line) {
            Ok(Some(incoming)) => incoming,
            Ok(None) => return,
            Err(what) => return self.odd(what),
        };
        match (incoming.id, incoming.method.as_deref()) {
            (Some(id), Some(method)) => self.asked(id, method, incoming.params.unwrap_or(RawValue::NULL)),
            (None, Some(method)) => self.heard(now, method, incoming.params.unwrap_or(RawValue::NULL)),
            (Some(id), None) => {
                let Some(answered) = self.requests.answer(id) else { return };
                let outcome = match (incoming.result, incoming.error) {
                    (_, Some(error)) => Err(serde_json::from_str(error.get())
                        .unwrap_or_else(|_| wire::Refusal { message: error.get().to_owned(), ..Default::default() })),
                    (result, None) => Ok(result.unwrap_or(RawValue::NULL)),
                };
                self.answered(now, answered.asked, outcome);
            }
            (None, None) => self.odd("a message without a method or an id"),
        }
    }

    /// An answer, late or not: what it is about tells whether it is still of interest.
    fn answered(&mut self, now: Clock, asked: Asked, outcome: Result<&RawValue, wire::Refusal>) {
        match asked {
            Asked::Initialize => self.initialized(outcome),
            Asked::Authenticate => self.authenticated(outcome),
            Asked::SignOut => self.signed_out(outcome),
            Asked::Open { session, attempt } => self.opened(session, attempt, outcome),
            Asked::Setting { session, attempt, setting } => self.set(now, session, attempt, &setting, outcome),
            Asked::Close { session, attempt } => self.close_answered(now, session, attempt, outcome),
            Asked::Prompt { session, attempt, turn } => self.prompt_ended(session, attempt, turn, outcome),
            Asked::Steer { session, turn, message, text } => self.steered(session, turn, message, text, outcome),
            Asked::Sessions { ask } => self.listed(ask, outcome),
            Asked::Forget => {}
        }
    }

    fn carry_out(&mut self, now: Clock, command: AgentCommand) {
        match command {
            AgentCommand::OpenSession { session, thread, fork_of, history, folder, settings, goal: _ } => {
                self.open(session, From::of(thread, fork_of), history, folder, settings);
            }
            AgentCommand::ReleaseSession { session } => self.release(session),
            AgentCommand::StartTurn { session, turn, message, text, settings } => {
                self.start_turn(now, session, turn, &message, text, settings);
            }
            AgentCommand::Steer { session, turn, message, text } => self.steer(session, turn, message, &text),
            AgentCommand::Interrupt { session, turn } => self.interrupt(now, session, turn),
            AgentCommand::Answer { session, approval: _, request, answer } => self.answer(now, session, &request, &answer),
            AgentCommand::ReadIdentity => self.tell_identity(),
            AgentCommand::ListModels => self.tell_models(),
            AgentCommand::ListThreads { ask, cursor } => self.ask_sessions(ask, cursor),
            AgentCommand::ReadHistory { session, thread: _ } => self.tell_history(session),
            AgentCommand::SignIn { method } => self.sign_in(&method),
            AgentCommand::CancelSignIn => self.cancel_sign_in(),
            AgentCommand::SignOut => self.sign_out(),
            // Not declared, and refused before.
            AgentCommand::SetGoal { .. } | AgentCommand::Probe { .. } | AgentCommand::ReadRateLimits => {}
        }
    }

    /// What this agent cannot do; what only its handshake tells, once that is done.
    fn unsupported(&self, command: &AgentCommand) -> Option<Unsupported> {
        let ready = self.stage == Stage::Ready;
        let what = match command {
            AgentCommand::SetGoal { .. } => "pursue a goal",
            AgentCommand::Probe { .. } => "say whether a message arrived",
            AgentCommand::ReadRateLimits => "tell how much is used",
            AgentCommand::ReadHistory { .. } if ready && !self.can.load => "show a session's history again",
            AgentCommand::OpenSession { thread: None, fork_of: Some(_), .. } if ready && !self.can.fork => {
                "go on in a new session from where another one is"
            }
            AgentCommand::Steer { .. } if ready && !self.can.steer => "add a message to a running turn",
            AgentCommand::ListThreads { .. } if ready && !self.can.list => "list its sessions",
            AgentCommand::OpenSession { thread: Some(_), .. } if ready && !self.can.load && !self.can.resume => {
                "open a session of an earlier run again"
            }
            AgentCommand::SignOut if ready && !self.can.logout => "sign out by itself",
            AgentCommand::Steer { .. }
            | AgentCommand::ListThreads { .. }
            | AgentCommand::OpenSession { .. }
            | AgentCommand::SignOut
            | AgentCommand::ReadHistory { .. }
            | AgentCommand::ReleaseSession { .. }
            | AgentCommand::StartTurn { .. }
            | AgentCommand::Interrupt { .. }
            | AgentCommand::Answer { .. }
            | AgentCommand::ReadIdentity
            | AgentCommand::ListModels
            | AgentCommand::SignIn { .. }
            | AgentCommand::CancelSignIn => return None,
        };
        Some(Unsupported { what })
    }

    fn fire(&mut self, timer: &Timer) {
        match timer {
            Timer::CloseAgain { session, attempt } => self.close_again(*session, *attempt),
            Timer::Ignored { session, attempt, turn } => self.cancel_ignored(*session, *attempt, *turn),
        }
    }

    /// The session if it is still the one of this opening.
    fn at(&mut self, session: SessionId, attempt: u64) -> Option<&mut Session> {
        self.sessions.get_mut(&session).filter(|entry| entry.attempt == attempt)
    }
}

impl Protocol for Machine {
    fn command(&mut self, now: Clock, command: AgentCommand) -> Result<(), Unsupported> {
        if let Some(unsupported) = self.unsupported(&command) {
            return Err(unsupported);
        }
        match self.stage {
            Stage::Handshake => self.early.push(command),
            Stage::Ready => self.carry_out(now, command),
            Stage::Closed => self.refuse(command),
        }
        self.pump(now);
        Ok(())
    }

    fn receive(&mut self, now: Clock, line: &[u8]) {
        if self.stage != Stage::Closed {
            self.line(now, line);
            self.pump(now);
        }
    }

    fn receive_oversized(&mut self, now: Clock, bytes: u64) {
        self.odd(&format!("a line of {bytes} bytes, more than can be kept"));
        self.pump(now);
    }

    fn wake(&mut self, now: Clock) {
        if self.stage == Stage::Closed {
            return;
        }
        self.timers.woken();
        for asked in self.requests.expire(now) {
            self.timed_out(now, asked);
        }
        while let Some(timer) = self.timers.due(now) {
            self.fire(&timer);
        }
        self.pump(now);
    }

    fn served(&mut self, now: Clock, key: u64, outcome: Outcome) {
        if self.stage != Stage::Closed {
            self.errand_served(key, outcome);
            self.pump(now);
        }
    }

    fn closed(&mut self, _now: Clock, record: TransportRecord) {
        if self.stage != Stage::Closed {
            self.close(&record);
        }
    }

    fn poll(&mut self) -> Option<Out> {
        self.out.pop_front()
    }
}

#[cfg(test)]
mod tests;
