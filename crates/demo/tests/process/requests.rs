//! The requests around a turn, and what is no request at all.

use std::{fs, process::Command};

use serde_json::json;

use crate::client::{Client, Place, said, updates};

#[test]
fn the_greeting_says_what_it_can() {
    let place = Place::new();
    let mut client = place.start_with(&["--state", place.state().to_str().unwrap()]);
    assert_eq!(client.refused("session/new", &json!({ "cwd": place.work() })), -32600, "it is greeted first");
    assert_eq!(client.refused("initialize", &json!({})), -32602);
    let said = client.ask("initialize", &json!({ "protocolVersion": 7 }));
    assert_eq!(said["protocolVersion"], 1);
    assert_eq!(said["agentCapabilities"]["loadSession"], true);
    assert_eq!(said["agentCapabilities"]["sessionCapabilities"], json!({ "close": {}, "fork": {}, "list": {}, "resume": {} }));
    assert_eq!(said["authMethods"][0]["id"], "demo");
}

#[test]
fn nonsense_is_refused_and_does_no_harm() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    let mut bad = |line: &[u8], code: i64| {
        client.send_raw(line);
        client.send_raw(b"\n");
        let found = client.wait("a refusal", |message| message.get("error").is_some());
        assert_eq!(found["error"]["code"], code, "{}", String::from_utf8_lossy(&line[..line.len().min(80)]));
    };
    bad(b"not json", -32700);
    bad(b"{\"id\":1,\"method\":\"\xff\"}", -32700);
    bad("[".repeat(100_000).as_bytes(), -32700);
    bad(b"[]", -32600);
    bad(b"7", -32600);
    bad(b"{\"id\":1}", -32600);
    bad(b"{\"id\":[1],\"method\":\"x\"}", -32600);
    bad(b"{\"id\":1,\"method\":7}", -32600);
    bad(b"{\"id\":1,\"method\":\"no/such\"}", -32601);
    bad(b"{\"id\":1,\"method\":\"session/fork\",\"params\":{}}", -32602);
    bad(b"{\"id\":1,\"method\":\"session/prompt\",\"params\":[]}", -32602);
    bad(b"{\"id\":1,\"method\":\"session/new\",\"params\":{\"cwd\":\"relative\"}}", -32602);
    bad(b"{\"id\":1,\"method\":\"session/new\",\"params\":{\"cwd\":\"/no/such/folder\"}}", -32602);
    bad(b"{\"id\":1,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"x\",\"prompt\":[{\"type\":\"text\",\"text\":\"x\"}]}}", -32002);
    bad(b"{\"id\":1,\"method\":\"authenticate\",\"params\":{\"methodId\":\"other\"}}", -32602);
    bad(&vec![b'x'; 17 << 20], -32600);
    for (method, params) in [
        ("session/prompt", json!({ "sessionId": session, "prompt": "x" })),
        ("session/prompt", json!({ "sessionId": session, "prompt": [] })),
        ("session/set_mode", json!({ "sessionId": session, "modeId": "yolo" })),
        ("session/set_config_option", json!({ "sessionId": session, "configId": "model", "value": "huge" })),
        ("session/set_config_option", json!({ "sessionId": session, "configId": "size", "value": "huge" })),
    ] {
        assert_eq!(client.refused(method, &params), -32602, "{params}");
    }
    // No answer: notifications, answers to what was never asked, empty lines.
    for line in ["", "   ", r#"{"method":"$/cancel_request"}"#, r#"{"method":"session/cancel"}"#, r#"{"id":99,"result":{}}"#] {
        client.send_raw(format!("{line}\n").as_bytes());
    }
    let before = client.seen.len();
    let (answer, _) = client.turn(&session, "plan");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert!(client.seen[before..].iter().all(|message| message.get("error").is_none()));
}

#[test]
fn no_bytes_end_it() {
    let place = Place::new();
    let mut client = place.start("0");
    // A fixed sequence that looks like chance.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let whole = br#"{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"demo-1","prompt":[{"type":"text","text":"x"}]}}"#;
    for _ in 0..2000 {
        let mut line = whole.to_vec();
        for _ in 0..=(next() % 6) {
            let at = usize::try_from(next()).unwrap() % line.len();
            line[at] = next().to_le_bytes()[0];
        }
        line.push(b'\n');
        client.send_raw(&line);
    }
    let session = client.session(&place.work());
    assert_eq!(client.turn(&session, "plan").0["result"]["stopReason"], "end_turn");
}

#[test]
fn a_session_is_found_again_by_another_process() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    client.ask("session/set_mode", &json!({ "sessionId": session, "modeId": "trust" }));
    let (_, first) = client.turn(&session, "tour");
    client.close_input();
    assert!(client.ended().success());

    let mut client = place.start("0");
    let listed = client.ask("session/list", &json!({}));
    assert_eq!(listed["sessions"], json!([{ "sessionId": session, "cwd": place.work(), "title": "tour" }]));
    assert_eq!(client.ask("session/list", &json!({ "cwd": "/elsewhere" }))["sessions"], json!([]));
    let from = client.seen.len();
    client.ask("session/load", &json!({ "sessionId": session, "cwd": place.work(), "mcpServers": [] }));
    let loaded = client.seen[from..].to_vec();
    assert_eq!(said(&loaded, "user_message_chunk"), "tour");
    assert_eq!(said(&loaded, "agent_message_chunk"), said(&first, "agent_message_chunk"));
    assert_eq!(updates(&loaded, "plan"), updates(&first, "plan"));
    assert_eq!(updates(&loaded, "tool_call"), updates(&first, "tool_call"));
    // It goes on where it was: not introduced again, names not used again.
    let turn = client.prompt(&session, "ask");
    let asked = client.wait_permission();
    let calls = updates(&first, "tool_call");
    assert!(calls.iter().all(|call| call["toolCallId"] != asked["params"]["toolCall"]["toolCallId"]));
    client.choose(&asked, "allow_once");
    client.answer(turn);
    assert!(!said(&client.seen[from + loaded.len()..], "agent_message_chunk").contains("**tour**"));

    let params = |id: &str| json!({ "sessionId": id, "cwd": place.work() });
    for id in ["demo-0", "../x", "demo-../../x", ""] {
        assert_eq!(client.refused("session/load", &params(id)), -32002, "{id}");
    }
    // Resumed: nothing is told again.
    let mut client = place.start("0");
    client.ask("session/resume", &params(&session));
    assert!(updates(&client.seen, "user_message_chunk").is_empty());
    assert_eq!(client.ask("session/close", &params(&session)), json!({}));
    assert_eq!(client.refused("session/prompt", &json!({ "sessionId": session, "prompt": [{ "text": "x" }] })), -32002);
}

#[test]
fn damaged_histories_are_sessions_that_do_not_exist() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    client.turn(&session, "plan");
    fs::write(place.state().join("demo-1.jsonl"), "{\"sessionId\":\"demo-2\",\"cwd\":\"/\"}\n").unwrap();
    fs::write(place.state().join("demo-3.jsonl"), b"\xff\xfe").unwrap();
    fs::write(place.state().join("demo-4.jsonl"), "").unwrap();
    let file = place.state().join(format!("{session}.jsonl"));
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{whole}{{\"sessionUp")).unwrap();
    let listed = client.ask("session/list", &json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    client.ask("session/load", &json!({ "sessionId": session, "cwd": place.work() }));
}

#[test]
fn without_a_folder_nothing_is_kept_and_nothing_is_promised() {
    let place = Place::new();
    for arguments in [&["--forget", "--pace", "0"][..], &["--state", "/proc/no", "--pace", "0"]] {
        let mut client = place.start_with(arguments);
        let said = client.ask("initialize", &json!({ "protocolVersion": 1 }));
        assert_eq!(said["agentCapabilities"]["loadSession"], false);
        assert_eq!(said["agentCapabilities"]["sessionCapabilities"], json!({ "close": {} }));
        let session = client.session(&place.work());
        assert_eq!(client.turn(&session, "plan").0["result"]["stopReason"], "end_turn");
        let params = json!({ "sessionId": session, "cwd": place.work() });
        assert_eq!(client.refused("session/load", &params), -32601);
    }
}

fn needs_sign_in(client: &mut Client, place: &Place, session: &str) {
    let (answer, _) = client.turn(session, "plan");
    assert_eq!(answer["error"], json!({ "code": -32000, "message": "Authentication required" }));
    assert_eq!(client.refused("session/new", &json!({ "cwd": place.work() })), -32000);
}

#[test]
fn signed_out_it_refuses_until_somebody_signs_in() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    let (answer, _) = client.turn(&session, "please sign out");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    needs_sign_in(&mut client, &place, &session);
    // Another process of the same agent knows it, and signs in for both.
    let mut other = place.start("0");
    let load = json!({ "sessionId": session, "cwd": place.work() });
    assert_eq!(other.refused("session/load", &load), -32000);
    other.ask("authenticate", &json!({ "methodId": "demo" }));
    assert_eq!(client.turn(&session, "plan").0["result"]["stopReason"], "end_turn");

    let (answer, _) = client.turn(&session, "need sign-in");
    assert_eq!(answer["error"]["code"], -32000);
    needs_sign_in(&mut client, &place, &session);
    client.ask("authenticate", &json!({ "methodId": "demo" }));
    client.ask("logout", &json!({}));
    needs_sign_in(&mut client, &place, &session);
}

#[test]
fn settings_are_offered_and_set() {
    let place = Place::new();
    let mut client = place.start("0");
    let answer = client.ask("session/new", &json!({ "cwd": place.work(), "mcpServers": [] }));
    assert_eq!(answer["modes"]["currentModeId"], "ask");
    assert_eq!(answer["configOptions"][0]["currentValue"], "quick");
    let session = answer["sessionId"].clone();
    let commands = client.wait_update("available_commands_update");
    assert!(commands["availableCommands"].as_array().unwrap().iter().any(|command| command["name"] == "slow"));
    let params = json!({ "sessionId": session, "configId": "model", "value": "careful" });
    let set = client.ask("session/set_config_option", &params);
    assert_eq!(set["configOptions"][0]["currentValue"], "careful");
}

#[test]
fn it_says_how_it_is_started() {
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_demo_agent")).args(arguments).stdin(std::process::Stdio::null()).output().unwrap()
    };
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    for (word, what) in turnkeep_demo::WORDS {
        assert!(help.contains(word) && help.contains(what), "{word}");
    }
    for wrong in [&["--pace", "fast"][..], &["--pace"], &["--what"]] {
        let ended = run(wrong);
        assert!(!ended.status.success() && !ended.stderr.is_empty(), "{wrong:?}");
    }
    assert_eq!(run(&["--forget"]).stdout, Vec::<u8>::new(), "the end of its input ends it");
}
