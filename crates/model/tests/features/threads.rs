//! Threads that a provider knows from elsewhere, and what turns changed.

use expect_test::expect;

use crate::{check, script::RUNNING};

const SIGNED_IN: &str = ".agent many native probe\n .home present\n";

#[test]
fn a_thread_from_elsewhere_is_opened_and_read_before_a_message_goes_to_it() {
    check(
        &format!("{SIGNED_IN} adopt t\n send 0 hello\n ready 0 me\n opened 0 0\n history 0 0 p1 p1 p2\n history 0 0 p3"),
        expect![[r#"
            adopt t
                SessionCreated session=0
                RuntimeRequested runtime=0
                => Spawn runtime=0 account=0 credential=0
            send 0 hello
                MessageQueued session=0
            ready 0 me
                AccountIdentified account=0 identity=Identity { fingerprint: me, label: , plan: None }
                RuntimeReady runtime=0 identity=Identity { fingerprint: me, label: , plan: None }
                SessionAttached session=0 attachment=Opening { runtime: 0 }
                => ListModels by=0
                => ReadRateLimits by=0
                => Open runtime=0 OpenSession session=0 thread=t fork_of=None history=true goal=None
            opened 0 0
                ThreadNamed session=0 thread=t0
                SessionAttached session=0 attachment=Open { runtime: 0 }
                => ReadHistory runtime=0 command=ReadHistory { session: 0, thread: t0 }
            history 0 0 p1 p1 p2
                ItemRecorded session=0 turn=0 completed=true
                ItemRecorded session=0 turn=0 completed=true
                ItemRecorded session=0 turn=1 completed=true
                HistoryRead session=0 turns=2
                PreviewChanged session=0 preview=said 2
                TurnDispatched turn=2
                => StartTurn session=0 turn=2 message=hello text=hello by=0
            history 0 0 p3
        "#]],
    );
}

#[test]
fn a_history_that_cannot_be_read_holds_nothing_up() {
    check(
        &format!("{SIGNED_IN} .adopt t\n .send 0 hello\n .ready 0 me\n .opened 0 0\n history 0 0 failed"),
        expect![[r#"
        history 0 0 failed
            ItemRecorded session=0 turn=0 item=Item { id: history, body: Error { failure: Timeout } } completed=true
            HistoryRead session=0 turns=1
            TurnDispatched turn=1
            => StartTurn session=0 turn=1 message=hello text=hello by=0
    "#]],
    );
}

#[test]
fn a_history_that_was_on_its_way_is_asked_for_again_by_the_next_process() {
    check(
        &format!("{SIGNED_IN} .adopt t\n .ready 0 me\n opened 0 0\n died 0\n minutes 1\n ready 1 me\n opened 1 0\n killed"),
        expect![[r#"
            opened 0 0
                ThreadNamed session=0 thread=t0
                SessionAttached session=0 attachment=Open { runtime: 0 }
                => ReadHistory runtime=0 command=ReadHistory { session: 0, thread: t0 }
            died 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=TransportClosed
                AccountRestartsCounted account=0
            minutes 1
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
            ready 1 me
                RuntimeReady runtime=1 identity=Identity { fingerprint: me, label: , plan: None }
                SessionAttached session=0 attachment=Opening { runtime: 1 }
                => ListModels by=1
                => ReadRateLimits by=1
                => Open runtime=1 OpenSession session=0 thread=t0 fork_of=None history=true goal=None
            opened 1 0
                SessionAttached session=0 attachment=Open { runtime: 1 }
                => ReadHistory runtime=1 command=ReadHistory { session: 0, thread: t0 }
            killed
                Recovered
                RuntimePhased runtime=1 phase=Orphan
                AccountRestartsCounted account=0 restarts=Restarts { failures: [], given_up: None, not_before: 0 }
                => Reap runtime=1
        "#]],
    );
}

#[test]
fn a_thread_that_is_a_session_already_is_not_taken_twice() {
    check(
        &format!("{SIGNED_IN} .adopt t\n .archive 0\n adopt t"),
        expect![[r#"
        adopt t
            SessionArchived session=0 archived=false
    "#]],
    );
}

#[test]
fn asking_the_provider_something_starts_a_process_once_and_none_without_an_account() {
    check(
        ".agent many native probe\n consult\n .home present\n consult\n consult\n .ready 0 me\n consult",
        expect![[r#"
        consult
        consult
            RuntimeRequested runtime=0
            => Spawn runtime=0 account=0 credential=0
        consult
        consult
    "#]],
    );
}

#[test]
fn what_a_turn_changed_is_recorded_while_it_runs_and_once_more_after_its_end() {
    check(
        &format!(
            "{RUNNING} diff 0 0 p0 diff_--git_a/a_b/a|@@_-0,0_+1_@@|+one\n .ended 0 0 p0 completed\n diff 0 0 p0 diff_--git_a/a_b/a\n\
             diff 0 0 other diff_--git_a/a_b/a"
        ),
        expect![[r#"
            diff 0 0 p0 diff_--git_a/a_b/a|@@_-0,0_+1_@@|+one
                TurnDiffed session=0 turn=0
            diff 0 0 p0 diff_--git_a/a_b/a
                TurnDiffed session=0 turn=0
            diff 0 0 other diff_--git_a/a_b/a
        "#]],
    );
}

#[test]
fn a_fork_is_opened_from_the_others_thread_and_then_has_its_own() {
    check(
        &format!("{RUNNING} fork 0\n .ended 0 0 p0 completed\n fork 0\n opened 0 1\n .send 1 more\n fork 1\n fork 7"),
        expect![[r#"
            fork 0
            fork 0
                SessionCreated session=1
                HistoryCopied session=1 from=0
                SessionAttached session=1 attachment=Opening { runtime: 0 }
                => Open runtime=0 OpenSession session=1 thread=None fork_of=t0 history=false goal=None
            opened 0 1
                ThreadNamed session=1 thread=t1
                SessionAttached session=1 attachment=Open { runtime: 0 }
            fork 1
            fork 7
        "#]],
    );
}

#[test]
fn a_fork_that_is_what_it_was_made_of_is_given_back() {
    check(
        &format!("{RUNNING} .ended 0 0 p0 completed\n .fork 0\n opened-as 0 1 t0"),
        expect![[r#"
            opened-as 0 1 t0
                SessionAttached session=1 attachment=Releasing { runtime: 0 }
                SessionOpenFailed session=1 failure=Protocol
                NotificationRaised key=given up 22
                => Notify key=given up 22
                => Release runtime=0 session=1
        "#]],
    );
}

#[test]
fn commands_are_kept_and_told_once() {
    check(
        &format!("{RUNNING} commands 0 0 plan review\n commands 0 0 plan review\n commands 0 7 plan"),
        expect![[r#"
        commands 0 0 plan review
            CommandsOffered session=0
        commands 0 0 plan review
        commands 0 7 plan
    "#]],
    );
}
