//! A disk that takes no more in the middle of a turn, and one that cannot be written to at the start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context, Result, ensure};
use harness::mock_model::Reply;
use harness::process;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::app::{App, Setup, test_id};

/// Less than the database's log has already, and enough for what the web view needs to draw.
const LITTLE: u64 = 96 * 1024;

/// From now on the application can write so many bytes into a file, or as many as ever.
fn files_may_have(app: &App, bytes: Option<u64>) -> Result<()> {
    let pid = Pid::from_raw(app.pid()?).context("the application has a number")?;
    let maximum = getrlimit(Resource::Fsize).maximum;
    prlimit(Some(pid), Resource::Fsize, Rlimit { current: bytes, maximum }).context("limiting the application")?;
    Ok(())
}

#[test]
fn a_full_disk_is_said_stops_nothing_that_runs_and_is_over_once_there_is_room() -> Result<()> {
    App::run(Setup::default(), |app| {
        app.mock.on("Fill it", vec![Reply::say("Before[[full]] and after[[end]] the end.")]);
        app.mock.on("Meanwhile", vec![Reply::say("The disk has room again.")]);
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Full")?;
        app.send("Fill it")?;
        app.mock.wait_at("full")?;
        app.see("entry-agent", "Before")?;
        let codex = app.wait_codex()?;

        app.click("mode-queue")?;
        app.type_into("composer-input", "Meanwhile")?;
        files_may_have(app, Some(LITTLE))?;
        app.page()?.execute("document.querySelector('[data-testid=send]').click()", &[])?;
        let said = "return document.querySelector('[data-testid=fatal]')?.innerText.includes('takes no more')";
        app.page()?.wait_until("word of the full disk", said).context("nothing says that the disk is full")?;
        // What was asked for is not done before it is written, and what runs is left alone.
        app.mock.open("full");
        app.mock.wait_at("end")?;
        app.mock.open("end");
        ensure!(process::row(codex.pid).is_some_and(|row| row.start_ticks == codex.start_ticks), "the running process was ended");
        ensure!(app.mock.model_calls().len() == 1, "a message went out that was not written down");

        files_may_have(app, None)?;
        app.page()?.wait_gone(&test_id("fatal")).context("it is still said, with room on the disk")?;
        app.see("transcript", "Before and after the end.")?;
        app.see("transcript", "The disk has room again.")?;
        ensure!(app.wait_codex()?.pid == codex.pid, "another process serves the session");
        ensure!(app.mock.model_calls().len() == 2, "the message went out {} times", app.mock.model_calls().len() - 1);
        Ok(())
    })
}

#[test]
fn a_folder_that_cannot_be_used_is_named_at_the_start() -> Result<()> {
    let mut app = App::prepare(Setup::default())?;
    // In the way of the folder, which not even a superuser can get around.
    let data = app.desktop.home().join(".local/share/turnkeep");
    fs::create_dir_all(data.parent().context("it has a parent")?)?;
    fs::write(&data, "in the way")?;
    fs::set_permissions(&data, fs::Permissions::from_mode(0o400))?;
    app.spawn(&[], &[])?;
    let code = app.wait_exit()?;
    let said = fs::read_to_string(app.desktop.logs().join("turnkeep.log"))?;
    ensure!(code == 1, "it ended with {code}: {said}");
    ensure!(said.contains(&data.display().to_string()) && said.contains("cannot be made or used"), "it said {said:?}");
    ensure!(!said.contains("panicked"), "it panicked: {said}");
    Ok(())
}
