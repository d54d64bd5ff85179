//! The actor of one child: carries orders to its protocol machine, lines to and fro, and watches its end.
//!
//! Owns everything of the child and shares nothing. Decides only when a process counts as failed, by the figures of its
//! launch plan.

use tokio::{process::Child, sync::mpsc};
use turnkeep_agents::{Frame, Launch, Out, Protocol};
use turnkeep_model::{
    port::{AgentCommand, AgentEvent, Failure, FailureClass, ProbeAnswer, TransportRecord, Unsupported},
    state::ProcessIdentity,
};

use super::{
    child::{Plan, Spawner},
    reap,
    stdio::{Fill, LONGEST_LINE, LastLines, Line, Trouble, read_lines, write_frames},
    unread::Unread,
};
use crate::clock::{self, Alarm};

/// What an actor may be told.
#[derive(Debug)]
pub(crate) enum Order {
    Command(Box<AgentCommand>),
    /// `force`: do not wait for the process to end by itself.
    Stop {
        force: bool,
    },
}

/// What an actor tells, as it happens.
#[derive(Debug)]
pub(crate) enum Report {
    Started(ProcessIdentity),
    Event(AgentEvent),
}

/// How it ended. Nothing of the process tree is left when this is said.
#[derive(Debug)]
pub(crate) enum End {
    /// It could not be started, or never became ready.
    NotStarted(Failure),
    /// `closed`: it went by itself, or had to be stopped because it could not be talked to.
    Gone { closed: Option<TransportRecord> },
}

/// What is needed to start one.
#[derive(Debug)]
pub(crate) struct Start {
    /// For messages to a person.
    pub(crate) name: String,
    pub(crate) launch: Launch,
    pub(crate) protocol: Box<dyn Protocol>,
    /// Value of the environment variable by which its descendants are found.
    pub(crate) marker: String,
    /// Carried out before anything else.
    pub(crate) first: Vec<AgentCommand>,
    /// Where its standard error goes.
    pub(crate) last_lines: LastLines,
    /// What it said and nobody has taken in.
    pub(crate) unread: Unread,
}

/// One child, from its start to its proven end.
pub(crate) struct Actor<T> {
    pub(super) name: String,
    pub(super) launch: Launch,
    pub(super) protocol: Box<dyn Protocol>,
    pub(super) marker: String,
    pub(super) tell: T,
    pub(super) child: Child,
    pub(super) identity: Option<ProcessIdentity>,
    /// `None` once its input is to be closed.
    pub(super) frames: Option<mpsc::Sender<Frame>>,
    pub(super) trouble: mpsc::Receiver<Trouble>,
    pub(super) output: Pipe,
    pub(super) errors: Pipe,
    pub(super) last_lines: LastLines,
    pub(super) unread: Unread,
    pub(super) alarm: Alarm,
    wake_at: Option<u64>,
    ready_by: Option<u64>,
    /// Length of the last line that had no end.
    pub(super) trailing: Option<u64>,
}

/// The lines of one pipe, until it closes.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) lines: mpsc::Receiver<Line>,
    /// Told to let go of a pipe that another process holds open.
    pub(super) give_up: Option<tokio::sync::oneshot::Sender<()>>,
    pub(super) open: bool,
    pub(super) error: Option<String>,
}

/// Why an actor stops serving.
#[derive(Debug)]
pub(super) enum Why {
    Asked {
        force: bool,
    },
    Exited(std::io::Result<std::process::ExitStatus>),
    OutputClosed,
    /// It cannot be talked to.
    Refused(Failure),
}

/// Longest line of standard error that is kept whole.
const LONGEST_ERROR_LINE: usize = 64 << 10;

impl<T: FnMut(Report) + Send> Actor<T> {
    /// Start the process and serve it to its end.
    pub(crate) async fn run(
        spawner: &Spawner,
        start: Start,
        fill: impl Fill,
        mut orders: mpsc::UnboundedReceiver<Order>,
        mut tell: T,
    ) -> End {
        let Start { name, launch, protocol, marker, first, last_lines, unread } = start;
        let mut environment = launch.environment.clone();
        environment.insert(reap::MARKER.to_owned(), marker.clone());
        let plan = Plan {
            program: launch.program.path.clone(),
            args: launch.args.clone(),
            environment,
            directory: launch.directory.clone(),
        };
        let mut child = match spawner.spawn(plan).await {
            Ok(child) => child,
            Err(error) => return End::NotStarted(not_started(&name, &launch, &error)),
        };
        let identity = child.id().and_then(reap::identity);
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return End::NotStarted(start_failed(format!("{name} was started without its pipes."), None));
        };
        if let Some(identity) = &identity {
            tell(Report::Started(identity.clone()));
        }
        let (frames, trouble) = write_frames(stdin, fill);
        let mut actor = Self {
            name,
            ready_by: Some(clock::boot().saturating_add(launch.ready_within)),
            launch,
            protocol,
            marker,
            tell,
            child,
            identity,
            frames: Some(frames),
            trouble,
            output: Pipe::new(stdout, LONGEST_LINE),
            errors: Pipe::new(stderr, LONGEST_ERROR_LINE),
            last_lines,
            unread,
            alarm: Alarm::new(),
            wake_at: None,
            trailing: None,
        };
        for command in first {
            actor.command(command);
        }
        let why = actor.serve(&mut orders).await;
        actor.end(why, &mut orders).await
    }

    async fn serve(&mut self, orders: &mut mpsc::UnboundedReceiver<Order>) -> Why {
        loop {
            if let Some(failure) = self.pump() {
                return Why::Refused(failure);
            }
            self.alarm.set(earlier(self.wake_at, self.ready_by));
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Command(command)) => self.command(*command),
                    Some(Order::Stop { force }) => return Why::Asked { force },
                    None => return Why::Asked { force: false },
                },
                line = next_bearable(&self.unread, &mut self.output) => {
                    self.receive(line);
                    if !self.output.open {
                        return Why::OutputClosed;
                    }
                }
                line = self.errors.next() => self.note(line),
                status = self.child.wait() => return Why::Exited(status),
                Some(trouble) = self.trouble.recv() => {
                    if let Some(failure) = self.judge(trouble) {
                        return Why::Refused(failure);
                    }
                }
                () = self.alarm.rung() => {
                    if let Some(failure) = self.rung() {
                        return Why::Refused(failure);
                    }
                }
            }
        }
    }

    /// Do everything that the protocol machine wants now; a failure if it wants the process gone.
    pub(super) fn pump(&mut self) -> Option<Failure> {
        let mut refused = None;
        while let Some(out) = self.protocol.poll() {
            match out {
                Out::Send(frame) => {
                    let full = self
                        .frames
                        .as_ref()
                        .is_some_and(|frames| matches!(frames.try_send(frame), Err(mpsc::error::TrySendError::Full(_))));
                    if full && refused.is_none() {
                        refused = Some(protocol_failure(format!("{} does not read what it is sent.", self.name)));
                    }
                }
                Out::Event(event) => {
                    if matches!(event, AgentEvent::Ready { .. }) {
                        self.ready_by = None;
                    }
                    if let AgentEvent::Fault { failure, .. } = &event {
                        tracing::warn!(agent = self.name, "{}", failure.message);
                    }
                    self.unread.told();
                    (self.tell)(Report::Event(event));
                }
                Out::WakeAt(at) => self.wake_at = Some(at),
                Out::Stop { why } => refused = Some(protocol_failure(why)),
            }
        }
        refused
    }

    fn command(&mut self, command: AgentCommand) {
        if let Err(unsupported) = self.protocol.command(clock::boot(), command.clone())
            && let Some(event) = refusal(command, &unsupported)
        {
            self.unread.told();
            (self.tell)(Report::Event(event));
        }
    }

    pub(super) fn receive(&mut self, line: Line) {
        match line {
            Line::Whole { bytes, ended, _room } => {
                if !ended {
                    self.trailing = Some(bytes.len() as u64);
                }
                self.unread.read(bytes.len());
                self.protocol.receive(clock::boot(), &bytes);
            }
            Line::Oversized { bytes } => {
                tracing::warn!(bytes, agent = self.name, "a line was too long to be kept");
                self.protocol.receive_oversized(clock::boot(), bytes);
            }
            Line::Closed { error } => self.output.closed(error),
        }
    }

    pub(super) fn note(&mut self, line: Line) {
        match line {
            Line::Whole { bytes, .. } => self.last_lines.push(&bytes),
            Line::Oversized { bytes } => self.last_lines.push(format!("(a line of {bytes} bytes)").as_bytes()),
            Line::Closed { error } => self.errors.closed(error),
        }
    }

    fn rung(&mut self) -> Option<Failure> {
        let now = clock::boot();
        if self.ready_by.is_some_and(|by| by <= now) {
            let seconds = self.launch.ready_within.div_ceil(1000);
            return Some(Failure {
                class: FailureClass::Timeout,
                message: format!("{} was started but did not become ready within {seconds} s. Try again.", self.name),
                detail: None,
            });
        }
        if self.wake_at.is_some_and(|at| at <= now) {
            self.wake_at = None;
            self.protocol.wake(now);
        }
        None
    }

    /// A closed input is no end by itself: the process may still say why it goes.
    fn judge(&mut self, trouble: Trouble) -> Option<Failure> {
        self.frames = None;
        match trouble {
            Trouble::Secret(failure) => Some(failure),
            Trouble::Pipe(error) => {
                tracing::debug!(%error, agent = self.name, "its input is closed");
                self.output.error.get_or_insert_with(|| format!("its input was closed: {error}"));
                None
            }
        }
    }

    pub(super) const fn is_ready(&self) -> bool {
        self.ready_by.is_none()
    }
}

impl Pipe {
    fn new(pipe: impl tokio::io::AsyncRead + Send + Sync + Unpin + 'static, longest: usize) -> Self {
        let (give_up, told) = tokio::sync::oneshot::channel();
        Self { lines: read_lines(pipe, longest, told), give_up: Some(give_up), open: true, error: None }
    }

    /// The next line; for ever pending once closed.
    pub(super) async fn next(&mut self) -> Line {
        if !self.open {
            return std::future::pending().await;
        }
        self.lines.recv().await.unwrap_or(Line::Closed { error: None })
    }

    pub(super) fn closed(&mut self, error: Option<std::io::Error>) {
        self.open = false;
        if let Some(error) = error {
            self.error = Some(error.to_string());
        }
    }
}

/// The next line of its output, once there is room for what it says.
pub(super) async fn next_bearable(unread: &Unread, output: &mut Pipe) -> Line {
    unread.bearable().await;
    output.next().await
}

fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

pub(super) fn start_failed(message: String, detail: Option<String>) -> Failure {
    Failure { class: FailureClass::StartFailed, message, detail }
}

fn protocol_failure(message: String) -> Failure {
    Failure { class: FailureClass::Protocol, message, detail: None }
}

fn not_started(name: &str, launch: &Launch, error: &std::io::Error) -> Failure {
    let program = launch.program.path.display();
    let folder = launch.directory.as_ref().filter(|folder| !folder.is_dir());
    let message = match (error.kind(), folder) {
        (_, Some(folder)) => format!("{name} could not be started: the folder {} is not there.", folder.display()),
        (std::io::ErrorKind::NotFound, None) => {
            format!("{name} could not be started: {program}, or what it needs to run, is not there any more. Install it again.")
        }
        (std::io::ErrorKind::PermissionDenied, None) => {
            format!("{name} could not be started: {program} may not be executed. Check its permissions.")
        }
        _ => format!("{name} could not be started from {program}."),
    };
    start_failed(message, Some(error.to_string()))
}

/// What a command that is not supported comes to.
fn refusal(command: AgentCommand, unsupported: &Unsupported) -> Option<AgentEvent> {
    let failure = Failure { class: FailureClass::Unsupported, message: format!("Not done: {unsupported}."), detail: None };
    Some(match command {
        AgentCommand::OpenSession { session, .. } => AgentEvent::SessionOpenFailed { session, failure },
        AgentCommand::ReleaseSession { session } => AgentEvent::SessionReleased { session },
        AgentCommand::StartTurn { session, turn, .. } => AgentEvent::TurnRejected { session, turn, failure },
        AgentCommand::Steer { session, turn, message, .. } => AgentEvent::SteerRefused { session, turn, message, failure },
        AgentCommand::Probe { session, turn, .. } => AgentEvent::Probed { session, turn, found: ProbeAnswer::CannotTell },
        AgentCommand::SignIn { .. } => AgentEvent::SignInEnded { result: Err(failure) },
        AgentCommand::SignOut => AgentEvent::SignedOut { result: Err(failure) },
        AgentCommand::Interrupt { session, .. }
        | AgentCommand::Answer { session, .. }
        | AgentCommand::SetGoal { session, .. } => AgentEvent::Fault { session: Some(session), failure },
        AgentCommand::ListThreads { ask, .. } => AgentEvent::Threads { ask, result: Err(failure) },
        AgentCommand::ReadHistory { session, .. } => AgentEvent::History { session, result: Err(failure) },
        AgentCommand::ReadIdentity | AgentCommand::ListModels | AgentCommand::ReadRateLimits => {
            AgentEvent::Fault { session: None, failure }
        }
        AgentCommand::CancelSignIn => return None,
    })
}
