//! System packages: which are needed, which are missing, and their installation once somebody has agreed.
//!
//! It never installs without being root, told `--yes`, or answered at a terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stdin, stdout};

use anyhow::{Result, bail};

use crate::command;
use crate::say;

pub(crate) const BUILD: &str = include_str!("../packages/build.txt");
pub(crate) const TEST: &str = include_str!("../packages/test.txt");

/// The oldest Node that the interface can be built with.
const NODE: (u32, u32) = (20, 19);

/// Who may agree to an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// Nobody needs to be asked.
    Given,
    /// The person at the terminal.
    Ask,
}

fn names(lists: &[&'static str]) -> Vec<&'static str> {
    let lines = lists.iter().flat_map(|list| list.lines()).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

pub(crate) fn is_root() -> bool {
    command::output("id", &["-u"]).is_some_and(|id| id.trim() == "0")
}

/// Sees to it that every package of these lists is there.
pub(crate) fn ensure(lists: &[&'static str], consent: Consent) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    if !command::succeeds("dpkg-query", &["--version"]) {
        return without_dpkg();
    }
    let missing: Vec<&str> = names(lists).into_iter().filter(|name| !installed(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let root = is_root();
    let line = format!("{}apt-get install --no-install-recommends {}", if root { "" } else { "sudo " }, missing.join(" "));
    say(&format!("These system packages are missing:\n    {}", missing.join("\n    ")));
    if consent == Consent::Ask && !agreed(&line)? {
        bail!("without them it cannot go on; to install them: {line}");
    }
    install(&missing, root)
}

fn installed(name: &str) -> bool {
    command::output("dpkg-query", &["--show", "--showformat=${db:Status-Status}", name])
        .is_some_and(|status| status == "installed")
}

/// On systems with other packages, only what can be asked for by a common name is checked.
fn without_dpkg() -> Result<()> {
    let libraries = ["webkit2gtk-4.1", "gtk+-3.0"];
    let missing: Vec<&str> = libraries.into_iter().filter(|name| !command::succeeds("pkg-config", &["--exists", name])).collect();
    if !missing.is_empty() {
        bail!(
            "pkg-config does not find {}: please install the development packages of these libraries. \
             Their names are known here for Debian and Ubuntu only: {}",
            missing.join(" and "),
            names(&[BUILD]).join(" ")
        );
    }
    Ok(())
}

fn agreed(line: &str) -> Result<bool> {
    if !stdin().is_terminal() {
        return Ok(false);
    }
    write!(stdout(), "Run `{line}`? [y/N] ")?;
    stdout().flush()?;
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn install(missing: &[&str], root: bool) -> Result<()> {
    let apt = |words: &[&str]| {
        let mut all = vec!["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300"];
        all.extend(words);
        if !root {
            all.insert(0, "sudo");
        }
        command::run(&mut command::program(all[0], &all[1..], ""))
    };
    // An old list of packages may do; if it does not, the installation says so.
    if let Err(error) = apt(&["update", "-q"]) {
        say(&format!("{error:#}"));
    }
    let words = ["install", "-q", "-y", "--no-install-recommends"];
    apt(&[&words[..], missing].concat())
}

/// Sees to it that a Node of sufficient age is there: no package of that kind can be named for every system.
pub(crate) fn ensure_node() -> Result<()> {
    let Some(version) = command::output("node", &["--version"]) else {
        bail!("Node.js is not installed: the interface needs {}.{} or newer", NODE.0, NODE.1);
    };
    if !new_enough(&version) {
        bail!("Node.js is {}: the interface needs {}.{} or newer", version.trim(), NODE.0, NODE.1);
    }
    if !command::succeeds("npm", &["--version"]) {
        bail!("npm is not installed: it comes with Node.js, in some systems as a package of its own");
    }
    Ok(())
}

fn new_enough(version: &str) -> bool {
    let mut numbers = version.trim().trim_start_matches('v').split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= NODE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_without_its_comments() {
        assert_eq!(names(&["# why\na\n\n b \n", "c"]), ["a", "b", "c"]);
        assert!(names(&[BUILD]).contains(&"libwebkit2gtk-4.1-dev"));
    }

    #[test]
    fn an_old_node_is_seen() {
        assert!(new_enough("v20.19.0\n") && new_enough("v22.1.0"));
        assert!(!new_enough("v18.20.4") && !new_enough("v20.18.3") && !new_enough("nonsense"));
    }

    #[test]
    fn a_package_that_is_not_there_is_missing_and_nothing_is_installed_unasked() {
        if command::succeeds("dpkg-query", &["--version"]) && !stdin().is_terminal() {
            assert!(ensure(&["dpkg"], Consent::Ask).is_ok());
            let refused = ensure(&["dpkg\nno-such-package-as-this"], Consent::Ask).unwrap_err().to_string();
            assert!(refused.contains("install --no-install-recommends no-such-package-as-this"), "{refused}");
        }
    }
}
