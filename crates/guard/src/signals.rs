//! Signals of the guard itself, as something to read.
//!
//! All are held back, so that none ends the guard but SIGKILL.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd},
};

/// Where signals come in.
#[derive(Debug)]
pub(crate) struct Signals(OwnedFd);

/// What came in since it was read last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Came {
    /// A child ended.
    pub(crate) child: bool,
    /// Somebody wants the guard to end.
    pub(crate) end: bool,
}

const ENDING: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];
/// Bytes of one signal.
const ONE: usize = size_of::<libc::signalfd_siginfo>();

impl Signals {
    /// From here on no signal interrupts this process.
    #[expect(unsafe_code, reason = "no safe wrapper of signal masks and signalfd")]
    pub(crate) fn hold_back() -> io::Result<Self> {
        // SAFETY: the sets are made before they are used; the descriptor is new and owned by nobody else.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
            let mut told: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut told);
            for number in ENDING.into_iter().chain([libc::SIGCHLD]) {
                libc::sigaddset(&raw mut told, number);
            }
            let descriptor = libc::signalfd(-1, &raw const told, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(OwnedFd::from_raw_fd(descriptor))) }
        }
    }

    pub(crate) fn take(&self) -> Came {
        let mut came = Came::default();
        let mut bytes = [0; ONE * 8];
        while let Ok(length @ 1..) = rustix::io::read(&self.0, &mut bytes) {
            for one in bytes.get(..length).unwrap_or_default().chunks_exact(ONE) {
                // The number stands first.
                let number = one.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                came.child |= number == libc::SIGCHLD;
                came.end |= ENDING.contains(&number);
            }
        }
        came
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
