//! Everything before a process is started: its program, its home, and a look at whether it would find its credential.
//!
//! Nothing is started against a locked keychain: an agent would hang in the prompt, or take itself for signed out.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use turnkeep_agents::{Agent, CredentialSource, Launch, Purpose, SecretSlot, Server, Site};
use turnkeep_model::{
    CredentialId, ProviderId, ServerAddress,
    port::{Failure, FailureClass, Observation},
    state::{AccountKind, Keychain},
};
use zeroize::Zeroizing;

use super::{Says, Shared, ground, home, lock};
use crate::{
    discover::{self, Search},
    environment::Environment,
    runtime::{Attach, Fill, LastLines, Start, Unread},
    vault::{Vault, VaultError},
};

/// Milliseconds that a server has to say who it is, once it is connected to.
const ATTACHED_WITHIN: u64 = 15_000;

/// A process that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) provider: ProviderId,
    pub(crate) credential: CredentialId,
    pub(crate) kind: AccountKind,
    pub(crate) why: Why,
    pub(crate) marker: String,
}

/// What for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Serve,
    SignIn(turnkeep_model::port::SignInMethod),
    SignOut,
}

/// Make everything ready for a start.
pub(crate) async fn prepare(shared: &Shared, wanted: Wanted) -> Result<Start, Failure> {
    let Some(agent) = shared.agents.get(&wanted.provider) else {
        return Err(start_failed(format!("This version of Turnkeep does not know the agent {}.", wanted.provider)));
    };
    let found = program(shared, &wanted.provider, &**agent).await?;
    let environment = &shared.ground.get().await.environment;
    let mut site = site(shared, &**agent, environment, wanted.credential, wanted.kind.clone());
    site.program.clone_from(&found.program);
    if let Some(path) = discover::path_for(&found, environment) {
        site.environment.insert("PATH".to_owned(), path);
    }
    if wanted.kind.is_revoked() {
        let (homes, private) = (shared.config.homes.clone(), site.private_home.clone());
        site.private_home = blocking(move || {
            home::make_private(&homes)?;
            if let Some(parent) = private.parent() {
                home::make_private(parent)?;
            }
            home::make_private(&private)?;
            Ok::<_, home::HomeError>(canonical(&private))
        })
        .await?
        .map_err(|error| start_failed(format!("{}'s folder could not be made: {error}.", agent.card().name)))?;
    }
    let mut launch = launch(&**agent, &mut site, wanted.why.clone())?;
    if let Some(plan) = launch.home.take() {
        blocking(move || home::make(&plan))
            .await?
            .map_err(|error| start_failed(format!("{}'s folder could not be made ready: {error}.", agent.card().name)))?;
    }
    look_first(shared, &**agent, &wanted, &launch, &site.system_home).await?;
    Ok(Start {
        name: agent.card().name.clone(),
        protocol: agent.protocol(&site.purpose),
        launch,
        marker: wanted.marker,
        first: Vec::new(),
        last_lines: LastLines::default(),
        unread: Unread::default(),
    })
}

/// Make everything ready to connect to a server that somebody else started: it needs no program and no home of ours.
pub(crate) fn prepare_attach(shared: &Shared, provider: &ProviderId, address: &ServerAddress) -> Result<Attach, Failure> {
    let Some(agent) = shared.agents.get(provider) else {
        return Err(start_failed(format!("This version of Turnkeep does not know the agent {provider}.")));
    };
    let name = agent.card().name.clone();
    if agent.card().serve.is_none() {
        return Err(start_failed(format!("{name} has no servers that Turnkeep could use.")));
    }
    let server = Server::parse(address.as_str()).map_err(|error| start_failed(error.to_string()))?;
    Ok(Attach { name, server, protocol: agent.protocol(&Purpose::Attach), ready_within: ATTACHED_WITHIN })
}

async fn program(shared: &Shared, provider: &ProviderId, agent: &dyn Agent) -> Result<discover::Found, Failure> {
    let known = shared.ground.get().await.programs.get(provider).cloned();
    let search = match known {
        Some(Search::Found(found)) if found.program.exists() => Some(Search::Found(found)),
        _ => ground::search_again(shared, provider).await,
    };
    match search {
        Some(Search::Found(found)) => Ok(found),
        Some(Search::Missing { searched }) => {
            let searched: Vec<_> = searched.iter().map(|path| path.to_string_lossy().into_owned()).collect();
            Err(Failure {
                detail: Some(format!("Searched: {}", searched.join(", "))),
                ..start_failed(format!("{} is not installed. Install it, then try again.", agent.card().name))
            })
        }
        None => Err(start_failed(format!("{} is not known.", agent.card().name))),
    }
}

/// The plan for this site; whether a key must be given follows from where the plan says that the credential lies.
fn launch(agent: &dyn Agent, site: &mut Site, why: Why) -> Result<Launch, Failure> {
    site.purpose = match why {
        Why::Serve => Purpose::Serve { needs_key: site.kind == AccountKind::ApiKey },
        Why::SignIn(method) => Purpose::SignIn { method },
        Why::SignOut => Purpose::SignOut,
    };
    agent.launch(site).map_err(|error| start_failed(format!("{} cannot be started: {error}.", agent.card().name)))
}

/// Remove our home of a credential that is gone. That it could not be is no failure: nothing of value is in it.
pub(crate) async fn remove_home(shared: &Shared, provider: &ProviderId, credential: CredentialId) {
    let Some(agent) = shared.agents.get(provider) else { return };
    let environment = &shared.ground.get().await.environment;
    let site = site(shared, &**agent, environment, credential, AccountKind::PrivateHome);
    let links = agent.launch(&site).ok().and_then(|launch| launch.home).map(|plan| plan.links).unwrap_or_default();
    let homes = canonical(&shared.config.homes);
    let path = site.private_home;
    let removed = tokio::task::spawn_blocking(move || home::remove(&homes, &path, &links)).await;
    match removed {
        Ok(Ok(home::Removed::Gone)) | Err(_) => {}
        Ok(Ok(home::Removed::Kept { because })) => {
            tracing::warn!(path = %because.display(), "a private home was kept: this should be a link and holds something");
        }
        Ok(Err(error)) => tracing::warn!(%error, %credential, "a private home could not be removed"),
    }
}

/// Whether the process would find its credential; who that is, is remembered.
async fn look_first(
    shared: &Shared,
    agent: &dyn Agent,
    wanted: &Wanted,
    launch: &Launch,
    system_home: &Path,
) -> Result<(), Failure> {
    let vault = &shared.vault;
    if matches!(wanted.why, Why::SignIn(_)) {
        return match (&launch.source, vault.look().await) {
            (CredentialSource::KeychainItem { .. } | CredentialSource::Vault, Keychain::Locked) => {
                Err(VaultError::Locked.to_failure())
            }
            (CredentialSource::KeychainItem { .. } | CredentialSource::Vault, Keychain::Absent { why }) => {
                Err(VaultError::Absent { why }.to_failure())
            }
            _ => Ok(()),
        };
    }
    match &launch.source {
        CredentialSource::Vault => {
            let identity = vault.identity(wanted.credential).await.map_err(|error| error.to_failure())?;
            lock(&shared.identities).complete(wanted.credential, Observation::Someone(identity), Says::Look);
            // It may have been deleted since it was read first.
            vault.has(wanted.credential).await.map_err(|error| error.to_failure())
        }
        CredentialSource::KeychainItem { attributes } => vault.find(attributes).await.map_err(|error| error.to_failure()),
        CredentialSource::File { .. } | CredentialSource::Assumed { .. } | CredentialSource::None => {
            for source in agent.system_sources(system_home) {
                match source {
                    CredentialSource::KeychainItem { attributes } => {
                        if let Err(error @ VaultError::Locked) = vault.find(&attributes).await {
                            return Err(error.to_failure());
                        }
                    }
                    CredentialSource::File { path } => {
                        if let Some(seen) = crate::watch::read_file(agent, &path).await {
                            lock(&shared.identities).complete(wanted.credential, seen, Says::Look);
                        }
                    }
                    CredentialSource::Vault | CredentialSource::Assumed { .. } | CredentialSource::None => {}
                }
            }
            Ok(())
        }
    }
}

/// Everything about a site but its program and its purpose.
fn site(shared: &Shared, agent: &dyn Agent, environment: &Environment, credential: CredentialId, kind: AccountKind) -> Site {
    Site {
        credential,
        kind,
        purpose: Purpose::Serve { needs_key: false },
        program: PathBuf::new(),
        system_home: system_home(agent, environment),
        private_home: private_home(shared, &agent.card().id, credential),
        environment: environment.handed_on(&own_prefixes(agent.card())),
    }
}

/// What an agent's own variables begin with: "AGENT_HOME" → "AGENT_", and what its card names.
fn own_prefixes(card: &turnkeep_agents::Card) -> Vec<&str> {
    let variable = card.system_home.0.as_str();
    let own = variable.find('_').and_then(|at| variable.get(..=at));
    own.into_iter().chain(card.own_variables.iter().map(String::as_str)).collect()
}

/// Where the credential of an account may lie.
pub(crate) fn sources_of(
    shared: &Shared,
    agent: &dyn Agent,
    environment: &Environment,
    credential: CredentialId,
    kind: AccountKind,
) -> Vec<CredentialSource> {
    match kind {
        AccountKind::System => return agent.system_sources(&system_home(agent, environment)),
        AccountKind::Server { .. } => return Vec::new(),
        AccountKind::ApiKey | AccountKind::PrivateHome => {}
    }
    let site = site(shared, agent, environment, credential, kind);
    agent.launch(&site).map(|launch| vec![launch.source]).unwrap_or_default()
}

/// The person's own home of the agent, links resolved.
pub(crate) fn system_home(agent: &dyn Agent, environment: &Environment) -> PathBuf {
    canonical(&named_home(agent, environment))
}

/// The same as it is named: its links may be changed, and that is news too.
pub(crate) fn named_home(agent: &dyn Agent, environment: &Environment) -> PathBuf {
    let (variable, below) = &agent.card().system_home;
    let moved = environment.variables.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    moved.unwrap_or_else(|| environment.home().unwrap_or_default().join(below))
}

/// Our home for one credential, links resolved.
fn private_home(shared: &Shared, provider: &ProviderId, credential: CredentialId) -> PathBuf {
    let folder: String = provider.as_str().chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    canonical(&shared.config.homes).join(folder).join(credential.to_string())
}

/// The path with the links of what exists of it resolved.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => canonical(parent).join(name),
        _ => path.to_owned(),
    }
}

async fn blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(job).await.map_err(|_| start_failed("Turnkeep is ending.".to_owned()))
}

pub(crate) fn start_failed(message: String) -> Failure {
    Failure { class: FailureClass::StartFailed, message, detail: None }
}

/// Gives a writer the secret of its runtime's credential, and no other.
#[derive(Debug)]
pub(crate) struct Filler {
    pub(crate) shared: Arc<Shared>,
    pub(crate) credential: CredentialId,
}

impl Fill for Filler {
    async fn fill(&self, head: &str, slot: SecretSlot, tail: &str) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let vault: &Vault = &self.shared.vault;
        match slot {
            SecretSlot::ApiKey => vault.fill(self.credential, head, tail).await.map_err(|error| error.to_failure()),
        }
    }

    async fn value(&self, slot: SecretSlot) -> Result<Zeroizing<Vec<u8>>, Failure> {
        match slot {
            SecretSlot::ApiKey => self.shared.vault.value(self.credential).await.map_err(|error| error.to_failure()),
        }
    }
}
