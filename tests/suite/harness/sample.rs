//! A tray item that only counts its clicks, to try the desktop without the application.
#![expect(clippy::disallowed_types, reason = "zbus's macro writes hash maps")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use std::collections::BTreeMap;
use tokio::runtime::Runtime;
use zbus::zvariant::{Dict, ObjectPath, OwnedObjectPath, OwnedValue, StructureBuilder, Value};
use zbus::{Connection, connection, interface};

#[derive(Debug, Default)]
pub(super) struct Clicks {
    pub(super) left: AtomicU32,
    pub(super) menu: AtomicU32,
}

struct Item {
    clicks: Arc<Clicks>,
    colour: [u8; 3],
}

type Tip = (String, Vec<(i32, i32, Vec<u8>)>, String, String);
type Node = (i32, BTreeMap<String, OwnedValue>, Vec<OwnedValue>);

#[interface(name = "org.kde.StatusNotifierItem")]
impl Item {
    fn activate(&self, _x: i32, _y: i32) {
        self.clicks.left.fetch_add(1, Ordering::SeqCst);
    }
    fn secondary_activate(&self, _x: i32, _y: i32) {}
    #[zbus(property)]
    fn id(&self) -> &str {
        "sample"
    }
    #[zbus(property)]
    fn title(&self) -> &str {
        "Sample"
    }
    #[zbus(property)]
    fn category(&self) -> &str {
        "ApplicationStatus"
    }
    #[zbus(property)]
    fn status(&self) -> &str {
        "Active"
    }
    #[zbus(property)]
    fn icon_name(&self) -> &str {
        ""
    }
    #[zbus(property)]
    fn icon_pixmap(&self) -> Vec<(i32, i32, Vec<u8>)> {
        let [red, green, blue] = self.colour;
        vec![(22, 22, [255, red, green, blue].repeat(22 * 22))]
    }
    #[zbus(property)]
    fn tool_tip(&self) -> Tip {
        (String::new(), Vec::new(), "Sample".to_owned(), "nothing runs".to_owned())
    }
    #[zbus(property)]
    fn item_is_menu(&self) -> bool {
        false
    }
    #[zbus(property)]
    fn menu(&self) -> OwnedObjectPath {
        ObjectPath::try_from("/Menu").unwrap().into()
    }
}

struct Menu {
    clicks: Arc<Clicks>,
}

fn owned(value: Value<'_>) -> OwnedValue {
    value.try_into().unwrap()
}

#[interface(name = "com.canonical.dbusmenu")]
impl Menu {
    fn get_layout(&self, _parent: i32, _depth: i32, _names: Vec<String>) -> (u32, Node) {
        let entry = |id: i32, properties: Vec<(&str, Value<'_>)>| {
            let properties = Dict::from(BTreeMap::from_iter(properties));
            let none: Vec<Value<'_>> = Vec::new();
            let entry = StructureBuilder::new().add_field(id).append_field(Value::Dict(properties)).add_field(none);
            owned(Value::Structure(entry.build().unwrap()))
        };
        let children = vec![
            entry(1, vec![("label", Value::from("_Open"))]),
            entry(2, vec![("type", Value::from("separator"))]),
            entry(3, vec![("label", Value::from("Quit")), ("enabled", Value::from(false))]),
        ];
        let submenu = ("children-display".to_owned(), owned(Value::from("submenu")));
        (1, (0, BTreeMap::from([submenu]), children))
    }
    fn about_to_show(&self, _id: i32) -> bool {
        false
    }
    fn event(&self, id: i32, kind: &str, _data: Value<'_>, _time: u32) {
        if id == 1 && kind == "clicked" {
            self.clicks.menu.fetch_add(1, Ordering::SeqCst);
        }
    }
    #[zbus(property)]
    fn version(&self) -> u32 {
        3
    }
}

/// Registers the item on the bus at `address`; it is gone when the result is dropped.
pub(super) struct Sample {
    pub(super) clicks: Arc<Clicks>,
    pub(super) connection: Connection,
    pub(super) runtime: Runtime,
}

pub(super) fn show(address: &str, colour: [u8; 3]) -> Sample {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let clicks = Arc::<Clicks>::default();
    let item = Item { clicks: Arc::clone(&clicks), colour };
    let menu = Menu { clicks: Arc::clone(&clicks) };
    let connection = runtime
        .block_on(async {
            let connection = connection::Builder::address(address)?
                .serve_at("/StatusNotifierItem", item)?
                .serve_at("/Menu", menu)?
                .build()
                .await?;
            let name = connection.unique_name().map(ToString::to_string).unwrap_or_default();
            connection
                .call_method(
                    Some("org.kde.StatusNotifierWatcher"),
                    "/StatusNotifierWatcher",
                    Some("org.kde.StatusNotifierWatcher"),
                    "RegisterStatusNotifierItem",
                    &name,
                )
                .await?;
            zbus::Result::Ok(connection)
        })
        .unwrap();
    Sample { clicks, connection, runtime }
}

impl Sample {
    /// Shows a notification and gives the daemon's number for it.
    pub(super) fn notify(&self, summary: &str, actions: &[&str]) -> u32 {
        let hints: BTreeMap<&str, Value<'_>> = BTreeMap::from([("urgency", Value::from(1_u8))]);
        let body = ("sample", 0_u32, "", summary, "the body", actions, hints, -1_i32);
        self.runtime
            .block_on(self.connection.call_method(
                Some("org.freedesktop.Notifications"),
                "/org/freedesktop/Notifications",
                Some("org.freedesktop.Notifications"),
                "Notify",
                &body,
            ))
            .unwrap()
            .body()
            .deserialize()
            .unwrap()
    }
}
