//! The one connection that writes: a batch is one transaction, or nothing.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use turnkeep_model::{
    SessionId,
    port::{ItemBody, ItemStatus},
    state::QueuedMessage,
};

use super::{
    StoreError,
    open::suspect_mark,
    rows::{Batch, Ended, Row},
    words::{delivery_word, outcome_word, words},
};

/// Changes that the journal keeps.
const JOURNAL_KEEP: u64 = 20_000;
/// Milliseconds that the journal keeps a change.
const JOURNAL_AGE: i64 = 14 * 24 * 60 * 60 * 1000;
/// Changes after which the journal is trimmed again.
const TRIM_EVERY: u64 = 1_000;
/// Ended processes that are remembered.
const ENDED_KEPT: i64 = 100;
/// Free pages that are given back to the file system at a trim.
const VACUUM_PAGES: u32 = 256;

/// Writes batches. Owned by one loop at a time: it is moved to the thread that writes and back.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    connection: Connection,
    durable: bool,
    since_trim: u64,
    keep: u64,
    #[cfg(test)]
    hurried: bool,
}

/// What came of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Where the recorded items stand, in the order of their changes.
    pub items: Vec<Placed>,
}

/// Where an item stands in its transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub ordinal: u64,
    /// When it was first recorded, in Unix milliseconds.
    pub at: i64,
}

impl Writer {
    pub(super) fn new(path: &Path, connection: Connection) -> Self {
        // The first commit trims what a long run before may have left.
        Self {
            path: path.to_path_buf(),
            connection,
            durable: true,
            since_trim: TRIM_EVERY,
            keep: JOURNAL_KEEP,
            #[cfg(test)]
            hurried: false,
        }
    }

    /// Where the database lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the batch. Afterwards it survives the end of this process, and a loss of power if the batch asks for that.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing of the batch is written. Only a [`StoreError::passing`] one may be tried again.
    pub fn commit(&mut self, batch: &Batch) -> Result<Committed, StoreError> {
        if batch.journal.is_empty() {
            return Ok(Committed::default());
        }
        self.try_commit(batch).map_err(|error| {
            let error = StoreError::of(&self.path, &error);
            if matches!(error, StoreError::Damaged { .. } | StoreError::Io { .. })
                && let Err(why) = std::fs::write(suspect_mark(&self.path), b"")
            {
                tracing::warn!(error = %why, "the database could not be marked as suspect");
            }
            error
        })
    }

    fn try_commit(&mut self, batch: &Batch) -> rusqlite::Result<Committed> {
        if self.durable != batch.durable {
            // A FULL commit also makes durable whatever was committed before it: the log is written in order.
            self.connection.pragma_update(None, "synchronous", if batch.durable { "FULL" } else { "NORMAL" })?;
            self.durable = batch.durable;
        }
        #[cfg(test)]
        if self.hurried {
            self.connection.pragma_update(None, "synchronous", "OFF")?;
        }
        let trims = self.since_trim >= TRIM_EVERY;
        let transaction = self.connection.transaction()?;
        let mut committed = Committed::default();
        for row in &batch.rows {
            write(&transaction, row, batch.at, &mut committed)?;
        }
        {
            let mut append = transaction.prepare_cached("INSERT INTO journal (seq, at, change) VALUES (?1, ?2, ?3)")?;
            for (seq, change) in &batch.journal {
                append.execute(params![number(seq.0), batch.at, change])?;
            }
        }
        if trims {
            trim(&transaction, self.keep, batch.at - JOURNAL_AGE)?;
        }
        transaction.commit()?;
        self.since_trim = if trims { 0 } else { self.since_trim + batch.journal.len() as u64 };
        if trims {
            // Not worth failing for: the next trim tries again.
            if let Err(error) = self.give_back() {
                tracing::warn!(%error, "free pages of the database could not be given back");
            }
        }
        Ok(committed)
    }

    /// Cuts some free pages off the file; each step of the statement is one page.
    fn give_back(&self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
        let mut steps = statement.query([])?;
        while steps.next()?.is_some() {}
        Ok(())
    }

    /// Leaves a file without a write-ahead log behind. Not needed for correctness.
    pub fn close(self) {
        let emptied = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = emptied.and_then(|()| self.connection.close().map_err(|(_, error)| error)) {
            tracing::warn!(%error, "the database was not closed cleanly");
        }
    }

    /// Keeps so many changes, for tests of the trimming and of the journal itself.
    #[cfg(test)]
    pub(super) fn keep(&mut self, changes: u64) {
        self.keep = changes;
    }

    /// Never waits for the disk, for tests that commit thousands of times.
    #[cfg(test)]
    pub(super) fn hurry(&mut self) {
        self.hurried = true;
    }

    /// The connection, for tests that look at it or make it fail.
    #[cfg(test)]
    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

/// Removes what is both beyond the count, or older than the age.
fn trim(transaction: &Transaction<'_>, keep: u64, oldest: i64) -> rusqlite::Result<()> {
    let last: Option<i64> = transaction.query_row("SELECT max(seq) FROM journal", [], |row| row.get(0))?;
    let Some(last) = last else { return Ok(()) };
    let young: Option<i64> = transaction
        .query_row("SELECT seq FROM journal WHERE at >= ?1 ORDER BY seq LIMIT 1", [oldest], |row| row.get(0))
        .optional()?;
    let first = (last - number(keep) + 1).max(young.unwrap_or(last));
    transaction.execute("DELETE FROM journal WHERE seq < ?1", [first])?;
    Ok(())
}

/// SQLite's integers are signed; our counters never come near the difference.
pub(super) fn number(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

fn run(transaction: &Transaction<'_>, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<()> {
    transaction.prepare_cached(sql)?.execute(values).map(|_| ())
}

#[expect(clippy::too_many_lines, reason = "one statement a kind of row")]
fn write(transaction: &Transaction<'_>, row: &Row, at: i64, committed: &mut Committed) -> rusqlite::Result<()> {
    match row {
        Row::Meta { key, value } => run(
            transaction,
            "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            params![key, value],
        ),
        Row::Provider { id, body } => run(
            transaction,
            "INSERT INTO providers VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
            params![id.0, body],
        ),
        Row::Account { id, provider, body } => run(
            transaction,
            "INSERT INTO accounts VALUES (?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET provider = excluded.provider, body = excluded.body",
            params![number(id.0), provider.0, body],
        ),
        Row::AccountGone { id } => run(transaction, "DELETE FROM accounts WHERE id = ?1", [number(id.0)]),
        Row::Credential { id, account, body } => run(
            transaction,
            "INSERT INTO credentials VALUES (?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET account = excluded.account, body = excluded.body",
            params![number(id.0), number(account.0), body],
        ),
        Row::CredentialGone { id } => run(transaction, "DELETE FROM credentials WHERE id = ?1", [number(id.0)]),
        Row::SignIn { id, body } => run(
            transaction,
            "INSERT INTO sign_ins VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
            params![number(id.0), body],
        ),
        Row::SignInGone { id } => run(transaction, "DELETE FROM sign_ins WHERE id = ?1", [number(id.0)]),
        Row::Runtime { id, body } => run(
            transaction,
            "INSERT INTO runtimes VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
            params![number(id.0), body],
        ),
        Row::RuntimeGone { id } => run(transaction, "DELETE FROM runtimes WHERE id = ?1", [number(id.0)]),
        Row::RuntimeEnded { id, at, body, failure } => {
            run(
                transaction,
                "INSERT OR REPLACE INTO ended_runtimes VALUES (?1, ?2, ?3, ?4)",
                params![number(id.0), at, body, failure],
            )?;
            run(transaction, "DELETE FROM ended_runtimes WHERE id <= ?1", [number(id.0).saturating_sub(ENDED_KEPT)])
        }
        Row::Diff { session, turn, diff } => run(
            transaction,
            "INSERT OR REPLACE INTO turn_diffs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                number(turn.0),
                number(session.0),
                diff.files,
                number(diff.added),
                number(diff.removed),
                number(diff.dropped),
                diff.text
            ],
        ),
        Row::Session { id, provider, thread, archived, active_at, body } => run(
            transaction,
            "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (id) DO UPDATE SET provider = excluded.provider, thread = excluded.thread,
                 archived = excluded.archived, active_at = excluded.active_at, body = excluded.body",
            params![number(id.0), provider.0, thread, archived, active_at, body],
        ),
        Row::Queue { session, messages } => write_queue(transaction, *session, messages),
        Row::Sent { session, turn, id, text, at, delivery } => run(
            transaction,
            "INSERT INTO messages VALUES (?1, ?2, 'sent', ?3, NULL, ?4, ?5, ?6)
             ON CONFLICT (id) DO UPDATE SET session = excluded.session, role = 'sent', turn = excluded.turn,
                 position = NULL, delivery = excluded.delivery, text = excluded.text",
            params![id.0, number(session.0), number(turn.0), at, delivery_word(*delivery), text],
        ),
        Row::Steer { session, turn, position, message } => run(
            transaction,
            "INSERT INTO messages VALUES (?1, ?2, 'steer', ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (id) DO UPDATE SET session = excluded.session, role = 'steer', turn = excluded.turn,
                 position = excluded.position, at = excluded.at, delivery = excluded.delivery, text = excluded.text",
            params![
                message.id.0,
                number(session.0),
                number(turn.0),
                number(*position as u64),
                message.at,
                delivery_word(message.delivery),
                message.text
            ],
        ),
        Row::Delivered { id, delivery } => {
            run(transaction, "UPDATE messages SET delivery = ?2 WHERE id = ?1", params![id.0, delivery_word(*delivery)])
        }
        Row::Seen { id } => run(transaction, "INSERT OR IGNORE INTO seen_messages VALUES (?1)", [&id.0]),
        Row::Turn { id, session, message, started_at, ended, body } => {
            let (ended_at, outcome) = match ended {
                Some(Ended { at, outcome }) => (Some(*at), outcome.as_ref().map(outcome_word)),
                None => (None, None),
            };
            run(
                transaction,
                "INSERT INTO turns VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (id) DO UPDATE SET ended_at = excluded.ended_at, outcome = excluded.outcome,
                     started_at = excluded.started_at, body = excluded.body",
                params![
                    number(id.0),
                    number(session.0),
                    message.as_ref().map(|message| &message.0),
                    started_at,
                    ended_at,
                    outcome,
                    body
                ],
            )
        }
        Row::Approval { id, session, turn, asked_at, open, body } => run(
            transaction,
            "INSERT INTO approvals VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (id) DO UPDATE SET open = excluded.open, body = excluded.body",
            params![number(id.0), number(session.0), number(turn.0), asked_at, open, body],
        ),
        Row::Notification { key, at, body } => run(
            transaction,
            "INSERT INTO notifications VALUES (?1, 0, ?2, ?3)
             ON CONFLICT (key) DO UPDATE SET dismissed = 0, at = excluded.at, body = excluded.body",
            params![key, at, body],
        ),
        Row::NotificationGone { key } => run(transaction, "UPDATE notifications SET dismissed = 1 WHERE key = ?1", [key]),
        Row::Item { session, turn, id, kind, completed, body, words } => {
            let (row, ordinal, at): (i64, u64, i64) = transaction
                .prepare_cached(
                    "INSERT INTO items (session, ordinal, item, turn, kind, completed, at, body)
                     VALUES (?1, (SELECT coalesce(max(ordinal), 0) + 1 FROM items WHERE session = ?1), ?2, ?3, ?4, ?5, ?6, ?7)
                     ON CONFLICT (session, item) DO UPDATE SET kind = excluded.kind, body = excluded.body,
                         completed = max(completed, excluded.completed)
                     RETURNING id, ordinal, at",
                )?
                .query_row(params![number(session.0), id.0, number(turn.0), kind, completed, at, body], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })?;
            if !words.is_empty() {
                run(transaction, "INSERT OR REPLACE INTO items_text (rowid, text) VALUES (?1, ?2)", params![row, words])?;
            }
            committed.items.push(Placed { ordinal, at });
            Ok(())
        }
        Row::ItemsCopied { session, from } => copy_items(transaction, *session, *from),
        Row::TurnItemsAbandoned { turn } => {
            let open: Vec<(i64, String)> = transaction
                .prepare_cached("SELECT id, body FROM items WHERE turn = ?1 AND completed = 0")?
                .query_map([number(turn.0)], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            open.into_iter().try_for_each(|(id, body)| abandon(transaction, id, &body))
        }
    }
}

fn write_queue(transaction: &Transaction<'_>, session: SessionId, messages: &[QueuedMessage]) -> rusqlite::Result<()> {
    run(
        transaction,
        "UPDATE messages SET role = 'removed', position = NULL WHERE session = ?1 AND role = 'queued'",
        [number(session.0)],
    )?;
    for (position, message) in messages.iter().enumerate() {
        run(
            transaction,
            "INSERT INTO messages VALUES (?1, ?2, 'queued', NULL, ?3, ?4, ?5, ?6)
             ON CONFLICT (id) DO UPDATE SET session = excluded.session, role = 'queued', turn = NULL,
                 position = excluded.position, at = excluded.at, delivery = excluded.delivery, text = excluded.text",
            params![
                message.id.0,
                number(session.0),
                number(position as u64),
                message.at,
                delivery_word(message.delivery),
                message.text
            ],
        )?;
    }
    Ok(())
}

/// The finished items of a session, for another one that holds nothing yet.
fn copy_items(transaction: &Transaction<'_>, to: SessionId, from: SessionId) -> rusqlite::Result<()> {
    let copied: Vec<(i64, String)> = transaction
        .prepare_cached(
            "INSERT INTO items (session, ordinal, item, turn, kind, completed, at, body)
             SELECT ?1, row_number() OVER (ORDER BY ordinal), item, turn, kind, 1, at, body
             FROM items WHERE session = ?2 AND completed = 1 ORDER BY ordinal
             RETURNING id, body",
        )?
        .query_map([number(to.0), number(from.0)], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (row, body) in copied {
        let words = serde_json::from_str::<ItemBody>(&body).map(|body| words(&body)).unwrap_or_default();
        if !words.is_empty() {
            run(transaction, "INSERT OR REPLACE INTO items_text (rowid, text) VALUES (?1, ?2)", params![row, words])?;
        }
    }
    Ok(())
}

/// Closes an item that never got its end.
fn abandon(transaction: &Transaction<'_>, id: i64, body: &str) -> rusqlite::Result<()> {
    let body = match serde_json::from_str::<ItemBody>(body) {
        Ok(mut item) => {
            abandon_body(&mut item);
            serde_json::to_string(&item).unwrap_or_else(|_| body.to_owned())
        }
        Err(_) => body.to_owned(),
    };
    run(transaction, "UPDATE items SET completed = 1, body = ?2 WHERE id = ?1", params![id, body])
}

/// What an item looks like that never got its end.
pub(crate) fn abandon_body(body: &mut ItemBody) {
    match body {
        ItemBody::Command { status, .. } | ItemBody::FileChange { status, .. } | ItemBody::Tool { status, .. } => {
            if *status == ItemStatus::Running {
                *status = ItemStatus::Abandoned;
            }
        }
        ItemBody::UserMessage { .. }
        | ItemBody::AgentMessage { .. }
        | ItemBody::Reasoning { .. }
        | ItemBody::WebSearch { .. }
        | ItemBody::Plan { .. }
        | ItemBody::Compaction
        | ItemBody::Notice { .. }
        | ItemBody::Error { .. }
        | ItemBody::Other { .. } => {}
    }
}
