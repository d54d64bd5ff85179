//! One look at everything that could have changed, and telling what did.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::sync::watch;
use turnkeep_agents::{Agent, CredentialSource};
use turnkeep_model::{CredentialId, Input, ProviderId, port::Observation, state::Keychain};

use super::{Attendance, Looker, read_file};
use crate::{
    discover::Search,
    environment::Environment,
    vault::VaultError,
    world::{Says, Shared, lock, sources_of, system_home},
};

/// News come in bursts; one look is enough for each.
const SETTLE: Duration = Duration::from_millis(100);

/// A file that is being written is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
const LOOK_AGAIN_TIMES: u32 = 6;

/// What was told last, so that nothing is told twice.
#[derive(Debug, Default)]
struct Told {
    keychain: Option<Keychain>,
    system: BTreeMap<ProviderId, (bool, Vec<Stamp>)>,
    credentials: BTreeMap<CredentialId, Observation>,
    /// Items of the keychain that were not there when it last said so.
    missing: BTreeSet<BTreeMap<String, String>>,
}

/// Tells one writing of a file from the next.
type Stamp = Option<(SystemTime, u64)>;

/// Look whenever that is asked for.
pub(super) async fn run(
    shared: Arc<Shared>,
    looker: Looker,
    attended: watch::Receiver<Attendance>,
    paths: watch::Sender<BTreeSet<PathBuf>>,
) {
    let mut told = Told::default();
    let mut again = 0;
    loop {
        if again == 0 {
            looker.0.notified().await;
            tokio::time::sleep(SETTLE).await;
        } else if tokio::time::timeout(LOOK_AGAIN, looker.0.notified()).await.is_ok() {
            again = 0;
            tokio::time::sleep(SETTLE).await;
        }
        let now = attended.borrow().clone();
        let torn = look(&shared, &mut told, &now, &paths).await;
        again = if torn && again < LOOK_AGAIN_TIMES { again + 1 } else { 0 };
    }
}

/// True if something was found half written.
async fn look(shared: &Shared, told: &mut Told, attended: &Attendance, paths: &watch::Sender<BTreeSet<PathBuf>>) -> bool {
    let keychain = shared.vault.look().await;
    if told.keychain.as_ref() != Some(&keychain) {
        // What the locked one hid is told anew.
        told.credentials.clear();
        told.keychain = Some(keychain.clone());
        shared.tell(Input::Keychain { keychain });
    }
    let ground = shared.ground.get().await;
    let environment = &ground.environment;
    let files = files(shared, environment, attended);
    // Watched before it is looked at: what happens in between is news.
    paths.send_if_modified(|before| {
        let changed = *before != files;
        *before = files;
        changed
    });
    let answers = matches!(told.keychain, Some(Keychain::Unlocked | Keychain::Locked));
    let mut torn = false;
    for (provider, agent) in &shared.agents {
        let sources = agent.system_sources(&system_home(&**agent, environment));
        let found = look_at(shared, &**agent, &sources, answers, &mut told.missing).await;
        if found.assumed && !matches!(ground.programs.get(provider), Some(Search::Found(_))) {
            continue;
        }
        let Some(present) = found.presence() else { continue };
        let stamps: Vec<Stamp> = sources.iter().flat_map(stamps).collect();
        if told.system.get(provider) != Some(&(present, stamps.clone())) {
            told.system.insert(provider.clone(), (present, stamps));
            let provider = provider.clone();
            shared.tell(if found.assumed {
                Input::SystemAssumed { provider }
            } else {
                Input::SystemAccount { provider, present }
            });
        }
    }
    told.credentials.retain(|credential, _| attended.contains_key(credential));
    for (credential, it) in attended {
        let Some(agent) = shared.agents.get(&it.provider) else { continue };
        let sources: Vec<_> = sources_of(shared, &**agent, environment, *credential, it.kind.clone())
            .into_iter()
            .map(|source| match source == CredentialSource::Vault {
                true => CredentialSource::KeychainItem { attributes: shared.vault.attributes(*credential) },
                false => source,
            })
            .collect();
        let found = look_at(shared, &**agent, &sources, answers, &mut told.missing).await;
        tracing::debug!(%credential, ?found, answers, "looked");
        torn |= found.torn;
        if found.present && found.someone.is_none() {
            // It is there again, whoever it is: that it was not is no news of the past, but may be news of the future.
            told.credentials.remove(credential);
        }
        let Some(seen) = found.observation() else { continue };
        let seen = lock(&shared.identities).complete(*credential, seen, Says::Look);
        if told.credentials.get(credential) != Some(&seen) {
            told.credentials.insert(*credential, seen.clone());
            shared.tell(Input::Observed { credential: *credential, observation: seen });
        }
    }
    torn
}

fn files(shared: &Shared, environment: &Environment, attended: &Attendance) -> BTreeSet<PathBuf> {
    let of_systems = shared.agents.values().flat_map(|agent| agent.system_sources(&as_named(&**agent, environment)));
    let of_credentials = attended.iter().filter_map(|(credential, it)| {
        let agent = shared.agents.get(&it.provider)?;
        Some(sources_of(shared, &**agent, environment, *credential, it.kind.clone()))
    });
    of_systems
        .chain(of_credentials.flatten())
        .flat_map(|source| match source {
            CredentialSource::File { path } => vec![path],
            CredentialSource::Assumed { watch } => watch,
            CredentialSource::Vault | CredentialSource::KeychainItem { .. } | CredentialSource::None => Vec::new(),
        })
        .collect()
}

/// The person's home of the agent as it is named: its links may be changed, and that is news too.
fn as_named(agent: &dyn Agent, environment: &Environment) -> PathBuf {
    let (variable, below) = &agent.card().system_home;
    let moved = environment.variables.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    moved.unwrap_or_else(|| environment.home().unwrap_or_default().join(below))
}

fn stamps(source: &CredentialSource) -> Vec<Stamp> {
    match source {
        CredentialSource::File { path } => vec![stamp(path)],
        CredentialSource::Assumed { watch } => watch.iter().map(|path| stamp(path)).collect(),
        CredentialSource::Vault | CredentialSource::KeychainItem { .. } | CredentialSource::None => vec![None],
    }
}

fn stamp(path: &Path) -> Stamp {
    let about = std::fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len()))
}

/// What a look at the places of one credential found.
#[derive(Debug, Default)]
struct Found {
    someone: Option<Observation>,
    /// Something is there, whoever it is.
    present: bool,
    /// It is only taken to be there.
    assumed: bool,
    /// Some place could not be looked into.
    unsure: bool,
    torn: bool,
}

impl Found {
    const fn presence(&self) -> Option<bool> {
        match (self.present, self.unsure) {
            (true, _) => Some(true),
            (false, false) => Some(false),
            (false, true) => None,
        }
    }

    /// Nothing follows from what is not known.
    fn observation(self) -> Option<Observation> {
        match (self.someone, self.present, self.unsure) {
            (Some(someone), ..) => Some(someone),
            (None, false, false) => Some(Observation::NoOne),
            (None, ..) => None,
        }
    }
}

/// `answers`: whether the keychain is worth asking.
async fn look_at(
    shared: &Shared,
    agent: &dyn Agent,
    sources: &[CredentialSource],
    answers: bool,
    missing: &mut BTreeSet<BTreeMap<String, String>>,
) -> Found {
    let mut found = Found { unsure: sources.is_empty(), ..Found::default() };
    for source in sources {
        match source {
            CredentialSource::File { path } => match read_file(agent, Path::new(path)).await {
                Some(someone @ Observation::Someone(_)) => {
                    found.present = true;
                    found.someone.get_or_insert(someone);
                }
                Some(Observation::Unknown { .. }) => {
                    found.present = true;
                    found.torn = true;
                }
                Some(Observation::NoOne) | None => {}
            },
            CredentialSource::KeychainItem { attributes } => {
                let answer = if answers { Some(shared.vault.find(attributes).await) } else { None };
                match answer {
                    Some(Ok(())) => {
                        found.present = true;
                        missing.remove(attributes);
                    }
                    Some(Err(VaultError::Missing)) => {
                        missing.insert(attributes.clone());
                    }
                    // It said so while it answered, and there is a file that is looked at beside it.
                    Some(Err(_)) | None => found.unsure |= sources.len() == 1 || !missing.contains(attributes),
                }
            }
            CredentialSource::Assumed { .. } => {
                found.present = true;
                found.assumed = true;
            }
            CredentialSource::Vault | CredentialSource::None => found.unsure = true,
        }
    }
    found
}
