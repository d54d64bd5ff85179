//! Finding and ending what a runtime started, and proving that nothing of it is left.
//!
//! A process is ours if it carries our marker in its environment or as its tag, descends from one that does, or was seen to; it is
//! signalled through a descriptor whose start time was compared first. Never by name, never by a bare pid, never one that
//! we did not start.

#[cfg(target_os = "linux")]
#[path = "reap_linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "reap_other.rs"]
mod system;

#[cfg(target_os = "linux")]
#[path = "chase_linux.rs"]
mod chase;

use std::{collections::BTreeSet, time::Duration};

#[cfg(target_os = "linux")]
use chase::Chased;

use turnkeep_model::state::ProcessIdentity;

#[cfg(target_os = "linux")]
pub(crate) use system::identity_of;
pub(crate) use system::{become_subreaper, bury_adopted, identity, note_started};

/// The environment variable that every child of ours carries and hands on: `<instance>-<what for>`.
pub(crate) const MARKER: &str = "TURNKEEP_RUNTIME";

/// The variable that what runs in a terminal of an agent carries beside it: `<the agent's marker>/<terminal>`.
pub(crate) const TERMINAL: &str = "TURNKEEP_TERMINAL";

/// From SIGTERM to SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// How many looks in a row that found nothing, but may have missed one that forks a successor and goes, count as none. On a
/// busy computer no look is ever sure.
const UNSURE: u32 = 8;

/// How a process is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Politely,
    Firmly,
}

/// Ask one process to end, if it is still this one.
pub(crate) fn signal(process: &ProcessIdentity, ask: Ask) {
    system::signal(process, ask);
}

/// As where it can be looked for.
#[cfg(not(target_os = "linux"))]
#[derive(Clone, Copy, Debug, Default)]
struct Chased {
    met: usize,
    unsure: bool,
}

/// Everything that is ours under this marker, and what `known` names; proven gone when this returns.
/// `grace`: from SIGTERM to SIGKILL.
pub(crate) async fn sweep(marker: String, known: Vec<ProcessIdentity>, grace: Duration) {
    end_all(Which::Exactly(marker), known, grace, false).await;
}

/// The same for all markers that begin so.
pub(crate) async fn sweep_leftovers(prefix: String) {
    end_all(Which::Prefix(prefix), Vec::new(), GRACE, false).await;
}

/// Find what an earlier run of the application left, by its identity and its marker, and end it.
pub(crate) async fn reap(marker: String, process: Option<ProcessIdentity>) {
    sweep(marker, process.into_iter().collect(), GRACE).await;
}

/// Which markers count.
#[derive(Clone, Debug)]
pub(crate) enum Which {
    Exactly(String),
    Prefix(String),
    /// The name of a terminal.
    Terminal(String),
}

impl Which {
    /// The variable that it is about.
    const fn variable(&self) -> &'static str {
        match self {
            Self::Exactly(_) | Self::Prefix(_) => MARKER,
            Self::Terminal(_) => TERMINAL,
        }
    }

    fn fits(&self, value: &[u8]) -> bool {
        match self {
            Self::Exactly(marker) | Self::Terminal(marker) => value == marker.as_bytes(),
            Self::Prefix(prefix) => value.starts_with(prefix.as_bytes()),
        }
    }

    /// The mark that a descendant keeps even where it cleared its environment.
    fn tag(&self) -> Option<u64> {
        match self {
            Self::Exactly(marker) => Some(turnkeep_guard::tag_of(marker)),
            // What a command left that has neither the variable nor a parent is its runtime's, and ends with that.
            Self::Prefix(_) | Self::Terminal(_) => None,
        }
    }
}

/// The family as it is now: for a runtime that still runs, so that a child is known before its parent is gone.
pub(crate) async fn family(marker: String, known: Vec<ProcessIdentity>) -> Vec<ProcessIdentity> {
    let which = Which::Exactly(marker);
    tokio::task::spawn_blocking(move || system::family(&which, &known)).await.unwrap_or_default()
}

/// The family as it is now, and what was met that had been born while it was looked for; that is signalled already.
async fn look_and_chase(which: Which, known: Vec<ProcessIdentity>, ask: Ask) -> (Vec<ProcessIdentity>, Chased) {
    let looked = tokio::task::spawn_blocking(move || {
        #[cfg(target_os = "linux")]
        let before = chase::last_born();
        let alive = system::family(&which, &known);
        #[cfg(target_os = "linux")]
        let chased = chase::chase(&which, before, ask);
        #[cfg(not(target_os = "linux"))]
        let chased = Chased::default();
        (alive, chased)
    });
    looked.await.unwrap_or_default()
}

/// Everything that fits, and what `known` names; proven gone when this returns. `proven`: a guard has said so already.
pub(super) async fn end_all(which: Which, known: Vec<ProcessIdentity>, grace: Duration, proven: bool) {
    let mut unsure = if proven { 0 } else { UNSURE };
    let mut known: BTreeSet<ProcessIdentity> = known.into_iter().collect();
    let mut asked = BTreeSet::new();
    let begun = tokio::time::Instant::now();
    let mut wait = Duration::from_millis(5);
    let mut warned = false;
    loop {
        let ask = if begun.elapsed() < grace { Ask::Politely } else { Ask::Firmly };
        if ask == Ask::Firmly {
            system::kill_group(&which);
        }
        let (alive, chased) = look_and_chase(which.clone(), known.iter().cloned().collect(), ask).await;
        if alive.is_empty() && chased.met == 0 {
            if !chased.unsure || unsure == 0 {
                system::remove_group(&which);
                return;
            }
            unsure -= 1;
        }
        let guards: BTreeSet<_> = alive.iter().filter(|process| system::is_guard(process)).cloned().collect();
        // A guard does the same from nearer. It is killed only if it stays although it has nothing left to do.
        let spared = ask == Ask::Firmly && (guards.len() < alive.len() || begun.elapsed() < grace * 2);
        for process in alive.iter().filter(|process| !spared || !guards.contains(process)) {
            if ask == Ask::Firmly || asked.insert(process.clone()) {
                system::signal(process, ask);
            }
        }
        known.extend(alive);
        if begun.elapsed() > grace * 5 && !std::mem::replace(&mut warned, true) {
            tracing::warn!(?known, "processes of an agent do not end; its sessions wait until they do");
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(if warned { Duration::from_secs(1) } else { Duration::from_millis(50) });
    }
}
