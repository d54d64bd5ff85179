//! What a handle may ask of the loop, and what it is told.

use secrecy::SecretString;
use tokio::sync::oneshot;
use turnkeep_model::{AccountId, Change, Input, ProviderId, RuntimeId, Seq, SessionId, SignInId, TurnId, state::Notification};

use crate::{
    feed::{Events, Trouble},
    store::Entry,
    world::ThreadsAnswer,
};

/// An input that was taken in and written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// A snapshot with this number, or a later one, has what came of it.
    pub seq: Seq,
    /// Whether anything changed; a repeated or a moot wish changes nothing.
    pub changed: bool,
    /// The session that was made.
    pub session: Option<SessionId>,
    /// The sign-in that was begun.
    pub sign_in: Option<SignInId>,
    /// The turn that was begun.
    pub turn: Option<TurnId>,
}

impl Ack {
    pub(super) fn of(changes: &[Change]) -> Self {
        let mut ack = Self { changed: !changes.is_empty(), ..Self::default() };
        for change in changes {
            if let Change::SessionCreated { session, .. } = change {
                ack.session = ack.session.or(Some(*session));
            } else if let Change::SignInBegan { sign_in, .. } = change {
                ack.sign_in = ack.sign_in.or(Some(*sign_in));
            } else if let Change::TurnDispatched { turn, .. } = change {
                ack.turn = ack.turn.or(Some(*turn));
            }
        }
        ack
    }
}

/// Why an input was not taken in. It had no effect, and may be submitted again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It could not have been written down.
    #[error("{}", .0.message)]
    Trouble(Trouble),
    /// The engine has ended.
    #[error("Turnkeep has stopped")]
    Ended,
}

/// Something for the person's desktop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Show it, or replace the one with this key; then submit [`Input::NotificationShown`].
    Show { key: String, notification: Notification },
    /// Take it away.
    Close { key: String },
}

/// What a handle wants.
#[derive(Debug)]
pub(crate) enum Ask {
    Submit {
        input: Input,
        answer: Option<oneshot::Sender<Result<Ack, Refused>>>,
    },
    SignInWithKey {
        provider: ProviderId,
        account: Option<AccountId>,
        label: String,
        key: SecretString,
        answer: oneshot::Sender<Result<Ack, Refused>>,
    },
    /// Answered with the events from here on, and the running entries as they are.
    Subscribe {
        session: SessionId,
        answer: oneshot::Sender<(Events, Vec<Entry>)>,
    },
    Unlock,
    Rescan,
    LastLines {
        runtime: RuntimeId,
        answer: oneshot::Sender<Vec<String>>,
    },
    /// Not answered by a process that is gone.
    Threads {
        runtime: RuntimeId,
        cursor: Option<String>,
        answer: oneshot::Sender<ThreadsAnswer>,
    },
}

impl Ask {
    /// Says no; returns whether it was the wish to end.
    pub(super) fn refuse(self, trouble: &Trouble) -> bool {
        let refused = Err(Refused::Trouble(trouble.clone()));
        match self {
            Self::Submit { input, answer } => {
                let quit = matches!(input, Input::Quit { .. });
                if let Some(answer) = answer {
                    // A wish to end is granted, though nothing of it is written down.
                    let _ = answer.send(if quit { Ok(Ack::default()) } else { refused });
                }
                quit
            }
            Self::SignInWithKey { answer, .. } => {
                let _ = answer.send(refused);
                false
            }
            Self::Subscribe { .. } | Self::Unlock | Self::Rescan | Self::LastLines { .. } | Self::Threads { .. } => false,
        }
    }
}
