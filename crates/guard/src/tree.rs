//! What descends from the guard, and how it is signalled.
//!
//! A pid of a child of ours is that child until we wait for it, so it is signalled by its number. What lies deeper is
//! signalled through a descriptor whose start time was compared. Never anything that does not descend from us.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// One descendant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) pid: i32,
    pub(crate) start_ticks: u64,
    pub(crate) parent: i32,
}

/// What `/proc/PID/stat` says: parent and start time; nothing for one that has ended.
pub(crate) fn look(pid: i32) -> Option<Member> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything, brackets too.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let start_ticks = fields.nth(17)?.parse().ok()?;
    (!matches!(state, "Z" | "X" | "x")).then_some(Member { pid, start_ticks, parent })
}

/// The children of this process, dead ones that were not waited for too.
pub(crate) fn children(us: i32) -> Vec<i32> {
    let mut found = Vec::new();
    if !listed(us, &mut found) {
        found.extend(every_pid().filter(|pid| look(*pid).is_some_and(|it| it.parent == us)));
    }
    found
}

/// All that lives below this process, parents before their children.
pub(crate) fn descendants(us: i32) -> Vec<Member> {
    let mut found: Vec<Member> = Vec::new();
    let mut pids = Vec::new();
    if !listed(us, &mut pids) {
        return from_table(us);
    }
    let mut next = 0;
    let mut parent = us;
    loop {
        // One whose parent is another by now is found with that one.
        found.extend(pids.drain(..).filter_map(look).filter(|it| it.parent == parent));
        let Some(member) = found.get(next) else { return found };
        parent = member.pid;
        next += 1;
        listed(parent, &mut pids);
    }
}

/// The kernel's own list of children, thread by thread; false where it keeps none.
fn listed(pid: i32, found: &mut Vec<i32>) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let mut any = false;
    for thread in threads.flatten() {
        if let Ok(text) = fs::read_to_string(thread.path().join("children")) {
            any = true;
            found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
    }
    any
}

fn every_pid() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn from_table(us: i32) -> Vec<Member> {
    let table: Vec<Member> = every_pid().filter_map(look).collect();
    let mut found: Vec<Member> = Vec::new();
    let mut next = 0;
    let mut parent = us;
    loop {
        found.extend(table.iter().filter(|it| it.parent == parent));
        let Some(member) = found.get(next) else { return found };
        parent = member.pid;
        next += 1;
    }
}

/// Signal a descendant, if it still is this one.
pub(crate) fn signal(member: Member, signal: Signal) {
    let Some(pid) = Pid::from_raw(member.pid) else { return };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    // The descriptor is opened first: what is compared then is what will be signalled.
    if look(member.pid).is_some_and(|it| it.start_ticks == member.start_ticks) {
        let _ = pidfd_send_signal(&descriptor, signal);
    }
}

/// Signal a child that was not waited for.
pub(crate) fn signal_child(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn both_ways_to_look_find_the_same_tree() {
        let us = std::process::id().cast_signed();
        let mut shell = Command::new("/bin/sh")
            .args(["-c", "sleep 600 & sleep 600 & echo up; wait"])
            .stdout(Stdio::piped())
            .process_group_of_its_own()
            .spawn()
            .expect("sh starts");
        let mut up = [0; 3];
        std::io::Read::read_exact(&mut shell.stdout.take().expect("piped"), &mut up).expect("it is up");
        let root = shell.id().cast_signed();
        let of_root = |all: Vec<Member>| {
            let mut mine: Vec<_> = all.into_iter().filter(|it| it.pid == root || it.parent == root).collect();
            mine.sort();
            mine
        };
        let (by_list, by_table) = (of_root(descendants(us)), of_root(from_table(us)));
        assert_eq!(by_list.len(), 3);
        assert_eq!(by_list, by_table);
        assert!(children(us).contains(&root));
        for member in &by_list {
            signal(Member { start_ticks: member.start_ticks + 1, ..*member }, Signal::KILL);
        }
        assert_eq!(of_root(descendants(us)), by_list, "one that only has the same pid was signalled");
        for member in by_list {
            signal(member, Signal::KILL);
        }
        shell.wait().expect("it ends");
    }

    trait OfItsOwn {
        fn process_group_of_its_own(&mut self) -> &mut Self;
    }

    impl OfItsOwn for Command {
        fn process_group_of_its_own(&mut self) -> &mut Self {
            std::os::unix::process::CommandExt::process_group(self, 0)
        }
    }
}
