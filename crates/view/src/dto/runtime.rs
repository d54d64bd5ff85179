//! Agents' processes, and threads that an agent knows.

use serde::{Deserialize, Serialize};

use super::Failure;

dto! { pub word RuntimeState { Starting, Ready, Retiring, Stopped, Failed } }

dto! {
    /// One process of a provider, running or gone.
    pub struct Runtime {
        pub id: String,
        pub provider: String,
        pub account: String,
        /// The account's name; of one that was removed, nothing.
        pub account_label: String,
        /// The sessions that it holds, or the one that it served alone.
        pub sessions: Vec<String>,
        pub state: RuntimeState,
        pub pid: Option<u32>,
        pub version: Option<String>,
        pub started_at: i64,
        pub ended_at: Option<i64>,
        /// Number of the sign-in under which it was started.
        pub epoch: u64,
        /// That sign-in is not the current one any more.
        pub old: bool,
        pub failure: Option<Failure>,
        /// The last lines of its standard error, oldest first.
        pub last_lines: Vec<String>,
    }
}

dto! {
    /// Some of the threads that a provider knows, newest first.
    pub struct ThreadPage {
        pub threads: Vec<Thread>,
        pub next_cursor: Option<String>,
    }
}

dto! {
    pub struct Thread {
        pub thread: String,
        /// Its name, else how it began.
        pub title: String,
        pub preview: String,
        pub folder: String,
        pub updated_at: i64,
        /// The session that it is here already.
        pub session: Option<String>,
    }
}
