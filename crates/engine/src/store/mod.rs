//! What is true, on disk: SQLite tables, and a journal of the changes that made them.
//!
//! One connection writes. Whoever commits waits until the transaction is on its way to the disk; nothing may act on a
//! change before. Never holds a secret, and never guesses: a row that cannot be read is put aside and said.

mod load;
mod open;
mod read;
mod rows;
mod words;
mod write;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use load::{Loaded, Missing};
pub use open::open;
pub use read::{EndedRuntime, Entry, Event, Found, Matches, Page, Reader};
pub use rows::{Batch, Draft};
pub(crate) use write::abandon_body;
pub use write::{Committed, Placed, Writer};

/// The oldest SQLite that does not lose the write-ahead log in a race between a reset and a writer.
pub const OLDEST_SQLITE: i32 = 3_051_003;

/// Why the store cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written; trying again may work once there is room.
    #[error("the disk that holds {path} takes no more (full, or over a quota): make room, then Turnkeep goes on by itself")]
    Full { path: PathBuf },
    /// Nothing was written; trying again works once the other program lets go.
    #[error("another program holds the database {path} locked: close it, then Turnkeep goes on by itself")]
    Busy { path: PathBuf },
    /// The file is not a database, or a damaged one.
    #[error("the database {path} is damaged ({detail})")]
    Damaged { path: PathBuf, detail: String },
    /// Written by a later version; left as it is.
    #[error("{path} was written by a newer Turnkeep (format {found}, this one knows {known}): install the newer version again")]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// The SQLite that is linked in has a known defect.
    #[error("this build has SQLite {found}, which can lose data; at least 3.51.3 is needed: install a correct build")]
    OldSqlite { found: String },
    /// Reading or writing the file failed. What was written last must be read again before it is believed.
    #[error("reading or writing {path} failed ({detail}): check the disk, then start Turnkeep again")]
    Io { path: PathBuf, detail: String },
    /// A statement that should never fail: our bug.
    #[error("the database {path} refused a statement ({detail})")]
    Refused { path: PathBuf, detail: String },
}

impl StoreError {
    /// The same may be tried again, and will work once the cause is gone.
    #[must_use]
    pub fn passing(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Busy { .. })
    }

    /// What a failure of SQLite means.
    fn of(path: &std::path::Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path = path.to_path_buf();
        let detail = error.to_string();
        // A write that the system refused leaves no trace in the log, so that it may be tried again; a failed fsync may not.
        if error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_WRITE) {
            return Self::Full { path };
        }
        match error.sqlite_error_code() {
            Some(Code::DiskFull) => Self::Full { path },
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Busy { path },
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Damaged { path, detail },
            Some(
                Code::SystemIoFailure | Code::CannotOpen | Code::ReadOnly | Code::PermissionDenied | Code::NoLargeFileSupport,
            ) => Self::Io { path, detail },
            _ => Self::Refused { path, detail },
        }
    }
}
