//! Opening a session, telling it how to behave, and letting go of it.

use serde_json::{json, value::RawValue};
use turnkeep_model::{
    SessionId, ThreadRef,
    port::{AgentEvent, Failure, FailureClass, SessionSettings},
};

use super::{
    Asked, Machine, Timer, parse,
    past::Past,
    patience,
    session::{Session, Stage},
};
use crate::{
    acp::{
        settings::{Catalogue, Setting},
        wire, words,
    },
    port::Clock,
};

/// How often the agent is asked to close a session, and milliseconds between.
const CLOSES: u32 = 3;
const CLOSE_AGAIN: u64 = 500;

/// What a session is opened from.
pub(super) enum From {
    Nothing,
    /// The thread goes on.
    Thread(ThreadRef),
    /// A new one goes on from where this one is.
    Fork(ThreadRef),
}

impl From {
    pub(super) fn of(thread: Option<ThreadRef>, fork_of: Option<ThreadRef>) -> Self {
        thread.map(Self::Thread).or(fork_of.map(Self::Fork)).unwrap_or(Self::Nothing)
    }
}

impl Machine {
    pub(super) fn open(&mut self, session: SessionId, from: From, history: bool, folder: String, settings: SessionSettings) {
        if let Some(known) = self.sessions.get(&session) {
            // Asked for again while it is wanted: one answer is enough, and an open one is told again.
            if known.stage == Stage::Open {
                self.tell_opened(session);
            }
            return;
        }
        if let From::Thread(thread) = &from
            && let Some(other) = self.threads.get(thread)
        {
            let message = format!("It is already open in this {} process, for session {other}.", self.entry.name);
            let failure = words::plain(FailureClass::ThreadBusy, message);
            return self.event(AgentEvent::SessionOpenFailed { session, failure });
        }
        self.attempts += 1;
        let attempt = self.attempts;
        let mut params = json!({"cwd": folder, "mcpServers": []});
        let (method, named) = match &from {
            From::Nothing => ("session/new", None),
            From::Fork(thread) => ("session/fork", Some(thread)),
            // Loading tells the whole history again, which mostly is known here.
            From::Thread(thread) if self.can.resume && !(history && self.can.load) => ("session/resume", Some(thread)),
            From::Thread(thread) => ("session/load", Some(thread)),
        };
        if let (Some(thread), Some(members)) = (named, params.as_object_mut()) {
            members.insert("sessionId".to_owned(), thread.as_str().into());
        }
        let past = (history && method == "session/load").then(Past::default);
        let thread = if let From::Thread(thread) = from { Some(thread) } else { None };
        if let Some(thread) = &thread {
            self.threads.insert(thread.clone(), session);
        }
        let entry = Session::new(attempt, thread, folder, settings);
        self.sessions.insert(session, Session { past, ..entry });
        self.ask(method, &params, patience::OPEN, Asked::Open { session, attempt });
    }

    pub(super) fn opened(&mut self, session: SessionId, attempt: u64, outcome: Result<&RawValue, wire::Refusal>) {
        let wanted = self.at(session, attempt).filter(|entry| matches!(entry.stage, Stage::Opening | Stage::Releasing { .. }));
        let Some(entry) = wanted else {
            // Given up in the meantime: nobody wants what the agent opened.
            let late = outcome.ok().and_then(parse::<wire::SessionOnly>).map(|opened| opened.session_id);
            return self.forget(late.unwrap_or_default());
        };
        let opened = match outcome {
            Ok(raw) => parse::<wire::Opened>(raw).unwrap_or_default(),
            Err(error) => {
                let failure = words::of_refusal(&self.entry, &error, "open the session");
                return self.open_failed(session, failure);
            }
        };
        // An answer to a resumption may leave out what was asked for by its id.
        let thread = match (opened.session_id.clone().filter(|id| !id.is_empty()), entry.thread.clone()) {
            (Some(id), _) => ThreadRef(id),
            (None, Some(asked)) => asked,
            (None, None) => {
                let message = format!(
                    "{} opened a session without saying its id, so it could not be found again. It is not used. Report it to \
                     the agent's makers.",
                    self.entry.name
                );
                return self.open_failed(session, words::plain(FailureClass::Protocol, message));
            }
        };
        entry.catalogue = Catalogue::of(&opened);
        let previous = entry.thread.replace(thread.clone());
        let releasing = matches!(entry.stage, Stage::Releasing { .. });
        if let Some(previous) = previous.filter(|previous| *previous != thread) {
            self.threads.remove(&previous);
        }
        if self.threads.get(&thread).is_some_and(|other| *other != session) {
            // It is not closed at the agent: that would close the other one.
            let message = format!(
                "{} gave this session the id of another one that is open, so it is not used. The other one goes on. Try again, \
                 or report it to the agent's makers.",
                self.entry.name
            );
            return self.open_failed(session, words::plain(FailureClass::Protocol, message));
        }
        self.threads.insert(thread, session);
        if releasing {
            return self.close_now(session);
        }
        self.configure(session);
    }

    /// Tell it how to behave, before anybody can use it.
    fn configure(&mut self, session: SessionId) {
        let rules = std::sync::Arc::clone(&self.entry);
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        entry.stage = Stage::Configuring;
        let (settings, impossible) = entry.catalogue.differences(&rules, &entry.wanted);
        entry.settings.extend(settings);
        for text in impossible {
            self.notice(session, text);
        }
        self.next_setting(session);
    }

    /// Tell the next choice; when all are told, what waited for them goes on.
    pub(super) fn next_setting(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let Some(thread) = entry.thread.clone() else { return };
        while let Some(setting) = entry.settings.pop_front() {
            if let Some((method, params)) = entry.catalogue.request(thread.as_str(), &setting) {
                let asked = Asked::Setting { session, attempt: entry.attempt, setting };
                return self.ask(method, &params, patience::SETTING, asked);
            }
        }
        match entry.stage {
            Stage::Configuring => {
                entry.stage = Stage::Open;
                self.tell_opened(session);
                self.tell_models();
            }
            Stage::Open => self.send_prompt(session),
            Stage::Opening | Stage::Releasing { .. } => {}
        }
    }

    /// The answer to a choice.
    pub(super) fn set(
        &mut self,
        _now: Clock,
        session: SessionId,
        attempt: u64,
        setting: &Setting,
        outcome: Result<&RawValue, wire::Refusal>,
    ) {
        let Some(entry) = self.at(session, attempt) else { return };
        match outcome {
            Ok(raw) => {
                entry.catalogue.chosen(setting);
                if let Some(options) = parse::<wire::ConfigSet>(raw).and_then(|set| set.config_options) {
                    entry.catalogue.options(&options);
                }
            }
            Err(error) => {
                let failure = words::of_refusal(&self.entry, &error, setting.what.words());
                return self.not_set(session, failure);
            }
        }
        self.next_setting(session);
    }

    /// What cannot be told to behave as it must is not used.
    pub(super) fn not_set(&mut self, session: SessionId, failure: Failure) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        entry.settings.clear();
        match entry.stage {
            Stage::Configuring => {
                let thread = entry.thread.clone();
                self.open_failed(session, failure);
                self.forget(thread.map(|thread| thread.0).unwrap_or_default());
            }
            Stage::Open => match entry.starting.take() {
                Some(starting) => {
                    self.event(AgentEvent::TurnRejected { session, turn: starting.turn, failure });
                }
                None => self.notice(session, failure.message),
            },
            Stage::Opening | Stage::Releasing { .. } => {}
        }
    }

    fn tell_opened(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get(&session) else { return };
        let Some(thread) = entry.thread.clone() else { return };
        let settings = entry.catalogue.settings(&self.entry);
        let commands = entry.commands.clone();
        self.event(AgentEvent::SessionOpened { session, thread, settings });
        if !commands.is_empty() {
            self.event(AgentEvent::Commands { session, commands });
        }
    }

    /// The models of the last session that told of any: an agent has no other list of them.
    pub(super) fn tell_models(&mut self) {
        let models = self.sessions.values().map(|entry| entry.catalogue.models()).rfind(|models| !models.is_empty());
        if let Some(models) = models {
            self.event(AgentEvent::Models { models });
        }
    }

    pub(super) fn open_failed(&mut self, session: SessionId, failure: Failure) {
        let Some(entry) = self.remove(session) else { return };
        self.event(match entry.stage {
            Stage::Releasing { .. } => AgentEvent::SessionReleased { session },
            Stage::Opening | Stage::Configuring | Stage::Open => AgentEvent::SessionOpenFailed { session, failure },
        });
    }

    /// Forget everything of a session.
    fn remove(&mut self, session: SessionId) -> Option<Session> {
        self.withdraw_questions(session);
        self.release_terminals(session);
        let entry = self.sessions.remove(&session)?;
        self.threads.retain(|_, of| *of != session);
        Some(entry)
    }

    /// Nobody wants this session of the agent's any more, unless it is being opened anew.
    fn forget(&mut self, id: String) {
        if !id.is_empty() && self.can.close && !self.threads.contains_key(&ThreadRef(id.clone())) {
            self.ask("session/close", &json!({"sessionId": id}), patience::CLOSE, Asked::Forget);
        }
    }

    // ---- letting go

    pub(super) fn release(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get_mut(&session) else {
            return self.event(AgentEvent::SessionReleased { session });
        };
        match entry.stage {
            Stage::Releasing { .. } => {}
            Stage::Opening => entry.stage = Stage::Releasing { asked: 0 },
            Stage::Configuring | Stage::Open => {
                entry.stage = Stage::Releasing { asked: 0 };
                self.close_now(session);
            }
        }
    }

    /// Go on with a release, unless a turn still runs: its end would not be heard any more. Never twice at a time.
    pub(super) fn close_now(&mut self, session: SessionId) {
        let close = self.can.close;
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let works = entry.busy() || entry.ignoring.is_some();
        let (Stage::Releasing { asked: 0 }, false, Some(thread)) = (entry.stage, works, entry.thread.clone()) else {
            return;
        };
        self.release_terminals(session);
        if !close {
            // It works on nothing, and nothing will be asked of it: that is all that this agent lets one do.
            return self.released(session);
        }
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        entry.stage = Stage::Releasing { asked: 1 };
        let asked = Asked::Close { session, attempt: entry.attempt };
        self.ask("session/close", &json!({"sessionId": thread.as_str()}), patience::CLOSE, asked);
    }

    pub(super) fn close_answered(
        &mut self,
        now: Clock,
        session: SessionId,
        attempt: u64,
        outcome: Result<&RawValue, wire::Refusal>,
    ) {
        let Some(entry) = self.at(session, attempt) else { return };
        let Stage::Releasing { asked } = entry.stage else { return };
        let failure = match outcome {
            Ok(_) => return self.released(session),
            Err(error) => words::of_refusal(&self.entry, &error, "close the session"),
        };
        if failure.class == FailureClass::ThreadNotFound {
            self.released(session);
        } else if asked < CLOSES {
            self.timers.set(now + CLOSE_AGAIN, Timer::CloseAgain { session, attempt });
        } else {
            // The end of its process is the proof then.
            self.fault(Some(session), failure);
        }
    }

    pub(super) fn close_again(&mut self, session: SessionId, attempt: u64) {
        let Some(entry) = self.at(session, attempt) else { return };
        let (Stage::Releasing { asked }, Some(thread)) = (entry.stage, entry.thread.clone()) else { return };
        entry.stage = Stage::Releasing { asked: asked + 1 };
        self.ask("session/close", &json!({"sessionId": thread.as_str()}), patience::CLOSE, Asked::Close { session, attempt });
    }

    fn released(&mut self, session: SessionId) {
        if self.remove(session).is_some() {
            self.event(AgentEvent::SessionReleased { session });
        }
    }
}
