//! Plays a script as the events of a Messages stream.

use std::io;

use serde_json::{Value, json};

use super::State;
use super::chosen::{self, Chosen, Typed};
use super::http::{Request, Wire};
use super::responses::After;
use super::script::{End, Part, Piece};

pub(super) fn answer(state: &State, wire: &mut Wire, request: &Request) -> io::Result<After> {
    let body = request.json();
    if request.path.ends_with("/count_tokens") {
        wire.json(200, &json!({ "input_tokens": 10 }))?;
        return Ok(After::Keep);
    }
    let used = |message: &Value| message["content"].as_array().is_some_and(|all| all.iter().any(|it| it["type"] == "tool_use"));
    match chosen::reply(state, &body, &Typed { role: "user", used }) {
        Chosen::Refused { status, body } => {
            wire.json(status, &body)?;
            Ok(After::Keep)
        }
        Chosen::Played { parts, end, call } if body["stream"] == true => play(state, wire, &parts, &end, call),
        Chosen::Played { parts, .. } => {
            let content = json!([{ "type": "text", "text": chosen::text(&parts) }]);
            wire.json(200, &whole(&content, &json!("end_turn")))?;
            Ok(After::Keep)
        }
    }
}

fn whole(content: &Value, why: &Value) -> Value {
    json!({
        "id": "msg_mock", "type": "message", "role": "assistant", "model": "mock", "content": content,
        "stop_reason": why, "stop_sequence": null, "usage": { "input_tokens": 100, "output_tokens": 20 },
    })
}

fn play(state: &State, wire: &mut Wire, parts: &[Part], end: &End, call: u32) -> io::Result<After> {
    let number = state.next_number();
    wire.begin_events()?;
    let mut message = whole(&json!([]), &Value::Null);
    message["id"] = format!("msg_{number}").into();
    wire.event(&json!({ "type": "message_start", "message": message }))?;
    let mut uses = false;
    for (index, part) in parts.iter().enumerate() {
        match part {
            Part::Message(pieces) => {
                start(wire, index, &json!({ "type": "text", "text": "" }))?;
                for piece in pieces {
                    match piece {
                        Piece::Gate(name) => state.wait_at(name),
                        Piece::Pause(time) => state.pause(*time),
                        Piece::Text(text) => delta(wire, index, &json!({ "type": "text_delta", "text": text }))?,
                    }
                }
            }
            Part::Reasoning(text) => {
                start(wire, index, &json!({ "type": "thinking", "thinking": "", "signature": "" }))?;
                delta(wire, index, &json!({ "type": "thinking_delta", "thinking": text }))?;
                delta(wire, index, &json!({ "type": "signature_delta", "signature": "sealed by the mock" }))?;
            }
            Part::Call { .. } | Part::Custom { .. } => {
                uses = true;
                let id = format!("toolu_{number}_{index}");
                start(wire, index, &json!({ "type": "tool_use", "id": id, "name": "Bash", "input": {} }))?;
                let input = chosen::shell(part).to_string();
                delta(wire, index, &json!({ "type": "input_json_delta", "partial_json": input }))?;
            }
        }
        let unfinished = index + 1 == parts.len() && matches!(end, End::Hang);
        if !unfinished {
            wire.event(&json!({ "type": "content_block_stop", "index": index }))?;
        }
    }
    finish(state, wire, end, call, uses)
}

fn finish(state: &State, wire: &mut Wire, end: &End, call: u32, uses: bool) -> io::Result<After> {
    let (why, output) = match end {
        End::Cut { times } if call < *times => return Ok(After::Close),
        End::Hang => {
            state.wait_for_end();
            return Ok(After::Close);
        }
        End::Failed { code, message } => {
            wire.event(&json!({ "type": "error", "error": { "type": code, "message": message } }))?;
            wire.end_events()?;
            return Ok(After::Keep);
        }
        End::Incomplete { .. } => ("max_tokens", 20),
        End::Completed { output_tokens, .. } => (if uses { "tool_use" } else { "end_turn" }, *output_tokens),
        End::Cut { .. } => (if uses { "tool_use" } else { "end_turn" }, 20),
    };
    let changed = json!({ "stop_reason": why, "stop_sequence": null });
    wire.event(&json!({ "type": "message_delta", "delta": changed, "usage": { "output_tokens": output } }))?;
    wire.event(&json!({ "type": "message_stop" }))?;
    wire.end_events()?;
    Ok(After::Keep)
}

fn start(wire: &mut Wire, index: usize, block: &Value) -> io::Result<()> {
    wire.event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
}

fn delta(wire: &mut Wire, index: usize, delta: &Value) -> io::Result<()> {
    wire.event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}
