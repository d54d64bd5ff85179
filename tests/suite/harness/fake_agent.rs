//! The scripted agent's own manners, at its pipes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use harness::agent::{Agent, Line};
use harness::fake_agent::{Action, FakeAgent, Script};
use harness::process;
use harness::wait::{self, PATIENCE};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Fixture {
    folder: TempDir,
    fake: FakeAgent,
}

fn fixture(script: &Script) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_fake_agent"));
    let fake = FakeAgent::install(program, folder.path(), script).unwrap();
    Fixture { folder, fake }
}

impl Fixture {
    fn start(&self) -> Agent {
        let mut command = Command::new(self.fake.program());
        // An environment as bare as a careful supervisor's.
        command.arg("app-server").env_clear().env("PATH", "/usr/bin:/bin").stderr(Stdio::null());
        Agent::start(&mut command).unwrap()
    }

    /// A turn begun on a new thread.
    fn turn(&self) -> Agent {
        let mut agent = self.start();
        agent.initialize().unwrap();
        let thread = agent.ask("thread/start", &json!({ "cwd": "/" })).unwrap();
        let thread = thread["thread"]["id"].clone();
        let input = json!([{ "type": "text", "text": "hi" }]);
        agent.ask("turn/start", &json!({ "threadId": thread, "input": input })).unwrap();
        agent
    }
}

fn turns(actions: Vec<Action>) -> Script {
    Script { turns: vec![actions], ..Script::default() }
}

fn skip_to(agent: &Agent, wanted: impl Fn(&Line) -> bool) -> Line {
    loop {
        let line = agent.line(PATIENCE).unwrap();
        if wanted(&line) {
            return line;
        }
        assert_ne!(line, Line::End, "the output ended early");
    }
}

#[test]
fn it_answers_as_the_real_one_and_records_what_it_got() {
    let fixture = fixture(&Script::default());
    let mut agent = fixture.turn();
    let completed = agent.wait_method("item/completed").unwrap();
    assert_eq!(completed["params"]["item"]["type"], "userMessage");
    let message = agent.wait_method("item/completed").unwrap();
    assert_eq!(message["params"]["item"]["text"], "OK");
    assert_eq!(agent.wait_method("turn/completed").unwrap()["params"]["turn"]["status"], "completed");
    let account = agent.ask("account/read", &json!({})).unwrap();
    assert_eq!(account["account"]["type"], "apiKey");
    let refused = agent.ask("no/such", &json!({})).unwrap_err();
    assert!(refused.to_string().contains("unknown variant"), "{refused}");
    agent.close_input();
    assert!(agent.wait_exit(PATIENCE).unwrap().success());

    assert_eq!(fixture.fake.received("turn/start").len(), 1);
    let record = fixture.fake.record();
    assert_eq!(record[0]["started"]["args"], json!(["app-server"]));
    assert_eq!(record.last().unwrap()["eof"], true);
}

#[test]
fn it_asks_and_goes_on_with_the_answer() {
    let ask = Action::Ask {
        method: "item/commandExecution/requestApproval".to_owned(),
        params: json!({ "threadId": "$thread", "turnId": "$turn", "command": "true" }),
    };
    let fixture = fixture(&turns(vec![ask, Action::Message("Thanks.".to_owned()), Action::complete()]));
    let mut agent = fixture.turn();
    let request = agent.wait_method("item/commandExecution/requestApproval").unwrap();
    assert!(request["params"]["turnId"].as_str().unwrap().starts_with("turn-"));
    agent.send(&json!({ "id": request["id"], "result": { "decision": "accept" } })).unwrap();
    agent.wait_method("serverRequest/resolved").unwrap();
    agent.wait_method("turn/completed").unwrap();
    let answers: Vec<Value> = fixture.fake.record().iter().filter_map(|one| one.get("answer").cloned()).collect();
    assert_eq!(answers[0]["result"]["decision"], "accept");
}

#[test]
fn it_can_be_interrupted_in_a_stalled_turn() {
    let fixture = fixture(&turns(vec![Action::Delta("half".to_owned()), Action::Stall]));
    let mut agent = fixture.turn();
    let delta = agent.wait_method("item/agentMessage/delta").unwrap();
    let params = &delta["params"];
    let params = json!({ "threadId": params["threadId"], "turnId": params["turnId"] });
    agent.ask("turn/interrupt", &params).unwrap();
    let ended = agent.wait_method("turn/completed").unwrap();
    assert_eq!(ended["params"]["turn"]["status"], "interrupted");
}

#[test]
fn its_bad_lines_are_bad() {
    let script = Script {
        start: vec![
            Action::Raw(b"not json\n".to_vec()),
            Action::Raw(b"{\"method\":\"\xff\xfe\"}\n".to_vec()),
            Action::LongLine(50_000_000),
            Action::Stderr(20_000),
            Action::Raw(b"{\"method\":\"ha".to_vec()),
            Action::Sleep { milliseconds: 20 },
            Action::Raw(b"lf\"}\n".to_vec()),
        ],
        ..Script::default()
    };
    let fixture = fixture(&script);
    let agent = fixture.start();
    assert_eq!(agent.line(PATIENCE).unwrap(), Line::Raw(b"not json".to_vec()));
    let Line::Raw(invalid) = agent.line(PATIENCE).unwrap() else { panic!("valid after all") };
    assert!(String::from_utf8(invalid).is_err());
    let Line::Message(long) = agent.line(PATIENCE).unwrap() else { panic!("no JSON") };
    assert_eq!(long["params"]["text"].as_str().unwrap().len(), 50_000_000);
    assert_eq!(agent.line(PATIENCE).unwrap(), Line::Message(json!({ "method": "half" })));
}

#[test]
fn it_ends_in_the_middle_with_and_without_a_last_newline() {
    let last = vec![Action::Delta("x".to_owned()), Action::CompleteWithoutNewline, Action::Exit(0)];
    let ended = fixture(&turns(last));
    let mut agent = ended.turn();
    let Line::Unfinished(bytes) = skip_to(&agent, |line| matches!(line, Line::Unfinished(_))) else {
        unreachable!("only such a line is waited for")
    };
    let message: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(message["method"], "turn/completed");
    assert!(agent.wait_exit(PATIENCE).unwrap().success());

    let cut = fixture(&turns(vec![Action::Delta("x".to_owned()), Action::Exit(3)]));
    let mut agent = cut.turn();
    assert!(agent.wait_method("turn/completed").is_err());
    assert_eq!(agent.wait_exit(PATIENCE).unwrap().code(), Some(3));

    let killed = fixture(&turns(vec![Action::Die]));
    let mut agent = killed.turn();
    assert!(agent.wait_method("turn/completed").is_err());
    assert_eq!(agent.wait_exit(PATIENCE).unwrap().code(), None, "killed by a signal");
}

#[test]
fn a_grandchild_keeps_the_output_open() {
    let line = "echo $$ > grandchild.pid; exec sleep 600";
    let fixture = fixture(&turns(vec![Action::Grandchild(line.to_owned()), Action::Exit(0)]));
    process::adopt_orphans().unwrap();
    let mut agent = {
        let mut command = Command::new(fixture.fake.program());
        command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(fixture.folder.path());
        let mut agent = Agent::start(&mut command).unwrap();
        agent.initialize().unwrap();
        agent.post("turn/start", &json!({ "threadId": "t", "input": [] })).unwrap();
        agent
    };
    assert!(agent.wait_exit(PATIENCE).unwrap().success());
    let pid: i32 = wait::until("grandchild", || {
        let file = fixture.folder.path().join("grandchild.pid");
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    })
    .unwrap();
    while let Ok(line) = agent.line(Duration::from_millis(200)) {
        assert_ne!(line, Line::End, "the grandchild holds the pipe");
    }
    let row = process::row(pid).unwrap();
    assert!(process::signal_own(pid, row.start_ticks, rustix::process::Signal::KILL).unwrap());
    skip_to(&agent, |line| *line == Line::End);
    process::reap(pid);
}

#[test]
fn it_can_be_deaf_to_a_signal_and_to_the_end_of_its_input() {
    let script = Script { ignores_term: true, ignores_eof: true, ..Script::default() };
    let fixture = fixture(&script);
    let mut agent = fixture.start();
    agent.initialize().unwrap();
    agent.close_input();
    wait::until("eof in the record", || fixture.fake.record().last().is_some_and(|last| last["eof"] == true).then_some(()))
        .unwrap();
    let ticks = process::row(agent.pid()).unwrap().start_ticks;
    assert!(process::signal_own(agent.pid(), ticks, rustix::process::Signal::TERM).unwrap());
    assert!(agent.wait_exit(Duration::from_millis(300)).is_err(), "it lives on");
    drop(agent);

    // Negative control: without these two it ends at once.
    let fixture = self::fixture(&Script::default());
    let mut agent = fixture.start();
    agent.initialize().unwrap();
    let ticks = process::row(agent.pid()).unwrap().start_ticks;
    assert!(process::signal_own(agent.pid(), ticks, rustix::process::Signal::TERM).unwrap());
    assert_eq!(agent.wait_exit(PATIENCE).unwrap().code(), None);
}

#[test]
fn it_starts_slowly_closes_its_output_and_says_its_version() {
    let ready = tempfile::NamedTempFile::new().unwrap();
    let gate = ready.path().with_extension("open");
    let script = Script {
        start: vec![Action::WaitFor(gate.clone())],
        on: [("thread/list".to_owned(), vec![vec![Action::CloseOutput]])].into(),
        ..Script::default()
    };
    let fixture = fixture(&script);
    let mut agent = fixture.start();
    agent.post("initialize", &json!({})).unwrap();
    assert!(agent.line(Duration::from_millis(100)).is_err(), "it is not there yet");
    std::fs::write(&gate, "").unwrap();
    agent.wait("initialize", |message| message["id"] == 1).unwrap();
    std::fs::remove_file(&gate).unwrap();
    agent.post("thread/list", &json!({})).unwrap();
    skip_to(&agent, |line| *line == Line::End);
    assert!(agent.wait_exit(Duration::from_millis(100)).is_err(), "it lives on without an output");

    let version = Command::new(fixture.fake.program()).arg("--version").output().unwrap();
    assert_eq!(version.stdout, b"codex-cli 0.171.0\n");
}
