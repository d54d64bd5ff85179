//! A control group for each runtime, where the system lets us make one: the kernel ends all of it at once, also what forks
//! meanwhile.
//!
//! A layer by itself: nothing else depends on it, and where it cannot be had nothing is said. Only groups that were made here
//! are touched, below the group that this application runs in.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// `off`: none is made.
const VARIABLE: &str = "TURNKEEP_CGROUP";

/// The group of this application, if it may make groups in it.
static OURS: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    if std::env::var_os(VARIABLE).is_some_and(|value| value == "off") {
        return None;
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let ours = folder(&mounts, &groups)?;
    // To be moved by, one must be allowed to in the group that both lie in.
    rustix::fs::access(ours.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).ok()?;
    rustix::fs::access(&ours, rustix::fs::Access::WRITE_OK).ok()?;
    Some(ours)
});

/// Where the second version's hierarchy shows our own group.
fn folder(mounts: &str, groups: &str) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, place) = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        (after.split(' ').next() == Some("cgroup2")).then_some((fields.next()?, fields.next()?))
    })?;
    // Within a container, the mount shows a part of the whole.
    let below = Path::new(own).strip_prefix(root).ok()?;
    Some(Path::new(place).join(below))
}

fn of(marker: &str) -> Option<PathBuf> {
    let name: String = marker.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    Some(OURS.as_ref()?.join(format!("turnkeep-{name}")))
}

/// Make the group for what carries this marker.
pub(super) fn make(marker: &str) -> Option<PathBuf> {
    let leaf = of(marker)?;
    match fs::create_dir(&leaf) {
        Ok(()) => {}
        // Left by an earlier run, or shared with a command of the same runtime.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => {
            tracing::debug!(%error, leaf = %leaf.display(), "no control group");
            return None;
        }
    }
    Some(leaf)
}

/// End all that is in the group, if there is one.
pub(super) fn kill(marker: &str) {
    if let Some(leaf) = of(marker) {
        let _ = fs::write(leaf.join("cgroup.kill"), "1");
    }
}

/// Take the group away, if there is one and nothing is in it.
pub(super) fn remove(marker: &str) {
    if let Some(leaf) = of(marker) {
        let _ = fs::remove_dir(leaf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_group_is_found_where_it_is_mounted() {
        let mounts = "30 25 0:26 / /sys rw - sysfs sysfs rw\n41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 none rw\n";
        let groups = "9:name=systemd:/x\n0::/user.slice/app.scope\n";
        assert_eq!(folder(mounts, groups), Some("/sys/fs/cgroup/unified/user.slice/app.scope".into()));
        let part = "41 31 0:38 /user.slice /sys/fs/cgroup rw - cgroup2 none rw\n";
        assert_eq!(folder(part, groups), Some("/sys/fs/cgroup/app.scope".into()));
        assert_eq!(folder("41 31 0:38 /other /sys/fs/cgroup rw - cgroup2 none rw\n", groups), None);
        assert_eq!((folder("", groups), folder(mounts, "1:cpu:/\n")), (None, None));
    }
}
