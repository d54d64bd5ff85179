use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use harness::desktop::{Attributes, Button, Desktop, Key, Keyring, Notifier, Options, Service, Tray};
use harness::{process, wait};

use super::sample;

fn bus_address(desktop: &Desktop) -> &str {
    &desktop.env()["DBUS_SESSION_BUS_ADDRESS"]
}

#[test]
fn a_real_click_on_the_icon_in_the_panel_reaches_its_owner() {
    let desktop = Desktop::start(Options::default()).unwrap();
    assert_eq!(desktop.tray_icon_places().unwrap(), [], "an empty tray has no icon");

    let sample = sample::show(bus_address(&desktop), [255, 0, 255]);
    desktop.click_tray_icon(Button::Left).unwrap();
    wait::until("click", || (sample.clicks.left.load(Ordering::SeqCst) == 1).then_some(())).unwrap();

    let (x, y) = desktop.tray_icon_places().unwrap()[0];
    let picture = desktop.picture().unwrap();
    let colour = picture.at(x.try_into().unwrap(), y.try_into().unwrap());
    assert_eq!(colour, [255, 0, 255], "the icon is drawn where it is said to be");

    let other = sample::show(bus_address(&desktop), [0, 160, 0]);
    wait::until("second icon", || (desktop.tray_icon_places().ok()?.len() == 2).then_some(())).unwrap();
    drop(other);
    wait::until("one icon", || (desktop.tray_icon_places().ok()?.len() == 1).then_some(())).unwrap();
    assert_eq!(sample.clicks.left.load(Ordering::SeqCst), 1);
}

#[test]
fn an_item_is_read_and_worked_without_a_panel() {
    let options = Options { tray: Tray::Watcher, keyring: Keyring::None, notifier: Notifier::None, ..Options::default() };
    let desktop = Desktop::start(options).unwrap();
    assert_eq!(desktop.tray_items().unwrap(), []);

    let sample = sample::show(bus_address(&desktop), [1, 2, 3]);
    let item = desktop.tray_item().unwrap();
    assert_eq!(desktop.tray_text(&item, "Id").unwrap(), "sample");
    let tip = ("Sample".to_owned(), "nothing runs".to_owned());
    assert_eq!(desktop.tray_tooltip(&item).unwrap(), tip);
    let icons = desktop.tray_icons(&item).unwrap();
    assert_eq!((icons[0].width, &icons[0].argb[..4]), (22, &[255, 1, 2, 3][..]));
    let menu = desktop.tray_menu(&item).unwrap();
    let labels: Vec<&str> = menu.iter().map(|entry| entry.label.as_str()).collect();
    assert_eq!(labels, ["Open", "", "Quit"]);
    assert!(menu[1].separator && !menu[2].enabled);

    desktop.activate(&item).unwrap();
    desktop.choose(&item, "Open").unwrap();
    wait::until("menu click", || (sample.clicks.menu.load(Ordering::SeqCst) == 1).then_some(())).unwrap();
    assert_eq!(sample.clicks.left.load(Ordering::SeqCst), 1);
    assert!(desktop.choose(&item, "Quit").is_err(), "a disabled entry cannot be chosen");
    assert!(desktop.choose(&item, "Nothing").is_err());

    drop(sample);
    wait::until("empty tray", || desktop.tray_items().ok()?.is_empty().then_some(())).unwrap();
}

#[test]
fn notifications_are_read_and_their_buttons_chosen() {
    let options = Options { tray: Tray::Watcher, keyring: Keyring::None, ..Options::default() };
    let desktop = Desktop::start(options).unwrap();
    let sample = sample::show(bus_address(&desktop), [0, 0, 0]);
    assert_eq!(desktop.notifications(), []);

    let first = sample.notify("First", &["default", "Open", "snooze", "Snooze"]);
    let second = sample.notify("Second", &["yes", "Approve", "no", "Deny"]);
    let seen = desktop.wait_notification("the second", |one| one.summary == "Second").unwrap();
    assert_eq!((seen.id, seen.urgency, seen.body.as_str()), (Some(second), Some(1), "the body"));
    wait::until("two on the screen", || (desktop.displayed_count().ok()? == 2).then_some(())).unwrap();
    assert_eq!(desktop.shown_notifications().len(), 2);

    let older = desktop.wait_notification("the first", |one| one.id == Some(first)).unwrap();
    desktop.choose_action(&older, "Snooze").unwrap();
    desktop.choose_action(&seen, "Deny").unwrap();
    assert!(desktop.choose_action(&seen, "Nothing").is_err(), "there is no such button");
    let chosen: Vec<_> = desktop.notifications().into_iter().map(|one| one.chosen).collect();
    assert_eq!(chosen, [Some("snooze".to_owned()), Some("no".to_owned())]);
}

#[test]
fn the_keyring_is_seen_by_another_program() {
    let options = Options { tray: Tray::None, keyring: Keyring::Locked, notifier: Notifier::None, ..Options::default() };
    let mut desktop = Desktop::start(options).unwrap();
    assert!(desktop.keyring_locked().unwrap());
    desktop.unlock_keyring().unwrap();

    let attributes = Attributes::from([("service".to_owned(), "sample".to_owned())]);
    desktop.set_keyring_item("Sample", &attributes, b"a secret").unwrap();
    let items = desktop.keyring_items().unwrap();
    assert_eq!((items.len(), items[0].label.as_str()), (1, "Sample"));
    assert_eq!(items[0].attributes["service"], "sample");
    assert_eq!(desktop.keyring_secret(&items[0]).unwrap(), b"a secret");
    desktop.lock_keyring().unwrap();
    assert!(desktop.keyring_secret(&items[0]).is_err(), "a locked keyring tells nothing");
    desktop.unlock_keyring().unwrap();
    desktop.delete_keyring_item(&items[0]).unwrap();
    assert_eq!(desktop.keyring_items().unwrap(), []);

    desktop.end_service(Service::Keyring).unwrap();
    assert!(desktop.keyring_items().is_err(), "no Secret Service may start by itself");
    desktop.start_service(Service::Keyring).unwrap();
    desktop.keyring_items().unwrap();
}

#[test]
fn a_desktop_ends_what_was_started_in_it_and_nothing_else() {
    let options = Options { tray: Tray::None, keyring: Keyring::None, notifier: Notifier::None, ..Options::default() };
    let other = Desktop::start(options).unwrap();
    let mut bystander = other.command("sleep").arg("600").spawn().unwrap();

    let desktop = Desktop::start(options).unwrap();
    // A daemon in a session of its own, with an environment of its own, whose parent is gone.
    let script = "env -i HOME=$HOME setsid sh -c 'trap \"\" TERM HUP; echo $$ >$HOME/pid; while :; do sleep 1; done' &";
    let status = desktop.command("sh").args(["-c", script]).status().unwrap();
    assert!(status.success());
    let pid: i32 = wait::until("daemon", || fs::read_to_string(desktop.home().join("pid")).ok()?.trim().parse().ok()).unwrap();
    let daemon = process::row(pid).unwrap();
    assert!(desktop.programs().iter().any(|row| row.pid == pid), "{:?}", desktop.programs());
    let folder = desktop.folder().to_owned();

    drop(desktop);
    process::wait_gone(pid, daemon.start_ticks, Duration::ZERO).unwrap();
    assert!(process::row(pid).is_none_or(|row| row.start_ticks != daemon.start_ticks), "reaped");
    assert!(!folder.exists(), "its folder is removed");
    assert!(bystander.try_wait().unwrap().is_none(), "the other desktop's program lives");
    drop(other);
    bystander.wait().unwrap_err();
}

#[test]
fn windows_are_seen_typed_at_and_closed() {
    let options = Options { tray: Tray::None, keyring: Keyring::None, notifier: Notifier::None, ..Options::default() };
    let start = Instant::now();
    let desktop = Desktop::start(options).unwrap();
    let took = start.elapsed();
    assert!(took < Duration::from_secs(10), "a bare desktop took {took:?}");
    assert_eq!(desktop.windows().unwrap(), []);
    let none = || desktop.windows().ok()?.into_iter().next();
    assert!(wait::until_within(Duration::from_millis(50), "window", none).is_err());
    desktop.move_pointer(5, 5).unwrap();
    desktop.press(&[Key::CONTROL, Key(u32::from('q'))]).unwrap();
    let file = desktop.folder().join("screen.png");
    desktop.screenshot(&file).unwrap();
    let bytes = fs::read(file).unwrap();
    assert_eq!(&bytes[1..4], b"PNG");
}
