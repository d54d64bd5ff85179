//! Questions to Codex about what it has: messages in a history, histories, threads, models, meters.

use serde_json::{json, value::RawValue};
use turnkeep_model::{
    ProviderTurn,
    port::{AgentEvent, Item, ItemBody, Model, ProbeAnswer, ThreadPage, TurnOutcome},
};

use super::{Asked, History, Machine, Probe, account::Account, misshapen, opening::put, parse, patience};
use crate::{
    codex::{items, wire, words},
    jsonrpc::RpcError,
};

/// Turns that a probe looks at in full, where a message added to a running turn can be seen too.
const FULL: u32 = 5;
/// Turns on each later page of a probe, and how many pages it reads.
const PAGE: u32 = 50;
const PAGES: u32 = 40;
/// Entries on a page of a history, and how many entries are read in all: the newest.
const ENTRIES: usize = 200;
const TURNS: usize = 20;
const MOST_ENTRIES: usize = 5_000;
const THREADS: u32 = 50;
/// The code of a refusal because the thread is kept in an older way.
const NOT_SUPPORTED: i64 = -32601;

impl Account {
    /// Whether a thread of this model provider is reached with OpenAI's account.
    pub(super) fn reaches(&self, model_provider: &str) -> bool {
        model_provider == "openai" || (self.by_account && self.provider.as_deref() == Some(model_provider))
    }
}

impl Machine {
    // ---- did it arrive?

    pub(super) fn probe(&mut self, probe: Probe, cursor: Option<String>) {
        let first = probe.pages == 0;
        let mut params = json!({
            "threadId": probe.thread.as_str(),
            "limit": if first { FULL } else { PAGE },
            "itemsView": if first { "full" } else { "summary" },
        });
        put(&mut params, "cursor", cursor);
        self.ask("thread/turns/list", &params, patience::LIST, Asked::Probe(probe));
    }

    pub(super) fn probed(&mut self, mut probe: Probe, outcome: Result<&RawValue, RpcError>) {
        let page = outcome.ok().and_then(parse::<wire::TurnPage>);
        let Some(page) = page else { return self.probe_ended(&probe, ProbeAnswer::CannotTell) };
        let holds = |turn: &&wire::Turn| turn.items.iter().any(|item| item.client_id.as_deref() == Some(probe.message.as_str()));
        if let Some(turn) = page.data.iter().find(holds) {
            let found = ProbeAnswer::Found(self.past_outcome(turn));
            return self.probe_ended(&probe, found);
        }
        match page.next_cursor {
            None => self.probe_ended(&probe, ProbeAnswer::NotFound),
            Some(_) if probe.pages >= PAGES => self.probe_ended(&probe, ProbeAnswer::CannotTell),
            cursor @ Some(_) => {
                probe.pages += 1;
                self.probe(probe, cursor);
            }
        }
    }

    /// How a turn of the past ended. One that never did has lost its process.
    fn past_outcome(&self, turn: &wire::Turn) -> TurnOutcome {
        match turn.status.as_str() {
            "completed" => TurnOutcome::Completed,
            "interrupted" => TurnOutcome::Interrupted,
            "failed" => {
                let standing = words::Standing { by_account: false, signed_in: self.account.signed_in != Some(false) };
                TurnOutcome::Failed(words::of_turn(&turn.error.clone().unwrap_or_default(), standing))
            }
            _ => TurnOutcome::Lost,
        }
    }

    pub(super) fn probe_ended(&mut self, probe: &Probe, found: ProbeAnswer) {
        self.event(AgentEvent::Probed { session: probe.session, turn: probe.turn, found });
    }

    // ---- history

    pub(super) fn ask_history(&mut self, history: History, cursor: Option<String>) {
        let mut params = json!({"threadId": history.thread.as_str(), "sortDirection": "desc"});
        put(&mut params, "cursor", cursor);
        let method = if history.by_turns {
            put(&mut params, "limit", Some(TURNS));
            put(&mut params, "itemsView", Some("full"));
            "thread/turns/list"
        } else {
            put(&mut params, "limit", Some(ENTRIES));
            "thread/items/list"
        };
        self.ask(method, &params, patience::LIST, Asked::History(history));
    }

    pub(super) fn history(&mut self, mut history: History, outcome: Result<&RawValue, RpcError>) {
        let page = match outcome {
            Ok(raw) => page(raw, history.by_turns).ok_or_else(|| misshapen("read the history")),
            Err(error) if error.code == NOT_SUPPORTED && !history.by_turns => {
                history.by_turns = true;
                return self.ask_history(history, None);
            }
            Err(error) => Err(words::of_refusal(&error, "read the history")),
        };
        let page = match page {
            Ok(page) => page,
            Err(failure) => {
                return self.event(AgentEvent::History { session: history.session, result: Err(failure) });
            }
        };
        history.items.extend(page.items);
        if let (cursor @ Some(_), true) = (page.next_cursor, history.items.len() < MOST_ENTRIES) {
            return self.ask_history(history, cursor);
        }
        let mut items = history.items;
        items.reverse();
        mark_answers(&mut items);
        self.event(AgentEvent::History { session: history.session, result: Ok(items) });
    }

    // ---- threads

    pub(super) fn ask_threads(&mut self, ask: u64, cursor: Option<String>) {
        let mut params = json!({
            "limit": THREADS,
            "sortKey": "updated_at",
            "modelProviders": [],
            "sourceKinds": ["cli", "vscode", "exec", "appServer"],
        });
        put(&mut params, "cursor", cursor);
        self.ask("thread/list", &params, patience::LIST, Asked::Threads(ask));
    }

    pub(super) fn listed(&mut self, ask: u64, outcome: Result<&RawValue, RpcError>) {
        let result = match outcome.map(parse::<wire::ThreadPage>) {
            Ok(Some(page)) => {
                let threads = page.data.into_iter().filter_map(items::thread).collect();
                Ok(ThreadPage { threads, next_cursor: page.next_cursor })
            }
            Ok(None) => Err(misshapen("list the threads")),
            Err(error) => Err(words::of_refusal(&error, "list the threads")),
        };
        self.event(AgentEvent::Threads { ask, result });
    }

    // ---- models and meters

    pub(super) fn ask_models(&mut self, so_far: Vec<Model>, cursor: Option<String>) {
        let mut params = json!({"limit": 100});
        put(&mut params, "cursor", cursor);
        self.ask("model/list", &params, patience::LIST, Asked::Models(so_far));
    }

    pub(super) fn models(&mut self, mut so_far: Vec<Model>, outcome: Result<&RawValue, RpcError>) {
        match outcome.map(parse::<wire::ModelPage>) {
            Ok(Some(page)) => {
                so_far.extend(page.data.into_iter().filter_map(items::model));
                match page.next_cursor {
                    cursor @ Some(_) if so_far.len() < 1_000 => self.ask_models(so_far, cursor),
                    _ => self.event(AgentEvent::Models { models: so_far }),
                }
            }
            Ok(None) => self.fault(None, misshapen("list the models")),
            Err(error) => self.fault(None, words::of_refusal(&error, "list the models")),
        }
    }

    pub(super) fn ask_rate_limits(&mut self) {
        self.ask("account/rateLimits/read", &serde_json::Value::Null, patience::ACCOUNT, Asked::RateLimits);
    }

    pub(super) fn rate_limits(&mut self, outcome: Result<&RawValue, RpcError>) {
        match outcome.map(parse::<wire::RateLimitsRead>) {
            Ok(Some(read)) => {
                let limits = items::limits(&read.rate_limits);
                self.event(AgentEvent::RateLimits { limits, plan: read.rate_limits.plan_type });
            }
            Ok(None) => self.fault(None, misshapen("read the usage meters")),
            // An API key has no meters; that is an answer.
            Err(error) if error.message.contains("authentication required") => {
                self.event(AgentEvent::RateLimits { limits: Vec::new(), plan: None });
            }
            Err(error) => self.fault(None, words::of_refusal(&error, "read the usage meters")),
        }
    }

    /// News of the meters; most of them name none.
    pub(super) fn rate_limits_changed(&mut self, read: &wire::RateLimitsRead) {
        let limits = items::limits(&read.rate_limits);
        let main = read.rate_limits.limit_id.as_deref().is_none_or(|id| id == "codex");
        if main && !limits.is_empty() {
            self.event(AgentEvent::RateLimits { limits, plan: read.rate_limits.plan_type.clone() });
        }
    }
}

/// Entries of a history, newest first, and where the next ones begin.
struct Page {
    items: Vec<(ProviderTurn, Item)>,
    next_cursor: Option<String>,
}

fn page(raw: &RawValue, by_turns: bool) -> Option<Page> {
    if !by_turns {
        let page: wire::ItemPage = parse(raw)?;
        let items = page.data.into_iter().map(|entry| (ProviderTurn(entry.turn_id), items::item(entry.item)));
        return Some(Page { items: items.collect(), next_cursor: page.next_cursor });
    }
    let page: wire::TurnPage = parse(raw)?;
    let items = page.data.into_iter().flat_map(|turn| {
        let name = ProviderTurn(turn.id);
        turn.items.into_iter().rev().map(move |item| (name.clone(), items::item(item)))
    });
    Some(Page { items: items.collect(), next_cursor: page.next_cursor })
}

/// A message that ends its turn is the turn's answer, where the history does not say which one is.
fn mark_answers(items: &mut [(ProviderTurn, Item)]) {
    for at in 0..items.len() {
        let ends = items.get(at + 1).map(|(turn, _)| turn) != items.get(at).map(|(turn, _)| turn);
        if let (true, Some((_, Item { body: ItemBody::AgentMessage { final_answer, .. }, .. }))) = (ends, items.get_mut(at)) {
            *final_answer = true;
        }
    }
}
