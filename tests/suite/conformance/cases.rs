//! What every agent does while nothing goes wrong.
#![expect(non_upper_case_globals, reason = "each is the name of a test")]

use anyhow::{Context, Result, ensure};
use turnkeep_model::port::{
    AgentCommand, Choice, GoalSpec, GoalStatus, Goals, ItemBody, ItemStatus, Sandbox, SessionSettings, TurnOutcome, Unsupported,
};
use turnkeep_model::state::{ApprovalState, Delivery, NotificationKind};
use turnkeep_model::{Input, MessageId, SessionId, ThreadRef, TurnId, derive};

use super::Case;
use super::rig::{Rig, no};

/// A case with nothing between the engine and the agent.
pub(super) const fn plain(name: &'static str, check: fn(&mut Rig) -> Result<()>) -> Case {
    Case { name, relay: |_, _| None, check }
}

pub(super) const a_turn_completes: Case = plain("a turn completes", |rig| {
    let session = rig.session()?;
    rig.release()?;
    let ended = rig.complete(session, rig.candidate.say)?;
    let said = rig.said(session, ended.turn)?;
    ensure!(said.contains(rig.candidate.said), "it said {said:?}");
    let entries = rig.entries(session)?;
    let asked = entries
        .iter()
        .any(|entry| matches!(&entry.item.body, ItemBody::UserMessage { text, .. } if text.contains(rig.candidate.say)));
    ensure!(asked, "the person's own words are not in the transcript");
    let told = |state: &turnkeep_model::State| {
        let of = |kind: &NotificationKind| matches!(kind, NotificationKind::TurnCompleted { turn } if *turn == ended.turn);
        state.notifications.values().filter(|shown| of(&shown.kind)).count()
    };
    ensure!(told(&*rig.state()?) == 1, "one notification of one end: {:?}", rig.state()?.notifications);
    ensure!(rig.processes().len() < 8, "{:?}", rig.processes());
    Ok(())
});

pub(super) const its_text_is_streamed: Case = plain("its text is streamed", |rig| {
    let session = rig.session()?;
    let message = rig.send(session, rig.candidate.say)?;
    let first = rig.first_words(session)?;
    rig.release()?;
    let ended = rig.ended(session, &message)?;
    let said = rig.said(session, ended.turn)?;
    ensure!(said.contains(first.trim()) && said.trim().len() > first.trim().len(), "{first:?} came first, all is {said:?}");
    Ok(())
});

/// Answers every question of a turn in the same way; how often.
fn answer_all(
    rig: &mut Rig,
    session: SessionId,
    message: &MessageId,
    wanted: impl Fn(&[Choice]) -> Option<Choice>,
) -> Result<u32> {
    let mut count = 0;
    while let Some((id, approval)) = rig.asked(session, message)? {
        ensure!(!rig_done(rig), "it was done before it was allowed");
        let choice = wanted(&approval.ask.choices).with_context(|| format!("only {:?} are offered", approval.ask.choices))?;
        rig.answer(id, choice)?;
        count += 1;
        rig.wait("end of the question", |state| {
            let open = state.approvals.get(&id).is_some_and(|it| it.state == ApprovalState::Pending);
            (!open).then_some(())
        })?;
        if count > 8 {
            return no("it asks without end", &approval);
        }
    }
    Ok(count)
}

fn rig_done(rig: &Rig) -> bool {
    (rig.candidate.done)(rig)
}

pub(super) const what_is_allowed_is_done: Case = plain("what is allowed is done", |rig| {
    let session = rig.session()?;
    let message = rig.send(session, rig.candidate.ask)?;
    let asked = answer_all(rig, session, &message, |offered| offered.contains(&Choice::Allow).then_some(Choice::Allow))?;
    let ended = rig.ended(session, &message)?;
    ensure!(asked > 0, "it did not ask");
    ensure!(ended.outcome == TurnOutcome::Completed, "{:?}", ended.outcome);
    ensure!(rig_done(rig), "it was allowed and not done");
    Ok(())
});

pub(super) const what_is_denied_is_not_done: Case = plain("what is denied is not done", |rig| {
    let session = rig.session()?;
    let message = rig.send(session, rig.candidate.ask)?;
    let deny = |offered: &[Choice]| [Choice::Deny, Choice::DenyAndStop].into_iter().find(|choice| offered.contains(choice));
    let asked = answer_all(rig, session, &message, deny)?;
    let ended = rig.ended(session, &message)?;
    ensure!(asked > 0, "it did not ask");
    ensure!(matches!(ended.outcome, TurnOutcome::Completed | TurnOutcome::Interrupted), "{:?}", ended.outcome);
    ensure!(!rig_done(rig), "it was denied and done");
    Ok(())
});

pub(super) const a_question_ends_with_its_turn: Case = plain("a question ends with its turn", |rig| {
    let session = rig.session()?;
    let message = rig.send(session, rig.candidate.ask)?;
    rig.asked(session, &message)?.context("it did not ask")?;
    rig.interrupt(session)?;
    let ended = rig.ended(session, &message)?;
    ensure!(ended.outcome == TurnOutcome::Interrupted, "{:?}", ended.outcome);
    let state = rig.state()?;
    ensure!(state.approvals.values().all(|it| it.state != ApprovalState::Pending), "{:?}", state.approvals);
    rig.release()?;
    rig.complete(session, rig.candidate.say)?;
    ensure!(!rig_done(rig), "nobody allowed it");
    Ok(())
});

pub(super) const a_turn_is_interrupted: Case = plain("a turn is interrupted", |rig| {
    let session = rig.session()?;
    let message = rig.send(session, rig.candidate.hold)?;
    rig.started(session)?;
    rig.first_words(session)?;
    rig.interrupt(session)?;
    let ended = rig.ended(session, &message)?;
    ensure!(ended.outcome == TurnOutcome::Interrupted, "{:?}", ended.outcome);
    let thread = rig.seen(session)?.thread;
    rig.release()?;
    rig.complete(session, rig.candidate.say)?;
    ensure!(rig.seen(session)?.thread == thread, "another thread");
    Ok(())
});

/// The model's last request holds this text.
fn model_heard(rig: &Rig, text: &str) -> bool {
    rig.mock.model_calls().last().is_some_and(|call| String::from_utf8_lossy(&call.body).contains(text))
}

pub(super) const a_running_turn_is_steered_or_the_message_waits: Case =
    plain("a running turn is steered or the message waits", |rig| {
        let session = rig.session()?;
        let message = rig.send(session, rig.candidate.hold)?;
        let (turn, _) = rig.started(session)?;
        rig.first_words(session)?;
        let steers = rig.state()?.providers[&rig.candidate.provider()].capabilities.steer;
        let more = rig.steer(session, rig.candidate.say)?;
        if steers {
            rig.wait("admitted message", |state| {
                let steer = state.turns.get(&turn)?.steers.iter().find(|steer| steer.id == more)?;
                (steer.delivery == Delivery::Admitted).then_some(())
            })?;
            ensure!(rig.state()?.turns.contains_key(&turn), "steering ended the turn");
            rig.release()?;
            let ended = rig.ended(session, &message)?;
            ensure!(ended.turn == turn && ended.outcome == TurnOutcome::Completed, "{ended:?}");
            if rig.candidate.asks_a_model {
                ensure!(model_heard(rig, rig.candidate.say), "the model never heard it");
            }
            ensure!(rig.seen(session)?.queue.is_empty(), "it is delivered twice");
        } else {
            ensure!(rig.seen(session)?.queue.iter().any(|it| it.id == more), "it does not wait");
            ensure!(rig.state()?.turns.contains_key(&turn), "it interrupted the turn");
            rig.release()?;
            if !rig.candidate.hold_completes {
                rig.interrupt(session)?;
            }
            let ended = rig.ended(session, &more)?;
            ensure!(ended.turn != turn && ended.outcome == TurnOutcome::Completed, "{ended:?}");
        }
        Ok(())
    });

pub(super) const a_session_goes_on_after_a_restart: Case = plain("a session goes on after a restart", |rig| {
    rig.release()?;
    let session = rig.session()?;
    rig.complete(session, rig.candidate.say)?;
    let thread = rig.seen(session)?.thread.context("a session without a name at the provider")?;
    let resumes = rig.state()?.providers[&rig.candidate.provider()].capabilities.resume;
    ensure!(resumes, "an agent of this suite declares that it resumes");
    rig.quit()?;
    rig.launch()?;
    ensure!(rig.seen(session)?.thread.as_ref() == Some(&thread), "the thread was forgotten");
    let second = rig.complete(session, "And once more: Please say it, or plan")?;
    ensure!(rig.seen(session)?.thread.as_ref() == Some(&thread), "another thread");
    ensure!(!rig.said(session, second.turn)?.is_empty(), "it said nothing");
    if rig.candidate.asks_a_model {
        let calls = rig.mock.model_calls();
        let last = calls.last().map(|call| String::from_utf8_lossy(&call.body).into_owned()).unwrap_or_default();
        ensure!(last.contains(rig.candidate.said), "the model was not told of the first turn: {last}");
    }
    // What was loaded again is not in the transcript twice.
    let own = |entry: &&turnkeep_engine::store::Entry| matches!(&entry.item.body, ItemBody::UserMessage { .. });
    let entries = rig.entries(session)?;
    ensure!(entries.iter().filter(own).count() == 2, "{:?}", entries.iter().filter(own).collect::<Vec<_>>());
    Ok(())
});

pub(super) const a_sign_out_lets_the_running_turn_finish: Case = plain("a sign-out lets the running turn finish", |rig| {
    let session = rig.session()?;
    let message = rig.send(session, rig.candidate.hold)?;
    let (turn, begun) = rig.started(session)?;
    rig.first_words(session)?;
    rig.submit(Input::SignOut { account: begun.account, now: false })?;
    let state = rig.state()?;
    ensure!(state.accounts[&begun.account].credential.is_none(), "still signed in");
    ensure!(state.turns.contains_key(&turn), "the running turn was ended");
    let runtime = &state.runtimes[&begun.runtime];
    ensure!(derive::is_stale(&state, runtime), "the runtime does not count as old");
    let waiting = rig.send(session, rig.candidate.say)?;
    rig.release()?;
    if rig.candidate.hold_completes {
        let ended = rig.ended(session, &message)?;
        ensure!(ended.outcome == TurnOutcome::Completed, "{:?}", ended.outcome);
    } else {
        rig.interrupt(session)?;
        rig.ended(session, &message)?;
    }
    rig.wait("end of the old runtime", |state| (!state.runtimes.contains_key(&begun.runtime)).then_some(()))?;
    if rig.candidate.signs_out {
        rig.wait("revocation", |state| state.credentials.values().all(|it| !it.owed_revocation).then_some(()))?;
    } else {
        let owed = rig.state()?.credentials.values().any(|it| it.owed_revocation);
        ensure!(owed, "a sign-in that nobody ended counts as ended");
    }
    let seen = rig.seen(session)?;
    ensure!(seen.queue.iter().any(|it| it.id == waiting && it.delivery == Delivery::Queued), "{:?}", seen.queue);
    ensure!(seen.turn.is_none() && rig.state()?.runtimes.is_empty(), "something was started for nobody");
    Ok(())
});

fn fork(of: &ThreadRef) -> AgentCommand {
    AgentCommand::OpenSession {
        session: SessionId(2),
        thread: None,
        fork_of: Some(of.clone()),
        history: false,
        folder: "/".to_owned(),
        settings: SessionSettings::default(),
        goal: None,
    }
}

/// Each capability that is not declared is refused by the agent's machine; each that is declared has a case that uses it.
pub(super) const what_is_not_declared_is_refused: Case = plain("what is not declared is refused", |rig| {
    let session = rig.session()?;
    rig.release()?;
    rig.complete(session, rig.candidate.say)?;
    let declared = rig.state()?.providers[&rig.candidate.provider()].capabilities.clone();
    rig.quit()?;
    let mut machine = rig.greeted()?;
    let session = SessionId(1);
    let (turn, message, thread) = (TurnId(1), MessageId::new("m"), ThreadRef::new("t"));
    let goal = Some(GoalSpec { objective: "x".to_owned(), status: GoalStatus::Active, token_budget: None });
    let text = "x".to_owned();
    let commands = [
        ("steer", declared.steer, AgentCommand::Steer { session, turn, message: message.clone(), text }),
        ("interrupt", declared.interrupt, AgentCommand::Interrupt { session, turn }),
        ("goals", declared.goals == Goals::Native, AgentCommand::SetGoal { session, goal }),
        ("threads", declared.threads, AgentCommand::ListThreads { ask: 1, cursor: None }),
        ("fork", declared.fork, fork(&thread)),
        ("history probe", declared.history_probe, AgentCommand::Probe { session, thread, turn, message }),
    ];
    for (what, declared, command) in commands {
        let refused: Result<(), Unsupported> = machine.command(0, command);
        ensure!(refused.is_ok() == declared, "{what}: declared {declared}, and the machine says {refused:?}");
    }
    Ok(())
});

/// The entries that say how something went, by what is in them: what came of it, and whether it failed.
fn outcomes(rig: &Rig, session: SessionId) -> Result<Vec<(String, String, bool)>> {
    let of = |entry: turnkeep_engine::store::Entry| match entry.item.body {
        ItemBody::Command { command, output, status, .. } => Some((command, output, status == ItemStatus::Failed)),
        ItemBody::Tool { name, result, status, .. } => Some((name, result, status == ItemStatus::Failed)),
        ItemBody::FileChange { changes, status } => Some((format!("{changes:?}"), String::new(), status == ItemStatus::Failed)),
        ItemBody::UserMessage { .. }
        | ItemBody::AgentMessage { .. }
        | ItemBody::Reasoning { .. }
        | ItemBody::WebSearch { .. }
        | ItemBody::Plan { .. }
        | ItemBody::Compaction
        | ItemBody::Notice { .. }
        | ItemBody::Error { .. }
        | ItemBody::Other { .. } => None,
    };
    Ok(rig.entries(session)?.into_iter().filter_map(of).collect())
}

pub(super) const its_client_serves_it_within_limits: Case = plain(super::SERVED, |rig| {
    let typed = rig.candidate.by_client.context("it asks its client for nothing")?;
    let allow = |offered: &[Choice]| offered.contains(&Choice::Allow).then_some(Choice::Allow);
    let written = rig.path("work/turnkeep-demo/client.md");
    let session = rig.session()?;
    let message = rig.send(session, typed)?;
    let asked = answer_all(rig, session, &message, allow)?;
    let ended = rig.ended(session, &message)?;
    ensure!(ended.outcome == TurnOutcome::Completed, "{:?}", ended.outcome);
    ensure!(asked == 2, "one question for each act, and no second one for the same: {asked}");
    ensure!(std::fs::read_to_string(&written).is_ok_and(|text| text.contains("By way of the client")), "it was not written");
    let seen = outcomes(rig, session)?;
    let went = |seen: &[(String, String, bool)], what: &str, said: &str, failed: bool| {
        let found = seen.iter().any(|(name, text, bad)| name.contains(what) && text.contains(said) && *bad == failed);
        ensure!(found, "no {what} with {said:?} and failed {failed} in {seen:?}");
        Ok(())
    };
    went(&seen, "client.md", "", false)?;
    went(&seen, "client.md read", "By way of the client", false)?;
    went(&seen, "uname", "Linux", false)?;
    went(&seen, "/etc/hosts", "not below the session's folder", true)?;

    // Where a session may only read, allowing it changes nothing.
    std::fs::remove_file(&written)?;
    let read_only = SessionSettings { sandbox: Some(Sandbox::ReadOnly), ..SessionSettings::default() };
    let session = rig.session_with(read_only)?;
    let message = rig.send(session, typed)?;
    answer_all(rig, session, &message, allow)?;
    rig.ended(session, &message)?;
    ensure!(!written.exists(), "it was written in a session that may only read");
    let seen = outcomes(rig, session)?;
    went(&seen, "uname", "may only read", true)
});
