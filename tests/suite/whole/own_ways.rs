//! What agents of the Agent Client Protocol have of their own: commands, forks, threads, and keys that they are given.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use harness::desktop::Keyring;
use harness::mock_model::Reply;
use harness::{process, wait};

use super::app::{App, KEY, Setup, test_id};
use super::keychain::written_anywhere;

/// Keys as the driver types them.
const DOWN: &str = "\u{E015}";
const ENTER: &str = "\u{E007}";

#[test]
fn commands_are_chosen_a_session_is_forked_and_one_from_elsewhere_goes_on() -> Result<()> {
    App::run(Setup { codex: false, keyring: Keyring::None, ..Setup::default() }, |app| {
        app.open_window()?;
        app.pass_welcome()?;
        app.new_session("Commands")?;
        app.send("plan")?;
        app.see("entry-agent", "All of it is done.")?;
        app.see("session-state", "Finished").or_else(|_| app.see("session-state", "Idle"))?;

        app.type_into("composer-input", "/")?;
        app.see("commands", "shows a plan")?;
        app.picture("commands")?;
        app.type_into("composer-input", DOWN)?;
        app.page()?.wait_for_text("[data-testid=command][aria-selected=true]", "/plan")?;
        app.type_into("composer-input", ENTER)?;
        app.page()?.wait_gone(&test_id("commands"))?;
        app.type_into("composer-input", ENTER)?;
        app.page()?.wait_for_text(&test_id("entry-user"), "/plan")?;
        app.page()?.wait_gone(&test_id("interrupt"))?;

        app.page()?.click_on("header.head [aria-haspopup=menu]")?;
        app.click("act-fork")?;
        app.see("session-title", "Commands (fork)")?;
        app.see("entry-agent", "All of it is done.").context("the fork does not hold what was said")?;
        app.picture("fork")?;
        app.send("ask")?;
        app.page()?.wait_for("[data-testid=approval][data-armed=true]")?;
        app.click("approval-deny")?;
        app.page()?.wait_gone(&test_id("interrupt"))?;

        // Another Turnkeep, which never heard of it; the agent did.
        app.kill()?;
        for file in ["turnkeep.db", "turnkeep.db-wal", "turnkeep.db-shm"] {
            let _ = std::fs::remove_file(app.desktop.home().join(".local/share/turnkeep").join(file));
        }
        app.launch(&[])?;
        app.open_window()?;
        app.pass_welcome()?;
        app.new_session("Another")?;
        app.send("plan")?;
        app.see("entry-agent", "All of it is done.")?;
        app.click("new-session")?;
        app.click("new-how-thread")?;
        app.see("thread", "plan")?;
        app.picture("threads-of-another-agent")?;
        app.page()?.click_on("li:last-child > [data-testid=thread]")?;
        app.see("entry-agent", "All of it is done.").context("the history is not there")
    })
}

/// The folder of the real agents.
fn agents() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/node_modules/.bin")
}

/// The keys of ours in the keychain.
fn kept(app: &App) -> Result<Vec<Vec<u8>>> {
    app.desktop.keyring_items()?.iter().map(|item| app.desktop.keyring_secret(item)).collect()
}

#[test]
fn an_agent_is_given_a_key_from_the_keychain_and_it_lies_nowhere_else() -> Result<()> {
    const PROVIDER: &str = "[data-testid=provider][data-provider=claude-agent-acp]";
    let app = App::prepare(Setup { codex: false, ..Setup::default() })?;
    let profile = app.desktop.home().join(".bash_profile");
    let variables = [
        ("PATH", format!("{}:$PATH", agents().display())),
        ("ANTHROPIC_BASE_URL", app.mock.url()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
    ];
    let lines: String = variables.iter().map(|(name, value)| format!("export {name}=\"{value}\"\n")).collect();
    std::fs::write(&profile, std::fs::read_to_string(&profile)? + &lines)?;
    App::run_prepared(app, |app| {
        app.launch(&[])?;
        app.mock.on("Say hello", vec![Reply::say("Hello with a key.")]);
        app.open_window()?;
        app.pass_welcome()?;
        app.click("open-settings")?;
        app.page()?.wait_for(PROVIDER)?;
        app.page()?.click_on(&format!("{PROVIDER} [data-testid=add-account]"))?;
        app.click("method-apiKey")?;
        app.type_into("sign-in-label", "key")?;
        app.type_into("sign-in-key", KEY)?;
        app.click("sign-in-start")?;
        app.page()?.wait_gone("dialog[open]")?;
        let row = format!("{PROVIDER} [data-testid=account]:last-child");
        app.page()?.click_on(&format!("{row} [data-testid=account-make-current]"))?;
        app.picture("key-of-another-agent")?;
        app.click("settings-back")?;
        app.new_session_of("claude-agent-acp", "Keyed")?;
        app.send("Say hello")?;
        app.see("entry-agent", "Hello with a key.")?;
        ensure!(kept(app)? == [KEY.as_bytes()], "the keychain does not hold the key");
        let call = app.mock.model_calls().into_iter().next_back().context("no call of the model")?;
        ensure!(call.credential() == Some(KEY), "the model saw {:?}", call.credential());

        let adapter = |row: &process::Row| process::command_line(row.pid).contains("claude-agent-acp");
        let running = process::descendants(app.pid()?).into_iter().find(adapter).context("the agent does not run")?;
        ensure!(process::environment(running.pid).contains(&format!("ANTHROPIC_API_KEY={KEY}")), "it was given no key");
        let told = process::table().into_iter().any(|row| process::command_line(row.pid).contains(KEY));
        ensure!(!told, "the key is on a command line");
        // The search finds what is there, and the key is not.
        let home = app.desktop.home();
        ensure!(written_anywhere(&home, "Hello with a key.")?.is_some(), "the search finds nothing");
        // Not even its end, which some programs keep to know it again.
        let end = &KEY[KEY.len() - 12..];
        ensure!(written_anywhere(&home, end)?.is_none(), "{:?}", written_anywhere(&home, end)?);

        app.click("open-settings")?;
        let since = Instant::now();
        app.page()?.click_on(&format!("{row} [data-testid=account-sign-out]"))?;
        app.click("sign-out-do")?;
        process::wait_gone(running.pid, running.start_ticks, Duration::from_secs(10))?;
        ensure!(since.elapsed() < Duration::from_secs(12), "it lived on");
        wait::until("deleted key", || kept(app).ok()?.is_empty().then_some(()))
    })
}
