//! Codex's questions, and their answers: each once.

use serde_json::value::RawValue;
use turnkeep_model::{
    ProviderTurn, RequestKey, SessionId, ThreadRef,
    port::{AgentEvent, Answer, AskBody, FailureClass, FileChange, ItemBody, Sandbox},
};

use super::{Machine, session::Session};
use crate::{
    codex::{asks, wire, words},
    port::Out,
};

/// A question that waits for its answer.
#[derive(Debug)]
pub(super) struct Question {
    session: SessionId,
    turn: Option<ProviderTurn>,
    wanted: asks::Wanted,
    /// The answer was sent; Codex has not confirmed it.
    answered: bool,
}

/// JSON-RPC's code for a request that is not known.
const NOT_KNOWN: i64 = -32601;

impl Machine {
    /// A request of Codex's own.
    pub(super) fn asked(&mut self, id: &RawValue, method: &str, params: &RawValue) {
        let Some(mut asked) = asks::read(method, params) else {
            return self.not_answerable(id, method);
        };
        let thread = ThreadRef(std::mem::take(&mut asked.thread));
        let ours = self.threads.get(&thread).copied();
        let Some(session) = ours.or_else(|| self.children.get(&thread).copied()) else {
            if self.attached() {
                // The first answer counts, and it is another client's to give.
                return;
            }
            let message = "this thread is not open here";
            let refusal = self.requests.refuse(id.get(), NOT_KNOWN, message);
            self.out.push_back(Out::Send(refusal));
            let text = format!("Codex asked a question about a thread that is not open here ({method}); it was refused.");
            return self.event(AgentEvent::Notice { session: None, text });
        };
        // The turn of a child thread is not a turn of the session.
        let turn = asked.turn.filter(|_| ours.is_some());
        if let Some(turn) = &turn {
            self.learn(session, turn);
        }
        let mut ask = asked.ask;
        if let Some(entry) = self.sessions.get(&session) {
            match &mut ask.body {
                AskBody::Command { may_run_unsandboxed, .. } => {
                    *may_run_unsandboxed = entry.settings.sandbox != Some(Sandbox::Full);
                }
                AskBody::FileChange { changes, .. } => {
                    *changes = changes_of(entry, turn.as_ref(), ask.item.as_ref());
                }
                AskBody::Permissions { .. } | AskBody::Questions { .. } | AskBody::Form { .. } => {}
            }
        }
        let request = RequestKey::new(id.get());
        let question = Question { session, turn: turn.clone(), wanted: asked.wanted, answered: false };
        if self.questions.insert(request.clone(), question).is_none() {
            self.event(AgentEvent::ApprovalRequested { session, provider_turn: turn, request, ask });
        }
    }

    /// A request that no person could answer here.
    fn not_answerable(&mut self, id: &RawValue, method: &str) {
        self.unknown(method);
        if self.attached() {
            return;
        }
        let refusal = self.requests.refuse(id.get(), NOT_KNOWN, "not supported by this client");
        self.out.push_back(Out::Send(refusal));
        let name: String = method.chars().take(100).collect();
        let text = format!("Codex asked for something that Turnkeep does not offer ({name}); it was refused.");
        self.event(AgentEvent::Notice { session: None, text });
    }

    pub(super) fn answer(&mut self, session: SessionId, request: &RequestKey, answer: &Answer) {
        let question = self.questions.get_mut(request).filter(|known| known.session == session && !known.answered);
        // Withdrawn or answered in the meantime: that was told, and an answer would reach nothing.
        let Some(question) = question else { return };
        match asks::answer(&question.wanted, answer) {
            Ok(result) => {
                question.answered = true;
                let reply = self.requests.reply(request.as_str(), &result);
                self.out.push_back(Out::Send(reply));
            }
            Err(why) => {
                let message = format!("The answer was not sent to Codex: {why}. The question still waits.");
                self.fault(Some(session), words::plain(FailureClass::Other, message));
            }
        }
    }

    pub(super) fn resolved(&mut self, params: &RawValue) -> Option<()> {
        let read: wire::ResolvedId<'_> = serde_json::from_str(params.get()).ok()?;
        let request = RequestKey::new(read.request_id.get());
        if let Some(question) = self.questions.remove(&request) {
            self.event(AgentEvent::ApprovalResolved { session: question.session, request });
        }
        Some(())
    }

    /// Nothing waits any more for the questions of this turn, or of this session.
    pub(super) fn withdraw_questions(&mut self, session: SessionId, turn: Option<&ProviderTurn>) {
        let moot =
            |question: &Question| question.session == session && turn.is_none_or(|turn| question.turn.as_ref() == Some(turn));
        let requests: Vec<RequestKey> =
            self.questions.iter().filter(|(_, question)| moot(question)).map(|(key, _)| key.clone()).collect();
        for request in requests {
            self.questions.remove(&request);
            self.event(AgentEvent::ApprovalResolved { session, request });
        }
    }
}

/// The changes that a question is about came with the entry that it belongs to.
fn changes_of(entry: &Session, turn: Option<&ProviderTurn>, item: Option<&turnkeep_model::ItemId>) -> Vec<FileChange> {
    let item = turn.and_then(|turn| entry.turns.get(turn)?.open.get(item?));
    match item.map(|item| &item.body) {
        Some(ItemBody::FileChange { changes, .. }) => changes.clone(),
        _ => Vec::new(),
    }
}
