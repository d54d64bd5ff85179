//! One session as a row and a header: in which group it is, what it does, and what it waits for.

use super::{
    AccountProblem, Attachment, Facts, Phase, ProviderId, SessionId, State, TurnId, TurnOutcome, count, derive, display, dto,
    parts, port, state, words,
};

/// What a message of this session may begin with. Of one that was never opened nothing was told: then it is what the
/// latest of the same agent's has, if possible in the same folder.
#[must_use]
pub fn commands(state: &State, id: SessionId) -> Vec<dto::OfferedCommand> {
    let Some(session) = state.sessions.get(&id) else { return Vec::new() };
    let of_provider = |other: &&state::Session| other.provider == session.provider && !other.commands.is_empty();
    let nearest = || {
        let near = |other: &&state::Session| (other.folder == session.folder, other.active_at);
        state.sessions.values().filter(of_provider).max_by_key(near)
    };
    let of = Some(session).filter(|session| !session.commands.is_empty() || session.thread.is_some()).or_else(nearest);
    let offered = of.into_iter().flat_map(|session| &session.commands);
    // What is typed is what is shown.
    let shows = |command: &&port::OfferedCommand| display::visible(&command.name) == command.name;
    offered
        .filter(shows)
        .map(|command| dto::OfferedCommand {
            name: command.name.clone(),
            description: display::one_line(&command.description, 200),
            hint: display::one_line(&command.hint, 80),
        })
        .collect()
}

/// All sessions in the order of the list: needs you and running oldest first, finished with failures first and then the
/// newest, idle last used first.
pub(super) fn sessions(facts: &Facts<'_>) -> Vec<dto::Session> {
    let mut all: Vec<_> =
        facts.state.sessions.iter().map(|(&id, entry)| (order(facts.state, id, entry), session(facts, id, entry))).collect();
    all.sort_by_key(|(order, _)| *order);
    all.into_iter().map(|(_, session)| session).collect()
}

fn order(state: &State, id: SessionId, session: &state::Session) -> (dto::Group, bool, i64, SessionId) {
    let group = group(state, id, session);
    let (calm, moment) = match group {
        dto::Group::NeedsYou => (false, asked_at(state, id).unwrap_or(session.active_at)),
        dto::Group::Running => (false, turn(state, session).map_or(session.active_at, |(_, turn)| turn.started_at)),
        dto::Group::Finished => (!failed(session), session.active_at.saturating_neg()),
        dto::Group::Idle => (false, session.active_at.saturating_neg()),
    };
    (group, calm, moment, id)
}

/// Where the session stands in the list. It stands in exactly one place.
#[must_use]
pub fn group(state: &State, id: SessionId, session: &state::Session) -> dto::Group {
    if session.archived {
        return dto::Group::Idle;
    }
    match status(state, id, session) {
        dto::SessionStatus::NeedsApproval { .. } | dto::SessionStatus::OutcomeUnknown => dto::Group::NeedsYou,
        dto::SessionStatus::Failed if stuck(state, session).is_some() => dto::Group::NeedsYou,
        dto::SessionStatus::Running | dto::SessionStatus::Starting => dto::Group::Running,
        _ if session.unread => dto::Group::Finished,
        dto::SessionStatus::Idle
        | dto::SessionStatus::Failed
        | dto::SessionStatus::SignedOut
        | dto::SessionStatus::KeychainLocked => dto::Group::Idle,
    }
}

fn session(facts: &Facts<'_>, id: SessionId, session: &state::Session) -> dto::Session {
    let state = facts.state;
    let provider = state.providers.get(&session.provider);
    let turn = turn(state, session);
    let account = turn.map(|(_, turn)| turn.account).or_else(|| provider.and_then(|provider| provider.current));
    dto::Session {
        id: id.to_string(),
        provider: session.provider.to_string(),
        title: session.title.clone(),
        folder: session.folder.clone(),
        group: group(state, id, session),
        status: status(state, id, session),
        account: account.map(|account| account.to_string()),
        on_old_account: turn.zip(provider).is_some_and(|((_, turn), provider)| turn.epoch != provider.epoch),
        preview: preview(facts, id, session),
        unread: session.unread,
        seen_at: session.seen_at,
        reading_history: session.history_owed,
        archived: session.archived,
        can_fork: derive::can_fork(state, id),
        active_at: session.active_at,
        turn: turn.map(|(id, turn)| dto::Turn {
            id: id.to_string(),
            started_at: turn.started_at,
            dispatched: turn.state == state::TurnState::Dispatched,
            retrying: turn.retrying.clone(),
            interrupting: turn.interrupting,
            text: turn.text.clone(),
            steers: turn.steers.iter().map(parts::queued).collect(),
            quiet: turn
                .quiet
                .as_ref()
                .map(|quiet| dto::Quiet { since: quiet.since, command: quiet.command.as_deref().map(display::visible) }),
        }),
        last_turn: session.last_turn.as_ref().map(|ended| {
            let (outcome, failure) = parts::outcome(&ended.outcome);
            dto::EndedTurn {
                id: ended.turn.to_string(),
                outcome,
                failure,
                started_at: ended.started_at,
                ended_at: ended.ended_at,
            }
        }),
        queue: session.queue.iter().map(parts::queued).collect(),
        undecided: session.undecided.iter().map(parts::queued).collect(),
        waits_for: waits_for(facts, session),
        goal: session.goal.as_ref().map(parts::goal),
        plan: session.plan.iter().map(parts::plan_step).collect(),
        usage: parts::usage(&session.usage),
        settings: parts::session_settings(&session.settings),
        failure: stuck(state, session).map(parts::failure),
    }
}

fn turn<'a>(state: &'a State, session: &state::Session) -> Option<(TurnId, &'a state::Turn)> {
    let id = session.turn?;
    Some((id, state.turns.get(&id)?))
}

fn pending(state: &State, id: SessionId) -> impl Iterator<Item = &state::Approval> {
    state.approvals.values().filter(move |a| a.session == id && a.state == state::ApprovalState::Pending)
}

fn asked_at(state: &State, id: SessionId) -> Option<i64> {
    pending(state, id).map(|approval| approval.asked_at).min()
}

/// The last turn ended badly, in a way that says nothing about the next.
fn failed(session: &state::Session) -> bool {
    matches!(
        session.last_turn.as_ref().map(|ended| &ended.outcome),
        Some(TurnOutcome::Failed(_) | TurnOutcome::Lost | TurnOutcome::Unknown)
    )
}

/// A message of this session, or its last turn, may or may not have reached the agent: a person must say what now.
fn undecided(session: &state::Session) -> bool {
    !session.undecided.is_empty()
}

/// Why nothing goes on here until a person asks for another try.
pub(crate) fn stuck<'a>(state: &'a State, session: &'a state::Session) -> Option<&'a port::Failure> {
    let own = session.open_failure.as_ref().or(session.restarts.given_up.as_ref());
    own.or_else(|| {
        let current = state.providers.get(&session.provider)?.current?;
        // The account's processes are missed only by a session that has something to do.
        state.accounts.get(&current)?.restarts.given_up.as_ref().filter(|_| wants_work(session))
    })
}

/// What the session would do next if it could: a message, or a goal.
fn wants_work(session: &state::Session) -> bool {
    !session.queue.is_empty() || session.goal.as_ref().is_some_and(|goal| goal.status == port::GoalStatus::Active)
}

fn status(state: &State, id: SessionId, session: &state::Session) -> dto::SessionStatus {
    let asked = pending(state, id).count();
    if asked > 0 {
        return dto::SessionStatus::NeedsApproval { count: count(asked) };
    }
    if session.turn.is_some() {
        return dto::SessionStatus::Running;
    }
    if undecided(session) {
        return dto::SessionStatus::OutcomeUnknown;
    }
    if stuck(state, session).is_some() {
        return dto::SessionStatus::Failed;
    }
    if wants_work(session) {
        match sign_in(state, &session.provider) {
            SignedIn::No | SignedIn::Rejected => return dto::SessionStatus::SignedOut,
            SignedIn::Locked => return dto::SessionStatus::KeychainLocked,
            SignedIn::Yes if matches!(session.attachment, Attachment::Opening { .. }) => return dto::SessionStatus::Starting,
            SignedIn::Yes if !session.queue.is_empty() && state.quit.is_none() => return dto::SessionStatus::Starting,
            SignedIn::Yes | SignedIn::NoKeychain | SignedIn::Troubled => {}
        }
    }
    if failed(session) && session.unread { dto::SessionStatus::Failed } else { dto::SessionStatus::Idle }
}

/// Whether the provider's current account can be worked with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SignedIn {
    Yes,
    No,
    Rejected,
    Locked,
    NoKeychain,
    Troubled,
}

fn sign_in(state: &State, provider: &ProviderId) -> SignedIn {
    let current = state.providers.get(provider).and_then(|provider| provider.current);
    let Some(account) = current.and_then(|id| state.accounts.get(&id)) else { return SignedIn::No };
    match &account.problem {
        Some(AccountProblem::Rejected(_)) => SignedIn::Rejected,
        Some(AccountProblem::ItemMissing | AccountProblem::SignedOutElsewhere) => SignedIn::No,
        Some(AccountProblem::KeychainLocked) => SignedIn::Locked,
        Some(AccountProblem::KeychainAbsent) => SignedIn::NoKeychain,
        Some(AccountProblem::Other(_)) => SignedIn::Troubled,
        None if account.credential.is_none() => SignedIn::No,
        None if derive::needs_keychain(&account.kind) && state.keychain == state::Keychain::Locked => SignedIn::Locked,
        None => SignedIn::Yes,
    }
}

/// The first thing that keeps a waiting message from its agent.
fn waits_for(facts: &Facts<'_>, session: &state::Session) -> Option<String> {
    if session.queue.is_empty() {
        return None;
    }
    let state = facts.state;
    let provider = facts.provider_name(&session.provider);
    if state.quit.is_some() {
        return Some(words::WAITS_FOR_QUIT.to_owned());
    }
    if let Some((_, turn)) = turn(state, session) {
        let probing = turn.state == state::TurnState::Probing;
        return Some(if probing { words::WAITS_FOR_PROBE } else { words::WAITS_FOR_TURN }.to_owned());
    }
    if undecided(session) {
        return Some(words::WAITS_FOR_DECISION.to_owned());
    }
    if stuck(state, session).is_some() {
        return Some(words::WAITS_FOR_TRY_AGAIN.to_owned());
    }
    let missing = |entry: &state::Provider| matches!(entry.installed, state::Installed::Missing { .. });
    // A server that somebody else started needs no program here.
    let served = derive::current_account(state, &session.provider).is_some_and(|(_, account)| account.kind.server().is_some());
    if !served && state.providers.get(&session.provider).is_some_and(missing) {
        return Some(words::waits_for_install(provider));
    }
    Some(match sign_in(state, &session.provider) {
        SignedIn::No => words::WAITS_FOR_SIGN_IN.to_owned(),
        SignedIn::Rejected => words::waits_for_acceptance(provider),
        SignedIn::Locked => words::WAITS_FOR_UNLOCK.to_owned(),
        SignedIn::NoKeychain => words::WAITS_FOR_KEYCHAIN.to_owned(),
        SignedIn::Troubled => words::waits_for_trouble(provider),
        SignedIn::Yes if held_by_old(state, session) => words::WAITS_FOR_OLD_ACCOUNT.to_owned(),
        SignedIn::Yes if session.open_delay.not_before > facts.now.boot => words::WAITS_FOR_THREAD.to_owned(),
        SignedIn::Yes if restarts_at(state, session) > facts.now.boot => words::WAITS_FOR_RESTART.to_owned(),
        SignedIn::Yes => words::waits_for_start(provider),
    })
}

/// Boot milliseconds before which no process is started for it.
fn restarts_at(state: &State, session: &state::Session) -> u64 {
    let current = state.providers.get(&session.provider).and_then(|provider| provider.current);
    let account = current.and_then(|id| state.accounts.get(&id)).map_or(0, |account| account.restarts.not_before);
    account.max(session.restarts.not_before)
}

/// Whether a process of an earlier sign-in, or one that is being stopped, still holds the session.
fn held_by_old(state: &State, session: &state::Session) -> bool {
    let runtime = match session.attachment {
        Attachment::Detached => return false,
        Attachment::Releasing { .. } => return true,
        Attachment::Opening { runtime } | Attachment::Open { runtime } => state.runtimes.get(&runtime),
    };
    let epoch = state.providers.get(&session.provider).map(|provider| provider.epoch);
    runtime.is_some_and(|runtime| Some(runtime.epoch) != epoch || matches!(runtime.phase, Phase::Retiring { .. } | Phase::Orphan))
}

/// One line: what waits for a person, else what goes on, else what was said last.
fn preview(facts: &Facts<'_>, id: SessionId, session: &state::Session) -> String {
    const LIMIT: usize = 160;
    let state = facts.state;
    if let Some(approval) = pending(state, id).min_by_key(|approval| approval.asked_at) {
        return asks(&approval.ask.body, LIMIT);
    }
    let text = match (turn(state, session), &session.last_turn) {
        (Some((_, state::Turn { retrying: Some(message), .. })), _) => {
            words::retrying(facts.provider_name(&session.provider), message)
        }
        (None, _) if undecided(session) => words::OUTCOME_UNKNOWN.to_owned(),
        (None, _) if stuck(state, session).is_some() => {
            stuck(state, session).map(|failure| failure.message.clone()).unwrap_or_default()
        }
        (None, Some(state::EndedTurn { outcome: TurnOutcome::Failed(failure), .. })) => failure.message.clone(),
        (None, Some(state::EndedTurn { outcome: TurnOutcome::Lost, .. })) => words::LOST.to_owned(),
        _ => session.preview.clone(),
    };
    display::one_line(&text, LIMIT)
}

fn asks(body: &port::AskBody, limit: usize) -> String {
    match body {
        port::AskBody::Command { command, .. } => display::one_line(&words::asks_to_run(&display::visible(command)), limit),
        port::AskBody::FileChange { changes, .. } => words::asks_to_change(changes.len()),
        port::AskBody::Permissions { .. } => words::ASKS_PERMISSIONS.to_owned(),
        port::AskBody::Questions { questions } => {
            display::one_line(&words::asks(questions.first().map_or("", |question| &question.text)), limit)
        }
        port::AskBody::Form { message, .. } => display::one_line(&words::asks(message), limit),
    }
}
