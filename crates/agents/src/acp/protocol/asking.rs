//! The agent's questions, and their answers: each once.

use serde_json::value::RawValue;
use turnkeep_model::{
    RequestKey, SessionId, ThreadRef,
    port::{AgentEvent, Answer, FailureClass},
};

use super::{Machine, parse};
use crate::{
    acp::{asks, errands::Kind, wire, words},
    port::{Clock, Out},
};

/// A question that waits for its answer.
#[derive(Debug)]
pub(super) struct Question {
    session: SessionId,
    options: asks::Options,
}

impl Machine {
    /// A request of the agent's own.
    pub(super) fn asked(&mut self, id: &RawValue, method: &str, params: &RawValue) {
        match Kind::of(method) {
            Some(kind) => self.errand_asked(id, (kind, method), params),
            None if method == "session/request_permission" => self.permission_asked(id, params),
            None => self.not_answerable(id, method),
        }
    }

    fn permission_asked(&mut self, id: &RawValue, params: &RawValue) {
        let Some(read) = parse::<wire::PermissionAsk>(params) else {
            return self.refuse_question(id, "the question could not be read");
        };
        let Some(session) = self.threads.get(&ThreadRef(read.session_id)).copied() else {
            return self.refuse_question(id, "this session is not open here");
        };
        let request = RequestKey::new(id.get());
        if self.questions.contains_key(&request) {
            return self.odd("a question under an id that is still in use");
        }
        if self.sessions.get(&session).is_some_and(|entry| entry.ignoring.is_some()) {
            let reply = self.requests.reply(id.get(), &asks::cancelled());
            return self.out.push_back(Out::Send(reply));
        }
        let cancelling = self.sessions.get(&session).and_then(|entry| entry.turn.as_ref()).is_none_or(|turn| turn.cancelling);
        let call = self.call_asked_about(session, read.tool_call);
        let Some((call, item)) = call.filter(|_| !cancelling) else {
            // Nobody works on anything here (any more).
            let reply = self.requests.reply(id.get(), &asks::cancelled());
            return self.out.push_back(Out::Send(reply));
        };
        let Some(entry) = self.sessions.get(&session) else { return };
        let turn = entry.turn.as_ref().map(|turn| turn.name.clone());
        let (ask, options) = asks::ask(&self.entry, &call, item, &entry.folder, read.options);
        self.questions.insert(request.clone(), Question { session, options });
        self.event(AgentEvent::ApprovalRequested { session, provider_turn: turn, request, ask });
    }

    /// A request that nobody here could answer.
    fn not_answerable(&mut self, id: &RawValue, method: &str) {
        self.unknown(method);
        let name: String = method.chars().take(100).collect();
        let refusal = self.requests.refuse(id.get(), words::NO_METHOD, &format!("Method not found: {name}"));
        self.out.push_back(Out::Send(refusal));
        let text = format!("{} asked for something that Turnkeep does not offer ({name}); it was refused.", self.entry.name);
        self.event(AgentEvent::Notice { session: None, text });
    }

    fn refuse_question(&mut self, id: &RawValue, why: &str) {
        const INVALID: i64 = -32602;
        let refusal = self.requests.refuse(id.get(), INVALID, why);
        self.out.push_back(Out::Send(refusal));
        let text = format!("{} asked a question that was refused: {why}.", self.entry.name);
        self.event(AgentEvent::Notice { session: None, text });
    }

    pub(super) fn answer(&mut self, now: Clock, session: SessionId, request: &RequestKey, answer: &Answer) {
        // Withdrawn or answered in the meantime: that was told, and an answer would reach nothing.
        let Some(question) = self.questions.get(request).filter(|known| known.session == session) else { return };
        match question.options.answer(answer) {
            Ok(result) => {
                let reply = self.requests.reply(request.as_str(), &result);
                self.out.push_back(Out::Send(reply));
                self.withdraw(request);
                if *answer == Answer::Choice(turnkeep_model::port::Choice::DenyAndStop) {
                    self.stop_turn(now, session);
                }
            }
            Err(why) => {
                let message = format!("The answer was not sent to {}: {why}. The question still waits.", self.entry.name);
                self.fault(Some(session), words::plain(FailureClass::Other, message));
            }
        }
    }

    /// The person wants the turn ended with this answer.
    fn stop_turn(&mut self, now: Clock, session: SessionId) {
        let running = self.sessions.get(&session).and_then(|entry| entry.turn.as_ref()).map(|turn| turn.ours);
        if let Some(turn) = running {
            self.interrupt(now, session, turn);
        }
    }

    /// Nobody waits for the answer to this any more.
    pub(super) fn withdraw(&mut self, request: &RequestKey) {
        if let Some(question) = self.questions.remove(request) {
            self.event(AgentEvent::ApprovalResolved { session: question.session, request: request.clone() });
        }
    }

    /// Nobody waits for the answers to this session's questions any more.
    pub(super) fn withdraw_questions(&mut self, session: SessionId) {
        for request in self.questions_of(session) {
            self.withdraw(&request);
        }
    }

    /// Answer every question of this session as one that came to nothing.
    pub(super) fn cancel_questions(&mut self, session: SessionId) {
        for request in self.questions_of(session) {
            let reply = self.requests.reply(request.as_str(), &asks::cancelled());
            self.out.push_back(Out::Send(reply));
            self.withdraw(&request);
        }
    }

    fn questions_of(&self, session: SessionId) -> Vec<RequestKey> {
        self.questions.iter().filter(|(_, question)| question.session == session).map(|(key, _)| key.clone()).collect()
    }
}
