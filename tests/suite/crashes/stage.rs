//! A signed-in engine with one session, made once and put back before each crash.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use harness::desktop::{Desktop, Keyring, KeyringItem, Notifier, Options, Tray};
use harness::engine::{DISK_FAILS, EngineAlone, Heard, Wish};
use harness::fake_agent::{Action, FakeAgent, Script};
use harness::process::{self, Row};
use harness::wait;
use serde_json::Value;

/// Stands in a script for the file whose being there lets a held turn go on.
pub(crate) const GATE: &str = "$gate";
/// The name of the variable that asks for a crash.
const CRASH_AT: &str = "TURNKEEP_CRASH_AT";

pub(crate) struct Stage {
    pub(crate) desktop: Desktop,
    pub(crate) fake: FakeAgent,
    account: u64,
    key: (KeyringItem, Vec<u8>),
}

impl Stage {
    pub(crate) fn new(script: &Script) -> Result<Self> {
        let options = Options { tray: Tray::None, notifier: Notifier::None, keyring: Keyring::Unlocked, ..Options::default() };
        let desktop = Desktop::start(options)?;
        let mut script = script.clone();
        let gate = desktop.folder().join("gate");
        for action in script.turns.iter_mut().flatten() {
            if let Action::WaitFor(file) = action
                && file == Path::new(GATE)
            {
                *file = gate.clone();
            }
        }
        let program = Path::new(env!("CARGO_BIN_EXE_fake_agent"));
        let fake = FakeAgent::install(program, &desktop.folder().join("fake"), &script)?;
        fs::create_dir_all(desktop.home().join("project"))?;
        let mut stage = Self { desktop, fake, account: 0, key: (none(), Vec::new()) };
        stage.sign_in()?;
        Ok(stage)
    }

    /// One signed-in account and one session, kept as a template.
    fn sign_in(&mut self) -> Result<()> {
        let mut engine = self.start(None)?;
        yes(engine.until("provider", |state| state["providers"]["codex"]["installed"].get("Found").is_some())?)?;
        yes(engine.ask(&Wish::SignIn { key: "sk-alone".to_owned() })?)?;
        let signed_in = |state: &Value| first(&state["accounts"]).is_some_and(|(_, account)| !account["credential"].is_null());
        yes(engine.until("account", signed_in)?)?;
        self.account = first(&engine.state["accounts"]).and_then(|(id, _)| id.parse().ok()).context("an account has a number")?;
        let folder = self.desktop.home().join("project").display().to_string();
        yes(engine.ask(&Wish::Create { folder, provider: None })?)?;
        engine.wish(&Wish::Quit);
        ensure!(engine.wait_exit()?.success(), "the first run ended badly: {:?}", engine.last);
        let items = self.desktop.keyring_items()?;
        let item = items.into_iter().next().context("the key is in the keychain")?;
        let secret = self.desktop.keyring_secret(&item)?;
        self.key = (item, secret);
        copy(&self.root(), &self.template())
    }

    fn root(&self) -> PathBuf {
        self.desktop.folder().join("engine")
    }

    fn template(&self) -> PathBuf {
        self.desktop.folder().join("template")
    }

    fn gate(&self) -> PathBuf {
        self.desktop.folder().join("gate")
    }

    pub(crate) fn account(&self) -> u64 {
        self.account
    }

    /// Everything as it was after the sign-in.
    pub(crate) fn reset(&mut self) -> Result<()> {
        for folder in [self.root(), self.desktop.home().join(".codex")] {
            if folder.exists() {
                fs::remove_dir_all(folder)?;
            }
        }
        copy(&self.template(), &self.root())?;
        for file in [self.gate(), self.desktop.folder().join("fake/record.jsonl")] {
            if file.exists() {
                fs::remove_file(file)?;
            }
        }
        if self.desktop.keyring_items()?.is_empty() {
            let (item, secret) = &self.key;
            self.desktop.set_keyring_item(&item.label, &item.attributes, secret)?;
        }
        Ok(())
    }

    /// Starts the engine; it crashes at the point, if one is given.
    pub(crate) fn start(&self, crash_at: Option<u64>) -> Result<EngineAlone> {
        EngineAlone::start(self.engine()?.envs(crash_at.map(|point| (CRASH_AT, point.to_string()))))
    }

    /// Starts the engine; nothing that it writes is kept for as long as this file is there.
    pub(crate) fn start_on_a_disk_that_fails(&self, while_there: &Path) -> Result<EngineAlone> {
        EngineAlone::start(self.engine()?.env(DISK_FAILS, while_there))
    }

    fn engine(&self) -> Result<Command> {
        harness::guard::built()?;
        let mut command: Command = self.desktop.command(env!("CARGO_BIN_EXE_engine_alone"));
        let log = fs::File::options().create(true).append(true).open(self.desktop.logs().join("engine.log"))?;
        command
            .arg(self.root())
            .env("PATH", format!("{}:/usr/bin:/bin", self.fake.bin().display()))
            .env("CODEX_HOME", self.desktop.home().join(".codex"))
            .stderr(Stdio::from(log));
        Ok(command)
    }

    /// Lets the held turn go on, in this run and in the next ones.
    pub(crate) fn open_gate(&self) -> Result<()> {
        fs::write(self.gate(), b"").context("opening the gate")
    }

    /// The agent's processes that live, whoever their parent is now.
    pub(crate) fn agents(&self) -> Vec<Row> {
        let mark = self.desktop.folder().join("fake/script.json").display().to_string();
        let all = process::descendants(process::me()).into_iter();
        all.filter(|row| process::environment(row.pid).iter().any(|entry| entry.contains(&mark))).collect()
    }

    pub(crate) fn no_agent_is_left(&self) -> Result<()> {
        wait::until("end of every agent process", || self.agents().is_empty().then_some(()))
            .with_context(|| format!("{:?}", self.agents()))
    }

    /// What the agent's next process does; one that runs goes on as it is.
    pub(crate) fn fake_will_be(&self, script: &Script) -> Result<()> {
        FakeAgent::install(Path::new(env!("CARGO_BIN_EXE_fake_agent")), &self.desktop.folder().join("fake"), script)?;
        Ok(())
    }

    /// How often the agent was given this message.
    pub(crate) fn given(&self, message: &str) -> usize {
        let text = format!("text of {message}");
        let all = ["turn/start", "turn/steer"].into_iter().flat_map(|method| self.fake.received(method));
        all.filter(|one| one["params"]["input"][0]["text"] == text.as_str()).count()
    }
}

pub(crate) fn yes<T>(heard: Heard<T>) -> Result<T> {
    match heard {
        Heard::Yes(it) => Ok(it),
        Heard::Gone => anyhow::bail!("the engine ended"),
    }
}

fn first(map: &Value) -> Option<(&String, &Value)> {
    map.as_object().and_then(|map| map.iter().next())
}

pub(crate) fn session_of(state: &Value) -> Option<u64> {
    first(&state["sessions"]).and_then(|(id, _)| id.parse().ok())
}

/// The question that waits for an answer.
pub(crate) fn approval_of(state: &Value) -> Option<u64> {
    let all = state["approvals"].as_object()?;
    all.iter().find(|(_, approval)| approval["state"] == "Pending").and_then(|(id, _)| id.parse().ok())
}

fn none() -> KeyringItem {
    KeyringItem { path: String::new(), label: String::new(), attributes: Default::default(), locked: false }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
