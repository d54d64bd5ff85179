//! Files and commands that the agent asks for: for which session, whether that may be now, and the answer.
//!
//! Whether a person agrees was asked before, by the agent's own question; nothing is asked here a second time.

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};
use turnkeep_model::{
    SessionId, ThreadRef,
    port::{AgentEvent, Sandbox},
};

use super::{Machine, session::Stage};
use crate::{
    acp::errands::{Given, INTERNAL, INVALID_PARAMS, INVALID_REQUEST, Kind, NOT_FOUND, answer},
    errand::{Done, Errand, NotDoneWhy, Outcome, Screen, Task, limits},
    port::Out,
};

/// What is under way, and the terminals that were not released.
#[derive(Debug, Default)]
pub(super) struct Errands {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    terminals: BTreeMap<String, SessionId>,
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Waiting {
    /// The text of the agent's id of it, as it came.
    request: String,
    kind: Kind,
    session: SessionId,
    terminal: Option<String>,
    /// Bytes of a text that waits to be written.
    bytes: usize,
}

/// A code and what is said to the agent.
type Refusal = (i64, String);

impl Machine {
    pub(super) fn errand_asked(&mut self, id: &RawValue, (kind, method): (Kind, &str), params: &RawValue) {
        if self.errands.waiting.values().any(|waiting| waiting.request == id.get()) {
            return self.odd("a request under an id that is still in use");
        }
        if let Err((code, why)) = self.take_errand(id, kind, params) {
            let refusal = self.requests.refuse(id.get(), code, &format!("{method}: {why}"));
            self.out.push_back(Out::Send(refusal));
            let text = format!("{} asked for something that was refused ({method}): {why}.", self.entry.name);
            self.event(AgentEvent::Notice { session: None, text });
        }
    }

    fn take_errand(&mut self, id: &RawValue, kind: Kind, params: &RawValue) -> Result<(), Refusal> {
        let invalid = |why: String| (INVALID_PARAMS, why);
        let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
        let given = Given::of(&params).map_err(invalid)?;
        let thread = given.text("sessionId").map_err(invalid)?;
        let session = self.threads.get(&ThreadRef(thread.to_owned())).copied();
        let session = session.ok_or_else(|| invalid(format!("sessionId {thread:?} names no session that is open here")))?;
        self.may(session, kind)?;
        self.errands.next += 1;
        let key = self.errands.next;
        let fresh = format!("terminal-{key}");
        let folder = self.sessions.get(&session).map(|entry| entry.folder.clone()).unwrap_or_default();
        let task = given.task(kind, &folder, &fresh).map_err(invalid)?;
        let (terminal, bytes) = match &task {
            Task::Read { .. } => (None, 0),
            Task::Write { text, .. } => (None, text.len()),
            Task::Start { terminal, .. } => (Some(terminal.clone()), 0),
            Task::Look { terminal } | Task::Await { terminal } | Task::Kill { terminal } | Task::Release { terminal } => {
                if self.errands.terminals.get(terminal) != Some(&session) {
                    return Err(invalid(format!("terminalId {terminal:?} names no terminal of this session")));
                }
                (Some(terminal.clone()), 0)
            }
        };
        self.errands.fits(session, kind, bytes)?;
        match (kind, &terminal) {
            (Kind::Start, Some(terminal)) => drop(self.errands.terminals.insert(terminal.clone(), session)),
            (Kind::Release, Some(terminal)) => drop(self.errands.terminals.remove(terminal)),
            _ => {}
        }
        self.errands.waiting.insert(key, Waiting { request: id.get().to_owned(), kind, session, terminal, bytes });
        self.out.push_back(Out::Serve(Errand { key, task }));
        Ok(())
    }

    /// Whether this may be done for the session now.
    fn may(&self, session: SessionId, kind: Kind) -> Result<(), Refusal> {
        let refused = |why: &str| Err((INVALID_REQUEST, why.to_owned()));
        let Some(entry) = self.sessions.get(&session) else { return refused("this session is not open here") };
        let open = matches!(entry.stage, Stage::Configuring | Stage::Open) || entry.busy();
        if !open && matches!(kind, Kind::Read | Kind::Write | Kind::Start) {
            return refused("this session is being opened or closed");
        }
        if !kind.acts() {
            return Ok(());
        }
        let sandbox = entry.wanted.sandbox.or(entry.catalogue.settings(&self.entry).sandbox);
        if sandbox == Some(Sandbox::ReadOnly) {
            return refused("this session may only read: it is set to change nothing");
        }
        match &entry.turn {
            None => refused("no message is being worked on in this session"),
            Some(turn) if turn.cancelling => refused("the person has stopped this turn"),
            Some(_) => Ok(()),
        }
    }

    pub(super) fn errand_served(&mut self, key: u64, outcome: Outcome) {
        // What was begun here by itself needs no answer.
        let Some(waiting) = self.errands.waiting.remove(&key) else { return };
        let Waiting { request, kind, session, terminal, .. } = waiting;
        let reply = match &outcome {
            Ok(done) => self.requests.reply(&request, &answer(kind, terminal.as_deref(), done)),
            Err(not_done) => {
                let code = match not_done.why {
                    NotDoneWhy::Refused => INVALID_PARAMS,
                    NotDoneWhy::NotFound => NOT_FOUND,
                    NotDoneWhy::Failed => INTERNAL,
                };
                self.requests.refuse(&request, code, &not_done.message)
            }
        };
        self.out.push_back(Out::Send(reply));
        match (outcome, terminal) {
            (Ok(Done::Screen(screen)), Some(terminal)) => self.screen_seen(session, &terminal, &screen),
            (Err(_), Some(terminal)) if kind == Kind::Start => drop(self.errands.terminals.remove(&terminal)),
            _ => {}
        }
    }

    /// What a terminal shows belongs to the calls that it is part of.
    fn screen_seen(&mut self, session: SessionId, terminal: &str, screen: &Screen) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        for turn in [entry.turn.as_mut(), entry.last.as_mut()].into_iter().flatten() {
            let ids = turn.calls.iter().filter(|(_, call)| call.shows_terminal(terminal)).map(|(id, _)| id.clone());
            for id in ids.collect::<Vec<_>>() {
                let events = super::heard::changed(turn, session, &id, |call| call.screen(screen));
                self.out.extend(events.into_iter().map(Out::Event));
            }
        }
    }

    /// The person has stopped what the session works on: its commands end, and can still be looked at.
    pub(super) fn kill_terminals(&mut self, session: SessionId) {
        for terminal in self.errands.of(session) {
            self.order(Task::Kill { terminal });
        }
    }

    /// Nobody will ask about the terminals of this session any more.
    pub(super) fn release_terminals(&mut self, session: SessionId) {
        for terminal in self.errands.of(session) {
            self.errands.terminals.remove(&terminal);
            self.order(Task::Release { terminal });
        }
    }

    fn order(&mut self, task: Task) {
        self.errands.next += 1;
        self.out.push_back(Out::Serve(Errand { key: self.errands.next, task }));
    }
}

impl Errands {
    fn of(&self, session: SessionId) -> Vec<String> {
        self.terminals.iter().filter(|(_, of)| **of == session).map(|(terminal, _)| terminal.clone()).collect()
    }

    /// Whether there is room for one more.
    fn fits(&self, session: SessionId, kind: Kind, bytes: usize) -> Result<(), Refusal> {
        let refused = |why: String| Err((INVALID_REQUEST, why));
        if self.waiting.len() >= limits::UNANSWERED {
            return refused(format!("{} requests of this kind are unanswered already", limits::UNANSWERED));
        }
        let unwritten: usize = self.waiting.values().map(|waiting| waiting.bytes).sum();
        if unwritten + bytes > limits::UNWRITTEN {
            return refused(format!("{unwritten} bytes wait to be written already"));
        }
        if kind == Kind::Start && self.of(session).len() >= limits::TERMINALS {
            let most = limits::TERMINALS;
            return refused(format!("this session has {most} terminals already; release one that is not needed any more"));
        }
        Ok(())
    }
}
