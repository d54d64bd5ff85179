//! Several sessions at once, each in the group of what it needs; and the picture of it that the README shows.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use harness::mock_model::Reply;

use super::app::{App, Setup, test_id};

const NOTES: &str = "Three themes since the last release:\n\n\
    1. **Staying signed in** across restarts\n\
    2. Coming back after a crash, with `kill -9` at any moment\n\
    3. Reading long changes\n\n\
    Each description was checked against its code.[[notes]] Writing the section on accounts now.";

#[test]
fn sessions_stand_in_the_group_of_what_they_need() -> Result<()> {
    App::run(Setup::default(), |app| {
        app.mock.on("Round the totals", vec![Reply::say("Totals are rounded per tax line. All 14 checks pass.")]);
        let reset = "rm -rf target/testdb && cargo test --workspace";
        app.mock.on(
            "Find the flaky test",
            vec![Reply::escalated(reset, "The test database has to be made anew to see the failure"), Reply::say("Found it.")],
        );
        let list =
            "printf '#812  Keep the queue while signed out\\n#809  Restore goals after a restart\\n#806  Fold long diffs\\n'";
        app.mock.on(
            "Draft the notes",
            vec![
                Reply::reasoning("**Looking for what was merged**\n\nThe notes should only name what a user can notice.").then(
                    Reply::plan(&[
                        ("List what was merged", "completed"),
                        ("Check each against its code", "in_progress"),
                        ("Write the notes", "pending"),
                    ]),
                ),
                Reply::command(list),
                Reply::say(NOTES),
            ],
        );
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Round invoice totals per tax line")?;
        app.send("Round the totals of each invoice per tax line")?;
        app.see("entry-agent", "All 14 checks pass.")?;
        // Read once it was looked at for a second.
        app.see("group-idle", "Round invoice totals per tax line").context("what was looked at is still unread")?;
        app.new_session("Find the flaky login test")?;
        app.send("Find the flaky test and mend it")?;
        app.page()?.wait_for(&test_id("approval"))?;
        app.new_session("Write the release notes")?;
        app.send("Draft the notes for the release. Plain words, no marketing.")?;
        app.mock.wait_at("notes")?;
        app.see("entry-command", "Restore goals after a restart")?;
        app.see("entry-agent", "Each description was checked")?;

        app.see("group-needsYou", "Find the flaky login test")?;
        app.see("group-running", "Write the release notes")?;
        let tray = app.desktop.tray_item()?;
        let (title, tip) = app.desktop.tray_tooltip(&tray)?;
        ensure!(format!("{title} {tip}").contains("1 needs you, 1 running"), "the tray says {title:?} {tip:?}");
        app.picture("groups")?;
        if std::env::var_os("UPDATE_PICTURES").is_some() {
            let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
            std::fs::create_dir_all(&docs)?;
            app.page()?.screenshot(&docs.join("window.png"))?;
        }
        // Another provider's session stands among them.
        app.new_session_of("demo", "Look around with the demo agent")?;
        app.send("tour")?;
        app.page()?.wait_for("[data-testid=approval][data-armed=true]")?;
        app.see("group-needsYou", "Find the flaky login test")?;
        app.see("group-needsYou", "Look around with the demo agent")?;
        app.see("group-needsYou", "Demo")?;
        app.see("group-needsYou", "Codex · work")?;
        app.see("group-running", "Write the release notes")?;
        app.picture("two-providers")?;
        app.mock.open("notes");
        app.page()?.wait_gone("[data-testid=group-running] [data-testid=session]").context("the turn did not end")
    })
}
