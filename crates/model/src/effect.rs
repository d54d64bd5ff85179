//! Everything the machine may ask of the world. Asking twice for the same key is asking once.

use serde::{Deserialize, Serialize};

use crate::{
    ids::{AccountId, CredentialId, ProviderId, RuntimeId, SessionId, SignInId, StagedSecret, TurnId},
    port::{AgentCommand, SignInMethod},
    state::{AccountKind, ProcessIdentity},
};

/// A wish; its result comes back as an input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Effect {
    /// Start a process for this credential. Answered by `RuntimeStarted` or `RuntimeStartFailed`.
    Spawn {
        runtime: RuntimeId,
        provider: ProviderId,
        account: AccountId,
        credential: CredentialId,
        kind: AccountKind,
    },
    /// Stop the process and prove that its tree is gone. Answered by `RuntimeGone`.
    Stop {
        runtime: RuntimeId,
        force: bool,
    },
    /// Find and stop what an earlier run left. Answered by `RuntimeGone`.
    Reap {
        runtime: RuntimeId,
        process: Option<ProcessIdentity>,
    },
    /// Once, in the step that commits its mark: repeating would do the work twice.
    Command {
        runtime: RuntimeId,
        command: AgentCommand,
    },
    /// Level-triggered: may be asked for again while it is wanted.
    Open {
        runtime: RuntimeId,
        command: AgentCommand,
    },
    /// Level-triggered as well. Answered by `History`.
    ReadHistory {
        runtime: RuntimeId,
        command: AgentCommand,
    },
    Release {
        runtime: RuntimeId,
        session: SessionId,
    },
    /// Run a sign-in for this credential. Answered by `SignInStep`, `SignInEnded`.
    SignIn {
        sign_in: SignInId,
        provider: ProviderId,
        account: AccountId,
        credential: CredentialId,
        method: SignInMethod,
        key: Option<StagedSecret>,
    },
    CancelSignIn {
        sign_in: SignInId,
    },
    /// Revoke and forget a credential that nobody uses any more. Answered by `Revoked`.
    Revoke {
        provider: ProviderId,
        account: AccountId,
        credential: CredentialId,
        kind: AccountKind,
    },
    /// Ask a fresh process about a turn whose fate is not known. Answered by `Probed`.
    Probe {
        turn: TurnId,
        runtime: RuntimeId,
        command: AgentCommand,
    },
    /// Show, or replace under the same key. Answered by `NotificationShown`.
    Notify {
        key: String,
    },
    CloseNotification {
        key: String,
    },
    /// No child is left and everything is written down: end the process.
    Exit,
}

impl Effect {
    /// What makes two wishes the same; `None` for those that must each be carried out.
    #[must_use]
    pub fn key(&self) -> Option<String> {
        Some(match self {
            Self::Spawn { runtime, .. } => format!("spawn {runtime}"),
            Self::Stop { runtime, force } => format!("stop {runtime} {force}"),
            Self::Reap { runtime, .. } => format!("reap {runtime}"),
            Self::Open { runtime, command } => format!("open {runtime} {}", asked_of(command)?),
            Self::ReadHistory { runtime, command } => format!("history {runtime} {}", asked_of(command)?),
            Self::Release { runtime, session } => format!("release {runtime} {session}"),
            Self::SignIn { sign_in, .. } => format!("sign in {sign_in}"),
            Self::CancelSignIn { sign_in } => format!("cancel sign in {sign_in}"),
            Self::Revoke { credential, .. } => format!("revoke {credential}"),
            Self::Probe { turn, .. } => format!("probe {turn}"),
            Self::Notify { key } => format!("notify {key}"),
            Self::CloseNotification { key } => format!("close {key}"),
            Self::Exit => "exit".to_owned(),
            Self::Command { .. } => return None,
        })
    }
}

/// The session that is opened or read; nothing else is asked for by a key of its own.
fn asked_of(command: &AgentCommand) -> Option<SessionId> {
    match command {
        AgentCommand::OpenSession { session, .. } | AgentCommand::ReadHistory { session, .. } => Some(*session),
        AgentCommand::ReleaseSession { .. }
        | AgentCommand::StartTurn { .. }
        | AgentCommand::Steer { .. }
        | AgentCommand::Interrupt { .. }
        | AgentCommand::Answer { .. }
        | AgentCommand::SetGoal { .. }
        | AgentCommand::Probe { .. }
        | AgentCommand::ReadIdentity
        | AgentCommand::ListModels
        | AgentCommand::ReadRateLimits
        | AgentCommand::ListThreads { .. }
        | AgentCommand::SignIn { .. }
        | AgentCommand::CancelSignIn
        | AgentCommand::SignOut => None,
    }
}
