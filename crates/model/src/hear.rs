//! What agents report. A report of a runtime that is not known, or about a session that it does not hold, is nothing:
//! late news are dropped here and nowhere else.

use crate::{
    change::Change,
    derive, diff,
    ids::{ItemId, ProviderTurn, RuntimeId, SessionId, ThreadRef, TurnId},
    port::{AgentEvent, Failure, FailureClass, GoalSpec, GoalStatus, Item, ItemBody, SessionSettings, TurnOutcome},
    rules::{Rules, takes_work},
    state::{AccountProblem, Attachment, OpenDelay, Phase, TurnState},
    supervisor::Supervisor,
};

/// How often a busy thread is tried again before a person is asked.
const OPEN_TRIES: u32 = 10;
/// Milliseconds before the first further try; doubled each time, up to [`LONGEST_OPEN_DELAY`].
const OPEN_DELAY: u64 = 100;
/// Milliseconds.
const LONGEST_OPEN_DELAY: u64 = 5_000;
/// Characters of a preview.
const PREVIEW: usize = 200;

impl<R: Rules> Supervisor<R> {
    pub(crate) fn hear(&mut self, runtime: RuntimeId, event: AgentEvent) {
        let Some(entry) = self.state.runtimes.get(&runtime).filter(|r| r.phase != Phase::Orphan) else { return };
        let (account, credential) = (entry.account, entry.credential);
        if let Some(failure) = transport_closed(&event) {
            self.runtime_closes(runtime, failure);
        }
        if let Some(session) = event.session() {
            self.heard(Some(runtime), session, self.now);
        }
        self.follow_commands(runtime, &event);
        let Some(entry) = self.state.runtimes.get(&runtime) else { return };
        let current = entry.phase == Phase::Ready && !self.rules.is_stale(&self.state, runtime, entry);
        match event {
            AgentEvent::Ready { version, identity } => self.runtime_ready(runtime, version, identity),
            AgentEvent::Introduced { capabilities, sign_in } => {
                let provider = entry.provider.clone();
                let known = self.state.providers.get(&provider);
                if known.is_some_and(|p| p.capabilities != capabilities || p.offers != sign_in) {
                    self.commit(Change::ProviderIntroduced { provider, capabilities, offers: sign_in });
                }
            }
            AgentEvent::Identity { identity } => {
                if current {
                    self.observe(credential, identity);
                }
            }
            AgentEvent::Models { models } => {
                let provider = entry.provider.clone();
                if self.state.providers.get(&provider).is_some_and(|p| p.models != models) {
                    self.commit(Change::ModelsListed { provider, models });
                }
            }
            AgentEvent::RateLimits { limits, plan } => {
                let known = self.state.accounts.get(&account);
                let refused = known.is_some_and(|a| matches!(a.problem, Some(AccountProblem::Rejected(_))));
                if known.is_some_and(|a| a.limits != limits) {
                    self.commit(Change::LimitsRead { account, limits, plan });
                }
                if current && refused {
                    self.verified(account);
                }
            }
            AgentEvent::SessionOpened { session, thread, settings } => self.opened(runtime, session, thread, settings),
            AgentEvent::SessionOpenFailed { session, failure } => self.open_failed(runtime, session, failure),
            AgentEvent::SessionReleased { session } => self.released(runtime, session),
            AgentEvent::TurnStarted { session, turn, provider_turn } if self.has_open(runtime, session) => {
                self.turn_started(runtime, session, turn, provider_turn);
            }
            AgentEvent::TurnRejected { session, turn, failure } => self.turn_rejected(runtime, session, turn, failure),
            AgentEvent::TurnRetrying { session, provider_turn, message } => {
                for turn in self.turns_named(runtime, session, &provider_turn) {
                    self.commit(Change::TurnRetrying { turn, message: Some(message.clone()) });
                }
            }
            AgentEvent::TurnEnded { session, provider_turn, outcome } => {
                self.turn_ended(runtime, session, &provider_turn, outcome);
            }
            AgentEvent::ItemStarted { session, provider_turn, item } => {
                self.item(runtime, session, &provider_turn, item, false);
            }
            AgentEvent::ItemCompleted { session, provider_turn, item } => {
                self.item(runtime, session, &provider_turn, item, true);
            }
            AgentEvent::Plan { session, steps } if self.has_open(runtime, session) => {
                self.commit(Change::PlanChanged { session, steps });
            }
            AgentEvent::Diff { session, provider_turn, unified } => {
                self.diffed(runtime, session, &provider_turn, &unified);
            }
            AgentEvent::History { session, result } if self.has_open(runtime, session) => self.history_came(session, result),
            AgentEvent::Usage { session, usage } if self.has_open(runtime, session) => {
                self.commit(Change::UsageCounted { session, usage });
                self.spend(session);
            }
            AgentEvent::ApprovalRequested { session, provider_turn, request, ask } if self.has_open(runtime, session) => {
                self.approval_requested(runtime, session, provider_turn, request, ask);
            }
            AgentEvent::ApprovalResolved { request, .. } => self.approval_resolved(runtime, &request),
            AgentEvent::Steered { session, turn, message } => self.steer_answered(session, turn, message, true),
            AgentEvent::SteerRefused { session, turn, message, .. } => self.steer_answered(session, turn, message, false),
            AgentEvent::GoalChanged { session, goal } if self.has_open(runtime, session) => self.goal_changed(session, goal),
            AgentEvent::TitleChanged { session, title } => {
                if self.state.sessions.get(&session).is_some_and(|s| s.title.is_empty()) {
                    self.rename(session, title);
                }
            }
            AgentEvent::Commands { session, commands } if self.has_open(runtime, session) => {
                if self.state.sessions.get(&session).is_some_and(|s| s.commands != commands) {
                    self.commit(Change::CommandsOffered { session, commands });
                }
            }
            AgentEvent::ThreadNamed { session, thread } => {
                let known = self.state.sessions.get(&session).and_then(|s| s.thread.as_ref());
                if self.has_open(runtime, session) && !thread.as_str().is_empty() && known != Some(&thread) {
                    self.commit(Change::ThreadNamed { session, thread });
                }
            }
            AgentEvent::Probed { turn, found, .. } => self.probed(turn, found),
            AgentEvent::Fault { session: Some(session), failure } => self.runtime_faulted(runtime, session, failure),
            // Of sessions that this runtime does not hold.
            AgentEvent::TurnStarted { .. }
            | AgentEvent::Plan { .. }
            | AgentEvent::Usage { .. }
            | AgentEvent::ApprovalRequested { .. }
            | AgentEvent::GoalChanged { .. }
            | AgentEvent::Commands { .. }
            // For the feed, or for whoever asked.
            | AgentEvent::Delta { .. }
            | AgentEvent::Threads { .. }
            | AgentEvent::History { .. }
            | AgentEvent::Notice { .. }
            | AgentEvent::Fault { session: None, .. }
            // Of processes that are not runtimes.
            | AgentEvent::SignInStep { .. }
            | AgentEvent::SignInEnded { .. }
            | AgentEvent::SignedOut { .. } => {}
        }
    }

    fn has_open(&self, by: RuntimeId, session: SessionId) -> bool {
        let attachment = self.state.sessions.get(&session).map(|s| &s.attachment);
        matches!(attachment, Some(Attachment::Open { runtime } | Attachment::Releasing { runtime }) if *runtime == by)
    }

    fn opened(&mut self, runtime: RuntimeId, session: SessionId, thread: ThreadRef, reported: SessionSettings) {
        let Some(entry) = self.state.sessions.get(&session) else { return };
        if entry.attachment != (Attachment::Opening { runtime }) {
            return;
        }
        let known = entry.thread.clone();
        let chosen = entry.settings.clone();
        // A fork that is the thread which it was made of would be two sessions on one thread.
        let same = known.is_none() && entry.fork_of.as_ref() == Some(&thread);
        if thread.as_str().is_empty() || same {
            let failure = Failure {
                class: FailureClass::Protocol,
                message: "The agent did not say how to find this session again, so it was closed. Try again, or report it to \
                          the agent's makers."
                    .to_owned(),
                detail: None,
            };
            self.commit(Change::SessionAttached { session, attachment: Attachment::Releasing { runtime } });
            self.commit(Change::SessionOpenFailed { session, failure: Some(failure) });
            return;
        }
        if known.as_ref() != Some(&thread) {
            self.commit(Change::ThreadNamed { session, thread });
        }
        // What nobody chose is what the provider chose.
        self.configure(
            session,
            SessionSettings {
                model: chosen.model.or(reported.model),
                effort: chosen.effort.or(reported.effort),
                approval_mode: chosen.approval_mode.or(reported.approval_mode),
                sandbox: chosen.sandbox.or(reported.sandbox),
            },
        );
        self.commit(Change::SessionAttached { session, attachment: Attachment::Open { runtime } });
    }

    fn open_failed(&mut self, runtime: RuntimeId, session: SessionId, failure: Failure) {
        let Some(entry) = self.state.sessions.get(&session) else { return };
        if entry.attachment != (Attachment::Opening { runtime }) {
            return;
        }
        // Its process is about to be proven gone, and that is what frees the session.
        if matches!(failure.class, FailureClass::TransportClosed(_)) {
            return;
        }
        let delay = self.busy_delay(session);
        self.commit(Change::SessionAttached { session, attachment: Attachment::Detached });
        let Some(process) = self.state.runtimes.get(&runtime) else { return };
        if !takes_work(&self.rules, &self.state, runtime, process) {
            return;
        }
        let account = process.account;
        if failure.class == FailureClass::SignedOut {
            self.rejected(account, failure);
        } else if let Some(delay) = delay.filter(|_| failure.class == FailureClass::ThreadBusy) {
            self.commit(Change::OpenDelayed { session, delay });
        } else {
            self.commit(Change::SessionOpenFailed { session, failure: Some(failure) });
        }
    }

    /// How long to wait for whoever holds the thread; `None` when that was long enough.
    pub(crate) fn busy_delay(&self, session: SessionId) -> Option<OpenDelay> {
        let tries = self.state.sessions.get(&session)?.open_delay.tries;
        let wait = OPEN_DELAY.saturating_mul(1 << tries.min(16)).min(LONGEST_OPEN_DELAY);
        (tries + 1 < OPEN_TRIES).then(|| OpenDelay { tries: tries + 1, not_before: self.now.boot + wait })
    }

    fn released(&mut self, by: RuntimeId, session: SessionId) {
        let attachment = self.state.sessions.get(&session).map(|s| s.attachment.clone());
        let free = match attachment {
            Some(Attachment::Releasing { runtime }) => runtime == by,
            // Unloaded by the agent itself.
            Some(Attachment::Open { runtime }) => runtime == by && !self.works(session),
            Some(Attachment::Opening { .. } | Attachment::Detached) | None => false,
        };
        if free {
            self.commit(Change::SessionAttached { session, attachment: Attachment::Detached });
            if self.state.sessions.get(&session).is_some_and(|s| s.open_delay != OpenDelay::default()) {
                self.commit(Change::OpenDelayed { session, delay: OpenDelay::default() });
            }
        }
    }

    /// What a thread held before it became a session here. Whatever comes of it, the session goes on afterwards.
    fn history_came(&mut self, session: SessionId, result: Result<Vec<(ProviderTurn, Item)>, Failure>) {
        if self.state.sessions.get(&session).is_none_or(|s| !s.history_owed) {
            return;
        }
        let (items, last) = match result {
            Ok(items) => {
                let last = items.iter().rev().find_map(|(_, item)| said(item)).filter(|text| !text.is_empty());
                (items, last)
            }
            // The next process is asked.
            Err(failure) if matches!(failure.class, FailureClass::TransportClosed(_)) => return,
            Err(failure) => {
                let body = ItemBody::Error {
                    failure: Failure {
                        class: failure.class,
                        message: "What was said before could not be read, so it is not shown here. The agent still has it."
                            .to_owned(),
                        detail: Some(failure.message),
                    },
                };
                (vec![(ProviderTurn::new(""), Item { id: ItemId::new("history"), body })], None)
            }
        };
        let mut turns = 0;
        let mut named: Option<ProviderTurn> = None;
        for (name, item) in items {
            if named.as_ref() != Some(&name) {
                turns += 1;
                named = Some(name);
            }
            let turn = TurnId(self.state.next.turn + turns - 1);
            self.commit(Change::ItemRecorded { session, turn, item, completed: true });
        }
        self.commit(Change::HistoryRead { session, turns });
        if let Some(preview) = last {
            self.commit(Change::PreviewChanged { session, preview });
        }
    }

    /// Told again and again while the turn goes on, and sometimes once more after its end: the last one counts.
    fn diffed(&mut self, runtime: RuntimeId, session: SessionId, named: &ProviderTurn, unified: &str) {
        let turn = self.turns_named(runtime, session, named).first().copied().or_else(|| {
            let last = self.state.sessions.get(&session).and_then(|s| s.last_turn.as_ref());
            last.filter(|t| t.provider_turn.as_ref() == Some(named) && self.has_open(runtime, session)).map(|t| t.turn)
        });
        if let Some(turn) = turn {
            self.commit(Change::TurnDiffed { session, turn, diff: diff::bounded(unified) });
        }
    }

    fn item(&mut self, runtime: RuntimeId, session: SessionId, named: &ProviderTurn, item: Item, completed: bool) {
        let mut turns = self.turns_named(runtime, session, named);
        // The first words may come before the answer that names the turn.
        let unnamed = derive::open_turns_of(&self.state, session)
            .find(|(_, t)| t.runtime == runtime && t.state == TurnState::Dispatched)
            .map(|(id, _)| id);
        turns.extend(unnamed.filter(|_| turns.is_empty()));
        // The last word about an entry may come after the turn's.
        let last = self.state.sessions.get(&session).and_then(|s| s.last_turn.as_ref());
        let ended = last.filter(|t| t.provider_turn.as_ref() == Some(named) && self.has_open(runtime, session)).map(|t| t.turn);
        turns.extend(ended.filter(|_| turns.is_empty()));
        let Some(turn) = turns.first().copied() else { return };
        if self.state.turns.get(&turn).is_some_and(|t| t.retrying.is_some()) {
            self.commit(Change::TurnRetrying { turn, message: None });
        }
        let said = said(&item);
        self.commit(Change::ItemRecorded { session, turn, item, completed });
        if let Some(preview) = said.filter(|p| completed && !p.is_empty()) {
            self.commit(Change::PreviewChanged { session, preview });
        }
    }

    /// The agent's word about its goal. That a goal which is held there has stopped is our own doing.
    fn goal_changed(&mut self, session: SessionId, goal: Option<GoalSpec>) {
        let Some(entry) = self.state.sessions.get(&session) else { return };
        let echo = entry.goal_held && goal.as_ref().is_some_and(|g| matches!(g.status, GoalStatus::Paused | GoalStatus::Active));
        if !echo && entry.goal != goal {
            self.commit(Change::GoalSet { session, goal });
        }
    }

    /// A goal that we drive stops at its budget.
    fn spend(&mut self, session: SessionId) {
        let Some(entry) = self.state.sessions.get(&session) else { return };
        if derive::goals(&self.state, entry) != crate::port::Goals::Driven {
            return;
        }
        let Some(goal) = derive::active_goal(&self.state, entry) else { return };
        if goal.token_budget.is_some_and(|budget| entry.usage.total_tokens >= budget) {
            let goal = Some(GoalSpec { status: GoalStatus::Limited, ..goal.clone() });
            self.commit(Change::GoalSet { session, goal });
        }
    }
}

/// Whether the event says that its process cannot be talked to any more.
fn transport_closed(event: &AgentEvent) -> Option<&Failure> {
    let (AgentEvent::TurnEnded { outcome: TurnOutcome::Failed(failure), .. }
    | AgentEvent::SessionOpenFailed { failure, .. }
    | AgentEvent::TurnRejected { failure, .. }
    | AgentEvent::SteerRefused { failure, .. }
    | AgentEvent::Fault { failure, .. }) = event
    else {
        return None;
    };
    matches!(failure.class, FailureClass::TransportClosed(_)).then_some(failure)
}

/// The first line of an answer.
fn said(item: &Item) -> Option<String> {
    if let ItemBody::AgentMessage { text, final_answer: true } = &item.body { Some(first_line(text)) } else { None }
}

fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().chars().take(PREVIEW).collect()
}
