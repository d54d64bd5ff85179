//! What a person is asked for when something does not work. Never holds a secret, a path of a project, or a message.

use std::collections::BTreeMap;

use crate::shell::{Inner, VERSION};

/// Facts by name, in plain words.
pub(crate) fn collect(shell: &Inner) -> BTreeMap<&'static str, String> {
    let mut facts = BTreeMap::from([
        ("version", VERSION.to_owned()),
        ("logs", shell.places.logs().display().to_string()),
        ("data", shell.places.data.display().to_string()),
        ("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("tauri", tauri::VERSION.to_owned()),
        ("errors", turnkeep_engine::logs::errors().to_string()),
    ]);
    if let Ok(version) = tauri::webview_version() {
        facts.insert("webview", version);
    }
    for (name, variable) in [("desktop", "XDG_CURRENT_DESKTOP"), ("display", "XDG_SESSION_TYPE")] {
        facts.extend(std::env::var(variable).ok().filter(|value| !value.is_empty()).map(|value| (name, value)));
    }
    facts
}
