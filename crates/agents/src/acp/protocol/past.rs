//! What the agent knows of the past: its sessions, and what was said in one of them, which it tells again while it loads it.
//!
//! Nothing here is about a turn that runs.

use std::collections::BTreeMap;

use serde_json::{json, value::RawValue};
use turnkeep_model::{
    ItemId, ProviderTurn, SessionId, ThreadRef, TurnId,
    port::{AgentEvent, FailureClass, Item, ItemBody, ThreadPage, ThreadSummary},
};

use super::{
    Asked, Machine,
    heard::{called, chunked, seconds},
    parse, patience,
    session::Turn,
};
use crate::acp::{wire, words};

/// Entries of a history that are kept, the newest ones.
const MOST_ENTRIES: usize = 20_000;
/// The numbers of turns are the model's to give; those of the past have none.
const NO_TURN: TurnId = TurnId(0);

/// What a thread held before, as far as it was told.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The turn that is being told.
    turn: Option<Turn>,
    /// The agent's id of the person's message that grows.
    said: Option<Option<String>>,
    turns: u64,
    items: Vec<(ProviderTurn, Item)>,
    /// Where the entries of the turn are.
    places: BTreeMap<ItemId, usize>,
}

impl Past {
    /// One thing that is told again.
    pub(super) fn take_in(&mut self, session: SessionId, update: wire::Update, nameless_is_own: bool) {
        let said = update.session_update == "user_message_chunk";
        if said {
            return self.person_said(update.message_id, &wire::text_of(&update.content));
        }
        self.said = None;
        if self.turn.is_none() {
            self.begin();
        }
        let Some(turn) = &mut self.turn else { return };
        let name = turn.name.clone();
        let events = match update.session_update.as_str() {
            "agent_message_chunk" => chunked((turn, true), session, update, false, nameless_is_own),
            "agent_thought_chunk" => chunked((turn, true), session, update, true, nameless_is_own),
            "tool_call" | "tool_call_update" => called(turn, session, update).unwrap_or_default(),
            _ => return,
        };
        for event in events {
            if let AgentEvent::ItemStarted { item, .. } | AgentEvent::ItemCompleted { item, .. } = event {
                self.put(&name, item);
            }
        }
    }

    /// Everything that was told, oldest first.
    pub(super) fn whole(mut self) -> Vec<(ProviderTurn, Item)> {
        self.end();
        let surplus = self.items.len().saturating_sub(MOST_ENTRIES);
        self.items.drain(..surplus);
        self.items
    }

    fn person_said(&mut self, id: Option<String>, text: &str) {
        if self.said.as_ref() != Some(&id) {
            self.begin();
            self.said = Some(id);
        }
        let Some(turn) = &self.turn else { return };
        let (name, id) = (turn.name.clone(), turn.id("said"));
        let before = self.places.get(&id).and_then(|at| self.items.get(*at));
        let text = match before {
            Some((_, Item { body: ItemBody::UserMessage { text: before, .. }, .. })) => format!("{before}{text}"),
            _ => text.to_owned(),
        };
        self.put(&name, Item { id, body: ItemBody::UserMessage { text, message: None } });
    }

    fn begin(&mut self) {
        self.end();
        if self.items.len() > 2 * MOST_ENTRIES {
            self.items.drain(..MOST_ENTRIES);
        }
        self.turns += 1;
        self.turn = Some(Turn::new(NO_TURN, ProviderTurn(format!("past-{}", self.turns))));
    }

    fn end(&mut self) {
        if let Some(mut turn) = self.turn.take() {
            let mut last: Vec<Item> = turn.finish().into_iter().chain(turn.orphans()).collect();
            if let Some(Item { id, body: ItemBody::AgentMessage { text, .. } }) = turn.answer.take() {
                last.push(Item { id, body: ItemBody::AgentMessage { text, final_answer: true } });
            }
            for item in last {
                self.put(&turn.name, item);
            }
        }
        self.places.clear();
        self.said = None;
    }

    /// Add an entry, or put it in the place of what was told of it before.
    fn put(&mut self, turn: &ProviderTurn, item: Item) {
        match self.places.get(&item.id).and_then(|at| self.items.get_mut(*at)) {
            Some((_, before)) => *before = item,
            None => {
                self.places.insert(item.id.clone(), self.items.len());
                self.items.push((turn.clone(), item));
            }
        }
    }
}

impl Machine {
    pub(super) fn tell_history(&mut self, session: SessionId) {
        let past = self.sessions.get_mut(&session).and_then(|entry| entry.past.take());
        let result = past.map(Past::whole).ok_or_else(|| {
            let message = format!("{} tells what was said in a session only while it opens it.", self.entry.name);
            words::plain(FailureClass::Other, message)
        });
        self.event(AgentEvent::History { session, result });
    }

    pub(super) fn ask_sessions(&mut self, ask: u64, cursor: Option<String>) {
        let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
        self.ask("session/list", &params, patience::LIST, Asked::Sessions { ask });
    }

    pub(super) fn listed(&mut self, ask: u64, outcome: Result<&RawValue, wire::Refusal>) {
        let page = match outcome {
            Ok(raw) => parse::<wire::SessionList>(raw).ok_or_else(|| words::misshapen(&self.entry, "list its sessions")),
            Err(error) => Err(words::of_refusal(&self.entry, &error, "list its sessions")),
        };
        let result = page.map(|page| {
            let known = page.sessions.into_iter().filter(|listed| !listed.session_id.is_empty());
            let threads = known.map(|listed| ThreadSummary {
                thread: ThreadRef(listed.session_id),
                title: listed.title,
                preview: String::new(),
                folder: listed.cwd,
                updated_at: seconds(&listed.updated_at).unwrap_or_default(),
                resumable: self.can.load || self.can.resume,
            });
            ThreadPage { threads: threads.collect(), next_cursor: page.next_cursor.filter(|cursor| !cursor.is_empty()) }
        });
        self.event(AgentEvent::Threads { ask, result });
    }
}
