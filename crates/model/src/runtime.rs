//! The life of a process: who it says it serves, how it ends, and what its end means for what it held.

use crate::{
    change::Change,
    derive,
    effect::Effect,
    ids::{RuntimeId, SessionId},
    port::{AgentCommand, Failure, FailureClass, Observation, TransportRecord},
    rules::{Introduction, Rules},
    state::{AccountKind, AfterStop, Attachment, Keychain, OpenDelay, Phase, ProcessIdentity, Restarts, Runtime},
    supervisor::Supervisor,
};

/// Failed starts in [`RESTART_WINDOW`] after which no further one is tried.
const RESTARTS: usize = 3;
/// Milliseconds.
const RESTART_WINDOW: u64 = 60_000;
/// How often a session is asked to be let go of again, and milliseconds before the first time; doubled each time.
const RELEASE_TRIES: u32 = 4;
const RELEASE_DELAY: u64 = 1_000;
/// Milliseconds to wait after the first and the second failure.
const RESTART_DELAYS: [u64; RESTARTS - 1] = [500, 2_000];

impl<R: Rules> Supervisor<R> {
    pub(crate) fn runtime_started(&mut self, runtime: RuntimeId, process: ProcessIdentity) {
        if self.state.runtimes.contains_key(&runtime) {
            self.commit(Change::RuntimeProcess { runtime, process });
        }
    }

    /// The handshake is done: only the one whom its epoch stands for is let in.
    pub(crate) fn runtime_ready(&mut self, id: RuntimeId, version: String, seen: Observation) {
        let Some(runtime) = self.state.runtimes.get(&id).filter(|r| r.phase == Phase::Starting) else { return };
        let Some(account) = self.state.accounts.get(&runtime.account) else { return };
        let (account_id, credential, provider) = (runtime.account, runtime.credential, runtime.provider.clone());
        match self.rules.introduce(account, &seen) {
            Introduction::Named(identity) => {
                if account.identity.as_ref() != Some(&identity) {
                    self.commit(Change::AccountIdentified { account: account_id, identity: identity.clone() });
                }
                self.commit(Change::RuntimeReady { runtime: id, version, identity: Some(identity) });
            }
            Introduction::Unnamed => self.commit(Change::RuntimeReady { runtime: id, version, identity: None }),
            // The epoch that follows makes this runtime stale, and that is what stops it.
            Introduction::Stranger if seen == Observation::NoOne && account.kind == AccountKind::ApiKey => {
                self.rejected(account_id, signed_out());
                return;
            }
            Introduction::Stranger => {
                self.observe(credential, seen);
                self.retire(id, AfterStop::Nothing);
                return;
            }
            Introduction::Failed => {
                self.retire(id, AfterStop::Nothing);
                return;
            }
        }
        if self.state.providers.get(&provider).is_some_and(|p| p.models.is_empty()) {
            self.ask(Effect::Command { runtime: id, command: AgentCommand::ListModels });
        }
        self.ask(Effect::Command { runtime: id, command: AgentCommand::ReadRateLimits });
    }

    /// Nothing is left of a start that failed.
    pub(crate) fn runtime_start_failed(&mut self, id: RuntimeId, failure: Failure) {
        let Some(runtime) = self.state.runtimes.get(&id).cloned() else { return };
        self.commit(Change::RuntimeRemoved { runtime: id, at: self.now.wall, failure: Some(failure.clone()) });
        if failure.class == FailureClass::KeychainLocked {
            self.keychain_seen(Keychain::Locked);
        } else if failure.class == FailureClass::KeychainAbsent {
            self.keychain_seen(Keychain::Absent { why: failure.message });
        } else if failure.class == FailureClass::SignedOut {
            if !self.rules.is_stale(&self.state, id, &runtime) {
                self.observe(runtime.credential, Observation::NoOne);
            }
        } else if runtime.phase == Phase::Starting {
            self.count_failure(&runtime, failure);
        }
        self.let_go(id);
    }

    /// The process tree is proven gone: its turns get their end, its sessions are free.
    pub(crate) fn runtime_gone(&mut self, id: RuntimeId, closed: Option<TransportRecord>) {
        let Some(runtime) = self.state.runtimes.get(&id).cloned() else { return };
        let turns: Vec<_> = derive::open_turns_on(&self.state, id).map(|(turn, _)| turn).collect();
        // Nobody minds the end of a process that nobody needed.
        let needed = !turns.is_empty()
            || runtime.phase == Phase::Starting
            || self.holds(id).iter().any(|s| self.state.sessions.get(s).is_some_and(|s| derive::needs_runtime(&self.state, s)));
        for turn in turns {
            self.turn_lost_its_runtime(turn, &runtime, closed.as_ref());
        }
        self.let_go(id);
        let failure = end_of(&runtime, closed.as_ref());
        self.commit(Change::RuntimeRemoved { runtime: id, at: self.now.wall, failure });
        match &runtime.phase {
            Phase::Retiring { then: AfterStop::CountFailure(failure) } => self.count_failure(&runtime, failure.clone()),
            Phase::Starting | Phase::Ready if needed => self.count_failure(&runtime, ended_by_itself(closed.as_ref())),
            Phase::Starting | Phase::Ready | Phase::Orphan => {}
            Phase::Retiring { then: AfterStop::Nothing | AfterStop::Quit } => {}
        }
    }

    /// A command got no usable answer. What the agent holds of that session can be told only once it is gone.
    pub(crate) fn runtime_faulted(&mut self, id: RuntimeId, session: SessionId, failure: Failure) {
        let Some(entry) = self.state.sessions.get(&session) else { return };
        if entry.attachment == (Attachment::Releasing { runtime: id }) && self.release_is_tried_again(session, &failure) {
            return;
        }
        let Some(entry) = self.state.sessions.get(&session) else { return };
        let in_doubt = match entry.attachment {
            Attachment::Opening { runtime } | Attachment::Releasing { runtime } => runtime == id,
            Attachment::Open { .. } | Attachment::Detached => false,
        };
        let unanswered = derive::open_turns_of(&self.state, session)
            .any(|(_, t)| t.runtime == id && t.state == crate::state::TurnState::Dispatched);
        let sound = self.state.runtimes.get(&id).is_some_and(|r| r.fault.is_none() && derive::is_live(r));
        if (in_doubt || unanswered) && sound {
            self.commit(Change::RuntimeFaulted { runtime: id, failure });
        }
    }

    /// A clean-up that failed waits a little longer each time, while the process goes on serving others. False when that
    /// was tried often enough: then only the end of the process is left.
    fn release_is_tried_again(&mut self, session: SessionId, failure: &Failure) -> bool {
        let Some(entry) = self.state.sessions.get(&session) else { return false };
        let delay = entry.open_delay;
        if delay.tries >= RELEASE_TRIES || matches!(failure.class, FailureClass::TransportClosed(_)) {
            return false;
        }
        // What went wrong first stays said, and this beside it.
        if let Some(first) = entry.open_failure.clone().filter(|_| delay.tries == 0) {
            let detail = first.detail.iter().map(String::as_str).chain(["It could not be closed either:", &failure.message]);
            let failure = Failure { detail: Some(detail.collect::<Vec<_>>().join("\n")), ..first };
            self.commit(Change::SessionOpenFailed { session, failure: Some(failure) });
        }
        let wait = RELEASE_DELAY.saturating_mul(1 << delay.tries);
        let delay = OpenDelay { tries: delay.tries + 1, not_before: self.now.boot.saturating_add(wait) };
        self.commit(Change::OpenDelayed { session, delay });
        true
    }

    /// A person put this session away: a process that was started or kept for it alone is stopped, whatever it is just
    /// being asked. What its answer would have opened is closed with it.
    pub(crate) fn leave_alone(&mut self, session: SessionId) {
        let Some(entry) = self.state.sessions.get(&session) else { return };
        let (provider, held) = (entry.provider.clone(), derive::held_by(entry));
        let others = |id: RuntimeId| {
            let holds = |s: &crate::state::Session| !s.archived && derive::held_by(s) == Some(id);
            self.state.sessions.values().any(holds)
        };
        let wanted = self.live.iter().filter_map(|id| self.state.sessions.get(id)).any(|s| {
            let needs = derive::needs_runtime(&self.state, s);
            s.provider == provider && needs
        });
        let left = |(id, r): &(&RuntimeId, &Runtime)| {
            let its = held == Some(**id) || r.phase == Phase::Starting;
            r.provider == provider && r.session.is_none() && its && !derive::is_busy(&self.state, **id) && !others(**id)
        };
        let left: Vec<_> = self.state.runtimes.iter().filter(left).map(|(id, _)| *id).collect();
        for runtime in left.into_iter().filter(|_| !wanted) {
            self.retire(runtime, AfterStop::Nothing);
        }
    }

    /// Its transport is closed: whatever it holds waits for the proof of its end, and nothing more is sent to it.
    pub(crate) fn runtime_closes(&mut self, id: RuntimeId, failure: &Failure) {
        if self.state.runtimes.get(&id).is_some_and(|r| r.fault.is_none() && derive::is_live(r)) {
            self.commit(Change::RuntimeFaulted { runtime: id, failure: failure.clone() });
        }
    }

    pub(crate) fn retire(&mut self, runtime: RuntimeId, then: AfterStop) {
        if self.state.runtimes.get(&runtime).is_some_and(derive::is_live) {
            self.commit(Change::RuntimePhased { runtime, phase: Phase::Retiring { then } });
        }
    }

    /// No failed start of this session's own processes speaks against the next one.
    pub(crate) fn forgive_session(&mut self, session: SessionId) {
        let Some(entry) = self.state.sessions.get(&session) else { return };
        let (restarts, delay) = (entry.restarts != Restarts::default(), entry.open_delay != OpenDelay::default());
        if restarts {
            self.commit(Change::RestartsCounted { session, restarts: Restarts::default() });
        }
        if delay {
            self.commit(Change::OpenDelayed { session, delay: OpenDelay::default() });
        }
    }

    pub(crate) fn keychain_seen(&mut self, keychain: Keychain) {
        if self.state.keychain != keychain {
            self.commit(Change::KeychainSeen { keychain });
        }
    }

    /// The sessions that are attached to a runtime.
    fn holds(&self, runtime: RuntimeId) -> Vec<SessionId> {
        self.state.sessions.iter().filter(|(_, s)| derive::held_by(s) == Some(runtime)).map(|(id, _)| *id).collect()
    }

    fn let_go(&mut self, runtime: RuntimeId) {
        for session in self.holds(runtime) {
            self.commit(Change::SessionAttached { session, attachment: Attachment::Detached });
        }
    }

    /// Three in a minute are enough; before that, each is waited for a little longer.
    fn count_failure(&mut self, runtime: &Runtime, failure: Failure) {
        // What happens to an old account's process says nothing about the next one.
        if derive::is_stale(&self.state, runtime) {
            return;
        }
        let counted = match runtime.session {
            Some(session) => self.state.sessions.get(&session).map(|s| s.restarts.clone()),
            None => self.state.accounts.get(&runtime.account).map(|a| a.restarts.clone()),
        };
        let Some(mut restarts) = counted else { return };
        let now = self.now.boot;
        restarts.failures.retain(|at| at.saturating_add(RESTART_WINDOW) > now);
        restarts.failures.push(now);
        match RESTART_DELAYS.get(restarts.failures.len() - 1) {
            Some(delay) => restarts.not_before = now + delay,
            None => restarts.given_up = Some(failure),
        }
        self.commit(match runtime.session {
            Some(session) => Change::RestartsCounted { session, restarts },
            None => Change::AccountRestartsCounted { account: runtime.account, restarts },
        });
    }
}

fn signed_out() -> Failure {
    Failure {
        class: FailureClass::SignedOut,
        message: "The provider does not accept the key. Sign in again.".to_owned(),
        detail: None,
    }
}

/// What is kept of a process that was not simply stopped.
fn end_of(runtime: &Runtime, closed: Option<&TransportRecord>) -> Option<Failure> {
    match (&runtime.phase, closed) {
        (Phase::Retiring { then: AfterStop::CountFailure(failure) }, None) => Some(failure.clone()),
        (_, Some(record)) => Some(Failure {
            class: FailureClass::TransportClosed(Box::new(record.clone())),
            message: "The agent's process ended by itself.".to_owned(),
            detail: None,
        }),
        (Phase::Starting | Phase::Ready, None) => Some(ended_by_itself(None)),
        (Phase::Retiring { .. } | Phase::Orphan, None) => None,
    }
}

fn ended_by_itself(closed: Option<&TransportRecord>) -> Failure {
    Failure {
        class: FailureClass::StartFailed,
        message: "The agent's process ended by itself. Its last words may say why.".to_owned(),
        detail: closed.map(|record| record.stderr.join("\n")).filter(|text| !text.is_empty()),
    }
}
