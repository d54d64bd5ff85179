//! The tray where the system has one of its own that gives clicks.
//!
//! Everything here waits for the main thread, so it runs off the workers.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tauri::{
    AppHandle, Wry,
    image::Image,
    menu::{CheckMenuItem, IsMenuItem, Menu, MenuItem, PredefinedMenuItem, Submenu},
    tray::{MouseButton, MouseButtonState, TrayIcon, TrayIconBuilder, TrayIconEvent},
};
use turnkeep_view::tray::{MenuEntry, Tray, TrayAction, tray};

use super::{
    act, clicked, follow,
    icons::{Shade, picture},
};
use crate::shell::Shell;

const SHADE: Shade = if cfg!(target_os = "macos") { Shade::Template } else { Shade::Dark };

/// What each line of the menu that is shown does.
type Actions = Arc<Mutex<BTreeMap<String, TrayAction>>>;

/// Starts the tray; these systems always have a place for it.
pub(crate) async fn start(app: AppHandle, shell: Shell, _dark: bool) -> bool {
    let actions = Actions::default();
    let building = (app.clone(), Shell::clone(&shell), Arc::clone(&actions));
    let built = tokio::task::spawn_blocking(move || build(&building.0, &building.1, &building.2)).await;
    let icon = match built {
        Ok(Ok(icon)) => icon,
        Ok(Err(error)) => {
            tracing::warn!(%error, "no tray");
            return false;
        }
        Err(error) => {
            tracing::error!(%error, "making the tray panicked");
            return false;
        }
    };
    tokio::spawn(follow(shell, move |tray| {
        let (app, icon, actions) = (app.clone(), icon.clone(), Arc::clone(&actions));
        async move {
            let shown = tokio::task::spawn_blocking(move || draw(&app, &icon, &tray, &actions)).await;
            if let Ok(Err(error)) = shown {
                tracing::warn!(%error, "the tray could not be changed");
            }
        }
    }));
    true
}

fn build(app: &AppHandle, shell: &Shell, actions: &Actions) -> tauri::Result<TrayIcon> {
    let (choosing, clicking) = (Shell::clone(shell), Shell::clone(shell));
    let chosen = Arc::clone(actions);
    let icon = TrayIconBuilder::with_id("main")
        .show_menu_on_left_click(false)
        .icon_as_template(cfg!(target_os = "macos"))
        .on_menu_event(move |_, event| {
            let action = chosen.lock().unwrap_or_else(PoisonError::into_inner).get(event.id().as_ref()).cloned();
            if let Some(action) = action {
                act(&choosing, &action, None);
            }
        })
        .on_tray_icon_event(move |_, event| {
            if let TrayIconEvent::Click { button: MouseButton::Left, button_state: MouseButtonState::Up, .. } = event {
                clicked(&clicking, None);
            }
        })
        .build(app)?;
    draw(app, &icon, &tray(&shell.snapshot(&shell.engine.snapshot())), actions)?;
    Ok(icon)
}

fn draw(app: &AppHandle, icon: &TrayIcon, tray: &Tray, actions: &Actions) -> tauri::Result<()> {
    // The second largest suits every screen; the system makes it smaller where it must.
    icon.set_icon(Some(Image::from_bytes(picture(SHADE, tray.icon)[3])?))?;
    icon.set_icon_as_template(cfg!(target_os = "macos"))?;
    icon.set_tooltip(Some(format!("{}: {}", tray.title, tray.tooltip)))?;
    let mut lines = BTreeMap::new();
    let items = entries(app, &tray.menu, &mut lines)?;
    let menu = Menu::with_items(app, &items.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
    *actions.lock().unwrap_or_else(PoisonError::into_inner) = lines;
    icon.set_menu(Some(menu))
}

fn entries(
    app: &AppHandle,
    menu: &[MenuEntry],
    lines: &mut BTreeMap<String, TrayAction>,
) -> tauri::Result<Vec<Box<dyn IsMenuItem<Wry>>>> {
    let mut items: Vec<Box<dyn IsMenuItem<Wry>>> = Vec::new();
    for entry in menu {
        items.push(match entry {
            MenuEntry::Separator => Box::new(PredefinedMenuItem::separator(app)?),
            MenuEntry::Submenu { label, entries } => {
                let below = self::entries(app, entries, lines)?;
                let below: Vec<_> = below.iter().map(AsRef::as_ref).collect();
                Box::new(Submenu::with_items(app, mnemonic(label), true, &below)?)
            }
            MenuEntry::Item { label, action, checked } => {
                let id = action.as_ref().map_or_else(|| "text".to_owned(), |_| format!("line {}", lines.len()));
                lines.extend(action.clone().map(|action| (id.clone(), action)));
                let label = mnemonic(label);
                match checked {
                    Some(checked) => Box::new(CheckMenuItem::with_id(app, id, label, action.is_some(), *checked, None::<&str>)?),
                    None => Box::new(MenuItem::with_id(app, id, label, action.is_some(), None::<&str>)?),
                }
            }
        });
    }
    Ok(items)
}

/// In a menu's label an ampersand marks the next letter; two are one.
fn mnemonic(label: &str) -> String {
    label.replace('&', "&&")
}
