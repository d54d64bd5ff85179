//! The machine's transcript items as [`dto::Entry`].

use turnkeep_model::{
    SessionId, TurnId,
    port::{DeltaStream, Item, ItemBody, ItemStatus, TurnDiff},
};

use crate::{
    dto,
    snapshot::{failure, file_change},
};

/// Where an item stands in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Grows within the session.
    pub ordinal: u64,
    pub turn: TurnId,
    /// It will not change any more.
    pub completed: bool,
    /// Unix milliseconds.
    pub at: i64,
}

/// One entry as a screen shows it.
#[must_use]
pub fn entry(place: Place, item: &Item) -> dto::Entry {
    dto::Entry {
        ordinal: place.ordinal,
        id: item.id.to_string(),
        turn: place.turn.to_string(),
        completed: place.completed,
        at: place.at,
        body: body(&item.body),
    }
}

/// A page, oldest first. `before`: the ordinal to ask on from; `None` at the beginning.
#[must_use]
pub fn page(
    session: SessionId,
    entries: Vec<dto::Entry>,
    before: Option<u64>,
    total: u64,
    changes: Vec<dto::TurnChanges>,
) -> dto::TranscriptPage {
    dto::TranscriptPage { session: session.to_string(), entries, before, total, changes }
}

/// What a turn changed, in numbers.
#[must_use]
pub fn changes(turn: TurnId, diff: &TurnDiff) -> dto::TurnChanges {
    dto::TurnChanges { turn: turn.to_string(), files: diff.files, added: diff.added, removed: diff.removed }
}

/// What a turn changed, file by file.
#[must_use]
pub fn turn_diff(diff: &TurnDiff) -> dto::TurnDiff {
    dto::TurnDiff { files: crate::unified::files(&diff.text), dropped: diff.dropped }
}

/// Which text of an entry grows.
#[must_use]
pub fn stream(stream: DeltaStream) -> dto::DeltaStream {
    match stream {
        DeltaStream::AgentMessage => dto::DeltaStream::AgentMessage,
        DeltaStream::ReasoningSummary => dto::DeltaStream::ReasoningSummary,
        DeltaStream::Reasoning => dto::DeltaStream::Reasoning,
        DeltaStream::CommandOutput => dto::DeltaStream::CommandOutput,
        DeltaStream::Plan => dto::DeltaStream::Plan,
    }
}

fn body(body: &ItemBody) -> dto::EntryBody {
    match body {
        ItemBody::UserMessage { text, message: _ } => dto::EntryBody::UserMessage { text: text.clone() },
        ItemBody::AgentMessage { text, final_answer } => {
            dto::EntryBody::AgentMessage { text: text.clone(), final_answer: *final_answer }
        }
        ItemBody::Reasoning { summary, text } => dto::EntryBody::Reasoning { summary: summary.clone(), text: text.clone() },
        ItemBody::Command { command, cwd, output, exit_code, duration_ms, status } => dto::EntryBody::Command {
            command: command.clone(),
            cwd: cwd.clone(),
            output: output.clone(),
            exit_code: *exit_code,
            duration_ms: *duration_ms,
            status: self::status(*status),
        },
        ItemBody::FileChange { changes, status } => {
            dto::EntryBody::FileChange { changes: changes.iter().map(file_change).collect(), status: self::status(*status) }
        }
        ItemBody::Tool { server, name, arguments, result, status } => dto::EntryBody::Tool {
            server: server.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
            result: result.clone(),
            status: self::status(*status),
        },
        ItemBody::WebSearch { query } => dto::EntryBody::WebSearch { query: query.clone() },
        ItemBody::Plan { text } => dto::EntryBody::Plan { text: text.clone() },
        ItemBody::Compaction => dto::EntryBody::Compaction,
        ItemBody::Notice { text } => dto::EntryBody::Notice { text: text.clone() },
        ItemBody::Error { failure } => dto::EntryBody::Error { failure: self::failure(failure) },
        ItemBody::Other { kind, text } => dto::EntryBody::Other { kind: kind.clone(), text: text.clone() },
    }
}

fn status(status: ItemStatus) -> dto::ItemStatus {
    match status {
        ItemStatus::Running => dto::ItemStatus::Running,
        ItemStatus::Completed => dto::ItemStatus::Completed,
        ItemStatus::Failed => dto::ItemStatus::Failed,
        ItemStatus::Declined => dto::ItemStatus::Declined,
        ItemStatus::Abandoned => dto::ItemStatus::Abandoned,
    }
}

#[cfg(test)]
mod tests;
