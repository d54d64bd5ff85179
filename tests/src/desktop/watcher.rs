//! A StatusNotifierWatcher with no panel behind it, for tests that read the tray item themselves.
//!
//! It forgets an item when the program that owns it leaves the bus; it draws nothing.
#![expect(clippy::disallowed_types, reason = "zbus's macro writes hash maps")]

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use tokio::sync::oneshot;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, fdo, interface};

pub(super) const NAME: &str = "org.kde.StatusNotifierWatcher";
pub(super) const PATH: &str = "/StatusNotifierWatcher";

type Items = Arc<Mutex<Vec<String>>>;

struct Watcher {
    items: Items,
}

#[interface(name = "org.kde.StatusNotifierWatcher")]
impl Watcher {
    async fn register_status_notifier_item(
        &self,
        service: &str,
        #[zbus(header)] header: zbus::message::Header<'_>,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
    ) -> fdo::Result<()> {
        let sender = header.sender().map_or("", |name| name.as_str());
        // "/path": an object of the sender; else a bus name, with the object at its usual place.
        let item = if service.starts_with('/') { format!("{sender}{service}") } else { format!("{service}/StatusNotifierItem") };
        if add(&self.items, &item) {
            Self::status_notifier_item_registered(&emitter, &item).await?;
        }
        Ok(())
    }

    fn register_status_notifier_host(&self, _service: &str) {}

    #[zbus(property)]
    fn registered_status_notifier_items(&self) -> Vec<String> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[zbus(property)]
    fn is_status_notifier_host_registered(&self) -> bool {
        true
    }

    #[zbus(property)]
    fn protocol_version(&self) -> i32 {
        0
    }

    #[zbus(signal)]
    async fn status_notifier_item_registered(emitter: &SignalEmitter<'_>, item: &str) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn status_notifier_item_unregistered(emitter: &SignalEmitter<'_>, item: &str) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn status_notifier_host_registered(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;
}

fn add(items: &Items, item: &str) -> bool {
    let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
    let new = !items.iter().any(|known| known == item);
    if new {
        items.push(item.to_owned());
    }
    new
}

/// Takes away and gives the items that `owner` had.
fn remove(items: &Items, owner: &str) -> Vec<String> {
    let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
    let (gone, left) = items.drain(..).partition(|item| item.split('/').next().is_some_and(|name| name == owner));
    *items = left;
    gone
}

/// Serves on `connection` until `ended` resolves.
pub(super) async fn serve(connection: Connection, ready: oneshot::Sender<Result<()>>, ended: oneshot::Receiver<()>) {
    let items = Items::default();
    let watch = async {
        let watcher = Watcher { items: Arc::clone(&items) };
        connection.object_server().at(PATH, watcher).await?;
        let bus = fdo::DBusProxy::new(&connection).await?;
        let owners = bus.receive_name_owner_changed().await?;
        connection.request_name(NAME).await?;
        let emitter = SignalEmitter::new(&connection, PATH)?.into_owned();
        Watcher::status_notifier_host_registered(&emitter).await?;
        zbus::Result::Ok((owners, emitter))
    };
    let (owners, emitter) = match watch.await.context("offering a StatusNotifierWatcher") {
        Ok(parts) => {
            let _ = ready.send(Ok(()));
            parts
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let forgetting = tokio::spawn(forget_the_gone(owners, emitter, items));
    // An error means that the desktop itself is gone: an end as well.
    let _ = ended.await;
    forgetting.abort();
}

async fn forget_the_gone(mut owners: fdo::NameOwnerChangedStream, emitter: SignalEmitter<'static>, items: Items) {
    while let Some(change) = next(&mut owners).await {
        let Ok(args) = change.args() else { continue };
        if args.new_owner().is_none() {
            for item in remove(&items, args.name().as_str()) {
                // Nobody may be listening.
                let _ = Watcher::status_notifier_item_unregistered(&emitter, &item).await;
            }
        }
    }
}

/// The next element of a stream, without a crate for it.
pub(super) async fn next<S: zbus::export::futures_core::Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| std::pin::Pin::new(&mut *stream).poll_next(context)).await
}
