//! Questions that a person must answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::FileChange;

dto! {
    pub struct Approval {
        pub id: String,
        pub session: String,
        pub turn: String,
        pub body: Ask,
        pub reason: Option<String>,
        pub choices: Vec<Choice>,
        pub item: Option<String>,
        pub state: ApprovalState,
        pub asked_at: i64,
    }
}

dto! {
    pub enum ApprovalState {
        Pending,
        Answered { choice: Option<ChoiceKind>, by: Asker, at: i64 },
        Moot,
    }
}

dto! { pub word Asker { Window, Tray, Notification, Cli, Api } }

dto! {
    pub enum Ask {
        /// `display` is `command` with control, bidirectional and zero-width characters made visible.
        Command { command: String, display: String, cwd: String, may_run_unsandboxed: bool },
        FileChange { changes: Vec<FileChange>, grant_root: Option<String> },
        Permissions { network: bool, read: Vec<String>, write: Vec<String> },
        Questions { questions: Vec<Question> },
        Form { server: String, message: String, schema: Option<String> },
    }
}

dto! {
    pub struct Question {
        pub id: String,
        pub header: String,
        pub text: String,
        pub options: Vec<QuestionOption>,
        pub free_text: bool,
        pub secret: bool,
    }
}

dto! {
    pub struct QuestionOption {
        pub label: String,
        pub description: String,
    }
}

dto! { pub word ChoiceKind { Allow, AllowForSession, AllowAlways, Deny, DenyAndStop } }

dto! {
    pub struct Choice {
        pub kind: ChoiceKind,
        /// For `allowAlways`: the words that a later command must begin with.
        pub rule: Vec<String>,
    }
}

dto! {
    /// What a person answers; checked against what was asked.
    pub enum Answer {
        Choice { kind: ChoiceKind },
        Answers { answers: BTreeMap<String, Vec<String>> },
        /// JSON text.
        Form { json: String },
    }
}
