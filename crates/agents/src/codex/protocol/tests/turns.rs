//! Which turn is whose, what is not sent, and what ends a turn: by lines that the real program did not happen to send in
//! that order.

use turnkeep_model::{
    MessageId, SessionId, ThreadRef, TurnId,
    port::{AgentCommand, AgentEvent, FailureClass, Sandbox, SessionSettings, TurnOutcome},
};

use super::{COMPLETED, Play, SESSION, STARTED, asked, message, names, outcome, start_turn};

// ---- whose turn it is

#[test]
fn a_turn_that_starts_before_its_answer_is_held_until_it_is_known_whose_it_is() {
    let mut play = Play::open();
    play.command(&start_turn(1, "go"));
    play.take();
    play.hear("turn/started", STARTED);
    play.hear("item/started", &message("", "null", "m"));
    assert!(play.events.is_empty());
    play.answer("turn/start", r#"{"result":{"turn":{"id":"turn-1"}}}"#);
    assert_eq!(names(&mut play), ["TurnStarted", "ItemStarted"]);
}

#[test]
fn a_turn_of_a_goal_that_starts_first_is_nobodys_and_the_message_has_its_own() {
    let mut play = Play::open();
    play.command(&start_turn(1, "go"));
    play.hear("turn/started", r#"{"threadId":"thread-1","turn":{"id":"goal-turn"}}"#);
    play.take();
    play.answer("turn/start", r#"{"result":{"turn":{"id":"turn-1"}}}"#);
    let whose: Vec<_> = play
        .take()
        .into_iter()
        .filter_map(|event| match event {
            AgentEvent::TurnStarted { turn, provider_turn, .. } => Some((turn, provider_turn.0)),
            _ => None,
        })
        .collect();
    assert_eq!(whose, [(Some(TurnId(1)), "turn-1".to_owned()), (None, "goal-turn".to_owned())]);
}

#[test]
fn a_start_without_an_answer_is_told_and_a_late_answer_still_counts() {
    let mut play = Play::open();
    play.command(&start_turn(1, "go"));
    play.take();
    play.pass(31_000);
    let [AgentEvent::Fault { failure, .. }] = &play.take()[..] else { panic!("a fault") };
    assert_eq!(failure.class, FailureClass::Timeout);
    play.hear("turn/started", STARTED);
    play.hear("turn/completed", COMPLETED);
    play.take();
    play.answer("turn/start", r#"{"result":{"turn":{"id":"turn-1"}}}"#);
    let events = play.take();
    assert!(matches!(&events[0], AgentEvent::TurnStarted { turn: Some(TurnId(1)), .. }), "{events:?}");
    assert!(matches!(&events[1], AgentEvent::TurnEnded { outcome: TurnOutcome::Completed, .. }), "{events:?}");
}

#[test]
fn our_message_in_a_turn_makes_it_ours_when_the_answer_never_came() {
    let mut play = Play::open();
    play.command(&start_turn(1, "go"));
    play.pass(31_000);
    play.take();
    play.hear("turn/started", STARTED);
    play.hear(
        "item/started",
        r#"{"threadId":"thread-1","turnId":"turn-1","item":{"type":"userMessage","id":"u","clientId":"msg-1"}}"#,
    );
    assert!(play.take().iter().any(|event| matches!(event, AgentEvent::TurnStarted { turn: Some(TurnId(1)), .. })));
}

// ---- what is not sent

#[test]
fn nothing_is_sent_to_a_thread_that_works() {
    for busy in ["turn/started", "thread/status/changed"] {
        let mut play = Play::open();
        play.hear(busy, r#"{"threadId":"thread-1","turn":{"id":"x"},"status":{"type":"active"}}"#);
        play.take();
        play.command(&start_turn(1, "go"));
        assert_eq!(names(&mut play), ["TurnRejected"], "{busy}");
        assert_eq!(asked(&play, "turn/start"), 0, "{busy}");
    }
}

#[test]
fn a_text_that_is_too_long_is_refused_before_it_is_sent() {
    let mut play = Play::open();
    play.take();
    play.command(&start_turn(1, &"é".repeat(1_048_577)));
    let [AgentEvent::TurnRejected { failure, .. }] = &play.take()[..] else { panic!("a rejection") };
    assert!(failure.message.contains("1048577 characters"), "{failure:?}");
    assert_eq!(asked(&play, "turn/start"), 0);
    play.command(&start_turn(2, &"é".repeat(1_048_576)));
    assert_eq!(asked(&play, "turn/start"), 1);
}

#[test]
fn a_refused_start_leaves_the_session_free() {
    let mut play = Play::open();
    play.command(&start_turn(1, "go"));
    play.take();
    play.answer("turn/start", r#"{"error":{"code":-32001,"message":"Server overloaded; retry later."}}"#);
    let [AgentEvent::TurnRejected { failure, .. }] = &play.take()[..] else { panic!("a rejection") };
    assert_eq!(failure.class, FailureClass::Overloaded);
    play.command(&start_turn(2, "again"));
    assert_eq!(asked(&play, "turn/start"), 2);
}

#[test]
fn only_settings_that_change_are_sent_with_a_turn() {
    let mut play = Play::open();
    let settings = SessionSettings {
        model: Some("gpt-5.5".to_owned()),
        effort: Some("high".to_owned()),
        approval_mode: None,
        sandbox: Some(Sandbox::WriteFolder),
    };
    let turn = |turn| AgentCommand::StartTurn {
        session: SESSION,
        turn: TurnId(turn),
        message: MessageId::new("m"),
        text: "go".to_owned(),
        settings: settings.clone(),
    };
    play.command(&turn(1));
    let params = &play.sent.last().expect("sent")["params"];
    assert_eq!(params["effort"], "high");
    assert_eq!(params["sandboxPolicy"]["type"], "workspaceWrite");
    assert!(params.get("model").is_none() && params.get("approvalPolicy").is_none(), "{params}");
    play.answer("turn/start", r#"{"error":{"message":"no"}}"#);
    play.command(&turn(2));
    assert!(play.sent.last().expect("sent")["params"].get("effort").is_none());
}

// ---- interrupting

#[test]
fn an_interrupt_waits_for_the_name_of_its_turn() {
    let mut play = Play::open();
    play.command(&start_turn(1, "go"));
    play.command(&AgentCommand::Interrupt { session: SESSION, turn: TurnId(1) });
    assert_eq!(asked(&play, "turn/interrupt"), 0);
    play.answer("turn/start", r#"{"result":{"turn":{"id":"turn-1"}}}"#);
    assert_eq!(play.sent.last().expect("sent")["params"]["turnId"], "turn-1");
}

#[test]
fn the_next_turn_waits_until_what_an_interrupt_left_running_is_gone() {
    let mut play = Play::running();
    play.command(&AgentCommand::Interrupt { session: SESSION, turn: TurnId(1) });
    play.hear("turn/completed", r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"interrupted"}}"#);
    assert_eq!(outcome(&mut play), Some(TurnOutcome::Interrupted));
    play.command(&start_turn(2, "next"));
    play.answer("turn/interrupt", r#"{"result":{}}"#);
    assert_eq!(asked(&play, "turn/start"), 1, "the cleaning would hit the new turn's commands");
    play.answer("thread/backgroundTerminals/clean", r#"{"result":{}}"#);
    assert_eq!(asked(&play, "turn/start"), 2);
}

#[test]
fn an_interrupt_reaches_a_turn_that_nobody_asked_for() {
    let mut play = Play::open();
    play.hear("turn/started", r#"{"threadId":"thread-1","turn":{"id":"goal-turn"}}"#);
    play.command(&AgentCommand::Interrupt { session: SESSION, turn: TurnId(77) });
    assert_eq!(play.sent.last().expect("sent")["params"]["turnId"], "goal-turn");
}

// ---- ends

#[test]
fn an_error_that_is_retried_leaves_the_turn_running_and_one_that_is_not_still_waits_for_the_end() {
    let mut play = Play::running();
    let error = |retry: bool| {
        format!(
            r#"{{"threadId":"thread-1","turnId":"turn-1","willRetry":{retry},"error":{{"message":"usage","codexErrorInfo":"usageLimitExceeded"}}}}"#
        )
    };
    play.take();
    play.hear("error", &error(true));
    assert_eq!(names(&mut play), ["TurnRetrying"]);
    play.hear("error", &error(false));
    assert!(play.events.is_empty());
    // Its end may come without the reason, which was told.
    play.hear("turn/completed", r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"failed"}}"#);
    let Some(TurnOutcome::Failed(failure)) = outcome(&mut play) else { panic!("a failure") };
    assert_eq!(failure.class, FailureClass::UsageLimit);
}

#[test]
fn a_last_line_that_completes_the_turn_comes_before_the_close() {
    let mut play = Play::running();
    play.hear("turn/completed", COMPLETED);
    play.close();
    let ends: Vec<_> = play.events.iter().filter(|event| matches!(event, AgentEvent::TurnEnded { .. })).collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(outcome(&mut play), Some(TurnOutcome::Completed));
}

#[test]
fn a_status_that_is_no_end_ends_nothing() {
    let mut play = Play::running();
    play.take();
    play.hear("turn/completed", r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"inProgress"}}"#);
    assert_eq!(names(&mut play), ["Fault"]);
    play.hear("turn/completed", COMPLETED);
    assert_eq!(outcome(&mut play), Some(TurnOutcome::Completed));
}

#[test]
fn an_end_that_is_told_twice_is_one_end() {
    let mut play = Play::running();
    play.hear("turn/completed", COMPLETED);
    play.take();
    play.hear("turn/completed", COMPLETED);
    assert!(play.events.is_empty());
}

#[test]
fn a_close_tells_what_is_known_of_a_turn_that_has_no_name_yet() {
    let mut play = Play::open();
    play.command(&start_turn(1, "go"));
    play.take();
    play.close();
    let [AgentEvent::Fault { session: Some(SESSION), failure }] = &play.take()[..] else { panic!("a fault") };
    let FailureClass::TransportClosed(record) = &failure.class else { panic!("{failure:?}") };
    assert_eq!(record.turn_state, "dispatched");
    assert_eq!(record.turn, Some(TurnId(1)));
    assert_eq!(record.thread, Some(ThreadRef::new("thread-1")));
    assert_eq!(record.stderr, ["last words"]);
}

#[test]
fn a_close_settles_everything_that_waits() {
    let mut play = Play::running();
    play.command(&AgentCommand::OpenSession {
        session: SessionId(2),
        thread: None,
        fork_of: None,
        history: false,
        folder: "/tmp".to_owned(),
        settings: SessionSettings::default(),
        goal: None,
    });
    play.line(br#"{"id":5,"method":"item/commandExecution/requestApproval","params":{"threadId":"thread-1","turnId":"turn-1","itemId":"i"}}"#);
    play.command(&AgentCommand::Probe {
        session: SESSION,
        thread: ThreadRef::new("thread-9"),
        turn: TurnId(9),
        message: MessageId::new("m"),
    });
    play.command(&AgentCommand::Steer { session: SESSION, turn: TurnId(1), message: MessageId::new("s"), text: "x".to_owned() });
    play.take();
    play.close();
    let mut told = names(&mut play);
    told.sort();
    assert_eq!(told, ["ApprovalResolved", "Fault", "Probed", "SessionOpenFailed", "TurnEnded"]);
    play.command(&start_turn(2, "late"));
    assert_eq!(names(&mut play), ["TurnRejected"], "what never left is truly not admitted");
}
