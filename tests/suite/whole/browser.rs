//! Signing in by browser, to its end and into every way in which it can go wrong on the way.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::browser::{self, SignInPort};
use harness::mock_model::{Consent, Identity};
use harness::process::{self, Row};
use harness::wait;
use rustix::process::Signal;

use super::app::{App, Setup};
use super::sign_in::{a_turn_runs, in_the_keychain_only};

/// To the dialog, with the way of signing in chosen.
fn choose_browser(app: &mut App) -> Result<()> {
    app.open_window()?;
    app.pass_welcome()?;
    app.click("open-settings")?;
    app.click("add-account")?;
    app.click("method-browser")
}

fn signing_in(app: &App) -> Result<Row> {
    wait::until("one process that signs in", || match &app.codex().ok()?[..] {
        [one] => Some(one.clone()),
        _ => None,
    })
}

fn nothing_runs(app: &App) -> Result<()> {
    wait::until("end of the process that signed in", || app.codex().ok()?.is_empty().then_some(()))
}

/// What a failed attempt had in the keychain or on disk is gone.
fn nothing_stays(app: &App) -> Result<()> {
    nothing_runs(app)?;
    let kept =
        app.desktop.keyring_items()?.into_iter().find(|item| item.attributes.get("service").is_some_and(|s| s == "Codex Auth"));
    ensure!(kept.is_none(), "the keychain still has {kept:?}");
    wait::until("end of the attempt's private home", || private_homes(app).ok()?.is_empty().then_some(()))
}

fn private_homes(app: &App) -> Result<Vec<PathBuf>> {
    let homes = fs::read_dir(app.desktop.home().join(".local/share/turnkeep/homes/codex"))?;
    homes.map(|home| Ok(home?.path())).collect()
}

#[test]
fn the_browser_leads_to_an_account_whose_turns_run() -> Result<()> {
    let _turn = SignInPort::take()?;
    App::run(Setup::default(), |app| {
        app.mock.sign_in_as(Identity::named("clara"));
        choose_browser(app)?;
        app.type_into("sign-in-label", "home")?;
        app.click("sign-in-start")?;
        let address = app.browser.wait_opened(1)?;
        ensure!(address.starts_with(&app.mock.url()), "the browser was sent to {address}");
        app.page()?.wait_for("[data-testid=sign-in-cancel]")?;
        app.picture("browser-sign-in")?;
        let landed = browser::visit(&address)?;
        ensure!(landed.status == 200 && landed.url.contains("/success"), "the browser ended at {landed:?}");
        app.see_account("signedIn")?;
        app.see("account", "clara@example.com")?;
        app.page()?.wait_gone("dialog[open]")?;
        app.picture("signed-in-by-browser")?;
        in_the_keychain_only(app)?;
        nothing_runs(app).context("the sign-in's own process stays")?;
        app.click("settings-back")?;
        a_turn_runs(app)?;
        ensure!(app.browser.opened().len() == 1, "more was opened: {:?}", app.browser.opened());
        // The whole way is written down nowhere: what stands in that address is a secret of this sign-in.
        let state =
            address.split("state=").nth(1).and_then(|rest| rest.split('&').next()).context("an address without a state")?;
        let log = fs::read_to_string(app.desktop.logs().join("turnkeep.log"))?;
        ensure!(!log.contains(state), "the log has the sign-in's secret");
        Ok(())
    })
}

#[test]
fn what_goes_wrong_on_the_way_is_said_and_can_be_tried_again() -> Result<()> {
    let _turn = SignInPort::take()?;
    App::run(Setup::default(), |app| {
        app.mock.sign_in_as(Identity::named("clara"));
        choose_browser(app)?;

        // Other programs have both ports that the browser could come back to.
        let first = TcpListener::bind(("127.0.0.1", SignInPort::NUMBER)).context("the port of the sign-in is taken")?;
        let second = TcpListener::bind(("127.0.0.1", SignInPort::FALLBACK)).context("the second port of the sign-in is taken")?;
        app.click("sign-in-start")?;
        app.see("sign-in-failure", "are in use by other programs").context("nothing says what is in the way")?;
        app.picture("browser-sign-in-port-taken")?;
        drop(second);
        nothing_stays(app)?;

        // One of them is enough.
        app.mock.set_consent(Consent::Denied);
        app.click("sign-in-start")?;
        browser::visit(&app.browser.wait_opened(1)?)?;
        app.see("sign-in-failure", "refused in the browser")?;
        app.picture("browser-sign-in-denied")?;
        drop(first);
        nothing_stays(app)?;

        // The process that signs in dies.
        app.click("sign-in-start")?;
        app.browser.wait_opened(2)?;
        let codex = signing_in(app)?;
        ensure!(process::signal_own(codex.pid, codex.start_ticks, Signal::KILL)?, "it was gone already");
        app.see("sign-in-failure", "signal 9 before the sign-in was done")?;
        nothing_stays(app)?;

        // Given up.
        app.click("sign-in-start")?;
        let given_up = app.browser.wait_opened(3)?;
        app.click("sign-in-cancel")?;
        nothing_stays(app)?;
        let late = browser::visit(&given_up);
        ensure!(late.as_ref().map_or(true, |page| page.status >= 400), "a sign-in that was given up ended at {late:?}");

        // And then it works.
        app.mock.set_consent(Consent::Given);
        app.click("add-account")?;
        app.click("method-browser")?;
        app.click("sign-in-start")?;
        browser::visit(&app.browser.wait_opened(4)?)?;
        app.see_account("signedIn")?;
        app.see("account", "clara@example.com")?;
        in_the_keychain_only(app)?;
        let accounts = app.page()?.find_all("[data-testid=account]")?.len();
        ensure!(accounts == 1, "the attempts left {accounts} accounts");
        ensure!(private_homes(app)?.len() == 1, "the homes are {:?}", private_homes(app)?);
        Ok(())
    })
}

#[test]
fn a_window_that_closes_meanwhile_does_not_end_the_sign_in() -> Result<()> {
    let _turn = SignInPort::take()?;
    App::run(Setup::default(), |app| {
        app.mock.sign_in_as(Identity::named("clara"));
        choose_browser(app)?;
        app.click("sign-in-start")?;
        let address = app.browser.wait_opened(1)?;
        let codex = signing_in(app)?;
        app.close_window()?;
        let landed = browser::visit(&address)?;
        ensure!(landed.url.contains("/success"), "the browser ended at {landed:?}");
        process::wait_gone(codex.pid, codex.start_ticks, Duration::from_secs(30))?;
        in_the_keychain_only(app)?;
        let tray = app.desktop.tray_item()?;
        wait::until("tray that knows of the sign-in", || {
            let menu = app.desktop.tray_menu(&tray).ok()?;
            menu.iter().any(|entry| entry.label.contains("clara@example.com")).then_some(())
        })?;

        // A second start of the application, because only its first window can be driven.
        app.kill()?;
        app.launch(&[])?;
        app.open_window()?;
        app.click("open-settings")?;
        app.see_account("signedIn")?;
        app.see("account", "clara@example.com")?;
        app.click("settings-back")?;
        a_turn_runs(app)
    })
}
