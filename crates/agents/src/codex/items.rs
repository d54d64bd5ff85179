//! Codex's items, models, threads and figures as the domain's.

use serde_json::Value;
use turnkeep_model::{
    ItemId, MessageId, ThreadRef,
    port::{
        FileChange, FileChangeKind, GoalSpec, GoalStatus, Item, ItemBody, ItemStatus, Model, PlanStep, PlanStepStatus, RateLimit,
        ThreadSummary, Usage,
    },
};

use super::wire;

/// Bytes of one output or result that are kept.
pub(super) const KEPT: usize = 1024 * 1024;

/// The domain's entry. Large outputs keep their beginning and their end.
pub(super) fn item(from: wire::ThreadItem) -> Item {
    let id = ItemId(from.id);
    let status = status(&from.status);
    let body = match from.kind.as_str() {
        "userMessage" => ItemBody::UserMessage { text: user_text(&from.content), message: from.client_id.map(MessageId) },
        "agentMessage" => ItemBody::AgentMessage { text: from.text, final_answer: from.phase.as_deref() == Some("final_answer") },
        "reasoning" => {
            let raw: Vec<&str> = from.content.iter().filter_map(Value::as_str).collect();
            ItemBody::Reasoning { summary: from.summary.join("\n\n"), text: raw.join("\n\n") }
        }
        "commandExecution" => ItemBody::Command {
            command: from.command,
            cwd: from.cwd,
            output: bounded(from.aggregated_output.unwrap_or_default()),
            exit_code: from.exit_code,
            duration_ms: from.duration_ms,
            status,
        },
        "fileChange" => ItemBody::FileChange { changes: from.changes.into_iter().map(change).collect(), status },
        "mcpToolCall" => {
            let result = match from.error {
                Some(error) => error.message,
                None => mcp_result(&from.result),
            };
            ItemBody::Tool {
                server: from.server,
                name: from.tool,
                arguments: bounded(json(&from.arguments)),
                result: bounded(result),
                status,
            }
        }
        "dynamicToolCall" => ItemBody::Tool {
            server: from.namespace.unwrap_or_default(),
            name: from.tool,
            arguments: bounded(json(&from.arguments)),
            result: bounded(texts(&from.content_items)),
            status,
        },
        "functionCallOutput" => ItemBody::Tool {
            server: from.namespace.unwrap_or_default(),
            name: from.name,
            arguments: String::new(),
            result: bounded(json(&from.output)),
            status: ItemStatus::Completed,
        },
        "collabAgentToolCall" => ItemBody::Tool {
            server: String::new(),
            name: from.tool,
            arguments: from.prompt.unwrap_or_default(),
            result: String::new(),
            status,
        },
        "webSearch" => ItemBody::WebSearch { query: from.query },
        "plan" => ItemBody::Plan { text: from.text },
        "contextCompaction" => ItemBody::Compaction,
        "hookPrompt" => ItemBody::Notice { text: texts(&Value::Array(from.fragments)) },
        _ => {
            let text = [from.text, from.review.unwrap_or_default(), from.path.unwrap_or_default()];
            ItemBody::Other { kind: from.kind, text: text.into_iter().find(|text| !text.is_empty()).unwrap_or_default() }
        }
    };
    Item { id, body }
}

fn status(word: &str) -> ItemStatus {
    match word {
        "completed" => ItemStatus::Completed,
        "failed" => ItemStatus::Failed,
        "declined" => ItemStatus::Declined,
        _ => ItemStatus::Running,
    }
}

fn user_text(parts: &[Value]) -> String {
    let shown = parts.iter().filter_map(|part| {
        let member = |name: &str| part.get(name).and_then(Value::as_str);
        match member("type")? {
            "text" => member("text").map(str::to_owned),
            "skill" | "mention" => member("name").map(|name| format!("[{name}]")),
            other => Some(match member("path").or_else(|| member("url")) {
                Some(place) if !place.starts_with("data:") => format!("[{other}: {place}]"),
                _ => format!("[{other}]"),
            }),
        }
    });
    shown.collect::<Vec<_>>().join("\n")
}

pub(super) fn change(from: wire::Change) -> FileChange {
    let kind = match from.kind.r#type.as_str() {
        "add" => FileChangeKind::Added,
        "delete" => FileChangeKind::Deleted,
        _ => FileChangeKind::Updated { moved_to: from.kind.move_path },
    };
    FileChange { path: from.path, kind, diff: bounded(from.diff) }
}

fn mcp_result(result: &Value) -> String {
    match result.get("content") {
        Some(content) => texts(content),
        None if result.is_null() => String::new(),
        None => json(result),
    }
}

/// The texts in a list of content parts; parts without one are named by their kind.
fn texts(list: &Value) -> String {
    let Some(parts) = list.as_array() else { return String::new() };
    let shown = parts.iter().map(|part| match part.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => format!("[{}]", part.get("type").and_then(Value::as_str).unwrap_or("content")),
    });
    shown.collect::<Vec<_>>().join("\n")
}

fn json(value: &Value) -> String {
    if value.is_null() { String::new() } else { value.to_string() }
}

/// At most [`KEPT`] bytes: the beginning and the end, with a line between that says what is missing.
pub(super) fn bounded(text: String) -> String {
    if text.len() <= KEPT {
        return text;
    }
    let mut head = KEPT / 2;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - KEPT / 2;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let (start, end) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{start}\n[… {} bytes left out …]\n{end}", tail - head)
}

pub(super) fn plan(steps: Vec<wire::Step>) -> Vec<PlanStep> {
    let step = |from: wire::Step| PlanStep {
        text: from.step,
        status: match from.status.as_str() {
            "completed" => PlanStepStatus::Done,
            "inProgress" => PlanStepStatus::Running,
            _ => PlanStepStatus::Pending,
        },
    };
    steps.into_iter().map(step).collect()
}

pub(super) fn usage(from: &wire::TokenUsage) -> Usage {
    Usage {
        total_tokens: from.total.total_tokens,
        input_tokens: from.total.input_tokens,
        cached_input_tokens: from.total.cached_input_tokens,
        output_tokens: from.total.output_tokens,
        reasoning_tokens: from.total.reasoning_output_tokens,
        context_tokens: from.last.total_tokens,
        context_window: from.model_context_window,
    }
}

pub(super) fn goal(from: wire::Goal) -> GoalSpec {
    let status = match from.status.as_str() {
        "active" => GoalStatus::Active,
        "paused" => GoalStatus::Paused,
        "usageLimited" | "budgetLimited" => GoalStatus::Limited,
        "complete" => GoalStatus::Done,
        _ => GoalStatus::Blocked,
    };
    GoalSpec { objective: from.objective, status, token_budget: from.token_budget }
}

pub(super) fn goal_word(status: GoalStatus) -> &'static str {
    match status {
        GoalStatus::Active => "active",
        GoalStatus::Paused => "paused",
        GoalStatus::Blocked => "blocked",
        GoalStatus::Limited => "usageLimited",
        GoalStatus::Done => "complete",
    }
}

pub(super) fn model(from: wire::Model) -> Option<Model> {
    let id = if from.model.is_empty() { from.id } else { from.model };
    if from.hidden || id.is_empty() {
        return None;
    }
    Some(Model {
        name: if from.display_name.is_empty() { id.clone() } else { from.display_name },
        id,
        description: from.description,
        efforts: from.supported_reasoning_efforts.into_iter().map(|effort| effort.reasoning_effort).collect(),
        default_effort: from.default_reasoning_effort,
        is_default: from.is_default,
    })
}

pub(super) fn limits(from: &wire::RateLimits) -> Vec<RateLimit> {
    let limit = |window: &wire::Window| RateLimit {
        window_minutes: window.window_duration_mins,
        used_percent: percent(window.used_percent),
        resets_at: window.resets_at,
    };
    from.primary.iter().chain(&from.secondary).map(limit).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0 to 100 before; a number that is none becomes 0"
)]
fn percent(used: f64) -> u8 {
    used.clamp(0.0, 100.0).round() as u8
}

/// `None` for what has no id.
pub(super) fn thread(from: wire::Thread) -> Option<ThreadSummary> {
    if from.id.is_empty() {
        return None;
    }
    let child = from.parent_thread_id.is_some() || from.source.get("subAgent").is_some();
    let first_line = |text: String| text.lines().next().unwrap_or_default().chars().take(200).collect::<String>();
    Some(ThreadSummary {
        thread: ThreadRef(from.id),
        title: first_line(from.name.unwrap_or_default()),
        preview: first_line(from.preview),
        folder: from.cwd,
        updated_at: from.updated_at,
        resumable: !from.ephemeral && !child,
    })
}
