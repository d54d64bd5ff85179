//! The main job: click the tray icon, see a session, get told when its turn is done.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::mock_model::Reply;
use harness::wait;

use super::app::{App, KEY, Setup, test_id};

#[test]
fn from_the_click_on_the_tray_icon_to_the_notification_of_the_finished_turn() -> Result<()> {
    App::run(Setup::default(), |app| {
        app.mock.on("Say hello", vec![Reply::say("Hello from[[first]] the model.[[second]] All is done.")]);
        let tray = app.desktop.tray_item()?;
        ensure!(!app.desktop.tray_icons(&tray)?.is_empty(), "the tray icon has no picture");
        ensure!(app.find_window().is_some() || app.web_processes()?.is_empty(), "a web process without a window");

        app.open_window()?;
        app.pass_welcome()?;
        app.picture("list-empty")?;
        app.sign_in_with_key()?;
        app.new_session("Greeting")?;
        app.send("Say hello")?;

        // What was typed reaches the real Codex, and the model's words stream into the transcript.
        app.mock.wait_at("first")?;
        app.see("entry-agent", "Hello from")?;
        app.see("session-state", "Running")?;
        let call = app.mock.model_calls().into_iter().next().context("no call of the model")?;
        ensure!(call.bearer() == Some(KEY), "the model saw {:?}", call.bearer());
        app.mock.open("first");
        app.mock.wait_at("second")?;
        app.see("entry-agent", "Hello from the model.")?;
        app.picture("streaming")?;
        let (title, tip) = app.desktop.tray_tooltip(&tray)?;
        ensure!(format!("{title} {tip}").contains("1 running"), "the tray says {title:?} {tip:?}");

        // The window goes, and all of the browser with it; the turn goes on and is told of once.
        app.close_window()?;
        ensure!(app.notifications_of("Greeting").is_empty(), "told before the turn was done");
        app.mock.open("second");
        let told = app
            .desktop
            .wait_notification("of the finished turn", |n| n.summary.contains("Greeting") || n.body.contains("Greeting"))?;
        app.picture_of_notification("notification")?;
        ensure!(app.web_processes()?.is_empty(), "a web process without a window");

        // Its button opens that session.
        app.desktop.choose_action(&told, "Open")?;
        let window = app.wait_window()?;
        ensure!(window.visible, "the window is not to be seen");
        wait::until("title of the session in the window", || {
            app.find_window().filter(|window| window.title.contains("Greeting")).map(|_| ())
        })
        .with_context(|| format!("the window is called {:?}", app.find_window().map(|w| w.title)))?;
        ensure!(app.notifications_of("Greeting").len() == 1, "{:?}", app.notifications_of("Greeting"));
        app.picture("opened-from-notification")?;
        Ok(())
    })
}

#[test]
fn an_approval_is_given_from_the_notification_and_the_command_runs_once() -> Result<()> {
    App::run(Setup::default(), |app| {
        let proof = app.project().join("proof.txt");
        let command = format!("echo ran >> {}", proof.display());
        app.mock.on(
            "Leave a proof",
            vec![Reply::escalated(&command, "The proof must be written"), Reply::say("The proof is there.")],
        );
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Proof")?;
        app.send("Leave a proof")?;
        // While one looks at the session, it is asked there and not by a notification.
        app.page()?.wait_for("[data-testid=approval][data-armed=true]")?;
        app.see("approval", &command)?;
        app.picture("approval")?;
        ensure!(app.notifications_of("Proof").is_empty(), "a notification for what one is looking at");
        let tray = app.desktop.tray_item()?;
        let (title, tip) = app.desktop.tray_tooltip(&tray)?;
        ensure!(format!("{title} {tip}").contains("1 needs you"), "the tray says {title:?} {tip:?}");
        app.click("approval-deny")?;
        app.see("session-state", "")?;
        app.see("entry-agent", "The proof is there.")?;
        ensure!(!proof.exists(), "it ran although it was denied");

        // Asked again with the window closed: the notification has the buttons.
        app.mock.on(
            "Once more",
            vec![Reply::escalated(&command, "The proof must be written"), Reply::say("Now it is there.[[end]]")],
        );
        app.send("Once more")?;
        app.page()?.wait_for(&test_id("approval"))?;
        app.close_window()?;
        let asked = app.desktop.wait_notification("that asks", |n| n.actions.iter().any(|a| a.label.contains("Allow")))?;
        // A notification daemon that reads markup is given it escaped.
        ensure!(asked.body.replace("&gt;", ">").contains(&command), "the command is not shown: {asked:?}");
        app.picture_of_notification("notification-approval")?;
        app.desktop.choose_action(&asked, "Allow once")?;
        app.mock.wait_at("end")?;
        ensure!(fs::read_to_string(&proof)? == "ran\n", "it ran {:?}", fs::read_to_string(&proof)?);
        app.mock.open("end");
        app.desktop.wait_notification("of the end", |n| n.body.contains("Now it is there") || n.summary.contains("finished"))?;
        ensure!(fs::read_to_string(&proof)? == "ran\n", "it ran twice");
        Ok(())
    })
}

#[test]
fn one_steers_queues_and_interrupts_and_a_second_start_opens_the_window() -> Result<()> {
    App::run(Setup::default(), |app| {
        app.mock.on("Begin", vec![Reply::say("One[[hold]] two.")]);
        app.mock.on("Afterwards", vec![Reply::say("The queued one is answered.")]);
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Steering")?;
        app.send("Begin")?;
        app.mock.wait_at("hold")?;
        // Added to the running turn: the model is asked again, with both messages.
        app.mock.on("Also this", vec![Reply::say("Steered[[more]] on.")]);
        app.click("mode-steer")?;
        app.send("Also this")?;
        app.mock.wait_at("more")?;
        app.see("entry-agent", "Steered")?;
        app.click("mode-queue")?;
        app.send("Afterwards")?;
        app.see("queued", "Afterwards")?;
        app.click("interrupt")?;
        // The interrupted turn ends, and the queued message is sent by itself.
        app.see("entry-agent", "The queued one is answered.")?;
        app.close_window()?;

        let pid = app.pid()?;
        let second = app.desktop.command(super::app::program()?).status()?;
        ensure!(second.success(), "the second start ended with {second}");
        app.wait_window()?;
        ensure!(app.pid()? == pid, "another application answers");
        Ok(())
    })
}

#[test]
fn quitting_waits_for_the_turn_and_leaves_no_process() -> Result<()> {
    App::run(Setup::default(), |app| {
        app.mock.on("Take your time", vec![Reply::say("Slowly[[wait]] done.")]);
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Slow")?;
        app.send("Take your time")?;
        app.mock.wait_at("wait")?;
        let codex = app.wait_codex()?;
        let tray = app.desktop.tray_item()?;
        app.desktop.choose(&tray, "Quit when 1 turn ends")?;
        wait::until("word of the quit in the tray", || {
            let (title, tip) = app.desktop.tray_tooltip(&tray).ok()?;
            format!("{title} {tip}").to_lowercase().contains("quit").then_some(())
        })?;
        ensure!(app.codex()?.iter().any(|row| row.pid == codex.pid), "the running turn was not waited for");
        app.picture("quitting")?;
        app.mock.open("wait");
        ensure!(app.wait_exit()? == 0, "the end was not clean");
        harness::process::wait_gone(codex.pid, codex.start_ticks, Duration::from_secs(1))?;
        Ok(())
    })
}

#[test]
fn without_an_agent_the_first_start_says_where_it_looked_and_how_to_get_one() -> Result<()> {
    App::run(Setup { codex: false, ..Setup::default() }, |app| {
        app.attach()?;
        app.see("first-run", "npm install")?;
        app.see("first-run", "Codex")?;
        app.picture("first-run")?;
        Ok(())
    })
}
