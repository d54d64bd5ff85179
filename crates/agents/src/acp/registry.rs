//! The agents that are known: how each is found, started and installed. A new one is a new entry here, and no code.

use std::collections::BTreeMap;

use turnkeep_model::ProviderId;

use super::{
    Entry, Key,
    quirks::{self, Quirks},
};
use crate::port::ProgramSource;

/// In the order in which they are listed.
pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry {
            full_name: "Claude Code (Anthropic)".to_owned(),
            own_variables: words(&["CLAUDE_", "ANTHROPIC_"]),
            system_home: pair("CLAUDE_CONFIG_DIR", ".claude"),
            credentials: words(&[".credentials.json"]),
            // In its own words: a key in the environment outranks the sign-in that is stored.
            key: Some(Key { variable: "ANTHROPIC_API_KEY", rivals: &["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"] }),
            quirks: quirks::CLAUDE_AGENT_ACP,
            ..entry(
                "claude-agent-acp",
                "Claude Code (ACP)",
                &["claude-agent-acp"],
                &[],
                &["npm install -g @agentclientprotocol/claude-agent-acp"],
            )
        },
        Entry {
            full_name: "Codex (OpenAI)".to_owned(),
            own_variables: words(&["CODEX_", "MODEL_PROVIDER", "INITIAL_AGENT_MODE"]),
            system_home: pair("CODEX_HOME", ".codex"),
            credentials: words(&["auth.json"]),
            // No key: whichever way it is given one, it writes it into `auth.json`, and no setting of its own keeps it from that.
            quirks: quirks::CODEX_ACP,
            ..entry("codex-acp", "Codex (ACP)", &["codex-acp"], &[], &["npm install -g @agentclientprotocol/codex-acp"])
        },
        Entry {
            own_variables: words(&["OPENCODE_"]),
            // Its own choice is to ask nothing. Somebody's own word about it stays.
            defaults: BTreeMap::from([("OPENCODE_PERMISSION".to_owned(), r#"{"bash":"ask","edit":"ask"}"#.to_owned())]),
            system_home: pair("", ".local/share/opencode"),
            credentials: words(&["auth.json"]),
            quirks: quirks::OPENCODE,
            ..entry(
                "opencode",
                "OpenCode",
                &["opencode"],
                &["acp"],
                &["npm install -g opencode-ai", "brew install sst/tap/opencode"],
            )
        },
        Entry {
            full_name: "Gemini CLI (Google)".to_owned(),
            own_variables: words(&["GEMINI_", "GOOGLE_CLOUD_"]),
            system_home: pair("", ".gemini"),
            credentials: words(&["oauth_creds.json"]),
            ..entry(
                "gemini",
                "Gemini CLI",
                &["gemini"],
                &["--acp"],
                &["npm install -g @google/gemini-cli", "brew install gemini-cli"],
            )
        },
        Entry {
            own_variables: words(&["GOOSE_"]),
            system_home: pair("", ".config/goose"),
            ..entry("goose", "Goose", &["goose"], &["acp"], &["brew install block-goose-cli"])
        },
        Entry {
            own_variables: words(&["QWEN_"]),
            system_home: pair("", ".qwen"),
            credentials: words(&["oauth_creds.json"]),
            ..entry("qwen", "Qwen Code", &["qwen"], &["--acp"], &["npm install -g @qwen-code/qwen-code"])
        },
        Entry { program: ProgramSource::Own, has_account: false, ..entry("demo", "Demo", &[], &["demo-agent"], &[]) },
    ]
}

fn entry(id: &str, name: &str, programs: &[&str], args: &[&str], install: &[&str]) -> Entry {
    Entry {
        id: ProviderId::new(id),
        name: name.to_owned(),
        full_name: name.to_owned(),
        // Some start serving whatever they are asked, so none is asked; the handshake tells the version.
        program: ProgramSource::Search { names: words(programs), says_version: false },
        args: words(args),
        install: words(install),
        environment: BTreeMap::new(),
        defaults: BTreeMap::new(),
        own_variables: Vec::new(),
        system_home: pair("", ""),
        credentials: Vec::new(),
        has_account: true,
        key: None,
        quirks: NO_QUIRKS,
    }
}

const NO_QUIRKS: Quirks = quirks::NONE;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn pair(variable: &str, below: &str) -> (String, String) {
    (variable.to_owned(), below.to_owned())
}
