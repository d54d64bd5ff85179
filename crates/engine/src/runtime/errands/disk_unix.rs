//! Files as Unix has them: every step from an open folder, none through a link.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, open, openat, renameat, statat, unlinkat};

use super::{Place, Trouble, new_name};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl From<rustix::io::Errno> for Trouble {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

pub(super) fn read(place: &Place, most: u64) -> Result<Vec<u8>, Trouble> {
    let folder = walk(&place.root, &place.folders, &[])?;
    // Looked at before it is opened: opening a device can do something, and a pipe can hold one up.
    plain(&statat(&folder, &place.name, AtFlags::SYMLINK_NOFOLLOW)?)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(&folder, &place.name, flags, Mode::empty())?;
    let is = fstat(&file)?;
    plain(&is)?;
    let size = u64::try_from(is.st_size).unwrap_or(0);
    if size > most {
        return Err(Trouble::TooLarge(size));
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    File::from(file).take(most + 1).read_to_end(&mut bytes)?;
    let read = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if read > most { Err(Trouble::TooLarge(read)) } else { Ok(bytes) }
}

pub(super) fn write(place: &Place, bytes: &[u8]) -> Result<(), Trouble> {
    let folder = walk(&place.root, &place.folders, &place.missing)?;
    let before = match statat(&folder, &place.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(is) => {
            plain(&is)?;
            Some(Mode::from_raw_mode(is.st_mode))
        }
        Err(rustix::io::Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    if before.is_some_and(|mode| !mode.intersects(Mode::WUSR | Mode::WGRP | Mode::WOTH)) {
        return Err(Trouble::ReadOnly);
    }
    let new = new_name();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A new file is as open as the person's other new files.
    let mode = before.map_or(Mode::from_raw_mode(0o666), |_| Mode::RUSR | Mode::WUSR);
    let file = openat(&folder, &new, flags, mode)?;
    let put = || -> Result<(), Trouble> {
        if let Some(before) = before {
            fchmod(&file, before)?;
        }
        let mut file = File::from(file);
        file.write_all(bytes)?;
        file.sync_data()?;
        Ok(renameat(&folder, &new, &folder, &place.name)?)
    };
    put().inspect_err(|_| {
        let _ = unlinkat(&folder, &new, AtFlags::empty());
    })
}

/// The last of these folders, opened; those that are missing are made.
fn walk(root: &Path, there: &[PathBuf], missing: &[PathBuf]) -> Result<OwnedFd, Trouble> {
    let mut at = open(root, FOLDER, Mode::empty())?;
    for name in there {
        at = step(&at, name)?;
    }
    for name in missing {
        match mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        at = step(&at, name)?;
    }
    Ok(at)
}

fn step(at: &OwnedFd, name: &Path) -> Result<OwnedFd, Trouble> {
    openat(at, name, FOLDER, Mode::empty()).map_err(|error| match error {
        // Which of the two is said of a link differs from system to system.
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => Trouble::Is("behind a link, or below a file"),
        error => error.into(),
    })
}

fn plain(is: &Stat) -> Result<(), Trouble> {
    Err(Trouble::Is(match FileType::from_raw_mode(is.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "a link",
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of a kind that is not known",
    }))
}
