//! A runtime: from the wish for one to the word that it is gone.

use std::sync::Arc;

use tokio::sync::mpsc;
use turnkeep_model::{CredentialId, Input, ProviderId, RuntimeId, port::AgentEvent, state::AccountKind};

use super::{Arrival, Filler, Shared, Wanted, lock, prepare, prepare::Why};
use crate::runtime::{Actor, End, LastLines, Order, Report, Unread, bury_adopted};

/// Which process, and where what it says goes.
#[derive(Debug)]
pub(super) struct Of {
    pub(super) provider: ProviderId,
    pub(super) credential: CredentialId,
    pub(super) kind: AccountKind,
    pub(super) last_lines: LastLines,
    pub(super) unread: Unread,
}

/// Start it and serve it to its end; what to tell the machine of the end.
pub(super) async fn serve(shared: &Arc<Shared>, runtime: RuntimeId, of: Of, mut orders: mpsc::UnboundedReceiver<Order>) -> Input {
    let Of { provider, credential, kind, last_lines, unread } = of;
    let wanted = Wanted { provider, credential, kind, why: Why::Serve, marker: shared.marker(runtime) };
    let mut early = Vec::new();
    let start = tokio::select! {
        start = prepare(shared, wanted) => start,
        () = stopped(&mut orders, &mut early) => return Input::RuntimeGone { runtime, closed: None },
    };
    let mut start = match start {
        Ok(start) => start,
        Err(failure) => return Input::RuntimeStartFailed { runtime, failure },
    };
    start.first = early;
    start.last_lines = last_lines;
    start.unread = unread.clone();
    let filler = Filler { shared: Arc::clone(shared), credential };
    let teller = Arc::clone(shared);
    let tell = move |report| match report {
        Report::Started(process) => teller.tell(Input::RuntimeStarted { runtime, process }),
        Report::Event(event @ AgentEvent::Delta { .. }) => {
            let _ = teller.inbox.send(Arrival::Event { runtime, event });
        }
        Report::Event(AgentEvent::Threads { ask, result }) => {
            lock(&teller.questions).answered(ask, result);
            unread.taken(1);
        }
        Report::Event(event) => {
            if matches!(event, AgentEvent::TurnEnded { .. }) {
                // What its commands left behind and has ended since.
                tokio::task::spawn_blocking(bury_adopted);
            }
            let event = lock(&teller.identities).complete_event(credential, event);
            teller.tell(Input::Agent { runtime, event });
        }
    };
    match Actor::run(&shared.spawner, start, filler, orders, tell).await {
        End::NotStarted(failure) => Input::RuntimeStartFailed { runtime, failure },
        End::Gone { closed } => Input::RuntimeGone { runtime, closed },
    }
}

/// Waits for a stop; commands that come before it are kept.
pub(crate) async fn stopped(orders: &mut mpsc::UnboundedReceiver<Order>, early: &mut Vec<turnkeep_model::port::AgentCommand>) {
    loop {
        match orders.recv().await {
            Some(Order::Command(command)) => early.push(*command),
            Some(Order::Stop { .. }) | None => return,
        }
    }
}
