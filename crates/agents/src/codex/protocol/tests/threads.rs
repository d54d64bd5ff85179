//! Opening sessions and letting go of them, and asking Codex what it has.

use turnkeep_model::{
    MessageId, ProviderTurn, ThreadRef, TurnId,
    port::{AgentCommand, AgentEvent, FailureClass, GoalSpec, GoalStatus, ItemBody, ProbeAnswer, TurnOutcome},
};

use super::{COMPLETED, OPENED, Play, SESSION, asked, names, open_session};

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
fn a_late_opening_does_not_close_the_next_one() {
    let mut play = Play::ready();
    play.command(&open_session(Some("thread-1")));
    play.pass(61_000);
    play.command(&open_session(Some("thread-1")));
    play.take();
    play.answer("thread/resume", OPENED);
    play.answer("thread/resume", OPENED);
    assert_eq!(asked(&play, "thread/unsubscribe"), 0);
    assert_eq!(names(&mut play), ["SessionOpened"]);
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
    let AgentCommand::OpenSession { session, thread, fork_of, history, folder, settings, .. } = open_session(Some("thread-1"))
    else {
        unreachable!("made so")
    };
    let goal = Some(GoalSpec { objective: "o".to_owned(), status: GoalStatus::Paused, token_budget: None });
    play.command(&AgentCommand::OpenSession { session, thread, fork_of, history, folder, settings, goal });
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
    let [AgentEvent::History { result: Ok(items), .. }] = &play.take()[..] else { panic!("a history") };
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
fn a_thread_of_an_older_codex_is_read_turn_by_turn() {
    let mut play = Play::ready();
    play.command(&AgentCommand::ReadHistory { session: SESSION, thread: ThreadRef::new("thread-1") });
    play.take();
    play.answer("thread/items/list", r#"{"error":{"code":-32601,"message":"thread/items/list is not supported yet"}}"#);
    let turn = |id: &str| {
        format!(
            r#"{{"result":{{"nextCursor":"{id}","data":[{{"id":"{id}","status":"completed","items":[
                {{"type":"userMessage","id":"item-1","content":[{{"type":"text","text":"{id}"}}]}},
                {{"type":"agentMessage","id":"item-2","text":"{id}"}}]}}]}}}}"#
        )
    };
    play.answer("thread/turns/list", &turn("t2"));
    play.answer("thread/turns/list", &turn("t1").replace("\"t1\",\"data\"", "null,\"data\""));
    let [AgentEvent::History { result: Ok(items), .. }] = &play.take()[..] else { panic!("a history") };
    let told: Vec<_> = items.iter().map(|(turn, item)| (turn.as_str(), item.id.as_str())).collect();
    assert_eq!(told, [("t1", "item-1"), ("t1", "item-2"), ("t2", "item-1"), ("t2", "item-2")]);

    play.command(&AgentCommand::ReadHistory { session: SESSION, thread: ThreadRef::new("thread-1") });
    play.answer("thread/items/list", r#"{"error":{"code":-32600,"message":"thread not loaded: x"}}"#);
    let [AgentEvent::History { result: Err(failure), .. }] = &play.take()[..] else { panic!("a failure") };
    assert_eq!(failure.class, FailureClass::ThreadNotFound);
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
