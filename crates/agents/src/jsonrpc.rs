//! Requests that wait for an answer, for any agent that speaks JSON-RPC, and the parts of one message.
//!
//! Knows neither lines nor methods. Bounded: what does not fit in flight waits its turn, and every request ends,
//! by an answer or by its deadline.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::port::{Clock, Frame, SecretSlot};

/// Requests that may be unanswered at one time: above twice of it, Codex was seen to drop requests without a word.
pub const IN_FLIGHT: usize = 64;
/// Requests whose deadline passed and whose answer would still be understood.
const LATE: usize = 256;

/// Whether a message says which protocol it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// No `jsonrpc` member.
    Bare,
    /// `"jsonrpc":"2.0"` in each message.
    Version2,
}

/// One message, its parts still as text.
#[derive(Debug, Deserialize)]
pub struct Incoming<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

impl<'a> Incoming<'a> {
    /// The message in a line, nothing in a blank one.
    ///
    /// # Errors
    /// What it is instead, for a person: "a line that is not UTF-8".
    pub fn read(line: &'a [u8]) -> Result<Option<Self>, &'static str> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let text = std::str::from_utf8(line).map_err(|_| "a line that is not UTF-8")?;
        serde_json::from_str(text).map(Some).map_err(|_| "a line that is not a message")
    }
}

/// The value in an answer or a notification; `None` where it is not even an object.
pub(crate) fn parse<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// The other side's refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
}

/// What an answer was to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<K> {
    pub asked: K,
    /// Its deadline had passed before.
    pub late: bool,
}

/// Parameters of a request.
#[derive(Debug)]
pub enum Params {
    Json(String),
    /// `head`, the secret as a JSON string, `tail`.
    Secret {
        head: String,
        slot: SecretSlot,
        tail: String,
    },
}

impl Params {
    /// The JSON text of a value that has one.
    pub fn of(value: &impl Serialize) -> Self {
        Self::Json(serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()))
    }
}

/// The table. `K` says what was asked, for the one who reads the answer.
#[derive(Debug)]
pub struct Requests<K> {
    dialect: Dialect,
    cap: usize,
    next: u64,
    queue: VecDeque<Queued<K>>,
    in_flight: BTreeMap<u64, Pending<K>>,
    late: BTreeMap<u64, K>,
    strays: u64,
}

#[derive(Debug)]
struct Queued<K> {
    method: &'static str,
    params: Params,
    patience: u64,
    asked: K,
}

#[derive(Debug)]
struct Pending<K> {
    deadline: Clock,
    asked: K,
}

impl<K: Clone> Requests<K> {
    /// An empty table that lets `cap` requests be unanswered.
    #[must_use]
    pub fn new(dialect: Dialect, cap: usize) -> Self {
        Self {
            dialect,
            cap: cap.max(1),
            next: 1,
            queue: VecDeque::new(),
            in_flight: BTreeMap::new(),
            late: BTreeMap::new(),
            strays: 0,
        }
    }

    /// Line up a request. Its `patience` in milliseconds counts from when it is sent.
    pub fn ask(&mut self, method: &'static str, params: Params, patience: u64, asked: K) {
        self.queue.push_back(Queued { method, params, patience, asked });
    }

    /// The next request that may be sent now.
    pub fn send(&mut self, now: Clock) -> Option<Frame> {
        if self.in_flight.len() >= self.cap {
            return None;
        }
        let Queued { method, params, patience, asked } = self.queue.pop_front()?;
        let id = self.next;
        self.next += 1;
        self.in_flight.insert(id, Pending { deadline: now.saturating_add(patience), asked });
        let head = format!("{{{}\"id\":{id},\"method\":\"{method}\",\"params\":", self.version());
        Some(match params {
            Params::Json(text) => Frame::Text(format!("{head}{text}}}")),
            Params::Secret { head: inner, slot, tail } => Frame::WithSecret { head: head + &inner, slot, tail: tail + "}" },
        })
    }

    /// What this id was asked for; an unknown one is counted and otherwise ignored.
    pub fn answer(&mut self, id: &RawValue) -> Option<Answered<K>> {
        let found = id.get().parse::<u64>().ok().and_then(|id| {
            if let Some(pending) = self.in_flight.remove(&id) {
                return Some(Answered { asked: pending.asked, late: false });
            }
            self.late.remove(&id).map(|asked| Answered { asked, late: true })
        });
        if found.is_none() {
            self.strays = self.strays.saturating_add(1);
        }
        found
    }

    /// Requests whose deadline has passed. Their places are free; an answer that still comes is told as late.
    pub fn expire(&mut self, now: Clock) -> Vec<K> {
        let due: Vec<u64> = self.in_flight.iter().filter(|(_, pending)| pending.deadline <= now).map(|(id, _)| *id).collect();
        due.into_iter()
            .filter_map(|id| {
                let asked = self.in_flight.remove(&id)?.asked;
                self.late.insert(id, asked.clone());
                if self.late.len() > LATE {
                    self.late.pop_first();
                }
                Some(asked)
            })
            .collect()
    }

    /// The first deadline of what is in flight.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Clock> {
        self.in_flight.values().map(|pending| pending.deadline).min()
    }

    /// Everything unanswered or unsent; nothing is left.
    pub fn drain(&mut self) -> Vec<K> {
        let sent = std::mem::take(&mut self.in_flight).into_values().map(|pending| pending.asked);
        let unsent = std::mem::take(&mut self.queue).into_iter().map(|queued| queued.asked);
        sent.chain(unsent).collect()
    }

    /// Answers that nobody had asked for.
    #[must_use]
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// How many are unanswered now.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// A message that wants no answer.
    #[must_use]
    pub fn notify(&self, method: &str) -> Frame {
        Frame::Text(format!("{{{}\"method\":\"{method}\"}}", self.version()))
    }

    /// The answer to a request of the other side; `id` is the text of its id as it came.
    #[must_use]
    pub fn reply(&self, id: &str, result: &impl Serialize) -> Frame {
        let result = serde_json::to_string(result).unwrap_or_else(|_| "null".to_owned());
        Frame::Text(format!("{{{}\"id\":{id},\"result\":{result}}}", self.version()))
    }

    /// A refusal of a request of the other side.
    #[must_use]
    pub fn refuse(&self, id: &str, code: i64, message: &str) -> Frame {
        let message = serde_json::Value::from(message);
        Frame::Text(format!("{{{}\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}}}}}", self.version()))
    }

    fn version(&self) -> &'static str {
        match self.dialect {
            Dialect::Bare => "",
            Dialect::Version2 => "\"jsonrpc\":\"2.0\",",
        }
    }
}

#[cfg(test)]
mod tests;
