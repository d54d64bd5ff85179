//! Sessions that open late, under another's name or under none, and closings that fail: beside one that works.

use std::fs;

use turnkeep_model::{
    Input, SessionId,
    port::{FailureClass, TurnOutcome},
    state::Attachment,
};

use super::{Rig, Snapshot};

/// Its first session is "s 1"; what it does with the second, the test says. A first turn waits for the file `go`.
const TWO: &str = r#"
new() {
  if [ ! -e "$HOME/first" ]; then touch "$HOME/first"; reply '{"sessionId":"s 1"}'; else second; fi
}
prompt() { text "so far"; while [ ! -e "$HOME/go" ]; do sleep 0.02; done; reply '{"stopReason":"end_turn"}'; }
"#;

impl Rig {
    /// How a session's opening failed, once it did.
    async fn refused(&self, session: SessionId) -> (FailureClass, String) {
        let snapshot = self.until("the refusal", |it| failure(it, session).is_some()).await;
        failure(&snapshot, session).expect("it was seen")
    }

    fn attached(&self, session: SessionId) -> Attachment {
        self.handle.snapshot().state.sessions.get(&session).expect("it is there").attachment.clone()
    }

    async fn until_heard(&self, what: &str, count: usize) {
        let heard = async {
            while self.heard().matches(what).count() < count {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(super::PATIENCE, heard).await.unwrap_or_else(|_| panic!("no {what} in {}", self.heard()));
    }

    /// A first session whose turn runs until [`Self::go`].
    async fn working(&self) -> SessionId {
        let session = self.session().await;
        self.send(session, "m1").await;
        let runs = |it: &Snapshot| it.state.turns.values().any(|turn| turn.session == session && turn.provider_turn.is_some());
        self.until("its turn", runs).await;
        session
    }

    fn go(&self) {
        fs::write(self.path("go"), "").expect("written");
    }
}

fn failure(snapshot: &Snapshot, session: SessionId) -> Option<(FailureClass, String)> {
    let failure = snapshot.state.sessions.get(&session)?.open_failure.as_ref()?;
    Some((failure.class.clone(), failure.message.clone()))
}

#[tokio::test]
async fn a_session_that_opens_after_it_was_given_up_is_closed_beside_one_that_works() {
    // Its turn does not hold the agent up: it ends when the second session is closed.
    let rig = Rig::new(
        r#"
new() {
  if [ ! -e "$HOME/first" ]; then touch "$HOME/first"; reply '{"sessionId":"s 1"}'; else late=$id; fi
}
prompt() {
  text "hello"
  case "$line" in *late*) id=$late; reply '{"sessionId":"s 2"}';; *) reply '{"stopReason":"end_turn"}';; esac
}
cancel() { :; }
other() { refuse '{"code":-32601,"message":"Method not found"}'; }
"#,
    );
    let first = rig.session().await;
    rig.send(first, "m1").await;
    assert_eq!(rig.ended(first).await, TurnOutcome::Completed);
    let runtime = rig.handle.snapshot().state.runtimes.keys().next().copied().expect("its process");
    let second = rig.another().await;
    rig.send(second, "m2").await;
    rig.until_heard("session/new", 2).await;
    rig.handle.submit(Input::Archive { session: second, archived: true }).await.expect("it is taken");
    // The first goes on all the while; with this message the late answer comes.
    rig.handle.send(first, turnkeep_model::MessageId::new("m3"), "late".to_owned()).await.expect("it is taken");
    rig.until_heard(r#""method":"session/close","params":{"sessionId":"s 2"}"#, 1).await;
    rig.until("its end", |it| it.state.sessions.get(&second).is_some_and(|it| it.attachment == Attachment::Detached)).await;
    let state = rig.handle.snapshot().state;
    assert!(state.runtimes.contains_key(&runtime), "the process of the first was ended");
    assert!(state.turns.values().any(|turn| turn.session == first), "the turn of the first was ended");
    assert!(!rig.heard().contains(r#""method":"session/close","params":{"sessionId":"s 1"}"#));
    rig.quit().await;
}

#[tokio::test]
async fn a_closing_that_is_refused_is_tried_again_until_it_succeeds() {
    let rig = Rig::new(
        r#"
count=0
new() { count=$((count + 1)); reply "{\"sessionId\":\"s $count\"}"; }
reply() {
  case "$line" in
    *'"session/close"'*) echo x >> "$HOME/closes"
      if [ "$(grep -c x "$HOME/closes")" -lt 3 ]; then refuse '{"code":-32603,"message":"busy"}'; return; fi;;
  esac
  say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"
}
"#,
    );
    let first = rig.session().await;
    rig.send(first, "m1").await;
    assert_eq!(rig.ended(first).await, TurnOutcome::Completed);
    let second = rig.another().await;
    rig.handle.send(second, turnkeep_model::MessageId::new("m2"), "do it".to_owned()).await.expect("it is taken");
    assert_eq!(rig.ended(second).await, TurnOutcome::Completed);
    rig.handle.submit(Input::Archive { session: second, archived: true }).await.expect("it is taken");
    rig.until("its closing", |it| it.state.sessions.get(&second).is_some_and(|it| it.attachment == Attachment::Detached)).await;
    assert_eq!(rig.heard().matches("session/close").count(), 3);
    assert!(matches!(rig.attached(first), Attachment::Open { .. }), "the first was let go of");
    rig.quit().await;
}

#[tokio::test]
async fn two_sessions_under_one_id_are_not_one_and_the_first_goes_on() {
    let rig = Rig::new(&format!("{TWO}\nsecond() {{ reply '{{\"sessionId\":\"s 1\"}}'; }}"));
    let first = rig.session().await;
    rig.go();
    rig.send(first, "m1").await;
    assert_eq!(rig.ended(first).await, TurnOutcome::Completed);
    let second = rig.another().await;
    rig.send(second, "m2").await;
    let (class, message) = rig.refused(second).await;
    assert_eq!(class, FailureClass::Protocol);
    assert!(message.contains("the id of another one that is open"), "{message}");
    assert_eq!(rig.attached(second), Attachment::Detached);
    assert!(matches!(rig.attached(first), Attachment::Open { .. }));
    assert!(!rig.heard().contains("session/close"), "the first one was closed with it");
    rig.send(first, "m3").await;
    rig.until("the next turn of the first", |it| {
        let last = it.state.sessions.get(&first).and_then(|it| it.last_turn.as_ref());
        last.is_some_and(|turn| turn.message.as_ref().is_some_and(|message| message.as_str() == "m3"))
    })
    .await;
    rig.quit().await;
}

#[tokio::test]
async fn a_session_without_an_id_is_refused_and_the_first_goes_on() {
    let rig = Rig::new(&format!("{TWO}\nsecond() {{ reply '{{}}'; }}"));
    let first = rig.working().await;
    rig.go();
    assert_eq!(rig.ended(first).await, TurnOutcome::Completed);
    let second = rig.another().await;
    rig.send(second, "m2").await;
    let (class, message) = rig.refused(second).await;
    assert_eq!(class, FailureClass::Protocol);
    assert!(message.contains("without saying its id"), "{message}");
    assert_eq!(rig.heard().matches("session/prompt").count(), 1, "nothing is sent in it");
    assert!(matches!(rig.attached(first), Attachment::Open { .. }));
    rig.quit().await;
}
