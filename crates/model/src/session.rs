//! What people and programs ask of a session: messages, goals, choices.

use crate::{
    change::Change,
    derive,
    effect::Effect,
    ids::{MessageId, ProviderId, SessionId, ThreadRef, TurnId},
    port::{AgentCommand, GoalSpec, GoalStatus, Goals, SessionSettings},
    rules::{Rules, takes_work},
    state::{
        AccountProblem, Attachment, Delivery, Keychain, NotificationKind, OpenDelay, Phase, QueuedMessage, Restarts, Session,
        TurnState,
    },
    supervisor::Supervisor,
};

impl<R: Rules> Supervisor<R> {
    pub(crate) fn create_session(
        &mut self,
        provider: ProviderId,
        folder: String,
        title: String,
        settings: SessionSettings,
        thread: Option<ThreadRef>,
    ) {
        // Two sessions on one thread would be two processes on it.
        let known = thread.as_ref().and_then(|t| {
            self.state.sessions.iter().find(|(_, s)| s.provider == provider && s.thread.as_ref() == Some(t)).map(|(id, _)| *id)
        });
        if let Some(session) = known {
            self.archive(session, false);
            return;
        }
        let Some(known) = self.state.providers.get(&provider) else { return };
        let history_owed = thread.is_some() && known.capabilities.threads;
        let entry = Session { thread, history_owed, ..self.fresh(provider, folder, title, settings) };
        self.commit(Change::SessionCreated { session: SessionId(self.state.next.session), entry });
    }

    /// A session that goes on from where another one is: what that one holds is held here too, and each has its own thread
    /// from here on.
    pub(crate) fn fork_session(&mut self, of: SessionId, title: String) {
        let Some(source) = self.state.sessions.get(&of).filter(|_| derive::can_fork(&self.state, of)) else { return };
        let entry = Session {
            fork_of: source.thread.clone(),
            commands: source.commands.clone(),
            preview: source.preview.clone(),
            plan: source.plan.clone(),
            ..self.fresh(source.provider.clone(), source.folder.clone(), title, source.settings.clone())
        };
        let session = SessionId(self.state.next.session);
        self.commit(Change::SessionCreated { session, entry });
        self.commit(Change::HistoryCopied { session, from: of });
    }

    fn fresh(&self, provider: ProviderId, folder: String, title: String, settings: SessionSettings) -> Session {
        Session {
            provider,
            folder,
            title,
            thread: None,
            settings,
            attachment: Attachment::Detached,
            queue: Vec::new(),
            undecided: Vec::new(),
            goal: None,
            goal_held: false,
            turn: None,
            last_turn: None,
            unread: false,
            seen_at: self.now.wall,
            history_owed: false,
            fork_of: None,
            commands: Vec::new(),
            archived: false,
            preview: String::new(),
            plan: Vec::new(),
            usage: Default::default(),
            created_at: self.now.wall,
            active_at: self.now.wall,
            open_failure: None,
            open_delay: OpenDelay::default(),
            restarts: Restarts::default(),
        }
    }

    pub(crate) fn send(&mut self, session: SessionId, message: MessageId, text: String) {
        if self.state.seen_messages.contains(&message) || !self.state.sessions.contains_key(&session) {
            return;
        }
        self.archive(session, false);
        let message = QueuedMessage { id: message, text, at: self.now.wall, delivery: Delivery::Queued };
        self.commit(Change::MessageQueued { session, message });
    }

    pub(crate) fn edit_queued(&mut self, session: SessionId, message: MessageId, text: String) {
        if self.waits(session, &message) {
            self.commit(Change::MessageEdited { session, message, text });
        }
    }

    pub(crate) fn remove_queued(&mut self, session: SessionId, message: MessageId) {
        if self.waits(session, &message) {
            self.commit(Change::MessageRemoved { session, message });
        }
    }

    /// A person ends what runs. A goal that we drive would begin the next turn at once: it pauses.
    pub(crate) fn interrupt_session(&mut self, session: SessionId) {
        let turns: Vec<TurnId> = derive::open_turns_of(&self.state, session).map(|(id, _)| id).collect();
        let Some(entry) = self.state.sessions.get(&session).filter(|_| !turns.is_empty()) else { return };
        if derive::goals(&self.state, entry) == Goals::Driven {
            self.pause_goal(session);
        }
        for turn in turns {
            self.interrupt(turn);
        }
    }

    pub(crate) fn set_goal(&mut self, session: SessionId, goal: Option<GoalSpec>) {
        let Some(entry) = self.state.sessions.get(&session) else { return };
        let goals = derive::goals(&self.state, entry);
        if goals == Goals::None || entry.goal == goal {
            return;
        }
        let attachment = entry.attachment.clone();
        let held = entry.goal_held;
        self.commit(Change::GoalSet { session, goal: goal.clone() });
        match attachment {
            _ if goals != Goals::Native || held => {}
            Attachment::Open { runtime } if self.state.runtimes.get(&runtime).is_some_and(|r| r.phase == Phase::Ready) => {
                let works = self.state.runtimes.get(&runtime).is_some_and(|r| takes_work(&self.rules, &self.state, runtime, r));
                let sleeps = goal.as_ref().is_none_or(|g| g.status != GoalStatus::Active);
                if works || sleeps {
                    self.ask(Effect::Command { runtime, command: AgentCommand::SetGoal { session, goal } });
                } else {
                    self.commit(Change::GoalHeld { session, held: true });
                }
            }
            // What was given along when it was asked to open is not the goal any more.
            Attachment::Opening { .. } => self.commit(Change::GoalHeld { session, held: true }),
            Attachment::Open { .. } | Attachment::Releasing { .. } | Attachment::Detached => {}
        }
    }

    pub(crate) fn pause_goal(&mut self, session: SessionId) {
        let Some(entry) = self.state.sessions.get(&session) else { return };
        if let Some(mut goal) = entry.goal.clone().filter(|g| g.status == GoalStatus::Active) {
            goal.status = GoalStatus::Paused;
            self.commit(Change::GoalSet { session, goal: Some(goal) });
        }
    }

    pub(crate) fn configure(&mut self, session: SessionId, settings: SessionSettings) {
        if self.state.sessions.get(&session).is_some_and(|s| s.settings != settings) {
            self.commit(Change::SessionConfigured { session, settings });
        }
    }

    pub(crate) fn rename(&mut self, session: SessionId, title: String) {
        if self.state.sessions.get(&session).is_some_and(|s| s.title != title) {
            self.commit(Change::SessionRenamed { session, title });
        }
    }

    pub(crate) fn archive(&mut self, session: SessionId, archived: bool) {
        if self.state.sessions.get(&session).is_some_and(|s| s.archived != archived) {
            self.commit(Change::SessionArchived { session, archived });
            if archived {
                self.leave_alone(session);
            }
        }
    }

    /// A person wants it tried again: the session, its processes, its account, the keychain.
    pub(crate) fn try_again(&mut self, session: SessionId) {
        let Some(entry) = self.state.sessions.get(&session) else { return };
        let provider = entry.provider.clone();
        if entry.open_failure.is_some() {
            self.commit(Change::SessionOpenFailed { session, failure: None });
        }
        self.forgive_session(session);
        let failed = |n: &NotificationKind| matches!(n, NotificationKind::RuntimeFailed { provider: p, .. } if *p == provider);
        self.close_notifications(failed);
        if let Some((account, entry)) = derive::current_account(&self.state, &provider) {
            let tries = matches!(entry.problem, Some(AccountProblem::Rejected(_))) && !entry.trial && entry.credential.is_some();
            self.forgive_account(account);
            if tries {
                self.commit(Change::AccountTried { account });
            }
        }
        match self.state.keychain {
            Keychain::Locked | Keychain::Absent { .. } => self.keychain_seen(Keychain::Unknown),
            Keychain::Unknown | Keychain::Unlocked => {}
        }
    }

    /// A person decides about messages of which nobody knows whether they arrived.
    pub(crate) fn resolve_unknown(&mut self, session: SessionId, resend: bool) {
        if self.state.sessions.get(&session).is_some_and(|s| !s.undecided.is_empty()) {
            self.commit(Change::UnknownResolved { session, resend });
        }
    }

    fn waits(&self, session: SessionId, message: &MessageId) -> bool {
        self.state.sessions.get(&session).is_some_and(|s| s.queue.iter().any(|m| m.id == *message))
    }

    /// Whether a turn of this session was given to an agent and has not ended.
    pub(crate) fn works(&self, session: SessionId) -> bool {
        derive::open_turns_of(&self.state, session).any(|(_, t)| t.state != TurnState::Probing)
    }
}
