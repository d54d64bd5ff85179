//! Processes as Linux shows them in `/proc`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Instant,
};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper, waitid,
};
use turnkeep_guard::{child::tag, wire::GUARDS};
use turnkeep_model::state::ProcessIdentity;

use super::{super::leaf, Ask, MARKER, TERMINAL, Which};

static BOOT_ID: LazyLock<String> =
    LazyLock::new(|| fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned());

/// From now on a child's orphans become our children, so that they can be found and reaped.
pub(crate) fn become_subreaper() {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        tracing::warn!(%error, "cannot adopt what agents leave behind; only what carries the marker will be found");
    }
}

/// Who has this pid.
pub(crate) fn identity(pid: u32) -> Option<ProcessIdentity> {
    stat(pid).map(|it| ProcessIdentity { pid, start_ticks: it.start_ticks, boot_id: BOOT_ID.clone() })
}

/// Whether it is there and has not ended.
pub(super) fn lives(pid: u32) -> bool {
    stat(pid).is_some_and(|it| !it.dead)
}

/// Who had this pid when it started then.
pub(crate) fn identity_of(pid: u32, start_ticks: u64) -> ProcessIdentity {
    ProcessIdentity { pid, start_ticks, boot_id: BOOT_ID.clone() }
}

/// Whether it is a guard: it says so in its environment, which only its runtime does not inherit.
pub(super) fn is_guard(process: &ProcessIdentity) -> bool {
    value_of(&environment(process.pid), GUARDS).is_some()
}

/// Kill all that fits in one stroke, where a group of the system holds it together.
pub(super) fn kill_group(which: &Which) {
    if let Which::Exactly(marker) = which {
        leaf::kill(marker);
    }
}

/// Take that group away, once nothing is in it.
pub(super) fn remove_group(which: &Which) {
    if let Which::Exactly(marker) = which {
        leaf::remove(marker);
    }
}

pub(super) fn signal(process: &ProcessIdentity, ask: Ask) {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    // The descriptor is opened first: what is compared then is what will be signalled.
    if identity(process.pid).as_ref() != Some(process) {
        return;
    }
    let signal = match ask {
        Ask::Politely => Signal::TERM,
        Ask::Firmly => Signal::KILL,
    };
    if let Err(error) = pidfd_send_signal(&descriptor, signal) {
        tracing::debug!(%error, pid = process.pid, "a signal was not taken");
    }
}

/// All living processes that fit, their descendants, and those of `known` with theirs. The dead among them that fell to us are
/// buried.
pub(super) fn family(which: &Which, known: &[ProcessIdentity]) -> Vec<ProcessIdentity> {
    let us = getpid().as_raw_nonzero().get().unsigned_abs();
    let table = all();
    let mut ours: BTreeSet<u32> = known
        .iter()
        .filter(|it| it.boot_id == *BOOT_ID && table.get(&it.pid).is_some_and(|(now, _)| now.start_ticks == it.start_ticks))
        .map(|it| it.pid)
        .collect();
    // The dead have no environment any more.
    ours.extend(table.iter().filter(|(_, (it, marks))| !it.dead && marks.fit(which)).map(|(pid, _)| *pid));
    ours.remove(&us);
    loop {
        let more: Vec<u32> = table
            .iter()
            .filter(|(pid, (it, _))| **pid != us && ours.contains(&it.parent) && !ours.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            break;
        }
        ours.extend(more);
    }
    let mut alive = Vec::new();
    for pid in ours {
        let Some((it, _)) = table.get(&pid) else { continue };
        if it.dead {
            if it.parent == us && !started_here(pid, it.start_ticks) {
                bury(pid);
            }
        } else {
            alive.push(ProcessIdentity { pid, start_ticks: it.start_ticks, boot_id: BOOT_ID.clone() });
        }
    }
    alive
}

fn bury(pid: u32) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
}

/// What was started here, and is waited for by whoever has its handle.
static STARTED: Mutex<BTreeSet<(u32, u64)>> = Mutex::new(BTreeSet::new());

/// Note a child of ours; those of which nothing is left are forgotten.
pub(crate) fn note_started(pid: u32) {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    started.retain(|(pid, ticks)| stat(*pid).is_some_and(|it| it.start_ticks == *ticks));
    started.extend(stat(pid).map(|it| (pid, it.start_ticks)));
}

/// Whether somebody here waits for it.
fn started_here(pid: u32, start_ticks: u64) -> bool {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner).contains(&(pid, start_ticks))
}

/// Dead children that were adopted and that nobody waits for. One that was dead at an earlier call is buried; what was
/// started by our spawner or in this application's own session is waited for by whoever started it.
pub(crate) fn bury_adopted() {
    static SEEN: Mutex<BTreeSet<(u32, u64)>> = Mutex::new(BTreeSet::new());
    let Some(ours) = stat(std::process::id()).map(|it| it.session) else { return };
    let dead: BTreeSet<(u32, u64)> = children()
        .into_iter()
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .filter(|(pid, it)| it.dead && it.session != ours && !started_here(*pid, it.start_ticks))
        .map(|(pid, it)| (pid, it.start_ticks))
        .collect();
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    for (pid, _) in dead.intersection(&seen) {
        bury(*pid);
    }
    *seen = dead;
}

fn children() -> Vec<u32> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok())
        .flat_map(|text| text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

#[derive(Debug)]
struct Stat {
    parent: u32,
    session: u32,
    start_ticks: u64,
    dead: bool,
}

/// Every process, and what it shows of itself if it has not ended.
type All = BTreeMap<u32, (Stat, Marks)>;

/// The process table as it was at some moment after this was called. Many ends at once share one reading.
fn all() -> Arc<All> {
    static LATEST: Mutex<Option<(Instant, Arc<All>)>> = Mutex::new(None);
    let asked = Instant::now();
    let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((begun, all)) = &*latest
        && *begun > asked
    {
        return Arc::clone(all);
    }
    let begun = Instant::now();
    let all = Arc::new(read_all());
    *latest = Some((begun, Arc::clone(&all)));
    all
}

fn read_all() -> All {
    let Ok(entries) = fs::read_dir("/proc") else { return All::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| {
        let stat = stat(pid)?;
        let marks = if stat.dead { Marks::default() } else { Marks::of(pid) };
        Some((pid, (stat, marks)))
    })
    .collect()
}

fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The name in brackets may hold anything, brackets and line ends too: only what follows the last one counts.
fn parse(stat: &[u8]) -> Option<Stat> {
    let after = stat.get(memchr::memrchr(b')', stat)? + 1..)?;
    let fields: Vec<&str> = std::str::from_utf8(after).ok()?.split_ascii_whitespace().collect();
    Some(Stat {
        dead: matches!(*fields.first()?, "Z" | "X" | "x"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
    })
}

pub(super) fn carries(pid: u32, which: &Which) -> bool {
    Marks::of(pid).fit(which)
}

/// How a process shows whose it is.
#[derive(Debug, Default)]
struct Marks {
    runtime: Option<Vec<u8>>,
    terminal: Option<Vec<u8>>,
    /// The one limit of it that says so.
    limit: String,
}

impl Marks {
    fn of(pid: u32) -> Self {
        let environment = environment(pid);
        let value = |name: &str| value_of(&environment, name).map(<[u8]>::to_vec);
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
        let limit = limits.lines().find(|line| line.starts_with("Max file locks")).unwrap_or_default().to_owned();
        Self { runtime: value(MARKER), terminal: value(TERMINAL), limit }
    }

    fn fit(&self, which: &Which) -> bool {
        let value = if which.variable() == TERMINAL { &self.terminal } else { &self.runtime };
        value.as_ref().is_some_and(|value| which.fits(value)) || which.tag().is_some_and(|tag| tag::shown(&self.limit, tag))
    }
}

/// Nothing where it may not be read.
fn environment(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

fn value_of<'a>(environment: &'a [u8], name: &str) -> Option<&'a [u8]> {
    environment.split(|byte| *byte == 0).find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let line = b"77 (a) Z 1 2 3 (x)) S 41 77 78 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2 3";
        let stat = parse(line).expect("a stat line");
        assert_eq!((stat.parent, stat.start_ticks, stat.dead), (41, 987_654, false));
        assert!(parse(b"77 (x").is_none());
        assert!(parse(b"").is_none());
    }

    /// A process that ends at once and whose parent has ended: it falls to us.
    fn orphan() -> u32 {
        become_subreaper();
        let mut parent = std::process::Command::new("/bin/sh")
            .args(["-c", "setsid sleep 0 & echo $!"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh starts");
        let mut orphan = String::new();
        std::io::Read::read_to_string(&mut parent.stdout.take().expect("piped"), &mut orphan).expect("it says a number");
        parent.wait().expect("it ends");
        orphan.trim().parse().expect("a number")
    }

    fn until(what: &str, done: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(20);
        while !done() {
            assert!(Instant::now() < until, "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_orphan_that_fell_to_us_is_buried_and_a_child_that_is_waited_for_is_not() {
        let mut waited_for = std::process::Command::new("/bin/true").spawn().expect("true starts");
        let orphan = orphan();
        until("the orphan is still there", || {
            bury_adopted();
            stat(orphan).is_none()
        });
        assert!(waited_for.wait().expect("nobody took it away").success());
    }

    #[test]
    fn an_orphan_is_buried_although_nobody_asks_for_it() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let task = runtime.spawn(super::super::super::undertaker::bury_as_they_come());
        let orphan = orphan();
        // Its end may have come before anybody listened; a later one says so, too.
        until("the orphan is still there", || {
            std::process::Command::new("/bin/true").status().expect("true runs");
            stat(orphan).is_none()
        });
        task.abort();
    }

    #[test]
    fn what_was_started_here_is_never_taken_from_who_waits_for_it() {
        for noted in [true, false] {
            let mut child =
                std::process::Command::new("/bin/cat").stdin(std::process::Stdio::piped()).spawn().expect("cat starts");
            let who = identity(child.id()).expect("it has a stat");
            if noted {
                note_started(who.pid);
            }
            drop(child.stdin.take());
            until("it does not end", || !lives(who.pid));
            assert_eq!(family(&Which::Exactly("nobody's".to_owned()), std::slice::from_ref(&who)), []);
            assert_eq!(child.wait().is_ok_and(|status| status.success()), noted, "noted: {noted}");
        }
    }

    #[test]
    fn a_process_that_only_has_the_same_pid_is_not_signalled() {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "trap 'exit 7' TERM; echo set; while :; do sleep 0.01; done"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh starts");
        let mut set = [0; 4];
        std::io::Read::read_exact(&mut child.stdout.take().expect("piped"), &mut set).expect("it has set its trap");
        let real = identity(child.id()).expect("it has a stat");
        signal(&ProcessIdentity { start_ticks: real.start_ticks + 1, ..real.clone() }, Ask::Firmly);
        signal(&ProcessIdentity { boot_id: "another boot".to_owned(), ..real.clone() }, Ask::Firmly);
        signal(&real, Ask::Politely);
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(7), "it was ended by a signal that was meant for another: {status}");
    }
}
