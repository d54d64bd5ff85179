//! JSON-RPC on lines: what a line is, and how an answer is put.

use serde_json::{Map, Value, json};

pub(crate) const PARSE: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const NO_METHOD: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL: i64 = -32603;
pub(crate) const SIGN_IN_NEEDED: i64 = -32000;
pub(crate) const NOT_FOUND: i64 = -32002;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Value,
}

impl Refusal {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    pub(crate) fn params(why: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, format!("Invalid params: {}", why.into()))
    }

    pub(crate) fn with(self, data: Value) -> Self {
        Self { data, ..self }
    }
}

/// A line from the client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer to a request of ours; of an error, its words.
    Answer {
        id: Value,
        outcome: Result<Value, String>,
    },
    /// Nothing of these: what is to be said about it.
    Bad {
        id: Value,
        refusal: Refusal,
    },
    Blank,
}

pub(crate) fn read(line: &[u8]) -> Incoming {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Incoming::Blank;
    }
    let bad = |id, code, why: &str| Incoming::Bad { id, refusal: Refusal::new(code, why) };
    let Ok(message) = serde_json::from_slice::<Value>(line) else { return bad(Value::Null, PARSE, "Parse error") };
    let Value::Object(mut message) = message else {
        return bad(Value::Null, INVALID_REQUEST, "Invalid request: a message is an object");
    };
    let id = message.remove("id");
    if id.as_ref().is_some_and(|id| !(id.is_string() || id.is_number() || id.is_null())) {
        return bad(Value::Null, INVALID_REQUEST, "Invalid request: an id is a number or a text");
    }
    match (message.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Incoming::Request { id, method, params: params(&mut message) },
        (Some(Value::String(method)), None) => Incoming::Notification { method, params: params(&mut message) },
        (None, Some(id)) if message.contains_key("result") || message.contains_key("error") => {
            let words = |error: Value| error["message"].as_str().unwrap_or("no reason was given").to_owned();
            let outcome = match message.remove("error") {
                Some(error) => Err(words(error)),
                None => Ok(message.remove("result").unwrap_or_default()),
            };
            Incoming::Answer { id, outcome }
        }
        (_, id) => bad(id.unwrap_or_default(), INVALID_REQUEST, "Invalid request: no method"),
    }
}

fn params(message: &mut Map<String, Value>) -> Value {
    message.remove("params").unwrap_or_default()
}

pub(crate) fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(crate) fn error(id: &Value, refusal: &Refusal) -> Value {
    let mut error = json!({ "code": refusal.code, "message": refusal.message });
    if !refusal.data.is_null() {
        error["data"] = refusal.data.clone();
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

pub(crate) fn update(session: &str, update: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": session, "update": update } })
}
