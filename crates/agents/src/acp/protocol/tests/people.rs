//! Questions, interrupts and the words for failures.

use turnkeep_model::{
    SessionId, TurnId,
    port::{AgentCommand, AgentEvent, Choice, FailureClass, ItemBody, TurnOutcome},
};

use super::{Play, SESSION, TURN, answer, start_turn};

fn ask(options: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"c","kind":"execute","title":"ls"}},"options":{options}}}}}"#
    )
}

fn choices(play: &Play) -> Vec<Choice> {
    let asked = play.events.iter().find_map(|event| match event {
        AgentEvent::ApprovalRequested { ask, .. } => Some(ask.choices.clone()),
        _ => None,
    });
    asked.expect("it asked")
}

const ALL: &str = r#"[{"optionId":"1","kind":"reject_always"},{"optionId":"2","kind":"reject_once"},{"optionId":"3","kind":"allow_always","name":"For ever"},{"optionId":"4","kind":"allow_once"},{"optionId":"5","kind":"of later"}]"#;

#[test]
fn an_option_is_chosen_by_its_kind() {
    let always = Choice::AllowAlways { rule: Vec::new() };
    for (choice, id) in [(Choice::Allow, "4"), (always.clone(), "3"), (Choice::Deny, "2")] {
        let mut play = Play::running("gemini");
        play.line(ask(ALL).as_bytes());
        assert_eq!(choices(&play), [Choice::Allow, always.clone(), Choice::DenyAndStop, Choice::Deny]);
        play.command(&answer("7", choice.clone())).unwrap();
        play.command(&answer("7", choice)).unwrap();
        let answers: Vec<_> = play.sent.iter().filter(|sent| sent["id"] == 7).collect();
        let [only] = answers.as_slice() else { panic!("answered once: {answers:?}") };
        assert_eq!(only["result"]["outcome"]["optionId"], id);
    }
    // None of a kind that is known: all that is left is to stop.
    let mut play = Play::running("gemini");
    play.line(ask(r#"[{"optionId":"x","kind":"of later"}]"#).as_bytes());
    assert_eq!(choices(&play), [Choice::DenyAndStop]);
    play.command(&answer("7", Choice::DenyAndStop)).unwrap();
    assert!(play.sent.iter().any(|sent| sent["result"]["outcome"]["outcome"] == "cancelled"));
    assert!(play.sent.iter().any(|sent| sent["method"] == "session/cancel"));
}

#[test]
fn an_interrupt_takes_its_questions_along_and_none_comes_after_it() {
    let mut play = Play::running("gemini");
    play.line(ask(ALL).as_bytes());
    play.command(&AgentCommand::Interrupt { session: SESSION, turn: TURN }).unwrap();
    let cancelled = |play: &Play| play.sent.iter().filter(|sent| sent["result"]["outcome"]["outcome"] == "cancelled").count();
    assert_eq!(cancelled(&play), 1);
    play.line(ask(ALL).as_bytes());
    assert_eq!(cancelled(&play), 2, "a question after it is answered at once");
    play.command(&answer("7", Choice::Allow)).unwrap();
    assert!(!play.sent.iter().any(|sent| sent["result"]["outcome"]["outcome"] == "selected"), "a late yes reaches nobody");
    play.result("session/prompt", r#"{"stopReason":"cancelled"}"#);
    assert_eq!(play.outcome(), Some(TurnOutcome::Interrupted));
}

#[test]
fn a_withdrawn_question_is_moot_and_what_nobody_here_can_answer_is_refused() {
    let mut play = Play::running("gemini");
    play.line(ask(ALL).as_bytes());
    play.line(br#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}"#);
    assert!(matches!(play.take().last(), Some(AgentEvent::ApprovalResolved { .. })));
    for method in ["elicitation/create", "fs/delete", "terminal/input"] {
        play.line(format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{{"path":"/etc/passwd"}}}}"#).as_bytes());
        assert_eq!(play.sent.last().unwrap()["error"]["code"], -32601, "{method}");
    }
}

/// Identical causes, in the shapes in which they were recorded.
#[test]
fn every_shape_of_a_failure_is_told_in_the_same_words() {
    let refused = |agent: &str, error: &str| {
        let mut play = Play::running(agent);
        play.refuse("session/prompt", error);
        play.outcome()
    };
    let text = |agent: &str, text: &str| {
        let mut play = Play::running(agent);
        let text = serde_json::Value::from(text);
        play.update(&format!(r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":{text}}}}}"#));
        play.result("session/prompt", r#"{"stopReason":"end_turn"}"#);
        play.outcome()
    };
    let required = r#"{"code":-32000,"message":"Authentication required"}"#;
    let data =
        r#"{"code":-32603,"message":"Internal error: no key","data":{"service":"session","errorName":"ProviderAuthError"}}"#;
    for (outcome, words) in [
        (refused("codex-acp", required), "Codex (OpenAI) isn't connected. Sign in to Codex (ACP), then send your message again."),
        (
            refused("claude-agent-acp", required),
            "Claude Code (Anthropic) isn't connected. Sign in to Claude Code (ACP), then send your message again.",
        ),
        (refused("opencode", data), "OpenCode isn't connected. Sign in to OpenCode, then send your message again."),
        (
            text("codex-acp", "unexpected status 401 Unauthorized: x, url: http://h\n\n"),
            "Codex (OpenAI) isn't connected. Sign in to Codex (ACP), then send your message again.",
        ),
    ] {
        let Some(TurnOutcome::Failed(failure)) = outcome else { panic!("{outcome:?}") };
        assert_eq!((failure.class, failure.message.as_str()), (FailureClass::SignedOut, words));
    }
    // Everything else keeps its own text.
    let rejected = r#"{"code":-32603,"message":"Internal error: Incorrect API key provided","data":{"service":"session","errorName":"APIError"}}"#;
    let busy =
        r#"{"code":-32603,"message":"Internal error: API Error: Request rejected (429)","data":{"errorKind":"rate_limit"}}"#;
    for (outcome, class, words) in [
        (refused("opencode", rejected), FailureClass::Other, "Incorrect API key provided"),
        (refused("claude-agent-acp", busy), FailureClass::RateLimit, "API Error: Request rejected (429)"),
        (
            text("codex-acp", "unexpected status 403 Forbidden: no access, url: http://h\n\n"),
            FailureClass::Other,
            "unexpected status 403 Forbidden: no access, url: http://h",
        ),
        (
            text("codex-acp", "We’re currently experiencing high demand, which may cause temporary errors.\n\n"),
            FailureClass::Overloaded,
            "We’re currently experiencing high demand, which may cause temporary errors.",
        ),
    ] {
        let Some(TurnOutcome::Failed(failure)) = outcome else { panic!("{outcome:?}") };
        assert_eq!((failure.class, failure.message.as_str()), (class, words));
    }
    // The model's own words about such things are words.
    assert_eq!(text("gemini", "unexpected status 403"), Some(TurnOutcome::Completed));
    let mut play = Play::running("codex-acp");
    play.update(
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"unexpected status 403"}}"#,
    );
    play.result("session/prompt", r#"{"stopReason":"end_turn"}"#);
    assert_eq!(play.outcome(), Some(TurnOutcome::Completed));
}

#[test]
fn an_end_is_what_the_agent_calls_it() {
    for (reason, completed) in [("end_turn", true), ("max_tokens", false), ("refusal", false), ("of later", false)] {
        let mut play = Play::running("gemini");
        play.result("session/prompt", &format!(r#"{{"stopReason":"{reason}"}}"#));
        assert_eq!(play.outcome() == Some(TurnOutcome::Completed), completed, "{reason}");
    }
    let mut play = Play::running("gemini");
    play.command(&start_turn(2, "x")).unwrap();
    assert!(matches!(play.take().last(), Some(AgentEvent::TurnRejected { .. })), "one message at a time");
    play.close();
    let Some(TurnOutcome::Failed(failure)) = play.outcome() else { panic!("it failed") };
    assert!(matches!(failure.class, FailureClass::TransportClosed(_)));
}

/// The text of the notices in the turn.
fn notices(events: &[AgentEvent]) -> Vec<String> {
    let text = |event: &AgentEvent| match event {
        AgentEvent::ItemCompleted { item, .. } => match &item.body {
            ItemBody::Notice { text } => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

#[test]
fn a_turn_that_does_not_stop_counts_as_interrupted_and_its_process_is_ended() {
    let mut play = Play::running("gemini");
    play.command(&AgentCommand::Interrupt { session: SESSION, turn: TURN }).unwrap();
    play.pass(5_000);
    // Asking once more gives it no more time.
    play.command(&AgentCommand::Interrupt { session: SESSION, turn: TURN }).unwrap();
    play.pass(4_999);
    assert_eq!(play.outcome(), None);
    assert!(play.stops.is_empty());
    play.pass(1);
    assert_eq!(play.outcome(), Some(TurnOutcome::Interrupted));
    assert!(notices(&play.events)[0].contains("did not stop within 10 s"), "{:?}", play.events);
    assert!(matches!(play.stops.as_slice(), [why] if why.contains("did not stop")), "{:?}", play.stops);
}

#[test]
fn a_turn_that_stops_in_time_leaves_its_process_alone() {
    let mut play = Play::running("gemini");
    play.command(&AgentCommand::Interrupt { session: SESSION, turn: TURN }).unwrap();
    play.pass(9_999);
    play.result("session/prompt", r#"{"stopReason":"cancelled"}"#);
    assert_eq!(play.outcome(), Some(TurnOutcome::Interrupted));
    play.command(&start_turn(2, "more")).unwrap();
    play.pass(60_000);
    assert!(play.stops.is_empty() && notices(&play.events).is_empty(), "the time of one turn is none of the next one's");
    assert_eq!(play.unanswered("session/prompt"), 1);
}

#[test]
fn what_does_not_stop_is_heard_no_more_while_its_process_serves_another() {
    let mut play = ignored_beside_another();
    assert_eq!(play.outcome(), Some(TurnOutcome::Interrupted));
    assert!(play.stops.is_empty(), "the other one goes on");
    play.take();
    play.update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"late"}}"#);
    play.update(r#"{"sessionUpdate":"tool_call","toolCallId":"x","title":"late"}"#);
    play.update(r#"{"sessionUpdate":"plan","entries":[]}"#);
    play.line(ask(ALL).as_bytes());
    assert_eq!(play.take(), [], "nothing of it is shown or asked");
    // Nothing is begun in a session in which the agent still works.
    play.command(&start_turn(3, "again")).unwrap();
    let rejected = play.take();
    assert!(
        matches!(rejected.as_slice(), [AgentEvent::TurnRejected { failure, .. }] if failure.class == FailureClass::ThreadBusy)
    );
    // The oldest open prompt is that of the turn that was told to stop.
    play.result("session/prompt", r#"{"stopReason":"cancelled"}"#);
    play.command(&start_turn(4, "again")).unwrap();
    assert_eq!(play.unanswered("session/prompt"), 2, "it has stopped, so it is of use again");
    assert!(play.stops.is_empty());
}

#[test]
fn a_process_that_ignores_a_stop_is_ended_with_its_last_turn() {
    let mut play = ignored_beside_another();
    assert!(play.stops.is_empty());
    let last = play.sent.iter().rfind(|sent| sent["method"] == "session/prompt").expect("it was sent")["id"].clone();
    play.line(format!(r#"{{"jsonrpc":"2.0","id":{last},"result":{{"stopReason":"end_turn"}}}}"#).as_bytes());
    assert_eq!(play.outcome(), Some(TurnOutcome::Completed));
    assert_eq!(play.stops.len(), 1);
}

#[test]
fn a_session_in_which_the_agent_still_works_is_not_let_go_of() {
    let mut play = ignored_beside_another();
    play.take();
    play.command(&AgentCommand::ReleaseSession { session: SESSION }).unwrap();
    assert_eq!((play.take().len(), play.unanswered("session/close")), (0, 0), "it is closed while it works");
    play.result("session/prompt", r#"{"stopReason":"cancelled"}"#);
    play.result("session/close", "{}");
    assert!(matches!(play.take().as_slice(), [AgentEvent::SessionReleased { session: SESSION }]));
}

/// Two sessions have a turn, and that of the first did not stop in time when it was told to.
fn ignored_beside_another() -> Play {
    let mut play = Play::running("gemini");
    let (session, turn) = (SessionId(2), TurnId(2));
    let AgentCommand::OpenSession { thread, folder, settings, goal, fork_of, history, .. } = super::open(None) else {
        panic!("it opens")
    };
    play.command(&AgentCommand::OpenSession { session, thread, folder, settings, goal, fork_of, history }).unwrap();
    play.result("session/new", r#"{"sessionId":"t"}"#);
    let AgentCommand::StartTurn { message, text, settings, .. } = start_turn(2, "other") else { panic!("it starts") };
    play.command(&AgentCommand::StartTurn { session, turn, message, text, settings }).unwrap();
    play.command(&AgentCommand::Interrupt { session: SESSION, turn: TURN }).unwrap();
    play.pass(10_000);
    play
}
