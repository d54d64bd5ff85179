//! Who stands behind each credential, as closely as anybody has said: a process may know less than the file that it read.

use std::collections::BTreeMap;

use turnkeep_model::{
    CredentialId,
    port::{AgentEvent, Identity, Observation},
};

/// What was said so far.
#[derive(Debug, Default)]
pub(crate) struct Identities(BTreeMap<CredentialId, Identity>);

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// A process, which was told by the provider.
    Process,
    /// Our own look at the credential.
    Look,
}

impl Identities {
    /// The same observation, with what is known better already.
    pub(crate) fn complete(&mut self, credential: CredentialId, seen: Observation, says: Says) -> Observation {
        match seen {
            Observation::Someone(said) => {
                let known = self.0.get(&credential);
                let best = match known {
                    Some(known) if !same(&known.fingerprint, &said.fingerprint) => said,
                    Some(known) if parts(&known.fingerprint) > parts(&said.fingerprint) => known.clone(),
                    Some(known) if parts(&known.fingerprint) == parts(&said.fingerprint) && says == Says::Look => known.clone(),
                    Some(_) | None => said,
                };
                self.0.insert(credential, best.clone());
                Observation::Someone(best)
            }
            Observation::NoOne => {
                self.0.remove(&credential);
                Observation::NoOne
            }
            Observation::Unknown { why } => Observation::Unknown { why },
        }
    }

    /// The same event, where it says who is signed in.
    pub(crate) fn complete_event(&mut self, credential: CredentialId, event: AgentEvent) -> AgentEvent {
        if let AgentEvent::Ready { version, identity } = event {
            AgentEvent::Ready { version, identity: self.complete(credential, identity, Says::Process) }
        } else if let AgentEvent::Identity { identity } = event {
            AgentEvent::Identity { identity: self.complete(credential, identity, Says::Process) }
        } else {
            event
        }
    }
}

/// Whether two fingerprints can be of one identity: an empty or missing part is not known.
fn same(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split(':'), other.split(':'));
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if !a.is_empty() && !b.is_empty() && a != b => return false,
            _ => {}
        }
    }
}

fn parts(fingerprint: &str) -> usize {
    fingerprint.split(':').filter(|part| !part.is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn someone(fingerprint: &str, label: &str) -> Observation {
        Observation::Someone(Identity { fingerprint: fingerprint.to_owned(), label: label.to_owned(), plan: None })
    }

    #[test]
    fn a_process_that_knows_less_does_not_look_like_somebody_else() {
        let mut identities = Identities::default();
        let key = someone("api-key:12ab", "API key ending 7Q2F");
        assert_eq!(identities.complete(CredentialId(1), key.clone(), Says::Look), key);
        assert_eq!(identities.complete(CredentialId(1), someone("api-key", "API key"), Says::Process), key);
        let other = someone("api-key:99ff", "API key ending 0000");
        assert_eq!(identities.complete(CredentialId(1), other.clone(), Says::Look), other);
        assert_eq!(
            identities.complete(CredentialId(2), someone("api-key", "API key"), Says::Process),
            someone("api-key", "API key")
        );
    }

    #[test]
    fn another_person_or_workspace_is_somebody_else_and_an_unknown_one_is_not() {
        assert!(same("chatgpt:u:w", "chatgpt:u:w"));
        assert!(same("chatgpt:u:", "chatgpt:u:w"));
        assert!(same("chatgpt:u", "chatgpt:u:w"));
        assert!(!same("chatgpt:u:w", "chatgpt:u:x"));
        assert!(!same("chatgpt:u:w", "chatgpt:v:w"));
        assert!(!same("api-key:1", "chatgpt:u"));
    }

    #[test]
    fn the_provider_knows_the_name_better_than_the_file() {
        let mut identities = Identities::default();
        identities.complete(CredentialId(1), someone("chatgpt:u:w", "me@example.com"), Says::Look);
        let named = someone("chatgpt:u:w", "me@example.com (Team)");
        assert_eq!(identities.complete(CredentialId(1), named.clone(), Says::Process), named);
        assert_eq!(identities.complete(CredentialId(1), someone("chatgpt:u:w", "me@example.com"), Says::Look), named);
        assert_eq!(identities.complete(CredentialId(1), Observation::NoOne, Says::Look), Observation::NoOne);
    }
}
