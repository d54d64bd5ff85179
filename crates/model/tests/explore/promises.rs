//! What must be true: in every state, at every action, and at rest.

use std::rc::Rc;

use turnkeep_model::{
    Change, CredentialId, Input, MessageId, RuntimeId, State, TurnId,
    derive::{self, is_busy, is_live, is_stale},
    port::{Sessions, TurnOutcome},
    state::{AccountKind, ApprovalState, Attachment, Delivery, NotificationKind, Phase, TurnState},
};

use crate::world::{Ghost, Meant, Process, World};

/// Something is asked that changes what is promised.
pub(crate) fn asked(state: &State, world: &mut World, input: &Input) {
    if let Input::ResolveUnknown { session, resend } = input
        && let Some(session) = state.sessions.get(session)
    {
        let ghost = Rc::make_mut(&mut world.ghost);
        let decided = session.undecided.iter().map(|m| m.id.clone());
        if *resend { ghost.resent.extend(decided) } else { ghost.done.extend(decided) }
    }
}

/// Follows a committed change. `state` is what is true after its whole step.
pub(crate) fn follow(state: &State, ghost: &mut Ghost, change: &Change, starts: u8) -> Result<(), String> {
    if let Change::MessageQueued { message, .. } | Change::SteerSent { message, .. } = change {
        ghost.accepted.insert(message.id.clone());
    }
    if let Change::SteerDelivered { message, delivery: Delivery::Admitted, .. }
    | Change::UndecidedSettled { message, delivery: Delivery::Admitted, .. }
    | Change::MessageRemoved { message, .. } = change
    {
        ghost.done.insert(message.clone());
    }
    if let Change::TurnDispatched { turn, entry } = change {
        let account = state.accounts.get(&entry.account);
        let meant = Meant {
            account: entry.account,
            credential: account.and_then(|a| a.credential),
            who: account.and_then(|a| a.identity.as_ref()).map(|i| i.fingerprint.clone()),
            message: entry.message.clone(),
        };
        let runtime = state.runtimes.get(&entry.runtime);
        if entry.message.is_some() && runtime.is_none_or(|r| r.phase != Phase::Ready || is_stale(state, r)) {
            return Err("a message went to an old runtime".to_owned());
        }
        if entry.message.is_some() && state.quit.is_some() {
            return Err("a turn began while the application quits".to_owned());
        }
        ghost.open.insert(*turn, meant);
    }
    if let Change::TurnReturned { turn } = change {
        ghost.open.remove(turn);
    }
    if let Change::TurnEnded { turn, outcome, .. } = change {
        let Some(meant) = ghost.open.remove(turn) else { return Err(format!("turn {turn} ended twice")) };
        if *outcome != TurnOutcome::Unknown {
            ghost.done.extend(meant.message);
        }
        if *outcome == TurnOutcome::Completed {
            ghost.completed_by.insert(meant.account);
        }
        ghost.outcomes.insert(match outcome {
            TurnOutcome::Completed => "completed",
            TurnOutcome::Interrupted => "interrupted",
            TurnOutcome::Failed(_) => "failed",
            TurnOutcome::Lost => "lost",
            TurnOutcome::Unknown => "unknown",
        });
    }
    if let Change::NotificationRaised { entry, .. } = change
        && let NotificationKind::TurnCompleted { turn }
        | NotificationKind::TurnFailed { turn, .. }
        | NotificationKind::OutcomeUnknown { turn } = entry.kind
        && !ghost.notified.insert(turn)
    {
        return Err(format!("turn {turn} was told twice"));
    }
    if let Change::TurnQuieted { turn, .. } = change {
        ghost.was_quiet = true;
        let asks = |a: &turnkeep_model::state::Approval| a.turn == *turn && a.state == ApprovalState::Pending;
        if state.approvals.values().any(asks) {
            return Err(format!("turn {turn} counts as quiet while it waits for a person"));
        }
    }
    if let Change::RuntimeRequested { entry, .. } = change {
        let requests = ghost.requests.entry(entry.epoch).or_default();
        *requests += 1;
        if *requests > starts {
            return Err("a storm of processes".to_owned());
        }
    }
    Ok(())
}

/// What must be true after every step.
pub(crate) fn keep(state: &State, world: &World) -> Result<(), String> {
    for message in &world.ghost.accepted {
        let places = places(state, &world.ghost, message);
        if places != 1 {
            return Err(format!("message {message} is in {places} places"));
        }
    }
    for (id, runtime) in &state.runtimes {
        if is_live(runtime) && is_stale(state, runtime) && !is_busy(state, *id) {
            return Err(format!("runtime {id} is old and idle, and left alone"));
        }
    }
    for notification in state.notifications.values() {
        if let NotificationKind::TurnQuiet { turn } = &notification.kind
            && state.turns.get(turn).is_none_or(|t| t.quiet.is_none())
        {
            return Err(format!("the silence of turn {turn} is told after its end"));
        }
    }
    for credential in world.vault.keys() {
        if !is_accounted_for(state, *credential) {
            return Err(format!("credential {credential} has ended, and nobody owes its revocation"));
        }
    }
    let many = state.providers.values().all(|p| p.capabilities.sessions == Sessions::Many);
    let alive: Vec<_> = world.processes.values().filter(|p| p.alive).collect();
    for (place, one) in alive.iter().enumerate() {
        if many && alive[place + 1..].iter().any(|other| other.credential == one.credential && other.who == one.who) {
            return Err("two live processes refresh one sign-in".to_owned());
        }
    }
    for (id, session) in &state.sessions {
        let dispatched = state.turns.values().filter(|t| t.session == *id && t.message.is_some()).count();
        if dispatched > 1 {
            return Err(format!("session {id} has two turns"));
        }
        if session.turn.is_some_and(|t| !state.turns.contains_key(&t)) {
            return Err(format!("session {id} has a turn that is not there"));
        }
    }
    for approval in state.approvals.values() {
        if approval.state == ApprovalState::Pending && !state.turns.contains_key(&approval.turn) {
            return Err("an approval outlives its turn".to_owned());
        }
    }
    Ok(())
}

fn places(state: &State, ghost: &Ghost, message: &MessageId) -> usize {
    let waits = state.sessions.values().flat_map(|s| s.queue.iter().chain(&s.undecided)).filter(|m| m.id == *message).count();
    let runs = state.turns.values().filter(|t| t.message.as_ref() == Some(message)).count();
    let added = state.turns.values().flat_map(|t| &t.steers);
    let added = added.filter(|m| m.id == *message && m.delivery == Delivery::Sending).count();
    waits + runs + added + usize::from(ghost.done.contains(message))
}

fn is_accounted_for(state: &State, credential: CredentialId) -> bool {
    state.accounts.values().any(|a| a.credential == Some(credential))
        || state.sign_ins.values().any(|s| s.credential == credential && s.failure.is_none())
        || state.credentials.get(&credential).is_some_and(|c| c.owed_revocation)
}

/// A message arrives at an agent.
pub(crate) fn receiving(ghost: &mut Ghost, by: &Process, turn: TurnId, message: &MessageId) -> Result<(), String> {
    if !ghost.delivered.insert(message.clone()) && !ghost.resent.remove(message) {
        return Err(format!("message {message} reached an agent twice"));
    }
    // Unless it was interrupted or given up meanwhile.
    if let Some(meant) = ghost.open.get(&turn)
        && meant.who.as_deref() != by.who
    {
        return Err(format!("turn {turn} runs on another account than it was meant for"));
    }
    Ok(())
}

/// A process is stopped.
pub(crate) fn stopping(state: &State, runtime: RuntimeId) -> Result<(), String> {
    let orphan = state.runtimes.get(&runtime).is_none_or(|r| r.phase == Phase::Orphan);
    let running = |t: &turnkeep_model::state::Turn| t.runtime == runtime && !t.interrupting && t.state != TurnState::Probing;
    let excused = orphan || state.quit.is_some() || state.runtimes.get(&runtime).is_some_and(|r| r.fault.is_some());
    if !excused && state.turns.values().any(running) {
        return Err("a running turn was killed".to_owned());
    }
    Ok(())
}

/// A credential is revoked.
pub(crate) fn revoking(world: &World, credential: CredentialId) -> Result<(), String> {
    if world.processes.values().any(|p| p.alive && p.credential == credential) {
        return Err("a credential was revoked under a live process".to_owned());
    }
    Ok(())
}

/// The application ends.
pub(crate) fn exiting(state: &State, world: &World) -> Result<(), String> {
    let forced = state.quit.is_some_and(|q| q.forced);
    let coming = world.effects.iter().any(|e| matches!(e, turnkeep_model::Effect::Spawn { .. }));
    if !forced && (coming || world.processes.values().any(|p| p.alive)) {
        return Err("a clean exit leaves a child".to_owned());
    }
    Ok(())
}

/// Whether nothing has to happen any more.
pub(crate) fn settled(state: &State, world: &World) -> bool {
    if world.exited {
        return world.processes.values().all(|p| !p.alive);
    }
    let quiet = world.effects.is_empty() && world.inputs.is_empty() && !world.news && state.quit.is_none();
    let processes = world.processes.iter().all(|(id, p)| {
        p.alive
            && !p.orphan
            && p.stdin.is_empty()
            && p.stdout.is_empty()
            && state.runtimes.get(id).is_some_and(|r| r.phase == Phase::Ready)
    });
    let runtimes = state.runtimes.iter().all(|(id, r)| world.processes.contains_key(id) && !is_stale(state, r));
    let sessions = state.sessions.values().all(|session| {
        let attached = match session.attachment {
            Attachment::Detached => true,
            Attachment::Open { runtime } => world.processes.contains_key(&runtime),
            Attachment::Opening { .. } | Attachment::Releasing { .. } => false,
        };
        attached
            && !session.goal_held
            && (may_wait(state, session) || (session.turn.is_none() && !derive::needs_runtime(state, session)))
            || (attached && session.turn.is_none() && session.queue.is_empty() && !session.goal_held && attached_goal(session))
    });
    let owed = state.credentials.values().any(|c| c.owed_revocation);
    quiet && processes && runtimes && sessions && !owed && state.sign_ins.values().all(|s| s.failure.is_some())
}

/// An active goal in an open session: the agent goes on when it likes.
fn attached_goal(session: &turnkeep_model::state::Session) -> bool {
    matches!(session.attachment, Attachment::Open { .. }) && session.undecided.is_empty()
}

/// Whether it is right that the session waits with what it has to do.
fn may_wait(state: &State, session: &turnkeep_model::state::Session) -> bool {
    let probing = session.turn.and_then(|t| state.turns.get(&t)).is_none_or(|t| t.state == TurnState::Probing);
    let account = derive::current_account(state, &session.provider).map(|(_, a)| a);
    let no_account = account.is_none_or(|a| !derive::can_start(state, a));
    let given_up = session.restarts.given_up.is_some() || account.is_some_and(|a| a.restarts.given_up.is_some());
    probing && (no_account || given_up || session.open_failure.is_some() || !session.undecided.is_empty())
}

/// What has come true.
pub(crate) fn stories(state: &State, world: &World) -> Vec<&'static str> {
    let ghost = &world.ghost;
    let mut stories = Vec::new();
    let mut told = |name, when: bool| stories.extend(when.then_some(name));
    let idle = state.turns.is_empty() && state.sessions.values().all(|s| s.queue.is_empty() && s.undecided.is_empty());
    told("every message is done", idle && ghost.done.len() == ghost.accepted.len() && !ghost.done.is_empty());
    told("two messages are done", ghost.done.len() >= 2 && idle);
    told("turns are completed on two accounts", ghost.completed_by.len() >= 2);
    told("a clean quit after a completed turn", world.exited && ghost.outcomes.contains("completed"));
    told("a quit after an interrupted turn", world.exited && ghost.outcomes.contains("interrupted"));
    let away = state.sessions.values().any(|s| s.archived) && state.next.runtime > 0;
    told(
        "who was put away left no process",
        away && world.processes.is_empty() && world.effects.is_empty() && state.runtimes.is_empty(),
    );
    told("a turn is quiet", state.turns.values().any(|t| t.quiet.is_some()));
    told("a silence is over", ghost.was_quiet && state.turns.values().any(|t| t.quiet.is_none()));
    told("a process is started again", state.next.runtime >= 2 && ghost.done.len() >= 2 && idle);
    told("a turn is lost", ghost.outcomes.contains("lost"));
    told("a turn is unknown", ghost.outcomes.contains("unknown"));
    told("an unknown message is sent again", ghost.delivered.len() > ghost.resent.len() && !ghost.resent.is_empty());
    told("an approval is answered", !ghost.answered.is_empty());
    let back = state.sessions.values().flat_map(|s| &s.queue).any(|m| m.delivery == Delivery::NotAdmitted);
    told("a message comes back", back);
    let after = ghost.outcomes.contains("failed") && !ghost.completed_by.is_empty() && idle;
    told("a turn is completed after a refusal", after);
    told("a given up start", state.accounts.values().any(|a| a.restarts.given_up.is_some()));
    let revoked = state.accounts.values().any(|a| a.credential.is_none() && a.kind != AccountKind::System);
    told("a credential is revoked", revoked && state.credentials.values().all(|c| !c.owed_revocation));
    told("signed out with a running turn", !state.turns.is_empty() && state.accounts.values().all(|a| a.credential.is_none()));
    stories
}
