//! A turn being played: one step after the other, until a permission or a command has to be waited for.

use std::{
    collections::VecDeque,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    agent::{Agent, Out, Prompt, Session},
    scratch,
    script::{self, Step, Tool, pause},
    through::Stage,
    wire::{self, Refusal},
};

/// So many words are one part of a streamed text.
const WORDS_A_PART: usize = 3;

/// More of a command's output than this many bytes is not shown.
pub(crate) const LONGEST_OUTPUT: usize = 256 << 10;

/// The turn of a session.
#[derive(Debug)]
pub(crate) struct Playing {
    request: Value,
    steps: VecDeque<Step>,
    at: Position,
    number: u64,
    /// Messages and tool calls so far.
    parts: u64,
    /// The text that is being streamed: which update, its message, what was said of it.
    text: Option<(&'static str, String, String)>,
}

#[derive(Debug)]
pub(crate) enum Position {
    Due(Instant),
    Asked { request: u64, call: String, tool: Tool, refused: Vec<Step> },
    Running { call: String },
    Errand { request: u64, call: String, stage: Stage },
    Nowhere,
}

impl Agent {
    /// When the next step is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        let due = |session: &Session| match session.playing.as_ref()?.at {
            Position::Due(at) => Some(at),
            Position::Asked { .. } | Position::Running { .. } | Position::Errand { .. } | Position::Nowhere => None,
        };
        self.sessions.values().filter_map(due).min()
    }

    /// Plays every step that is due.
    pub(crate) fn step(&mut self, now: Instant) {
        let due = |session: &Session| {
            session.playing.as_ref().is_some_and(|playing| matches!(playing.at, Position::Due(at) if at <= now))
        };
        let names: Vec<String> = self.sessions.iter().filter(|(_, session)| due(session)).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.play(now, &name);
        }
    }

    /// Begins the next message of a session that plays none.
    pub(crate) fn play_next(&mut self, now: Instant, name: &str) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        if session.playing.is_some() {
            return;
        }
        let Some(Prompt { request, text }) = session.waiting.pop_front() else { return };
        let first = session.turns == 0;
        session.turns += 1;
        session.used += length(&text);
        session.playing = Some(Playing {
            request,
            steps: script::steps(&text, first).into(),
            at: Position::Due(now),
            number: session.turns,
            parts: 0,
            text: None,
        });
        let update = json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
        self.history.add(name, &update);
    }

    fn play(&mut self, now: Instant, name: &str) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        let pace = pause(self.pace, session.slowness());
        let Some(playing) = session.playing.as_mut() else { return };
        let Some(step) = playing.steps.pop_front() else { return self.end(now, name, Ok("end_turn")) };
        if !matches!(step, Step::Say(_) | Step::Think(_)) {
            self.text_ends(name);
        }
        match step {
            Step::Say(text) => self.stream(name, "agent_message_chunk", &text, Step::Say),
            Step::Think(text) => self.stream(name, "agent_thought_chunk", &text, Step::Think),
            Step::Plan(entries, done) => self.tell(name, &plan(entries, done)),
            Step::Usage => self.usage(name),
            Step::Pause(steps) => return self.wait(name, Position::Due(now + pause(pace, steps))),
            Step::Hang => return self.wait(name, Position::Nowhere),
            Step::Crash => return self.out.push_back(Out::Crash),
            Step::Refuse(refusal) => return self.end(now, name, Err(refusal)),
            Step::SignOut => {
                if let Err(refusal) = self.sign_out(true) {
                    return self.end(now, name, Err(refusal));
                }
            }
            Step::Use(tool) => return self.begin_tool(now, name, tool, pace),
            Step::Ask { tool, refused } => return self.ask(now, name, tool, refused, pace),
        }
        self.wait(name, Position::Due(now + pace));
    }

    pub(crate) fn wait(&mut self, name: &str, at: Position) {
        if let Some(playing) = self.playing(name) {
            playing.at = at;
        }
    }

    fn playing(&mut self, name: &str) -> Option<&mut Playing> {
        self.sessions.get_mut(name)?.playing.as_mut()
    }

    /// Sends an update and keeps it.
    pub(crate) fn tell(&mut self, name: &str, update: &Value) {
        self.history.add(name, update);
        self.send(wire::update(name, update));
    }

    /// Sends the first words of a text; the rest comes with the next step.
    fn stream(&mut self, name: &str, kind: &'static str, text: &str, again: fn(String) -> Step) {
        if self.playing(name).and_then(|it| it.text.as_ref()).is_some_and(|(streamed, ..)| *streamed != kind) {
            self.text_ends(name);
        }
        let Some(session) = self.sessions.get_mut(name) else { return };
        session.used += length(text);
        let Some(playing) = session.playing.as_mut() else { return };
        let cut = text.split_inclusive(char::is_whitespace).take(WORDS_A_PART).map(str::len).sum();
        let (part, rest) = text.split_at(cut);
        if playing.text.is_none() {
            playing.text = Some((kind, playing.part("message"), String::new()));
        }
        let Some((_, message, said)) = &mut playing.text else { return };
        said.push_str(part);
        let update = chunk(kind, message, part);
        if !rest.is_empty() {
            playing.steps.push_front(again(rest.to_owned()));
        }
        self.send(wire::update(name, &update));
    }

    /// Keeps the text that was streamed, whole.
    fn text_ends(&mut self, name: &str) {
        if let Some((kind, message, said)) = self.playing(name).and_then(|playing| playing.text.take()) {
            self.history.add(name, &chunk(kind, &message, &said));
        }
    }

    fn usage(&mut self, name: &str) {
        let used = self.sessions.get(name).map_or(0, |session| session.used / 4);
        self.send(wire::update(name, &json!({ "sessionUpdate": "usage_update", "used": used, "size": 200_000 })));
    }

    fn ask(&mut self, now: Instant, name: &str, tool: Tool, refused: Vec<Step>, pace: Duration) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        if !session.asks || session.always.contains(tool.kind()) {
            return self.begin_tool(now, name, tool, pace);
        }
        let Some(playing) = session.playing.as_mut() else { return };
        let call = playing.part("call");
        let content = wanted(&session.cwd, &tool);
        let mut begun = tool_call(&call, &tool, "pending");
        begun["content"] = content.clone();
        self.tell(name, &begun);
        self.asked += 1;
        let request = self.asked;
        let options = [
            ("yes", "allow_once", "Allow"),
            ("always", "allow_always", "Always allow in this session"),
            ("no", "reject_once", "Refuse"),
        ];
        let options = options.map(|(id, kind, text)| json!({ "optionId": id, "kind": kind, "name": text }));
        let tool_call = json!({
            "toolCallId": call,
            "title": tool.title(),
            "kind": tool.kind(),
            "status": "pending",
            "rawInput": tool.input(),
            "content": content,
        });
        self.send(json!({
            "jsonrpc": "2.0",
            "id": request,
            "method": "session/request_permission",
            "params": { "sessionId": name, "toolCall": tool_call, "options": options },
        }));
        self.wait(name, Position::Asked { request, call, tool, refused });
    }

    /// The client answered a request of ours; an error counts as a refusal.
    pub(crate) fn answered(&mut self, now: Instant, id: &Value, outcome: &Result<Value, String>) {
        let waits = |session: &Session| match &session.playing.as_ref()?.at {
            Position::Errand { request, call, stage } if *id == *request => Some((call.clone(), stage.clone())),
            Position::Errand { .. }
            | Position::Asked { .. }
            | Position::Due(_)
            | Position::Running { .. }
            | Position::Nowhere => None,
        };
        let found = self.sessions.iter().find_map(|(name, session)| Some((name.clone(), waits(session)?)));
        if let Some((name, (call, stage))) = found {
            return self.errand_answered(now, &name, call, stage, outcome);
        }
        let asked = |session: &Session| {
            let playing = session.playing.as_ref()?;
            match &playing.at {
                Position::Asked { request, call, tool, refused } if *id == *request => {
                    Some((call.clone(), tool.clone(), refused.clone()))
                }
                Position::Asked { .. }
                | Position::Due(_)
                | Position::Running { .. }
                | Position::Errand { .. }
                | Position::Nowhere => None,
            }
        };
        let found = self.sessions.iter().find_map(|(name, session)| Some((name.clone(), asked(session)?)));
        // Too late, or never asked.
        let Some((name, (call, tool, refused))) = found else { return };
        let outcome = outcome.as_ref().map_or(&Value::Null, |result| &result["outcome"]);
        if outcome["outcome"] == "cancelled" {
            return self.cancel(&name);
        }
        let pace = self.pace;
        match outcome["optionId"].as_str() {
            Some("yes") => self.use_tool(now, &name, call, tool, pace),
            Some("always") => {
                if let Some(session) = self.sessions.get_mut(&name) {
                    session.always.insert(tool.kind());
                }
                self.use_tool(now, &name, call, tool, pace);
            }
            _ => {
                self.tell(&name, &tool_ends(&call, false, &json!([])));
                let Some(playing) = self.playing(&name) else { return };
                for step in refused.into_iter().rev() {
                    playing.steps.push_front(step);
                }
                playing.at = Position::Due(now + pace);
            }
        }
    }

    fn begin_tool(&mut self, now: Instant, name: &str, tool: Tool, pace: Duration) {
        let Some(call) = self.playing(name).map(|playing| playing.part("call")) else { return };
        self.tell(name, &tool_call(&call, &tool, "in_progress"));
        self.use_tool(now, name, call, tool, pace);
    }

    fn use_tool(&mut self, now: Instant, name: &str, call: String, tool: Tool, pace: Duration) {
        let Some(session) = self.sessions.get(name) else { return };
        let cwd = session.cwd.clone();
        // Told after the start, so that whoever hears it finds the command running.
        let begun =
            wire::update(name, &json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": "in_progress" }));
        match tool {
            Tool::Run { program, .. } => {
                self.out.push_back(Out::Run { session: name.to_owned(), call: call.clone(), program, cwd });
                self.send(begun);
                self.wait(name, Position::Running { call });
            }
            Tool::Edit { name: file, text } => {
                let (ok, content) = match scratch::write(&cwd, file, &text) {
                    Ok(change) => {
                        let path = cwd.join(scratch::FOLDER).join(file);
                        (true, json!([{ "type": "diff", "path": path, "oldText": change.old, "newText": change.new }]))
                    }
                    Err(error) => (false, content(&format!("The file was not written: {error}"))),
                };
                self.tell(name, &tool_ends(&call, ok, &content));
                self.wait(name, Position::Due(now + pace));
            }
            Tool::Through(errand) => {
                self.send(begun);
                self.begin_errand(now, name, call, &errand);
            }
            Tool::Nothing => {
                self.tell(name, &tool_ends(&call, true, &json!([])));
                self.wait(name, Position::Due(now + pace));
            }
        }
    }

    /// A command has ended.
    pub(crate) fn ran(&mut self, now: Instant, name: &str, ended: &str, result: &Result<(String, bool), String>) {
        let running =
            self.playing(name).is_some_and(|playing| matches!(&playing.at, Position::Running { call } if call == ended));
        // The end of what was stopped comes late.
        if !running {
            return;
        }
        let (ok, text) = match result {
            Ok((output, ok)) => (*ok, output.clone()),
            Err(why) => (false, format!("The command did not start: {why}")),
        };
        self.tell(name, &tool_ends(ended, ok, &content(&text)));
        self.wait(name, Position::Due(now + self.pace));
    }

    /// Stops the turn of a session, and answers what waited behind it.
    pub(crate) fn cancel(&mut self, name: &str) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        let waiting: Vec<Prompt> = session.waiting.drain(..).collect();
        let at = session.playing.as_mut().map(|playing| std::mem::replace(&mut playing.at, Position::Nowhere));
        match at {
            None => {}
            Some(Position::Asked { call, .. }) => self.tell(name, &tool_ends(&call, false, &json!([]))),
            Some(Position::Running { call }) => {
                self.out.push_back(Out::Kill { session: name.to_owned() });
                self.tell(name, &tool_ends(&call, false, &content("Stopped.")));
            }
            Some(Position::Errand { call, stage, .. }) => {
                self.errand_stopped(name, &stage);
                self.tell(name, &tool_ends(&call, false, &content("Stopped.")));
            }
            Some(Position::Due(_) | Position::Nowhere) => {}
        }
        self.finish(name, Ok("cancelled"));
        for prompt in waiting {
            self.send(wire::result(&prompt.request, &json!({ "stopReason": "cancelled" })));
        }
    }

    fn end(&mut self, now: Instant, name: &str, how: Result<&str, Refusal>) {
        self.finish(name, how);
        self.play_next(now, name);
    }

    fn finish(&mut self, name: &str, how: Result<&str, Refusal>) {
        self.text_ends(name);
        let Some(session) = self.sessions.get_mut(name) else { return };
        let tokens = session.used / 4;
        let Some(playing) = session.playing.take() else { return };
        self.send(match how {
            Ok(reason) => wire::result(
                &playing.request,
                &json!({
                    "stopReason": reason,
                    "usage": { "inputTokens": tokens / 2, "outputTokens": tokens - tokens / 2, "totalTokens": tokens },
                }),
            ),
            Err(refusal) => wire::error(&playing.request, &refusal),
        });
    }
}

impl Playing {
    /// A name that is used once in a session.
    fn part(&mut self, of: &str) -> String {
        self.parts += 1;
        format!("{of}-{}-{}", self.number, self.parts)
    }
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

fn chunk(kind: &str, message: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "messageId": message, "content": { "type": "text", "text": text } })
}

pub(crate) fn content(text: &str) -> Value {
    json!([{ "type": "content", "content": { "type": "text", "text": text } }])
}

/// What a tool would do, as far as it can be shown before.
fn wanted(cwd: &Path, tool: &Tool) -> Value {
    match tool {
        Tool::Edit { name, text } => {
            let path = cwd.join(scratch::FOLDER).join(name);
            json!([{ "type": "diff", "path": path, "oldText": scratch::read(cwd, name), "newText": text }])
        }
        Tool::Through(errand) => errand.change(cwd),
        Tool::Run { .. } | Tool::Nothing => json!([]),
    }
}

fn tool_call(call: &str, tool: &Tool, status: &str) -> Value {
    json!({
        "sessionUpdate": "tool_call",
        "toolCallId": call,
        "title": tool.title(),
        "kind": tool.kind(),
        "status": status,
        "rawInput": tool.input(),
    })
}

pub(crate) fn tool_ends(call: &str, ok: bool, content: &Value) -> Value {
    let status = if ok { "completed" } else { "failed" };
    json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": status, "content": content })
}

fn plan(entries: &[&str], done: usize) -> Value {
    let status = |at: usize| match at.cmp(&done) {
        std::cmp::Ordering::Less => "completed",
        std::cmp::Ordering::Equal => "in_progress",
        std::cmp::Ordering::Greater => "pending",
    };
    let entries: Vec<Value> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| json!({ "content": entry, "priority": "medium", "status": status(at) }))
        .collect();
    json!({ "sessionUpdate": "plan", "entries": entries })
}
