//! Messages and turns.

use expect_test::expect;

use crate::{check, script::RUNNING};

#[test]
fn a_message_goes_the_whole_way() {
    check(
        "agent many native probe
         home present
         session
         send 0 hello
         ready 0 me
         opened 0 0
         turn 0 0 0 p0
         says 0 0 p0 first Progress
         says 0 0 p0 last Answer
         ended 0 0 p0 completed
         read 0",
        expect![[r#"
            agent many native probe
                ProviderKnown installed=Found { path: /bin/agent, version: None }
            home present
                AccountAdded account=0
                CredentialAdded credential=0
                AccountSignedIn account=0 credential=0 identity=None
                EpochBegan epoch=1 current=0
            session
                SessionCreated session=0
            send 0 hello
                MessageQueued session=0
                RuntimeRequested runtime=0
                => Spawn runtime=0 account=0 credential=0
            ready 0 me
                AccountIdentified account=0 identity=Identity { fingerprint: me, label: , plan: None }
                RuntimeReady runtime=0 identity=Identity { fingerprint: me, label: , plan: None }
                SessionAttached session=0 attachment=Opening { runtime: 0 }
                => ListModels by=0
                => ReadRateLimits by=0
                => Open runtime=0 OpenSession session=0 thread=None fork_of=None history=false goal=None
            opened 0 0
                ThreadNamed session=0 thread=t0
                SessionAttached session=0 attachment=Open { runtime: 0 }
                TurnDispatched turn=0
                => StartTurn session=0 turn=0 message=hello text=hello by=0
            turn 0 0 0 p0
                TurnStarted turn=0 provider_turn=p0
            says 0 0 p0 first Progress
                ItemRecorded session=0 turn=0 completed=true
            says 0 0 p0 last Answer
                ItemRecorded session=0 turn=0 completed=true
                PreviewChanged session=0 preview=Answer
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                AccountVerified account=0
                => Notify key=turn 0 completed
            read 0
                SessionRead session=0
                NotificationDismissed key=turn 0 completed
                => CloseNotification key=turn 0 completed
        "#]],
    );
}

#[test]
fn a_repeated_message_is_ignored() {
    check(
        &format!("{RUNNING} send 0 hello\n steer 0 hello\n send 0 next\n send 0 next"),
        expect![[r#"
        send 0 hello
        steer 0 hello
        send 0 next
            MessageQueued session=0
        send 0 next
    "#]],
    );
}

#[test]
fn a_message_is_added_to_the_running_turn() {
    check(
        &format!("{RUNNING} steer 0 more\n steered 0 0 0 more\n ended 0 0 p0 completed"),
        expect![[r#"
            steer 0 more
                SteerSent turn=0
                => Steer session=0 turn=0 message=more text=more by=0
            steered 0 0 0 more
                SteerDelivered turn=0 message=more delivery=Admitted
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                AccountVerified account=0
                => Notify key=turn 0 completed
        "#]],
    );
}

#[test]
fn a_refused_addition_waits_for_its_own_turn() {
    check(
        &format!("{RUNNING} .send 0 later\n steer 0 more\n ended 0 0 p0 completed\n not-steered 0 0 0 more\n turn 0 0 1 p1"),
        expect![[r#"
            steer 0 more
                SteerSent turn=0
                => Steer session=0 turn=0 message=more text=more by=0
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                AccountVerified account=0
                => Notify key=turn 0 completed
            not-steered 0 0 0 more
                UndecidedSettled session=0 message=more delivery=NotAdmitted
                TurnDispatched turn=1
                => StartTurn session=0 turn=1 message=more text=more by=0
            turn 0 0 1 p1
                TurnStarted turn=1 provider_turn=p1
        "#]],
    );
}

#[test]
fn an_addition_whose_answer_never_comes_is_for_a_person() {
    check(
        &format!("{RUNNING} .steer 0 more\n .send 0 later\n died 0\n ready 1 me\n resolve 0 resend"),
        expect![[r#"
            died 0
                TurnEnded turn=0 outcome=Failed(TransportClosed)
                NotificationRaised key=turn 0 failed
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=TransportClosed
                AccountRestartsCounted account=0
                => Notify key=turn 0 failed
            ready 1 me
            resolve 0 resend
                UnknownResolved session=0 resend=true
        "#]],
    );
}

#[test]
fn a_provider_that_tries_again_leaves_the_turn_running() {
    check(
        &format!("{RUNNING} retrying 0 0 p0\n says 0 0 p0 last Answer\n ended 0 0 p0 completed"),
        expect![[r#"
        retrying 0 0 p0
            TurnRetrying turn=0 message=again
        says 0 0 p0 last Answer
            TurnRetrying turn=0 message=None
            ItemRecorded session=0 turn=0 completed=true
            PreviewChanged session=0 preview=Answer
        ended 0 0 p0 completed
            TurnEnded turn=0 outcome=Completed
            NotificationRaised key=turn 0 completed
            AccountVerified account=0
            => Notify key=turn 0 completed
    "#]],
    );
}

#[test]
fn the_last_word_of_an_entry_may_come_after_the_turn() {
    check(
        &format!("{RUNNING} .ended 0 0 p0 completed\n says 0 0 p0 last Late\n says 0 0 other last Lost"),
        expect![[r#"
        says 0 0 p0 last Late
            ItemRecorded session=0 turn=0 completed=true
            PreviewChanged session=0 preview=Late
        says 0 0 other last Lost
    "#]],
    );
}

#[test]
fn an_interrupt_waits_for_the_name_of_the_turn() {
    check(
        ".agent many native probe
         .home present
         .session
         .send 0 hello
         .ready 0 me
         .opened 0 0
         interrupt 0
         turn 0 0 0 p0
         interrupt 0
         ended 0 0 p0 interrupted",
        expect![[r#"
            interrupt 0
                TurnInterrupting turn=0
            turn 0 0 0 p0
                TurnStarted turn=0 provider_turn=p0
                => Interrupt session=0 turn=0 by=0
            interrupt 0
            ended 0 0 p0 interrupted
                TurnEnded turn=0 outcome=Interrupted
        "#]],
    );
}

#[test]
fn a_refused_message_waits_for_a_person() {
    check(
        ".agent many native probe
         .home present
         .session
         .send 0 hello
         .ready 0 me
         .opened 0 0
         rejected 0 0 0 other
         try 0",
        expect![[r#"
            rejected 0 0 0 other
                TurnReturned turn=0
                SessionOpenFailed session=0 failure=Other
                NotificationRaised key=given up 15
                => Notify key=given up 15
            try 0
                SessionOpenFailed session=0 failure=None
                NotificationDismissed key=given up 15
                TurnDispatched turn=1
                => CloseNotification key=given up 15
                => StartTurn session=0 turn=1 message=hello text=hello by=0
        "#]],
    );
}

#[test]
fn a_busy_thread_is_tried_again_by_itself() {
    check(
        ".agent many native probe
         .home present
         .session
         .send 0 hello
         .ready 0 me
         not-opened 0 0 busy
         later
         opened 0 0
         rejected 0 0 0 busy
         later
         turn 0 0 1 p0",
        expect![[r#"
            not-opened 0 0 busy
                SessionAttached session=0 attachment=Detached
                OpenDelayed session=0 delay=OpenDelay { tries: 1, not_before: 1106 }
            later
                SessionAttached session=0 attachment=Opening { runtime: 0 }
                => Open runtime=0 OpenSession session=0 thread=None fork_of=None history=false goal=None
            opened 0 0
                ThreadNamed session=0 thread=t0
                SessionAttached session=0 attachment=Open { runtime: 0 }
                TurnDispatched turn=0
                => StartTurn session=0 turn=0 message=hello text=hello by=0
            rejected 0 0 0 busy
                TurnReturned turn=0
                OpenDelayed session=0 delay=OpenDelay { tries: 1, not_before: 1208 }
            later
                TurnDispatched turn=1
                => StartTurn session=0 turn=1 message=hello text=hello by=0
            turn 0 0 1 p0
                TurnStarted turn=1 provider_turn=p0
        "#]],
    );
}

#[test]
fn an_unknown_message_is_asked_for_in_the_history() {
    check(
        ".agent many native probe
         .home present
         .session
         .send 0 hello
         .ready 0 me
         .opened 0 0
         died 0
         later
         ready 1 me
         opened 1 0
         probed 0 not-found
         turn 1 0 1 p1",
        expect![[r#"
            died 0
                TurnPhased turn=0 state=Probing
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
            probed 0 not-found
                TurnReturned turn=0
                TurnDispatched turn=1
                => StartTurn session=0 turn=1 message=hello text=hello by=1
            turn 1 0 1 p1
                TurnStarted turn=1 provider_turn=p1
        "#]],
    );
}

#[test]
fn without_a_history_a_person_decides() {
    check(
        ".agent many native none
         .home present
         .session
         .send 0 hello
         .ready 0 me
         .opened 0 0
         died 0
         send 0 next
         resolve 0 drop",
        expect![[r#"
            died 0
                TurnEnded turn=0 outcome=Unknown
                NotificationRaised key=turn 0 unknown
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=TransportClosed
                AccountRestartsCounted account=0
                => Notify key=turn 0 unknown
            send 0 next
                MessageQueued session=0
            resolve 0 drop
                UnknownResolved session=0 resend=false
        "#]],
    );
}

#[test]
fn a_transport_that_closes_fails_the_turn_with_its_record() {
    check(
        &format!("{RUNNING} died 0"),
        expect![[r#"
            died 0
                TurnEnded turn=0 outcome=Failed(TransportClosed)
                NotificationRaised key=turn 0 failed
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=TransportClosed
                AccountRestartsCounted account=0
                => Notify key=turn 0 failed
        "#]],
    );
}

#[test]
fn nothing_is_sent_to_a_process_whose_transport_closed() {
    check(
        &format!("{RUNNING} .send 0 next\n ended 0 0 p0 failed closed\n died 0\n later"),
        expect![[r#"
            ended 0 0 p0 failed closed
                RuntimeFaulted runtime=0 failure=TransportClosed
                TurnEnded turn=0 outcome=Failed(TransportClosed)
                NotificationRaised key=turn 0 failed
                RuntimePhased runtime=0 phase=Retiring { then: CountFailure(TransportClosed) }
                => Notify key=turn 0 failed
                => Stop runtime=0 force=false
            died 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=TransportClosed
                AccountRestartsCounted account=0
            later
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
        "#]],
    );
}

#[test]
fn a_turn_that_nobody_asked_for_is_a_turn() {
    check(
        &format!("{RUNNING} .ended 0 0 p0 completed\n turn 0 0 - p1\n send 0 next\n ended 0 0 p1 completed"),
        expect![[r#"
            turn 0 0 - p1
                TurnDispatched turn=1
            send 0 next
                MessageQueued session=0
            ended 0 0 p1 completed
                TurnEnded turn=1 outcome=Completed
                NotificationRaised key=turn 1 completed
                AccountVerified account=0
                TurnDispatched turn=2
                => Notify key=turn 1 completed
                => StartTurn session=0 turn=2 message=next text=next by=0
        "#]],
    );
}

#[test]
fn a_session_that_cannot_be_found_again_is_refused() {
    check(
        ".agent many native probe
         .home present
         .session
         .send 0 hello
         .ready 0 me
         opened 0 0 nameless
         released 0 0",
        expect![[r#"
            opened 0 0 nameless
                SessionAttached session=0 attachment=Releasing { runtime: 0 }
                SessionOpenFailed session=0 failure=Protocol
                NotificationRaised key=given up 12
                => Notify key=given up 12
                => Release runtime=0 session=0
            released 0 0
                SessionAttached session=0 attachment=Detached
        "#]],
    );
}

#[test]
fn a_session_that_is_put_away_is_let_go() {
    check(
        &format!("{RUNNING} archive 0\n ended 0 0 p0 completed\n released 0 0\n send 0 back"),
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
            send 0 back
                SessionArchived session=0 archived=false
                MessageQueued session=0
        "#]],
    );
}

#[test]
fn what_was_muted_for_a_time_is_told_again_afterwards() {
    check(
        &format!(
            "{RUNNING} .mute-until 60000\n ended 0 0 p0 completed\n .minutes 1\n .send 0 more\n .turn 0 0 1 p1\n ended 0 0 p1 completed"
        ),
        expect![[r#"
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                AccountVerified account=0
            ended 0 0 p1 completed
                TurnEnded turn=1 outcome=Completed
                NotificationRaised key=turn 1 completed
                AccountVerified account=0
                => Notify key=turn 1 completed
        "#]],
    );
}

#[test]
fn leaving_a_session_says_up_to_when_it_was_seen() {
    check(
        &format!("{RUNNING} seen-all 0\n .ended 0 0 p0 completed\n seen-all 0\n seen-all 0"),
        expect![[r#"
        seen-all 0
            SessionRead session=0
        seen-all 0
            SessionRead session=0
        seen-all 0
    "#]],
    );
}
