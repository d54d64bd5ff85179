//! The hostile environment: what exists, what is on its way, and everything that may happen next.
//!
//! Effects are delayed and reordered; whatever is on its way is lost when the application is killed, while processes
//! live on. Agents die at any time; accounts change behind our back and the news of it may get lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use turnkeep_model::{
    AccountId, ApprovalId, AuthEpoch, CredentialId, Effect, Input, MessageId, RequestKey, RuntimeId, SessionId, TurnId,
    port::{AgentCommand, AgentEvent, TurnOutcome},
};

/// An identity; its fingerprint is its name.
pub(crate) type Who = &'static str;

/// Outside of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// Who the person's own provider home says is signed in.
    pub(crate) home: Option<Who>,
    /// The home changed, and the watcher's word of it is on its way.
    pub(crate) news: bool,
    /// Credentials of ours that exist, in the keychain or in private homes.
    pub(crate) vault: BTreeMap<CredentialId, Who>,
    pub(crate) processes: BTreeMap<RuntimeId, Process>,
    /// Asked for and not yet carried out; those for a process are in its own pipe.
    pub(crate) effects: BTreeSet<Effect>,
    /// Results on their way that are not of a process.
    pub(crate) inputs: BTreeSet<Input>,
    /// What the provider's history says of each message that an agent received.
    pub(crate) history: BTreeMap<MessageId, TurnOutcome>,
    pub(crate) exited: bool,
    /// How often each of the configuration's hazards may still happen.
    pub(crate) left: [u8; 8],
    /// Shared until it changes.
    pub(crate) ghost: Rc<Ghost>,
}

/// One agent process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) credential: CredentialId,
    /// Whom it signed in as when it started; it does not look again.
    pub(crate) who: Option<Who>,
    pub(crate) alive: bool,
    /// Its application is gone: nobody reads what it says.
    pub(crate) orphan: bool,
    /// Written to it, in order.
    pub(crate) stdin: Vec<AgentCommand>,
    /// Said by it, in order, and its end.
    pub(crate) stdout: Vec<Said>,
    pub(crate) seats: BTreeMap<SessionId, Seat>,
}

/// What comes from a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Said {
    Event(AgentEvent),
    /// Its end; `true`: by itself.
    Gone(bool),
    NeverStarted,
}

/// A session that a process has open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Seat {
    pub(crate) turn: Option<Running>,
    pub(crate) goal: bool,
}

/// A turn, as the agent sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Running {
    pub(crate) name: String,
    /// Begun by a message; else by the agent itself.
    pub(crate) turn: Option<TurnId>,
    pub(crate) messages: Vec<MessageId>,
    pub(crate) asks: Option<RequestKey>,
}

/// What only the checks remember.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ghost {
    pub(crate) accepted: BTreeSet<MessageId>,
    pub(crate) done: BTreeSet<MessageId>,
    pub(crate) delivered: BTreeSet<MessageId>,
    pub(crate) resent: BTreeSet<MessageId>,
    /// Open turns, as they were dispatched.
    pub(crate) open: BTreeMap<TurnId, Meant>,
    pub(crate) notified: BTreeSet<TurnId>,
    /// Accounts on which a turn was completed.
    pub(crate) completed_by: BTreeSet<AccountId>,
    /// How turns ended so far.
    pub(crate) outcomes: BTreeSet<&'static str>,
    pub(crate) answered: BTreeSet<(RuntimeId, RequestKey)>,
    pub(crate) begun: u8,
    pub(crate) was_quiet: bool,
    pub(crate) asked: u8,
    pub(crate) requests: BTreeMap<AuthEpoch, u8>,
}

/// Whom a turn was dispatched for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Meant {
    pub(crate) account: AccountId,
    pub(crate) credential: Option<CredentialId>,
    pub(crate) who: Option<String>,
    pub(crate) message: Option<MessageId>,
}

/// Something that may happen only so often.
#[expect(clippy::large_enum_variant, reason = "there are a few of them, and they are not moved")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hazard {
    /// A person or a program asks.
    Person(Input),
    /// Any approval is answered, once more than needed.
    Answer,
    /// The application is killed and started again.
    Kill,
    /// An agent's process ends by itself, and what that means is told.
    Die,
    /// The same, and only its end is told.
    Vanish,
    /// Somebody else signs in in the person's own home, or out of it.
    Switch(Option<Who>),
    /// Another program deletes a keychain item.
    DeleteItem(CredentialId),
    /// A running turn asks for an approval.
    Ask,
    /// A running turn is refused, because its account is not accepted any more.
    Refuse,
    /// A goal begins a turn.
    GoalTurn,
    /// A thread is found busy.
    Busy,
    /// A message is refused for a reason that has nothing to do with the account.
    Reject,
    /// A command is carried out, and its answer never comes.
    NoAnswer,
}

/// One thing that happens. Numbers are places in the world's ordered sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Perform(usize),
    Hear(usize),
    News,
    Read(RuntimeId),
    Work(RuntimeId),
    Finish(RuntimeId, SessionId),
    /// A person answers what is asked, which a person can always do.
    Answer(ApprovalId),
    Time,
    Hazard(usize, RuntimeId, SessionId),
    /// Killed, and nothing of what was written to agents arrives.
    KillEarly(usize),
    Restart,
}

/// The first word.
pub(crate) fn short(of: &impl std::fmt::Debug) -> String {
    let text = format!("{of:?}");
    text.split(" { ").next().unwrap_or(&text).to_owned()
}
