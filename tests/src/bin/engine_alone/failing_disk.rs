//! A disk that fails to keep what was written to it, for as long as a file is there.
//!
//! These two take the place of the C library's for the whole program, SQLite included, which is linked into it.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::OnceLock;

use harness::engine::DISK_FAILS;
use rustix::io::Errno;

fn fails() -> bool {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    FILE.get_or_init(|| std::env::var_os(DISK_FAILS).map(PathBuf::from)).as_ref().is_some_and(|file| file.exists())
}

fn done(result: Result<(), Errno>) -> c_int {
    let result = if fails() { Err(Errno::IO) } else { result };
    let Err(error) = result else { return 0 };
    #[expect(unsafe_code, reason = "the C library's errors are told through a variable of the thread")]
    // SAFETY: the address is that of this thread's own variable.
    unsafe {
        *libc::__errno_location() = error.raw_os_error();
    }
    -1
}

#[expect(unsafe_code, reason = "takes the place of a function of the C library")]
// SAFETY: the same signature and meaning; nothing else in the program is of this name.
#[unsafe(no_mangle)]
extern "C" fn fsync(descriptor: c_int) -> c_int {
    #[expect(unsafe_code, reason = "a number is all that one is given")]
    // SAFETY: it is borrowed for this call, as the caller's own function would.
    done(rustix::fs::fsync(unsafe { BorrowedFd::borrow_raw(descriptor) }))
}

#[expect(unsafe_code, reason = "takes the place of a function of the C library")]
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    #[expect(unsafe_code, reason = "a number is all that one is given")]
    // SAFETY: as above.
    done(rustix::fs::fdatasync(unsafe { BorrowedFd::borrow_raw(descriptor) }))
}
