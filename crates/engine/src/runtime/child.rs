//! Starting a process: on one thread that lives as long as the world does, with exactly the planned environment.
//!
//! One thread, because a child's death signal is tied to the thread that started it. Never inherits the environment of
//! this application.

use std::{collections::BTreeMap, io, path::PathBuf, process::Stdio, sync::mpsc};

use tokio::{process::Child, sync::oneshot};
use zeroize::Zeroizing;

use super::before_exec;

/// What to start. Everything in it may be logged.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// The whole environment.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: Option<PathBuf>,
}

/// The thread that starts every process.
#[derive(Clone, Debug)]
pub(crate) struct Spawner {
    jobs: mpsc::Sender<Job>,
}

/// A variable's name and its value, in memory that is wiped.
pub(crate) type Secret = (String, Zeroizing<Vec<u8>>);

struct Job {
    plan: Plan,
    secrets: Vec<Secret>,
    answer: oneshot::Sender<io::Result<Child>>,
}

impl Spawner {
    /// Begin the thread; it ends when the last clone is gone. Must be called inside the tokio runtime that will talk to
    /// the children.
    pub(crate) fn start() -> Self {
        before_exec::remember_limits();
        let (jobs, todo) = mpsc::channel::<Job>();
        let runtime = tokio::runtime::Handle::current();
        let started = std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            let _inside = runtime.enter();
            while let Ok(Job { plan, secrets, answer }) = todo.recv() {
                // Nobody waits any more: the child is dropped, its input closes, and its death signal stays armed.
                let _ = answer.send(spawn(&plan, &secrets));
            }
        });
        if let Err(error) = started {
            // Every start will say that it could not be done.
            tracing::warn!(%error, "no thread to start processes on");
        }
        Self { jobs }
    }

    /// Start a process with three pipes, in a session of its own.
    pub(crate) async fn spawn(&self, plan: Plan, secrets: Vec<Secret>) -> io::Result<Child> {
        let (answer, spawned) = oneshot::channel();
        self.jobs.send(Job { plan, secrets, answer }).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        spawned.await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?
    }
}

fn spawn(plan: &Plan, secrets: &[Secret]) -> io::Result<Child> {
    let mut command = tokio::process::Command::new(&plan.program);
    command
        .args(&plan.args)
        .env_clear()
        .envs(&plan.environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, value) in secrets {
        command.env(name, variable(value)?);
    }
    if let Some(directory) = &plan.directory {
        command.current_dir(directory);
    }
    before_exec::prepare(&mut command);
    command.spawn()
}

/// The value as the system takes it; a key is text.
fn variable(value: &[u8]) -> io::Result<&str> {
    std::str::from_utf8(value).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}
