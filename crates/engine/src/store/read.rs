//! Reading what was written, on a connection that cannot write: pages of a transcript, a search, the journal.
//!
//! Nothing here reads more than it was asked for, whatever the length of the history.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use turnkeep_model::{
    ItemId, MessageId, RuntimeId, Seq, SessionId, TurnId,
    port::{Failure, FailureClass, FileChange, Item, ItemBody, TurnDiff},
    state::Runtime,
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
    /// What the turns of these entries changed, without the text.
    pub diffs: Vec<(TurnId, TurnDiff)>,
}

/// Entries of a session that a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Newest first.
    pub ordinals: Vec<u64>,
    /// Ask for those before this one; `None` when that was all.
    pub before: Option<u64>,
    /// How many there are in all.
    pub total: u64,
}

/// A process that is proven gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRuntime {
    pub id: RuntimeId,
    /// As it was last.
    pub entry: Runtime,
    /// Unix milliseconds.
    pub ended_at: i64,
    /// `None`: it was stopped because nobody needed it any more.
    pub failure: Option<Failure>,
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
pub(super) const FIND: &str = "SELECT ordinal FROM items WHERE id IN (SELECT rowid FROM items_text WHERE items_text MATCH ?1)
     AND session = ?2 AND ordinal < ?3 ORDER BY ordinal DESC LIMIT ?4";
pub(super) const FIND_ALL: &str =
    "SELECT count(*) FROM items WHERE id IN (SELECT rowid FROM items_text WHERE items_text MATCH ?1) AND session = ?2";
pub(super) const ENDED: &str = "SELECT id, ended_at, body, failure FROM ended_runtimes ORDER BY id DESC LIMIT ?1";
pub(super) const DIFFS: &str = "SELECT turn, files, added, removed, dropped FROM turn_diffs
     WHERE session = ?1 AND turn IN (SELECT turn FROM items WHERE session = ?1 AND ordinal BETWEEN ?2 AND ?3)";
pub(super) const DIFF: &str =
    "SELECT turn, files, added, removed, dropped, text FROM turn_diffs WHERE turn = ?1 AND session = ?2";
pub(super) const EVENTS: &str = "SELECT seq, at, change FROM journal WHERE seq > ?1 ORDER BY seq LIMIT ?2";

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|error| StoreError::of(path, &error))?;
        Ok(Self { path: path.to_path_buf(), connection })
    }

    /// Whether a message with this id was ever taken in, in this run or an earlier one. One look by key.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be read.
    pub fn has_seen(&self, message: &MessageId) -> Result<bool, StoreError> {
        let read = || {
            let mut look = self.connection.prepare_cached("SELECT 1 FROM seen_messages WHERE id = ?1")?;
            look.exists([&message.0])
        };
        read().map_err(|error| StoreError::of(&self.path, &error))
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
            let (first, last) = (entries.first().map_or(0, |e| e.ordinal), entries.last().map_or(0, |e| e.ordinal));
            let diffs = moment
                .prepare_cached(DIFFS)?
                .query_map(params![number(session.0), number(first), number(last)], |row| turn_diff(row, String::new()))?
                .collect::<Result<_, _>>()?;
            let before = entries.first().map(|first| first.ordinal).filter(|first| *first > 1);
            Ok(Page { entries, before, total: total.unwrap_or(0), diffs })
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

    /// Where the items of one session stand that hold all of the words, or begin them, newest first: those before an
    /// ordinal, or all. Of the text that an agent made, only what is kept for searching counts.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be read.
    pub fn find(&self, session: SessionId, text: &str, before: Option<u64>, limit: usize) -> Result<Matches, StoreError> {
        let Some(query) = query(text) else { return Ok(Matches::default()) };
        let read = || {
            let moment = self.connection.unchecked_transaction()?;
            let total = moment.prepare_cached(FIND_ALL)?.query_row(params![query, number(session.0)], |row| row.get(0))?;
            let limit = limit.min(PAGE_LIMIT);
            let ordinals: Vec<u64> = moment
                .prepare_cached(FIND)?
                .query_map(params![query, number(session.0), before.map_or(i64::MAX, number), number(limit as u64)], |row| {
                    row.get(0)
                })?
                .collect::<Result<_, _>>()?;
            let before = ordinals.last().copied().filter(|_| ordinals.len() == limit);
            Ok(Matches { ordinals, before, total })
        };
        read().map_err(|error| self.failed(&error))
    }

    /// What a turn changed, if it changed anything.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be read.
    pub fn diff(&self, session: SessionId, turn: TurnId) -> Result<Option<TurnDiff>, StoreError> {
        let read = || {
            self.connection
                .prepare_cached(DIFF)?
                .query_row(params![number(turn.0), number(session.0)], |row| Ok(turn_diff(row, row.get(5)?)?.1))
                .optional()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// The processes that ended last, newest first. One that cannot be read is left out.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be read.
    pub fn ended_runtimes(&self, limit: usize) -> Result<Vec<EndedRuntime>, StoreError> {
        let read = || {
            let found: Vec<Option<EndedRuntime>> = self
                .connection
                .prepare_cached(ENDED)?
                .query_map([number(limit.min(PAGE_LIMIT) as u64)], ended)?
                .collect::<Result<_, _>>()?;
            Ok(found.into_iter().flatten().collect())
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

fn turn_diff(row: &Row<'_>, text: String) -> rusqlite::Result<(TurnId, TurnDiff)> {
    let diff = TurnDiff { text, files: row.get(1)?, added: row.get(2)?, removed: row.get(3)?, dropped: row.get(4)? };
    Ok((TurnId(row.get(0)?), diff))
}

fn ended(row: &Row<'_>) -> rusqlite::Result<Option<EndedRuntime>> {
    let (body, failure): (String, Option<String>) = (row.get(2)?, row.get(3)?);
    let Ok(entry) = serde_json::from_str(&body) else { return Ok(None) };
    let failure = failure
        .map(|text| serde_json::from_str(&text).unwrap_or(Failure { class: FailureClass::Other, message: text, detail: None }));
    Ok(Some(EndedRuntime { id: RuntimeId(row.get(0)?), entry, ended_at: row.get(1)?, failure }))
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
