//! The real application in a private desktop: real tray, real window, real keyring, real notifications, the real Codex.
//!
//! Only the model is a mock, on loopback.

mod app;
mod crash;
mod demo;
mod depth;
mod groups;
mod idle;
mod keychain;
mod parts;
mod sign_in;
mod sign_out;
mod way_through;

pub(crate) use app::program;
