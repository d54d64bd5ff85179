//! What the scripted agent is to do, as values; and putting it where `codex` is looked for.
//!
//! The program itself is the binary `fake_agent`; this module is what it and the tests share.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::wait;

/// The variable that names the script file.
pub const SCRIPT: &str = "FAKE_AGENT_SCRIPT";

/// A whole life of the agent. What is not said here is done as Codex's app-server does it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Where it writes what it received, a JSON value per line.
    pub record: PathBuf,
    /// Done before the first line is read.
    pub start: Vec<Action>,
    /// The `account` of `account/read`; null is signed out.
    pub account: Value,
    /// Done instead of the usual answer to a method, the first list for the first request and so on; the last one stays.
    pub on: BTreeMap<String, Vec<Vec<Action>>>,
    /// Done after `turn/start` was answered, a list for each turn; the last one stays.
    pub turns: Vec<Vec<Action>>,
    /// Done instead for a message that contains these words; the first that fits.
    pub messages: Vec<(String, Vec<Action>)>,
    /// Goes on when its input closes.
    pub ignores_eof: bool,
    /// Takes no notice of SIGTERM.
    pub ignores_term: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            record: PathBuf::from("/dev/null"),
            start: Vec::new(),
            account: json!({ "type": "apiKey" }),
            on: BTreeMap::new(),
            turns: vec![vec![Action::Message("OK".to_owned()), Action::complete()]],
            messages: Vec::new(),
            ignores_eof: false,
            ignores_term: false,
        }
    }
}

/// One thing that it does. In strings of `params`, `$thread` and `$turn` stand for the ids at hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Answers the request at hand.
    Reply(Value),
    /// Refuses the request at hand.
    Refuse {
        code: i64,
        message: String,
    },
    /// Does what it would have done without this list.
    Usual,
    Notify {
        method: String,
        params: Value,
    },
    /// Asks the client and waits for its answer, which is recorded.
    Ask {
        method: String,
        params: Value,
    },
    /// A whole message to the person, in one delta.
    Message(String),
    /// A delta of a message that has begun with the first of them.
    Delta(String),
    /// The turn's end: `completed`, `interrupted` or `failed`, then with an error.
    Complete {
        status: String,
        error: Value,
    },
    /// The same line without its newline.
    CompleteWithoutNewline,
    /// Bytes as they are, no newline added.
    Raw(Vec<u8>),
    /// A notification in one line of about this many bytes.
    LongLine(usize),
    /// This many lines on standard error.
    Stderr(usize),
    /// Waits until a file is there.
    WaitFor(PathBuf),
    Sleep {
        milliseconds: u64,
    },
    /// Neither reads nor answers any more.
    Stall,
    /// Starts a process that keeps our standard output open and outlives us.
    Grandchild(String),
    /// Closes the standard output and lives on.
    CloseOutput,
    Exit(i32),
    /// Ends as if killed by SIGKILL.
    Die,
}

impl Action {
    /// The ordinary end of a turn.
    #[must_use]
    pub fn complete() -> Self {
        Self::Complete { status: "completed".to_owned(), error: Value::Null }
    }

    /// A turn that failed, with Codex's class of error.
    #[must_use]
    pub fn fail(message: &str, class: &str) -> Self {
        let error = json!({ "message": message, "codexErrorInfo": class, "additionalDetails": null });
        Self::Complete { status: "failed".to_owned(), error }
    }
}

/// A scripted agent in a folder of its own.
#[derive(Debug)]
pub struct FakeAgent {
    folder: PathBuf,
}

impl FakeAgent {
    /// Makes `folder/bin/codex`, which runs `program` (the binary `fake_agent`) with this script.
    ///
    /// The script is found whatever environment `codex` is given.
    pub fn install(program: &Path, folder: &Path, script: &Script) -> Result<Self> {
        let (bin, file) = (folder.join("bin"), folder.join("script.json"));
        fs::create_dir_all(&bin).with_context(|| format!("making {}", bin.display()))?;
        let script = Script { record: folder.join("record.jsonl"), ..script.clone() };
        fs::write(&file, serde_json::to_vec_pretty(&script)?)?;
        let codex = bin.join("codex");
        let text = format!("#!/bin/sh\n{SCRIPT}='{}' exec '{}' \"$@\"\n", file.display(), program.display());
        fs::write(&codex, text)?;
        fs::set_permissions(&codex, fs::Permissions::from_mode(0o755))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// What was installed in this folder.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// To be put first on a `PATH`.
    #[must_use]
    pub fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// The `codex` in it.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.bin().join("codex")
    }

    /// What it received: `{"started": …}` for each start, `{"in": message}`, `{"answer": …}`, `{"eof": true}`.
    #[must_use]
    pub fn record(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.join("record.jsonl")).unwrap_or_default();
        // The last line may be half written.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The messages of one method that it received.
    #[must_use]
    pub fn received(&self, method: &str) -> Vec<Value> {
        let all = self.record().into_iter().filter_map(|mut one| one.get_mut("in").map(Value::take));
        all.filter(|message| message["method"] == method).collect()
    }

    /// Waits until it has received this method `times` times.
    pub fn wait_received(&self, method: &str, times: usize) -> Result<Vec<Value>> {
        wait::until(&format!("{method} at the agent, {times} times"), || {
            let all = self.received(method);
            (all.len() >= times).then_some(all)
        })
    }
}
