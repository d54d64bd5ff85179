//! The words for things in columns, and the JSON of what is kept whole.

use serde::Serialize;
use turnkeep_model::{
    Change,
    port::{Failure, FailureClass, Item, ItemBody, TurnDiff, TurnOutcome},
    state::{Delivery, Turn, TurnState},
};

/// The word of a delivery in its column.
pub(super) fn delivery_word(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Queued => "queued",
        Delivery::Sending => "sending",
        Delivery::Admitted => "admitted",
        Delivery::NotAdmitted => "not_admitted",
        Delivery::Unknown => "unknown",
    }
}

/// The word of an outcome in its column.
pub(super) fn outcome_word(outcome: &TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::Completed => "completed",
        TurnOutcome::Interrupted => "interrupted",
        TurnOutcome::Failed(_) => "failed",
        TurnOutcome::Lost => "lost",
        TurnOutcome::Unknown => "unknown",
    }
}

/// What is known about the way of a turn's own message.
pub(super) fn delivery(turn: &Turn, outcome: Option<&TurnOutcome>) -> Delivery {
    match (outcome, turn.state) {
        (_, TurnState::Started) => Delivery::Admitted,
        (None, TurnState::Dispatched | TurnState::Probing) => Delivery::Sending,
        (Some(TurnOutcome::Completed | TurnOutcome::Interrupted | TurnOutcome::Lost), _) => Delivery::Admitted,
        (Some(TurnOutcome::Failed(Failure { class: FailureClass::TransportClosed(_), .. }) | TurnOutcome::Unknown), _) => {
            Delivery::Unknown
        }
        (Some(TurnOutcome::Failed(_)), _) => Delivery::NotAdmitted,
    }
}

/// A change as the journal keeps it: it names an item or a diff and does not repeat its text, which its row has.
pub(super) fn journalled(change: &Change) -> String {
    if let Change::TurnDiffed { session, turn, diff } = change {
        return json(&Change::TurnDiffed {
            session: *session,
            turn: *turn,
            diff: TurnDiff { text: String::new(), ..diff.clone() },
        });
    }
    let Change::ItemRecorded { session, turn, item, completed } = change else { return json(change) };
    let body = ItemBody::Other { kind: kind(&item.body).to_owned(), text: String::new() };
    let item = Item { id: item.id.clone(), body };
    json(&Change::ItemRecorded { session: *session, turn: *turn, item, completed: *completed })
}

/// The word for an item's kind in its column.
pub(super) fn kind(body: &ItemBody) -> &'static str {
    match body {
        ItemBody::UserMessage { .. } => "user_message",
        ItemBody::AgentMessage { .. } => "agent_message",
        ItemBody::Reasoning { .. } => "reasoning",
        ItemBody::Command { .. } => "command",
        ItemBody::FileChange { .. } => "file_change",
        ItemBody::Tool { .. } => "tool",
        ItemBody::WebSearch { .. } => "web_search",
        ItemBody::Plan { .. } => "plan",
        ItemBody::Compaction => "compaction",
        ItemBody::Notice { .. } => "notice",
        ItemBody::Error { .. } => "error",
        ItemBody::Other { .. } => "other",
    }
}

/// Bytes of one item that can be searched for.
const SEARCHABLE: usize = 64 * 1024;

/// What a person may search an item by.
pub(super) fn words(body: &ItemBody) -> String {
    let mut words = match body {
        ItemBody::UserMessage { text, .. }
        | ItemBody::AgentMessage { text, .. }
        | ItemBody::Plan { text }
        | ItemBody::Notice { text }
        | ItemBody::Other { text, .. } => text.clone(),
        ItemBody::Reasoning { summary, .. } => summary.clone(),
        ItemBody::Command { command, .. } => command.clone(),
        ItemBody::FileChange { changes, .. } => changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>().join("\n"),
        ItemBody::Tool { server, name, .. } => format!("{server} {name}"),
        ItemBody::WebSearch { query } => query.clone(),
        ItemBody::Compaction => String::new(),
        ItemBody::Error { failure } => failure.message.clone(),
    };
    let mut end = words.len().min(SEARCHABLE);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    words.truncate(end);
    words
}

/// JSON of a model value, which has no map with keys that JSON cannot have.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        tracing::error!(%error, "a model value has no JSON form");
        "null".to_owned()
    })
}
