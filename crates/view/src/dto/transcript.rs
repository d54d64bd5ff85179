//! Transcripts: pages, entries, and what happens while one looks.

use serde::{Deserialize, Serialize};

use super::Failure;

dto! {
    /// A page of a transcript, oldest first.
    pub struct TranscriptPage {
        pub session: String,
        pub entries: Vec<Entry>,
        /// Ask for entries before this ordinal; `None` at the beginning.
        pub before: Option<u64>,
        /// How many entries there are in all.
        pub total: u64,
        /// What the turns of these entries changed, if anything.
        pub changes: Vec<TurnChanges>,
    }
}

dto! {
    /// What a turn changed so far, in numbers.
    pub struct TurnChanges {
        pub turn: String,
        pub files: u32,
        pub added: u64,
        pub removed: u64,
    }
}

dto! {
    /// What a turn changed, file by file.
    pub struct TurnDiff {
        pub files: Vec<FileChange>,
        /// Bytes that were left off at the end.
        pub dropped: u64,
    }
}

dto! {
    /// Where entries stand that a search found, newest first.
    pub struct Matches {
        pub ordinals: Vec<u64>,
        /// Ask for those before this one; `None` when that was all.
        pub before: Option<u64>,
        pub total: u64,
    }
}

dto! {
    pub struct Entry {
        /// Position in the session, growing.
        pub ordinal: u64,
        pub id: String,
        pub turn: String,
        pub completed: bool,
        pub at: i64,
        pub body: EntryBody,
    }
}

dto! {
    pub enum EntryBody {
        UserMessage { text: String },
        AgentMessage { text: String, final_answer: bool },
        Reasoning { summary: String, text: String },
        Command { command: String, cwd: String, output: String, exit_code: Option<i32>, duration_ms: Option<u64>, status: ItemStatus },
        FileChange { changes: Vec<FileChange>, status: ItemStatus },
        Tool { server: String, name: String, arguments: String, result: String, status: ItemStatus },
        WebSearch { query: String },
        Plan { text: String },
        Compaction,
        Notice { text: String },
        Error { failure: Failure },
        Other { kind: String, text: String },
    }
}

dto! { pub word ItemStatus { Running, Completed, Failed, Declined, Abandoned } }

dto! {
    pub struct FileChange {
        pub path: String,
        pub kind: FileChangeKind,
        pub moved_to: Option<String>,
        pub diff: String,
    }
}

dto! { pub word FileChangeKind { Added, Deleted, Updated } }

dto! { pub word DeltaStream { AgentMessage, ReasoningSummary, Reasoning, CommandOutput, Plan } }

dto! {
    /// What a window that watches a session gets, in order, many in one batch.
    pub enum TranscriptEvent {
        /// Begin anew with this page; anything before it is void.
        Page { page: TranscriptPage },
        /// A new entry, or an entry that changed.
        Upsert { entry: Entry },
        /// What a turn changed so far; the last one counts.
        Changes { changes: TurnChanges },
        Delta { id: String, stream: DeltaStream, text: String },
    }
}
