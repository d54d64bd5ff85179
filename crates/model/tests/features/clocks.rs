//! What has gone quiet, and what nobody uses any more.

use expect_test::expect;

use crate::{
    check,
    script::{RUNNING, Stage},
};

#[test]
fn a_silence_is_told_once_and_ends_with_a_word() {
    check(
        &format!(
            "{RUNNING} minutes 9
             says 0 0 p0 more words
             minutes 9
             minutes 1
             minutes 30
             says 0 0 p0 more words
             minutes 10"
        ),
        expect![[r#"
            minutes 9
            says 0 0 p0 more words
                ItemRecorded session=0 turn=0 completed=true
            minutes 9
            minutes 1
                TurnQuieted turn=0 quiet=Quiet { since: 541009, command: None }
                NotificationRaised key=turn 0 quiet
                => Notify key=turn 0 quiet
            minutes 30
            says 0 0 p0 more words
                TurnHeard turn=0
                NotificationDismissed key=turn 0 quiet
                ItemRecorded session=0 turn=0 completed=true
                => CloseNotification key=turn 0 quiet
            minutes 10
                TurnQuieted turn=0 quiet=Quiet { since: 2941013, command: None }
                NotificationRaised key=turn 0 quiet
                => Notify key=turn 0 quiet
        "#]],
    );
}

#[test]
fn streaming_text_is_a_word_too() {
    check(
        &format!(
            "{RUNNING} .minutes 9
             heard 0
             later
             heard 0"
        ),
        expect![[r#"
            heard 0
            later
                TurnQuieted turn=0 quiet=Quiet { since: 541009, command: None }
                NotificationRaised key=turn 0 quiet
                => Notify key=turn 0 quiet
            heard 0
                TurnHeard turn=0
                NotificationDismissed key=turn 0 quiet
                => CloseNotification key=turn 0 quiet
        "#]],
    );
}

#[test]
fn text_that_came_before_the_clock_rang_counts_from_then() {
    let mut stage = Stage::new();
    stage.play(&format!("{RUNNING} .minutes 9"));
    // Ten minutes after the start, the engine tells of text from one minute ago.
    let shown = stage.play("heard-ago 0 0\n minutes 1");
    assert!(!shown.contains("TurnQuieted"), "{shown}");
    assert!(stage.play("minutes 9").contains("TurnQuieted"));
}

#[test]
fn who_waits_is_not_quiet() {
    check(
        &format!(
            "{RUNNING} .asks 0 0 p0 k
             minutes 60
             answer 0 allow
             minutes 9
             minutes 1
             .says 0 0 p0 more words
             .retrying 0 0 p0
             minutes 60"
        ),
        expect![[r#"
            minutes 60
            answer 0 allow
                ApprovalAnswered approval=0 choice=Allow by=Window
                NotificationDismissed key=approval 0
                => Answer session=0 approval=0 request=k answer=Choice(Allow) by=0
                => CloseNotification key=approval 0
            minutes 9
            minutes 1
                TurnQuieted turn=0 quiet=Quiet { since: 3601010, command: None }
                NotificationRaised key=turn 0 quiet
                => Notify key=turn 0 quiet
            minutes 60
        "#]],
    );
}

#[test]
fn a_long_command_is_named() {
    check(
        &format!(
            "{RUNNING} .command 0 0 p0 make runs
             minutes 10
             ended 0 0 p0 completed"
        ),
        expect![[r#"
            minutes 10
                TurnQuieted turn=0 quiet=Quiet { since: 1008, command: run make }
                NotificationRaised key=turn 0 quiet
                => Notify key=turn 0 quiet
            ended 0 0 p0 completed
                TurnHeard turn=0
                NotificationDismissed key=turn 0 quiet
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                AccountVerified account=0
                => CloseNotification key=turn 0 quiet
                => Notify key=turn 0 completed
        "#]],
    );
}

#[test]
fn nobody_is_told_who_does_not_want_to_be() {
    check(
        &format!("{RUNNING} .patience 0 0\n minutes 600"),
        expect![[r#"
        minutes 600
    "#]],
    );
}

#[test]
fn a_process_without_work_is_stopped_and_started_again_by_the_next_message() {
    check(
        &format!(
            "{RUNNING} .ended 0 0 p0 completed
             minutes 14
             minutes 1
             send 0 next
             send 0 after
             gone 0
             ready 1 me
             opened 1 0"
        ),
        expect![[r#"
            minutes 14
            minutes 1
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Stop runtime=0 force=false
            send 0 next
                MessageQueued session=0
            send 0 after
                MessageQueued session=0
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
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
                TurnDispatched turn=1
                => StartTurn session=0 turn=1 message=next text=next by=1
        "#]],
    );
}

#[test]
fn a_turn_a_queue_and_a_goal_are_work() {
    check(
        &format!(
            "{RUNNING} .patience 0 15
             minutes 60
             .goal 0 active
             .ended 0 0 p0 completed
             minutes 60
             goal-is 0 0 paused
             minutes 15"
        ),
        expect![[r#"
            minutes 60
            minutes 60
            goal-is 0 0 paused
                GoalSet session=0
            minutes 15
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Stop runtime=0 force=false
        "#]],
    );
}

#[test]
fn what_runs_in_the_background_is_work() {
    check(
        &format!(
            "{RUNNING} .patience 0 15
             .command 0 0 p0 serve runs
             .command 0 0 p0 serve abandoned
             .ended 0 0 p0 completed
             minutes 60
             .command 0 0 p0 serve completed
             minutes 14
             minutes 1"
        ),
        expect![[r#"
            minutes 60
            minutes 14
            minutes 1
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Stop runtime=0 force=false
        "#]],
    );
}

#[test]
fn what_was_cut_off_is_no_work() {
    check(
        &format!(
            "{RUNNING} .patience 0 15
             .command 0 0 p0 serve runs
             .command 0 0 p0 serve abandoned
             .ended 0 0 p0 interrupted
             minutes 15"
        ),
        expect![[r#"
            minutes 15
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Stop runtime=0 force=false
        "#]],
    );
}
