//! A client at the pipes of the real process.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Folders for an agent and its sessions.
pub(crate) struct Place {
    pub(crate) root: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        Self { root }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// An agent that was greeted, at this pace.
    pub(crate) fn start(&self, pace: &str) -> Client {
        let mut client = self.start_with(&["--pace", pace, "--state", self.state().to_str().unwrap()]);
        client.ask("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }));
        client
    }

    pub(crate) fn start_with(&self, arguments: &[&str]) -> Client {
        let mut child = Command::new(env!("CARGO_BIN_EXE_demo_agent"))
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Client { input: child.stdin.take(), child, lines, seen: Vec::new(), looked: 0, last: 0 }
    }
}

pub(crate) struct Client {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    pub(crate) seen: Vec<Value>,
    looked: usize,
    last: u64,
}

impl Client {
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).and_then(|()| input.flush()).unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    /// Sends a request; gives its id.
    pub(crate) fn post(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }));
        self.last
    }

    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.wait(&format!("answer {id}"), |message| message.get("method").is_none() && message["id"] == id)
    }

    /// The answer of a request, whole.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.post(method, params);
        self.answer(id)
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.call(method, params);
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer}")).clone()
    }

    /// The code with which a request is refused.
    pub(crate) fn refused(&mut self, method: &str, params: &Value) -> i64 {
        let answer = self.call(method, params);
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    pub(crate) fn session(&mut self, cwd: &Path) -> String {
        let answer = self.ask("session/new", &json!({ "cwd": cwd, "mcpServers": [] }));
        answer["sessionId"].as_str().unwrap().to_owned()
    }

    /// Begins a turn; gives its id.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.post("session/prompt", &json!({ "sessionId": session, "prompt": prompt }))
    }

    /// A turn to its end: its answer, and everything that came since.
    pub(crate) fn turn(&mut self, session: &str, text: &str) -> (Value, Vec<Value>) {
        let from = self.seen.len();
        let id = self.prompt(session, text);
        let answer = self.answer(id);
        (answer, self.seen[from..].to_vec())
    }

    pub(crate) fn cancel(&mut self, session: &str) {
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }));
    }

    pub(crate) fn wait_permission(&mut self) -> Value {
        self.wait("a permission", |message| message["method"] == "session/request_permission")
    }

    /// Answers a request with the option of this kind.
    pub(crate) fn choose(&mut self, request: &Value, kind: &str) {
        let options = request["params"]["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {request}"));
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } });
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": outcome }));
    }

    pub(crate) fn wait_update(&mut self, kind: &str) -> Value {
        let found = self.wait(kind, |message| message["params"]["update"]["sessionUpdate"] == kind);
        found["params"]["update"].clone()
    }

    pub(crate) fn wait(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            while let Some(message) = self.seen.get(self.looked) {
                self.looked += 1;
                if fits(message) {
                    return message.clone();
                }
            }
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(message) => self.seen.push(message),
                Err(why) => panic!("no {what}: {why}; it said {:#?}", self.seen),
            }
        }
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Everything it still says, to the end of its output.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        let end = Instant::now() + PATIENCE;
        let mut rest = self.seen.split_off(self.looked);
        while let Ok(message) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            rest.push(message);
        }
        assert!(Instant::now() < end, "its output does not end");
        rest
    }

    /// Its end, once its output has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.rest();
        self.child.wait().unwrap()
    }

    /// The processes that it has started and that have not ended.
    pub(crate) fn commands(&self) -> Vec<u32> {
        let pid = self.child.id();
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The updates of a kind among messages.
pub(crate) fn updates(messages: &[Value], kind: &str) -> Vec<Value> {
    let all = messages.iter().map(|message| &message["params"]["update"]);
    all.filter(|update| update["sessionUpdate"] == kind).cloned().collect()
}

/// The text of the chunks of a kind.
pub(crate) fn said(messages: &[Value], kind: &str) -> String {
    updates(messages, kind).iter().map(|update| update["content"]["text"].as_str().unwrap().to_owned()).collect()
}
