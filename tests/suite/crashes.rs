//! Killed at every point at which a crash can be told apart: the real engine with a real (scripted) agent, once a point, until a
//! run passes without one; after each the next start must make good.

mod check;
pub(crate) mod stage;

use anyhow::{Result, ensure};
use harness::engine::{EngineAlone, Heard, Wish};
use harness::fake_agent::{Action, Script};
use serde_json::{Value, json};

use check::Verdict;
use stage::{Stage, approval_of, session_of};

/// A scenario has more points than this, and no end in sight: it does not come to an end at all.
const MOST: u64 = 400;

/// A person's part of a story. `Gone` where the engine crashed.
type Story = fn(&mut EngineAlone, &Stage) -> Result<Heard<()>>;

macro_rules! go {
    ($heard:expr) => {
        match $heard {
            Heard::Yes(it) => it,
            Heard::Gone => return Ok(Heard::Gone),
        }
    };
}

fn send(engine: &mut EngineAlone, message: &str) -> Result<Heard<Value>> {
    let session = session_of(&engine.state).unwrap_or(0);
    engine.ask(&Wish::Send { session, message: message.to_owned(), text: format!("text of {message}") })
}

fn ready(engine: &mut EngineAlone) -> Result<Heard<()>> {
    engine.until("session and provider", |state| {
        session_of(state).is_some() && state["providers"]["codex"]["installed"].get("Found").is_some()
    })
}

fn turn_ended(engine: &mut EngineAlone) -> Result<Heard<()>> {
    engine.until("end of the turn", |state| {
        let mut sessions = state["sessions"].as_object().into_iter().flatten();
        sessions.any(|(_, session)| !session["last_turn"].is_null())
    })
}

fn running(state: &Value) -> bool {
    state["turns"].as_object().into_iter().flatten().any(|(_, turn)| !turn["provider_turn"].is_null())
}

fn leave(engine: &mut EngineAlone) -> Result<Heard<()>> {
    engine.wish(&Wish::Quit);
    engine.wait_exit()?;
    Ok(if engine.last.is_some() { Heard::Yes(()) } else { Heard::Gone })
}

fn asks_first() -> Script {
    let params = json!({ "threadId": "$thread", "turnId": "$turn", "itemId": "call", "command": "make", "cwd": "/" });
    let ask = Action::Ask { method: "item/commandExecution/requestApproval".to_owned(), params };
    Script { turns: vec![vec![ask, Action::Message("Done.".to_owned()), Action::complete()]], ..Script::default() }
}

fn an_approval_is_given(engine: &mut EngineAlone, _: &Stage) -> Result<Heard<()>> {
    go!(ready(engine)?);
    go!(send(engine, "m1")?);
    go!(engine.until("question", |state| approval_of(state).is_some())?);
    let approval = approval_of(&engine.state).unwrap_or(0);
    go!(engine.ask(&Wish::Allow { approval })?);
    go!(turn_ended(engine)?);
    leave(engine)
}

fn signed_out_in_a_turn(engine: &mut EngineAlone, stage: &Stage) -> Result<Heard<()>> {
    go!(ready(engine)?);
    go!(send(engine, "m1")?);
    go!(engine.until("running turn", running)?);
    let account = stage.account();
    go!(engine.ask(&Wish::SignOut { account })?);
    // While signed out it waits.
    go!(send(engine, "m2")?);
    stage.open_gate()?;
    go!(engine.until("end of the old process", |state| state["runtimes"].as_object().is_some_and(serde_json::Map::is_empty))?);
    let ended =
        |state: &Value| state["credentials"].as_object().is_some_and(|all| all.values().all(|it| it["account"] != account));
    go!(engine.until("end of the old key", ended)?);
    leave(engine)
}

fn quit_in_a_turn(engine: &mut EngineAlone, stage: &Stage) -> Result<Heard<()>> {
    go!(ready(engine)?);
    go!(send(engine, "m1")?);
    go!(engine.until("running turn", running)?);
    go!(send(engine, "m2")?);
    engine.wish(&Wish::Quit);
    go!(engine.until("quit", |state| !state["quit"].is_null())?);
    stage.open_gate()?;
    engine.wait_exit()?;
    Ok(if engine.last.is_some() { Heard::Yes(()) } else { Heard::Gone })
}

/// Once a point, until the story ends without a crash. Gives the number of points that were passed.
fn every_point(stage: &mut Stage, story: Story, verdict: Verdict) -> Result<u64> {
    for point in 1..=MOST {
        stage.reset()?;
        let mut engine = stage.start(Some(point))?;
        let whole = matches!(story(&mut engine, stage)?, Heard::Yes(()));
        let status = engine.wait_exit()?;
        ensure!(whole || harness::engine::was_aborted(status), "at point {point} it ended with {status}, not by a crash");
        check::after(stage, engine, &verdict, point)?;
        if whole {
            return Ok(point - 1);
        }
    }
    anyhow::bail!("after {MOST} crash points the story still did not end")
}

fn held() -> Vec<Action> {
    vec![
        Action::Delta("Half".to_owned()),
        Action::WaitFor(stage::GATE.into()),
        Action::Delta(" done.".to_owned()),
        Action::complete(),
    ]
}

#[test]
fn an_approval_is_given_once_whenever_it_crashes() -> Result<()> {
    let mut stage = Stage::new(&asks_first())?;
    let points = every_point(&mut stage, an_approval_is_given, Verdict { messages: &["m1"], signed_out: false })?;
    ensure!(points > 20, "only {points} points were passed");
    Ok(())
}

#[test]
fn a_sign_out_is_final_whenever_it_crashes() -> Result<()> {
    let mut stage = Stage::new(&Script { turns: vec![held()], ..Script::default() })?;
    let points = every_point(&mut stage, signed_out_in_a_turn, Verdict { messages: &["m1", "m2"], signed_out: true })?;
    ensure!(points > 20, "only {points} points were passed");
    Ok(())
}

#[test]
fn a_quit_loses_nothing_whenever_it_crashes() -> Result<()> {
    let mut stage = Stage::new(&Script { turns: vec![held()], ..Script::default() })?;
    let points = every_point(&mut stage, quit_in_a_turn, Verdict { messages: &["m1", "m2"], signed_out: false })?;
    ensure!(points > 20, "only {points} points were passed");
    Ok(())
}
