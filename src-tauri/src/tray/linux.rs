//! The tray on Linux: a StatusNotifierItem of our own.
//!
//! Tauri's tray has no click here, one size of icon, and works on the main thread. This one lives on the runtime, so no
//! caller can block it, and it waits for a panel that comes later.

use std::{sync::Arc, time::Duration};

use ksni::{
    Icon, MenuItem, TrayMethods as _,
    menu::{CheckmarkItem, StandardItem, SubMenu},
};
use tauri::AppHandle;
use tokio::sync::watch;
use turnkeep_view::tray::{MenuEntry, Tray, TrayAction, TrayIcon, tray};

use super::{
    act, clicked, follow,
    icons::{Shade, picture},
};
use crate::shell::Shell;

/// How long the registration may take before the window is shown in the tray's place.
const REGISTERED_WITHIN: Duration = Duration::from_secs(2);

/// What the panel asks about.
struct Item {
    shell: Shell,
    tray: Tray,
    shade: Shade,
    pictures: Vec<Icon>,
    hosted: watch::Sender<bool>,
}

/// Starts the tray; says whether there is a panel that shows it. `dark`: see [`theme_is_dark`].
pub(crate) async fn start(_app: AppHandle, shell: Shell, dark: bool) -> bool {
    let (hosted, mut hosting) = watch::channel(true);
    let shade = shade(&desktop(), scheme().await, dark);
    let tray = tray(&shell.snapshot(&shell.engine.snapshot()));
    let pictures = pixmaps(shade, tray.icon);
    let item = Item { shell: Arc::clone(&shell), tray, shade, pictures, hosted };
    // A panel that does not answer must not keep the start.
    let registering = tokio::spawn(run(shell, item));
    let lost = tokio::time::timeout(REGISTERED_WITHIN, hosting.wait_for(|hosted| !hosted)).await;
    match lost {
        // No panel said no in time: it is there.
        Err(_) => true,
        Ok(Ok(_)) => false,
        Ok(Err(_)) => {
            registering.abort();
            false
        }
    }
}

async fn run(shell: Shell, item: Item) {
    let handle = match item.assume_sni_available(true).spawn().await {
        Ok(handle) => handle,
        Err(error) => {
            tracing::warn!(%error, "no tray in this desktop session");
            return;
        }
    };
    tracing::info!("the tray is served");
    follow(shell, |tray| {
        let handle = handle.clone();
        async move {
            handle
                .update(move |item| {
                    if item.tray.icon != tray.icon {
                        item.pictures = pixmaps(item.shade, tray.icon);
                    }
                    item.tray = tray;
                })
                .await;
        }
    })
    .await;
    handle.shutdown().await;
}

impl ksni::Tray for Item {
    fn id(&self) -> String {
        "turnkeep".to_owned()
    }

    fn title(&self) -> String {
        self.tray.title.to_owned()
    }

    fn icon_pixmap(&self) -> Vec<Icon> {
        self.pictures.clone()
    }

    fn tool_tip(&self) -> ksni::ToolTip {
        ksni::ToolTip { title: self.tray.title.to_owned(), description: markup(&self.tray.tooltip), ..ksni::ToolTip::default() }
    }

    fn activate(&mut self, _x: i32, _y: i32) {
        clicked(&self.shell, ksni::current_xdg_activation_token());
    }

    fn secondary_activate(&mut self, _x: i32, _y: i32) {
        clicked(&self.shell, ksni::current_xdg_activation_token());
    }

    fn menu(&self) -> Vec<MenuItem<Self>> {
        self.tray.menu.iter().map(entry).collect()
    }

    fn watcher_online(&self) {
        tracing::info!("a panel came");
        self.hosted.send_replace(true);
    }

    fn watcher_offline(&self, reason: ksni::OfflineReason) -> bool {
        tracing::info!(?reason, "no panel shows the tray; waiting for one");
        self.hosted.send_replace(false);
        true
    }
}

fn entry(entry: &MenuEntry) -> MenuItem<Item> {
    match entry {
        MenuEntry::Separator => MenuItem::Separator,
        MenuEntry::Submenu { label, entries } => {
            SubMenu { label: mnemonic(label), submenu: entries.iter().map(self::entry).collect(), ..SubMenu::default() }.into()
        }
        MenuEntry::Item { label, action, checked: None } => {
            let action = action.clone();
            StandardItem {
                label: mnemonic(label),
                enabled: action.is_some(),
                activate: Box::new(move |item: &mut Item| chosen(item, action.as_ref())),
                ..StandardItem::default()
            }
            .into()
        }
        MenuEntry::Item { label, action, checked: Some(checked) } => {
            let action = action.clone();
            CheckmarkItem {
                label: mnemonic(label),
                enabled: action.is_some(),
                checked: *checked,
                activate: Box::new(move |item: &mut Item| chosen(item, action.as_ref())),
                ..CheckmarkItem::default()
            }
            .into()
        }
    }
}

fn chosen(item: &Item, action: Option<&TrayAction>) {
    if let Some(action) = action {
        act(&item.shell, action, ksni::current_xdg_activation_token());
    }
}

/// In a menu's label an underscore marks the next letter; two are one.
fn mnemonic(label: &str) -> String {
    label.replace('_', "__")
}

/// Panels may read a tooltip's text as markup.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

// ---- pictures --------------------------------------------------------------------------------

fn pixmaps(shade: Shade, icon: TrayIcon) -> Vec<Icon> {
    picture(shade, icon).into_iter().filter_map(pixmap).collect()
}

/// Alpha, red, green, blue, a byte each, as the wire wants it.
fn pixmap(png: &[u8]) -> Option<Icon> {
    let (width, height, mut data) = crate::png::rgba(png)?;
    for pixel in data.chunks_exact_mut(4) {
        pixel.rotate_right(1);
    }
    Some(Icon { width: i32::try_from(width).ok()?, height: i32::try_from(height).ok()?, data })
}

// ---- which panel -----------------------------------------------------------------------------

fn desktop() -> String {
    std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default()
}

/// What the desktop says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Unsaid,
    Dark,
    Light,
}

/// GNOME's panel is dark whatever the scheme is; elsewhere the panel follows the scheme, or the theme that the toolkit uses.
fn shade(desktop: &str, scheme: Scheme, dark_theme: bool) -> Shade {
    let gnome = desktop.split(':').any(|name| name.eq_ignore_ascii_case("gnome"));
    let dark = match scheme {
        Scheme::Dark => true,
        Scheme::Light => false,
        Scheme::Unsaid => dark_theme,
    };
    if gnome || dark { Shade::Dark } else { Shade::Light }
}

/// Whether the toolkit's theme is a dark one, by its name. On the main thread, after the toolkit was started.
pub(crate) fn theme_is_dark() -> bool {
    use gtk::prelude::GtkSettingsExt as _;
    let Some(settings) = gtk::Settings::default() else { return false };
    let name = settings.gtk_theme_name().map(|name| name.to_lowercase()).unwrap_or_default();
    settings.is_gtk_application_prefer_dark_theme() || name.contains("dark") || name.contains("black")
}

/// The scheme that the desktop's portal tells. Nobody is started to answer that.
async fn scheme() -> Scheme {
    const ASKED_WITHIN: Duration = Duration::from_millis(500);
    let asked = async {
        let bus = zbus::Connection::session().await.ok()?;
        let dbus = zbus::fdo::DBusProxy::new(&bus).await.ok()?;
        let name = "org.freedesktop.portal.Desktop";
        if !dbus.name_has_owner(name.try_into().ok()?).await.ok()? {
            return None;
        }
        let wanted = ("org.freedesktop.appearance", "color-scheme");
        let interface = Some("org.freedesktop.portal.Settings");
        let reply = bus.call_method(Some(name), "/org/freedesktop/portal/desktop", interface, "ReadOne", &wanted).await.ok()?;
        let value: zbus::zvariant::OwnedValue = reply.body().deserialize().ok()?;
        u32::try_from(value).ok()
    };
    match tokio::time::timeout(ASKED_WITHIN, asked).await.ok().flatten() {
        Some(1) => Scheme::Dark,
        Some(2) => Scheme::Light,
        _ => Scheme::Unsaid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_pictures_in_every_size() {
        let states = [TrayIcon::Error, TrayIcon::Running(2), TrayIcon::Idle, TrayIcon::SignedOut, TrayIcon::Quitting];
        let counts = (0..12).map(TrayIcon::NeedsYou);
        let mut seen = Vec::new();
        for icon in states.into_iter().chain(counts) {
            for shade in [Shade::Dark, Shade::Light] {
                let icons = pixmaps(shade, icon);
                let sizes: Vec<i32> = icons.iter().map(|icon| icon.width).collect();
                assert_eq!(sizes, [16, 22, 32, 44, 64], "{icon:?}");
                for icon in &icons {
                    assert_eq!(icon.data.len(), (icon.width * icon.height * 4) as usize);
                }
                seen.push(icons[1].data.clone());
            }
        }
        let all = seen.len();
        seen.sort();
        seen.dedup();
        // `NeedsYou(0)` is drawn as 1, and 11 as 10: two of each shade are no pictures of their own.
        assert_eq!(seen.len(), all - 4);
    }

    #[test]
    fn the_panel_decides_the_shade() {
        assert_eq!(shade("ubuntu:GNOME", Scheme::Light, false), Shade::Dark);
        assert_eq!(shade("KDE", Scheme::Light, true), Shade::Light);
        assert_eq!(shade("KDE", Scheme::Dark, false), Shade::Dark);
        assert_eq!(shade("XFCE", Scheme::Unsaid, false), Shade::Light);
        assert_eq!(shade("XFCE", Scheme::Unsaid, true), Shade::Dark);
    }

    #[test]
    fn labels_keep_their_underscores() {
        assert_eq!(mnemonic("run my_test"), "run my__test");
        assert_eq!(markup("<b>&"), "&lt;b&gt;&amp;");
    }
}
