//! What the window may look up: searches, changes of a turn, agents' processes and threads. Changes nothing.

use tauri::State;
use turnkeep_model::{ProviderId, RuntimeId, TurnId};
use turnkeep_view::{
    dto,
    snapshot::{self, Ended},
    transcript,
};

use crate::{
    commands::{Done, not_read, number, refused, session},
    shell::Shell,
};

/// Matches that one search returns at most.
const MATCHES: usize = 500;
/// Ended processes that are told of.
const ENDED: usize = 30;

/// Where entries of this session stand that hold these words.
#[tauri::command]
pub(crate) async fn find_entries(
    shell: State<'_, Shell>,
    session: String,
    text: String,
    before: Option<u64>,
) -> Done<dto::Matches> {
    let id = self::session(&shell.engine, &session)?;
    let found = shell.engine.find(id, text, before, MATCHES).await.map_err(|why| not_read(&why))?;
    Ok(dto::Matches { ordinals: found.ordinals, before: found.before, total: found.total })
}

/// What a turn changed, file by file.
#[tauri::command]
pub(crate) async fn turn_changes(shell: State<'_, Shell>, session: String, turn: String) -> Done<Option<dto::TurnDiff>> {
    let id = self::session(&shell.engine, &session)?;
    let turn = number(&turn, TurnId)?;
    let diff = shell.engine.turn_diff(id, turn).await.map_err(|why| not_read(&why))?;
    Ok(diff.map(|diff| transcript::turn_diff(&diff)))
}

/// The processes that run and those that ended last, newest first, each with its last words.
#[tauri::command]
pub(crate) async fn runtimes(shell: State<'_, Shell>) -> Done<Vec<dto::Runtime>> {
    let ended = shell.engine.ended_runtimes(ENDED).await.map_err(|why| not_read(&why))?;
    let taken = shell.engine.snapshot();
    let running: Vec<RuntimeId> = taken.state.runtimes.keys().copied().collect();
    let mut lines = std::collections::BTreeMap::new();
    for id in running.into_iter().chain(ended.iter().map(|ended| ended.id)) {
        lines.insert(id, shell.engine.last_lines(id).await.map_err(|why| not_read(&why))?);
    }
    Ok(shell.view(&taken, |facts| {
        let mut last = |id| lines.remove(&id).unwrap_or_default();
        let mut told: Vec<_> =
            snapshot::live_runtimes(facts).map(|(id, entry)| snapshot::runtime(facts, id, entry, None, last(id))).collect();
        let gone = ended.iter().filter(|gone| !taken.state.runtimes.contains_key(&gone.id));
        told.extend(gone.map(|gone| {
            let end = Ended { at: gone.ended_at, failure: gone.failure.as_ref() };
            snapshot::runtime(facts, gone.id, &gone.entry, Some(end), last(gone.id))
        }));
        told
    }))
}

/// What a message of this session may begin with.
#[tauri::command]
pub(crate) async fn session_commands(shell: State<'_, Shell>, session: String) -> Done<Vec<dto::OfferedCommand>> {
    let id = self::session(&shell.engine, &session)?;
    Ok(snapshot::commands(&shell.engine.snapshot().state, id))
}

/// Threads that the provider knows. May start a process of its current account, and takes as long as that does.
#[tauri::command]
pub(crate) async fn provider_threads(shell: State<'_, Shell>, provider: String, cursor: Option<String>) -> Done<dto::ThreadPage> {
    let provider = ProviderId::new(provider);
    let page = shell.engine.threads(&provider, cursor).await.map_err(|why| refused("threads", why.to_string()))?;
    let taken = shell.engine.snapshot();
    Ok(shell.view(&taken, |facts| snapshot::threads(facts, &provider, &page)))
}
