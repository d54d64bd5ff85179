//! The real engine without a desktop, a real (scripted) agent at the other end, and what seldom happens.

use std::fs;

use anyhow::{Context, Result, ensure};
use harness::engine::{EngineAlone, Wish};
use harness::fake_agent::{Action, Script};
use serde_json::{Value, json};

use crate::crashes::stage::{GATE, Stage, approval_of, session_of, yes};

/// Starts it on what the stage prepared: an account and one session.
fn start(stage: &Stage) -> Result<(EngineAlone, u64)> {
    let mut engine = stage.start(None)?;
    yes(engine.until("session and provider", |state| {
        session_of(state).is_some() && state["providers"]["codex"]["installed"].get("Found").is_some()
    })?)?;
    let session = session_of(&engine.state).context("the stage has a session")?;
    Ok((engine, session))
}

fn send(engine: &mut EngineAlone, session: u64, message: &str) -> Result<Value> {
    yes(engine.ask(&Wish::Send { session, message: message.to_owned(), text: format!("text of {message}") })?)
}

fn last_turn(state: &Value, session: u64) -> &Value {
    &state["sessions"][session.to_string()]["last_turn"]
}

/// Waits until the turn of this message has ended; gives how.
fn outcome(engine: &mut EngineAlone, session: u64, message: &str) -> Result<Value> {
    yes(engine.until(&format!("end of the turn of {message}"), |state| last_turn(state, session)["message"] == message)?)?;
    Ok(last_turn(&engine.state, session)["outcome"].clone())
}

fn another_session(engine: &mut EngineAlone, stage: &Stage) -> Result<u64> {
    let folder = stage.desktop.home().join("project").display().to_string();
    let made = yes(engine.ask(&Wish::Create { folder, provider: None })?)?;
    made["session"].as_u64().context("no session was made")
}

fn quit(mut engine: EngineAlone, stage: &Stage) -> Result<()> {
    engine.wish(&Wish::Quit);
    let status = engine.wait_exit()?;
    ensure!(status.success(), "it ended with {status}: {:?}", engine.last);
    stage.no_agent_is_left()
}

fn asks() -> Vec<Action> {
    let params = json!({ "threadId": "$thread", "turnId": "$turn", "itemId": "call", "command": "make", "cwd": "/" });
    let ask = Action::Ask { method: "item/commandExecution/requestApproval".to_owned(), params };
    vec![ask, Action::Message("Done.".to_owned()), Action::complete()]
}

/// The answers that the agent got to what it asked.
fn decisions(stage: &Stage) -> Vec<Value> {
    let all = stage.fake.record().into_iter();
    all.filter_map(|line| line.get("answer").map(|answer| answer["result"]["decision"].clone())).collect()
}

#[test]
fn an_agent_that_never_answers_holds_up_nobody_else_and_what_became_of_its_turn_is_said() -> Result<()> {
    // The first turn is taken and never answered, whatever else is asked meanwhile.
    let on = [("turn/start".to_owned(), vec![vec![], vec![Action::Usual]])].into();
    let stage = Stage::new(&Script { on, ..Script::default() })?;
    let (mut engine, silent) = start(&stage)?;
    send(&mut engine, silent, "m1")?;
    stage.fake.wait_received("turn/start", 1)?;
    stage.fake_will_be(&Script::default())?;
    let other = another_session(&mut engine, &stage)?;
    send(&mut engine, other, "m2")?;
    ensure!(outcome(&mut engine, other, "m2")? == "Completed", "{:?}", last_turn(&engine.state, other));
    ensure!(last_turn(&engine.state, silent).is_null(), "the silent turn ended before its time");

    // Nobody waits for ever.
    engine.patience = std::time::Duration::from_secs(60);
    let said = outcome(&mut engine, silent, "m1")?;
    // The agent has heard of it, and knows of no end.
    ensure!(said == "Lost", "{said}");
    // It is not known whether the agent took it: it is never sent a second time by itself.
    send(&mut engine, other, "m3")?;
    ensure!(outcome(&mut engine, other, "m3")? == "Completed", "{:?}", last_turn(&engine.state, other));
    ensure!((stage.given("m1"), stage.given("m2"), stage.given("m3")) == (1, 1, 1), "given more than once, or never");
    quit(engine, &stage)
}

#[test]
fn a_quit_does_not_wait_for_a_person_and_answers_nothing_in_their_place() -> Result<()> {
    let stage = Stage::new(&Script { turns: vec![asks()], ..Script::default() })?;
    let (mut engine, session) = start(&stage)?;
    send(&mut engine, session, "m1")?;
    yes(engine.until("question", |state| approval_of(state).is_some())?)?;
    quit(engine, &stage)?;
    let given = decisions(&stage);
    ensure!(given.iter().all(|decision| decision != "accept"), "somebody allowed it: {given:?}");

    let (mut engine, session) = start(&stage)?;
    ensure!(approval_of(&engine.state).is_none(), "a question whose asker is gone still waits");
    ensure!(outcome(&mut engine, session, "m1")? == "Interrupted", "{}", last_turn(&engine.state, session));
    ensure!(stage.given("m1") == 1);
    quit(engine, &stage)
}

#[test]
fn of_two_answers_at_once_the_agent_gets_one() -> Result<()> {
    let stage = Stage::new(&Script { turns: vec![asks()], ..Script::default() })?;
    let (mut engine, session) = start(&stage)?;
    send(&mut engine, session, "m1")?;
    yes(engine.until("question", |state| approval_of(state).is_some())?)?;
    let approval = approval_of(&engine.state).context("it was there")?;
    // Neither waits for the other: the window's button, and the notification's.
    let both = [Wish::Allow { approval }, Wish::Deny { approval }];
    both.iter().for_each(|wish| engine.wish(wish));
    let mut changed = Vec::new();
    while changed.len() < both.len() {
        let ack = engine.hear("answer to both", |_, line| line.get("ack").map(|ack| ack["changed"] == true))?;
        changed.push(yes(ack)?);
    }
    ensure!(changed == [true, false], "who was in time: {changed:?}");
    ensure!(outcome(&mut engine, session, "m1")? == "Completed");
    ensure!(decisions(&stage) == ["accept"], "{:?}", decisions(&stage));
    quit(engine, &stage)
}

#[test]
fn a_disk_that_fails_stops_the_engine_and_the_next_start_makes_good() -> Result<()> {
    let held = vec![Action::Delta("Half".to_owned()), Action::WaitFor(GATE.into()), Action::complete()];
    let stage = Stage::new(&Script { turns: vec![held], ..Script::default() })?;
    let failing = stage.desktop.folder().join("the-disk-fails");
    let mut engine = stage.start_on_a_disk_that_fails(&failing)?;
    yes(engine.until("session and provider", |state| {
        session_of(state).is_some() && state["providers"]["codex"]["installed"].get("Found").is_some()
    })?)?;
    let session = session_of(&engine.state).context("the stage has a session")?;
    send(&mut engine, session, "m1")?;
    yes(engine.until("running turn", |state| {
        state["turns"].as_object().into_iter().flatten().any(|(_, turn)| !turn["provider_turn"].is_null())
    })?)?;

    // The end of the turn is what cannot be kept.
    fs::write(&failing, b"")?;
    stage.open_gate()?;
    let said = yes(engine.hear("word of it", |engine, _| engine.trouble.clone())?)?;
    ensure!(said.contains("check the disk"), "it says only {said}");
    ensure!(last_turn(&engine.state, session).is_null(), "an end was shown that was not kept");
    engine.wish(&Wish::Send { session, message: "m2".to_owned(), text: "text of m2".to_owned() });
    let refused = engine.hear("answer", |_, line| line.get("not").or_else(|| line.get("ack")).map(ToString::to_string))?;
    ensure!(yes(refused)?.contains("check the disk"), "a message was taken in that nobody keeps");
    engine.wish(&Wish::Quit);
    ensure!(!engine.wait_exit()?.success(), "it ended as if all were well");
    stage.no_agent_is_left()?;
    fs::remove_file(&failing)?;

    let (mut engine, session) = start(&stage)?;
    // The agent knows how it ended.
    ensure!(outcome(&mut engine, session, "m1")? == "Completed", "{}", last_turn(&engine.state, session));
    send(&mut engine, session, "m3")?;
    ensure!(outcome(&mut engine, session, "m3")? == "Completed", "{}", last_turn(&engine.state, session));
    ensure!((stage.given("m1"), stage.given("m2"), stage.given("m3")) == (1, 0, 1), "given more than once, or never");
    quit(engine, &stage)
}
