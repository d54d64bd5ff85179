//! Trees of processes that do not want to end, ways to end who started them, and a count of what is left.
//!
//! The count shares nothing with the product: it reads `/proc` and tries locks by itself. What is started here is ended here,
//! by pid and start time through a pidfd, and each member ends by itself when its folder is gone or its time is over.

mod app;
pub mod bury;
mod census;
mod crew;
mod crowd;
mod round;
mod shape;
mod table;
mod tree;

pub use app::{App, GUARD, Programs, Trees, plant, plant_codex};
pub use census::{Census, strike};
pub use crew::{Done, Job, work};
pub use crowd::{Crowd, Stopped, gather};
pub use round::{Ended, Killer, Report, Whose, again, play};
pub use shape::Shape;
pub use table::{Column, Table};
pub use tree::{Member, Tree, join, over, write_down};

/// Typed to the agent: its turn ends at once.
pub const SHORT: &str = "Please fail";
