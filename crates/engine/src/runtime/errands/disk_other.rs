//! Files where folders cannot be walked one by one: the way was resolved before, and is looked at once more.

use std::{
    fs, io,
    io::{Read as _, Write as _},
    path::PathBuf,
};

use super::{Place, Trouble, new_name};

pub(super) fn read(place: &Place, most: u64) -> Result<Vec<u8>, Trouble> {
    let path = folder(place)?.join(&place.name);
    let is = fs::symlink_metadata(&path)?;
    plain(&is)?;
    if is.len() > most {
        return Err(Trouble::TooLarge(is.len()));
    }
    let mut bytes = Vec::new();
    fs::File::open(&path)?.take(most + 1).read_to_end(&mut bytes)?;
    let read = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if read > most { Err(Trouble::TooLarge(read)) } else { Ok(bytes) }
}

pub(super) fn write(place: &Place, bytes: &[u8]) -> Result<(), Trouble> {
    let folder = folder(place)?;
    let path = folder.join(&place.name);
    let before = match fs::symlink_metadata(&path) {
        Ok(is) => {
            plain(&is)?;
            Some(is.permissions())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    if before.as_ref().is_some_and(fs::Permissions::readonly) {
        return Err(Trouble::ReadOnly);
    }
    let new = folder.join(new_name());
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&new)?;
    let mut put = || -> io::Result<()> {
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&new, &path)
    };
    Ok(put().inspect_err(|_| drop(fs::remove_file(&new)))?)
}

fn folder(place: &Place) -> Result<PathBuf, Trouble> {
    let mut at = place.root.clone();
    at.extend(&place.folders);
    for name in &place.missing {
        at.push(name);
        match fs::create_dir(&at) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }
    if at.canonicalize()?.starts_with(&place.root) { Ok(at) } else { Err(Trouble::Is("behind a link")) }
}

fn plain(is: &fs::Metadata) -> Result<(), Trouble> {
    if is.is_file() { Ok(()) } else { Err(Trouble::Is(if is.is_symlink() { "a link" } else { "no file" })) }
}
