//! A scripted agent that speaks the dialect of Codex's app-server, and misbehaves on request.
//!
//! It decides nothing: what is not in its script it does as the real one does. It never uses the network.

#[path = "fake_agent/output.rs"]
mod output;
#[path = "fake_agent/session.rs"]
mod session;

use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

use anyhow::{Context, Result};
use harness::fake_agent::{SCRIPT, Script};
use serde_json::{Value, json};

use session::Session;

/// Set once the process runs with SIGTERM ignored.
const DEAF: &str = "FAKE_AGENT_IGNORES_TERM";

fn main() -> Result<()> {
    if env::args().nth(1).is_some_and(|word| word == "--version") {
        return writeln!(stdout(), "codex-cli 0.171.0").context("saying the version");
    }
    let path = env::var(SCRIPT).with_context(|| format!("{SCRIPT} names the script file"))?;
    let text = fs::read(&path).with_context(|| format!("reading {path}"))?;
    let script: Script = serde_json::from_slice(&text).with_context(|| format!("in {path}"))?;
    if script.ignores_term && env::var_os(DEAF).is_none() {
        return Err(become_deaf()).context("starting again with SIGTERM ignored");
    }
    run(script)
}

/// Starts itself again in the same process; an ignored signal stays ignored over that.
fn become_deaf() -> std::io::Error {
    let program = env::current_exe().unwrap_or_default();
    Command::new("sh")
        .args(["-c", "trap '' TERM; exec \"$0\" \"$@\""])
        .arg(program)
        .args(env::args_os().skip(1))
        .env(DEAF, "1")
        .exec()
}

fn run(script: Script) -> Result<()> {
    let ignores_eof = script.ignores_eof;
    let session = Arc::new(Session::new(script)?);
    session.record(&json!({ "started": started() }))?;
    session.start();
    let mut input = stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        match serde_json::from_slice::<Value>(&line) {
            Ok(message) => session.receive(&message)?,
            Err(error) => session.record(&json!({ "invalid": error.to_string() }))?,
        }
        line.clear();
    }
    session.record(&json!({ "eof": true }))?;
    if ignores_eof {
        loop {
            std::thread::park();
        }
    }
    Ok(())
}

fn started() -> Value {
    let environment: serde_json::Map<String, Value> = env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned().into()))
        .collect();
    json!({
        "pid": std::process::id(),
        "args": env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>(),
        "cwd": env::current_dir().as_deref().unwrap_or(Path::new("")).display().to_string(),
        "env": environment,
    })
}
