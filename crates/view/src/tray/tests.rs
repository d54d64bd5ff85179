use expect_test::{Expect, expect};
use turnkeep_model::{
    port::{FailureClass, TurnOutcome},
    state::{Keychain, Quit},
};

use super::*;
use crate::{
    sample::{Sample, failure, message},
    snapshot::snapshot,
};

fn draw(entries: &[MenuEntry], depth: usize, out: &mut String) {
    for entry in entries {
        let indent = "    ".repeat(depth);
        match entry {
            MenuEntry::Separator => out.push_str(&format!("{indent}----\n")),
            MenuEntry::Item { label, action, checked } => {
                let mark = checked.map_or("", |checked| if checked { "[x] " } else { "[ ] " });
                let action = action.as_ref().map_or("(text)".to_owned(), |action| format!("=> {action:?}"));
                out.push_str(&format!("{indent}{mark}{label} {action}\n"));
            }
            MenuEntry::Submenu { label, entries } => {
                out.push_str(&format!("{indent}{label} >\n"));
                draw(entries, depth + 1, out);
            }
        }
    }
}

fn check(sample: &Sample, wanted: Expect) {
    let tray = tray(&snapshot(&sample.facts()));
    let mut out = format!("{:?} | {}\n", tray.icon, tray.tooltip);
    draw(&tray.menu, 0, &mut out);
    wanted.assert_eq(&out);
}

/// Picture and words alone.
fn state_of(sample: &Sample) -> (TrayIcon, String) {
    let tray = tray(&snapshot(&sample.facts()));
    (tray.icon, tray.tooltip)
}

#[test]
fn everything_at_once_in_the_menu() {
    let mut sample = Sample::new();
    sample.account(2, "private", "m.keller@posteo.example");
    sample.running(1, "Round invoice totals per tax line");
    sample.asks_command(1, "pnpm test:db --reset");
    sample.running(2, "Migrate the CI cache");
    sample.asks_command(2, "a long one\nof several\nlines that\ndo not fit");
    sample.running(3, "Port the parser to nom 8");
    sample.ended(4, "Add dark map tiles", TurnOutcome::Completed);
    sample.ended(5, "Find the flaky login test", TurnOutcome::Failed(failure(FailureClass::Network, "x")));
    sample.session(6, "Never listed");
    check(
        &sample,
        expect![[r#"
            NeedsYou(2) | 2 need you, 1 running
            Open Turnkeep => Open
            2 need you, 1 running (text)
            ----
            Needs you: Round invoice totals per tax line >
                pnpm test:db --reset (text)
                Allow once => Answer { approval: "1", kind: Allow }
                Deny => Answer { approval: "1", kind: Deny }
                Open => Show(Session { session: "1" })
            Needs you: Migrate the CI cache => Show(Session { session: "2" })
            Running: Port the parser to nom 8 => Show(Session { session: "3" })
            Failed: Find the flaky login test => Show(Session { session: "5" })
            Finished: Add dark map tiles => Show(Session { session: "4" })
            ----
            Codex: work (maria@northwind.dev) >
                [x] work (maria@northwind.dev) => UseAccount { account: "1" }
                [ ] private (m.keller@posteo.example) => UseAccount { account: "2" }
                ----
                Open => Show(Settings { page: "accounts" })
            ----
            [ ] Mute notifications => Mute { muted: true }
            [ ] Mute for an hour => MuteForAnHour { muted: true }
            ----
            Quit when 3 turns end => Quit
        "#]],
    );
}

#[test]
fn nothing_at_all() {
    check(
        &Sample::new(),
        expect![[r#"
            Idle | Nothing is running
            Open Turnkeep => Open
            Nothing is running (text)
            ----
            Codex: work (maria@northwind.dev) => Show(Settings { page: "accounts" })
            ----
            [ ] Mute notifications => Mute { muted: true }
            [ ] Mute for an hour => MuteForAnHour { muted: true }
            ----
            Quit => Quit
        "#]],
    );
}

#[test]
fn signed_out_with_a_waiting_message() {
    let mut sample = Sample::new();
    sample.session(1, "One").queue.push(message("m", "x"));
    sample.sign_out();
    check(
        &sample,
        expect![[r#"
            SignedOut | Signed out of Codex: 1 message waits
            Open Turnkeep => Open
            Signed out of Codex: 1 message waits (text)
            ----
            Codex: signed out => Show(SignIn { provider: "codex" })
            ----
            [ ] Mute notifications => Mute { muted: true }
            [ ] Mute for an hour => MuteForAnHour { muted: true }
            ----
            Quit => Quit
        "#]],
    );
}

#[test]
fn what_is_built_in_says_nothing_of_who_is_signed_in_until_it_asks_for_it() {
    let mut sample = Sample::new();
    sample.built_in(7);
    sample.sign_out();
    assert_eq!(state_of(&sample), (TrayIcon::SignedOut, "Signed out of Codex".into()));
    let names = |sample: &Sample| {
        let providers = snapshot(&sample.facts()).providers;
        providers.into_iter().filter(|provider| provider.needs_account).map(|provider| provider.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&sample), ["Codex"]);
    sample.state.accounts.get_mut(&turnkeep_model::AccountId(7)).unwrap().credential = None;
    assert_eq!(names(&sample), ["Codex", "Own"]);
}

#[test]
fn quitting_with_a_running_turn() {
    let mut sample = Sample::new();
    sample.running(1, "One");
    sample.state.quit = Some(Quit { since: 1, deadline: None, forced: false });
    check(
        &sample,
        expect![[r#"
            Quitting | Quitting when 1 turn ends
            Open Turnkeep => Open
            Quitting when 1 turn ends (text)
            ----
            Running: One => Show(Session { session: "1" })
            ----
            Codex: work (maria@northwind.dev) => Show(Settings { page: "accounts" })
            ----
            [ ] Mute notifications => Mute { muted: true }
            [ ] Mute for an hour => MuteForAnHour { muted: true }
            ----
            Do not quit => CancelQuit
            Interrupt 1 turn and quit => Quit
        "#]],
    );
}

#[test]
fn the_most_urgent_state_wins() {
    let mut sample = Sample::new();
    sample.sign_out();
    assert_eq!(state_of(&sample), (TrayIcon::SignedOut, "Signed out of Codex".into()));
    sample.running(1, "runs");
    assert_eq!(state_of(&sample), (TrayIcon::Running(1), "1 running, nothing needs you".into()));
    sample.running(2, "asks");
    sample.asks_command(2, "ls");
    assert_eq!(state_of(&sample), (TrayIcon::NeedsYou(1), "1 needs you, 1 running".into()));
    sample.running(3, "asks too");
    sample.asks_command(3, "ls");
    assert_eq!(state_of(&sample), (TrayIcon::NeedsYou(2), "2 need you, 1 running".into()));
    sample.session(4, "stuck").open_failure = Some(failure(FailureClass::StartFailed, "x"));
    assert_eq!(state_of(&sample), (TrayIcon::Error, "Codex keeps stopping: 1 session needs a look".into()));
    sample.state.quit = Some(Quit { since: 1, deadline: None, forced: false });
    assert_eq!(state_of(&sample), (TrayIcon::Quitting, "Quitting when 3 turns end".into()));
}

#[test]
fn a_fatal_trouble_is_an_error() {
    let sample = Sample::new();
    let mut snapshot = snapshot(&sample.facts());
    snapshot.fatal = Some("The disk is full.".into());
    assert_eq!(tray(&snapshot).icon, TrayIcon::Error);
}

#[test]
fn a_locked_keychain_is_one_click_from_unlocked() {
    let mut sample = Sample::new();
    sample.state.keychain = Keychain::Locked;
    let menu = tray(&snapshot(&sample.facts())).menu;
    assert!(menu.contains(&item("Codex: the keychain is locked", TrayAction::UnlockKeychain)), "{menu:?}");
}

#[test]
fn the_first_line_is_always_open() {
    let mut sample = Sample::new();
    for change in [
        |_: &mut Sample| (),
        Sample::sign_out,
        |sample: &mut Sample| {
            sample.state.quit = Some(Quit { since: 1, deadline: None, forced: true });
        },
    ] {
        change(&mut sample);
        let tray = tray(&snapshot(&sample.facts()));
        assert_eq!(tray.menu.first(), Some(&item("Open Turnkeep", TrayAction::Open)));
        assert!(matches!(tray.menu.last(), Some(MenuEntry::Item { action: Some(TrayAction::Quit), .. })));
    }
}

#[test]
fn a_long_list_ends_with_the_window() {
    let mut sample = Sample::new();
    for id in 0..12 {
        sample.running(id, "runs");
    }
    let menu = tray(&snapshot(&sample.facts())).menu;
    assert!(menu.contains(&item("4 more in the window", TrayAction::Show(dto::View::Sessions))));
}

#[test]
fn a_command_with_hidden_characters_cannot_be_allowed_from_the_menu() {
    let mut sample = Sample::new();
    sample.running(1, "One");
    sample.asks_command(1, "ls \u{202e}x");
    let menu = tray(&snapshot(&sample.facts())).menu;
    assert!(!menu.iter().any(|entry| matches!(entry, MenuEntry::Submenu { .. })), "{menu:?}");
}

#[test]
fn the_window_says_the_same() {
    let mut sample = Sample::new();
    assert_eq!(window_title(&snapshot(&sample.facts()), None), "Turnkeep");
    sample.running(1, "One");
    let shown = snapshot(&sample.facts());
    assert_eq!(window_title(&shown, None), "Turnkeep: 1 running, nothing needs you");
    assert_eq!(window_title(&shown, Some("1")), "Turnkeep: 1 running, nothing needs you · One");
    assert_eq!(window_title(&shown, Some("9")), "Turnkeep: 1 running, nothing needs you");
}
