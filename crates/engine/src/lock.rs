//! One supervisor a state directory, by a lock that the system drops with the process.
//!
//! The file's text is for people; only the lock decides, so a file left behind hinders nobody.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// Held while a supervisor runs.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("Turnkeep already runs here{}", holder.map_or(String::new(), |pid| format!(" (process {pid})")))]
    Held { holder: Option<u32> },
    #[error("the lock file {path} cannot be used: {error}")]
    File { path: PathBuf, error: io::Error },
}

impl Lock {
    /// Takes the lock, or says who has it. Never waits.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let fail = |error| LockError::File { path: path.to_path_buf(), error };
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.read_to_string(&mut text);
                return Err(LockError::Held { holder: read.ok().and_then(|_| text.trim().parse().ok()) });
            }
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        let note = |file: &mut File| {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            writeln!(file, "{}", std::process::id())
        };
        if let Err(error) = note(&mut file) {
            tracing::warn!(path = %path.display(), %error, "the lock file does not say who holds it");
        }
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_and_the_next_learns_who() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::take(&path).unwrap();
        let refused = Lock::take(&path).unwrap_err();
        assert!(matches!(refused, LockError::Held { holder: Some(pid) } if pid == std::process::id()), "{refused}");
        drop(lock);
        Lock::take(&path).unwrap();
    }

    #[test]
    fn a_file_left_behind_hinders_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "1\n").unwrap();
        Lock::take(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), std::process::id().to_string());
    }
}
