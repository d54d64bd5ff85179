//! The engine as a program starts it, with the real world and nothing to run in it.

use std::time::Duration;

use turnkeep_model::Input;

use super::*;
use crate::run::Ended;

const SOON: Duration = Duration::from_secs(20);

fn config(folder: &tempfile::TempDir) -> Config {
    Config { places: Places::below(folder.path()), agents: Vec::new(), environment: Some(BTreeMap::new()) }
}

async fn quit(engine: Engine, handle: &Handle) {
    handle.quit(None);
    assert_eq!(tokio::time::timeout(SOON, handle.exited()).await.unwrap(), Ended::Quit);
    tokio::task::spawn_blocking(move || engine.join()).await.unwrap();
}

#[tokio::test]
async fn one_engine_a_folder_and_what_it_was_told_is_there_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, handle) = Engine::start(config(&folder)).unwrap();
    let second = Engine::start(config(&folder)).unwrap_err();
    assert!(matches!(&second, StartError::Lock(LockError::Held { .. })), "{second}");

    let mut settings = handle.snapshot().state.settings.clone();
    settings.muted = true;
    assert!(handle.submit(Input::ChangeSettings { settings }).await.unwrap().changed);
    quit(engine, &handle).await;
    assert!(handle.submit(Input::Tick).await.is_err(), "the end is told to whoever still asks");
    assert!(handle.transcript_page(turnkeep_model::SessionId(1), None, 1).await.is_err());

    let (engine, handle) = Engine::start(config(&folder)).unwrap();
    assert!(handle.snapshot().state.settings.muted, "seen before anything else happens");
    assert!(handle.snapshot().recovery.is_none(), "nothing was left over");
    quit(engine, &handle).await;
}

#[tokio::test]
async fn handles_work_from_any_thread_and_without_a_runtime_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, handle) = Engine::start(config(&folder)).unwrap();
    let others: Vec<_> = (0..4)
        .map(|_| {
            let handle = handle.clone();
            std::thread::spawn(move || {
                let own = tokio::runtime::Builder::new_current_thread().build().unwrap();
                own.block_on(async {
                    handle.submit(Input::Tick).await.unwrap();
                    handle.search("x".into(), 1).await.unwrap();
                    handle.events(turnkeep_model::Seq(0), 1).await.unwrap();
                });
            })
        })
        .collect();
    for other in others {
        tokio::task::spawn_blocking(move || other.join().unwrap()).await.unwrap();
    }
    quit(engine, &handle).await;
}

#[test]
fn what_an_earlier_run_left_is_said() {
    let missing = [
        Missing::Row { source: "sessions", key: "3".into(), why: "it is torn".into() },
        Missing::Database { aside: "/d/turnkeep.db.damaged-1".into(), detail: "no pages".into() },
    ];
    let told = recovery(&missing, &State::default(), Now { wall: 5, boot: 1 }).unwrap();
    assert_eq!(told.at, 5);
    assert!(told.lines[0].contains("sessions") && told.lines[0].contains("torn"), "{:?}", told.lines);
    assert!(told.lines[1].contains("damaged-1"), "{:?}", told.lines);
    assert_eq!(recovery(&[], &State::default(), Now::default()), None);
}
