//! What must hold at the start after a crash.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::engine::{EngineAlone, Wish};
use serde_json::Value;

use super::stage::{Stage, approval_of, session_of, yes};

/// Every session is accounted for in this time.
const ACCOUNTED: Duration = Duration::from_secs(3);

/// What a story leaves behind.
pub(super) struct Verdict {
    /// The messages that were sent, as far as the story came.
    pub(super) messages: &'static [&'static str],
    /// It signs the account out.
    pub(super) signed_out: bool,
}

/// Starts once more, without a crash, and holds it to what was said before.
pub(super) fn after(stage: &Stage, crashed: EngineAlone, verdict: &Verdict, point: u64) -> Result<()> {
    let mut next = stage.start(None)?;
    let checked = settle(stage, &crashed, &mut next, verdict);
    checked
        .with_context(|| format!("after the crash at point {point}; before, the state was {}; now {}", crashed.state, next.state))
}

fn settle(stage: &Stage, crashed: &EngineAlone, next: &mut EngineAlone, verdict: &Verdict) -> Result<()> {
    yes(next.until("first state", |state| !state.is_null())?)?;
    ensure!(session_of(&next.state).is_some(), "the session is lost");
    ensure!(next.seen >= crashed.seen, "change {} was shown, and {} is the last one now", crashed.seen, next.seen);

    // What the earlier run left open is accounted for.
    let left = |name: &str| next.state[name].as_object().map(|all| all.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    let (turns, runtimes) = (left("turns"), left("runtimes"));
    yes(next.until("account of what the crash left", |state| {
        turns.iter().all(|turn| state["turns"].get(turn).is_none())
            && runtimes.iter().all(|it| state["runtimes"].get(it).is_none())
    })?)?;
    let took = next.started().elapsed();
    ensure!(took <= ACCOUNTED, "it took {took:?} to account for {turns:?} and {runtimes:?}");

    // Then everything goes on by itself as far as it can.
    stage.open_gate()?;
    loop {
        yes(next.until("rest", |state| approval_of(state).is_some() || rests(state))?)?;
        let Some(approval) = approval_of(&next.state) else { break };
        yes(next.ask(&Wish::Allow { approval })?)?;
        yes(next.until("taken answer", |state| approval_of(state) != Some(approval))?)?;
    }
    for message in verdict.messages {
        accounted(stage, crashed, &next.state, message)?;
    }
    if verdict.signed_out {
        signed_out(stage, crashed, next)?;
    }
    let Value::Array(journal) = yes(next.ask(&Wish::Journal)?)? else { anyhow::bail!("no journal") };
    whole(&journal, crashed.seen)?;
    next.wish(&Wish::Quit);
    let status = next.wait_exit()?;
    ensure!(status.success(), "the next run ended with {status}: {:?}", next.last);
    stage.no_agent_is_left()
}

/// Nothing is under way that ends by itself.
fn rests(state: &Value) -> bool {
    let empty = |name: &str| state[name].as_object().is_some_and(serde_json::Map::is_empty);
    let credentials = state["credentials"].as_object().into_iter().flatten();
    let revoking = credentials.into_iter().any(|(_, credential)| credential["owed_revocation"] == true);
    let sessions: Vec<&Value> = state["sessions"].as_object().into_iter().flatten().map(|(_, session)| session).collect();
    let able = |session: &Value| {
        let mut accounts = state["accounts"].as_object().into_iter().flatten().map(|(_, account)| account);
        accounts.any(|account| account["provider"] == session["provider"] && !account["credential"].is_null())
    };
    let undecided = |session: &Value| session["undecided"].as_array().is_some_and(|all| !all.is_empty());
    let waits = |session: &Value| session["queue"].as_array().is_some_and(|all| !all.is_empty());
    empty("turns") && !revoking && sessions.iter().all(|session| !waits(session) || undecided(session) || !able(session))
}

/// A message was given to the agent at most once; if it was acknowledged it is somewhere.
fn accounted(stage: &Stage, crashed: &EngineAlone, state: &Value, message: &str) -> Result<()> {
    let given = stage.given(message);
    ensure!(given <= 1, "{message} was given to the agent {given} times");
    let known = |state: &Value| state["sessions"].to_string().contains(message) || state["turns"].to_string().contains(message);
    // The crashed run had shown it, so it was written down.
    if known(&crashed.state) && given == 0 {
        ensure!(known(state), "{message} was written down, never given to the agent, and is nowhere");
    }
    Ok(())
}

/// A sign-out that was shown is final: nobody is signed in, and the key is gone.
fn signed_out(stage: &Stage, crashed: &EngineAlone, next: &EngineAlone) -> Result<()> {
    let credential = |state: &Value| state["accounts"][stage.account().to_string()]["credential"].clone();
    if crashed.state["accounts"].is_object() && credential(&crashed.state).is_null() {
        ensure!(credential(&next.state).is_null(), "the account is signed in again");
        ensure!(stage.desktop.keyring_items()?.is_empty(), "the key is still in the keychain");
        ensure!(stage.given("m2") == 0, "a message went out after the sign-out");
    }
    Ok(())
}

/// No change is missing, and each turn begins once and ends once.
fn whole(journal: &[Value], seen: u64) -> Result<()> {
    let numbers: Vec<u64> = journal.iter().filter_map(|event| event["seq"].as_u64()).collect();
    let first = numbers.first().copied().context("the journal is empty")?;
    ensure!(numbers.iter().zip(first..).all(|(number, wanted)| *number == wanted), "changes are missing from {numbers:?}");
    ensure!(numbers.last().is_some_and(|last| *last >= seen), "change {seen} was shown and is not in the journal");
    let mut turns: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
    for event in journal {
        let change = &event["change"];
        if let Some(turn) = change["TurnDispatched"]["turn"].as_u64() {
            turns.entry(turn).or_default().0 += 1;
        // One that the agent cannot have seen is taken back, and its message waits again.
        } else if let Some(turn) = change["TurnEnded"]["turn"].as_u64().or(change["TurnReturned"]["turn"].as_u64()) {
            turns.entry(turn).or_default().1 += 1;
        }
    }
    ensure!(turns.values().all(|count| *count == (1, 1)), "turns began and ended so often: {turns:?}");
    Ok(())
}
