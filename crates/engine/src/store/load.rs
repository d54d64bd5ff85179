//! From rows to the state, at start. What cannot be read is put aside and said; it never prevents the start.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params};
use serde::de::DeserializeOwned;
use turnkeep_model::{
    AccountId, ApprovalId, CredentialId, MessageId, ProviderId, RuntimeId, SessionId, SignInId, State, TurnId,
    state::{Delivery, QueuedMessage},
};

use super::StoreError;

/// What was found at start.
#[derive(Debug, Default)]
pub struct Loaded {
    pub state: State,
    /// What is not there any more, in the order found.
    pub missing: Vec<Missing>,
}

/// Something that an earlier run wrote and this one could not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The whole database was damaged; it lies at `aside`.
    Database { aside: PathBuf, detail: String },
    /// One row; it is kept in the table of unreadable ones.
    Row { source: &'static str, key: String, why: String },
}

/// Reads what is true.
pub(super) fn load(path: &Path, connection: &mut Connection) -> Result<Loaded, StoreError> {
    let mut reading = Reading { connection, missing: Vec::new(), bodies: Vec::new() };
    let state = reading.state().map_err(|error| StoreError::of(path, &error))?;
    let (missing, bodies) = (reading.missing, reading.bodies);
    if !missing.is_empty()
        && let Err(error) = keep(connection, &missing, &bodies)
    {
        tracing::warn!(%error, "rows that cannot be read could not be put aside either");
    }
    for entry in &missing {
        tracing::warn!(?entry, "a row of the database could not be read");
    }
    Ok(Loaded { state, missing })
}

struct Reading<'a> {
    connection: &'a Connection,
    missing: Vec<Missing>,
    bodies: Vec<String>,
}

impl Reading<'_> {
    fn state(&mut self) -> rusqlite::Result<State> {
        let mut state = State {
            providers: self.texts("providers", "SELECT id, body FROM providers")?.map_keys(ProviderId),
            accounts: self.numbers("accounts", "SELECT id, body FROM accounts")?.map_keys(AccountId),
            credentials: self.numbers("credentials", "SELECT id, body FROM credentials")?.map_keys(CredentialId),
            sign_ins: self.numbers("sign_ins", "SELECT id, body FROM sign_ins")?.map_keys(SignInId),
            runtimes: self.numbers("runtimes", "SELECT id, body FROM runtimes")?.map_keys(RuntimeId),
            sessions: self.numbers("sessions", "SELECT id, body FROM sessions")?.map_keys(SessionId),
            turns: self.numbers("turns", "SELECT id, body FROM turns WHERE ended_at IS NULL")?.map_keys(TurnId),
            approvals: self.numbers("approvals", "SELECT id, body FROM approvals WHERE open = 1")?.map_keys(ApprovalId),
            notifications: self.texts("notifications", "SELECT key, body FROM notifications WHERE dismissed = 0")?,
            ..State::default()
        };
        for (key, value) in self.meta()? {
            match key.as_str() {
                "seq" => self.read("meta", &key, &value, &mut state.seq),
                "next" => self.read("meta", &key, &value, &mut state.next),
                "keychain" => self.read("meta", &key, &value, &mut state.keychain),
                "settings" => self.read("meta", &key, &value, &mut state.settings),
                "quit" => self.read("meta", &key, &value, &mut state.quit),
                _ => {}
            }
        }
        for (session, message) in self
            .messages("SELECT session, id, text, at, delivery FROM messages WHERE role = 'queued' ORDER BY session, position")?
        {
            if let Some(entry) = state.sessions.get_mut(&SessionId(session)) {
                entry.queue.push(message);
            }
        }
        for (turn, message) in self.messages("SELECT turn, id, text, at, delivery FROM messages WHERE role = 'steer' AND turn IN (SELECT id FROM turns WHERE ended_at IS NULL) ORDER BY turn, position")? {
            if let Some(entry) = state.turns.get_mut(&TurnId(turn)) {
                entry.steers.push(message);
            }
        }
        self.mend(&mut state)?;
        Ok(state)
    }

    /// Makes counters safe and drops what points to nothing, which only a row that could not be read leaves behind.
    fn mend(&mut self, state: &mut State) -> rusqlite::Result<()> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let State { turns, sessions, approvals, next, .. } = &mut *state;
        turns.retain(|_, turn| sessions.contains_key(&turn.session));
        approvals.retain(|_, approval| turns.contains_key(&approval.turn));
        for session in sessions.values_mut() {
            session.turn = session.turn.filter(|turn| turns.contains_key(turn));
        }
        // A number that was used is never used again, also when the counters are gone.
        for (counter, table) in [
            (&mut next.account, "accounts"),
            (&mut next.credential, "credentials"),
            (&mut next.sign_in, "sign_ins"),
            (&mut next.runtime, "runtimes"),
            (&mut next.session, "sessions"),
            (&mut next.turn, "turns"),
            (&mut next.approval, "approvals"),
        ] {
            let last: u64 =
                self.connection.query_row(&format!("SELECT coalesce(max(id), 0) FROM {table}"), [], |row| row.get(0))?;
            *counter = (*counter).max(last + 1);
        }
        let last: u64 = self.connection.query_row("SELECT coalesce(max(seq), 0) FROM journal", [], |row| row.get(0))?;
        state.seq.0 = state.seq.0.max(last);
        Ok(())
    }

    fn meta(&self) -> rusqlite::Result<Vec<(String, String)>> {
        self.connection.prepare("SELECT key, value FROM meta")?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    fn numbers<T: DeserializeOwned>(&mut self, source: &'static str, sql: &str) -> rusqlite::Result<BTreeMap<u64, T>> {
        let rows: Vec<(u64, String)> =
            self.connection.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        Ok(rows.into_iter().filter_map(|(key, body)| Some((key, self.parse(source, &key.to_string(), &body)?))).collect())
    }

    fn texts<T: DeserializeOwned>(&mut self, source: &'static str, sql: &str) -> rusqlite::Result<BTreeMap<String, T>> {
        let rows: Vec<(String, String)> =
            self.connection.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        Ok(rows.into_iter().filter_map(|(key, body)| Some((key.clone(), self.parse(source, &key, &body)?))).collect())
    }

    fn messages(&mut self, sql: &str) -> rusqlite::Result<Vec<(u64, QueuedMessage)>> {
        let rows: Vec<(u64, String, String, i64, String)> = self
            .connection
            .prepare(sql)?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?
            .collect::<Result<_, _>>()?;
        let mut found = Vec::with_capacity(rows.len());
        for (owner, id, text, at, word) in rows {
            let Some(delivery) = delivery(&word) else {
                self.miss("messages", &id, format!("{word:?} is no delivery"), text);
                continue;
            };
            found.push((owner, QueuedMessage { id: MessageId(id), text, at, delivery }));
        }
        Ok(found)
    }

    fn read<T: DeserializeOwned>(&mut self, source: &'static str, key: &str, body: &str, into: &mut T) {
        if let Some(value) = self.parse(source, key, body) {
            *into = value;
        }
    }

    fn parse<T: DeserializeOwned>(&mut self, source: &'static str, key: &str, body: &str) -> Option<T> {
        match serde_json::from_str(body) {
            Ok(value) => Some(value),
            Err(error) => {
                self.miss(source, key, error.to_string(), body.to_owned());
                None
            }
        }
    }

    fn miss(&mut self, source: &'static str, key: &str, why: String, body: String) {
        self.missing.push(Missing::Row { source, key: key.to_owned(), why });
        self.bodies.push(body);
    }
}

fn delivery(word: &str) -> Option<Delivery> {
    [Delivery::Queued, Delivery::Sending, Delivery::Admitted, Delivery::NotAdmitted, Delivery::Unknown]
        .into_iter()
        .find(|delivery| super::words::delivery_word(*delivery) == word)
}

/// Copies what could not be read to a place of its own, once.
fn keep(connection: &mut Connection, missing: &[Missing], bodies: &[String]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for (entry, body) in missing.iter().zip(bodies) {
        if let Missing::Row { source, key, why } = entry {
            transaction.execute(
                "INSERT INTO unreadable (at, source, key, why, body)
                 SELECT unixepoch() * 1000, ?1, ?2, ?3, ?4
                 WHERE NOT EXISTS (SELECT 1 FROM unreadable WHERE source = ?1 AND key = ?2 AND body = ?4)",
                params![source, key, why, body],
            )?;
        }
    }
    transaction.commit()
}

/// The same map under typed keys.
trait MapKeys<K, V> {
    fn map_keys<L: Ord>(self, key: impl Fn(K) -> L) -> BTreeMap<L, V>;
}

impl<K, V> MapKeys<K, V> for BTreeMap<K, V> {
    fn map_keys<L: Ord>(self, key: impl Fn(K) -> L) -> BTreeMap<L, V> {
        self.into_iter().map(|(old, value)| (key(old), value)).collect()
    }
}
