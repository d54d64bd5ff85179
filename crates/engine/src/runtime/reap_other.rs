//! Where nothing tells one process from a later one with the same pid, nothing is signalled but what a runtime's actor
//! holds itself. What a child leaves behind is not found here.

use turnkeep_model::state::ProcessIdentity;

use super::{Ask, Which};

pub(crate) const fn become_subreaper() {}

pub(crate) const fn bury_adopted() {}

pub(crate) const fn note_started(_pid: u32) {}

pub(crate) const fn identity(pid: u32) -> Option<ProcessIdentity> {
    Some(ProcessIdentity { pid, start_ticks: 0, boot_id: String::new() })
}

pub(super) const fn signal(_process: &ProcessIdentity, _ask: Ask) {}

pub(super) const fn family(_which: &Which, _known: &[ProcessIdentity]) -> Vec<ProcessIdentity> {
    Vec::new()
}

pub(super) const fn is_guard(_process: &ProcessIdentity) -> bool {
    false
}

pub(super) const fn kill_group(_which: &Which) {}

pub(super) const fn remove_group(_which: &Which) {}
