//! Goals: native ones, and those that we drive.

use expect_test::expect;

use crate::{check, script::RUNNING};

#[test]
fn a_goal_is_held_on_an_old_runtime_and_goes_on_with_the_new_account() {
    check(
        &format!(
            "{RUNNING} .sign-in -
             .signed-in 0 other
             goal 0 active
             use 1
             goal-is 0 0 paused
             turn 0 0 - p1
             ended 0 0 p0 completed
             ended 0 0 p1 interrupted
             gone 0
             ready 1 other
             opened 1 0"
        ),
        expect![[r#"
            goal 0 active
                GoalSet session=0
                => SetGoal session=0 by=0
            use 1
                EpochBegan epoch=2 current=1
                GoalHeld session=0 held=true
                => SetGoal session=0 by=0
            goal-is 0 0 paused
            turn 0 0 - p1
                TurnDispatched turn=1
                TurnInterrupting turn=1
                => Interrupt session=0 turn=1 by=0
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                => Notify key=turn 0 completed
            ended 0 0 p1 interrupted
                TurnEnded turn=1 outcome=Interrupted
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Stop runtime=0 force=false
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                GoalHeld session=0 held=false
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=1 credential=1
            ready 1 other
                RuntimeReady runtime=1 identity=Identity { fingerprint: other, label: , plan: None }
                SessionAttached session=0 attachment=Opening { runtime: 1 }
                => ListModels by=1
                => ReadRateLimits by=1
                => Open runtime=1 OpenSession session=0 thread=t0 fork_of=None history=false
            opened 1 0
                SessionAttached session=0 attachment=Open { runtime: 1 }
        "#]],
    );
}

#[test]
fn a_goal_that_is_reached_while_held_is_done() {
    check(
        &format!("{RUNNING} .goal 0 active\n .sign-out 0\n goal-is 0 0 done\n ended 0 0 p0 completed"),
        expect![[r#"
        goal-is 0 0 done
            GoalSet session=0
        ended 0 0 p0 completed
            TurnEnded turn=0 outcome=Completed
            NotificationRaised key=turn 0 completed
            RuntimePhased runtime=0 phase=Retiring { then: Nothing }
            => Notify key=turn 0 completed
            => Stop runtime=0 force=false
    "#]],
    );
}

#[test]
fn a_goal_that_changes_while_the_session_opens_is_set_again() {
    check(
        ".agent many native probe
         .home present
         .session
         .goal 0 active
         .ready 0 me
         goal 0 -
         opened 0 0",
        expect![[r#"
            goal 0 -
                GoalSet session=0 goal=None
                GoalHeld session=0 held=true
            opened 0 0
                ThreadNamed session=0 thread=t0
                SessionAttached session=0 attachment=Open { runtime: 0 }
                GoalHeld session=0 held=false
                => SetGoal session=0 goal=None by=0
        "#]],
    );
}

#[test]
fn a_driven_goal_makes_the_next_message_until_its_budget_is_spent() {
    check(
        ".agent one driven none
         .home present
         .session
         .goal 0 active
         .ready 0 me
         opened 0 0
         turn 0 0 0 p0
         send 0 hello
         ended 0 0 p0 completed
         .turn 0 0 1 p1
         used 0 0 200
         ended 0 0 p1 completed",
        expect![[r#"
            opened 0 0
                ThreadNamed session=0 thread=t0
                SessionAttached session=0 attachment=Open { runtime: 0 }
                MessageQueued session=0
                TurnDispatched turn=0
                => StartTurn session=0 turn=0 message=goal 0 0 text=the goal by=0
            turn 0 0 0 p0
                TurnStarted turn=0 provider_turn=p0
            send 0 hello
                MessageQueued session=0
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                AccountVerified account=0
                TurnDispatched turn=1
                => Notify key=turn 0 completed
                => StartTurn session=0 turn=1 message=hello text=hello by=0
            used 0 0 200
                UsageCounted session=0
                GoalSet session=0
            ended 0 0 p1 completed
                TurnEnded turn=1 outcome=Completed
                NotificationRaised key=turn 1 completed
                AccountVerified account=0
                => Notify key=turn 1 completed
        "#]],
    );
}

#[test]
fn a_driven_goal_stops_at_a_failure_and_pauses_at_an_interrupt() {
    check(
        ".agent one driven none
         .home present
         .session
         .goal 0 active
         .ready 0 me
         .opened 0 0
         .turn 0 0 0 p0
         ended 0 0 p0 failed limit
         goal 0 active
         .turn 0 0 1 p1
         interrupt 0
         ended 0 0 p1 interrupted",
        expect![[r#"
            ended 0 0 p0 failed limit
                TurnEnded turn=0 outcome=Failed(UsageLimit)
                NotificationRaised key=turn 0 failed
                GoalSet session=0
                => Notify key=turn 0 failed
            goal 0 active
                GoalSet session=0
                MessageQueued session=0
                TurnDispatched turn=1
                => StartTurn session=0 turn=1 message=goal 0 1 text=the goal by=0
            interrupt 0
                GoalSet session=0
                TurnInterrupting turn=1
                => Interrupt session=0 turn=1 by=0
            ended 0 0 p1 interrupted
                TurnEnded turn=1 outcome=Interrupted
        "#]],
    );
}
