//! Starting, steering and interrupting turns.

use serde_json::{Value, json, value::RawValue};
use turnkeep_model::{
    MessageId, ProviderTurn, SessionId, TurnId,
    port::{AgentEvent, Failure, FailureClass, Item, ItemBody, SessionSettings, TurnOutcome},
};

use super::{
    Asked, Machine, Timer, parse, patience,
    session::{Session, Stage, Starting, Turn},
};
use crate::{
    acp::{items, wire, words},
    port::{Clock, Out},
};

impl Machine {
    pub(super) fn start_turn(
        &mut self,
        _now: Clock,
        session: SessionId,
        turn: TurnId,
        message: &MessageId,
        text: String,
        settings: SessionSettings,
    ) {
        let rules = std::sync::Arc::clone(&self.entry);
        let refusal = match self.sessions.get(&session) {
            Some(entry) if entry.stage == Stage::Open && !entry.busy() && entry.ignoring.is_none() => None,
            // A second message would wait in the agent, where nobody can take it back.
            Some(entry) if entry.stage == Stage::Open => Some((FailureClass::ThreadBusy, "it is still working in this session")),
            Some(_) | None => Some((FailureClass::Other, "the session is not open in it")),
        };
        let (None, Some(entry)) = (&refusal, self.sessions.get_mut(&session)) else {
            let (class, why) = refusal.unwrap_or((FailureClass::Other, ""));
            let failure = words::plain(class, format!("The message was not sent to {}: {why}.", self.entry.name));
            return self.event(AgentEvent::TurnRejected { session, turn, failure });
        };
        // The protocol has no names for turns; a message's id is one.
        let name = ProviderTurn(message.as_str().to_owned());
        entry.starting = Some(Starting { turn, name, text, interrupt: false });
        let (tell, impossible) = entry.catalogue.differences(&rules, &settings);
        entry.settings.extend(tell);
        // Said once for each choice.
        let impossible = if entry.wanted == settings { Vec::new() } else { impossible };
        entry.wanted = settings;
        for text in impossible {
            self.notice(session, text);
        }
        self.next_setting(session);
    }

    /// Everything was told that must be: the message goes out.
    pub(super) fn send_prompt(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let (Some(thread), Some(starting)) = (entry.thread.clone(), entry.starting.take()) else { return };
        let Starting { turn, name, text, interrupt } = starting;
        if interrupt {
            // Not sent, so nobody can have it.
            let failure = words::plain(FailureClass::Other, "It was interrupted before it was sent.");
            return self.event(AgentEvent::TurnRejected { session, turn, failure });
        }
        entry.last = None;
        let running = Turn::new(turn, name.clone());
        let said = typed(&running, MessageId(name.as_str().to_owned()), text.clone());
        entry.turn = Some(running);
        let asked = Asked::Prompt { session, attempt: entry.attempt, turn };
        let params = json!({"sessionId": thread.as_str(), "prompt": [{"type": "text", "text": text}]});
        self.ask("session/prompt", &params, patience::UNLIMITED, asked);
        // The one answer comes at the end. From here on the agent may have it, and it can be interrupted.
        self.event(AgentEvent::TurnStarted { session, turn: Some(turn), provider_turn: name.clone() });
        // An agent says again what it was told only when it loads a session.
        self.event(AgentEvent::ItemCompleted { session, provider_turn: name, item: said });
    }

    pub(super) fn prompt_ended(
        &mut self,
        session: SessionId,
        attempt: u64,
        turn: TurnId,
        outcome: Result<&RawValue, wire::Refusal>,
    ) {
        let rules = std::sync::Arc::clone(&self.entry);
        let Some(entry) = self.at(session, attempt) else { return };
        if entry.ignoring.take_if(|ignoring| *ignoring == turn).is_some() {
            // It has stopped at last.
            return self.close_now(session);
        }
        let Some(running) = entry.turn.as_ref().filter(|running| running.ours == turn) else { return };
        let cancelling = running.cancelling;
        let own_text = running.own_text.clone();
        let outcome = match outcome {
            Ok(raw) => {
                let ended = parse::<wire::PromptEnded>(raw).unwrap_or_default();
                if let Some(used) = &ended.usage {
                    items::count(&mut entry.usage, used);
                    let usage = entry.usage.clone();
                    self.event(AgentEvent::Usage { session, usage });
                }
                let failed = own_text.and_then(|text| words::of_text(&rules, &text));
                match (ended.stop_reason.as_str(), failed) {
                    ("end_turn", Some(failure)) => TurnOutcome::Failed(failure),
                    ("end_turn", None) => TurnOutcome::Completed,
                    ("cancelled", _) => TurnOutcome::Interrupted,
                    (other, _) => TurnOutcome::Failed(stopped(&rules.name, other)),
                }
            }
            // What a cancelled turn ends with is of no interest.
            Err(_) if cancelling => TurnOutcome::Interrupted,
            Err(error) => TurnOutcome::Failed(words::of_refusal(&rules, &error, words::TURN)),
        };
        self.end_turn(session, outcome);
    }

    /// Report an end, with everything that it leaves unfinished before it.
    pub(super) fn end_turn(&mut self, session: SessionId, outcome: TurnOutcome) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let Some(mut turn) = entry.turn.take() else { return };
        let provider_turn = turn.name.clone();
        let mut last = Vec::new();
        last.extend(turn.finish());
        if outcome == TurnOutcome::Completed
            && let Some(Item { id, body: ItemBody::AgentMessage { text, .. } }) = turn.answer.take()
        {
            last.retain(|item| item.id != id);
            last.push(Item { id, body: ItemBody::AgentMessage { text, final_answer: true } });
        }
        last.extend(turn.orphans());
        entry.last = Some(turn);
        for item in last {
            self.event(AgentEvent::ItemCompleted { session, provider_turn: provider_turn.clone(), item });
        }
        self.withdraw_questions(session);
        self.event(AgentEvent::TurnEnded { session, provider_turn, outcome });
        self.close_now(session);
        self.stop_if_ignored();
    }

    // ---- while it runs

    pub(super) fn steer(&mut self, session: SessionId, turn: TurnId, message: MessageId, text: &str) {
        let entry = self.sessions.get_mut(&session);
        let running = entry.as_ref().is_some_and(|entry| entry.turn.as_ref().is_some_and(|running| running.ours == turn));
        let thread = entry.and_then(|entry| entry.thread.clone()).filter(|_| running);
        let Some(thread) = thread else {
            let failure = words::plain(FailureClass::Other, "The message was not added: its turn is not running any more.");
            return self.event(AgentEvent::SteerRefused { session, turn, message, failure });
        };
        let params = json!({"sessionId": thread.as_str(), "prompt": [{"type": "text", "text": text}]});
        self.ask("_session/steering", &params, patience::STEER, Asked::Steer { session, turn, message, text: text.to_owned() });
    }

    pub(super) fn steered(
        &mut self,
        session: SessionId,
        turn: TurnId,
        message: MessageId,
        text: String,
        outcome: Result<&RawValue, wire::Refusal>,
    ) {
        let failure = match outcome.map(|raw| parse::<wire::Steered>(raw).unwrap_or_default().outcome) {
            Ok(how) if how == "injected" => {
                let running = self.sessions.get(&session).and_then(|entry| entry.turn.as_ref());
                let said = running
                    .filter(|running| running.ours == turn)
                    .map(|running| (running.name.clone(), typed(running, message.clone(), text)));
                self.event(AgentEvent::Steered { session, turn, message });
                if let Some((provider_turn, item)) = said {
                    self.event(AgentEvent::ItemCompleted { session, provider_turn, item });
                }
                return;
            }
            Ok(how) => {
                let message = format!("{} did not add the message to the running turn ({how}).", self.entry.name);
                words::plain(FailureClass::Other, message)
            }
            Err(error) => words::of_refusal(&self.entry, &error, "add to the running turn"),
        };
        self.event(AgentEvent::SteerRefused { session, turn, message, failure });
    }

    pub(super) fn interrupt(&mut self, now: Clock, session: SessionId, turn: TurnId) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        if let Some(starting) = entry.starting.as_mut().filter(|starting| starting.turn == turn) {
            starting.interrupt = true;
            return;
        }
        let Some(running) = entry.turn.as_mut().filter(|running| running.ours == turn) else { return };
        if !std::mem::replace(&mut running.cancelling, true) {
            let attempt = entry.attempt;
            self.timers.set(now + patience::CANCEL, Timer::Ignored { session, attempt, turn });
        }
        let Some(thread) = entry.thread.clone() else { return };
        let params = json!({"sessionId": thread.as_str()});
        self.out.push_back(Out::Send(notification("session/cancel", &params)));
        // Not every agent withdraws what it asked, and one may even act on a late answer.
        self.cancel_questions(session);
        self.kill_terminals(session);
    }

    /// A person's word that a turn is to stop counts, whatever the agent does: the turn is over, nothing more of it is shown
    /// or done, and nothing is begun in this session until the agent has stopped or its process has.
    pub(super) fn cancel_ignored(&mut self, session: SessionId, attempt: u64, turn: TurnId) {
        let Some(entry) = self.at(session, attempt) else { return };
        let Some(running) = entry.turn.as_mut().filter(|running| running.ours == turn && running.cancelling) else { return };
        let (id, provider_turn) = (running.make_id(), running.name.clone());
        entry.ignoring = Some(turn);
        let text = format!(
            "{} did not stop within {} s when it was asked to. The turn counts as interrupted, what it still says about it is \
             not shown, and its process is ended as soon as nothing else runs in it.",
            self.entry.name,
            patience::CANCEL / 1_000
        );
        let item = Item { id, body: ItemBody::Notice { text } };
        self.event(AgentEvent::ItemCompleted { session, provider_turn, item });
        self.end_turn(session, TurnOutcome::Interrupted);
    }

    /// A process that goes on with what it was told to stop is ended, once that takes nothing else along.
    fn stop_if_ignored(&mut self) {
        let ignored = self.sessions.values().any(|entry| entry.ignoring.is_some());
        if ignored && !self.sessions.values().any(Session::busy) {
            let why = format!("{} did not stop a turn when it was asked to, so its process was ended", self.entry.name);
            self.out.push_back(Out::Stop { why });
        }
    }
}

/// What the person said, as an entry of the turn.
fn typed(turn: &Turn, message: MessageId, text: String) -> Item {
    Item { id: turn.id(&format!("said {message}")), body: ItemBody::UserMessage { text, message: Some(message) } }
}

/// A message that wants no answer.
fn notification(method: &str, params: &Value) -> crate::port::Frame {
    crate::port::Frame::Text(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}"))
}

/// An end for another reason than that the work is done.
fn stopped(name: &str, reason: &str) -> Failure {
    let message = match reason {
        "max_tokens" => "The answer was cut off: it reached the most tokens that the model may use for one.".to_owned(),
        "max_turn_requests" => format!("{name} stopped: it reached the most model calls that it makes for one message."),
        "refusal" => "The model refused to go on with this.".to_owned(),
        "" => format!("{name} ended the turn without saying why."),
        other => format!("{name} ended the turn for a reason that is not known here: {other}."),
    };
    words::plain(FailureClass::Other, message)
}
