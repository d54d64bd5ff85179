//! What a person should see outside the window: one notification for one fact, under a key of its own.
//!
//! Muted, or of a kind that is switched off, a fact raises none. Quiet hours need the local time, and the session that
//! one is looking at needs the window: both are for the shell, which then shows nothing and reports the key as shown.

use crate::{
    change::Change,
    effect::Effect,
    ids::{SessionId, TurnId},
    port::{FailureClass, TurnOutcome},
    rules::Rules,
    state::{AccountProblem, Notification, NotificationKind, NotificationState, State},
    supervisor::Supervisor,
};

/// The key of what is told of a turn's silence.
pub(crate) fn quiet_key(turn: TurnId) -> String {
    format!("turn {turn} quiet")
}

/// The notification that a change calls for, with its key. `state` is what was true before it; `now` is in Unix
/// milliseconds.
#[must_use]
pub fn notification(state: &State, change: &Change, now: i64) -> Option<(String, NotificationKind, Option<SessionId>)> {
    if state.settings.muted || state.settings.muted_until.is_some_and(|until| now < until) {
        return None;
    }
    let failures = state.settings.notify_failures;
    if let Change::TurnEnded { turn, outcome, .. } = change {
        let session = Some(state.turns.get(turn)?.session);
        let turn = *turn;
        return match outcome {
            TurnOutcome::Completed if state.settings.notify_completed => {
                Some((format!("turn {turn} completed"), NotificationKind::TurnCompleted { turn }, session))
            }
            // The loss of the account is told by itself.
            TurnOutcome::Failed(failure) if failures && failure.class != FailureClass::SignedOut => {
                Some((format!("turn {turn} failed"), NotificationKind::TurnFailed { turn, failure: failure.clone() }, session))
            }
            TurnOutcome::Lost if failures => Some((format!("turn {turn} failed"), NotificationKind::TurnLost { turn }, session)),
            TurnOutcome::Unknown if failures => {
                Some((format!("turn {turn} unknown"), NotificationKind::OutcomeUnknown { turn }, session))
            }
            TurnOutcome::Completed
            | TurnOutcome::Failed(_)
            | TurnOutcome::Lost
            | TurnOutcome::Unknown
            | TurnOutcome::Interrupted => None,
        };
    }
    if let Change::TurnQuieted { turn, .. } = change {
        let session = Some(state.turns.get(turn)?.session);
        return failures.then(|| (quiet_key(*turn), NotificationKind::TurnQuiet { turn: *turn }, session));
    }
    if let Change::ApprovalRequested { approval, entry } = change {
        let kind = NotificationKind::ApprovalNeeded { approval: *approval };
        return state.settings.notify_approvals.then(|| (format!("approval {approval}"), kind, Some(entry.session)));
    }
    if let Change::AccountTroubled { account, problem: Some(problem) } = change
        && matches!(problem, AccountProblem::Rejected(_) | AccountProblem::ItemMissing | AccountProblem::SignedOutElsewhere)
    {
        let entry = state.accounts.get(account)?;
        // Nobody is signed out who never was signed in.
        let known = entry.identity.is_some() || entry.verified_at.is_some() || matches!(problem, AccountProblem::Rejected(_));
        if !known {
            return None;
        }
        let provider = entry.provider.clone();
        let epoch = state.providers.get(&provider)?.epoch;
        let kind = NotificationKind::SignedOut { provider, account: *account };
        return state.settings.notify_sign_outs.then(|| (format!("signed out {account} {epoch}"), kind, None));
    }
    // What a process or a session was given up for. The position of the fact makes the key unique.
    let (provider, failure, session) = if let Change::AccountRestartsCounted { account, restarts } = change {
        (state.accounts.get(account)?.provider.clone(), restarts.given_up.clone()?, None)
    } else if let Change::RestartsCounted { session, restarts } = change {
        (state.sessions.get(session)?.provider.clone(), restarts.given_up.clone()?, Some(*session))
    } else if let Change::SessionOpenFailed { session, failure: Some(failure) } = change {
        // More about a failure that was told is no news.
        if state.sessions.get(session)?.open_failure.is_some() {
            return None;
        }
        (state.sessions.get(session)?.provider.clone(), failure.clone(), Some(*session))
    } else {
        return None;
    };
    failures.then(|| (format!("given up {}", state.seq), NotificationKind::RuntimeFailed { provider, failure }, session))
}

impl<R: Rules> Supervisor<R> {
    /// See [`notification`].
    pub(crate) fn notification_of(&self, change: &Change) -> Option<(String, Notification)> {
        let (key, kind, session) = notification(&self.state, change, self.now.wall)?;
        Some((key, Notification { kind, session, state: NotificationState::Raised, at: self.now.wall }))
    }

    pub(crate) fn dismiss(&mut self, key: String) {
        if self.state.notifications.contains_key(&key) {
            self.commit(Change::NotificationDismissed { key: key.clone() });
            self.ask(Effect::CloseNotification { key });
        }
    }

    pub(crate) fn close_notifications(&mut self, of: impl Fn(&NotificationKind) -> bool) {
        let keys: Vec<_> = self.state.notifications.iter().filter(|(_, n)| of(&n.kind)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.dismiss(key);
        }
    }

    /// The person looks at the session: nothing of it has to be told any more, but what it waits for.
    pub(crate) fn mark_read(&mut self, session: SessionId) {
        if self.state.sessions.get(&session).is_some_and(|s| s.unread) {
            self.commit(Change::SessionRead { session, at: self.now.wall });
        }
        let told = |n: &Notification| n.session == Some(session) && !matches!(n.kind, NotificationKind::ApprovalNeeded { .. });
        let keys: Vec<_> = self.state.notifications.iter().filter(|(_, n)| told(n)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.dismiss(key);
        }
    }

    /// The person turns to something else, having seen what was there.
    pub(crate) fn seen(&mut self, session: SessionId) {
        if self.state.sessions.get(&session).is_some_and(|s| s.unread || s.seen_at < s.active_at || s.turn.is_some()) {
            self.commit(Change::SessionRead { session, at: self.now.wall });
        }
    }

    /// Whether the agent of this session is capable of something.
    pub(crate) fn capable(&self, session: SessionId, of: impl Fn(&crate::port::Capabilities) -> bool) -> bool {
        let provider = self.state.sessions.get(&session).and_then(|s| self.state.providers.get(&s.provider));
        provider.is_some_and(|p| of(&p.capabilities))
    }
}
