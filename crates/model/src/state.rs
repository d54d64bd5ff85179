//! What is true. Facts are stored; status is computed from them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    ids::{
        AccountId, ApprovalId, AuthEpoch, CredentialId, MessageId, ProviderId, ProviderTurn, RequestKey, RuntimeId, Seq,
        ServerAddress, SessionId, SignInId, ThreadRef, TurnId,
    },
    port::{
        Ask, Capabilities, Choice, Failure, GoalSpec, Identity, Model, OfferedCommand, PlanStep, RateLimit, SessionSettings,
        SignInMethod, SignInOffer, SignInStep, TransportRecord, TurnOutcome, Usage,
    },
};

/// A moment, told twice: for people, and for deadlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Now {
    /// Unix time in milliseconds; may jump.
    pub wall: i64,
    /// Milliseconds since boot, sleep included; never goes back. Means nothing after a reboot.
    pub boot: u64,
}

/// Everything that the machine knows. Saved whole by the store, entity by entity.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct State {
    pub seq: Seq,
    pub next: Counters,
    pub providers: BTreeMap<ProviderId, Provider>,
    pub accounts: BTreeMap<AccountId, Account>,
    /// Credentials that are in use, or ended and not yet revoked.
    pub credentials: BTreeMap<CredentialId, Credential>,
    pub sign_ins: BTreeMap<SignInId, SignIn>,
    pub runtimes: BTreeMap<RuntimeId, Runtime>,
    pub sessions: BTreeMap<SessionId, Session>,
    /// Turns that have not ended; what ended is in its session's `last_turn` and in the store.
    pub turns: BTreeMap<TurnId, Turn>,
    /// Approvals of turns that have not ended.
    pub approvals: BTreeMap<ApprovalId, Approval>,
    /// Notifications that are raised or shown and not yet dismissed, by their unique key.
    pub notifications: BTreeMap<String, Notification>,
    /// Message ids taken in this run, so that a repeated one is ignored. Those of earlier runs are the store's to know:
    /// whoever hands a message in asks it first.
    pub seen_messages: BTreeSet<MessageId>,
    pub keychain: Keychain,
    pub settings: AppSettings,
    pub quit: Option<Quit>,
}

/// The next free number of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Counters {
    pub account: u64,
    pub credential: u64,
    pub sign_in: u64,
    pub runtime: u64,
    pub session: u64,
    pub turn: u64,
    pub approval: u64,
}

// ---- providers and accounts ----------------------------------------------------------------

/// A kind of agent on this computer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Provider {
    pub epoch: AuthEpoch,
    /// The account that new turns go to.
    pub current: Option<AccountId>,
    pub capabilities: Capabilities,
    pub installed: Installed,
    pub models: Vec<Model>,
    /// Ways to sign in that its agent told of.
    #[serde(default)]
    pub offers: Vec<SignInOffer>,
    /// What it can do is its agent's own word, and no more what is known of all of its kind.
    #[serde(default)]
    pub introduced: bool,
}

/// Whether the provider's program was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Installed {
    Unknown,
    /// Absolute path, and the version if it said one.
    Found {
        path: String,
        version: Option<String>,
    },
    /// The places that were searched.
    Missing {
        searched: Vec<String>,
    },
}

/// An identity at a provider. Never holds a credential.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Account {
    pub provider: ProviderId,
    /// The person's own name for it; empty until one is given.
    pub label: String,
    pub kind: AccountKind,
    /// `None` while signed out.
    pub credential: Option<CredentialId>,
    pub identity: Option<Identity>,
    pub problem: Option<AccountProblem>,
    /// A person asked to try although the credential was rejected: ends with the next answer, good or bad.
    pub trial: bool,
    pub limits: Vec<RateLimit>,
    /// Unix milliseconds of the last call that really succeeded.
    pub verified_at: Option<i64>,
    /// Failures of the processes that serve all sessions of this account.
    pub restarts: Restarts,
}

/// Who keeps the account's credential.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AccountKind {
    /// A key in our vault.
    ApiKey,
    /// A sign-in that the provider's program made itself, in a private home that we made for it.
    PrivateHome,
    /// The provider's own sign-in as it is on this computer, in the person's own home.
    System,
    /// A server that somebody else started: it keeps its own sign-in, we only connect to it. What stands for the
    /// credential is the connection: nothing of it is stored, revoked, or signalled.
    Server { address: ServerAddress },
}

impl AccountKind {
    /// Whether we or the provider's program keep the sign-in for this application alone, so that it must be revoked once
    /// it is given up, and its home removed. A server's sign-in is its own business.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        match self {
            Self::ApiKey | Self::PrivateHome => true,
            Self::System | Self::Server { .. } => false,
        }
    }

    /// Where the server listens, for accounts of servers that somebody else started.
    #[must_use]
    pub fn server(&self) -> Option<&ServerAddress> {
        match self {
            Self::Server { address } => Some(address),
            Self::ApiKey | Self::PrivateHome | Self::System => None,
        }
    }
}

/// Why an account cannot be used right now, or was lost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AccountProblem {
    /// The provider does not accept the credential.
    Rejected(Failure),
    /// The credential is gone from where it lay (keychain item, file) though nobody signed out here.
    ItemMissing,
    /// The person's own sign-in on this computer was ended by another program.
    SignedOutElsewhere,
    KeychainLocked,
    KeychainAbsent,
    Other(Failure),
}

/// One sign-in of an account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Credential {
    pub provider: ProviderId,
    pub account: AccountId,
    pub kind: AccountKind,
    /// The account was signed out of it: to be revoked once no runtime uses it, across restarts too.
    pub owed_revocation: bool,
    /// Boot milliseconds before which a failed revocation is not tried again.
    pub not_before: u64,
}

/// An attempt to sign in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SignIn {
    pub provider: ProviderId,
    pub account: AccountId,
    pub credential: CredentialId,
    pub method: SignInMethod,
    pub step: Option<SignInStep>,
    /// Set when it ended badly; the entry then stays until the person dismisses it.
    pub failure: Option<Failure>,
    /// Being given up; the entry goes when its end is reported.
    pub cancelling: bool,
    /// Boot milliseconds after which it is given up.
    pub deadline: u64,
}

/// What is known about the OS keychain.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Keychain {
    #[default]
    Unknown,
    Unlocked,
    Locked,
    /// Why there is none.
    Absent {
        why: String,
    },
}

// ---- runtimes ------------------------------------------------------------------------------

/// One provider process, from the decision to start it until it is proven gone; or one connection to a server that
/// somebody else started, until it is closed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Runtime {
    pub provider: ProviderId,
    pub account: AccountId,
    pub credential: CredentialId,
    /// The only session that it serves; `None`: all sessions of its credential.
    pub session: Option<SessionId>,
    /// The epoch under which it was started.
    pub epoch: AuthEpoch,
    pub phase: Phase,
    /// Who it said is signed in, when it became ready.
    pub identity: Option<Identity>,
    /// It gave no usable answer: it takes no new work, and is stopped when its started turns have ended.
    pub fault: Option<Failure>,
    /// `None` before it was started, and for a server that somebody else started: that one is never signalled.
    pub process: Option<ProcessIdentity>,
    pub started_at: i64,
    pub version: Option<String>,
}

/// Where a runtime is in its life.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    Starting,
    Ready,
    /// Being stopped; gone only when proven.
    Retiring {
        then: AfterStop,
    },
    /// Left over from an earlier run of the application: to be found and stopped.
    Orphan,
}

/// Why a runtime is being stopped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AfterStop {
    /// Its account is not the current one any more, or nobody needs it.
    Nothing,
    /// It failed: count it against the restart limit.
    CountFailure(Failure),
    /// The application quits.
    Quit,
}

/// A process that cannot be mistaken for a later one with the same pid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: u32,
    /// Start time in clock ticks since boot (field 22 of `/proc/PID/stat`), or the platform's like.
    pub start_ticks: u64,
    pub boot_id: String,
}

/// Starts that failed lately: of an account's shared processes, or of a session's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Restarts {
    /// Boot milliseconds of the failures in the last minute.
    pub failures: Vec<u64>,
    /// No further start until a person asks for it.
    pub given_up: Option<Failure>,
    /// Boot milliseconds before which none is started.
    pub not_before: u64,
}

// ---- sessions and turns --------------------------------------------------------------------

/// A thread of work in one folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Session {
    pub provider: ProviderId,
    /// Absolute path.
    pub folder: String,
    pub title: String,
    pub thread: Option<ThreadRef>,
    pub settings: SessionSettings,
    pub attachment: Attachment,
    pub queue: Vec<QueuedMessage>,
    /// Messages of which nobody can say whether they arrived. Nothing is sent before a person has decided about them.
    pub undecided: Vec<QueuedMessage>,
    pub goal: Option<GoalSpec>,
    /// The goal is held at its runtime although it is active here: the runtime is old, or the application quits.
    pub goal_held: bool,
    pub turn: Option<TurnId>,
    pub last_turn: Option<EndedTurn>,
    /// Ended and not yet looked at.
    pub unread: bool,
    pub archived: bool,
    /// Unix milliseconds: what came before was seen by a person.
    #[serde(default)]
    pub seen_at: i64,
    /// What its thread held before is to be read and recorded; no message is sent before.
    #[serde(default)]
    pub history_owed: bool,
    /// The thread that it goes on from. Without a thread of its own, the session is still to be opened as a fork of that one.
    #[serde(default)]
    pub fork_of: Option<ThreadRef>,
    /// What a message may begin with, as its agent told last.
    #[serde(default)]
    pub commands: Vec<OfferedCommand>,
    /// One line of what goes on or what was said last.
    pub preview: String,
    pub plan: Vec<PlanStep>,
    pub usage: Usage,
    pub created_at: i64,
    /// Unix milliseconds of the last change that a person would call activity.
    pub active_at: i64,
    /// Why it cannot be opened, until a person tries again.
    pub open_failure: Option<Failure>,
    /// How often its thread was found busy in a row, and until when to wait before it is opened or given a message.
    pub open_delay: OpenDelay,
    /// Failures of the processes that serve this session alone.
    pub restarts: Restarts,
}

/// Waiting for another process to let go of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OpenDelay {
    pub tries: u32,
    /// Boot milliseconds.
    pub not_before: u64,
}

/// Which process holds a session. Never two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Attachment {
    Detached,
    Opening {
        runtime: RuntimeId,
    },
    Open {
        runtime: RuntimeId,
    },
    /// Asked to let go; free when it says so, or is proven gone.
    Releasing {
        runtime: RuntimeId,
    },
}

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueuedMessage {
    pub id: MessageId,
    pub text: String,
    pub at: i64,
    pub delivery: Delivery,
}

/// What is known about a message's way to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Delivery {
    /// Waits for its turn, or for a sign-in.
    Queued,
    /// Sent to the agent as an addition to the running turn; no answer yet.
    Sending,
    Admitted,
    /// No process can still record it.
    NotAdmitted,
    /// Nobody can say; a person must look.
    Unknown,
}

/// One message being worked on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Turn {
    pub session: SessionId,
    pub runtime: RuntimeId,
    pub account: AccountId,
    pub epoch: AuthEpoch,
    /// `None` for a turn that the agent began by itself (a goal, a background task).
    pub message: Option<MessageId>,
    pub text: String,
    pub state: TurnState,
    pub provider_turn: Option<ProviderTurn>,
    /// Messages added while it ran.
    pub steers: Vec<QueuedMessage>,
    pub started_at: i64,
    /// What the provider says while it tries again by itself.
    pub retrying: Option<String>,
    /// Its early end was asked for.
    pub interrupting: bool,
    /// How its transport closed, while the history is being asked.
    pub closed: Option<Box<TransportRecord>>,
    /// Nothing was heard of it for so long that a person may want to look. It is never ended for that.
    #[serde(default)]
    pub quiet: Option<Quiet>,
}

/// A silence that is longer than usual.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Quiet {
    /// Unix milliseconds of the last word.
    pub since: i64,
    /// The command that runs meanwhile, if one does: it may well be the one that takes its time.
    pub command: Option<String>,
}

/// How far an open turn got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TurnState {
    /// Written down before a byte was sent; the agent has not answered.
    Dispatched,
    Started,
    /// Its runtime is gone and nobody knows if the message arrived, or how its turn goes on at a server: the history is
    /// being asked.
    Probing,
}

/// The last turn of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EndedTurn {
    pub turn: TurnId,
    pub provider_turn: Option<ProviderTurn>,
    pub account: AccountId,
    pub message: Option<MessageId>,
    pub outcome: TurnOutcome,
    pub started_at: i64,
    pub ended_at: i64,
}

/// A question that a person must answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Approval {
    pub session: SessionId,
    pub runtime: RuntimeId,
    pub turn: TurnId,
    pub request: RequestKey,
    pub ask: Ask,
    pub state: ApprovalState,
    pub asked_at: i64,
}

/// Where a question stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ApprovalState {
    Pending,
    /// `choice` is `None` for answered questions and forms, whose text is not kept.
    Answered {
        choice: Option<Choice>,
        by: Asker,
        at: i64,
    },
    /// Its turn ended, or the agent withdrew it.
    Moot,
}

/// Where an input came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Asker {
    Window,
    Tray,
    Notification,
    Cli,
    Api,
}

// ---- notifications, settings, quitting -----------------------------------------------------

/// Something a person should see outside the window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Notification {
    pub kind: NotificationKind,
    pub session: Option<SessionId>,
    pub state: NotificationState,
    pub at: i64,
}

/// What a notification is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NotificationKind {
    TurnCompleted {
        turn: TurnId,
    },
    TurnFailed {
        turn: TurnId,
        failure: Failure,
    },
    /// Its process is gone without a word of its end.
    TurnLost {
        turn: TurnId,
    },
    OutcomeUnknown {
        turn: TurnId,
    },
    TurnQuiet {
        turn: TurnId,
    },
    ApprovalNeeded {
        approval: ApprovalId,
    },
    SignedOut {
        provider: ProviderId,
        account: AccountId,
    },
    RuntimeFailed {
        provider: ProviderId,
        failure: Failure,
    },
}

/// How far a notification got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NotificationState {
    Raised,
    Shown,
}

/// What the person set. What an older version did not know has its default.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct AppSettings {
    pub notify_completed: bool,
    pub notify_approvals: bool,
    pub notify_failures: bool,
    pub notify_sign_outs: bool,
    pub muted: bool,
    /// Muted until then, in Unix milliseconds.
    #[serde(default)]
    pub muted_until: Option<i64>,
    /// Minutes after midnight, local time: from, to.
    pub quiet_hours: Option<(u16, u16)>,
    pub scheme: Scheme,
    /// Percent, 80 to 200.
    pub text_size: u16,
    /// Seconds that a quit waits for running turns; `None`: as long as they take.
    pub quit_deadline: Option<u64>,
    /// Minutes without a word after which a running turn counts as quiet; 0: never.
    pub quiet_after: u64,
    /// Minutes without work after which a process is stopped; 0: never.
    pub idle_after: u64,
    pub onboarded: bool,
}

impl Default for AppSettings {
    fn default() -> Self {
        Self {
            notify_completed: true,
            notify_approvals: true,
            notify_failures: true,
            notify_sign_outs: true,
            muted: false,
            muted_until: None,
            quiet_hours: None,
            scheme: Scheme::System,
            text_size: 100,
            quit_deadline: None,
            quiet_after: 10,
            idle_after: 15,
            onboarded: false,
        }
    }
}

/// Light or dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scheme {
    System,
    Light,
    Dark,
}

/// The application is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Quit {
    pub since: i64,
    /// Boot milliseconds after which running turns are interrupted; once forced, after which the application goes whatever
    /// still runs.
    pub deadline: Option<u64>,
    /// Asked for a second time: stop everything now.
    pub forced: bool,
}
