//! Codex by its own `app-server` (verified with 0.171.0): newline-separated JSON over standard input and output, or the
//! same JSON in messages of a WebSocket where somebody else started it.

mod asks;
mod identity;
mod items;
mod launch;
mod protocol;
mod wire;
mod words;

use std::path::{Path, PathBuf};

use turnkeep_model::{
    ProviderId,
    port::{Capabilities, Goals, Observation, Sessions, SignInMethod},
};

use crate::port::{Agent, Card, CredentialSource, Launch, LaunchError, ProgramSource, Protocol, Purpose, Site};

/// OpenAI's Codex.
#[derive(Debug)]
pub(crate) struct Codex {
    card: Card,
}

impl Codex {
    pub(crate) fn new() -> Self {
        Self {
            card: Card {
                id: ProviderId::new("codex"),
                name: "Codex".to_owned(),
                full_name: "Codex (OpenAI)".to_owned(),
                capabilities: Capabilities {
                    sessions: Sessions::Many,
                    resume: true,
                    steer: true,
                    interrupt: true,
                    goals: Goals::Native,
                    history_probe: true,
                    approvals: true,
                    threads: true,
                    commands: false,
                    fork: true,
                },
                sign_in: vec![SignInMethod::Browser, SignInMethod::DeviceCode, SignInMethod::ApiKey],
                program: ProgramSource::Search { names: vec!["codex".to_owned()], says_version: true },
                install: ["npm install -g @openai/codex", "brew install --cask codex"].map(str::to_owned).to_vec(),
                system_home: ("CODEX_HOME".to_owned(), ".codex".to_owned()),
                own_variables: Vec::new(),
                serve: Some("codex app-server --listen unix:///tmp/codex.sock".to_owned()),
            },
        }
    }
}

impl Agent for Codex {
    fn card(&self) -> &Card {
        &self.card
    }

    fn launch(&self, site: &Site) -> Result<Launch, LaunchError> {
        launch::launch(site)
    }

    fn protocol(&self, purpose: &Purpose) -> Box<dyn Protocol> {
        Box::new(protocol::Machine::new(purpose))
    }

    fn says_signed_out(&self, text: &str) -> bool {
        words::signed_out(text)
    }

    fn system_sources(&self, home: &Path) -> Vec<CredentialSource> {
        launch::system_sources(home)
    }

    fn read_identity(&self, content: &[u8], digest: &dyn Fn(&[u8]) -> String) -> Observation {
        identity::read(content, digest)
    }

    fn better_programs(&self, found: &Path) -> Vec<PathBuf> {
        identity::native_programs(found)
    }
}
