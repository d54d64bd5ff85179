//! What this computer offers: the person's environment and the agents' programs. Found at the start and on request; a
//! start of a process waits for it.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::watch;
use turnkeep_agents::Agent;
use turnkeep_model::{Input, ProviderId};

use super::Shared;
use crate::{
    discover::{self, Search},
    environment::{self, Environment},
};

/// The newest that is known, once there is any.
#[derive(Debug)]
pub(crate) struct Ground {
    found: watch::Sender<Option<Arc<Found>>>,
}

/// One look around.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) environment: Environment,
    pub(crate) programs: BTreeMap<ProviderId, Search>,
}

impl Default for Ground {
    fn default() -> Self {
        Self { found: watch::Sender::new(None) }
    }
}

impl Ground {
    /// Waits for the first look around.
    pub(crate) async fn get(&self) -> Arc<Found> {
        let mut seen = self.found.subscribe();
        loop {
            if let Some(found) = seen.borrow_and_update().clone() {
                return found;
            }
            if seen.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Look around, and tell what was found.
pub(super) async fn survey(shared: &Shared) {
    let environment = match &shared.config.environment {
        Some(variables) => Environment { variables: variables.clone(), fallback: None },
        None => environment::capture(&shared.spawner, &shared.marker_aside("environment")).await,
    };
    let mut programs = BTreeMap::new();
    for (provider, agent) in &shared.agents {
        let search = search(shared, &**agent, &environment).await;
        tell(shared, provider, &**agent, &search);
        programs.insert(provider.clone(), search);
    }
    shared.ground.found.send_replace(Some(Arc::new(Found { environment, programs })));
}

/// Search once more for one agent, because what was found before is not there any more.
pub(super) async fn search_again(shared: &Shared, provider: &ProviderId) -> Option<Search> {
    let agent = shared.agents.get(provider)?;
    let before = shared.ground.get().await;
    let search = search(shared, &**agent, &before.environment).await;
    if before.programs.get(provider) != Some(&search) {
        tell(shared, provider, &**agent, &search);
        let mut programs = before.programs.clone();
        programs.insert(provider.clone(), search.clone());
        shared.ground.found.send_replace(Some(Arc::new(Found { environment: before.environment.clone(), programs })));
    }
    Some(search)
}

async fn search(shared: &Shared, agent: &dyn Agent, environment: &Environment) -> Search {
    let marker = shared.marker_aside(&format!("version-{}", agent.card().id));
    discover::search(agent, environment, &shared.spawner, &marker).await
}

fn tell(shared: &Shared, provider: &ProviderId, agent: &dyn Agent, search: &Search) {
    shared.tell(Input::ProviderFound {
        provider: provider.clone(),
        capabilities: agent.card().capabilities.clone(),
        installed: search.to_installed(),
    });
}
