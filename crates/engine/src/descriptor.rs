//! Waiting for file descriptors of the system (timers, news of files), in the one way that the types cannot check.

use std::{io, os::fd::OwnedFd};

use tokio::io::unix::AsyncFd;

/// To be waited for inside a tokio runtime.
#[expect(unsafe_code, reason = "tokio cannot tell that an owned descriptor stays the same one; nothing here replaces it")]
pub(crate) fn wait_for(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is open and owned, and an `OwnedFd` returns the same one until it is dropped.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}
