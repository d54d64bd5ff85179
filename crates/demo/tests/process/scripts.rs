//! What a person sees of each script.

use std::fs;

use serde_json::{Value, json};
use turnkeep_demo::WORDS;

use crate::client::{Client, Place, said, updates};

fn tool_end(messages: &[Value], call: &Value) -> Value {
    let all = updates(messages, "tool_call_update");
    all.into_iter().rfind(|update| update["toolCallId"] == *call).unwrap()
}

#[test]
fn the_tour_asks_twice_runs_a_command_and_writes_a_file() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    let file = place.work().join("turnkeep-demo/tour.md");
    let turn = client.prompt(&session, "hello there");

    let command = client.wait_permission();
    assert_eq!(command["params"]["toolCall"]["kind"], "execute");
    assert_eq!(command["params"]["sessionId"], session);
    client.choose(&command, "allow_once");
    let change = client.wait_permission();
    assert_eq!(change["params"]["toolCall"]["kind"], "edit");
    assert!(!file.exists(), "nothing is written before it was allowed");
    assert_eq!(change["params"]["toolCall"]["content"][0]["type"], "diff", "it is shown before it is allowed");
    client.choose(&change, "allow_once");
    assert_eq!(client.answer(turn)["result"]["stopReason"], "end_turn");

    let seen = &client.seen;
    let ran = tool_end(seen, &command["params"]["toolCall"]["toolCallId"]);
    assert_eq!(ran["status"], "completed");
    assert!(ran["content"][0]["content"]["text"].as_str().unwrap().starts_with("Linux "), "{ran}");
    let wrote = tool_end(seen, &change["params"]["toolCall"]["toolCallId"]);
    assert_eq!(wrote["content"][0]["type"], "diff");
    assert_eq!(wrote["content"][0]["oldText"], Value::Null);
    assert_eq!(wrote["content"][0]["newText"], fs::read_to_string(&file).unwrap());
    assert_eq!(wrote["content"][0]["path"], file.to_str().unwrap());

    let plans = updates(seen, "plan");
    let done = |plan: &Value| plan["entries"].as_array().unwrap().iter().filter(|it| it["status"] == "completed").count();
    assert_eq!(plans.iter().map(done).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(updates(seen, "agent_message_chunk").len() > 10, "in several parts");
    assert!(said(seen, "agent_message_chunk").contains("That was the tour."));
    assert!(said(seen, "agent_thought_chunk").contains("First a plan"));
    assert!(updates(seen, "usage_update")[0]["used"].as_u64().unwrap() > 0);
}

#[test]
fn what_is_refused_is_not_done() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    let turn = client.prompt(&session, "tour");
    let command = client.wait_permission();
    client.choose(&command, "reject_once");
    // An option that was not offered allows nothing; neither does an error.
    let change = client.wait_permission();
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "whatever" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": change["id"], "result": outcome }));
    assert_eq!(client.answer(turn)["result"]["stopReason"], "end_turn");
    let text = said(&client.seen, "agent_message_chunk");
    assert!(text.contains("Then I do not look.") && text.contains("Then I write nothing."), "{text}");
    let refused = tool_end(&client.seen, &command["params"]["toolCall"]["toolCallId"]);
    assert_eq!(refused["status"], "failed");
    assert_eq!(fs::read_dir(place.work()).unwrap().count(), 0);

    let turn = client.prompt(&session, "ask");
    let asked = client.wait_permission();
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -32603, "message": "no" } }));
    client.answer(turn);
    assert!(said(&client.seen, "agent_message_chunk").contains("You refused"));
}

#[test]
fn what_is_always_allowed_is_asked_once_and_a_mode_asks_never() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    let turn = client.prompt(&session, "tour");
    for _ in 0..2 {
        let asked = client.wait_permission();
        client.choose(&asked, "allow_always");
    }
    client.answer(turn);
    let asked = |messages: &[Value]| messages.iter().any(|it| it["method"] == "session/request_permission");
    assert!(!asked(&client.turn(&session, "tour").1));

    let other = client.session(&place.work());
    client.ask("session/set_mode", &json!({ "sessionId": other, "modeId": "trust" }));
    let (answer, messages) = client.turn(&other, "tour");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert!(!asked(&messages));
    // The negative of both: a session in which nothing was set asks.
    let third = client.session(&place.work());
    client.prompt(&third, "tour");
    client.wait_permission();
}

#[test]
fn its_first_answer_says_what_can_be_typed_and_its_second_does_not() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    client.ask("session/set_mode", &json!({ "sessionId": session, "modeId": "trust" }));
    let first = said(&client.turn(&session, "tour").1, "agent_message_chunk");
    for (word, what) in WORDS {
        assert!(first.contains(&format!("**{word}** — {what}")), "{word} in {first}");
    }
    assert!(!said(&client.turn(&session, "tour").1, "agent_message_chunk").contains("**tour**"));
}

#[test]
fn every_word_that_ends_by_itself_ends() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    client.ask("session/set_mode", &json!({ "sessionId": session, "modeId": "trust" }));
    let ends = |client: &mut Client, text: &str| client.turn(&session, text);
    for word in ["ask", "plan", "slow", "long", "big", "tour", "client", "Please be slow!", "/plan"] {
        let (answer, messages) = ends(&mut client, word);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{word}");
        assert!(!messages.is_empty(), "{word}");
    }
    let (_, long) = ends(&mut client, "long");
    assert!(said(&long, "agent_message_chunk").contains("## Part 100"));
    let (_, big) = ends(&mut client, "big");
    let end = updates(&big, "tool_call_update").into_iter().find(|it| it["status"] == "completed").unwrap();
    assert!(end["content"][0]["content"]["text"].as_str().unwrap().contains("\n20000\n"));
    let (failed, _) = ends(&mut client, "fail");
    assert_eq!(failed["error"]["code"], -32603);
    assert!(failed["error"]["data"]["details"].as_str().unwrap().contains("asked to fail"));
}

#[test]
fn two_messages_are_answered_one_after_the_other() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    let one = client.prompt(&session, "ask");
    let asked = client.wait_permission();
    let two = client.prompt(&session, "plan");
    client.choose(&asked, "allow_once");
    client.answer(one);
    let between = updates(&client.seen, "plan").len();
    client.answer(two);
    assert_eq!(between, 0, "the second begins after the first");
    assert_eq!(updates(&client.seen, "plan").len(), 6);
}

#[test]
fn it_takes_its_time() {
    let place = Place::new();
    let mut client = place.start("20");
    let session = client.session(&place.work());
    let begun = std::time::Instant::now();
    client.turn(&session, "plan");
    // The pauses of the plan alone are sixty steps.
    assert!(begun.elapsed().as_millis() >= 60 * 20, "{:?}", begun.elapsed());
}

#[cfg(unix)]
#[test]
fn it_does_not_write_through_a_link() {
    use std::os::unix::fs::symlink;

    let place = Place::new();
    let elsewhere = place.root.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, place.work().join("turnkeep-demo")).unwrap();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    client.ask("session/set_mode", &json!({ "sessionId": session, "modeId": "trust" }));
    let (answer, messages) = client.turn(&session, "tour");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let ends = updates(&messages, "tool_call_update");
    let text = ends.last().unwrap()["content"][0]["content"]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("not written"), "{text}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

    // A file that is a link is replaced, and what it leads to is left alone.
    fs::remove_file(place.work().join("turnkeep-demo")).unwrap();
    fs::create_dir(place.work().join("turnkeep-demo")).unwrap();
    let precious = elsewhere.join("precious");
    fs::write(&precious, "mine").unwrap();
    symlink(&precious, place.work().join("turnkeep-demo/tour.md")).unwrap();
    client.turn(&session, "tour");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
    assert!(fs::read_to_string(place.work().join("turnkeep-demo/tour.md")).unwrap().contains("The tour"));
}

#[test]
fn what_its_client_offers_it_has_done_by_it_and_of_another_it_asks_nothing() {
    let place = Place::new();
    let mut client = place.start("0");
    let session = client.session(&place.work());
    client.ask("session/set_mode", &json!({ "sessionId": session, "modeId": "trust" }));
    let (_, messages) = client.turn(&session, "client");
    let ends = updates(&messages, "tool_call_update").into_iter().filter(|it| it["status"] == "failed");
    assert_eq!(ends.count(), 4);
    assert!(
        !messages.iter().any(|it| it["method"].as_str().is_some_and(|it| it.starts_with("fs/") || it.starts_with("terminal/")))
    );

    let mut client = place.start_with(&["--pace", "0", "--forget"]);
    let offers = json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true });
    client.ask("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": offers }));
    let session = client.session(&place.work());
    client.ask("session/set_mode", &json!({ "sessionId": session, "modeId": "trust" }));
    let turn = client.prompt(&session, "client");
    let asks = |client: &mut Client, method: &str| client.wait(method, |message| message["method"] == method);
    let reply = |client: &mut Client, to: &Value, result: Value| {
        client.send(&json!({ "jsonrpc": "2.0", "id": to["id"], "result": result }))
    };
    let file = place.work().join("turnkeep-demo/client.md");
    let write = asks(&mut client, "fs/write_text_file");
    assert_eq!((&write["params"]["path"], &write["params"]["sessionId"]), (&json!(file), &json!(session)));
    reply(&mut client, &write, json!({}));
    let read = asks(&mut client, "fs/read_text_file");
    reply(&mut client, &read, json!({ "content": "what it reads" }));
    let create = asks(&mut client, "terminal/create");
    reply(&mut client, &create, json!({ "terminalId": "t" }));
    let wait = asks(&mut client, "terminal/wait_for_exit");
    reply(&mut client, &wait, json!({ "exitCode": 0 }));
    let output = asks(&mut client, "terminal/output");
    reply(&mut client, &output, json!({ "output": "what it says", "truncated": false }));
    assert_eq!(asks(&mut client, "terminal/release")["params"]["terminalId"], "t");
    let outside = asks(&mut client, "fs/read_text_file");
    client.send(&json!({ "jsonrpc": "2.0", "id": outside["id"], "error": { "code": -32602, "message": "not yours" } }));
    assert_eq!(client.answer(turn)["result"]["stopReason"], "end_turn");
    assert!(!file.exists(), "it touches nothing itself");
    let shown = updates(&client.seen, "tool_call_update").iter().map(Value::to_string).collect::<String>();
    for text in ["what it reads", "what it says", "The client refused: not yours"] {
        assert!(shown.contains(text), "{text} in {shown}");
    }
}
