//! The world outside the machine: processes, the keychain, files and programs of this computer.
//!
//! [`World::perform`] is told what the machine wants and tells the inbox what came of it. It never blocks, never fails
//! towards its caller, and decides nothing: what a result means is for the machine to say.

mod greet;
mod ground;
mod home;
mod identities;
mod prepare;
mod questions;
mod serve;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use secrecy::SecretString;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use turnkeep_agents::Agent;
use turnkeep_model::{
    CredentialId, Effect, Input, ProviderId, RuntimeId, ServerAddress, SignInId, StagedSecret,
    port::{AgentCommand, AgentEvent, Failure},
    state::{AccountKind, Credential},
};

use self::questions::Questions;
pub use self::{greet::Greeting, questions::ThreadsAnswer};
pub(crate) use self::{
    ground::Ground,
    identities::{Identities, Says},
    prepare::{Filler, Wanted, Why, named_home, prepare, remove_home, sources_of, system_home},
};
use crate::{
    runtime::{LastLines, Order, Spawner, Unread, become_subreaper, bury_as_they_come, reap, sweep_leftovers},
    sign_in,
    vault::Vault,
    watch::Watch,
};

/// Something that came from outside the machine.
#[derive(Debug)]
pub enum Arrival {
    /// For the machine.
    Input(Input),
    /// Streaming text: for the feed, never for the machine.
    Event { runtime: RuntimeId, event: AgentEvent },
}

/// Where results go. Unbounded, because nothing that tells a result may wait for the loop. What an agent says is bounded
/// where it is read: while too much of it waits, no more is read until [`World::taken`] is told.
pub type Inbox = mpsc::UnboundedSender<Arrival>;

/// What the world must be told before it starts.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Names this state directory for ever: children and keychain items carry it, so that ours are told from others'.
    pub instance: String,
    /// Folder in which private provider homes are made, one a credential.
    pub homes: PathBuf,
    /// The environment to take instead of asking the login shell.
    pub environment: Option<BTreeMap<String, String>>,
}

/// Carries out effects. Made inside the engine's tokio runtime.
#[derive(Debug)]
pub struct World {
    shared: Arc<Shared>,
    watch: Watch,
}

/// A process that is served.
#[derive(Debug)]
struct Serving {
    orders: mpsc::UnboundedSender<Order>,
    last_lines: LastLines,
    unread: Unread,
}

/// Ended processes whose last words are kept.
const ENDED_KEPT: usize = 32;

/// What the tasks of the world have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: WorldConfig,
    pub(crate) agents: BTreeMap<ProviderId, Arc<dyn Agent>>,
    pub(crate) inbox: Inbox,
    pub(crate) spawner: Spawner,
    pub(crate) vault: Vault,
    pub(crate) ground: Ground,
    pub(crate) identities: Mutex<Identities>,
    runtimes: Mutex<BTreeMap<RuntimeId, Serving>>,
    /// The last words of processes that ended in this run, the newest ones.
    ended: Mutex<BTreeMap<RuntimeId, LastLines>>,
    questions: Mutex<Questions>,
    sign_ins: Mutex<BTreeMap<SignInId, mpsc::UnboundedSender<Order>>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Shared {
    pub(crate) fn tell(&self, input: Input) {
        // The loop is gone: nobody minds any more.
        let _ = self.inbox.send(Arrival::Input(input));
    }

    /// A task that [`World::shut`] waits for.
    fn begin(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Its process is gone: what it said last is kept, and whoever waits for an answer is told.
    fn let_go(&self, runtime: RuntimeId) {
        if let Some(serving) = lock(&self.runtimes).remove(&runtime) {
            let mut ended = lock(&self.ended);
            ended.insert(runtime, serving.last_lines);
            while ended.len() > ENDED_KEPT {
                ended.pop_first();
            }
        }
        lock(&self.questions).let_go(runtime);
    }

    /// How the descendants of this runtime are known.
    pub(crate) fn marker(&self, runtime: RuntimeId) -> String {
        format!("{}-{runtime}", self.config.instance)
    }

    /// The same for a process that is no runtime and does not outlive its purpose.
    pub(crate) fn marker_aside(&self, what: &str) -> String {
        format!("{}{what}", self.aside_prefix())
    }

    fn aside_prefix(&self) -> String {
        format!("{}-aside-", self.config.instance)
    }
}

/// Nothing that holds one of these locks can panic half-way; a poisoned one is as good.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// Begin to look at this computer; what is found comes to the inbox.
    #[must_use]
    pub fn start(config: WorldConfig, agents: Vec<Arc<dyn Agent>>, inbox: Inbox) -> Self {
        become_subreaper();
        tokio::spawn(bury_as_they_come());
        let shared = Arc::new(Shared {
            vault: Vault::new(&config.instance),
            config,
            agents: agents.into_iter().map(|agent| (agent.card().id.clone(), agent)).collect(),
            inbox,
            spawner: Spawner::start(),
            ground: Ground::default(),
            identities: Mutex::default(),
            runtimes: Mutex::default(),
            ended: Mutex::default(),
            questions: Mutex::default(),
            sign_ins: Mutex::default(),
            tasks: Mutex::default(),
        });
        let watch = Watch::start(Arc::clone(&shared));
        let surveyor = Arc::clone(&shared);
        let looker = watch.looker();
        tokio::spawn(async move {
            sweep_leftovers(surveyor.aside_prefix()).await;
            ground::survey(&surveyor).await;
            looker.look();
        });
        Self { shared, watch }
    }

    /// Carry out one wish; its result comes to the inbox. What is for the shell (notifications, the exit) is ignored.
    pub fn perform(&self, effect: Effect) {
        let shared = Arc::clone(&self.shared);
        match effect {
            Effect::Spawn { runtime, provider, account: _, credential, kind } => {
                self.spawn(runtime, provider, credential, kind);
            }
            Effect::Stop { runtime, force } => self.stop(runtime, force),
            Effect::Reap { runtime, process } => self.shared.begin(async move {
                reap(shared.marker(runtime), process).await;
                shared.tell(Input::RuntimeGone { runtime, closed: None });
            }),
            Effect::Command { runtime, command }
            | Effect::Open { runtime, command }
            | Effect::ReadHistory { runtime, command }
            | Effect::Probe { runtime, command, turn: _ } => self.order(runtime, Order::Command(Box::new(command))),
            Effect::Release { runtime, session } => {
                let command = AgentCommand::ReleaseSession { session };
                self.order(runtime, Order::Command(Box::new(command)));
            }
            Effect::SignIn { sign_in, provider, account: _, credential, method, key } => {
                let (orders, told) = mpsc::unbounded_channel();
                lock(&self.shared.sign_ins).insert(sign_in, orders.clone());
                let wish = sign_in::Wish { sign_in, provider, credential, method, key };
                let looker = self.watch.looker();
                self.shared.begin(async move {
                    let result = sign_in::sign_in(&shared, wish, &orders, told).await;
                    lock(&shared.sign_ins).remove(&sign_in);
                    shared.tell(Input::SignInEnded { sign_in, result });
                    looker.look();
                });
            }
            Effect::CancelSignIn { sign_in } => self.cancel(sign_in),
            Effect::Revoke { provider, account: _, credential, kind } => self.shared.begin(async move {
                let result = sign_in::revoke(&shared, &provider, credential, kind).await;
                if let Err(failure) = &result {
                    tracing::warn!(?failure, %credential, "a sign-in could not be revoked; it is tried again");
                }
                shared.tell(Input::Revoked { credential, result });
            }),
            Effect::Notify { .. } | Effect::CloseNotification { .. } | Effect::Exit => {}
        }
    }

    /// So many words of a process were taken in: it may say as many more.
    pub fn taken(&self, runtime: RuntimeId, words: usize) {
        if let Some(serving) = lock(&self.shared.runtimes).get(&runtime) {
            serving.unread.taken(words);
        }
    }

    /// Say which credentials exist, whenever that changed: each is looked at and watched from then on.
    pub fn attend(&self, credentials: &BTreeMap<CredentialId, Credential>) {
        self.watch.attend(credentials);
    }

    /// What a process wrote to its standard error last; nothing where it said nothing or ended long ago.
    #[must_use]
    pub fn last_lines(&self, runtime: RuntimeId) -> Vec<String> {
        let running = lock(&self.shared.runtimes).get(&runtime).map(|serving| serving.last_lines.clone());
        let lines = running.or_else(|| lock(&self.shared.ended).get(&runtime).cloned());
        lines.map(|lines| lines.to_vec()).unwrap_or_default()
    }

    /// Asks a process which threads it knows. The answer is for whoever asked, not for the machine; none comes from a
    /// process that is gone.
    pub fn threads(&self, runtime: RuntimeId, cursor: Option<String>, answer: oneshot::Sender<ThreadsAnswer>) {
        let ask = lock(&self.shared.questions).ask(runtime, answer);
        if !lock(&self.shared.runtimes).contains_key(&runtime) {
            lock(&self.shared.questions).let_go(runtime);
            return;
        }
        self.order(runtime, Order::Command(Box::new(AgentCommand::ListThreads { ask, cursor })));
    }

    /// Where secrets are kept.
    #[must_use]
    pub fn vault(&self) -> &Vault {
        &self.shared.vault
    }

    /// Keep a secret in the vault's memory until the machine says where it belongs.
    #[must_use]
    pub fn stage(&self, secret: SecretString) -> StagedSecret {
        self.shared.vault.stage(secret)
    }

    /// Ask the person to unlock the keychain; what came of it comes to the inbox.
    pub fn unlock(&self) {
        let shared = Arc::clone(&self.shared);
        let looker = self.watch.looker();
        tokio::spawn(async move {
            if let Err(error) = shared.vault.unlock().await {
                tracing::warn!(%error, "the keychain was not unlocked");
            }
            looker.look();
        });
    }

    /// Look for the providers' programs again.
    pub fn rescan(&self) {
        let shared = Arc::clone(&self.shared);
        let looker = self.watch.looker();
        tokio::spawn(async move {
            ground::survey(&shared).await;
            looker.look();
        });
    }

    /// See who a server is that somebody else started, and let go of it again.
    pub fn greet(&self, provider: ProviderId, address: ServerAddress, answer: oneshot::Sender<Result<Greeting, Failure>>) {
        let shared = Arc::clone(&self.shared);
        // Not waited for at the end: nothing of it is left when its task is.
        tokio::spawn(async move {
            let _ = answer.send(greet::greet(&shared, &provider, &address).await);
        });
    }

    /// Stop what still runs, and wait until it is gone.
    pub async fn shut(self) {
        self.watch.stop();
        let runtimes: Vec<_> = lock(&self.shared.runtimes).values().map(|serving| serving.orders.clone()).collect();
        for orders in runtimes.iter().chain(lock(&self.shared.sign_ins).values()) {
            let _ = orders.send(Order::Stop { force: true });
        }
        let mut tasks = std::mem::take(&mut *lock(&self.shared.tasks));
        while tasks.join_next().await.is_some() {}
    }

    fn spawn(&self, runtime: RuntimeId, provider: ProviderId, credential: CredentialId, kind: AccountKind) {
        let (orders, told) = mpsc::unbounded_channel();
        let last_lines = LastLines::default();
        let unread = Unread::default();
        {
            let mut runtimes = lock(&self.shared.runtimes);
            if runtimes.contains_key(&runtime) {
                return;
            }
            runtimes.insert(runtime, Serving { orders, last_lines: last_lines.clone(), unread: unread.clone() });
        }
        let shared = Arc::clone(&self.shared);
        self.shared.begin(async move {
            let end = serve::serve(&shared, runtime, serve::Of { provider, credential, kind, last_lines, unread }, told).await;
            shared.let_go(runtime);
            shared.tell(end);
        });
    }

    fn stop(&self, runtime: RuntimeId, force: bool) {
        let sent = lock(&self.shared.runtimes).get(&runtime).is_some_and(|s| s.orders.send(Order::Stop { force }).is_ok());
        if !sent {
            // Nothing of it was started, or its end was told before this was asked.
            self.shared.tell(Input::RuntimeGone { runtime, closed: None });
        }
    }

    fn order(&self, runtime: RuntimeId, order: Order) {
        let sent = lock(&self.shared.runtimes).get(&runtime).is_some_and(|s| s.orders.send(order).is_ok());
        if !sent {
            tracing::debug!(%runtime, "a command for a process that is gone; its end has been told");
        }
    }

    fn cancel(&self, sign_in: SignInId) {
        let orders = lock(&self.shared.sign_ins).get(&sign_in).cloned();
        match orders {
            Some(orders) => sign_in::cancel(orders),
            None => self.shared.tell(Input::SignInEnded { sign_in, result: Err(sign_in::cancelled()) }),
        }
    }
}
