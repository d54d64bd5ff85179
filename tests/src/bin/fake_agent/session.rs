//! Answers requests as Codex's app-server does, unless the script says otherwise.
//!
//! Requests are read on one thread and a turn plays on its own, so an interrupt is answered in the middle of a turn.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::process::{Command, Stdio, exit};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use harness::fake_agent::{Action, Script};
use serde_json::{Value, json};

use crate::output;

pub(crate) struct Session {
    script: Script,
    record: Mutex<File>,
    known: Mutex<Known>,
    changed: Condvar,
}

#[derive(Default)]
struct Known {
    /// How often each method was asked for.
    asked: BTreeMap<String, usize>,
    threads: usize,
    turns: usize,
    items: usize,
    /// The running turn and its thread.
    running: Option<(String, String)>,
    /// The message that deltas are added to, with its text so far.
    message: Option<(String, String)>,
    next_request: u64,
    /// Answers of the client to our own requests.
    answers: BTreeMap<u64, Value>,
}

/// What an action may refer to.
#[derive(Clone, Default)]
struct At {
    request: Value,
    thread: String,
    turn: String,
}

impl Session {
    pub(crate) fn new(script: Script) -> Result<Self> {
        let record = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&script.record)
            .with_context(|| format!("opening {}", script.record.display()))?;
        Ok(Self { script, record: Mutex::new(record), known: Mutex::default(), changed: Condvar::new() })
    }

    pub(crate) fn record(&self, what: &Value) -> Result<()> {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.write_all(format!("{what}\n").as_bytes()).context("recording")
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn start(self: &Arc<Self>) {
        self.play(&self.script.start, &At::default());
    }

    pub(crate) fn receive(self: &Arc<Self>, message: &Value) -> Result<()> {
        let Some(method) = message["method"].as_str() else {
            self.record(&json!({ "answer": message }))?;
            if let Some(id) = message["id"].as_u64() {
                self.known().answers.insert(id, message.clone());
                self.changed.notify_all();
            }
            return Ok(());
        };
        self.record(&json!({ "in": message }))?;
        if message.get("id").is_none() {
            return Ok(());
        }
        let at = At {
            request: message.clone(),
            thread: message["params"]["threadId"].as_str().unwrap_or_default().to_owned(),
            turn: self.known().running.clone().map(|(_, turn)| turn).unwrap_or_default(),
        };
        let asked = {
            let mut known = self.known();
            let asked = known.asked.entry(method.to_owned()).or_default();
            *asked += 1;
            *asked - 1
        };
        match self.script.on.get(method).and_then(|lists| nth(lists, asked)) {
            Some(actions) => {
                let (actions, at, session) = (actions.clone(), at, Arc::clone(self));
                thread::spawn(move || session.play(&actions, &at));
            }
            None => self.usual(method, &at),
        }
        Ok(())
    }

    fn usual(self: &Arc<Self>, method: &str, at: &At) {
        let result = match method {
            "initialize" => json!({
                "userAgent": "fake/0.171.0", "codexHome": std::env::var("CODEX_HOME").unwrap_or_default(),
                "platformFamily": "unix", "platformOs": "linux",
            }),
            "account/read" => json!({
                "account": self.script.account, "userId": null, "requiresOpenaiAuth": true,
                "workspaceRouting": null,
            }),
            "thread/start" | "thread/resume" | "thread/fork" => return self.open_thread(method, at),
            "turn/start" => return self.start_turn(at),
            "turn/steer" => json!({ "turnId": at.turn }),
            "turn/interrupt" => {
                reply(&at.request, &json!({}));
                self.complete("interrupted", &Value::Null, true);
                return;
            }
            "thread/unsubscribe" => json!({ "status": "unsubscribed" }),
            "thread/turns/list" => self.history(at),
            "thread/list" => self.threads(),
            "thread/items/list" => return refuse(&at.request, -32601, "thread/items/list is not supported yet"),
            "thread/loaded/list" | "model/list" | "thread/backgroundTerminals/list" => {
                json!({ "data": [], "nextCursor": null })
            }
            "account/logout" => {
                if let Some(home) = std::env::var_os("CODEX_HOME") {
                    // It may be signed out already.
                    let _ = std::fs::remove_file(std::path::Path::new(&home).join("auth.json"));
                }
                json!({})
            }
            "thread/backgroundTerminals/clean" | "thread/name/set" => json!({}),
            "account/login/start" => {
                let kind = at.request["params"]["type"].clone();
                reply(&at.request, &json!({ "type": kind }));
                let done = json!({ "loginId": null, "success": true, "error": null });
                notify("account/login/completed", &done);
                return notify("account/updated", &json!({ "authMode": "apikey", "planType": null }));
            }
            unknown => {
                let text = format!("Invalid request: unknown variant `{unknown}`");
                return refuse(&at.request, -32600, &text);
            }
        };
        reply(&at.request, &result);
    }

    /// What it was sent on this thread, in this life and in those before: an agent that forgets would be told twice.
    fn history(&self, at: &At) -> Value {
        let text = std::fs::read_to_string(&self.script.record).unwrap_or_default();
        let mut turns: Vec<Value> = Vec::new();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let (message, params) = (&line["in"], &line["in"]["params"]);
            let sent = message["method"] == "turn/start" || message["method"] == "turn/steer";
            if sent && params["threadId"] == at.thread.as_str() {
                let id = format!("past-{}", turns.len());
                let mut turn = turn_of(&id, "interrupted");
                turn["items"] = json!([{
                    "type": "userMessage", "id": format!("{id}-user"), "clientId": params["clientUserMessageId"],
                    "content": params["input"],
                }]);
                turns.push(turn);
            }
            if let (Some(status), Some(last)) = (line.get("ended"), turns.last_mut())
                && line["thread"] == at.thread.as_str()
            {
                last["status"] = status.clone();
                let said = self.scripted(&last["items"].to_string());
                if let (Some(items), Some(said)) = (last["items"].as_array_mut(), said) {
                    items.push(json!({ "type": "agentMessage", "id": "said", "text": said }));
                }
            }
        }
        turns.reverse();
        json!({ "data": turns, "nextCursor": null })
    }

    /// What it says to a message with these words.
    fn scripted(&self, text: &str) -> Option<String> {
        let (_, actions) = self.script.messages.iter().find(|(words, _)| text.contains(words))?;
        let said = actions.iter().filter_map(|action| {
            if let Action::Delta(text) | Action::Message(text) = action { Some(text.as_str()) } else { None }
        });
        Some(said.collect())
    }

    /// The threads on which it was sent something, in this life and in those before.
    fn threads(&self) -> Value {
        let text = std::fs::read_to_string(&self.script.record).unwrap_or_default();
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let of = |method: &'static str, member: &'static str| {
            let fitting = lines.iter().filter(move |line| line["in"]["method"] == method);
            fitting.filter_map(move |line| line["in"]["params"][member].as_str()).collect::<std::collections::BTreeSet<_>>()
        };
        let (known, folder) = (of("turn/start", "threadId"), of("thread/start", "cwd").into_iter().next());
        let about = |id: &&str| json!({ "id": id, "preview": "as it began", "cwd": folder, "updatedAt": 0, "ephemeral": false });
        json!({ "data": known.iter().map(about).collect::<Vec<_>>(), "nextCursor": null })
    }

    fn open_thread(&self, method: &str, at: &At) {
        let params = &at.request["params"];
        let thread = if method == "thread/start" || method == "thread/fork" {
            let mut known = self.known();
            known.threads += 1;
            format!("thread-{}-{}", std::process::id(), known.threads)
        } else {
            at.thread.clone()
        };
        let cwd = params["cwd"].as_str().unwrap_or("/");
        let about = json!({
            "id": thread, "preview": "", "modelProvider": "fake", "createdAt": 0, "updatedAt": 0,
            "status": { "type": "idle" }, "path": null, "cwd": cwd, "cliVersion": "0.171.0",
            "source": "appServer", "turns": [], "name": null, "ephemeral": false,
        });
        reply(
            &at.request,
            &json!({
                "thread": about, "model": "fake", "modelProvider": "fake", "cwd": cwd,
                "approvalPolicy": params.get("approvalPolicy").cloned().unwrap_or(json!("on-request")),
                "sandbox": { "type": "readOnly" }, "reasoningEffort": null,
            }),
        );
        if method == "thread/start" {
            notify("thread/started", &json!({ "thread": about }));
        }
    }

    fn start_turn(self: &Arc<Self>, at: &At) {
        let (turn, number) = {
            let mut known = self.known();
            if let Some((_, turn)) = known.running.clone() {
                drop(known);
                // The real one steers as well: a busy thread has no second turn.
                return reply(&at.request, &json!({ "turn": turn_of(&turn, "inProgress") }));
            }
            known.turns += 1;
            let turn = format!("turn-{}-{}", std::process::id(), known.turns);
            known.running = Some((at.thread.clone(), turn.clone()));
            (turn, known.turns - 1)
        };
        reply(&at.request, &json!({ "turn": turn_of(&turn, "inProgress") }));
        let active = json!({ "type": "active", "activeFlags": [] });
        notify("thread/status/changed", &json!({ "threadId": at.thread, "status": active }));
        let begun = turn_of(&turn, "inProgress");
        notify("turn/started", &json!({ "threadId": at.thread, "turn": begun }));
        let item = json!({
            "type": "userMessage", "id": format!("{turn}-user"),
            "content": at.request["params"]["input"],
        });
        for method in ["item/started", "item/completed"] {
            notify(method, &json!({ "threadId": at.thread, "turnId": turn, "item": item }));
        }
        let text = at.request["params"]["input"].to_string();
        let chosen = self.script.messages.iter().find(|(words, _)| text.contains(words)).map(|(_, actions)| actions);
        let actions = chosen.or_else(|| nth(&self.script.turns, number)).cloned().unwrap_or_default();
        let (at, session) = (At { turn, ..at.clone() }, Arc::clone(self));
        thread::spawn(move || session.play(&actions, &at));
    }

    fn play(self: &Arc<Self>, actions: &[Action], at: &At) {
        for action in actions {
            if let Err(error) = self.act(action, at) {
                // The client is gone: there is nobody to play for.
                let _ = self.record(&json!({ "stopped": error.to_string() }));
                return;
            }
        }
    }

    fn act(self: &Arc<Self>, action: &Action, at: &At) -> Result<()> {
        match action {
            Action::Reply(result) => reply(&at.request, &fill(result, at)),
            Action::Refuse { code, message } => refuse(&at.request, *code, message),
            Action::Usual => self.usual(at.request["method"].as_str().unwrap_or_default(), at),
            Action::Notify { method, params } => notify(method, &fill(params, at)),
            Action::Ask { method, params } => self.ask(method, &fill(params, at))?,
            Action::Message(text) => {
                self.delta(text, at);
                self.end_message(at);
            }
            Action::Delta(text) => self.delta(text, at),
            Action::Complete { status, error } => {
                self.end_message(at);
                self.complete(status, error, true);
            }
            Action::CompleteWithoutNewline => {
                self.end_message(at);
                self.complete("completed", &Value::Null, false);
            }
            Action::Raw(bytes) => output::raw(bytes)?,
            Action::LongLine(length) => output::long_line(*length)?,
            Action::Stderr(lines) => {
                let mut stderr = std::io::stderr().lock();
                for number in 0..*lines {
                    writeln!(stderr, "fake agent, line {number} of its standard error")?;
                }
            }
            Action::WaitFor(file) => {
                harness::wait::until("file that the script waits for", || file.exists().then_some(()))?;
            }
            Action::Sleep { milliseconds } => thread::sleep(Duration::from_millis(*milliseconds)),
            Action::Stall => loop {
                thread::park();
            },
            Action::Grandchild(line) => {
                Command::new("setsid").args(["sh", "-c", line]).stdin(Stdio::null()).spawn()?;
            }
            Action::CloseOutput => output::close()?,
            Action::Exit(code) => exit(*code),
            Action::Die => {
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
            }
        }
        Ok(())
    }

    fn ask(&self, method: &str, params: &Value) -> Result<()> {
        let id = {
            let mut known = self.known();
            known.next_request += 1;
            known.next_request - 1
        };
        output::line(&json!({ "id": id, "method": method, "params": params }))?;
        let waiting = |known: &mut Known| !known.answers.contains_key(&id);
        let known = self.changed.wait_while(self.known(), waiting);
        drop(known.unwrap_or_else(PoisonError::into_inner));
        if let Some(thread) = params.get("threadId") {
            notify("serverRequest/resolved", &json!({ "threadId": thread, "requestId": id }));
        }
        Ok(())
    }

    fn delta(&self, text: &str, at: &At) {
        let (id, new) = {
            let mut known = self.known();
            let new = known.message.is_none();
            if new {
                known.items += 1;
                known.message = Some((format!("{}-{}", at.turn, known.items), String::new()));
            }
            let Some((id, so_far)) = &mut known.message else { return };
            so_far.push_str(text);
            (id.clone(), new)
        };
        if new {
            let item = json!({ "type": "agentMessage", "id": id, "text": "", "phase": null });
            let params = json!({ "threadId": at.thread, "turnId": at.turn, "item": item });
            notify("item/started", &params);
        }
        let params = json!({ "threadId": at.thread, "turnId": at.turn, "itemId": id, "delta": text });
        notify("item/agentMessage/delta", &params);
    }

    fn end_message(&self, at: &At) {
        let message = self.known().message.take();
        if let Some((id, text)) = message {
            let item = json!({ "type": "agentMessage", "id": id, "text": text, "phase": null });
            let params = json!({ "threadId": at.thread, "turnId": at.turn, "item": item });
            notify("item/completed", &params);
        }
    }

    fn complete(&self, status: &str, error: &Value, newline: bool) {
        let running = {
            let mut known = self.known();
            known.message = None;
            known.running.take()
        };
        let Some((thread, turn)) = running else { return };
        // A record that cannot be written is no reason to keep an end back.
        let _ = self.record(&json!({ "ended": status, "thread": thread }));
        let kind = if status == "failed" { "systemError" } else { "idle" };
        let idle = json!({ "threadId": thread, "status": { "type": kind } });
        notify("thread/status/changed", &idle);
        let mut ended = turn_of(&turn, status);
        ended["error"] = error.clone();
        let message = notification("turn/completed", &json!({ "threadId": thread, "turn": ended }));
        let text = if newline { format!("{message}\n") } else { message.to_string() };
        say(output::raw(text.as_bytes()));
    }
}

fn nth<T>(lists: &[T], index: usize) -> Option<&T> {
    lists.get(index).or(lists.last())
}

fn turn_of(id: &str, status: &str) -> Value {
    json!({
        "id": id, "items": [], "itemsView": "notLoaded", "status": status, "error": null,
        "startedAt": null, "completedAt": null, "durationMs": null,
    })
}

fn notification(method: &str, params: &Value) -> Value {
    json!({ "method": method, "params": params, "emittedAtMs": 0 })
}

fn notify(method: &str, params: &Value) {
    say(output::line(&notification(method, params)));
}

fn reply(request: &Value, result: &Value) {
    say(output::line(&json!({ "id": request["id"], "result": result })));
}

fn refuse(request: &Value, code: i64, message: &str) {
    let error = json!({ "code": code, "message": message });
    say(output::line(&json!({ "id": request["id"], "error": error })));
}

/// A client that does not listen any more is no reason to end: its closing of our input is.
fn say(written: std::io::Result<()>) {
    drop(written);
}

/// Puts the ids at hand in the place of `$thread` and `$turn`.
fn fill(value: &Value, at: &At) -> Value {
    match value {
        Value::String(text) => text.replace("$thread", &at.thread).replace("$turn", &at.turn).into(),
        Value::Array(all) => all.iter().map(|one| fill(one, at)).collect(),
        Value::Object(all) => {
            all.iter().map(|(name, one)| (name.clone(), fill(one, at))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
