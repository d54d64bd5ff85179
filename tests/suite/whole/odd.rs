//! Odd input: folders, messages and keys as nobody should have them, and hands that are too quick.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use anyhow::{Context, Result, ensure};
use harness::fake_agent::{Action, Script};
use harness::wait;
use serde_json::json;

use super::app::{App, KEY, test_id};

fn signed_in(app: &mut App) -> Result<()> {
    app.open_window()?;
    app.pass_welcome()?;
    app.sign_in_with_key()
}

/// Puts a text into a field as a paste does: WebDriver types each letter, which takes its time.
fn paste(app: &App, id: &str, text: &str) -> Result<()> {
    let script = "const e = document.querySelector(arguments[0]); e.focus(); e.value = arguments[1];\
                  e.dispatchEvent(new Event('input', { bubbles: true }));";
    app.page()?.wait_for(&test_id(id))?;
    app.page()?.execute(script, &[json!(test_id(id)), json!(text)]).map(|_| ())
}

#[test]
fn a_session_begins_in_any_folder_that_can_be_named_and_in_no_other() -> Result<()> {
    App::run_with_fake(&Script::default(), |app, fake| {
        signed_in(app)?;
        let home = app.desktop.home();
        fs::create_dir(home.join("two words"))?;
        fs::create_dir(home.join("two\nlines"))?;
        fs::create_dir(home.join("ümlaut \u{202e}x"))?;
        symlink(home.join("two words"), home.join("link"))?;
        fs::create_dir(home.join(std::ffi::OsStr::from_bytes(b"bad\xff")))?;
        fs::create_dir(home.join("goes"))?;

        app.click("new-session")?;
        app.page()?.wait_for(&test_id("new-folder"))?;
        for (folder, why) in [("nowhere", "does not exist"), (".bash_profile", "is not a folder")] {
            paste(app, "new-folder", &home.join(folder).display().to_string())?;
            app.click("new-create")?;
            app.page()?.wait_for_text("dialog[open]", why)?;
        }
        // What is not valid text cannot be typed; what it looks like is not there.
        paste(app, "new-folder", &home.join("bad\u{fffd}").display().to_string())?;
        app.click("new-create")?;
        app.page()?.wait_for_text("dialog[open]", "does not exist")?;
        app.page()?
            .execute("document.querySelector('dialog[open]').dispatchEvent(new Event('cancel', { cancelable: true }))", &[])?;
        app.page()?.wait_gone("dialog[open]")?;

        for (number, folder) in ["two words", "ümlaut \u{202e}x", "link"].into_iter().enumerate() {
            let path = home.join(folder).display().to_string();
            app.click("new-session")?;
            paste(app, "new-folder", &path)?;
            app.type_into("new-title", &format!("Folder {number}"))?;
            app.click("new-create")?;
            app.see("session-title", &format!("Folder {number}"))?;
            app.page()?.wait_gone("dialog[open]")?;
            app.send(&format!("In {number}"))?;
            let started = fake.wait_received("thread/start", number + 1)?;
            ensure!(started[number]["params"]["cwd"] == path.as_str(), "it began in {}", started[number]["params"]["cwd"]);
            app.see("entry-agent", "OK")?;
        }
        Ok(())
    })
}

#[test]
fn messages_of_any_size_are_sent_once_or_refused_in_words() -> Result<()> {
    // So that the second click finds the turn running.
    let script = Script {
        turns: vec![vec![Action::Sleep { milliseconds: 300 }, Action::Message("OK".to_owned()), Action::complete()]],
        ..Script::default()
    };
    App::run_with_fake(&script, |app, fake| {
        signed_in(app)?;
        app.new_session("Messages")?;
        let sent = |text: &str| {
            let all = fake.received("turn/start").into_iter().chain(fake.received("turn/steer"));
            all.filter(|one| one["params"]["input"][0]["text"] == text).count()
        };

        // Two clicks in the same moment.
        app.type_into("composer-input", "Twice")?;
        let twice = format!("const e = document.querySelector('{}'); e.click(); e.click();", test_id("send"));
        app.page()?.execute(&twice, &[])?;
        app.see("entry-agent", "OK")?;
        ensure!(sent("Twice") == 1, "it was sent {} times", sent("Twice"));

        // Nothing, and nothing to see.
        for nothing in ["", "  \n\t "] {
            paste(app, "composer-input", nothing)?;
            let click = format!("const e = document.querySelector('{}'); e.click(); return e.disabled;", test_id("send"));
            app.page()?.execute(&click, &[])?;
        }
        let before = fake.received("turn/start").len();
        paste(app, "composer-input", "Something")?;
        app.click("send")?;
        fake.wait_received("turn/start", before + 1)?;
        ensure!(sent("Something") == 1, "what was empty went out instead");
        app.page()?.wait_gone("[data-testid=session][data-running=true]")?;

        // More than the agent takes: said, and not lost.
        let long = "1234567 ".repeat(137_500);
        paste(app, "composer-input", &long)?;
        app.click("send")?;
        app.page()?.wait_for_text("main", "it has 1099999 characters").context("nothing says why")?;
        app.picture("message-too-long")?;
        ensure!(sent(&long) == 0, "it was sent");
        Ok(())
    })
}

#[test]
fn keys_with_anything_around_and_in_them_reach_the_agent_as_they_are() -> Result<()> {
    App::run_with_fake(&Script::default(), |app, fake| {
        app.open_window()?;
        app.pass_welcome()?;
        app.click("open-settings")?;
        let odd = format!("sk-\"quo'ted\\{{}}{}", "x".repeat(1_500));
        app.click("add-account")?;
        app.click("method-apiKey")?;
        app.type_into("sign-in-label", "odd")?;
        // A key that was copied with what stood beside it.
        paste(app, "sign-in-key", "sk-one sk-two")?;
        app.click("sign-in-start")?;
        app.see("sign-in-failure", "Copy the key alone")?;
        paste(app, "sign-in-key", &format!(" {odd} "))?;
        app.click("sign-in-start")?;
        app.see_account("signedIn")?;
        app.page()?.wait_gone("dialog[open]")?;
        app.click("settings-back")?;
        app.new_session("Key")?;
        app.send("Hello")?;
        app.see("entry-agent", "OK")?;
        let given = wait::until("key at the agent", || fake.received("account/login/start").into_iter().next())?;
        ensure!(given["params"]["apiKey"] == odd.as_str(), "the agent was given another key than the one typed");
        ensure!(given["params"]["apiKey"] != KEY, "the comparison is with the wrong key");
        Ok(())
    })
}
