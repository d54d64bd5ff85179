//! Questions, and what is told outside the window.

use expect_test::expect;

use crate::{check, script::RUNNING};

#[test]
fn the_first_answer_wins() {
    check(
        &format!("{RUNNING} asks 0 0 p0 k\n asks 0 0 p0 k\n answer 0 always\n answer 0 allow\n answer 0 allow\n settled 0 0 k"),
        expect![[r#"
            asks 0 0 p0 k
                ApprovalRequested approval=0
                NotificationRaised key=approval 0
                => Notify key=approval 0
            asks 0 0 p0 k
            answer 0 always
            answer 0 allow
                ApprovalAnswered approval=0 choice=Allow by=Window
                NotificationDismissed key=approval 0
                => Answer session=0 approval=0 request=k answer=Choice(Allow) by=0
                => CloseNotification key=approval 0
            answer 0 allow
            settled 0 0 k
        "#]],
    );
}

#[test]
fn a_question_does_not_outlive_its_turn() {
    check(
        &format!("{RUNNING} .asks 0 0 p0 k\n ended 0 0 p0 interrupted\n answer 0 allow"),
        expect![[r#"
        ended 0 0 p0 interrupted
            ApprovalMoot approval=0
            NotificationDismissed key=approval 0
            TurnEnded turn=0 outcome=Interrupted
            => CloseNotification key=approval 0
        answer 0 allow
    "#]],
    );
}

#[test]
fn a_question_outside_of_a_turn_is_denied() {
    check(
        &format!("{RUNNING} .ended 0 0 p0 completed\n asks 0 0 - k"),
        expect![[r#"
            asks 0 0 - k
                => Answer session=0 approval=0 request=k answer=Choice(Deny) by=0
        "#]],
    );
}

#[test]
fn an_old_runtime_is_answered_too() {
    check(
        &format!("{RUNNING} .asks 0 0 p0 k\n .sign-out 0\n answer 0 allow"),
        expect![[r#"
            answer 0 allow
                ApprovalAnswered approval=0 choice=Allow by=Window
                NotificationDismissed key=approval 0
                => Answer session=0 approval=0 request=k answer=Choice(Allow) by=0
                => CloseNotification key=approval 0
        "#]],
    );
}

#[test]
fn muted_nothing_is_told() {
    check(
        &format!("{RUNNING} .mute\n asks 0 0 p0 k\n ended 0 0 p0 completed"),
        expect![[r#"
        asks 0 0 p0 k
            ApprovalRequested approval=0
        ended 0 0 p0 completed
            ApprovalMoot approval=0
            TurnEnded turn=0 outcome=Completed
            AccountVerified account=0
    "#]],
    );
}

#[test]
fn looking_at_a_session_takes_its_notifications_away() {
    check(
        &format!("{RUNNING} .ended 0 0 p0 completed\n read 0\n dismiss turn 0 completed"),
        expect![[r#"
        read 0
            SessionRead session=0
            NotificationDismissed key=turn 0 completed
            => CloseNotification key=turn 0 completed
        dismiss turn 0 completed
    "#]],
    );
}

#[test]
fn what_was_not_shown_is_shown_after_a_restart() {
    check(
        &format!("{RUNNING} .ended 0 0 p0 completed\n killed"),
        expect![[r#"
        killed
            Recovered
            RuntimePhased runtime=0 phase=Orphan
            => Notify key=turn 0 completed
            => Reap runtime=0
    "#]],
    );
}
