//! The closed list of facts, in the past tense. What each does to the state is in [`crate::apply()`].

use serde::{Deserialize, Serialize};

use crate::{
    ids::{
        AccountId, ApprovalId, AuthEpoch, CredentialId, MessageId, ProviderId, ProviderTurn, RuntimeId, SessionId, SignInId,
        ThreadRef, TurnId,
    },
    port::{
        Capabilities, Choice, Failure, GoalSpec, Identity, Item, Model, OfferedCommand, PlanStep, RateLimit, SessionSettings,
        SignInOffer, SignInStep, TransportRecord, TurnDiff, TurnOutcome, Usage,
    },
    state::{
        Account, AccountProblem, AppSettings, Approval, Asker, Attachment, Credential, Delivery, Installed, Keychain,
        Notification, OpenDelay, Phase, ProcessIdentity, QueuedMessage, Quiet, Quit, Restarts, Runtime, Session, SignIn, Turn,
        TurnState,
    },
};

/// A fact that has been committed.
#[expect(clippy::large_enum_variant, reason = "a new session is rare, and changes are moved, not copied")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Change {
    // providers, accounts, credentials
    ProviderKnown {
        provider: ProviderId,
        capabilities: Capabilities,
        installed: Installed,
    },
    /// What its agent said of itself when it was started.
    ProviderIntroduced {
        provider: ProviderId,
        capabilities: Capabilities,
        offers: Vec<SignInOffer>,
    },
    ModelsListed {
        provider: ProviderId,
        models: Vec<Model>,
    },
    AccountAdded {
        account: AccountId,
        entry: Account,
    },
    AccountRenamed {
        account: AccountId,
        label: String,
    },
    AccountRemoved {
        account: AccountId,
    },
    /// The identity or the signed-in state at this provider is another one from here on.
    EpochBegan {
        provider: ProviderId,
        epoch: AuthEpoch,
        current: Option<AccountId>,
    },
    AccountSignedIn {
        account: AccountId,
        credential: CredentialId,
        identity: Option<Identity>,
    },
    AccountSignedOut {
        account: AccountId,
    },
    AccountIdentified {
        account: AccountId,
        identity: Identity,
    },
    AccountTroubled {
        account: AccountId,
        problem: Option<AccountProblem>,
    },
    AccountTried {
        account: AccountId,
    },
    AccountRestartsCounted {
        account: AccountId,
        restarts: Restarts,
    },
    AccountVerified {
        account: AccountId,
        at: i64,
    },
    LimitsRead {
        account: AccountId,
        limits: Vec<RateLimit>,
        plan: Option<String>,
    },
    CredentialAdded {
        credential: CredentialId,
        entry: Credential,
    },
    RevocationOwed {
        credential: CredentialId,
    },
    RevocationDelayed {
        credential: CredentialId,
        not_before: u64,
    },
    CredentialForgotten {
        credential: CredentialId,
    },
    SignInBegan {
        sign_in: SignInId,
        entry: SignIn,
    },
    SignInStepped {
        sign_in: SignInId,
        step: SignInStep,
    },
    SignInCancelling {
        sign_in: SignInId,
    },
    SignInFailed {
        sign_in: SignInId,
        failure: Failure,
    },
    SignInClosed {
        sign_in: SignInId,
    },
    KeychainSeen {
        keychain: Keychain,
    },

    // runtimes
    RuntimeRequested {
        runtime: RuntimeId,
        entry: Runtime,
    },
    RuntimeProcess {
        runtime: RuntimeId,
        process: ProcessIdentity,
    },
    RuntimeReady {
        runtime: RuntimeId,
        version: String,
        identity: Option<Identity>,
    },
    RuntimeFaulted {
        runtime: RuntimeId,
        failure: Failure,
    },
    RuntimePhased {
        runtime: RuntimeId,
        phase: Phase,
    },
    RuntimeRemoved {
        runtime: RuntimeId,
        /// When it was proven gone, in Unix milliseconds.
        at: i64,
        /// Why, unless it was stopped because nobody needed it any more.
        failure: Option<Failure>,
    },

    // sessions
    SessionCreated {
        session: SessionId,
        entry: Session,
    },
    SessionAttached {
        session: SessionId,
        attachment: Attachment,
    },
    ThreadNamed {
        session: SessionId,
        thread: ThreadRef,
    },
    SessionConfigured {
        session: SessionId,
        settings: SessionSettings,
    },
    SessionRenamed {
        session: SessionId,
        title: String,
    },
    SessionArchived {
        session: SessionId,
        archived: bool,
    },
    /// A person has seen everything of it up to this moment.
    SessionRead {
        session: SessionId,
        /// Unix milliseconds.
        at: i64,
    },
    /// What its thread held before is recorded, as so many turns.
    HistoryRead {
        session: SessionId,
        turns: u64,
    },
    /// Recorded by the store: the finished entries of another session stand here too, in their order.
    HistoryCopied {
        session: SessionId,
        from: SessionId,
    },
    CommandsOffered {
        session: SessionId,
        commands: Vec<OfferedCommand>,
    },
    SessionOpenFailed {
        session: SessionId,
        failure: Option<Failure>,
    },
    OpenDelayed {
        session: SessionId,
        delay: OpenDelay,
    },
    RestartsCounted {
        session: SessionId,
        restarts: Restarts,
    },
    GoalSet {
        session: SessionId,
        goal: Option<GoalSpec>,
    },
    GoalHeld {
        session: SessionId,
        held: bool,
    },
    PlanChanged {
        session: SessionId,
        steps: Vec<PlanStep>,
    },
    UsageCounted {
        session: SessionId,
        usage: Usage,
    },
    PreviewChanged {
        session: SessionId,
        preview: String,
    },

    // messages and turns
    MessageQueued {
        session: SessionId,
        message: QueuedMessage,
    },
    MessageEdited {
        session: SessionId,
        message: MessageId,
        text: String,
    },
    MessageRemoved {
        session: SessionId,
        message: MessageId,
    },
    /// The write-ahead mark: on disk before a byte is sent. Takes its message out of the queue.
    TurnDispatched {
        turn: TurnId,
        entry: Turn,
    },
    TurnStarted {
        turn: TurnId,
        provider_turn: ProviderTurn,
    },
    TurnPhased {
        turn: TurnId,
        state: TurnState,
        closed: Option<Box<TransportRecord>>,
    },
    /// It goes on at a server to which the connection was lost, and is listened to again.
    TurnRejoined {
        turn: TurnId,
        runtime: RuntimeId,
        provider_turn: ProviderTurn,
    },
    TurnRetrying {
        turn: TurnId,
        message: Option<String>,
    },
    TurnInterrupting {
        turn: TurnId,
    },
    /// Nothing was heard of it for long.
    TurnQuieted {
        turn: TurnId,
        quiet: Quiet,
    },
    /// A word of it ended its silence.
    TurnHeard {
        turn: TurnId,
    },
    SteerSent {
        turn: TurnId,
        message: QueuedMessage,
    },
    SteerDelivered {
        turn: TurnId,
        message: MessageId,
        delivery: Delivery,
    },
    /// Not admitted: it waits at the head of the queue.
    SteerReturned {
        turn: TurnId,
        message: MessageId,
    },
    /// The agent's late word about a message that nobody could say anything about.
    UndecidedSettled {
        session: SessionId,
        message: MessageId,
        delivery: Delivery,
    },
    /// A person decided: what was undecided waits at the head of the queue again (`resend`), or is let be.
    UnknownResolved {
        session: SessionId,
        resend: bool,
    },
    /// The message goes back to the head of the queue: it was not admitted.
    TurnReturned {
        turn: TurnId,
    },
    TurnEnded {
        turn: TurnId,
        outcome: TurnOutcome,
        at: i64,
    },
    /// Recorded by the store; the machine keeps no transcript. What is still open when its turn ends is closed there.
    ItemRecorded {
        session: SessionId,
        turn: TurnId,
        item: Item,
        completed: bool,
    },
    /// Recorded by the store, in place of the turn's diff before.
    TurnDiffed {
        session: SessionId,
        turn: TurnId,
        diff: TurnDiff,
    },

    // approvals, notifications, the application
    ApprovalRequested {
        approval: ApprovalId,
        entry: Approval,
    },
    ApprovalAnswered {
        approval: ApprovalId,
        choice: Option<Choice>,
        by: Asker,
        at: i64,
    },
    ApprovalMoot {
        approval: ApprovalId,
    },
    NotificationRaised {
        key: String,
        entry: Notification,
    },
    NotificationShown {
        key: String,
    },
    NotificationDismissed {
        key: String,
    },
    SettingsChanged {
        settings: AppSettings,
    },
    QuitBegan {
        quit: Quit,
    },
    /// Its person thought better of it.
    QuitCancelled,
    /// The next start found what an earlier run left behind; its quit is over.
    Recovered,
}
