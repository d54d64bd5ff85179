//! What a child does between fork and exec.
//!
//! Only system calls here: no allocation, no lock, no panic; another thread may have held any lock at the fork.

use std::{io, os::fd::RawFd};

use rustix::process::{Pid, Resource, Rlimit, Signal};

/// What a child is given. Copied into it before the fork.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    /// Its parent's pid and the signal that it gets when the thread that started it ends. Linux only.
    pub death: Option<(Pid, Signal)>,
    /// The one descriptor beside the standard three that it keeps.
    pub keep: Option<RawFd>,
    /// The limit of open files.
    pub open_files: Option<Rlimit>,
    /// See [`tag`].
    pub tag: Option<u64>,
    /// An open `cgroup.procs` of the group that it goes into.
    pub group: Option<RawFd>,
}

impl Fresh {
    /// Take a session of its own, and what is given, and leave everything else of the parent behind: signals that it ignores
    /// or blocks, and its descriptors.
    ///
    /// # Errors
    /// Of the system; the child must not go on then.
    pub fn enter(&self) -> io::Result<()> {
        // One that cannot join is held by everything else all the same.
        if let Some(group) = self.group {
            join(group);
        }
        rustix::process::setsid()?;
        forget_signals();
        #[cfg(target_os = "linux")]
        if let Some((parent, signal)) = self.death {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            if rustix::process::getppid() != Some(parent) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        self.close_others();
        // A hard limit that was lowered meanwhile must not keep the child from starting.
        if let Some(limit) = self.open_files {
            let _ = rustix::process::setrlimit(Resource::Nofile, limit);
        }
        if let Some(tag) = self.tag {
            tag::put(tag);
        }
        Ok(())
    }

    /// Libraries open descriptors that exec would hand on. A kernel without the call keeps them.
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "no safe wrapper of close_range, and a number says which descriptor is kept; flags only")]
    fn close_others(&self) {
        // SAFETY: sets and clears a flag of descriptors; every descriptor that Rust code owns has it already.
        unsafe {
            libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
            if let Some(keep) = self.keep {
                libc::fcntl(keep, libc::F_SETFD, 0);
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn close_others(&self) {}
}

#[expect(unsafe_code, reason = "the descriptor crosses the fork as a number")]
fn join(group: RawFd) {
    // SAFETY: a write of one byte that lives long enough, to a descriptor that the parent holds open until the exec.
    unsafe {
        libc::write(group, c"0".as_ptr().cast(), 1);
    }
}

/// What was ignored or blocked here is not so in the child.
#[expect(unsafe_code, reason = "no safe wrapper of signal dispositions and masks")]
fn forget_signals() {
    // SAFETY: system calls on this process alone, which is about to become another program; the set is made before it is used.
    unsafe {
        for number in 1..=64 {
            by_default(number);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// By the system's own call: the library keeps two signals to itself, and hands on what was done to them before.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "see forget_signals")]
unsafe fn by_default(number: libc::c_int) {
    // Longer than the kernel's structure anywhere; all zero is the default.
    let action = [0_u64; 8];
    // SAFETY: the kernel reads the structure, which lives long enough, and writes nothing.
    unsafe {
        libc::syscall(libc::SYS_rt_sigaction, number, action.as_ptr(), std::ptr::null::<u64>(), size_of::<u64>());
    }
}

#[cfg(not(target_os = "linux"))]
#[expect(unsafe_code, reason = "see forget_signals")]
unsafe fn by_default(number: libc::c_int) {
    // SAFETY: no handler is set.
    unsafe {
        libc::signal(number, libc::SIG_DFL);
    }
}

/// A mark that a process cannot lose by chance: it survives new sessions, double forks, closed descriptors, cleared
/// environments and exec.
///
/// It is the limit of file locks, which Linux hands on to every child, shows to everybody and has not heeded since 2.4.
pub mod tag {
    /// The tag for a text: the same one for the same text, in every version.
    #[must_use]
    pub fn of(text: &str) -> u64 {
        // FNV-1a: spreads well enough for a number that is compared, never trusted.
        let hash =
            text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        // Neither a limit that a person would set nor what means "none".
        (hash >> 1) | 1 << 62
    }

    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "the limit is not known to any safe wrapper, since it has no effect")]
    pub(super) fn put(tag: u64) {
        let limit = libc::rlimit64 { rlim_cur: tag, rlim_max: tag };
        // SAFETY: reads a value that lives long enough. Where a lower limit is set already, the mark is missing.
        unsafe {
            libc::setrlimit64(libc::RLIMIT_LOCKS, &raw const limit);
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn put(_tag: u64) {}

    /// Whether what `/proc/PID/limits` says shows this tag.
    #[must_use]
    pub fn shown(limits: &str, tag: u64) -> bool {
        let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"));
        line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()) == Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::tag;

    #[test]
    fn a_tag_is_the_same_for_the_same_text_and_another_for_another() {
        assert_eq!(tag::of("a-1"), tag::of("a-1"));
        assert_ne!(tag::of("a-1"), tag::of("a-2"));
        assert!(tag::of("") > 1 << 61 && tag::of("x") < u64::MAX / 2);
    }

    #[test]
    fn a_tag_is_read_from_the_limits_and_not_from_another_line() {
        let limits = "Limit   Soft   Hard\nMax open files   77   77   files\nMax file locks   88   88   locks\n";
        assert!(tag::shown(limits, 88) && !tag::shown(limits, 77));
        assert!(!tag::shown("Max file locks  unlimited  unlimited  locks", 88) && !tag::shown("", 88));
    }
}
