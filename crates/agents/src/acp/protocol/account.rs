//! The handshake, and who is signed in: as far as the agent tells, and by the ways that it told of.

use serde_json::{Value, json, value::RawValue};
use turnkeep_model::port::{
    AgentEvent, Capabilities, Failure, FailureClass, Goals, Identity, Observation, OfferedBy, Sessions, SignInMethod, SignInOffer,
};

use super::{Asked, Can, Machine, Stage, parse, patience};
use crate::{
    acp::{wire, words},
    port::{Out, ProgramSource, Purpose},
};

/// The one version that is spoken here.
const VERSION: u64 = 1;

/// What is known about the account of this process.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// The last word of the agent's.
    seen: Option<Observation>,
    offers: Vec<SignInOffer>,
    signing_in: bool,
    signing_out: bool,
}

impl Machine {
    pub(super) fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": VERSION,
            "clientInfo": {"name": "turnkeep", "title": "Turnkeep", "version": env!("CARGO_PKG_VERSION")},
            // A sign-in in a terminal can be shown to a person.
            "clientCapabilities": {
                "fs": {"readTextFile": true, "writeTextFile": true},
                "terminal": true,
                "auth": {"terminal": true},
                "_meta": {"terminal-auth": true},
            },
        });
        self.ask("initialize", &params, patience::UNLIMITED, Asked::Initialize);
        self.pump(0);
    }

    pub(super) fn initialized(&mut self, outcome: Result<&RawValue, wire::Refusal>) {
        if self.stage != Stage::Handshake {
            return;
        }
        let read = match outcome {
            Ok(raw) => parse::<wire::Initialized>(raw).ok_or_else(|| words::misshapen(&self.entry, "begin").message),
            Err(error) => Err(words::of_refusal(&self.entry, &error, "begin").message),
        };
        let read = match read {
            Ok(read) => read,
            Err(why) => return self.out.push_back(Out::Stop { why }),
        };
        if read.protocol_version != Some(VERSION) {
            let theirs = read.protocol_version.map_or("none that it names".to_owned(), |version| version.to_string());
            let why = format!(
                "{} speaks version {theirs} of the Agent Client Protocol; Turnkeep speaks version {VERSION}. Install another \
                 version of {}.",
                self.entry.name, self.entry.name
            );
            return self.out.push_back(Out::Stop { why });
        }
        let sessions = &read.agent_capabilities.session_capabilities;
        self.can = Can {
            load: read.agent_capabilities.load_session,
            resume: !sessions.resume.is_null(),
            list: !sessions.list.is_null(),
            close: !sessions.close.is_null(),
            fork: !sessions.fork.is_null(),
            steer: read.meta.pointer("/steering/supported").and_then(Value::as_bool) == Some(true),
            logout: !read.agent_capabilities.auth.logout.is_null(),
        };
        self.version = read.agent_info.version;
        self.account.offers =
            read.auth_methods.into_iter().filter(|method| !method.id.is_empty()).map(|m| self.offer(m)).collect();
        self.event(AgentEvent::Introduced { capabilities: self.capabilities(), sign_in: self.account.offers.clone() });
        match self.purpose.clone() {
            Purpose::Serve { .. } | Purpose::Attach => self.ready("the agent has not said yet who is signed in"),
            Purpose::SignIn { method } => {
                self.ready("a sign-in is under way");
                self.sign_in(&method);
            }
            Purpose::SignOut => {
                self.ready("a sign-out is under way");
                if self.can.logout {
                    self.sign_out();
                } else {
                    let message = format!("{} cannot be signed out from here. Use its own program to sign out.", self.entry.name);
                    self.event(AgentEvent::SignedOut { result: Err(words::plain(FailureClass::Unsupported, message)) });
                }
            }
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sessions: Sessions::Many,
            resume: self.can.load || self.can.resume,
            steer: self.can.steer,
            interrupt: true,
            goals: Goals::None,
            history_probe: false,
            approvals: true,
            // What it lists must be of use.
            threads: self.can.list && (self.can.load || self.can.resume),
            commands: true,
            fork: self.can.fork,
        }
    }

    /// One of its ways to sign in. What must be done in a terminal is a command for a person.
    fn offer(&self, from: wire::AuthMethod) -> SignInOffer {
        let terminal = from.meta.get("terminal-auth");
        let by = if terminal.is_some() || from.r#type == "terminal" {
            let given = |name: &str| terminal.and_then(|terminal| terminal.get(name));
            let command = given("command").and_then(Value::as_str);
            let args: Vec<&str> =
                given("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            let words: Vec<String> = match command {
                Some(command) => std::iter::once(command).chain(args).map(quoted).collect(),
                None => {
                    let own = self.program().into_iter().chain(self.entry.args.clone());
                    own.chain(from.args).map(|word| quoted(&word)).collect()
                }
            };
            OfferedBy::Terminal { command: words.join(" ") }
        } else if from.meta.get("api-key").is_some() {
            OfferedBy::Key
        } else {
            OfferedBy::Agent
        };
        SignInOffer {
            name: if from.name.is_empty() { from.id.clone() } else { from.name },
            id: from.id,
            description: from.description,
            by,
        }
    }

    fn program(&self) -> Option<String> {
        match &self.entry.program {
            ProgramSource::Search { names, .. } => names.first().cloned(),
            ProgramSource::Path(path) => Some(path.to_string_lossy().into_owned()),
            ProgramSource::Own => None,
        }
    }

    fn ready(&mut self, why: &str) {
        self.stage = Stage::Ready;
        let identity = self.account.seen.clone().unwrap_or_else(|| Observation::Unknown { why: why.to_owned() });
        self.event(AgentEvent::Ready { version: self.version.clone(), identity });
        for command in std::mem::take(&mut self.early) {
            match self.unsupported(&command) {
                Some(unsupported) => self.refuse_unsupported(command, &unsupported),
                None => self.carry_out(0, command),
            }
        }
    }

    /// The agent's own word about who is signed in.
    pub(super) fn auth_status(&mut self, status: wire::AuthStatus) {
        let nothing = |text: &str| text.trim().is_empty();
        let seen = match status.kind.as_str() {
            "none" => Observation::NoOne,
            "account" => {
                let email = status.account.email.filter(|email| !nothing(email)).unwrap_or_default();
                let organization = status.account.organization.unwrap_or_default();
                Observation::Someone(Identity {
                    fingerprint: format!("account:{email}:{organization}"),
                    label: if email.is_empty() { status.label } else { email },
                    plan: status.account.plan,
                })
            }
            "api_key" => named("api-key", status.label),
            "gateway" => named(&format!("gateway:{}", status.detail), status.label),
            other => return self.unknown(&format!("auth status {other}")),
        };
        // Who was given it by a key of ours is known from that key.
        if matches!(self.purpose, Purpose::Serve { needs_key: true }) || self.account.seen.as_ref() == Some(&seen) {
            return;
        }
        self.account.seen = Some(seen.clone());
        let quiet = self.account.signing_in || self.account.signing_out || !matches!(self.purpose, Purpose::Serve { .. });
        if self.stage == Stage::Ready && !quiet {
            self.event(AgentEvent::Identity { identity: seen });
        }
    }

    pub(super) fn tell_identity(&mut self) {
        let unknown = || Observation::Unknown { why: "the agent does not say who is signed in".to_owned() };
        let identity = self.account.seen.clone().unwrap_or_else(unknown);
        self.event(AgentEvent::Identity { identity });
    }

    // ---- signing in and out

    pub(super) fn sign_in(&mut self, method: &SignInMethod) {
        if self.account.signing_in {
            return;
        }
        let offer = match method {
            SignInMethod::Advertised { id } => self.account.offers.iter().find(|offer| offer.id == *id),
            SignInMethod::Browser | SignInMethod::DeviceCode | SignInMethod::ApiKey | SignInMethod::Elsewhere => None,
        };
        let refusal = match offer.map(|offer| &offer.by) {
            Some(OfferedBy::Agent) => None,
            Some(OfferedBy::Terminal { command }) => Some(format!("Run this in a terminal, then say that you did: {command}")),
            Some(OfferedBy::Key) => Some("A key must be entered for this.".to_owned()),
            None => Some(format!("{} does not offer this way to sign in.", self.entry.name)),
        };
        self.account.signing_in = true;
        if let Some(message) = refusal {
            return self.sign_in_ended(Err(words::plain(FailureClass::Unsupported, message)));
        }
        let params = json!({"methodId": offer.map(|offer| offer.id.clone())});
        self.ask("authenticate", &params, patience::UNLIMITED, Asked::Authenticate);
    }

    pub(super) fn authenticated(&mut self, outcome: Result<&RawValue, wire::Refusal>) {
        let result = match outcome {
            Ok(_) => Ok(match self.account.seen.clone() {
                // What was said before the sign-in is no word about it.
                None | Some(Observation::NoOne) => {
                    Observation::Unknown { why: "the agent does not say who signed in".to_owned() }
                }
                Some(seen) => seen,
            }),
            Err(error) => {
                let failure = words::of_refusal(&self.entry, &error, "sign in");
                Err(Failure { class: FailureClass::Other, ..failure })
            }
        };
        self.sign_in_ended(result);
    }

    pub(super) fn cancel_sign_in(&mut self) {
        self.sign_in_ended(Err(words::plain(FailureClass::Other, "The sign-in was cancelled. Nothing was changed.")));
    }

    pub(super) fn sign_in_ended(&mut self, result: Result<Observation, Failure>) {
        if std::mem::replace(&mut self.account.signing_in, false) {
            self.event(AgentEvent::SignInEnded { result });
        }
    }

    pub(super) fn sign_out(&mut self) {
        if !std::mem::replace(&mut self.account.signing_out, true) {
            self.ask("logout", &json!({}), patience::SIGN_OUT, Asked::SignOut);
        }
    }

    pub(super) fn signed_out(&mut self, outcome: Result<&RawValue, wire::Refusal>) {
        self.sign_out_ended(outcome.map(|_| ()).map_err(|error| words::of_refusal(&self.entry, &error, "sign out")));
    }

    pub(super) fn sign_out_ended(&mut self, result: Result<(), Failure>) {
        if std::mem::replace(&mut self.account.signing_out, false) {
            self.event(AgentEvent::SignedOut { result });
        }
    }
}

fn named(fingerprint: &str, label: String) -> Observation {
    Observation::Someone(Identity { fingerprint: fingerprint.to_owned(), label, plan: None })
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
