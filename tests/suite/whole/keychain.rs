//! A keychain that is not there, or locked: said plainly, never worked around.

use std::path::Path;
use std::{fs, io};

use anyhow::{Result, ensure};
use harness::desktop::Keyring;

use super::app::{App, KEY, Setup};

/// Whether any file below the folder contains the text.
pub(crate) fn written_anywhere(folder: &Path, text: &str) -> io::Result<Option<std::path::PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if let Some(found) = written_anywhere(&entry.path(), text)? {
                return Ok(Some(found));
            }
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                return Ok(Some(entry.path()));
            }
        }
    }
    Ok(None)
}

/// Tries to sign in with a key; it must be refused with these words, and nothing must be left of the key.
fn refused_with(app: &App, words: &str) -> Result<()> {
    app.click("add-account")?;
    app.click("method-apiKey")?;
    app.type_into("sign-in-label", "work")?;
    app.type_into("sign-in-key", KEY)?;
    app.click("sign-in-start")?;
    app.see("sign-in-failure", words)?;
    let home = app.desktop.home();
    ensure!(written_anywhere(&home, KEY)?.is_none(), "the key was written to {:?}", written_anywhere(&home, KEY)?);
    Ok(())
}

#[test]
fn without_a_keychain_it_says_so_and_writes_no_key_anywhere() -> Result<()> {
    App::run(Setup { keyring: Keyring::None, ..Setup::default() }, |app| {
        app.open_window()?;
        app.pass_welcome()?;
        app.click("open-settings")?;
        app.see("keychain-absent", "")?;
        refused_with(app, "keychain")?;
        app.picture("keychain-absent")?;
        // The search that finds nothing does find what is there.
        fs::write(app.project().join("planted"), format!("x{KEY}x"))?;
        ensure!(written_anywhere(&app.desktop.home(), KEY)?.is_some(), "the search finds nothing at all");
        Ok(())
    })
}

#[test]
fn a_locked_keychain_is_not_an_absent_one() -> Result<()> {
    App::run(Setup { keyring: Keyring::Locked, ..Setup::default() }, |app| {
        app.open_window()?;
        app.pass_welcome()?;
        app.click("open-settings")?;
        app.see("keychain-locked", "")?;
        refused_with(app, "locked")?;
        app.picture("keychain-locked")?;
        Ok(())
    })
}

#[test]
fn a_keychain_that_is_locked_later_holds_back_the_next_start_until_it_is_unlocked() -> Result<()> {
    App::run(Setup::default(), |app| {
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.desktop.lock_keyring()?;
        app.click("open-settings")?;
        app.see("keychain-locked", "")?;
        app.click("settings-back")?;
        app.mock.on("Hello", vec![harness::mock_model::Reply::say("Unlocked at last.")]);
        app.new_session("Locked")?;
        app.send("Hello")?;
        app.see("queued", "Hello")?;
        app.picture("queued-while-locked")?;
        ensure!(app.codex()?.is_empty(), "a process was started against a locked keychain");
        app.desktop.unlock_keyring()?;
        app.see("entry-agent", "Unlocked at last.")
    })
}
