//! Tool calls, plans and usage of the protocol as entries of the domain.
//!
//! Only reads; what is kept of a text is bounded.

use serde_json::Value;
use turnkeep_model::{
    ItemId,
    port::{FileChange, FileChangeKind, Item, ItemBody, ItemStatus, PlanStep, PlanStepStatus, Usage},
};

use super::{diff, wire};
use crate::errand::Screen;

/// Bytes of one text that are kept.
pub(super) const KEPT: usize = 1 << 20;
/// Longest text of a file that is compared line by line.
const LONGEST_FILE: usize = 4 << 20;

/// A tool call as far as it has been told: each update adds to it.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolCall {
    title: String,
    kind: String,
    status: String,
    input: Value,
    output: Value,
    content: Vec<Value>,
    /// What its terminal said, where that comes beside the content.
    terminal: String,
    exit_code: Option<i32>,
}

impl ToolCall {
    /// Take in what an update says; what it leaves out stays.
    pub(super) fn update(&mut self, from: wire::Update) {
        self.title = from.title.filter(|title| !title.is_empty()).unwrap_or(std::mem::take(&mut self.title));
        self.kind = from.kind.unwrap_or(std::mem::take(&mut self.kind));
        self.status = from.status.unwrap_or(std::mem::take(&mut self.status));
        if !from.raw_input.is_null() {
            self.input = from.raw_input;
        }
        if !from.raw_output.is_null() {
            self.output = from.raw_output;
        }
        if let Value::Array(content) = from.content {
            self.content = content;
        }
        if let Some(more) = from.meta.pointer("/terminal_output_delta/data").and_then(Value::as_str) {
            self.terminal.push_str(more);
            if self.terminal.len() > 2 * KEPT {
                self.terminal = bounded(std::mem::take(&mut self.terminal));
            }
        }
        let exits = [
            from.meta.pointer("/terminal_exit/exit_code"),
            self.output.pointer("/metadata/exit"),
            self.output.get("exit_code"),
            self.output.get("exitCode"),
        ];
        let code = exits.into_iter().flatten().find_map(Value::as_i64).and_then(|code| i32::try_from(code).ok());
        self.exit_code = code.or(self.exit_code);
    }

    /// Whether a terminal of ours is part of what it shows.
    pub(super) fn shows_terminal(&self, terminal: &str) -> bool {
        let named = |part: &Value| {
            part.get("type").and_then(Value::as_str) == Some("terminal")
                && part.get("terminalId").and_then(Value::as_str) == Some(terminal)
        };
        self.content.iter().any(named)
    }

    /// Take in what its terminal shows.
    pub(super) fn screen(&mut self, screen: &Screen) {
        self.terminal.clone_from(&screen.text);
        self.exit_code = screen.exit.as_ref().and_then(|exit| exit.code).or(self.exit_code);
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "failed")
    }

    /// The command, where it is one that runs a command.
    pub(super) fn command(&self) -> Option<String> {
        let given = match self.input.get("command") {
            Some(Value::String(command)) => Some(command.clone()),
            Some(Value::Array(words)) => Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
            _ => None,
        };
        (self.kind == "execute").then(|| given.unwrap_or_else(|| self.title.clone()))
    }

    pub(super) fn folder(&self) -> String {
        self.input.get("cwd").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// The changes of files that it shows.
    pub(super) fn changes(&self) -> Vec<FileChange> {
        self.content.iter().filter_map(change).collect()
    }

    pub(super) fn title(&self) -> &str {
        if self.title.is_empty() { "a tool" } else { &self.title }
    }

    /// What it was given, as text.
    pub(super) fn arguments(&self) -> String {
        bounded(json(&self.input))
    }

    /// The entry as it stands now.
    pub(super) fn item(&self, id: &ItemId) -> Item {
        let status = self.item_status();
        let changes = self.changes();
        let body = if !changes.is_empty() {
            ItemBody::FileChange { changes, status }
        } else if let Some(command) = self.command() {
            ItemBody::Command {
                command,
                cwd: self.folder(),
                output: self.text(),
                exit_code: self.exit_code,
                duration_ms: None,
                status,
            }
        } else {
            ItemBody::Tool {
                server: String::new(),
                name: self.title().to_owned(),
                arguments: self.arguments(),
                result: self.text(),
                status,
            }
        };
        Item { id: id.clone(), body }
    }

    fn item_status(&self) -> ItemStatus {
        match self.status.as_str() {
            "completed" => ItemStatus::Completed,
            "failed" => ItemStatus::Failed,
            _ => ItemStatus::Running,
        }
    }

    /// What it said: its terminal, or what it gave out, or its content.
    fn text(&self) -> String {
        if !self.terminal.is_empty() {
            return bounded(self.terminal.clone());
        }
        if let Some(output) = self.output.as_str().or_else(|| self.output.get("output")?.as_str()) {
            return bounded(output.to_owned());
        }
        // What is shown before it has run is what it will do, not what came of it.
        if self.status.is_empty() || self.status == "pending" {
            return String::new();
        }
        let content = self.content.iter().filter_map(|part| part.get("content")).map(wire::text_of);
        bounded(content.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"))
    }
}

fn change(part: &Value) -> Option<FileChange> {
    if part.get("type")?.as_str()? != "diff" {
        return None;
    }
    let path = part.get("path")?.as_str()?.to_owned();
    let new = part.get("newText").and_then(Value::as_str).unwrap_or_default();
    let Some(old) = part.get("oldText").and_then(Value::as_str) else {
        return Some(FileChange { path, kind: FileChangeKind::Added, diff: bounded(new.to_owned()) });
    };
    let diff = if old.len() + new.len() > LONGEST_FILE { new.to_owned() } else { diff::unified(old, new) };
    Some(FileChange { path, kind: FileChangeKind::Updated { moved_to: None }, diff: bounded(diff) })
}

pub(super) fn plan(entries: Vec<wire::PlanEntry>) -> Vec<PlanStep> {
    let step = |from: wire::PlanEntry| PlanStep {
        text: from.content,
        status: match from.status.as_str() {
            "completed" => PlanStepStatus::Done,
            "in_progress" => PlanStepStatus::Running,
            _ => PlanStepStatus::Pending,
        },
    };
    entries.into_iter().map(step).collect()
}

/// Add what one turn used.
pub(super) fn count(total: &mut Usage, turn: &wire::TurnUsage) {
    total.total_tokens = total.total_tokens.saturating_add(turn.total_tokens);
    total.input_tokens = total.input_tokens.saturating_add(turn.input_tokens);
    total.output_tokens = total.output_tokens.saturating_add(turn.output_tokens);
    total.cached_input_tokens = total.cached_input_tokens.saturating_add(turn.cached_read_tokens);
    total.reasoning_tokens = total.reasoning_tokens.saturating_add(turn.thought_tokens);
}

fn json(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_null() => String::new(),
        None => value.to_string(),
    }
}

/// At most [`KEPT`] bytes: the beginning and the end, with a line between that says what is missing.
pub(super) fn bounded(text: String) -> String {
    if text.len() <= KEPT {
        return text;
    }
    let head = text.floor_char_boundary(KEPT / 2);
    let tail = text.ceil_char_boundary(text.len() - KEPT / 2);
    let (start, end) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{start}\n[… {} bytes left out …]\n{end}", tail - head)
}
