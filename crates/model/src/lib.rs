//! What is true, and what happens next: a synchronous, deterministic machine.
//!
//! It never does I/O, never looks at a clock, never draws a random number and cannot hold a secret.

mod account;
mod apply;
mod approval;
pub mod change;
mod clocks;
pub mod derive;
pub mod diff;
pub mod effect;
mod hear;
pub mod ids;
pub mod input;
pub mod notify;
pub mod port;
pub mod rules;
mod runtime;
mod session;
mod settle;
pub mod state;
pub mod supervisor;
mod take;
mod turn;

pub use apply::apply;
pub use change::Change;
pub use effect::Effect;
pub use ids::*;
pub use input::Input;
pub use state::{Now, State};
pub use supervisor::{Step, Supervisor};
