//! Plays a script as the events of a Responses stream.
//!
//! Which reply it is follows from the request alone, so that a retry gets the same place of the script again.

use std::collections::BTreeSet;
use std::io;

use serde_json::{Value, json};

use super::State;
use super::http::{Request, Wire};
use super::script::{self, End, Part, Piece, Reply};

/// What became of the connection.
pub(super) enum After {
    Keep,
    Close,
}

/// The last message that a person wrote, and how many replies the model has given since.
fn place(request: &Value) -> (String, usize) {
    let none = Vec::new();
    let input = request.get("input").and_then(Value::as_array).unwrap_or(&none);
    let typed = |item: &Value| {
        let text = user_text(item)?;
        // Context that the agent adds in the person's name is marked up or is a heading.
        (!text.trim_start().starts_with(['<', '#'])).then_some(text)
    };
    let Some((at, text)) = input.iter().enumerate().rev().find_map(|(at, item)| Some((at, typed(item)?))) else {
        return (String::new(), 0);
    };
    let answered: BTreeSet<&str> = input
        .iter()
        .skip(at)
        .filter(|item| item["type"].as_str().is_some_and(|kind| kind.ends_with("_output")))
        .filter_map(|item| item["call_id"].as_str()?.rsplit_once('_').map(|(reply, _)| reply))
        .collect();
    (text, answered.len())
}

fn user_text(item: &Value) -> Option<String> {
    if item.get("role")?.as_str()? != "user" {
        return None;
    }
    match item.get("content")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(|part| part["text"].as_str()).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

pub(super) fn answer(state: &State, wire: &mut Wire, request: &Request) -> io::Result<After> {
    let (text, step) = place(&request.json());
    let script = state.script_for(&text).or_else(|| script::parse(&text));
    let script = script.unwrap_or_else(|| vec![Reply::say("OK")]);
    let reply = script.get(step).cloned().unwrap_or_else(|| Reply::say("Done."));
    let call = state.count(&text, step);
    match reply {
        Reply::Refuse { status, body, times } if call < times => {
            wire.json(status, &body)?;
            Ok(After::Keep)
        }
        Reply::Refuse { .. } => play(state, wire, &[Part::message("recovered")], &End::DONE, call),
        Reply::Stream { parts, end } => play(state, wire, &parts, &end, call),
    }
}

fn play(state: &State, wire: &mut Wire, parts: &[Part], end: &End, call: u32) -> io::Result<After> {
    let number = state.next_number();
    let response = format!("resp_{number}");
    wire.begin_events()?;
    let begun = json!({ "id": response, "object": "response", "status": "in_progress" });
    wire.event(&json!({ "type": "response.created", "response": begun }))?;
    for (index, part) in parts.iter().enumerate() {
        let id = format!("{number}_{index}");
        match part {
            Part::Message(pieces) => message(state, wire, &format!("msg_{id}"), index, pieces)?,
            Part::Reasoning(text) => reasoning(wire, &format!("rs_{id}"), index, text)?,
            Part::Call { name, arguments } => {
                let mut item = json!({
                    "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"),
                    "name": name, "arguments": "",
                });
                added(wire, index, &item)?;
                item["arguments"] = arguments.to_string().into();
                done(wire, index, &item)?;
            }
            Part::Custom { name, input } => {
                let mut item = json!({
                    "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": format!("call_{id}"),
                    "name": name, "input": "", "status": "completed",
                });
                added(wire, index, &item)?;
                item["input"] = input.as_str().into();
                done(wire, index, &item)?;
            }
        }
    }
    finish(state, wire, &response, end, call)
}

fn finish(state: &State, wire: &mut Wire, id: &str, end: &End, call: u32) -> io::Result<After> {
    let (kind, status, more) = match end {
        End::Cut { times } if call < *times => return Ok(After::Close),
        End::Hang => {
            state.wait_for_end();
            return Ok(After::Close);
        }
        End::Cut { .. } => ("response.completed", "completed", json!({ "usage": usage(100, 20) })),
        End::Completed { input_tokens, output_tokens } => {
            let usage = usage(*input_tokens, *output_tokens);
            ("response.completed", "completed", json!({ "usage": usage }))
        }
        End::Failed { code, message } => {
            let error = json!({ "code": code, "message": message });
            ("response.failed", "failed", json!({ "error": error }))
        }
        End::Incomplete { reason } => {
            let details = json!({ "reason": reason });
            ("response.incomplete", "incomplete", json!({ "incomplete_details": details }))
        }
    };
    let mut response = json!({ "id": id, "object": "response", "status": status, "output": [] });
    if let (Some(response), Value::Object(more)) = (response.as_object_mut(), more) {
        response.extend(more);
    }
    wire.event(&json!({ "type": kind, "response": response }))?;
    wire.end_events()?;
    Ok(After::Keep)
}

fn usage(input: u64, output: u64) -> Value {
    json!({
        "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": output, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": input + output,
    })
}

fn added(wire: &mut Wire, index: usize, item: &Value) -> io::Result<()> {
    wire.event(&json!({ "type": "response.output_item.added", "output_index": index, "item": item }))
}

fn done(wire: &mut Wire, index: usize, item: &Value) -> io::Result<()> {
    wire.event(&json!({ "type": "response.output_item.done", "output_index": index, "item": item }))
}

fn message(state: &State, wire: &mut Wire, id: &str, index: usize, pieces: &[Piece]) -> io::Result<()> {
    let mut item = json!({
        "type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": [],
    });
    added(wire, index, &item)?;
    let mut whole = String::new();
    for piece in pieces {
        match piece {
            Piece::Gate(name) => state.wait_at(name),
            Piece::Pause(time) => state.pause(*time),
            Piece::Text(text) => {
                whole.push_str(text);
                wire.event(&json!({
                    "type": "response.output_text.delta", "item_id": id, "output_index": index,
                    "content_index": 0, "delta": text,
                }))?;
            }
        }
    }
    item["status"] = "completed".into();
    item["content"] = json!([{ "type": "output_text", "text": whole, "annotations": [] }]);
    done(wire, index, &item)
}

fn reasoning(wire: &mut Wire, id: &str, index: usize, text: &str) -> io::Result<()> {
    let mut item = json!({ "type": "reasoning", "id": id, "summary": [] });
    added(wire, index, &item)?;
    let part = json!({ "type": "summary_text", "text": "" });
    let at = json!({ "item_id": id, "output_index": index, "summary_index": 0 });
    let event = |kind: &str, more: Value| {
        let mut event = json!({ "type": kind });
        for source in [&at, &more] {
            if let (Some(event), Some(source)) = (event.as_object_mut(), source.as_object()) {
                event.extend(source.clone());
            }
        }
        event
    };
    wire.event(&event("response.reasoning_summary_part.added", json!({ "part": part })))?;
    wire.event(&event("response.reasoning_summary_text.delta", json!({ "delta": text })))?;
    item["summary"] = json!([{ "type": "summary_text", "text": text }]);
    item["encrypted_content"] = "sealed by the mock".into();
    done(wire, index, &item)
}
