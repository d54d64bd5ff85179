//! The machine that speaks with one `codex app-server`: lines and commands in, lines and events out.
//!
//! It ends a turn only by Codex's own word or by the close of the transport, and answers no question by itself but
//! those that no person could answer.

mod account;
mod asking;
mod closing;
mod heard;
mod lists;
mod opening;
mod session;
mod turns;

use std::collections::{BTreeMap, VecDeque};

use serde_json::value::RawValue;
use turnkeep_model::{
    MessageId, ProviderTurn, RequestKey, SessionId, ThreadRef, TurnId,
    port::{AgentCommand, AgentEvent, Failure, FailureClass, Item, Model, SignInMethod, TransportRecord, Unsupported},
};

use self::{account::Account, asking::Question, session::Session};
use super::words;
use crate::{
    jsonrpc::{Dialect, IN_FLIGHT, Incoming, Params, Requests, RpcError, parse},
    port::{Clock, Out, Protocol, Purpose},
    timers::Timers,
};

/// Milliseconds that Codex has for an answer.
mod patience {
    /// The launch plan's limit counts, and a machine is made before it knows the time.
    pub(super) const HANDSHAKE: u64 = u64::MAX;
    /// May ask the network.
    pub(super) const ACCOUNT: u64 = 30_000;
    pub(super) const OPEN: u64 = 60_000;
    pub(super) const TURN: u64 = 30_000;
    pub(super) const QUICK: u64 = 10_000;
    pub(super) const LIST: u64 = 60_000;
    /// May wait for the keychain.
    pub(super) const SIGN_OUT: u64 = 60_000;
}

/// What a request was for.
#[derive(Clone, Debug)]
enum Asked {
    Initialize,
    /// The key of a serving process.
    Key,
    Config,
    Account(AccountFor),
    SignIn(SignInMethod),
    CancelSignIn,
    SignOut,
    Open {
        session: SessionId,
        attempt: u64,
    },
    /// A thread that was opened too late for anyone to want it.
    Forget,
    Unsubscribe {
        session: SessionId,
        attempt: u64,
    },
    /// The end of what still runs in a thread.
    Clean {
        session: SessionId,
        attempt: u64,
    },
    TurnStart {
        session: SessionId,
        attempt: u64,
        turn: TurnId,
    },
    Steer {
        session: SessionId,
        turn: TurnId,
        message: MessageId,
    },
    Interrupt {
        session: SessionId,
        attempt: u64,
    },
    Goal {
        session: SessionId,
    },
    /// Its answer is of no interest.
    Hush,
    Probe(Probe),
    Models(Vec<Model>),
    RateLimits,
    Threads(u64),
    History(History),
}

/// Why the account was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccountFor {
    Ready,
    Command,
    SignIn,
}

#[derive(Clone, Debug)]
struct Probe {
    session: SessionId,
    thread: ThreadRef,
    turn: TurnId,
    message: MessageId,
    pages: u32,
}

#[derive(Clone, Debug)]
struct History {
    session: SessionId,
    thread: ThreadRef,
    /// Threads of older versions can only be read turn by turn.
    by_turns: bool,
    /// Newest first.
    items: Vec<(ProviderTurn, Item)>,
}

/// What is done at a time.
#[derive(Clone, Debug)]
enum Timer {
    /// Another process may let go of the thread soon.
    OpenAgain { session: SessionId, attempt: u64 },
    /// Codex said that it would let go of the thread.
    ReleaseLate { session: SessionId, attempt: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Handshake,
    Ready,
    Closed,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Machine {
    purpose: Purpose,
    stage: Stage,
    requests: Requests<Asked>,
    out: VecDeque<Out>,
    version: String,
    account: Account,
    /// Commands that came before the handshake was done.
    early: Vec<AgentCommand>,
    sessions: BTreeMap<SessionId, Session>,
    threads: BTreeMap<ThreadRef, SessionId>,
    /// Threads that an agent started by itself, and the session that they work for.
    children: BTreeMap<ThreadRef, SessionId>,
    questions: BTreeMap<RequestKey, Question>,
    attempts: u64,
    timers: Timers<Timer>,
    /// Lines that could not be understood.
    odd: u64,
    /// Methods that are not known, and how often they came.
    unknown: BTreeMap<String, u64>,
}

impl Machine {
    pub(crate) fn new(purpose: &Purpose) -> Self {
        let mut machine = Self {
            purpose: purpose.clone(),
            stage: Stage::Handshake,
            requests: Requests::new(Dialect::Bare, IN_FLIGHT),
            out: VecDeque::new(),
            version: String::new(),
            account: Account::default(),
            early: Vec::new(),
            sessions: BTreeMap::new(),
            threads: BTreeMap::new(),
            children: BTreeMap::new(),
            questions: BTreeMap::new(),
            attempts: 0,
            timers: Timers::new(),
            odd: 0,
            unknown: BTreeMap::new(),
        };
        machine.initialize();
        machine
    }

    /// Whether the server is somebody else's, with clients and threads of its own.
    fn attached(&self) -> bool {
        self.purpose == Purpose::Attach
    }

    fn event(&mut self, event: AgentEvent) {
        self.out.push_back(Out::Event(event));
    }

    fn fault(&mut self, session: Option<SessionId>, failure: Failure) {
        self.event(AgentEvent::Fault { session, failure });
    }

    fn ask(&mut self, method: &'static str, params: &serde_json::Value, patience: u64, asked: Asked) {
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
            let message = format!("Codex sent {what}; it was skipped ({} such lines so far).", self.odd);
            self.fault(None, words::plain(FailureClass::Protocol, message));
        }
    }

    fn line(&mut self, now: Clock, line: &[u8]) {
        let incoming = match Incoming::read(line) {
            Ok(Some(incoming)) => incoming,
            Ok(None) => return,
            Err(what) => return self.odd(what),
        };
        match (incoming.id, incoming.method.as_deref()) {
            (id, Some(method)) => {
                let params = incoming.params.unwrap_or(RawValue::NULL);
                if self.held_back(now, params, line) {
                    return;
                }
                match id {
                    Some(id) => self.asked(id, method, params),
                    None => self.heard(now, method, params, line),
                }
            }
            (Some(id), None) => {
                let Some(answered) = self.requests.answer(id) else { return };
                let outcome = match (incoming.result, incoming.error) {
                    (_, Some(error)) => Err(serde_json::from_str(error.get())
                        .unwrap_or_else(|_| RpcError { code: 0, message: error.get().to_owned() })),
                    (result, None) => Ok(result.unwrap_or(RawValue::NULL)),
                };
                self.answered(now, answered.asked, answered.late, outcome);
            }
            (None, None) => self.odd("a message without a method or an id"),
        }
    }

    /// Whether the line waits until it is known whose turn it is about.
    fn held_back(&mut self, now: Clock, params: &RawValue, line: &[u8]) -> bool {
        if !self.sessions.values().any(Session::holds) {
            return false;
        }
        let Some(session) = self.session_of_params(params) else { return false };
        let Some(entry) = self.sessions.get_mut(&session).filter(|entry| entry.holds()) else { return false };
        if !entry.keep(line) {
            if let Some(starting) = &mut entry.starting {
                starting.hold = false;
            }
            self.unhold(now, session);
        }
        true
    }

    /// Act on the lines that were held back for this session.
    fn unhold(&mut self, now: Clock, session: SessionId) {
        let lines = self.sessions.get_mut(&session).map(Session::unhold).unwrap_or_default();
        for line in lines {
            self.line(now, &line);
        }
    }

    fn session_of_params(&self, params: &RawValue) -> Option<SessionId> {
        let only: super::wire::ThreadOnly = serde_json::from_str(params.get()).ok()?;
        self.threads.get(&ThreadRef(only.thread_id)).copied()
    }

    fn answered(&mut self, now: Clock, asked: Asked, late: bool, outcome: Result<&RawValue, RpcError>) {
        match asked {
            Asked::Initialize => self.initialized(outcome),
            Asked::Key => self.key_given(outcome),
            Asked::Config => self.config_read(outcome),
            Asked::Account(why) => self.account_read(why, late, outcome),
            Asked::SignIn(method) => self.sign_in_started(method, late, outcome),
            Asked::SignOut => self.signed_out(late, outcome),
            Asked::Open { session, attempt } => self.opened(now, session, attempt, outcome),
            Asked::Unsubscribe { session, attempt } => self.unsubscribed(now, session, attempt, outcome),
            Asked::Clean { session, attempt } if !late => self.cleaned(session, attempt),
            Asked::TurnStart { session, attempt, turn } => self.turn_answered(now, session, attempt, turn, outcome),
            Asked::Steer { session, turn, message } => self.steered(session, turn, message, outcome),
            Asked::Interrupt { session, attempt } if !late => self.interrupted(session, attempt),
            Asked::Goal { session } if !late => self.goal_answered(session, outcome),
            Asked::Probe(probe) if !late => self.probed(probe, outcome),
            Asked::Models(models) if !late => self.models(models, outcome),
            Asked::RateLimits if !late => self.rate_limits(outcome),
            Asked::Threads(ask) if !late => self.listed(ask, outcome),
            Asked::History(history) if !late => self.history(history, outcome),
            Asked::CancelSignIn
            | Asked::Forget
            | Asked::Hush
            | Asked::Goal { .. }
            | Asked::Clean { .. }
            | Asked::Interrupt { .. }
            | Asked::Probe(_)
            | Asked::Models(_)
            | Asked::RateLimits
            | Asked::Threads(_)
            | Asked::History(_) => {}
        }
    }

    fn carry_out(&mut self, command: AgentCommand) {
        match command {
            AgentCommand::OpenSession { session, thread, fork_of, history: _, folder, settings, goal } => {
                self.open(session, thread, fork_of, folder, settings, goal);
            }
            AgentCommand::ReleaseSession { session } => self.release(session),
            AgentCommand::StartTurn { session, turn, message, text, settings } => {
                self.start_turn(session, turn, message, text, settings);
            }
            AgentCommand::Steer { session, turn, message, text } => self.steer(session, turn, message, text),
            AgentCommand::Interrupt { session, turn } => self.interrupt(session, turn),
            AgentCommand::Answer { session, approval: _, request, answer } => self.answer(session, &request, &answer),
            AgentCommand::SetGoal { session, goal } => self.set_goal(session, goal),
            AgentCommand::Probe { session, thread, turn, message } => {
                self.probe(Probe { session, thread, turn, message, pages: 0 }, None);
            }
            AgentCommand::ReadIdentity => self.read_account(AccountFor::Command),
            AgentCommand::ListModels => self.ask_models(Vec::new(), None),
            AgentCommand::ReadRateLimits => self.ask_rate_limits(),
            AgentCommand::ListThreads { ask, cursor } => self.ask_threads(ask, cursor),
            AgentCommand::ReadHistory { session, thread } => {
                self.ask_history(History { session, thread, by_turns: false, items: Vec::new() }, None);
            }
            AgentCommand::SignIn { method } => self.sign_in(method),
            AgentCommand::CancelSignIn => self.cancel_sign_in(),
            AgentCommand::SignOut => self.sign_out(),
        }
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::OpenAgain { session, attempt } => self.open_again(session, attempt),
            Timer::ReleaseLate { session, attempt } => self.release_late(session, attempt),
        }
    }

    /// The session of a thread, if it is one of ours.
    fn session_of(&self, thread: &str) -> Option<SessionId> {
        self.threads.get(&ThreadRef(thread.to_owned())).copied()
    }

    /// The session if it is still the one of this opening.
    fn at(&mut self, session: SessionId, attempt: u64) -> Option<&mut Session> {
        self.sessions.get_mut(&session).filter(|entry| entry.attempt == attempt)
    }
}

impl Protocol for Machine {
    fn command(&mut self, now: Clock, command: AgentCommand) -> Result<(), Unsupported> {
        match self.stage {
            Stage::Handshake => self.early.push(command),
            Stage::Ready => self.carry_out(command),
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
            self.fire(timer);
        }
        self.pump(now);
    }

    fn closed(&mut self, now: Clock, record: TransportRecord) {
        if self.stage != Stage::Closed {
            self.close(now, record);
        }
    }

    fn poll(&mut self) -> Option<Out> {
        self.out.pop_front()
    }
}

/// The failure for an answer that has another shape than the protocol says. `doing`: what was asked.
fn misshapen(doing: &str) -> Failure {
    words::plain(
        FailureClass::Protocol,
        format!("Codex's answer to the request to {doing} could not be read; this version of Codex may be too new."),
    )
}

#[cfg(test)]
mod tests;
