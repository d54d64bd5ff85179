//! What Codex reports by itself.

use serde_json::value::RawValue;
use turnkeep_model::{
    ItemId, ProviderTurn, SessionId,
    port::{AgentEvent, DeltaStream, ItemBody, TurnOutcome},
};

use super::{Machine, parse, session::Turn};
use crate::{
    codex::{items, wire, words},
    port::Clock,
};

/// Reports that say nothing that is not said elsewhere, or nothing that anyone here reads.
const PASSED_OVER: &[&str] = &[
    "account/gatewayOAuth/changed",
    "app/list/updated",
    "deprecationNotice",
    "fs/changed",
    "hook/completed",
    "hook/started",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "mcpServer/startupStatus/updated",
    "model/rerouted",
    "model/verification",
    "remoteControl/status/changed",
    "thread/archived",
    "thread/compacted",
    "thread/deleted",
    "thread/queue/changed",
    "thread/readState/changed",
    "thread/reverted",
    "thread/settings/updated",
    "thread/unarchived",
    "turn/moderationMetadata",
];

/// Methods that are counted by name; more kinds than this are counted together.
const NAMES: usize = 64;

impl Machine {
    pub(super) fn heard(&mut self, now: Clock, method: &str, params: &RawValue, line: &[u8]) {
        let understood = match method {
            "item/agentMessage/delta" => self.delta(DeltaStream::AgentMessage, params),
            "item/commandExecution/outputDelta" => self.delta(DeltaStream::CommandOutput, params),
            "item/reasoning/summaryTextDelta" => self.delta(DeltaStream::ReasoningSummary, params),
            "item/reasoning/summaryPartAdded" => self.summary_part(params),
            "item/reasoning/textDelta" => self.delta(DeltaStream::Reasoning, params),
            "item/plan/delta" => self.delta(DeltaStream::Plan, params),
            "item/started" => parse(params).map(|read| self.item_started(read)),
            "item/completed" => parse(params).map(|read| self.item_completed(read)),
            "turn/started" => parse(params).map(|read| self.turn_started(now, read, line)),
            "turn/completed" => parse(params).map(|read| self.turn_completed(read)),
            "turn/plan/updated" => parse(params).map(|read: wire::PlanUpdated| {
                let steps = items::plan(read.plan);
                self.tell(&read.thread_id, |session| AgentEvent::Plan { session, steps });
            }),
            "turn/diff/updated" => parse(params).map(|read: wire::DiffUpdated| {
                let (provider_turn, unified) = (ProviderTurn(read.turn_id), items::bounded(read.diff));
                self.tell(&read.thread_id, |session| AgentEvent::Diff { session, provider_turn, unified });
            }),
            "error" => parse(params).map(|read| self.turn_failing(read)),
            "thread/started" => parse(params).map(|read: wire::ThreadStarted| self.thread_started(read.thread)),
            "thread/status/changed" => parse(params).map(|read| self.status(&read)),
            "thread/closed" => parse(params).map(|read: wire::ThreadOnly| {
                if let Some(session) = self.session_of(&read.thread_id) {
                    self.thread_closed(session);
                }
            }),
            "thread/name/updated" => parse(params).map(|read: wire::ThreadName| {
                let title = read.thread_name.unwrap_or_default();
                self.tell(&read.thread_id, |session| AgentEvent::TitleChanged { session, title });
            }),
            "thread/goal/updated" => {
                parse(params).map(|read: wire::GoalUpdated| self.goal_told(&read.thread_id, Some(items::goal(read.goal))))
            }
            "thread/goal/cleared" => parse(params).map(|read: wire::ThreadOnly| self.goal_told(&read.thread_id, None)),
            "thread/tokenUsage/updated" => parse(params).map(|read: wire::UsageUpdated| {
                let usage = items::usage(&read.token_usage);
                self.tell(&read.thread_id, |session| AgentEvent::Usage { session, usage });
            }),
            "serverRequest/resolved" => self.resolved(params),
            "account/updated" => parse(params).map(|read| self.account_updated(&read)),
            "account/login/completed" => parse(params).map(|read| self.login_completed(&read)),
            "account/rateLimits/updated" => parse(params).map(|read| self.rate_limits_changed(&read)),
            "warning" | "guardianWarning" => parse(params).map(|read: wire::Warned| {
                let session = read.thread_id.as_deref().and_then(|thread| self.session_of(thread));
                if let Some(entry) = session.and_then(|session| self.sessions.get_mut(&session)) {
                    if entry.warned == read.message {
                        return;
                    }
                    entry.warned.clone_from(&read.message);
                }
                self.event(AgentEvent::Notice { session, text: read.message });
            }),
            "configWarning" => parse(params).map(|read: wire::ConfigWarned| {
                let parts = [Some(read.summary), read.details, read.path];
                let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
                self.event(AgentEvent::Notice { session: None, text });
            }),
            known if PASSED_OVER.contains(&known) => Some(()),
            other => return self.unknown(other),
        };
        if understood.is_none() {
            self.odd(&format!("a report ({method}) whose content could not be read"));
        }
    }

    /// Count a method of a newer Codex.
    pub(super) fn unknown(&mut self, method: &str) {
        let name: String = method.chars().take(100).collect();
        let full = self.unknown.len() >= NAMES && !self.unknown.contains_key(&name);
        *self.unknown.entry(if full { "others".to_owned() } else { name }).or_default() += 1;
    }

    /// Report about the session of a thread; other threads are nobody's business here.
    fn tell(&mut self, thread: &str, event: impl FnOnce(SessionId) -> AgentEvent) {
        if let Some(session) = self.session_of(thread) {
            self.event(event(session));
        }
    }

    // ---- turns

    fn turn_started(&mut self, now: Clock, read: wire::TurnOf, line: &[u8]) {
        let Some(session) = self.session_of(&read.thread_id) else { return };
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let name = ProviderTurn(read.turn.id);
        let known = entry.turns.contains_key(&name) || entry.ended.iter().any(|(ended, _)| *ended == name);
        if known || name.as_str().is_empty() {
            return;
        }
        if entry.starting.as_ref().is_some_and(|starting| starting.hold) {
            // The answer to our own start, which is on its way, says whose turn this is.
            entry.hold();
            if !entry.keep(line) {
                self.unhold(now, session);
            }
            return;
        }
        entry.turns.insert(name.clone(), Turn::of(None));
        self.event(AgentEvent::TurnStarted { session, turn: None, provider_turn: name });
    }

    /// A turn that began at a server before we listened, or at another client's wish.
    pub(super) fn learn(&mut self, session: SessionId, name: &ProviderTurn) {
        let attached = self.attached();
        let Some(entry) = self.sessions.get_mut(&session).filter(|_| attached && !name.as_str().is_empty()) else { return };
        if !entry.turns.contains_key(name) && !entry.ended.iter().any(|(ended, _)| ended == name) {
            entry.turns.insert(name.clone(), Turn::of(None));
            self.event(AgentEvent::TurnStarted { session, turn: None, provider_turn: name.clone() });
        }
    }

    fn turn_completed(&mut self, read: wire::TurnOf) {
        if read.turn.id.is_empty() {
            return self.odd("the end of a turn without a name");
        }
        let Some(session) = self.session_of(&read.thread_id) else { return };
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let standing = words::Standing {
            by_account: self.account.reaches(&entry.model_provider),
            signed_in: self.account.signed_in != Some(false),
        };
        let name = ProviderTurn(read.turn.id);
        let turn = entry.turns.get_mut(&name);
        let outcome = match read.turn.status.as_str() {
            "completed" => TurnOutcome::Completed,
            "interrupted" => TurnOutcome::Interrupted,
            "failed" => {
                let told = read.turn.error.map(|error| words::of_turn(&error, standing));
                let earlier = turn.as_ref().and_then(|turn| turn.error.clone());
                let silent = || words::of_turn(&wire::TurnError::default(), standing);
                TurnOutcome::Failed(told.or(earlier).unwrap_or_else(silent))
            }
            other => {
                let what = format!("the end of a turn with the status {other:?}, which is no end");
                return self.odd(&what);
            }
        };
        let answer = turn.and_then(|turn| turn.candidate.take()).filter(|_| outcome == TurnOutcome::Completed);
        if let Some(mut item) = answer {
            if let ItemBody::AgentMessage { final_answer, .. } = &mut item.body {
                *final_answer = true;
            }
            self.event(AgentEvent::ItemCompleted { session, provider_turn: name.clone(), item });
        }
        self.end_turn(session, name, outcome);
    }

    fn turn_failing(&mut self, read: wire::TurnFailing) {
        let Some(session) = self.session_of(&read.thread_id) else { return };
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let provider_turn = ProviderTurn(read.turn_id);
        if read.will_retry {
            let details = read.error.additional_details.filter(|details| !details.is_empty());
            let message = match details {
                Some(details) => format!("{} ({details})", read.error.message),
                None => read.error.message,
            };
            return self.event(AgentEvent::TurnRetrying { session, provider_turn, message });
        }
        let standing = words::Standing {
            by_account: self.account.reaches(&entry.model_provider),
            signed_in: self.account.signed_in != Some(false),
        };
        let failure = words::of_turn(&read.error, standing);
        match entry.turns.get_mut(&provider_turn) {
            // Its end follows, and tells it.
            Some(turn) => turn.error = Some(failure),
            None => self.fault(Some(session), failure),
        }
    }

    // ---- entries

    fn item_started(&mut self, read: wire::ItemOf) {
        let Some(session) = self.session_of(&read.thread_id) else { return };
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let name = ProviderTurn(read.turn_id);
        let starting = entry.starting.is_some();
        if !starting {
            self.learn(session, &name);
        }
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        if let Some(starting) = &entry.starting
            && read.item.client_id.as_deref() == Some(starting.message.as_str())
            && !name.as_str().is_empty()
        {
            // Our own message in a turn whose start was never answered.
            let turn = starting.turn;
            entry.starting = None;
            self.adopt(session, turn, name.clone());
        }
        let item = items::item(read.item);
        let mut superseded = Vec::new();
        if let Some(turn) = self.sessions.get_mut(&session).and_then(|entry| entry.turns.get_mut(&name)) {
            if matches!(item.body, ItemBody::AgentMessage { .. }) {
                superseded = turn.superseded(&item.id);
            }
            if !matches!(item.body, ItemBody::UserMessage { .. }) {
                turn.candidate = None;
            }
            turn.open.insert(item.id.clone(), item.clone());
        }
        for item in superseded {
            self.event(AgentEvent::ItemCompleted { session, provider_turn: name.clone(), item });
        }
        self.event(AgentEvent::ItemStarted { session, provider_turn: name, item });
    }

    fn item_completed(&mut self, read: wire::ItemOf) {
        let Some(session) = self.session_of(&read.thread_id) else { return };
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let name = ProviderTurn(read.turn_id);
        // Older models do not say which message is the answer: the last one of a completed turn is.
        let unsaid = read.item.kind == "agentMessage" && read.item.phase.is_none();
        let item = items::item(read.item);
        if let Some(turn) = entry.turns.get_mut(&name) {
            turn.open.remove(&item.id);
            if unsaid {
                turn.candidate = Some(item.clone());
            }
        }
        self.event(AgentEvent::ItemCompleted { session, provider_turn: name, item });
    }

    fn delta(&mut self, stream: DeltaStream, params: &RawValue) -> Option<()> {
        let read: wire::DeltaOf = parse(params)?;
        self.grow(&read.thread_id, read.turn_id, read.item_id, stream, read.delta);
        Some(())
    }

    /// Another paragraph of a summary begins.
    fn summary_part(&mut self, params: &RawValue) -> Option<()> {
        let read: wire::SummaryPart = parse(params)?;
        if read.summary_index > 0 {
            let gap = "\n\n".to_owned();
            self.grow(&read.thread_id, read.turn_id, read.item_id, DeltaStream::ReasoningSummary, gap);
        }
        Some(())
    }

    fn grow(&mut self, thread: &str, turn: String, item: String, stream: DeltaStream, text: String) {
        let Some(session) = self.session_of(thread) else { return };
        let item = ItemId(item);
        let entry = self.sessions.get_mut(&session);
        if let Some(turn) = entry.and_then(|entry| entry.turns.get_mut(&ProviderTurn(turn))) {
            turn.grow(&item, stream, &text);
        }
        self.event(AgentEvent::Delta { session, item, stream, text });
    }

    // ---- threads

    fn thread_started(&mut self, thread: wire::Thread) {
        let parent = thread.parent_thread_id.as_deref().and_then(|parent| {
            let parent = turnkeep_model::ThreadRef(parent.to_owned());
            self.threads.get(&parent).or_else(|| self.children.get(&parent)).copied()
        });
        if let Some(session) = parent
            && !thread.id.is_empty()
        {
            self.children.insert(turnkeep_model::ThreadRef(thread.id), session);
        }
    }

    fn status(&mut self, read: &wire::ThreadStatus) {
        let Some(session) = self.session_of(&read.thread_id) else { return };
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        entry.active = read.status.r#type == "active";
        entry.unloaded = read.status.r#type == "notLoaded";
        self.release_now(session);
    }
}
