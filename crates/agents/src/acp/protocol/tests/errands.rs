//! Files and commands that the agent asks its client for: what is taken, what is refused, and how it is answered.

use std::path::PathBuf;

use serde_json::{Value, json};
use turnkeep_model::{
    SessionId,
    port::{AgentCommand, AgentEvent, DeltaStream, ItemBody, Sandbox, SessionSettings},
};

use super::{EVERYTHING, Play, SESSION, TURN, open, start_turn};
use crate::errand::{Command, Done, Exit, NotDone, NotDoneWhy, Screen, Task, limits};

impl Play {
    /// The agent asks; the answer, if there is one at once.
    fn asks(&mut self, id: u64, method: &str, params: &Value) -> Option<Value> {
        let before = self.sent.len();
        self.line(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().as_bytes());
        self.sent.get(before).cloned()
    }

    fn refusal(&mut self, method: &str, params: &Value) -> (i64, String) {
        let errands = self.errands.len();
        let answer = self.asks(900, method, params).unwrap_or_else(|| panic!("{method} {params} was taken"));
        assert_eq!(self.errands.len(), errands, "nothing is begun");
        let error = &answer["error"];
        (error["code"].as_i64().expect("a code"), error["message"].as_str().expect("words").to_owned())
    }

    fn last_task(&self) -> &Task {
        &self.errands.last().expect("an errand").task
    }

    fn start(&mut self, id: u64) -> String {
        self.asks(id, "terminal/create", &json!({"sessionId": "s", "command": "make"}));
        self.serve(Ok(Done::Started));
        self.sent.last().expect("an answer")["result"]["terminalId"].as_str().expect("a name").to_owned()
    }
}

fn screen(text: &str, exit: Option<i32>) -> Screen {
    Screen { text: text.to_owned(), truncated: false, exit: exit.map(|code| Exit { code: Some(code), signal: None }) }
}

#[test]
fn they_are_on_offer() {
    let play = Play::ready("gemini", EVERYTHING);
    let offered = &play.sent[0]["params"]["clientCapabilities"];
    assert_eq!(offered["fs"], json!({"readTextFile": true, "writeTextFile": true}));
    assert_eq!(offered["terminal"], true);
}

#[test]
fn a_file_is_read_and_written_and_each_request_is_answered_once() {
    let mut play = Play::running("gemini");
    assert_eq!(play.asks(7, "fs/read_text_file", &json!({"sessionId": "s", "path": "/folder/a", "line": 3, "limit": 2})), None);
    let expected =
        Task::Read { folder: PathBuf::from("/folder"), path: PathBuf::from("/folder/a"), first_line: 3, lines: Some(2) };
    assert_eq!(play.last_task(), &expected);
    play.serve(Ok(Done::Read { text: "three\nfour\n".to_owned() }));
    assert_eq!(*play.sent.last().unwrap(), json!({"jsonrpc": "2.0", "id": 7, "result": {"content": "three\nfour\n"}}));
    let sent = play.sent.len();
    play.serve(Ok(Done::Written));
    assert_eq!(play.sent.len(), sent, "an errand is answered once");

    play.asks(8, "fs/write_text_file", &json!({"sessionId": "s", "path": "/folder/b", "content": "x"}));
    assert!(matches!(play.last_task(), Task::Write { path, text, .. } if path == &PathBuf::from("/folder/b") && text == "x"));
    play.serve(Ok(Done::Written));
    assert_eq!(play.sent.last().unwrap()["result"], json!({}));

    for (why, code) in [(NotDoneWhy::Refused, -32602), (NotDoneWhy::NotFound, -32002), (NotDoneWhy::Failed, -32603)] {
        play.asks(9, "fs/read_text_file", &json!({"sessionId": "s", "path": "/folder/c"}));
        play.serve(Err(NotDone { why, message: "/folder/c is no text".to_owned() }));
        assert_eq!(play.sent.last().unwrap()["error"], json!({"code": code, "message": "/folder/c is no text"}));
    }
}

#[test]
fn a_request_that_makes_no_sense_is_refused_with_what_and_where() {
    let mut play = Play::running("gemini");
    let long = format!("/{}", "x".repeat(limits::PATH));
    let bad = [
        ("fs/read_text_file", json!({"sessionId": "s"}), "path is missing"),
        ("fs/read_text_file", json!({"sessionId": "s", "path": 7}), "path is missing, or no text"),
        ("fs/read_text_file", json!({"sessionId": "s", "path": "a"}), "absolute path, and \"a\" is none"),
        ("fs/read_text_file", json!({"sessionId": "s", "path": "/a\u{0}b"}), "zero byte"),
        ("fs/read_text_file", json!({"sessionId": "s", "path": long}), "longer than 4096 bytes"),
        ("fs/read_text_file", json!({"sessionId": "s", "path": "/a", "line": -1}), "line is -1"),
        ("fs/read_text_file", json!({"sessionId": "s", "path": "/a", "limit": "x"}), "limit is \"x\""),
        ("fs/read_text_file", json!({"sessionId": "t", "path": "/a"}), "\"t\" names no session"),
        ("fs/read_text_file", json!({"path": "/a"}), "sessionId is missing"),
        ("fs/read_text_file", json!(["s", "/a"]), "no object"),
        ("fs/write_text_file", json!({"sessionId": "s", "path": "/a"}), "content is missing"),
        ("terminal/create", json!({"sessionId": "s"}), "command is missing"),
        ("terminal/create", json!({"sessionId": "s", "command": " "}), "command is empty"),
        ("terminal/create", json!({"sessionId": "s", "command": "a", "args": [7]}), "args holds something"),
        ("terminal/create", json!({"sessionId": "s", "command": "a", "args": "b"}), "args is no list"),
        ("terminal/create", json!({"sessionId": "s", "command": "a", "env": [{"name": "A=B", "value": ""}]}), "\"A=B\""),
        ("terminal/create", json!({"sessionId": "s", "command": "a", "env": [{"name": "A"}]}), "env holds something"),
        ("terminal/create", json!({"sessionId": "s", "command": "a", "cwd": "b"}), "cwd must be an absolute path"),
        ("terminal/create", json!({"sessionId": "s", "command": "a", "outputByteLimit": -1}), "outputByteLimit is -1"),
        ("terminal/output", json!({"sessionId": "s", "terminalId": "terminal-1"}), "names no terminal"),
        ("terminal/release", json!({"sessionId": "s"}), "terminalId is missing"),
    ];
    for (method, params, words) in bad {
        let (code, message) = play.refusal(method, &params);
        assert_eq!(code, -32602, "{message}");
        assert!(message.starts_with(method) && message.contains(words), "{message:?} does not say {words:?}");
    }
    play.line(br#"{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file"}"#);
    assert_eq!(play.sent.last().unwrap()["error"]["code"], -32602, "without any parameters");
}

#[test]
fn what_is_too_much_is_refused() {
    let mut play = Play::running("gemini");
    let content = "x".repeat(limits::WRITE + 1);
    let (_, message) = play.refusal("fs/write_text_file", &json!({"sessionId": "s", "path": "/folder/a", "content": content}));
    assert!(message.contains("at most 10485760 are written"), "{message}");
    let (_, message) =
        play.refusal("terminal/create", &json!({"sessionId": "s", "command": "a", "args": ["x".repeat(limits::COMMAND)]}));
    assert!(message.contains("at most 131072"), "{message}");
    let content = "x".repeat(limits::WRITE);
    for id in 0..4 {
        play.asks(id, "fs/write_text_file", &json!({"sessionId": "s", "path": "/folder/a", "content": content}));
    }
    let (_, message) = play.refusal("fs/write_text_file", &json!({"sessionId": "s", "path": "/folder/a", "content": "x"}));
    assert!(message.contains("wait to be written already"), "{message}");
    for id in 4..limits::UNANSWERED as u64 {
        play.asks(id, "fs/read_text_file", &json!({"sessionId": "s", "path": "/folder/a"}));
    }
    let (_, message) = play.refusal("fs/read_text_file", &json!({"sessionId": "s", "path": "/folder/a"}));
    assert!(message.contains("64 requests"), "{message}");
}

#[test]
fn a_session_holds_so_many_terminals_and_releasing_one_makes_room() {
    let mut play = Play::running("gemini");
    let names: Vec<String> = (0..limits::TERMINALS as u64).map(|id| play.start(id)).collect();
    let create = json!({"sessionId": "s", "command": "make"});
    let (_, message) = play.refusal("terminal/create", &create);
    assert!(message.contains("16 terminals already"), "{message}");
    let (_, message) =
        play.refusal("terminal/create", &json!({"sessionId": "s", "command": "make", "outputByteLimit": u64::MAX}));
    assert!(message.contains("16 terminals already"), "{message}");
    play.asks(100, "terminal/release", &json!({"sessionId": "s", "terminalId": names[3]}));
    assert_eq!(play.last_task(), &Task::Release { terminal: names[3].clone() });
    play.start(101);
    let (_, message) = play.refusal("terminal/output", &json!({"sessionId": "s", "terminalId": names[3]}));
    assert!(message.contains("names no terminal"), "{message}");
    // One that could not be started takes no room.
    play.asks(102, "terminal/release", &json!({"sessionId": "s", "terminalId": names[0]}));
    play.asks(103, "terminal/create", &create);
    play.serve(Err(NotDone { why: NotDoneWhy::NotFound, message: "no make".to_owned() }));
    play.start(104);
}

#[test]
fn a_command_is_taken_as_it_is_given_and_a_line_goes_to_a_shell() {
    let mut play = Play::running("gemini");
    let given = json!({
        "sessionId": "s", "command": "cargo", "args": ["test"], "env": [{"name": "A", "value": "1"}], "cwd": "/folder/below",
        "outputByteLimit": 10,
    });
    play.asks(1, "terminal/create", &given);
    let Task::Start { command, .. } = play.last_task().clone() else { panic!("{:?}", play.last_task()) };
    let expected = Command {
        folder: PathBuf::from("/folder"),
        directory: PathBuf::from("/folder/below"),
        program: "cargo".to_owned(),
        arguments: vec!["test".to_owned()],
        variables: vec![("A".to_owned(), "1".to_owned())],
        keep: 10,
    };
    assert!(command == expected, "{command:?}");
    play.asks(2, "terminal/create", &json!({"sessionId": "s", "command": "a | b", "args": null, "outputByteLimit": u64::MAX}));
    let Task::Start { command, .. } = play.last_task().clone() else { panic!("{:?}", play.last_task()) };
    assert_eq!((command.program.as_str(), command.arguments.as_slice()), ("/bin/sh", &["-c".to_owned(), "a | b".to_owned()][..]));
    assert_eq!((command.directory, command.keep), (PathBuf::from("/folder"), limits::OUTPUT));
    assert!(!format!("{expected:?}").contains("\"1\""), "what a variable holds is not shown");
}

#[test]
fn a_terminal_is_looked_at_waited_for_and_shown_with_the_call_that_it_is_part_of() {
    let mut play = Play::running("gemini");
    let terminal = play.start(1);
    play.update(&format!(
        r#"{{"sessionUpdate":"tool_call","toolCallId":"c","kind":"execute","title":"make","status":"in_progress","content":[{{"type":"terminal","terminalId":"{terminal}"}}]}}"#
    ));
    let about = json!({"sessionId": "s", "terminalId": terminal});
    play.take();
    play.asks(2, "terminal/output", &about);
    play.serve(Ok(Done::Screen(screen("one\n", None))));
    assert_eq!(play.sent.last().unwrap()["result"], json!({"output": "one\n", "truncated": false}));
    let grown = play.take();
    let [AgentEvent::Delta { stream: DeltaStream::CommandOutput, text, .. }] = grown.as_slice() else { panic!("{grown:?}") };
    assert_eq!(text, "one\n");
    play.asks(3, "terminal/wait_for_exit", &about);
    play.serve(Ok(Done::Screen(screen("one\ntwo\n", Some(2)))));
    assert_eq!(play.sent.last().unwrap()["result"], json!({"exitCode": 2, "signal": null}));
    play.asks(4, "terminal/output", &about);
    play.serve(Ok(Done::Screen(Screen { truncated: true, ..screen("two\n", Some(2)) })));
    let expected = json!({"output": "two\n", "truncated": true, "exitStatus": {"exitCode": 2, "signal": null}});
    assert_eq!(play.sent.last().unwrap()["result"], expected);
    play.update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}"#);
    let over = play.take();
    let Some(AgentEvent::ItemCompleted { item, .. }) = over.last() else { panic!("{over:?}") };
    let ItemBody::Command { output, exit_code, .. } = &item.body else { panic!("{item:?}") };
    assert_eq!((output.as_str(), *exit_code), ("two\n", Some(2)));
    play.asks(5, "terminal/kill", &about);
    play.serve(Ok(Done::Screen(screen("two\n", Some(2)))));
    assert_eq!(play.sent.last().unwrap()["result"], json!({}));
}

#[test]
fn nothing_is_changed_for_a_session_that_may_only_read_or_that_works_on_nothing() {
    let write = json!({"sessionId": "s", "path": "/folder/a", "content": "x"});
    let create = json!({"sessionId": "s", "command": "make"});
    let read = json!({"sessionId": "s", "path": "/folder/a"});
    let refused = |play: &mut Play, words: &str| {
        for (method, params) in [("fs/write_text_file", &write), ("terminal/create", &create)] {
            let (code, message) = play.refusal(method, params);
            assert!(code == -32600 && message.contains(words), "{message}");
        }
    };
    // A choice of the person's, though the agent has no mode for it.
    let mut play = Play::ready("gemini", EVERYTHING);
    let settings = SessionSettings { sandbox: Some(Sandbox::ReadOnly), ..SessionSettings::default() };
    let AgentCommand::OpenSession { session, thread, folder, goal, .. } = open(None) else { panic!("it opens") };
    play.command(&AgentCommand::OpenSession {
        session,
        thread,
        folder,
        goal,
        settings: settings.clone(),
        fork_of: None,
        history: false,
    })
    .unwrap();
    play.result("session/new", r#"{"sessionId":"s"}"#);
    let AgentCommand::StartTurn { session, turn, message, text, .. } = start_turn(1, "go") else { panic!("it starts") };
    play.command(&AgentCommand::StartTurn { session, turn, message, text, settings }).unwrap();
    refused(&mut play, "may only read");
    assert_eq!(play.asks(1, "fs/read_text_file", &read), None, "reading is what it may");

    let mut play = Play::open("gemini");
    refused(&mut play, "no message is being worked on");
    assert_eq!(play.asks(1, "fs/read_text_file", &read), None);

    let mut play = Play::running("gemini");
    play.command(&AgentCommand::Interrupt { session: SESSION, turn: TURN }).unwrap();
    refused(&mut play, "has stopped this turn");
}

#[test]
fn an_interrupt_ends_the_commands_and_closing_forgets_them() {
    let mut play = Play::running("gemini");
    let terminal = play.start(1);
    let about = json!({"sessionId": "s", "terminalId": terminal});
    play.asks(2, "terminal/wait_for_exit", &about);
    play.command(&AgentCommand::Interrupt { session: SESSION, turn: TURN }).unwrap();
    assert_eq!(play.last_task(), &Task::Kill { terminal: terminal.clone() });
    let sent = play.sent.len();
    play.serve(Ok(Done::Screen(screen("", None))));
    assert_eq!(play.sent.len(), sent, "nobody asked for it");
    assert_eq!(play.asks(3, "terminal/output", &about), None, "it can still be looked at");
    play.result("session/prompt", r#"{"stopReason":"cancelled"}"#);
    play.command(&AgentCommand::ReleaseSession { session: SESSION }).unwrap();
    assert_eq!(play.last_task(), &Task::Release { terminal: terminal.clone() });
    let (_, message) = play.refusal("terminal/output", &about);
    assert!(message.contains("names no terminal"), "{message}");
    play.result("session/close", "{}");
    let (_, message) = play.refusal("terminal/output", &about);
    assert!(message.contains("names no session"), "{message}");
    let releases = play.errands.iter().filter(|errand| matches!(errand.task, Task::Release { .. })).count();
    assert_eq!(releases, 1);
}

#[test]
fn a_terminal_belongs_to_its_session() {
    let mut play = Play::running("gemini");
    let terminal = play.start(1);
    let AgentCommand::OpenSession { folder, settings, .. } = open(None) else { panic!("it opens") };
    let other = AgentCommand::OpenSession {
        session: SessionId(2),
        thread: None,
        folder,
        settings,
        goal: None,
        fork_of: None,
        history: false,
    };
    play.command(&other).unwrap();
    play.result("session/new", r#"{"sessionId":"t"}"#);
    let (_, message) = play.refusal("terminal/output", &json!({"sessionId": "t", "terminalId": terminal}));
    assert!(message.contains("names no terminal of this session"), "{message}");
}
