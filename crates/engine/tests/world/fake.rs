//! An agent whose process is a shell script that speaks lines of plain words, and a world to run it in.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use turnkeep_agents::{
    Agent, Card, Clock, CredentialSource, Frame, HomeLink, HomePlan, Launch, LaunchError, Out, Program, ProgramSource, Protocol,
    Purpose, SecretSlot, Site, Stdio,
};
use turnkeep_engine::world::{Arrival, World, WorldConfig};
use turnkeep_model::{
    AccountId, CredentialId, Effect, Input, ItemId, MessageId, ProviderId, ProviderTurn, RuntimeId, SessionId, TurnId,
    port::{
        AgentCommand, AgentEvent, Capabilities, DeltaStream, Failure, FailureClass, Goals, Identity, Observation,
        SessionSettings, Sessions, SignInMethod, SignInStep, TransportRecord, TurnOutcome, Unsupported,
    },
    state::{AccountKind, ProcessIdentity},
};

pub(crate) const PROVIDER: &str = "fake";
pub(crate) const SESSION: SessionId = SessionId(1);
pub(crate) const TURN: TurnId = TurnId(1);

/// Much longer than anything takes, so that only what never comes fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct FakeAgent {
    pub(crate) card: Card,
    pub(crate) eof_grace: u64,
    pub(crate) ready_within: u64,
}

impl FakeAgent {
    pub(crate) fn new() -> Self {
        Self {
            card: Card {
                id: ProviderId::new(PROVIDER),
                name: "Fake".to_owned(),
                full_name: "Fake (tests)".to_owned(),
                capabilities: Capabilities {
                    sessions: Sessions::Many,
                    resume: true,
                    steer: false,
                    interrupt: true,
                    goals: Goals::None,
                    history_probe: false,
                    approvals: false,
                    threads: true,
                    commands: false,
                    fork: false,
                },
                sign_in: vec![SignInMethod::ApiKey],
                program: ProgramSource::Search { names: vec!["fake-agent".to_owned()], says_version: true },
                install: Vec::new(),
                system_home: ("FAKE_HOME".to_owned(), ".fake".to_owned()),
                own_variables: Vec::new(),
                serve: Some("fake-agent serve".to_owned()),
            },
            eof_grace: 2_000,
            ready_within: 20_000,
        }
    }
}

/// The item that the fake's program keeps for a home.
pub(crate) fn item_attributes(home: &Path) -> BTreeMap<String, String> {
    BTreeMap::from([("service".to_owned(), "fake auth".to_owned()), ("home".to_owned(), home.to_string_lossy().into_owned())])
}

impl Agent for FakeAgent {
    fn card(&self) -> &Card {
        &self.card
    }

    fn launch(&self, site: &Site) -> Result<Launch, LaunchError> {
        let system = site.kind == AccountKind::System;
        let home = if system { &site.system_home } else { &site.private_home };
        let mut environment = site.environment.clone();
        environment.insert("FAKE_HOME".to_owned(), home.to_string_lossy().into_owned());
        let purpose = match site.purpose {
            Purpose::Serve { .. } | Purpose::Attach => "serve",
            Purpose::SignIn { .. } => "sign-in",
            Purpose::SignOut => "sign-out",
        };
        Ok(Launch {
            program: Program { path: site.program.clone() },
            args: vec![purpose.to_owned()],
            environment,
            secrets: BTreeMap::new(),
            home: (!system).then(|| HomePlan {
                path: home.clone(),
                make_first: vec![site.system_home.join("sessions")],
                links: vec![HomeLink { name: "sessions".to_owned(), target: site.system_home.join("sessions") }],
            }),
            directory: Some(home.clone()),
            stdio: Stdio::JsonLines,
            source: match site.kind {
                AccountKind::ApiKey => CredentialSource::Vault,
                AccountKind::PrivateHome => CredentialSource::KeychainItem { attributes: item_attributes(home) },
                AccountKind::System => CredentialSource::File { path: home.join("auth.txt") },
                AccountKind::Server { .. } => return Err(LaunchError::NotOurs),
            },
            ready_within: self.ready_within,
            eof_grace: self.eof_grace,
        })
    }

    fn protocol(&self, purpose: &Purpose) -> Box<dyn Protocol> {
        let mut out = Vec::new();
        if *purpose == (Purpose::Serve { needs_key: true }) {
            let (head, tail) = ("key ".to_owned(), " end".to_owned());
            out.push(Out::Send(Frame::WithSecret { head, slot: SecretSlot::ApiKey, tail }));
        }
        Box::new(FakeProtocol { out, turn: None })
    }

    fn says_signed_out(&self, _text: &str) -> bool {
        false
    }

    fn system_sources(&self, home: &Path) -> Vec<CredentialSource> {
        vec![CredentialSource::File { path: home.join("auth.txt") }]
    }

    fn read_identity(&self, content: &[u8], digest: &dyn Fn(&[u8]) -> String) -> Observation {
        match std::str::from_utf8(content).map(str::trim) {
            Ok("") => Observation::NoOne,
            Ok("torn") => Observation::Unknown { why: "torn".to_owned() },
            Ok(name) => someone(&format!("name:{}", digest(name.as_bytes())), name),
            Err(_) => Observation::NoOne,
        }
    }
}

pub(crate) fn someone(fingerprint: &str, label: &str) -> Observation {
    Observation::Someone(Identity { fingerprint: fingerprint.to_owned(), label: label.to_owned(), plan: None })
}

/// One word a line says what happened; the rest is its text.
#[derive(Debug)]
struct FakeProtocol {
    out: Vec<Out>,
    turn: Option<TurnId>,
}

impl FakeProtocol {
    fn event(&mut self, event: AgentEvent) {
        self.out.push(Out::Event(event));
    }

    fn notice(&mut self, text: impl Into<String>) {
        self.event(AgentEvent::Notice { session: None, text: text.into() });
    }
}

impl Protocol for FakeProtocol {
    fn command(&mut self, _now: Clock, command: AgentCommand) -> Result<(), Unsupported> {
        let line = match command {
            AgentCommand::StartTurn { turn, text, .. } => {
                self.turn = Some(turn);
                format!("turn {text}")
            }
            AgentCommand::CancelSignIn => "cancel".to_owned(),
            AgentCommand::Steer { .. } => return Err(Unsupported { what: "steer a running turn" }),
            _ => return Ok(()),
        };
        self.out.push(Out::Send(Frame::Text(line)));
        Ok(())
    }

    fn receive(&mut self, _now: Clock, line: &[u8]) {
        let line = String::from_utf8_lossy(line).into_owned();
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match word {
            "ready" => self.event(AgentEvent::Ready {
                version: "1".to_owned(),
                identity: if rest.is_empty() { Observation::NoOne } else { someone(rest, rest) },
            }),
            "delta" => self.event(AgentEvent::Delta {
                session: SESSION,
                item: ItemId::new("i"),
                stream: DeltaStream::AgentMessage,
                text: rest.to_owned(),
            }),
            "ended" => {
                self.turn = None;
                let outcome = TurnOutcome::Completed;
                self.event(AgentEvent::TurnEnded { session: SESSION, provider_turn: ProviderTurn::new("t"), outcome });
            }
            "open" => self.event(AgentEvent::SignInStep { step: SignInStep::OpenUrl { url: rest.to_owned() } }),
            "signed-in" => self.event(AgentEvent::SignInEnded { result: Ok(someone(rest, rest)) }),
            "not-signed-in" => self.event(AgentEvent::SignInEnded {
                result: Err(Failure { class: FailureClass::Other, message: rest.to_owned(), detail: None }),
            }),
            "signed-out" => self.event(AgentEvent::SignedOut { result: Ok(()) }),
            "broken" => self.out.push(Out::Stop { why: rest.to_owned() }),
            _ => self.notice(line),
        }
    }

    fn receive_oversized(&mut self, _now: Clock, bytes: u64) {
        self.notice(format!("oversized {bytes}"));
    }

    fn wake(&mut self, _now: Clock) {}

    fn closed(&mut self, _now: Clock, record: TransportRecord) {
        if let Some(turn) = self.turn.take() {
            let record = TransportRecord { turn: Some(turn), ..record };
            self.event(AgentEvent::TurnEnded {
                session: SESSION,
                provider_turn: ProviderTurn::new("t"),
                outcome: TurnOutcome::Failed(Failure {
                    class: FailureClass::TransportClosed(Box::new(record)),
                    message: "closed".to_owned(),
                    detail: None,
                }),
            });
        }
    }

    fn poll(&mut self) -> Option<Out> {
        (!self.out.is_empty()).then(|| self.out.remove(0))
    }
}

/// A world with one agent, in folders of its own.
pub(crate) struct Stage {
    pub(crate) world: World,
    arrivals: UnboundedReceiver<Arrival>,
    pub(crate) root: TempDir,
    pub(crate) instance: String,
}

impl Stage {
    /// `script`: what the agent's program does, in the language of `/bin/sh`; `$1` is what it is started for.
    pub(crate) fn new(script: &str) -> Self {
        Self::with(script, FakeAgent::new())
    }

    pub(crate) fn with(script: &str, agent: FakeAgent) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let real = root.path().canonicalize().expect("it is there");
        fs::create_dir_all(real.join("bin")).expect("made");
        fs::create_dir_all(real.join(".fake")).expect("made");
        install(&real, script);
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let instance = format!("test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self::again(root, instance, agent)
    }

    /// The same place, as another run of the application finds it.
    pub(crate) fn again(root: TempDir, instance: String, agent: FakeAgent) -> Self {
        harness::guard::built().expect("a guard");
        let real = root.path().canonicalize().expect("it is there");
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut environment = BTreeMap::from([
            ("PATH".to_owned(), format!("{}:/usr/bin:/bin", text(real.join("bin")))),
            ("HOME".to_owned(), text(real.clone())),
            ("UNRELATED".to_owned(), "x".to_owned()),
            ("SOME_TOKEN".to_owned(), "canary".to_owned()),
        ]);
        // The way to the keychain.
        environment.extend(std::env::var("DBUS_SESSION_BUS_ADDRESS").ok().map(|it| ("DBUS_SESSION_BUS_ADDRESS".to_owned(), it)));
        let config = WorldConfig { instance: instance.clone(), homes: real.join("homes"), environment: Some(environment) };
        let (inbox, arrivals) = unbounded_channel();
        let world = World::start(config, vec![Arc::new(agent)], inbox);
        Self { world, arrivals, root, instance }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.path().canonicalize().expect("it is there").join(below)
    }

    pub(crate) fn spawn(&self, runtime: u64, kind: AccountKind) {
        self.world.perform(Effect::Spawn {
            runtime: RuntimeId(runtime),
            provider: ProviderId::new(PROVIDER),
            account: AccountId(1),
            credential: CredentialId(1),
            kind,
        });
    }

    pub(crate) fn start_turn(&self, runtime: u64, text: &str) {
        self.world.perform(Effect::Command {
            runtime: RuntimeId(runtime),
            command: AgentCommand::StartTurn {
                session: SESSION,
                turn: TURN,
                message: MessageId::new("m"),
                text: text.to_owned(),
                settings: SessionSettings::default(),
            },
        });
    }

    pub(crate) fn stop(&self, runtime: u64, force: bool) {
        self.world.perform(Effect::Stop { runtime: RuntimeId(runtime), force });
    }

    /// What the loop says of what it took in.
    fn take_in(&self, arrival: &Arrival) {
        if let Arrival::Event { runtime, .. } | Arrival::Input(Input::Agent { runtime, .. }) = arrival {
            self.world.taken(*runtime, 1);
        }
    }

    /// What a process says until it is held up, because nobody says that it was taken in.
    pub(crate) async fn piles_up(&mut self) -> usize {
        let mut words = 0;
        while let Ok(arrival) = tokio::time::timeout(Duration::from_secs(2), self.arrivals.recv()).await {
            let arrival = arrival.expect("the world is there");
            words += usize::from(matches!(arrival, Arrival::Event { .. } | Arrival::Input(Input::Agent { .. })));
        }
        words
    }

    /// The first arrival that `wanted` takes; others are passed over.
    pub(crate) async fn next<T>(&mut self, of: &str, mut wanted: impl FnMut(&Arrival) -> Option<T>) -> T {
        let mut passed = Vec::new();
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let arrival = self.arrivals.recv().await.expect("the world is there");
                self.take_in(&arrival);
                if let Some(found) = wanted(&arrival) {
                    return found;
                }
                passed.push(format!("{arrival:?}").chars().take(300).collect::<String>());
            }
        })
        .await;
        found.unwrap_or_else(|_| panic!("{of} did not come; what came: {passed:#?}"))
    }

    pub(crate) async fn input<T>(&mut self, of: &str, mut wanted: impl FnMut(&Input) -> Option<T>) -> T {
        self.next(of, |arrival| match arrival {
            Arrival::Input(input) => wanted(input),
            Arrival::Event { .. } => None,
        })
        .await
    }

    pub(crate) async fn event<T>(&mut self, of: &str, mut wanted: impl FnMut(&AgentEvent) -> Option<T>) -> T {
        self.input(of, |input| match input {
            Input::Agent { event, .. } => wanted(event),
            _ => None,
        })
        .await
    }

    /// Half a second in which nothing is observed of any credential.
    pub(crate) async fn nothing_is_observed(&mut self) {
        let observed = async {
            loop {
                if let Some(Arrival::Input(input @ Input::Observed { .. })) = self.arrivals.recv().await {
                    return input;
                }
            }
        };
        let observed = tokio::time::timeout(Duration::from_millis(500), observed).await;
        assert!(observed.is_err(), "{observed:?}");
    }

    pub(crate) async fn started(&mut self) -> ProcessIdentity {
        self.input("the start", |input| match input {
            Input::RuntimeStarted { process, .. } => Some(process.clone()),
            Input::RuntimeStartFailed { failure, .. } => panic!("not started: {failure:?}"),
            _ => None,
        })
        .await
    }

    pub(crate) async fn ready(&mut self) -> Observation {
        self.event("ready", |event| match event {
            AgentEvent::Ready { identity, .. } => Some(identity.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn notice(&mut self, start: &str) -> String {
        self.event(start, |event| match event {
            AgentEvent::Notice { text, .. } if text.starts_with(start) => Some(text.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn gone(&mut self) -> Option<TransportRecord> {
        self.input("the end", |input| match input {
            Input::RuntimeGone { closed, .. } => Some(closed.clone()),
            Input::RuntimeStartFailed { failure, .. } => panic!("not started: {failure:?}"),
            _ => None,
        })
        .await
    }

    pub(crate) async fn start_failed(&mut self) -> Failure {
        self.input("the failure", |input| match input {
            Input::RuntimeStartFailed { failure, .. } => Some(failure.clone()),
            Input::RuntimeGone { .. } => panic!("it ended otherwise"),
            _ => None,
        })
        .await
    }
}

/// Put the agent's program in place.
pub(crate) fn install(root: &Path, script: &str) {
    let program = root.join("bin/fake-agent");
    let text = format!("#!/bin/sh\ncase \"$1\" in --version) echo 'fake-agent 1.2.3'; exit;; esac\n{script}\n");
    let new = root.join("bin/new");
    fs::write(&new, text).expect("written");
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("executable");
    fs::rename(new, program).expect("in place");
}

/// Processes that carry the marker of this instance, with their command lines.
pub(crate) fn alive(instance: &str) -> Vec<(u32, String)> {
    let marker = format!("TURNKEEP_RUNTIME={instance}-");
    fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|pair| pair.starts_with(marker.as_bytes())))
        })
        .map(|pid| (pid, String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).into_owned()))
        .collect()
}

pub(crate) fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X']))
}
