//! Processes that fork a successor and go, faster than the process table can be read: a list of it names only the dead.
//!
//! Each new process has a number above the last one. What was born while the table was read is looked at once, the newest
//! first, until nothing that was born is gone before it was looked at. Signals only what carries the marker.

use std::{
    fs,
    time::{Duration, Instant},
};

use super::{Ask, Which, system};

/// On a busy computer something is always born and gone: no longer than this at a time.
const LONGEST: Duration = Duration::from_millis(30);

/// More births than these in one look belong to a whole computer's work: only the newest are looked at.
const MOST: u32 = 512;

/// The number that was given to a process last. `None`: it cannot be told.
pub(super) fn last_born() -> Option<u32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().next_back()?.parse().ok()
}

/// What a chase came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chased {
    /// How many it met.
    pub(super) met: usize,
    /// Something was gone before it could be looked at, up to the last: it may have been one of ours, with a successor.
    pub(super) unsure: bool,
}

/// Signals everything of ours that was born after `before`.
pub(super) fn chase(which: &Which, before: Option<u32>, ask: Ask) -> Chased {
    let mut chased = Chased::default();
    let Some(mut before) = before else { return chased };
    let begun = Instant::now();
    loop {
        let Some(now) = last_born() else { return chased };
        let mut missed = false;
        for pid in born(before, now) {
            if !system::carries(pid, which) {
                // What is dead by now may have had a successor that was ours.
                missed |= !system::lives(pid);
            } else if let Some(process) = system::identity(pid) {
                if system::is_guard(&process) {
                    continue;
                }
                chased.met += 1;
                system::signal(&process, ask);
                // Its successor, if it has one by now, comes next.
                missed = true;
            }
        }
        before = now;
        chased.unsure = missed;
        if !missed || begun.elapsed() > LONGEST {
            return chased;
        }
    }
}

/// The numbers after the first up to the second, the newest first. Numbers begin anew when they are used up.
fn born(before: u32, now: u32) -> impl Iterator<Item = u32> {
    let from = if now >= before { before.saturating_add(1) } else { 1 };
    (from..=now).rev().take(MOST as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_come_first_and_numbers_begin_anew() {
        assert_eq!(born(5, 8).collect::<Vec<_>>(), [8, 7, 6]);
        assert_eq!(born(8, 8).count(), 0);
        assert_eq!(born(30_000, 3).collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(born(0, u32::MAX).count(), 512);
    }

    #[test]
    fn what_was_born_meanwhile_is_met_and_what_is_not_ours_is_not() {
        let before = last_born().expect("proc tells it");
        let mut child =
            std::process::Command::new("sleep").arg("60").env("TURNKEEP_RUNTIME", "chase-1").spawn().expect("it starts");
        let exactly = |marker: &str| Which::Exactly(marker.to_owned());
        // The exec may still be under way.
        let until = Instant::now() + Duration::from_secs(20);
        while !system::carries(child.id(), &exactly("chase-1")) {
            assert!(Instant::now() < until, "it does not carry its marker");
            std::thread::yield_now();
        }
        assert_eq!(chase(&exactly("chase-2"), Some(before), Ask::Firmly).met, 0);
        assert!(child.try_wait().expect("it is ours").is_none(), "another's process was signalled");
        assert!(chase(&exactly("chase-1"), Some(before), Ask::Firmly).met > 0);
        child.wait().expect("it ends");
    }
}
