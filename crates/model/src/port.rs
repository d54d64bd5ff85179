//! The language that every agent speaks with the rest: commands in, events out, and what an agent is capable of.
//!
//! Nothing here knows a wire format, and nothing here can hold a secret.

mod transcript;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::transcript::*;

use crate::ids::{ApprovalId, ItemId, MessageId, ProviderTurn, RequestKey, SessionId, ThreadRef, TurnId};

// ---- what an agent can do -----------------------------------------------------------------

/// What an agent is capable of. Each flag is read for a decision; what is not declared is refused as [`Unsupported`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Capabilities {
    /// How many sessions one process serves.
    pub sessions: Sessions,
    /// Whether a session can be opened again by its [`ThreadRef`] in a later process.
    pub resume: bool,
    /// Whether a message can be added to a running turn.
    pub steer: bool,
    /// Whether a running turn can be ended early.
    pub interrupt: bool,
    /// Who drives a goal from turn to turn.
    pub goals: Goals,
    /// Whether the history can be asked if a message arrived.
    pub history_probe: bool,
    /// Whether an approval can be asked for.
    pub approvals: bool,
    /// Whether the threads that it knows can be listed, and their histories read.
    #[serde(default)]
    pub threads: bool,
    /// Whether its sessions tell of commands that a message may begin with.
    #[serde(default)]
    pub commands: bool,
    /// Whether a new session can go on from where another one is.
    #[serde(default)]
    pub fork: bool,
}

/// See [`Capabilities::sessions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Sessions {
    /// One process, one session.
    One,
    /// One process serves all sessions of one credential.
    Many,
}

/// See [`Capabilities::goals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Goals {
    /// The agent starts the next turn itself while its goal is active.
    Native,
    /// The supervisor sends the goal's next message.
    Driven,
    /// No goals.
    None,
}

/// A command that this agent cannot carry out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this agent cannot {what}")]
pub struct Unsupported {
    /// What was asked, as a verb phrase: "steer a running turn".
    pub what: &'static str,
}

// ---- commands ------------------------------------------------------------------------------

/// What may be asked of a runtime.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AgentCommand {
    /// Start a thread (`thread: None`) or load one again, and listen to it.
    /// Answered by [`AgentEvent::SessionOpened`] or [`AgentEvent::SessionOpenFailed`].
    OpenSession {
        session: SessionId,
        thread: Option<ThreadRef>,
        /// Start the new thread with what this one holds; only without `thread`.
        #[serde(default)]
        fork_of: Option<ThreadRef>,
        /// Its history is asked for next: some tell it only while they open a thread.
        #[serde(default)]
        history: bool,
        /// Absolute path of the folder to work in.
        folder: String,
        settings: SessionSettings,
        /// The goal to go on with once open (only for [`Goals::Native`]).
        goal: Option<GoalSpec>,
    },
    /// Let go of a session: clean up what still runs in it and unload it. Answered by [`AgentEvent::SessionReleased`].
    ReleaseSession { session: SessionId },
    /// Begin a turn on an idle session. Answered by [`AgentEvent::TurnStarted`] or [`AgentEvent::TurnRejected`].
    StartTurn { session: SessionId, turn: TurnId, message: MessageId, text: String, settings: SessionSettings },
    /// Add to the running turn. Answered by [`AgentEvent::Steered`] or [`AgentEvent::SteerRefused`].
    Steer { session: SessionId, turn: TurnId, message: MessageId, text: String },
    /// End the running turn early; what it started is stopped too. The turn's end is an ordinary [`AgentEvent::TurnEnded`].
    Interrupt { session: SessionId, turn: TurnId },
    /// Answer a question, once.
    Answer { session: SessionId, approval: ApprovalId, request: RequestKey, answer: Answer },
    /// Set, pause or clear the goal (only for [`Goals::Native`]).
    SetGoal { session: SessionId, goal: Option<GoalSpec> },
    /// Ask the history whether the message arrived. Answered by [`AgentEvent::Probed`].
    Probe { session: SessionId, thread: ThreadRef, turn: TurnId, message: MessageId },
    /// Ask who is signed in. Answered by [`AgentEvent::Identity`].
    ReadIdentity,
    /// Ask for the models on offer. Answered by [`AgentEvent::Models`].
    ListModels,
    /// Ask for the usage meters of the account. Answered by [`AgentEvent::RateLimits`].
    ReadRateLimits,
    /// Ask which threads the provider knows, newest first. Answered by [`AgentEvent::Threads`].
    ListThreads {
        /// Comes back with the answer.
        ask: u64,
        cursor: Option<String>,
    },
    /// Ask for a thread's history. Answered by [`AgentEvent::History`].
    ReadHistory { session: SessionId, thread: ThreadRef },
    /// Sign in by this method. Answered by [`AgentEvent::SignInStep`], then [`AgentEvent::SignInEnded`].
    SignIn { method: SignInMethod },
    /// Give up the sign-in that runs.
    CancelSignIn,
    /// Sign out, and revoke at the provider where it offers that. Answered by [`AgentEvent::SignedOut`].
    SignOut,
}

/// Per-session choices; `None` leaves the provider's own default.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionSettings {
    /// The provider's id of the model.
    pub model: Option<String>,
    /// Reasoning effort, the provider's word.
    pub effort: Option<String>,
    /// When a person is asked.
    pub approval_mode: Option<ApprovalMode>,
    /// What commands may touch.
    pub sandbox: Option<Sandbox>,
}

/// When the agent asks before it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ApprovalMode {
    /// Before every command that is not known to be harmless.
    Always,
    /// When the agent thinks that it needs more than it may.
    OnRequest,
    /// Never.
    Never,
}

/// What the agent's commands may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Sandbox {
    /// Read everything, write nothing.
    ReadOnly,
    /// Write in the session's folder.
    WriteFolder,
    /// No sandbox.
    Full,
}

/// A goal as it is given to an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GoalSpec {
    pub objective: String,
    pub status: GoalStatus,
    /// Tokens that may be spent, if limited.
    pub token_budget: Option<u64>,
}

/// Where a goal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GoalStatus {
    Active,
    Paused,
    /// Cannot go on without a person.
    Blocked,
    /// The account's or the goal's own limit is used up.
    Limited,
    Done,
}

/// How a person signs in. An API key never travels in a command: the launch plan says where it goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SignInMethod {
    Browser,
    DeviceCode,
    ApiKey,
    /// The one that the agent told of under this id.
    Advertised {
        id: String,
    },
    /// The person has signed in with the provider's own program: its sign-in is taken as it is on this computer.
    Elsewhere,
}

/// A way to sign in that an agent told of in its handshake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SignInOffer {
    /// The agent's id of it.
    pub id: String,
    /// For a person.
    pub name: String,
    pub description: String,
    pub by: OfferedBy,
}

/// Who carries out an offered sign-in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OfferedBy {
    /// The agent itself, when it is asked to.
    Agent,
    /// The person, with a key that is given to the agent.
    Key,
    /// The person, with this command in a terminal.
    Terminal { command: String },
}

// ---- events --------------------------------------------------------------------------------

/// What a runtime reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AgentEvent {
    /// What only the handshake tells of the agent; comes before [`AgentEvent::Ready`].
    Introduced {
        capabilities: Capabilities,
        sign_in: Vec<SignInOffer>,
    },
    /// The handshake is done; who is signed in comes with it.
    Ready {
        version: String,
        identity: Observation,
    },
    /// Who is signed in, asked again.
    Identity {
        identity: Observation,
    },
    SessionOpened {
        session: SessionId,
        thread: ThreadRef,
        settings: SessionSettings,
    },
    /// The name by which an open session is found again, where the one that it was opened under was only provisional.
    ThreadNamed {
        session: SessionId,
        thread: ThreadRef,
    },
    SessionOpenFailed {
        session: SessionId,
        failure: Failure,
    },
    /// The runtime holds nothing of this session any more.
    SessionReleased {
        session: SessionId,
    },
    /// `turn` is ours when this answers [`AgentCommand::StartTurn`]; `None` for a turn that nobody asked for.
    TurnStarted {
        session: SessionId,
        turn: Option<TurnId>,
        provider_turn: ProviderTurn,
    },
    /// The message was not admitted: no process can still record it.
    TurnRejected {
        session: SessionId,
        turn: TurnId,
        failure: Failure,
    },
    /// The provider will try again by itself; the turn goes on.
    TurnRetrying {
        session: SessionId,
        provider_turn: ProviderTurn,
        message: String,
    },
    /// The provider's own word that the turn is over.
    TurnEnded {
        session: SessionId,
        provider_turn: ProviderTurn,
        outcome: TurnOutcome,
    },
    ItemStarted {
        session: SessionId,
        provider_turn: ProviderTurn,
        item: Item,
    },
    /// May come again for an entry, also after its turn has ended: the last one counts.
    ItemCompleted {
        session: SessionId,
        provider_turn: ProviderTurn,
        item: Item,
    },
    /// Streaming text. Never passes through the machine.
    Delta {
        session: SessionId,
        item: ItemId,
        stream: DeltaStream,
        text: String,
    },
    /// The whole plan, replacing the one before.
    Plan {
        session: SessionId,
        steps: Vec<PlanStep>,
    },
    /// Everything the turn changed so far, as one unified diff.
    Diff {
        session: SessionId,
        provider_turn: ProviderTurn,
        unified: String,
    },
    Usage {
        session: SessionId,
        usage: Usage,
    },
    ApprovalRequested {
        session: SessionId,
        provider_turn: Option<ProviderTurn>,
        request: RequestKey,
        ask: Ask,
    },
    /// Answered or withdrawn at the provider.
    ApprovalResolved {
        session: SessionId,
        request: RequestKey,
    },
    Steered {
        session: SessionId,
        turn: TurnId,
        message: MessageId,
    },
    SteerRefused {
        session: SessionId,
        turn: TurnId,
        message: MessageId,
        failure: Failure,
    },
    GoalChanged {
        session: SessionId,
        goal: Option<GoalSpec>,
    },
    TitleChanged {
        session: SessionId,
        title: String,
    },
    /// Everything that a message of this session may begin with, replacing what was told before.
    Commands {
        session: SessionId,
        commands: Vec<OfferedCommand>,
    },
    Probed {
        session: SessionId,
        turn: TurnId,
        found: ProbeAnswer,
    },
    Models {
        models: Vec<Model>,
    },
    RateLimits {
        limits: Vec<RateLimit>,
        plan: Option<String>,
    },
    Threads {
        ask: u64,
        result: Result<ThreadPage, Failure>,
    },
    /// Oldest entry first.
    History {
        session: SessionId,
        result: Result<Vec<(ProviderTurn, Item)>, Failure>,
    },
    SignInStep {
        step: SignInStep,
    },
    SignInEnded {
        result: Result<Observation, Failure>,
    },
    SignedOut {
        result: Result<(), Failure>,
    },
    /// Something a person may want to know; the session it concerns, if one.
    Notice {
        session: Option<SessionId>,
        text: String,
    },
    /// A command that got no usable answer in time, or an answer that makes no sense; or, when the transport closes, the
    /// record of a turn that was sent and never got a name.
    Fault {
        session: Option<SessionId>,
        failure: Failure,
    },
}

impl AgentEvent {
    /// The session of which this is a word from the agent itself; `None` for what is about none, or about our own dealings
    /// with the process.
    #[must_use]
    pub const fn session(&self) -> Option<SessionId> {
        match self {
            Self::SessionOpened { session, .. }
            | Self::ThreadNamed { session, .. }
            | Self::SessionReleased { session }
            | Self::TurnStarted { session, .. }
            | Self::TurnRetrying { session, .. }
            | Self::TurnEnded { session, .. }
            | Self::ItemStarted { session, .. }
            | Self::ItemCompleted { session, .. }
            | Self::Delta { session, .. }
            | Self::Plan { session, .. }
            | Self::Diff { session, .. }
            | Self::Usage { session, .. }
            | Self::ApprovalRequested { session, .. }
            | Self::ApprovalResolved { session, .. }
            | Self::Steered { session, .. }
            | Self::SteerRefused { session, .. }
            | Self::GoalChanged { session, .. }
            | Self::TitleChanged { session, .. }
            | Self::Commands { session, .. } => Some(*session),
            Self::Notice { session, .. } => *session,
            Self::Introduced { .. }
            | Self::Ready { .. }
            | Self::Identity { .. }
            | Self::SessionOpenFailed { .. }
            | Self::TurnRejected { .. }
            | Self::Probed { .. }
            | Self::Models { .. }
            | Self::RateLimits { .. }
            | Self::Threads { .. }
            | Self::History { .. }
            | Self::SignInStep { .. }
            | Self::SignInEnded { .. }
            | Self::SignedOut { .. }
            | Self::Fault { .. } => None,
        }
    }
}

/// What was learned about who is signed in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Observation {
    Someone(Identity),
    NoOne,
    /// The agent cannot tell (yet): no change follows from it.
    Unknown {
        why: String,
    },
}

/// Who is signed in, without a credential. Two equal fingerprints are the same identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Stable over token refreshes: an account id or e-mail, or a digest of a key. Never a credential.
    pub fingerprint: String,
    /// To be shown: an e-mail address, or "API key ending 7Q2F".
    pub label: String,
    pub plan: Option<String>,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TurnOutcome {
    Completed,
    Interrupted,
    Failed(Failure),
    /// It had started, and its runtime is gone without a word of its end.
    Lost,
    /// It was dispatched, and nobody can say if the agent got it.
    Unknown,
}

/// What went wrong, for a person and for a branch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Failure {
    pub class: FailureClass,
    /// What happened, where, what stays, what to do.
    pub message: String,
    /// The provider's own text and codes.
    pub detail: Option<String>,
}

/// What a failure is, as far as someone decides by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FailureClass {
    /// The account is gone: sign in, then send again.
    SignedOut,
    /// Rejected on an account that is no longer the current one.
    AccountChanged,
    UsageLimit,
    RateLimit,
    Overloaded,
    ContextWindow,
    ModelNotFound,
    Network,
    /// No answer in time.
    Timeout,
    Unsupported,
    /// The thread is not known to the provider (any more).
    ThreadNotFound,
    /// Another process holds the thread.
    ThreadBusy,
    /// The process could not be started, or never became ready.
    StartFailed,
    /// The keychain is locked; an unlock was or must be asked for.
    KeychainLocked,
    /// No keychain on this system.
    KeychainAbsent,
    /// `transport_closed_before_turn_completed`
    TransportClosed(Box<TransportRecord>),
    /// The agent spoke something that its protocol does not allow.
    Protocol,
    Other,
}

/// What is known when a transport closes under a running turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TransportRecord {
    pub pid: Option<u32>,
    /// "exited", "signalled" or "running"; "not ours" of a server that somebody else started.
    pub status: String,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// "stdout" or "stdin" of a process; "socket" of a server that somebody else started.
    pub stream: String,
    /// "eof" or the error.
    pub how: String,
    /// Whether a last line without newline was read and acted on, and its length in bytes.
    pub trailing_flushed: bool,
    pub trailing_len: u64,
    pub session: Option<SessionId>,
    pub thread: Option<ThreadRef>,
    pub turn: Option<TurnId>,
    /// "dispatched" or "started".
    pub turn_state: String,
    /// Last lines of standard error, at most 20.
    pub stderr: Vec<String>,
}

/// A step of a sign-in that a person must take.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SignInStep {
    /// Open this address in a browser.
    OpenUrl { url: String },
    /// Open the address and type the code.
    TypeCode { url: String, code: String },
}

/// Answer to [`AgentCommand::Probe`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProbeAnswer {
    /// The history has the message; this is how its turn stands there.
    Found(TurnOutcome),
    /// Its turn has not ended: it is being worked on at this moment. Only a server that outlives its connections says so.
    Running(ProviderTurn),
    NotFound,
    CannotTell,
}

// ---- approvals -----------------------------------------------------------------------------

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ask {
    pub body: AskBody,
    /// Why the agent asks, in its words.
    pub reason: Option<String>,
    /// The answers that the provider takes, the safe one last.
    pub choices: Vec<Choice>,
    /// The transcript entry it belongs to.
    pub item: Option<ItemId>,
}

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AskBody {
    /// The exact command. `may_run_unsandboxed`: allowing it may also run it outside the sandbox, and partly twice.
    Command {
        command: String,
        cwd: String,
        may_run_unsandboxed: bool,
    },
    FileChange {
        changes: Vec<FileChange>,
        grant_root: Option<String>,
    },
    Permissions {
        network: bool,
        read: Vec<String>,
        write: Vec<String>,
    },
    Questions {
        questions: Vec<Question>,
    },
    /// A tool server asks for input (`schema`: JSON Schema text), or a tool wants to run.
    Form {
        server: String,
        message: String,
        schema: Option<String>,
    },
}

/// One question to a person.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Question {
    pub id: String,
    pub header: String,
    pub text: String,
    /// Label and description.
    pub options: Vec<(String, String)>,
    pub free_text: bool,
    pub secret: bool,
}

/// An answer that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Choice {
    Allow,
    AllowForSession,
    /// Allow, and save a rule: the words that a later command must begin with.
    AllowAlways {
        rule: Vec<String>,
    },
    Deny,
    /// Deny, and end the turn.
    DenyAndStop,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Answer {
    Choice(Choice),
    /// Question id → chosen labels or typed texts.
    Answers(BTreeMap<String, Vec<String>>),
    /// JSON text that fits the form's schema.
    Form(String),
}
