//! Feeds one page: snapshots, the followed transcript and places to go, in batches, through its one channel.
//!
//! It never sends more often than a screen can draw, and ends with its window.

use std::time::Duration;

use tauri::ipc::Channel;
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};
use turnkeep_engine::{Transcript, TranscriptEvent, store};
use turnkeep_model::SessionId;
use turnkeep_view::{dto, transcript};

use crate::shell::Shell;

/// Least time between two batches: 60 a second.
const EVERY: Duration = Duration::from_millis(17);
/// Transcript events in one batch.
const TOGETHER: usize = 512;

/// A running feed; ends when dropped.
#[derive(Debug)]
pub(crate) struct Pump {
    turns: mpsc::UnboundedSender<Turn>,
    task: JoinHandle<()>,
}

/// What the feed is told.
#[derive(Debug)]
enum Turn {
    Follow(Option<Box<Transcript>>),
    Show(dto::View),
}

impl Pump {
    /// Begins with a snapshot.
    pub(crate) fn start(shell: Shell, channel: Channel<Vec<dto::WindowEvent>>) -> Self {
        let (turns, turned) = mpsc::unbounded_channel();
        Self { turns, task: tokio::spawn(run(shell, channel, turned)) }
    }

    /// Follow this transcript, or none.
    pub(crate) fn follow(&self, transcript: Option<Transcript>) {
        let _ = self.turns.send(Turn::Follow(transcript.map(Box::new)));
    }

    /// Tell the page to go somewhere.
    pub(crate) fn show(&self, view: dto::View) {
        let _ = self.turns.send(Turn::Show(view));
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(shell: Shell, channel: Channel<Vec<dto::WindowEvent>>, mut turns: mpsc::UnboundedReceiver<Turn>) {
    let mut snapshots = shell.engine.watch();
    snapshots.mark_changed();
    let mut followed: Option<Box<Transcript>> = None;
    loop {
        let mut batch = Vec::new();
        tokio::select! {
            changed = snapshots.changed() => {
                if changed.is_err() {
                    return;
                }
                let snapshot = snapshots.borrow_and_update().clone();
                batch.push(dto::WindowEvent::Snapshot { snapshot: Box::new(shell.snapshot(&snapshot)) });
            }
            turn = turns.recv() => match turn {
                Some(Turn::Follow(transcript)) => followed = transcript,
                Some(Turn::Show(view)) => batch.push(dto::WindowEvent::Show { view }),
                None => return,
            },
            event = next(&mut followed) => match (event, &mut followed) {
                (Some(event), Some(transcript)) => {
                    let session = transcript.session();
                    let mut events = vec![of(session, event)];
                    events.extend(transcript.ready(TOGETHER).into_iter().map(|event| of(session, event)));
                    batch.push(dto::WindowEvent::Transcript { session: session.to_string(), events });
                }
                _ => followed = None,
            },
        }
        if batch.is_empty() {
            continue;
        }
        let sent = Instant::now();
        if let Err(error) = channel.send(batch) {
            tracing::debug!(%error, "the window is gone");
            return;
        }
        tokio::time::sleep_until(sent + EVERY).await;
    }
}

async fn next(followed: &mut Option<Box<Transcript>>) -> Option<TranscriptEvent> {
    match followed {
        Some(transcript) => transcript.next().await,
        None => std::future::pending().await,
    }
}

fn of(session: SessionId, event: TranscriptEvent) -> dto::TranscriptEvent {
    match event {
        TranscriptEvent::Page(page) => dto::TranscriptEvent::Page { page: self::page(session, page) },
        TranscriptEvent::Upsert(found) => dto::TranscriptEvent::Upsert { entry: entry(&found) },
        TranscriptEvent::Diff { turn, counts } => dto::TranscriptEvent::Changes { changes: transcript::changes(turn, &counts) },
        TranscriptEvent::Delta { item, stream, text } => {
            dto::TranscriptEvent::Delta { id: item.to_string(), stream: transcript::stream(stream), text: text.to_string() }
        }
    }
}

/// A page as a screen shows it.
pub(crate) fn page(session: SessionId, page: store::Page) -> dto::TranscriptPage {
    let changes = page.diffs.iter().map(|(turn, diff)| transcript::changes(*turn, diff)).collect();
    transcript::page(session, page.entries.iter().map(entry).collect(), page.before, page.total, changes)
}

fn entry(found: &store::Entry) -> dto::Entry {
    let place = transcript::Place { ordinal: found.ordinal, turn: found.turn, completed: found.completed, at: found.at };
    transcript::entry(place, &found.item)
}
