//! Questions to a person, and who that person is.

use turnkeep_model::{
    ApprovalId, RequestKey,
    port::{AgentCommand, AgentEvent, Answer, Choice, FailureClass, Observation, SignInMethod, TurnOutcome},
};

use super::{COMPLETED, OPENED, Play, SESSION, asked, names, open_session, outcome, shown, start_turn};
use crate::port::Purpose;

// ---- questions

fn question(id: &str, thread: &str) -> Vec<u8> {
    format!(
        r#"{{"id":{id},"method":"item/commandExecution/requestApproval","params":{{"threadId":"{thread}","turnId":"turn-1","itemId":"i","command":"ls","proposedExecpolicyAmendment":["ls"]}}}}"#
    )
    .into_bytes()
}

fn answer(request: &str, choice: Choice) -> AgentCommand {
    AgentCommand::Answer {
        session: SESSION,
        approval: ApprovalId(1),
        request: RequestKey::new(request),
        answer: Answer::Choice(choice),
    }
}

#[test]
fn a_question_is_answered_once_with_the_id_as_it_came() {
    let mut play = Play::running();
    play.line(&question("\"q 7\"", "thread-1"));
    play.command(&answer("\"q 7\"", Choice::Deny));
    play.command(&answer("\"q 7\"", Choice::Allow));
    let answers: Vec<_> = play.sent.iter().filter(|message| message.get("method").is_none()).collect();
    assert_eq!(answers.len(), 1);
    assert_eq!((&answers[0]["id"], &answers[0]["result"]["decision"]), (&"q 7".into(), &"decline".into()));
}

#[test]
fn an_answer_to_a_question_that_was_withdrawn_goes_nowhere() {
    let mut play = Play::running();
    play.line(&question("3", "thread-1"));
    play.hear("serverRequest/resolved", r#"{"threadId":"thread-1","requestId":3}"#);
    play.take();
    let sent = play.sent.len();
    play.command(&answer("3", Choice::Allow));
    assert_eq!(play.sent.len(), sent);
}

#[test]
fn a_rule_that_was_not_offered_is_not_sent() {
    let mut play = Play::running();
    play.line(&question("3", "thread-1"));
    play.take();
    play.command(&answer("3", Choice::AllowAlways { rule: vec!["rm".to_owned()] }));
    assert_eq!(names(&mut play), ["Fault"]);
    play.command(&answer("3", Choice::AllowAlways { rule: vec!["ls".to_owned()] }));
    assert!(play.sent.last().expect("sent")["result"]["decision"]["acceptWithExecpolicyAmendment"].is_object());
}

#[test]
fn the_end_of_a_turn_withdraws_its_questions() {
    let mut play = Play::running();
    play.line(&question("3", "thread-1"));
    play.take();
    play.hear("turn/completed", COMPLETED);
    assert_eq!(names(&mut play), ["ApprovalResolved", "TurnEnded"]);
}

#[test]
fn a_question_of_a_child_thread_is_asked_for_its_parent_and_one_of_a_stranger_is_refused() {
    let mut play = Play::running();
    play.hear("thread/started", r#"{"thread":{"id":"child","parentThreadId":"thread-1"}}"#);
    play.take();
    play.line(&question("3", "child"));
    let [AgentEvent::ApprovalRequested { session: SESSION, provider_turn: None, .. }] = &play.take()[..] else {
        panic!("a question")
    };
    play.line(&question("4", "stranger"));
    assert_eq!(names(&mut play), ["Notice"]);
    assert_eq!(play.sent.last().expect("sent")["error"]["code"], -32601);
}

#[test]
fn a_thread_without_a_sandbox_does_not_warn_of_leaving_it() {
    let mut play = Play::ready();
    play.command(&open_session(None));
    play.answer("thread/start", &OPENED.replace("readOnly", "dangerFullAccess"));
    play.take();
    play.line(&question("3", "thread-1"));
    assert!(shown(&play.take()[0]).contains("\"may_run_unsandboxed\":false"));
}

// ---- accounts

#[test]
fn a_key_that_is_refused_stops_the_process() {
    let mut play = Play::new(&Purpose::Serve { needs_key: true });
    play.answer("initialize", r#"{"result":{"userAgent":"turnkeep/0.171.0 (x)"}}"#);
    play.answer(
        "account/login/start",
        r#"{"error":{"code":-32600,"message":"API key login is disabled. Use ChatGPT login instead."}}"#,
    );
    assert_eq!(play.stops.len(), 1);
    assert_eq!(names(&mut play), ["Fault"], "never ready");
}

#[test]
fn commands_before_the_handshake_wait_for_it() {
    let mut play = Play::new(&Purpose::Serve { needs_key: false });
    play.command(&open_session(None));
    assert_eq!(asked(&play, "thread/start"), 0);
    play.answer("initialize", r#"{"result":{"userAgent":"turnkeep/0.171.0 (x)"}}"#);
    play.answer("account/read", r#"{"result":{"account":null,"requiresOpenaiAuth":true}}"#);
    assert_eq!(names(&mut play), ["Ready"]);
    assert_eq!(asked(&play, "thread/start"), 1);
}

#[test]
fn what_codex_says_of_its_account_is_told_apart() {
    let read = |body: &str| {
        let mut play = Play::new(&Purpose::Serve { needs_key: false });
        play.answer("initialize", r#"{"result":{"userAgent":"turnkeep/0.171.0 (x)"}}"#);
        play.answer("account/read", body);
        match play.take().remove(0) {
            AgentEvent::Ready { identity, version } => {
                assert_eq!(version, "0.171.0");
                identity
            }
            other => panic!("{other:?}"),
        }
    };
    let someone = |fingerprint: &str, body: &str| match read(body) {
        Observation::Someone(identity) => assert_eq!(identity.fingerprint, fingerprint),
        other => panic!("{other:?}"),
    };
    assert_eq!(read(r#"{"result":{"account":null,"requiresOpenaiAuth":true}}"#), Observation::NoOne);
    someone("own-provider", r#"{"result":{"account":null,"requiresOpenaiAuth":false}}"#);
    someone("api-key", r#"{"result":{"account":{"type":"apiKey"}}}"#);
    someone("chatgpt:a@b.c:", r#"{"result":{"account":{"type":"chatgpt","email":"a@b.c"}}}"#);
    someone("amazonBedrock", r#"{"result":{"account":{"type":"amazonBedrock"}}}"#);
    // Signed in, and the backend out of reach: no change follows from it.
    let failed = read(r#"{"error":{"code":-32603,"message":"workspace routing discovery failed"}}"#);
    assert!(matches!(failed, Observation::Unknown { .. }));
    assert!(matches!(read(r#"{"result":{"account":{"type":"chatgpt"}}}"#), Observation::Unknown { .. }));
}

#[test]
fn an_account_that_changes_in_the_process_is_read_again() {
    let mut play = Play::open();
    play.take();
    play.hear("account/updated", r#"{"authMode":null}"#);
    play.answer("account/read", r#"{"result":{"account":null,"requiresOpenaiAuth":true}}"#);
    let [AgentEvent::Identity { identity }] = &play.take()[..] else { panic!("an identity") };
    assert_eq!(*identity, Observation::NoOne);
}

#[test]
fn a_rejected_key_of_another_provider_keeps_its_own_text() {
    let failed = r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"failed","error":{
        "message":"unexpected status 401 Unauthorized: Incorrect API key provided",
        "codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":401}}}}}"#;
    let class = |provider: &str| {
        let mut play = Play::ready();
        play.command(&open_session(None));
        play.answer("thread/start", &OPENED.replace("\"openai\"", &format!("\"{provider}\"")));
        play.command(&start_turn(1, "go"));
        play.answer("turn/start", r#"{"result":{"turn":{"id":"turn-1"}}}"#);
        play.hear("turn/completed", failed);
        match outcome(&mut play) {
            Some(TurnOutcome::Failed(failure)) => failure,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(class("openai").class, FailureClass::SignedOut);
    let other = class("openrouter");
    assert_eq!(other.class, FailureClass::Other);
    assert!(other.message.contains("Incorrect API key provided"));
}

#[test]
fn only_a_web_page_is_shown_as_a_sign_in() {
    for (url, shown) in [
        ("https://auth.openai.com/oauth/authorize?x=1", true),
        ("http://127.0.0.1:9/oauth", true),
        ("http://localhost:9/oauth", true),
        ("http://[::1]:9/oauth", true),
        ("http://auth.openai.com/oauth", false),
        ("file:///etc/passwd", false),
        ("javascript:alert(1)", false),
        ("not an address", false),
    ] {
        let mut play = Play::new(&Purpose::SignIn { method: SignInMethod::Browser });
        play.answer("initialize", r#"{"result":{"userAgent":"turnkeep/0.171.0 (x)"}}"#);
        play.take();
        play.answer("account/login/start", &format!(r#"{{"result":{{"type":"chatgpt","loginId":"l","authUrl":"{url}"}}}}"#));
        let told = names(&mut play);
        assert_eq!(told == ["SignInStep"], shown, "{url}: {told:?}");
    }
}

#[test]
fn a_cancel_before_the_sign_in_has_a_name_is_carried_out_when_it_has() {
    let mut play = Play::new(&Purpose::SignIn { method: SignInMethod::Browser });
    play.answer("initialize", r#"{"result":{"userAgent":"turnkeep/0.171.0 (x)"}}"#);
    play.command(&AgentCommand::CancelSignIn);
    assert_eq!(asked(&play, "account/login/cancel"), 0);
    play.take();
    play.answer("account/login/start", r#"{"result":{"loginId":"l","authUrl":"https://x.y"}}"#);
    assert_eq!(asked(&play, "account/login/cancel"), 1);
    assert!(play.events.is_empty(), "no page is opened");
}
