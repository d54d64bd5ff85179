//! Private homes of providers: folders of ours with links into the person's own home.
//!
//! Making one is repeated before every start and changes nothing that is right. Removing one never follows a link, and
//! never removes what the person could miss.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use turnkeep_agents::{HomeLink, HomePlan};

/// Why a home cannot be made as it must be.
#[derive(Debug, thiserror::Error)]
pub(super) enum HomeError {
    #[error("{} could not be made ({error})", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// Two processes that do not share it would each write the same sessions.
    #[error("{} is in the way of a link to {}; move it away", path.display(), target.display())]
    InTheWay { path: PathBuf, target: PathBuf },
}

/// Make it, or bring it up to date.
pub(super) fn make(plan: &HomePlan) -> Result<(), HomeError> {
    for folder in &plan.make_first {
        fs::create_dir_all(folder).map_err(|error| HomeError::Io { path: folder.clone(), error })?;
    }
    make_private(&plan.path)?;
    for link in &plan.links {
        bring_up_to_date(&plan.path.join(&link.name), &link.target)?;
    }
    Ok(())
}

/// A folder that nobody else can look into.
pub(super) fn make_private(path: &Path) -> Result<(), HomeError> {
    let fail = |error| HomeError::Io { path: path.to_owned(), error };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        builder.mode(0o700);
        builder.create(path).map_err(fail)?;
        if fs::symlink_metadata(path).map_err(fail)?.is_symlink() {
            return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, "it is a link")));
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(fail)?;
    }
    #[cfg(not(unix))]
    builder.create(path).map_err(fail)?;
    Ok(())
}

fn bring_up_to_date(path: &Path, target: &Path) -> Result<(), HomeError> {
    let fail = |error| HomeError::Io { path: path.to_owned(), error };
    let present = match fs::symlink_metadata(path) {
        Ok(present) => Some(present),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(fail(error)),
    };
    let wanted = target.exists();
    match present {
        Some(it) if it.is_symlink() && wanted && fs::read_link(path).is_ok_and(|to| to == target) => return Ok(()),
        Some(it) if it.is_symlink() => fs::remove_file(path).map_err(fail)?,
        // Empty, so nothing is lost, and a link belongs here.
        Some(it) if it.is_dir() && wanted && fs::remove_dir(path).is_ok() => {}
        Some(_) if wanted => return Err(HomeError::InTheWay { path: path.to_owned(), target: target.to_owned() }),
        Some(_) => return Ok(()),
        None => {}
    }
    if wanted { link(target, path).map_err(fail) } else { Ok(()) }
}

#[cfg(unix)]
fn link(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(windows)]
fn link(target: &Path, path: &Path) -> io::Result<()> {
    if target.is_dir() {
        std::os::windows::fs::symlink_dir(target, path)
    } else {
        std::os::windows::fs::symlink_file(target, path)
    }
}

/// What became of a home that nobody uses any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Removed {
    Gone,
    /// Something in it is no link though it should be one; it was left as it is.
    Kept {
        because: PathBuf,
    },
}

/// Remove a home of ours, below `homes` only.
pub(super) fn remove(homes: &Path, path: &Path, links: &[HomeLink]) -> io::Result<Removed> {
    if path.parent().and_then(Path::parent) != Some(homes) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not one of our homes"));
    }
    for link in links {
        let inside = path.join(&link.name);
        match fs::symlink_metadata(&inside) {
            Ok(it) if it.is_dir() && fs::read_dir(&inside)?.next().is_some() => return Ok(Removed::Kept { because: inside }),
            Ok(it) if it.is_file() && it.len() > 0 => return Ok(Removed::Kept { because: inside }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Removed::Gone),
        Err(error) => return Err(error),
        Ok(it) if !it.is_dir() => return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a folder")),
        Ok(_) => {}
    }
    fs::remove_dir_all(path)?;
    Ok(Removed::Gone)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn plan(root: &Path) -> HomePlan {
        let shared = root.join("shared");
        let link = |name: &str| HomeLink { name: name.to_owned(), target: shared.join(name) };
        HomePlan {
            path: root.join("homes/agent/1"),
            make_first: vec![shared.join("sessions")],
            links: vec![link("sessions"), link("config.toml")],
        }
    }

    #[test]
    fn a_home_is_private_linked_and_follows_what_comes_and_goes() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().expect("a folder");
        let plan = plan(root.path());
        make(&plan).expect("made");
        assert_eq!(fs::metadata(&plan.path).expect("there").permissions().mode() & 0o777, 0o700);
        assert!(fs::symlink_metadata(plan.path.join("sessions")).expect("there").is_symlink());
        assert!(!plan.path.join("config.toml").exists());
        fs::write(root.path().join("shared/config.toml"), "x").expect("written");
        make(&plan).expect("made again");
        assert_eq!(fs::read_to_string(plan.path.join("config.toml")).expect("linked"), "x");
        fs::remove_file(root.path().join("shared/config.toml")).expect("removed");
        make(&plan).expect("made again");
        assert!(fs::symlink_metadata(plan.path.join("config.toml")).is_err(), "a link to nothing stays");
    }

    #[test]
    fn sessions_that_are_not_shared_are_refused_and_never_removed() {
        let root = tempfile::tempdir().expect("a folder");
        let plan = plan(root.path());
        fs::create_dir_all(plan.path.join("sessions")).expect("made");
        fs::write(plan.path.join("sessions/one.jsonl"), "x").expect("written");
        assert!(matches!(make(&plan), Err(HomeError::InTheWay { .. })));
        let removed = remove(&root.path().join("homes"), &plan.path, &plan.links).expect("looked at");
        assert!(matches!(removed, Removed::Kept { .. }));
        assert!(plan.path.join("sessions/one.jsonl").exists());
    }

    #[test]
    fn removing_a_home_leaves_what_its_links_point_to() {
        let root = tempfile::tempdir().expect("a folder");
        let plan = plan(root.path());
        make(&plan).expect("made");
        fs::write(plan.path.join("sessions/one.jsonl"), "x").expect("written through the link");
        fs::write(plan.path.join("cache.json"), "x").expect("written");
        assert_eq!(remove(&root.path().join("homes"), &plan.path, &plan.links).expect("removed"), Removed::Gone);
        assert!(!plan.path.exists());
        assert!(root.path().join("shared/sessions/one.jsonl").exists());
        assert_eq!(remove(&root.path().join("homes"), &plan.path, &plan.links).expect("gone"), Removed::Gone);
        assert!(remove(root.path(), &root.path().join("shared"), &[]).is_err(), "not a home of ours");
        assert!(root.path().join("shared").exists());
    }
}
