//! The actor of one child: starts it, lets it talk, and watches its end.
//!
//! Owns everything of the child and shares nothing. Decides only when a process counts as failed, by the figures of its
//! launch plan.

use tokio::sync::mpsc;
use turnkeep_agents::{Launch, Protocol};
use turnkeep_model::{
    port::{AgentCommand, AgentEvent, Failure, FailureClass, TransportRecord},
    state::ProcessIdentity,
};

use super::{
    child::{Group, Plan, Spawner},
    errands::{Errands, Kit},
    process::{Pipes, Process},
    reap,
    stdio::{Fill, LONGEST_LINE, LastLines, Line, read_lines, write_frames},
    talk::{Channels, Over, Pipe, Talk},
    unread::Unread,
};

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
    pub(super) talk: Talk<T>,
    pub(super) launch: Launch,
    pub(super) marker: String,
    pub(super) process: Process,
    pub(super) errors: Pipe,
    pub(super) last_lines: LastLines,
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
            environment: environment.clone(),
            directory: launch.directory.clone(),
        };
        // As late as it can be, and only to this process.
        let mut secrets = Vec::new();
        for (name, slot) in &launch.secrets {
            match fill.value(*slot).await {
                Ok(value) => secrets.push((name.clone(), value)),
                Err(failure) => return End::NotStarted(failure),
            }
        }
        let mut process = match spawner.spawn_guarded(plan, secrets, &marker, Group::OfItsOwn).await {
            Ok(process) => process,
            Err(error) => return End::NotStarted(not_started(&name, &launch, &error)),
        };
        let Some(Pipes { stdin, stdout, stderr }) = process.pipes.take() else {
            return End::NotStarted(start_failed(format!("{name} was started without its pipes."), None));
        };
        if let Some(identity) = &process.identity {
            tell(Report::Started(identity.clone()));
        }
        let (frames, trouble) = write_frames(stdin, fill);
        let output = pipe(stdout, LONGEST_LINE);
        let errors = pipe(stderr, LONGEST_ERROR_LINE);
        let errands = Errands::new(Some(Kit { spawner: spawner.clone(), environment, marker: marker.clone() }));
        let channels = Channels { frames: Some(frames), trouble, output };
        let mut actor = Self {
            talk: Talk::new(name, protocol, launch.ready_within, channels, errands, unread, tell),
            launch,
            marker,
            process,
            errors,
            last_lines,
        };
        for command in first {
            actor.talk.command(command);
        }
        let why = actor.serve(&mut orders).await;
        actor.end(why, &mut orders).await
    }

    async fn serve(&mut self, orders: &mut mpsc::UnboundedReceiver<Order>) -> Why {
        loop {
            tokio::select! {
                over = self.talk.step(orders) => match over {
                    None => {}
                    Some(Over::Asked { force }) => return Why::Asked { force },
                    Some(Over::Closed) => return Why::OutputClosed,
                    Some(Over::Refused(failure)) => return Why::Refused(failure),
                },
                line = self.errors.next() => self.note(line),
                status = self.process.wait() => return Why::Exited(status),
            }
        }
    }

    pub(super) fn note(&mut self, line: Line) {
        match line {
            Line::Whole { bytes, .. } => self.last_lines.push(&bytes),
            Line::Oversized { bytes } => self.last_lines.push(format!("(a line of {bytes} bytes)").as_bytes()),
            Line::Closed { error } => self.errors.closed(error),
        }
    }
}

/// The lines of one pipe of a child.
fn pipe(of: impl tokio::io::AsyncRead + Send + Sync + Unpin + 'static, longest: usize) -> Pipe {
    let (give_up, told) = tokio::sync::oneshot::channel();
    Pipe::new(read_lines(of, longest, told), give_up)
}

pub(super) fn start_failed(message: String, detail: Option<String>) -> Failure {
    Failure { class: FailureClass::StartFailed, message, detail }
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
