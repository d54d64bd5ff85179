//! Stopping it: a turn in every state, and the whole process in every state.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::client::{Client, Place, updates};

/// Brings a session into a state of a turn; gives the turn's request.
type Until = fn(&mut Client, &str) -> u64;

const STATES: [(&str, Until); 5] = [
    ("streaming", |client, session| {
        let turn = client.prompt(session, "slow");
        client.wait_update("agent_message_chunk");
        turn
    }),
    ("asking", |client, session| {
        let turn = client.prompt(session, "ask");
        client.wait_permission();
        turn
    }),
    ("running a command", |client, session| {
        let turn = client.prompt(session, "wait");
        client.wait("the command", |it| {
            it["params"]["update"]["status"] == "in_progress" && it["params"]["update"].get("title").is_none()
        });
        assert_eq!(client.commands().len(), 1);
        turn
    }),
    ("silent", |client, session| {
        let turn = client.prompt(session, "hang");
        client.wait("its last words", |it| said(it).contains("the turn."));
        turn
    }),
    ("waiting behind another", |client, session| {
        client.prompt(session, "ask");
        client.wait_permission();
        client.prompt(session, "plan")
    }),
];

fn said(message: &Value) -> &str {
    message["params"]["update"]["content"]["text"].as_str().unwrap_or_default()
}

#[test]
fn a_turn_is_cancelled_in_every_state() {
    for (state, until) in STATES {
        let place = Place::new();
        // Slow enough that none of them ends by itself while it is cancelled.
        let mut client = place.start(if state == "streaming" { "50" } else { "0" });
        let session = client.session(&place.work());
        let turn = until(&mut client, &session);
        client.cancel(&session);
        assert_eq!(client.answer(turn)["result"]["stopReason"], "cancelled", "{state}");
        assert!(client.commands().is_empty(), "{state}");
        let ends = updates(&client.seen, "tool_call_update");
        assert!(ends.last().is_none_or(|end| end["status"] == "failed"), "{state}: no tool call stays open");
        // An answer that comes late allows nothing, a second cancel does nothing, and the session goes on.
        if let Some(asked) = client.seen.iter().find(|it| it["method"] == "session/request_permission").cloned() {
            client.choose(&asked, "allow_once");
        }
        client.cancel(&session);
        let (answer, after) = client.turn(&session, "fail");
        assert_eq!(answer["error"]["code"], -32603, "{state}");
        assert!(updates(&after, "tool_call_update").is_empty(), "{state}");
    }
}

#[test]
fn an_answer_of_cancelled_ends_the_turn() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    let turn = client.prompt(&session, "ask");
    let asked = client.wait_permission();
    let outcome = json!({ "outcome": { "outcome": "cancelled" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": outcome }));
    assert_eq!(client.answer(turn)["result"]["stopReason"], "cancelled");
}

#[test]
fn a_closed_session_stops_its_turn() {
    for (state, until) in STATES {
        let place = Place::new();
        let mut client = place.start(if state == "streaming" { "50" } else { "0" });
        let session = client.session(&place.work());
        let turn = until(&mut client, &session);
        let closed = client.post("session/close", &json!({ "sessionId": session }));
        assert_eq!(client.answer(turn)["result"]["stopReason"], "cancelled", "{state}");
        assert_eq!(client.answer(closed)["result"], json!({}), "{state}");
        assert!(client.commands().is_empty(), "{state}");
    }
}

#[test]
fn the_end_of_its_input_ends_it_in_every_state() {
    for (state, until) in STATES {
        let place = Place::new();
        let mut client = place.start(if state == "streaming" { "50" } else { "0" });
        let session = client.session(&place.work());
        until(&mut client, &session);
        let commands = client.commands();
        client.close_input();
        assert!(client.ended().success(), "{state}");
        for pid in commands {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{state}: {pid} is gone");
        }
    }
    let place = Place::new();
    let mut idle = place.start("0");
    idle.close_input();
    assert!(idle.ended().success());
    let mut fresh = place.start_with(&[]);
    fresh.close_input();
    assert!(fresh.ended().success());
}

#[test]
fn it_ends_although_nobody_reads_what_it_says() {
    use std::io::Write as _;

    let place = Place::new();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_demo_agent"))
        .args(["--pace", "0", "--state", place.state().to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n").unwrap();
    let wrong = "{\"id\":1,\"method\":\"no/such\"}\n".repeat(5000);
    input.write_all(wrong.as_bytes()).unwrap();
    drop(input);
    // Its output is held open, and full.
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_crash_leaves_the_turn_without_an_answer() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    let turn = client.prompt(&session, "crash");
    let rest = client.rest();
    let text = crate::client::said(&rest, "agent_message_chunk");
    assert!(text.ends_with("in the middle of this turn."), "{text}");
    assert!(rest.iter().all(|it| it["id"] != turn));
    assert_eq!(client.ended().code(), Some(70));

    // What was said before is found again.
    let mut client = place.start("0");
    client.ask("session/load", &json!({ "sessionId": session, "cwd": place.work() }));
    assert_eq!(updates(&client.seen, "user_message_chunk").len(), 1);
    assert!(client.seen.iter().any(|it| said(it).contains("ends now")));
}
