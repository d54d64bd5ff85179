//! Reading what was written, on a connection that cannot write: pages of a transcript, a search, the journal.
//!
//! Nothing here reads more than it was asked for, whatever the length of the history.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Row, params};
use turnkeep_model::{
    ItemId, Seq, SessionId, TurnId,
    port::{FileChange, Item, ItemBody},
};

use super::{StoreError, write::number};

/// Entries that one read returns at most.
const PAGE_LIMIT: usize = 500;

/// One recorded item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub session: SessionId,
    /// Position in the session, from 1, without gaps.
    pub ordinal: u64,
    pub turn: TurnId,
    pub item: Item,
    pub completed: bool,
    /// Unix milliseconds.
    pub at: i64,
}

impl Entry {
    /// Roughly, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let files = |changes: &[FileChange]| changes.iter().map(|change| change.path.len() + change.diff.len()).sum();
        let text = match &self.item.body {
            ItemBody::UserMessage { text, .. }
            | ItemBody::AgentMessage { text, .. }
            | ItemBody::Plan { text }
            | ItemBody::Notice { text }
            | ItemBody::Other { text, .. }
            | ItemBody::WebSearch { query: text } => text.len(),
            ItemBody::Reasoning { summary, text } => summary.len() + text.len(),
            ItemBody::Command { command, output, .. } => command.len() + output.len(),
            ItemBody::FileChange { changes, .. } => files(changes),
            ItemBody::Tool { arguments, result, .. } => arguments.len() + result.len(),
            ItemBody::Compaction | ItemBody::Error { .. } => 0,
        };
        text + 256
    }
}

/// A part of a transcript, oldest entry first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// Ask for entries before this ordinal; `None` at the beginning.
    pub before: Option<u64>,
    /// Entries of the session in all.
    pub total: u64,
}

/// An item that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub entry: Entry,
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub seq: Seq,
    /// Unix milliseconds.
    pub at: i64,
    /// The change as JSON.
    pub change: String,
}

/// Reads. One at a time.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    connection: Connection,
}

pub(super) const PAGE: &str = "SELECT session, ordinal, turn, item, completed, at, body FROM items
     WHERE session = ?1 AND ordinal < ?2 ORDER BY ordinal DESC LIMIT ?3";
pub(super) const TOTAL: &str = "SELECT max(ordinal) FROM items WHERE session = ?1";
pub(super) const SEARCH: &str = "SELECT session, ordinal, turn, item, completed, at, body FROM items
     WHERE id IN (SELECT rowid FROM items_text WHERE items_text MATCH ?1 ORDER BY rowid DESC LIMIT ?2) ORDER BY id DESC";
pub(super) const EVENTS: &str = "SELECT seq, at, change FROM journal WHERE seq > ?1 ORDER BY seq LIMIT ?2";

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|error| StoreError::of(path, &error))?;
        Ok(Self { path: path.to_path_buf(), connection })
    }

    /// The last `limit` entries of a session before an ordinal, or its last ones.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be read.
    pub fn page(&self, session: SessionId, before: Option<u64>, limit: usize) -> Result<Page, StoreError> {
        let read = || {
            // Both statements see the same moment.
            let moment = self.connection.unchecked_transaction()?;
            let total: Option<u64> = moment.prepare_cached(TOTAL)?.query_row([number(session.0)], |row| row.get(0))?;
            let before = before.map_or(i64::MAX, number);
            let limit = number(limit.min(PAGE_LIMIT) as u64);
            let mut entries: Vec<Entry> = moment
                .prepare_cached(PAGE)?
                .query_map(params![number(session.0), before, limit], entry)?
                .collect::<Result<_, _>>()?;
            entries.reverse();
            let before = entries.first().map(|first| first.ordinal).filter(|first| *first > 1);
            Ok(Page { entries, before, total: total.unwrap_or(0) })
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Items that hold all of the words, or begin them, newest first.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be read.
    pub fn search(&self, text: &str, limit: usize) -> Result<Vec<Found>, StoreError> {
        let Some(query) = query(text) else { return Ok(Vec::new()) };
        let read = || {
            self.connection
                .prepare_cached(SEARCH)?
                .query_map(params![query, number(limit.min(PAGE_LIMIT) as u64)], |row| Ok(Found { entry: entry(row)? }))?
                .collect::<Result<_, _>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// What happened after a change, oldest first. Empty when the journal does not reach back that far is not told
    /// apart from nothing new: compare the first `seq`.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be read.
    pub fn events(&self, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError> {
        let read = || {
            self.connection
                .prepare_cached(EVENTS)?
                .query_map(params![number(after.0), number(limit.min(PAGE_LIMIT) as u64)], |row| {
                    Ok(Event { seq: Seq(row.get(0)?), at: row.get(1)?, change: row.get(2)? })
                })?
                .collect::<Result<_, _>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, error)
    }

    /// The connection, for tests that look at query plans.
    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let body: String = row.get(6)?;
    Ok(Entry {
        session: SessionId(row.get(0)?),
        ordinal: row.get(1)?,
        turn: TurnId(row.get(2)?),
        item: Item {
            id: ItemId(row.get(3)?),
            // An entry of another version is shown as what it is, not left out: ordinals have no gaps.
            body: serde_json::from_str(&body).unwrap_or_else(|_| ItemBody::Other { kind: "unreadable".into(), text: body }),
        },
        completed: row.get(4)?,
        at: row.get(5)?,
    })
}

/// Every word as a quoted prefix: a person's text is never query syntax.
fn query(text: &str) -> Option<String> {
    let words: Vec<String> = text
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(16)
        .map(|word| format!("\"{word}\"*"))
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}
