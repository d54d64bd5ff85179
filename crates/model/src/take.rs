//! Which input means what: the one list.

use crate::{
    change::Change,
    input::Input,
    rules::Rules,
    state::{Phase, Quit},
    supervisor::Supervisor,
};

/// Milliseconds after a second quit in which the application goes, whatever still runs.
const FORCED_WITHIN: u64 = 1_500;

impl<R: Rules> Supervisor<R> {
    pub(crate) fn take(&mut self, input: Input) {
        match input {
            Input::Tick => {}
            Input::CreateSession { provider, folder, title, settings, thread } => {
                self.create_session(provider, folder, title, settings, thread);
            }
            Input::ForkSession { session, title } => self.fork_session(session, title),
            Input::Send { session, message, text } => self.send(session, message, text),
            Input::Steer { session, message, text } => self.steer(session, message, text),
            Input::EditQueued { session, message, text } => self.edit_queued(session, message, text),
            Input::RemoveQueued { session, message } => self.remove_queued(session, message),
            Input::Interrupt { session } => self.interrupt_session(session),
            Input::AnswerApproval { approval, answer, by } => self.answer_approval(approval, answer, by),
            Input::SetGoal { session, goal } => self.set_goal(session, goal),
            Input::SetSessionSettings { session, settings } => self.configure(session, settings),
            Input::Rename { session, title } => self.rename(session, title),
            Input::Archive { session, archived } => self.archive(session, archived),
            Input::MarkRead { session } => self.mark_read(session),
            Input::Seen { session } => self.seen(session),
            Input::TryAgain { session } => self.try_again(session),
            Input::ResolveUnknown { session, resend } => self.resolve_unknown(session, resend),
            Input::SignIn { provider, account, label, method, key } => {
                self.begin_sign_in(provider, account, label, method, key);
            }
            Input::CancelSignIn { sign_in } => self.cancel_sign_in(sign_in),
            Input::Attach { provider, address, label } => self.attach(provider, address, label),
            Input::SignOut { account, now } => self.sign_out(account, now),
            Input::UseAccount { account } => self.use_account(account),
            Input::RenameAccount { account, label } => {
                if self.state.accounts.get(&account).is_some_and(|a| a.label != label) {
                    self.commit(Change::AccountRenamed { account, label });
                }
            }
            Input::RemoveAccount { account } => self.remove_account(account),
            Input::ChangeSettings { settings } => {
                if self.state.settings != settings {
                    self.commit(Change::SettingsChanged { settings });
                }
            }
            Input::DismissNotification { key } => self.dismiss(key),
            Input::Quit { deadline_ms } => self.quit(deadline_ms),
            Input::CancelQuit => {
                // Where nothing is left, the end was asked for and comes: nothing may begin under it.
                if self.state.quit.is_some_and(|q| !q.forced) && !self.rules.may_exit(&self.state) {
                    self.commit(Change::QuitCancelled);
                }
            }
            Input::Consult { provider } => self.request_shared_runtime(&provider),

            Input::ProviderFound { provider, mut capabilities, installed } => {
                let known = self.state.providers.get(&provider);
                // What a running agent said of itself is nearer to the truth than what is known of all of its kind.
                let running = self.state.runtimes.values().any(|r| r.provider == provider && r.phase == Phase::Ready);
                if let Some(known) = known.filter(|p| running || p.introduced && p.installed == installed) {
                    capabilities.clone_from(&known.capabilities);
                }
                if known.is_none_or(|p| p.capabilities != capabilities || p.installed != installed) {
                    self.commit(Change::ProviderKnown { provider, capabilities, installed });
                }
            }
            Input::SystemAccount { provider, present } => self.system_account(provider, present),
            Input::SystemAssumed { provider } => self.system_assumed(provider),
            Input::Keychain { keychain } => self.keychain_seen(keychain),
            Input::Observed { credential, observation } => self.observe(credential, observation),
            Input::RuntimeStarted { runtime, process } => self.runtime_started(runtime, process),
            Input::RuntimeStartFailed { runtime, failure } => self.runtime_start_failed(runtime, failure),
            Input::Agent { runtime, event } => self.hear(runtime, event),
            Input::Heard { session, at } => self.heard(None, session, at),
            Input::RuntimeGone { runtime, closed } => self.runtime_gone(runtime, closed),
            Input::SignInStep { sign_in, step } => {
                if self.state.sign_ins.get(&sign_in).is_some_and(|s| s.failure.is_none() && !s.cancelling) {
                    self.commit(Change::SignInStepped { sign_in, step });
                }
            }
            Input::SignInEnded { sign_in, result } => self.sign_in_ended(sign_in, result),
            Input::Revoked { credential, result } => self.revoked(credential, result),
            Input::Probed { turn, found } => self.probed(turn, found),
            Input::NotificationShown { key } => {
                if self.state.notifications.get(&key).is_some_and(|n| n.state == crate::state::NotificationState::Raised) {
                    self.commit(Change::NotificationShown { key });
                }
            }
        }
    }

    /// The first one waits for running turns, at most until the deadline; the second one forces.
    fn quit(&mut self, deadline_ms: Option<u64>) {
        let now = self.now.boot;
        let quit = match self.state.quit {
            None => {
                let wait = deadline_ms.or(self.state.settings.quit_deadline.map(|s| s.saturating_mul(1000)));
                Quit { since: self.now.wall, deadline: wait.map(|ms| now.saturating_add(ms)), forced: false }
            }
            Some(quit) if !quit.forced => {
                // What was cut off does not go on by itself at the next start.
                let active: Vec<_> = self.state.turns.values().map(|t| t.session).collect();
                for session in active {
                    self.pause_goal(session);
                }
                Quit { deadline: Some(now + FORCED_WITHIN), forced: true, ..quit }
            }
            Some(_) => return,
        };
        self.commit(Change::QuitBegan { quit });
    }
}
