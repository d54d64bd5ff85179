//! Servers that somebody else started: used as accounts, let go of, and never ended.

use expect_test::expect;
use turnkeep_model::Effect;

use crate::{check, script::Stage};

/// A running turn at a server.
const THERE: &str = "
    .agent many native probe
    .attach unix:///s
    .session
    .send 0 hello
    .ready 0 me
    .opened 0 0
    .turn 0 0 0 p0
";

fn there(script: &str, expected: expect_test::Expect) {
    check(&format!("{THERE}{script}"), expected);
}

#[test]
fn it_needs_no_program_here_and_no_keychain() {
    check(
        ".agent many native probe missing
         .keychain locked
         attach unix:///s
         attach unix:///s
         .session
         send 0 hello",
        expect![[r#""#]],
    );
}

#[test]
fn letting_go_of_one_revokes_nothing_and_waits_for_its_turn() {
    there(
        "sign-out 0
         ended 0 0 p0 completed
         gone 0
         attach unix:///s",
        expect![[r#""#]],
    );
}

#[test]
fn one_that_is_removed_while_a_turn_runs_is_let_go_of_when_it_ends() {
    there(
        "remove 0
         ended 0 0 p0 completed
         gone 0",
        expect![[r#""#]],
    );
}

#[test]
fn a_turn_behind_a_lost_connection_is_asked_about_and_joined_again() {
    there(
        "ended 0 0 p0 cut
         died 0
         later
         ready 1 me
         opened 1 0
         probed 0 running p0
         ended 1 0 p0 completed",
        expect![[r#""#]],
    );
}

#[test]
fn a_question_that_waits_there_joins_its_turn_again() {
    there(
        ".asks 0 0 p0 r
         ended 0 0 p0 cut
         .died 0
         .later
         .ready 1 me
         .opened 1 0
         asks 1 0 p0 r
         probed 0 running p0",
        expect![[r#""#]],
    );
}

#[test]
fn a_turn_whose_end_nobody_heard_has_the_outcome_that_the_history_tells() {
    there(
        ".ended 0 0 p0 cut
         .died 0
         .later
         .ready 1 me
         .opened 1 0
         probed 0 interrupted",
        expect![[r#""#]],
    );
    there(
        ".ended 0 0 p0 cut
         .died 0
         .later
         .ready 1 me
         .opened 1 0
         probed 0 completed",
        expect![[r#""#]],
    );
}

#[test]
fn a_turn_at_one_that_stays_away_fails_and_is_not_sent_again() {
    there(
        ".ended 0 0 p0 cut
         .died 0
         .later
         not-started 1 start
         later
         not-started 2 start
         try 0",
        expect![[r#""#]],
    );
}

#[test]
fn a_turn_is_not_asked_about_anywhere_else() {
    there(
        ".home present
         .ended 0 0 p0 cut
         .died 0
         use 1",
        expect![[r#""#]],
    );
    // Not acknowledged: it may be there or not, and another account's history would say that it is not.
    check(
        ".agent many native probe
         .attach unix:///s
         .home present
         .session
         .send 0 hello
         .ready 0 me
         .opened 0 0
         .died 0
         use 1",
        expect![[r#""#]],
    );
}

#[test]
fn a_forced_quit_lets_go_of_it_and_the_next_start_asks() {
    there(
        ".quit
         quit
         gone 0
         killed
         ready 1 me
         opened 1 0
         probed 0 completed",
        expect![[r#""#]],
    );
}

#[test]
fn what_was_connected_to_one_is_nothing_to_be_found_at_the_next_start() {
    there("killed", expect![[r#""#]]);
    let mut stage = Stage::new();
    stage.play(THERE);
    let state = stage.machine.state().clone();
    let step = turnkeep_model::Supervisor::new(state).recover(turnkeep_model::Now { wall: 1, boot: 1 });
    let reaps = |effect: &Effect| matches!(effect, Effect::Reap { .. } | Effect::Stop { .. });
    assert!(!step.effects.iter().any(reaps), "{:?}", step.effects);
}

#[test]
fn nobody_signed_in_there_is_a_refusal_and_no_sign_out_of_ours() {
    check(
        ".agent many native probe
         .attach unix:///s
         .session
         .send 0 hello
         ready 0 nobody
         gone 0
         attach unix:///s
         ready 1 me
         identity 1 other",
        expect![[r#""#]],
    );
}

#[test]
fn what_other_clients_begin_there_is_theirs() {
    there(
        ".ended 0 0 p0 completed
         turn 0 0 - p1
         .ended 0 0 p1 completed
         quit
         turn 0 0 - p2
         asks 0 0 p2 r",
        expect![[r#""#]],
    );
}
