//! Any agent that speaks the Agent Client Protocol, version 1: JSON-RPC, a message a line, over standard input and output.
//!
//! One kind of [`Agent`]; which program it starts, and what that program does otherwise than expected, is data in
//! [`registry`], in [`quirks`] and in the person's own list ([`configured`]).

mod asks;
pub mod configured;
mod diff;
mod errands;
mod items;
mod protocol;
mod quirks;
mod registry;
mod settings;
mod wire;
mod words;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use turnkeep_model::{
    ProviderId,
    port::{Capabilities, Goals, Sessions, SignInMethod},
    state::AccountKind,
};

use crate::port::{
    Agent, Card, CredentialSource, Launch, LaunchError, Program, ProgramSource, Protocol, Purpose, SecretSlot, Site, Stdio,
};

/// Milliseconds. Some install or migrate something at their first start.
const READY_WITHIN: u64 = 120_000;
/// Milliseconds. One takes 2 s to end after its input did.
const EOF_GRACE: u64 = 3_000;

/// One agent, as data.
#[derive(Clone)]
struct Entry {
    id: ProviderId,
    name: String,
    /// For messages: "Gemini CLI (Google)".
    full_name: String,
    program: ProgramSource,
    args: Vec<String>,
    install: Vec<String>,
    /// Set for it, whatever the person has.
    environment: BTreeMap<String, String>,
    /// Set for it where the person has no such variable.
    defaults: BTreeMap<String, String>,
    own_variables: Vec<String>,
    system_home: (String, String),
    /// Files in its home whose change means that somebody signed in or out.
    credentials: Vec<String>,
    /// There is somebody to sign in.
    has_account: bool,
    /// How it can be given an API key that it writes nowhere; `None` where no such way is known.
    key: Option<Key>,
    quirks: quirks::Quirks,
}

/// An API key in the environment of the process.
#[derive(Clone, Copy, Debug)]
struct Key {
    variable: &'static str,
    /// What the person may have set, and what would be taken instead of it.
    rivals: &'static [&'static str],
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What the person set for it may be a secret.
        f.debug_struct("Entry").field("id", &self.id).field("program", &self.program).finish_non_exhaustive()
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct AcpAgent {
    card: Card,
    entry: Arc<Entry>,
}

impl Entry {
    fn sign_in(&self) -> Vec<SignInMethod> {
        let elsewhere = self.has_account.then_some(SignInMethod::Elsewhere);
        elsewhere.into_iter().chain(self.key.map(|_| SignInMethod::ApiKey)).collect()
    }
}

impl AcpAgent {
    fn new(entry: Entry) -> Self {
        let card = Card {
            id: entry.id.clone(),
            name: entry.name.clone(),
            full_name: entry.full_name.clone(),
            // What it can really do, its handshake tells.
            capabilities: Capabilities {
                sessions: Sessions::Many,
                resume: true,
                steer: false,
                interrupt: true,
                goals: Goals::None,
                history_probe: false,
                approvals: true,
                threads: false,
                commands: true,
                fork: false,
            },
            sign_in: entry.sign_in(),
            program: entry.program.clone(),
            install: entry.install.clone(),
            serve: None,
            system_home: entry.system_home.clone(),
            own_variables: entry.own_variables.clone(),
        };
        Self { card, entry: Arc::new(entry) }
    }
}

impl Agent for AcpAgent {
    fn card(&self) -> &Card {
        &self.card
    }

    fn launch(&self, site: &Site) -> Result<Launch, LaunchError> {
        let entry = &self.entry;
        let mut environment = site.environment.clone();
        let (source, secrets) = match (&site.kind, entry.key) {
            (AccountKind::System, _) => (self.source(&site.system_home), BTreeMap::new()),
            // Its sessions are the person's own, whoever pays for them: the home stays the same.
            (AccountKind::ApiKey, Some(key)) => {
                for rival in key.rivals.iter().chain([&key.variable]) {
                    environment.remove(*rival);
                }
                (CredentialSource::Vault, BTreeMap::from([(key.variable.to_owned(), SecretSlot::ApiKey)]))
            }
            (AccountKind::ApiKey | AccountKind::PrivateHome | AccountKind::Server { .. }, _) => {
                return Err(LaunchError::Home {
                    home: site.private_home.to_string_lossy().into_owned(),
                    why: "this agent keeps one sign-in, in the person's own home".to_owned(),
                });
            }
        };
        for (name, value) in &entry.defaults {
            environment.entry(name.clone()).or_insert_with(|| value.clone());
        }
        environment.extend(entry.environment.clone());
        let home = ["HOME", "USERPROFILE"].iter().find_map(|name| site.environment.get(*name)).map(PathBuf::from);
        Ok(Launch {
            program: Program { path: site.program.clone() },
            args: entry.args.clone(),
            environment,
            secrets,
            home: None,
            directory: home,
            stdio: Stdio::JsonLines,
            source,
            ready_within: READY_WITHIN,
            eof_grace: EOF_GRACE,
        })
    }

    fn protocol(&self, purpose: &Purpose) -> Box<dyn Protocol> {
        Box::new(protocol::Machine::new(purpose, Arc::clone(&self.entry)))
    }

    fn says_signed_out(&self, text: &str) -> bool {
        words::says_signed_out(&self.entry, text)
    }

    fn system_sources(&self, home: &Path) -> Vec<CredentialSource> {
        vec![self.source(home)]
    }
}

impl AcpAgent {
    fn source(&self, home: &Path) -> CredentialSource {
        CredentialSource::Assumed { watch: self.entry.credentials.iter().map(|name| home.join(name)).collect() }
    }
}

/// The agents that are known without anybody's doing.
pub(crate) fn known() -> Vec<AcpAgent> {
    registry::entries().into_iter().map(AcpAgent::new).collect()
}

#[cfg(test)]
mod tests;
