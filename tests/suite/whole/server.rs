//! A server that a person started themselves: found by its address in the settings, used, and never stopped.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, ensure};
use harness::mock_model::Reply;
use harness::{process, real_codex, wait};

use super::app::{App, Setup, test_id};

/// A server in a home of its own, and where it listens.
fn serve(app: &App) -> Result<(Child, String)> {
    let home = app.desktop.home().join("elsewhere");
    real_codex::write_config(&home, &app.mock, real_codex::Account::None)?;
    let mut command = app.desktop.command(real_codex::program()?);
    command.args(["app-server", "--listen", "ws://127.0.0.1:0"]).env("CODEX_HOME", &home).envs(real_codex::env(&app.mock));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut errors = BufReader::new(child.stderr.take().context("its errors")?).lines().map_while(std::io::Result::ok);
    let line = errors.find(|line| line.contains("listening on: ws://")).context("the server does not say where it listens")?;
    // It ends when nobody reads what it says.
    std::thread::spawn(move || errors.for_each(drop));
    let address = line.split_whitespace().last().context("an address")?.to_owned();
    Ok((child, address))
}

#[test]
fn a_server_is_used_by_its_address_and_outlives_the_application() -> Result<()> {
    App::run(Setup { codex: false, ..Setup::default() }, |app| {
        let (mut child, address) = serve(app)?;
        let pid = i32::try_from(child.id())?;
        let outcome = used(app, &address, pid);
        child.kill()?;
        child.wait()?;
        outcome
    })
}

fn used(app: &mut App, address: &str, pid: i32) -> Result<()> {
    let start_ticks = process::row(pid).context("the server runs")?.start_ticks;
    app.mock.on("hello", vec![Reply::say("Hello from [[half]]the server.")]);
    app.mock.on("make it", vec![Reply::escalated("echo made > made.txt", "The file is wanted"), Reply::say("Made.")]);
    app.open_window()?;
    app.pass_welcome()?;
    app.click("open-settings")?;

    app.click("add-server")?;
    app.type_into("server-address", "ws://192.0.2.7:4500")?;
    app.click("server-connect")?;
    app.see("server-failure", "not encrypted")?;
    app.picture("server-refused")?;
    let field = app.page()?.wait_for(&test_id("server-address"))?;
    app.page()?.clear(&field)?;
    app.type_into("server-address", address)?;
    app.click("server-connect")?;
    app.page()?.wait_gone("dialog[open]")?;
    app.see_account("signedIn")?;
    app.see("account", address)?;
    app.see("account", "A server that Turnkeep did not start")?;

    app.click("settings-back")?;
    app.new_session("Elsewhere")?;
    app.send("hello")?;
    app.see("entry-agent", "Hello from")?;
    app.mock.wait_at("half")?;
    app.picture("server-streaming")?;
    app.mock.open("half");
    app.see("entry-agent", "Hello from the server.")?;
    app.send("make it")?;
    app.page()?.wait_for("[data-testid=approval][data-armed=true]")?;
    app.click("approval-allow")?;
    app.see("entry-agent", "Made.")?;
    wait::until("what its command makes", || fs::read_to_string(app.project().join("made.txt")).ok())?;
    ensure!(app.codex()?.is_empty(), "the application started an agent of its own");

    app.click("open-settings")?;
    app.see("account", "Connected")?;
    app.see("account", "version ")?;
    app.picture("server-account")?;
    app.click("page-quitting")?;
    app.click("quit")?;
    app.click("quit-wait")?;
    ensure!(app.wait_exit()? == 0, "the application did not end well");
    let row = process::row(pid).context("the server is gone")?;
    ensure!(row.start_ticks == start_ticks && !"ZX".contains(row.state), "the server was ended: {row:?}");
    Ok(())
}
