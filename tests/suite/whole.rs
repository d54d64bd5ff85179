//! The real application in a private desktop: real tray, real window, real keyring, real notifications, the real Codex.
//!
//! Only the model is a mock, on loopback.

mod app;
mod bare;
mod browser;
mod crash;
mod demo;
mod depth;
mod disk;
mod groups;
mod hostile;
mod idle;
mod keychain;
mod odd;
mod own_ways;
mod parts;
mod server;
mod sign_in;
mod sign_out;
mod way_through;

pub(crate) use app::program;
