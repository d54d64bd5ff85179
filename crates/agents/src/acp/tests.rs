//! How the known agents are started for a sign-in of their own, and for a key of ours.

use turnkeep_model::{CredentialId, port::SignInMethod, state::AccountKind};

use super::known;
use crate::port::{Agent, CredentialSource, Purpose, SecretSlot, Site};

fn site(kind: AccountKind) -> Site {
    let person = [("HOME", "/home/sam"), ("ANTHROPIC_API_KEY", "theirs"), ("ANTHROPIC_AUTH_TOKEN", "theirs"), ("PATH", "/bin")];
    Site {
        credential: CredentialId(1),
        purpose: Purpose::Serve { needs_key: kind == AccountKind::ApiKey },
        kind,
        program: "/bin/agent".into(),
        system_home: "/home/sam/.agent".into(),
        private_home: "/homes/agent/1".into(),
        environment: person.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
    }
}

#[test]
fn a_key_is_given_in_the_environment_alone_and_outranks_what_the_person_has_set() {
    let agent = known().into_iter().find(|agent| agent.card().id.as_str() == "claude-agent-acp").expect("it is listed");
    let launch = agent.launch(&site(AccountKind::ApiKey)).expect("it can be given one");
    assert_eq!(launch.secrets.into_iter().collect::<Vec<_>>(), [("ANTHROPIC_API_KEY".to_owned(), SecretSlot::ApiKey)]);
    assert!(launch.environment.values().all(|value| value != "theirs"), "{:?}", launch.environment);
    assert_eq!(launch.source, CredentialSource::Vault);
    // Its own sign-in on this computer is left as the person has it.
    let launch = agent.launch(&site(AccountKind::System)).expect("it can be started");
    assert!(launch.secrets.is_empty());
    assert_eq!(launch.environment.get("ANTHROPIC_API_KEY").map(String::as_str), Some("theirs"));
}

#[test]
fn who_cannot_be_given_a_key_says_so() {
    for agent in known() {
        let offers = agent.card().sign_in.contains(&SignInMethod::ApiKey);
        assert_eq!(agent.launch(&site(AccountKind::ApiKey)).is_ok(), offers, "{}", agent.card().id);
        assert!(agent.launch(&site(AccountKind::PrivateHome)).is_err());
    }
}
