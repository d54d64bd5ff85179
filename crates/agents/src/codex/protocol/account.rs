//! The handshake, and who is signed in: reading it, signing in, signing out.

use serde_json::{json, value::RawValue};
use turnkeep_model::port::{AgentEvent, Failure, FailureClass, Identity, Observation, SignInMethod, SignInStep};
use url::{Host, Url};

use super::{AccountFor, Asked, Machine, Stage, misshapen, parse, patience};
use crate::{
    codex::{wire, words},
    jsonrpc::{Params, RpcError},
    port::{Out, Purpose, SecretSlot},
};

/// What is known about the account of this process.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// `None` until Codex has said.
    pub(super) signed_in: Option<bool>,
    /// The configured model provider is reached with the OpenAI account.
    pub(super) by_account: bool,
    /// Name of the configured model provider.
    pub(super) provider: Option<String>,
    has_key: bool,
    sign_in: Option<SignIn>,
    signing_out: bool,
}

#[derive(Debug)]
struct SignIn {
    login: Option<String>,
    cancelled: bool,
    /// Codex said that it worked; who it is is being read.
    done: bool,
}

impl Machine {
    pub(super) fn initialize(&mut self) {
        let params = json!({
            "clientInfo": {"name": "turnkeep", "title": "Turnkeep", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {"experimentalApi": true, "requestAttestation": false},
        });
        self.ask("initialize", &params, patience::HANDSHAKE, Asked::Initialize);
        self.pump(0);
    }

    pub(super) fn initialized(&mut self, outcome: Result<&RawValue, RpcError>) {
        let read = match outcome {
            Ok(raw) => parse::<wire::Initialized>(raw).ok_or_else(|| misshapen("begin").message),
            Err(error) => Err(words::of_refusal(&error, "begin").message),
        };
        match read {
            Ok(read) => self.version = version(&read.user_agent),
            Err(why) => return self.stop(why),
        }
        let initialized = self.requests.notify("initialized");
        self.out.push_back(Out::Send(initialized));
        match self.purpose.clone() {
            Purpose::Serve { needs_key: true } => self.give_key(Asked::Key),
            Purpose::Serve { needs_key: false } | Purpose::Attach => self.read_account(AccountFor::Ready),
            Purpose::SignIn { method } => {
                self.ready(Observation::Unknown { why: "a sign-in is under way".to_owned() });
                self.sign_in(method);
            }
            Purpose::SignOut => {
                self.ready(Observation::Unknown { why: "a sign-out is under way".to_owned() });
                self.sign_out();
            }
        }
    }

    fn stop(&mut self, why: String) {
        self.out.push_back(Out::Stop { why });
    }

    fn give_key(&mut self, asked: Asked) {
        let params = Params::Secret {
            head: "{\"type\":\"apiKey\",\"apiKey\":".to_owned(),
            slot: SecretSlot::ApiKey,
            tail: "}".to_owned(),
        };
        self.requests.ask("account/login/start", params, patience::ACCOUNT, asked);
    }

    pub(super) fn key_given(&mut self, outcome: Result<&RawValue, RpcError>) {
        match outcome {
            Ok(_) => {
                self.account.has_key = true;
                self.read_account(AccountFor::Ready);
            }
            Err(error) => {
                let failure = words::of_sign_in(Some(&error.message), false);
                let why = failure.message.clone();
                self.fault(None, failure);
                self.stop(why);
            }
        }
    }

    pub(super) fn ready(&mut self, identity: Observation) {
        if self.stage != Stage::Handshake {
            return;
        }
        self.stage = Stage::Ready;
        self.event(AgentEvent::Ready { version: self.version.clone(), identity });
        for command in std::mem::take(&mut self.early) {
            self.carry_out(command);
        }
    }

    pub(super) fn read_account(&mut self, why: AccountFor) {
        if why == AccountFor::Ready {
            self.ask("config/read", &json!({}), patience::ACCOUNT, Asked::Config);
        }
        self.ask("account/read", &json!({}), patience::ACCOUNT, Asked::Account(why));
    }

    /// Only to know whose rejections concern the account; it may be missing.
    pub(super) fn config_read(&mut self, outcome: Result<&RawValue, RpcError>) {
        if let Some(read) = outcome.ok().and_then(parse::<wire::ConfigRead>) {
            self.account.provider = Some(read.config.model_provider.unwrap_or_else(|| "openai".to_owned()));
        }
    }

    pub(super) fn account_read(&mut self, why: AccountFor, late: bool, outcome: Result<&RawValue, RpcError>) {
        let observed = match outcome {
            Ok(raw) => match parse::<wire::AccountRead>(raw) {
                Some(read) => self.observe(read),
                None => Observation::Unknown { why: misshapen("read the account").message },
            },
            Err(error) => Observation::Unknown { why: words::of_refusal(&error, "read the account").message },
        };
        match why {
            AccountFor::Ready if self.stage == Stage::Handshake => self.ready(observed),
            AccountFor::SignIn if !late => self.sign_in_ended(Ok(observed)),
            AccountFor::Ready | AccountFor::Command | AccountFor::SignIn => {
                self.event(AgentEvent::Identity { identity: observed });
            }
        }
    }

    fn observe(&mut self, read: wire::AccountRead) -> Observation {
        self.account.by_account = read.requires_openai_auth;
        let Some(account) = read.account else {
            if self.account.has_key {
                self.account.signed_in = Some(true);
                return Observation::Someone(api_key());
            }
            if !read.requires_openai_auth {
                // The person's config reaches a model without OpenAI's account: there is no one, and none is needed.
                self.account.signed_in = None;
                return Observation::Someone(Identity {
                    fingerprint: "own-provider".to_owned(),
                    label: "Own model provider, no sign-in needed".to_owned(),
                    plan: None,
                });
            }
            self.account.signed_in = Some(false);
            return Observation::NoOne;
        };
        self.account.signed_in = Some(true);
        match account.r#type.as_str() {
            "apiKey" => Observation::Someone(api_key()),
            "chatgpt" => {
                let workspace = read.workspace_routing.and_then(|routing| routing.chatgpt_account_id);
                let person = read.user_id.or_else(|| account.email.clone());
                if person.is_none() && workspace.is_none() {
                    return Observation::Unknown { why: "Codex is signed in, and does not say to whom".to_owned() };
                }
                let person = person.unwrap_or_default();
                let workspace = workspace.unwrap_or_default();
                let label = account.email.unwrap_or_else(|| "ChatGPT account".to_owned());
                Observation::Someone(Identity {
                    fingerprint: format!("chatgpt:{person}:{workspace}"),
                    label: match account.workspace_name {
                        Some(name) if !name.is_empty() && name != "Personal" => format!("{label} ({name})"),
                        _ => label,
                    },
                    plan: account.plan_type,
                })
            }
            other => Observation::Someone(Identity { fingerprint: other.to_owned(), label: other.to_owned(), plan: None }),
        }
    }

    pub(super) fn account_updated(&mut self, read: &wire::AccountUpdated) {
        self.account.signed_in = Some(read.auth_mode.is_some());
        let serves = matches!(self.purpose, Purpose::Serve { .. } | Purpose::Attach);
        let busy = self.account.sign_in.is_some() || self.account.signing_out;
        if self.stage == Stage::Ready && serves && !busy {
            self.read_account(AccountFor::Command);
        }
    }

    // ---- signing in

    pub(super) fn sign_in(&mut self, method: SignInMethod) {
        if self.account.sign_in.is_some() {
            return;
        }
        self.account.sign_in = Some(SignIn { login: None, cancelled: false, done: false });
        let kind = match method {
            SignInMethod::Browser => "chatgpt",
            SignInMethod::DeviceCode => "chatgptDeviceCode",
            SignInMethod::ApiKey | SignInMethod::Advertised { .. } | SignInMethod::Elsewhere => {
                return self.give_key(Asked::SignIn(method));
            }
        };
        self.ask("account/login/start", &json!({"type": kind}), patience::ACCOUNT, Asked::SignIn(method));
    }

    pub(super) fn sign_in_started(&mut self, method: SignInMethod, late: bool, outcome: Result<&RawValue, RpcError>) {
        let started = match outcome {
            Ok(raw) => parse::<wire::LoginStarted>(raw).ok_or_else(|| misshapen("sign in")),
            Err(error) => Err(words::of_sign_in(Some(&error.message), false)),
        };
        let Some(sign_in) = &mut self.account.sign_in else {
            if let (true, Ok(wire::LoginStarted { login_id: Some(login), .. })) = (late, started) {
                self.ask("account/login/cancel", &json!({"loginId": login}), patience::QUICK, Asked::CancelSignIn);
            }
            return;
        };
        let started = match started {
            Ok(started) => started,
            Err(failure) => return self.sign_in_ended(Err(failure)),
        };
        sign_in.login = started.login_id;
        if sign_in.cancelled {
            return self.cancel_sign_in();
        }
        let step = match method {
            // Its completion comes by itself, as with the others. The last two are never asked of this agent.
            SignInMethod::ApiKey | SignInMethod::Advertised { .. } | SignInMethod::Elsewhere => return,
            SignInMethod::Browser => started.auth_url.map(|url| SignInStep::OpenUrl { url }),
            SignInMethod::DeviceCode => match (started.verification_url, started.user_code) {
                (Some(url), Some(code)) => Some(SignInStep::TypeCode { url, code }),
                _ => None,
            },
        };
        match step {
            Some(step) if may_open(&step) => self.event(AgentEvent::SignInStep { step }),
            Some(_) => {
                let message = "Codex asked to open an address that is not a web page of its sign-in; it was not opened.";
                self.cancel_sign_in();
                self.sign_in_ended(Err(words::plain(FailureClass::Protocol, message)));
            }
            None => self.sign_in_ended(Err(misshapen("sign in"))),
        }
    }

    pub(super) fn cancel_sign_in(&mut self) {
        let Some(sign_in) = &mut self.account.sign_in else { return };
        sign_in.cancelled = true;
        if let Some(login) = sign_in.login.clone() {
            self.ask("account/login/cancel", &json!({"loginId": login}), patience::QUICK, Asked::CancelSignIn);
        }
    }

    pub(super) fn login_completed(&mut self, read: &wire::LoginCompleted) {
        let Some(sign_in) = &mut self.account.sign_in else { return };
        let other = read.login_id.is_some() && sign_in.login.is_some() && read.login_id != sign_in.login;
        if other || sign_in.done {
            return;
        }
        if read.success {
            sign_in.done = true;
            self.read_account(AccountFor::SignIn);
        } else {
            let failure = words::of_sign_in(read.error.as_deref(), sign_in.cancelled);
            self.sign_in_ended(Err(failure));
        }
    }

    pub(super) fn sign_in_ended(&mut self, result: Result<Observation, Failure>) {
        if self.account.sign_in.take().is_some() {
            self.event(AgentEvent::SignInEnded { result });
        }
    }

    /// Whether a person is still expected to act, so that a late answer still matters.
    pub(super) fn signing_in(&self) -> bool {
        self.account.sign_in.is_some()
    }

    // ---- signing out

    pub(super) fn sign_out(&mut self) {
        if !std::mem::replace(&mut self.account.signing_out, true) {
            self.ask("account/logout", &serde_json::Value::Null, patience::SIGN_OUT, Asked::SignOut);
        }
    }

    pub(super) fn signed_out(&mut self, late: bool, outcome: Result<&RawValue, RpcError>) {
        if late {
            return;
        }
        let result = outcome.map(|_| ()).map_err(|error| words::of_refusal(&error, "sign out"));
        self.sign_out_ended(result);
    }

    pub(super) fn sign_out_ended(&mut self, result: Result<(), Failure>) {
        if std::mem::replace(&mut self.account.signing_out, false) {
            if result.is_ok() {
                self.account.signed_in = Some(false);
                self.account.has_key = false;
            }
            self.event(AgentEvent::SignedOut { result });
        }
    }
}

fn api_key() -> Identity {
    Identity { fingerprint: "api-key".to_owned(), label: "API key".to_owned(), plan: None }
}

/// "turnkeep/0.171.0 (Debian …" → "0.171.0"
fn version(user_agent: &str) -> String {
    let after = user_agent.split_once('/').map_or("", |(_, after)| after);
    after.split_whitespace().next().unwrap_or_default().to_owned()
}

/// Only a page of the web, or of this computer in plain text, is ever shown to a person as a sign-in.
fn may_open(step: &SignInStep) -> bool {
    let (SignInStep::OpenUrl { url } | SignInStep::TypeCode { url, .. }) = step;
    let Ok(url) = Url::parse(url) else { return false };
    let loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && loopback)
}
