//! What the notification daemon was told and what became of it, read off the bus by a monitor; and a person's choice of a
//! button.
//!
//! The monitor only listens: the daemon is the real one.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use zbus::message::Type;
use zbus::zvariant::OwnedValue;
use zbus::{Connection, Message, MessageStream, fdo};

use super::Desktop;
use super::bus::Target;
use super::watcher::next;
use crate::wait;

pub(super) const SERVICE: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";

/// A button of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub key: String,
    pub label: String,
}

/// One `Notify` call, and what followed.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The daemon's number for it; nothing until it has answered.
    pub id: Option<u32>,
    /// The number of the one that it takes the place of, or 0.
    pub replaces: u32,
    pub app: String,
    pub icon: String,
    pub summary: String,
    pub body: String,
    pub actions: Vec<Action>,
    /// 0 low, 1 normal, 2 critical.
    pub urgency: Option<u8>,
    /// Milliseconds; -1 leaves it to the daemon, 0 is for ever.
    pub timeout: i32,
    /// The key of the button that was chosen.
    pub chosen: Option<String>,
    /// 1 expired, 2 dismissed by the person, 3 closed by the program.
    pub closed: Option<u32>,
    call: (String, u32),
}

pub(super) type Seen = Arc<Mutex<Vec<Notification>>>;

/// Listens on a connection of its own until it closes.
pub(super) async fn watch(connection: &Connection) -> Result<(Seen, MessageStream)> {
    let rules = ["interface='org.freedesktop.Notifications'", "type='method_return',sender='org.freedesktop.Notifications'"];
    let stream = MessageStream::from(connection);
    let rules: Vec<zbus::MatchRule<'_>> =
        rules.iter().map(|rule| zbus::MatchRule::try_from(*rule)).collect::<zbus::Result<_>>()?;
    fdo::MonitoringProxy::new(connection).await?.become_monitor(&rules, 0).await.context("listening to notifications")?;
    Ok((Seen::default(), stream))
}

pub(super) async fn record(seen: Seen, mut stream: MessageStream) {
    while let Some(Ok(message)) = next(&mut stream).await {
        // A message of another shape than the standard's is the sender's fault, and no notification.
        let _ = note(&seen, &message);
    }
}

fn note(seen: &Seen, message: &Message) -> Option<()> {
    type Notify = (String, u32, String, String, String, Vec<String>, BTreeMap<String, OwnedValue>, i32);
    let header = message.header();
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let member = header.member().map(|member| member.as_str().to_owned());
    let body = message.body();
    match (header.message_type(), member.as_deref()) {
        (Type::MethodCall, Some("Notify")) => {
            let (app, replaces, icon, summary, text, actions, hints, timeout) = body.deserialize::<Notify>().ok()?;
            let actions = actions.chunks_exact(2).map(|pair| Action { key: pair[0].clone(), label: pair[1].clone() }).collect();
            let urgency = hints.get("urgency").and_then(|value| u8::try_from(value).ok());
            let call = (header.sender()?.to_string(), header.primary().serial_num().get());
            seen.push(Notification {
                id: None,
                replaces,
                app,
                icon,
                summary,
                body: text,
                actions,
                urgency,
                timeout,
                chosen: None,
                closed: None,
                call,
            });
        }
        (Type::MethodReturn, _) => {
            let call = (header.destination()?.to_string(), header.reply_serial()?.get());
            let shown = seen.iter_mut().find(|shown| shown.call == call)?;
            shown.id = Some(body.deserialize::<u32>().ok()?);
        }
        (Type::Signal, Some("ActionInvoked")) => {
            let (id, key) = body.deserialize::<(u32, String)>().ok()?;
            last(&mut seen, id)?.chosen = Some(key);
        }
        (Type::Signal, Some("NotificationClosed")) => {
            let (id, reason) = body.deserialize::<(u32, u32)>().ok()?;
            last(&mut seen, id)?.closed = Some(reason);
        }
        _ => {}
    }
    Some(())
}

fn last(seen: &mut [Notification], id: u32) -> Option<&mut Notification> {
    seen.iter_mut().rev().find(|shown| shown.id == Some(id))
}

impl Desktop {
    /// Every notification so far, oldest first; a replacement is a notification of its own.
    #[must_use]
    pub fn notifications(&self) -> Vec<Notification> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those that are on the screen.
    #[must_use]
    pub fn shown_notifications(&self) -> Vec<Notification> {
        let all = self.notifications();
        let replaced =
            |one: &Notification, at: usize| all.iter().skip(at + 1).any(|later| one.id.is_some() && later.id == one.id);
        all.iter()
            .enumerate()
            .filter(|(at, one)| one.id.is_some() && one.closed.is_none() && !replaced(one, *at))
            .map(|(_, one)| one.clone())
            .collect()
    }

    /// Waits for a notification that `matches`.
    pub fn wait_notification(&self, what: &str, matches: impl Fn(&Notification) -> bool) -> Result<Notification> {
        wait::until(&format!("notification: {what}"), || {
            self.notifications().into_iter().find(|one| one.id.is_some() && matches(one))
        })
        .with_context(|| format!("there were only {:#?}", self.notifications()))
    }

    /// How many the daemon itself says that it shows.
    pub fn displayed_count(&self) -> Result<u32> {
        let value = self.bus.property(dunst(), "displayedLength")?;
        u32::try_from(value).context("the number of notifications on the screen")
    }

    /// Chooses the button `label` of a notification on the screen, through the daemon's menu of buttons.
    pub fn choose_action(&self, notification: &Notification, label: &str) -> Result<()> {
        let id = notification.id.context("the notification is not on the screen yet")?;
        let action = notification
            .actions
            .iter()
            .find(|action| action.label == label)
            .with_context(|| format!("no button {label:?} in {:?}", notification.actions))?;
        let wanted = self.folder().join("wanted-action");
        // The daemon's menu has lines such as "#Label (App) [7,key]".
        fs::write(&wanted, format!("[{id},{}]", action.key))?;
        self.bus.call(dunst(), "ContextMenuCall", &())?;
        wait::until(&format!("answer to the button {label:?}"), || {
            let all = self.notifications();
            all.iter()
                .rev()
                .find(|one| one.id == Some(id))
                .is_some_and(|one| one.chosen.as_ref() == Some(&action.key))
                .then_some(())
        })
        .with_context(|| {
            let offered = fs::read_to_string(self.folder().join("offered-actions"));
            format!("the daemon offered {:?}", offered.unwrap_or_default())
        })
    }

    /// Closes a notification as its owner would, or the person by a swipe.
    pub fn close_notification(&self, notification: &Notification) -> Result<()> {
        let id = notification.id.context("the notification is not on the screen yet")?;
        ensure!(notification.closed.is_none(), "the notification is closed already");
        let to = Target { service: SERVICE, path: PATH, interface: SERVICE };
        self.bus.call(to, "CloseNotification", &id).map(|_| ())
    }
}

fn dunst() -> Target<'static> {
    Target { service: SERVICE, path: PATH, interface: "org.dunstproject.cmd0" }
}
