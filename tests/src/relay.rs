//! What a relay in front of a real agent does, as values. The program itself is the binary `relay`.
//!
//! It passes lines between a supervisor and the agent, and does to them what a real program cannot be made to do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// A program, its arguments before those that the supervisor gives, and what is done between the two.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Relay {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Done before the agent is started.
    pub start: Vec<Act>,
    pub rules: Vec<Rule>,
}

/// Something done at a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub from: From,
    /// The line contains one of these texts.
    pub at: Vec<String>,
    /// Only the first time, over all processes of this relay.
    pub once: bool,
    pub then: Vec<Act>,
}

/// Who wrote the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum From {
    Client,
    Agent,
}

/// One thing that is done; the line itself is passed on after all of them, if it was not dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Act {
    /// The line goes no further.
    Drop,
    /// These bytes go first, as they are, to whom the line goes.
    Say(Vec<u8>),
    /// In this line one text stands for another.
    Replace { this: String, by: String },
    /// Waits until a file is there; other lines of the same writer wait too.
    WaitFor(PathBuf),
    /// Makes a file, so that a test knows.
    Touch(PathBuf),
    /// Passes the line on before what follows.
    Pass,
    /// Passes the line on without its newline.
    PassUnfinished,
    /// The agent is killed, and the relay ends with this code; its last words were flushed.
    Exit(i32),
    /// Ends with this code in a process that has not done so yet, else nothing.
    ExitOnce(i32),
}

impl Rule {
    #[must_use]
    pub fn new(from: From, at: &[&str], then: Vec<Act>) -> Self {
        Self { from, at: at.iter().map(|&text| text.to_owned()).collect(), once: false, then }
    }

    #[must_use]
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }
}

impl Relay {
    /// Makes `path` a program that runs `binary` (the binary `relay`) with this, whatever environment it is given.
    pub fn install(&self, binary: &Path, path: &Path) -> Result<()> {
        let file = path.with_extension("relay.json");
        fs::write(&file, serde_json::to_vec_pretty(self)?).with_context(|| format!("writing {}", file.display()))?;
        let line = format!("exec '{}' '{}' \"$@\"", binary.display(), file.display());
        write_script(path, &line)
    }
}

/// Makes `path` a shell script of this text, put in place whole.
pub fn write_script(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, format!("#!/bin/sh\n{text}\n")).with_context(|| format!("writing {}", new.display()))?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
    fs::rename(&new, path).with_context(|| format!("putting {} in place", path.display()))
}
