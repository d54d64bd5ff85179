//! What an agent's failures mean, and the words in which a person is told.
//!
//! Identical causes arrive in three shapes: a code of the protocol, an internal error with data, or a turn that ends well
//! and says so in text. A failure that nothing here knows keeps its own text.

use serde_json::Value;
use turnkeep_model::port::{Failure, FailureClass};

use super::{Entry, wire::Refusal};

/// The protocol's code for "sign in first".
const AUTH_REQUIRED: i64 = -32000;
/// The protocol's code for a session or another thing that is not there.
const NOT_FOUND: i64 = -32002;
/// JSON-RPC's code for a method that is not known.
pub(super) const NO_METHOD: i64 = -32601;

/// Texts, in lower case, of what any of them says of an unknown session.
const THREAD_NOT_FOUND: &[&str] = &["no rollout found", "session not found", "resource not found"];

/// Whether a text of this agent's own means that nobody is signed in (any more).
pub(super) fn says_signed_out(entry: &Entry, text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.trim() == "authentication required" || entry.quirks.signed_out.iter().any(|part| lower.contains(part))
}

/// Why a request was refused. `doing`: what was asked, "open the session".
pub(super) fn of_refusal(entry: &Entry, error: &Refusal, doing: &str) -> Failure {
    let data = if error.data.is_null() { String::new() } else { error.data.to_string() };
    let lower = format!("{}\n{data}", error.message).to_lowercase();
    let kind = ["errorKind", "errorName"].iter().find_map(|name| error.data.get(name)?.as_str());
    let known = kind.and_then(|kind| entry.quirks.kinds.iter().find(|(known, _)| *known == kind));
    let class = if error.code == AUTH_REQUIRED || entry.quirks.signed_out.iter().any(|part| lower.contains(part)) {
        FailureClass::SignedOut
    } else if let Some((_, class)) = known {
        class.clone()
    } else if error.code == NOT_FOUND || THREAD_NOT_FOUND.iter().any(|part| lower.contains(part)) {
        FailureClass::ThreadNotFound
    } else if error.code == NO_METHOD {
        FailureClass::Unsupported
    } else {
        FailureClass::Other
    };
    let message = if class == FailureClass::SignedOut {
        not_connected(entry)
    } else if doing == TURN {
        own_words(error)
    } else {
        format!("{} could not {doing}: {}", entry.name, first_line(&own_words(error)))
    };
    let detail = [error.message.as_str(), &data, &error.code.to_string()];
    let detail: Vec<&str> = detail.into_iter().filter(|part| !part.is_empty()).collect();
    Failure { class, message, detail: Some(detail.join("\n")) }
}

/// `doing` for a turn: its failure is shown by itself.
pub(super) const TURN: &str = "work on the message";

/// The meaning of an adapter's last own text at the end of a turn that is said to have ended well.
pub(super) fn of_text(entry: &Entry, text: &str) -> Option<Failure> {
    let lower = text.to_lowercase();
    let (_, class) = entry.quirks.failures_as_text.iter().find(|(part, _)| lower.contains(part))?;
    let text = text.trim().to_owned();
    Some(if *class == FailureClass::SignedOut {
        Failure { class: class.clone(), message: not_connected(entry), detail: Some(text) }
    } else {
        Failure { class: class.clone(), message: text, detail: None }
    })
}

/// A failure of our own making, about what the agent did or did not do.
pub(super) fn plain(class: FailureClass, message: impl Into<String>) -> Failure {
    Failure { class, message: message.into(), detail: None }
}

/// No answer in time. `doing`: what was asked.
pub(super) fn timeout(entry: &Entry, doing: &str) -> Failure {
    plain(FailureClass::Timeout, format!("{} did not answer in time when asked to {doing}.", entry.name))
}

/// An answer of another shape than the protocol says.
pub(super) fn misshapen(entry: &Entry, doing: &str) -> Failure {
    let message = format!("The answer of {} to the request to {doing} could not be read.", entry.name);
    plain(FailureClass::Protocol, message)
}

fn not_connected(entry: &Entry) -> String {
    format!("{} isn't connected. Sign in to {}, then send your message again.", entry.full_name, entry.name)
}

/// The refusal's text, without what every one of its kind begins with; where that says nothing, what its data says.
fn own_words(error: &Refusal) -> String {
    let text = error.message.trim();
    let text = text.strip_prefix("Internal error: ").or_else(|| text.strip_prefix("Invalid params: ")).unwrap_or(text);
    let details = error.data.get("details").and_then(Value::as_str);
    match (text, details) {
        ("" | "Internal error" | "Invalid params", Some(details)) => details.to_owned(),
        ("", None) => "The agent reported a failure without saying why.".to_owned(),
        (text, _) => text.to_owned(),
    }
}

pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(400).collect()
}
