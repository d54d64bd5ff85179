//! Asking a provider something in passing: a process of its current account that is ready, or one that is started for it.
//!
//! Waits no longer than a person would, and says why there is no answer.

use std::time::Duration;

use tokio::sync::oneshot;
use turnkeep_model::{
    Input, ProviderId, RuntimeId, State, derive,
    port::{Failure, ThreadPage},
    state::{Installed, Phase},
};

use crate::{
    handle::Handle,
    run::{Ask, Refused},
};

/// How long a process may take to start and to answer.
const PATIENCE: Duration = Duration::from_secs(45);

/// Why a provider did not answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// It cannot do this, or is not there.
    #[error("This agent does not tell which threads it has.")]
    Unable,
    /// No account can be used.
    #[error("No account of this agent is signed in. Sign in, then try again.")]
    SignedOut,
    /// Its process does not start, or it refused.
    #[error("{}", .0.message)]
    Failed(Failure),
    #[error("The agent's process ended before it answered. Try again.")]
    Gone,
    #[error("The agent did not answer within {} s. Try again.", PATIENCE.as_secs())]
    Late,
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl Handle {
    /// Some of the threads that the provider knows, newest first; from the beginning, or from a page's cursor on.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub async fn threads(&self, provider: &ProviderId, cursor: Option<String>) -> Result<ThreadPage, Unanswered> {
        let asking = async {
            let able =
                |p: &turnkeep_model::state::Provider| p.capabilities.threads && matches!(p.installed, Installed::Found { .. });
            if !self.snapshot().state.providers.get(provider).is_some_and(able) {
                return Err(Unanswered::Unable);
            }
            let runtime = self.ready_runtime(provider).await?;
            let (answer, answered) = oneshot::channel();
            self.ask(Ask::Threads { runtime, cursor, answer })?;
            answered.await.map_err(|_| Unanswered::Gone)?.map_err(Unanswered::Failed)
        };
        tokio::time::timeout(PATIENCE, asking).await.unwrap_or(Err(Unanswered::Late))
    }

    async fn ready_runtime(&self, provider: &ProviderId) -> Result<RuntimeId, Unanswered> {
        self.submit(Input::Consult { provider: provider.clone() }).await?;
        let mut news = self.watch();
        loop {
            let standing = standing(&news.borrow_and_update().state, provider);
            match standing {
                Standing::Ready(runtime) => return Ok(runtime),
                Standing::Never(why) => return Err(why),
                Standing::Coming => {}
                // What was in the way, or its delay, may be over: it is asked for again.
                Standing::Missing => {
                    self.submit(Input::Consult { provider: provider.clone() }).await?;
                }
            }
            // A delay between two starts changes nothing that is told.
            let _ = tokio::time::timeout(Duration::from_millis(500), news.changed()).await;
        }
    }
}

/// Whether the provider can be asked now.
enum Standing {
    Ready(RuntimeId),
    Coming,
    Missing,
    Never(Unanswered),
}

fn standing(state: &State, provider: &ProviderId) -> Standing {
    let of_provider = |(_, r): &(&RuntimeId, &turnkeep_model::state::Runtime)| {
        r.provider == *provider && r.fault.is_none() && derive::is_live(r) && !derive::is_stale(state, r)
    };
    let live = state.runtimes.iter().find(of_provider);
    let account = derive::current_account(state, provider).map(|(_, account)| account);
    match (live, account) {
        (Some((id, runtime)), _) if runtime.phase == Phase::Ready => Standing::Ready(*id),
        (Some(_), _) => Standing::Coming,
        (None, Some(account)) if derive::can_start(state, account) => match &account.restarts.given_up {
            Some(failure) => Standing::Never(Unanswered::Failed(failure.clone())),
            None => Standing::Missing,
        },
        (None, _) => Standing::Never(Unanswered::SignedOut),
    }
}
