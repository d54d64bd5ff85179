//! News of credential files: written, replaced, deleted, made later; their folder too, and links on the way.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    io,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use tokio::sync::watch;

use super::Looker;

/// Links are followed this far.
const LINKS: usize = 16;

/// What is wrong with the system's news is tried again this long after.
const PAUSE: Duration = Duration::from_secs(10);

/// Ask for a look whenever one of the paths may be another file, or have another content.
pub(super) async fn watch(mut paths: watch::Receiver<BTreeSet<PathBuf>>, looker: Looker) {
    loop {
        match follow(&mut paths, &looker).await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, "no news of credential files; they are looked at now and then instead");
                tokio::time::sleep(PAUSE).await;
                looker.look();
            }
        }
    }
}

async fn follow(paths: &mut watch::Receiver<BTreeSet<PathBuf>>, looker: &Looker) -> io::Result<()> {
    let news = crate::descriptor::wait_for(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?)?;
    let mut plan = Plan::default();
    loop {
        plan.bring_up_to_date(news.get_ref(), &paths.borrow_and_update())?;
        // Whatever happened before this folder or file was watched.
        looker.look();
        loop {
            let changed = tokio::select! {
                changed = paths.changed() => match changed {
                    Ok(()) => true,
                    Err(_) => return Ok(()),
                },
                ready = news.readable() => {
                    let mut ready = ready?;
                    let (of_interest, drained) = plan.read(news.get_ref())?;
                    if drained {
                        ready.clear_ready();
                    }
                    of_interest
                }
            };
            if changed {
                break;
            }
        }
    }
}

/// What is watched, and which names matter there; `None`: the watched thing itself.
#[derive(Debug, Default)]
struct Plan {
    watches: BTreeMap<i32, Interest>,
}

type Interest = BTreeSet<Option<OsString>>;

impl Plan {
    fn bring_up_to_date(&mut self, news: &OwnedFd, paths: &BTreeSet<PathBuf>) -> io::Result<()> {
        let mut wanted: BTreeMap<PathBuf, Interest> = BTreeMap::new();
        for path in paths {
            want(path, &mut wanted, LINKS);
        }
        // A folder that was deleted and made again has the same path and needs another watch: all are added anew, and
        // what is the same stays the same.
        let mut watches = BTreeMap::new();
        for (path, interest) in &wanted {
            let flags = if interest.contains(&None) && interest.len() == 1 { FILE } else { FOLDER };
            match inotify::add_watch(news, path, flags) {
                Ok(watch) => {
                    watches.entry(watch).or_insert_with(Interest::new).extend(interest.iter().cloned());
                }
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::ACCESS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for old in self.watches.keys().filter(|old| !watches.contains_key(old)) {
            let _ = inotify::remove_watch(news, *old);
        }
        self.watches = watches;
        Ok(())
    }

    /// Whether anything of interest happened, and whether all was read.
    fn read(&self, news: &OwnedFd) -> io::Result<(bool, bool)> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 8192];
        let mut reader = Reader::new(news, &mut buffer);
        let mut of_interest = false;
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
                    of_interest |= event.events().contains(ReadFlags::QUEUE_OVERFLOW)
                        || self.watches.get(&event.wd()).is_some_and(|interest| name.is_none() || interest.contains(&name));
                }
                Err(rustix::io::Errno::AGAIN) => return Ok((of_interest, true)),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

const FOLDER: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// A program may keep the file open for long after it has written it.
const FILE: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// The file, its folder (or the nearest that exists), and the folder of every link on the way.
fn want(path: &Path, wanted: &mut BTreeMap<PathBuf, Interest>, links: usize) {
    let mut so_far = PathBuf::new();
    let mut rest = path.components();
    while let Some(part) = rest.next() {
        let folder = so_far.clone();
        so_far.push(part);
        let name = || Some(part.as_os_str().to_owned());
        match std::fs::symlink_metadata(&so_far) {
            Ok(about) if about.is_symlink() => {
                wanted.entry(folder.clone()).or_default().insert(name());
                let (Ok(target), Some(links)) = (std::fs::read_link(&so_far), links.checked_sub(1)) else { return };
                return want(&folder.join(target).join(rest.as_path()), wanted, links);
            }
            Ok(about) if rest.as_path().as_os_str().is_empty() => {
                wanted.entry(folder).or_default().insert(name());
                if about.is_file() {
                    wanted.entry(so_far).or_default().insert(None);
                }
                return;
            }
            Ok(_) => {}
            Err(_) => {
                wanted.entry(folder).or_default().insert(name());
                return;
            }
        }
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
