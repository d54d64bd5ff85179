//! What the agent reports by itself.

use serde_json::{Value, value::RawValue};
use turnkeep_model::{
    ItemId, ProviderTurn, RequestKey, SessionId, ThreadRef,
    port::{AgentEvent, DeltaStream, Item, ItemBody, OfferedCommand},
};

use super::{
    Machine, parse,
    session::{Session, Stage, Turn},
};
use crate::{
    acp::{items, wire},
    port::Clock,
};

/// Commands of a session that are kept, the bytes of a name, and the characters of a text about one.
const COMMANDS: usize = 256;
const COMMAND_NAME: usize = 100;
const COMMAND_TEXT: usize = 300;

impl Machine {
    pub(super) fn heard(&mut self, _now: Clock, method: &str, params: &RawValue) {
        let understood = match method {
            "session/update" => parse(params).map(|read: wire::Updated| self.updated(read)),
            "_auth/status_update" => parse(params).map(|read: wire::AuthStatusUpdate| self.auth_status(read.auth_status)),
            "$/cancel_request" => serde_json::from_str(params.get()).ok().map(|read: wire::Withdrawn<'_>| {
                self.withdraw(&RequestKey::new(read.request_id.get()));
            }),
            other => return self.unknown(other),
        };
        if understood.is_none() {
            self.odd(&format!("a report ({method}) whose content could not be read"));
        }
    }

    fn updated(&mut self, read: wire::Updated) {
        // A session that is not open here is nobody's business.
        let Some(session) = self.threads.get(&ThreadRef(read.session_id)).copied() else { return };
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let update = read.update;
        let told_again = matches!(entry.stage, Stage::Opening | Stage::Releasing { .. }) && entry.turn.is_none();
        match update.session_update.as_str() {
            "config_option_update" => {
                entry.catalogue.options(&update.config_options.unwrap_or_default());
                if entry.stage == Stage::Open {
                    self.tell_models();
                }
            }
            "current_mode_update" => entry.catalogue.mode.current = update.current_mode_id,
            "session_info_update" => {
                if let Some(title) = update.title.filter(|title| !title.is_empty()) {
                    self.event(AgentEvent::TitleChanged { session, title });
                }
            }
            "usage_update" => {
                entry.usage.context_tokens = update.used.unwrap_or(entry.usage.context_tokens);
                entry.usage.context_window = update.size.filter(|size| *size > 0).or(entry.usage.context_window);
                let usage = entry.usage.clone();
                if entry.stage == Stage::Open {
                    self.event(AgentEvent::Usage { session, usage });
                }
            }
            "plan" if entry.ignoring.is_none() => {
                let steps = items::plan(update.entries);
                self.event(AgentEvent::Plan { session, steps });
            }
            "available_commands_update" => self.commands(session, update.available_commands),
            // What was told to stop, and is over.
            _ if entry.ignoring.is_some() => {}
            // The history, told again with a loading: where it is not wanted, it is known here.
            _ if told_again => {
                let nameless_is_own = self.entry.quirks.nameless_text_is_own;
                if let Some(past) = &mut entry.past {
                    past.take_in(session, update, nameless_is_own);
                }
            }
            "agent_message_chunk" => self.chunk(session, update, false),
            "agent_thought_chunk" => self.chunk(session, update, true),
            "tool_call" | "tool_call_update" => self.tool_call(session, update),
            // The person's own words are known here.
            "user_message_chunk" => {}
            other => self.unknown(&format!("update {other}")),
        }
    }

    fn commands(&mut self, session: SessionId, told: Vec<wire::Command>) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let cut = |text: &str, most: usize| text.chars().take(most).collect::<String>();
        let plain = |command: &wire::Command| {
            let name = command.name.as_str();
            !name.is_empty() && name.len() <= COMMAND_NAME && !name.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        let offered = told.iter().filter(|command| plain(command)).take(COMMANDS).map(|command| OfferedCommand {
            name: command.name.clone(),
            description: cut(&command.description, COMMAND_TEXT),
            hint: cut(&command.input.hint, COMMAND_TEXT),
        });
        let commands: Vec<OfferedCommand> = offered.collect();
        entry.commands.clone_from(&commands);
        // One that is not open yet tells them once it is.
        if entry.stage == Stage::Open {
            self.event(AgentEvent::Commands { session, commands });
        }
    }

    // ---- messages and thoughts

    fn chunk(&mut self, session: SessionId, update: wire::Update, thought: bool) {
        let nameless_is_own = self.entry.quirks.nameless_text_is_own;
        let Some(turn) = self.sessions.get_mut(&session).and_then(turn_of) else { return };
        let events = chunked(turn, session, update, thought, nameless_is_own);
        self.out.extend(events.into_iter().map(crate::port::Out::Event));
    }

    // ---- tool calls

    fn tool_call(&mut self, session: SessionId, update: wire::Update) {
        let Some((turn, _)) = self.sessions.get_mut(&session).and_then(turn_of) else { return };
        let Some(events) = called(turn, session, update) else {
            return self.odd("a tool call without an id");
        };
        self.out.extend(events.into_iter().map(crate::port::Out::Event));
    }

    /// Take in what a question says of the call that it is about; the call as it stands then.
    pub(super) fn call_asked_about(&mut self, session: SessionId, update: wire::Update) -> Option<(items::ToolCall, ItemId)> {
        let (turn, _) = self.sessions.get_mut(&session).and_then(turn_of)?;
        let id = turn.id(update.tool_call_id.as_deref().unwrap_or_default());
        let events = called(turn, session, update);
        let call = turn.calls.get(&id).cloned().unwrap_or_default();
        self.out.extend(events.into_iter().flatten().map(crate::port::Out::Event));
        Some((call, id))
    }
}

/// The running turn, else the one before; and whether it runs.
fn turn_of(entry: &mut Session) -> Option<(&mut Turn, bool)> {
    match &mut entry.turn {
        Some(turn) => Some((turn, true)),
        None => entry.last.as_mut().map(|turn| (turn, false)),
    }
}

/// What a piece of a message, or of a thought, comes to in a turn that runs or not.
pub(super) fn chunked(
    (turn, runs): (&mut Turn, bool),
    session: SessionId,
    update: wire::Update,
    thought: bool,
    nameless_is_own: bool,
) -> Vec<AgentEvent> {
    let text = wire::text_of(&update.content);
    if text.is_empty() {
        return Vec::new();
    }
    let own = !thought
        && (update.message_id.is_none() && nameless_is_own
            || update.meta.pointer("/claudeCode/kind").and_then(Value::as_str) == Some("informational"));
    let body = match (thought, own) {
        (true, _) => ItemBody::Reasoning { summary: String::new(), text: String::new() },
        (false, true) => ItemBody::Notice { text: String::new() },
        (false, false) => ItemBody::AgentMessage { text: String::new(), final_answer: false },
    };
    let goes_on = turn.growing.as_ref().is_some_and(|(id, item)| {
        *id == update.message_id && std::mem::discriminant(&item.body) == std::mem::discriminant(&body) && !own
    });
    turn.own_text = own.then(|| text.clone());
    let provider_turn = turn.name.clone();
    let mut events = Vec::new();
    if !goes_on {
        events.extend(turn.finish().map(|item| completed(session, &provider_turn, item)));
        let id = match &update.message_id {
            Some(theirs) => turn.id(&format!("{theirs}{}", if thought { "/thought" } else { "" })),
            None => turn.make_id(),
        };
        let item = Item { id, body };
        turn.growing = Some((update.message_id, item.clone()));
        events.push(AgentEvent::ItemStarted { session, provider_turn: provider_turn.clone(), item });
    }
    turn.grow(&text);
    let stream = if thought { DeltaStream::Reasoning } else { DeltaStream::AgentMessage };
    if let Some((_, item)) = turn.growing.as_ref().filter(|_| !own) {
        events.push(AgentEvent::Delta { session, item: item.id.clone(), stream, text });
    }
    // Text of the adapter's own is whole; and after its turn nothing says when a message is.
    if own || !runs {
        let whole = if own { turn.finish() } else { turn.growing.as_ref().map(|(_, item)| item.clone()) };
        events.extend(whole.map(|item| completed(session, &provider_turn, item)));
    }
    events
}

/// What an update of a call comes to; `None` where it names none.
pub(super) fn called(turn: &mut Turn, session: SessionId, update: wire::Update) -> Option<Vec<AgentEvent>> {
    let theirs = update.tool_call_id.clone().filter(|id| !id.is_empty())?;
    let id = turn.id(&theirs);
    let mut events = Vec::new();
    // What was said before a call was no answer.
    events.extend(turn.finish().map(|item| completed(session, &turn.name, item)));
    turn.answer = None;
    turn.own_text = None;
    events.extend(changed(turn, session, &id, |call| call.update(update)));
    Some(events)
}

/// What a change of a call comes to.
pub(super) fn changed(
    turn: &mut Turn,
    session: SessionId,
    id: &ItemId,
    change: impl FnOnce(&mut items::ToolCall),
) -> Vec<AgentEvent> {
    let provider_turn = turn.name.clone();
    let mut events = Vec::new();
    let before = turn.calls.get(id).map(|call| (call.item(id), call.is_over()));
    let call = turn.calls.entry(id.clone()).or_default();
    change(call);
    let (item, over) = (call.item(id), call.is_over());
    let known = before.as_ref().is_some_and(|(before, was_over)| *before == item && *was_over == over);
    if over && !known {
        events.push(completed(session, &provider_turn, item));
    } else if let Some(more) = before.as_ref().filter(|_| !known).and_then(|(before, _)| more_output(before, &item)) {
        events.push(AgentEvent::Delta { session, item: id.clone(), stream: DeltaStream::CommandOutput, text: more });
    } else if !known {
        events.push(AgentEvent::ItemStarted { session, provider_turn, item });
    }
    events
}

/// What a running command said since, if that is all that is new.
fn more_output(before: &Item, now: &Item) -> Option<String> {
    let (ItemBody::Command { output: old, .. }, ItemBody::Command { output: new, .. }) = (&before.body, &now.body) else {
        return None;
    };
    let more = new.strip_prefix(old.as_str()).filter(|more| !more.is_empty())?.to_owned();
    let mut same = before.clone();
    if let (ItemBody::Command { output, .. }, ItemBody::Command { output: new, .. }) = (&mut same.body, &now.body) {
        output.clone_from(new);
    }
    (same == *now).then_some(more)
}

fn completed(session: SessionId, turn: &ProviderTurn, item: Item) -> AgentEvent {
    AgentEvent::ItemCompleted { session, provider_turn: turn.clone(), item }
}

/// "2026-11-30T00:44:37.000Z" as Unix seconds; only times in UTC are read.
pub(super) fn seconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    if !text.ends_with('Z') {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970, with the year begun in March, so that a leap day is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}
