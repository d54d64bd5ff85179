//! Which of the agents' programs are on this computer, and where.
//!
//! Looks in the person's own order and in the usual places, and says where it looked. Never starts anything but what was
//! found, with `--version` and a deadline.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::sync::oneshot;
use turnkeep_agents::{Agent, ProgramSource};
use turnkeep_model::state::Installed;

use crate::{
    environment::Environment,
    runtime::{GRACE, Line, Plan, Spawner, identity, read_lines, sweep},
};

/// For a program to say its version.
const DEADLINE: Duration = Duration::from_secs(10);

/// A program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What is executed.
    pub(crate) program: PathBuf,
    /// Where it was found, which is where what it needs lies too.
    pub(crate) folder: PathBuf,
    pub(crate) version: Option<String>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    Found(Found),
    Missing { searched: Vec<PathBuf> },
}

impl Search {
    pub(crate) fn to_installed(&self) -> Installed {
        match self {
            Self::Found(found) => {
                Installed::Found { path: found.program.to_string_lossy().into_owned(), version: found.version.clone() }
            }
            Self::Missing { searched } => {
                Installed::Missing { searched: searched.iter().map(|path| path.to_string_lossy().into_owned()).collect() }
            }
        }
    }
}

/// Search for the agent's program, and ask it for its version.
pub(crate) async fn search(agent: &dyn Agent, environment: &Environment, spawner: &Spawner, marker: &str) -> Search {
    let (names, says_version) = match &agent.card().program {
        ProgramSource::Search { names, says_version } => (names, *says_version),
        ProgramSource::Path(path) => return at(path),
        ProgramSource::Own => {
            return std::env::current_exe().map_or_else(|_| Search::Missing { searched: Vec::new() }, |path| at(&path));
        }
    };
    let folders = environment.search_path();
    let found = names
        .iter()
        .find_map(|name| folders.iter().find_map(|folder| in_folder(folder, name).map(|path| (folder.clone(), path))));
    let Some((folder, path)) = found else {
        return Search::Missing { searched: folders.into_iter().filter(|folder| folder.is_dir()).collect() };
    };
    // A link of a package manager: what it points to tells what it is.
    let real = path.canonicalize().unwrap_or_else(|_| path.clone());
    let better = agent.better_programs(&real).into_iter().find(|path| is_program(path));
    let program = better.unwrap_or(path);
    let mut found = Found { program, folder, version: None };
    if says_version {
        found.version = version(&found, environment, spawner, marker).await;
    }
    Search::Found(found)
}

/// The program at this path, if there is one.
fn at(path: &Path) -> Search {
    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
    match is_program(path) {
        true => Search::Found(Found { program: path.to_owned(), folder, version: None }),
        false => Search::Missing { searched: vec![folder] },
    }
}

fn in_folder(folder: &Path, name: &str) -> Option<PathBuf> {
    let plain = folder.join(name);
    if is_program(&plain) {
        return Some(plain);
    }
    if cfg!(windows) {
        return ["exe", "cmd"].iter().map(|ending| folder.join(format!("{name}.{ending}"))).find(|path| is_program(path));
    }
    None
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file() && path.extension().is_some()
}

/// `PATH` for a child: where its program was found first, then where the person's programs are.
pub(crate) fn path_for(found: &Found, environment: &Environment) -> Option<String> {
    let mut folders = vec![found.folder.clone()];
    folders.extend(environment.search_path().into_iter().filter(|folder| *folder != found.folder && folder.is_dir()));
    std::env::join_paths(folders).ok()?.into_string().ok()
}

async fn version(found: &Found, environment: &Environment, spawner: &Spawner, marker: &str) -> Option<String> {
    let mut variables = environment.handed_on(&[]);
    variables.extend(path_for(found, environment).map(|path| ("PATH".to_owned(), path)));
    variables.insert(crate::runtime::MARKER.to_owned(), marker.to_owned());
    let plan = Plan {
        program: found.program.clone(),
        args: vec!["--version".to_owned()],
        environment: variables,
        directory: environment.home(),
    };
    let mut child = match spawner.spawn(plan).await {
        Ok(child) => child,
        Err(error) => {
            tracing::warn!(%error, program = %found.program.display(), "a program that was found could not be started");
            return None;
        }
    };
    drop(child.stdin.take());
    let process = child.id().and_then(identity);
    let output = child.stdout.take()?;
    let first = async {
        let (_keep, give_up) = oneshot::channel();
        let mut lines = read_lines(output, 64 << 10, give_up);
        while let Some(line) = lines.recv().await {
            if let Line::Whole { bytes, .. } = line
                && let Some(version) = version_in(&String::from_utf8_lossy(&bytes))
            {
                return Some(version);
            }
        }
        None
    };
    let version = tokio::time::timeout(DEADLINE, first).await.ok().flatten();
    let (_, ()) = tokio::join!(child.wait(), sweep(marker.to_owned(), process.into_iter().collect(), GRACE));
    version
}

/// "name-cli 1.2.3 (build)" → "1.2.3"
fn version_in(line: &str) -> Option<String> {
    line.split_whitespace()
        .map(|word| word.trim_start_matches('v'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(|word| word.trim_end_matches([',', ';', ')']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_among_words() {
        assert_eq!(version_in("codex-cli 0.171.0").as_deref(), Some("0.171.0"));
        assert_eq!(version_in("v22.1.0-rc.1").as_deref(), Some("22.1.0-rc.1"));
        assert_eq!(version_in("2.1.3 (Agent)").as_deref(), Some("2.1.3"));
        assert_eq!(version_in("no version here, in 2024"), None);
    }
}
