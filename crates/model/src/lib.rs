//! What is true, and what happens next: a synchronous, deterministic machine.
//!
//! It never does I/O, never looks at a clock, never draws a random number and cannot hold a secret.

mod apply;
pub mod change;
pub mod effect;
pub mod ids;
pub mod input;
pub mod port;
pub mod state;

pub use apply::apply;
pub use change::Change;
pub use effect::Effect;
pub use ids::*;
pub use input::Input;
pub use state::{Now, State};
