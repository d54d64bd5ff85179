//! Starting, steering and interrupting turns.

use serde_json::{json, value::RawValue};
use turnkeep_model::{
    MessageId, ProviderTurn, SessionId, TurnId,
    port::{AgentCommand, AgentEvent, Failure, FailureClass, SessionSettings, TurnOutcome},
};

use super::{
    Asked, Machine, misshapen,
    opening::{approval_word, policy_kind, put},
    parse, patience,
    session::{Session, Stage, Starting, Turn},
};
use crate::{
    codex::{wire, words},
    jsonrpc::RpcError,
    port::Clock,
};

/// Characters that Codex takes in one message.
const LONGEST: usize = 1_048_576;

impl Machine {
    pub(super) fn start_turn(
        &mut self,
        session: SessionId,
        turn: TurnId,
        message: MessageId,
        text: String,
        settings: SessionSettings,
    ) {
        if let Some(entry) = self.sessions.get_mut(&session).filter(|entry| entry.cleaning) {
            // Sent now, it could lose its own commands to the cleaning.
            return entry.deferred.push(AgentCommand::StartTurn { session, turn, message, text, settings });
        }
        let rejection = self.rejection(session, &text);
        let (None, Some(entry)) = (&rejection, self.sessions.get_mut(&session)) else {
            let failure = rejection.unwrap_or_else(|| words::plain(FailureClass::Other, ""));
            return self.event(AgentEvent::TurnRejected { session, turn, failure });
        };
        let Some(thread) = entry.thread.clone() else { return };

        let mut params = json!({
            "threadId": thread.as_str(),
            "clientUserMessageId": message.as_str(),
            "input": [{"type": "text", "text": text}],
        });
        let asked = overrides(entry, settings);
        put(&mut params, "model", asked.model);
        put(&mut params, "effort", asked.effort);
        put(&mut params, "approvalPolicy", asked.approval_mode.map(approval_word));
        put(&mut params, "sandboxPolicy", asked.sandbox.map(|kind| json!({"type": policy_kind(kind)})));
        entry.starting = Some(Starting { turn, message, interrupt: false, hold: true });
        let asked = Asked::TurnStart { session, attempt: entry.attempt, turn };
        self.ask("turn/start", &params, patience::TURN, asked);
    }

    /// Why a message is not sent, in words for a person.
    fn rejection(&self, session: SessionId, text: &str) -> Option<Failure> {
        let Some(entry) = self.sessions.get(&session).filter(|entry| entry.stage == Stage::Open) else {
            return Some(words::plain(FailureClass::Other, "The message was not sent: the session is not open in Codex."));
        };
        if entry.busy() {
            // Codex would add the message to the running turn instead of beginning one.
            let why = "The message was not sent: Codex is still working in this session.";
            return Some(words::plain(FailureClass::ThreadBusy, why));
        }
        too_long(text).map(|why| words::plain(FailureClass::Other, why))
    }

    pub(super) fn turn_answered(
        &mut self,
        now: Clock,
        session: SessionId,
        attempt: u64,
        turn: TurnId,
        outcome: Result<&RawValue, RpcError>,
    ) {
        let Some(entry) = self.at(session, attempt) else { return };
        let interrupt = entry.starting.take_if(|starting| starting.turn == turn).is_some_and(|was| was.interrupt);
        match outcome {
            Err(error) => {
                let failure = words::of_refusal(&error, "start the turn");
                self.event(AgentEvent::TurnRejected { session, turn, failure });
            }
            Ok(raw) => {
                let name = parse::<wire::TurnStarting>(raw).map(|started| ProviderTurn(started.turn.id));
                match name.filter(|name| !name.as_str().is_empty()) {
                    Some(name) => self.adopt(session, turn, name),
                    None => self.fault(Some(session), misshapen("start a turn")),
                }
            }
        }
        self.unhold(now, session);
        if interrupt {
            self.interrupt(session, turn);
        }
        self.run_deferred(session);
        self.release_now(session);
    }

    /// This turn of Codex's is ours.
    pub(super) fn adopt(&mut self, session: SessionId, turn: TurnId, name: ProviderTurn) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let ended = entry.ended.iter().find(|(known, _)| *known == name).map(|(_, outcome)| outcome.clone());
        if ended.is_none() {
            entry.turns.entry(name.clone()).or_default().ours = Some(turn);
        }
        self.event(AgentEvent::TurnStarted { session, turn: Some(turn), provider_turn: name.clone() });
        if let Some(outcome) = ended {
            self.event(AgentEvent::TurnEnded { session, provider_turn: name, outcome });
        }
    }

    /// No answer: nobody can say whether Codex has the message. A late answer is still acted on.
    pub(super) fn start_timed_out(&mut self, now: Clock, session: SessionId, attempt: u64) {
        if let Some(starting) = self.at(session, attempt).and_then(|entry| entry.starting.as_mut()) {
            starting.hold = false;
            self.fault(Some(session), words::timeout("start the turn"));
            self.unhold(now, session);
        }
    }

    // ---- while it runs

    pub(super) fn steer(&mut self, session: SessionId, turn: TurnId, message: MessageId, text: String) {
        let entry = self.sessions.get_mut(&session);
        if let Some(entry) = entry
            && entry.starting.as_ref().is_some_and(|starting| starting.turn == turn)
        {
            return entry.deferred.push(AgentCommand::Steer { session, turn, message, text });
        }
        let running = self.sessions.get(&session).and_then(|entry| Some((entry.thread.clone()?, entry.named(turn)?)));
        let refusal = too_long(&text);
        let (Some((thread, name)), None) = (running, &refusal) else {
            let why = refusal.unwrap_or_else(|| "The message was not added: its turn is not running any more.".to_owned());
            let failure = words::plain(FailureClass::Other, why);
            return self.event(AgentEvent::SteerRefused { session, turn, message, failure });
        };
        let params = json!({
            "threadId": thread.as_str(),
            "expectedTurnId": name.as_str(),
            "clientUserMessageId": message.as_str(),
            "input": [{"type": "text", "text": text}],
        });
        self.ask("turn/steer", &params, patience::TURN, Asked::Steer { session, turn, message });
    }

    pub(super) fn steered(&mut self, session: SessionId, turn: TurnId, message: MessageId, outcome: Result<&RawValue, RpcError>) {
        self.event(match outcome {
            Ok(_) => AgentEvent::Steered { session, turn, message },
            Err(error) => {
                let failure = words::of_refusal(&error, "add to the running turn");
                AgentEvent::SteerRefused { session, turn, message, failure }
            }
        });
    }

    pub(super) fn interrupt(&mut self, session: SessionId, turn: TurnId) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        if let Some(starting) = &mut entry.starting
            && starting.turn == turn
        {
            starting.interrupt = true;
            return;
        }
        // An ended turn has told its end already.
        let (Some(thread), Some(name)) = (entry.thread.clone(), entry.named(turn)) else { return };
        entry.cleaning = true;
        let asked = Asked::Interrupt { session, attempt: entry.attempt };
        let params = json!({"threadId": thread.as_str(), "turnId": name.as_str()});
        self.ask("turn/interrupt", &params, patience::QUICK, asked);
    }

    /// The turn ends by its own notification; the command that it ran goes on in the background until it is cleaned up.
    pub(super) fn interrupted(&mut self, session: SessionId, attempt: u64) {
        let Some(entry) = self.at(session, attempt) else { return };
        let Some(thread) = entry.thread.clone() else { return };
        let params = json!({"threadId": thread.as_str()});
        self.ask("thread/backgroundTerminals/clean", &params, patience::QUICK, Asked::Clean { session, attempt });
    }

    /// Report an end, with everything that it leaves unfinished before it.
    pub(super) fn end_turn(&mut self, session: SessionId, name: ProviderTurn, outcome: TurnOutcome) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        if !entry.end(&name, &outcome) {
            return;
        }
        let mut turn = entry.turns.remove(&name).unwrap_or_default();
        for item in turn.orphans() {
            self.event(AgentEvent::ItemCompleted { session, provider_turn: name.clone(), item });
        }
        self.withdraw_questions(session, Some(&name));
        self.event(AgentEvent::TurnEnded { session, provider_turn: name, outcome });
        self.release_now(session);
    }
}

/// What differs from what is in effect, which it becomes.
fn overrides(entry: &mut Session, asked: SessionSettings) -> SessionSettings {
    fn differs<T: Clone + PartialEq>(asked: Option<T>, in_effect: &mut Option<T>) -> Option<T> {
        let asked = asked.filter(|asked| in_effect.as_ref() != Some(asked))?;
        *in_effect = Some(asked.clone());
        Some(asked)
    }
    let now = &mut entry.settings;
    SessionSettings {
        model: differs(asked.model, &mut now.model),
        effort: differs(asked.effort, &mut now.effort),
        approval_mode: differs(asked.approval_mode, &mut now.approval_mode),
        sandbox: differs(asked.sandbox, &mut now.sandbox),
    }
}

fn too_long(text: &str) -> Option<String> {
    let length = text.chars().count();
    (length > LONGEST).then(|| {
        format!("The message was not sent: it has {length} characters, and Codex takes {LONGEST} at most. Shorten it, or put it in a file.")
    })
}

impl Turn {
    /// A running turn, ours or not.
    pub(super) fn of(ours: Option<TurnId>) -> Self {
        Self { ours, ..Self::default() }
    }
}
