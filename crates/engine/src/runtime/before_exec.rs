//! What a child does between fork and exec: the one place where that needs `unsafe`.
//!
//! Only system calls here: no allocation, no lock, no panic; another thread may have held any lock at the fork.

#[cfg(unix)]
use std::{io, sync::OnceLock};

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit};

/// The limit of open files that this application was started with, which libraries like to raise for themselves.
#[cfg(unix)]
static OPEN_FILES: OnceLock<Rlimit> = OnceLock::new();

/// Note the limits to give to children. Called before anything could raise them.
pub(super) fn remember_limits() {
    #[cfg(unix)]
    OPEN_FILES.get_or_init(|| getrlimit(Resource::Nofile));
}

/// Give the child a session of its own, our first limit of open files, no descriptor but the three, and a signal when
/// the thread that starts it ends.
#[cfg(unix)]
#[expect(unsafe_code, reason = "std offers no safe way to leave the session or to set a death signal in a child")]
pub(super) fn prepare(command: &mut tokio::process::Command) {
    let open_files = *OPEN_FILES.get_or_init(|| getrlimit(Resource::Nofile));
    let parent = rustix::process::getpid();
    // SAFETY: the closure makes system calls only, on values that were copied into it before the fork.
    unsafe {
        command.pre_exec(move || in_child(parent, open_files));
    }
}

#[cfg(not(unix))]
pub(super) fn prepare(_command: &mut tokio::process::Command) {}

#[cfg(unix)]
fn in_child(parent: rustix::process::Pid, open_files: Rlimit) -> io::Result<()> {
    rustix::process::setsid()?;
    #[cfg(target_os = "linux")]
    {
        // SIGTERM, so that an agent can still stop what it started itself; what ignores it is found at the next start.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
        if rustix::process::getppid() != Some(parent) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        close_on_exec_from(3);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = parent;
    // A hard limit that was lowered meanwhile must not keep the child from starting.
    let _ = rustix::process::setrlimit(Resource::Nofile, open_files);
    Ok(())
}

/// Libraries of the desktop open descriptors that exec would hand on. A kernel without the call keeps them.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe wrapper of close_range; it touches descriptors' flags only")]
fn close_on_exec_from(first: libc::c_uint) {
    // SAFETY: sets a flag of descriptors; every descriptor that Rust code owns has it already.
    unsafe {
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}
