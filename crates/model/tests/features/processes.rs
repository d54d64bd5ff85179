//! Starting, failing, crashing, coming back.

use expect_test::expect;

use crate::{check, script::RUNNING};

#[test]
fn three_failures_are_enough() {
    check(
        ".agent many native probe
         .home present
         .session
         send 0 hello
         not-started 0 start
         later
         died 1
         later
         not-started 2 start
         send 0 more
         try 0",
        expect![[r#"
            send 0 hello
                MessageQueued session=0
                RuntimeRequested runtime=0
                => Spawn runtime=0 account=0 credential=0
            not-started 0 start
                RuntimeRemoved runtime=0 failure=StartFailed
                AccountRestartsCounted account=0
            later
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
            died 1
                RuntimeRemoved runtime=1 failure=TransportClosed
                AccountRestartsCounted account=0
            later
                RuntimeRequested runtime=2
                => Spawn runtime=2 account=0 credential=0
            not-started 2 start
                RuntimeRemoved runtime=2 failure=StartFailed
                AccountRestartsCounted account=0
                NotificationRaised key=given up 15
                => Notify key=given up 15
            send 0 more
                MessageQueued session=0
            try 0
                NotificationDismissed key=given up 15
                AccountRestartsCounted account=0 restarts=Restarts { failures: [], given_up: None, not_before: 0 }
                RuntimeRequested runtime=3
                => CloseNotification key=given up 15
                => Spawn runtime=3 account=0 credential=0
        "#]],
    );
}

#[test]
fn the_end_of_a_process_that_nobody_needs_is_nothing() {
    check(
        &format!("{RUNNING} .ended 0 0 p0 completed\n died 0\n send 0 next"),
        expect![[r#"
            died 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=TransportClosed
            send 0 next
                MessageQueued session=0
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
        "#]],
    );
}

#[test]
fn a_process_that_gives_no_answer_is_replaced() {
    check(
        ".agent many native probe
         .home present
         .session
         .send 0 hello
         .ready 0 me
         no-answer 0 0
         gone 0
         later",
        expect![[r#"
            no-answer 0 0
                RuntimeFaulted runtime=0 failure=Timeout
                RuntimePhased runtime=0 phase=Retiring { then: CountFailure(Timeout) }
                => Stop runtime=0 force=false
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=Timeout
                AccountRestartsCounted account=0
            later
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
        "#]],
    );
}

#[test]
fn after_a_crash_turns_stay_with_their_process_until_it_is_gone() {
    check(
        &format!("{RUNNING} .send 0 next\n .asks 0 0 p0 k\n killed\n gone 0\n ready 1 me\n opened 1 0"),
        expect![[r#"
            killed
                Recovered
                RuntimePhased runtime=0 phase=Orphan
                ApprovalMoot approval=0
                NotificationDismissed key=approval 0
                => CloseNotification key=approval 0
                => Reap runtime=0
            gone 0
                TurnEnded turn=0 outcome=Lost
                NotificationRaised key=turn 0 failed
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                RuntimeRequested runtime=1
                => Notify key=turn 0 failed
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
fn after_a_crash_only_what_has_work_is_opened() {
    check(
        &format!("{RUNNING} .ended 0 0 p0 completed\n .session\n .goal 1 active\n killed\n gone 0"),
        expect![[r#"
            killed
                Recovered
                RuntimePhased runtime=0 phase=Orphan
                => Notify key=turn 0 completed
                => Reap runtime=0
            gone 0
                SessionAttached session=0 attachment=Detached
                SessionAttached session=1 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
        "#]],
    );
}

#[test]
fn a_process_each_serves_its_own_session() {
    check(
        ".agent one native probe
         .home present
         .session
         .session
         send 0 hello
         send 1 hello1
         ready 1 me
         ready 0 me
         died 1
         archive 0",
        expect![[r#"
            send 0 hello
                MessageQueued session=0
                RuntimeRequested runtime=0
                => Spawn runtime=0 account=0 credential=0
            send 1 hello1
                MessageQueued session=1
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
            ready 1 me
                AccountIdentified account=0 identity=Identity { fingerprint: me, label: , plan: None }
                RuntimeReady runtime=1 identity=Identity { fingerprint: me, label: , plan: None }
                SessionAttached session=1 attachment=Opening { runtime: 1 }
                => ListModels by=1
                => ReadRateLimits by=1
                => Open runtime=1 OpenSession session=1 thread=None fork_of=None history=false goal=None
            ready 0 me
                RuntimeReady runtime=0 identity=Identity { fingerprint: me, label: , plan: None }
                SessionAttached session=0 attachment=Opening { runtime: 0 }
                => ListModels by=0
                => ReadRateLimits by=0
                => Open runtime=0 OpenSession session=0 thread=None fork_of=None history=false goal=None
            died 1
                SessionAttached session=1 attachment=Detached
                RuntimeRemoved runtime=1 failure=TransportClosed
                RestartsCounted session=1
            archive 0
                SessionArchived session=0 archived=true
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Stop runtime=0 force=false
        "#]],
    );
}
