//! The control group of one runtime, where the application could make one.
//!
//! The kernel ends all of it at once, also what forks meanwhile. The folder is removed once it is empty.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::PathBuf,
};

/// An existing folder below `/sys/fs/cgroup`.
#[derive(Debug)]
pub(crate) struct Leaf(PathBuf);

impl Leaf {
    pub(crate) fn new(folder: OsString) -> Self {
        Self(folder.into())
    }

    /// Where a process joins it.
    pub(crate) fn door(&self) -> io::Result<File> {
        File::options().write(true).open(self.0.join("cgroup.procs"))
    }

    /// End all that is in it. A kernel before 5.14 cannot; the sweep does it then.
    pub(crate) fn kill(&self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }

    /// Who is in it, by pid.
    pub(crate) fn members(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Gone, if nothing is in it.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir(&self.0);
    }
}
