//! The agent's requests for files and commands as errands, and what came of them as answers.
//!
//! Read strictly, unlike its reports: a request that is only half understood would do something else than what was wanted.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::errand::{Command, Done, Exit, Screen, Task, limits};

/// JSON-RPC's codes of a refusal.
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL: i64 = -32603;
/// The protocol's code for what is not there.
pub(super) const NOT_FOUND: i64 = -32002;

/// Which of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Start,
    Look,
    Await,
    Kill,
    Release,
}

impl Kind {
    /// Of the method with this name.
    pub(super) fn of(method: &str) -> Option<Self> {
        Some(match method {
            "fs/read_text_file" => Self::Read,
            "fs/write_text_file" => Self::Write,
            "terminal/create" => Self::Start,
            "terminal/output" => Self::Look,
            "terminal/wait_for_exit" => Self::Await,
            "terminal/kill" => Self::Kill,
            "terminal/release" => Self::Release,
            _ => return None,
        })
    }

    /// It may change something.
    pub(super) fn acts(self) -> bool {
        matches!(self, Self::Write | Self::Start)
    }
}

/// The parameters of a request.
pub(super) struct Given<'a>(&'a Map<String, Value>);

impl<'a> Given<'a> {
    pub(super) fn of(params: &'a Value) -> Result<Self, String> {
        params.as_object().map(Self).ok_or_else(|| "the parameters are no object".to_owned())
    }

    pub(super) fn text(&self, name: &str) -> Result<&'a str, String> {
        self.0.get(name).and_then(Value::as_str).ok_or_else(|| format!("{name} is missing, or no text"))
    }

    /// A number that may be left out.
    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| format!("{name} is {value}, which is no whole number from 0")),
        }
    }

    fn list(&self, name: &str) -> Result<&'a [Value], String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(values)) => Ok(values),
            Some(_) => Err(format!("{name} is no list")),
        }
    }

    fn path(&self, name: &str) -> Result<PathBuf, String> {
        let text = self.text(name)?;
        if text.len() > limits::PATH {
            return Err(format!("{name} is longer than {} bytes", limits::PATH));
        }
        if text.contains('\0') {
            return Err(format!("{name} contains a zero byte"));
        }
        if !Path::new(text).is_absolute() {
            return Err(format!("{name} must be an absolute path, and {text:?} is none"));
        }
        Ok(PathBuf::from(text))
    }

    /// The task, for a session with this folder; `terminal`: the name of a terminal that is to be started.
    pub(super) fn task(&self, kind: Kind, folder: &str, terminal: &str) -> Result<Task, String> {
        let folder = PathBuf::from(folder);
        Ok(match kind {
            Kind::Read => Task::Read {
                path: self.path("path")?,
                // 0 is allowed by the protocol's schema, and the first line is 1.
                first_line: self.number("line")?.unwrap_or(1).max(1),
                lines: self.number("limit")?,
                folder,
            },
            Kind::Write => {
                let text = self.text("content")?;
                if text.len() > limits::WRITE {
                    let size = text.len();
                    return Err(format!("content has {size} bytes; at most {} are written at a time", limits::WRITE));
                }
                Task::Write { path: self.path("path")?, text: text.to_owned(), folder }
            }
            Kind::Start => Task::Start { terminal: terminal.to_owned(), command: self.command(folder)? },
            Kind::Look => Task::Look { terminal: self.terminal()? },
            Kind::Await => Task::Await { terminal: self.terminal()? },
            Kind::Kill => Task::Kill { terminal: self.terminal()? },
            Kind::Release => Task::Release { terminal: self.terminal()? },
        })
    }

    pub(super) fn terminal(&self) -> Result<String, String> {
        self.text("terminalId").map(str::to_owned)
    }

    fn command(&self, folder: PathBuf) -> Result<Command, String> {
        let program = self.text("command")?;
        if program.trim().is_empty() {
            return Err("command is empty".to_owned());
        }
        let words = self.list("args")?.iter().map(|word| word.as_str().map(str::to_owned));
        let mut arguments: Vec<String> = words.collect::<Option<_>>().ok_or("args holds something that is no text")?;
        let variable = |pair: &Value| Some((pair.get("name")?.as_str()?.to_owned(), pair.get("value")?.as_str()?.to_owned()));
        let variables = self.list("env")?.iter().map(variable).collect::<Option<Vec<_>>>();
        let variables = variables.ok_or("env holds something without a name and a value that are texts")?;
        if let Some((name, _)) = variables.iter().find(|(name, _)| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(format!("env names a variable {name:?}, which is no name of one"));
        }
        let pairs = variables.iter().flat_map(|(name, value)| [name, value]);
        let bytes = program.len() + arguments.iter().chain(pairs).map(|text| text.len() + 1).sum::<usize>();
        if bytes > limits::COMMAND {
            return Err(format!("command, args and env have {bytes} bytes together; at most {} are taken", limits::COMMAND));
        }
        if program.contains('\0') || arguments.iter().chain(variables.iter().map(|(_, value)| value)).any(|it| it.contains('\0'))
        {
            return Err("command, args or env contain a zero byte".to_owned());
        }
        let directory = if self.0.get("cwd").is_some_and(|cwd| !cwd.is_null()) { self.path("cwd")? } else { folder.clone() };
        let keep = self.number("outputByteLimit")?.and_then(|most| usize::try_from(most).ok());
        let keep = keep.unwrap_or(limits::OUTPUT).min(limits::OUTPUT);
        // Some agents give a whole line for a shell as the command.
        let line = arguments.is_empty() && program.contains(char::is_whitespace) && cfg!(unix);
        let program = if line {
            arguments = vec!["-c".to_owned(), program.to_owned()];
            "/bin/sh".to_owned()
        } else {
            program.to_owned()
        };
        Ok(Command { folder, directory, program, arguments, variables, keep })
    }
}

/// The result that answers a request of this kind.
pub(super) fn answer(kind: Kind, terminal: Option<&str>, done: &Done) -> Value {
    match (kind, done) {
        (Kind::Read, Done::Read { text }) => json!({"content": text}),
        (Kind::Start, Done::Started) => json!({"terminalId": terminal}),
        (Kind::Look, Done::Screen(screen)) => look(screen),
        (Kind::Await, Done::Screen(screen)) => exit(screen.exit.as_ref().unwrap_or(&Exit::default())),
        (Kind::Read | Kind::Write | Kind::Start | Kind::Look | Kind::Await | Kind::Kill | Kind::Release, _) => json!({}),
    }
}

fn look(screen: &Screen) -> Value {
    let mut shown = json!({"output": screen.text, "truncated": screen.truncated});
    if let Some(ended) = &screen.exit {
        shown["exitStatus"] = exit(ended);
    }
    shown
}

fn exit(exit: &Exit) -> Value {
    json!({"exitCode": exit.code, "signal": exit.signal})
}
