//! The person's own agents: a file in the config folder that they may edit, read at the start.
//!
//! A file or an entry that cannot be used is told in words and never stops a start. A file that is not understood is never
//! written to; an entry that is not understood stays as it is.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use turnkeep_agents::{
    Agent,
    configured::{self, Configured},
};
use turnkeep_model::ProviderId;

use crate::places::Places;

/// More than this is no list of agents.
const LONGEST: u64 = 1 << 20;

/// Every agent there is, and what is wrong with those that are left out.
#[derive(Debug)]
pub struct Agents {
    /// The built-in ones first.
    pub all: Vec<Arc<dyn Agent>>,
    /// One a line, for a person.
    pub problems: Vec<String>,
}

/// The built-in agents and the person's own.
#[must_use]
pub fn all(places: &Places) -> Agents {
    let mut all = turnkeep_agents::builtin();
    let path = file(places);
    let read = match content(&path) {
        Ok(text) => configured::read(&text, &builtin_ids()),
        Err(error) => {
            let why = format!("it cannot be read: {error}. Correct that, or remove the file");
            configured::Read { agents: Vec::new(), problems: vec![why] }
        }
    };
    all.extend(read.agents);
    let problems: Vec<String> = read.problems.iter().map(|why| format!("{}: {why}", path.display())).collect();
    for problem in &problems {
        tracing::warn!("{problem}");
    }
    Agents { all, problems }
}

/// Where they are listed.
#[must_use]
pub fn file(places: &Places) -> PathBuf {
    places.config.join("agents.json")
}

/// The entries of the list that are understood.
///
/// # Errors
/// Why the file cannot be read, and what to do, in words for a person.
pub fn list(places: &Places) -> Result<Vec<Configured>, String> {
    let entries = entries(&file(places))?;
    Ok(entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}

/// Add one to the list. It can be used from the next start on.
///
/// # Errors
/// What is wrong with it or with the file, in words for a person; nothing was written.
pub fn add(places: &Places, agent: &Configured) -> Result<(), String> {
    let path = file(places);
    let mut entries = entries(&path)?;
    let mut taken = builtin_ids();
    taken.extend(entries.iter().filter_map(id_of).map(|id| ProviderId::new(id.to_owned())));
    configured::check(agent, &taken).map_err(|why| format!("It was not added: {why}."))?;
    entries.push(serde_json::to_value(agent).map_err(|error| format!("It was not added: {error}."))?);
    write(&path, &entries)
}

/// Take one off the list. What runs of it runs on until the application ends.
///
/// # Errors
/// What is wrong with the file, in words for a person; nothing was written.
pub fn remove(places: &Places, id: &str) -> Result<(), String> {
    let path = file(places);
    let mut entries = entries(&path)?;
    let before = entries.len();
    entries.retain(|entry| id_of(entry) != Some(id));
    if entries.len() == before { Ok(()) } else { write(&path, &entries) }
}

fn id_of(entry: &Value) -> Option<&str> {
    entry.get("id")?.as_str()
}

fn builtin_ids() -> BTreeSet<ProviderId> {
    turnkeep_agents::builtin().iter().map(|agent| agent.card().id.clone()).collect()
}

fn entries(path: &Path) -> Result<Vec<Value>, String> {
    let text = content(path).map_err(|error| format!("{} cannot be read: {error}.", path.display()))?;
    configured::entries(&text).map_err(|why| format!("{} cannot be changed, since {why}", path.display()))
}

/// No file is an empty one.
fn content(path: &Path) -> io::Result<String> {
    match fs::metadata(path) {
        Ok(about) if !about.is_file() => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")),
        Ok(about) if about.len() > LONGEST => return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long")),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    }
    fs::read_to_string(path)
}

/// Whole or not at all, readable by its owner alone: what is set for an agent may be a secret. A link stays a link.
fn write(path: &Path, entries: &[Value]) -> Result<(), String> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let fresh = path.with_extension("json.new");
    let write = || {
        use io::Write as _;
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&fresh)?;
        file.write_all(serde_json::to_string_pretty(entries)?.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&fresh, &path)
    };
    write().map_err(|error: io::Error| format!("{} cannot be written: {error}. Nothing was changed.", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> (tempfile::TempDir, Places) {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::below(folder.path());
        places.make().unwrap();
        (folder, places)
    }

    fn agent(id: &str) -> Configured {
        Configured { id: id.to_owned(), command: "my-agent".to_owned(), ..Configured::default() }
    }

    fn ids(agents: &Agents) -> Vec<String> {
        let builtin = turnkeep_agents::builtin().len();
        agents.all.iter().skip(builtin).map(|agent| agent.card().id.to_string()).collect()
    }

    #[test]
    fn an_agent_is_added_used_and_taken_off_again() {
        let (_folder, places) = places();
        assert!(all(&places).problems.is_empty(), "no file is no problem");
        add(&places, &agent("mine")).unwrap();
        add(&places, &agent("other")).unwrap();
        assert!(add(&places, &agent("mine")).unwrap_err().contains("choose another id"));
        let builtin = turnkeep_agents::builtin()[0].card().id.to_string();
        assert!(add(&places, &agent(&builtin)).unwrap_err().contains("choose another id"));
        assert_eq!(ids(&all(&places)), ["mine", "other"]);
        remove(&places, "mine").unwrap();
        assert_eq!(list(&places).unwrap().len(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(file(&places)).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_file_that_is_not_understood_is_told_and_never_written_to() {
        let (_folder, places) = places();
        for text in ["{", r#"{"id":"x"}"#, "\u{0}"] {
            fs::write(file(&places), text).unwrap();
            let agents = all(&places);
            assert!(ids(&agents).is_empty());
            let [problem] = agents.problems.as_slice() else { panic!("{:?}", agents.problems) };
            assert!(problem.contains("agents.json"), "{problem}");
            assert!(add(&places, &agent("mine")).is_err());
            assert!(remove(&places, "mine").is_err());
            assert_eq!(fs::read_to_string(file(&places)).unwrap(), text);
        }
    }

    #[test]
    fn an_entry_that_is_not_understood_stays_and_the_others_are_of_use() {
        let (_folder, places) = places();
        fs::write(file(&places), r#"[{"id":"future","kind":"of later"},{"id":"good","command":"/x"}]"#).unwrap();
        let agents = all(&places);
        assert_eq!(ids(&agents), ["good"]);
        assert!(agents.problems[0].contains("entry 1 (\"future\")"), "{:?}", agents.problems);
        add(&places, &agent("mine")).unwrap();
        assert!(fs::read_to_string(file(&places)).unwrap().contains("of later"));
    }
}
