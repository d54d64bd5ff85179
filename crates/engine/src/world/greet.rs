//! Seeing that a server is there, and who it is, before it becomes an account: connect, be introduced, let go.

use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use turnkeep_model::{
    ProviderId, ServerAddress,
    port::{AgentEvent, Failure, Observation},
};

use super::{Shared, lock, prepare::prepare_attach, prepare::start_failed};
use crate::runtime::{End, Order, Report, Unread, attach};

/// How a server introduced itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    pub version: String,
    pub identity: Observation,
}

pub(super) async fn greet(shared: &Shared, provider: &ProviderId, address: &ServerAddress) -> Result<Greeting, Failure> {
    let start = prepare_attach(shared, provider, address)?;
    let (stop, orders) = mpsc::unbounded_channel();
    let greeting = Arc::new(Mutex::new(None));
    let heard = Arc::clone(&greeting);
    let tell = move |report| {
        if let Report::Event(AgentEvent::Ready { version, identity }) = report {
            *lock(&heard) = Some(Greeting { version, identity });
            let _ = stop.send(Order::Stop { force: false });
        }
    };
    let end = attach(start, Unread::default(), orders, tell).await;
    let greeting = lock(&greeting).take();
    match (greeting, end) {
        (Some(greeting), _) => Ok(greeting),
        (None, End::NotStarted(failure)) => Err(failure),
        (None, End::Gone { .. }) => Err(start_failed(format!("The server at {address} let go before it was ready. Try again."))),
    }
}
