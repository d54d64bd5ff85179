//! What a child is started with, beyond what the standard library gives it: the one place where that needs `unsafe`.

#[cfg(unix)]
use std::{
    os::fd::{AsRawFd as _, BorrowedFd},
    sync::OnceLock,
};

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit};
#[cfg(unix)]
use turnkeep_guard::child::Fresh;

/// The limit of open files that this application was started with, which libraries like to raise for themselves.
#[cfg(unix)]
static OPEN_FILES: OnceLock<Rlimit> = OnceLock::new();

/// Note the limits to give to children. Called before anything could raise them.
pub(super) fn remember_limits() {
    #[cfg(unix)]
    OPEN_FILES.get_or_init(|| getrlimit(Resource::Nofile));
}

/// Give the child a session of its own, our first limit of open files, no descriptor but the three, and a signal when
/// the thread that starts it ends. `tag`: see [`turnkeep_guard::child::tag`].
#[cfg(unix)]
pub(super) fn prepare(command: &mut tokio::process::Command, tag: Option<u64>) {
    // SIGTERM, so that an agent can still stop what it started itself; what ignores it is found at the next start.
    let death = Some((getpid(), Signal::TERM));
    in_child(command, Fresh { death, tag, ..Fresh::default() });
}

/// The same for a guard: it keeps its socket, whose end tells it of ours.
#[cfg(target_os = "linux")]
pub(super) fn prepare_guard(command: &mut tokio::process::Command, tag: Option<u64>, contact: BorrowedFd<'_>) {
    in_child(command, Fresh { keep: Some(contact.as_raw_fd()), tag, ..Fresh::default() });
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "std offers no safe way to leave the session or to set a death signal in a child")]
fn in_child(command: &mut tokio::process::Command, fresh: Fresh) {
    let fresh = Fresh { open_files: Some(*OPEN_FILES.get_or_init(|| getrlimit(Resource::Nofile))), ..fresh };
    // SAFETY: the closure makes system calls only, on values that were copied into it before the fork.
    unsafe {
        command.pre_exec(move || fresh.enter());
    }
}

#[cfg(not(unix))]
pub(super) fn prepare(_command: &mut tokio::process::Command, _tag: Option<u64>) {}
