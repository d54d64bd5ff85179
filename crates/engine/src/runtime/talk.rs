//! The conversation with one agent, whatever carries it: orders to its protocol machine, lines to and fro, and the times by
//! which something must have come.
//!
//! Knows nothing of processes and sockets, and ends neither: it says that the talk is over, and why.

use tokio::sync::mpsc;
use turnkeep_agents::{
    Out, Protocol,
    errand::{NotDone, NotDoneWhy, Outcome},
};
use turnkeep_model::port::{AgentCommand, AgentEvent, Failure, FailureClass, ProbeAnswer, Unsupported};

use super::{
    actor::{Order, Report},
    errands::Errands,
    stdio::{Frames, Line, Sent, Trouble},
    unread::Unread,
};
use crate::clock::{self, Alarm};

/// What is needed to talk.
#[derive(Debug)]
pub(super) struct Channels {
    /// `None` once nothing more is to be sent.
    pub(super) frames: Option<Frames>,
    pub(super) trouble: mpsc::Receiver<Trouble>,
    pub(super) output: Pipe,
}

/// See the module.
pub(super) struct Talk<T> {
    /// Of the agent, for messages to a person.
    pub(super) name: String,
    pub(super) protocol: Box<dyn Protocol>,
    pub(super) tell: T,
    pub(super) channels: Channels,
    pub(super) errands: Errands,
    pub(super) alarm: Alarm,
    /// Length of the last line that had no end.
    pub(super) trailing: Option<u64>,
    /// What it said and nobody has taken in.
    pub(super) unread: Unread,
    /// Milliseconds.
    ready_within: u64,
    wake_at: Option<u64>,
    ready_by: Option<u64>,
}

pub(super) type Orders = mpsc::UnboundedReceiver<Order>;

/// Why a talk is over.
#[derive(Debug)]
pub(super) enum Over {
    Asked {
        force: bool,
    },
    /// The agent says nothing more.
    Closed,
    Refused(Failure),
}

/// The lines of one stream, until it closes.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) lines: mpsc::Receiver<Line>,
    /// Told to let go of a stream that another process holds open.
    pub(super) give_up: Option<tokio::sync::oneshot::Sender<()>>,
    pub(super) open: bool,
    pub(super) error: Option<String>,
}

impl<T: FnMut(Report) + Send> Talk<T> {
    pub(super) fn new(
        name: String,
        protocol: Box<dyn Protocol>,
        ready_within: u64,
        channels: Channels,
        errands: Errands,
        unread: Unread,
        tell: T,
    ) -> Self {
        Self {
            name,
            protocol,
            tell,
            channels,
            errands,
            unread,
            alarm: Alarm::new(),
            trailing: None,
            ready_within,
            wake_at: None,
            ready_by: Some(clock::boot().saturating_add(ready_within)),
        }
    }

    /// One order, line, trouble or alarm, and what follows from the one before; why it is over once it is. Nothing is lost
    /// when this is given up.
    pub(super) async fn step(&mut self, orders: &mut Orders) -> Option<Over> {
        if let Some(failure) = self.pump() {
            return Some(Over::Refused(failure));
        }
        let refused = tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Command(command)) => {
                    self.command(*command);
                    None
                }
                Some(Order::Stop { force }) => return Some(Over::Asked { force }),
                None => return Some(Over::Asked { force: false }),
            },
            line = next_bearable(&self.unread, &mut self.channels.output) => {
                self.receive(line);
                if !self.channels.output.open {
                    return Some(Over::Closed);
                }
                None
            }
            Some(trouble) = self.channels.trouble.recv() => self.judge(trouble),
            (key, outcome) = self.errands.next() => {
                self.served(key, outcome);
                None
            }
            () = self.alarm.rung() => self.rung(),
        };
        refused.map(Over::Refused)
    }

    /// Do everything that the protocol machine wants now, and set the alarm; a failure if it wants the talk to end.
    pub(super) fn pump(&mut self) -> Option<Failure> {
        let mut refused = None;
        while let Some(out) = self.protocol.poll() {
            match out {
                Out::Send(frame) => {
                    let full = self.channels.frames.as_ref().is_some_and(|frames| frames.send(frame) == Sent::TooMuch);
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
                Out::Serve(errand) => self.errands.begin(errand),
                Out::WakeAt(at) => self.wake_at = Some(at),
                Out::Stop { why } => refused = Some(protocol_failure(why)),
            }
        }
        self.alarm.set(earlier(self.wake_at, self.ready_by));
        refused
    }

    pub(super) fn command(&mut self, command: AgentCommand) {
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
            Line::Closed { error } => self.channels.output.closed(error),
        }
    }

    /// Something that the agent wanted was done, or was not.
    pub(super) fn served(&mut self, key: u64, outcome: Outcome) {
        if let Err(NotDone { why: NotDoneWhy::Refused, message }) = &outcome {
            tracing::warn!(agent = self.name, "the agent asked for something that was refused: {message}");
        }
        self.protocol.served(clock::boot(), key, outcome);
    }

    /// The alarm rang; a failure if the time to become ready is over.
    pub(super) fn rung(&mut self) -> Option<Failure> {
        let now = clock::boot();
        if self.ready_by.is_some_and(|by| by <= now) {
            let seconds = self.ready_within.div_ceil(1000);
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

    /// A closed input is no end by itself: the agent may still say why it goes.
    pub(super) fn judge(&mut self, trouble: Trouble) -> Option<Failure> {
        self.channels.frames = None;
        match trouble {
            Trouble::Secret(failure) => Some(failure),
            Trouble::Pipe(error) => {
                tracing::debug!(%error, agent = self.name, "its input is closed");
                self.channels.output.error.get_or_insert_with(|| format!("its input was closed: {error}"));
                None
            }
        }
    }

    pub(super) const fn is_ready(&self) -> bool {
        self.ready_by.is_none()
    }
}

impl Pipe {
    pub(super) fn new(lines: mpsc::Receiver<Line>, give_up: tokio::sync::oneshot::Sender<()>) -> Self {
        Self { lines, give_up: Some(give_up), open: true, error: None }
    }

    /// The next line; for ever pending once closed.
    pub(super) async fn next(&mut self) -> Line {
        if !self.open {
            return std::future::pending().await;
        }
        self.lines.recv().await.unwrap_or(Line::Closed { error: None })
    }

    pub(super) fn closed(&mut self, error: Option<String>) {
        self.open = false;
        if error.is_some() {
            self.error = error;
        }
    }
}

/// The next line of an agent's output, once there is room for what it says.
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

pub(super) fn protocol_failure(message: String) -> Failure {
    Failure { class: FailureClass::Protocol, message, detail: None }
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
