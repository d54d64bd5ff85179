//! One look at everything that could have changed, and telling what did.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::sync::watch;
use turnkeep_agents::{Agent, CredentialSource};
use turnkeep_model::{
    CredentialId, Input, ProviderId,
    port::Observation,
    state::{AccountKind, Keychain},
};

use super::{Attendance, Looker, read_file};
use crate::{
    discover::Search,
    environment::Environment,
    vault::VaultError,
    world::{Says, Shared, lock, named_home, sources_of, system_home},
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
    /// What the keychain said of each item when it was asked last.
    items: BTreeMap<Attributes, Result<(), VaultError>>,
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
    let mut asking: Asking = None;
    // News that came while the keychain was being asked: it is asked once more.
    let mut ask_again = false;
    loop {
        let news = tokio::select! {
            () = looker.0.notified() => true,
            answers = answered(&mut asking) => {
                asking = None;
                told.hear(&shared, answers);
                false
            }
            () = tokio::time::sleep(LOOK_AGAIN), if again > 0 => false,
        };
        if news {
            again = 0;
            tokio::time::sleep(SETTLE).await;
            ask_again = true;
        }
        let now = attended.borrow().clone();
        if ask_again && asking.is_none() {
            ask_again = false;
            asking = Some(Box::pin(ask(Arc::clone(&shared), now.clone())));
            // One that answers in no time is heard first, so that what moved from a file into it is not missed.
            if let Ok(answers) = tokio::time::timeout(HEAD_START, answered(&mut asking)).await {
                asking = None;
                told.hear(&shared, answers);
            }
        }
        let torn = look(&shared, &mut told, &now, &paths).await;
        again = if torn && again < LOOK_AGAIN_TIMES { again + 1 } else { 0 };
    }
}

/// How long files wait for a keychain that may have news of the same sign-in. One that hangs keeps nobody longer.
const HEAD_START: Duration = Duration::from_millis(300);

/// What an item's attributes are to the keychain.
type Attributes = BTreeMap<String, String>;

/// The keychain, and what it says of each item that somebody wants to know of.
struct Answers {
    keychain: Keychain,
    items: BTreeMap<Attributes, Result<(), VaultError>>,
}

/// The keychain is asked beside everything else: it may hang.
type Asking = Option<Pin<Box<dyn Future<Output = Answers> + Send>>>;

async fn answered(asking: &mut Asking) -> Answers {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

async fn ask(shared: Arc<Shared>, attended: Attendance) -> Answers {
    let mut keychain = shared.vault.look().await;
    let mut items = BTreeMap::new();
    if matches!(keychain, Keychain::Unlocked | Keychain::Locked) {
        let ground = shared.ground.get().await;
        for attributes in wanted_items(&shared, &ground.environment, &attended) {
            let found = shared.vault.find(&attributes).await;
            let hangs = found == Err(VaultError::Hung);
            items.insert(attributes, found);
            if hangs {
                // The others would only wait as long again.
                keychain = Keychain::Absent { why: VaultError::Hung.to_string() };
                break;
            }
        }
    }
    Answers { keychain, items }
}

impl Told {
    /// What the keychain said, once it did.
    fn hear(&mut self, shared: &Shared, answers: Answers) {
        let Answers { keychain, items } = answers;
        self.items = items;
        if self.keychain.as_ref() != Some(&keychain) {
            // What the locked one hid is told anew.
            self.credentials.clear();
            self.keychain = Some(keychain.clone());
            shared.tell(Input::Keychain { keychain });
        }
    }
}

fn wanted_items(shared: &Shared, environment: &Environment, attended: &Attendance) -> BTreeSet<Attributes> {
    let of_systems = shared.agents.values().flat_map(|agent| agent.system_sources(&system_home(&**agent, environment)));
    let of_credentials = attended.iter().filter_map(|(credential, it)| {
        let agent = shared.agents.get(&it.provider)?;
        Some(places(shared, &**agent, environment, *credential, it.kind.clone()))
    });
    let all = of_systems.chain(of_credentials.flatten());
    all.filter_map(|source| if let CredentialSource::KeychainItem { attributes } = source { Some(attributes) } else { None })
        .collect()
}

/// Where a credential lies; our own vault is a part of the keychain.
fn places(
    shared: &Shared,
    agent: &dyn Agent,
    environment: &Environment,
    credential: CredentialId,
    kind: AccountKind,
) -> Vec<CredentialSource> {
    sources_of(shared, agent, environment, credential, kind)
        .into_iter()
        .map(|source| match source == CredentialSource::Vault {
            true => CredentialSource::KeychainItem { attributes: shared.vault.attributes(credential) },
            false => source,
        })
        .collect()
}

/// Looks at the files, and takes the keychain by its last word. True if something was found half written.
async fn look(shared: &Shared, told: &mut Told, attended: &Attendance, paths: &watch::Sender<BTreeSet<PathBuf>>) -> bool {
    let ground = shared.ground.get().await;
    let environment = &ground.environment;
    let files = files(shared, environment, attended);
    // Watched before it is looked at: what happens in between is news.
    paths.send_if_modified(|before| {
        let changed = *before != files;
        *before = files;
        changed
    });
    let mut torn = false;
    for (provider, agent) in &shared.agents {
        let sources = agent.system_sources(&system_home(&**agent, environment));
        let found = look_at(&**agent, &sources, &told.items, &mut told.missing).await;
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
        let sources = places(shared, &**agent, environment, *credential, it.kind.clone());
        let found = look_at(&**agent, &sources, &told.items, &mut told.missing).await;
        tracing::debug!(%credential, ?found, "looked");
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
    let of_systems = shared.agents.values().flat_map(|agent| agent.system_sources(&named_home(&**agent, environment)));
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

/// `items`: what the keychain said last; nothing of those that it gave no answer about.
async fn look_at(
    agent: &dyn Agent,
    sources: &[CredentialSource],
    items: &BTreeMap<Attributes, Result<(), VaultError>>,
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
                match items.get(attributes) {
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
