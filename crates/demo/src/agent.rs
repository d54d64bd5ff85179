//! The agent's machine: lines in, lines and wishes out. It reads no stream, starts no process and looks at no clock.
//!
//! What a person typed is played step by step (`turn`); here are the requests around it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    history::History,
    script::{WORDS, sign_in_needed, word},
    through::Offers,
    turn::Playing,
    wire::{self, INTERNAL, INVALID_REQUEST, Incoming, NO_METHOD, NOT_FOUND, Refusal},
};

/// The one way to sign in.
pub(crate) const METHOD: &str = "demo";

/// More messages than these do not wait in one session.
const LONGEST_QUEUE: usize = 32;

const MODES: [(&str, &str, &str); 2] =
    [("ask", "Ask", "Asks before a command or a change"), ("trust", "Trust", "Runs commands and makes changes without asking")];

const MODELS: [(&str, &str, u32); 2] = [("quick", "Quick", 1), ("careful", "Careful", 3)];

/// What is to be done outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Out {
    Send(Value),
    /// Run a command of a session; its end comes back as `In::Ran`.
    Run {
        session: String,
        call: String,
        program: &'static [&'static str],
        cwd: PathBuf,
    },
    /// End the command of a session.
    Kill {
        session: String,
    },
    /// End at once, without an answer to anything.
    Crash,
}

/// What happened outside.
#[derive(Debug)]
pub(crate) enum In {
    Line(Vec<u8>),
    /// A line longer than what is read.
    TooLong,
    /// What a command wrote, and whether it ended well; or why it did not start.
    Ran {
        session: String,
        call: String,
        result: Result<(String, bool), String>,
    },
    /// Nothing more comes.
    End,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) cwd: PathBuf,
    pub(crate) asks: bool,
    pub(crate) model: &'static str,
    /// The kinds of tools that are always allowed.
    pub(crate) always: BTreeSet<&'static str>,
    pub(crate) turns: u64,
    pub(crate) used: u64,
    pub(crate) playing: Option<Playing>,
    pub(crate) waiting: VecDeque<Prompt>,
}

/// A message that waits for its turn.
#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    pub(crate) request: Value,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) history: History,
    pub(crate) pace: Duration,
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) out: VecDeque<Out>,
    /// The number of the last request of ours.
    pub(crate) asked: u64,
    pub(crate) offers: Offers,
    greeted: bool,
    /// A session that was opened and has not been told its commands.
    opened: Option<String>,
}

impl Agent {
    pub(crate) fn new(history: History, pace: Duration) -> Self {
        Self {
            history,
            pace,
            sessions: BTreeMap::new(),
            out: VecDeque::new(),
            asked: 0,
            offers: Offers::default(),
            greeted: false,
            opened: None,
        }
    }

    pub(crate) fn receive(&mut self, now: Instant, line: &[u8]) {
        match wire::read(line) {
            Incoming::Blank => {}
            Incoming::Bad { id, refusal } => self.send(wire::error(&id, &refusal)),
            Incoming::Answer { id, outcome } => self.answered(now, &id, &outcome),
            Incoming::Notification { method, params } => {
                if method == "session/cancel"
                    && let Some(session) = params["sessionId"].as_str()
                {
                    self.cancel(session);
                }
            }
            Incoming::Request { id, method, params } => match self.request(now, &id, &method, &params) {
                Ok(Some(result)) => self.send(wire::result(&id, &result)),
                Ok(None) => {}
                Err(refusal) => self.send(wire::error(&id, &refusal)),
            },
        }
        self.tell_commands();
    }

    pub(crate) fn too_long(&mut self) {
        self.send(wire::error(&Value::Null, &Refusal::new(INVALID_REQUEST, "Invalid request: the line is too long")));
    }

    pub(crate) fn send(&mut self, message: Value) {
        self.out.push_back(Out::Send(message));
    }

    /// None: the answer comes later.
    fn request(&mut self, now: Instant, id: &Value, method: &str, params: &Value) -> Result<Option<Value>, Refusal> {
        if method == "initialize" {
            return self.initialize(params).map(Some);
        }
        if !self.greeted {
            return Err(Refusal::new(INVALID_REQUEST, "Invalid request: initialize comes first"));
        }
        match method {
            "authenticate" => self.authenticate(params),
            "logout" => self.sign_out(true),
            "session/new" => self.begin(params),
            "session/load" => self.load(params, true),
            "session/resume" => self.load(params, false),
            "session/fork" => self.fork(params),
            "session/list" => Ok(self.list(params)),
            "session/close" => self.close(params),
            "session/set_mode" => self.set_mode(params),
            "session/set_config_option" => self.set_option(params),
            "session/prompt" => return self.prompt(now, id, params).map(|()| None),
            _ => Err(Refusal::new(NO_METHOD, format!("Method not found: {method}")).with(json!({ "method": method }))),
        }
        .map(Some)
    }

    fn initialize(&mut self, params: &Value) -> Result<Value, Refusal> {
        if params["protocolVersion"].as_u64().is_none() {
            return Err(Refusal::params("protocolVersion is missing"));
        }
        self.greeted = true;
        self.offers = Offers::of(params);
        let kept = self.history.keeps();
        let mut sessions = json!({ "close": {} });
        if kept {
            sessions["list"] = json!({});
            sessions["fork"] = json!({});
            sessions["resume"] = json!({});
        }
        Ok(json!({
            // The only one that it speaks; a client that asked for another decides whether to go on.
            "protocolVersion": 1,
            "agentInfo": { "name": "turnkeep-demo", "title": "Demo agent", "version": env!("CARGO_PKG_VERSION") },
            "agentCapabilities": {
                "loadSession": kept,
                "promptCapabilities": { "image": false, "audio": false, "embeddedContext": true },
                "mcpCapabilities": { "http": false, "sse": false },
                "sessionCapabilities": sessions,
                "auth": { "logout": {} },
            },
            "authMethods": [{
                "id": METHOD,
                "name": "Sign in to the demo agent",
                "description": "No account is needed: it is signed in at once",
            }],
        }))
    }

    fn authenticate(&mut self, params: &Value) -> Result<Value, Refusal> {
        if params["methodId"] != METHOD {
            return Err(Refusal::params(format!("methodId is not {METHOD}")));
        }
        self.sign_out(false)
    }

    pub(crate) fn sign_out(&mut self, signed_out: bool) -> Result<Value, Refusal> {
        let failed = |error| Refusal::new(INTERNAL, format!("the sign-in cannot be kept: {error}"));
        self.history.set_signed_out(signed_out).map_err(failed)?;
        Ok(json!({}))
    }

    fn signed_in(&self) -> Result<(), Refusal> {
        if self.history.is_signed_out() { Err(sign_in_needed()) } else { Ok(()) }
    }

    fn begin(&mut self, params: &Value) -> Result<Value, Refusal> {
        let cwd = folder(params)?;
        self.signed_in()?;
        let id =
            self.history.begin(&cwd).map_err(|error| Refusal::new(INTERNAL, format!("the session cannot be kept: {error}")))?;
        let session = Session::new(cwd, 0);
        let mut answer = session.settings();
        answer["sessionId"] = json!(id);
        self.opened = Some(id.clone());
        self.sessions.insert(id, session);
        Ok(answer)
    }

    fn load(&mut self, params: &Value, replayed: bool) -> Result<Value, Refusal> {
        if !self.history.keeps() {
            return Err(Refusal::new(NO_METHOD, "Method not found: nothing is kept to load"));
        }
        let id = text(params, "sessionId")?;
        let cwd = folder(params)?;
        self.signed_in()?;
        let kept = self.history.read(id).ok_or_else(|| unknown(id))?;
        if replayed {
            for update in &kept.updates {
                self.send(wire::update(id, update));
            }
        }
        let turns = kept.turns();
        self.opened = Some(id.to_owned());
        let session = self.sessions.entry(id.to_owned()).or_insert_with(|| Session::new(cwd, turns));
        Ok(session.settings())
    }

    fn fork(&mut self, params: &Value) -> Result<Value, Refusal> {
        if !self.history.keeps() {
            return Err(Refusal::new(NO_METHOD, "Method not found: nothing is kept to go on from"));
        }
        let of = text(params, "sessionId")?;
        let cwd = folder(params)?;
        self.signed_in()?;
        let failed = |error| Refusal::new(INTERNAL, format!("the session cannot be kept: {error}"));
        let (id, kept) = self.history.fork(of, &cwd).map_err(failed)?.ok_or_else(|| unknown(of))?;
        let session = Session::new(cwd, kept.turns());
        let mut answer = session.settings();
        answer["sessionId"] = json!(id);
        self.opened = Some(id.clone());
        self.sessions.insert(id, session);
        Ok(answer)
    }

    fn list(&self, params: &Value) -> Value {
        let all = self.history.list().into_iter();
        let sessions: Vec<Value> = all
            .filter(|(_, kept)| params["cwd"].as_str().is_none_or(|cwd| kept.cwd == Path::new(cwd)))
            .map(|(id, kept)| json!({ "sessionId": id, "cwd": kept.cwd, "title": kept.title() }))
            .collect();
        json!({ "sessions": sessions })
    }

    fn close(&mut self, params: &Value) -> Result<Value, Refusal> {
        let id = text(params, "sessionId")?;
        if !self.sessions.contains_key(id) {
            return Err(unknown(id));
        }
        self.cancel(id);
        self.sessions.remove(id);
        Ok(json!({}))
    }

    fn set_mode(&mut self, params: &Value) -> Result<Value, Refusal> {
        let session = self.session(params)?;
        let mode = text(params, "modeId")?;
        let known = MODES.iter().any(|(id, ..)| *id == mode);
        session.asks = if known { mode == "ask" } else { return Err(Refusal::params("modeId is not one of the modes")) };
        Ok(json!({}))
    }

    fn set_option(&mut self, params: &Value) -> Result<Value, Refusal> {
        let session = self.session(params)?;
        if params["configId"] != "model" {
            return Err(Refusal::params("configId is not model"));
        }
        let wanted = text(params, "value")?;
        let known = MODELS.iter().find(|(id, ..)| *id == wanted);
        session.model = known.ok_or_else(|| Refusal::params("value is not one of the models"))?.0;
        Ok(json!({ "configOptions": session.options() }))
    }

    fn prompt(&mut self, now: Instant, id: &Value, params: &Value) -> Result<(), Refusal> {
        let name = text(params, "sessionId")?.to_owned();
        let text = prompt_text(params)?;
        self.session(params)?;
        self.signed_in()?;
        let session = self.session(params)?;
        if session.waiting.len() >= LONGEST_QUEUE {
            return Err(Refusal::new(INVALID_REQUEST, "Invalid request: too many messages wait in this session"));
        }
        session.waiting.push_back(Prompt { request: id.clone(), text });
        self.play_next(now, &name);
        Ok(())
    }

    fn session(&mut self, params: &Value) -> Result<&mut Session, Refusal> {
        let id = text(params, "sessionId")?;
        self.sessions.get_mut(id).ok_or_else(|| unknown(id))
    }

    /// What is told about a session once its opening was answered.
    fn tell_commands(&mut self) {
        let Some(id) = self.opened.take() else { return };
        let commands: Vec<Value> =
            WORDS.iter().map(|(word, what)| json!({ "name": word, "description": what })).filter(plain).collect();
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
        self.send(wire::update(&id, &update));
    }
}

/// A command is one word.
fn plain(command: &Value) -> bool {
    command["name"].as_str().is_some_and(|name| !name.contains(' ') && word(name) == name)
}

impl Session {
    fn new(cwd: PathBuf, turns: u64) -> Self {
        Self {
            cwd,
            asks: true,
            model: MODELS[0].0,
            always: BTreeSet::new(),
            turns,
            used: 0,
            playing: None,
            waiting: VecDeque::new(),
        }
    }

    /// How many steps one step takes.
    pub(crate) fn slowness(&self) -> u32 {
        MODELS.iter().find(|(id, ..)| *id == self.model).map_or(1, |(.., slowness)| *slowness)
    }

    fn settings(&self) -> Value {
        let modes = MODES.map(|(id, name, what)| json!({ "id": id, "name": name, "description": what }));
        let current = if self.asks { "ask" } else { "trust" };
        json!({
            "modes": { "currentModeId": current, "availableModes": modes },
            "configOptions": self.options(),
        })
    }

    fn options(&self) -> Value {
        let models = MODELS.map(|(id, name, _)| json!({ "value": id, "name": name }));
        json!([{
            "id": "model",
            "name": "Model",
            "category": "model",
            "type": "select",
            "currentValue": self.model,
            "options": models,
        }])
    }
}

fn unknown(session: &str) -> Refusal {
    Refusal::new(NOT_FOUND, "Resource not found").with(json!({ "sessionId": session }))
}

fn text<'a>(params: &'a Value, name: &str) -> Result<&'a str, Refusal> {
    params[name].as_str().ok_or_else(|| Refusal::params(format!("{name} is missing")))
}

fn folder(params: &Value) -> Result<PathBuf, Refusal> {
    let cwd = PathBuf::from(text(params, "cwd")?);
    if !cwd.is_absolute() {
        return Err(Refusal::params("cwd is not absolute"));
    }
    if !cwd.is_dir() {
        return Err(Refusal::params("cwd is no folder"));
    }
    Ok(cwd)
}

fn prompt_text(params: &Value) -> Result<String, Refusal> {
    let blocks = params["prompt"].as_array().ok_or_else(|| Refusal::params("prompt is not a list"))?;
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    if texts.is_empty() {
        return Err(Refusal::params("prompt has no text"));
    }
    Ok(texts.join("\n"))
}
