//! Threads from elsewhere, changes of turns, processes that ended, and a quit that is taken back.

use turnkeep_model::{ThreadRef, TurnId, port::SessionSettings};

use super::*;
use crate::Unanswered;

fn agent(runtime: RuntimeId, event: AgentEvent) -> Arrival {
    Arrival::Input(Input::Agent { runtime, event })
}

#[tokio::test]
async fn a_process_is_started_to_ask_for_threads_and_one_of_them_becomes_a_session_with_its_history() {
    let rig = Rig::new();
    rig.until("an account", |snapshot| !snapshot.state.accounts.is_empty()).await;
    assert!(rig.handle.snapshot().state.runtimes.is_empty());
    let page = rig.handle.threads(&play::provider(), None).await.unwrap();
    assert_eq!(page.threads[0].thread, ThreadRef::new("first"));
    let next = rig.handle.threads(&play::provider(), Some("next".into())).await.unwrap();
    assert_eq!(next.threads[0].thread, ThreadRef::new("next"));
    assert_eq!(rig.handle.snapshot().state.runtimes.len(), 1, "the second question goes to the same process");

    let thread = Some(ThreadRef::new("first"));
    let made =
        rig.handle.create_session(play::provider(), "/folder".into(), "old".into(), SessionSettings::default(), thread).await;
    let session = made.unwrap().session.unwrap();
    rig.handle.send(session, MessageId::new("m"), "go on".into()).await.unwrap();
    rig.until("a turn", |snapshot| !snapshot.state.turns.is_empty()).await;
    let entries = rig.handle.transcript_page(session, None, 10).await.unwrap().entries;
    let ids: Vec<_> = entries.iter().map(|entry| entry.item.id.0.as_str()).take(3).collect();
    assert_eq!(ids, ["past first", "past second", "past third"]);
    let turns: Vec<_> = entries.iter().map(|entry| entry.turn).take(3).collect();
    assert!(turns[0] == turns[1] && turns[1] != turns[2], "{turns:?}");
    let now = rig.handle.snapshot().state.turns.keys().next().copied().unwrap();
    assert!(turns.iter().all(|turn| *turn != now), "a turn of the past is no turn of now");
    rig.quit().await;
}

#[tokio::test]
async fn nobody_is_asked_who_cannot_answer() {
    let rig = Rig::new();
    rig.until("an account", |snapshot| !snapshot.state.accounts.is_empty()).await;
    let other = rig.handle.threads(&ProviderId::new("other"), None).await;
    assert!(matches!(other, Err(Unanswered::Unable)), "{other:?}");
    let account = *rig.handle.snapshot().state.accounts.keys().next().unwrap();
    rig.handle.submit(Input::SignOut { account, now: true }).await.unwrap();
    let none = rig.handle.threads(&play::provider(), None).await;
    assert!(matches!(none, Err(Unanswered::SignedOut)), "{none:?}");
    rig.quit().await;
}

#[tokio::test]
async fn the_last_changes_of_a_turn_are_kept_and_told_and_are_there_after_a_restart() {
    let rig = Rig::new();
    let (session, turn, runtime) = rig.with_turn().await;
    let named = rig.handle.snapshot().state.turns[&turn].provider_turn.clone().unwrap();
    let mut transcript = rig.handle.open_transcript(session, 10).await.unwrap();
    assert!(matches!(transcript.next().await, Some(TranscriptEvent::Page(page)) if page.diffs.is_empty()));
    for added in ["+one\n", "+one\n+two\n"] {
        let lines = added.lines().count();
        let unified = format!("diff --git a/f b/f\n--- /dev/null\n+++ b/f\n@@ -0,0 +1,{lines} @@\n{added}");
        rig.say(agent(runtime, AgentEvent::Diff { session, provider_turn: named.clone(), unified }));
    }
    let told = async {
        loop {
            if let Some(TranscriptEvent::Diff { turn: of, counts }) = transcript.next().await
                && counts.added == 2
            {
                return (of, counts);
            }
        }
    };
    let (of, counts) = tokio::time::timeout(SOON, told).await.unwrap();
    assert_eq!((of, counts.files, counts.text.as_str()), (turn, 1, ""), "the text is not sent along");
    let Rig { folder, path, engine, handle, record: _ } = rig;
    handle.quit(Some(0));
    handle.exited().await;
    engine.join();

    let (engine, handle, _) = launch(&path, Crash::default(), false);
    let page = handle.transcript_page(session, None, 10).await.unwrap();
    assert_eq!(page.diffs.iter().map(|(turn, diff)| (*turn, diff.added)).collect::<Vec<_>>(), [(turn, 2)]);
    let whole = handle.turn_diff(session, turn).await.unwrap().unwrap();
    assert!(whole.text.ends_with("+one\n+two\n"), "{}", whole.text);
    assert_eq!(handle.turn_diff(session, TurnId(999)).await.unwrap(), None);
    handle.quit(Some(0));
    handle.exited().await;
    engine.join();
    drop(folder);
}

#[tokio::test]
async fn a_process_that_ended_is_remembered_with_the_reason_and_its_last_words() {
    let rig = Rig::new();
    let (.., runtime) = rig.with_turn().await;
    assert_eq!(rig.handle.last_lines(runtime).await.unwrap(), [format!("the last words of {runtime}")]);
    let closed = turnkeep_model::port::TransportRecord { stderr: vec!["it hurts".into()], ..Default::default() };
    rig.say(Arrival::Input(Input::RuntimeGone { runtime, closed: Some(closed) }));
    rig.until("the end of the process", |snapshot| !snapshot.state.runtimes.contains_key(&runtime)).await;
    let ended = rig.handle.ended_runtimes(5).await.unwrap();
    assert_eq!(ended[0].id, runtime);
    let failure = ended[0].failure.as_ref().unwrap();
    assert!(
        matches!(&failure.class, turnkeep_model::port::FailureClass::TransportClosed(record) if record.stderr == ["it hurts"]),
        "{failure:?}"
    );
    assert_eq!(ended[0].entry.process.as_ref().map(|process| process.pid), Some(1));
    rig.quit().await;
}

#[tokio::test]
async fn words_of_one_session_are_found_newest_first_and_by_pages() {
    let rig = Rig::new();
    let (session, turn, runtime) = rig.with_turn().await;
    for input in play::ends(runtime, session, turn) {
        rig.say(Arrival::Input(input));
    }
    rig.until("the end of the turn", |snapshot| snapshot.state.turns.is_empty()).await;
    let found = rig.handle.find(session, "don".into(), None, 10).await.unwrap();
    assert_eq!((found.ordinals.len(), found.total, found.before), (1, 1, None));
    let one = rig.handle.find(session, "don".into(), None, 1).await.unwrap();
    assert_eq!(one.before, Some(one.ordinals[0]), "a full page may not be the last");
    assert_eq!(rig.handle.find(session, "don".into(), one.before, 1).await.unwrap().ordinals, [] as [u64; 0]);
    assert_eq!(rig.handle.find(SessionId(99), "don".into(), None, 10).await.unwrap().total, 0);
    rig.quit().await;
}

#[tokio::test]
async fn a_quit_that_was_taken_back_does_not_make_the_next_one_a_forced_one() {
    let rig = Rig::new();
    let (_, turn, _) = rig.with_turn().await;
    rig.handle.quit(None);
    rig.until("a quit", |snapshot| snapshot.state.quit.is_some()).await;
    assert!(rig.handle.cancel_quit().await.unwrap().changed);
    assert!(rig.handle.snapshot().state.quit.is_none());
    rig.handle.quit(None);
    let again = rig.until("a quit", |snapshot| snapshot.state.quit.is_some()).await;
    assert!(!again.state.quit.unwrap().forced && again.state.turns.contains_key(&turn));
    assert!(rig.handle.cancel_quit().await.unwrap().changed);
    assert!(!rig.handle.cancel_quit().await.unwrap().changed, "nothing to take back");
    rig.quit().await;
}
