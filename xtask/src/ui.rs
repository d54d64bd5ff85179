//! The web interface: its packages and its build, made only when their sources are newer.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::Result;

use crate::command::{program, run};
use crate::{root, say};

/// Installs the packages that a lock file names, unless they are there.
pub(crate) fn install(folder: &str) -> Result<()> {
    let path = root().join(folder);
    let wanted = modified(&path.join("package-lock.json"));
    // npm writes this file at the end of an installation.
    let there = modified(&path.join("node_modules/.package-lock.json"));
    if wanted.is_some() && there >= wanted {
        return Ok(());
    }
    run(&mut program("npm", &["ci", "--no-audit", "--no-fund"], folder))
}

/// Makes `ui/dist`, unless it is newer than everything that it is made from.
pub(crate) fn build() -> Result<()> {
    let ui = root().join("ui");
    let made = modified(&ui.join("dist/index.html"));
    if made.is_some() && made > newest(&ui) {
        return Ok(());
    }
    say("Building the interface");
    run(&mut program("npm", &["run", "--silent", "build"], "ui"))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// When the newest file below was changed, apart from what is installed and made.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let times = entries.filter_map(|entry| {
        let name = entry.file_name();
        if name == "node_modules" || name == "dist" {
            None
        } else if entry.file_type().ok()?.is_dir() {
            newest(&entry.path())
        } else {
            modified(&entry.path())
        }
    });
    times.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_does_not_count_as_a_source() {
        let folder = std::env::temp_dir().join(format!("xtask-ui-{}", std::process::id()));
        for name in ["src", "dist"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("src/a.ts"), "").unwrap();
        let source = newest(&folder);
        assert!(source.is_some());
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        fs::File::create(folder.join("dist/a.js")).unwrap().set_modified(later).unwrap();
        assert_eq!(newest(&folder), source);
        fs::File::create(folder.join("src/b.ts")).unwrap().set_modified(later).unwrap();
        assert_eq!(newest(&folder), Some(later));
        fs::remove_dir_all(folder).unwrap();
    }
}
