//! The small types, one to one.

use super::{FailureClass, SignInStep, TurnOutcome, dto, port, state};
use crate::{display, words};

/// What a screen acts on, and the words for the rest.
#[must_use]
pub fn failure(failure: &port::Failure) -> dto::Failure {
    let (code, record) = match &failure.class {
        FailureClass::SignedOut => ("signedOut", None),
        FailureClass::AccountChanged => ("accountChanged", None),
        FailureClass::UsageLimit => ("usageLimit", None),
        FailureClass::RateLimit => ("rateLimit", None),
        FailureClass::Overloaded => ("overloaded", None),
        FailureClass::ContextWindow => ("contextWindow", None),
        FailureClass::ModelNotFound => ("modelNotFound", None),
        FailureClass::Network => ("network", None),
        FailureClass::Timeout => ("timeout", None),
        FailureClass::Unsupported => ("unsupported", None),
        FailureClass::ThreadNotFound => ("threadNotFound", None),
        FailureClass::ThreadBusy => ("threadBusy", None),
        FailureClass::StartFailed => ("startFailed", None),
        FailureClass::KeychainLocked => ("keychainLocked", None),
        FailureClass::KeychainAbsent => ("keychainAbsent", None),
        FailureClass::TransportClosed(record) => ("transportClosed", Some(record)),
        FailureClass::Protocol => ("protocol", None),
        FailureClass::Other => ("other", None),
    };
    let detail = match (record, &failure.detail) {
        (Some(record), Some(detail)) => Some(format!("{}\n{detail}", transport(record))),
        (Some(record), None) => Some(transport(record)),
        (None, detail) => detail.clone(),
    };
    dto::Failure { code: code.to_owned(), message: failure.message.clone(), detail }
}

/// The record of a closed transport, one fact a line.
fn transport(record: &port::TransportRecord) -> String {
    let mut lines = vec!["transport_closed_before_turn_completed".to_owned()];
    let mut fact = |name: &str, value: Option<String>| {
        lines.extend(value.filter(|value| !value.is_empty()).map(|value| format!("{name}: {value}")));
    };
    fact("process", record.pid.map(|pid| format!("pid {pid}, {}", record.status)));
    fact("exit code", record.exit_code.map(|code| code.to_string()));
    fact("signal", record.signal.map(|signal| signal.to_string()));
    fact("closed", Some(format!("{} ({})", record.stream, record.how)).filter(|_| !record.stream.is_empty()));
    fact("last line without line end", record.trailing_flushed.then(|| format!("read, {} bytes", record.trailing_len)));
    fact("thread", record.thread.as_ref().map(ToString::to_string));
    fact("turn", record.turn.map(|turn| format!("{turn}, {}", record.turn_state)));
    if !record.stderr.is_empty() {
        lines.push("last lines of standard error:".to_owned());
        lines.extend(record.stderr.iter().map(|line| format!("  {line}")));
    }
    lines.join("\n")
}

pub(super) fn outcome(outcome: &TurnOutcome) -> (dto::Outcome, Option<dto::Failure>) {
    match outcome {
        TurnOutcome::Completed => (dto::Outcome::Completed, None),
        TurnOutcome::Interrupted => (dto::Outcome::Interrupted, None),
        TurnOutcome::Failed(why) => (dto::Outcome::Failed, Some(failure(why))),
        TurnOutcome::Lost => (dto::Outcome::Lost, Some(lost())),
        TurnOutcome::Unknown => (dto::Outcome::Unknown, None),
    }
}

/// The machine keeps no words for it.
fn lost() -> dto::Failure {
    dto::Failure { code: "lost".to_owned(), message: words::LOST_TURN.to_owned(), detail: None }
}

pub(super) fn installed(installed: &state::Installed) -> dto::Installed {
    match installed {
        state::Installed::Unknown => dto::Installed::Unknown,
        state::Installed::Found { path, version } => dto::Installed::Found { path: path.clone(), version: version.clone() },
        state::Installed::Missing { searched } => dto::Installed::Missing { searched: searched.clone() },
    }
}

pub(super) fn keychain(keychain: &state::Keychain) -> dto::Keychain {
    match keychain {
        state::Keychain::Unknown => dto::Keychain::Unknown,
        state::Keychain::Unlocked => dto::Keychain::Unlocked,
        state::Keychain::Locked => dto::Keychain::Locked,
        state::Keychain::Absent { why } => dto::Keychain::Absent { why: why.clone() },
    }
}

pub(super) fn sign_in(id: u64, sign_in: &state::SignIn) -> dto::SignIn {
    let (url, code) = match &sign_in.step {
        Some(SignInStep::OpenUrl { url }) => (Some(url.clone()), None),
        Some(SignInStep::TypeCode { url, code }) => (Some(url.clone()), Some(code.clone())),
        None => (None, None),
    };
    dto::SignIn {
        id: id.to_string(),
        provider: sign_in.provider.to_string(),
        account: sign_in.account.to_string(),
        method: sign_in_method(&sign_in.method),
        url,
        code,
        failure: sign_in.failure.as_ref().map(failure),
    }
}

pub(super) fn sign_in_method(method: &port::SignInMethod) -> dto::SignInMethod {
    match method {
        port::SignInMethod::Browser => dto::SignInMethod::Browser,
        port::SignInMethod::DeviceCode => dto::SignInMethod::DeviceCode,
        port::SignInMethod::ApiKey => dto::SignInMethod::ApiKey,
        port::SignInMethod::Advertised { .. } => dto::SignInMethod::Advertised,
        port::SignInMethod::Elsewhere => dto::SignInMethod::Elsewhere,
    }
}

pub(super) fn sign_in_offer(offer: &port::SignInOffer) -> dto::SignInOffer {
    dto::SignInOffer {
        id: offer.id.clone(),
        name: offer.name.clone(),
        description: offer.description.clone(),
        needs_key: offer.by == port::OfferedBy::Key,
        command: match &offer.by {
            port::OfferedBy::Terminal { command } => Some(command.clone()),
            port::OfferedBy::Agent | port::OfferedBy::Key => None,
        },
    }
}

pub(super) fn model(model: &port::Model) -> dto::Model {
    dto::Model {
        id: model.id.clone(),
        name: model.name.clone(),
        description: model.description.clone(),
        efforts: model.efforts.clone(),
        default_effort: model.default_effort.clone(),
        is_default: model.is_default,
    }
}

pub(super) fn rate_limit(limit: &port::RateLimit) -> dto::RateLimit {
    dto::RateLimit {
        window_minutes: limit.window_minutes,
        used_percent: limit.used_percent,
        resets_at: limit.resets_at.map(|seconds| seconds.saturating_mul(1000)),
    }
}

pub(super) fn usage(usage: &port::Usage) -> dto::Usage {
    dto::Usage {
        total_tokens: usage.total_tokens,
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        output_tokens: usage.output_tokens,
        reasoning_tokens: usage.reasoning_tokens,
        context_tokens: usage.context_tokens,
        context_window: usage.context_window,
    }
}

pub(super) fn goal(goal: &port::GoalSpec) -> dto::Goal {
    dto::Goal {
        objective: goal.objective.clone(),
        status: match goal.status {
            port::GoalStatus::Active => dto::GoalStatus::Active,
            port::GoalStatus::Paused => dto::GoalStatus::Paused,
            port::GoalStatus::Blocked => dto::GoalStatus::Blocked,
            port::GoalStatus::Limited => dto::GoalStatus::Limited,
            port::GoalStatus::Done => dto::GoalStatus::Done,
        },
        token_budget: goal.token_budget,
    }
}

pub(super) fn plan_step(step: &port::PlanStep) -> dto::PlanStep {
    dto::PlanStep {
        text: step.text.clone(),
        status: match step.status {
            port::PlanStepStatus::Pending => dto::PlanStepStatus::Pending,
            port::PlanStepStatus::Running => dto::PlanStepStatus::Running,
            port::PlanStepStatus::Done => dto::PlanStepStatus::Done,
        },
    }
}

pub(super) fn queued(message: &state::QueuedMessage) -> dto::QueuedMessage {
    dto::QueuedMessage {
        id: message.id.to_string(),
        text: message.text.clone(),
        at: message.at,
        delivery: match message.delivery {
            state::Delivery::Queued => dto::Delivery::Queued,
            state::Delivery::Sending => dto::Delivery::Sending,
            state::Delivery::Admitted => dto::Delivery::Admitted,
            state::Delivery::NotAdmitted => dto::Delivery::NotAdmitted,
            state::Delivery::Unknown => dto::Delivery::Unknown,
        },
    }
}

pub(super) fn session_settings(settings: &port::SessionSettings) -> dto::SessionSettings {
    dto::SessionSettings {
        model: settings.model.clone(),
        effort: settings.effort.clone(),
        approval_mode: settings.approval_mode.map(|mode| match mode {
            port::ApprovalMode::Always => dto::ApprovalMode::Always,
            port::ApprovalMode::OnRequest => dto::ApprovalMode::OnRequest,
            port::ApprovalMode::Never => dto::ApprovalMode::Never,
        }),
        sandbox: settings.sandbox.map(|sandbox| match sandbox {
            port::Sandbox::ReadOnly => dto::Sandbox::ReadOnly,
            port::Sandbox::WriteFolder => dto::Sandbox::WriteFolder,
            port::Sandbox::Full => dto::Sandbox::Full,
        }),
    }
}

/// What a screen chose for a session, in the machine's terms.
#[must_use]
pub fn session_settings_from(settings: dto::SessionSettings) -> port::SessionSettings {
    port::SessionSettings {
        model: settings.model,
        effort: settings.effort,
        approval_mode: settings.approval_mode.map(|mode| match mode {
            dto::ApprovalMode::Always => port::ApprovalMode::Always,
            dto::ApprovalMode::OnRequest => port::ApprovalMode::OnRequest,
            dto::ApprovalMode::Never => port::ApprovalMode::Never,
        }),
        sandbox: settings.sandbox.map(|sandbox| match sandbox {
            dto::Sandbox::ReadOnly => port::Sandbox::ReadOnly,
            dto::Sandbox::WriteFolder => port::Sandbox::WriteFolder,
            dto::Sandbox::Full => port::Sandbox::Full,
        }),
    }
}

pub(super) fn approval(id: u64, approval: &state::Approval) -> dto::Approval {
    dto::Approval {
        id: id.to_string(),
        session: approval.session.to_string(),
        turn: approval.turn.to_string(),
        body: ask(&approval.ask.body),
        reason: approval.ask.reason.clone(),
        choices: approval.ask.choices.iter().map(choice).collect(),
        item: approval.ask.item.as_ref().map(ToString::to_string),
        state: match &approval.state {
            state::ApprovalState::Pending => dto::ApprovalState::Pending,
            state::ApprovalState::Answered { choice, by, at } => dto::ApprovalState::Answered {
                choice: choice.as_ref().map(|choice| self::choice(choice).kind),
                by: asker(*by),
                at: *at,
            },
            state::ApprovalState::Moot => dto::ApprovalState::Moot,
        },
        asked_at: approval.asked_at,
    }
}

fn asker(asker: state::Asker) -> dto::Asker {
    match asker {
        state::Asker::Window => dto::Asker::Window,
        state::Asker::Tray => dto::Asker::Tray,
        state::Asker::Notification => dto::Asker::Notification,
        state::Asker::Cli => dto::Asker::Cli,
        state::Asker::Api => dto::Asker::Api,
    }
}

fn choice(choice: &port::Choice) -> dto::Choice {
    let (kind, rule) = match choice {
        port::Choice::Allow => (dto::ChoiceKind::Allow, Vec::new()),
        port::Choice::AllowForSession => (dto::ChoiceKind::AllowForSession, Vec::new()),
        port::Choice::AllowAlways { rule } => (dto::ChoiceKind::AllowAlways, rule.clone()),
        port::Choice::Deny => (dto::ChoiceKind::Deny, Vec::new()),
        port::Choice::DenyAndStop => (dto::ChoiceKind::DenyAndStop, Vec::new()),
    };
    dto::Choice { kind, rule }
}

fn ask(body: &port::AskBody) -> dto::Ask {
    match body {
        port::AskBody::Command { command, cwd, may_run_unsandboxed } => dto::Ask::Command {
            command: command.clone(),
            display: display::visible(command),
            cwd: cwd.clone(),
            may_run_unsandboxed: *may_run_unsandboxed,
        },
        port::AskBody::FileChange { changes, grant_root } => {
            dto::Ask::FileChange { changes: changes.iter().map(file_change).collect(), grant_root: grant_root.clone() }
        }
        port::AskBody::Permissions { network, read, write } => {
            dto::Ask::Permissions { network: *network, read: read.clone(), write: write.clone() }
        }
        port::AskBody::Questions { questions } => dto::Ask::Questions { questions: questions.iter().map(question).collect() },
        port::AskBody::Form { server, message, schema } => {
            dto::Ask::Form { server: server.clone(), message: message.clone(), schema: schema.clone() }
        }
    }
}

fn question(question: &port::Question) -> dto::Question {
    dto::Question {
        id: question.id.clone(),
        header: question.header.clone(),
        text: question.text.clone(),
        options: question
            .options
            .iter()
            .map(|(label, description)| dto::QuestionOption { label: label.clone(), description: description.clone() })
            .collect(),
        free_text: question.free_text,
        secret: question.secret,
    }
}

pub(crate) fn file_change(change: &port::FileChange) -> dto::FileChange {
    let (kind, moved_to) = match &change.kind {
        port::FileChangeKind::Added => (dto::FileChangeKind::Added, None),
        port::FileChangeKind::Deleted => (dto::FileChangeKind::Deleted, None),
        port::FileChangeKind::Updated { moved_to } => (dto::FileChangeKind::Updated, moved_to.clone()),
    };
    dto::FileChange { path: change.path.clone(), kind, moved_to, diff: change.diff.clone() }
}

/// What the person set, for a screen.
#[must_use]
pub fn settings(settings: &state::AppSettings) -> dto::Settings {
    dto::Settings {
        notify_completed: settings.notify_completed,
        notify_approvals: settings.notify_approvals,
        notify_failures: settings.notify_failures,
        notify_sign_outs: settings.notify_sign_outs,
        muted: settings.muted,
        muted_until: settings.muted_until,
        quiet_hours: settings.quiet_hours,
        scheme: match settings.scheme {
            state::Scheme::System => dto::Scheme::System,
            state::Scheme::Light => dto::Scheme::Light,
            state::Scheme::Dark => dto::Scheme::Dark,
        },
        text_size: settings.text_size,
        quit_deadline: settings.quit_deadline,
        quiet_after: settings.quiet_after,
        idle_after: settings.idle_after,
        onboarded: settings.onboarded,
    }
}

/// What the person set on a screen; numbers that no screen offers are brought into range.
#[must_use]
pub fn settings_from(settings: dto::Settings) -> state::AppSettings {
    const LAST_MINUTE: u16 = 24 * 60 - 1;
    state::AppSettings {
        notify_completed: settings.notify_completed,
        notify_approvals: settings.notify_approvals,
        notify_failures: settings.notify_failures,
        notify_sign_outs: settings.notify_sign_outs,
        muted: settings.muted,
        muted_until: settings.muted_until,
        quiet_hours: settings.quiet_hours.map(|(from, to)| (from.min(LAST_MINUTE), to.min(LAST_MINUTE))),
        scheme: match settings.scheme {
            dto::Scheme::System => state::Scheme::System,
            dto::Scheme::Light => state::Scheme::Light,
            dto::Scheme::Dark => state::Scheme::Dark,
        },
        text_size: settings.text_size.clamp(80, 200),
        quit_deadline: settings.quit_deadline,
        quiet_after: settings.quiet_after,
        idle_after: settings.idle_after,
        onboarded: settings.onboarded,
    }
}

/// A goal that was set on a screen.
#[must_use]
pub fn goal_from(goal: dto::Goal) -> port::GoalSpec {
    port::GoalSpec {
        objective: goal.objective,
        status: match goal.status {
            dto::GoalStatus::Active => port::GoalStatus::Active,
            dto::GoalStatus::Paused => port::GoalStatus::Paused,
            dto::GoalStatus::Blocked => port::GoalStatus::Blocked,
            dto::GoalStatus::Limited => port::GoalStatus::Limited,
            dto::GoalStatus::Done => port::GoalStatus::Done,
        },
        token_budget: goal.token_budget,
    }
}
