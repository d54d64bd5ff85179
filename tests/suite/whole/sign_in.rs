//! Signing in with the provider's own flows: by device code, into the OS keychain.

use anyhow::{Context, Result, ensure};
use harness::mock_model::{DeviceCode, Identity, Reply};

use super::app::{App, Setup};

/// A turn on the account that was just made runs with its bearer.
pub(super) fn a_turn_runs(app: &App) -> Result<()> {
    app.mock.on("Who am I", vec![Reply::say("You are signed in.")]);
    app.new_session("Signed in")?;
    app.send("Who am I")?;
    app.see("entry-agent", "You are signed in.")?;
    let call = app.mock.model_calls().into_iter().next_back().context("no call of the model")?;
    ensure!(call.bearer().is_some_and(|bearer| bearer.contains('.')), "the model saw {:?}", call.bearer());
    Ok(())
}

/// The credential is in the keychain, put there by Codex, and in no file of its home.
pub(super) fn in_the_keychain_only(app: &App) -> Result<()> {
    let items = app.desktop.keyring_items()?;
    ensure!(items.iter().any(|item| item.attributes.get("service").is_some_and(|s| s == "Codex Auth")), "{items:?}");
    Ok(())
}

#[test]
fn by_device_code_into_the_keychain() -> Result<()> {
    App::run(Setup::default(), |app| {
        app.mock.sign_in_as(Identity::named("maria"));
        app.mock.set_device_code(DeviceCode::Pending);
        app.open_window()?;
        app.pass_welcome()?;
        app.click("open-settings")?;
        app.click("add-account")?;
        app.click("method-deviceCode")?;
        app.type_into("sign-in-label", "maria")?;
        app.click("sign-in-start")?;
        app.see("device-code", "-")?;
        app.picture("device-code")?;
        app.mock.set_device_code(DeviceCode::Approved);
        app.see_account("signedIn")?;
        app.see("account", "maria")?;
        app.picture("signed-in-by-device-code")?;
        in_the_keychain_only(app)?;
        app.click("settings-back")?;
        a_turn_runs(app)
    })
}
