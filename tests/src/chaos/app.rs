//! The engine as a process, with one runtime for each tree.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use turnkeep_engine::Places;

use super::bury;
use super::shape::Shape;
use super::tree::Tree;
use crate::engine::{EngineAlone, Heard, Wish};
use crate::mock_model::{MockModel, Reply};
use crate::process::{self, Row};
use crate::{real_codex, wait};

/// The variable that names the guard's program, or turns it `off`. Handed on to the engine.
pub const GUARD: &str = "TURNKEEP_GUARD";
/// The guard's name on its command line.
const GUARD_NAME: &str = "turnkeep-guard";

/// How long anything may take beside many others that keep the computer busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The programs of the tests; they lie beside one another.
#[derive(Debug, Clone)]
pub struct Programs {
    pub engine: PathBuf,
    pub hostile: PathBuf,
    pub group_only: PathBuf,
}

impl Programs {
    /// Those beside this program, or one folder above it.
    pub fn find() -> Result<Self> {
        let own = std::env::current_exe()?;
        let folders = own.ancestors().skip(1).take(2);
        let folder = folders.into_iter().find(|folder| folder.join("hostile").exists()).context("the programs are not built")?;
        let at = |name: &str| folder.join(name);
        Ok(Self { engine: at("engine_alone"), hostile: at("hostile"), group_only: at("group_only") })
    }

    /// Whether a guard would be found by the engine.
    #[must_use]
    pub fn has_guard(&self) -> bool {
        match std::env::var(GUARD).ok().as_deref() {
            Some("off") => false,
            Some(path) => Path::new(path).exists(),
            None => self.engine.with_file_name(GUARD_NAME).exists(),
        }
    }
}

/// One runtime's tree, by the name of its provider.
pub type Trees = BTreeMap<String, (Shape, Tree)>;

/// Makes a folder for each tree below `root`, and the list of agents that start them.
pub fn plant(root: &Path, programs: &Programs, wanted: &[(String, Shape, usize)]) -> Result<Trees> {
    let mut trees = Trees::new();
    let mut agents = Vec::new();
    for (name, shape, count) in wanted {
        let members = (0..*count).map(|number| format!("member-{number}"));
        let tree = Tree::new(&root.join("trees").join(name), members.chain(["agent".to_owned()]).collect())?;
        let folder = tree.folder.display().to_string();
        let args = ["agent", shape.name(), &folder, &tree.mark(), &count.to_string()].map(ToOwned::to_owned);
        agents.push(json!({ "id": name, "command": programs.hostile, "args": args }));
        trees.insert(name.clone(), (*shape, tree));
    }
    let places = ground(root)?;
    fs::write(places.config.join("agents.json"), Value::from(agents).to_string())?;
    Ok(trees)
}

fn ground(root: &Path) -> Result<Places> {
    let places = Places::below(&root.join("engine"));
    for folder in [places.config.clone(), root.join("home/project"), root.join("tmp")] {
        fs::create_dir_all(folder)?;
    }
    Ok(places)
}

/// The real Codex, whose tool and whose MCP server do not want to end.
pub fn plant_codex(root: &Path, programs: &Programs, mock: &MockModel) -> Result<Trees> {
    ground(root)?;
    let tree = Tree::new(&root.join("trees/codex"), vec!["member-0".to_owned(), "server".to_owned()])?;
    let (hostile, folder, mark) = (programs.hostile.display(), tree.folder.display(), tree.mark());
    mock.on(
        "Please start it",
        vec![
            // Its client has given it a session of its own already; it takes another.
            Reply::command(&format!("setsid '{hostile}' member deaf '{folder}' '{mark}'")),
            Reply::say("It is started."),
        ],
    );
    let home = root.join("home");
    real_codex::install(&home, mock)?;
    real_codex::sign_in_with_key(&home.join(".codex"), "sk-chaos-0123456789")?;
    let settings = real_codex::config(mock, real_codex::Account::SignedIn);
    let free = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n";
    let server =
        format!("\n[mcp_servers.stubborn]\ncommand = \"{hostile}\"\nargs = [\"server\", \"deaf\", \"{folder}\", \"{mark}\"]\n");
    fs::write(home.join(".codex/config.toml"), format!("{free}{settings}{server}"))?;
    Ok(Trees::from([("codex".to_owned(), (Shape::Deaf, tree))]))
}

/// The running engine and its sessions.
#[derive(Debug)]
pub struct App {
    pub engine: EngineAlone,
    pub start_ticks: u64,
    root: PathBuf,
    /// By the name of the provider.
    pub sessions: BTreeMap<String, u64>,
}

impl App {
    /// Starts the engine on the folder, without a desktop.
    pub fn start(root: &Path, programs: &Programs) -> Result<Self> {
        let mut command = Command::new(&programs.engine);
        let log = File::options().create(true).append(true).open(root.join("engine.log"))?;
        command
            .arg(root.join("engine"))
            // Only what is listed there, if something is.
            .args(Places::below(&root.join("engine")).config.join("agents.json").exists().then_some("own"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", root.join("home"))
            .env("TMPDIR", root.join("tmp"))
            .envs(std::env::var(GUARD).map(|guard| (GUARD, guard)))
            .current_dir(root)
            .stderr(Stdio::from(log));
        let mut engine = bury::keep(|| {
            let engine = EngineAlone::start(&mut command)?;
            Ok((engine.pid(), engine))
        })?;
        engine.patience = PATIENCE;
        let start_ticks = process::row(engine.pid()).context("the engine is gone already")?.start_ticks;
        Ok(Self { engine, start_ticks, root: root.to_owned(), sessions: BTreeMap::new() })
    }

    pub fn pid(&self) -> i32 {
        self.engine.pid()
    }

    /// One session of each provider, with a runtime that is ready; `text` was its first message.
    pub fn open_all(&mut self, trees: &Trees, text: &str) -> Result<()> {
        for name in trees.keys() {
            let found = format!("program of {name}");
            yes(self.engine.until(&found, |state| state["providers"][name]["installed"].get("Found").is_some())?)?;
            let folder = self.root.join("home/project").display().to_string();
            let ack = yes(self.engine.ask(&Wish::Create { folder, provider: Some(name.clone()) })?)?;
            let session = ack["session"].as_u64().context("no session was made")?;
            yes(self.engine.ask(&Wish::Send { session, message: format!("first-{name}"), text: text.to_owned() })?)?;
            self.sessions.insert(name.clone(), session);
        }
        let ready = |state: &Value| {
            let all = |name: &str| state[name].as_object().into_iter().flatten().map(|(_, it)| it);
            all("runtimes").filter(|it| it["phase"] == "Ready" && !it["process"].is_null()).count() == trees.len()
        };
        yes(self.engine.until("all runtimes", ready)?)?;
        wait::until_within(PATIENCE, "all trees", || trees.values().all(|(_, tree)| tree.is_complete()).then_some(()))
            .with_context(|| missing(trees))
    }

    /// Waits until each session has had its turn, and none runs.
    pub fn rest(&mut self) -> Result<()> {
        let ended = |state: &Value| {
            let mut sessions = state["sessions"].as_object().into_iter().flatten();
            sessions.all(|(_, session)| !session["last_turn"].is_null())
        };
        let none = |state: &Value| state["turns"].as_object().is_some_and(serde_json::Map::is_empty) && ended(state);
        yes(self.engine.until("end of all turns", none)?)
    }

    /// The guards of its runtimes.
    #[must_use]
    pub fn guards(&self) -> Vec<Row> {
        let own = |row: &Row| row.parent == self.pid() && row.state != 'Z';
        process::table().into_iter().filter(own).filter(|row| is_guard(row.pid)).collect()
    }

    /// Runs a session's end: it is put away.
    pub fn put_away(&mut self, name: &str) {
        if let Some(session) = self.sessions.get(name) {
            self.engine.wish(&Wish::Archive { session: *session });
        }
    }

    /// The runtimes that are not proven gone, by the name of their provider.
    #[must_use]
    pub fn runtimes(state: &Value) -> BTreeMap<String, String> {
        let all = state["runtimes"].as_object().into_iter().flatten();
        all.filter_map(|(id, it)| Some((it["provider"].as_str()?.to_owned(), id.clone()))).collect()
    }
}

/// By the name on its command line: the kernel's own name for it is cut short.
fn is_guard(pid: i32) -> bool {
    let line = process::command_line(pid);
    let word = line.split(' ').next().unwrap_or_default();
    Path::new(word).file_name().is_some_and(|name| name == GUARD_NAME)
}

fn missing(trees: &Trees) -> String {
    let missing = trees.iter().filter(|(_, (_, tree))| !tree.is_complete());
    missing.map(|(name, (_, tree))| format!("{name} has {:?}", tree.held())).collect::<Vec<_>>().join(", ")
}

pub(super) fn yes<T>(heard: Heard<T>) -> Result<T> {
    match heard {
        Heard::Yes(it) => Ok(it),
        Heard::Gone => anyhow::bail!("the engine ended"),
    }
}

/// Every guard that should be there is, where there is one at all.
pub(super) fn guarded(app: &App, programs: &Programs, trees: usize) -> Result<Vec<Row>> {
    let guards = app.guards();
    let expected = if programs.has_guard() { trees } else { 0 };
    ensure!(guards.len() == expected, "{} guards for {trees} runtimes, {expected} were expected", guards.len());
    Ok(guards)
}
