//! Opening the file: the right SQLite, the right format, migrated; a damaged file is put aside, a newer one left alone.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags};

use super::{
    Loaded, OLDEST_SQLITE, Reader, StoreError, Writer,
    load::{Missing, load},
};

/// One file a step; the number of steps is the format's version.
const MIGRATIONS: &[&str] =
    &[include_str!("migrations/0001_first.sql"), include_str!("migrations/0002_ended_runtimes_and_turn_diffs.sql")];

/// Pages that the write-ahead log may keep on the disk after a checkpoint.
const LOG_LIMIT: i64 = 8 * 1024 * 1024;

/// Opens the database at `path`, which is made if there is none, and reads what is true.
///
/// # Errors
/// [`StoreError`]; a newer database and one on a failing disk are left as they are.
pub fn open(path: &Path) -> Result<(Writer, Reader, Loaded), StoreError> {
    check_library(rusqlite::version_number(), rusqlite::version())?;
    let mut moved = None;
    let suspect = suspect_mark(path);
    let first = match header(path)? {
        Header::Newer(found) => return Err(newer(path, found)),
        Header::Foreign => Err(StoreError::Damaged { path: path.to_path_buf(), detail: "it is not an SQLite file".into() }),
        Header::None | Header::Ours => open_once(path, suspect.exists()),
    };
    let (writer, reader, mut loaded) = match first {
        Err(StoreError::Damaged { detail, .. }) => {
            let aside = put_aside(path)?;
            tracing::warn!(path = %path.display(), aside = %aside.display(), %detail, "the database was damaged and put aside");
            moved = Some((aside, detail));
            open_once(path, false)?
        }
        other => other?,
    };
    if suspect.exists()
        && let Err(error) = fs::remove_file(&suspect)
    {
        tracing::warn!(path = %suspect.display(), %error, "the mark of a suspect database stays");
    }
    if let Some((aside, detail)) = moved {
        loaded.missing.insert(0, Missing::Database { aside, detail });
    }
    Ok((writer, reader, loaded))
}

/// Refuses a library with the known defect.
pub(super) fn check_library(number: i32, name: &str) -> Result<(), StoreError> {
    if number < OLDEST_SQLITE { Err(StoreError::OldSqlite { found: name.to_owned() }) } else { Ok(()) }
}

fn newer(path: &Path, found: u32) -> StoreError {
    StoreError::Newer { path: path.to_path_buf(), found, known: known() }
}

/// The version of the format that this build writes.
pub(super) fn known() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Says that the next start must check the whole file before it believes it.
pub(super) fn suspect_mark(path: &Path) -> PathBuf {
    beside(path, "-suspect")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

enum Header {
    None,
    Ours,
    Newer(u32),
    Foreign,
}

/// Reads the version without SQLite, which would already touch files beside a database that is not ours to touch.
fn header(path: &Path) -> Result<Header, StoreError> {
    let fail = |error: std::io::Error| StoreError::Io { path: path.to_path_buf(), detail: error.to_string() };
    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Header::None),
        Err(error) => return Err(fail(error)),
    };
    let mut head = Vec::with_capacity(100);
    file.by_ref().take(100).read_to_end(&mut head).map_err(fail)?;
    if head.is_empty() {
        return Ok(Header::None);
    }
    let (Some(magic), Some(version)) = (head.get(..16), head.get(60..64)) else { return Ok(Header::Foreign) };
    if magic != b"SQLite format 3\0" {
        return Ok(Header::Foreign);
    }
    let found = version.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
    Ok(if found > known() { Header::Newer(found) } else { Header::Ours })
}

fn open_once(path: &Path, suspect: bool) -> Result<(Writer, Reader, Loaded), StoreError> {
    let of = |error: rusqlite::Error| StoreError::of(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(of)?;
    private(path);
    // Only takes effect in a file without tables.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(of)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(of)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(of)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(of)?;
    connection.pragma_update(None, "journal_size_limit", LOG_LIMIT).map_err(of)?;
    connection.pragma_update(None, "trusted_schema", false).map_err(of)?;
    if suspect {
        check_whole(path, &connection)?;
    }
    migrate(path, &mut connection)?;
    let loaded = load(path, &mut connection)?;
    let reader = Reader::open(path)?;
    Ok((Writer::new(path, connection), reader, loaded))
}

/// Reads every page; takes long on a large file, so only when there is reason to doubt it.
fn check_whole(path: &Path, connection: &Connection) -> Result<(), StoreError> {
    let verdict: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(|error| StoreError::of(path, &error))?;
    if verdict == "ok" { Ok(()) } else { Err(StoreError::Damaged { path: path.to_path_buf(), detail: verdict }) }
}

fn migrate(path: &Path, connection: &mut Connection) -> Result<(), StoreError> {
    let of = |error: rusqlite::Error| StoreError::of(path, &error);
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(of)?;
    if found > known() {
        return Err(newer(path, found));
    }
    for (version, step) in (1_u32..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        let transaction = connection.transaction().map_err(of)?;
        transaction.execute_batch(step).map_err(of)?;
        transaction.pragma_update(None, "user_version", version).map_err(of)?;
        transaction.commit().map_err(of)?;
    }
    if found < known() {
        // The version must be in the file itself, where an older build looks for it.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(of)?;
    }
    Ok(())
}

/// Moves a damaged database, with what belongs to it, to a name of its own beside it.
fn put_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let stamp = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let aside = (0..100)
        .map(|count| beside(path, &format!(".damaged-{stamp}{}", if count == 0 { String::new() } else { format!("-{count}") })))
        .find(|aside| !aside.exists())
        .unwrap_or_else(|| beside(path, ".damaged"));
    let fail = |error: std::io::Error| StoreError::Io {
        path: path.to_path_buf(),
        detail: format!("it is damaged and could not be put aside: {error}"),
    };
    for suffix in ["-wal", "-shm"] {
        let from = beside(path, suffix);
        if from.exists() {
            fs::rename(&from, beside(&aside, suffix)).map_err(fail)?;
        }
    }
    fs::rename(path, &aside).map_err(fail)?;
    Ok(aside)
}

/// What a person typed is in there: nobody else's business.
#[cfg(unix)]
fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if let Err(error) = fs::set_permissions(path, fs::Permissions::from_mode(0o600)) {
        tracing::warn!(path = %path.display(), %error, "the database could not be made private");
    }
}

#[cfg(not(unix))]
fn private(_path: &Path) {}
