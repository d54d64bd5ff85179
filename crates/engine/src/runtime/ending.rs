//! The end of a child: asked to go, read to its last line, waited for, its tree swept, and what is known written down.
//!
//! Each step has a deadline, so that an end always comes; that the tree is gone is never assumed.

use std::{io, process::ExitStatus, time::Duration};

use tokio::sync::mpsc;
use turnkeep_model::port::{Failure, TransportRecord};

use super::{
    actor::{Actor, End, Order, Report, Why, start_failed},
    reap::{self, Ask, Which},
    stdio::QUIET,
    talk::next_bearable,
};
use crate::clock;

/// How long a process may run on after it has closed its output.
const AFTER_OUTPUT: Duration = Duration::from_secs(2);

/// From SIGTERM to SIGKILL where somebody is in a hurry.
const HURRY: Duration = Duration::from_millis(500);

/// How long the last output is waited for at most, once the process has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(3);

/// What is said where a guard is gone before its runtime.
const GUARD_ENDED: &str = "the program that holds its processes together was ended";

type Orders = mpsc::UnboundedReceiver<Order>;

impl<T: FnMut(Report) + Send> Actor<T> {
    pub(super) async fn end(mut self, why: Why, orders: &mut Orders) -> End {
        let was_ready = self.talk.is_ready();
        let mut known: Vec<_> = self.process.identity.iter().cloned().collect();
        self.talk.errands.shut();
        let mut how = String::new();
        let mut running_at_close = false;
        let mut refused = None;
        let asked = matches!(why, Why::Asked { .. });
        let mut hurry = matches!(why, Why::Asked { force: true });
        let status = match why {
            Why::Exited(status) => status,
            Why::Asked { .. } => {
                known = self.process.family(&self.marker).await;
                self.stop(&mut hurry, orders).await
            }
            Why::OutputClosed => match tokio::time::timeout(AFTER_OUTPUT, self.process.wait()).await {
                Ok(status) => status,
                Err(_) => {
                    running_at_close = true;
                    known = self.process.family(&self.marker).await;
                    self.stop(&mut true, orders).await
                }
            },
            Why::Refused(failure) => {
                running_at_close = true;
                how.clone_from(&failure.message);
                refused = Some(failure);
                known = self.process.family(&self.marker).await;
                self.stop(&mut true, orders).await
            }
        };
        let held_open = self.read_to_the_end().await;
        if self.process.lost_its_guard() {
            how = GUARD_ENDED.to_owned();
        }
        if how.is_empty() {
            how = match (&self.talk.channels.output.error, held_open) {
                (Some(error), _) => error.clone(),
                (None, true) => "held open by another process".to_owned(),
                (None, false) => "eof".to_owned(),
            };
        }
        let record = self.record(status, running_at_close, how);
        if !asked {
            self.talk.protocol.closed(clock::boot(), record.clone());
            let _ = self.talk.pump();
        }
        self.process.end(Which::Exactly(self.marker.clone()), known, if hurry { HURRY } else { reap::GRACE }).await;
        self.talk.errands.gone().await;
        // What held the output open is gone now; nothing that it wrote is of the agent.
        if asked {
            return End::Gone { closed: None };
        }
        if was_ready {
            return End::Gone { closed: Some(record) };
        }
        End::NotStarted(refused.map_or_else(
            || self.never_ready(&record),
            |failure| Failure { detail: failure.detail.clone().or_else(|| detail(&record)), ..failure },
        ))
    }

    /// Close its input and wait; then ask politely; then firmly. Lines are served all the while. `hurry` is set by an order
    /// that comes meanwhile, and shortens what is left.
    async fn stop(&mut self, hurry: &mut bool, orders: &mut Orders) -> io::Result<ExitStatus> {
        self.talk.channels.frames = None;
        let eof_grace = Duration::from_millis(self.launch.eof_grace);
        if !*hurry && let Some(status) = self.wait(eof_grace, Some((&mut *orders, &mut *hurry))).await {
            return status;
        }
        self.process.ask(Ask::Politely);
        let waited = if *hurry { self.wait(HURRY, None).await } else { self.wait(reap::GRACE, Some((orders, hurry))).await };
        if let Some(status) = waited {
            return status;
        }
        self.process.ask(Ask::Firmly);
        loop {
            if let Some(status) = self.wait(reap::GRACE * 5, None).await {
                return status;
            }
            tracing::warn!(agent = self.talk.name, process = ?self.process.identity, "a killed process does not end; waiting on");
        }
    }

    /// Wait for the process; `None` when the time is over, or somebody is in more of a hurry.
    async fn wait(&mut self, at_most: Duration, mut orders: Option<(&mut Orders, &mut bool)>) -> Option<io::Result<ExitStatus>> {
        let until = tokio::time::Instant::now() + at_most;
        loop {
            let _ = self.talk.pump();
            let order = async {
                match &mut orders {
                    Some((orders, _)) => orders.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                status = self.process.wait() => return Some(status),
                line = next_bearable(&self.talk.unread, &mut self.talk.channels.output) => self.talk.receive(line),
                line = self.errors.next() => self.note(line),
                order = order => match order {
                    Some(Order::Stop { force: true }) => {
                        if let Some((_, hurry)) = orders {
                            *hurry = true;
                        }
                        return None;
                    }
                    Some(Order::Stop { force: false }) => {}
                    Some(Order::Command(command)) => {
                        tracing::debug!(?command, agent = self.talk.name, "not carried out: the process is being stopped");
                    }
                    None => orders = None,
                },
                () = tokio::time::sleep_until(until) => return None,
            }
        }
    }

    /// Everything that the process wrote before it ended, the last line included; true if somebody else still holds its
    /// output open.
    async fn read_to_the_end(&mut self) -> bool {
        let until = tokio::time::Instant::now() + LAST_OUTPUT;
        let mut held_open = false;
        while self.talk.channels.output.open || self.errors.open {
            let quiet = (tokio::time::Instant::now() + QUIET).min(until);
            tokio::select! {
                line = self.talk.channels.output.next() => {
                    self.talk.receive(line);
                    let _ = self.talk.pump();
                }
                line = self.errors.next() => self.note(line),
                () = tokio::time::sleep_until(quiet) => {
                    held_open |= self.talk.channels.output.open;
                    let told = [self.talk.channels.output.give_up.take(), self.errors.give_up.take()];
                    if told.into_iter().flatten().count() == 0 {
                        // The readers were told and say no more: they wait for nothing but us.
                        self.talk.channels.output.open = false;
                        self.errors.open = false;
                    }
                }
            }
        }
        held_open
    }

    fn record(&self, status: io::Result<ExitStatus>, running: bool, how: String) -> TransportRecord {
        let (exit_code, signal) = match &status {
            Ok(status) => (status.code(), signal_of(*status)),
            Err(_) => (None, None),
        };
        let status = match (running, signal) {
            (true, _) => "running",
            (false, Some(_)) => "signalled",
            (false, None) => "exited",
        };
        TransportRecord {
            pid: self.process.identity.as_ref().map(|identity| identity.pid),
            status: status.to_owned(),
            exit_code: if running { None } else { exit_code },
            signal: if running { None } else { signal },
            stream: "stdout".to_owned(),
            how,
            trailing_flushed: self.talk.trailing.is_some(),
            trailing_len: self.talk.trailing.unwrap_or(0),
            stderr: self.last_lines.to_vec(),
            ..TransportRecord::default()
        }
    }

    fn never_ready(&self, record: &TransportRecord) -> Failure {
        let how = match (record.exit_code, record.signal) {
            (None, None) if record.how == GUARD_ENDED => GUARD_ENDED.to_owned(),
            (Some(code), _) => format!("it ended with exit code {code}"),
            (None, Some(signal)) => format!("it was ended by signal {signal}"),
            (None, None) => "it closed its output".to_owned(),
        };
        start_failed(format!("{} was started, but {how} before it was ready.", self.talk.name), detail(record))
    }
}

fn detail(record: &TransportRecord) -> Option<String> {
    Some(record.stderr.join("\n")).filter(|text| !text.is_empty())
}

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
const fn signal_of(_status: ExitStatus) -> Option<i32> {
    None
}
