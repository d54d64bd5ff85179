//! What becomes of everything unfinished when an answer does not come, or when the transport closes.

use turnkeep_model::{
    MessageId, ProviderTurn, SessionId,
    port::{AgentCommand, AgentEvent, Failure, FailureClass, Observation, ProbeAnswer, TransportRecord, TurnOutcome},
};

use super::{AccountFor, Asked, Machine, Stage, session};
use crate::{
    codex::words,
    port::{Clock, Out},
};

impl Machine {
    pub(super) fn timed_out(&mut self, now: Clock, asked: Asked) {
        match asked {
            Asked::Initialize => {
                self.out.push_back(Out::Stop { why: words::timeout("begin").message });
            }
            Asked::Key => {
                let failure = words::timeout("take the API key");
                let why = failure.message.clone();
                self.fault(None, failure);
                self.out.push_back(Out::Stop { why });
            }
            Asked::Account(AccountFor::Ready) => self.ready(unknown("read the account")),
            Asked::Account(AccountFor::Command) => {
                self.event(AgentEvent::Identity { identity: unknown("read the account") });
            }
            Asked::Account(AccountFor::SignIn) => self.sign_in_ended(Ok(unknown("read the account"))),
            Asked::SignIn(_) => self.sign_in_ended(Err(words::timeout("sign in"))),
            Asked::SignOut => self.sign_out_ended(Err(words::timeout("sign out"))),
            Asked::Open { session, attempt } => self.open_timed_out(now, session, attempt),
            Asked::Unsubscribe { session, attempt } => self.release_late(session, attempt),
            Asked::Clean { session, attempt } => {
                self.fault(Some(session), words::timeout("stop what still runs in the background"));
                self.cleaned(session, attempt);
            }
            Asked::TurnStart { session, attempt, .. } => self.start_timed_out(now, session, attempt),
            Asked::Steer { session, .. } => self.fault(Some(session), words::timeout("add to the running turn")),
            Asked::Interrupt { session, attempt } => {
                self.fault(Some(session), words::timeout("interrupt the turn"));
                self.interrupted(session, attempt);
            }
            Asked::Goal { session } => {
                if let Some(entry) = self.sessions.get_mut(&session) {
                    entry.goals_asked = entry.goals_asked.saturating_sub(1);
                }
                self.fault(Some(session), words::timeout("change the goal"));
            }
            Asked::Probe(probe) => self.probe_ended(&probe, ProbeAnswer::CannotTell),
            Asked::Models(_) => self.fault(None, words::timeout("list the models")),
            Asked::RateLimits => self.fault(None, words::timeout("read the usage meters")),
            Asked::Threads(ask) => self.event(AgentEvent::Threads { ask, result: Err(words::timeout("list the threads")) }),
            Asked::History(history) => {
                let result = Err(words::timeout("read the history"));
                self.event(AgentEvent::History { session: history.session, result });
            }
            Asked::Config | Asked::CancelSignIn | Asked::Forget | Asked::Hush => {}
        }
    }

    pub(super) fn close(&mut self, now: Clock, record: TransportRecord) {
        for session in self.sessions.keys().copied().collect::<Vec<_>>() {
            // What was held back was said before the close.
            if let Some(entry) = self.sessions.get_mut(&session)
                && let Some(starting) = &mut entry.starting
            {
                starting.hold = false;
            }
            self.unhold(now, session);
        }
        self.stage = Stage::Closed;
        for asked in self.requests.drain() {
            self.lost(asked, &record);
        }
        if self.signing_in() {
            self.sign_in_ended(Err(ended(&record)));
        }
        for session in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.close_session(session, &record);
        }
        self.timers.clear();
        for command in std::mem::take(&mut self.early) {
            self.refuse(command);
        }
    }

    fn close_session(&mut self, session: SessionId, record: &TransportRecord) {
        let Some(entry) = self.sessions.get(&session) else { return };
        let thread = entry.thread.clone();
        let about = |turn, state: &str| {
            let record = TransportRecord {
                session: Some(session),
                thread: thread.clone(),
                turn,
                turn_state: state.to_owned(),
                ..record.clone()
            };
            Failure { message: ended(&record).message, detail: None, class: FailureClass::TransportClosed(Box::new(record)) }
        };
        let running: Vec<(ProviderTurn, Failure)> =
            entry.turns.iter().map(|(name, turn)| (name.clone(), about(turn.ours, "started"))).collect();
        let dispatched = entry.starting.as_ref().map(|starting| about(Some(starting.turn), "dispatched"));
        let stage = entry.stage;
        for (name, failure) in running {
            self.end_turn(session, name, TurnOutcome::Failed(failure));
        }
        if let Some(failure) = dispatched {
            // It has no name that its end could be told by, and Codex may have got it or not.
            self.fault(Some(session), failure);
        }
        self.withdraw_questions(session, None);
        let Some(entry) = self.sessions.remove(&session) else { return };
        for command in entry.deferred {
            self.refuse(command);
        }
        match stage {
            session::Stage::Opening { .. } => {
                self.event(AgentEvent::SessionOpenFailed { session, failure: ended(record) });
            }
            session::Stage::Releasing { .. } => self.event(AgentEvent::SessionReleased { session }),
            session::Stage::Open => {}
        }
    }

    /// A request whose answer will never come.
    fn lost(&mut self, asked: Asked, record: &TransportRecord) {
        match asked {
            Asked::SignOut => self.sign_out_ended(Err(ended(record))),
            Asked::Probe(probe) => self.probe_ended(&probe, ProbeAnswer::CannotTell),
            Asked::Steer { session, turn, message } => self.steer_lost(session, turn.0, &message, record),
            // Told with their session, or of no interest without a process.
            Asked::Initialize
            | Asked::Key
            | Asked::Config
            | Asked::Account(_)
            | Asked::SignIn(_)
            | Asked::CancelSignIn
            | Asked::Open { .. }
            | Asked::Forget
            | Asked::Unsubscribe { .. }
            | Asked::Clean { .. }
            | Asked::TurnStart { .. }
            | Asked::Interrupt { .. }
            | Asked::Goal { .. }
            | Asked::Hush
            | Asked::Models(_)
            | Asked::RateLimits
            | Asked::Threads(_)
            | Asked::History(_) => {}
        }
    }

    fn steer_lost(&mut self, session: SessionId, turn: u64, message: &MessageId, record: &TransportRecord) {
        let mut failure = ended(record);
        failure.detail = Some(format!("message {message} was being added to turn {turn}; whether it arrived is not known"));
        self.fault(Some(session), failure);
    }

    /// Answer a command that can no longer reach a process.
    pub(super) fn refuse(&mut self, command: AgentCommand) {
        // Where the process has ended, what was not sent is for the next one, and not for a person to repeat.
        let class = if self.stage == Stage::Closed { FailureClass::TransportClosed(Box::default()) } else { FailureClass::Other };
        let gone = || words::plain(class.clone(), "It was not sent: the Codex process, or the session in it, has ended.");
        match command {
            AgentCommand::OpenSession { session, .. } => {
                self.event(AgentEvent::SessionOpenFailed { session, failure: gone() });
            }
            AgentCommand::ReleaseSession { session } => self.event(AgentEvent::SessionReleased { session }),
            AgentCommand::StartTurn { session, turn, .. } => {
                self.event(AgentEvent::TurnRejected { session, turn, failure: gone() });
            }
            AgentCommand::Steer { session, turn, message, .. } => {
                self.event(AgentEvent::SteerRefused { session, turn, message, failure: gone() });
            }
            AgentCommand::Probe { session, turn, .. } => {
                self.event(AgentEvent::Probed { session, turn, found: ProbeAnswer::CannotTell });
            }
            AgentCommand::ReadIdentity => {
                self.event(AgentEvent::Identity { identity: Observation::Unknown { why: gone().message } })
            }
            AgentCommand::SignIn { .. } => self.event(AgentEvent::SignInEnded { result: Err(gone()) }),
            AgentCommand::SignOut => self.event(AgentEvent::SignedOut { result: Err(gone()) }),
            AgentCommand::ListThreads { ask, .. } => self.event(AgentEvent::Threads { ask, result: Err(gone()) }),
            AgentCommand::ReadHistory { session, .. } => self.event(AgentEvent::History { session, result: Err(gone()) }),
            AgentCommand::Interrupt { .. }
            | AgentCommand::Answer { .. }
            | AgentCommand::SetGoal { .. }
            | AgentCommand::ListModels
            | AgentCommand::ReadRateLimits
            | AgentCommand::CancelSignIn => {}
        }
    }
}

fn unknown(doing: &str) -> Observation {
    Observation::Unknown { why: words::timeout(doing).message }
}

/// The transport is gone, in words and with the record of it.
fn ended(record: &TransportRecord) -> Failure {
    let how = match (record.exit_code, record.signal) {
        (Some(code), _) => format!("ended with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => format!("closed its {} ({})", record.stream, record.how),
    };
    Failure {
        class: FailureClass::TransportClosed(Box::new(record.clone())),
        message: format!("The Codex process {how} before its work was done. The session and its history are kept."),
        detail: None,
    }
}
