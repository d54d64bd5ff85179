//! The actor of one connection to a server that somebody else started: connects, lets it talk, and lets go.
//!
//! There is no process here and no way to one: whatever happens, the server is never signalled. Its end, here, is that the
//! connection is closed; what the server does then is its own business.

use std::time::Duration;

use turnkeep_agents::{Protocol, Server};
use turnkeep_model::port::{AgentCommand, Failure, FailureClass, TransportRecord};

use super::{
    actor::{End, Order, Report},
    errands::Errands,
    socket::{self, Connection},
    talk::{Orders, Over, Talk, next_bearable},
    unread::Unread,
};
use crate::clock;

/// How long the server's goodbye is waited for.
const GOODBYE: Duration = Duration::from_secs(1);
/// The same where somebody is in a hurry.
const HURRY: Duration = Duration::from_millis(100);

/// What is needed to connect.
#[derive(Debug)]
pub(crate) struct Attach {
    /// Of the agent, for messages to a person.
    pub(crate) name: String,
    pub(crate) server: Server,
    pub(crate) protocol: Box<dyn Protocol>,
    /// Milliseconds from the connection to [`turnkeep_model::port::AgentEvent::Ready`].
    pub(crate) ready_within: u64,
}

/// Connect, and serve the connection to its end.
pub(crate) async fn attach(start: Attach, unread: Unread, mut orders: Orders, tell: impl FnMut(Report) + Send) -> End {
    let mut early = Vec::new();
    let connection = tokio::select! {
        connection = socket::connect(&start.name, &start.server) => connection,
        () = stopped(&mut orders, &mut early) => return End::Gone { closed: None },
    };
    let Connection { channels, tasks } = match connection {
        Ok(connection) => connection,
        Err(failure) => return End::NotStarted(failure),
    };
    let mut link = Link {
        address: start.server.address().0,
        ready_within: start.ready_within,
        talk: Talk::new(start.name, start.protocol, start.ready_within, channels, Errands::new(None), unread, tell),
    };
    for command in early {
        link.talk.command(command);
    }
    let why = link.serve(&mut orders).await;
    let end = link.end(why, &mut orders).await;
    // With the tasks goes what they hold, which is the connection.
    for task in tasks {
        task.abort();
        let _ = task.await;
    }
    end
}

struct Link<T> {
    address: String,
    ready_within: u64,
    talk: Talk<T>,
}

impl<T: FnMut(Report) + Send> Link<T> {
    async fn serve(&mut self, orders: &mut Orders) -> Over {
        loop {
            match self.talk.step(orders).await {
                None => {}
                Some(Over::Refused(failure)) => return Over::Refused(self.in_own_words(failure)),
                Some(over) => return over,
            }
        }
    }

    async fn end(mut self, why: Over, orders: &mut Orders) -> End {
        let was_ready = self.talk.is_ready();
        let (refused, force) = match why {
            Over::Asked { force } => {
                self.say_goodbye(if force { HURRY } else { GOODBYE }, orders).await;
                return End::Gone { closed: None };
            }
            Over::Closed => (None, true),
            Over::Refused(failure) => (Some(failure), true),
        };
        let how = match &refused {
            Some(failure) => failure.message.clone(),
            None => self.talk.channels.output.error.clone().unwrap_or_else(|| "eof".to_owned()),
        };
        let record = TransportRecord {
            status: "not ours".to_owned(),
            stream: "socket".to_owned(),
            how: how.clone(),
            ..TransportRecord::default()
        };
        self.talk.protocol.closed(clock::boot(), record.clone());
        let _ = self.talk.pump();
        if force {
            self.say_goodbye(HURRY, orders).await;
        }
        if was_ready {
            return End::Gone { closed: Some(record) };
        }
        End::NotStarted(refused.unwrap_or_else(|| Failure {
            class: FailureClass::StartFailed,
            message: format!(
                "The server at {} closed the connection before it was ready ({how}). See that it is a {} server, and that it \
                 still runs.",
                self.address, self.talk.name
            ),
            detail: None,
        }))
    }

    /// Close the connection in the way that its protocol wants, for as long as there is patience for it.
    async fn say_goodbye(&mut self, patience: Duration, orders: &mut Orders) {
        self.talk.channels.frames = None;
        let until = tokio::time::Instant::now() + patience;
        let mut listening = true;
        while self.talk.channels.output.open {
            tokio::select! {
                line = next_bearable(&self.talk.unread, &mut self.talk.channels.output) => {
                    self.talk.receive(line);
                    let _ = self.talk.pump();
                }
                order = orders.recv(), if listening => match order {
                    Some(Order::Stop { force: true }) => return,
                    Some(Order::Stop { force: false } | Order::Command(_)) => {}
                    None => listening = false,
                },
                () = tokio::time::sleep_until(until) => return,
            }
        }
    }

    /// A server that does not answer was not started here.
    fn in_own_words(&self, failure: Failure) -> Failure {
        if failure.class != FailureClass::Timeout || self.talk.is_ready() {
            return failure;
        }
        let message = format!(
            "The server at {} takes the connection and does not answer within {} s. See that it is a {} server and not stuck, \
             then try again.",
            self.address,
            self.ready_within.div_ceil(1000),
            self.talk.name
        );
        Failure { message, ..failure }
    }
}

/// Waits for a stop; commands that come before it are kept.
async fn stopped(orders: &mut Orders, early: &mut Vec<AgentCommand>) {
    loop {
        match orders.recv().await {
            Some(Order::Command(command)) => early.push(*command),
            Some(Order::Stop { .. }) | None => return,
        }
    }
}
