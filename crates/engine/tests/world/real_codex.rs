//! The real Codex, where it is installed for the tests and asked for by `REAL_AGENTS`.

use std::{collections::BTreeMap, path::PathBuf};

use secrecy::SecretString;
use tokio::sync::mpsc::unbounded_channel;
use turnkeep_engine::world::{Arrival, World, WorldConfig};
use turnkeep_model::{
    AccountId, CredentialId, Effect, Input, ProviderId, RuntimeId, SignInId,
    port::{AgentEvent, Observation, SignInMethod},
    state::{AccountKind, Installed},
};

use crate::{
    bus::on_a_bus,
    fake::{PATIENCE, alive},
};

#[test]
fn codex_is_found_behind_its_script_and_serves_with_a_key_of_the_vault() {
    let asked_for = std::env::var("REAL_AGENTS").is_ok_and(|agents| agents.split(',').any(|agent| agent == "codex"));
    if !asked_for {
        return;
    }
    on_a_bus("real_codex::codex_is_found_behind_its_script_and_serves_with_a_key_of_the_vault", async |bus| {
        let _bus = bus.with_keyring().await;
        let root = tempfile::tempdir().expect("a folder");
        let scripts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/agents/node_modules/.bin");
        let environment = BTreeMap::from([
            ("PATH".to_owned(), format!("{}:/usr/bin:/bin", scripts.display())),
            ("HOME".to_owned(), root.path().to_string_lossy().into_owned()),
        ]);
        let instance = format!("codex-{}", std::process::id());
        let config = WorldConfig { instance: instance.clone(), homes: root.path().join("homes"), environment: Some(environment) };
        let (inbox, mut arrivals) = unbounded_channel();
        let agents = turnkeep_agents::builtin();
        let world = World::start(config, agents, inbox);
        let mut next = async || {
            loop {
                let arrival =
                    tokio::time::timeout(PATIENCE, arrivals.recv()).await.expect("in time").expect("the world is there");
                if let Arrival::Input(input) = arrival {
                    return input;
                }
            }
        };
        let codex = ProviderId::new("codex");
        loop {
            if let Input::ProviderFound { provider, installed, .. } = next().await
                && provider == codex
            {
                let Installed::Found { path, version } = installed else { panic!("{installed:?}") };
                assert!(path.contains("/vendor/"), "the native program was not preferred: {path}");
                assert!(version.is_some());
                break;
            }
        }
        world.perform(Effect::SignIn {
            sign_in: SignInId(1),
            provider: codex.clone(),
            account: AccountId(1),
            credential: CredentialId(1),
            method: SignInMethod::ApiKey,
            key: Some(world.stage(SecretString::from("sk-canary-0123456789-7Q2F"))),
        });
        let mut signed_in = None;
        while signed_in.is_none() {
            if let Input::SignInEnded { result, .. } = next().await {
                signed_in = Some(result.expect("signed in"));
            }
        }
        for _ in 0..2 {
            world.perform(Effect::Spawn {
                runtime: RuntimeId(1),
                provider: codex.clone(),
                account: AccountId(1),
                credential: CredentialId(1),
                kind: AccountKind::ApiKey,
            });
            loop {
                match next().await {
                    Input::Agent { event: AgentEvent::Ready { identity, .. }, .. } => {
                        assert_eq!(Some(&identity), signed_in.as_ref());
                        assert!(matches!(identity, Observation::Someone(_)));
                        break;
                    }
                    Input::RuntimeStartFailed { failure, .. } => panic!("{failure:?}"),
                    _ => {}
                }
            }
            let found =
                std::process::Command::new("grep").args(["-rl", "sk-canary"]).arg(root.path()).output().expect("grep runs");
            assert_eq!(String::from_utf8_lossy(&found.stdout), "", "the key is on disk");
            world.perform(Effect::Stop { runtime: RuntimeId(1), force: false });
            while !matches!(next().await, Input::RuntimeGone { closed: None, .. }) {}
            assert_eq!(alive(&instance), []);
        }
        world.shut().await;
    });
}
