//! Desktop notifications: which of those that were raised are shown, and what their buttons do.
//!
//! What one says is decided by [`turnkeep_view::notification`]. No notifier, a slow one or one that goes away must never
//! hold anything up.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod native;

use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use chrono::Timelike as _;
use tokio::sync::watch;
use turnkeep_engine::Notice;
use turnkeep_model::{
    Input,
    state::{Asker, Notification, NotificationKind},
};
use turnkeep_view::{
    dto,
    notification::{self, Action, Shown},
};

use crate::shell::Shell;

#[cfg(target_os = "linux")]
pub(crate) use linux::start;
#[cfg(not(target_os = "linux"))]
pub(crate) use native::start;

/// So many completions within so long become one.
const MANY: usize = 3;
const AT_ONCE: Duration = Duration::from_secs(10);

/// What is to be done about a notice.
#[derive(Debug, PartialEq)]
enum Wish {
    /// Show it, after taking these away.
    Show {
        shown: Box<Shown>,
        instead: Vec<String>,
    },
    Close {
        key: String,
    },
    Nothing,
}

/// A person who turned away for less than this still knows what they saw.
const TURNED_AWAY: Duration = Duration::from_secs(2);

/// What was shown lately, and what was not.
#[derive(Debug, Default)]
struct Lately {
    /// Completions, oldest first: when, key, title of the session.
    completed: VecDeque<(Instant, String, String)>,
    /// Questions that the person was looking at, so that no banner was needed for them yet.
    seen: BTreeSet<String>,
}

impl Lately {
    /// One more; with enough of them, one notification for all, and the keys that it stands for.
    fn completed(&mut self, now: Instant, shown: &Shown, title: String) -> Option<(Shown, Vec<String>)> {
        while self.completed.front().is_some_and(|(at, ..)| now.duration_since(*at) > AT_ONCE) {
            self.completed.pop_front();
        }
        self.completed.push_back((now, shown.key.clone(), title));
        if self.completed.len() < MANY {
            return None;
        }
        let titles: Vec<String> = self.completed.iter().map(|(.., title)| title.clone()).collect();
        let others = self.completed.iter().map(|(_, key, _)| key.clone()).filter(|key| *key != shown.key).collect();
        Some((notification::several(&shown.key, &titles), others))
    }
}

/// Decides about a notice, and reports the fact as shown: that it is not shown now is a decision, not a delay.
fn decide(shell: &Shell, lately: &mut Lately, notice: Notice) -> Wish {
    match notice {
        Notice::Close { key } => {
            lately.seen.remove(&key);
            Wish::Close { key }
        }
        Notice::Show { key, notification } => {
            let wish = wanted(shell, lately, &key, &notification);
            shell.engine.tell(Input::NotificationShown { key });
            wish
        }
    }
}

fn wanted(shell: &Shell, lately: &mut Lately, key: &str, raised: &Notification) -> Wish {
    if raised.session.is_some_and(|session| shell.is_watched(session)) {
        tracing::info!(key, "not shown: the person looks at it");
        if matches!(raised.kind, NotificationKind::ApprovalNeeded { .. }) {
            lately.seen.insert(key.to_owned());
        }
        return Wish::Nothing;
    }
    let snapshot = shell.engine.snapshot();
    if notification::is_silenced(&raised.kind, &snapshot.state.settings, minute()) {
        tracing::info!(key, "not shown: it is silenced");
        return Wish::Nothing;
    }
    let Some(shown) = shell.view(&snapshot, |facts| notification::notification(facts, key)) else {
        tracing::info!(key, "not shown: it is decided already");
        return Wish::Nothing;
    };
    if matches!(raised.kind, NotificationKind::TurnCompleted { .. }) {
        let session = raised.session.and_then(|id| snapshot.state.sessions.get(&id));
        let title = session.map(|session| session.title.clone()).unwrap_or_default();
        if let Some((all, instead)) = lately.completed(Instant::now(), &shown, title) {
            return Wish::Show { shown: Box::new(all), instead };
        }
    }
    Wish::Show { shown: Box::new(shown), instead: Vec::new() }
}

/// Notices when the person has turned away from what they were looking at.
#[derive(Debug)]
struct Turning {
    looks: watch::Receiver<()>,
    due: Option<tokio::time::Instant>,
}

impl Turning {
    fn of(shell: &Shell) -> Self {
        Self { looks: shell.looks(), due: None }
    }

    /// Waits until then. Nothing is lost when this is given up.
    async fn away(&mut self) {
        loop {
            let due = self.due;
            let waited = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Ok(()) = self.looks.changed() => self.due = Some(tokio::time::Instant::now() + TURNED_AWAY),
                () = waited => {
                    self.due = None;
                    return;
                }
            }
        }
    }
}

/// Questions that were seen and not answered, and that nobody looks at any more.
fn unwatched(shell: &Shell, lately: &mut Lately) -> Vec<Wish> {
    let state = shell.engine.snapshot().state;
    let seen = std::mem::take(&mut lately.seen);
    // What is still looked at is remembered again.
    let raised = seen.iter().filter_map(|key| Some((key, state.notifications.get(key)?)));
    raised.map(|(key, raised)| wanted(shell, lately, key, raised)).collect()
}

/// Minutes after midnight here.
fn minute() -> u16 {
    let now = chrono::Local::now();
    u16::try_from(now.hour() * 60 + now.minute()).unwrap_or(0)
}

/// Carries out what was clicked. Never waits.
fn act(shell: &Shell, action: &Action, token: Option<String>) {
    tracing::info!(?action, "clicked in a notification");
    match action {
        Action::OpenSession(session) => {
            shell.show(Some(dto::View::Session { session: session.to_string() }), token);
        }
        Action::OpenWindow => shell.show(Some(dto::View::Sessions), token),
        Action::Allow(approval) => shell.answer(*approval, dto::ChoiceKind::Allow, Asker::Notification),
        Action::Deny(approval) => shell.answer(*approval, dto::ChoiceKind::Deny, Asker::Notification),
        Action::SignIn(provider) => shell.show(Some(dto::View::SignIn { provider: provider.to_string() }), token),
        Action::MarkRead(session) => shell.engine.tell(Input::MarkRead { session: *session }),
        Action::TryAgain(session) => shell.engine.tell(Input::TryAgain { session: *session }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(key: &str) -> Shown {
        Shown { key: key.to_owned(), ..notification::several("", &[]) }
    }

    #[test]
    fn three_completions_at_once_are_told_as_one() {
        let (mut lately, start) = (Lately::default(), Instant::now());
        let mut tell =
            |after: u64, key: &str| lately.completed(start + Duration::from_secs(after), &completion(key), key.to_owned());
        assert_eq!(tell(0, "a"), None);
        assert_eq!(tell(20, "b"), None);
        assert_eq!(tell(25, "c"), None);
        let (all, instead) = tell(28, "d").unwrap();
        assert_eq!((all.title.as_str(), all.key.as_str()), ("3 sessions finished", "d"));
        assert_eq!(instead, ["b", "c"]);
        let (all, instead) = tell(29, "e").unwrap();
        assert_eq!(all.title, "4 sessions finished");
        assert_eq!(instead, ["b", "c", "d"]);
        assert_eq!(tell(60, "f"), None);
    }
}
