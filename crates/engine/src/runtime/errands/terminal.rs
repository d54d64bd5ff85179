//! One command that an agent has run: started in its own session, read to its end, and ended with all that it started.
//!
//! Its task ends only when nothing of the command is left; nobody but the task signals it.

use std::{io, pin::Pin, process::ExitStatus};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::{mpsc, watch},
};
use turnkeep_agents::errand::{Command, Done, Exit, NotDoneWhy, Screen};
use turnkeep_model::state::ProcessIdentity;

use super::{Answers, Kit, exit_of, files, not_done, screen::Kept};
use crate::runtime::{
    child::{Group, Plan},
    process::{Pipes, Process},
    reap::{self, MARKER, TERMINAL, Which},
    stdio::QUIET,
};

/// Bytes that are read at a time.
const CHUNK: usize = 16 << 10;

/// What is known of a command from outside its task.
#[derive(Debug)]
pub(super) struct Terminal {
    pub(super) orders: mpsc::UnboundedSender<Ask>,
    pub(super) kept: Kept,
    pub(super) exited: watch::Receiver<Option<Exit>>,
}

/// What its task is asked. Without anyone who could ask, it is released.
#[derive(Debug)]
pub(super) enum Ask {
    Kill { key: u64 },
    Release { key: u64 },
}

/// What is needed to start one.
pub(super) struct Start {
    pub(super) key: u64,
    /// By which all that it starts is found.
    pub(super) name: String,
    pub(super) kit: Kit,
    pub(super) command: Command,
    pub(super) kept: Kept,
    pub(super) exit: watch::Sender<Option<Exit>>,
    pub(super) answers: Answers,
}

impl Terminal {
    pub(super) fn screen(&self) -> Screen {
        self.kept.screen(self.exited.borrow().clone())
    }

    pub(super) fn ask(&self, ask: Ask) {
        // Its task ends only once nobody can ask.
        let _ = self.orders.send(ask);
    }
}

type Ending = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Running {
    /// Until its end was begun.
    process: Option<Process>,
    identity: Option<ProcessIdentity>,
    name: String,
    kept: Kept,
    exit: watch::Sender<Option<Exit>>,
    answers: Answers,
    /// How it ended, once it was waited for.
    status: Option<Exit>,
    /// Whoever asked for its end.
    asked: Vec<u64>,
    released: bool,
}

/// Start it and serve it to its end.
pub(super) async fn serve(start: Start, mut asks: mpsc::UnboundedReceiver<Ask>) {
    let Start { key, name, kit, command, kept, exit, answers } = start;
    let (what, where_to) = (command.program.clone(), command.directory.clone());
    let process = match plan(&name, &kit, command).await {
        Ok(plan) => kit.spawner.spawn_guarded(plan, Vec::new(), &kit.marker, Group::None).await.map_err(|error| {
            let why = if error.kind() == io::ErrorKind::NotFound { NotDoneWhy::NotFound } else { NotDoneWhy::Failed };
            not_done(why, format!("{what} could not be started in {}: {error}", where_to.display()))
        }),
        Err(refused) => Err(refused),
    };
    let mut process = match process {
        Ok(process) => process,
        Err(why) => {
            let _ = answers.send((key, Err(why)));
            return;
        }
    };
    let (identity, pipes) = (process.identity.clone(), process.pipes.take());
    let _ = answers.send((key, Ok(Done::Started)));
    let process = Some(process);
    let running = Running { process, identity, name, kept, exit, answers, status: None, asked: Vec::new(), released: false };
    running.run(pipes, &mut asks).await;
}

async fn plan(name: &str, kit: &Kit, command: Command) -> Result<Plan, turnkeep_agents::errand::NotDone> {
    let Command { folder, directory, program, arguments, variables, keep: _ } = command;
    let look = move || files::directory(&folder, &directory);
    let ended = |_| Err(not_done(NotDoneWhy::Failed, "Turnkeep is ending".to_owned()));
    let directory = tokio::task::spawn_blocking(look).await.unwrap_or_else(ended)?;
    let mut environment = kit.environment.clone();
    environment.extend(variables);
    // Last, so that nothing it is given takes it out of our sight.
    environment.insert(MARKER.to_owned(), kit.marker.clone());
    environment.insert(TERMINAL.to_owned(), name.to_owned());
    // A program that is named by a path is meant from where it runs.
    let path = std::path::Path::new(&program);
    let program = if path.components().count() > 1 { directory.join(path) } else { path.to_owned() };
    Ok(Plan { program, args: arguments, environment, directory: Some(directory) })
}

impl Running {
    async fn run(mut self, pipes: Option<Pipes>, asks: &mut mpsc::UnboundedReceiver<Ask>) {
        // It is given no input: that is dropped here.
        let (mut out, mut err) = pipes.map_or((None, None), |pipes| (Some(pipes.stdout), Some(pipes.stderr)));
        let mut stopping = false;
        let (mut said, mut complained) = (vec![0; CHUNK], vec![0; CHUNK]);
        let mut ending: Option<Ending> = None;
        let mut ended = false;
        let mut quiet = tokio::time::Instant::now();
        loop {
            if ended && self.status.is_some() {
                self.tell_exit();
                self.answer_all();
                ended = false;
                if self.released {
                    return;
                }
            }
            if stopping && ending.is_none() && self.may_be_ended() {
                stopping = false;
                ending = Some(Box::pin(end(
                    self.process.take_if(|_| self.status.is_some()),
                    self.name.clone(),
                    self.identity.clone(),
                )));
            }
            let last_words = self.status.is_some() && self.exit.borrow().is_none();
            if last_words && out.is_none() && err.is_none() {
                self.tell_exit();
                continue;
            }
            tokio::select! {
                ask = asks.recv(), if !self.released => {
                    self.take(ask);
                    stopping = true;
                    if let Some(process) = &mut self.process {
                        process.ask(reap::Ask::Politely);
                    }
                }
                () = over(&mut ending) => {
                    ending = None;
                    ended = true;
                }
                status = wait(&mut self.process), if self.status.is_none() => {
                    self.status = Some(exit_of(&status));
                    quiet = tokio::time::Instant::now() + QUIET;
                }
                read = read(&mut out, &mut said) => {
                    self.kept.push(said.get(..read).unwrap_or_default());
                    quiet = tokio::time::Instant::now() + QUIET;
                }
                read = read(&mut err, &mut complained) => {
                    self.kept.push(complained.get(..read).unwrap_or_default());
                    quiet = tokio::time::Instant::now() + QUIET;
                }
                // What still holds its output open is not waited for.
                () = tokio::time::sleep_until(quiet), if last_words => self.tell_exit(),
            }
        }
    }

    fn take(&mut self, ask: Option<Ask>) {
        match ask {
            Some(Ask::Kill { key }) => self.asked.push(key),
            Some(Ask::Release { key }) => {
                self.asked.push(key);
                self.released = true;
            }
            None => self.released = true,
        }
    }

    fn tell_exit(&mut self) {
        let exit = self.status.clone();
        self.exit.send_if_modified(|told| {
            let news = told.is_none() && exit.is_some();
            if news {
                told.clone_from(&exit);
            }
            news
        });
    }

    fn answer_all(&mut self) {
        for key in std::mem::take(&mut self.asked) {
            let _ = self.answers.send((key, Ok(Done::Screen(self.kept.screen(self.status.clone())))));
        }
    }

    /// A guard ends the command and all that it started, and the command's own end is heard first; else that end is a part of it.
    fn may_be_ended(&self) -> bool {
        self.status.is_some() || self.process.as_ref().is_none_or(|process| !process.is_guarded())
    }
}

/// End the command and all that it started. `process`: where it has ended and was waited for.
async fn end(process: Option<Process>, name: String, leader: Option<ProcessIdentity>) {
    let (left, known) = (Which::Terminal(name), leader.into_iter().collect());
    match process {
        Some(mut process) => process.end(left, known, reap::GRACE).await,
        None => reap::end_all(left, known, reap::GRACE, false).await,
    }
}

async fn wait(process: &mut Option<Process>) -> io::Result<ExitStatus> {
    match process {
        Some(process) => process.wait().await,
        None => std::future::pending().await,
    }
}

/// Waits for an end that was begun.
async fn over(ending: &mut Option<Ending>) {
    match ending {
        Some(ending) => ending.await,
        None => std::future::pending().await,
    }
}

/// The next bytes; none once it is closed, and then never again.
async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, into: &mut [u8]) -> usize {
    let Some(open) = pipe else { return std::future::pending().await };
    match open.read(into).await {
        Ok(0) => {}
        Ok(read) => return read,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return 0,
        Err(_) => {}
    }
    *pipe = None;
    0
}

/// "SIGTERM"
#[cfg(unix)]
pub(super) fn signal_name(status: ExitStatus) -> Option<String> {
    const NAMES: &[(i32, &str)] = &[
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    let number = std::os::unix::process::ExitStatusExt::signal(&status)?;
    Some(NAMES.iter().find(|(known, _)| *known == number).map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned()))
}

#[cfg(not(unix))]
pub(super) const fn signal_name(_status: ExitStatus) -> Option<String> {
    None
}
