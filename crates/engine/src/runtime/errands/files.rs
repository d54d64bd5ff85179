//! Reading and writing a session's files for its agent: whole texts, below the session's folder, and nothing else.
//!
//! Links on the way to a file are resolved first, and what they lead to must lie below the folder; then the way is walked
//! without following any, so that one which is put there meanwhile is refused. What is no plain file is never opened.

use std::{
    io,
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use turnkeep_agents::errand::{NotDone, NotDoneWhy, limits};

#[cfg(not(unix))]
#[path = "disk_other.rs"]
mod disk;
#[cfg(unix)]
#[path = "disk_unix.rs"]
mod disk;

use super::not_done;

/// A place below a folder, links resolved: the folder, the folders below it that are there and those that are not, and the
/// name of the file.
struct Place {
    root: PathBuf,
    folders: Vec<PathBuf>,
    missing: Vec<PathBuf>,
    name: PathBuf,
}

/// The whole text of a file.
pub(super) fn read(folder: &Path, path: &Path) -> Result<String, NotDone> {
    let root = root(folder)?;
    let real = path.canonicalize().map_err(|error| failed("read", path, &error))?;
    let below = below(&root, folder, path, &real)?;
    let Some((name, folders)) = parts(&below).split_last().map(|(name, folders)| (name.clone(), folders.to_vec())) else {
        return Err(refused(format!("{} is the session's folder, and no file", path.display())));
    };
    let place = Place { root, folders, missing: Vec::new(), name };
    let bytes = disk::read(&place, limits::READ).map_err(|trouble| trouble.to_not_done("read", path))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        refused(format!("{} is no text in UTF-8: byte {at} is not; only such texts are read", path.display()))
    })
}

/// Put a text in place of a file, or make the file, with the folders that lead to it. What was there before is whole until
/// the new text is.
pub(super) fn write(folder: &Path, path: &Path, text: &str) -> Result<(), NotDone> {
    let root = root(folder)?;
    let (Some(parent), Some(Component::Normal(name))) = (path.parent(), path.components().next_back()) else {
        return Err(refused(format!("{} names no file", path.display())));
    };
    let mut there = parent;
    let mut missing = Vec::new();
    let real = loop {
        match there.canonicalize() {
            Ok(real) => break real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("written", path, &error)),
        }
        let (Some(above), Some(Component::Normal(last))) = (there.parent(), there.components().next_back()) else {
            return Err(refused(format!("{} leads back from a folder that is not there", path.display())));
        };
        missing.push(PathBuf::from(last));
        there = above;
    };
    missing.reverse();
    let below = below(&root, folder, path, &real)?;
    let place = Place { root, folders: parts(&below), missing, name: PathBuf::from(name) };
    disk::write(&place, text.as_bytes()).map_err(|trouble| trouble.to_not_done("written", path))
}

/// The folder to work in, links resolved.
pub(super) fn directory(folder: &Path, path: &Path) -> Result<PathBuf, NotDone> {
    let root = root(folder)?;
    let real = path.canonicalize().map_err(|error| failed("worked in", path, &error))?;
    below(&root, folder, path, &real)?;
    if !real.is_dir() {
        return Err(refused(format!("{} is no folder to work in", path.display())));
    }
    Ok(real)
}

/// So many lines from this one on, counted from 1.
pub(super) fn part(text: String, first: u64, lines: Option<u64>) -> String {
    if first <= 1 && lines.is_none() {
        return text;
    }
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let after = text.split_inclusive('\n').skip(number(first.saturating_sub(1)));
    after.take(lines.map_or(usize::MAX, number)).collect()
}

fn root(folder: &Path) -> Result<PathBuf, NotDone> {
    let why = |error| not_done(NotDoneWhy::Failed, format!("the session's folder {} cannot be used: {error}", folder.display()));
    folder.canonicalize().map_err(why)
}

/// What follows the root; refused where the real path is not below it.
fn below(root: &Path, folder: &Path, path: &Path, real: &Path) -> Result<PathBuf, NotDone> {
    real.strip_prefix(root).map(Path::to_owned).map_err(|_| {
        let leads = if path.starts_with(real) { String::new() } else { format!(" (it leads to {})", real.display()) };
        refused(format!("{}{leads} is not below the session's folder {}", path.display(), folder.display()))
    })
}

fn parts(path: &Path) -> Vec<PathBuf> {
    path.components().map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// Why the disk did not do it.
#[derive(Debug)]
enum Trouble {
    /// What is there is not what is read or written here: "a folder".
    Is(&'static str),
    TooLarge(u64),
    ReadOnly,
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Trouble {
    fn to_not_done(&self, what: &str, path: &Path) -> NotDone {
        let path_shown = path.display();
        match self {
            Self::Is(kind) => refused(format!("{path_shown} is {kind}; only plain files are {what}")),
            Self::TooLarge(size) => {
                refused(format!("{path_shown} has {size} bytes; at most {} are read at a time", limits::READ))
            }
            Self::ReadOnly => refused(format!("{path_shown} is read-only")),
            Self::Io(error) => failed(what, path, error),
        }
    }
}

/// For a text that is not in its place yet; no other of this process has it.
fn new_name() -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    format!(".turnkeep-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

fn refused(message: String) -> NotDone {
    not_done(NotDoneWhy::Refused, message)
}

fn failed(what: &str, path: &Path, error: &io::Error) -> NotDone {
    let why = if error.kind() == io::ErrorKind::NotFound { NotDoneWhy::NotFound } else { NotDoneWhy::Failed };
    not_done(why, format!("{} could not be {what}: {error}", path.display()))
}
