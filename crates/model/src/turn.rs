//! One message being worked on: sent once, ended once.

use crate::{
    change::Change,
    derive,
    effect::Effect,
    ids::{MessageId, ProviderTurn, RuntimeId, SessionId, TurnId},
    port::{AgentCommand, Failure, FailureClass, GoalStatus, Goals, ProbeAnswer, TransportRecord, TurnOutcome},
    rules::{Fate, Rules, takes_work},
    state::{AfterStop, ApprovalState, Delivery, Phase, QueuedMessage, Runtime, Turn, TurnState},
    supervisor::Supervisor,
};

impl<R: Rules> Supervisor<R> {
    /// Sends the message at the head of the queue. The mark and the wish are in one step, and come once.
    pub(crate) fn dispatch(&mut self, session: SessionId, runtime: RuntimeId, message: QueuedMessage) {
        let Some((process, entry)) = self.state.runtimes.get(&runtime).zip(self.state.sessions.get(&session)) else { return };
        let settings = entry.settings.clone();
        let turn = TurnId(self.state.next.turn);
        let entry = Turn {
            session,
            runtime,
            account: process.account,
            epoch: process.epoch,
            message: Some(message.id.clone()),
            text: message.text.clone(),
            state: TurnState::Dispatched,
            provider_turn: None,
            steers: Vec::new(),
            started_at: self.now.wall,
            retrying: None,
            interrupting: false,
            closed: None,
            quiet: None,
        };
        self.commit(Change::TurnDispatched { turn, entry });
        let command = AgentCommand::StartTurn { session, turn, message: message.id, text: message.text, settings };
        self.ask(Effect::Command { runtime, command });
    }

    pub(crate) fn turn_started(
        &mut self,
        runtime: RuntimeId,
        session: SessionId,
        ours: Option<TurnId>,
        provider_turn: ProviderTurn,
    ) {
        match ours {
            Some(turn) => {
                let waits = |t: &&Turn| t.runtime == runtime && t.session == session && t.state == TurnState::Dispatched;
                let Some(interrupting) = self.state.turns.get(&turn).filter(waits).map(|t| t.interrupting) else { return };
                self.commit(Change::TurnStarted { turn, provider_turn });
                if interrupting {
                    self.ask(Effect::Command { runtime, command: AgentCommand::Interrupt { session, turn } });
                }
            }
            None => self.unasked_turn(runtime, session, provider_turn),
        }
    }

    /// A turn that the agent began by itself: for its goal, or for a task in the background. An old runtime, and one of
    /// an application that quits, are not given the time for it.
    fn unasked_turn(&mut self, runtime: RuntimeId, session: SessionId, provider_turn: ProviderTurn) {
        let Some(process) = self.state.runtimes.get(&runtime) else { return };
        let known = self.turns_named(runtime, session, &provider_turn);
        if !known.is_empty() {
            for turn in known {
                self.rejoin(turn, runtime, &provider_turn);
            }
            return;
        }
        let unwanted = !takes_work(&self.rules, &self.state, runtime, process);
        // A server has other clients, and what they begin is not ours to end.
        if unwanted && derive::server(&self.state, process).is_some() {
            return;
        }
        let turn = TurnId(self.state.next.turn);
        let entry = Turn {
            session,
            runtime,
            account: process.account,
            epoch: process.epoch,
            message: None,
            text: String::new(),
            state: TurnState::Started,
            provider_turn: Some(provider_turn),
            steers: Vec::new(),
            started_at: self.now.wall,
            retrying: None,
            interrupting: false,
            closed: None,
            quiet: None,
        };
        self.commit(Change::TurnDispatched { turn, entry });
        if unwanted {
            self.interrupt(turn);
        }
    }

    /// Asks for a turn's early end, once.
    pub(crate) fn interrupt(&mut self, turn: TurnId) {
        let Some(entry) = self.state.turns.get(&turn).filter(|t| !t.interrupting) else { return };
        let (session, runtime, state) = (entry.session, entry.runtime, entry.state);
        if state == TurnState::Probing {
            self.end_unresolved(turn);
            return;
        }
        self.commit(Change::TurnInterrupting { turn });
        // One that is being stopped, or that an earlier run left, ends anyway.
        if self.state.runtimes.get(&runtime).is_none_or(|r| r.phase != Phase::Ready) {
            return;
        }
        if self.capable(session, |c| c.interrupt) {
            if state == TurnState::Started {
                self.ask(Effect::Command { runtime, command: AgentCommand::Interrupt { session, turn } });
            }
        } else if derive::open_turns_on(&self.state, runtime).count() == 1 {
            self.retire(runtime, AfterStop::Nothing);
        }
    }

    /// Adds to the running turn where that is possible; else the message waits for its own.
    pub(crate) fn steer(&mut self, session: SessionId, message: MessageId, text: String) {
        if self.state.seen_messages.contains(&message) {
            return;
        }
        let running = self.state.sessions.get(&session).and_then(|s| s.turn);
        let running = running.and_then(|id| self.state.turns.get(&id).map(|t| (id, t.runtime, t.state, t.interrupting)));
        match running {
            Some((turn, runtime, TurnState::Started, false))
                if self.capable(session, |c| c.steer)
                    && self.state.runtimes.get(&runtime).is_some_and(|r| r.phase == Phase::Ready) =>
            {
                let entry =
                    QueuedMessage { id: message.clone(), text: text.clone(), at: self.now.wall, delivery: Delivery::Sending };
                self.commit(Change::SteerSent { turn, message: entry });
                self.ask(Effect::Command { runtime, command: AgentCommand::Steer { session, turn, message, text } });
            }
            Some(_) | None => self.send(session, message, text),
        }
    }

    /// The agent's word about an addition; it may come after the turn's end.
    pub(crate) fn steer_answered(&mut self, session: SessionId, turn: TurnId, message: MessageId, admitted: bool) {
        let sending = |m: &QueuedMessage| m.id == message && m.delivery == Delivery::Sending;
        let undecided = |m: &QueuedMessage| m.id == message;
        if self.state.turns.get(&turn).is_some_and(|t| t.session == session && t.steers.iter().any(sending)) {
            self.commit(if admitted {
                Change::SteerDelivered { turn, message, delivery: Delivery::Admitted }
            } else {
                Change::SteerReturned { turn, message }
            });
        } else if self.state.sessions.get(&session).is_some_and(|s| s.undecided.iter().any(undecided)) {
            let delivery = if admitted { Delivery::Admitted } else { Delivery::NotAdmitted };
            self.commit(Change::UndecidedSettled { session, message, delivery });
        }
    }

    /// Not admitted: the message waits again, and why it was refused decides for what.
    pub(crate) fn turn_rejected(&mut self, runtime: RuntimeId, session: SessionId, turn: TurnId, failure: Failure) {
        let waits = |t: &&Turn| t.runtime == runtime && t.session == session && t.state == TurnState::Dispatched;
        let Some((account, interrupting)) = self.state.turns.get(&turn).filter(waits).map(|t| (t.account, t.interrupting)) else {
            return;
        };
        if interrupting {
            self.end_turn(turn, TurnOutcome::Interrupted);
            return;
        }
        self.close_approvals(turn);
        self.commit(Change::TurnReturned { turn });
        let old = self.state.runtimes.get(&runtime).is_none_or(|r| !takes_work(&self.rules, &self.state, runtime, r));
        if old {
            return;
        }
        let delay = self.busy_delay(session).filter(|_| failure.class == FailureClass::ThreadBusy);
        if failure.class == FailureClass::SignedOut {
            self.rejected(account, failure);
        } else if let Some(delay) = delay {
            self.commit(Change::OpenDelayed { session, delay });
        } else if self.state.sessions.get(&session).is_some_and(|s| s.turn.is_none()) {
            self.commit(Change::SessionOpenFailed { session, failure: Some(failure) });
        }
    }

    /// The provider's own word that it is over.
    pub(crate) fn turn_ended(&mut self, runtime: RuntimeId, session: SessionId, named: &ProviderTurn, outcome: TurnOutcome) {
        let Some(process) = self.state.runtimes.get(&runtime) else { return };
        let old = self.rules.is_stale(&self.state, runtime, process);
        let account = process.account;
        let turns = self.turns_named(runtime, session, named);
        let closed = if let TurnOutcome::Failed(Failure { class: FailureClass::TransportClosed(record), .. }) = &outcome {
            Some(record)
        } else {
            None
        };
        for turn in &turns {
            let process = self.state.runtimes.get(&runtime);
            if let Some(record) = closed.filter(|_| process.is_some_and(|process| self.may_go_on(*turn, process))) {
                self.ask_history(*turn, Some(record.clone()));
                continue;
            }
            self.end_turn(*turn, if old { told_of_old_account(outcome.clone()) } else { outcome.clone() });
        }
        if old || turns.is_empty() {
            return;
        }
        match outcome {
            TurnOutcome::Completed => self.verified(account),
            TurnOutcome::Failed(failure) if failure.class == FailureClass::SignedOut => self.rejected(account, failure),
            TurnOutcome::Failed(_) | TurnOutcome::Interrupted | TurnOutcome::Lost | TurnOutcome::Unknown => {}
        }
    }

    /// Its process is proven gone without a word of its end.
    pub(crate) fn turn_lost_its_runtime(&mut self, turn: TurnId, runtime: &Runtime, closed: Option<&TransportRecord>) {
        let Some(entry) = self.state.turns.get(&turn) else { return };
        let has_thread = self.state.sessions.get(&entry.session).is_some_and(|s| s.thread.is_some());
        match entry.state {
            TurnState::Probing => {}
            TurnState::Dispatched => {
                let capabilities = self.state.providers.get(&runtime.provider).map(|p| &p.capabilities);
                match capabilities.map_or(Fate::Unknown, |c| self.rules.fate(c, has_thread)) {
                    Fate::Probe => self.ask_history(turn, closed.cloned().map(Box::new)),
                    Fate::Unknown => self.end_turn(turn, TurnOutcome::Unknown),
                    Fate::Resend => self.commit(Change::TurnReturned { turn }),
                }
            }
            TurnState::Started if self.may_go_on(turn, runtime) => {
                self.ask_history(turn, closed.cloned().map(Box::new));
            }
            TurnState::Started => {
                let outcome = match (&runtime.phase, closed) {
                    (Phase::Orphan, _) if entry.interrupting => TurnOutcome::Interrupted,
                    (Phase::Orphan, _) => TurnOutcome::Lost,
                    (Phase::Retiring { then: AfterStop::Quit }, _) => TurnOutcome::Interrupted,
                    (Phase::Starting | Phase::Ready | Phase::Retiring { .. }, Some(record)) => {
                        TurnOutcome::Failed(self.transport_closed(record.clone(), turn, entry))
                    }
                    (Phase::Retiring { then: AfterStop::CountFailure(failure) }, None) => TurnOutcome::Failed(failure.clone()),
                    (Phase::Starting | Phase::Ready | Phase::Retiring { .. }, None) if entry.interrupting => {
                        TurnOutcome::Interrupted
                    }
                    (Phase::Starting | Phase::Ready | Phase::Retiring { .. }, None) => TurnOutcome::Lost,
                };
                self.end_turn(turn, outcome);
            }
        }
    }

    /// The history was asked about a message whose process is proven gone.
    pub(crate) fn probed(&mut self, turn: TurnId, found: ProbeAnswer) {
        let Some(entry) = self.state.turns.get(&turn).filter(|t| t.state == TurnState::Probing) else { return };
        match found {
            // The history knows only that it came to no end; why is known here.
            ProbeAnswer::Found(TurnOutcome::Interrupted | TurnOutcome::Lost) if !entry.interrupting => {
                let outcome = match entry.closed.clone() {
                    Some(record) => TurnOutcome::Failed(self.transport_closed(*record, turn, entry)),
                    None => TurnOutcome::Lost,
                };
                self.end_turn(turn, outcome);
            }
            ProbeAnswer::Found(outcome) => self.end_turn(turn, outcome),
            ProbeAnswer::Running(named) => {
                let session = self.state.sessions.get(&entry.session);
                if let Some(runtime) = session.and_then(derive::held_by) {
                    self.rejoin(turn, runtime, &named);
                }
            }
            // It was begun, so it did come.
            ProbeAnswer::NotFound | ProbeAnswer::CannotTell if entry.provider_turn.is_some() => self.end_unresolved(turn),
            ProbeAnswer::NotFound if entry.interrupting => self.end_turn(turn, TurnOutcome::Interrupted),
            ProbeAnswer::NotFound => self.commit(Change::TurnReturned { turn }),
            ProbeAnswer::CannotTell => self.end_turn(turn, TurnOutcome::Unknown),
        }
    }

    /// Whether it may go on although the connection to its runtime is lost: it was given to a server that somebody else
    /// started, and its history can be asked about it later.
    fn may_go_on(&self, turn: TurnId, runtime: &Runtime) -> bool {
        let Some(entry) = self.state.turns.get(&turn) else { return false };
        let has_thread = self.state.sessions.get(&entry.session).is_some_and(|s| s.thread.is_some());
        let capabilities = self.state.providers.get(&runtime.provider).map(|p| &p.capabilities);
        derive::server(&self.state, runtime).is_some()
            && entry.message.is_some()
            && capabilities.is_some_and(|c| self.rules.fate(c, has_thread) == Fate::Probe)
    }

    fn ask_history(&mut self, turn: TurnId, closed: Option<Box<TransportRecord>>) {
        self.close_approvals(turn);
        self.commit(Change::TurnPhased { turn, state: TurnState::Probing, closed });
    }

    /// A turn that was asked about turns out to run, on this runtime from here on.
    pub(crate) fn rejoin(&mut self, turn: TurnId, runtime: RuntimeId, named: &ProviderTurn) {
        let Some(entry) = self.state.turns.get(&turn).filter(|t| t.state == TurnState::Probing) else { return };
        let (session, interrupting) = (entry.session, entry.interrupting);
        self.commit(Change::TurnRejoined { turn, runtime, provider_turn: named.clone() });
        if interrupting {
            self.ask(Effect::Command { runtime, command: AgentCommand::Interrupt { session, turn } });
        }
    }

    /// Nobody can be asked any more how it ended: what is known is said, and never that it was completed.
    pub(crate) fn end_unresolved(&mut self, turn: TurnId) {
        let Some(entry) = self.state.turns.get(&turn) else { return };
        let outcome = match &entry.closed {
            _ if entry.provider_turn.is_none() => TurnOutcome::Unknown,
            Some(record) => TurnOutcome::Failed(self.transport_closed((**record).clone(), turn, entry)),
            None => TurnOutcome::Lost,
        };
        self.end_turn(turn, outcome);
    }

    /// The turn's one terminal state.
    pub(crate) fn end_turn(&mut self, turn: TurnId, outcome: TurnOutcome) {
        let Some(session) = self.state.turns.get(&turn).map(|t| t.session) else { return };
        self.close_approvals(turn);
        let driven = self.state.sessions.get(&session).filter(|s| derive::goals(&self.state, s) == Goals::Driven);
        let goal = driven.and_then(|s| derive::active_goal(&self.state, s)).cloned();
        let status = goal_after(&outcome);
        self.commit(Change::TurnEnded { turn, outcome, at: self.now.wall });
        if let (Some(mut goal), Some(status)) = (goal, status) {
            goal.status = status;
            self.commit(Change::GoalSet { session, goal: Some(goal) });
        }
        // What was put away while it worked is left alone now.
        if self.state.sessions.get(&session).is_some_and(|s| s.archived) {
            self.leave_alone(session);
        }
    }

    /// The open turns of a session that the provider calls by this name: two where a message joined a turn that the
    /// agent had begun. One that was lost with an earlier connection is found by its name again.
    pub(crate) fn turns_named(&self, runtime: RuntimeId, session: SessionId, named: &ProviderTurn) -> Vec<TurnId> {
        let holder = self.state.sessions.get(&session).and_then(derive::held_by);
        derive::open_turns_of(&self.state, session)
            .filter(|(_, t)| t.runtime == runtime || (t.state == TurnState::Probing && holder == Some(runtime)))
            .filter(|(_, t)| t.provider_turn.as_ref() == Some(named))
            .map(|(id, _)| id)
            .collect()
    }

    fn transport_closed(&self, mut record: TransportRecord, id: TurnId, turn: &Turn) -> Failure {
        record.session = Some(turn.session);
        record.thread = self.state.sessions.get(&turn.session).and_then(|s| s.thread.clone());
        record.turn = Some(id);
        record.turn_state = if turn.provider_turn.is_some() { "started" } else { "dispatched" }.to_owned();
        let message = if record.stream == "socket" {
            "The connection to the server was lost before this was done, and the server does not say that it was done later. What \
             came so far stays; send a message to go on."
        } else {
            "The agent's process ended before this was done. What it did so far stays; send a message to go on."
        };
        let message = message.to_owned();
        Failure { class: FailureClass::TransportClosed(Box::new(record)), message, detail: None }
    }

    fn close_approvals(&mut self, turn: TurnId) {
        for approval in self.approvals(|a| a.turn == turn && a.state == ApprovalState::Pending) {
            self.withdraw(approval);
        }
    }
}

/// A goal that we drive does not go on by itself after a failure.
fn goal_after(outcome: &TurnOutcome) -> Option<GoalStatus> {
    match outcome {
        TurnOutcome::Failed(failure) => match failure.class {
            // The next account goes on.
            FailureClass::SignedOut | FailureClass::AccountChanged => None,
            FailureClass::UsageLimit | FailureClass::RateLimit => Some(GoalStatus::Limited),
            FailureClass::Overloaded
            | FailureClass::ContextWindow
            | FailureClass::ModelNotFound
            | FailureClass::Network
            | FailureClass::Timeout
            | FailureClass::Unsupported
            | FailureClass::ThreadNotFound
            | FailureClass::ThreadBusy
            | FailureClass::StartFailed
            | FailureClass::KeychainLocked
            | FailureClass::KeychainAbsent
            | FailureClass::TransportClosed(_)
            | FailureClass::Protocol
            | FailureClass::Other => Some(GoalStatus::Blocked),
        },
        TurnOutcome::Completed | TurnOutcome::Interrupted | TurnOutcome::Lost | TurnOutcome::Unknown => None,
    }
}

/// What an old runtime is told about its account says nothing about the current one.
fn told_of_old_account(outcome: TurnOutcome) -> TurnOutcome {
    match outcome {
        TurnOutcome::Failed(failure) if failure.class == FailureClass::SignedOut => TurnOutcome::Failed(Failure {
            class: FailureClass::AccountChanged,
            message: "The account was changed while this was worked on, and the old one is not accepted any more. Send your \
                      message again to go on with the new one."
                .to_owned(),
            detail: Some(match failure.detail {
                Some(detail) => format!("{}\n{detail}", failure.message),
                None => failure.message,
            }),
        }),
        TurnOutcome::Completed | TurnOutcome::Interrupted | TurnOutcome::Failed(_) | TurnOutcome::Lost | TurnOutcome::Unknown => {
            outcome
        }
    }
}
