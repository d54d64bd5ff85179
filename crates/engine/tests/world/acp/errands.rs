//! What a real agent has its client do: files and commands of the session's folder, within limits.

use std::fs;

use harness::process::{self, Row};
use serde_json::{Value, json};
use turnkeep_model::{
    Input,
    port::{ItemBody, TurnOutcome},
};

use super::Rig;

/// Asks its client for one thing after the other, each in a line of the file `wishes`: an id, a method and further members
/// of the parameters. A word in capitals in them is the terminal's name. Each answer lets it go on; the last one ends its turn.
const WISHES: &str = r#"
next() {
  read -r name method rest <&3 || { id=$turn; reply '{"stopReason":"end_turn"}'; return; }
  if [ "$name" = HOLD ]; then text holding; return; fi
  rest=$(printf '%s' "$rest" | sed "s/TERMINAL/$terminal/")
  say "{\"jsonrpc\":\"2.0\",\"id\":\"$name\",\"method\":\"$method\",\"params\":{\"sessionId\":\"s 1\",$rest}}"
}
prompt() { turn=$id; exec 3< "$HOME/wishes"; next; }
answer() {
  given=$(printf '%s' "$line" | sed -n 's/.*"terminalId":"\([^"]*\)".*/\1/p')
  terminal=${given:-$terminal}
  next
}
cancel() { id=$turn; reply '{"stopReason":"cancelled"}'; }
"#;

/// Starts something that ignores being asked to end, in a session of its own and without a parent; says so by a file.
const STUBBORN: &str = r#"
echo "own $SECRET, given $GIVEN"
mkfifo hold hold2
setsid sh -c '(trap "" TERM INT HUP; echo > up; exec cat hold2) &' &
cat hold
"#;

impl Rig {
    /// What it asks for next.
    fn wish(&self, wishes: &[(&str, &str, Value)]) {
        let line = |(name, method, params): &(&str, &str, Value)| {
            let members = params.to_string();
            format!("{name} {method} {}\n", members.trim_start_matches('{').trim_end_matches('}'))
        };
        fs::write(self.path("wishes"), wishes.iter().map(line).collect::<String>()).expect("written");
    }

    /// The client's answer to what was asked under this name.
    fn answered(&self, name: &str) -> Value {
        let id = format!(r#""id":"{name}""#);
        let heard = self.heard();
        let line = heard.lines().find(|line| line.contains(&id)).unwrap_or_else(|| panic!("no answer to {name}: {heard}"));
        serde_json::from_str(line).expect("an answer")
    }

    fn refusal(&self, name: &str) -> String {
        let answer = self.answered(name);
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{name} was not refused: {answer}")).to_owned()
    }

    /// Everything that runs in this folder beside the agent itself.
    fn commands(&self) -> Vec<Row> {
        let terminal = "TURNKEEP_TERMINAL=";
        let home = format!("HOME={}", self.root.path().display());
        let ours = |row: &Row| {
            let environment = process::environment(row.pid);
            row.state != 'Z' && environment.contains(&home) && environment.iter().any(|pair| pair.starts_with(terminal))
        };
        process::table().into_iter().filter(ours).collect()
    }

    async fn file(&self, name: &str) {
        let there = async {
            while !self.path(name).exists() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(super::PATIENCE, there).await.expect("the file comes");
    }
}

#[tokio::test]
async fn files_are_read_and_written_for_it_below_the_folder_and_nowhere_else() {
    let rig = Rig::new(WISHES);
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("secret"), "canary").expect("written");
    std::os::unix::fs::symlink(outside.path(), rig.path("away")).expect("linked");
    let text = "one\n\"two\"\nthree\n";
    rig.wish(&[
        ("write", "fs/write_text_file", json!({"path": rig.path("new/made.txt"), "content": text})),
        ("read", "fs/read_text_file", json!({"path": rig.path("new/made.txt")})),
        ("part", "fs/read_text_file", json!({"path": rig.path("new/made.txt"), "line": 2, "limit": 1})),
        ("missing", "fs/read_text_file", json!({"path": rig.path("nothing")})),
        ("outside", "fs/read_text_file", json!({"path": outside.path().join("secret")})),
        ("link", "fs/read_text_file", json!({"path": rig.path("away/secret")})),
        ("out", "fs/write_text_file", json!({"path": rig.path("away/new"), "content": "x"})),
        ("relative", "fs/read_text_file", json!({"path": "made.txt"})),
        ("input", "terminal/input", json!({"text": "x"})),
    ]);
    let session = rig.session().await;
    rig.send(session, "m1").await;
    assert_eq!(rig.ended(session).await, TurnOutcome::Completed);
    assert_eq!(rig.answered("write")["result"], json!({}));
    assert_eq!(fs::read_to_string(rig.path("new/made.txt")).expect("it was written"), text);
    assert_eq!(rig.answered("read")["result"]["content"], text);
    assert_eq!(rig.answered("part")["result"]["content"], "\"two\"\n");
    assert_eq!(rig.answered("missing")["error"]["code"], -32002);
    for name in ["outside", "link", "out"] {
        assert!(rig.refusal(name).contains("not below the session's folder"), "{}", rig.refusal(name));
    }
    assert!(rig.refusal("relative").contains("absolute"), "{}", rig.refusal("relative"));
    assert_eq!(rig.answered("input")["error"]["code"], -32601);
    assert!(!rig.heard().contains("canary"), "it was told what is none of its business");
    assert_eq!(fs::read_dir(outside.path()).expect("there").count(), 1);
    rig.quit().await;
}

#[tokio::test]
async fn a_command_runs_for_it_and_is_shown_with_the_call() {
    let rig = Rig::new(WISHES);
    fs::write(rig.path("work.sh"), "echo \"own $SECRET, given $GIVEN\"; exit 3").expect("written");
    let env = json!([{"name": "GIVEN", "value": "value"}]);
    rig.wish(&[
        ("start", "terminal/create", json!({"command": "sh", "args": ["work.sh"], "env": env, "cwd": rig.root.path()})),
        ("wait", "terminal/wait_for_exit", json!({"terminalId": "TERMINAL"})),
        ("look", "terminal/output", json!({"terminalId": "TERMINAL"})),
        ("release", "terminal/release", json!({"terminalId": "TERMINAL"})),
        ("after", "terminal/output", json!({"terminalId": "TERMINAL"})),
        ("away", "terminal/create", json!({"command": "true", "cwd": "/"})),
        ("line", "terminal/create", json!({"command": "echo one | tr n N", "outputByteLimit": 3})),
        ("wait2", "terminal/wait_for_exit", json!({"terminalId": "TERMINAL"})),
        ("look2", "terminal/output", json!({"terminalId": "TERMINAL"})),
        ("release2", "terminal/release", json!({"terminalId": "TERMINAL"})),
    ]);
    let session = rig.session().await;
    rig.send(session, "m1").await;
    assert_eq!(rig.ended(session).await, TurnOutcome::Completed);
    assert_eq!(rig.answered("wait")["result"], json!({"exitCode": 3, "signal": null}));
    let expected = json!({
        "output": "own canary, given value\n", "truncated": false, "exitStatus": {"exitCode": 3, "signal": null},
    });
    assert_eq!(rig.answered("look")["result"], expected, "the agent's own environment, and what it gives");
    assert_eq!(rig.answered("release")["result"], json!({}));
    assert!(rig.refusal("after").contains("no terminal"), "{}", rig.refusal("after"));
    assert!(rig.refusal("away").contains("not below the session's folder"), "{}", rig.refusal("away"));
    assert_eq!(rig.answered("look2")["result"]["output"], "Ne\n");
    assert_eq!(rig.answered("look2")["result"]["truncated"], true);
    assert_eq!(rig.commands(), []);
    rig.quit().await;
}

#[tokio::test]
async fn a_command_that_does_not_end_goes_with_all_that_it_started_when_the_turn_is_stopped() {
    let rig = Rig::new(WISHES);
    fs::write(rig.path("work.sh"), STUBBORN).expect("written");
    rig.wish(&[
        ("start", "terminal/create", json!({"command": "sh", "args": ["work.sh"]})),
        ("wait", "terminal/wait_for_exit", json!({"terminalId": "TERMINAL"})),
        ("HOLD", "x", json!({})),
    ]);
    let session = rig.session().await;
    rig.send(session, "m1").await;
    rig.file("up").await;
    assert!(rig.commands().len() > 1, "it started something: {:?}", rig.commands());
    rig.handle.submit(Input::Interrupt { session }).await.expect("it is taken");
    assert_eq!(rig.ended(session).await, TurnOutcome::Interrupted);
    // Its agent hears of the end once everything is gone.
    let told = async {
        while !rig.heard().contains(r#""id":"wait""#) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(super::PATIENCE, told).await.expect("it is told");
    let gone = async {
        while !rig.commands().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(super::PATIENCE, gone).await.expect("all of it goes");
    assert_eq!(rig.answered("wait")["result"], json!({"exitCode": null, "signal": "SIGTERM"}));
    assert!(!rig.handle.snapshot().state.runtimes.is_empty(), "the agent itself goes on");
    rig.quit().await;
}

#[tokio::test]
async fn nothing_that_was_run_for_an_agent_outlives_it() {
    let rig = Rig::new(WISHES);
    fs::write(rig.path("work.sh"), STUBBORN).expect("written");
    rig.wish(&[("start", "terminal/create", json!({"command": "sh", "args": ["work.sh"]}))]);
    let session = rig.session().await;
    rig.send(session, "m1").await;
    assert_eq!(rig.ended(session).await, TurnOutcome::Completed);
    rig.file("up").await;
    assert!(rig.commands().len() > 1, "it runs on in the background: {:?}", rig.commands());
    let before = rig.commands();
    let root = rig.quit().await;
    for row in before {
        let still = process::row(row.pid).is_some_and(|now| now.start_ticks == row.start_ticks && now.state != 'Z');
        assert!(!still, "{row:?} outlives its agent");
    }
    drop(root);
}

#[tokio::test]
async fn a_turn_that_the_agent_does_not_stop_is_over_all_the_same() {
    let rig = Rig::new(
        r#"prompt() { if [ -e "$HOME/again" ]; then text "hello"; reply '{"stopReason":"end_turn"}'; else text "so far"; fi; }"#,
    );
    let session = rig.session().await;
    rig.send(session, "m1").await;
    let started = |snapshot: &super::Snapshot| snapshot.state.runtimes.keys().next().copied();
    rig.until("the turn", |it| it.state.turns.values().any(|turn| turn.provider_turn.is_some())).await;
    let before = started(&rig.handle.snapshot()).expect("its process");
    rig.handle.submit(Input::Interrupt { session }).await.expect("it is taken");
    assert_eq!(rig.ended(session).await, TurnOutcome::Interrupted);
    rig.until("the end of its process", |it| !it.state.runtimes.contains_key(&before)).await;
    let page = rig.handle.transcript_page(session, None, 100).await.expect("the transcript");
    let told = page
        .entries
        .iter()
        .any(|entry| matches!(&entry.item.body, ItemBody::Notice { text } if text.contains("did not stop within 10 s")));
    assert!(told, "the person is not told: {:?}", page.entries);
    // The session goes on in another process.
    fs::write(rig.path("again"), "").expect("written");
    rig.send(session, "m2").await;
    rig.until("the next turn", |it| {
        let last = it.state.sessions.get(&session).and_then(|it| it.last_turn.as_ref());
        last.is_some_and(|turn| turn.outcome == TurnOutcome::Completed)
    })
    .await;
    rig.quit().await;
}
