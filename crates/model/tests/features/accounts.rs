//! Signing in and out, here and elsewhere.

use expect_test::expect;

use crate::{check, script::RUNNING};

#[test]
fn a_sign_out_waits_for_nothing_and_kills_nothing() {
    check(
        ".agent many native probe
         .sign-in -
         .signed-in 0 me
         .session
         .send 0 hello
         .ready 0 me
         .opened 0 0
         .turn 0 0 0 p0
         sign-out 0
         steer 0 more
         send 0 next
         ended 0 0 p0 completed
         gone 0
         not-revoked 0
         later
         revoked 0
         sign-in 0
         signed-in 1 me",
        expect![[r#"
            sign-out 0
                AccountSignedOut account=0
                RevocationOwed credential=0
                EpochBegan epoch=2 current=0
            steer 0 more
                SteerSent turn=0
                => Steer session=0 turn=0 message=more text=more by=0
            send 0 next
                MessageQueued session=0
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Notify key=turn 0 completed
                => Stop runtime=0 force=false
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                => Revoke account=0 credential=0
            not-revoked 0
                RevocationDelayed credential=0 not_before=31014
            later
                => Revoke account=0 credential=0
            revoked 0
                CredentialForgotten credential=0
            sign-in 0
                CredentialAdded credential=1
                SignInBegan sign_in=1
                => SignIn sign_in=1 account=0 credential=1 method=Browser key=None
            signed-in 1 me
                AccountSignedIn account=0 credential=1 identity=Identity { fingerprint: me, label: , plan: None }
                SignInClosed sign_in=1
                EpochBegan epoch=3 current=0
        "#]],
    );
}

#[test]
fn a_sign_out_now_interrupts() {
    check(
        &format!("{RUNNING} sign-out 0 now\n ended 0 0 p0 interrupted"),
        expect![[r#"
            sign-out 0 now
                AccountSignedOut account=0
                RevocationOwed credential=0
                EpochBegan epoch=2 current=0
                TurnInterrupting turn=0
                => Interrupt session=0 turn=0 by=0
            ended 0 0 p0 interrupted
                TurnEnded turn=0 outcome=Interrupted
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Stop runtime=0 force=false
        "#]],
    );
}

#[test]
fn an_idle_runtime_is_stopped_at_once_and_its_session_is_not_reopened() {
    check(
        &format!("{RUNNING} .ended 0 0 p0 completed\n home absent\n gone 0\n home present"),
        expect![[r#"
            home absent
                AccountSignedOut account=0
                EpochBegan epoch=2 current=0
                AccountTroubled account=0 problem=SignedOutElsewhere
                NotificationRaised key=signed out 0 2
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Notify key=signed out 0 2
                => Stop runtime=0 force=false
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                CredentialForgotten credential=0
            home present
                CredentialAdded credential=1
                AccountSignedIn account=0 credential=1 identity=None
                AccountTroubled account=0 problem=None
                EpochBegan epoch=3 current=0
        "#]],
    );
}

#[test]
fn somebody_else_answers_the_handshake() {
    check(
        ".agent many native probe
         .home present
         .seen 0 me
         .session
         .send 0 hello
         ready 0 other
         gone 0
         ready 1 other",
        expect![[r#"
            ready 0 other
                AccountIdentified account=0 identity=Identity { fingerprint: other, label: , plan: None }
                EpochBegan epoch=2 current=0
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Stop runtime=0 force=false
            gone 0
                RuntimeRemoved runtime=0 failure=None
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
            ready 1 other
                RuntimeReady runtime=1 identity=Identity { fingerprint: other, label: , plan: None }
                SessionAttached session=0 attachment=Opening { runtime: 1 }
                => ListModels by=1
                => ReadRateLimits by=1
                => Open runtime=1 OpenSession session=0 thread=None fork_of=None history=false goal=None
        "#]],
    );
}

#[test]
fn a_refreshed_token_and_an_agent_that_cannot_tell_change_nothing() {
    check(
        &format!("{RUNNING} seen 0 me\n identity 0 me\n seen 0 unknown\n identity 0 unknown"),
        expect![[r#"
        seen 0 me
        identity 0 me
        seen 0 unknown
        identity 0 unknown
    "#]],
    );
}

#[test]
fn a_busy_runtime_whose_identity_changed_serves_its_turn_beside_the_new_one() {
    check(
        &format!("{RUNNING} .session\n seen 0 other\n send 1 next\n ready 1 other\n opened 1 1\n ended 0 0 p0 completed"),
        expect![[r#"
            seen 0 other
                AccountIdentified account=0 identity=Identity { fingerprint: other, label: , plan: None }
                EpochBegan epoch=2 current=0
            send 1 next
                MessageQueued session=1
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
            ready 1 other
                RuntimeReady runtime=1 identity=Identity { fingerprint: other, label: , plan: None }
                SessionAttached session=1 attachment=Opening { runtime: 1 }
                => ListModels by=1
                => ReadRateLimits by=1
                => Open runtime=1 OpenSession session=1 thread=None fork_of=None history=false goal=None
            opened 1 1
                ThreadNamed session=1 thread=t1
                SessionAttached session=1 attachment=Open { runtime: 1 }
                TurnDispatched turn=1
                => StartTurn session=1 turn=1 message=next text=next by=1
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
fn a_rejection_of_the_current_account_ends_its_epoch_until_a_call_succeeds() {
    check(
        &format!(
            "{RUNNING} .send 0 next
             ended 0 0 p0 failed signed-out
             gone 0
             home present
             ready 1 me
             opened 1 0
             turn 1 0 1 p1
             ended 1 0 p1 completed"
        ),
        expect![[r#"
            ended 0 0 p0 failed signed-out
                TurnEnded turn=0 outcome=Failed(SignedOut)
                AccountTroubled account=0 problem=Rejected(SignedOut)
                NotificationRaised key=signed out 0 1
                EpochBegan epoch=2 current=0
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Notify key=signed out 0 1
                => Stop runtime=0 force=false
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
            home present
                AccountTried account=0
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
            turn 1 0 1 p1
                TurnStarted turn=1 provider_turn=p1
            ended 1 0 p1 completed
                TurnEnded turn=1 outcome=Completed
                NotificationRaised key=turn 1 completed
                AccountVerified account=0
                => Notify key=turn 1 completed
        "#]],
    );
}

#[test]
fn a_rejection_of_an_old_account_says_nothing_about_the_current_one() {
    check(
        &format!(
            ".agent many native probe\n {RUNNING} .sign-in -\n .signed-in 0 other\n .use 1\n ended 0 0 p0 failed signed-out"
        ),
        expect![[r#"
            ended 0 0 p0 failed signed-out
                TurnEnded turn=0 outcome=Failed(AccountChanged)
                NotificationRaised key=turn 0 failed
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Notify key=turn 0 failed
                => Stop runtime=0 force=false
        "#]],
    );
}

#[test]
fn a_deleted_keychain_item_signs_out() {
    check(
        ".agent many native probe
         .sign-in -
         .signed-in 0 me
         .keychain unlocked
         keychain locked
         seen 0 nobody
         keychain unlocked
         seen 0 nobody",
        expect![[r#"
            keychain locked
                KeychainSeen keychain=Locked
                AccountTroubled account=0 problem=KeychainLocked
            seen 0 nobody
            keychain unlocked
                KeychainSeen keychain=Unlocked
                AccountTroubled account=0 problem=None
            seen 0 nobody
                AccountSignedOut account=0
                RevocationOwed credential=0
                EpochBegan epoch=2 current=0
                AccountTroubled account=0 problem=ItemMissing
                NotificationRaised key=signed out 0 2
                => Notify key=signed out 0 2
                => Revoke account=0 credential=0
        "#]],
    );
}

#[test]
fn nothing_is_started_against_a_locked_keychain() {
    check(
        ".agent many native probe
         .sign-in -
         .signed-in 0 me
         .session
         .send 0 hello
         not-started 0 locked
         try 0
         not-started 1 locked
         keychain unlocked",
        expect![[r#"
            not-started 0 locked
                RuntimeRemoved runtime=0 failure=KeychainLocked
                KeychainSeen keychain=Locked
                AccountTroubled account=0 problem=KeychainLocked
            try 0
                KeychainSeen keychain=Unknown
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
            not-started 1 locked
                RuntimeRemoved runtime=1 failure=KeychainLocked
                KeychainSeen keychain=Locked
            keychain unlocked
                KeychainSeen keychain=Unlocked
                AccountTroubled account=0 problem=None
                RuntimeRequested runtime=2
                => Spawn runtime=2 account=0 credential=0
        "#]],
    );
}

#[test]
fn a_failed_sign_in_leaves_nothing() {
    check(
        ".agent many native probe
         sign-in -
         signed-in 0 failed
         revoked 0
         cancel 0
         sign-in -
         cancel 1
         signed-in 1 me",
        expect![[r#"
            sign-in -
                AccountAdded account=0
                CredentialAdded credential=0
                SignInBegan sign_in=0
                => SignIn sign_in=0 account=0 credential=0 method=Browser key=None
            signed-in 0 failed
                SignInFailed sign_in=0 failure=Other
                RevocationOwed credential=0
                => Revoke account=0 credential=0
            revoked 0
                CredentialForgotten credential=0
            cancel 0
                SignInClosed sign_in=0
                AccountRemoved account=0
            sign-in -
                AccountAdded account=1
                CredentialAdded credential=1
                SignInBegan sign_in=1
                => SignIn sign_in=1 account=1 credential=1 method=Browser key=None
            cancel 1
                SignInCancelling sign_in=1
                => CancelSignIn sign_in=1
            signed-in 1 me
                SignInClosed sign_in=1
                RevocationOwed credential=1
                AccountRemoved account=1
                => Revoke account=1 credential=1
        "#]],
    );
}

#[test]
fn a_removed_account_is_signed_out_first() {
    check(
        ".agent many native probe
         .sign-in -
         .signed-in 0 me
         remove 0
         revoked 0",
        expect![[r#"
            remove 0
                AccountSignedOut account=0
                RevocationOwed credential=0
                EpochBegan epoch=2 current=0
                EpochBegan epoch=3 current=None
                AccountRemoved account=0
                => Revoke account=0 credential=0
            revoked 0
                CredentialForgotten credential=0
        "#]],
    );
}

#[test]
fn a_way_back_to_an_account_waits_for_its_old_process() {
    check(
        ".agent many native probe
         .sign-in -
         .signed-in 0 me
         .sign-in -
         .signed-in 1 other
         .session
         .session
         .send 0 hello
         .ready 0 me
         .opened 0 0
         .turn 0 0 0 p0
         .use 1
         use 0
         send 1 next
         ended 0 0 p0 completed
         gone 0",
        expect![[r#"
            use 0
                EpochBegan epoch=3 current=0
            send 1 next
                MessageQueued session=1
            ended 0 0 p0 completed
                TurnEnded turn=0 outcome=Completed
                NotificationRaised key=turn 0 completed
                RuntimePhased runtime=0 phase=Retiring { then: Nothing }
                => Notify key=turn 0 completed
                => Stop runtime=0 force=false
            gone 0
                SessionAttached session=0 attachment=Detached
                RuntimeRemoved runtime=0 failure=None
                RuntimeRequested runtime=1
                => Spawn runtime=1 account=0 credential=0
        "#]],
    );
}
