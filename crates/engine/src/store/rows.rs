//! From changes to rows, without a database: what one commit has to write.
//!
//! Each change says which entities it touches; they are written as they are after the last change of the commit. What
//! leaves the state for good (an ended turn, its approvals) is caught at the change that ends it.

use std::collections::{BTreeMap, BTreeSet};

use turnkeep_model::{
    AccountId, ApprovalId, Change, CredentialId, ItemId, MessageId, ProviderId, RuntimeId, Seq, SessionId, SignInId, State,
    TurnId, apply,
    port::{TurnDiff, TurnOutcome},
    state::{Approval, ApprovalState, Delivery, QueuedMessage, Turn},
};

use super::words::{delivery, journalled, json, kind, words};

/// An entity that a change touched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Touched {
    Provider(ProviderId),
    Account(AccountId),
    Credential(CredentialId),
    SignIn(SignInId),
    Runtime(RuntimeId),
    Session(SessionId),
    Queue(SessionId),
    Turn(TurnId),
    Approval(ApprovalId),
    Notification(String),
    Keychain,
    Settings,
    Quit,
}

/// One thing to write, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Meta {
        key: &'static str,
        value: String,
    },
    Provider {
        id: ProviderId,
        body: String,
    },
    Account {
        id: AccountId,
        provider: ProviderId,
        body: String,
    },
    AccountGone {
        id: AccountId,
    },
    Credential {
        id: CredentialId,
        account: AccountId,
        body: String,
    },
    CredentialGone {
        id: CredentialId,
    },
    SignIn {
        id: SignInId,
        body: String,
    },
    SignInGone {
        id: SignInId,
    },
    Runtime {
        id: RuntimeId,
        body: String,
    },
    RuntimeGone {
        id: RuntimeId,
    },
    RuntimeEnded {
        id: RuntimeId,
        at: i64,
        body: String,
        failure: Option<String>,
    },
    Session {
        id: SessionId,
        provider: ProviderId,
        thread: Option<String>,
        archived: bool,
        active_at: i64,
        body: String,
    },
    /// All that waits in this session, in order; what waited before and is not here was taken out.
    Queue {
        session: SessionId,
        messages: Vec<QueuedMessage>,
    },
    Sent {
        session: SessionId,
        turn: TurnId,
        id: MessageId,
        text: String,
        at: i64,
        delivery: Delivery,
    },
    Steer {
        session: SessionId,
        turn: TurnId,
        position: usize,
        message: QueuedMessage,
    },
    Delivered {
        id: MessageId,
        delivery: Delivery,
    },
    Seen {
        id: MessageId,
    },
    Turn {
        id: TurnId,
        session: SessionId,
        message: Option<MessageId>,
        started_at: i64,
        ended: Option<Ended>,
        body: String,
    },
    Approval {
        id: ApprovalId,
        session: SessionId,
        turn: TurnId,
        asked_at: i64,
        open: bool,
        body: String,
    },
    Notification {
        key: String,
        at: i64,
        body: String,
    },
    NotificationGone {
        key: String,
    },
    Item {
        session: SessionId,
        turn: TurnId,
        id: ItemId,
        kind: &'static str,
        completed: bool,
        body: String,
        words: String,
    },
    Diff {
        session: SessionId,
        turn: TurnId,
        diff: TurnDiff,
    },
    /// The finished entries of another session.
    ItemsCopied {
        session: SessionId,
        from: SessionId,
    },
    /// Nothing of an ended turn stays open.
    TurnItemsAbandoned {
        turn: TurnId,
    },
}

/// How a turn's row ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) at: i64,
    /// `None`: the message went back to the queue.
    pub(super) outcome: Option<TurnOutcome>,
}

/// One transaction's worth of rows and journal.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(super) at: i64,
    /// On the disk, not only on its way, when the commit returns.
    pub(super) durable: bool,
    pub(super) rows: Vec<Row>,
    pub(super) journal: Vec<(Seq, String)>,
}

/// A batch that is still being put together, with the state that it leads to.
#[derive(Debug)]
pub struct Draft<'a> {
    state: &'a mut State,
    touched: BTreeSet<Touched>,
    ended_turns: BTreeMap<TurnId, (Turn, Ended)>,
    ended_approvals: BTreeMap<ApprovalId, Approval>,
    /// Messages whose queueing is in this batch too.
    queued_here: BTreeSet<MessageId>,
    batch: Batch,
}

impl<'a> Draft<'a> {
    /// Starts from what was committed last; `at` is Unix milliseconds.
    pub fn new(committed: &'a mut State, at: i64) -> Self {
        Self {
            state: committed,
            touched: BTreeSet::new(),
            ended_turns: BTreeMap::new(),
            ended_approvals: BTreeMap::new(),
            queued_here: BTreeSet::new(),
            batch: Batch { at, ..Batch::default() },
        }
    }

    /// Takes a change in.
    pub fn add(&mut self, change: &Change) {
        self.note_before(change);
        self.touch(change);
        apply(self.state, change);
        self.batch.journal.push((self.state.seq, journalled(change)));
    }

    /// Done: what to write.
    #[must_use]
    pub fn finish(mut self) -> Batch {
        if self.batch.journal.is_empty() {
            return self.batch;
        }
        for touched in std::mem::take(&mut self.touched) {
            self.row(touched);
        }
        for (id, (turn, ended)) in std::mem::take(&mut self.ended_turns) {
            self.turn_rows(id, &turn, Some(ended));
        }
        for (id, approval) in std::mem::take(&mut self.ended_approvals) {
            self.approval_row(id, &approval, false);
        }
        // A message that went from a turn back into a queue is in the queue: this is written after the turns.
        let (queues, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.batch.rows).into_iter().partition(|row| matches!(row, Row::Queue { .. }));
        self.batch.rows = others;
        self.batch.rows.extend(queues);
        // Only the ids of this batch: the rest was written before.
        for id in std::mem::take(&mut self.state.seen_messages) {
            self.batch.rows.push(Row::Seen { id });
        }
        self.batch.rows.push(Row::Meta { key: "seq", value: json(&self.state.seq) });
        self.batch.rows.push(Row::Meta { key: "next", value: json(&self.state.next) });
        self.batch
    }

    /// What must be looked at before the change is applied, because it is gone afterwards.
    fn note_before(&mut self, change: &Change) {
        let (turn, ended) = if let Change::TurnEnded { turn, outcome, at } = change {
            (*turn, Ended { at: *at, outcome: Some(outcome.clone()) })
        } else if let Change::TurnReturned { turn } = change {
            (*turn, Ended { at: self.batch.at, outcome: None })
        } else {
            return;
        };
        for (id, approval) in self.state.approvals.iter().filter(|(_, approval)| approval.turn == turn) {
            let mut approval = approval.clone();
            if approval.state == ApprovalState::Pending {
                approval.state = ApprovalState::Moot;
            }
            self.ended_approvals.insert(*id, approval);
        }
        if let Some(entry) = self.state.turns.get(&turn) {
            self.touched.insert(Touched::Session(entry.session));
            self.touched.insert(Touched::Queue(entry.session));
            self.ended_turns.insert(turn, (entry.clone(), ended));
        }
        self.batch.rows.push(Row::TurnItemsAbandoned { turn });
    }

    fn touch_all(&mut self, touched: impl IntoIterator<Item = Touched>) {
        self.touched.extend(touched);
    }

    #[expect(clippy::too_many_lines, reason = "one arm a change, so that a new change cannot be forgotten")]
    fn touch(&mut self, change: &Change) {
        match change {
            Change::ProviderKnown { provider, .. }
            | Change::ProviderIntroduced { provider, .. }
            | Change::ModelsListed { provider, .. } => {
                self.touch_all([Touched::Provider(provider.clone())]);
            }
            Change::EpochBegan { provider, .. } => {
                self.batch.durable = true;
                self.touch_all([Touched::Provider(provider.clone())]);
            }
            Change::AccountSignedIn { account, .. }
            | Change::AccountSignedOut { account }
            | Change::AccountRemoved { account } => {
                self.batch.durable = true;
                self.touch_all([Touched::Account(*account)]);
            }
            Change::AccountAdded { account, .. }
            | Change::AccountRenamed { account, .. }
            | Change::AccountIdentified { account, .. }
            | Change::AccountTroubled { account, .. }
            | Change::AccountTried { account }
            | Change::AccountRestartsCounted { account, .. }
            | Change::AccountVerified { account, .. }
            | Change::LimitsRead { account, .. } => self.touch_all([Touched::Account(*account)]),
            Change::CredentialAdded { credential, .. }
            | Change::RevocationOwed { credential }
            | Change::CredentialForgotten { credential } => {
                self.batch.durable = true;
                self.touch_all([Touched::Credential(*credential)]);
            }
            Change::RevocationDelayed { credential, .. } => self.touch_all([Touched::Credential(*credential)]),
            Change::SignInBegan { sign_in, .. }
            | Change::SignInStepped { sign_in, .. }
            | Change::SignInCancelling { sign_in }
            | Change::SignInFailed { sign_in, .. }
            | Change::SignInClosed { sign_in } => self.touch_all([Touched::SignIn(*sign_in)]),
            Change::KeychainSeen { .. } => self.touch_all([Touched::Keychain]),
            Change::RuntimeRequested { runtime, .. }
            | Change::RuntimeProcess { runtime, .. }
            | Change::RuntimeReady { runtime, .. }
            | Change::RuntimeFaulted { runtime, .. }
            | Change::RuntimePhased { runtime, .. } => self.touch_all([Touched::Runtime(*runtime)]),
            Change::RuntimeRemoved { runtime, at, failure } => {
                if let Some(entry) = self.state.runtimes.get(runtime) {
                    self.batch.rows.push(Row::RuntimeEnded {
                        id: *runtime,
                        at: *at,
                        body: json(entry),
                        failure: failure.as_ref().map(json),
                    });
                }
                self.touch_all([Touched::Runtime(*runtime)]);
            }
            Change::SessionAttached { session, .. }
            | Change::ThreadNamed { session, .. }
            | Change::SessionConfigured { session, .. }
            | Change::SessionRenamed { session, .. }
            | Change::SessionArchived { session, .. }
            | Change::SessionRead { session, .. }
            | Change::HistoryRead { session, .. }
            | Change::CommandsOffered { session, .. }
            | Change::SessionOpenFailed { session, .. }
            | Change::OpenDelayed { session, .. }
            | Change::RestartsCounted { session, .. }
            | Change::GoalSet { session, .. }
            | Change::GoalHeld { session, .. }
            | Change::PlanChanged { session, .. }
            | Change::UsageCounted { session, .. }
            | Change::PreviewChanged { session, .. } => self.touch_all([Touched::Session(*session)]),
            Change::SessionCreated { session, .. }
            | Change::MessageEdited { session, .. }
            | Change::MessageRemoved { session, .. }
            | Change::UnknownResolved { session, .. } => {
                self.touch_all([Touched::Session(*session), Touched::Queue(*session)]);
            }
            Change::MessageQueued { session, message } => {
                self.queued_here.insert(message.id.clone());
                self.touch_all([Touched::Session(*session), Touched::Queue(*session)]);
            }
            Change::UndecidedSettled { session, message, delivery } => {
                self.batch.rows.push(Row::Delivered { id: message.clone(), delivery: *delivery });
                self.touch_all([Touched::Session(*session), Touched::Queue(*session)]);
            }
            Change::TurnDispatched { turn, entry } => {
                // A mark that a power loss takes away, while the queued message stays, would send the message twice.
                self.batch.durable |= entry.message.as_ref().is_some_and(|id| !self.queued_here.contains(id));
                self.touch_all([Touched::Turn(*turn), Touched::Session(entry.session), Touched::Queue(entry.session)]);
            }
            Change::TurnStarted { turn, .. }
            | Change::TurnPhased { turn, .. }
            | Change::TurnRejoined { turn, .. }
            | Change::TurnRetrying { turn, .. }
            | Change::TurnInterrupting { turn }
            | Change::TurnQuieted { turn, .. }
            | Change::TurnHeard { turn }
            | Change::SteerSent { turn, .. }
            | Change::SteerDelivered { turn, .. } => self.touch_all([Touched::Turn(*turn)]),
            Change::SteerReturned { turn, .. } => {
                self.touch_all([Touched::Turn(*turn)]);
                let session = self.state.turns.get(turn).map(|entry| entry.session);
                self.touch_all(session.into_iter().flat_map(|id| [Touched::Session(id), Touched::Queue(id)]));
            }
            // What they touch was noted before.
            Change::TurnReturned { .. } | Change::TurnEnded { .. } => self.batch.durable = true,
            Change::ItemRecorded { session, turn, item, completed } => {
                self.batch.rows.push(Row::Item {
                    session: *session,
                    turn: *turn,
                    id: item.id.clone(),
                    kind: kind(&item.body),
                    completed: *completed,
                    body: json(&item.body),
                    words: if *completed { words(&item.body) } else { String::new() },
                });
            }
            Change::HistoryCopied { session, from } => self.batch.rows.push(Row::ItemsCopied { session: *session, from: *from }),
            Change::TurnDiffed { session, turn, diff } => {
                self.batch.rows.push(Row::Diff { session: *session, turn: *turn, diff: diff.clone() });
            }
            Change::ApprovalRequested { approval, .. } => self.touch_all([Touched::Approval(*approval)]),
            Change::ApprovalAnswered { approval, .. } | Change::ApprovalMoot { approval } => {
                self.batch.durable = true;
                self.touch_all([Touched::Approval(*approval)]);
            }
            Change::NotificationRaised { key, .. }
            | Change::NotificationShown { key }
            | Change::NotificationDismissed { key } => self.touch_all([Touched::Notification(key.clone())]),
            Change::SettingsChanged { .. } => self.touch_all([Touched::Settings]),
            Change::QuitBegan { .. } | Change::QuitCancelled | Change::Recovered => self.touch_all([Touched::Quit]),
        }
    }

    fn row(&mut self, touched: Touched) {
        let state = &*self.state;
        let row = match touched {
            Touched::Provider(id) => state.providers.get(&id).map(|entry| Row::Provider { body: json(entry), id }),
            Touched::Account(id) => Some(match state.accounts.get(&id) {
                Some(entry) => Row::Account { id, provider: entry.provider.clone(), body: json(entry) },
                None => Row::AccountGone { id },
            }),
            Touched::Credential(id) => Some(match state.credentials.get(&id) {
                Some(entry) => Row::Credential { id, account: entry.account, body: json(entry) },
                None => Row::CredentialGone { id },
            }),
            Touched::SignIn(id) => Some(match state.sign_ins.get(&id) {
                Some(entry) => Row::SignIn { id, body: json(entry) },
                None => Row::SignInGone { id },
            }),
            Touched::Runtime(id) => Some(match state.runtimes.get(&id) {
                Some(entry) => Row::Runtime { id, body: json(entry) },
                None => Row::RuntimeGone { id },
            }),
            Touched::Session(id) => state.sessions.get(&id).map(|entry| {
                let mut bare = entry.clone();
                bare.queue = Vec::new();
                Row::Session {
                    id,
                    provider: bare.provider.clone(),
                    thread: bare.thread.as_ref().map(|thread| thread.0.clone()),
                    archived: bare.archived,
                    active_at: bare.active_at,
                    body: json(&bare),
                }
            }),
            Touched::Queue(session) => {
                state.sessions.get(&session).map(|entry| Row::Queue { session, messages: entry.queue.clone() })
            }
            Touched::Turn(id) => {
                if let Some(turn) = state.turns.get(&id).cloned() {
                    self.turn_rows(id, &turn, None);
                }
                None
            }
            Touched::Approval(id) => {
                // What is not in the state was caught when its turn ended.
                if let Some(approval) = state.approvals.get(&id).cloned() {
                    self.approval_row(id, &approval, true);
                }
                None
            }
            Touched::Notification(key) => Some(match state.notifications.get(&key) {
                Some(entry) => Row::Notification { at: entry.at, body: json(entry), key },
                None => Row::NotificationGone { key },
            }),
            Touched::Keychain => Some(Row::Meta { key: "keychain", value: json(&state.keychain) }),
            Touched::Settings => Some(Row::Meta { key: "settings", value: json(&state.settings) }),
            Touched::Quit => Some(Row::Meta { key: "quit", value: json(&state.quit) }),
        };
        self.batch.rows.extend(row);
    }

    fn turn_rows(&mut self, id: TurnId, turn: &Turn, ended: Option<Ended>) {
        let mut bare = turn.clone();
        bare.steers = Vec::new();
        let returned = ended.as_ref().is_some_and(|ended| ended.outcome.is_none());
        if let (Some(message), false) = (&turn.message, returned) {
            self.batch.rows.push(Row::Sent {
                session: turn.session,
                turn: id,
                id: message.clone(),
                text: turn.text.clone(),
                at: turn.started_at,
                delivery: delivery(turn, ended.as_ref().and_then(|ended| ended.outcome.as_ref())),
            });
        }
        let session = turn.session;
        let steers = turn.steers.iter().cloned().enumerate();
        self.batch.rows.extend(steers.map(|(position, message)| Row::Steer { session, turn: id, position, message }));
        self.batch.rows.push(Row::Turn {
            id,
            session,
            message: turn.message.clone(),
            started_at: turn.started_at,
            ended,
            body: json(&bare),
        });
    }

    fn approval_row(&mut self, id: ApprovalId, approval: &Approval, open: bool) {
        self.batch.rows.push(Row::Approval {
            id,
            session: approval.session,
            turn: approval.turn,
            asked_at: approval.asked_at,
            open,
            body: json(approval),
        });
    }
}
