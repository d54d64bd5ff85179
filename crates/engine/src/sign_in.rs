//! Signing in and out. A key goes into the vault; everything else is done by the provider's own program, in a process that
//! does nothing else and is gone before the result is told.
//!
//! Never started against a locked keychain, never reads what a provider's program stored.

use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use turnkeep_agents::CredentialSource;
use turnkeep_model::{
    CredentialId, Input, ProviderId, SignInId, StagedSecret,
    port::{AgentCommand, AgentEvent, Failure, FailureClass, Observation, SignInMethod},
    state::AccountKind,
};

use crate::{
    runtime::{Actor, End, Order, Report},
    vault::VaultError,
    world::{Filler, Says, Shared, Wanted, Why, lock, prepare, remove_home, sources_of},
};

/// How long a provider's program has to give a sign-in up.
const CANCEL_WITHIN: std::time::Duration = std::time::Duration::from_secs(5);

/// How long a sign-out may take, the provider's answer included.
const SIGN_OUT_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);

/// A sign-in that is wanted.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) sign_in: SignInId,
    pub(crate) provider: ProviderId,
    pub(crate) credential: CredentialId,
    pub(crate) method: SignInMethod,
    pub(crate) key: Option<StagedSecret>,
}

type Orders = mpsc::UnboundedReceiver<Order>;

/// Sign in; steps that a person must take are told on the way.
pub(crate) async fn sign_in(
    shared: &Arc<Shared>,
    wish: Wish,
    stop: &mpsc::UnboundedSender<Order>,
    orders: Orders,
) -> Result<Observation, Failure> {
    let credential = wish.credential;
    let result = match wish.method {
        SignInMethod::ApiKey => keep_key(shared, &wish).await,
        SignInMethod::Browser | SignInMethod::DeviceCode | SignInMethod::Advertised { .. } => {
            by_program(shared, &wish, stop, orders).await
        }
        // Whether its sign-in is any good is for the next call to say.
        SignInMethod::Elsewhere => {
            Ok(Observation::Unknown { why: "the person signed in with the agent's own program".to_owned() })
        }
    };
    match result {
        Ok(seen) => Ok(lock(&shared.identities).complete(credential, seen, Says::Process)),
        Err(failure) => {
            forget_attempt(shared, &wish).await;
            Err(failure)
        }
    }
}

/// Give a sign-in up; its end is told as any other.
pub(crate) fn cancel(orders: mpsc::UnboundedSender<Order>) {
    let _ = orders.send(Order::Command(Box::new(AgentCommand::CancelSignIn)));
    tokio::spawn(async move {
        tokio::time::sleep(CANCEL_WITHIN).await;
        let _ = orders.send(Order::Stop { force: true });
    });
}

pub(crate) fn cancelled() -> Failure {
    plain("The sign-in was given up.")
}

async fn keep_key(shared: &Shared, wish: &Wish) -> Result<Observation, Failure> {
    let able = shared.agents.get(&wish.provider).is_some_and(|agent| agent.card().sign_in.contains(&SignInMethod::ApiKey));
    if !able {
        let message = "This agent cannot be given an API key without writing it to a file. Sign in with its own program.";
        return Err(Failure { class: FailureClass::Unsupported, ..plain(message) });
    }
    let Some(key) = wish.key else { return Err(plain("No API key was entered. Enter it, then try again.")) };
    shared.vault.keep(wish.credential, key).await.map(Observation::Someone)
}

async fn by_program(
    shared: &Arc<Shared>,
    wish: &Wish,
    stop: &mpsc::UnboundedSender<Order>,
    mut orders: Orders,
) -> Result<Observation, Failure> {
    let wanted = Wanted {
        provider: wish.provider.clone(),
        credential: wish.credential,
        kind: kind_of(&wish.method),
        why: Why::SignIn(wish.method.clone()),
        marker: shared.marker_aside(&format!("sign-in-{}", wish.sign_in)),
    };
    let start = tokio::select! {
        start = prepare(shared, wanted) => start?,
        // Given up before anything was started: any order means that.
        _ = orders.recv() => return Err(cancelled()),
    };
    let source = start.launch.source.clone();
    let name = start.name.clone();
    let result = Arc::new(Mutex::new(None));
    let (ended, teller, stop, sign_in) = (Arc::clone(&result), Arc::clone(shared), stop.clone(), wish.sign_in);
    let tell = move |report| {
        if let Report::Event(event) = report {
            if let AgentEvent::SignInStep { step } = event {
                teller.tell(Input::SignInStep { sign_in, step });
            } else if let AgentEvent::SignInEnded { result } = event {
                *lock(&ended) = Some(result);
                let _ = stop.send(Order::Stop { force: false });
            }
        }
    };
    let filler = Filler { shared: Arc::clone(shared), credential: wish.credential };
    let end = Actor::run(&shared.spawner, start, filler, orders, tell).await;
    let told = lock(&result).take();
    let seen = match (told, end) {
        (Some(result), _) => result?,
        (None, End::NotStarted(failure)) => return Err(failure),
        (None, End::Gone { closed: None }) => return Err(cancelled()),
        (None, End::Gone { closed: Some(record) }) => {
            return Err(Failure {
                class: FailureClass::TransportClosed(Box::new(record)),
                message: format!("{name} ended before the sign-in was done. Try again."),
                detail: None,
            });
        }
    };
    if let CredentialSource::KeychainItem { attributes } = source
        && shared.vault.find(&attributes).await == Err(VaultError::Missing)
    {
        return Err(plain(&format!("{name} says that it is signed in, but the keychain holds no sign-in of it. Try again.")));
    }
    Ok(seen)
}

/// Whose sign-in the method makes.
const fn kind_of(method: &SignInMethod) -> AccountKind {
    match method {
        SignInMethod::ApiKey => AccountKind::ApiKey,
        SignInMethod::Browser | SignInMethod::DeviceCode => AccountKind::PrivateHome,
        SignInMethod::Advertised { .. } | SignInMethod::Elsewhere => AccountKind::System,
    }
}

/// Nothing of an attempt that failed stays: not in the keychain, not on disk.
async fn forget_attempt(shared: &Shared, wish: &Wish) {
    if let Some(key) = wish.key {
        shared.vault.unstage(key);
    }
    let kind = kind_of(&wish.method);
    if kind != AccountKind::PrivateHome {
        return;
    }
    for source in sources(shared, &wish.provider, wish.credential, kind).await {
        if let CredentialSource::KeychainItem { attributes } = source
            && let Err(error) = shared.vault.delete_found(&attributes).await
        {
            tracing::debug!(%error, "nothing to delete after a sign-in that failed, or nothing that can be reached");
        }
    }
    remove_home(shared, &wish.provider, wish.credential).await;
}

/// Revoke and forget a credential that nobody uses any more.
pub(crate) async fn revoke(
    shared: &Arc<Shared>,
    provider: &ProviderId,
    credential: CredentialId,
    kind: AccountKind,
) -> Result<(), Failure> {
    match kind {
        AccountKind::ApiKey => shared.vault.forget(credential).await.map_err(|error| error.to_failure())?,
        AccountKind::PrivateHome => {
            let sources = sources(shared, provider, credential, kind.clone()).await;
            sign_out_of(shared, provider, credential, kind, &sources).await?;
        }
        AccountKind::System => {
            let sources = sources(shared, provider, credential, kind.clone()).await;
            return sign_out_of(shared, provider, credential, kind, &sources).await;
        }
        // Its sign-in is its own, and nothing of it is here.
        AccountKind::Server { .. } => return Ok(()),
    }
    remove_home(shared, provider, credential).await;
    Ok(())
}

async fn sources(shared: &Shared, provider: &ProviderId, credential: CredentialId, kind: AccountKind) -> Vec<CredentialSource> {
    let Some(agent) = shared.agents.get(provider) else { return Vec::new() };
    let environment = &shared.ground.get().await.environment;
    sources_of(shared, &**agent, environment, credential, kind)
}

/// By the provider's own program, if there is anything to sign out of; then it must be gone.
async fn sign_out_of(
    shared: &Arc<Shared>,
    provider: &ProviderId,
    credential: CredentialId,
    kind: AccountKind,
    sources: &[CredentialSource],
) -> Result<(), Failure> {
    if !is_there(shared, sources).await? {
        return Ok(());
    }
    let wanted = Wanted {
        provider: provider.clone(),
        credential,
        kind: kind.clone(),
        why: Why::SignOut,
        marker: shared.marker_aside(&format!("sign-out-{credential}")),
    };
    let done = sign_out_by_program(shared, wanted).await;
    if sources.iter().any(|source| matches!(source, CredentialSource::Assumed { .. })) {
        // Nobody but its program can say.
        return done;
    }
    if !is_there(shared, sources).await? {
        return Ok(());
    }
    match done {
        // It said so, and did not do it: what is ours is deleted all the same.
        Ok(()) if kind == AccountKind::PrivateHome => delete(shared, sources).await,
        // Its program is not there to do it.
        Err(failure) if kind == AccountKind::PrivateHome && failure.class == FailureClass::StartFailed => {
            delete(shared, sources).await
        }
        Ok(()) => Err(plain("The provider's program says that it is signed out, but its sign-in is still there.")),
        Err(failure) => Err(failure),
    }
}

async fn delete(shared: &Shared, sources: &[CredentialSource]) -> Result<(), Failure> {
    for source in sources {
        if let CredentialSource::KeychainItem { attributes } = source {
            shared.vault.delete_found(attributes).await.map_err(|error| error.to_failure())?;
        }
    }
    Ok(())
}

/// Whether the credential is still there; a keychain that cannot be read is an error, not an answer.
async fn is_there(shared: &Shared, sources: &[CredentialSource]) -> Result<bool, Failure> {
    for source in sources {
        match source {
            CredentialSource::KeychainItem { attributes } => match shared.vault.find(attributes).await {
                Ok(()) => return Ok(true),
                Err(VaultError::Missing) => {}
                // A file is asked for as well: an absent keychain holds nothing.
                Err(VaultError::Absent { .. }) if sources.len() > 1 => {}
                Err(error) => return Err(error.to_failure()),
            },
            CredentialSource::File { path } if path.exists() => return Ok(true),
            CredentialSource::Assumed { .. } => return Ok(true),
            CredentialSource::File { .. } | CredentialSource::Vault | CredentialSource::None => {}
        }
    }
    Ok(false)
}

async fn sign_out_by_program(shared: &Arc<Shared>, wanted: Wanted) -> Result<(), Failure> {
    let credential = wanted.credential;
    let start = prepare(shared, wanted).await?;
    let name = start.name.clone();
    let (stop, orders) = mpsc::unbounded_channel();
    let result = Arc::new(Mutex::new(None));
    let ended = Arc::clone(&result);
    let on_end = stop.clone();
    let tell = move |report| {
        if let Report::Event(AgentEvent::SignedOut { result }) = report {
            *lock(&ended) = Some(result);
            let _ = on_end.send(Order::Stop { force: false });
        }
    };
    let filler = Filler { shared: Arc::clone(shared), credential };
    let run = Actor::run(&shared.spawner, start, filler, orders, tell);
    tokio::pin!(run);
    let end = tokio::select! {
        end = &mut run => end,
        () = tokio::time::sleep(SIGN_OUT_WITHIN) => {
            let _ = stop.send(Order::Stop { force: true });
            run.await
        }
    };
    let told = lock(&result).take();
    match (told, end) {
        (Some(result), _) => result,
        (None, End::NotStarted(failure)) => Err(failure),
        (None, End::Gone { .. }) => Err(plain(&format!("{name} ended before it was signed out."))),
    }
}

fn plain(message: &str) -> Failure {
    Failure { class: FailureClass::Other, message: message.to_owned(), detail: None }
}
