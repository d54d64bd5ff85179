//! Starting a process: on one thread that lives as long as the world does, with exactly the planned environment.
//!
//! One thread, because a child's death signal is tied to the thread that started it. Never inherits the environment of
//! this application.

use std::{collections::BTreeMap, io, path::PathBuf, process::Stdio, sync::mpsc};

use tokio::{
    process::{Child, Command},
    sync::oneshot,
};
use zeroize::Zeroizing;

use super::{
    before_exec,
    guard::{self, Guards},
    process::Process,
    reap,
};

/// What to start. Everything in it may be logged.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// The whole environment.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: Option<PathBuf>,
}

/// Whether the system's own group is made for a process, where that can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    OfItsOwn,
    /// A command of an agent: its guard holds it.
    None,
}

/// The thread that starts every process.
#[derive(Clone, Debug)]
pub(crate) struct Spawner {
    jobs: mpsc::Sender<Job>,
    guards: Guards,
}

/// A variable's name and its value, in memory that is wiped.
pub(crate) type Secret = (String, Zeroizing<Vec<u8>>);

/// Done on the thread; answers by itself.
type Job = Box<dyn FnOnce() + Send>;

impl Spawner {
    /// Begin the thread; it ends when the last clone is gone. Must be called inside the tokio runtime that will talk to
    /// the children.
    pub(crate) fn start() -> Self {
        before_exec::remember_limits();
        let (jobs, todo) = mpsc::channel::<Job>();
        let runtime = tokio::runtime::Handle::current();
        let started = std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            let _inside = runtime.enter();
            while let Ok(job) = todo.recv() {
                job();
            }
        });
        if let Err(error) = started {
            // Every start will say that it could not be done.
            tracing::warn!(%error, "no thread to start processes on");
        }
        Self { jobs, guards: Guards::find() }
    }

    /// Start a process with three pipes, in a session of its own. What it leaves behind is its own business.
    pub(crate) async fn spawn(&self, plan: Plan) -> io::Result<Child> {
        self.there(move || spawn(&plan, &[], None)).await
    }

    /// The same around a guard, where there is one: nothing of it is left once its end is proven.
    pub(crate) async fn spawn_guarded(
        &self,
        plan: Plan,
        secrets: Vec<Secret>,
        marker: &str,
        group: Group,
    ) -> io::Result<Process> {
        let tag = turnkeep_guard::tag_of(marker);
        if let Some(program) = self.guards.program() {
            match guard::spawn(self, program, &plan, &secrets, marker, group).await {
                Ok(guarded) => return Process::guarded(guarded?),
                Err(unusable) => tracing::debug!(%unusable, "no guard"),
            }
        }
        let child = self.there(move || spawn(&plan, &secrets, Some(tag))).await?;
        Process::alone(child)
    }

    /// On the thread. Where nobody waits for the answer any more, it is dropped: a child's input closes then, and its
    /// death signal stays armed.
    pub(super) async fn there<T: Send + 'static>(&self, job: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move || {
            let _ = answer.send(job());
        });
        self.jobs.send(job).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        answered.await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?
    }

    /// Guards could not be used: said once, and the next ones are started without.
    pub(super) fn no_guards(&self, why: &str) {
        self.guards.give_up(why);
    }
}

fn spawn(plan: &Plan, secrets: &[Secret], tag: Option<u64>) -> io::Result<Child> {
    let mut command = Command::new(&plan.program);
    command.args(&plan.args);
    surround(&mut command, plan);
    for (name, value) in secrets {
        command.env(name, variable(value)?);
    }
    before_exec::prepare(&mut command, tag);
    noted(command.spawn()?)
}

/// It is waited for by whoever has its handle, and by nobody else.
pub(super) fn noted(child: Child) -> io::Result<Child> {
    if let Some(pid) = child.id() {
        reap::note_started(pid);
    }
    Ok(child)
}

/// Environment, streams and folder, as planned.
pub(super) fn surround(command: &mut Command, plan: &Plan) {
    command.env_clear().envs(&plan.environment).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(directory) = &plan.directory {
        command.current_dir(directory);
    }
}

/// The value as the system takes it; a key is text.
fn variable(value: &[u8]) -> io::Result<&str> {
    std::str::from_utf8(value).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}
