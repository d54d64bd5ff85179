//! The person's own agents: a list of command lines, as text of a file that they may edit.
//!
//! A bad entry is told with what to do, and the others are of use all the same. Nothing here writes.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnkeep_model::ProviderId;

use super::{AcpAgent, Entry, quirks};
use crate::port::{Agent, ProgramSource};

/// Longest id and longest name, in bytes.
const LONGEST: usize = 64;

/// One entry of the list.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configured {
    /// Small letters, digits, "-", "_" and ".".
    pub id: String,
    /// For people; the id, where it is left out.
    #[serde(default)]
    pub name: String,
    /// A name to be searched for on the PATH, or an absolute path.
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// Set for it beside what every agent gets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl std::fmt::Debug for Configured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What is set for it may be a secret.
        f.debug_struct("Configured").field("id", &self.id).field("command", &self.command).finish_non_exhaustive()
    }
}

/// What a list comes to.
#[derive(Debug, Default)]
pub struct Read {
    pub agents: Vec<Arc<dyn Agent>>,
    /// What is wrong with the others, and what to do, in words for a person. Names the entry, not the file.
    pub problems: Vec<String>,
}

/// The agents of a list in JSON; those whose id is `taken` are refused.
#[must_use]
pub fn read(text: &str, taken: &BTreeSet<ProviderId>) -> Read {
    let mut read = Read::default();
    let entries = match entries(text) {
        Ok(entries) => entries,
        Err(why) => {
            read.problems.push(why);
            return read;
        }
    };
    let mut taken = taken.clone();
    for (place, entry) in entries.into_iter().enumerate() {
        let named = entry.get("id").and_then(Value::as_str).map(|id| format!(" ({id:?})")).unwrap_or_default();
        let agent = serde_json::from_value::<Configured>(entry)
            .map_err(|error| format!("it is not understood: {error}. An entry has id, name, command, args and env"))
            .and_then(|configured| check(&configured, &taken).map(|()| configured));
        match agent {
            Ok(configured) => {
                taken.insert(ProviderId::new(configured.id.clone()));
                read.agents.push(agent_of(configured));
            }
            Err(why) => read.problems.push(format!("entry {}{named} is left out: {why}.", place + 1)),
        }
    }
    read
}

/// The entries of a list in JSON, as they are.
///
/// # Errors
/// Why it is no list, in words for a person.
pub fn entries(text: &str) -> Result<Vec<Value>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(entries)) => Ok(entries),
        Ok(_) => Err("it is not a list. Put the agents between [ and ].".to_owned()),
        Err(error) => Err(format!("it is not JSON: {error}. Correct it there, or empty the file.")),
    }
}

/// Whether an entry can be used beside what is `taken`.
///
/// # Errors
/// What is wrong with it and what to do, in words for a person.
pub fn check(entry: &Configured, taken: &BTreeSet<ProviderId>) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if entry.id.is_empty() || entry.id.len() > LONGEST || !entry.id.chars().all(fits) {
        return Err(format!("its id must be 1 to {LONGEST} small letters, digits, \"-\", \"_\" or \".\""));
    }
    if taken.contains(&ProviderId::new(entry.id.clone())) {
        return Err("there is an agent with this id already; choose another id".to_owned());
    }
    if entry.name.len() > LONGEST || entry.name.chars().any(char::is_control) {
        return Err(format!("its name must have at most {LONGEST} bytes, in one line"));
    }
    if entry.command.trim().is_empty() {
        return Err("its command is empty; give the name of a program, or its absolute path".to_owned());
    }
    if !Path::new(&entry.command).is_absolute() && entry.command.contains(['/', '\\']) {
        return Err("its command is a relative path; give an absolute one, or a name to be searched for".to_owned());
    }
    let texts = entry.args.iter().chain(entry.env.values()).chain([&entry.command]);
    if texts.into_iter().any(|text| text.contains('\0')) {
        return Err("a text in it has a zero byte".to_owned());
    }
    match entry.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        Some(name) => Err(format!("{name:?} cannot be the name of a variable")),
        None => Ok(()),
    }
}

/// The agent of an entry that was checked.
fn agent_of(from: Configured) -> Arc<dyn Agent> {
    let name = if from.name.trim().is_empty() { from.id.clone() } else { from.name };
    let program = match Path::new(&from.command).is_absolute() {
        true => ProgramSource::Path(from.command.into()),
        false => ProgramSource::Search { names: vec![from.command], says_version: false },
    };
    Arc::new(AcpAgent::new(Entry {
        id: ProviderId::new(from.id),
        full_name: name.clone(),
        name,
        program,
        args: from.args,
        install: Vec::new(),
        environment: from.env,
        defaults: BTreeMap::new(),
        own_variables: Vec::new(),
        system_home: (String::new(), String::new()),
        credentials: Vec::new(),
        has_account: true,
        key: None,
        quirks: quirks::NONE,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(text: &str) -> Read {
        read(text, &BTreeSet::from([ProviderId::new("taken")]))
    }

    #[test]
    fn a_command_line_is_an_agent() {
        let read = read_one(r#"[{"id":"mine","name":"Mine","command":"my-agent","args":["--acp"],"env":{"KEY":"canary"}}]"#);
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        let [agent] = read.agents.as_slice() else { panic!("one agent") };
        assert_eq!(agent.card().name, "Mine");
        assert!(!format!("{agent:?}").contains("canary"), "what is set for it may be a secret");
        assert!(read_one("").agents.is_empty());
        assert!(read_one(" \n").problems.is_empty());
    }

    #[test]
    fn a_bad_entry_is_told_and_the_others_are_of_use() {
        for (bad, why) in [
            (r#"{"id":"taken","command":"x"}"#, "choose another id"),
            (r#"{"id":"good","command":"x"}"#, "choose another id"),
            (r#"{"id":"Bad Id","command":"x"}"#, "small letters"),
            (r#"{"id":"a","command":" "}"#, "empty"),
            (r#"{"id":"a","command":"bin/x"}"#, "relative"),
            (r#"{"id":"a"}"#, "missing field `command`"),
            (r#"{"id":"a","command":"x","arg":[]}"#, "unknown field `arg`"),
            (r#"{"id":"a","command":"x","env":{"A=B":""}}"#, "A=B"),
            (r#"{"id":"a","command":"x","args":["\u0000"]}"#, "zero byte"),
            ("7", "not understood"),
        ] {
            let read = read_one(&format!(r#"[{{"id":"good","command":"/x"}},{bad}]"#));
            assert_eq!(read.agents.len(), 1, "{bad}");
            let [problem] = read.problems.as_slice() else { panic!("{bad}: {:?}", read.problems) };
            assert!(problem.starts_with("entry 2") && problem.contains(why), "{problem}");
        }
        for text in ["{", "{}", "\"x\"", "\u{feff}[]"] {
            assert_eq!(read_one(text).problems.len(), 1, "{text}");
        }
    }
}
