//! The few decisions that everything else hangs on, each by its name, so that a test can plant the opposite one and see
//! it found. The application always runs with [`Sound`].

use crate::{
    change::Change,
    derive,
    ids::{CredentialId, RuntimeId},
    port::{Capabilities, Identity, Observation},
    state::{Account, Phase, Runtime, State},
};

/// What is decided where being wrong would break a promise. The defaults are the right answers.
pub trait Rules {
    /// Whether the runtime was started under an epoch that is no longer the current one.
    fn is_stale(&self, state: &State, _id: RuntimeId, runtime: &Runtime) -> bool {
        derive::is_stale(state, runtime)
    }

    /// Whether a runtime that nobody should use any more can be stopped.
    fn may_retire(&self, state: &State, id: RuntimeId) -> bool {
        !derive::is_busy(state, id)
    }

    /// Whether the one who answered the handshake is the one whom the runtime's epoch stands for.
    fn introduce(&self, account: &Account, seen: &Observation) -> Introduction {
        match seen {
            Observation::Unknown { .. } => Introduction::Unnamed,
            Observation::NoOne => Introduction::Stranger,
            Observation::Someone(identity) => match &account.identity {
                Some(known) if known.fingerprint != identity.fingerprint => Introduction::Stranger,
                Some(_) | None => Introduction::Named(identity.clone()),
            },
        }
    }

    /// What becomes of a message that was sent and not acknowledged by a process that is proven gone.
    fn fate(&self, capabilities: &Capabilities, has_thread: bool) -> Fate {
        if capabilities.history_probe && capabilities.resume && has_thread { Fate::Probe } else { Fate::Unknown }
    }

    /// Whether an ended credential can be revoked.
    fn may_revoke(&self, state: &State, credential: CredentialId) -> bool {
        !state.runtimes.values().any(|r| r.credential == credential)
    }

    /// Whether a graceful quit is done.
    fn may_exit(&self, state: &State) -> bool {
        state.runtimes.is_empty() && !state.sign_ins.values().any(|s| s.failure.is_none())
    }

    /// Told of every change; for rules with a memory of their own, which sound ones have not.
    fn note(&mut self, _state: &State, _change: &Change) {}
}

/// See [`Rules::introduce`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Introduction {
    /// The right one, or the first one that is heard of.
    Named(Identity),
    /// The agent cannot tell; nothing speaks against it.
    Unnamed,
    /// Somebody else, or no one: counts as an observation, and the runtime never becomes ready.
    Stranger,
    /// As if the start had failed, and no more.
    Failed,
}

/// See [`Rules::fate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The history is asked.
    Probe,
    /// A person is asked.
    Unknown,
    /// It is sent again.
    Resend,
}

/// The right rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sound;

impl Rules for Sound {}

/// Whether the runtime can be given new work by these rules.
pub(crate) fn takes_work<R: Rules>(rules: &R, state: &State, id: RuntimeId, runtime: &Runtime) -> bool {
    runtime.phase == Phase::Ready && runtime.fault.is_none() && state.quit.is_none() && !rules.is_stale(state, id, runtime)
}
