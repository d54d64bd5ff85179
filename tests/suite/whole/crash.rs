//! Killed in the middle of a streaming turn: the next start shows the session and says what became of the turn.

use std::time::Duration;

use anyhow::{Result, ensure};
use harness::mock_model::Reply;
use harness::process;

use super::app::{App, Setup};

#[test]
fn a_kill_in_mid_turn_loses_nothing_that_was_written_and_the_turn_is_accounted_for() -> Result<()> {
    App::run(Setup::default(), |app| {
        app.mock.on("First", vec![Reply::say("The first answer.")]);
        app.mock.on("Second", vec![Reply::say("Half of[[gap]] the second.")]);
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Survivor")?;
        app.send("First")?;
        app.see("entry-agent", "The first answer.")?;
        app.send("Second")?;
        app.mock.wait_at("gap")?;
        app.see("entry-agent", "Half of")?;
        let codex = app.wait_codex()?;
        app.kill()?;

        app.launch(&[])?;
        // What an earlier run left is gone, before anything else speaks to its thread.
        process::wait_gone(codex.pid, codex.start_ticks, Duration::from_secs(10))?;
        app.open_window()?;
        app.page()?.wait_for("[data-testid=session]")?;
        app.page()?.click_on("[data-testid=session] button")?;
        app.see("session-title", "Survivor")?;
        app.see("transcript", "The first answer.")?;
        app.see("transcript", "Second")?;
        app.picture("after-the-kill")?;
        app.see("failure", "Turnkeep was ended while this turn ran")?;
        // And it goes on: nothing is sent a second time by itself.
        app.mock.open("gap");
        app.mock.on("Third", vec![Reply::say("The third answer.")]);
        app.send("Third")?;
        app.see("entry-agent", "The third answer.")?;
        let seconds = app.mock.model_calls().iter().filter(|call| last_words(&call.body) == "Second").count();
        ensure!(seconds == 1, "the message was sent {seconds} times");
        Ok(())
    })
}

/// The newest thing that a person said, as the model sees it.
fn last_words(body: &[u8]) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let mut said = body["input"].as_array().into_iter().flatten().filter(|item| item["role"] == "user");
    said.next_back().and_then(|item| item["content"][0]["text"].as_str()).unwrap_or_default().to_owned()
}
