//! Signing in and out by the provider's own program, and noticing that somebody did so elsewhere.

use std::{
    fs,
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use turnkeep_model::{
    AccountId, CredentialId, Effect, Input, ProviderId, SignInId,
    port::{Failure, FailureClass, Observation, SignInMethod, SignInStep},
    state::{AccountKind, Credential},
};

use crate::{
    bus::on_a_bus,
    fake::{PROVIDER, Stage, alive, someone},
};

/// Signs in when it is told to by a file, and keeps an item in the keychain as a provider's program does.
const SIGNS_IN: &str = "\
    case \"$1\" in \
    sign-in) echo ready; echo open https://example.com/code; \
        while [ ! -e \"$HOME/allow\" ]; do sleep 0.05; [ -e \"$HOME/deny\" ] && { echo not-signed-in denied; sleep 600; }; done; \
        printf secret | secret-tool store --label=x service 'fake auth' home \"$FAKE_HOME\"; echo signed-in me; sleep 600;; \
    sign-out) echo ready; secret-tool clear service 'fake auth' home \"$FAKE_HOME\"; echo signed-out; sleep 600;; \
    serve) echo ready me; while read -r _; do :; done;; \
    esac";

fn sign_in(stage: &Stage, sign_in: u64, credential: u64) {
    stage.world.perform(Effect::SignIn {
        sign_in: SignInId(sign_in),
        provider: ProviderId::new(PROVIDER),
        account: AccountId(1),
        credential: CredentialId(credential),
        method: SignInMethod::DeviceCode,
        key: None,
    });
}

async fn step(stage: &mut Stage) -> SignInStep {
    stage
        .input("the step", |input| match input {
            Input::SignInStep { step, .. } => Some(step.clone()),
            _ => None,
        })
        .await
}

async fn signed_in(stage: &mut Stage) -> Result<Observation, Failure> {
    stage
        .input("the end of the sign-in", |input| match input {
            Input::SignInEnded { result, .. } => Some(result.clone()),
            _ => None,
        })
        .await
}

fn attend(stage: &Stage, kind: AccountKind) {
    let credential =
        Credential { provider: ProviderId::new(PROVIDER), account: AccountId(1), kind, owed_revocation: false, not_before: 0 };
    stage.world.attend(&[(CredentialId(1), credential)].into());
}

async fn observed(stage: &mut Stage) -> Observation {
    stage
        .input("an observation", |input| match input {
            Input::Observed { credential: CredentialId(1), observation } => Some(observation.clone()),
            _ => None,
        })
        .await
}

async fn system(stage: &mut Stage, wanted: bool) {
    stage
        .input("the sign-in of the computer", |input| {
            matches!(input, Input::SystemAccount { present, .. } if *present == wanted).then_some(())
        })
        .await;
}

#[test]
fn signing_in_serving_and_signing_out_by_the_program_itself() {
    on_a_bus("accounts::signing_in_serving_and_signing_out_by_the_program_itself", async |bus| {
        let bus = bus.with_keyring().await;
        let mut stage = Stage::new(SIGNS_IN);
        sign_in(&stage, 1, 1);
        assert_eq!(step(&mut stage).await, SignInStep::OpenUrl { url: "https://example.com/code".to_owned() });
        fs::write(stage.path("allow"), "").expect("written");
        assert_eq!(signed_in(&mut stage).await, Ok(someone("me", "me")));
        assert_eq!(alive(&stage.instance), [], "the sign-in's process is gone before its end is told");
        let home = stage.path("homes/fake/1");
        let attributes = crate::fake::item_attributes(&home);
        let item: Vec<_> = attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(bus.lookup(&item), "secret");
        assert!(fs::symlink_metadata(home.join("sessions")).expect("linked").is_symlink());

        stage.spawn(1, AccountKind::PrivateHome);
        stage.ready().await;
        stage.stop(1, false);
        stage.gone().await;

        fs::write(stage.path(".fake/sessions/precious"), "x").expect("written");
        stage.world.perform(Effect::Revoke {
            provider: ProviderId::new(PROVIDER),
            account: AccountId(1),
            credential: CredentialId(1),
            kind: AccountKind::PrivateHome,
        });
        let revoked = stage
            .input("the revocation", |input| match input {
                Input::Revoked { result, .. } => Some(result.clone()),
                _ => None,
            })
            .await;
        assert_eq!(revoked, Ok(()));
        assert_eq!(bus.lookup(&item), "");
        assert!(!home.exists());
        assert!(stage.path(".fake/sessions/precious").exists());
        assert_eq!(alive(&stage.instance), []);
    });
}

#[test]
fn an_item_deleted_elsewhere_is_noticed_and_nothing_is_started_without_it() {
    on_a_bus("accounts::an_item_deleted_elsewhere_is_noticed_and_nothing_is_started_without_it", async |bus| {
        let bus = bus.with_keyring().await;
        let mut stage = Stage::new(SIGNS_IN);
        sign_in(&stage, 1, 1);
        step(&mut stage).await;
        fs::write(stage.path("allow"), "").expect("written");
        signed_in(&mut stage).await.expect("signed in");
        attend(&stage, AccountKind::PrivateHome);
        stage.spawn(1, AccountKind::PrivateHome);
        stage.ready().await;
        stage.nothing_is_observed().await;
        let begun = Instant::now();
        bus.clear(&[("service", "fake auth")]);
        assert_eq!(observed(&mut stage).await, Observation::NoOne);
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        stage.spawn(2, AccountKind::PrivateHome);
        assert_eq!(stage.start_failed().await.class, FailureClass::SignedOut);
    });
}

#[test]
fn a_sign_in_that_fails_or_is_given_up_leaves_nothing() {
    on_a_bus("accounts::a_sign_in_that_fails_or_is_given_up_leaves_nothing", async |bus| {
        let bus = bus.with_keyring().await;
        let mut stage = Stage::new(SIGNS_IN);
        sign_in(&stage, 1, 1);
        step(&mut stage).await;
        fs::write(stage.path("deny"), "").expect("written");
        assert_eq!(signed_in(&mut stage).await.expect_err("denied").message, "denied");
        fs::remove_file(stage.path("deny")).expect("removed");
        assert!(!stage.path("homes/fake/1").exists());

        sign_in(&stage, 2, 2);
        step(&mut stage).await;
        stage.world.perform(Effect::CancelSignIn { sign_in: SignInId(2) });
        // Its program does not listen: it is ended all the same.
        assert!(signed_in(&mut stage).await.expect_err("given up").message.contains("given up"));
        assert_eq!(alive(&stage.instance), []);
        assert!(!stage.path("homes/fake/2").exists());
        stage.world.perform(Effect::CancelSignIn { sign_in: SignInId(3) });
        signed_in(&mut stage).await.expect_err("one that nobody knows has an end too");

        bus.lock();
        sign_in(&stage, 4, 4);
        assert_eq!(signed_in(&mut stage).await.expect_err("locked").class, FailureClass::KeychainLocked);
        assert_eq!(alive(&stage.instance), [], "nothing is started against a locked keychain");
    });
}

#[tokio::test]
async fn the_sign_in_of_the_computer_is_followed() {
    let mut stage = Stage::new("echo ready me; while read -r _; do :; done");
    system(&mut stage, false).await;
    let file = stage.path(".fake/auth.txt");
    let begun = Instant::now();
    fs::write(&file, "me").expect("written");
    system(&mut stage, true).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    attend(&stage, AccountKind::System);
    let Observation::Someone(me) = observed(&mut stage).await else { panic!("nobody") };
    assert_eq!(me.label, "me");

    let begun = Instant::now();
    fs::write(stage.path(".fake/new"), "you").expect("written");
    fs::rename(stage.path(".fake/new"), &file).expect("replaced");
    let Observation::Someone(you) = observed(&mut stage).await else { panic!("nobody") };
    assert_eq!(you.label, "you");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());

    // Half written is not signed out.
    fs::write(&file, "torn").expect("written");
    fs::write(&file, "we").expect("written");
    let Observation::Someone(we) = observed(&mut stage).await else { panic!("half written was taken for signed out") };
    assert_eq!(we.label, "we");

    // The folder goes, and is a link when it comes again.
    let begun = Instant::now();
    fs::remove_dir_all(stage.path(".fake")).expect("removed");
    assert_eq!(observed(&mut stage).await, Observation::NoOne);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    fs::create_dir(stage.path("elsewhere")).expect("made");
    symlink(stage.path("elsewhere"), stage.path(".fake")).expect("linked");
    fs::write(stage.path("elsewhere/auth.txt"), "they").expect("written");
    let Observation::Someone(they) = observed(&mut stage).await else { panic!("nobody") };
    assert_eq!(they.label, "they");
    fs::write(stage.path("elsewhere/auth.txt"), "them").expect("written");
    let Observation::Someone(them) = observed(&mut stage).await else { panic!("nobody") };
    assert_eq!(them.label, "them");
}
