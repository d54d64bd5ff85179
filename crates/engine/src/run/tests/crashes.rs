//! The engine ends at every place where an end can be told apart, and the next start makes the best of it.

use std::collections::BTreeSet;

use turnkeep_model::port::AgentCommand;

use super::*;

/// What a message's whole way takes; told from outside, so that a crash in between leaves the rest unsaid.
async fn story(handle: &Handle) -> Result<(), Refused> {
    let known = async {
        let mut watch = handle.watch();
        let ready = |snapshot: &Snapshot| snapshot.state.accounts.values().any(|account| account.credential.is_some());
        watch.wait_for(ready).await.is_ok()
    };
    if !known.await {
        return Err(Refused::Ended);
    }
    let session = match handle.snapshot().state.sessions.keys().next() {
        Some(session) => *session,
        None => handle.submit(play::create_session()).await?.session.unwrap(),
    };
    for message in ["a", "b"] {
        handle.send(session, MessageId::new(message), message.into()).await?;
    }
    let mut watch = handle.watch();
    let settled = |snapshot: &Snapshot| {
        let session = &snapshot.state.sessions[&session];
        snapshot.state.turns.is_empty() && session.queue.is_empty()
            || !session.undecided.is_empty() && snapshot.state.turns.is_empty()
    };
    let settled = tokio::time::timeout(SOON, watch.wait_for(settled)).await;
    let settled = settled.unwrap_or_else(|_| panic!("never settled: {:#?}", handle.snapshot()));
    settled.map(|_| ()).map_err(|_| Refused::Ended)
}

/// Messages that were sent to the agent, in order.
fn started(record: &Record) -> Vec<String> {
    let effects = record.effects.lock().unwrap();
    effects
        .iter()
        .filter_map(|effect| {
            let Effect::Command { command: AgentCommand::StartTurn { message, .. }, .. } = effect else { return None };
            Some(message.0.clone())
        })
        .collect()
}

#[tokio::test]
async fn a_crash_anywhere_loses_nothing_and_does_nothing_twice() {
    // A database with its tables, so that they are not made anew each time.
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.db");
    store::open(&empty).unwrap().0.close();
    let mut places = BTreeSet::new();
    let mut at = 0;
    loop {
        at += 1;
        assert!(at < 500, "the story never ends");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("turnkeep.db");
        std::fs::copy(&empty, &path).unwrap();
        let (engine, handle, first) = launch(&path, Crash::at(at), true);
        let mut acknowledged = tokio::time::timeout(SOON, story(&handle)).await.unwrap().is_ok();
        handle.quit(None);
        let ended = tokio::time::timeout(SOON, handle.exited()).await.unwrap();
        let seq = handle.snapshot().state.seq;
        engine.join();
        let crashed = if let Ended::Crashed(point) = ended {
            places.insert(point);
            true
        } else {
            assert_eq!(ended, Ended::Quit);
            false
        };
        // What was shown was written, and the file is whole.
        let other = rusqlite::Connection::open(&path).unwrap();
        let verdict: String = other.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(verdict, "ok");
        drop(other);
        let (_, _, loaded) = store::open(&path).unwrap();
        assert!(loaded.state.seq >= seq, "point {at}: shown {seq}, written {}", loaded.state.seq);
        acknowledged &= !crashed;

        let (engine, handle, second) = launch(&path, Crash::default(), true);
        tokio::time::timeout(SOON, story(&handle)).await.unwrap().unwrap();
        let state = handle.snapshot().state;
        let session = state.sessions.values().next().unwrap();
        assert_eq!(state.sessions.len(), 1, "point {at}");
        assert!(state.turns.is_empty(), "point {at}: no turn is left running");

        // Each message reached an agent once at most, except where the agent's history says that it did not.
        let both: Vec<String> = started(&first).into_iter().chain(started(&second)).collect();
        for message in ["a", "b"] {
            let count = both.iter().filter(|sent| *sent == message).count();
            let asked = second.effects.lock().unwrap().iter().filter(|effect| matches!(effect, Effect::Probe { .. })).count();
            assert!(count <= 1 + asked, "point {at}: {message} sent {count} times, asked {asked} times");
            let undecided = session.undecided.iter().any(|entry| entry.id.0 == message);
            assert!(count >= 1 || undecided, "point {at}: {message} is lost; {state:#?}");
        }
        handle.quit(None);
        assert_eq!(tokio::time::timeout(SOON, handle.exited()).await.unwrap(), Ended::Quit, "point {at}");
        engine.join();
        if !crashed {
            assert!(acknowledged);
            break;
        }
    }
    assert_eq!(places.len(), 4, "{places:?}");
    assert!(at > 40, "{at} points are too few to mean anything");
}
