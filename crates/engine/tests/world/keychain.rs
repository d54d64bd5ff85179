//! The vault and the watch against a real keychain: open, locked, absent, hanging, changed by others.

use std::time::{Duration, Instant};

use secrecy::SecretString;
use turnkeep_engine::vault::{Vault, VaultError};
use turnkeep_model::{
    AccountId, CredentialId, Effect, Input, ProviderId, SignInId,
    port::{FailureClass, Observation, SignInMethod},
    state::{AccountKind, Credential, Keychain},
};

use crate::{
    bus::{on_a_bus, without_a_bus},
    fake::{PROVIDER, Stage},
};

const KEY: &str = "sk-canary-0123456789-7Q2F";

/// Takes the key, and says how long it is and whether it is the right one; never the key.
const TAKES_KEY: &str = "read -r line; [ \"$line\" = 'key \"sk-canary-0123456789-7Q2F\" end' ] && echo ready api-key; \
                         while read -r line; do echo got $line; done";

fn sign_in(stage: &Stage, key: &str) {
    let key = Some(stage.world.stage(SecretString::from(key)));
    stage.world.perform(Effect::SignIn {
        sign_in: SignInId(1),
        provider: ProviderId::new(PROVIDER),
        account: AccountId(1),
        credential: CredentialId(1),
        method: SignInMethod::ApiKey,
        key,
    });
}

fn attend(stage: &Stage, kind: AccountKind) {
    let credential =
        Credential { provider: ProviderId::new(PROVIDER), account: AccountId(1), kind, owed_revocation: false, not_before: 0 };
    stage.world.attend(&[(CredentialId(1), credential)].into());
}

async fn signed_in(stage: &mut Stage) -> Result<Observation, turnkeep_model::port::Failure> {
    stage
        .input("the end of the sign-in", |input| match input {
            Input::SignInEnded { result, .. } => Some(result.clone()),
            _ => None,
        })
        .await
}

async fn observed(stage: &mut Stage) -> Observation {
    stage
        .input("an observation", |input| match input {
            Input::Observed { credential: CredentialId(1), observation } => Some(observation.clone()),
            _ => None,
        })
        .await
}

async fn keychain(stage: &mut Stage, wanted: impl Fn(&Keychain) -> bool) {
    stage
        .input("the state of the keychain", |input| match input {
            Input::Keychain { keychain } if wanted(keychain) => Some(()),
            _ => None,
        })
        .await;
}

#[test]
fn a_key_is_kept_given_to_the_child_alone_and_forgotten() {
    on_a_bus("keychain::a_key_is_kept_given_to_the_child_alone_and_forgotten", async |bus| {
        let bus = bus.with_keyring().await;
        let mut stage = Stage::new(TAKES_KEY);
        sign_in(&stage, &format!(" {KEY}\n"));
        let Ok(Observation::Someone(identity)) = signed_in(&mut stage).await else { panic!("not signed in") };
        assert_eq!(identity.label, "API key ending 7Q2F");
        let user = format!("{}/1", stage.instance);
        let item = [("service", "dev.turnkeep.Turnkeep"), ("username", user.as_str())];
        assert_eq!(bus.lookup(&item), KEY);

        stage.spawn(1, AccountKind::ApiKey);
        let process = stage.started().await;
        // The child says less than is known of the key.
        assert_eq!(stage.ready().await, Observation::Someone(identity));
        let private = std::fs::read(format!("/proc/{}/environ", process.pid)).expect("it runs");
        assert!(!String::from_utf8_lossy(&private).contains("canary"));
        stage.stop(1, false);
        stage.gone().await;

        let revoke = Effect::Revoke {
            provider: ProviderId::new(PROVIDER),
            account: AccountId(1),
            credential: CredentialId(1),
            kind: AccountKind::ApiKey,
        };
        for _ in 0..2 {
            stage.world.perform(revoke.clone());
            let revoked = stage
                .input("the revocation", |input| match input {
                    Input::Revoked { result, .. } => Some(result.clone()),
                    _ => None,
                })
                .await;
            assert_eq!(revoked, Ok(()));
            assert_eq!(bus.lookup(&item), "");
        }
        assert!(!stage.path("homes/fake/1").exists());
    });
}

#[test]
fn a_key_deleted_by_another_program_is_noticed_within_two_seconds() {
    on_a_bus("keychain::a_key_deleted_by_another_program_is_noticed_within_two_seconds", async |bus| {
        let bus = bus.with_keyring().await;
        let mut stage = Stage::new(TAKES_KEY);
        keychain(&mut stage, |it| *it == Keychain::Unlocked).await;
        sign_in(&stage, KEY);
        signed_in(&mut stage).await.expect("signed in");
        attend(&stage, AccountKind::ApiKey);
        // Something else of the same person: no news of ours.
        bus.store(&[("service", "other")], "x");
        bus.clear(&[("service", "other")]);
        stage.nothing_is_observed().await;
        let user = format!("{}/1", stage.instance);
        let begun = Instant::now();
        bus.clear(&[("service", "dev.turnkeep.Turnkeep"), ("username", user.as_str())]);
        let seen = stage
            .input("the sign-out", |input| match input {
                Input::Observed { credential: CredentialId(1), observation } => Some(observation.clone()),
                _ => None,
            })
            .await;
        assert_eq!(seen, Observation::NoOne);
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        stage.spawn(1, AccountKind::ApiKey);
        assert_eq!(stage.start_failed().await.class, FailureClass::SignedOut);
    });
}

#[test]
fn locked_is_not_missing_and_nobody_is_asked() {
    on_a_bus("keychain::locked_is_not_missing_and_nobody_is_asked", async |bus| {
        let bus = bus.with_keyring().await;
        let mut stage = Stage::new(TAKES_KEY);
        keychain(&mut stage, |it| *it == Keychain::Unlocked).await;
        sign_in(&stage, KEY);
        signed_in(&mut stage).await.expect("signed in");
        attend(&stage, AccountKind::ApiKey);
        let begun = Instant::now();
        bus.lock();
        keychain(&mut stage, |it| *it == Keychain::Locked).await;
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        stage.spawn(1, AccountKind::ApiKey);
        assert_eq!(stage.start_failed().await.class, FailureClass::KeychainLocked);
        sign_in(&stage, KEY);
        assert_eq!(signed_in(&mut stage).await.expect_err("locked").class, FailureClass::KeychainLocked);
        // Nobody is there to answer a prompt: declined is locked.
        assert_eq!(stage.world.vault().unlock().await, Err(VaultError::Locked));
        assert_eq!(stage.world.vault().look().await, Keychain::Locked);
    });
}

#[test]
fn a_keychain_that_comes_later_and_goes_again_is_noticed() {
    on_a_bus("keychain::a_keychain_that_comes_later_and_goes_again_is_noticed", async |mut bus| {
        let mut stage = Stage::new(TAKES_KEY);
        keychain(&mut stage, |it| matches!(it, Keychain::Absent { .. })).await;
        sign_in(&stage, KEY);
        let failure = signed_in(&mut stage).await.expect_err("absent");
        assert_eq!(failure.class, FailureClass::KeychainAbsent);
        bus.start_keyring().await;
        keychain(&mut stage, |it| *it == Keychain::Unlocked).await;
        bus.end_keyring();
        keychain(&mut stage, |it| matches!(it, Keychain::Absent { .. })).await;
        bus.start_keyring().await;
        keychain(&mut stage, |it| *it == Keychain::Unlocked).await;
        sign_in(&stage, KEY);
        signed_in(&mut stage).await.expect("a restarted keychain is as good");
    });
}

#[test]
fn without_a_bus_there_is_no_keychain_and_nothing_is_written_elsewhere() {
    without_a_bus("keychain::without_a_bus_there_is_no_keychain_and_nothing_is_written_elsewhere", async || {
        let mut stage = Stage::new(TAKES_KEY);
        keychain(&mut stage, |it| matches!(it, Keychain::Absent { .. })).await;
        sign_in(&stage, KEY);
        assert_eq!(signed_in(&mut stage).await.expect_err("absent").class, FailureClass::KeychainAbsent);
        stage.spawn(1, AccountKind::ApiKey);
        assert_eq!(stage.start_failed().await.class, FailureClass::KeychainAbsent);
        let found = std::process::Command::new("grep")
            .args(["-rl", "sk-canary-0123456789-7Q2F", "--exclude=fake-agent"])
            .arg(stage.path(""))
            .output();
        assert_eq!(String::from_utf8_lossy(&found.expect("grep runs").stdout), "");
    });
}

#[test]
fn a_keychain_that_hangs_keeps_nobody_waiting() {
    on_a_bus("keychain::a_keychain_that_hangs_keeps_nobody_waiting", async |bus| {
        let bus = bus.with_keyring().await;
        let vault = Vault::new("test-hang");
        bus.signal_keyring(rustix::process::Signal::STOP);
        let begun = Instant::now();
        assert!(matches!(vault.look().await, Keychain::Absent { .. }));
        assert!(begun.elapsed() < Duration::from_millis(3_500), "{:?}", begun.elapsed());
        bus.signal_keyring(rustix::process::Signal::CONT);
        assert_eq!(vault.look().await, Keychain::Unlocked);
    });
}

#[test]
fn a_keychain_that_hangs_hides_no_other_news_and_is_said_to_hang() {
    on_a_bus("keychain::a_keychain_that_hangs_hides_no_other_news_and_is_said_to_hang", async |bus| {
        let bus = bus.with_keyring().await;
        let mut stage = Stage::new(TAKES_KEY);
        keychain(&mut stage, |it| *it == Keychain::Unlocked).await;
        let file = stage.path(".fake/auth.txt");
        std::fs::write(&file, "me").expect("written");
        attend(&stage, AccountKind::System);
        assert!(matches!(observed(&mut stage).await, Observation::Someone(_)));
        bus.signal_keyring(rustix::process::Signal::STOP);
        for _ in 0..2 {
            std::fs::remove_file(&file).expect("removed");
            let begun = Instant::now();
            assert_eq!(observed(&mut stage).await, Observation::NoOne);
            assert!(begun.elapsed() < Duration::from_secs(2), "noticed after {:?}", begun.elapsed());
            std::fs::write(&file, "me").expect("written");
            assert!(matches!(observed(&mut stage).await, Observation::Someone(_)));
            assert!(begun.elapsed() < Duration::from_secs(4), "and its coming back after {:?}", begun.elapsed());
        }
        keychain(
            &mut stage,
            |it| matches!(it, Keychain::Absent { why } if why.contains("did not answer") || why.contains("does not answer")),
        )
        .await;
        bus.signal_keyring(rustix::process::Signal::CONT);
    });
}

#[test]
fn a_key_that_was_looked_for_before_it_was_stored_is_noticed_when_it_goes() {
    on_a_bus("keychain::a_key_that_was_looked_for_before_it_was_stored_is_noticed_when_it_goes", async |bus| {
        let bus = bus.with_keyring().await;
        let mut stage = Stage::new(TAKES_KEY);
        keychain(&mut stage, |it| *it == Keychain::Unlocked).await;
        attend(&stage, AccountKind::ApiKey);
        assert_eq!(observed(&mut stage).await, Observation::NoOne);
        sign_in(&stage, KEY);
        signed_in(&mut stage).await.expect("signed in");
        stage.nothing_is_observed().await;
        bus.clear(&[("service", "dev.turnkeep.Turnkeep")]);
        assert_eq!(observed(&mut stage).await, Observation::NoOne);
    });
}
