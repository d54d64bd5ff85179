//! A guard's side that the application sees: found, started, told to end, and heard.
//!
//! See the crate `turnkeep-guard` for what a guard does. Where there is none, a process is started alone: less is held
//! together then, and that is said.

#[cfg(target_os = "linux")]
#[path = "guard_linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "guard_other.rs"]
mod system;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

pub(super) use system::{Guarded, spawn};

/// The program that all guards are, or why there is none.
#[derive(Clone, Debug)]
pub(super) struct Guards {
    program: Result<PathBuf, Unguarded>,
    /// Why no more of them are started.
    given_up: Arc<OnceLock<String>>,
}

/// Why processes are started alone.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unguarded {
    /// A person, or a test of what is left without it, wants it so.
    Off,
    Missing(PathBuf),
    /// Not for this system.
    Unsupported,
}

/// Names the program, or `off`.
const VARIABLE: &str = "TURNKEEP_GUARD";
const NAME: &str = "turnkeep-guard";

impl Guards {
    pub(super) fn find() -> Self {
        let program = if cfg!(target_os = "linux") {
            find(std::env::var_os(VARIABLE).as_deref(), std::env::current_exe().ok().as_deref())
        } else {
            Err(Unguarded::Unsupported)
        };
        if let Err(Unguarded::Missing(path)) = &program {
            tracing::warn!(
                path = %path.display(),
                "the program {NAME} is not there: what an agent leaves behind may outlive Turnkeep when that is killed. \
                 Install it beside Turnkeep's own program, then start Turnkeep again"
            );
        }
        Self { program, given_up: Arc::default() }
    }

    pub(super) fn program(&self) -> Option<&Path> {
        self.program.as_deref().ok().filter(|_| self.given_up.get().is_none())
    }

    pub(super) fn give_up(&self, why: &str) {
        if self.given_up.set(why.to_owned()).is_ok() {
            tracing::warn!(why, "guards cannot be used; agents are started without. Start Turnkeep again after an update");
        }
    }
}

/// Beside this program. Test programs lie one folder below those that they test.
fn find(named: Option<&OsStr>, own: Option<&Path>) -> Result<PathBuf, Unguarded> {
    if named.is_some_and(|named| named == "off") {
        return Err(Unguarded::Off);
    }
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        return if named.is_file() { Ok(named) } else { Err(Unguarded::Missing(named)) };
    }
    let folder = own.and_then(Path::parent).unwrap_or(Path::new(""));
    let tests = folder.parent().filter(|_| folder.ends_with("deps"));
    let places = [Some(folder), tests].into_iter().flatten().map(|folder| folder.join(NAME));
    places.clone().find(|path| path.is_file()).ok_or_else(|| Unguarded::Missing(folder.join(NAME)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lies_beside_the_program_or_where_somebody_says_or_is_off() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("deps");
        std::fs::create_dir(&folder).expect("made");
        let own = folder.join("turnkeep");
        let missing = Err(Unguarded::Missing(folder.join(NAME)));
        assert_eq!(find(None, Some(&own)), missing);
        let above = root.path().join(NAME);
        std::fs::write(&above, "").expect("written");
        assert_eq!(find(None, Some(&own)), Ok(above.clone()));
        std::fs::write(folder.join(NAME), "").expect("written");
        assert_eq!(find(None, Some(&own)), Ok(folder.join(NAME)));
        assert_eq!(find(Some(OsStr::new("off")), Some(&own)), Err(Unguarded::Off));
        assert_eq!(find(Some(above.as_os_str()), Some(&own)), Ok(above));
        let nowhere = root.path().join("nowhere");
        assert_eq!(find(Some(nowhere.as_os_str()), Some(&own)), Err(Unguarded::Missing(nowhere)));
    }
}
