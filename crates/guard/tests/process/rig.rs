//! The application's side, by hand; and a look at who is left, which shares nothing with the guard.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use tempfile::TempDir;
use turnkeep_guard::child::Fresh;
use turnkeep_guard::wire::{FRAME, Order, Program, VERSION, Word};

/// Much longer than anything takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A guard with a shell script as its runtime, in a folder that nobody else is in.
pub(crate) struct Rig {
    pub(crate) guard: Child,
    pub(crate) contact: Option<UnixStream>,
    pub(crate) folder: PathBuf,
    _holds: TempDir,
}

impl Rig {
    pub(crate) fn new(script: &str) -> Self {
        Self::of("/bin/sh", &["-c", script])
    }

    #[expect(unsafe_code, reason = "std offers no safe way to hand a descriptor on")]
    pub(crate) fn of(program: &str, arguments: &[&str]) -> Self {
        // What a dead guard leaves comes to us, and ends with us.
        set_child_subreaper(Some(getpid())).unwrap();
        let holds = tempfile::tempdir().unwrap();
        let folder = holds.path().canonicalize().unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let fresh = Fresh { keep: Some(theirs.as_raw_fd()), ..Fresh::default() };
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnkeep-guard"));
        command.arg0("turnkeep-guard").arg(VERSION.to_string()).arg(theirs.as_raw_fd().to_string());
        command.current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: system calls only.
        unsafe {
            command.pre_exec(move || fresh.enter());
        }
        let guard = command.spawn().unwrap();
        let arguments = arguments.iter().map(Into::into).collect();
        let text = Program { leaf: None, variables: Vec::new(), program: program.into(), arguments }.encode().unwrap();
        ours.write_all(&Order::Start { length: text.len().try_into().unwrap() }.encode()).unwrap();
        ours.write_all(&text).unwrap();
        Self { guard, contact: Some(ours), folder, _holds: holds }
    }

    pub(crate) fn word(&mut self) -> Option<Word> {
        let mut frame = [0; FRAME];
        self.contact.as_mut()?.read_exact(&mut frame).ok()?;
        Some(Word::decode(&frame).unwrap())
    }

    pub(crate) fn started(&mut self) -> i32 {
        let Some(Word::Started { pid, .. }) = self.word() else { panic!("it was not started") };
        pid.cast_signed()
    }

    pub(crate) fn tell(&mut self, order: Order) {
        self.contact.as_mut().unwrap().write_all(&order.encode()).unwrap();
    }

    /// A line that the runtime says.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.guard.stdout.as_mut().unwrap().read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// Who is in the folder.
    pub(crate) fn living(&self) -> Vec<i32> {
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        pids.filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|it| it == self.folder) && !is_dead(*pid)).collect()
    }

    /// The number of those that are there once nobody has come or gone for a while, or nobody is left.
    pub(crate) fn wait_until_gone(&self, within: Duration) -> Vec<i32> {
        let end = Instant::now() + within;
        loop {
            // A look takes longer than a respawner lives: one look alone may miss it.
            if (0..5).all(|_| self.living().is_empty()) {
                return Vec::new();
            }
            if Instant::now() > end {
                return self.living();
            }
        }
    }

    pub(crate) fn kill_guard(&mut self) {
        self.guard.kill().unwrap();
        self.guard.wait().unwrap();
    }

    /// What a test leaves on purpose.
    pub(crate) fn clean_up(&self) {
        let end = Instant::now() + PATIENCE;
        while !self.wait_until_gone(Duration::ZERO).is_empty() {
            assert!(Instant::now() < end, "they cannot be ended");
            // The adopted ones first and fast: a respawner lives shorter than a look at everybody takes.
            let threads = fs::read_dir("/proc/self/task").unwrap().map(|it| it.unwrap().path().join("children"));
            let children: Vec<i32> = threads
                .filter_map(|list| fs::read_to_string(list).ok())
                .flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
                .collect();
            let here = |pid: &i32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|it| it == self.folder);
            for pid in children.into_iter().filter(here) {
                let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            }
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.contact = None;
        let _ = self.guard.wait();
    }
}

pub(crate) fn is_dead(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X']) || stat.is_empty()
}
