//! The environment that the person has in a terminal: an application started from a menu does not get it.
//!
//! Asked once of the login shell, between marks that no profile prints, with a deadline. What a child gets of it is
//! named here, and nothing else is handed on.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::sync::oneshot;

use crate::runtime::{GRACE, Line, Plan, Spawner, read_lines, sweep};

/// For a profile that is slow.
const DEADLINE: Duration = Duration::from_secs(5);

/// More than this in one line is no environment.
const LONGEST_ANSWER: usize = 4 << 20;

/// The person's environment, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Environment {
    pub(crate) variables: BTreeMap<String, String>,
    /// Why the shell's could not be taken, if so.
    pub(crate) fallback: Option<String>,
}

/// What is handed on to every child, where the person has it. A name that ends in `*` stands for all that begin so.
const HANDED_ON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "COLORTERM",
    "TMPDIR",
    "TEMP",
    "TMP",
    "EDITOR",
    "VISUAL",
    "PAGER",
    // The way to the session: keychain, display for a browser, agents for keys.
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_*",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_TTY",
    "GNUPGHOME",
    "DESKTOP_SESSION",
    "BROWSER",
    // The way to the network.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    // Where the tools of a language lie.
    "NVM_DIR",
    "NVM_BIN",
    "FNM_*",
    "ASDF_*",
    "MISE_*",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "JAVA_HOME",
    "ANDROID_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "NODE_PATH",
    "NPM_CONFIG_PREFIX",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "HOMEBREW_*",
    "NIX_*",
    "DENO_INSTALL",
    "DOTNET_ROOT",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "MANPATH",
    "INFOPATH",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    // Windows.
    "SystemRoot",
    "SystemDrive",
    "ComSpec",
    "PATHEXT",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
    "ProgramFiles",
    "ProgramData",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "HOMEDRIVE",
    "HOMEPATH",
    "windir",
];

/// Names that look like a secret are never handed on, whatever list they are in.
const NEVER: &[&str] = &["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PRIVATE_KEY", "CREDENTIAL"];

impl Environment {
    /// This application's own.
    pub(crate) fn own(fallback: Option<String>) -> Self {
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
        Self { variables, fallback }
    }

    /// What a child may get: from the list, and the agent's own variables, which begin so.
    pub(crate) fn handed_on(&self, own_prefixes: &[&str]) -> BTreeMap<String, String> {
        let fits = |name: &str| {
            let listed = HANDED_ON.iter().any(|rule| match rule.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == *rule,
            });
            let upper = name.to_ascii_uppercase();
            (listed || own_prefixes.iter().any(|own| !own.is_empty() && name.starts_with(own)))
                && !NEVER.iter().any(|part| upper.contains(part))
        };
        self.variables.iter().filter(|(name, _)| fits(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The person's home folder.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.variables.get("HOME").or_else(|| self.variables.get("USERPROFILE")).map(PathBuf::from).filter(|it| it.is_absolute())
    }

    /// The folders in which programs are looked for, the person's own order first.
    pub(crate) fn search_path(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = Vec::new();
        let own = self.variables.get("PATH").map(|path| std::env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
        for folder in own.into_iter().chain(self.usual_places()) {
            if folder.is_absolute() && !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    /// Where tools put their programs, also when no profile says so.
    fn usual_places(&self) -> Vec<PathBuf> {
        let mut places = Vec::new();
        let mut variable = |name: &str, below: &str| {
            if let Some(value) = self.variables.get(name).filter(|value| !value.is_empty()) {
                places.push(Path::new(value).join(below));
            }
        };
        variable("VOLTA_HOME", "bin");
        variable("PNPM_HOME", "");
        variable("BUN_INSTALL", "bin");
        variable("CARGO_HOME", "bin");
        variable("ASDF_DATA_DIR", "shims");
        variable("MISE_DATA_DIR", "shims");
        variable("NVM_BIN", "");
        variable("NPM_CONFIG_PREFIX", "bin");
        variable("HOMEBREW_PREFIX", "bin");
        if let Some(home) = self.home() {
            for below in [
                ".local/bin",
                ".npm-global/bin",
                ".npm/bin",
                "bin",
                ".volta/bin",
                ".local/share/pnpm",
                "Library/pnpm",
                ".bun/bin",
                ".cargo/bin",
                ".asdf/shims",
                ".local/share/mise/shims",
                ".local/share/fnm/aliases/default/bin",
                ".deno/bin",
                ".nix-profile/bin",
                ".yarn/bin",
            ] {
                places.push(home.join(below));
            }
            let nvm = self.variables.get("NVM_DIR").map_or_else(|| home.join(".nvm"), PathBuf::from);
            places.extend(versions(&nvm.join("versions/node")));
            places.extend(
                versions(&home.join(".local/share/fnm/node-versions"))
                    .into_iter()
                    .map(|bin| bin.parent().map_or(bin.clone(), |version| version.join("installation/bin"))),
            );
        }
        for place in [
            "/opt/homebrew/bin",
            "/usr/local/bin",
            "/home/linuxbrew/.linuxbrew/bin",
            "/opt/local/bin",
            "/usr/bin",
            "/bin",
            "/snap/bin",
            "/var/lib/flatpak/exports/bin",
        ] {
            places.push(PathBuf::from(place));
        }
        places
    }
}

/// The `bin` folders of installed versions, the newest first.
fn versions(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<(Vec<u64>, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let numbers = name.trim_start_matches('v').split('.').map(|part| part.parse().unwrap_or(0)).collect();
            Some((numbers, entry.path().join("bin")))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Ask the login shell; its answer, or this application's own environment.
pub(crate) async fn capture(spawner: &Spawner, marker: &str) -> Environment {
    let own = Environment::own(None);
    let Some(shell) = login_shell(&own) else {
        return Environment { fallback: Some("no login shell is known".to_owned()), ..own };
    };
    match ask(spawner, &shell, &own, marker).await {
        Ok(variables) => Environment { variables: merged(own.variables, variables), fallback: None },
        Err(why) => {
            let why = format!("{} {why}", shell.display());
            tracing::warn!(%why, "the environment of the login shell could not be taken; programs may not be found");
            Environment { fallback: Some(why), ..own }
        }
    }
}

fn login_shell(own: &Environment) -> Option<PathBuf> {
    if cfg!(windows) {
        return None;
    }
    own.variables.get("SHELL").map(PathBuf::from).filter(|shell| shell.is_absolute() && shell.exists())
}

/// The shell's word counts, but for what only the session knows.
fn merged(own: BTreeMap<String, String>, mut shell: BTreeMap<String, String>) -> BTreeMap<String, String> {
    for name in ["SHLVL", "_", "PWD", "OLDPWD"] {
        shell.remove(name);
    }
    for (name, value) in own {
        let of_session = name.starts_with("XDG_")
            || matches!(name.as_str(), "DBUS_SESSION_BUS_ADDRESS" | "DISPLAY" | "WAYLAND_DISPLAY" | "XAUTHORITY");
        if of_session || !shell.contains_key(&name) {
            shell.insert(name, value);
        }
    }
    shell
}

/// How a shell is made to run one command as a terminal's first shell would.
fn arguments(shell: &Path, command: &str) -> Vec<String> {
    let name = shell.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let flags: &[&str] = match name.as_str() {
        "nu" => &["--login", "--commands"],
        "pwsh" | "powershell" => &["-Login", "-NonInteractive", "-Command"],
        "csh" | "tcsh" => &["-i", "-c"],
        "sh" | "dash" | "ash" | "ksh" | "mksh" => &["-l", "-c"],
        "elvish" => &["-c"],
        // bash, zsh, fish, and what is like them.
        _ => &["-l", "-i", "-c"],
    };
    flags.iter().map(|flag| (*flag).to_owned()).chain([command.to_owned()]).collect()
}

async fn ask(spawner: &Spawner, shell: &Path, own: &Environment, marker: &str) -> Result<BTreeMap<String, String>, String> {
    let mark = format!("turnkeep-{}-{}", std::process::id(), crate::clock::boot());
    // Plain words for every shell: an external program prints the environment.
    let printer = ["/usr/bin/env", "/bin/env"].into_iter().find(|path| Path::new(path).exists()).unwrap_or("env");
    let command = format!("/bin/echo {mark}; {printer} -0; /bin/echo {mark}");
    let command = if matches!(shell.file_stem().and_then(|it| it.to_str()), Some("nu" | "elvish" | "pwsh")) {
        command.replace("/bin/echo", "^/bin/echo").replace(printer, &format!("^{printer}"))
    } else {
        command
    };
    let command = match shell.file_stem().and_then(|it| it.to_str()) {
        Some("pwsh" | "powershell" | "elvish") => command.replace('^', ""),
        _ => command,
    };
    let mut environment = own.variables.clone();
    environment.insert(crate::runtime::MARKER.to_owned(), marker.to_owned());
    // Profiles that would begin something of their own leave it when they see these.
    environment.insert("TURNKEEP_RESOLVING_ENVIRONMENT".to_owned(), "1".to_owned());
    environment.insert("TERM".to_owned(), "dumb".to_owned());
    let plan = Plan { program: shell.to_owned(), args: arguments(shell, &command), environment, directory: own.home() };
    let mut child = spawner.spawn(plan).await.map_err(|error| format!("could not be started ({error})"))?;
    drop(child.stdin.take());
    let answer = async {
        let (_keep, give_up) = oneshot::channel();
        let output = child.stdout.take().ok_or("has no output")?;
        let mut lines = read_lines(output, LONGEST_ANSWER, give_up);
        let mut seen = false;
        let mut text: Vec<u8> = Vec::new();
        while let Some(line) = lines.recv().await {
            match line {
                Line::Whole { bytes, .. } if !seen => seen = bytes.ends_with(mark.as_bytes()),
                Line::Whole { bytes, .. } if bytes.ends_with(mark.as_bytes()) => {
                    text.extend_from_slice(bytes.strip_suffix(mark.as_bytes()).unwrap_or_default());
                    return Ok(text);
                }
                Line::Whole { bytes, .. } => {
                    text.extend_from_slice(&bytes);
                    text.push(b'\n');
                    if text.len() > LONGEST_ANSWER {
                        return Err("says too much");
                    }
                }
                Line::Oversized { .. } => return Err("says too much"),
                Line::Closed { .. } => break,
            }
        }
        Err("did not say its environment")
    };
    let answer = tokio::time::timeout(DEADLINE, answer).await;
    let Ok(Ok(text)) = answer else {
        // Nothing of a shell that fails is of use; the agents that a good profile starts are the person's.
        let identity = child.id().and_then(crate::runtime::identity);
        let (_, ()) = tokio::join!(child.wait(), sweep(marker.to_owned(), identity.into_iter().collect(), GRACE));
        return Err(match answer {
            Ok(Err(why)) => why.to_owned(),
            _ => format!("did not answer within {} s", DEADLINE.as_secs()),
        });
    };
    tokio::spawn(async move { child.wait().await });
    let variables = parse(&text);
    if variables.contains_key("PATH") { Ok(variables) } else { Err("did not say its PATH".to_owned()) }
}

/// `NAME=value` between NULs; a value may hold line ends. What is not UTF-8 is left out.
fn parse(text: &[u8]) -> BTreeMap<String, String> {
    text.split(|byte| *byte == 0)
        .filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='))
        .filter(|(name, _)| !name.is_empty() && !name.contains(char::is_whitespace))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
