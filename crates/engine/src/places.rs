//! Where things lie on this computer. One environment variable, `TURNKEEP_HOME`, puts all of it below one folder.
//!
//! Makes folders for nobody else to read, and nothing more: what is in them is the business of their owners.

use std::{
    collections::hash_map::RandomState,
    fmt::Write as _,
    fs,
    hash::{BuildHasher, Hasher},
    io,
    path::{Path, PathBuf},
};

/// The variable that moves everything below one folder.
pub const HOME_VARIABLE: &str = "TURNKEEP_HOME";

/// Folders of one installation; all absolute, all private.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// What must be kept: the database, private provider homes.
    pub data: PathBuf,
    /// What a person may edit.
    pub config: PathBuf,
    /// What can be made again.
    pub cache: PathBuf,
    /// Logs, and the lock of the one supervisor.
    pub state: PathBuf,
    /// What is gone after a logout: sockets.
    pub runtime: PathBuf,
}

/// Why there are no places.
#[derive(Debug, thiserror::Error)]
pub enum PlacesError {
    #[error("no home folder is known for this person: set {HOME_VARIABLE} to the folder that Turnkeep may use")]
    NoHome,
    #[error("{HOME_VARIABLE} is {0:?}, which is not an absolute path")]
    Relative(PathBuf),
    #[error("the folder {path} cannot be made or used: {error}")]
    Folder { path: PathBuf, error: io::Error },
}

impl Places {
    /// The places of this person, or those that the environment names.
    ///
    /// # Errors
    /// [`PlacesError::NoHome`], [`PlacesError::Relative`].
    pub fn find() -> Result<Self, PlacesError> {
        match std::env::var_os(HOME_VARIABLE).filter(|home| !home.is_empty()) {
            Some(home) if Path::new(&home).is_absolute() => Ok(Self::below(Path::new(&home))),
            Some(home) => Err(PlacesError::Relative(home.into())),
            None => {
                let found = directories::ProjectDirs::from("", "", "turnkeep").ok_or(PlacesError::NoHome)?;
                Ok(Self {
                    data: found.data_local_dir().to_path_buf(),
                    config: found.config_dir().to_path_buf(),
                    cache: found.cache_dir().to_path_buf(),
                    state: found.state_dir().unwrap_or_else(|| found.data_local_dir()).to_path_buf(),
                    runtime: found.runtime_dir().unwrap_or_else(|| found.cache_dir()).to_path_buf(),
                })
            }
        }
    }

    /// Everything below one folder, for tests and for a second, separate installation.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        Self {
            data: root.join("data"),
            config: root.join("config"),
            cache: root.join("cache"),
            state: root.join("state"),
            runtime: root.join("runtime"),
        }
    }

    /// Makes the folders, readable by their owner alone.
    ///
    /// # Errors
    /// [`PlacesError::Folder`].
    pub fn make(&self) -> Result<(), PlacesError> {
        for path in [&self.data, &self.config, &self.cache, &self.state, &self.runtime, &self.logs(), &self.homes()] {
            private_folder(path).map_err(|error| PlacesError::Folder { path: path.clone(), error })?;
        }
        Ok(())
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.data.join("turnkeep.db")
    }

    /// Folder of the log files.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.state.join("log")
    }

    /// Folder of private provider homes.
    #[must_use]
    pub fn homes(&self) -> PathBuf {
        self.data.join("homes")
    }

    /// The file that one supervisor holds locked.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.state.join("lock")
    }

    /// The name of this installation, made once: children and keychain items carry it.
    ///
    /// # Errors
    /// [`PlacesError::Folder`] where it can be neither read nor made.
    pub fn instance(&self) -> Result<String, PlacesError> {
        let path = self.data.join("instance");
        let fail = |error| PlacesError::Folder { path: path.clone(), error };
        match fs::read_to_string(&path) {
            Ok(name) if is_instance(name.trim()) => return Ok(name.trim().to_owned()),
            Ok(_) => tracing::warn!(path = %path.display(), "the name of this installation is unreadable and is made anew"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
        }
        let mut name = String::new();
        for _ in 0..2 {
            // The seed of a hash is random; nothing here is a secret.
            let _ = write!(name, "{:016x}", RandomState::new().build_hasher().finish());
        }
        let fresh = path.with_extension("new");
        fs::write(&fresh, &name).and_then(|()| fs::rename(&fresh, &path)).map_err(fail)?;
        Ok(name)
    }
}

fn is_instance(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_has_one_name_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::below(folder.path());
        places.make().unwrap();
        let name = places.instance().unwrap();
        assert!(is_instance(&name), "{name}");
        assert_eq!(places.instance().unwrap(), name);
        let other = Places::below(&folder.path().join("other"));
        other.make().unwrap();
        assert_ne!(other.instance().unwrap(), name);
        fs::write(places.data.join("instance"), "torn").unwrap();
        assert!(is_instance(&places.instance().unwrap()), "one that cannot be read is made anew");
    }

    #[cfg(unix)]
    #[test]
    fn folders_are_their_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let places = Places::below(&folder.path().join("deep/er"));
        places.make().unwrap();
        places.make().unwrap();
        for path in [&places.data, &places.logs(), &places.homes(), &places.runtime] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700, "{}", path.display());
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("data"), "a file").unwrap();
        let error = Places::below(folder.path()).make().unwrap_err().to_string();
        assert!(error.contains("data"), "{error}");
    }
}
