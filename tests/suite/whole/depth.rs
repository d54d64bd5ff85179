//! What a turn changed, the process behind it, and threads from elsewhere: seen in the real window with the real program.

use anyhow::{Context, Result, ensure};
use harness::mock_model::Reply;

use super::app::{App, Setup, test_id};

#[test]
fn what_a_turn_changed_is_seen_and_survives_a_restart_and_its_process_is_shown() -> Result<()> {
    App::run(Setup::default(), |app| {
        app.mock.on("Write the list", vec![Reply::new_file("list.txt", "one\ntwo\n"), Reply::say("The list is written.")]);
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Write a list")?;
        app.send("Write the list")?;
        // Nothing is written in a folder that the agent was not told to trust, but what is allowed.
        app.page()?.wait_for("[data-testid=approval][data-armed=true]")?;
        app.click("approval-allow")?;
        app.see("entry-agent", "The list is written.")?;
        app.see("changes", "1 file")?;
        app.click("changes-toggle")?;
        app.page()?.wait_for_text("[data-testid=changes] [data-testid=diff]", "list.txt")?;
        app.picture("changes")?;

        app.page()?.click_on("[aria-label='More about this session']")?;
        app.page()?.wait_for("[role=menuitem]")?;
        let item =
            "[...document.querySelectorAll('[role=menuitem]')].find((i) => i.textContent.includes('Agent process')).click()";
        app.page()?.execute(item, &[])?;
        app.see("runtime", "Ready")?;
        let codex = app.wait_codex()?;
        app.see("runtime", &format!("pid {}", codex.pid)).context("another process is shown than the one that runs")?;
        app.picture("process")?;

        app.kill()?;
        app.launch(&[])?;
        app.open_window()?;
        app.see("group-idle", "Write a list")?;
        app.page()?.click_on("[data-row]")?;
        app.see("changes", "1 file").context("the changes did not survive the restart")?;
        Ok(())
    })
}

#[test]
fn a_thread_from_elsewhere_is_gone_on_with_and_its_history_is_there() -> Result<()> {
    App::run(Setup::default(), |app| {
        app.mock.on("Say something old", vec![Reply::say("Something old.")]);
        app.mock.on("And something new", vec![Reply::say("Something new.")]);
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Old times")?;
        app.send("Say something old")?;
        app.see("entry-agent", "Something old.")?;
        // A thread that is a session leads there.
        threads(app)?;
        app.see("thread", "is a session here")?;
        app.click("thread")?;
        app.page()?.wait_gone(&test_id("threads"))?;

        // Another Turnkeep, which never heard of it.
        app.kill()?;
        let known = app.desktop.home().join(".local/share/turnkeep");
        std::fs::remove_dir_all(&known).with_context(|| known.display().to_string())?;
        app.launch(&[])?;
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        threads(app)?;
        app.see("thread", "Say something old")?;
        app.picture("threads")?;
        app.click("thread")?;
        app.see("entry-agent", "Something old.").context("the history is not there")?;
        app.send("And something new")?;
        app.see("transcript", "Something new.")?;
        let transcript = app.page()?.wait_for(&test_id("transcript"))?;
        let text = app.page()?.text(&transcript)?;
        let (old, new) = (text.find("Something old."), text.find("Something new."));
        ensure!(old.is_some() && old < new, "in the wrong order: {text}");
        Ok(())
    })
}

fn threads(app: &App) -> Result<()> {
    app.click("new-session")?;
    app.click("new-how-thread")?;
    app.page()?.wait_for(&test_id("thread")).map(drop)
}
