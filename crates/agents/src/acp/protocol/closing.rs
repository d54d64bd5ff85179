//! What becomes of everything unfinished when an answer does not come, or when the transport closes.

use turnkeep_model::{
    SessionId,
    port::{
        AgentCommand, AgentEvent, Failure, FailureClass, Observation, ProbeAnswer, TransportRecord, TurnOutcome, Unsupported,
    },
};

use super::{Asked, Machine, Stage, session};
use crate::{acp::words, port::Clock};

impl Machine {
    pub(super) fn timed_out(&mut self, now: Clock, asked: Asked) {
        match asked {
            Asked::Open { session, attempt } => {
                if self.at(session, attempt).is_some() {
                    let failure = words::timeout(&self.entry, "open the session");
                    self.open_failed(session, failure);
                }
            }
            Asked::Setting { session, attempt, setting } => {
                if self.at(session, attempt).is_some() {
                    let failure = words::timeout(&self.entry, setting.what.words());
                    self.not_set(session, failure);
                }
            }
            Asked::Close { session, attempt } => {
                let refusal = crate::acp::wire::Refusal { message: "no answer in time".to_owned(), ..Default::default() };
                self.close_answered(now, session, attempt, Err(refusal));
            }
            Asked::Steer { session, .. } => {
                let failure = words::timeout(&self.entry, "add to the running turn");
                self.fault(Some(session), failure);
            }
            Asked::Sessions { ask } => {
                let result = Err(words::timeout(&self.entry, "list its sessions"));
                self.event(AgentEvent::Threads { ask, result });
            }
            Asked::SignOut => {
                let failure = words::timeout(&self.entry, "sign out");
                self.sign_out_ended(Err(failure));
            }
            // Somebody else's patience counts, or nobody minds.
            Asked::Initialize | Asked::Authenticate | Asked::Prompt { .. } | Asked::Forget => {}
        }
    }

    pub(super) fn close(&mut self, record: &TransportRecord) {
        self.stage = Stage::Closed;
        let asked = self.requests.drain();
        let failure = self.ended(record);
        self.sign_in_ended(Err(failure.clone()));
        self.sign_out_ended(Err(failure.clone()));
        for asked in asked {
            if let Asked::Sessions { ask } = asked {
                self.event(AgentEvent::Threads { ask, result: Err(failure.clone()) });
            } else if let Asked::Steer { session, turn, message, .. } = asked {
                let detail = format!("message {message} was being added to turn {turn}; whether it arrived is not known");
                self.fault(Some(session), Failure { detail: Some(detail), ..failure.clone() });
            }
        }
        for session in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.close_session(session, record);
        }
        self.timers.clear();
        for command in std::mem::take(&mut self.early) {
            self.refuse(command);
        }
    }

    fn close_session(&mut self, session: SessionId, record: &TransportRecord) {
        let failure = self.ended(record);
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let stage = entry.stage;
        let thread = entry.thread.clone();
        let about = |turn, state: &str| Failure {
            class: FailureClass::TransportClosed(Box::new(TransportRecord {
                session: Some(session),
                thread: thread.clone(),
                turn,
                turn_state: state.to_owned(),
                ..record.clone()
            })),
            ..failure.clone()
        };
        let running = entry.turn.as_ref().map(|turn| about(Some(turn.ours), "started"));
        // It was never sent, so no process can have it.
        let unsent = entry.starting.take().map(|starting| (starting.turn, about(Some(starting.turn), "dispatched")));
        if let Some(failure) = running {
            self.end_turn(session, TurnOutcome::Failed(failure));
        }
        if let Some((turn, failure)) = unsent {
            self.event(AgentEvent::TurnRejected { session, turn, failure });
        }
        self.withdraw_questions(session);
        self.sessions.remove(&session);
        match stage {
            session::Stage::Opening | session::Stage::Configuring => {
                self.event(AgentEvent::SessionOpenFailed { session, failure });
            }
            session::Stage::Releasing { .. } => self.event(AgentEvent::SessionReleased { session }),
            session::Stage::Open => {}
        }
    }

    /// Answer a command that can no longer reach a process.
    pub(super) fn refuse(&mut self, command: AgentCommand) {
        // Where the process has ended, what was not sent is for the next one, and not for a person to repeat.
        let class = if self.stage == Stage::Closed { FailureClass::TransportClosed(Box::default()) } else { FailureClass::Other };
        let message = format!("It was not sent: the process of {}, or the session in it, has ended.", self.entry.name);
        self.refuse_with(command, words::plain(class, message));
    }

    /// Answer a command that came before it was known that the agent cannot do it.
    pub(super) fn refuse_unsupported(&mut self, command: AgentCommand, unsupported: &Unsupported) {
        let message = format!("Not done: {unsupported}.");
        self.refuse_with(command, words::plain(FailureClass::Unsupported, message));
    }

    fn refuse_with(&mut self, command: AgentCommand, failure: Failure) {
        match command {
            AgentCommand::OpenSession { session, .. } => {
                self.event(AgentEvent::SessionOpenFailed { session, failure });
            }
            AgentCommand::ReleaseSession { session } => self.event(AgentEvent::SessionReleased { session }),
            AgentCommand::StartTurn { session, turn, .. } => {
                self.event(AgentEvent::TurnRejected { session, turn, failure });
            }
            AgentCommand::Steer { session, turn, message, .. } => {
                self.event(AgentEvent::SteerRefused { session, turn, message, failure });
            }
            AgentCommand::Probe { session, turn, .. } => {
                self.event(AgentEvent::Probed { session, turn, found: ProbeAnswer::CannotTell });
            }
            AgentCommand::ReadIdentity => {
                self.event(AgentEvent::Identity { identity: Observation::Unknown { why: failure.message } });
            }
            AgentCommand::SignIn { .. } => self.event(AgentEvent::SignInEnded { result: Err(failure) }),
            AgentCommand::SignOut => self.event(AgentEvent::SignedOut { result: Err(failure) }),
            AgentCommand::ListThreads { ask, .. } => self.event(AgentEvent::Threads { ask, result: Err(failure) }),
            AgentCommand::ReadHistory { session, .. } => self.event(AgentEvent::History { session, result: Err(failure) }),
            AgentCommand::Interrupt { .. }
            | AgentCommand::Answer { .. }
            | AgentCommand::SetGoal { .. }
            | AgentCommand::ListModels
            | AgentCommand::ReadRateLimits
            | AgentCommand::CancelSignIn => {}
        }
    }

    /// The transport is gone, in words and with the record of it.
    fn ended(&self, record: &TransportRecord) -> Failure {
        let how = match (record.exit_code, record.signal) {
            (Some(code), _) => format!("ended with code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => format!("closed its {} ({})", record.stream, record.how),
        };
        Failure {
            class: FailureClass::TransportClosed(Box::new(record.clone())),
            message: format!(
                "The process of {} {how} before its work was done. The session and its history are kept.",
                self.entry.name
            ),
            detail: None,
        }
    }
}
