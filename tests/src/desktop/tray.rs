//! The tray as a panel sees it: which items there are, what they show, and their menus.
//!
//! Reading never changes an item; `activate` and `choose` are what a panel sends on a click.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Structure, Value};

use super::Desktop;
use super::bus::Target;
use super::watcher;
use crate::wait;

const ITEM: &str = "org.kde.StatusNotifierItem";
const MENU: &str = "com.canonical.dbusmenu";

/// A tray item's place on the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrayItem {
    pub service: String,
    pub path: String,
}

/// An icon of one size: ARGB, four bytes a pixel, alpha first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixmap {
    pub width: i32,
    pub height: i32,
    pub argb: Vec<u8>,
}

/// One entry of an item's menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MenuEntry {
    pub id: i32,
    /// Without the underscores that mark access keys; empty for a separator.
    pub label: String,
    pub separator: bool,
    pub enabled: bool,
    pub visible: bool,
    pub children: Vec<MenuEntry>,
}

impl TrayItem {
    fn parse(text: &str) -> Self {
        let (service, path) = match text.find('/') {
            Some(at) => text.split_at(at),
            None => (text, "/StatusNotifierItem"),
        };
        Self { service: service.to_owned(), path: path.to_owned() }
    }

    fn target(&self) -> Target<'_> {
        Target { service: &self.service, path: &self.path, interface: ITEM }
    }
}

impl Desktop {
    /// The items that have registered with the panel or the bare watcher.
    pub fn tray_items(&self) -> Result<Vec<TrayItem>> {
        let of = Target { service: watcher::NAME, path: watcher::PATH, interface: watcher::NAME };
        let value = self.bus.property(of, "RegisteredStatusNotifierItems")?;
        let names = Vec::<String>::try_from(value).context("the list of tray items")?;
        Ok(names.iter().map(|name| TrayItem::parse(name)).collect())
    }

    /// Waits for the one item that there should be.
    pub fn tray_item(&self) -> Result<TrayItem> {
        wait::until("tray item", || self.tray_items().ok()?.into_iter().next())
    }

    /// A text property of an item: `Id`, `Title`, `Status`, `IconName`, `Category`.
    pub fn tray_text(&self, item: &TrayItem, property: &str) -> Result<String> {
        let value = self.bus.property(item.target(), property)?;
        String::try_from(value).with_context(|| format!("{property} of the tray item"))
    }

    /// The tooltip's title and text.
    pub fn tray_tooltip(&self, item: &TrayItem) -> Result<(String, String)> {
        type ToolTip = (String, Vec<(i32, i32, Vec<u8>)>, String, String);
        let value = self.bus.property(item.target(), "ToolTip")?;
        let structure = Structure::try_from(value).context("the tooltip of the tray item")?;
        let (_, _, title, text) = ToolTip::try_from(structure).context("the tooltip of the tray item")?;
        Ok((title, text))
    }

    /// The icon in every size that the item offers.
    pub fn tray_icons(&self, item: &TrayItem) -> Result<Vec<Pixmap>> {
        let value = self.bus.property(item.target(), "IconPixmap")?;
        let sizes = Vec::<(i32, i32, Vec<u8>)>::try_from(value).context("the tray item's icon")?;
        Ok(sizes.into_iter().map(|(width, height, argb)| Pixmap { width, height, argb }).collect())
    }

    /// What a panel sends on a left click, without a mouse: for a desktop that has no panel.
    pub fn activate(&self, item: &TrayItem) -> Result<()> {
        self.bus.call(item.target(), "Activate", &(0_i32, 0_i32)).map(|_| ())
    }

    /// The whole menu of an item.
    pub fn tray_menu(&self, item: &TrayItem) -> Result<Vec<MenuEntry>> {
        type Layout = (u32, (i32, BTreeMap<String, OwnedValue>, Vec<OwnedValue>));
        let path = self.menu_path(item)?;
        let menu = Target { service: &item.service, path: path.as_str(), interface: MENU };
        // A menu that is made on demand is made by this call; one that is not may refuse it.
        let _ = self.bus.call(menu, "AboutToShow", &0_i32);
        let none: [&str; 0] = [];
        let answer = self.bus.call(menu, "GetLayout", &(0_i32, -1_i32, &none[..]))?;
        let (_, (_, _, children)) = answer.body().deserialize::<Layout>().context("the layout of the tray menu")?;
        children.into_iter().map(entry).collect()
    }

    /// What a panel sends when the menu entry `label` is clicked.
    pub fn choose(&self, item: &TrayItem, label: &str) -> Result<()> {
        let menu = self.tray_menu(item)?;
        let entry = find(&menu, label).with_context(|| {
            let labels: Vec<&str> = menu.iter().map(|entry| entry.label.as_str()).collect();
            format!("the tray menu has no entry {label:?}, only {labels:?}")
        })?;
        ensure!(entry.enabled, "the tray menu's entry {label:?} is disabled");
        let path = self.menu_path(item)?;
        let menu = Target { service: &item.service, path: path.as_str(), interface: MENU };
        self.bus.call(menu, "Event", &(entry.id, "clicked", Value::I32(0), 0_u32)).map(|_| ())
    }

    fn menu_path(&self, item: &TrayItem) -> Result<OwnedObjectPath> {
        let value = self.bus.property(item.target(), "Menu")?;
        OwnedObjectPath::try_from(value).context("the tray item's menu")
    }
}

fn entry(value: OwnedValue) -> Result<MenuEntry> {
    let node = Structure::try_from(value).context("an entry of the tray menu")?;
    let [Value::I32(id), Value::Dict(properties), Value::Array(children)] = node.fields() else {
        bail!("an entry of the tray menu has the type {}", node.signature());
    };
    let text = |name: &str| properties.get::<_, String>(&name).ok().flatten().unwrap_or_default();
    let flag = |name: &str| properties.get::<_, bool>(&name).ok().flatten().unwrap_or(true);
    let children = children.iter().map(|child| {
        let Value::Value(child) = child else { bail!("an entry of the tray menu is no variant") };
        entry(child.try_to_owned()?)
    });
    Ok(MenuEntry {
        id: *id,
        label: text("label").replace('_', ""),
        separator: text("type") == "separator",
        enabled: flag("enabled"),
        visible: flag("visible"),
        children: children.collect::<Result<_>>()?,
    })
}

fn find<'a>(menu: &'a [MenuEntry], label: &str) -> Option<&'a MenuEntry> {
    menu.iter().find_map(|entry| if entry.label == label { Some(entry) } else { find(&entry.children, label) })
}
