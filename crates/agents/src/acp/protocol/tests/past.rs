//! What was before: histories, lists, forks; and the commands that a session has.

use turnkeep_model::{
    SessionId, ThreadRef,
    port::{AgentCommand, AgentEvent, Failure, Item, ItemBody, ItemStatus, OfferedCommand, SessionSettings, ThreadPage},
};

use super::{EVERYTHING, Play, SESSION, fork, open, start_turn};

fn with_history(thread: &str) -> AgentCommand {
    AgentCommand::OpenSession {
        session: SESSION,
        thread: Some(ThreadRef(thread.to_owned())),
        fork_of: None,
        history: true,
        folder: "/folder".to_owned(),
        settings: SessionSettings::default(),
        goal: None,
    }
}

fn read(play: &mut Play) -> Result<Vec<(String, Item)>, Failure> {
    play.take();
    play.command(&AgentCommand::ReadHistory { session: SESSION, thread: ThreadRef("s".to_owned()) }).expect("it can");
    let told = play.take().into_iter().find_map(|event| match event {
        AgentEvent::History { result, .. } => Some(result),
        _ => None,
    });
    told.expect("it is answered").map(|items| items.into_iter().map(|(turn, item)| (turn.0, item)).collect())
}

#[test]
fn a_history_that_is_wanted_is_what_is_told_again_while_the_session_is_loaded() {
    let mut play = Play::ready("gemini", EVERYTHING);
    play.command(&with_history("s")).unwrap();
    assert_eq!((play.unanswered("session/load"), play.unanswered("session/resume")), (1, 0));
    for update in [
        r#"{"sessionUpdate":"user_message_chunk","messageId":"u1","content":{"type":"text","text":"tidy "}}"#,
        r#"{"sessionUpdate":"user_message_chunk","messageId":"u1","content":{"type":"text","text":"up"}}"#,
        r#"{"sessionUpdate":"agent_thought_chunk","messageId":"a0","content":{"type":"text","text":"hm"}}"#,
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"a1","content":{"type":"text","text":"first"}}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":"c1","kind":"execute","title":"ls","status":"pending","rawInput":{"command":"ls"}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}"#,
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"a2","content":{"type":"text","text":"do"}}"#,
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"a2","content":{"type":"text","text":"ne"}}"#,
        r#"{"sessionUpdate":"user_message_chunk","messageId":"u2","content":{"type":"text","text":"again"}}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":"c1","kind":"execute","title":"rm","status":"in_progress"}"#,
        r#"{"sessionUpdate":"user_message_chunk","messageId":"u3","content":{"type":"text","text":"last"}}"#,
    ] {
        play.update(update);
    }
    play.result("session/load", "{}");
    let items = read(&mut play).unwrap();
    let turns: Vec<&str> = items.iter().map(|(turn, _)| turn.as_str()).collect();
    assert_eq!(turns, ["past-1", "past-1", "past-1", "past-1", "past-1", "past-2", "past-2", "past-3"]);
    let bodies: Vec<&ItemBody> = items.iter().map(|(_, item)| &item.body).collect();
    let said = |text: &str| ItemBody::UserMessage { text: text.to_owned(), message: None };
    assert_eq!(*bodies[0], said("tidy up"));
    assert!(matches!(bodies[1], ItemBody::Reasoning { text, .. } if text == "hm"));
    assert!(matches!(bodies[2], ItemBody::AgentMessage { text, final_answer: false } if text == "first"));
    assert!(matches!(bodies[3], ItemBody::Command { status: ItemStatus::Completed, .. }), "{:?}", bodies[3]);
    assert!(matches!(bodies[4], ItemBody::AgentMessage { text, final_answer: true } if text == "done"));
    assert_eq!(*bodies[5], said("again"));
    assert!(matches!(bodies[6], ItemBody::Command { status: ItemStatus::Abandoned, .. }), "{:?}", bodies[6]);
    let names: std::collections::BTreeSet<_> = items.iter().map(|(_, item)| &item.id).collect();
    assert_eq!(names.len(), items.len(), "each has its own name");
    // Told once; and a turn begins as in any other session.
    assert!(read(&mut play).is_err());
    play.command(&start_turn(1, "go")).unwrap();
    assert_eq!(play.unanswered("session/prompt"), 1);
}

#[test]
fn a_history_that_is_known_here_is_not_asked_for() {
    let mut play = Play::ready("gemini", EVERYTHING);
    play.command(&open(Some("s"))).unwrap();
    assert_eq!((play.unanswered("session/load"), play.unanswered("session/resume")), (0, 1));
    // One that cannot resume tells it all the same, and it is nobody's.
    let mut play = Play::ready("gemini", r#"{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}"#);
    play.command(&open(Some("s"))).unwrap();
    play.update(r#"{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"old"}}"#);
    play.result("session/load", "{}");
    assert!(read(&mut play).is_err());
}

#[test]
fn sessions_are_listed_page_by_page_as_far_as_they_can_be_read() {
    let mut play = Play::ready("gemini", EVERYTHING);
    play.command(&AgentCommand::ListThreads { ask: 7, cursor: Some("c".to_owned()) }).unwrap();
    assert_eq!(play.sent.last().unwrap()["params"]["cursor"], "c");
    play.result(
        "session/list",
        r#"{"sessions":[{"sessionId":"a","cwd":"/f","title":"Old","updatedAt":"2026-11-30T00:44:37.000Z"},{"cwd":"/f"},7,{"sessionId":"b"}],"nextCursor":"d"}"#,
    );
    let page = play.take().into_iter().find_map(|event| match event {
        AgentEvent::Threads { ask: 7, result: Ok(page) } => Some(page),
        _ => None,
    });
    let ThreadPage { threads, next_cursor } = page.expect("a page");
    assert_eq!(next_cursor.as_deref(), Some("d"));
    let told: Vec<_> = threads.iter().map(|t| (t.thread.as_str(), t.title.as_str(), t.folder.as_str(), t.updated_at)).collect();
    assert_eq!(told, [("a", "Old", "/f", 1_795_999_477), ("b", "", "", 0)]);
    play.command(&AgentCommand::ListThreads { ask: 8, cursor: None }).unwrap();
    play.refuse("session/list", r#"{"code":-32603,"message":"no"}"#);
    assert!(matches!(play.take().as_slice(), [AgentEvent::Threads { ask: 8, result: Err(_) }]));
}

#[test]
fn a_fork_is_a_session_of_its_own_beside_the_one_that_it_was_made_of() {
    let mut play = Play::open("gemini");
    play.command(&fork("s")).unwrap();
    let asked = play.sent.last().unwrap();
    assert_eq!((&asked["method"], &asked["params"]["sessionId"]), (&"session/fork".into(), &"s".into()));
    play.result("session/fork", r#"{"sessionId":"s2"}"#);
    let opened = play.take().into_iter().find_map(|event| match event {
        AgentEvent::SessionOpened { session: SessionId(2), thread, .. } => Some(thread.0),
        _ => None,
    });
    assert_eq!(opened.as_deref(), Some("s2"));
    // The other one is as it was.
    play.command(&start_turn(1, "go")).unwrap();
    assert_eq!(play.sent.last().unwrap()["params"]["sessionId"], "s");
    // An agent that gives the same id again would have two sessions on one thread.
    let mut play = Play::open("gemini");
    play.command(&fork("s")).unwrap();
    play.result("session/fork", r#"{"sessionId":"s"}"#);
    assert!(play.events.iter().any(|event| matches!(event, AgentEvent::SessionOpenFailed { session: SessionId(2), .. })));
    // One that names none is of no use.
    let mut play = Play::open("gemini");
    play.command(&fork("s")).unwrap();
    play.result("session/fork", "{}");
    assert!(play.events.iter().any(|event| matches!(event, AgentEvent::SessionOpenFailed { session: SessionId(2), .. })));
}

fn commands(play: &mut Play) -> Vec<OfferedCommand> {
    let all = play.take();
    let told = all.into_iter().rev().find_map(|event| match event {
        AgentEvent::Commands { session: SESSION, commands } => Some(commands),
        _ => None,
    });
    told.expect("they were told")
}

#[test]
fn commands_are_told_once_the_session_is_open_and_whenever_they_change() {
    let mut play = Play::ready("claude-agent-acp", EVERYTHING);
    play.command(&open(Some("s"))).unwrap();
    play.update(
        r#"{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"review","description":"Look","input":{"hint":"at what"}},{"name":"plan","input":null},{"name":"two words"},{"name":""},{"description":"x"},7]}"#,
    );
    assert!(!play.take().iter().any(|event| matches!(event, AgentEvent::Commands { .. })), "nobody has the session yet");
    play.result("session/resume", "{}");
    let command = |name: &str, description: &str, hint: &str| OfferedCommand {
        name: name.to_owned(),
        description: description.to_owned(),
        hint: hint.to_owned(),
    };
    assert_eq!(commands(&mut play), [command("review", "Look", "at what"), command("plan", "", "")]);
    play.update(r#"{"sessionUpdate":"available_commands_update","availableCommands":[]}"#);
    assert!(commands(&mut play).is_empty());
    let many: Vec<_> = (0..1000).map(|n| format!(r#"{{"name":"c{n}","description":"{}"}}"#, "x".repeat(5000))).collect();
    play.update(&format!(r#"{{"sessionUpdate":"available_commands_update","availableCommands":[{}]}}"#, many.join(",")));
    let kept = commands(&mut play);
    assert_eq!((kept.len(), kept[0].description.len()), (256, 300));
}
