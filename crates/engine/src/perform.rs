//! Wishes on their way: the same wish asked for twice is one wish, until its answer is in.
//!
//! The machine asks for all that it wants on every pass; this is what keeps that from being done again.

use std::collections::BTreeSet;

use turnkeep_model::{Effect, Input, RuntimeId, port::AgentEvent};

/// The keys of what was asked for and not answered.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    keys: BTreeSet<String>,
}

impl Owed {
    /// Whether this wish must be carried out now.
    pub(crate) fn take(&mut self, effect: &Effect) -> bool {
        effect.key().is_none_or(|key| self.keys.insert(key))
    }

    /// An answer came: its wish may be asked for again. Told before the machine sees the input.
    pub(crate) fn answered(&mut self, input: &Input) {
        match input {
            Input::RuntimeStarted { runtime, .. } => self.forget(&format!("spawn {runtime}")),
            Input::RuntimeStartFailed { runtime, .. } | Input::RuntimeGone { runtime, .. } => self.forget_runtime(*runtime),
            Input::Agent { runtime, event } => self.answered_by_agent(*runtime, event),
            Input::SignInEnded { sign_in, .. } => {
                self.forget(&format!("sign in {sign_in}"));
                self.forget(&format!("cancel sign in {sign_in}"));
            }
            Input::Revoked { credential, .. } => self.forget(&format!("revoke {credential}")),
            Input::Probed { turn, .. } => self.forget(&format!("probe {turn}")),
            Input::NotificationShown { key } => self.forget(&format!("notify {key}")),
            Input::Tick
            | Input::CreateSession { .. }
            | Input::ForkSession { .. }
            | Input::Send { .. }
            | Input::Steer { .. }
            | Input::EditQueued { .. }
            | Input::RemoveQueued { .. }
            | Input::Interrupt { .. }
            | Input::AnswerApproval { .. }
            | Input::SetGoal { .. }
            | Input::SetSessionSettings { .. }
            | Input::Rename { .. }
            | Input::Archive { .. }
            | Input::MarkRead { .. }
            | Input::TryAgain { .. }
            | Input::ResolveUnknown { .. }
            | Input::SignIn { .. }
            | Input::CancelSignIn { .. }
            | Input::Attach { .. }
            | Input::SignOut { .. }
            | Input::UseAccount { .. }
            | Input::RenameAccount { .. }
            | Input::RemoveAccount { .. }
            | Input::ChangeSettings { .. }
            | Input::DismissNotification { .. }
            | Input::Quit { .. }
            | Input::CancelQuit
            | Input::Consult { .. }
            | Input::Seen { .. }
            | Input::ProviderFound { .. }
            | Input::SystemAccount { .. }
            | Input::SystemAssumed { .. }
            | Input::Keychain { .. }
            | Input::Observed { .. }
            | Input::Heard { .. }
            | Input::SignInStep { .. } => {}
        }
    }

    fn answered_by_agent(&mut self, runtime: RuntimeId, event: &AgentEvent) {
        if let AgentEvent::SessionOpened { session, .. } | AgentEvent::SessionOpenFailed { session, .. } = event {
            self.forget(&format!("open {runtime} {session}"));
        } else if let AgentEvent::SessionReleased { session } | AgentEvent::Fault { session: Some(session), .. } = event {
            self.forget(&format!("release {runtime} {session}"));
        } else if let AgentEvent::Probed { turn, .. } = event {
            self.forget(&format!("probe {turn}"));
        } else if let AgentEvent::History { session, .. } = event {
            self.forget(&format!("history {runtime} {session}"));
        }
    }

    /// A showing and a closing of one notification undo each other.
    pub(crate) fn superseded(&mut self, effect: &Effect) {
        if let Effect::Notify { key } = effect {
            self.forget(&format!("close {key}"));
        } else if let Effect::CloseNotification { key } = effect {
            self.forget(&format!("notify {key}"));
        }
    }

    /// A notification was taken away.
    pub(crate) fn closed(&mut self, key: &str) {
        self.forget(&format!("close {key}"));
    }

    fn forget(&mut self, key: &str) {
        self.keys.remove(key);
    }

    /// Nothing is asked of a process that is gone.
    fn forget_runtime(&mut self, runtime: RuntimeId) {
        let whole = format!(" {runtime}");
        let part = format!(" {runtime} ");
        self.keys.retain(|key| {
            let of_runtime = ["spawn", "stop", "reap", "open", "release", "history"]
                .iter()
                .any(|verb| key.strip_prefix(verb).is_some_and(|rest| rest == whole || rest.starts_with(&part)));
            !of_runtime
        });
    }
}

#[cfg(test)]
mod tests;
