//! Plays a script as the chunks of a chat completion.

use std::io;

use serde_json::{Value, json};

use super::State;
use super::chosen::{self, Chosen, Typed};
use super::http::{Request, Wire};
use super::responses::After;
use super::script::{End, Part, Piece};

pub(super) fn answer(state: &State, wire: &mut Wire, request: &Request) -> io::Result<After> {
    let body = request.json();
    let used = |message: &Value| message["tool_calls"].as_array().is_some_and(|all| !all.is_empty());
    match chosen::reply(state, &body, &Typed { role: "user", used }) {
        Chosen::Refused { status, body } => {
            wire.json(status, &body)?;
            Ok(After::Keep)
        }
        Chosen::Played { parts, end, call } if body["stream"] == true => play(state, wire, &parts, &end, call),
        Chosen::Played { parts, .. } => {
            let message = json!({ "role": "assistant", "content": chosen::text(&parts) });
            let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
            wire.json(
                200,
                &json!({
                    "id": "chat_mock", "object": "chat.completion", "created": 1, "model": "mock", "choices": [choice],
                    "usage": usage(20),
                }),
            )?;
            Ok(After::Keep)
        }
    }
}

fn usage(output: u64) -> Value {
    json!({ "prompt_tokens": 100, "completion_tokens": output, "total_tokens": 100 + output })
}

fn chunk(wire: &mut Wire, number: u64, delta: &Value, more: &Value) -> io::Result<()> {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": more["finish"] });
    let mut data = json!({
        "id": format!("chat_{number}"), "object": "chat.completion.chunk", "created": 1, "model": "mock",
        "choices": [choice],
    });
    if !more["usage"].is_null() {
        data["usage"] = more["usage"].clone();
    }
    wire.data(&data.to_string())
}

fn play(state: &State, wire: &mut Wire, parts: &[Part], end: &End, call: u32) -> io::Result<After> {
    let number = state.next_number();
    wire.begin_events()?;
    chunk(wire, number, &json!({ "role": "assistant", "content": "" }), &Value::Null)?;
    let mut calls = 0;
    for (index, part) in parts.iter().enumerate() {
        match part {
            Part::Message(pieces) => {
                for piece in pieces {
                    match piece {
                        Piece::Gate(name) => state.wait_at(name),
                        Piece::Pause(time) => state.pause(*time),
                        Piece::Text(text) => chunk(wire, number, &json!({ "content": text }), &Value::Null)?,
                    }
                }
            }
            Part::Reasoning(text) => chunk(wire, number, &json!({ "reasoning_content": text }), &Value::Null)?,
            Part::Call { .. } | Part::Custom { .. } => {
                let function = json!({ "name": "bash", "arguments": chosen::shell(part).to_string() });
                let one =
                    json!({ "index": calls, "id": format!("call_{number}_{index}"), "type": "function", "function": function });
                chunk(wire, number, &json!({ "tool_calls": [one] }), &Value::Null)?;
                calls += 1;
            }
        }
    }
    let (why, output) = match end {
        End::Cut { times } if call < *times => return Ok(After::Close),
        End::Hang => {
            state.wait_for_end();
            return Ok(After::Close);
        }
        End::Failed { code, message } => {
            wire.data(&json!({ "error": { "code": code, "message": message } }).to_string())?;
            wire.end_events()?;
            return Ok(After::Keep);
        }
        End::Incomplete { .. } => ("length", 20),
        End::Completed { output_tokens, .. } => (if calls > 0 { "tool_calls" } else { "stop" }, *output_tokens),
        End::Cut { .. } => (if calls > 0 { "tool_calls" } else { "stop" }, 20),
    };
    chunk(wire, number, &json!({}), &json!({ "finish": why, "usage": usage(output) }))?;
    wire.data("[DONE]")?;
    wire.end_events()?;
    Ok(After::Keep)
}
