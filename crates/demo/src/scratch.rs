//! The one place of a session's folder that the agent writes to: a sub-folder of its own. Links are never followed.

use std::{fs, io, path::Path};

/// The sub-folder.
pub(crate) const FOLDER: &str = "turnkeep-demo";

/// What a file held before, if it was there, and what it holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old: Option<String>,
    pub(crate) new: String,
}

/// What the file `name` below the sub-folder holds, if it is a file.
pub(crate) fn read(folder: &Path, name: &str) -> Option<String> {
    let below = folder.join(FOLDER);
    let path = below.join(name);
    let is = |path: &Path, wanted: fn(&fs::Metadata) -> bool| fs::symlink_metadata(path).is_ok_and(|found| wanted(&found));
    (is(&below, fs::Metadata::is_dir) && is(&path, fs::Metadata::is_file)).then(|| fs::read_to_string(&path).ok()).flatten()
}

/// Writes the file `name` below the sub-folder of `folder`.
///
/// # Errors
/// What could not be written; a sub-folder that is a link or a file is refused.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> io::Result<Change> {
    let below = folder.join(FOLDER);
    match fs::symlink_metadata(&below) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{FOLDER} is not a folder"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&below)?,
        Err(error) => return Err(error),
    }
    let path = below.join(name);
    let old = read(folder, name);
    // Put in place whole: what was there, a link too, is replaced and not written through.
    let new = below.join(format!(".{name}.{}.new", std::process::id()));
    let _ = fs::remove_file(&new);
    fs::OpenOptions::new().write(true).create_new(true).open(&new).and_then(|mut file| {
        use io::Write as _;
        file.write_all(text.as_bytes())
    })?;
    fs::rename(&new, &path).inspect_err(|_| drop(fs::remove_file(&new)))?;
    Ok(Change { old, new: text.to_owned() })
}
