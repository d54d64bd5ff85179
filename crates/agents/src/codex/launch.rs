//! How `codex app-server` is started for each kind of account: one process per credential, the threads shared.
//!
//! Only plans; nothing here touches a file. Paths must already be canonical: Codex names its keychain item after the
//! digest of the real path of its home.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use sha2::{Digest, Sha256};
use turnkeep_model::state::AccountKind;

use crate::port::{CredentialSource, HomeLink, HomePlan, Launch, LaunchError, Program, Site, Stdio};

/// Directories of the shared home that must be there before they are linked to: Codex cannot make one through a link.
const SHARED_DIRECTORIES: &[&str] = &["sessions", "archived_sessions", "thread-writer-locks", "rules", "skills"];

/// What else a private home shares, where it exists. Credentials, caches and sockets stay private.
const SHARED: &[&str] =
    &["config.toml", "AGENTS.md", "AGENTS.override.md", "prompts", "agents", "hooks.json", "plugins", ".credentials.json"];

/// Never passed on: Codex ignores them, and every command that it runs would inherit them.
const KEPT_BACK: &[&str] = &["OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"];

/// Marks of another Codex's tool process.
const FOREIGN_MARKS: &[&str] = &["CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI", "CODEX_SANDBOX"];

/// The way to the session bus, which is the way to the keychain.
const BUS: &[&str] = &["DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];

/// No update checks, no measurements of use, no daemon; a thread is let go of at once; a sign-in lies where we look for it.
const SETTINGS: &[&str] = &[
    "check_for_update_on_startup=false",
    "analytics.enabled=false",
    "thread_unload_delay_secs=0",
    "features.secret_auth_storage=false",
    "features.daemon_auto_start=false",
];

/// Milliseconds. The first start in a new home builds its databases.
const READY_WITHIN: u64 = 30_000;
/// Milliseconds. Codex ends 0.1 s after its input does.
const EOF_GRACE: u64 = 2_000;

pub(super) fn launch(site: &Site) -> Result<Launch, LaunchError> {
    let mut environment = site.environment.clone();
    for name in KEPT_BACK.iter().chain(FOREIGN_MARKS) {
        environment.remove(*name);
    }

    let home = match site.kind {
        AccountKind::System | AccountKind::Server { .. } => &site.system_home,
        AccountKind::ApiKey | AccountKind::PrivateHome => &site.private_home,
    };
    let home_text = text(home)?;
    let (store, source) = match site.kind {
        AccountKind::ApiKey => {
            for name in BUS {
                environment.remove(*name);
            }
            (Some("ephemeral"), CredentialSource::Vault)
        }
        AccountKind::PrivateHome => {
            (Some("keyring"), CredentialSource::KeychainItem { attributes: keychain_attributes(&home_text) })
        }
        AccountKind::System => (None, CredentialSource::File { path: home.join("auth.json") }),
        AccountKind::Server { .. } => return Err(LaunchError::NotOurs),
    };
    let plan = match site.kind {
        AccountKind::System | AccountKind::Server { .. } => None,
        AccountKind::ApiKey | AccountKind::PrivateHome => {
            if site.private_home == site.system_home {
                return Err(LaunchError::Home {
                    home: home_text,
                    why: "it is the person's own Codex home, which must stay as it is".to_owned(),
                });
            }
            let databases = environment.get("CODEX_SQLITE_HOME").cloned();
            environment.insert("CODEX_SQLITE_HOME".to_owned(), databases.unwrap_or(text(&site.system_home)?));
            Some(home_plan(home, &site.system_home))
        }
    };
    environment.insert("CODEX_HOME".to_owned(), home_text);

    let mut args = vec!["app-server".to_owned()];
    let store = store.map(|store| format!("cli_auth_credentials_store=\"{store}\""));
    for setting in SETTINGS.iter().map(|setting| (*setting).to_owned()).chain(store) {
        args.extend(["-c".to_owned(), setting]);
    }

    Ok(Launch {
        program: Program { path: site.program.clone() },
        args,
        environment,
        secrets: BTreeMap::new(),
        directory: Some(home.clone()),
        home: plan,
        stdio: Stdio::JsonLines,
        source,
        ready_within: READY_WITHIN,
        eof_grace: EOF_GRACE,
    })
}

/// The file, or the item of a person whose own config keeps the sign-in in the keychain.
pub(super) fn system_sources(home: &Path) -> Vec<CredentialSource> {
    let file = CredentialSource::File { path: home.join("auth.json") };
    let item = text(home).ok().map(|home| CredentialSource::KeychainItem { attributes: keychain_attributes(&home) });
    std::iter::once(file).chain(item).collect()
}

fn home_plan(home: &Path, shared: &Path) -> HomePlan {
    let link = |name: &&str| HomeLink { name: (*name).to_owned(), target: shared.join(name) };
    HomePlan {
        path: home.to_owned(),
        make_first: SHARED_DIRECTORIES.iter().map(|name| shared.join(name)).collect(),
        links: SHARED_DIRECTORIES.iter().chain(SHARED).map(link).collect(),
    }
}

/// How to find the item that Codex makes for the home at this canonical path.
fn keychain_attributes(home: &str) -> BTreeMap<String, String> {
    let digest = Sha256::digest(home.as_bytes());
    let mut short = String::new();
    for byte in digest.iter().take(8) {
        // Writing to a string cannot fail.
        let _ = write!(short, "{byte:02x}");
    }
    BTreeMap::from([("service".to_owned(), "Codex Auth".to_owned()), ("username".to_owned(), format!("cli|{short}"))])
}

fn text(path: &Path) -> Result<String, LaunchError> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| LaunchError::Home { home: path.to_string_lossy().into_owned(), why: "its path is not UTF-8".to_owned() })
}

#[cfg(test)]
mod tests;
