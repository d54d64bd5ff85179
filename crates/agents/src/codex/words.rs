//! What Codex's failures mean, read from several of their fields, and the words in which a person is told.
//!
//! Data first: a new text of Codex's is a new line in a table. A failure that no line knows keeps its own text.

use serde_json::Value;
use turnkeep_model::port::{Failure, FailureClass};

use super::wire;
use crate::jsonrpc::RpcError;

/// What is said in place of any text that means "nobody is signed in".
pub(super) const NOT_CONNECTED: &str = "Codex (OpenAI) isn't connected. Sign in to Codex, then send your message again.";

/// Beginnings and parts of Codex's own texts, in lower case, that mean that its OpenAI account is gone.
const SIGNED_OUT: &[&str] = &[
    "your access token could not be refreshed",
    "your authentication session could not be refreshed automatically",
    "codex account authentication required",
    "external chatgpt auth is unavailable",
];

/// Texts of a 401 of OpenAI's own that mean the same; they count only where the thread's model is reached by the account.
const REJECTED_BY_OPENAI: &[&str] = &[
    "your authentication token has been invalidated",
    "your authentication token has expired",
    "missing bearer or basic authentication",
    "incorrect api key provided",
    "you didn't provide an api key",
    "please try signing in again",
];

/// Texts of a turn that lost its account because another one took its place in the same process.
const ACCOUNT_REPLACED: &[&str] = &["application network permission was revoked", "application network policy is unavailable"];

/// Texts about the place where a sign-in is kept.
const KEYCHAIN: &[(&str, Keychain)] = &[
    ("no secret service provider", Keychain::Absent),
    ("no default store has been set", Keychain::Absent),
    ("account credential storage is unavailable", Keychain::Absent),
    ("prompt dismissed", Keychain::Locked),
    ("couldn't access platform secure storage", Keychain::Locked),
    ("platform secure storage failure", Keychain::Absent),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keychain {
    Absent,
    Locked,
}

/// Texts that would not tell a person what to do.
const REWORDED: &[(&str, &str)] = &[
    (
        "invalid_encrypted_content",
        "OpenAI does not let this account go on with a thread that was begun under another organization. Start a new \
         session to go on; this one and its history stay as they are.",
    ),
    (
        "is draining; retry after",
        "The Codex server is shutting down and takes no new work; what runs there is finished first. Start it again, then \
         try again.",
    ),
];

/// Texts that look like a broken connection and are none.
const NOT_NETWORK: &[&str] = &["incomplete response returned"];

/// Codes of `codexErrorInfo` whose meaning needs no other field.
const CODES: &[(&str, FailureClass)] = &[
    ("usageLimitExceeded", FailureClass::UsageLimit),
    ("sessionBudgetExceeded", FailureClass::UsageLimit),
    ("rateLimitExceeded", FailureClass::RateLimit),
    ("serverOverloaded", FailureClass::Overloaded),
    ("internalServerError", FailureClass::Overloaded),
    ("flexUnavailable", FailureClass::Overloaded),
    ("policyCapacityUnavailable", FailureClass::Overloaded),
    ("contextWindowExceeded", FailureClass::ContextWindow),
    ("modelNotFound", FailureClass::ModelNotFound),
];

/// Texts of a refused request.
const REFUSALS: &[(&str, FailureClass)] = &[
    ("already has an active writer", FailureClass::ThreadBusy),
    ("thread not found", FailureClass::ThreadNotFound),
    ("thread not loaded", FailureClass::ThreadNotFound),
    ("no rollout found", FailureClass::ThreadNotFound),
    ("invalid session id", FailureClass::ThreadNotFound),
    ("is archived", FailureClass::ThreadNotFound),
    ("server overloaded", FailureClass::Overloaded),
    ("server is draining", FailureClass::Overloaded),
    ("different chatgpt account", FailureClass::AccountChanged),
];

/// What is known about the account of the thread that failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// The thread's model is reached with the OpenAI account, and not with a provider of the person's own.
    pub(super) by_account: bool,
    /// Someone is signed in, as far as Codex has said.
    pub(super) signed_in: bool,
}

/// Whether a text of Codex's own means that nobody is signed in, whoever said it and wherever.
pub(super) fn signed_out(text: &str) -> bool {
    let text = text.to_lowercase();
    SIGNED_OUT.iter().any(|part| text.contains(part))
}

/// Why a turn failed.
pub(super) fn of_turn(error: &wire::TurnError, standing: Standing) -> Failure {
    let code = code(&error.codex_error_info);
    let http = http_status(&error.codex_error_info);
    let text = error.message.as_str();
    let lower = text.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));

    let account_gone =
        signed_out(text) || (standing.by_account && (code == "unauthorized" || http == Some(401) || has(REJECTED_BY_OPENAI)));
    let class = if account_gone {
        FailureClass::SignedOut
    } else if has(ACCOUNT_REPLACED) {
        if standing.signed_in { FailureClass::AccountChanged } else { FailureClass::SignedOut }
    } else if let Some(class) = keychain(&lower) {
        class
    } else if let Some((_, class)) = CODES.iter().find(|(known, _)| *known == code) {
        class.clone()
    } else if http == Some(429) {
        FailureClass::RateLimit
    } else if http.is_some_and(|http| http >= 500) {
        FailureClass::Overloaded
    } else if network(code, http, &lower) {
        FailureClass::Network
    } else {
        FailureClass::Other
    };
    finish(class, text, Some(code).filter(|code| !code.is_empty()), http, error.additional_details.as_deref())
}

/// Why a request was refused. `doing`: what was asked, "open the thread".
pub(super) fn of_refusal(error: &RpcError, doing: &str) -> Failure {
    let lower = error.message.to_lowercase();
    let class = if signed_out(&error.message) {
        FailureClass::SignedOut
    } else if let Some(class) = keychain(&lower) {
        class
    } else if let Some((_, class)) = REFUSALS.iter().find(|(part, _)| lower.contains(part)) {
        class.clone()
    } else if network("", None, &lower) {
        FailureClass::Network
    } else {
        FailureClass::Other
    };
    let code = error.code.to_string();
    let mut failure = finish(class, &error.message, Some(&code), None, None);
    if failure.class != FailureClass::SignedOut {
        failure.message = format!("Codex could not {doing}: {}", first_line(&failure.message));
    }
    failure
}

/// Why a sign-in ended without an account.
pub(super) fn of_sign_in(error: Option<&str>, cancelled: bool) -> Failure {
    let text = error.unwrap_or_default();
    let lower = text.to_lowercase();
    let other = |message: &str| (FailureClass::Other, message.to_owned());
    let (class, message) = if let Some(class) = keychain(&lower) {
        let message = keychain_words(&class);
        (class, message)
    } else if cancelled || lower.contains("was not completed") {
        other("The sign-in was cancelled. Nothing was changed.")
    } else if lower.contains("login cancelled") {
        other(
            "Another Codex program started its own sign-in and took over the address that the browser returns to \
             (127.0.0.1:1455). Finish that one, then try again here, or sign in with a device code.",
        )
    } else if lower.contains("denied") {
        other("The sign-in was refused in the browser. Nothing was changed; you can try again.")
    } else if lower.contains("already in use") {
        other(
            "Both addresses that the browser could return to (127.0.0.1:1455 and 127.0.0.1:1457) are in use by other \
             programs. Close one of them and try again, or sign in with a device code.",
        )
    } else if lower.contains("device auth") {
        other("OpenAI did not accept the device code. Start again; codes run out after some minutes.")
    } else if lower.contains("api key login is disabled") || lower.contains("chatgpt login is disabled") {
        other("Codex is set up (forced_login_method in its config.toml) to allow only the other kind of sign-in.")
    } else if network("", None, &lower) {
        (FailureClass::Network, "OpenAI's sign-in could not be reached. Check the network, then try again.".to_owned())
    } else if text.is_empty() {
        other("Codex ended the sign-in without saying why. Try again.")
    } else {
        other(&format!("The sign-in did not work: {}", first_line(text)))
    };
    Failure { class, message, detail: (!text.is_empty()).then(|| text.to_owned()) }
}

/// A failure of our own making, about what Codex did or did not do.
pub(super) fn plain(class: FailureClass, message: impl Into<String>) -> Failure {
    Failure { class, message: message.into(), detail: None }
}

/// No answer in time. `doing`: what was asked.
pub(super) fn timeout(doing: &str) -> Failure {
    plain(FailureClass::Timeout, format!("Codex did not answer in time when asked to {doing}."))
}

fn finish(class: FailureClass, text: &str, code: Option<&str>, http: Option<u16>, details: Option<&str>) -> Failure {
    let mut parts: Vec<String> = Vec::new();
    let replaced = matches!(class, FailureClass::SignedOut | FailureClass::KeychainLocked | FailureClass::KeychainAbsent);
    let message = if class == FailureClass::SignedOut {
        NOT_CONNECTED.to_owned()
    } else if replaced {
        keychain_words(&class)
    } else if text.is_empty() {
        "Codex reported a failure without saying why.".to_owned()
    } else if let Some((_, words)) = REWORDED.iter().find(|(part, _)| text.contains(part)) {
        (*words).to_owned()
    } else {
        inner(text).unwrap_or_else(|| text.to_owned())
    };
    if message != text && !text.is_empty() {
        parts.push(text.to_owned());
    }
    parts.extend(details.filter(|details| !details.is_empty()).map(str::to_owned));
    parts.extend(code.map(str::to_owned));
    parts.extend(http.map(|http| format!("HTTP {http}")));
    Failure { class, message, detail: (!parts.is_empty()).then(|| parts.join("\n")) }
}

/// The message inside a body that the model's server sent and Codex passed on as it was.
fn inner(text: &str) -> Option<String> {
    let body: Value = serde_json::from_str(text).ok()?;
    Some(body.get("error")?.get("message")?.as_str()?.to_owned())
}

fn keychain(lower: &str) -> Option<FailureClass> {
    let (_, what) = KEYCHAIN.iter().find(|(part, _)| lower.contains(part))?;
    Some(match what {
        Keychain::Absent => FailureClass::KeychainAbsent,
        Keychain::Locked => FailureClass::KeychainLocked,
    })
}

fn keychain_words(class: &FailureClass) -> String {
    if *class == FailureClass::KeychainLocked {
        "The system's keychain is locked, so Codex could not use its sign-in. Unlock it, then try again.".to_owned()
    } else {
        "This system has no keychain that Codex could keep a sign-in in. Start one (for example GNOME Keyring or \
         KWallet), or use an API key."
            .to_owned()
    }
}

fn network(code: &str, http: Option<u16>, lower: &str) -> bool {
    const TEXTS: &[&str] = &[
        "stream disconnected before completion",
        "error sending request",
        "connection failed",
        "could not resolve",
        "dns error",
        "network error",
        "routing discovery failed",
        "timed out",
    ];
    let by_code = matches!(code, "httpConnectionFailed" | "responseStreamConnectionFailed" | "responseStreamDisconnected");
    let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    (by_code && http.is_none()) || (has(TEXTS) && !has(NOT_NETWORK))
}

/// The name of the code, which is a string or the one member of an object.
fn code(info: &Value) -> &str {
    match info {
        Value::String(code) => code,
        Value::Object(members) => members.keys().next().map_or("", String::as_str),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => "",
    }
}

fn http_status(info: &Value) -> Option<u16> {
    let inner = info.as_object()?.values().next()?;
    inner.get("httpStatusCode")?.as_u64()?.try_into().ok()
}

fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(400) {
        Some((end, _)) => line.get(..end).unwrap_or(line),
        None => line,
    }
}

#[cfg(test)]
mod tests;
