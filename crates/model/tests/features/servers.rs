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
        expect![[r#"
            attach unix:///s
                AccountAdded account=0
                CredentialAdded credential=0
                AccountSignedIn account=0 credential=0 identity=None
                EpochBegan epoch=1 current=0
            attach unix:///s
            send 0 hello
                MessageQueued session=0
                RuntimeRequested runtime=0
                => Spawn runtime=0 account=0 credential=0
        "#]],
    );
}

#[test]
fn letting_go_of_one_revokes_nothing_and_waits_for_its_turn() {
    there(
        "sign-out 0
         ended 0 0 p0 completed
         gone 0
         attach unix:///s",
        expect![[r#"
            sign-out 0
                AccountSignedOut account=0
                EpochBegan epoch=2 current=0
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Notify key=turn 0 completed
                => Stop runtime=0 force=false
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                CredentialForgotten credential=0
            attach unix:///s
                CredentialAdded credential=1
                AccountSignedIn account=0 credential=1 identity=None
                EpochBegan epoch=3 current=0
        "#]],
    );
}

#[test]
fn one_that_is_removed_while_a_turn_runs_is_let_go_of_when_it_ends() {
    there(
        "remove 0
         ended 0 0 p0 completed
         gone 0",
        expect![[r#"
            remove 0
                AccountSignedOut account=0
                EpochBegan epoch=2 current=0
                EpochBegan epoch=3 current=None
                AccountRemoved account=0
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Notify key=turn 0 completed
                => Stop runtime=0 force=false
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                CredentialForgotten credential=0
        "#]],
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
        expect![[r#"
            ended 0 0 p0 cut
                RuntimeFaulted runtime=0 failure=TransportClosed
                TurnPhased turn=0 state=Probing
                RuntimePhased runtime=0 phase=Retiring { then: CountFailure(TransportClosed) }
                => Stop runtime=0 force=false
            died 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=TransportClosed
                AccountRestartsCounted account=0
            later
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
            ready 1 me
                RuntimeReady runtime=1 identity=Identity { fingerprint: me, label: , plan: None }
                SessionAttached session=0 attachment=Opening { runtime: 1 }
                => ListModels by=1
                => ReadRateLimits by=1
                => Open runtime=1 OpenSession session=0 thread=t0 fork_of=None history=false goal=None
            opened 1 0
                SessionAttached session=0 attachment=Open { runtime: 1 }
                => Probe turn=0 runtime=1 command=Probe { session: 0, thread: t0, turn: 0, message: hello }
            probed 0 running p0
                TurnRejoined turn=0 runtime=1 provider_turn=p0
            ended 1 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                AccountVerified account=0
                => Notify key=turn 0 completed
        "#]],
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
        expect![[r#"
            ended 0 0 p0 cut
                RuntimeFaulted runtime=0 failure=TransportClosed
                ApprovalMoot approval=0
                NotificationDismissed key=approval 0
                TurnPhased turn=0 state=Probing
                RuntimePhased runtime=0 phase=Retiring { then: CountFailure(TransportClosed) }
                => CloseNotification key=approval 0
                => Stop runtime=0 force=false
            asks 1 0 p0 r
                TurnRejoined turn=0 runtime=1 provider_turn=p0
                ApprovalRequested approval=1
                NotificationRaised key=approval 1
                => Notify key=approval 1
            probed 0 running p0
        "#]],
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
        expect![[r#"
            probed 0 interrupted
                TurnEnded turn=0 outcome=Failed(TransportClosed)
                NotificationRaised key=turn 0 failed
                => Notify key=turn 0 failed
        "#]],
    );
    there(
        ".ended 0 0 p0 cut
         .died 0
         .later
         .ready 1 me
         .opened 1 0
         probed 0 completed",
        expect![[r#"
            probed 0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                => Notify key=turn 0 completed
        "#]],
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
        expect![[r#"
            not-started 1 start
                RuntimeRemoved runtime=1 failure=StartFailed
                AccountRestartsCounted account=0
            later
                RuntimeRequested runtime=2
                => Spawn runtime=2 account=0 credential=0
            not-started 2 start
                RuntimeRemoved runtime=2 failure=StartFailed
                AccountRestartsCounted account=0
                NotificationRaised key=given up 26
                TurnEnded turn=0 outcome=Failed(TransportClosed)
                NotificationRaised key=turn 0 failed
                => Notify key=given up 26
                => Notify key=turn 0 failed
            try 0
                NotificationDismissed key=given up 26
                AccountRestartsCounted account=0 restarts=Restarts { failures: [], given_up: None, not_before: 0 }
                => CloseNotification key=given up 26
        "#]],
    );
}

#[test]
fn a_turn_is_not_asked_about_anywhere_else() {
    there(
        ".home present
         .ended 0 0 p0 cut
         .died 0
         use 1",
        expect![[r#"
            use 1
                EpochBegan epoch=2 current=1
                TurnEnded turn=0 outcome=Failed(TransportClosed)
                NotificationRaised key=turn 0 failed
                => Notify key=turn 0 failed
        "#]],
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
        expect![[r#"
            use 1
                EpochBegan epoch=2 current=1
                TurnEnded turn=0 outcome=Unknown
                NotificationRaised key=turn 0 unknown
                => Notify key=turn 0 unknown
        "#]],
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
        expect![[r#"
            quit
                QuitBegan quit=Quit { since: 1008, deadline: 2509, forced: true }
                RuntimePhased runtime=0 phase=Retiring { then: Quit }
                => Stop runtime=0 force=true
            gone 0
                TurnPhased turn=0 state=Probing closed=None
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                => Exit
            killed
                Recovered
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
            ready 1 me
                RuntimeReady runtime=1 identity=Identity { fingerprint: me, label: , plan: None }
                SessionAttached session=0 attachment=Opening { runtime: 1 }
                => ListModels by=1
                => ReadRateLimits by=1
                => Open runtime=1 OpenSession session=0 thread=t0 fork_of=None history=false goal=None
            opened 1 0
                SessionAttached session=0 attachment=Open { runtime: 1 }
                => Probe turn=0 runtime=1 command=Probe { session: 0, thread: t0, turn: 0, message: hello }
            probed 0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                => Notify key=turn 0 completed
        "#]],
    );
}

#[test]
fn what_was_connected_to_one_is_nothing_to_be_found_at_the_next_start() {
    there(
        "killed",
        expect![[r#"
            killed
                Recovered
                RuntimePhased runtime=0 phase=Orphan
                TurnPhased turn=0 state=Probing closed=None
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
        "#]],
    );
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
        expect![[r#"
            ready 0 nobody
                AccountTroubled account=0 problem=Rejected(SignedOut)
                NotificationRaised key=signed out 0 1
                EpochBegan epoch=2 current=0
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Notify key=signed out 0 1
                => Stop runtime=0 force=false
            gone 0
                RuntimeRemoved runtime=0 failure=None
            attach unix:///s
                AccountTried account=0
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
            ready 1 me
                AccountIdentified account=0 identity=Identity { fingerprint: me, label: , plan: None }
                RuntimeReady runtime=1 identity=Identity { fingerprint: me, label: , plan: None }
                SessionAttached session=0 attachment=Opening { runtime: 1 }
                => ListModels by=1
                => ReadRateLimits by=1
                => Open runtime=1 OpenSession session=0 thread=None fork_of=None history=false goal=None
            identity 1 other
                AccountIdentified account=0 identity=Identity { fingerprint: other, label: , plan: None }
                EpochBegan epoch=3 current=0
                RuntimePhased runtime=1 phase=Retiring { then: Nothing }
                => Stop runtime=1 force=false
        "#]],
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
        expect![[r#"
            turn 0 0 - p1
                TurnDispatched turn=1
            quit
                QuitBegan quit=Quit { since: 1011, deadline: None, forced: false }
                RuntimePhased runtime=0 phase=Retiring { then: Quit }
                => Stop runtime=0 force=false
            turn 0 0 - p2
            asks 0 0 p2 r
        "#]],
    );
}
