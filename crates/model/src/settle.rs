//! The level-triggered rules. Each looks at what is true, not at what happened, so that news that is late, lost or
//! repeated does no harm; each is named after what it sees to. Together they run until nothing changes.

use crate::{
    change::Change,
    derive::{active_goal, can_start, current_account, goals, held_by, needs_runtime, open_turns_of, open_turns_on, server},
    effect::Effect,
    ids::{CredentialId, MessageId, ProviderId, RuntimeId, SessionId, TurnId},
    port::{AgentCommand, GoalSpec, GoalStatus, Goals, Sessions},
    rules::{Rules, takes_work},
    state::{
        AccountKind, AccountProblem, AfterStop, ApprovalState, Attachment, Delivery, Keychain, Phase, QueuedMessage, Runtime,
        Session, Turn, TurnState,
    },
    supervisor::Supervisor,
};

/// Milliseconds that an interrupted turn has to end before its runtime is stopped, when a quit's deadline has passed.
pub(crate) const INTERRUPT_GRACE: u64 = 5_000;

impl<R: Rules> Supervisor<R> {
    /// Everything that follows from what is true.
    pub(crate) fn settle(&mut self) {
        loop {
            let before = self.step.changes.len();
            self.keychain_is_shown();
            self.sign_ins_end();
            self.quit_hurries();
            self.silence_is_noted();
            self.idleness_is_noted();
            self.unneeded_runtimes_retire();
            self.lost_turns_end();
            for session in self.live.iter().copied().collect::<Vec<_>>() {
                self.goal_is_held(session);
                self.goal_goes_on(session);
                self.session_is_released(session);
                self.runtime_is_requested(session);
                self.session_is_opened(session);
                self.message_is_dispatched(session);
            }
            self.credentials_end();
            if self.step.changes.len() == before {
                break;
            }
        }
        self.ask_for_what_is_wanted();
    }

    /// An account whose credential cannot be read says why.
    fn keychain_is_shown(&mut self) {
        let trouble = match self.state.keychain {
            Keychain::Locked => Some(AccountProblem::KeychainLocked),
            Keychain::Absent { .. } => Some(AccountProblem::KeychainAbsent),
            Keychain::Unlocked => None,
            Keychain::Unknown => return,
        };
        let mut shown = Vec::new();
        for (id, account) in &self.state.accounts {
            let ours = matches!(account.problem, None | Some(AccountProblem::KeychainLocked | AccountProblem::KeychainAbsent));
            let concerned = account.credential.is_some() && crate::derive::needs_keychain(&account.kind);
            let problem = trouble.clone().filter(|_| concerned);
            if ours && account.problem != problem {
                shown.push((*id, problem));
            }
        }
        for (account, problem) in shown {
            self.commit(Change::AccountTroubled { account, problem });
        }
    }

    /// A sign-in does not outlast its time, or the application.
    fn sign_ins_end(&mut self) {
        let over = self.state.quit.is_some();
        let now = self.now.boot;
        let ended =
            self.state.sign_ins.iter().filter(|(_, s)| s.failure.is_none() && !s.cancelling && (over || s.deadline <= now));
        for sign_in in ended.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.commit(Change::SignInCancelling { sign_in });
        }
    }

    /// A quit waits for running turns, but not for a person, and not beyond its deadline.
    fn quit_hurries(&mut self) {
        let Some(quit) = self.state.quit else { return };
        let late = quit.deadline.is_some_and(|d| d <= self.now.boot);
        let too_late = quit.forced || quit.deadline.is_some_and(|d| d + INTERRUPT_GRACE <= self.now.boot);
        if too_late {
            // Cut off on purpose: that is what is said of them, also if their end is only seen at the next start. What runs
            // at a server of somebody else's is let go of, and goes on there.
            let cut_off = |t: &Turn| self.state.runtimes.get(&t.runtime).is_some_and(|r| server(&self.state, r).is_none());
            let running = self.state.turns.iter().filter(|(_, t)| !t.interrupting && t.state == TurnState::Started && cut_off(t));
            for turn in running.map(|(id, _)| *id).collect::<Vec<_>>() {
                self.commit(Change::TurnInterrupting { turn });
            }
            for runtime in self.state.runtimes.keys().copied().collect::<Vec<_>>() {
                self.retire(runtime, AfterStop::Quit);
            }
            return;
        }
        let asks = |turn: TurnId| self.state.approvals.values().any(|a| a.turn == turn && a.state == ApprovalState::Pending);
        let turns =
            self.state.turns.iter().filter(|(id, t)| !t.interrupting && t.state == TurnState::Started && (late || asks(**id)));
        for turn in turns.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.interrupt(turn);
        }
    }

    /// A runtime that is given no more work is stopped as soon as nothing runs on it.
    fn unneeded_runtimes_retire(&mut self) {
        let mut ends = Vec::new();
        for (id, runtime) in self.state.runtimes.iter().filter(|(_, r)| crate::derive::is_live(r)) {
            let idle = self.rules.may_retire(&self.state, *id);
            if let Some(failure) = &runtime.fault {
                if open_turns_on(&self.state, *id).all(|(_, t)| t.state == TurnState::Dispatched) {
                    ends.push((*id, AfterStop::CountFailure(failure.clone())));
                }
            } else if idle && self.state.quit.is_some() {
                ends.push((*id, AfterStop::Quit));
            } else if idle
                && (self.rules.is_stale(&self.state, *id, runtime) || self.has_no_session(runtime) || self.is_idle_for_long(*id))
            {
                ends.push((*id, AfterStop::Nothing));
            }
        }
        for (id, then) in ends {
            self.retire(id, then);
        }
    }

    /// A turn that was given to a server of somebody else's is asked about there and nowhere else: another process does not
    /// know its thread, and would say that the message never came. Where that server is not the one in use, or cannot be
    /// reached any more, what is known is said.
    fn lost_turns_end(&mut self) {
        if self.state.quit.is_some() {
            return;
        }
        let mut lost = Vec::new();
        for (id, turn) in self.state.turns.iter().filter(|(_, t)| t.state == TurnState::Probing) {
            let account = self.state.accounts.get(&turn.account);
            if account.is_some_and(|a| a.kind.server().is_none()) {
                continue;
            }
            let reachable = account.is_some_and(|a| can_start(&self.state, a) && a.restarts.given_up.is_none());
            let opens = self.state.sessions.get(&turn.session).is_some_and(|s| s.open_failure.is_none() && !s.archived);
            if !(reachable && opens && self.is_current(turn.account)) {
                lost.push(*id);
            }
        }
        for turn in lost {
            self.end_unresolved(turn);
        }
    }

    /// An old runtime, or one of an application that quits, starts no further turn for its goal.
    fn goal_is_held(&mut self, id: SessionId) {
        let Some((session, runtime)) = self.opened_by(id) else { return };
        let Some(goal) = active_goal(&self.state, session).filter(|_| !session.goal_held) else { return };
        let Some(process) = self.state.runtimes.get(&runtime).filter(|r| r.phase == Phase::Ready) else { return };
        if goals(&self.state, session) != Goals::Native || takes_work(&self.rules, &self.state, runtime, process) {
            return;
        }
        let goal = Some(GoalSpec { status: GoalStatus::Paused, ..goal.clone() });
        self.commit(Change::GoalHeld { session: id, held: true });
        self.ask(Effect::Command { runtime, command: AgentCommand::SetGoal { session: id, goal } });
    }

    /// A held goal goes on: with the next opening, or at once where the runtime is the right one.
    fn goal_goes_on(&mut self, id: SessionId) {
        let Some(session) = self.state.sessions.get(&id).filter(|s| s.goal_held) else { return };
        match session.attachment {
            Attachment::Detached => self.commit(Change::GoalHeld { session: id, held: false }),
            Attachment::Open { runtime } => {
                let works = self.state.runtimes.get(&runtime).is_some_and(|r| takes_work(&self.rules, &self.state, runtime, r));
                if works {
                    let goal = session.goal.clone();
                    self.commit(Change::GoalHeld { session: id, held: false });
                    self.ask(Effect::Command { runtime, command: AgentCommand::SetGoal { session: id, goal } });
                }
            }
            Attachment::Opening { .. } | Attachment::Releasing { .. } => {}
        }
    }

    /// Before a session goes to another runtime, its old one lets go of it.
    fn session_is_released(&mut self, id: SessionId) {
        let Some((session, runtime)) = self.opened_by(id) else { return };
        let Some(process) = self.state.runtimes.get(&runtime).filter(|r| r.phase == Phase::Ready) else { return };
        let moves = needs_runtime(&self.state, session) && !takes_work(&self.rules, &self.state, runtime, process);
        let put_away = session.archived && !needs_runtime(&self.state, session);
        if (moves || put_away) && !self.works(id) {
            self.commit(Change::SessionAttached { session: id, attachment: Attachment::Releasing { runtime } });
        }
    }

    /// A session that needs a runtime gets one started, if there is an account to start it for.
    fn runtime_is_requested(&mut self, id: SessionId) {
        let Some(session) = self.state.sessions.get(&id) else { return };
        if session.attachment != Attachment::Detached || !needs_runtime(&self.state, session) {
            return;
        }
        let provider = session.provider.clone();
        self.request_runtime(&provider, Some(id));
    }

    /// One that serves all sessions of the current account.
    pub(crate) fn request_shared_runtime(&mut self, provider: &ProviderId) {
        let many = self.state.providers.get(provider).is_some_and(|p| p.capabilities.sessions == Sessions::Many);
        if many && self.state.quit.is_none() {
            self.request_runtime(provider, None);
        }
    }

    fn request_runtime(&mut self, name: &ProviderId, id: Option<SessionId>) {
        let Some(provider) = self.state.providers.get(name) else { return };
        let Some((account_id, account)) = current_account(&self.state, name) else { return };
        let Some(credential) = account.credential.filter(|_| can_start(&self.state, account)) else { return };
        let found = account.kind.server().is_some() || matches!(provider.installed, crate::state::Installed::Found { .. });
        let alone = id.filter(|_| provider.capabilities.sessions == Sessions::One);
        let restarts = alone.and_then(|id| self.state.sessions.get(&id)).map_or(&account.restarts, |s| &s.restarts);
        let delayed = restarts.given_up.is_some() || restarts.not_before > self.now.boot;
        let in_the_way = |r: &Runtime| {
            if alone.is_some() {
                r.session == alone
            } else {
                // One process at a time refreshes a sign-in; an identity that is gone from it refreshes nothing.
                r.credential == credential
                    && (r.identity.as_ref().zip(account.identity.as_ref())).is_none_or(|(a, b)| a.fingerprint == b.fingerprint)
            }
        };
        if !found || delayed || self.state.runtimes.values().any(in_the_way) {
            return;
        }
        let entry = Runtime {
            provider: name.clone(),
            account: account_id,
            credential,
            session: alone,
            epoch: provider.epoch,
            phase: Phase::Starting,
            identity: None,
            fault: None,
            process: None,
            started_at: self.now.wall,
            version: None,
        };
        self.commit(Change::RuntimeRequested { runtime: RuntimeId(self.state.next.runtime), entry });
    }

    /// A session that needs a runtime is opened on the one that serves it.
    fn session_is_opened(&mut self, id: SessionId) {
        let Some(session) = self.state.sessions.get(&id) else { return };
        if session.attachment != Attachment::Detached
            || session.open_delay.not_before > self.now.boot
            || !needs_runtime(&self.state, session)
        {
            return;
        }
        let serves = |(rid, r): &(&RuntimeId, &Runtime)| {
            r.provider == session.provider
                && r.session.is_none_or(|only| only == id)
                && takes_work(&self.rules, &self.state, **rid, r)
        };
        if let Some(runtime) = self.state.runtimes.iter().find(serves).map(|(rid, _)| *rid) {
            self.commit(Change::SessionAttached { session: id, attachment: Attachment::Opening { runtime } });
        }
    }

    /// An idle session on a runtime of the current epoch is given its next message, or its goal's.
    fn message_is_dispatched(&mut self, id: SessionId) {
        let Some((session, runtime)) = self.opened_by(id) else { return };
        let Some(process) = self.state.runtimes.get(&runtime) else { return };
        if session.turn.is_some()
            || session.history_owed
            || session.open_delay.not_before > self.now.boot
            || !needs_runtime(&self.state, session)
            || !takes_work(&self.rules, &self.state, runtime, process)
        {
            return;
        }
        let message = match session.queue.first() {
            Some(message) => message.clone(),
            None if goals(&self.state, session) == Goals::Driven => {
                let Some(goal) = active_goal(&self.state, session) else { return };
                let message = QueuedMessage {
                    id: MessageId(format!("goal {id} {}", self.state.next.turn)),
                    text: goal.objective.clone(),
                    at: self.now.wall,
                    delivery: Delivery::Queued,
                };
                self.commit(Change::MessageQueued { session: id, message: message.clone() });
                message
            }
            None => return,
        };
        self.dispatch(id, runtime, message);
    }

    /// A credential that nobody has any more is owed a revocation; the person's own sign-in, and a server's, is only
    /// forgotten.
    fn credentials_end(&mut self) {
        let mut ends = Vec::new();
        for (id, credential) in self.state.credentials.iter().filter(|(_, c)| !c.owed_revocation) {
            let had = self.state.accounts.get(&credential.account).is_some_and(|a| a.credential == Some(*id));
            let coming = self.state.sign_ins.values().any(|s| s.credential == *id && s.failure.is_none());
            if !had && !coming && !self.is_used(*id) {
                ends.push((*id, credential.kind.is_revoked()));
            }
        }
        for (credential, revoked) in ends {
            self.commit(if revoked { Change::RevocationOwed { credential } } else { Change::CredentialForgotten { credential } });
        }
    }

    // ---- wishes ----------------------------------------------------------------------------

    /// What is wanted is a function of what is true; it is asked for when it begins to be wanted.
    fn ask_for_what_is_wanted(&mut self) {
        let wanted: Vec<_> = self.wanted().into_iter().filter_map(|e| Some((e.key()?, e))).collect();
        let keys = wanted.iter().map(|(key, _)| key.clone()).collect();
        for (key, effect) in wanted {
            if !self.asked.contains(&key) {
                self.ask(effect);
            }
        }
        self.asked = keys;
    }

    fn wanted(&self) -> Vec<Effect> {
        let state = &self.state;
        let mut wanted = Vec::new();
        for (id, r) in &state.runtimes {
            let runtime = *id;
            match &r.phase {
                Phase::Starting => wanted.push(Effect::Spawn {
                    runtime,
                    provider: r.provider.clone(),
                    account: r.account,
                    credential: r.credential,
                    kind: state.credentials.get(&r.credential).map_or(AccountKind::System, |c| c.kind.clone()),
                }),
                Phase::Ready => {}
                Phase::Retiring { .. } => {
                    wanted.push(Effect::Stop { runtime, force: state.quit.is_some_and(|q| q.forced) });
                }
                Phase::Orphan => wanted.push(Effect::Reap { runtime, process: r.process.clone() }),
            }
        }
        for id in &self.live {
            let Some(session) = state.sessions.get(id) else { continue };
            // Nothing is asked of a process that is being stopped, or that an earlier run left.
            if held_by(session).and_then(|r| state.runtimes.get(&r)).is_none_or(|r| r.phase != Phase::Ready) {
                continue;
            }
            match session.attachment {
                Attachment::Opening { runtime } => {
                    wanted.push(Effect::Open { runtime, command: self.opening(*id, session) });
                }
                Attachment::Releasing { runtime } if session.open_delay.not_before <= self.now.boot => {
                    wanted.push(Effect::Release { runtime, session: *id });
                }
                Attachment::Releasing { .. } => {}
                Attachment::Open { runtime } => {
                    wanted.extend(self.probe(*id, session, runtime));
                    wanted.extend(history(*id, session, runtime));
                }
                Attachment::Detached => {}
            }
        }
        let cancelled = state.sign_ins.iter().filter(|(_, s)| s.cancelling);
        wanted.extend(cancelled.map(|(id, _)| Effect::CancelSignIn { sign_in: *id }));
        let now = self.now.boot;
        for (id, c) in state.credentials.iter().filter(|(_, c)| c.owed_revocation && c.not_before <= now) {
            if self.rules.may_revoke(state, *id) && state.quit.is_none() {
                let (provider, kind) = (c.provider.clone(), c.kind.clone());
                wanted.push(Effect::Revoke { provider, account: c.account, credential: *id, kind });
            }
        }
        let hurried = |q: crate::state::Quit| q.forced && q.deadline.is_some_and(|d| d <= now);
        if state.quit.is_some_and(|q| hurried(q) || self.rules.may_exit(state)) {
            wanted.push(Effect::Exit);
        }
        wanted
    }

    fn opening(&self, id: SessionId, session: &Session) -> AgentCommand {
        let native = goals(&self.state, session) == Goals::Native;
        AgentCommand::OpenSession {
            session: id,
            thread: session.thread.clone(),
            fork_of: session.fork_of.clone().filter(|_| session.thread.is_none()),
            history: session.history_owed,
            folder: session.folder.clone(),
            settings: session.settings.clone(),
            goal: session.goal.clone().filter(|_| native),
        }
    }

    fn probe(&self, id: SessionId, session: &Session, runtime: RuntimeId) -> Vec<Effect> {
        let Some(thread) = &session.thread else { return Vec::new() };
        let asks = |(turn, message): (TurnId, &MessageId)| Effect::Probe {
            turn,
            runtime,
            command: AgentCommand::Probe { session: id, thread: thread.clone(), turn, message: message.clone() },
        };
        open_turns_of(&self.state, id)
            .filter(|(_, t)| t.state == TurnState::Probing)
            .filter_map(|(turn, t)| Some((turn, t.message.as_ref()?)))
            .map(asks)
            .collect()
    }

    // ---- parts -----------------------------------------------------------------------------

    fn opened_by(&self, id: SessionId) -> Option<(&Session, RuntimeId)> {
        let session = self.state.sessions.get(&id)?;
        matches!(session.attachment, Attachment::Open { .. }).then_some((session, held_by(session)?))
    }

    fn is_used(&self, credential: CredentialId) -> bool {
        self.state.runtimes.values().any(|r| r.credential == credential)
    }

    /// It serves one session only, and that one is put away.
    fn has_no_session(&self, runtime: &Runtime) -> bool {
        let away = |s: &Session| s.archived && !needs_runtime(&self.state, s);
        runtime.session.is_some_and(|id| self.state.sessions.get(&id).is_none_or(away))
    }
}

/// What its thread held before is asked for, of the process that has it open.
fn history(id: SessionId, session: &Session, runtime: RuntimeId) -> Option<Effect> {
    let thread = session.thread.clone().filter(|_| session.history_owed)?;
    Some(Effect::ReadHistory { runtime, command: AgentCommand::ReadHistory { session: id, thread } })
}
