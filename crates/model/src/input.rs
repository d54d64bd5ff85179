//! Everything anyone may tell the machine.

use serde::{Deserialize, Serialize};

use crate::{
    ids::{
        AccountId, ApprovalId, CredentialId, MessageId, ProviderId, RuntimeId, ServerAddress, SessionId, SignInId, StagedSecret,
        ThreadRef, TurnId,
    },
    port::{
        AgentEvent, Answer, Capabilities, Failure, GoalSpec, Observation, SessionSettings, SignInMethod, SignInStep,
        TransportRecord,
    },
    state::{AppSettings, Asker, Installed, Keychain, Now, ProcessIdentity},
};

/// One thing that happened outside the machine, or that somebody wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Input {
    /// A deadline passed, or nothing in particular: look again.
    Tick,

    // ---- a person or a program asks --------------------------------------------------------
    CreateSession {
        provider: ProviderId,
        folder: String,
        title: String,
        settings: SessionSettings,
        thread: Option<ThreadRef>,
    },
    /// Make a session that goes on from where this one is, in the same folder.
    ForkSession {
        session: SessionId,
        title: String,
    },
    /// Deliver when the session is idle.
    Send {
        session: SessionId,
        message: MessageId,
        text: String,
    },
    /// Add to the running turn; becomes a `Send` when there is none.
    Steer {
        session: SessionId,
        message: MessageId,
        text: String,
    },
    EditQueued {
        session: SessionId,
        message: MessageId,
        text: String,
    },
    RemoveQueued {
        session: SessionId,
        message: MessageId,
    },
    Interrupt {
        session: SessionId,
    },
    AnswerApproval {
        approval: ApprovalId,
        answer: Answer,
        by: Asker,
    },
    SetGoal {
        session: SessionId,
        goal: Option<GoalSpec>,
    },
    SetSessionSettings {
        session: SessionId,
        settings: SessionSettings,
    },
    Rename {
        session: SessionId,
        title: String,
    },
    Archive {
        session: SessionId,
        archived: bool,
    },
    MarkRead {
        session: SessionId,
    },
    /// The person has seen everything of the session up to now.
    Seen {
        session: SessionId,
    },
    /// Start again what was given up, or try an account that was rejected.
    TryAgain {
        session: SessionId,
    },
    /// The person has looked at an unknown outcome: send the message again, or let it be.
    ResolveUnknown {
        session: SessionId,
        resend: bool,
    },
    SignIn {
        provider: ProviderId,
        account: Option<AccountId>,
        label: String,
        method: SignInMethod,
        key: Option<StagedSecret>,
    },
    CancelSignIn {
        sign_in: SignInId,
    },
    /// Use a server that somebody else started, as an account; or try it again.
    Attach {
        provider: ProviderId,
        address: ServerAddress,
        label: String,
    },
    /// `now`: interrupt running turns instead of letting them finish.
    SignOut {
        account: AccountId,
        now: bool,
    },
    UseAccount {
        account: AccountId,
    },
    RenameAccount {
        account: AccountId,
        label: String,
    },
    RemoveAccount {
        account: AccountId,
    },
    ChangeSettings {
        settings: AppSettings,
    },
    DismissNotification {
        key: String,
    },
    /// `deadline_ms`: how long running turns may take. A second one forces.
    Quit {
        deadline_ms: Option<u64>,
    },

    /// Not now after all: nothing that a forced quit has begun is taken back.
    CancelQuit,
    /// Somebody wants to ask the provider something: a process of its current account is started if there is none.
    Consult {
        provider: ProviderId,
    },

    // ---- the world reports -----------------------------------------------------------------
    /// The registry's word at start, and again when a program appears or goes.
    ProviderFound {
        provider: ProviderId,
        capabilities: Capabilities,
        installed: Installed,
    },
    /// The provider's own sign-in on this computer exists (or not), whoever it is. To be repeated when it was written anew.
    SystemAccount {
        provider: ProviderId,
        present: bool,
    },
    /// The provider's program is there, and where it keeps its sign-in cannot be looked into: one is taken to be there. To
    /// be repeated when something suggests that it is another one.
    SystemAssumed {
        provider: ProviderId,
    },
    Keychain {
        keychain: Keychain,
    },
    /// Who stands behind a credential, seen from outside a runtime: a watcher or a probe.
    Observed {
        credential: CredentialId,
        observation: Observation,
    },
    RuntimeStarted {
        runtime: RuntimeId,
        process: ProcessIdentity,
    },
    /// The process could not be started; nothing is left of it.
    RuntimeStartFailed {
        runtime: RuntimeId,
        failure: Failure,
    },
    Agent {
        runtime: RuntimeId,
        event: AgentEvent,
    },
    /// Streaming text of this session came, last at this moment. Told before a deadline is judged, and at once where a turn
    /// counts as quiet; not with every text.
    Heard {
        session: SessionId,
        at: Now,
    },
    /// The process tree is proven gone. `closed`: it went by itself, with what is known about it.
    RuntimeGone {
        runtime: RuntimeId,
        closed: Option<TransportRecord>,
    },
    SignInStep {
        sign_in: SignInId,
        step: SignInStep,
    },
    /// Comes for every sign-in, also for one that was cancelled.
    SignInEnded {
        sign_in: SignInId,
        result: Result<Observation, Failure>,
    },
    Revoked {
        credential: CredentialId,
        result: Result<(), Failure>,
    },
    Probed {
        turn: TurnId,
        found: crate::port::ProbeAnswer,
    },
    NotificationShown {
        key: String,
    },
}
