//! Agents' processes and threads for a person who wants to know.

use turnkeep_model::{
    ProviderId, RuntimeId,
    derive::{held_by, is_stale},
    port::{Failure, ThreadPage},
    state::{self, Phase},
};

use super::{Facts, account_label, parts};
use crate::dto;

/// How a process ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// Unix milliseconds.
    pub at: i64,
    pub failure: Option<&'a Failure>,
}

/// One process; `ended` for one that is proven gone, `entry` as it was last.
#[must_use]
pub fn runtime(
    facts: &Facts<'_>,
    id: RuntimeId,
    entry: &state::Runtime,
    ended: Option<Ended<'_>>,
    last_lines: Vec<String>,
) -> dto::Runtime {
    let failure = match &ended {
        Some(ended) => ended.failure,
        None => entry.fault.as_ref(),
    };
    let state = match (&ended, &entry.phase) {
        (Some(Ended { failure: Some(_), .. }), _) => dto::RuntimeState::Failed,
        (Some(Ended { failure: None, .. }), _) => dto::RuntimeState::Stopped,
        (None, Phase::Starting) => dto::RuntimeState::Starting,
        (None, Phase::Ready) => dto::RuntimeState::Ready,
        (None, Phase::Retiring { .. } | Phase::Orphan) => dto::RuntimeState::Retiring,
    };
    let held = facts.state.sessions.iter().filter(|(_, session)| held_by(session) == Some(id)).map(|(id, _)| *id);
    let mut sessions: Vec<String> = held.map(|id| id.to_string()).collect();
    sessions.extend(entry.session.map(|id| id.to_string()).filter(|_| ended.is_some()));
    let last_lines = if last_lines.is_empty() { recorded(failure) } else { last_lines };
    dto::Runtime {
        id: id.to_string(),
        provider: entry.provider.to_string(),
        account: entry.account.to_string(),
        account_label: facts.state.accounts.get(&entry.account).map(account_label).unwrap_or_default(),
        sessions,
        state,
        pid: entry.process.as_ref().map(|process| process.pid),
        version: entry.version.clone(),
        started_at: entry.started_at,
        ended_at: ended.as_ref().map(|ended| ended.at),
        epoch: entry.epoch.0,
        old: is_stale(facts.state, entry),
        failure: failure.map(parts::failure),
        last_lines,
    }
}

/// What the record of a failure holds of the last lines; all that is left of a process of an earlier run.
fn recorded(failure: Option<&Failure>) -> Vec<String> {
    match failure.map(|failure| &failure.class) {
        Some(turnkeep_model::port::FailureClass::TransportClosed(record)) => record.stderr.clone(),
        _ => Vec::new(),
    }
}

/// The processes that are not gone, newest first.
pub fn live_runtimes<'a>(facts: &Facts<'a>) -> impl Iterator<Item = (RuntimeId, &'a state::Runtime)> {
    facts.state.runtimes.iter().rev().map(|(id, entry)| (*id, entry))
}

/// Threads that can be gone on with, and the sessions that some of them are already.
#[must_use]
pub fn threads(facts: &Facts<'_>, provider: &ProviderId, page: &ThreadPage) -> dto::ThreadPage {
    let session = |thread| {
        let mut known = facts.state.sessions.iter().filter(|(_, session)| session.provider == *provider);
        known.find(|(_, session)| session.thread.as_ref() == Some(thread)).map(|(id, _)| id.to_string())
    };
    let threads = page.threads.iter().filter(|thread| thread.resumable);
    dto::ThreadPage {
        threads: threads
            .map(|thread| dto::Thread {
                thread: thread.thread.to_string(),
                title: if thread.title.is_empty() { thread.preview.clone() } else { thread.title.clone() },
                preview: if thread.title.is_empty() { String::new() } else { thread.preview.clone() },
                folder: thread.folder.clone(),
                updated_at: thread.updated_at.saturating_mul(1000),
                session: session(&thread.thread),
            })
            .collect(),
        next_cursor: page.next_cursor.clone(),
    }
}
