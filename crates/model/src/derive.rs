//! What follows from the facts: computed, never stored.

use std::collections::BTreeMap;

use crate::{
    ids::{AccountId, ProviderId, RuntimeId, ServerAddress, SessionId, TurnId},
    port::{GoalSpec, GoalStatus, Goals},
    state::{
        Account, AccountKind, AccountProblem, ApprovalState, Attachment, Keychain, Phase, Runtime, Session, State, Turn,
        TurnState,
    },
};

/// Started under an epoch that is no longer the current one.
#[must_use]
pub fn is_stale(state: &State, runtime: &Runtime) -> bool {
    state.providers.get(&runtime.provider).is_none_or(|p| p.epoch != runtime.epoch)
}

/// Has a turn that was dispatched to it and has not ended.
#[must_use]
pub fn is_busy(state: &State, runtime: RuntimeId) -> bool {
    open_turns_on(state, runtime).next().is_some()
}

/// The turns that run on this runtime.
pub fn open_turns_on(state: &State, runtime: RuntimeId) -> impl Iterator<Item = (TurnId, &Turn)> {
    state.turns.iter().filter(move |(_, t)| t.runtime == runtime && t.state != TurnState::Probing).map(|(id, t)| (*id, t))
}

/// The turns of this session that have not ended; more than one only if the agent began one by itself.
pub fn open_turns_of(state: &State, session: SessionId) -> impl Iterator<Item = (TurnId, &Turn)> {
    state.turns.iter().filter(move |(_, t)| t.session == session).map(|(id, t)| (*id, t))
}

/// Where the server listens that the runtime is a connection to; `None` for a process of ours. Its credential stays for
/// as long as a runtime uses it.
#[must_use]
pub fn server<'a>(state: &'a State, runtime: &Runtime) -> Option<&'a ServerAddress> {
    state.credentials.get(&runtime.credential)?.kind.server()
}

/// The runtime that holds, opens or lets go of the session.
#[must_use]
pub fn held_by(session: &Session) -> Option<RuntimeId> {
    match session.attachment {
        Attachment::Detached => None,
        Attachment::Opening { runtime } | Attachment::Open { runtime } | Attachment::Releasing { runtime } => Some(runtime),
    }
}

/// Whether the OS keychain is needed to use such an account.
#[must_use]
pub fn needs_keychain(kind: &AccountKind) -> bool {
    match kind {
        AccountKind::ApiKey | AccountKind::PrivateHome => true,
        AccountKind::System | AccountKind::Server { .. } => false,
    }
}

/// Whether the account counts as signed in: it has a credential, and the provider is not known to refuse it (or a person
/// asked to try).
#[must_use]
pub fn is_signed_in(account: &Account) -> bool {
    account.credential.is_some()
        && match &account.problem {
            Some(AccountProblem::Rejected(_) | AccountProblem::ItemMissing | AccountProblem::SignedOutElsewhere) => account.trial,
            Some(AccountProblem::KeychainLocked | AccountProblem::KeychainAbsent | AccountProblem::Other(_)) | None => true,
        }
}

/// Whether a process can be started for the account: signed in, and its credential can be read.
#[must_use]
pub fn can_start(state: &State, account: &Account) -> bool {
    let readable = match state.keychain {
        Keychain::Locked | Keychain::Absent { .. } => !needs_keychain(&account.kind),
        Keychain::Unknown | Keychain::Unlocked => true,
    };
    is_signed_in(account) && readable
}

/// The account that new turns of the provider go to.
#[must_use]
pub fn current_account<'a>(state: &'a State, provider: &ProviderId) -> Option<(AccountId, &'a Account)> {
    let id = state.providers.get(provider)?.current?;
    Some((id, state.accounts.get(&id)?))
}

/// Who drives goals in this session.
#[must_use]
pub fn goals(state: &State, session: &Session) -> Goals {
    state.providers.get(&session.provider).map_or(Goals::None, |p| p.capabilities.goals)
}

/// The goal that makes the next message, if one does.
#[must_use]
pub fn active_goal<'a>(state: &State, session: &'a Session) -> Option<&'a GoalSpec> {
    session.goal.as_ref().filter(|g| g.status == GoalStatus::Active && goals(state, session) != Goals::None)
}

/// Whether the session has something to do for which it must be open, and nothing but an open session is missing.
#[must_use]
pub fn needs_runtime(state: &State, session: &Session) -> bool {
    if session.open_failure.is_some() || state.quit.is_some() {
        return false;
    }
    // What became of a message is found out although its session was put away.
    match session.turn.and_then(|t| state.turns.get(&t)) {
        Some(turn) => turn.state == TurnState::Probing,
        None if session.archived => false,
        None => {
            let wants =
                session.history_owed || is_forking(session) || !session.queue.is_empty() || active_goal(state, session).is_some();
            session.undecided.is_empty() && wants
        }
    }
}

/// Whether it is to be opened as a fork of another thread.
#[must_use]
pub fn is_forking(session: &Session) -> bool {
    session.fork_of.is_some() && session.thread.is_none()
}

/// Whether a fork of it can be made: of what it holds at a moment when nothing is added to that.
#[must_use]
pub fn can_fork(state: &State, id: SessionId) -> bool {
    let Some(session) = state.sessions.get(&id) else { return false };
    let able = state.providers.get(&session.provider).is_some_and(|p| p.capabilities.fork);
    able && session.thread.is_some() && !session.history_owed && open_turns_of(state, id).next().is_none()
}

/// Whether a rule could want anything of the session. The others are not looked at.
#[must_use]
pub(crate) fn matters(session: &Session) -> bool {
    !session.queue.is_empty()
        || session.history_owed
        || is_forking(session)
        || session.turn.is_some()
        || session.goal_held
        || session.goal.as_ref().is_some_and(|g| g.status == GoalStatus::Active)
        || match session.attachment {
            Attachment::Opening { .. } | Attachment::Releasing { .. } => true,
            Attachment::Open { .. } => session.archived,
            Attachment::Detached => false,
        }
}

// ---- what a list shows ---------------------------------------------------------------------

/// What a session is up to, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// A question waits for an answer.
    AwaitsApproval,
    /// Nobody knows whether a message arrived.
    Undecided,
    /// It cannot go on without a person: it cannot be opened, or its process was given up.
    Failed,
    /// The history is being asked about a message.
    Probing,
    Running,
    /// A message or a goal waits, and no account can be used.
    AwaitsSignIn,
    /// A message or a goal waits for a process.
    Waiting,
    /// Ended and not yet looked at.
    Finished,
    Idle,
}

/// How a list groups sessions: by what they need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    NeedsYou,
    Running,
    Finished,
    Idle,
}

impl Status {
    /// The group in which it is listed.
    #[must_use]
    pub fn group(self) -> Group {
        match self {
            Self::AwaitsApproval | Self::Undecided | Self::Failed | Self::AwaitsSignIn => Group::NeedsYou,
            Self::Probing | Self::Running | Self::Waiting => Group::Running,
            Self::Finished => Group::Finished,
            Self::Idle => Group::Idle,
        }
    }
}

/// The most urgent thing that is true of a session. Looks only at open turns and approvals, never at other sessions.
#[must_use]
pub fn status(state: &State, id: SessionId) -> Status {
    let Some(session) = state.sessions.get(&id) else { return Status::Idle };
    if state.approvals.values().any(|a| a.session == id && a.state == ApprovalState::Pending) {
        return Status::AwaitsApproval;
    }
    if !session.undecided.is_empty() {
        return Status::Undecided;
    }
    if session.open_failure.is_some() {
        return Status::Failed;
    }
    if let Some(turn) = session.turn.and_then(|t| state.turns.get(&t)) {
        return if turn.state == TurnState::Probing { Status::Probing } else { Status::Running };
    }
    if !session.archived && (!session.queue.is_empty() || active_goal(state, session).is_some()) {
        let account = current_account(state, &session.provider).map(|(_, a)| a);
        return match account {
            Some(a) if !can_start(state, a) => Status::AwaitsSignIn,
            Some(a) if a.restarts.given_up.is_some() || session.restarts.given_up.is_some() => Status::Failed,
            Some(_) => Status::Waiting,
            None => Status::AwaitsSignIn,
        };
    }
    if session.unread { Status::Finished } else { Status::Idle }
}

/// All sessions that are not archived, by group; within a group the most urgent and then the latest first.
#[must_use]
pub fn groups(state: &State) -> BTreeMap<Group, Vec<SessionId>> {
    let mut all: Vec<_> = state
        .sessions
        .iter()
        .filter(|(_, s)| !s.archived)
        .map(|(id, s)| (status(state, *id), std::cmp::Reverse(s.active_at), *id))
        .collect();
    all.sort_unstable();
    let mut groups = BTreeMap::<Group, Vec<SessionId>>::new();
    for (status, _, id) in all {
        groups.entry(status.group()).or_default().push(id);
    }
    groups
}

/// Whether a runtime is on its way or ready, and not being stopped.
#[must_use]
pub fn is_live(runtime: &Runtime) -> bool {
    match runtime.phase {
        Phase::Starting | Phase::Ready => true,
        Phase::Retiring { .. } | Phase::Orphan => false,
    }
}
