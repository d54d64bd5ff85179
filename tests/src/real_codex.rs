//! The real Codex, at the version that `tests/agents` pins, set up to speak to the mock model and to nobody else.
//!
//! It must never see the person's own Codex home or account.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use serde_json::{Value, json};

use crate::mock_model::{Identity, MockModel};

/// The model that the settings name: one of the agent's own list, so that it offers all its tools.
pub const MODEL: &str = "gpt-5.5";

/// How Codex authorises its model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Account {
    /// No `Authorization` at all.
    #[default]
    None,
    /// The bearer of the account that is signed in.
    SignedIn,
}

/// The native program, as npm installed it.
pub fn program() -> Result<PathBuf> {
    let (package, target) = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => ("codex-linux-x64", "x86_64-unknown-linux-musl"),
        ("linux", "aarch64") => ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
        ("macos", "aarch64") => ("codex-darwin-arm64", "aarch64-apple-darwin"),
        ("macos", "x86_64") => ("codex-darwin-x64", "x86_64-apple-darwin"),
        (system, machine) => bail!("tests/agents installs no Codex for {system} on {machine}"),
    };
    let program = agents().join("node_modules/@openai").join(package).join("vendor").join(target).join("bin/codex");
    if !program.exists() {
        bail!("{} is not there: run `npm ci` in {}", program.display(), agents().display());
    }
    Ok(program)
}

/// A folder that holds `codex` as npm links it for a person, to be put on a `PATH`.
pub fn npm_folder() -> Result<PathBuf> {
    program()?;
    Ok(agents().join("node_modules/.bin"))
}

/// Makes a folder in `place` that holds the native program as `codex`, to be put on a `PATH`.
pub fn folder_in(place: &Path) -> Result<PathBuf> {
    let folder = place.join("bin");
    fs::create_dir_all(&folder)?;
    std::os::unix::fs::symlink(program()?, folder.join("codex")).context("linking codex")?;
    Ok(folder)
}

/// Puts `codex` into `~/.local/bin` of a home, where a person may have it: the native program, with the variables that keep
/// sign-in, refresh and revocation with the mock. They are set by a script, since a careful supervisor does not pass them on.
pub fn install(home: &Path, mock: &MockModel) -> Result<()> {
    let folder = home.join(".local/bin");
    fs::create_dir_all(&folder)?;
    let exports: String = env(mock).iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect();
    let script = format!("#!/bin/sh\n{exports}exec '{}' \"$@\"\n", program()?.display());
    let codex = folder.join("codex");
    fs::write(&codex, script).context("writing codex")?;
    fs::set_permissions(&codex, fs::Permissions::from_mode(0o755)).context("making codex a program")
}

/// Signs a Codex home in with an API key, as `codex login --with-api-key` does.
pub fn sign_in_with_key(home: &Path, key: &str) -> Result<()> {
    write_private(&home.join("auth.json"), &json!({ "auth_mode": "apikey", "OPENAI_API_KEY": key }))
}

/// Signs a Codex home in as `identity`, as `codex login` does; gives the bearer.
pub fn sign_in_as(home: &Path, identity: &Identity) -> Result<String> {
    let bearer = MockModel::token(identity, "access-file");
    let tokens = json!({
        "id_token": MockModel::token(identity, "id-file"), "access_token": bearer,
        "refresh_token": "refresh-file", "account_id": identity.account,
    });
    let now = "2026-01-01T00:00:00Z";
    let auth = json!({ "auth_mode": "chatgpt", "OPENAI_API_KEY": null, "tokens": tokens, "last_refresh": now });
    write_private(&home.join("auth.json"), &auth)?;
    Ok(bearer)
}

fn write_private(path: &Path, value: &Value) -> Result<()> {
    fs::create_dir_all(path.parent().context("a home has a folder")?)?;
    fs::write(path, value.to_string()).with_context(|| format!("writing {}", path.display()))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o600))?)
}

fn agents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("agents")
}

/// Writes `config.toml` into a Codex home, which is made if need be.
pub fn write_config(home: &Path, mock: &MockModel, account: Account) -> Result<()> {
    fs::create_dir_all(home).with_context(|| format!("making {}", home.display()))?;
    let file = home.join("config.toml");
    fs::write(&file, config(mock, account)).with_context(|| format!("writing {}", file.display()))
}

/// The settings: the mock as the only provider, and everything off that would ask the network.
#[must_use]
pub fn config(mock: &MockModel, account: Account) -> String {
    let url = mock.url();
    let (needs_account, pages) = match account {
        Account::None => (false, String::new()),
        Account::SignedIn => (true, format!("chatgpt_base_url = \"{}/backend-api\"\n", mock.tls_url())),
    };
    format!(
        r#"model = "{MODEL}"
model_provider = "mock"
check_for_update_on_startup = false
{pages}
[analytics]
enabled = false

[feedback]
enabled = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
requires_openai_auth = {needs_account}

[tools.update_plan]
enabled = true

[features]
apps = false
plugins = false
remote_plugin = false
plugin_sharing = false
daemon_auto_start = false
enable_request_compression = false
"#
    )
}

/// The variables that keep sign-in, refresh and revocation with the mock.
#[must_use]
pub fn env(mock: &MockModel) -> Vec<(&'static str, String)> {
    let url = mock.url();
    vec![
        ("CODEX_APP_SERVER_LOGIN_ISSUER", url.clone()),
        ("CODEX_REFRESH_TOKEN_URL_OVERRIDE", format!("{url}/oauth/token")),
        ("CODEX_REVOKE_TOKEN_URL_OVERRIDE", format!("{url}/oauth/revoke")),
        ("CODEX_CA_CERTIFICATE", mock.authority().display().to_string()),
    ]
}
