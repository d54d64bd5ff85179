//! What the agent has its client do: files of the session's folder, and a command in it. A client that does not offer that is
//! asked nothing.

use std::{path::Path, time::Instant};

use serde_json::{Value, json};

use crate::{
    agent::Agent,
    scratch,
    turn::{Position, content, tool_ends},
    wire,
};

/// What the client said in its greeting that it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    read: bool,
    write: bool,
    run: bool,
}

impl Offers {
    pub(crate) fn of(params: &Value) -> Self {
        let is = |at: &str| params["clientCapabilities"].pointer(at).and_then(Value::as_bool) == Some(true);
        Self { read: is("/fs/readTextFile"), write: is("/fs/writeTextFile"), run: is("/terminal") }
    }

    fn include(self, errand: &Errand) -> bool {
        match errand {
            Errand::Read { .. } | Errand::ReadOutside => self.read,
            Errand::Write { .. } => self.write,
            Errand::Run { .. } => self.run,
        }
    }
}

/// What the client is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// A file of the sub-folder.
    Read {
        name: &'static str,
    },
    /// A file that is none of the session's: a careful client refuses.
    ReadOutside,
    Write {
        name: &'static str,
        text: &'static str,
    },
    Run {
        program: &'static [&'static str],
    },
}

/// A file that is on every computer.
#[cfg(not(windows))]
const OUTSIDE: &str = "/etc/hosts";
#[cfg(windows)]
const OUTSIDE: &str = r"C:\Windows\win.ini";

impl Errand {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::ReadOutside => "read",
            Self::Write { .. } => "edit",
            Self::Run { .. } => "execute",
        }
    }

    pub(crate) fn title(&self) -> String {
        match self {
            Self::Read { name } => format!("Have {}/{name} read", scratch::FOLDER),
            Self::ReadOutside => format!("Have {OUTSIDE} read"),
            Self::Write { name, .. } => format!("Have {}/{name} written", scratch::FOLDER),
            Self::Run { program } => program.join(" "),
        }
    }

    pub(crate) fn input(&self) -> Value {
        match self {
            Self::Read { name } | Self::Write { name, .. } => json!({ "path": format!("{}/{name}", scratch::FOLDER) }),
            Self::ReadOutside => json!({ "path": OUTSIDE }),
            Self::Run { program } => json!({ "command": program.join(" ") }),
        }
    }

    /// What it would change.
    pub(crate) fn change(&self, cwd: &Path) -> Value {
        match self {
            Self::Write { name, text } => {
                let path = cwd.join(scratch::FOLDER).join(name);
                json!([{ "type": "diff", "path": path, "oldText": scratch::read(cwd, name), "newText": text }])
            }
            Self::Read { .. } | Self::ReadOutside | Self::Run { .. } => json!([]),
        }
    }

    fn request(&self, cwd: &Path) -> (&'static str, Value) {
        let file = |name: &str| cwd.join(scratch::FOLDER).join(name);
        match self {
            Self::Read { name } => ("fs/read_text_file", json!({ "path": file(name) })),
            Self::ReadOutside => ("fs/read_text_file", json!({ "path": OUTSIDE })),
            Self::Write { name, text } => ("fs/write_text_file", json!({ "path": file(name), "content": text })),
            Self::Run { program } => {
                let (program, arguments) = program.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
                ("terminal/create", json!({ "command": program, "args": arguments, "cwd": cwd }))
            }
        }
    }
}

/// How far an errand is: what is waited for.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    Text,
    /// What was changed is shown once it is.
    Written(Value),
    Created,
    Exited {
        terminal: String,
    },
    Output {
        terminal: String,
        ok: bool,
    },
}

impl Agent {
    /// Asks the client.
    pub(crate) fn begin_errand(&mut self, now: Instant, name: &str, call: String, errand: &Errand) {
        let Some(cwd) = self.sessions.get(name).map(|session| session.cwd.clone()) else { return };
        if !self.offers.include(errand) {
            return self.errand_ends(now, name, &call, false, &content("The client does not offer to do this."));
        }
        let stage = match errand {
            Errand::Read { .. } | Errand::ReadOutside => Stage::Text,
            Errand::Write { .. } => Stage::Written(errand.change(&cwd)),
            Errand::Run { .. } => Stage::Created,
        };
        let (method, params) = errand.request(&cwd);
        self.ask_client(name, method, params, call, stage);
    }

    /// The client's answer, or its refusal in words.
    pub(crate) fn errand_answered(
        &mut self,
        now: Instant,
        name: &str,
        call: String,
        stage: Stage,
        outcome: &Result<Value, String>,
    ) {
        let answer = match outcome {
            Ok(answer) => answer,
            Err(why) => return self.errand_ends(now, name, &call, false, &content(&format!("The client refused: {why}"))),
        };
        match stage {
            Stage::Text => {
                let text = answer["content"].as_str().unwrap_or_default();
                self.errand_ends(now, name, &call, true, &content(text));
            }
            Stage::Written(change) => self.errand_ends(now, name, &call, true, &change),
            Stage::Created => {
                let terminal = answer["terminalId"].as_str().unwrap_or_default().to_owned();
                let shown = json!({
                    "sessionUpdate": "tool_call_update", "toolCallId": call, "status": "in_progress",
                    "content": [{ "type": "terminal", "terminalId": terminal }],
                });
                self.send(wire::update(name, &shown));
                let about = json!({ "terminalId": terminal });
                self.ask_client(name, "terminal/wait_for_exit", about, call, Stage::Exited { terminal });
            }
            Stage::Exited { terminal } => {
                let about = json!({ "terminalId": terminal });
                let ok = answer["exitCode"] == 0;
                self.ask_client(name, "terminal/output", about, call, Stage::Output { terminal, ok });
            }
            Stage::Output { terminal, ok } => {
                self.release(name, &terminal);
                let output = json!({ "type": "text", "text": answer["output"] });
                let shown = json!([{ "type": "terminal", "terminalId": terminal }, { "type": "content", "content": output }]);
                self.errand_ends(now, name, &call, ok, &shown);
            }
        }
    }

    /// The turn was stopped in the middle of it.
    pub(crate) fn errand_stopped(&mut self, name: &str, stage: &Stage) {
        if let Stage::Exited { terminal } | Stage::Output { terminal, .. } = stage {
            self.release(name, terminal);
        }
    }

    fn release(&mut self, name: &str, terminal: &str) {
        // Nobody waits for the answer.
        self.asked += 1;
        let params = json!({ "sessionId": name, "terminalId": terminal });
        self.send(json!({ "jsonrpc": "2.0", "id": self.asked, "method": "terminal/release", "params": params }));
    }

    fn ask_client(&mut self, name: &str, method: &str, mut params: Value, call: String, stage: Stage) {
        self.asked += 1;
        let request = self.asked;
        params["sessionId"] = json!(name);
        self.send(json!({ "jsonrpc": "2.0", "id": request, "method": method, "params": params }));
        self.wait(name, Position::Errand { request, call, stage });
    }

    fn errand_ends(&mut self, now: Instant, name: &str, call: &str, ok: bool, shown: &Value) {
        self.tell(name, &tool_ends(call, ok, shown));
        self.wait(name, Position::Due(now + self.pace));
    }
}
