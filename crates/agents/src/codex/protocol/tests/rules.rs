//! One rule a test, by lines that the real program did not happen to send in that order.

use turnkeep_model::{
    ApprovalId, MessageId, ProviderTurn, RequestKey, SessionId, ThreadRef, TurnId,
    port::{
        AgentCommand, AgentEvent, Answer, Choice, DeltaStream, FailureClass, GoalSpec, GoalStatus, Item, ItemBody, ItemStatus,
        Observation, ProbeAnswer, Sandbox, SessionSettings, SignInMethod, TurnOutcome,
    },
};

use super::{OPENED, Play, open_session, shown, start_turn};
use crate::port::{Protocol as _, Purpose};

const SESSION: SessionId = SessionId(1);
const COMPLETED: &str = r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"completed"}}"#;
const STARTED: &str = r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"inProgress"}}"#;

fn names(play: &mut Play) -> Vec<String> {
    play.take().iter().map(|event| shown(event).split(' ').next().unwrap_or_default().to_owned()).collect()
}

fn outcome(play: &mut Play) -> Option<TurnOutcome> {
    play.take().into_iter().find_map(|event| match event {
        AgentEvent::TurnEnded { outcome, .. } => Some(outcome),
        _ => None,
    })
}

fn asked(play: &Play, method: &str) -> usize {
    play.sent.iter().filter(|message| message["method"] == method).count()
}

fn message(text: &str, phase: &str, id: &str) -> String {
    format!(
        r#"{{"threadId":"thread-1","turnId":"turn-1","item":{{"type":"agentMessage","id":"{id}","text":"{text}","phase":{phase}}}}}"#
    )
}

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

// ---- answers and progress

#[test]
fn progress_before_a_tool_call_is_not_the_answer() {
    let mut play = Play::running();
    play.hear("item/completed", &message("I will look.", "null", "m1"));
    play.hear(
        "item/started",
        r#"{"threadId":"thread-1","turnId":"turn-1","item":{"type":"commandExecution","id":"c","command":"ls","status":"inProgress"}}"#,
    );
    play.take();
    play.hear("turn/completed", COMPLETED);
    let events = play.take();
    let finals = events.iter().filter(|event| shown(event).contains("\"final_answer\":true")).count();
    assert_eq!(finals, 0, "{events:?}");
    assert!(matches!(
        &events[0],
        AgentEvent::ItemCompleted { item: Item { body: ItemBody::Command { status: ItemStatus::Abandoned, .. }, .. }, .. }
    ));
}

#[test]
fn a_phase_that_is_told_decides_at_once() {
    let mut play = Play::running();
    play.take();
    play.hear("item/completed", &message("thinking aloud", "\"commentary\"", "m1"));
    play.hear("item/completed", &message("the answer", "\"final_answer\"", "m2"));
    play.hear("turn/completed", COMPLETED);
    let shown: Vec<String> = play.take().iter().map(shown).collect();
    assert!(shown[0].contains("\"final_answer\":false") && shown[1].contains("\"final_answer\":true"), "{shown:?}");
    assert!(shown[2].starts_with("TurnEnded"), "nothing is told twice: {shown:?}");
}

#[test]
fn an_interrupted_turn_has_no_answer_but_keeps_its_partial_text() {
    let mut play = Play::running();
    play.hear("item/started", &message("", "null", "m1"));
    play.hear("item/agentMessage/delta", r#"{"threadId":"thread-1","turnId":"turn-1","itemId":"m1","delta":"half"}"#);
    play.take();
    play.hear("turn/completed", r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"interrupted"}}"#);
    let events = play.take();
    let AgentEvent::ItemCompleted { item: Item { body: ItemBody::AgentMessage { text, final_answer }, .. }, .. } = &events[0]
    else {
        panic!("{events:?}")
    };
    assert_eq!((text.as_str(), *final_answer), ("half", false));
}

#[test]
fn a_large_output_keeps_its_beginning_and_its_end() {
    let mut play = Play::running();
    let output = format!("first{}last", "é".repeat(2_000_000));
    play.take();
    play.hear(
        "item/completed",
        &format!(
            r#"{{"threadId":"thread-1","turnId":"turn-1","item":{{"type":"commandExecution","id":"c","status":"completed","aggregatedOutput":"{output}"}}}}"#
        ),
    );
    let [AgentEvent::ItemCompleted { item: Item { body: ItemBody::Command { output, .. }, .. }, .. }] = &play.take()[..] else {
        panic!("an entry")
    };
    assert!(output.len() < 1024 * 1024 + 100, "{}", output.len());
    assert!(output.starts_with("first") && output.ends_with("last") && output.contains("bytes left out"));
}

#[test]
fn streamed_output_of_a_command_is_bounded_too() {
    let mut play = Play::running();
    play.hear(
        "item/started",
        r#"{"threadId":"thread-1","turnId":"turn-1","item":{"type":"commandExecution","id":"c","status":"inProgress"}}"#,
    );
    let delta = format!(r#"{{"threadId":"thread-1","turnId":"turn-1","itemId":"c","delta":"{}"}}"#, "x".repeat(1_000_000));
    for _ in 0..20 {
        play.hear("item/commandExecution/outputDelta", &delta);
    }
    play.take();
    play.hear("turn/completed", COMPLETED);
    let events = play.take();
    let AgentEvent::ItemCompleted { item: Item { body: ItemBody::Command { output, .. }, .. }, .. } = &events[0] else {
        panic!("{events:?}")
    };
    assert!(output.len() <= 2 * 1024 * 1024, "{}", output.len());
}

#[test]
fn an_entry_of_an_unknown_kind_is_shown_by_its_name_and_odd_members_are_skipped() {
    let mut play = Play::running();
    play.take();
    play.hear(
        "item/completed",
        r#"{"threadId":"thread-1","turnId":"turn-1","item":{"type":"hologram","id":"h","text":"shimmer","status":7,"changes":"no"}}"#,
    );
    let [AgentEvent::ItemCompleted { item, .. }] = &play.take()[..] else { panic!("an entry") };
    assert_eq!(item.body, ItemBody::Other { kind: "hologram".to_owned(), text: "shimmer".to_owned() });
}

#[test]
fn paragraphs_of_a_reasoning_are_kept_apart() {
    let mut play = Play::running();
    play.take();
    for index in [0, 1] {
        play.hear(
            "item/reasoning/summaryPartAdded",
            &format!(r#"{{"threadId":"thread-1","turnId":"turn-1","itemId":"r","summaryIndex":{index}}}"#),
        );
    }
    let [AgentEvent::Delta { stream: DeltaStream::ReasoningSummary, text, .. }] = &play.take()[..] else { panic!("a delta") };
    assert_eq!(text, "\n\n");
}

// ---- lines that make no sense

#[test]
fn odd_lines_are_told_ever_more_rarely_and_disturb_nothing() {
    let mut play = Play::running();
    play.take();
    for _ in 0..1000 {
        play.line(b"\xff\xfe");
        play.line(b"{\"method\":\"turn/compl");
        play.line(b"[1,2]");
        play.line(b"{}");
        play.line(b"   ");
    }
    let told = names(&mut play);
    assert!(told.iter().all(|name| name == "Fault"));
    assert_eq!(told.len(), 12, "4000 lines, told at each power of two");
    play.hear("turn/completed", COMPLETED);
    assert_eq!(outcome(&mut play), Some(TurnOutcome::Completed));
}

#[test]
fn a_line_that_was_too_long_to_keep_is_told() {
    let mut play = Play::running();
    play.take();
    play.machine.receive_oversized(play.now, 90_000_000);
    play.drain();
    let [AgentEvent::Fault { failure, .. }] = &play.take()[..] else { panic!("a fault") };
    assert!(failure.message.contains("90000000 bytes"));
}

#[test]
fn methods_of_a_newer_codex_are_counted_and_ignored() {
    let mut play = Play::running();
    play.take();
    for n in 0..200 {
        play.hear(&format!("new/{n}"), "{}");
        play.hear("new/1", "{}");
    }
    assert!(play.events.is_empty());
    assert_eq!(play.machine.unknown.get("new/1"), Some(&201));
    assert!(play.machine.unknown.len() <= 65);
}

// ---- opening and letting go

#[test]
fn a_thread_without_an_id_is_refused() {
    let mut play = Play::ready();
    play.command(&open_session(None));
    play.take();
    play.answer("thread/start", r#"{"result":{"thread":{"preview":""}}}"#);
    let [AgentEvent::SessionOpenFailed { failure, .. }] = &play.take()[..] else { panic!("a failure") };
    assert_eq!(failure.class, FailureClass::Protocol);
}

#[test]
fn an_opening_that_comes_too_late_is_let_go_of() {
    let mut play = Play::ready();
    play.command(&open_session(None));
    play.take();
    play.pass(61_000);
    let [AgentEvent::SessionOpenFailed { failure, .. }] = &play.take()[..] else { panic!("a failure") };
    assert_eq!(failure.class, FailureClass::Timeout);
    play.answer("thread/start", OPENED);
    assert!(play.events.is_empty());
    let last = play.sent.last().expect("sent");
    assert_eq!((&last["method"], &last["params"]["threadId"]), (&"thread/unsubscribe".into(), &"thread-1".into()));
}

#[test]
fn a_thread_that_another_process_holds_is_tried_again_for_a_while() {
    let mut play = Play::ready();
    play.command(&open_session(Some("thread-1")));
    play.take();
    let busy = r#"{"error":{"code":-32600,"message":"thread thread-1 already has an active writer"}}"#;
    play.answer("thread/resume", busy);
    assert!(play.events.is_empty());
    play.pass(250);
    play.answer("thread/resume", OPENED);
    assert_eq!(names(&mut play), ["SessionOpened"]);

    let mut play = Play::ready();
    play.command(&open_session(Some("thread-1")));
    play.take();
    for _ in 0..12 {
        play.answer("thread/resume", busy);
        play.pass(250);
    }
    play.answer("thread/resume", busy);
    let [AgentEvent::SessionOpenFailed { failure, .. }] = &play.take()[..] else { panic!("a failure") };
    assert_eq!(failure.class, FailureClass::ThreadBusy);
}

#[test]
fn opening_twice_is_once() {
    let mut play = Play::ready();
    play.command(&open_session(None));
    play.command(&open_session(None));
    assert_eq!(asked(&play, "thread/start"), 1);
    play.answer("thread/start", OPENED);
    play.command(&open_session(None));
    assert_eq!(play.events.iter().filter(|event| matches!(event, AgentEvent::SessionOpened { .. })).count(), 2);
}

#[test]
fn a_goal_that_rests_is_put_to_rest_before_its_thread_is_loaded() {
    let mut play = Play::ready();
    let AgentCommand::OpenSession { session, thread, folder, settings, .. } = open_session(Some("thread-1")) else {
        unreachable!("made so")
    };
    let goal = Some(GoalSpec { objective: "o".to_owned(), status: GoalStatus::Paused, token_budget: None });
    play.command(&AgentCommand::OpenSession { session, thread, folder, settings, goal });
    let methods: Vec<_> = play.sent.iter().rev().take(2).map(|message| message["method"].clone()).collect();
    assert_eq!(methods, ["thread/resume", "thread/goal/set"]);
}

#[test]
fn letting_go_waits_for_the_turn_and_for_codex_to_close_the_thread() {
    let mut play = Play::running();
    play.command(&AgentCommand::ReleaseSession { session: SESSION });
    assert_eq!(asked(&play, "thread/backgroundTerminals/clean"), 0, "the end of the turn would not be heard");
    play.hear("turn/completed", COMPLETED);
    play.answer("thread/backgroundTerminals/clean", r#"{"result":{}}"#);
    play.take();
    play.answer("thread/unsubscribe", r#"{"result":{"status":"unsubscribed"}}"#);
    play.hear("thread/status/changed", r#"{"threadId":"thread-1","status":{"type":"notLoaded"}}"#);
    assert!(play.events.is_empty());
    play.hear("thread/closed", r#"{"threadId":"thread-1"}"#);
    assert_eq!(names(&mut play), ["SessionReleased"]);
}

#[test]
fn letting_go_that_does_not_come_to_an_end_is_told_and_can_be_asked_for_again() {
    let mut play = Play::open();
    play.command(&AgentCommand::ReleaseSession { session: SESSION });
    play.answer("thread/backgroundTerminals/clean", r#"{"result":{}}"#);
    play.answer("thread/unsubscribe", r#"{"result":{"status":"unsubscribed"}}"#);
    play.take();
    play.pass(10_000);
    assert_eq!(names(&mut play), ["Fault"]);
    play.command(&AgentCommand::ReleaseSession { session: SESSION });
    play.answer("thread/backgroundTerminals/clean", r#"{"result":{}}"#);
    play.answer("thread/unsubscribe", r#"{"result":{"status":"notLoaded"}}"#);
    assert_eq!(names(&mut play), ["SessionReleased"]);
}

#[test]
fn the_close_of_an_earlier_loading_does_not_end_a_new_one() {
    let mut play = Play::ready();
    play.command(&open_session(Some("thread-1")));
    play.take();
    play.hear("thread/closed", r#"{"threadId":"thread-1"}"#);
    play.answer("thread/resume", OPENED);
    assert_eq!(names(&mut play), ["SessionOpened"]);
}

#[test]
fn a_session_that_is_not_known_is_let_go_of_at_once() {
    let mut play = Play::ready();
    play.take();
    play.command(&AgentCommand::ReleaseSession { session: SESSION });
    assert_eq!(names(&mut play), ["SessionReleased"]);
}

// ---- questions

fn question(id: &str, thread: &str) -> Vec<u8> {
    format!(
        r#"{{"id":{id},"method":"item/commandExecution/requestApproval","params":{{"threadId":"{thread}","turnId":"turn-1","itemId":"i","command":"ls","proposedExecpolicyAmendment":["ls"]}}}}"#
    )
    .into_bytes()
}

fn answer(request: &str, choice: Choice) -> AgentCommand {
    AgentCommand::Answer {
        session: SESSION,
        approval: ApprovalId(1),
        request: RequestKey::new(request),
        answer: Answer::Choice(choice),
    }
}

#[test]
fn a_question_is_answered_once_with_the_id_as_it_came() {
    let mut play = Play::running();
    play.line(&question("\"q 7\"", "thread-1"));
    play.command(&answer("\"q 7\"", Choice::Deny));
    play.command(&answer("\"q 7\"", Choice::Allow));
    let answers: Vec<_> = play.sent.iter().filter(|message| message.get("method").is_none()).collect();
    assert_eq!(answers.len(), 1);
    assert_eq!((&answers[0]["id"], &answers[0]["result"]["decision"]), (&"q 7".into(), &"decline".into()));
}

#[test]
fn an_answer_to_a_question_that_was_withdrawn_goes_nowhere() {
    let mut play = Play::running();
    play.line(&question("3", "thread-1"));
    play.hear("serverRequest/resolved", r#"{"threadId":"thread-1","requestId":3}"#);
    play.take();
    let sent = play.sent.len();
    play.command(&answer("3", Choice::Allow));
    assert_eq!(play.sent.len(), sent);
}

#[test]
fn a_rule_that_was_not_offered_is_not_sent() {
    let mut play = Play::running();
    play.line(&question("3", "thread-1"));
    play.take();
    play.command(&answer("3", Choice::AllowAlways { rule: vec!["rm".to_owned()] }));
    assert_eq!(names(&mut play), ["Fault"]);
    play.command(&answer("3", Choice::AllowAlways { rule: vec!["ls".to_owned()] }));
    assert!(play.sent.last().expect("sent")["result"]["decision"]["acceptWithExecpolicyAmendment"].is_object());
}

#[test]
fn the_end_of_a_turn_withdraws_its_questions() {
    let mut play = Play::running();
    play.line(&question("3", "thread-1"));
    play.take();
    play.hear("turn/completed", COMPLETED);
    assert_eq!(names(&mut play), ["ApprovalResolved", "TurnEnded"]);
}

#[test]
fn a_question_of_a_child_thread_is_asked_for_its_parent_and_one_of_a_stranger_is_refused() {
    let mut play = Play::running();
    play.hear("thread/started", r#"{"thread":{"id":"child","parentThreadId":"thread-1"}}"#);
    play.take();
    play.line(&question("3", "child"));
    let [AgentEvent::ApprovalRequested { session: SESSION, provider_turn: None, .. }] = &play.take()[..] else {
        panic!("a question")
    };
    play.line(&question("4", "stranger"));
    assert_eq!(names(&mut play), ["Notice"]);
    assert_eq!(play.sent.last().expect("sent")["error"]["code"], -32601);
}

#[test]
fn a_thread_without_a_sandbox_does_not_warn_of_leaving_it() {
    let mut play = Play::ready();
    play.command(&open_session(None));
    play.answer("thread/start", &OPENED.replace("readOnly", "dangerFullAccess"));
    play.take();
    play.line(&question("3", "thread-1"));
    assert!(shown(&play.take()[0]).contains("\"may_run_unsandboxed\":false"));
}

// ---- accounts

#[test]
fn a_key_that_is_refused_stops_the_process() {
    let mut play = Play::new(&Purpose::Serve { needs_key: true });
    play.answer("initialize", r#"{"result":{"userAgent":"turnkeep/0.171.0 (x)"}}"#);
    play.answer(
        "account/login/start",
        r#"{"error":{"code":-32600,"message":"API key login is disabled. Use ChatGPT login instead."}}"#,
    );
    assert_eq!(play.stops.len(), 1);
    assert_eq!(names(&mut play), ["Fault"], "never ready");
}

#[test]
fn commands_before_the_handshake_wait_for_it() {
    let mut play = Play::new(&Purpose::Serve { needs_key: false });
    play.command(&open_session(None));
    assert_eq!(asked(&play, "thread/start"), 0);
    play.answer("initialize", r#"{"result":{"userAgent":"turnkeep/0.171.0 (x)"}}"#);
    play.answer("account/read", r#"{"result":{"account":null,"requiresOpenaiAuth":true}}"#);
    assert_eq!(names(&mut play), ["Ready"]);
    assert_eq!(asked(&play, "thread/start"), 1);
}

#[test]
fn what_codex_says_of_its_account_is_told_apart() {
    let read = |body: &str| {
        let mut play = Play::new(&Purpose::Serve { needs_key: false });
        play.answer("initialize", r#"{"result":{"userAgent":"turnkeep/0.171.0 (x)"}}"#);
        play.answer("account/read", body);
        match play.take().remove(0) {
            AgentEvent::Ready { identity, version } => {
                assert_eq!(version, "0.171.0");
                identity
            }
            other => panic!("{other:?}"),
        }
    };
    let someone = |fingerprint: &str, body: &str| match read(body) {
        Observation::Someone(identity) => assert_eq!(identity.fingerprint, fingerprint),
        other => panic!("{other:?}"),
    };
    assert_eq!(read(r#"{"result":{"account":null,"requiresOpenaiAuth":true}}"#), Observation::NoOne);
    someone("own-provider", r#"{"result":{"account":null,"requiresOpenaiAuth":false}}"#);
    someone("api-key", r#"{"result":{"account":{"type":"apiKey"}}}"#);
    someone("chatgpt:a@b.c:", r#"{"result":{"account":{"type":"chatgpt","email":"a@b.c"}}}"#);
    someone("amazonBedrock", r#"{"result":{"account":{"type":"amazonBedrock"}}}"#);
    // Signed in, and the backend out of reach: no change follows from it.
    let failed = read(r#"{"error":{"code":-32603,"message":"workspace routing discovery failed"}}"#);
    assert!(matches!(failed, Observation::Unknown { .. }));
    assert!(matches!(read(r#"{"result":{"account":{"type":"chatgpt"}}}"#), Observation::Unknown { .. }));
}

#[test]
fn an_account_that_changes_in_the_process_is_read_again() {
    let mut play = Play::open();
    play.take();
    play.hear("account/updated", r#"{"authMode":null}"#);
    play.answer("account/read", r#"{"result":{"account":null,"requiresOpenaiAuth":true}}"#);
    let [AgentEvent::Identity { identity }] = &play.take()[..] else { panic!("an identity") };
    assert_eq!(*identity, Observation::NoOne);
}

#[test]
fn a_rejected_key_of_another_provider_keeps_its_own_text() {
    let failed = r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"failed","error":{
        "message":"unexpected status 401 Unauthorized: Incorrect API key provided",
        "codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":401}}}}}"#;
    let class = |provider: &str| {
        let mut play = Play::ready();
        play.command(&open_session(None));
        play.answer("thread/start", &OPENED.replace("\"openai\"", &format!("\"{provider}\"")));
        play.command(&start_turn(1, "go"));
        play.answer("turn/start", r#"{"result":{"turn":{"id":"turn-1"}}}"#);
        play.hear("turn/completed", failed);
        match outcome(&mut play) {
            Some(TurnOutcome::Failed(failure)) => failure,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(class("openai").class, FailureClass::SignedOut);
    let other = class("openrouter");
    assert_eq!(other.class, FailureClass::Other);
    assert!(other.message.contains("Incorrect API key provided"));
}

#[test]
fn only_a_web_page_is_shown_as_a_sign_in() {
    for (url, shown) in [
        ("https://auth.openai.com/oauth/authorize?x=1", true),
        ("http://127.0.0.1:9/oauth", true),
        ("http://localhost:9/oauth", true),
        ("http://[::1]:9/oauth", true),
        ("http://auth.openai.com/oauth", false),
        ("file:///etc/passwd", false),
        ("javascript:alert(1)", false),
        ("not an address", false),
    ] {
        let mut play = Play::new(&Purpose::SignIn { method: SignInMethod::Browser });
        play.answer("initialize", r#"{"result":{"userAgent":"turnkeep/0.171.0 (x)"}}"#);
        play.take();
        play.answer("account/login/start", &format!(r#"{{"result":{{"type":"chatgpt","loginId":"l","authUrl":"{url}"}}}}"#));
        let told = names(&mut play);
        assert_eq!(told == ["SignInStep"], shown, "{url}: {told:?}");
    }
}

#[test]
fn a_cancel_before_the_sign_in_has_a_name_is_carried_out_when_it_has() {
    let mut play = Play::new(&Purpose::SignIn { method: SignInMethod::Browser });
    play.answer("initialize", r#"{"result":{"userAgent":"turnkeep/0.171.0 (x)"}}"#);
    play.command(&AgentCommand::CancelSignIn);
    assert_eq!(asked(&play, "account/login/cancel"), 0);
    play.take();
    play.answer("account/login/start", r#"{"result":{"loginId":"l","authUrl":"https://x.y"}}"#);
    assert_eq!(asked(&play, "account/login/cancel"), 1);
    assert!(play.events.is_empty(), "no page is opened");
}

// ---- lists

#[test]
fn a_probe_reads_on_until_it_finds_or_has_seen_all() {
    let probe = AgentCommand::Probe {
        session: SESSION,
        thread: ThreadRef::new("thread-1"),
        turn: TurnId(4),
        message: MessageId::new("msg-4"),
    };
    let found = |pages: &[&str]| {
        let mut play = Play::ready();
        play.command(&probe);
        play.take();
        for page in pages {
            play.answer("thread/turns/list", page);
        }
        match play.take().pop() {
            Some(AgentEvent::Probed { found, turn: TurnId(4), .. }) => found,
            other => panic!("{other:?}"),
        }
    };
    let empty = r#"{"result":{"data":[],"nextCursor":"more"}}"#;
    let with = |status: &str| {
        format!(
            r#"{{"result":{{"data":[{{"id":"t","status":"{status}","items":[{{"type":"userMessage","id":"u","clientId":"msg-4"}}]}}]}}}}"#
        )
    };
    assert_eq!(found(&[empty, &with("completed")]), ProbeAnswer::Found(TurnOutcome::Completed));
    assert_eq!(found(&[&with("interrupted")]), ProbeAnswer::Found(TurnOutcome::Interrupted));
    assert_eq!(found(&[&with("inProgress")]), ProbeAnswer::Found(TurnOutcome::Lost));
    assert_eq!(found(&[empty, r#"{"result":{"data":[]}}"#]), ProbeAnswer::NotFound);
    assert_eq!(found(&[r#"{"error":{"code":-32600,"message":"thread not loaded: x"}}"#]), ProbeAnswer::CannotTell);
    assert_eq!(found(&[empty, r#"{"error":{"message":"broken"}}"#]), ProbeAnswer::CannotTell);
}

#[test]
fn a_history_is_told_whole_and_in_order() {
    let mut play = Play::ready();
    play.command(&AgentCommand::ReadHistory { session: SESSION, thread: ThreadRef::new("thread-1") });
    play.take();
    let entry =
        |turn: &str, id: &str| format!(r#"{{"turnId":"{turn}","item":{{"type":"agentMessage","id":"{id}","text":"{id}"}}}}"#);
    let page = |entries: &[String], next: &str| format!(r#"{{"result":{{"data":[{}],"nextCursor":{next}}}}}"#, entries.join(","));
    play.answer("thread/items/list", &page(&[entry("t2", "c"), entry("t1", "b")], "\"next\""));
    play.answer("thread/items/list", &page(&[entry("t1", "a")], "null"));
    let [AgentEvent::History { items, .. }] = &play.take()[..] else { panic!("a history") };
    let told: Vec<_> = items
        .iter()
        .map(|(turn, item)| {
            (turn.clone(), item.id.as_str(), matches!(item.body, ItemBody::AgentMessage { final_answer: true, .. }))
        })
        .collect();
    let turn = ProviderTurn::new;
    assert_eq!(told, [(turn("t1"), "a", false), (turn("t1"), "b", true), (turn("t2"), "c", true)]);
}

#[test]
fn meters_are_told_in_percent_and_only_when_there_are_any() {
    let mut play = Play::open();
    play.take();
    play.hear("account/rateLimits/updated", r#"{"rateLimits":{"limitId":"codex","primary":null}}"#);
    play.hear("account/rateLimits/updated", r#"{"rateLimits":{"limitId":"other","primary":{"usedPercent":5}}}"#);
    assert!(play.events.is_empty());
    play.hear(
        "account/rateLimits/updated",
        r#"{"rateLimits":{"limitId":"codex","planType":"plus","primary":{"usedPercent":41.6,"windowDurationMins":300,"resetsAt":1800000000},"secondary":{"usedPercent":1e9}}}"#,
    );
    let [AgentEvent::RateLimits { limits, plan }] = &play.take()[..] else { panic!("meters") };
    assert_eq!(plan.as_deref(), Some("plus"));
    assert_eq!(limits.iter().map(|limit| limit.used_percent).collect::<Vec<_>>(), [42, 100]);
}

#[test]
fn a_warning_that_is_repeated_is_told_once() {
    let mut play = Play::open();
    play.take();
    for _ in 0..3 {
        play.hear("warning", r#"{"threadId":"thread-1","message":"no such model"}"#);
    }
    assert_eq!(names(&mut play), ["Notice"]);
}

#[test]
fn at_most_sixty_four_requests_are_unanswered() {
    let mut play = Play::ready();
    for _ in 0..200 {
        play.command(&AgentCommand::ReadRateLimits);
    }
    assert_eq!(play.unanswered("account/rateLimits/read"), 64);
    for _ in 0..136 {
        play.answer("account/rateLimits/read", r#"{"result":{}}"#);
    }
    assert_eq!(asked(&play, "account/rateLimits/read"), 200);
}
