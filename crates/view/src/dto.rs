//! The JSON that every window and client gets, as types; their TypeScript is generated from here.
//!
//! Decides nothing: every field is a fact of the machine put into words that a screen can use.
//! Times are Unix milliseconds. Ids are strings, so that no number loses digits in JavaScript.

use serde::{Deserialize, Serialize};

/// Derives what every type here needs.
macro_rules! dto {
    ($(#[$meta:meta])* $vis:vis enum $name:ident $body:tt) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        #[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
        $vis enum $name $body
    };
    ($(#[$meta:meta])* $vis:vis word $name:ident $body:tt) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        #[serde(rename_all = "camelCase")]
        $vis enum $name $body
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident $body:tt) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        #[serde(rename_all = "camelCase")]
        $vis struct $name $body
    };
}

mod approval;
mod runtime;
mod transcript;

pub use approval::*;
pub use runtime::*;
pub use transcript::*;

// ---- the whole -----------------------------------------------------------------------------

dto! {
    /// Everything but transcripts.
    pub struct Snapshot {
        pub seq: u64,
        pub now: i64,
        pub version: String,
        pub home: String,
        pub providers: Vec<Provider>,
        pub keychain: Keychain,
        pub sign_ins: Vec<SignIn>,
        pub sessions: Vec<Session>,
        /// Those of turns that have not ended, oldest first. Answered ones stay until then, so that everyone learns the answer.
        pub approvals: Vec<Approval>,
        pub settings: Settings,
        pub quit: Option<Quit>,
        /// What the last start found, to be told once.
        pub recovery: Option<Recovery>,
        /// The supervisor cannot go on (disk full, database broken): what happened and what to do.
        pub fatal: Option<String>,
    }
}

dto! {
    pub struct Quit {
        pub since: i64,
        pub forced: bool,
        pub waiting_for: Vec<String>,
        /// Unix milliseconds after which running turns are interrupted.
        pub deadline: Option<i64>,
    }
}

dto! {
    pub struct Recovery {
        pub at: i64,
        pub lines: Vec<String>,
    }
}

// ---- providers and accounts ----------------------------------------------------------------

dto! {
    pub struct Provider {
        pub id: String,
        pub name: String,
        pub installed: Installed,
        pub current: Option<String>,
        pub accounts: Vec<Account>,
        pub models: Vec<Model>,
        pub sign_in: Vec<SignInMethod>,
        /// Ways to sign in that its agent told of.
        pub offers: Vec<SignInOffer>,
        /// Commands that install it, to be copied.
        pub install: Vec<String>,
        /// It is part of the application: there is nothing to install, and nobody to sign in.
        pub built_in: bool,
        /// There is an account to speak of: not of what is built in, until it asks for a sign-in.
        pub needs_account: bool,
        /// A command that starts a server which can be used as an account, to be copied; none where there is no such thing.
        pub serve: Option<String>,
        pub can_steer: bool,
        pub has_goals: bool,
        /// Its own threads can be listed and gone on with.
        pub has_threads: bool,
        /// Its sessions tell of commands that a message may begin with (session_commands).
        pub has_commands: bool,
        /// Turns that finish on an account that is no longer the current one.
        pub finishing_turns: u32,
    }
}

dto! {
    pub enum Installed {
        Unknown,
        Found { path: String, version: Option<String> },
        Missing { searched: Vec<String> },
    }
}

dto! {
    pub struct Account {
        pub id: String,
        pub label: String,
        /// E-mail address, or "API key ending 7Q2F".
        pub identity: Option<String>,
        pub plan: Option<String>,
        pub kind: AccountKind,
        /// For a server that somebody else started.
        pub server: Option<Server>,
        pub current: bool,
        pub state: AccountState,
        pub limits: Vec<RateLimit>,
        pub verified_at: Option<i64>,
        /// It was signed in at some time.
        pub known: bool,
        /// Why no further process is started for it until somebody asks for one; the account itself may be well.
        pub given_up: Option<Failure>,
        /// Turns that still run on it though it is not the current one, or is signed out.
        pub finishing_turns: u32,
        /// Its last credential is still to be revoked.
        pub revocation_owed: bool,
    }
}

dto! { pub word AccountKind { ApiKey, PrivateHome, System, Server } }

dto! {
    /// A server that Turnkeep did not start, and the connection to it.
    pub struct Server {
        pub address: String,
        pub connected: bool,
        /// As the server said while it was connected.
        pub version: Option<String>,
    }
}

dto! {
    pub enum AccountState {
        SignedIn,
        SignedOut,
        SigningIn,
        Rejected { failure: Failure },
        ItemMissing,
        KeychainLocked,
        KeychainAbsent,
        Troubled { failure: Failure },
    }
}

dto! {
    pub enum Keychain {
        Unknown,
        Unlocked,
        Locked,
        Absent { why: String },
    }
}

dto! { pub word SignInMethod { Browser, DeviceCode, ApiKey, Advertised, Elsewhere } }

dto! {
    pub struct SignInOffer {
        pub id: String,
        pub name: String,
        pub description: String,
        /// A key must be typed.
        pub needs_key: bool,
        /// To be run by the person in a terminal, where the agent cannot do it itself.
        pub command: Option<String>,
    }
}

dto! {
    pub struct SignIn {
        pub id: String,
        pub provider: String,
        pub account: String,
        pub method: SignInMethod,
        pub url: Option<String>,
        pub code: Option<String>,
        pub failure: Option<Failure>,
    }
}

dto! {
    pub struct Model {
        pub id: String,
        pub name: String,
        pub description: String,
        pub efforts: Vec<String>,
        pub default_effort: Option<String>,
        pub is_default: bool,
    }
}

dto! {
    pub struct RateLimit {
        pub window_minutes: Option<u64>,
        pub used_percent: u8,
        /// Unix milliseconds.
        pub resets_at: Option<i64>,
    }
}

dto! {
    pub struct Failure {
        /// A code only where a screen acts on it: "signedOut", "usageLimit", "transportClosed", … else "other".
        pub code: String,
        pub message: String,
        pub detail: Option<String>,
    }
}

// ---- sessions ------------------------------------------------------------------------------

dto! {
    /// Something that the agent does where a message begins with "/" and this name.
    pub struct OfferedCommand {
        pub name: String,
        pub description: String,
        /// What may follow the name.
        pub hint: String,
    }
}

dto! { pub word Group { NeedsYou, Running, Finished, Idle } }

dto! {
    pub struct Session {
        pub id: String,
        pub provider: String,
        pub title: String,
        pub folder: String,
        pub group: Group,
        pub status: SessionStatus,
        /// The account of the running turn, else the one that the next turn goes to.
        pub account: Option<String>,
        /// The running turn is on an account that is no longer the current one.
        pub on_old_account: bool,
        pub preview: String,
        pub unread: bool,
        /// What came before was seen.
        pub seen_at: i64,
        /// What its thread held before is being read.
        pub reading_history: bool,
        pub archived: bool,
        /// A session can be made that goes on from where this one is.
        pub can_fork: bool,
        pub active_at: i64,
        pub turn: Option<Turn>,
        pub last_turn: Option<EndedTurn>,
        pub queue: Vec<QueuedMessage>,
        /// Messages of which nobody can say whether they arrived: a person must decide (resolve_unknown).
        pub undecided: Vec<QueuedMessage>,
        /// Why queued messages wait, in words; `None` when nothing waits.
        pub waits_for: Option<String>,
        pub goal: Option<Goal>,
        pub plan: Vec<PlanStep>,
        pub usage: Usage,
        pub settings: SessionSettings,
        pub failure: Option<Failure>,
    }
}

dto! {
    pub enum SessionStatus {
        Idle,
        Starting,
        Running,
        /// An approval is pending.
        NeedsApproval { count: u32 },
        OutcomeUnknown,
        Failed,
        SignedOut,
        KeychainLocked,
    }
}

dto! {
    pub struct Turn {
        pub id: String,
        pub started_at: i64,
        pub dispatched: bool,
        pub retrying: Option<String>,
        pub interrupting: bool,
        pub text: String,
        pub steers: Vec<QueuedMessage>,
        pub quiet: Option<Quiet>,
    }
}

dto! {
    /// Nothing was heard of a running turn for long.
    pub struct Quiet {
        /// Unix milliseconds of the last word.
        pub since: i64,
        /// The command that runs meanwhile.
        pub command: Option<String>,
    }
}

dto! {
    pub struct EndedTurn {
        pub id: String,
        pub outcome: Outcome,
        pub failure: Option<Failure>,
        pub started_at: i64,
        pub ended_at: i64,
    }
}

dto! { pub word Outcome { Completed, Interrupted, Failed, Lost, Unknown } }

dto! {
    pub struct QueuedMessage {
        pub id: String,
        pub text: String,
        pub at: i64,
        pub delivery: Delivery,
    }
}

dto! { pub word Delivery { Queued, Sending, Admitted, NotAdmitted, Unknown } }

dto! {
    pub struct Goal {
        pub objective: String,
        pub status: GoalStatus,
        pub token_budget: Option<u64>,
    }
}

dto! { pub word GoalStatus { Active, Paused, Blocked, Limited, Done } }

dto! {
    pub struct PlanStep {
        pub text: String,
        pub status: PlanStepStatus,
    }
}

dto! { pub word PlanStepStatus { Pending, Running, Done } }

dto! {
    pub struct Usage {
        pub total_tokens: u64,
        pub input_tokens: u64,
        pub cached_input_tokens: u64,
        pub output_tokens: u64,
        pub reasoning_tokens: u64,
        pub context_tokens: u64,
        pub context_window: Option<u64>,
    }
}

dto! {
    pub struct SessionSettings {
        pub model: Option<String>,
        pub effort: Option<String>,
        pub approval_mode: Option<ApprovalMode>,
        pub sandbox: Option<Sandbox>,
    }
}

dto! { pub word ApprovalMode { Always, OnRequest, Never } }
dto! { pub word Sandbox { ReadOnly, WriteFolder, Full } }

dto! {
    /// What the window's one channel carries.
    pub enum WindowEvent {
        Snapshot { snapshot: Box<Snapshot> },
        Transcript { session: String, events: Vec<TranscriptEvent> },
        /// Asked for from outside the window: a notification's button, a second start, the tray.
        Show { view: View },
    }
}

dto! {
    /// A place in the window.
    pub enum View {
        Sessions,
        Session { session: String },
        Settings { page: String },
        SignIn { provider: String },
    }
}

// ---- settings ------------------------------------------------------------------------------

dto! {
    pub struct Settings {
        pub notify_completed: bool,
        pub notify_approvals: bool,
        pub notify_failures: bool,
        pub notify_sign_outs: bool,
        pub muted: bool,
        pub muted_until: Option<i64>,
        /// Minutes after midnight: from, to.
        pub quiet_hours: Option<(u16, u16)>,
        pub scheme: Scheme,
        pub text_size: u16,
        /// Seconds.
        pub quit_deadline: Option<u64>,
        /// Minutes without a word after which a running turn counts as quiet; 0: never.
        pub quiet_after: u64,
        /// Minutes without work after which a process is stopped; 0: never.
        pub idle_after: u64,
        pub onboarded: bool,
    }
}

dto! { pub word Scheme { System, Light, Dark } }

dto! {
    /// A refused command. `code` exists only where the screen acts on it.
    pub struct CommandError {
        pub code: String,
        pub message: String,
    }
}

#[cfg(test)]
mod tests;
