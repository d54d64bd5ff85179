//! A sign-out, wherever it was made: an idle process goes within two seconds, a running turn is left to finish.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use harness::mock_model::Reply;
use harness::process::{self, Row};

use super::app::{App, KEY, Setup, test_id};

/// What behaviour B4 and B5 allow from the sign-out to the end of the process.
const WITHIN: Duration = Duration::from_secs(2);

/// Signed in with a key, one session, one turn done: an idle process of Codex.
fn idle(app: &mut App) -> Result<Row> {
    app.mock.on("Warm up", vec![Reply::say("Warm.")]);
    app.open_window()?;
    app.pass_welcome()?;
    app.sign_in_with_key()?;
    app.new_session("Account")?;
    app.send("Warm up")?;
    app.see("entry-agent", "Warm.")?;
    app.wait_codex()
}

fn gone_in_time(codex: &Row, since: Instant) -> Result<()> {
    process::wait_gone(codex.pid, codex.start_ticks, WITHIN.saturating_sub(since.elapsed()))
        .with_context(|| format!("the idle process lived on {} s after the sign-out", WITHIN.as_secs()))
}

/// With a running turn: it goes on through `sign_out`, on the old key, ends, and then its process ends too.
fn a_running_turn_finishes(app: &mut App, sign_out: impl FnOnce(&mut App) -> Result<()>) -> Result<()> {
    app.mock.on("Long work", vec![Reply::say("Working[[middle]] and done.")]);
    app.send("Long work")?;
    app.mock.wait_at("middle")?;
    let codex = app.wait_codex()?;
    sign_out(app)?;
    app.page()?.wait_for("[data-testid=old-account]").context("nothing says that the turn runs on an old account")?;
    app.click("mode-queue")?;
    app.send("Meanwhile").context("a message while signed out")?;
    app.see("queued", "Meanwhile")?;
    ensure!(process::row(codex.pid).is_some(), "the running turn was ended by the sign-out");
    app.picture("signed-out-while-running")?;
    app.mock.open("middle");
    app.see("entry-agent", "Working and done.")?;
    process::wait_gone(codex.pid, codex.start_ticks, Duration::from_secs(10))?;
    app.see("queued", "Meanwhile")?;
    ensure!(app.codex()?.is_empty(), "a process was started for nobody");
    let calls = app.mock.model_calls();
    ensure!(calls.iter().all(|call| call.bearer() == Some(KEY)), "a call with another bearer");
    ensure!(!calls.iter().any(|call| String::from_utf8_lossy(&call.body).contains("Meanwhile")), "a message went out signed out");
    Ok(())
}

fn sign_out_in_the_settings(app: &App) -> Result<()> {
    app.click("open-settings")?;
    app.click("account-sign-out")?;
    app.click("sign-out-after")?;
    app.click("sign-out-do")?;
    app.see_account("signedOut")?;
    app.click("settings-back")
}

fn delete_the_key(app: &App) -> Result<()> {
    let items = app.desktop.keyring_items()?;
    let item = items.iter().find(|item| app.desktop.keyring_secret(item).is_ok_and(|secret| secret == KEY.as_bytes()));
    app.desktop.delete_keyring_item(item.context("the key is not in the keyring")?)
}

#[test]
fn signing_out_in_the_settings_ends_an_idle_process() -> Result<()> {
    App::run(Setup::default(), |app| {
        let codex = idle(app)?;
        let since = Instant::now();
        app.click("open-settings")?;
        app.click("account-sign-out")?;
        app.click("sign-out-do")?;
        gone_in_time(&codex, since)?;
        app.see_account("signedOut")?;
        app.picture("signed-out")?;
        let left = app.desktop.keyring_items()?;
        ensure!(
            !left.iter().any(|item| app.desktop.keyring_secret(item).is_ok_and(|s| s == KEY.as_bytes())),
            "the key is still there"
        );
        Ok(())
    })
}

#[test]
fn signing_out_in_the_settings_leaves_a_running_turn_to_finish() -> Result<()> {
    App::run(Setup::default(), |app| {
        idle(app)?;
        a_running_turn_finishes(app, |app| sign_out_in_the_settings(app))
    })
}

#[test]
fn a_key_deleted_by_another_program_ends_an_idle_process_and_the_person_is_told() -> Result<()> {
    App::run(Setup::default(), |app| {
        let codex = idle(app)?;
        app.close_window()?;
        let since = Instant::now();
        delete_the_key(app)?;
        gone_in_time(&codex, since)?;
        let told = app.desktop.wait_notification("of the sign-out", |n| n.actions.iter().any(|a| a.label == "Sign in"))?;
        app.picture_of_notification("notification-signed-out")?;
        app.desktop.choose_action(&told, "Sign in")?;
        app.wait_window().map(|_| ())
    })
}

#[test]
fn a_key_deleted_by_another_program_leaves_a_running_turn_to_finish() -> Result<()> {
    App::run(Setup::default(), |app| {
        idle(app)?;
        a_running_turn_finishes(app, |app| delete_the_key(app))
    })
}

/// The person's own sign-in, made and ended by Codex in a terminal.
fn codex_in_a_terminal(app: &App, home: &Path, arguments: &[&str], input: Option<&str>) -> Result<()> {
    let mut command = app.desktop.command(harness::real_codex::program()?);
    command.args(arguments).env("CODEX_HOME", home);
    if let Some(input) = input {
        let file = app.desktop.folder().join("typed");
        fs::write(&file, input)?;
        command.stdin(fs::File::open(file)?);
    }
    let done = command.output()?;
    ensure!(done.status.success(), "codex {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

#[test]
fn the_sign_in_of_this_computer_is_an_account_and_a_logout_in_a_terminal_is_noticed() -> Result<()> {
    App::run(Setup::default(), |app| {
        let home = app.desktop.home().join(".codex");
        // Signed in by Codex itself, while Turnkeep runs.
        codex_in_a_terminal(app, &home, &["login", "--with-api-key"], Some(KEY))?;
        app.open_window()?;
        app.pass_welcome()?;
        app.click("open-settings")?;
        app.see_account("signedIn")?;
        app.picture("system-account")?;
        app.click("settings-back")?;
        app.mock.on("Warm up", vec![Reply::say("Warm.")]);
        app.new_session("Terminal")?;
        app.send("Warm up")?;
        app.see("entry-agent", "Warm.")?;
        let codex = app.wait_codex()?;
        let since = Instant::now();
        codex_in_a_terminal(app, &home, &["logout"], None)?;
        gone_in_time(&codex, since)?;
        app.page()?.wait_for(&test_id("signed-out")).map(|_| ())?;
        app.picture("logged-out-in-a-terminal")?;

        // In again, and out in mid-turn.
        codex_in_a_terminal(app, &home, &["login", "--with-api-key"], Some(KEY))?;
        app.page()?.wait_gone(&test_id("signed-out"))?;
        a_running_turn_finishes(app, |app| codex_in_a_terminal(app, &home, &["logout"], None))
    })
}
