//! One child process and its input and output: started, listened to, talked to, stopped, and proven gone. Or one connection
//! to a server that somebody else started: made, and let go of.
//!
//! Nothing here knows what a line means (that is the protocol machine's business) or why a process is wanted (the
//! machine's). Nothing that we did not start is ever signalled.

mod actor;
mod before_exec;
mod child;
mod ending;
mod errands;
mod guard;
#[cfg(target_os = "linux")]
#[path = "leaf_linux.rs"]
mod leaf;
mod link;
mod process;
mod reap;
mod socket;
mod stdio;
mod talk;
mod undertaker;
mod unread;

pub(crate) use actor::{Actor, End, Order, Report, Start};
pub(crate) use child::{Plan, Spawner};
pub(crate) use link::{Attach, attach};
pub(crate) use reap::{GRACE, MARKER, become_subreaper, identity, reap, sweep, sweep_leftovers};
pub(crate) use stdio::{Fill, LastLines, Line, read_lines};
pub(crate) use undertaker::bury_as_they_come;
pub(crate) use unread::Unread;
