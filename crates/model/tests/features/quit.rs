//! Stopping.

use expect_test::expect;

use crate::{check, script::RUNNING};

#[test]
fn a_quit_waits_for_the_running_turn() {
    check(
        &format!("{RUNNING} .send 0 next\n quit\n ended 0 0 p0 completed\n gone 0\n killed"),
        expect![[r#"
            quit
                QuitBegan quit=Quit { since: 1009, deadline: None, forced: false }
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                AccountVerified account=0
                RuntimePhased runtime=0 phase=Retiring { then: Quit }
                => Notify key=turn 0 completed
                => Stop runtime=0 force=false
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                => Exit
            killed
                Recovered
                RuntimeRequested runtime=1
                => Notify key=turn 0 completed
                => Spawn runtime=1 account=0 credential=0
        "#]],
    );
}

#[test]
fn a_quit_does_not_wait_for_a_person() {
    check(
        &format!("{RUNNING} .asks 0 0 p0 k\n quit\n ended 0 0 p0 interrupted\n gone 0"),
        expect![[r#"
            quit
                QuitBegan quit=Quit { since: 1009, deadline: None, forced: false }
                TurnInterrupting turn=0
                => Interrupt session=0 turn=0 by=0
            ended 0 0 p0 interrupted
                ApprovalMoot approval=0
                NotificationDismissed key=approval 0
                TurnEnded turn=0 outcome=Interrupted
                RuntimePhased runtime=0 phase=Retiring { then: Quit }
                => CloseNotification key=approval 0
                => Stop runtime=0 force=false
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                => Exit
        "#]],
    );
}

#[test]
fn a_quit_has_a_deadline_if_one_is_set() {
    check(
        &format!("{RUNNING} quit 1000\n later\n later\n gone 0"),
        expect![[r#"
            quit 1000
                QuitBegan quit=Quit { since: 1008, deadline: 2008, forced: false }
            later
                TurnInterrupting turn=0
                => Interrupt session=0 turn=0 by=0
            later
                RuntimePhased runtime=0 phase=Retiring { then: Quit }
                => Stop runtime=0 force=false
            gone 0
                TurnEnded turn=0 outcome=Interrupted
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                => Exit
        "#]],
    );
}

#[test]
fn a_second_quit_forces() {
    check(
        &format!("{RUNNING} .goal 0 active\n quit\n quit\n quit\n later\n killed\n gone 0"),
        expect![[r#"
            quit
                QuitBegan quit=Quit { since: 1009, deadline: None, forced: false }
                GoalHeld session=0 held=true
                => SetGoal session=0 by=0
            quit
                GoalSet session=0
                QuitBegan quit=Quit { since: 1009, deadline: 2510, forced: true }
                TurnInterrupting turn=0
                RuntimePhased runtime=0 phase=Retiring { then: Quit }
                => Stop runtime=0 force=true
            quit
            later
                => Exit
            killed
                Recovered
                RuntimePhased runtime=0 phase=Orphan
                => Reap runtime=0
            gone 0
                TurnEnded turn=0 outcome=Interrupted
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                GoalHeld session=0 held=false
        "#]],
    );
}

#[test]
fn a_quit_ends_a_sign_in() {
    check(
        ".agent many native probe\n .sign-in -\n quit\n signed-in 0 me\n killed",
        expect![[r#"
        quit
            QuitBegan quit=Quit { since: 1003, deadline: None, forced: false }
            SignInCancelling sign_in=0
            => CancelSignIn sign_in=0
        signed-in 0 me
            SignInClosed sign_in=0
            RevocationOwed credential=0
            AccountRemoved account=0
            => Exit
        killed
            Recovered
            => Revoke account=0 credential=0
    "#]],
    );
}

#[test]
fn a_quit_while_a_process_starts() {
    check(
        ".agent many native probe\n .home present\n .session\n .send 0 hello\n quit\n ready 0 me\n gone 0",
        expect![[r#"
            quit
                QuitBegan quit=Quit { since: 1005, deadline: None, forced: false }
                RuntimePhased runtime=0 phase=Retiring { then: Quit }
                => Stop runtime=0 force=false
            ready 0 me
            gone 0
                RuntimeRemoved runtime=0 failure=None
                => Exit
        "#]],
    );
}

#[test]
fn a_quit_that_waits_can_be_taken_back_and_everything_goes_on() {
    check(
        &format!(
            "{RUNNING} .send 0 next\n quit\n cancel-quit\n ended 0 0 p0 completed\n quit\n cancel-quit\n gone 0\n ready 1 me"
        ),
        expect![[r#"
            quit
                QuitBegan quit=Quit { since: 1009, deadline: None, forced: false }
            cancel-quit
                QuitCancelled
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                AccountVerified account=0
                TurnDispatched turn=1
                => Notify key=turn 0 completed
                => StartTurn session=0 turn=1 message=next text=next by=0
            quit
                QuitBegan quit=Quit { since: 1012, deadline: None, forced: false }
            cancel-quit
                QuitCancelled
            gone 0
                TurnPhased turn=1 state=Probing closed=None
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=StartFailed
                AccountRestartsCounted account=0
            ready 1 me
        "#]],
    );
}

#[test]
fn a_forced_quit_is_not_taken_back() {
    check(
        &format!("{RUNNING} .quit\n .quit\n cancel-quit"),
        expect![[r#"
        cancel-quit
    "#]],
    );
}
