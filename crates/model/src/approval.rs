//! Questions that a person must answer: once, and only while the turn runs.

use crate::{
    change::Change,
    derive,
    effect::Effect,
    ids::{ApprovalId, ProviderTurn, RequestKey, RuntimeId, SessionId, TurnId},
    port::{AgentCommand, Answer, Ask, Choice},
    rules::Rules,
    state::{Approval, ApprovalState, Asker, NotificationKind},
    supervisor::Supervisor,
};

impl<R: Rules> Supervisor<R> {
    pub(crate) fn approval_requested(
        &mut self,
        runtime: RuntimeId,
        session: SessionId,
        named: Option<ProviderTurn>,
        request: RequestKey,
        ask: Ask,
    ) {
        if !self.approvals(|a| a.runtime == runtime && a.request == request).is_empty() {
            return;
        }
        let approval = ApprovalId(self.state.next.approval);
        match self.asking_turn(runtime, session, named.as_ref()) {
            Some(turn) => {
                if let Some(named) = named {
                    self.rejoin(turn, runtime, &named);
                }
                let asked_at = self.now.wall;
                let entry = Approval { session, runtime, turn, request, ask, state: ApprovalState::Pending, asked_at };
                self.commit(Change::ApprovalRequested { approval, entry });
            }
            // It is for another client of that server to answer.
            None if self.state.runtimes.get(&runtime).is_some_and(|r| derive::server(&self.state, r).is_some()) => {}
            // Outside of any turn there is nobody to ask for; an agent must not wait for ever.
            None => {
                let answer = Answer::Choice(ask.choices.last().cloned().unwrap_or(Choice::Deny));
                self.ask(Effect::Command { runtime, command: AgentCommand::Answer { session, approval, request, answer } });
            }
        }
    }

    /// The first answer wins. One that the provider does not take is none.
    pub(crate) fn answer_approval(&mut self, id: ApprovalId, answer: Answer, by: Asker) {
        let Some(approval) = self.state.approvals.get(&id).filter(|a| a.state == ApprovalState::Pending) else { return };
        let choice = match &answer {
            Answer::Choice(choice) if !approval.ask.choices.contains(choice) => return,
            Answer::Choice(choice) => Some(choice.clone()),
            Answer::Answers(_) | Answer::Form(_) => None,
        };
        let (runtime, session, request) = (approval.runtime, approval.session, approval.request.clone());
        if !self.state.runtimes.get(&runtime).is_some_and(derive::is_live) {
            self.withdraw(id);
            return;
        }
        self.commit(Change::ApprovalAnswered { approval: id, choice, by, at: self.now.wall });
        self.ask(Effect::Command { runtime, command: AgentCommand::Answer { session, approval: id, request, answer } });
        self.close_notification_of(id);
    }

    /// Answered or withdrawn at the provider.
    pub(crate) fn approval_resolved(&mut self, runtime: RuntimeId, request: &RequestKey) {
        for approval in self.approvals(|a| a.runtime == runtime && a.request == *request && a.state == ApprovalState::Pending) {
            self.withdraw(approval);
        }
    }

    /// Nobody needs an answer any more.
    pub(crate) fn withdraw(&mut self, approval: ApprovalId) {
        self.commit(Change::ApprovalMoot { approval });
        self.close_notification_of(approval);
    }

    pub(crate) fn approvals(&self, wanted: impl Fn(&Approval) -> bool) -> Vec<ApprovalId> {
        self.state.approvals.iter().filter(|(_, a)| wanted(a)).map(|(id, _)| *id).collect()
    }

    fn asking_turn(&self, runtime: RuntimeId, session: SessionId, named: Option<&ProviderTurn>) -> Option<TurnId> {
        if let Some(turn) = named.and_then(|n| self.turns_named(runtime, session, n).into_iter().next()) {
            return Some(turn);
        }
        derive::open_turns_on(&self.state, runtime).find(|(_, t)| t.session == session).map(|(id, _)| id)
    }

    fn close_notification_of(&mut self, id: ApprovalId) {
        self.close_notifications(|kind| matches!(kind, NotificationKind::ApprovalNeeded { approval } if *approval == id));
    }
}
