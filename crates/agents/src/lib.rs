//! How to talk to each agent: wire types, protocol machines and launch plans, one folder an agent.
//!
//! Pure: bytes and commands in, bytes and events out. It never does I/O, never looks at a clock, and cannot hold a
//! secret: a launch plan and a frame say *which* secret goes *where*, and the engine fills it in.

mod acp;
mod codex;
pub mod errand;
pub mod jsonrpc;
pub mod port;
mod server;
mod timers;

use std::sync::Arc;

use turnkeep_model::ProviderId;

pub use acp::configured;
pub use port::{
    Agent, Card, Clock, CredentialSource, Frame, HomeLink, HomePlan, Launch, LaunchError, Out, Program, ProgramSource, Protocol,
    Purpose, SecretSlot, Site, Stdio,
};
pub use server::{AddressError, Server};

/// Every kind of agent that is built in, in the order in which they are listed. The only such list.
#[must_use]
pub fn builtin() -> Vec<Arc<dyn Agent>> {
    let known = acp::known().into_iter().map(|agent| Arc::new(agent) as Arc<dyn Agent>);
    std::iter::once(Arc::new(codex::Codex::new()) as Arc<dyn Agent>).chain(known).collect()
}

/// The built-in agent with this id.
#[must_use]
pub fn agent(id: &ProviderId) -> Option<Arc<dyn Agent>> {
    builtin().into_iter().find(|agent| agent.card().id == *id)
}
