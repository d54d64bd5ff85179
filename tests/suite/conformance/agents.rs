//! The agents: how each is started against the mock model, its wire's words, and what is typed to make it do something.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use harness::fake_agent::{Action, FakeAgent, Script};
use harness::mock_model::Reply;
use harness::real_codex;
use harness::wait::PATIENCE;
use serde_json::json;
use turnkeep_model::ProviderId;
use turnkeep_model::port::{ApprovalMode, SessionSettings};

use super::rig::{Rig, signed_in_already};

/// Lines of a wire that the relay looks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wire {
    pub(super) open: &'static str,
    pub(super) steer: &'static str,
    pub(super) interrupt: &'static str,
    pub(super) delta: &'static str,
    pub(super) ask: &'static str,
    /// Of the line that ends a turn.
    pub(super) end: &'static str,
    /// The answer that denies, and one that allows.
    pub(super) deny: (&'static str, &'static str),
}

const APP_SERVER: Wire = Wire {
    open: "\"thread/start\"",
    steer: "\"turn/steer\"",
    interrupt: "\"turn/interrupt\"",
    delta: "\"item/agentMessage/delta\"",
    ask: "/requestApproval\"",
    end: "\"turn/completed\"",
    deny: ("\"decline\"", "\"accept\""),
};

const AGENT_CLIENT: Wire = Wire {
    open: "\"session/new\"",
    steer: "\"_session/steering\"",
    interrupt: "\"session/cancel\"",
    delta: "\"agent_message_chunk\"",
    ask: "\"session/request_permission\"",
    end: "\"stopReason\"",
    // Each agent has its own names.
    deny: ("\"no\"", "\"yes\""),
};

/// What is started in the end.
pub(super) struct Real {
    pub(super) program: PathBuf,
    /// Before those of the supervisor.
    pub(super) arguments: Vec<String>,
    /// What a careful supervisor does not pass on.
    pub(super) variables: Vec<(String, String)>,
}

/// When the agent is to ask.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asks(Option<ApprovalMode>);

impl Asks {
    pub(super) fn clone_into_settings(self) -> SessionSettings {
        SessionSettings { approval_mode: self.0, ..SessionSettings::default() }
    }
}

/// An agent of the suite.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) name: &'static str,
    provider: &'static str,
    pub(super) wire: Wire,
    /// Writes what it needs into the rig's home.
    pub(super) prepare: fn(&Rig) -> Result<Real>,
    /// Waits for a sign-in, or makes one.
    pub(super) sign_in: fn(&Rig) -> Result<()>,
    pub(super) settings: Asks,
    /// Typed: it says something and is done, after [`Rig::release`].
    pub(super) say: &'static str,
    /// What it then has said.
    pub(super) said: &'static str,
    /// Typed: it begins to say something, and goes on only after [`Rig::release`], if ever.
    pub(super) hold: &'static str,
    /// Whether [`Self::hold`] completes once released.
    pub(super) hold_completes: bool,
    /// Typed: it asks before it does something.
    pub(super) ask: &'static str,
    /// Typed: it has its client write `work/turnkeep-demo/client.md`, read it and run a command, each after it asked; and then
    /// asks it to read what is none of the session's. `None` for an agent that asks its client for nothing of the kind.
    pub(super) by_client: Option<&'static str>,
    /// Whether what was asked for was done.
    pub(super) done: fn(&Rig) -> bool,
    /// Whether it signs out by itself when it is asked to.
    pub(super) signs_out: bool,
    /// How long anything may take.
    pub(super) patience: Duration,
    /// Whether a model was asked, whose requests can be looked at.
    pub(super) asks_a_model: bool,
}

impl Candidate {
    pub(super) fn provider(&self) -> ProviderId {
        ProviderId::new(self.provider)
    }
}

/// The key that is signed in with.
pub(super) const KEY: &str = "sk-conformance-0123456789";

/// What those that ask the mock model are told.
const MOCKED: Candidate = Candidate {
    name: "",
    provider: "",
    wire: APP_SERVER,
    prepare: |_| anyhow::bail!("nothing is prepared"),
    sign_in: signed_in_already,
    settings: Asks(Some(ApprovalMode::Always)),
    say: "Please say it",
    said: "It is said.",
    hold: "Please hold it",
    hold_completes: true,
    ask: "Please ask for it",
    by_client: None,
    done: |rig| rig.path("work/asked.txt").exists(),
    signs_out: true,
    patience: PATIENCE,
    asks_a_model: true,
};

/// What the mock model answers to them.
fn script(rig: &Rig) {
    rig.mock.on("Please say it", vec![Reply::say("It [[middle]]is said.")]);
    rig.mock.on("Please hold it", vec![Reply::say("It is [[middle]]held.")]);
    let why = "The test asks for it.";
    rig.mock.on("Please ask for it", vec![Reply::escalated("touch asked.txt", why), Reply::say("It was asked for.")]);
}

/// The scripted agent, which speaks the wire of an app-server.
#[expect(non_upper_case_globals, reason = "it names a module of tests")]
pub(super) const fake: Candidate = Candidate {
    name: "fake",
    provider: "codex",
    prepare: prepare_fake,
    done: |rig| {
        let answers = FakeAgent::at(&rig.path("fake")).record();
        answers.iter().any(|one| one["answer"]["result"]["decision"] == "accept")
    },
    asks_a_model: false,
    ..MOCKED
};

fn prepare_fake(rig: &Rig) -> Result<Real> {
    real_codex::sign_in_with_key(&rig.path("home/.codex"), KEY)?;
    let wait = || Action::WaitFor(rig.path("middle"));
    let words = |text: &str| Action::Delta(text.to_owned());
    let ask = Action::Ask {
        method: "item/commandExecution/requestApproval".to_owned(),
        params: json!({
            "threadId": "$thread", "turnId": "$turn", "itemId": "command-1", "startedAtMs": 0,
            "command": "touch asked.txt", "cwd": rig.path("work"), "availableDecisions": ["accept", "decline", "cancel"],
        }),
    };
    let turn = |words: &str, actions: Vec<Action>| (words.to_owned(), actions);
    let messages = vec![
        turn("Please say it", vec![words("It "), wait(), words("is said."), Action::complete()]),
        turn("Please hold it", vec![words("It is "), wait(), words("held."), Action::complete()]),
        turn("Please ask for it", vec![ask, Action::Message("It was asked for.".to_owned()), Action::complete()]),
    ];
    let script = Script { messages, ..Script::default() };
    let installed = FakeAgent::install(std::path::Path::new(env!("CARGO_BIN_EXE_fake_agent")), &rig.path("fake"), &script)?;
    Ok(Real { program: installed.program(), arguments: Vec::new(), variables: Vec::new() })
}

/// The real program.
#[expect(non_upper_case_globals, reason = "it names a module of tests")]
pub(super) const codex: Candidate = Candidate { name: "codex", provider: "codex", prepare: prepare_codex, ..MOCKED };

fn prepare_codex(rig: &Rig) -> Result<Real> {
    script(rig);
    let home = rig.path("home/.codex");
    real_codex::write_config(&home, &rig.mock, real_codex::Account::SignedIn)?;
    real_codex::sign_in_with_key(&home, KEY)?;
    let variables = real_codex::env(&rig.mock).into_iter().map(|(name, value)| (name.to_owned(), value));
    Ok(Real { program: real_codex::program()?, arguments: Vec::new(), variables: variables.collect() })
}

/// The demo agent, as the application starts it.
#[expect(non_upper_case_globals, reason = "it names a module of tests")]
pub(super) const demo: Candidate = Candidate {
    name: "demo",
    provider: "demo",
    wire: AGENT_CLIENT,
    prepare: |_| {
        let variables = vec![("TURNKEEP_DEMO_PACE_MS".to_owned(), "1".to_owned())];
        Ok(Real { program: crate::whole::program()?, arguments: Vec::new(), variables })
    },
    settings: Asks(None),
    say: "Please be slow",
    said: "Done.",
    hold: "Please hang",
    hold_completes: false,
    ask: "Give me the tour",
    by_client: Some("Have your client do it"),
    done: |rig| rig.path("work/turnkeep-demo/tour.md").exists(),
    asks_a_model: false,
    ..MOCKED
};

/// What those have in common that ask the mock model and speak the Agent Client Protocol.
const MOCKED_CLIENT: Candidate = Candidate { wire: AGENT_CLIENT, settings: Asks(None), ..MOCKED };

#[expect(non_upper_case_globals, reason = "it names a module of tests")]
pub(super) const codex_acp: Candidate =
    Candidate { name: "codex_acp", provider: "codex-acp", prepare: prepare_codex_acp, ..MOCKED_CLIENT };

fn prepare_codex_acp(rig: &Rig) -> Result<Real> {
    let Real { program, mut variables, .. } = prepare_codex(rig)?;
    variables.push(("CODEX_PATH".to_owned(), program.to_string_lossy().into_owned()));
    Ok(Real { program: installed(".bin/codex-acp")?, arguments: Vec::new(), variables })
}

#[expect(non_upper_case_globals, reason = "it names a module of tests")]
pub(super) const claude_agent_acp: Candidate =
    Candidate { name: "claude_agent_acp", provider: "claude-agent-acp", prepare: prepare_claude, ..MOCKED_CLIENT };

fn prepare_claude(rig: &Rig) -> Result<Real> {
    script(rig);
    let variables = [
        ("ANTHROPIC_BASE_URL", rig.mock.url()),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Ok(Real { program: installed(".bin/claude-agent-acp")?, arguments: Vec::new(), variables })
}

#[expect(non_upper_case_globals, reason = "it names a module of tests")]
pub(super) const opencode: Candidate = Candidate {
    name: "opencode",
    provider: "opencode",
    prepare: prepare_opencode,
    // Its sign-ins are ended by its own program, in a terminal.
    signs_out: false,
    // Its first start in a home takes some seconds of a whole core.
    patience: PATIENCE.saturating_mul(6),
    ..MOCKED_CLIENT
};

fn prepare_opencode(rig: &Rig) -> Result<Real> {
    script(rig);
    let model = json!({ "name": "Mock", "limit": { "context": 100_000, "output": 8000 } });
    let options = json!({ "baseURL": format!("{}/v1", rig.mock.url()), "apiKey": KEY });
    let provider = json!({ "npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": options, "models": { "mock": model } });
    let config = json!({
        "autoupdate": false, "share": "disabled", "model": "mock/mock", "small_model": "mock/mock",
        "provider": { "mock": provider },
    });
    let nowhere = "http://127.0.0.1:9/";
    let variables = [
        ("OPENCODE_CONFIG_CONTENT", config.to_string()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
        // It would look for a newer plug-in of its own: nothing here leaves the computer.
        ("HTTP_PROXY", nowhere.to_owned()),
        ("HTTPS_PROXY", nowhere.to_owned()),
        ("NO_PROXY", "127.0.0.1,localhost".to_owned()),
        ("npm_config_registry", nowhere.to_owned()),
        ("npm_config_fetch_retries", "0".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Ok(Real { program: installed("opencode-linux-x64/bin/opencode")?, arguments: Vec::new(), variables })
}

/// A program of the packages that `tests/agents` names.
fn installed(below: &str) -> Result<PathBuf> {
    let agents = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("agents");
    let program = agents.join("node_modules").join(below);
    anyhow::ensure!(program.exists(), "{} is not there: run `npm ci` in {}", program.display(), agents.display());
    Ok(program)
}
