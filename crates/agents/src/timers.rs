//! Times by which a protocol machine wants to do something, beside the deadlines of its requests.
//!
//! Looks at no clock: every time comes from outside.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    jsonrpc::Requests,
    port::{Clock, Out},
};

/// What is to be done, and when; what is set first for a time is done first.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    waiting: BTreeMap<(Clock, u64), T>,
    next: u64,
    /// The time that was asked for last.
    wake: Option<Clock>,
}

impl<T> Timers<T> {
    pub(crate) fn new() -> Self {
        Self { waiting: BTreeMap::new(), next: 0, wake: None }
    }

    pub(crate) fn set(&mut self, at: Clock, what: T) {
        self.next += 1;
        self.waiting.insert((at, self.next), what);
    }

    /// The next thing whose time has come.
    pub(crate) fn due(&mut self, now: Clock) -> Option<T> {
        let first = self.waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }

    /// The time that was asked for has come.
    pub(crate) fn woken(&mut self) {
        self.wake = None;
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Send what may be sent, and say when to wake if that is another time than before.
    pub(crate) fn pump<K: Clone>(&mut self, now: Clock, requests: &mut Requests<K>, out: &mut VecDeque<Out>) {
        while let Some(frame) = requests.send(now) {
            out.push_back(Out::Send(frame));
        }
        let timer = self.waiting.keys().next().map(|(at, _)| *at);
        let next = requests.next_deadline().into_iter().chain(timer).min().filter(|at| *at != Clock::MAX);
        if next != self.wake {
            self.wake = next;
            out.extend(next.map(Out::WakeAt));
        }
    }
}
