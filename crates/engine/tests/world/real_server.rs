//! The real Codex as a server that the test started, and not the engine: attached to, used, lost, found again, and never
//! harmed.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures_util::{SinkExt as _, StreamExt as _};
use harness::{
    mock_model::{MockModel, Reply},
    process,
    real_codex::{self, Account},
    wait,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::{TcpStream, UnixListener, UnixStream},
    task::JoinHandle,
};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};
use turnkeep_agents::{Server as Address, builtin};
use turnkeep_engine::{Config, Engine, Handle, Places, Snapshot, TranscriptEvent};
use turnkeep_model::{
    AccountId, Input, MessageId, ProviderId, SessionId,
    port::{Answer, ApprovalMode, Choice, FailureClass, Item, ItemBody, Sandbox, SessionSettings, TransportRecord, TurnOutcome},
    state::{AccountKind, ApprovalState, Asker, EndedTurn, Phase},
};

use crate::fake::PATIENCE;

const PROVIDER: &str = "codex";
const ONE: SessionId = SessionId(0);

/// Folders for one server and one engine.
struct Ground {
    root: TempDir,
    mock: MockModel,
}

impl Ground {
    fn new() -> Self {
        let mock = MockModel::start().expect("the mock model");
        // The agent refuses a home below the temporary folder.
        let root = tempfile::Builder::new().prefix("tk-").tempdir_in("/var/tmp").expect("a folder");
        for name in ["home", "work", "tmp", "empty"] {
            fs::create_dir(root.path().join(name)).expect("made");
        }
        real_codex::write_config(&root.path().join("codex"), &mock, Account::None).expect("a config");
        Self { root, mock }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn socket(&self) -> String {
        format!("unix://{}", self.path("it.sock").display())
    }

    fn serve(&self, listen: &str) -> Server {
        let child = Command::new(real_codex::program().expect("the agent"))
            .args(["app-server", "--listen", listen])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("CODEX_HOME", self.path("codex"))
            .envs(real_codex::env(&self.mock))
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a server");
        let pid = i32::try_from(child.id()).expect("a pid");
        let start_ticks = process::row(pid).expect("it runs").start_ticks;
        let mut server = Server { child, pid, start_ticks, address: listen.to_owned() };
        if let Some(path) = listen.strip_prefix("unix://") {
            let path = Path::new(path).to_owned();
            wait::until("the server's socket", || std::os::unix::net::UnixStream::connect(&path).ok()).expect("it listens");
        } else {
            let mut errors = BufReader::new(server.child.stderr.take().expect("piped")).lines().map_while(Result::ok);
            let line = errors.find(|line| line.contains("listening on: ws://")).expect("the server says where it listens");
            // It ends when nobody reads what it says.
            std::thread::spawn(move || errors.for_each(drop));
            server.address = line[line.find("ws://").expect("an address")..].trim().to_owned();
        }
        server
    }

    /// An engine to which the agent is not even installed: what it needs, it has from the server.
    fn engine(&self) -> Play {
        let environment = BTreeMap::from([
            ("PATH".to_owned(), self.path("empty").display().to_string()),
            ("HOME".to_owned(), self.path("home").display().to_string()),
        ]);
        let places = Places::below(&self.path("state"));
        let config = Config { places, agents: builtin(), environment: Some(environment) };
        let (engine, handle) = Engine::start(config).expect("an engine");
        Play { engine, handle }
    }
}

/// A server of the test's own.
struct Server {
    child: Child,
    pid: i32,
    start_ticks: u64,
    address: String,
}

impl Server {
    fn signal(&self, signal: Signal) {
        assert!(process::signal_own(self.pid, self.start_ticks, signal).expect("signalled"));
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        process::wait_gone(self.pid, self.start_ticks, PATIENCE).expect("gone");
    }

    /// What is wrong with it, if somebody did anything to it: it would be gone, or drain and take no new work.
    async fn harm(&self) -> Option<String> {
        if process::row(self.pid).is_none_or(|row| row.start_ticks != self.start_ticks || "ZX".contains(row.state)) {
            return Some("it is gone".to_owned());
        }
        let answer = match Address::parse(&self.address).expect("an address") {
            Address::Unix { path } => new_thread(UnixStream::connect(path).await.ok()?).await,
            Address::WebSocket { host, port, .. } => new_thread(TcpStream::connect((host, port)).await.ok()?).await,
        };
        let refused = answer["error"]["message"].as_str().map(str::to_owned);
        refused.or_else(|| answer["result"]["thread"]["id"].is_null().then(|| format!("it answers {answer}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = process::signal_own(self.pid, self.start_ticks, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Another client asks for new work.
async fn new_thread<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(stream: S) -> Value {
    let (mut socket, _) = client_async("ws://localhost/", stream).await.expect("an upgrade");
    let initialize = json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "other", "version": "0"}}});
    ask(&mut socket, 1, &initialize).await;
    ask(&mut socket, 2, &json!({"id": 2, "method": "thread/start", "params": {"cwd": "/"}})).await
}

async fn ask<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    id: u64,
    request: &Value,
) -> Value {
    socket.send(Message::text(request.to_string())).await.expect("sent");
    loop {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.expect("in time").expect("open").expect("a message");
        if let Message::Text(text) = message {
            let value: Value = serde_json::from_str(&text).expect("JSON");
            if value["id"] == id && value["method"].is_null() {
                return value;
            }
        }
    }
}

/// An engine that is played upon.
struct Play {
    engine: Engine,
    handle: Handle,
}

impl Play {
    async fn until<T>(&self, what: &str, mut wanted: impl FnMut(&Snapshot) -> Option<T>) -> T {
        let mut watched = self.handle.watch();
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Some(found) = wanted(&watched.borrow_and_update()) {
                    return found;
                }
                watched.changed().await.expect("the engine runs");
            }
        });
        match found.await {
            Ok(found) => found,
            Err(_) => panic!("{what} did not come: {:#?}", self.handle.snapshot().state),
        }
    }

    /// Make the server an account, the one in use.
    async fn attach(&self, address: &str) -> AccountId {
        self.until("the provider", |s| s.state.providers.get(&ProviderId::new(PROVIDER)).map(|_| ())).await;
        let address = Address::parse(address).expect("an address").address();
        let greeting = self.handle.greet_server(ProviderId::new(PROVIDER), address.clone()).await.expect("a greeting");
        assert!(greeting.version.starts_with(|c: char| c.is_ascii_digit()), "{greeting:?}");
        self.handle.attach(ProviderId::new(PROVIDER), address.clone(), String::new()).await.expect("attached");
        let kind = AccountKind::Server { address };
        self.until("the account", |s| s.state.accounts.iter().find(|(_, a)| a.kind == kind).map(|(id, _)| *id)).await
    }

    async fn session(&self, ground: &Ground) {
        let settings = SessionSettings {
            approval_mode: Some(ApprovalMode::Always),
            sandbox: Some(Sandbox::Full),
            ..SessionSettings::default()
        };
        let folder = ground.path("work").display().to_string();
        let ack = self.handle.create_session(ProviderId::new(PROVIDER), folder, String::new(), settings, None).await;
        assert_eq!(ack.expect("a session").session, Some(ONE));
    }

    async fn send(&self, name: &str, text: &str) {
        self.handle.send(ONE, MessageId::new(name), text.to_owned()).await.expect("sent");
    }

    async fn ended(&self, message: &str) -> EndedTurn {
        self.until("the turn's end", |s| {
            let ended = s.state.sessions.get(&ONE)?.last_turn.clone()?;
            (ended.message.as_ref()?.as_str() == message).then_some(ended)
        })
        .await
    }

    /// Until the agent says this, as it streams or in an entry.
    async fn says(&self, text: &str) {
        let mut transcript = self.handle.open_transcript(ONE, 100).await.expect("a transcript");
        let mut heard = String::new();
        let found = tokio::time::timeout(PATIENCE, async {
            while let Some(event) = transcript.next().await {
                let said = match event {
                    TranscriptEvent::Delta { text, .. } => text.to_string(),
                    TranscriptEvent::Upsert(entry) => said(&entry.item),
                    TranscriptEvent::Page(page) => page.entries.iter().map(|entry| said(&entry.item)).collect(),
                    TranscriptEvent::Diff { .. } => String::new(),
                };
                heard.push_str(&said);
                if heard.contains(text) {
                    return;
                }
            }
        });
        assert!(found.await.is_ok(), "{text:?} is not in {heard}");
    }

    async fn quit(self, times: u32) {
        for _ in 0..times {
            self.handle.quit(None);
        }
        tokio::time::timeout(PATIENCE, self.handle.exited()).await.expect("an end");
        self.engine.join();
    }
}

fn said(item: &Item) -> String {
    match &item.body {
        ItemBody::AgentMessage { text, .. } => text.clone(),
        _ => String::new(),
    }
}

fn closed(ended: &EndedTurn) -> &TransportRecord {
    match &ended.outcome {
        TurnOutcome::Failed(failure) => match &failure.class {
            FailureClass::TransportClosed(record) => record,
            other => panic!("another class: {other:?} {}", failure.message),
        },
        other => panic!("another outcome: {other:?}"),
    }
}

#[tokio::test]
async fn a_server_of_somebody_elses_is_used_in_every_way_and_outlives_the_engine() {
    let ground = Ground::new();
    ground.mock.on("do it", vec![Reply::command("echo run >> log.txt"), Reply::say("Did it.")]);
    let server = ground.serve(&ground.socket());
    let play = ground.engine();
    play.attach(&ground.socket()).await;
    play.session(&ground).await;

    play.send("m1", "@mock say Hello [[go]]world").await;
    play.says("Hello ").await;
    ground.mock.open("go");
    assert_eq!(play.ended("m1").await.outcome, TurnOutcome::Completed);
    play.says("Hello world").await;

    play.send("m2", "do it").await;
    let approval = play
        .until("the question", |s| s.state.approvals.iter().find(|(_, a)| a.state == ApprovalState::Pending).map(|(id, _)| *id))
        .await;
    play.handle.answer(approval, Answer::Choice(Choice::Allow), Asker::Window).await.expect("answered");
    assert_eq!(play.ended("m2").await.outcome, TurnOutcome::Completed);
    assert_eq!(fs::read_to_string(ground.path("work/log.txt")).expect("a log"), "run\n");

    play.send("m3", "@mock say begun ++ hang").await;
    play.says("begun").await;
    play.handle.interrupt(ONE).await.expect("interrupted");
    assert_eq!(play.ended("m3").await.outcome, TurnOutcome::Interrupted);

    let state = play.handle.snapshot().state;
    let runtime = state.runtimes.values().next().expect("a connection");
    assert_eq!((&runtime.phase, &runtime.process), (&Phase::Ready, &None));
    assert!(runtime.version.is_some());
    let thread = state.sessions[&ONE].thread.clone();

    play.quit(1).await;
    assert_eq!(server.harm().await, None);

    // The next run of the application goes on in the same thread.
    let play = ground.engine();
    play.send("m4", "@mock say again").await;
    assert_eq!(play.ended("m4").await.outcome, TurnOutcome::Completed);
    assert_eq!(play.handle.snapshot().state.sessions[&ONE].thread, thread);
    play.quit(1).await;
    assert_eq!(server.harm().await, None);
}

#[tokio::test]
async fn a_server_at_a_port_is_used_and_detached_from() {
    let ground = Ground::new();
    let server = ground.serve("ws://127.0.0.1:0");
    let play = ground.engine();
    let account = play.attach(&server.address).await;
    play.session(&ground).await;
    play.send("m1", "@mock say Hello").await;
    assert_eq!(play.ended("m1").await.outcome, TurnOutcome::Completed);

    play.handle.submit(Input::SignOut { account, now: false }).await.expect("detached");
    play.until("the connection's end", |s| s.state.runtimes.is_empty().then_some(())).await;
    play.until("nothing owed", |s| {
        (!s.state.credentials.values().any(|c| matches!(c.kind, AccountKind::Server { .. }))).then_some(())
    })
    .await;
    assert_eq!(server.harm().await, None);

    play.attach(&server.address).await;
    play.send("m2", "@mock say again").await;
    assert_eq!(play.ended("m2").await.outcome, TurnOutcome::Completed);
    play.quit(1).await;
    assert_eq!(server.harm().await, None);
}

/// The check that the others rest on.
#[tokio::test]
async fn harm_that_is_done_to_a_server_is_noticed() {
    let ground = Ground::new();
    let mut server = ground.serve(&ground.socket());
    let play = ground.engine();
    play.attach(&ground.socket()).await;
    play.session(&ground).await;
    play.send("m1", "@mock say begun ++ hang").await;
    play.says("begun").await;
    assert_eq!(server.harm().await, None);
    server.signal(Signal::TERM);
    let drains = "Server is draining; retry after reconnecting";
    wait_for_harm(&server, drains).await;
    server.kill();
    assert_eq!(server.harm().await.as_deref(), Some("it is gone"));
    play.quit(2).await;
}

async fn wait_for_harm(server: &Server, harm: &str) {
    let seen = tokio::time::timeout(PATIENCE, async { while server.harm().await.as_deref() != Some(harm) {} });
    seen.await.expect("it drains");
}

#[tokio::test]
async fn a_server_that_is_killed_fails_its_turn_and_is_used_again_when_it_is_back() {
    let ground = Ground::new();
    let mut server = ground.serve(&ground.socket());
    let play = ground.engine();
    let account = play.attach(&ground.socket()).await;
    play.session(&ground).await;
    play.send("m0", "@mock say first").await;
    assert_eq!(play.ended("m0").await.outcome, TurnOutcome::Completed);
    for round in 1..=2 {
        let (broken, next) = (format!("broken {round}"), format!("next {round}"));
        play.send(&broken, "@mock say begun ++ hang").await;
        play.until("the turn", |s| {
            let turn = s.state.turns.values().next()?;
            turn.provider_turn.is_some().then_some(())
        })
        .await;
        play.says("begun").await;
        server.kill();
        let ended = play.ended(&broken).await;
        let record = closed(&ended);
        assert_eq!((record.stream.as_str(), record.pid, record.turn_state.as_str()), ("socket", None, "started"));
        assert_eq!((record.session, record.turn), (Some(ONE), Some(ended.turn)));
        assert!(record.thread.is_some());
        let trouble = play.handle.snapshot().state.accounts[&account].restarts.given_up.clone().expect("it was given up");
        assert!(trouble.message.contains(&ground.socket()) && trouble.message.contains("nobody listens"), "{}", trouble.message);

        server = ground.serve(&ground.socket());
        play.send(&next, "@mock say again").await;
        play.handle.submit(Input::TryAgain { session: ONE }).await.expect("tried");
        assert_eq!(play.ended(&next).await.outcome, TurnOutcome::Completed);
    }
    play.quit(1).await;
    assert_eq!(server.harm().await, None);
}

/// Passes bytes on between a socket of its own and the server's, until it is told to cut.
fn relay(at: &Path, to: PathBuf) -> JoinHandle<()> {
    let _ = fs::remove_file(at);
    let listener = UnixListener::bind(at).expect("bound");
    tokio::spawn(async move {
        let mut links = tokio::task::JoinSet::new();
        loop {
            let (mut near, _) = listener.accept().await.expect("a client");
            let mut far = UnixStream::connect(&to).await.expect("the server");
            links.spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    })
}

#[tokio::test]
async fn a_turn_goes_on_behind_a_lost_connection_and_is_listened_to_again() {
    let ground = Ground::new();
    ground.mock.on("do it", vec![Reply::command("echo run >> log.txt"), Reply::say("Did it.")]);
    let server = ground.serve(&ground.socket());
    let (at, to) = (ground.path("relay.sock"), ground.path("it.sock"));
    let link = relay(&at, to.clone());
    let play = ground.engine();
    play.attach(&format!("unix://{}", at.display())).await;
    play.session(&ground).await;
    play.send("m1", "@mock say Hello [[go]]world").await;
    play.says("Hello ").await;
    let turn = play.handle.snapshot().state.turns.keys().copied().next().expect("a turn");

    link.abort();
    let lost = play.until("the loss", |s| s.state.turns.get(&turn)?.closed.clone()).await;
    assert_eq!(lost.stream, "socket");
    let link = relay(&at, to.clone());
    play.until("the same turn, running", |s| {
        let it = s.state.turns.get(&turn)?;
        (it.closed.is_none() && it.state == turnkeep_model::state::TurnState::Started).then_some(())
    })
    .await;
    ground.mock.open("go");
    let ended = play.ended("m1").await;
    assert_eq!((ended.turn, ended.outcome), (turn, TurnOutcome::Completed));
    play.says("Hello world").await;

    // A question that waits is asked again, and answered once.
    play.send("m2", "do it").await;
    let pending = |s: &Snapshot| s.state.approvals.iter().find(|(_, a)| a.state == ApprovalState::Pending).map(|(id, _)| *id);
    let first = play.until("the question", pending).await;
    link.abort();
    play.until("the loss", |s| s.state.approvals.get(&first).is_none_or(|a| a.state == ApprovalState::Moot).then_some(())).await;
    let _link = relay(&at, to);
    let again = play.until("the question again", pending).await;
    assert_ne!(again, first);
    play.handle.answer(again, Answer::Choice(Choice::Allow), Asker::Window).await.expect("answered");
    assert_eq!(play.ended("m2").await.outcome, TurnOutcome::Completed);
    assert_eq!(fs::read_to_string(ground.path("work/log.txt")).expect("a log"), "run\n");
    play.quit(1).await;
    assert_eq!(server.harm().await, None);
}

#[tokio::test]
async fn a_forced_quit_only_closes_the_connection_and_the_next_start_learns_how_it_ended() {
    let ground = Ground::new();
    let server = ground.serve(&ground.socket());
    let play = ground.engine();
    play.attach(&ground.socket()).await;
    play.session(&ground).await;
    play.send("m1", "@mock say Hello [[go]]world").await;
    play.says("Hello ").await;
    let begun = std::time::Instant::now();
    play.quit(2).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(server.harm().await, None);
    ground.mock.open("go");
    let play = ground.engine();
    assert_eq!(play.ended("m1").await.outcome, TurnOutcome::Completed);
    play.quit(1).await;
    assert_eq!(server.harm().await, None);
}

#[tokio::test]
async fn a_server_that_shuts_down_finishes_what_runs_and_says_why_it_takes_no_more() {
    let ground = Ground::new();
    let server = ground.serve(&ground.socket());
    let play = ground.engine();
    play.attach(&ground.socket()).await;
    play.session(&ground).await;
    play.send("m1", "@mock say Hello [[go]]world").await;
    play.says("Hello ").await;
    server.signal(Signal::TERM);
    wait_for_harm(&server, "Server is draining; retry after reconnecting").await;
    let folder = ground.path("work").display().to_string();
    let second = play.handle.create_session(ProviderId::new(PROVIDER), folder, String::new(), SessionSettings::default(), None);
    let second = second.await.expect("a session").session.expect("its id");
    play.handle.send(second, MessageId::new("n1"), "@mock say no".to_owned()).await.expect("sent");
    let failure = play.until("the refusal", |s| s.state.sessions.get(&second)?.open_failure.clone()).await;
    assert!(failure.message.contains("is shutting down and takes no new work"), "{}", failure.message);
    ground.mock.open("go");
    let ended = play.ended("m1").await;
    // Its last words may be lost with it; then the history is asked, which is not there until somebody starts it again.
    match &ended.outcome {
        TurnOutcome::Completed => {}
        TurnOutcome::Failed(failure) => assert!(matches!(failure.class, FailureClass::TransportClosed(_)), "{failure:?}"),
        other => panic!("{other:?}"),
    }
    play.quit(2).await;
}
