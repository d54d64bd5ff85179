//! What the machine knows of one session and its running turns. Only bookkeeping: nothing here sends or reports.

use std::collections::{BTreeMap, VecDeque};

use turnkeep_model::{
    ItemId, MessageId, ProviderTurn, ThreadRef, TurnId,
    port::{AgentCommand, DeltaStream, Failure, GoalSpec, Item, ItemBody, ItemStatus, SessionSettings, TurnOutcome},
};

use crate::codex::items;

/// Bytes of unfinished text that are kept for one entry; its completion brings the whole.
const TEXT: usize = 8 * 1024 * 1024;
/// Lines that wait while it is not known whose turn they belong to.
const HELD_LINES: usize = 10_000;
const HELD_BYTES: usize = 64 * 1024 * 1024;
/// Ended turns that are remembered, so that a repeated end is not told twice.
const ENDED: usize = 8;

/// One session in this process.
#[derive(Debug)]
pub(super) struct Session {
    /// Tells the answers to an earlier opening from those to this one.
    pub(super) attempt: u64,
    pub(super) stage: Stage,
    pub(super) thread: Option<ThreadRef>,
    pub(super) folder: String,
    /// As they are in effect, once it is open.
    /// Opened as a fork of this thread, where it has none of its own yet.
    pub(super) fork_of: Option<ThreadRef>,
    pub(super) settings: SessionSettings,
    /// To be set once it is open.
    pub(super) goal: Option<GoalSpec>,
    /// Changes of the goal that Codex has not answered.
    pub(super) goals_asked: u32,
    /// What was said of the goal last, if anything.
    pub(super) goal_told: Option<Option<GoalSpec>>,
    /// Name of the thread's model provider.
    pub(super) model_provider: String,
    /// Codex says that it works, whatever turns are known.
    pub(super) active: bool,
    /// Codex says that the thread is not in its memory.
    pub(super) unloaded: bool,
    pub(super) starting: Option<Starting>,
    pub(super) turns: BTreeMap<ProviderTurn, Turn>,
    pub(super) ended: VecDeque<(ProviderTurn, TurnOutcome)>,
    /// What an interrupt left running is being stopped.
    pub(super) cleaning: bool,
    /// Commands that wait for `cleaning` or `starting` to end.
    pub(super) deferred: Vec<AgentCommand>,
    /// The last warning: Codex repeats some with every turn.
    pub(super) warned: String,
    /// Lines of this thread that wait for an answer that says whose they are.
    held: Option<Held>,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Opening { tries: u32 },
    Open,
    Releasing { asked: bool },
}

/// A turn that was sent and has no name yet.
#[derive(Clone, Debug)]
pub(super) struct Starting {
    pub(super) turn: TurnId,
    pub(super) message: MessageId,
    pub(super) interrupt: bool,
    /// False once it is no use to hold lines back for it.
    pub(super) hold: bool,
}

/// A running turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// `None` for a turn that nobody asked for.
    pub(super) ours: Option<TurnId>,
    /// Entries that have started and not completed, with their text so far.
    pub(super) open: BTreeMap<ItemId, Item>,
    /// The last finished message that may turn out to be the answer.
    pub(super) candidate: Option<Item>,
    pub(super) error: Option<Failure>,
}

#[derive(Debug, Default)]
struct Held {
    lines: Vec<Vec<u8>>,
    bytes: usize,
}

impl Session {
    pub(super) fn new(attempt: u64, thread: Option<ThreadRef>, folder: String, settings: SessionSettings) -> Self {
        Self {
            attempt,
            stage: Stage::Opening { tries: 0 },
            held: thread.is_some().then(Held::default),
            thread,
            folder,
            settings,
            fork_of: None,
            goal: None,
            goals_asked: 0,
            goal_told: None,
            model_provider: String::new(),
            active: false,
            unloaded: false,
            starting: None,
            turns: BTreeMap::new(),
            ended: VecDeque::new(),
            cleaning: false,
            deferred: Vec::new(),
            warned: String::new(),
        }
    }

    pub(super) fn busy(&self) -> bool {
        self.active || self.starting.is_some() || !self.turns.is_empty()
    }

    /// Codex's name of this turn. One that nobody asked for is meant by any name that is not known.
    pub(super) fn named(&self, turn: TurnId) -> Option<ProviderTurn> {
        let ours = self.turns.iter().find(|(_, running)| running.ours == Some(turn));
        let other = || self.turns.iter().rev().find(|(_, running)| running.ours.is_none());
        ours.or_else(other).map(|(name, _)| name.clone())
    }

    /// Remember an end. False if it was known already.
    pub(super) fn end(&mut self, name: &ProviderTurn, outcome: &TurnOutcome) -> bool {
        if self.ended.iter().any(|(known, _)| known == name) {
            return false;
        }
        self.ended.push_back((name.clone(), outcome.clone()));
        if self.ended.len() > ENDED {
            self.ended.pop_front();
        }
        true
    }

    /// Begin to hold lines back.
    pub(super) fn hold(&mut self) {
        self.held.get_or_insert_with(Held::default);
    }

    pub(super) fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Keep a line for later. False when that is too much: they must be acted on as they are.
    pub(super) fn keep(&mut self, line: &[u8]) -> bool {
        let Some(held) = &mut self.held else { return false };
        held.bytes += line.len();
        held.lines.push(line.to_vec());
        held.lines.len() < HELD_LINES && held.bytes < HELD_BYTES
    }

    /// Stop holding back.
    pub(super) fn unhold(&mut self) -> Vec<Vec<u8>> {
        self.held.take().map(|held| held.lines).unwrap_or_default()
    }
}

impl Turn {
    /// Add streamed text to its entry.
    pub(super) fn grow(&mut self, id: &ItemId, stream: DeltaStream, delta: &str) {
        let Some(item) = self.open.get_mut(id) else { return };
        let text = match (&mut item.body, stream) {
            (ItemBody::AgentMessage { text, .. }, DeltaStream::AgentMessage) => text,
            (ItemBody::Reasoning { summary, .. }, DeltaStream::ReasoningSummary) => summary,
            (ItemBody::Reasoning { text, .. }, DeltaStream::Reasoning) => text,
            (ItemBody::Plan { text }, DeltaStream::Plan) => text,
            (ItemBody::Command { output, .. }, DeltaStream::CommandOutput) => {
                output.push_str(delta);
                if output.len() > 2 * items::KEPT {
                    *output = items::bounded(std::mem::take(output));
                }
                return;
            }
            _ => return,
        };
        if text.len() + delta.len() <= TEXT {
            text.push_str(delta);
        }
    }

    /// Messages that a new one takes the place of: Codex drops them without a word when it retries or is steered.
    pub(super) fn superseded(&mut self, by: &ItemId) -> Vec<Item> {
        let old = |(id, item): &(&ItemId, &Item)| *id != by && matches!(item.body, ItemBody::AgentMessage { .. });
        let ids: Vec<ItemId> = self.open.iter().filter(old).map(|(id, _)| id.clone()).collect();
        ids.into_iter().filter_map(|id| self.open.remove(&id)).collect()
    }

    /// Entries that never completed, as they are to be shown.
    pub(super) fn orphans(&mut self) -> Vec<Item> {
        let open = std::mem::take(&mut self.open);
        open.into_values().map(abandoned).collect()
    }
}

fn abandoned(mut item: Item) -> Item {
    match &mut item.body {
        ItemBody::Command { status, .. } | ItemBody::FileChange { status, .. } | ItemBody::Tool { status, .. } => {
            *status = ItemStatus::Abandoned;
        }
        ItemBody::UserMessage { .. }
        | ItemBody::AgentMessage { .. }
        | ItemBody::Reasoning { .. }
        | ItemBody::WebSearch { .. }
        | ItemBody::Plan { .. }
        | ItemBody::Compaction
        | ItemBody::Notice { .. }
        | ItemBody::Error { .. }
        | ItemBody::Other { .. } => {}
    }
    item
}
