//! Opening a session, and letting go of it.

use serde_json::{Value, json, value::RawValue};
use turnkeep_model::{
    SessionId, ThreadRef,
    port::{AgentCommand, AgentEvent, ApprovalMode, Failure, FailureClass, GoalSpec, GoalStatus, Sandbox, SessionSettings},
};

use super::{
    Asked, Machine, Timer, parse, patience,
    session::{Session, Stage},
};
use crate::{
    codex::{items, wire, words},
    jsonrpc::RpcError,
    port::Clock,
};

/// Tries and milliseconds between them, while another process still holds the thread.
const TRIES: u32 = 12;
const TRY_AGAIN: u64 = 250;
/// Milliseconds from the promise to let go of a thread to its end.
const RELEASE: u64 = 10_000;

impl Machine {
    pub(super) fn open(
        &mut self,
        session: SessionId,
        thread: Option<ThreadRef>,
        fork_of: Option<ThreadRef>,
        folder: String,
        settings: SessionSettings,
        goal: Option<GoalSpec>,
    ) {
        if let Some(known) = self.sessions.get(&session) {
            // Asked for again while it is wanted: one answer is enough, and an open one is told again.
            if let (Stage::Open, Some(thread)) = (known.stage, known.thread.clone()) {
                let settings = known.settings.clone();
                self.event(AgentEvent::SessionOpened { session, thread, settings });
            }
            return;
        }
        if let Some(other) = thread.as_ref().and_then(|thread| self.threads.get(thread)) {
            let message = format!("The thread is already open in this Codex process, for session {other}.");
            let failure = words::plain(FailureClass::ThreadBusy, message);
            return self.event(AgentEvent::SessionOpenFailed { session, failure });
        }
        self.attempts += 1;
        if let Some(thread) = &thread {
            self.threads.insert(thread.clone(), session);
            if goal.as_ref().is_some_and(|goal| goal.status != GoalStatus::Active) {
                // A thread whose goal is active starts working as soon as it is loaded.
                let params = json!({"threadId": thread.as_str(), "status": "paused"});
                self.ask("thread/goal/set", &params, patience::QUICK, Asked::Hush);
            }
        }
        let mut entry = Session::new(self.attempts, thread, folder, settings);
        entry.goal = goal;
        entry.fork_of = fork_of;
        self.sessions.insert(session, entry);
        self.ask_open(session);
    }

    fn ask_open(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get(&session) else { return };
        let mut params = json!({"cwd": entry.folder});
        put(&mut params, "model", entry.settings.model.clone());
        put(&mut params, "approvalPolicy", entry.settings.approval_mode.map(approval_word));
        put(&mut params, "sandbox", entry.settings.sandbox.map(sandbox_word));
        let asked = Asked::Open { session, attempt: entry.attempt };
        let method = match (&entry.thread, &entry.fork_of) {
            (None, None) => "thread/start",
            (None, Some(of)) => {
                put(&mut params, "threadId", Some(of.as_str()));
                "thread/fork"
            }
            (Some(thread), _) => {
                put(&mut params, "threadId", Some(thread.as_str()));
                put(&mut params, "excludeTurns", Some(true));
                "thread/resume"
            }
        };
        self.ask(method, &params, patience::OPEN, asked);
    }

    pub(super) fn open_again(&mut self, session: SessionId, attempt: u64) {
        if self.at(session, attempt).is_some() {
            self.ask_open(session);
        }
    }

    pub(super) fn opened(&mut self, now: Clock, session: SessionId, attempt: u64, outcome: Result<&RawValue, RpcError>) {
        let opened = match outcome {
            Ok(raw) => parse::<wire::ThreadOpened>(raw).filter(|opened| !opened.thread.id.is_empty()).ok_or_else(|| {
                words::plain(
                    FailureClass::Protocol,
                    "Codex opened a thread without saying its id, so it could not be found again.",
                )
            }),
            Err(error) => Err(words::of_refusal(&error, "open the thread")),
        };
        let Some(entry) = self.at(session, attempt) else {
            if let Ok(opened) = opened {
                self.forget(&opened.thread.id);
            }
            return;
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                if let (FailureClass::ThreadBusy, Stage::Opening { tries }) = (&failure.class, entry.stage)
                    && tries < TRIES
                {
                    entry.stage = Stage::Opening { tries: tries + 1 };
                    return self.timers.set(now + TRY_AGAIN, Timer::OpenAgain { session, attempt });
                }
                return self.open_failed(now, session, failure);
            }
        };
        let releasing = matches!(entry.stage, Stage::Releasing { .. });
        let thread = ThreadRef(opened.thread.id);
        entry.settings = SessionSettings {
            model: opened.model,
            effort: opened.reasoning_effort,
            approval_mode: opened.approval_policy.as_deref().and_then(approval_mode),
            sandbox: opened.sandbox.as_ref().and_then(|kind| sandbox(&kind.r#type)),
        };
        entry.model_provider = opened.model_provider.unwrap_or_default();
        entry.active = opened.thread.status.r#type == "active";
        let previous = entry.thread.replace(thread.clone());
        let (settings, goal) = (entry.settings.clone(), entry.goal.take());
        if let Some(previous) = previous {
            self.threads.remove(&previous);
        }
        self.threads.insert(thread.clone(), session);
        if releasing {
            self.unhold(now, session);
            return self.release_now(session);
        }
        if let Some(entry) = self.sessions.get_mut(&session) {
            entry.goals_asked = u32::from(goal.is_some());
        }
        self.event(AgentEvent::SessionOpened { session, thread: thread.clone(), settings });
        // Before it counts as open: what is said here of an unloading is about an earlier loading.
        self.unhold(now, session);
        if let Some(entry) = self.sessions.get_mut(&session)
            && matches!(entry.stage, Stage::Opening { .. })
        {
            entry.stage = Stage::Open;
        }
        if let Some(goal) = goal {
            self.ask_goal(session, &thread, Some(goal));
        }
    }

    pub(super) fn open_failed(&mut self, now: Clock, session: SessionId, failure: Failure) {
        self.unhold(now, session);
        let Some(entry) = self.sessions.remove(&session) else { return };
        if let Some(thread) = &entry.thread {
            self.threads.remove(thread);
        }
        for command in entry.deferred {
            self.refuse(command);
        }
        self.event(match entry.stage {
            Stage::Releasing { .. } => AgentEvent::SessionReleased { session },
            Stage::Opening { .. } | Stage::Open => AgentEvent::SessionOpenFailed { session, failure },
        });
    }

    /// Nobody wants this thread any more, unless it is being opened anew.
    fn forget(&mut self, thread: &str) {
        if self.session_of(thread).is_some() {
            return;
        }
        self.ask("thread/unsubscribe", &json!({"threadId": thread}), patience::QUICK, Asked::Forget);
    }

    // ---- letting go

    pub(super) fn release(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get_mut(&session) else {
            return self.event(AgentEvent::SessionReleased { session });
        };
        match entry.stage {
            Stage::Releasing { .. } => {}
            Stage::Opening { .. } => entry.stage = Stage::Releasing { asked: false },
            Stage::Open => {
                entry.stage = Stage::Releasing { asked: false };
                self.release_now(session);
            }
        }
    }

    /// Go on with a release, unless a turn still runs: its end would not be heard any more.
    pub(super) fn release_now(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let wanted = matches!(entry.stage, Stage::Releasing { asked: false });
        let (Some(thread), true, false) = (entry.thread.clone(), wanted, entry.busy()) else { return };
        entry.stage = Stage::Releasing { asked: true };
        let attempt = entry.attempt;
        let params = json!({"threadId": thread.as_str()});
        if self.attached() {
            // What runs in the background there may be another client's.
            return self.ask("thread/unsubscribe", &params, patience::QUICK, Asked::Unsubscribe { session, attempt });
        }
        // Requests are worked on side by side, so the second waits for the answer to the first.
        self.ask("thread/backgroundTerminals/clean", &params, patience::QUICK, Asked::Clean { session, attempt });
    }

    /// What still ran in the thread is gone.
    pub(super) fn cleaned(&mut self, session: SessionId, attempt: u64) {
        let Some(entry) = self.at(session, attempt) else { return };
        entry.cleaning = false;
        if let (Stage::Releasing { asked: true }, Some(thread)) = (entry.stage, entry.thread.clone()) {
            let params = json!({"threadId": thread.as_str()});
            self.ask("thread/unsubscribe", &params, patience::QUICK, Asked::Unsubscribe { session, attempt });
        }
        self.run_deferred(session);
    }

    pub(super) fn run_deferred(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let deferred: Vec<AgentCommand> = std::mem::take(&mut entry.deferred);
        for command in deferred {
            self.carry_out(command);
        }
    }

    pub(super) fn unsubscribed(&mut self, now: Clock, session: SessionId, attempt: u64, outcome: Result<&RawValue, RpcError>) {
        if self.at(session, attempt).is_none() {
            return;
        }
        match outcome.map(|raw| parse::<wire::Unsubscribed>(raw).unwrap_or_default()) {
            // Of a process of ours the thread is proven free; a server keeps it for as long as it likes.
            Ok(answer) if answer.status == "unsubscribed" && !self.attached() => {
                self.timers.set(now + RELEASE, Timer::ReleaseLate { session, attempt });
            }
            Ok(_) => self.released(session),
            Err(error) => {
                let failure = words::of_refusal(&error, "let go of the thread");
                if failure.class == FailureClass::ThreadNotFound {
                    self.released(session);
                } else {
                    self.fault(Some(session), failure);
                    self.release_failed(session);
                }
            }
        }
    }

    pub(super) fn release_late(&mut self, session: SessionId, attempt: u64) {
        let Some(entry) = self.at(session, attempt) else { return };
        if entry.unloaded {
            return self.released(session);
        }
        self.fault(Some(session), words::timeout("let go of the thread"));
        self.release_failed(session);
    }

    /// It is still held; another [`AgentCommand::ReleaseSession`] tries again.
    pub(super) fn release_failed(&mut self, session: SessionId) {
        if let Some(entry) = self.sessions.get_mut(&session) {
            entry.stage = Stage::Open;
        }
    }

    /// Codex has closed the thread: the last thing that is said of it.
    pub(super) fn thread_closed(&mut self, session: SessionId) {
        let gone = self.sessions.get(&session).is_some_and(|entry| {
            !matches!(entry.stage, Stage::Opening { .. }) && entry.turns.is_empty() && entry.starting.is_none()
        });
        if gone {
            self.released(session);
        }
    }

    fn released(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.remove(&session) else { return };
        if let Some(thread) = &entry.thread {
            self.threads.remove(thread);
        }
        self.children.retain(|_, parent| *parent != session);
        self.withdraw_questions(session, None);
        for command in entry.deferred {
            self.refuse(command);
        }
        self.event(AgentEvent::SessionReleased { session });
    }

    // ---- goals

    pub(super) fn set_goal(&mut self, session: SessionId, goal: Option<GoalSpec>) {
        let open = self.sessions.get_mut(&session).filter(|entry| entry.stage == Stage::Open);
        let Some((entry, thread)) = open.and_then(|entry| entry.thread.clone().map(|thread| (entry, thread))) else {
            let message = "The goal was not changed: the session is not open in Codex.";
            return self.fault(Some(session), words::plain(FailureClass::Other, message));
        };
        entry.goals_asked += 1;
        self.ask_goal(session, &thread, goal);
    }

    fn ask_goal(&mut self, session: SessionId, thread: &ThreadRef, goal: Option<GoalSpec>) {
        let Some(goal) = goal else {
            let params = json!({"threadId": thread.as_str()});
            return self.ask("thread/goal/clear", &params, patience::QUICK, Asked::Goal { session });
        };
        let mut params = json!({
            "threadId": thread.as_str(),
            "objective": goal.objective,
            "status": items::goal_word(goal.status),
        });
        put(&mut params, "tokenBudget", goal.token_budget);
        self.ask("thread/goal/set", &params, patience::QUICK, Asked::Goal { session });
    }

    pub(super) fn goal_answered(&mut self, session: SessionId, outcome: Result<&RawValue, RpcError>) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        entry.goals_asked = entry.goals_asked.saturating_sub(1);
        match outcome.map(parse::<wire::GoalAnswer>) {
            Ok(answer) => {
                let goal = answer.and_then(|answer| answer.goal).map(items::goal);
                self.goal_is(session, goal);
            }
            Err(error) => self.fault(Some(session), words::of_refusal(&error, "change the goal")),
        }
    }

    /// The goal as Codex tells it. While a change of ours is on its way, what is told is from before it.
    pub(super) fn goal_told(&mut self, thread: &str, goal: Option<GoalSpec>) {
        let Some(session) = self.session_of(thread) else { return };
        if self.sessions.get(&session).is_some_and(|entry| entry.goals_asked == 0) {
            self.goal_is(session, goal);
        }
    }

    /// Report a goal that is another one than was told last: Codex tells it again with every step.
    fn goal_is(&mut self, session: SessionId, goal: Option<GoalSpec>) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        if entry.goal_told.replace(goal.clone()) != Some(goal.clone()) {
            self.event(AgentEvent::GoalChanged { session, goal });
        }
    }

    /// What an opening that got no answer leaves behind.
    pub(super) fn open_timed_out(&mut self, now: Clock, session: SessionId, attempt: u64) {
        if self.at(session, attempt).is_some() {
            self.open_failed(now, session, words::timeout("open the thread"));
        }
    }
}

/// Add a member that has a value.
pub(super) fn put(params: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let (Some(members), Some(value)) = (params.as_object_mut(), value) {
        members.insert(name.to_owned(), value.into());
    }
}

pub(super) fn approval_word(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Always => "untrusted",
        ApprovalMode::OnRequest => "on-request",
        ApprovalMode::Never => "never",
    }
}

fn approval_mode(word: &str) -> Option<ApprovalMode> {
    match word {
        "untrusted" => Some(ApprovalMode::Always),
        "on-request" => Some(ApprovalMode::OnRequest),
        "never" => Some(ApprovalMode::Never),
        _ => None,
    }
}

fn sandbox_word(sandbox: Sandbox) -> &'static str {
    match sandbox {
        Sandbox::ReadOnly => "read-only",
        Sandbox::WriteFolder => "workspace-write",
        Sandbox::Full => "danger-full-access",
    }
}

/// The kind in a policy, which is spelled otherwise than the word that asks for it.
pub(super) fn policy_kind(sandbox: Sandbox) -> &'static str {
    match sandbox {
        Sandbox::ReadOnly => "readOnly",
        Sandbox::WriteFolder => "workspaceWrite",
        Sandbox::Full => "dangerFullAccess",
    }
}

fn sandbox(kind: &str) -> Option<Sandbox> {
    match kind {
        "readOnly" => Some(Sandbox::ReadOnly),
        "workspaceWrite" => Some(Sandbox::WriteFolder),
        "dangerFullAccess" => Some(Sandbox::Full),
        _ => None,
    }
}
