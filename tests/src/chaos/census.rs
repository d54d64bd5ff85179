//! Who of a tree lives, in three ways that know nothing of one another: by the word on its command line, by what it wrote
//! down about itself (and by whose child it is), and by the lock that it holds.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::tree::Tree;
use crate::process::{self, Row};

/// How many members of a tree each way sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Census {
    /// A live process with the tree's word on its command line.
    pub marked: usize,
    /// A live process with the pid and the start ticks of a member, or a descendant of one.
    pub descended: usize,
    /// A lock that is held.
    pub holding: usize,
}

impl Census {
    /// Counts the members of a tree.
    #[must_use]
    pub fn of(tree: &Tree) -> Self {
        let table: Vec<Row> = process::table().into_iter().filter(alive).collect();
        let marked = table.iter().filter(|row| carries(row.pid, &tree.mark())).count();
        let mut family: BTreeSet<i32> = BTreeSet::new();
        for member in tree.members() {
            if table.iter().any(|row| row.pid == member.pid && row.start_ticks == member.start_ticks) {
                family.insert(member.pid);
            }
        }
        loop {
            let more: Vec<i32> = table
                .iter()
                .filter(|row| family.contains(&row.parent) && !family.contains(&row.pid))
                .map(|row| row.pid)
                .collect();
            if more.is_empty() {
                break;
            }
            family.extend(more);
        }
        Self { marked, descended: family.len(), holding: tree.held().len() }
    }

    /// How many survived: as many as the way that saw the most.
    #[must_use]
    pub fn survivors(self) -> usize {
        self.marked.max(self.descended).max(self.holding)
    }
}

fn alive(row: &Row) -> bool {
    !matches!(row.state, 'Z' | 'X')
}

fn carries(pid: i32, mark: &str) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
}

/// Sends a signal to a process if it still is the one that started at these ticks. Whether it was sent.
pub fn strike(pid: i32, start_ticks: u64, signal: Signal) -> bool {
    process::signal_same(pid, start_ticks, signal).unwrap_or(false)
}
