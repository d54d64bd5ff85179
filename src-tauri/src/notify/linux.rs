//! `org.freedesktop.Notifications`, spoken directly: one connection, its signals subscribed to before anything is shown,
//! and only the notifier itself believed.
//!
//! Each call ends after a moment. A notifier that is not there is waited for; one that the bus can start is started, once
//! something is to be shown.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use turnkeep_engine::Notice;
use turnkeep_model::Input;
use turnkeep_view::notification::{Action, Shown, Urgency};
use zbus::{
    Connection, MatchRule, Message, MessageStream,
    fdo::{DBusProxy, NameOwnerChangedStream},
    message::Type,
    names::OwnedUniqueName,
    zvariant::{Structure, Value},
};

use super::{Lately, Turning, Wish, act, decide, unwatched};
use crate::shell::Shell;

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
/// For one call.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);
/// For a notifier that the bus must start first.
const STARTED_WITHIN: Duration = Duration::from_secs(10);
/// Banners whose buttons still work; of more, the oldest are forgotten.
const KEPT: usize = 256;
/// A click on the text.
const DEFAULT: &str = "default";
const PICTURE: &[u8] = include_bytes!("../../../icons/64x64.png");

/// One that is on the screen, or may still be in the notifier's own list.
#[derive(Debug)]
struct Banner {
    id: u32,
    shown: Shown,
}

/// The notifier that is there.
#[derive(Debug)]
struct Notifier {
    owner: OwnedUniqueName,
    actions: bool,
    markup: bool,
}

struct Desk {
    shell: Shell,
    bus: Connection,
    dbus: DBusProxy<'static>,
    notifier: Option<Notifier>,
    banners: Vec<Banner>,
    /// Lets the window come to the front, for a click that comes next.
    tokens: BTreeMap<u32, String>,
    picture: Option<(i32, i32, Vec<u8>)>,
    lately: Lately,
}

/// Shows what the engine raises until it ends, then takes away what nobody would answer any more.
pub(crate) async fn start(shell: Shell, bus: Option<Connection>) {
    let Some(notices) = shell.engine.notifications() else { return };
    match bus {
        Some(bus) => {
            if let Err(error) = run(&shell, bus, notices).await {
                tracing::warn!(%error, "no notifications in this desktop session");
            }
        }
        None => {
            tracing::info!("no notifications: there is no session bus");
            let mut notices = notices;
            while let Some(notice) = notices.recv().await {
                decide(&shell, &mut Lately::default(), notice);
            }
        }
    }
}

async fn run(shell: &Shell, bus: Connection, mut notices: mpsc::UnboundedReceiver<Notice>) -> zbus::Result<()> {
    let (mut desk, mut heard) = Desk::open(shell, bus).await?;
    let mut turning = Turning::of(shell);
    loop {
        tokio::select! {
            () = turning.away() => {
                for wish in unwatched(&desk.shell, &mut desk.lately) {
                    desk.carry_out(wish).await;
                }
            }
            notice = notices.recv() => match notice {
                Some(notice) => desk.take(notice).await,
                None => break,
            },
            news = heard.next() => desk.learn(news).await,
        }
    }
    desk.leave().await;
    Ok(())
}

/// What the bus says by itself.
struct Heard {
    signals: MessageStream,
    owners: NameOwnerChangedStream,
}

enum News {
    Signal(Message),
    AnotherNotifier,
}

impl Heard {
    async fn next(&mut self) -> News {
        loop {
            tokio::select! {
                Some(signal) = self.signals.next() => match signal {
                    Ok(message) => return News::Signal(message),
                    Err(error) => tracing::debug!(%error, "a signal could not be read"),
                },
                Some(_) = self.owners.next() => return News::AnotherNotifier,
                // The bus is gone, and nothing more is ever heard.
                else => std::future::pending::<()>().await,
            }
        }
    }
}

impl Desk {
    /// Subscribes before anything is shown: a click may come before the answer to the call that showed it.
    async fn open(shell: &Shell, bus: Connection) -> zbus::Result<(Self, Heard)> {
        let dbus = DBusProxy::new(&bus).await?;
        let rule = MatchRule::builder().msg_type(Type::Signal).sender(NAME)?.path(PATH)?.interface(NAME)?.build();
        let signals = MessageStream::for_match_rule(rule, &bus, Some(64)).await?;
        let owners = dbus.receive_name_owner_changed_with_args(&[(0, NAME)]).await?;
        let picture = crate::png::rgba(PICTURE)
            .and_then(|(width, height, data)| Some((i32::try_from(width).ok()?, i32::try_from(height).ok()?, data)));
        let mut desk = Self {
            shell: Shell::clone(shell),
            bus,
            dbus,
            notifier: None,
            banners: Vec::new(),
            tokens: BTreeMap::new(),
            picture,
            lately: Lately::default(),
        };
        desk.meet().await;
        Ok((desk, Heard { signals, owners }))
    }

    async fn learn(&mut self, news: News) {
        match news {
            News::Signal(message) => self.heard(&message),
            News::AnotherNotifier => self.meet().await,
        }
    }

    async fn take(&mut self, notice: Notice) {
        let wish = decide(&self.shell, &mut self.lately, notice);
        self.carry_out(wish).await;
    }

    async fn carry_out(&mut self, wish: Wish) {
        match wish {
            Wish::Show { shown, instead } => {
                for key in instead {
                    self.close(&key).await;
                }
                self.show(*shown).await;
            }
            Wish::Close { key } => self.close(&key).await,
            Wish::Nothing => {}
        }
    }

    /// Looks who the notifier is, and what it can. What another one showed is gone with it; what still waits for an
    /// answer is shown again.
    async fn meet(&mut self) {
        let owner = self.within(ANSWERED_WITHIN, self.dbus.get_name_owner(name())).await;
        if owner.as_ref() == self.notifier.as_ref().map(|notifier| &notifier.owner) {
            return;
        }
        self.notifier = None;
        self.tokens.clear();
        let lost = std::mem::take(&mut self.banners);
        let Some(owner) = owner else { return };
        let reply = self.bus.call_method(Some(&owner), PATH, Some(NAME), "GetCapabilities", &());
        let Some(reply) = self.within(ANSWERED_WITHIN, reply).await else {
            tracing::info!("the notifier does not say what it can");
            return;
        };
        let able: BTreeSet<String> = reply.body().deserialize::<Vec<String>>().unwrap_or_default().into_iter().collect();
        tracing::info!(%owner, ?able, "a notifier is there");
        self.notifier = Some(Notifier { owner, actions: able.contains("actions"), markup: able.contains("body-markup") });
        for banner in lost.into_iter().filter(|banner| banner.shown.stays) {
            self.present(banner.shown).await;
        }
    }

    /// Has the bus start a notifier, if it can.
    async fn call_in(&mut self) {
        if self.notifier.is_some() {
            return;
        }
        let startable = self.within(ANSWERED_WITHIN, self.dbus.list_activatable_names()).await.unwrap_or_default();
        if !startable.iter().any(|startable| startable.as_str() == NAME) {
            return;
        }
        let Ok(name) = NAME.try_into() else { return };
        self.within(STARTED_WITHIN, self.dbus.start_service_by_name(name, 0)).await;
        self.meet().await;
    }

    async fn show(&mut self, shown: Shown) {
        self.call_in().await;
        self.present(shown).await;
    }

    async fn present(&mut self, shown: Shown) {
        let Some(notifier) = &self.notifier else {
            tracing::info!(key = shown.key, "not shown: there is no notifier");
            return;
        };
        let replaces = self.banners.iter().find(|banner| banner.shown.key == shown.key).map_or(0, |banner| banner.id);
        let actions = if notifier.actions { actions(&shown) } else { Vec::new() };
        let body = if notifier.markup { escape(&shown.body) } else { shown.body.clone() };
        let expires: i32 = if shown.stays { 0 } else { -1 };
        let call = ("Turnkeep", replaces, "", shown.title.as_str(), body, actions, hints(&shown, self.picture.as_ref()), expires);
        let reply = self.bus.call_method(Some(&notifier.owner), PATH, Some(NAME), "Notify", &call);
        let id = self.within(ANSWERED_WITHIN, reply).await.and_then(|reply| reply.body().deserialize::<u32>().ok());
        let Some(id) = id else {
            tracing::info!(key = shown.key, "the notifier did not take it");
            return;
        };
        tracing::info!(key = shown.key, id, "shown");
        self.banners.retain(|banner| banner.id != id && banner.shown.key != shown.key);
        if self.banners.len() >= KEPT {
            self.banners.remove(0);
        }
        self.banners.push(Banner { id, shown });
    }

    async fn close(&mut self, key: &str) {
        let Some(at) = self.banners.iter().position(|banner| banner.shown.key == key) else { return };
        let banner = self.banners.remove(at);
        self.tokens.remove(&banner.id);
        if let Some(notifier) = &self.notifier {
            let id = (banner.id,);
            let call = self.bus.call_method(Some(&notifier.owner), PATH, Some(NAME), "CloseNotification", &id);
            self.within(ANSWERED_WITHIN, call).await;
        }
    }

    /// Questions would stay on the screen with nobody behind them.
    async fn leave(&mut self) {
        let keys: Vec<String> =
            self.banners.iter().filter(|banner| banner.shown.stays).map(|banner| banner.shown.key.clone()).collect();
        for key in keys {
            self.close(&key).await;
        }
    }

    /// A signal of the notifier; one that comes from anybody else is nobody's click.
    fn heard(&mut self, message: &Message) {
        let header = message.header();
        let sender = header.sender().map(zbus::names::UniqueName::as_str);
        if sender.is_none() || sender != self.notifier.as_ref().map(|notifier| notifier.owner.as_str()) {
            return;
        }
        let member = header.member().map(|member| member.as_str().to_owned()).unwrap_or_default();
        let body = message.body();
        match member.as_str() {
            "ActionInvoked" => {
                let Ok((id, name)) = body.deserialize::<(u32, String)>() else { return };
                let token = self.tokens.remove(&id);
                let Some(banner) = self.banners.iter().find(|banner| banner.id == id) else { return };
                if let Some(action) = invoked(&banner.shown, &name) {
                    act(&self.shell, action, token);
                }
            }
            "ActivationToken" => {
                let Ok((id, token)) = body.deserialize::<(u32, String)>() else { return };
                if self.banners.iter().any(|banner| banner.id == id) {
                    self.tokens.insert(id, token);
                }
            }
            "NotificationClosed" => {
                const DISMISSED: u32 = 2;
                let Ok((id, why)) = body.deserialize::<(u32, u32)>() else { return };
                if why != DISMISSED {
                    // Expired ones may still be in the notifier's list, with buttons that work.
                    return;
                }
                let Some(at) = self.banners.iter().position(|banner| banner.id == id) else { return };
                let banner = self.banners.remove(at);
                self.shell.engine.tell(Input::DismissNotification { key: banner.shown.key });
            }
            _ => {}
        }
    }

    /// What comes of a call in time.
    async fn within<T, E: std::fmt::Display>(&self, limit: Duration, call: impl Future<Output = Result<T, E>>) -> Option<T> {
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(done)) => Some(done),
            Ok(Err(error)) => {
                tracing::debug!(%error, "the notifier or the bus said no");
                None
            }
            Err(_) => {
                tracing::info!("the notifier or the bus does not answer");
                None
            }
        }
    }
}

fn name() -> zbus::names::BusName<'static> {
    zbus::names::BusName::WellKnown(zbus::names::WellKnownName::from_static_str_unchecked(NAME))
}

/// Names and labels, one after the other.
fn actions(shown: &Shown) -> Vec<&'static str> {
    let mut actions = vec![DEFAULT, shown.click.label()];
    actions.extend(shown.actions.iter().flat_map(|action| [action.name(), action.label()]));
    actions
}

fn invoked<'a>(shown: &'a Shown, name: &str) -> Option<&'a Action> {
    if name == DEFAULT { Some(&shown.click) } else { shown.actions.iter().find(|action| action.name() == name) }
}

fn hints<'a>(shown: &Shown, picture: Option<&'a (i32, i32, Vec<u8>)>) -> BTreeMap<&'static str, Value<'a>> {
    let urgency: u8 = match shown.urgency {
        Urgency::Normal => 1,
        Urgency::Critical => 2,
    };
    let mut hints: BTreeMap<&'static str, Value<'a>> = BTreeMap::from([
        ("urgency", urgency.into()),
        ("category", shown.category.into()),
        ("desktop-entry", "turnkeep".into()),
        // Opening the session must not take the question away.
        ("resident", shown.stays.into()),
    ]);
    if let Some((width, height, data)) = picture {
        // Width, height, bytes of a row, alpha, bits of a sample, samples of a pixel, pixels.
        let image = Structure::from((*width, *height, width * 4, true, 8_i32, 4_i32, data.as_slice()));
        hints.insert("image-data", image.into());
    }
    hints
}

/// Some notifiers read the body as markup: nothing in it is.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
