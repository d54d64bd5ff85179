//! Opening, choosing, and letting go.

use turnkeep_model::{
    SessionId, ThreadRef,
    port::{AgentCommand, AgentEvent, ApprovalMode, FailureClass, SessionSettings},
};

use super::{EVERYTHING, Play, SESSION, fork, open, start_turn};
use crate::port::Purpose;

const NOTHING: &str = r#"{"protocolVersion":1}"#;

fn open_failure(play: &Play) -> FailureClass {
    let failed = play.events.iter().find_map(|event| match event {
        AgentEvent::SessionOpenFailed { failure, .. } => Some(failure.class.clone()),
        _ => None,
    });
    failed.expect("it failed")
}

#[test]
fn what_an_agent_says_that_it_can_do_is_asked_of_it_and_nothing_else_is() {
    let steer = AgentCommand::Steer {
        session: SESSION,
        turn: super::TURN,
        message: turnkeep_model::MessageId::new("m"),
        text: "x".to_owned(),
    };
    let list = AgentCommand::ListThreads { ask: 1, cursor: None };
    for (says, can) in [(EVERYTHING, true), (NOTHING, false)] {
        let mut play = Play::ready("gemini", says);
        let introduced = play.events.iter().find_map(|event| match event {
            AgentEvent::Introduced { capabilities, .. } => Some(capabilities.clone()),
            _ => None,
        });
        let introduced = introduced.expect("it introduces itself");
        assert_eq!((introduced.resume, introduced.steer, introduced.threads, introduced.fork), (can, can, can, can));
        let history = AgentCommand::ReadHistory { session: SESSION, thread: ThreadRef("s".to_owned()) };
        for command in [&steer, &list, &open(Some("s")), &fork("s"), &history, &AgentCommand::SignOut] {
            assert_eq!(play.command(command).is_ok(), can, "{command:?}");
        }
        let asked = ["session/list", "session/resume", "session/fork", "logout"].map(|method| play.unanswered(method));
        assert_eq!(asked, [usize::from(can); 4]);
        for never in [AgentCommand::ReadRateLimits, AgentCommand::SetGoal { session: SESSION, goal: None }] {
            assert!(play.command(&never).is_err());
        }
    }
}

#[test]
fn a_version_that_is_not_spoken_here_is_refused_in_words() {
    for says in [r#"{"protocolVersion":2}"#, "{}", r#"{"protocolVersion":"1"}"#] {
        let play = Play::ready("gemini", says);
        assert!(play.stops[0].contains("version"), "{says}: {:?}", play.stops);
        assert!(!play.events.iter().any(|event| matches!(event, AgentEvent::Ready { .. })));
    }
}

#[test]
fn a_session_without_an_id_is_refused() {
    for says in ["{}", r#"{"sessionId":""}"#, r#"{"sessionId":7}"#, "null"] {
        let mut play = Play::ready("gemini", EVERYTHING);
        play.command(&open(None)).unwrap();
        play.result("session/new", says);
        assert_eq!(open_failure(&play), FailureClass::Protocol, "{says}");
    }
}

#[test]
fn ids_that_differ_in_white_space_are_different() {
    let mut play = Play::ready("gemini", EVERYTHING);
    play.command(&open(None)).unwrap();
    play.result("session/new", r#"{"sessionId":"s "}"#);
    play.take();
    play.update(r#"{"sessionUpdate":"session_info_update","title":"x"}"#);
    assert!(play.take().is_empty(), "it is about \"s\", which is not open");
    let other = AgentCommand::OpenSession {
        session: SessionId(2),
        thread: Some(ThreadRef("s".to_owned())),
        fork_of: None,
        history: false,
        folder: "/".to_owned(),
        settings: SessionSettings::default(),
        goal: None,
    };
    play.command(&other).unwrap();
    assert_eq!(play.unanswered("session/resume"), 1);
}

#[test]
fn a_session_that_opens_after_it_was_given_up_is_closed() {
    let mut play = Play::ready("gemini", EVERYTHING);
    play.command(&open(None)).unwrap();
    play.pass(120_000);
    assert_eq!(open_failure(&play), FailureClass::Timeout);
    play.result("session/new", r#"{"sessionId":"late"}"#);
    assert_eq!(play.sent.last().unwrap()["method"], "session/close");
    assert_eq!(play.sent.last().unwrap()["params"]["sessionId"], "late");

    let mut play = Play::ready("gemini", EVERYTHING);
    play.command(&open(None)).unwrap();
    play.command(&AgentCommand::ReleaseSession { session: SESSION }).unwrap();
    play.result("session/new", r#"{"sessionId":"late"}"#);
    play.result("session/close", "{}");
    assert!(matches!(play.take().last(), Some(AgentEvent::SessionReleased { session: SESSION })));
}

#[test]
fn a_closing_that_fails_is_tried_again_one_at_a_time_and_then_is_the_end_of_its_process() {
    let mut play = Play::open("gemini");
    play.command(&AgentCommand::ReleaseSession { session: SESSION }).unwrap();
    for _ in 0..2 {
        play.command(&AgentCommand::ReleaseSession { session: SESSION }).unwrap();
        assert_eq!(play.unanswered("session/close"), 1, "they never overlap");
        play.refuse("session/close", r#"{"code":-32603,"message":"busy"}"#);
        play.pass(500);
    }
    play.take();
    play.refuse("session/close", r#"{"code":-32603,"message":"busy"}"#);
    assert!(matches!(play.take().as_slice(), [AgentEvent::Fault { session: Some(SESSION), .. }]));
}

#[test]
fn an_agent_that_cannot_be_told_to_ask_is_not_used() {
    const MODES: &str = r#"{"sessionId":"s","modes":{"currentModeId":"auto","availableModes":[{"id":"auto"},{"id":"default"},{"id":"acceptEdits"}]}}"#;
    let mut play = Play::ready("claude-agent-acp", EVERYTHING);
    play.answers_settings = false;
    play.command(&open(None)).unwrap();
    play.result("session/new", MODES);
    assert!(!play.events.iter().any(|event| matches!(event, AgentEvent::SessionOpened { .. })), "not before it was told");
    play.refuse("session/set_mode", r#"{"code":-32603,"message":"no"}"#);
    assert_eq!(open_failure(&play), FailureClass::Other);
    assert_eq!(play.unanswered("session/close"), 1);

    // What the person chose is told before their message goes out.
    let mut play = Play::ready("claude-agent-acp", EVERYTHING);
    play.command(&open(None)).unwrap();
    play.result("session/new", MODES);
    play.answers_settings = false;
    let settings = SessionSettings { approval_mode: Some(ApprovalMode::OnRequest), ..SessionSettings::default() };
    let AgentCommand::StartTurn { session, turn, message, text, .. } = start_turn(1, "go") else { unreachable!() };
    play.command(&AgentCommand::StartTurn { session, turn, message, text, settings }).unwrap();
    assert_eq!((play.unanswered("session/set_mode"), play.unanswered("session/prompt")), (1, 0));
    play.result("session/set_mode", "{}");
    assert_eq!(play.unanswered("session/prompt"), 1);
}

#[test]
fn a_sign_in_and_a_sign_out_are_asked_of_an_agent_that_offers_them() {
    let says = r#"{"protocolVersion":1,"agentCapabilities":{"auth":{"logout":{}}},"authMethods":[{"id":"web","name":"Web"},{"id":"term","type":"terminal","args":["--login"]}]}"#;
    let method = turnkeep_model::port::SignInMethod::Advertised { id: "web".to_owned() };
    let mut play = Play::new("gemini", &Purpose::SignIn { method });
    play.result("initialize", says);
    assert_eq!(play.sent.last().unwrap()["params"]["methodId"], "web");
    play.result("authenticate", "{}");
    assert!(matches!(play.take().last(), Some(AgentEvent::SignInEnded { result: Ok(_) })));

    let method = turnkeep_model::port::SignInMethod::Advertised { id: "term".to_owned() };
    let mut play = Play::new("gemini", &Purpose::SignIn { method });
    play.result("initialize", says);
    let Some(AgentEvent::SignInEnded { result: Err(failure) }) = play.take().pop() else { panic!("it cannot do that itself") };
    assert!(failure.message.contains("gemini --acp --login"), "{}", failure.message);

    for (says, done) in [(EVERYTHING, true), (NOTHING, false)] {
        let mut play = Play::new("gemini", &Purpose::SignOut);
        play.result("initialize", says);
        if done {
            play.result("logout", "{}");
        }
        let Some(AgentEvent::SignedOut { result }) = play.take().pop() else { panic!("it ends") };
        assert_eq!(result.is_ok(), done);
    }
}
