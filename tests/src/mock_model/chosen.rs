//! Which reply of which script a list of messages calls for, as far as two wires have it in common.
//!
//! It follows from the request alone, so that a retry gets the same place of the script again.

use serde_json::{Value, json};

use super::State;
use super::script::{self, End, Part, Piece, Reply};

/// What is to be answered.
pub(super) enum Chosen {
    Refused {
        status: u16,
        body: Value,
    },
    /// `call`: how often this place was asked for before.
    Played {
        parts: Vec<Part>,
        end: End,
        call: u32,
    },
}

/// How a wire tells who wrote a message.
pub(super) struct Typed {
    pub(super) role: &'static str,
    /// Whether the model asked for a tool in it.
    pub(super) used: fn(&Value) -> bool,
}

pub(super) fn reply(state: &State, body: &Value, typed: &Typed) -> Chosen {
    // An agent's own questions, for a title or the like, come without tools.
    if body["tools"].as_array().is_none_or(Vec::is_empty) {
        return Chosen::Played { parts: vec![Part::message("OK")], end: End::DONE, call: 0 };
    }
    let none = Vec::new();
    let messages = body["messages"].as_array().unwrap_or(&none);
    let place = messages.iter().enumerate().rev().find_map(|(at, message)| {
        let text = (message["role"] == typed.role).then(|| words(&message["content"])).flatten()?;
        Some((at, text))
    });
    let (at, text) = place.unwrap_or_default();
    let step = messages.iter().skip(at).filter(|message| (typed.used)(message)).count();
    let script = state.script_for(&text).or_else(|| script::parse(&text));
    let script = script.unwrap_or_else(|| vec![Reply::say("OK")]);
    let reply = script.get(step).cloned().unwrap_or_else(|| Reply::say("Done."));
    let call = state.count(&text, step);
    match reply {
        Reply::Refuse { status, body, times } if call < times => Chosen::Refused { status, body },
        Reply::Refuse { .. } => Chosen::Played { parts: vec![Part::message("recovered")], end: End::DONE, call },
        Reply::Stream { parts, end } => Chosen::Played { parts, end, call },
    }
}

/// What a person typed in a message, without what the agent adds in the person's name; none in the result of a tool.
fn words(content: &Value) -> Option<String> {
    let own = |text: &&str| !text.trim_start().starts_with('<') && !text.trim().is_empty();
    match content {
        Value::String(text) => Some(text.clone()).filter(|text| own(&text.as_str())),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).filter(own).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The text of the parts, for who does not want a stream.
pub(super) fn text(parts: &[Part]) -> String {
    let pieces = parts.iter().filter_map(|part| if let Part::Message(pieces) = part { Some(pieces) } else { None }).flatten();
    pieces.filter_map(|piece| if let Piece::Text(text) = piece { Some(text.as_str()) } else { None }).collect()
}

/// What a shell tool is given: the script's commands are named as one agent names them.
pub(super) fn shell(part: &Part) -> Value {
    let command = match part {
        Part::Call { arguments, .. } => arguments["cmd"].as_str().unwrap_or("true"),
        Part::Custom { .. } | Part::Message(_) | Part::Reasoning(_) => "echo the mock patches nothing here",
    };
    json!({ "command": command, "description": "The test asks for it." })
}
