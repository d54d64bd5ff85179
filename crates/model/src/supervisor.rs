//! The machine: an input in, facts and wishes out. It looks at no clock, waits for nothing, and never copies its state.

use std::collections::BTreeSet;

use crate::{
    apply,
    change::Change,
    clocks::Clocks,
    derive,
    effect::Effect,
    ids::SessionId,
    input::Input,
    notify::quiet_key,
    rules::{Rules, Sound},
    state::{ApprovalState, Keychain, NotificationState, Now, Phase, Restarts, State},
};

/// What one input led to. The changes are to be committed before any of the effects is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    pub changes: Vec<Change>,
    pub effects: Vec<Effect>,
}

/// Decides what happens next.
#[derive(Clone, Debug)]
pub struct Supervisor<R: Rules = Sound> {
    pub(crate) state: State,
    pub(crate) rules: R,
    pub(crate) now: Now,
    /// The sessions of which a rule could want something.
    pub(crate) live: BTreeSet<SessionId>,
    /// Keys of what is wanted and was asked for in this run of the application.
    pub(crate) asked: BTreeSet<String>,
    pub(crate) clocks: Clocks,
    pub(crate) step: Step,
}

impl Supervisor {
    /// The machine in this state. [`Self::recover`] comes first if the state is of an earlier run.
    #[must_use]
    pub fn new(state: State) -> Self {
        Self::with_rules(state, Sound)
    }

    /// Made anew from all that this one knows, which is its state and its clocks.
    #[must_use]
    pub fn remade(&self) -> Self {
        Self { clocks: self.clocks.clone(), ..Self::new(self.state.clone()) }
    }
}

impl<R: Rules> Supervisor<R> {
    /// The machine in this state, by these rules.
    #[must_use]
    pub fn with_rules(state: State, rules: R) -> Self {
        let live = state.sessions.iter().filter(|(_, s)| derive::matters(s)).map(|(id, _)| *id).collect();
        Self { state, rules, now: Now::default(), live, asked: BTreeSet::new(), clocks: Clocks::default(), step: Step::default() }
    }

    /// What is true.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The rules in force.
    #[must_use]
    pub fn rules(&self) -> &R {
        &self.rules
    }

    /// Takes an input in; the state has the returned changes already.
    pub fn handle(&mut self, now: Now, input: Input) -> Step {
        self.now = now;
        self.take(input);
        self.settle();
        std::mem::take(&mut self.step)
    }

    /// Takes several inputs in, as one step.
    pub fn handle_all(&mut self, now: Now, inputs: impl IntoIterator<Item = Input>) -> Step {
        let mut whole = Step::default();
        for input in inputs {
            let step = self.handle(now, input);
            whole.changes.extend(step.changes);
            whole.effects.extend(step.effects);
        }
        whole
    }

    /// Comes to terms with what an earlier run left behind. To be called once, before any input.
    ///
    /// Processes become orphans to be found and stopped; their turns and sessions stay with them until then. A connection
    /// to a server is gone at once. What is counted in boot time starts anew.
    pub fn recover(&mut self, now: Now) -> Step {
        self.now = now;
        self.commit(Change::Recovered);
        if self.state.keychain != Keychain::Unknown {
            self.commit(Change::KeychainSeen { keychain: Keychain::Unknown });
        }
        for runtime in self.state.runtimes.keys().copied().collect::<Vec<_>>() {
            self.commit(Change::RuntimePhased { runtime, phase: Phase::Orphan });
        }
        // A connection ended with the application that held it, and its server is nobody's to look for.
        let servers = self.state.runtimes.iter().filter(|(_, r)| derive::server(&self.state, r).is_some());
        for runtime in servers.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.runtime_gone(runtime, None);
        }
        for approval in self.approvals(|a| a.state == ApprovalState::Pending) {
            self.withdraw(approval);
        }
        for sign_in in self.state.sign_ins.keys().copied().collect::<Vec<_>>() {
            self.close_sign_in(sign_in);
        }
        for account in self.state.accounts.keys().copied().collect::<Vec<_>>() {
            self.forgive_account(account);
        }
        let delayed = |s: &crate::state::Session| s.restarts != Restarts::default() || s.open_delay != Default::default();
        for session in self.state.sessions.iter().filter(|(_, s)| delayed(s)).map(|(id, _)| *id).collect::<Vec<_>>() {
            self.forgive_session(session);
        }
        for credential in self.state.credentials.iter().filter(|(_, c)| c.not_before > 0).map(|(id, _)| *id).collect::<Vec<_>>() {
            self.commit(Change::RevocationDelayed { credential, not_before: 0 });
        }
        for (key, notification) in &self.state.notifications {
            if notification.state == NotificationState::Raised {
                self.step.effects.push(Effect::Notify { key: key.clone() });
            }
        }
        self.settle();
        std::mem::take(&mut self.step)
    }

    /// When to send [`Input::Tick`], in boot milliseconds: later than the last input, or never.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let state = &self.state;
        let quit = state.quit.and_then(|q| q.deadline).into_iter().flat_map(|d| [d, d + crate::settle::INTERRUPT_GRACE]);
        let sign_ins = state.sign_ins.values().filter(|s| s.failure.is_none() && !s.cancelling).map(|s| s.deadline);
        let accounts = state.accounts.values().map(|a| a.restarts.not_before);
        let credentials = state.credentials.values().filter(|c| c.owed_revocation).map(|c| c.not_before);
        let sessions = self.live.iter().filter_map(|id| state.sessions.get(id));
        let sessions = sessions.flat_map(|s| [s.open_delay.not_before, s.restarts.not_before]);
        let clocks = self.silences().into_iter().map(|(_, at)| at).chain(self.idle_ends().into_iter().map(|(_, at)| at));
        quit.chain(sign_ins)
            .chain(clocks)
            .chain(accounts)
            .chain(credentials)
            .chain(sessions)
            .filter(|at| *at > self.now.boot)
            .min()
    }

    /// Makes it a fact.
    pub(crate) fn commit(&mut self, change: Change) {
        let touched = session_of(&self.state, &change);
        let notification = self.notification_of(&change);
        apply(&mut self.state, &change);
        self.rules.note(&self.state, &change);
        if let Some(id) = touched {
            if self.state.sessions.get(&id).is_some_and(derive::matters) {
                self.live.insert(id);
            } else {
                self.live.remove(&id);
            }
        }
        if let Change::TurnHeard { turn }
        | Change::TurnEnded { turn, .. }
        | Change::TurnReturned { turn }
        | Change::TurnPhased { turn, .. } = &change
        {
            let key = quiet_key(*turn);
            self.step.changes.push(change);
            self.dismiss(key);
        } else {
            self.step.changes.push(change);
        }
        if let Some((key, entry)) = notification {
            self.commit(Change::NotificationRaised { key: key.clone(), entry });
            self.ask(Effect::Notify { key });
        }
    }

    /// Wishes it.
    pub(crate) fn ask(&mut self, effect: Effect) {
        self.step.effects.push(effect);
    }
}

/// The session of which a change could make [`derive::matters`] another answer.
fn session_of(state: &State, change: &Change) -> Option<SessionId> {
    if let Change::SessionCreated { session, .. }
    | Change::SessionAttached { session, .. }
    | Change::SessionArchived { session, .. }
    | Change::GoalSet { session, .. }
    | Change::GoalHeld { session, .. }
    | Change::HistoryRead { session, .. }
    | Change::ThreadNamed { session, .. }
    | Change::MessageQueued { session, .. }
    | Change::MessageRemoved { session, .. }
    | Change::UndecidedSettled { session, .. }
    | Change::UnknownResolved { session, .. } = change
    {
        return Some(*session);
    }
    if let Change::TurnDispatched { entry, .. } = change {
        return Some(entry.session);
    }
    if let Change::TurnEnded { turn, .. } | Change::TurnReturned { turn } | Change::SteerReturned { turn, .. } = change {
        return state.turns.get(turn).map(|t| t.session);
    }
    None
}
