//! Whatever the process says: no panic, one end for each turn, and nothing that grows without bound.

use proptest::prelude::*;
use serde_json::{Value, json};
use turnkeep_model::port::{AgentCommand, AgentEvent};

use super::{Play, SESSION, TURN, open, start_turn};

/// A JSON value of any shape.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["s", "text", "diff", "completed", "execute", "c", "end_turn"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let names = prop::sample::select(vec![
            "sessionId",
            "update",
            "sessionUpdate",
            "content",
            "type",
            "text",
            "toolCallId",
            "status",
            "kind",
            "rawInput",
            "rawOutput",
            "title",
            "options",
            "optionId",
            "modes",
            "configOptions",
            "entries",
            "path",
            "oldText",
            "newText",
            "_meta",
            "stopReason",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let methods = prop::sample::select(vec![
        "session/update",
        "session/request_permission",
        "_auth/status_update",
        "$/cancel_request",
        "fs/read_text_file",
    ]);
    let kinds = prop::sample::select(vec![
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "usage_update",
        "config_option_update",
        "current_mode_update",
        "session_info_update",
    ]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        (methods, value(), any::<bool>()).prop_map(|(method, params, asks)| {
            let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            if asks {
                message["id"] = json!(3);
            }
            message.to_string().into_bytes()
        }),
        (kinds, value()).prop_map(|(kind, members)| {
            let mut update = if members.is_object() { members } else { json!({"content": members}) };
            update["sessionUpdate"] = json!(kind);
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
                .to_string()
                .into_bytes()
        }),
        (0_u64..8, value(), any::<bool>()).prop_map(|(id, body, fails)| {
            let name = if fails { "error" } else { "result" };
            json!({"id": id, name: body}).to_string().into_bytes()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_may_be_said_at_any_time(stage in 0_u8..4, lines in prop::collection::vec(line(), 0..24)) {
        let mut play = match stage {
            0 => Play::new("codex-acp", &crate::port::Purpose::Serve { needs_key: false }),
            1 => Play::ready("claude-agent-acp", super::EVERYTHING),
            2 => Play::open("gemini"),
            _ => Play::running("codex-acp"),
        };
        let started = usize::from(stage == 3);
        for (n, line) in lines.iter().enumerate() {
            play.line(line);
            play.pass(200);
            if n == 10 {
                let _ = play.command(&AgentCommand::Interrupt { session: SESSION, turn: TURN });
                let _ = play.command(&open(None));
                let _ = play.command(&start_turn(2, "x"));
                let _ = play.command(&AgentCommand::ReleaseSession { session: SESSION });
            }
        }
        play.close();
        let ends = |wanted: u64| play.events.iter().filter(|event| {
            matches!(event, AgentEvent::TurnEnded { provider_turn, .. } if provider_turn.as_str() == format!("m{wanted}"))
        }).count();
        prop_assert_eq!(ends(1), started, "one end for the turn that began");
    }
}

#[test]
fn a_flood_of_odd_lines_stays_small_and_an_oversized_one_is_counted() {
    let mut play = Play::running("gemini");
    play.take();
    for _ in 0..1_000 {
        play.line(b"garbage");
    }
    assert_eq!(play.take().len(), 10, "told at each power of two");
    use crate::port::Protocol as _;
    play.machine.receive_oversized(play.now, 20_000_000);
    play.line(b"\xff\xfe");
    play.line(&[b'['; 100_000]);
    let long = "x".repeat(20 << 20);
    play.update(&format!(r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{long}"}}}}"#));
    play.result("session/prompt", r#"{"stopReason":"end_turn"}"#);
    assert!(play.outcome().is_some());
}
