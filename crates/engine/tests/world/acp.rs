//! A real process that speaks the Agent Client Protocol, through the whole engine: as a person would use it.

mod errands;
mod sessions;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    time::Duration,
};

use tempfile::TempDir;
use turnkeep_engine::{Config, Engine, Handle, Places, Snapshot};
use turnkeep_model::{
    Input, MessageId, ProviderId, SessionId,
    port::{Answer, Choice, FailureClass, SessionSettings, TurnOutcome},
    state::{AccountProblem, ApprovalState, Asker, Attachment, Installed},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// Answers each request by a function of the test's own script; `$id` is the request's id, `$line` the whole line.
const PRELUDE: &str = r#"
say() { printf '%s\n' "$1"; }
reply() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
refuse() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":$1}"; }
update() { say "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s 1\",\"update\":$1}}"; }
text() { update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}"; }
initialize() { reply '{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"close":{}}},"authMethods":[{"id":"web","name":"On the web"}],"agentInfo":{"version":"9.9"}}'; }
new() { reply '{"sessionId":"s 1"}'; }
prompt() { text "hello"; reply '{"stopReason":"end_turn"}'; }
cancel() { :; }
answer() { :; }
other() { refuse '{"code":-32601,"message":"Method not found"}'; }
"#;
const LOOP: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\)[,}].*/\1/p')
  printf '%s\n' "$line" >> "$HOME/heard"
  case "$line" in
    *'"method":"initialize"'*) initialize;;
    *'"method":"session/new"'*|*'"method":"session/load"'*) new;;
    *'"method":"session/prompt"'*) prompt;;
    *'"method":"session/cancel"'*) cancel;;
    *'"method":"session/close"'*) reply '{}';;
    *'"method"'*) other;;
    *) answer;;
  esac
done
"#;

struct Rig {
    root: TempDir,
    engine: Option<Engine>,
    handle: Handle,
}

impl Rig {
    /// `script`: what its agent does otherwise than an agent that is well.
    fn new(script: &str) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let program = root.path().join("agent");
        fs::write(&program, format!("#!/bin/sh\n{PRELUDE}\n{script}\n{LOOP}")).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
        let list = format!(r#"[{{"id":"mine","name":"Mine","command":{program:?},"env":{{"SECRET":"canary"}}}}]"#);
        let read = turnkeep_agents::configured::read(&list, &BTreeSet::new());
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        let home = root.path().to_string_lossy().into_owned();
        let environment = BTreeMap::from([("HOME".to_owned(), home), ("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        let config =
            Config { places: Places::below(&root.path().join("turnkeep")), agents: read.agents, environment: Some(environment) };
        let (engine, handle) = Engine::start(config).expect("it starts");
        Self { root, engine: Some(engine), handle }
    }

    async fn until(&self, what: &str, wanted: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let mut snapshots = self.handle.watch();
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let now = snapshots.borrow_and_update().clone();
                if wanted(&now) {
                    return now;
                }
                snapshots.changed().await.expect("the engine is there");
            }
        })
        .await;
        found.unwrap_or_else(|_| {
            panic!("{what} did not come; the agent heard {}; {:#?}", self.heard(), self.handle.snapshot().state)
        })
    }

    async fn session(&self) -> SessionId {
        let provider = ProviderId::new("mine");
        self.until("the agent", |snapshot| {
            let state = &snapshot.state;
            let found = state.providers.get(&provider).is_some_and(|it| matches!(it.installed, Installed::Found { .. }));
            found && state.accounts.values().any(|account| account.credential.is_some())
        })
        .await;
        self.another().await
    }

    /// The agent is there already.
    async fn another(&self) -> SessionId {
        let (provider, folder) = (ProviderId::new("mine"), self.root.path().to_string_lossy().into_owned());
        let made = self.handle.create_session(provider, folder, String::new(), SessionSettings::default(), None).await;
        made.expect("it is taken").session.expect("it is made")
    }

    async fn send(&self, session: SessionId, message: &str) {
        self.handle.send(session, MessageId::new(message), "do it".to_owned()).await.expect("it is taken");
    }

    async fn ended(&self, session: SessionId) -> TurnOutcome {
        let ended = |snapshot: &Snapshot| Some(snapshot.state.sessions.get(&session)?.last_turn.clone()?.outcome);
        let snapshot = self.until("the end of the turn", |snapshot| ended(snapshot).is_some()).await;
        ended(&snapshot).expect("it ended")
    }

    fn heard(&self) -> String {
        fs::read_to_string(self.root.path().join("heard")).unwrap_or_default()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    async fn quit(mut self) -> TempDir {
        self.handle.quit(Some(0));
        self.handle.exited().await;
        self.engine.take().expect("it runs").join();
        self.root
    }
}

#[tokio::test]
async fn a_message_is_worked_on_and_what_the_agent_is_given_is_not_saved() {
    let rig = Rig::new("");
    let session = rig.session().await;
    rig.send(session, "m1").await;
    assert_eq!(rig.ended(session).await, TurnOutcome::Completed);
    let state = rig.handle.snapshot().state;
    let entry = state.sessions.get(&session).expect("it is there");
    assert_eq!(entry.thread.as_ref().map(|thread| thread.as_str()), Some("s 1"), "the id as it came");
    assert_eq!(entry.preview, "hello");
    let provider = state.providers.values().next().expect("one");
    assert!(!provider.capabilities.steer && provider.capabilities.resume, "as it said itself");
    assert_eq!(provider.offers.len(), 1);
    let root = rig.quit().await;
    let saved = fs::read(root.path().join("turnkeep/data/turnkeep.db")).expect("the database");
    assert!(!saved.windows(6).any(|part| part == b"canary"), "a launch secret was saved");
}

#[tokio::test]
async fn a_question_is_answered_by_what_kind_the_option_is_of() {
    let rig = Rig::new(
        r#"
prompt() {
  turn=$id
  update '{"sessionUpdate":"tool_call","toolCallId":"c","kind":"execute","title":"touch x","status":"pending","rawInput":{"command":"touch x"}}'
  say '{"jsonrpc":"2.0","id":77,"method":"session/request_permission","params":{"sessionId":"s 1","toolCall":{"toolCallId":"c"},"options":[{"optionId":"banana","kind":"allow_once","name":"No"},{"optionId":"apple","kind":"reject_once","name":"Yes"}]}}'
}
answer() {
  case "$line" in *banana*) touch "$HOME/allowed";; esac
  id=$turn
  reply '{"stopReason":"end_turn"}'
}
"#,
    );
    let session = rig.session().await;
    rig.send(session, "m1").await;
    let pending = |snapshot: &Snapshot| {
        snapshot.state.approvals.iter().find(|(_, it)| it.state == ApprovalState::Pending).map(|(id, it)| (*id, it.clone()))
    };
    let snapshot = rig.until("the question", |snapshot| pending(snapshot).is_some()).await;
    let (approval, entry) = pending(&snapshot).expect("it was seen");
    assert_eq!(entry.ask.choices, [Choice::Allow, Choice::DenyAndStop, Choice::Deny]);
    rig.handle.answer(approval, Answer::Choice(Choice::Allow), Asker::Window).await.expect("it is taken");
    assert_eq!(rig.ended(session).await, TurnOutcome::Completed);
    assert!(rig.path("allowed").exists(), "the option of that kind was chosen");
    rig.quit().await;
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_and_takes_its_question_along() {
    let rig = Rig::new(
        r#"
prompt() {
  turn=$id
  say '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s 1","toolCall":{"toolCallId":"c","title":"x"},"options":[{"optionId":"a","kind":"allow_once","name":"A"}]}}'
}
cancel() { id=$turn; reply '{"stopReason":"cancelled"}'; }
"#,
    );
    let session = rig.session().await;
    rig.send(session, "m1").await;
    rig.until("the question", |snapshot| snapshot.state.approvals.values().any(|it| it.state == ApprovalState::Pending)).await;
    rig.handle.submit(Input::Interrupt { session }).await.expect("it is taken");
    assert_eq!(rig.ended(session).await, TurnOutcome::Interrupted);
    let state = rig.handle.snapshot().state;
    assert!(!state.approvals.values().any(|it| it.state == ApprovalState::Pending));
    // It reads to the end of its input before it goes.
    let root = rig.quit().await;
    let heard = fs::read_to_string(root.path().join("heard")).unwrap_or_default();
    assert!(heard.contains(r#""id":"q","result":{"outcome":{"outcome":"cancelled"}}"#), "{heard}");
}

#[tokio::test]
async fn a_refused_account_is_said_in_words_and_a_sign_in_is_offered_again() {
    let rig = Rig::new(r#"prompt() { refuse '{"code":-32000,"message":"Authentication required"}'; }"#);
    let session = rig.session().await;
    rig.send(session, "m1").await;
    let TurnOutcome::Failed(failure) = rig.ended(session).await else { panic!("it failed") };
    assert_eq!(failure.class, FailureClass::SignedOut);
    assert_eq!(failure.message, "Mine isn't connected. Sign in to Mine, then send your message again.");
    let rejected = |snapshot: &Snapshot| {
        snapshot.state.accounts.values().any(|account| matches!(account.problem, Some(AccountProblem::Rejected(_))))
    };
    rig.until("the account's problem", rejected).await;
    // The process of the account that was refused goes, and nothing is tried again by itself.
    rig.until("its end", |snapshot| snapshot.state.runtimes.is_empty()).await;
    assert_eq!(rig.heard().matches("session/prompt").count(), 1);
    rig.quit().await;
}

#[tokio::test]
async fn a_process_that_goes_in_mid_turn_fails_the_turn_with_a_record_and_the_next_one_goes_on() {
    let rig = Rig::new(
        r#"prompt() { text "so far"; if [ ! -e "$HOME/died" ]; then touch "$HOME/died"; printf '{"jsonrpc":'; exit 3; fi; reply '{"stopReason":"end_turn"}'; }"#,
    );
    let session = rig.session().await;
    rig.send(session, "m1").await;
    let TurnOutcome::Failed(failure) = rig.ended(session).await else { panic!("it failed") };
    let FailureClass::TransportClosed(record) = failure.class else { panic!("{failure:?}") };
    assert_eq!((record.exit_code, record.trailing_flushed, record.turn_state.as_str()), (Some(3), true, "started"));
    rig.send(session, "m2").await;
    let done = |snapshot: &Snapshot| {
        let last = snapshot.state.sessions.get(&session).and_then(|it| it.last_turn.as_ref());
        last.is_some_and(|turn| turn.outcome == TurnOutcome::Completed)
    };
    rig.until("the second turn", done).await;
    assert!(rig.heard().contains(r#""method":"session/load""#), "the same session, in another process");
    rig.quit().await;
}

#[tokio::test]
async fn a_session_that_nobody_wants_any_more_takes_its_process_along_though_no_answer_comes() {
    let rig = Rig::new(r#"new() { while [ ! -e "$HOME/go" ]; do sleep 0.02; done; reply '{"sessionId":"s 1"}'; }"#);
    let session = rig.session().await;
    rig.send(session, "m1").await;
    let attached = |snapshot: &Snapshot| snapshot.state.sessions.get(&session).map(|it| it.attachment.clone());
    rig.until("the opening", |it| matches!(attached(it), Some(Attachment::Opening { .. }))).await;
    rig.handle.submit(Input::Archive { session, archived: true }).await.expect("it is taken");
    rig.until("its end", |it| attached(it) == Some(Attachment::Detached) && it.state.runtimes.is_empty()).await;
    assert!(!rig.heard().contains("session/prompt"), "nothing is sent in it");
    rig.quit().await;
}
