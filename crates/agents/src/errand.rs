//! What an agent has its client do for it: files and commands of a session's folder. Requests and answers as data, and the
//! limits that hold for all of them.
//!
//! Nothing here touches a file or a process; the engine does, and looks at what only the disk can tell (links, kinds of
//! files, sizes) before it does.

use std::path::PathBuf;

/// Every limit of what is done for an agent.
pub mod limits {
    /// Bytes of the largest file that is read.
    pub const READ: u64 = 10 << 20;
    /// Bytes of the largest text that is written.
    pub const WRITE: usize = 10 << 20;
    /// Bytes of the longest path.
    pub const PATH: usize = 4_096;
    /// Terminals that one session may hold, those included whose command has ended and that were not released.
    pub const TERMINALS: usize = 16;
    /// Bytes of a terminal's output that are kept: the most that an agent may ask for, and what it gets unasked.
    pub const OUTPUT: usize = 1 << 20;
    /// Bytes of a command, its arguments and its variables together.
    pub const COMMAND: usize = 128 << 10;
    /// Errands of one process that may be unanswered at a time.
    pub const UNANSWERED: usize = 64;
    /// Bytes of texts that wait to be written, for one process.
    pub const UNWRITTEN: usize = 4 * WRITE;
}

/// Something to be done outside; answered by [`crate::Protocol::served`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    /// Comes back with the answer.
    pub key: u64,
    pub task: Task,
}

/// What is to be done. `folder` is the session's; nothing outside of it is read, written or worked in.
#[derive(Clone, PartialEq, Eq)]
pub enum Task {
    /// Answered by [`Done::Read`]. Lines are counted from 1.
    Read { folder: PathBuf, path: PathBuf, first_line: u64, lines: Option<u64> },
    /// Put the text in place whole, or not at all. Answered by [`Done::Written`].
    Write { folder: PathBuf, path: PathBuf, text: String },
    /// Start a command under this name. Answered by [`Done::Started`].
    Start { terminal: String, command: Command },
    /// Say what it wrote and whether it has ended. Answered by [`Done::Screen`].
    Look { terminal: String },
    /// Answered by [`Done::Screen`] once the command has ended.
    Await { terminal: String },
    /// End the command and all that it started. Answered by [`Done::Screen`] once they are gone.
    Kill { terminal: String },
    /// The same, and forget it.
    Release { terminal: String },
}

/// A command and where it runs. Its environment is the agent's own and `variables`.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    pub folder: PathBuf,
    /// Below `folder`.
    pub directory: PathBuf,
    pub program: String,
    pub arguments: Vec<String>,
    pub variables: Vec<(String, String)>,
    /// Bytes of its output that are kept: the last ones.
    pub keep: usize,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    Read { text: String },
    Written,
    Started,
    Screen(Screen),
}

/// What a command wrote, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    pub text: String,
    /// The beginning is missing.
    pub truncated: bool,
    /// `None` while it runs.
    pub exit: Option<Exit>,
}

/// How a command ended: one of the two, or none where that is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    /// "SIGTERM"
    pub signal: Option<String>,
}

/// Why it was not done, in words for the agent that name what and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotDone {
    pub why: NotDoneWhy,
    pub message: String,
}

/// The kind of [`NotDone`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDoneWhy {
    /// It is beyond what is done for an agent.
    Refused,
    /// There is no such file or program.
    NotFound,
    /// It was tried.
    Failed,
}

/// The answer to an errand.
pub type Outcome = Result<Done, NotDone>;

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What is in a file or in a variable may be a secret.
        let (what, about) = match self {
            Self::Read { path, .. } => ("Read", path.display().to_string()),
            Self::Write { path, text, .. } => ("Write", format!("{} ({} bytes)", path.display(), text.len())),
            Self::Start { terminal, command } => ("Start", format!("{terminal} {}", command.program)),
            Self::Look { terminal } => ("Look", terminal.clone()),
            Self::Await { terminal } => ("Await", terminal.clone()),
            Self::Kill { terminal } => ("Kill", terminal.clone()),
            Self::Release { terminal } => ("Release", terminal.clone()),
        };
        f.debug_tuple(what).field(&about).finish()
    }
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command").field("program", &self.program).field("directory", &self.directory).finish_non_exhaustive()
    }
}
