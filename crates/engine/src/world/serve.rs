//! A runtime: from the wish for one to the word that it is gone.

use std::sync::Arc;

use tokio::sync::mpsc;
use turnkeep_model::{CredentialId, Input, ProviderId, RuntimeId, port::AgentEvent, state::AccountKind};

use super::{
    Arrival, Filler, Shared, Wanted, lock, prepare,
    prepare::{Why, prepare_attach},
};
use crate::runtime::{Actor, End, LastLines, Order, Report, Unread, attach as attach_to};

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
    let tell = teller(shared, runtime, credential, unread.clone());
    match kind.server().map(|address| prepare_attach(shared, &provider, address)) {
        Some(Ok(attach)) => return ended(runtime, attach_to(attach, unread, orders, tell).await),
        Some(Err(failure)) => return Input::RuntimeStartFailed { runtime, failure },
        None => {}
    }
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
    start.unread = unread;
    let filler = Filler { shared: Arc::clone(shared), credential };
    ended(runtime, Actor::run(&shared.spawner, start, filler, orders, tell).await)
}

/// Carries what an agent says to the machine, and what streams to the feed.
fn teller(
    shared: &Arc<Shared>,
    runtime: RuntimeId,
    credential: CredentialId,
    unread: Unread,
) -> impl FnMut(Report) + Send + 'static {
    let teller = Arc::clone(shared);
    move |report| match report {
        Report::Started(process) => teller.tell(Input::RuntimeStarted { runtime, process }),
        Report::Event(event @ AgentEvent::Delta { .. }) => {
            let _ = teller.inbox.send(Arrival::Event { runtime, event });
        }
        Report::Event(AgentEvent::Threads { ask, result }) => {
            lock(&teller.questions).answered(ask, result);
            unread.taken(1);
        }
        Report::Event(event) => {
            let event = lock(&teller.identities).complete_event(credential, event);
            teller.tell(Input::Agent { runtime, event });
        }
    }
}

fn ended(runtime: RuntimeId, end: End) -> Input {
    match end {
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
