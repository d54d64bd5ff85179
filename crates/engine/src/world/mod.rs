//! The world outside the machine: processes, the keychain, files and programs of this computer.
//!
//! [`World::perform`] is told what the machine wants and tells the inbox what came of it. It never blocks, never fails
//! towards its caller, and decides nothing: what a result means is for the machine to say.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use turnkeep_agents::Agent;
use turnkeep_model::{CredentialId, Effect, Input, RuntimeId, port::AgentEvent, state::Credential};

/// Something that came from outside the machine.
#[derive(Debug)]
pub enum Arrival {
    /// For the machine.
    Input(Input),
    /// Streaming text: for the feed, never for the machine.
    Event { runtime: RuntimeId, event: AgentEvent },
}

/// Where results go. Unbounded, because a sender must never wait for the loop; what fills it is bounded by each
/// runtime's own budget of unread bytes.
pub type Inbox = tokio::sync::mpsc::UnboundedSender<Arrival>;

/// What the world must be told before it starts.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Names this state directory for ever: children and keychain items carry it, so that ours are told from others'.
    pub instance: String,
    /// Folder in which private provider homes are made, one a credential.
    pub homes: PathBuf,
    /// The environment to take instead of asking the login shell.
    pub environment: Option<BTreeMap<String, String>>,
}

/// Carries out effects. Made inside the engine's tokio runtime.
#[derive(Debug)]
pub struct World {}

impl World {
    /// Begin to look at this computer; what is found comes to the inbox.
    #[must_use]
    pub fn start(_config: WorldConfig, _agents: Vec<Arc<dyn Agent>>, _inbox: Inbox) -> Self {
        Self {}
    }

    /// Carry out one wish; its result comes to the inbox. What is for the shell (notifications, the exit) is ignored.
    pub fn perform(&self, _effect: Effect) {}

    /// Say which credentials exist, whenever that changed: each is looked at and watched from then on.
    pub fn attend(&self, _credentials: &BTreeMap<CredentialId, Credential>) {}

    /// Keep a secret in the vault's memory until the machine says where it belongs.
    pub fn stage(&self, _secret: secrecy::SecretString) -> turnkeep_model::StagedSecret {
        turnkeep_model::StagedSecret(0)
    }

    /// Ask the person to unlock the keychain.
    pub fn unlock(&self) {}

    /// Look for the providers' programs again.
    pub fn rescan(&self) {}

    /// Stop what still runs, without a word to the inbox.
    #[expect(clippy::unused_async, reason = "the tree of every runtime is waited for")]
    pub async fn shut(self) {}
}
