//! Putting the engine together: places, lock, store, world and loop, on a thread of its own.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use secrecy::SecretString;
use tokio::sync::{mpsc, oneshot, watch};
use turnkeep_agents::Agent;
use turnkeep_model::{
    CredentialId, Effect, RuntimeId, StagedSecret, State, Supervisor,
    state::{Credential, Now},
};

use crate::{
    clock::{self, Alarm},
    crash::Crash,
    feed::{Feed, Recovery},
    handle::Handle,
    lock::{Lock, LockError},
    places::{Places, PlacesError},
    run::{self, Clock, Insistence, Machine, Outside, Parts},
    store::{self, Missing, Reader, StoreError, Writer},
    world::{Inbox, ThreadsAnswer, World, WorldConfig},
};

/// What an engine is started with.
#[derive(Debug)]
pub struct Config {
    pub places: Places,
    /// The agents that it can run.
    pub agents: Vec<Arc<dyn Agent>>,
    /// The environment to take instead of asking the person's login shell.
    pub environment: Option<BTreeMap<String, String>>,
}

/// Why it cannot start. Nothing was changed by the attempt.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Places(#[from] PlacesError),
    /// Another supervisor has this state directory; show its window instead.
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the engine's thread could not be started: {0}")]
    Thread(std::io::Error),
}

/// A running engine. Dropping it does not end it: that is what [`Handle::quit`] is for.
#[derive(Debug)]
pub struct Engine {
    thread: JoinHandle<()>,
}

impl Engine {
    /// Starts, and has recovered what an earlier run left by the time that the first snapshot with a `seq` comes.
    /// Blocks for as long as the database takes to open.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(config: Config) -> Result<(Self, Handle), StartError> {
        config.places.make()?;
        let lock = Lock::take(&config.places.lock())?;
        let (writer, reader, loaded) = store::open(&config.places.database())?;
        let world =
            WorldConfig { instance: config.places.instance()?, homes: config.places.homes(), environment: config.environment };
        let agents = config.agents;
        Kit {
            recovery: recovery(&loaded.missing, &loaded.state, clock::now()),
            feed: loaded.state.clone(),
            machine: Supervisor::new(loaded.state),
            writer,
            reader,
            world: |inbox| World::start(world, agents, inbox),
            clock: || BootClock(Alarm::new()),
            crash: Crash::from_environment(),
            lock: Some(lock),
        }
        .launch()
    }

    /// Waits until the thread is gone, and the lock with it.
    pub fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("the engine's thread panicked");
        }
    }
}

/// Everything that a running engine is made of.
pub(crate) struct Kit<M, W, C> {
    pub(crate) machine: M,
    /// What is shown before the first commit.
    pub(crate) feed: State,
    pub(crate) recovery: Option<Recovery>,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    /// Makes the world, inside the engine's runtime.
    pub(crate) world: W,
    /// Makes the clock, inside the engine's runtime.
    pub(crate) clock: C,
    pub(crate) crash: Crash,
    pub(crate) lock: Option<Lock>,
}

impl<M, O, T, W, C> Kit<M, W, C>
where
    M: Machine + Send + 'static,
    O: Outside,
    T: Clock,
    W: FnOnce(Inbox) -> O + Send + 'static,
    C: FnOnce() -> T + Send + 'static,
{
    /// Runs on a thread of its own from here on.
    pub(crate) fn launch(self) -> Result<(Engine, Handle), StartError> {
        let Self { machine, feed, recovery, writer, reader, world, clock, crash, lock } = self;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .thread_name("store")
            .enable_all()
            .build()
            .map_err(StartError::Thread)?;
        let feed = Feed::new(feed, recovery);
        let (asks, asked) = mpsc::unbounded_channel();
        let (notices, noticed) = mpsc::unbounded_channel();
        let (end, ended) = watch::channel(None);
        let insistence = Arc::new(Insistence::default());
        let handle = Handle {
            asks,
            snapshot: feed.watch(),
            ended,
            notices: Arc::new(Mutex::new(Some(noticed))),
            reader: Arc::new(Mutex::new(reader)),
            insistence: Arc::clone(&insistence),
            engine: runtime.handle().clone(),
        };
        let body = move || {
            let how = runtime.block_on(async {
                let (inbox, arrivals) = mpsc::unbounded_channel();
                let outside = world(inbox);
                let parts = Parts { machine, writer, feed, notices, outside, clock: clock(), crash, insistence };
                run::run(parts, arrivals, asked).await
            });
            tracing::info!(?how, "the engine ended");
            // What hangs in a disk or a keychain is left behind.
            runtime.shutdown_background();
            drop(lock);
            let _ = end.send(Some(how));
        };
        let thread = std::thread::Builder::new().name("engine".into()).spawn(body).map_err(StartError::Thread)?;
        Ok((Engine { thread }, handle))
    }
}

/// What is told once after the start.
fn recovery(missing: &[Missing], state: &State, now: Now) -> Option<Recovery> {
    let mut lines: Vec<String> = missing.iter().map(said).collect();
    match state.turns.len() {
        0 => {}
        1 => lines.push("1 turn was running when Turnkeep ended. Its session says what became of it.".to_owned()),
        n => lines.push(format!("{n} turns were running when Turnkeep ended. Their sessions say what became of them.")),
    }
    match state.runtimes.len() {
        0 => {}
        1 => lines.push("1 agent process of the last run is stopped before its sessions open again.".to_owned()),
        n => lines.push(format!("{n} agent processes of the last run are stopped before their sessions open again.")),
    }
    (!lines.is_empty()).then_some(Recovery { at: now.wall, lines })
}

fn said(missing: &Missing) -> String {
    match missing {
        Missing::Database { aside, detail } => {
            format!("The database was damaged ({detail}). It is kept at {}; Turnkeep began with an empty one.", aside.display())
        }
        Missing::Row { source, key, why } => {
            format!("Entry {key} of {source} could not be read ({why}). It is kept in the database, and left out.")
        }
    }
}

struct BootClock(Alarm);

impl Clock for BootClock {
    fn now(&self) -> Now {
        clock::now()
    }

    fn set(&mut self, at: Option<u64>) {
        self.0.set(at);
    }

    async fn rung(&mut self) {
        self.0.rung().await;
    }
}

impl Outside for World {
    fn perform(&self, effect: Effect) {
        Self::perform(self, effect);
    }

    fn taken(&self, runtime: RuntimeId, words: usize) {
        Self::taken(self, runtime, words);
    }

    fn attend(&self, credentials: &BTreeMap<CredentialId, Credential>) {
        Self::attend(self, credentials);
    }

    fn stage(&self, secret: SecretString) -> StagedSecret {
        Self::stage(self, secret)
    }

    fn unlock(&self) {
        Self::unlock(self);
    }

    fn rescan(&self) {
        Self::rescan(self);
    }

    fn last_lines(&self, runtime: RuntimeId) -> Vec<String> {
        Self::last_lines(self, runtime)
    }

    fn threads(&self, runtime: RuntimeId, cursor: Option<String>, answer: oneshot::Sender<ThreadsAnswer>) {
        Self::threads(self, runtime, cursor, answer);
    }

    async fn shut(self) {
        Self::shut(self).await;
    }
}

#[cfg(test)]
mod tests;
