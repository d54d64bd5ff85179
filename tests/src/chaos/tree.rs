//! The folder of one tree: what its members hold and write there while they live.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

use crate::process;

/// The file in which each member writes its name, pid, start ticks and parent, a line each.
const RECORD: &str = "record";
/// The file that tells members to end.
const STOP: &str = "stop";
/// A member ends by itself after this time, whatever becomes of the test.
const FUSE: Duration = Duration::from_secs(180);

/// A member writes itself down and takes the lock of its own file, which is held for as long as the result, or one that was
/// inherited from it, is open.
pub fn join(folder: &Path, name: &str) -> Result<File> {
    let file = File::create(folder.join(format!("{name}.lock"))).context("making the lock's file")?;
    // Whoever counts takes a lock for a moment to see that it was free.
    flock(&file, FlockOperation::LockExclusive).context("taking the lock")?;
    write_down(folder, name)?;
    Ok(file)
}

/// A successor writes itself down; it has inherited its lock.
pub fn write_down(folder: &Path, name: &str) -> Result<()> {
    let me = process::row(process::me()).context("this process has no row")?;
    let mut record = OpenOptions::new().append(true).open(folder.join(RECORD))?;
    Ok(record.write_all(format!("{name} {} {} {}\n", me.pid, me.start_ticks, me.parent).as_bytes())?)
}

/// Whether a member that began then is to end.
#[must_use]
pub fn over(folder: &Path, begun: Instant) -> bool {
    folder.join(STOP).exists() || !folder.join(RECORD).exists() || begun.elapsed() > FUSE
}

/// A member of a tree, as it wrote itself down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub pid: i32,
    pub start_ticks: u64,
    pub parent: i32,
}

/// One tree, seen from outside.
#[derive(Debug, Clone)]
pub struct Tree {
    pub folder: PathBuf,
    /// The names of all its members.
    pub expected: Vec<String>,
}

/// Enough for all members of a tree and the last successors of one.
const LAST: u64 = 4096;

impl Tree {
    /// Makes the folder. Dropping this does not end anything.
    pub fn new(folder: &Path, expected: Vec<String>) -> Result<Self> {
        fs::create_dir_all(folder)?;
        File::create(folder.join(RECORD))?;
        Ok(Self { folder: folder.to_owned(), expected })
    }

    /// A word of the command line of each member.
    #[must_use]
    pub fn mark(&self) -> String {
        format!("tree={}", self.folder.display())
    }

    /// Asks the members to end by themselves.
    pub fn stop(&self) {
        // A folder that is gone says the same.
        let _ = File::create(self.folder.join(STOP));
    }

    /// Whether all members hold their locks.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let held = self.held();
        self.expected.iter().all(|name| held.contains(name))
    }

    /// The members that wrote themselves down, of each name the last few.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        let mut found: BTreeMap<String, Vec<Member>> = BTreeMap::new();
        for line in self.record().lines() {
            if let Some(member) = read(line) {
                let all = found.entry(member.name.clone()).or_default();
                all.push(member);
                if all.len() > 8 {
                    all.remove(0);
                }
            }
        }
        found.into_values().flatten().collect()
    }

    /// The first lines, and the last ones.
    fn record(&self) -> String {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(self.folder.join(RECORD))?;
            let length = file.metadata()?.len();
            let mut bytes = Vec::new();
            if length <= 2 * LAST {
                file.read_to_end(&mut bytes)?;
                return Ok(bytes);
            }
            (&mut file).take(LAST).read_to_end(&mut bytes)?;
            // A line that was cut on either side is not read as one.
            bytes.extend(b" cut\ncut ");
            file.seek(SeekFrom::Start(length - LAST))?;
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Whether none of the expected members holds its lock: cheaper than to ask who does.
    #[must_use]
    pub fn is_free(&self) -> bool {
        !self.expected.iter().any(|name| self.holds(name))
    }

    fn holds(&self, name: &str) -> bool {
        let file = File::open(self.folder.join(format!("{name}.lock")));
        // Closing the file lets a lock that was free go again.
        file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_err())
    }

    /// The names of the members whose lock is held by somebody.
    #[must_use]
    pub fn held(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| Some(name.strip_suffix(".lock")?.to_owned())).filter(|name| self.holds(name)).collect()
    }
}

fn read(line: &str) -> Option<Member> {
    let words: Vec<&str> = line.split(' ').collect();
    let [name, pid, ticks, parent] = words[..] else { return None };
    Some(Member { name: name.to_owned(), pid: pid.parse().ok()?, start_ticks: ticks.parse().ok()?, parent: parent.parse().ok()? })
}
