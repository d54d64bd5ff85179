//! What an agent has done for it: files of a session's folder, and commands in it.
//!
//! Never on the loop that decides, and never in the way of the agent's own lines: files are read and written one after the
//! other on a thread of their own, each command has a task. Everything is answered once, in time or not at all; what was
//! started is gone when [`Errands::gone`] returns.

mod files;
mod screen;
mod terminal;

use std::{collections::BTreeMap, path::PathBuf};

use tokio::sync::{mpsc, watch};
use turnkeep_agents::errand::{Done, Errand, Exit, NotDone, NotDoneWhy, Outcome, Task};

use self::{
    screen::Kept,
    terminal::{Ask, Start, Terminal},
};
use super::child::Spawner;

/// Where answers go, by the key of the errand.
type Answers = mpsc::UnboundedSender<(u64, Outcome)>;

/// What commands are started with.
#[derive(Clone, Debug)]
pub(super) struct Kit {
    pub(super) spawner: Spawner,
    /// The agent's own, our marker included.
    pub(super) environment: BTreeMap<String, String>,
    /// The agent's own marker, of which a terminal's is made.
    pub(super) marker: String,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Errands {
    /// `None`: nothing is done for this agent, or nothing any more.
    kit: Option<Kit>,
    to: Answers,
    done: mpsc::UnboundedReceiver<(u64, Outcome)>,
    disk: Option<Disk>,
    terminals: BTreeMap<String, Terminal>,
    /// Held by every command's task until nothing of the command is left.
    held: Option<mpsc::Sender<()>>,
    let_go: mpsc::Receiver<()>,
}

/// The one task that touches files, and what it is still to do.
#[derive(Debug)]
struct Disk {
    jobs: mpsc::UnboundedSender<(u64, Job)>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
enum Job {
    Read { folder: PathBuf, path: PathBuf, first_line: u64, lines: Option<u64> },
    Write { folder: PathBuf, path: PathBuf, text: String },
}

impl Errands {
    pub(super) fn new(kit: Option<Kit>) -> Self {
        let (to, done) = mpsc::unbounded_channel();
        let (held, let_go) = mpsc::channel(1);
        Self { kit, to, done, disk: None, terminals: BTreeMap::new(), held: Some(held), let_go }
    }

    /// Begin one; its answer comes to [`Self::next`].
    pub(super) fn begin(&mut self, Errand { key, task }: Errand) {
        let (Some(kit), Some(held)) = (&self.kit, &self.held) else {
            return self.answer(key, Err(not_done(NotDoneWhy::Failed, "nothing more is done for this process".to_owned())));
        };
        match task {
            Task::Read { folder, path, first_line, lines } => self.on_disk(key, Job::Read { folder, path, first_line, lines }),
            Task::Write { folder, path, text } => self.on_disk(key, Job::Write { folder, path, text }),
            Task::Start { terminal, command } => {
                let (orders, asked) = mpsc::unbounded_channel();
                let (exit, exited) = watch::channel(None);
                let kept = Kept::new(command.keep);
                let start = Start {
                    key,
                    name: format!("{}/{terminal}", kit.marker),
                    kit: kit.clone(),
                    command,
                    kept: kept.clone(),
                    exit,
                    answers: self.to.clone(),
                };
                let held = held.clone();
                tokio::spawn(async move {
                    terminal::serve(start, asked).await;
                    drop(held);
                });
                self.terminals.insert(terminal, Terminal { orders, kept, exited });
            }
            Task::Look { terminal } => match self.terminals.get(&terminal) {
                Some(known) => self.answer(key, Ok(Done::Screen(known.screen()))),
                None => self.unknown(key, &terminal),
            },
            Task::Await { terminal } => match self.terminals.get(&terminal) {
                Some(known) => {
                    let (mut exited, kept, to) = (known.exited.clone(), known.kept.clone(), self.to.clone());
                    tokio::spawn(async move {
                        // Where its task is gone nothing more is known.
                        let exit = exited.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
                        let _ = to.send((key, Ok(Done::Screen(kept.screen(Some(exit.unwrap_or_default()))))));
                    });
                }
                None => self.unknown(key, &terminal),
            },
            Task::Kill { terminal } => match self.terminals.get(&terminal) {
                Some(known) => known.ask(Ask::Kill { key }),
                None => self.unknown(key, &terminal),
            },
            Task::Release { terminal } => match self.terminals.remove(&terminal) {
                Some(known) => known.ask(Ask::Release { key }),
                None => self.unknown(key, &terminal),
            },
        }
    }

    /// The next answer.
    pub(super) async fn next(&mut self) -> (u64, Outcome) {
        match self.done.recv().await {
            Some(answer) => answer,
            // One sender is our own.
            None => std::future::pending().await,
        }
    }

    /// Begin nothing more, and end every command.
    pub(super) fn shut(&mut self) {
        self.kit = None;
        self.held = None;
        self.terminals.clear();
        if let Some(disk) = self.disk.take() {
            disk.task.abort();
        }
    }

    /// Waits until nothing is left of any command; after [`Self::shut`].
    pub(super) async fn gone(&mut self) {
        while self.let_go.recv().await.is_some() {}
    }

    fn answer(&self, key: u64, outcome: Outcome) {
        // The receiver is our own.
        let _ = self.to.send((key, outcome));
    }

    fn unknown(&self, key: u64, terminal: &str) {
        self.answer(key, Err(not_done(NotDoneWhy::NotFound, format!("there is no terminal {terminal} any more"))));
    }

    /// One after the other: what is written and then read is read as it was written.
    fn on_disk(&mut self, key: u64, job: Job) {
        let to = self.to.clone();
        let disk = self.disk.get_or_insert_with(|| {
            let (jobs, mut todo) = mpsc::unbounded_channel();
            let task = tokio::spawn(async move {
                while let Some((key, job)) = todo.recv().await {
                    let ended = |_| Err(not_done(NotDoneWhy::Failed, "Turnkeep is ending".to_owned()));
                    let outcome = tokio::task::spawn_blocking(move || carry_out(job)).await.unwrap_or_else(ended);
                    let _ = to.send((key, outcome));
                }
            });
            Disk { jobs, task }
        });
        let _ = disk.jobs.send((key, job));
    }
}

impl Drop for Errands {
    fn drop(&mut self) {
        self.shut();
    }
}

fn carry_out(job: Job) -> Outcome {
    match job {
        Job::Read { folder, path, first_line, lines } => {
            files::read(&folder, &path).map(|text| Done::Read { text: files::part(text, first_line, lines) })
        }
        Job::Write { folder, path, text } => files::write(&folder, &path, &text).map(|()| Done::Written),
    }
}

fn not_done(why: NotDoneWhy, message: String) -> NotDone {
    NotDone { why, message }
}

/// How a process ended, for the agent.
fn exit_of(status: &std::io::Result<std::process::ExitStatus>) -> Exit {
    let Ok(status) = status else { return Exit::default() };
    Exit { code: status.code(), signal: terminal::signal_name(*status) }
}

#[cfg(all(test, unix))]
mod tests;
