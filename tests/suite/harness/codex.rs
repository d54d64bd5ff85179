//! The real Codex with the mock model, spoken to by hand: what a supervisor stands on.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use harness::agent::Agent;
use harness::mock_model::{DeviceCode, Identity, MockModel, Reply};
use harness::real_codex::{self, Account};
use harness::wait::PATIENCE;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Home {
    folder: TempDir,
}

impl Home {
    fn new(mock: &MockModel, account: Account) -> Self {
        // Codex refuses a home below the temporary folder.
        let folder = tempfile::Builder::new().prefix("tk-").tempdir_in("/var/tmp").unwrap();
        for name in ["home", "work", "tmp"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        real_codex::write_config(&folder.path().join("codex"), mock, account).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, mock: &MockModel) -> Agent {
        let mut command = Command::new(real_codex::program().unwrap());
        command
            .arg("app-server")
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("CODEX_HOME", self.path("codex"))
            .envs(real_codex::env(mock))
            .current_dir(self.path("work"))
            .stderr(Stdio::null());
        let mut agent = Agent::start(&mut command).unwrap();
        agent.initialize().unwrap();
        agent
    }

    fn thread(&self, agent: &mut Agent, policy: &str) -> String {
        let params = json!({ "cwd": self.path("work"), "approvalPolicy": policy, "sandbox": "danger-full-access" });
        let answer = agent.ask("thread/start", &params).unwrap();
        answer["thread"]["id"].as_str().unwrap().to_owned()
    }
}

fn turn(agent: &mut Agent, thread: &str, text: &str) {
    let input = json!([{ "type": "text", "text": text }]);
    agent.ask("turn/start", &json!({ "threadId": thread, "input": input })).unwrap();
}

fn end(agent: &mut Agent) -> Value {
    agent.wait_method("turn/completed").unwrap()["params"]["turn"].clone()
}

#[test]
fn a_turn_streams_and_completes() {
    let mock = MockModel::start().unwrap();
    let home = Home::new(&mock, Account::None);
    let mut agent = home.start(&mock);
    let thread = home.thread(&mut agent, "never");
    turn(&mut agent, &thread, "@mock reason Thinking. ++ say Hello [[go]]world ++ usage 7 3");

    let delta = agent.wait_method("item/agentMessage/delta").unwrap();
    assert_eq!(delta["params"]["delta"], "Hello ");
    mock.wait_at("go").unwrap();
    mock.open("go");
    let delta = agent.wait_method("item/agentMessage/delta").unwrap();
    assert_eq!(delta["params"]["delta"], "world");
    let usage = agent.wait_method("thread/tokenUsage/updated").unwrap();
    assert_eq!(usage["params"]["tokenUsage"]["last"]["totalTokens"], 10);
    assert_eq!(end(&mut agent)["status"], "completed");

    assert_eq!(mock.model_calls().len(), 1);
    assert_eq!(mock.model_calls()[0].bearer(), None);
    agent.close_input();
    assert!(agent.wait_exit(PATIENCE).unwrap().success());
}

#[test]
fn an_approved_command_runs_once_and_a_file_is_made() {
    let mock = MockModel::start().unwrap();
    let file = "made.txt";
    mock.on(
        "do it",
        vec![
            Reply::plan(&[("Ask", "completed"), ("Do", "in_progress")]),
            Reply::command("echo run >> log.txt"),
            Reply::new_file(file, "one\ntwo"),
            Reply::say("Did it."),
        ],
    );
    let home = Home::new(&mock, Account::None);
    let mut agent = home.start(&mock);
    let thread = home.thread(&mut agent, "untrusted");
    turn(&mut agent, &thread, "please do it");

    let plan = agent.wait_method("turn/plan/updated").unwrap();
    assert_eq!(plan["params"]["plan"][1]["step"], "Do");
    for method in ["item/commandExecution/requestApproval", "item/fileChange/requestApproval"] {
        let request = agent.wait_method(method).unwrap();
        let accept = json!({ "decision": "accept" });
        agent.send(&json!({ "id": request["id"], "result": accept })).unwrap();
    }
    let ended = end(&mut agent);
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(fs::read_to_string(home.path("work").join("log.txt")).unwrap(), "run\n");
    assert_eq!(fs::read_to_string(home.path("work").join(file)).unwrap(), "one\ntwo\n");
    assert_eq!(mock.model_calls().len(), 4);
}

#[test]
fn a_refusal_fails_the_turn_and_a_cut_stream_is_retried() {
    let mock = MockModel::start().unwrap();
    let home = Home::new(&mock, Account::None);
    let mut agent = home.start(&mock);
    let thread = home.thread(&mut agent, "never");
    turn(&mut agent, &thread, "@mock http 429 1");
    assert_eq!(end(&mut agent)["status"], "failed");
    turn(&mut agent, &thread, "@mock say half ++ cut 1");
    let error = agent.wait_method("error").unwrap();
    assert_eq!(error["params"]["willRetry"], true, "{error}");
    assert_eq!(end(&mut agent)["status"], "completed");
    turn(&mut agent, &thread, "@mock say begun ++ hang");
    let begun = agent.wait_method("item/agentMessage/delta").unwrap();
    let params = json!({ "threadId": thread, "turnId": begun["params"]["turnId"] });
    agent.ask("turn/interrupt", &params).unwrap();
    assert_eq!(end(&mut agent)["status"], "interrupted");
}

#[test]
fn a_device_code_signs_in_and_its_token_is_used() {
    let mock = MockModel::start().unwrap();
    mock.accept_only(&[]);
    mock.sign_in_as(Identity::named("ada"));
    let home = Home::new(&mock, Account::SignedIn);
    let mut agent = home.start(&mock);
    let login = agent.ask("account/login/start", &json!({ "type": "chatgptDeviceCode" })).unwrap();
    assert_eq!(login["userCode"], "ABCD-1234");
    mock.wait_request("poll", |request| request.path.ends_with("/deviceauth/token")).unwrap();
    mock.set_device_code(DeviceCode::Approved);
    let done = agent.wait_method("account/login/completed").unwrap();
    assert_eq!(done["params"]["success"], true, "{done}");
    let account = agent.ask("account/read", &json!({})).unwrap();
    assert_eq!(account["account"]["email"], "ada@example.com", "{account}");

    let thread = home.thread(&mut agent, "never");
    turn(&mut agent, &thread, "hello");
    assert_eq!(end(&mut agent)["status"], "completed");
    assert!(mock.model_calls()[0].bearer().is_some());
    agent.ask("account/logout", &json!(null)).unwrap();
    mock.wait_request("revocation", |request| request.path.ends_with("/oauth/revoke")).unwrap();
}
