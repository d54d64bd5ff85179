//! A desktop without the parts that one takes for granted.

use anyhow::{Result, ensure};
use harness::desktop::{Notifier, Tray};
use harness::mock_model::Reply;
use harness::wait;

use super::app::{App, Setup};

#[test]
fn without_a_tray_and_without_a_notifier_the_window_is_the_way_in_and_nothing_waits() -> Result<()> {
    let app = App::prepare(Setup { tray: Tray::None, notifier: Notifier::None, ..Setup::default() })?;
    App::run_prepared(app, |app| {
        app.spawn(&[], &[])?;
        app.attach()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Bare")?;
        app.mock.on("Work", vec![Reply::say("Worked[[on]] on.")]);
        app.send("Work")?;
        app.mock.wait_at("on")?;
        app.close_window()?;
        // It ends with nobody to tell it to.
        app.mock.open("on");
        wait::until("end of the model's answer", || (app.mock.model_calls().len() == 1).then_some(()))?;
        // A second start is the way back.
        let second = app.desktop.command(super::app::program()?).status()?;
        ensure!(second.success(), "the second start ended with {second}");
        app.wait_window().map(|_| ())
    })
}
