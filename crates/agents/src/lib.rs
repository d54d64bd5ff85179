//! How to talk to each agent: wire types, protocol machines and launch plans, one folder an agent.
//!
//! Pure: bytes and commands in, bytes and events out. It never does I/O, never looks at a clock, and cannot hold a
//! secret: a launch plan and a frame say *which* secret goes *where*, and the engine fills it in.

pub mod port;

pub use port::{
    Agent, Card, Clock, CredentialSource, Frame, HomeLink, HomePlan, Launch, LaunchError, Out, Program, Protocol, Purpose,
    SecretSlot, Site, Stdio,
};
