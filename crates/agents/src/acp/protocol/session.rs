//! What the machine knows of one session and its turn. Only bookkeeping: nothing here sends or reports.

use std::collections::{BTreeMap, VecDeque};

use turnkeep_model::{
    ItemId, ProviderTurn, ThreadRef, TurnId,
    port::{Item, ItemBody, ItemStatus, OfferedCommand, SessionSettings, Usage},
};

use super::past::Past;
use crate::acp::{
    items::ToolCall,
    settings::{Catalogue, Setting},
};

/// Bytes of one text that are kept.
const TEXT: usize = 8 << 20;

/// One session in this process.
#[derive(Debug)]
pub(super) struct Session {
    /// Tells the answers to an earlier opening from those to this one.
    pub(super) attempt: u64,
    pub(super) stage: Stage,
    pub(super) thread: Option<ThreadRef>,
    pub(super) folder: String,
    /// As they were asked for last.
    pub(super) wanted: SessionSettings,
    pub(super) catalogue: Catalogue,
    /// Choices that are still to be told, one after the other.
    pub(super) settings: VecDeque<Setting>,
    /// Waits for `settings` to be told.
    pub(super) starting: Option<Starting>,
    pub(super) turn: Option<Turn>,
    /// The turn before, for what is still said about it.
    pub(super) last: Option<Turn>,
    /// The turn that the agent goes on with although it was asked to stop it: for everyone else it is over.
    pub(super) ignoring: Option<TurnId>,
    pub(super) usage: Usage,
    /// As they were told last.
    pub(super) commands: Vec<OfferedCommand>,
    /// Where its history is wanted: as much of it as was told.
    pub(super) past: Option<Past>,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Opening,
    /// It has its id, and is being told how to behave before anyone may use it.
    Configuring,
    Open,
    /// `asked`: how often the agent was asked to close it.
    Releasing {
        asked: u32,
    },
}

/// A turn that waits to be sent.
#[derive(Clone, Debug)]
pub(super) struct Starting {
    pub(super) turn: TurnId,
    pub(super) name: ProviderTurn,
    pub(super) text: String,
    pub(super) interrupt: bool,
}

/// A running turn, or the one before.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) ours: TurnId,
    pub(super) name: ProviderTurn,
    /// The message or the thought that grows, and the agent's id of it.
    pub(super) growing: Option<(Option<String>, Item)>,
    /// The last finished message that may turn out to be the answer.
    pub(super) answer: Option<Item>,
    pub(super) calls: BTreeMap<ItemId, ToolCall>,
    /// The adapter's own last text, if nothing came after it.
    pub(super) own_text: Option<String>,
    pub(super) cancelling: bool,
    /// For the names of entries that have none.
    made: u64,
}

impl Session {
    pub(super) fn new(attempt: u64, thread: Option<ThreadRef>, folder: String, wanted: SessionSettings) -> Self {
        Self {
            attempt,
            stage: Stage::Opening,
            thread,
            folder,
            wanted,
            catalogue: Catalogue::default(),
            settings: VecDeque::new(),
            starting: None,
            turn: None,
            last: None,
            ignoring: None,
            usage: Usage::default(),
            commands: Vec::new(),
            past: None,
        }
    }

    pub(super) fn busy(&self) -> bool {
        self.starting.is_some() || self.turn.is_some()
    }
}

impl Turn {
    pub(super) fn new(ours: TurnId, name: ProviderTurn) -> Self {
        Self { ours, name, growing: None, answer: None, calls: BTreeMap::new(), own_text: None, cancelling: false, made: 0 }
    }

    /// The name of an entry. An agent's own name of it may come again in another turn.
    pub(super) fn id(&self, theirs: &str) -> ItemId {
        ItemId(format!("{}/{theirs}", self.name.as_str()))
    }

    /// A name for an entry that the agent gave none.
    pub(super) fn make_id(&mut self) -> ItemId {
        self.made += 1;
        self.id(&format!("#{}", self.made))
    }

    /// Add streamed text to what grows.
    pub(super) fn grow(&mut self, delta: &str) {
        let Some((_, item)) = &mut self.growing else { return };
        if let ItemBody::AgentMessage { text, .. } | ItemBody::Reasoning { text, .. } | ItemBody::Notice { text } = &mut item.body
            && text.len() + delta.len() <= TEXT
        {
            text.push_str(delta);
        }
    }

    /// What grew is whole.
    pub(super) fn finish(&mut self) -> Option<Item> {
        let (_, item) = self.growing.take()?;
        if matches!(item.body, ItemBody::AgentMessage { .. }) {
            self.answer = Some(item.clone());
        }
        Some(item)
    }

    /// Calls that never completed, as they are to be shown.
    pub(super) fn orphans(&self) -> Vec<Item> {
        let open = self.calls.iter().filter(|(_, call)| !call.is_over());
        open.map(|(id, call)| abandoned(call.item(id))).collect()
    }
}

fn abandoned(mut item: Item) -> Item {
    if let ItemBody::Command { status, .. } | ItemBody::FileChange { status, .. } | ItemBody::Tool { status, .. } = &mut item.body
    {
        *status = ItemStatus::Abandoned;
    }
    item
}
