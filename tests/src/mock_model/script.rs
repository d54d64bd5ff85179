//! What the mock model answers: scripts as values, and the same in a few words inside a user's message.
//!
//! A script is data; playing it is `responses`' business.

use std::time::Duration;

use serde_json::{Value, json};

/// One answer to one model call.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Output items, one after the other, then an end.
    Stream { parts: Vec<Part>, end: End },
    /// An HTTP error for the first `times` calls of this place in the script, then `say recovered`.
    Refuse { status: u16, body: Value, times: u32 },
}

/// One output item.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A message to the person, in pieces.
    Message(Vec<Piece>),
    /// A summary of the model's thinking.
    Reasoning(String),
    /// A call of one of the agent's tools.
    Call { name: String, arguments: Value },
    /// A call of a tool that takes plain text, such as `apply_patch`.
    Custom { name: String, input: String },
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// The stream stops here until the test opens the gate of this name.
    Gate(String),
    /// The stream pauses, for tests that look at the picture of a running stream.
    Pause(Duration),
}

/// How a stream ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Completed {
        input_tokens: u64,
        output_tokens: u64,
    },
    Failed {
        code: String,
        message: String,
    },
    Incomplete {
        reason: String,
    },
    /// The connection breaks, the first `times` calls; then the same reply completes.
    Cut {
        times: u32,
    },
    /// Nothing more is said, and the connection stays.
    Hang,
}

impl End {
    /// The usual end, with figures that a test can recognise.
    pub const DONE: Self = Self::Completed { input_tokens: 100, output_tokens: 20 };
}

impl Reply {
    fn of(part: Part) -> Self {
        Self::Stream { parts: vec![part], end: End::DONE }
    }

    /// A message. `[[name]]` in the text is a gate, `[[]]` only a border between two pieces.
    #[must_use]
    pub fn say(text: &str) -> Self {
        Self::of(Part::message(text))
    }

    /// A shell command that the agent is to run.
    #[must_use]
    pub fn command(line: &str) -> Self {
        Self::of(Part::Call { name: "exec_command".to_owned(), arguments: json!({ "cmd": line }) })
    }

    /// A shell command for which the model asks to leave the sandbox: an approval under every policy that asks at all.
    #[must_use]
    pub fn escalated(line: &str, why: &str) -> Self {
        let arguments = json!({
            "cmd": line,
            "sandbox_permissions": "require_escalated",
            "justification": why,
        });
        Self::of(Part::Call { name: "exec_command".to_owned(), arguments })
    }

    /// A new file, through the patch tool.
    #[must_use]
    pub fn new_file(path: &str, text: &str) -> Self {
        let added: String = text.lines().map(|line| format!("+{line}\n")).collect();
        Self::patch(&format!("*** Add File: {path}\n{added}"))
    }

    /// Changes to files, as the lines between a patch's begin and end.
    #[must_use]
    pub fn patch(changes: &str) -> Self {
        let input = format!("*** Begin Patch\n{}\n*** End Patch", changes.trim_end());
        Self::of(Part::Custom { name: "apply_patch".to_owned(), input })
    }

    /// A plan: each step with `pending`, `in_progress` or `completed`.
    #[must_use]
    pub fn plan(steps: &[(&str, &str)]) -> Self {
        let steps: Vec<Value> = steps.iter().map(|(step, status)| json!({ "step": step, "status": status })).collect();
        let arguments = json!({ "plan": steps });
        Self::of(Part::Call { name: "update_plan".to_owned(), arguments })
    }

    /// Thinking, with nothing after it.
    #[must_use]
    pub fn reasoning(text: &str) -> Self {
        Self::of(Part::Reasoning(text.to_owned()))
    }

    /// An HTTP error with the provider's usual form of body.
    #[must_use]
    pub fn refuse(status: u16, code: &str, times: u32) -> Self {
        let body = json!({ "error": {
            "message": format!("mock {status} {code}"),
            "type": code,
            "code": code,
        }});
        Self::Refuse { status, body, times }
    }

    /// This reply's items, then that one's, with the end of that one.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        match (self, next) {
            (Self::Stream { mut parts, .. }, Self::Stream { parts: more, end }) => {
                parts.extend(more);
                Self::Stream { parts, end }
            }
            (first, _) => first,
        }
    }

    /// The same with another end.
    #[must_use]
    pub fn ending(self, end: End) -> Self {
        match self {
            Self::Stream { parts, .. } => Self::Stream { parts, end },
            refusal @ Self::Refuse { .. } => refusal,
        }
    }
}

impl Part {
    /// See [`Reply::say`].
    #[must_use]
    pub fn message(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("[[") {
            let Some((name, after)) = after.split_once("]]") else { break };
            pieces.push(Piece::Text(before.to_owned()));
            if let Some(milliseconds) = name.strip_prefix("pause ").and_then(|n| n.parse().ok()) {
                pieces.push(Piece::Pause(Duration::from_millis(milliseconds)));
            } else if !name.is_empty() {
                pieces.push(Piece::Gate(name.to_owned()));
            }
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Self::Message(pieces)
    }
}

/// The words that start a script inside a user's message.
pub(super) const DIRECTIVE: &str = "@mock ";

/// Reads the script in a user's message: replies separated by `;;`, the items of one reply by ` ++ `.
///
/// Items: `say TEXT`, `reason TEXT`, `exec LINE`, `ask LINE` (leaves the sandbox), `file PATH TEXT`, `plan STEP; STEP`.
/// Ends, as the last item: `cut N`, `hang`, `fail CODE TEXT`, `usage IN OUT`. A whole reply: `http STATUS TIMES`.
/// An unknown word is said back, so that a mistake is seen in the transcript.
#[must_use]
pub(super) fn parse(text: &str) -> Option<Vec<Reply>> {
    let (_, script) = text.split_once(DIRECTIVE)?;
    Some(script.split(";;").map(|reply| parse_reply(reply.trim())).collect())
}

fn parse_reply(text: &str) -> Reply {
    let mut reply = Reply::Stream { parts: Vec::new(), end: End::DONE };
    for item in text.split(" ++ ") {
        let (verb, rest) = item.trim().split_once(' ').unwrap_or((item.trim(), ""));
        let mut words = rest.split_whitespace();
        let mut number = |otherwise: u32| words.next().and_then(|w| w.parse().ok()).unwrap_or(otherwise);
        reply = match verb {
            "say" => reply.then(Reply::say(rest)),
            "reason" => reply.then(Reply::reasoning(rest)),
            "exec" => reply.then(Reply::command(rest)),
            "ask" => reply.then(Reply::escalated(rest, "The test asks for it.")),
            "file" => {
                let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
                reply.then(Reply::new_file(path, text))
            }
            "plan" => {
                let steps: Vec<(&str, &str)> = rest.split(';').map(|step| (step.trim(), "pending")).collect();
                reply.then(Reply::plan(&steps))
            }
            "cut" => reply.ending(End::Cut { times: number(1) }),
            "hang" => reply.ending(End::Hang),
            "usage" => {
                let (input_tokens, output_tokens) = (number(0).into(), number(0).into());
                reply.ending(End::Completed { input_tokens, output_tokens })
            }
            "fail" => {
                let (code, message) = rest.split_once(' ').unwrap_or((rest, "mock failure"));
                reply.ending(End::Failed { code: code.to_owned(), message: message.to_owned() })
            }
            "http" => {
                let status = u16::try_from(number(500)).unwrap_or(500);
                Reply::refuse(status, "mock_error", number(u32::MAX))
            }
            _ => reply.then(Reply::say(&format!("unknown mock directive: {item}"))),
        };
    }
    reply
}
