//! Opening that is cancelled, closing that fails, and by what name a session is found again.

use expect_test::expect;

use crate::{check, script::RUNNING};

const ASKED: &str = "
    .agent many native probe
    .home present
    .session
    .session
    .send 0 hello
";

#[test]
fn who_is_put_away_before_the_process_starts_needs_none() {
    check(
        &format!("{ASKED} archive 0\n gone 0\n send 0 again"),
        expect![[r#"
            archive 0
                SessionArchived session=0 archived=true
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Stop runtime=0 force=false
            gone 0
                RuntimeRemoved runtime=0 failure=None
            send 0 again
                SessionArchived session=0 archived=false
                MessageQueued session=0
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
        "#]],
    );
}

#[test]
fn a_process_that_others_wait_for_starts() {
    check(
        &format!("{ASKED} .send 1 hello1\n archive 0\n ready 0 me"),
        expect![[r#"
            archive 0
                SessionArchived session=0 archived=true
            ready 0 me
                AccountIdentified account=0 identity=Identity { fingerprint: me, label: , plan: None }
                RuntimeReady runtime=0 identity=Identity { fingerprint: me, label: , plan: None }
                SessionAttached session=1 attachment=Opening { runtime: 0 }
                => ListModels by=0
                => ReadRateLimits by=0
                => Open runtime=0 OpenSession session=1 thread=None fork_of=None history=false goal=None
        "#]],
    );
}

#[test]
fn who_is_put_away_while_it_opens_is_closed_with_its_process() {
    check(
        &format!("{ASKED} .ready 0 me\n archive 0\n opened 0 0\n gone 0"),
        expect![[r#"
            archive 0
                SessionArchived session=0 archived=true
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Stop runtime=0 force=false
            opened 0 0
                ThreadNamed session=0 thread=t0
                SessionAttached session=0 attachment=Open { runtime: 0 }
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
        "#]],
    );
}

#[test]
fn who_is_put_away_while_it_opens_beside_others_is_closed_when_the_late_answer_comes() {
    check(
        &format!("{ASKED} .ready 0 me\n .send 1 hello1\n .opened 0 1\n archive 0\n opened 0 0\n released 0 0"),
        expect![[r#"
            archive 0
                SessionArchived session=0 archived=true
            opened 0 0
                ThreadNamed session=0 thread=t0
                SessionAttached session=0 attachment=Open { runtime: 0 }
                SessionAttached session=0 attachment=Releasing { runtime: 0 }
                => Release runtime=0 session=0
            released 0 0
                SessionAttached session=0 attachment=Detached
        "#]],
    );
}

#[test]
fn the_last_session_takes_its_process_along() {
    check(
        &format!("{RUNNING} .ended 0 0 p0 completed\n archive 0"),
        expect![[r#"
        archive 0
            SessionArchived session=0 archived=true
            RuntimePhased runtime=0 phase=Retiring { then: Nothing }
            => Stop runtime=0 force=false
    "#]],
    );
}

#[test]
fn a_running_turn_is_not_cut_off() {
    check(
        &format!("{RUNNING} archive 0\n ended 0 0 p0 completed\n released 0 0"),
        expect![[r#"
            archive 0
                SessionArchived session=0 archived=true
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                AccountVerified account=0
                => Notify key=turn 0 completed
                => Stop runtime=0 force=false
            released 0 0
                SessionAttached session=0 attachment=Detached
        "#]],
    );
}

#[test]
fn a_closing_that_fails_is_tried_again_and_then_ends_with_its_process() {
    check(
        &format!(
            "{ASKED} .ready 0 me
             .send 1 hello1
             .opened 0 1
             .opened 0 0 nameless
             no-answer 0 0
             later
             no-answer 0 0
             later
             no-answer 0 0
             later
             no-answer 0 0
             later
             no-answer 0 0
             ended 0 1 t completed"
        ),
        expect![[r#"
            no-answer 0 0
                SessionOpenFailed session=0 failure=Protocol
                OpenDelayed session=0 delay=OpenDelay { tries: 1, not_before: 2010 }
            later
                => Release runtime=0 session=0
            no-answer 0 0
                OpenDelayed session=0 delay=OpenDelay { tries: 2, not_before: 4011 }
            later
                => Release runtime=0 session=0
            no-answer 0 0
                OpenDelayed session=0 delay=OpenDelay { tries: 3, not_before: 8012 }
            later
                => Release runtime=0 session=0
            no-answer 0 0
                OpenDelayed session=0 delay=OpenDelay { tries: 4, not_before: 16013 }
            later
                => Release runtime=0 session=0
            no-answer 0 0
                RuntimeFaulted runtime=0 failure=Timeout
                RuntimePhased runtime=0 phase=Retiring { then: CountFailure(Timeout) }
                => Stop runtime=0 force=false
            ended 0 1 t completed
        "#]],
    );
}

#[test]
fn a_closing_that_works_at_last_leaves_no_trace() {
    check(
        &format!(
            "{ASKED} .ready 0 me
             .send 1 hello1
             .opened 0 1
             .opened 0 0 nameless
             .no-answer 0 0
             later
             released 0 0
             try 0"
        ),
        expect![[r#"
            later
                => Release runtime=0 session=0
            released 0 0
                SessionAttached session=0 attachment=Detached
                OpenDelayed session=0 delay=OpenDelay { tries: 0, not_before: 0 }
            try 0
                SessionOpenFailed session=0 failure=None
                NotificationDismissed key=given up 18
                SessionAttached session=0 attachment=Opening { runtime: 0 }
                => CloseNotification key=given up 18
                => Open runtime=0 OpenSession session=0 thread=None fork_of=None history=false goal=None
        "#]],
    );
}

#[test]
fn a_provisional_name_gives_way_to_the_lasting_one() {
    check(
        &format!(
            "{RUNNING} named 0 0 lasting\n named 0 0 lasting\n named 0 0 lasting_\n named 1 0 strange\n killed\n gone 0\n send 0 next\n ready 1 me"
        ),
        expect![[r#"
            named 0 0 lasting
                ThreadNamed session=0 thread=lasting
            named 0 0 lasting
            named 0 0 lasting_
                ThreadNamed session=0 thread=lasting 
            named 1 0 strange
            killed
                Recovered
                RuntimePhased runtime=0 phase=Orphan
                => Reap runtime=0
            gone 0
                TurnEnded turn=0 outcome=Lost
                NotificationRaised key=turn 0 failed
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                => Notify key=turn 0 failed
            send 0 next
                MessageQueued session=0
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
            ready 1 me
                RuntimeReady runtime=1 identity=Identity { fingerprint: me, label: , plan: None }
                SessionAttached session=0 attachment=Opening { runtime: 1 }
                => ListModels by=1
                => ReadRateLimits by=1
                => Open runtime=1 OpenSession session=0 thread=lasting fork_of=None history=false goal=None
        "#]],
    );
}
