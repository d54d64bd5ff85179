//! Parts of the desktop come and go: nothing breaks, and what comes back is used again.

use anyhow::Result;
use harness::desktop::{Button, Service};
use harness::mock_model::Reply;
use harness::wait;

use super::app::{App, Setup};

#[test]
fn a_panel_and_a_notifier_that_end_and_come_back_are_used_again() -> Result<()> {
    App::run(Setup::default(), |app| {
        app.mock.on("One", vec![Reply::say("One is[[one]] done.")]);
        app.mock.on("Two", vec![Reply::say("Two is[[two]] done.")]);
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Parts")?;
        app.desktop.end_service(Service::Notifier)?;
        app.send("One")?;
        app.mock.wait_at("one")?;
        app.send("Two")?;
        app.close_window()?;
        // Nobody can be told of the first turn.
        app.mock.open("one");
        app.desktop.end_service(Service::Panel)?;
        app.desktop.start_service(Service::Panel)?;
        app.desktop.start_service(Service::Notifier)?;
        wait::until("tray icon in the new panel", || app.desktop.tray_item().ok())?;
        app.mock.open("two");
        app.desktop.wait_notification("after the notifier came back", |n| n.summary.contains("Parts"))?;
        app.desktop.click_tray_icon(Button::Left)?;
        app.wait_window().map(|_| ())
    })
}
