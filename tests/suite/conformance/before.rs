//! What every agent knows from before, and what it tells of itself: threads, histories, forks, commands.
#![expect(non_upper_case_globals, reason = "each is the name of a test")]

use anyhow::{Context, Result, ensure};
use turnkeep_engine::Unanswered;
use turnkeep_model::SessionId;
use turnkeep_model::port::{Capabilities, ItemBody};

use super::Case;
use super::cases::plain;
use super::rig::Rig;

fn declared(rig: &Rig) -> Result<Capabilities> {
    Ok(rig.state()?.providers[&rig.candidate.provider()].capabilities.clone())
}

/// What the person and the agent said, in the order of the transcript.
fn talk(rig: &Rig, session: SessionId) -> Result<Vec<String>> {
    let said = |body: &ItemBody| {
        if let ItemBody::UserMessage { text, .. } = body {
            Some(format!("> {}", text.trim()))
        } else if let ItemBody::AgentMessage { text, .. } = body {
            Some(format!("< {}", text.trim()))
        } else {
            None
        }
    };
    Ok(rig.entries(session)?.iter().filter_map(|entry| said(&entry.item.body)).collect())
}

pub(super) const what_it_knows_is_listed_and_gone_on_with: Case = plain("what it knows is listed and gone on with", |rig| {
    let session = rig.session()?;
    rig.release()?;
    rig.complete(session, rig.candidate.say)?;
    let thread = rig.seen(session)?.thread.context("a session without a thread")?;
    if !declared(rig)?.threads {
        ensure!(matches!(rig.threads(), Err(Unanswered::Unable)), "it does not say that it can, and was asked");
        return Ok(());
    }
    let listed = rig.threads()?;
    ensure!(listed.threads.iter().any(|it| it.thread == thread), "{thread} is not among {:?}", listed.threads);
    // Another Turnkeep, which never heard of it.
    rig.quit()?;
    rig.forget()?;
    rig.launch()?;
    ensure!(rig.state()?.sessions.is_empty(), "it was not forgotten");
    let first = rig.session()?;
    rig.complete(first, rig.candidate.say)?;
    let known = rig.threads()?.threads.into_iter().find(|it| it.thread == thread).context("it is not listed any more")?;
    ensure!(known.resumable && known.folder == rig.path("work").to_string_lossy(), "{known:?}");
    let again = rig.session_on(thread.clone())?;
    rig.wait("read history", |state| (!state.sessions.get(&again)?.history_owed).then_some(()))?;
    let told = talk(rig, again)?;
    let asked = told.iter().position(|line| line.starts_with("> ") && line.contains(rig.candidate.say));
    let answered = told.iter().position(|line| line.starts_with("< ") && line.contains(rig.candidate.said));
    ensure!(asked.is_some() && asked < answered, "its history is {told:?}");
    let ended = rig.complete(again, rig.candidate.say)?;
    ensure!(rig.said(again, ended.turn)?.contains(rig.candidate.said), "it does not go on");
    ensure!(rig.seen(again)?.thread.as_ref() == Some(&thread), "another thread");
    Ok(())
});

pub(super) const a_fork_goes_on_by_itself: Case = plain("a fork goes on by itself", |rig| {
    let session = rig.session()?;
    rig.release()?;
    rig.complete(session, rig.candidate.say)?;
    let before = talk(rig, session)?;
    let Some(fork) = rig.fork(session)? else {
        ensure!(!declared(rig)?.fork, "it says that it can, and could not");
        return Ok(());
    };
    ensure!(declared(rig)?.fork, "it does not say that it can");
    ensure!(talk(rig, fork)? == before, "the fork holds {:?}", talk(rig, fork)?);
    let asked = rig.mock.model_calls().len();
    let ended = rig.complete(fork, rig.candidate.say)?;
    ensure!(rig.said(fork, ended.turn)?.contains(rig.candidate.said), "it does not go on");
    let (one, other) = (rig.seen(session)?.thread, rig.seen(fork)?.thread);
    ensure!(one.is_some() && other.is_some() && one != other, "{one:?} and {other:?}");
    if rig.candidate.asks_a_model {
        // An agent may ask for something else beside it, a title say.
        let calls: Vec<_> = rig.mock.model_calls().into_iter().skip(asked).collect();
        let told = |body: &[u8]| String::from_utf8_lossy(body).contains(rig.candidate.said);
        ensure!(calls.iter().any(|call| told(&call.body)), "of {} calls none told the model of what was before", calls.len());
    }
    // Each has its own way from here on.
    ensure!(talk(rig, session)? == before, "the other one changed");
    rig.complete(session, rig.candidate.say)?;
    Ok(())
});

pub(super) const its_commands_are_told: Case = plain("its commands are told", |rig| {
    let session = rig.session()?;
    rig.release()?;
    rig.complete(session, rig.candidate.say)?;
    if !declared(rig)?.commands {
        ensure!(rig.seen(session)?.commands.is_empty(), "{:?}", rig.seen(session)?.commands);
        return Ok(());
    }
    rig.wait("command", |state| (!state.sessions.get(&session)?.commands.is_empty()).then_some(()))?;
    let commands = rig.seen(session)?.commands;
    ensure!(commands.iter().all(|it| !it.name.is_empty() && !it.name.contains(' ')), "{commands:?}");
    ensure!(commands.iter().any(|it| !it.description.is_empty()), "{commands:?}");
    Ok(())
});
