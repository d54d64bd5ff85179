//! What a transcript holds: entries, plans, usage, models, meters and threads, as every agent tells of them.
//!
//! Facts for people to read: nothing here is a command, and nothing here decides.

use serde::{Deserialize, Serialize};

use super::Failure;
use crate::ids::{ItemId, MessageId, ThreadRef};

/// One entry of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Item {
    pub id: ItemId,
    pub body: ItemBody,
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ItemBody {
    /// What the person (or a goal) said; `message` is ours where the provider keeps it.
    UserMessage {
        text: String,
        message: Option<MessageId>,
    },
    /// `final_answer` is false for progress text before a tool call.
    AgentMessage {
        text: String,
        final_answer: bool,
    },
    Reasoning {
        summary: String,
        text: String,
    },
    Command {
        command: String,
        cwd: String,
        output: String,
        exit_code: Option<i32>,
        duration_ms: Option<u64>,
        status: ItemStatus,
    },
    FileChange {
        changes: Vec<FileChange>,
        status: ItemStatus,
    },
    /// A tool of a tool server or of the agent.
    Tool {
        server: String,
        name: String,
        arguments: String,
        result: String,
        status: ItemStatus,
    },
    WebSearch {
        query: String,
    },
    Plan {
        text: String,
    },
    /// The history was shortened.
    Compaction,
    /// Said by Turnkeep or the provider about the session.
    Notice {
        text: String,
    },
    Error {
        failure: Failure,
    },
    /// A kind that this version does not know; shown by name.
    Other {
        kind: String,
        text: String,
    },
}

/// How far an entry got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ItemStatus {
    Running,
    Completed,
    Failed,
    Declined,
    /// The turn went on or ended without a word about it.
    Abandoned,
}

/// One changed file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileChange {
    pub path: String,
    pub kind: FileChangeKind,
    /// Unified diff, or the whole text of an added or deleted file.
    pub diff: String,
}

/// What happened to a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FileChangeKind {
    Added,
    Deleted,
    Updated { moved_to: Option<String> },
}

/// Which text of an entry grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DeltaStream {
    AgentMessage,
    ReasoningSummary,
    Reasoning,
    CommandOutput,
    Plan,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PlanStep {
    pub text: String,
    pub status: PlanStepStatus,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PlanStepStatus {
    Pending,
    Running,
    Done,
}

/// Everything that a turn changed, as one unified diff of bounded length.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TurnDiff {
    /// Whole lines, from the beginning.
    pub text: String,
    pub files: u32,
    pub added: u64,
    pub removed: u64,
    /// Bytes that were left off at the end; the counts include them.
    pub dropped: u64,
}

/// Tokens used by a session so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Usage {
    pub total_tokens: u64,
    pub input_tokens: u64,
    pub cached_input_tokens: u64,
    pub output_tokens: u64,
    pub reasoning_tokens: u64,
    /// Tokens in the context at the last model call.
    pub context_tokens: u64,
    /// Size of the model's context, if known.
    pub context_window: Option<u64>,
}

/// Something that the agent does where a message begins with its name: "/name, then what it is about".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OfferedCommand {
    /// One word, without the slash.
    pub name: String,
    pub description: String,
    /// What may follow the name; empty where nothing does.
    pub hint: String,
}

/// A model on offer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Model {
    pub id: String,
    pub name: String,
    pub description: String,
    pub efforts: Vec<String>,
    pub default_effort: Option<String>,
    pub is_default: bool,
}

/// One usage meter of an account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RateLimit {
    /// Length of the window in minutes, if it has one.
    pub window_minutes: Option<u64>,
    /// 0 to 100.
    pub used_percent: u8,
    /// Unix time in seconds.
    pub resets_at: Option<i64>,
}

/// Some of the threads that a provider knows, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadPage {
    pub threads: Vec<ThreadSummary>,
    /// To ask for the next ones.
    pub next_cursor: Option<String>,
}

/// A thread that the provider knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadSummary {
    pub thread: ThreadRef,
    /// The name that it was given; may be empty.
    pub title: String,
    /// How it began.
    pub preview: String,
    pub folder: String,
    /// Unix time in seconds.
    pub updated_at: i64,
    /// False for what must not be loaded by itself: archived, ephemeral or child threads.
    pub resumable: bool,
}
