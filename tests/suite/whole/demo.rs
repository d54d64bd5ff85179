//! The first minute on a computer with nothing on it: a click, and an agent works.

use std::fs;

use anyhow::{Context, Result, ensure};
use harness::desktop::Keyring;
use harness::wait;

use super::app::{App, Setup, test_id};

#[test]
fn with_nothing_installed_one_click_begins_a_session_that_really_works() -> Result<()> {
    // Not even a keychain is needed.
    App::run(Setup { codex: false, keyring: Keyring::None, ..Setup::default() }, |app| {
        app.open_window()?;
        app.page()?.wait_for(&test_id("first-run"))?;
        app.page()?.wait_for(&test_id("try-demo"))?;
        app.see("first-run", "No agent is installed yet")?;
        app.picture("demo-first-run")?;
        app.click("try-demo")?;
        app.see("session-title", "The demo agent")?;
        // What to type stands there already.
        app.page()?.wait_for(&test_id("composer-input"))?;
        app.click("send")?;

        app.page()?.wait_for("[data-testid=approval][data-armed=true]")?;
        app.see("approval", "uname")?;
        app.see("entry-agent", "I am the demo agent")?;
        app.picture("demo-approval")?;
        app.click("approval-allow")?;
        let scratch = app.desktop.home().join(".local/share/turnkeep/demo/turnkeep-demo/tour.md");
        let asks_again = || {
            let page = app.page().ok()?;
            let shown = page.find("[data-testid=approval][data-armed=true]").ok()??;
            page.text(&shown).ok()?.contains("tour.md").then_some(())
        };
        wait::until("question about the change", asks_again)?;
        ensure!(!scratch.exists(), "it was written before it was allowed");
        app.picture("demo-change")?;
        app.click("approval-allow")?;
        app.see("entry-agent", "That was the tour")?;
        ensure!(fs::read_to_string(&scratch).context("the change")?.contains("The tour"));

        // Whoever looks elsewhere is told: of what is asked still, and of the end.
        app.send("ask")?;
        app.page()?.wait_for("[data-testid=approval][data-armed=true]")?;
        app.click("open-settings")?;
        let asked = app.desktop.wait_notification("of the question", |n| n.summary.contains("asks"))?;
        app.desktop.choose_action(&asked, "Deny")?;
        let told = app.desktop.wait_notification("of the finished turn", |n| n.summary.contains("Finished"))?;
        app.picture_of_notification("demo-finished")?;
        app.desktop.choose_action(&told, "Open")?;
        app.see("session-title", "The demo agent")?;
        app.picture("demo-done")?;
        ensure!(app.mock.requests().is_empty(), "something was asked for over the network");
        Ok(())
    })
}
