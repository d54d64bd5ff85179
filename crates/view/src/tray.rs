//! The tray as a pure function of the snapshot: which picture, which words, which menu.
//!
//! It never draws and never acts; each system's tray carries it out.

use crate::{display, dto, words};

/// Everything that a tray shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Tray {
    pub icon: TrayIcon,
    pub title: &'static str,
    pub tooltip: String,
    pub menu: Vec<MenuEntry>,
}

/// The most urgent state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrayIcon {
    Error,
    NeedsYou(u32),
    Running(u32),
    Idle,
    SignedOut,
    Quitting,
}

/// One line of the menu.
#[derive(Clone, Debug, PartialEq)]
pub enum MenuEntry {
    /// `action: None`: for reading only. `checked`: a switch that stands like this.
    Item {
        label: String,
        action: Option<TrayAction>,
        checked: Option<bool>,
    },
    Submenu {
        label: String,
        entries: Vec<MenuEntry>,
    },
    Separator,
}

/// What a line of the menu does.
#[derive(Clone, Debug, PartialEq)]
pub enum TrayAction {
    Open,
    Show(dto::View),
    Answer {
        approval: String,
        kind: dto::ChoiceKind,
    },
    UseAccount {
        account: String,
    },
    UnlockKeychain,
    Mute {
        muted: bool,
    },
    /// For an hour; or not any more.
    MuteForAnHour {
        muted: bool,
    },
    Quit,
    CancelQuit,
}

/// Sessions of one group that the menu lists; the window has the rest.
const LISTED: usize = 8;
const TITLE: usize = 48;

/// The tray for this snapshot.
#[must_use]
pub fn tray(snapshot: &dto::Snapshot) -> Tray {
    let counts = Counts::of(snapshot);
    let (icon, tooltip) = state(snapshot, &counts);
    let menu = menu(snapshot, &counts, &tooltip);
    Tray { icon, title: words::NAME, tooltip, menu }
}

/// The window's title: the same words, and the session that is open in it.
#[must_use]
pub fn window_title(snapshot: &dto::Snapshot, session: Option<&str>) -> String {
    let counts = Counts::of(snapshot);
    let mut title = words::NAME.to_owned();
    match state(snapshot, &counts) {
        (TrayIcon::Idle, _) => {}
        (_, words) => title = format!("{title}: {words}"),
    }
    let open = session.and_then(|id| snapshot.sessions.iter().find(|session| session.id == id));
    if let Some(name) = open.map(|session| display::one_line(&session.title, TITLE)).filter(|name| !name.is_empty()) {
        title = format!("{title} · {name}");
    }
    title
}

struct Counts {
    needs_you: usize,
    running: usize,
    /// Turns that a quit waits for.
    turns: usize,
}

impl Counts {
    fn of(snapshot: &dto::Snapshot) -> Self {
        let group = |group| snapshot.sessions.iter().filter(|session| session.group == group && !session.archived).count();
        Self {
            needs_you: group(dto::Group::NeedsYou),
            running: group(dto::Group::Running),
            turns: snapshot.sessions.iter().filter(|session| session.turn.is_some()).count(),
        }
    }
}

fn state(snapshot: &dto::Snapshot, counts: &Counts) -> (TrayIcon, String) {
    if snapshot.quit.is_some() {
        return (TrayIcon::Quitting, words::quitting(counts.turns));
    }
    if snapshot.fatal.is_some() {
        return (TrayIcon::Error, words::CANNOT_GO_ON.to_owned());
    }
    let stuck = snapshot.sessions.iter().filter(|session| session.failure.is_some() && session.group == dto::Group::NeedsYou);
    if let Some(first) = stuck.clone().next() {
        return (TrayIcon::Error, words::stopped(provider_name(snapshot, &first.provider), stuck.count()));
    }
    if counts.needs_you > 0 {
        return (TrayIcon::NeedsYou(number(counts.needs_you)), words::need_you_and_running(counts.needs_you, counts.running));
    }
    if counts.running > 0 {
        return (TrayIcon::Running(number(counts.running)), words::running(counts.running));
    }
    signed_out(snapshot).map_or((TrayIcon::Idle, words::NOTHING_RUNNING.to_owned()), |text| (TrayIcon::SignedOut, text))
}

/// Messages wait for a sign-in, or nothing that is installed is signed in.
fn signed_out(snapshot: &dto::Snapshot) -> Option<String> {
    let needs_sign_in = |session: &&dto::Session| session.status == dto::SessionStatus::SignedOut && !session.archived;
    let waiting: Vec<&dto::Session> = snapshot.sessions.iter().filter(needs_sign_in).collect();
    let out: Vec<&dto::Provider> = if waiting.is_empty() {
        let installed = || snapshot.providers.iter().filter(|provider| is_installed(provider));
        if installed().next().is_none() || installed().any(is_signed_in) {
            return None;
        }
        installed().collect()
    } else {
        snapshot.providers.iter().filter(|provider| waiting.iter().any(|session| session.provider == provider.id)).collect()
    };
    let names: Vec<&str> = out.iter().map(|provider| provider.name.as_str()).collect();
    let ever = out.iter().any(|provider| provider.accounts.iter().any(|account| account.known));
    Some(words::signed_out_of(&words::list(&names), ever, waiting.iter().map(|session| session.queue.len()).sum()))
}

/// What needs no account says nothing about who is signed in.
fn is_installed(provider: &dto::Provider) -> bool {
    provider.needs_account && matches!(provider.installed, dto::Installed::Found { .. })
}

fn current(provider: &dto::Provider) -> Option<&dto::Account> {
    provider.accounts.iter().find(|account| account.current)
}

fn is_signed_in(provider: &dto::Provider) -> bool {
    current(provider).is_some_and(|account| account.state == dto::AccountState::SignedIn)
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn provider_name<'a>(snapshot: &'a dto::Snapshot, id: &'a str) -> &'a str {
    snapshot.providers.iter().find(|provider| provider.id == id).map_or(id, |provider| &provider.name)
}

// ---- the menu ------------------------------------------------------------------------------

fn item(label: impl Into<String>, action: TrayAction) -> MenuEntry {
    MenuEntry::Item { label: label.into(), action: Some(action), checked: None }
}

fn text(label: impl Into<String>) -> MenuEntry {
    MenuEntry::Item { label: label.into(), action: None, checked: None }
}

fn menu(snapshot: &dto::Snapshot, counts: &Counts, state: &str) -> Vec<MenuEntry> {
    let mut menu = vec![item(words::OPEN_APPLICATION, TrayAction::Open), text(state)];
    part(&mut menu, sessions(snapshot));
    part(&mut menu, accounts(snapshot));
    let muted = snapshot.settings.muted;
    let mute =
        MenuEntry::Item { label: words::MUTE.to_owned(), action: Some(TrayAction::Mute { muted: !muted }), checked: Some(muted) };
    let until = snapshot.settings.muted_until.filter(|until| *until > snapshot.now);
    let hour = MenuEntry::Item {
        label: words::MUTE_FOR_AN_HOUR.to_owned(),
        action: Some(TrayAction::MuteForAnHour { muted: until.is_none() }),
        checked: Some(until.is_some()),
    };
    part(&mut menu, if muted { vec![mute] } else { vec![mute, hour] });
    let quit = if snapshot.quit.is_some() { words::quit_now(counts.turns) } else { words::quit(counts.turns) };
    let mut end = vec![item(quit, TrayAction::Quit)];
    if snapshot.quit.as_ref().is_some_and(|quit| !quit.forced) {
        end.insert(0, item(words::CANCEL_QUIT, TrayAction::CancelQuit));
    }
    part(&mut menu, end);
    menu
}

fn part(menu: &mut Vec<MenuEntry>, entries: Vec<MenuEntry>) {
    if !entries.is_empty() {
        menu.push(MenuEntry::Separator);
        menu.extend(entries);
    }
}

fn sessions(snapshot: &dto::Snapshot) -> Vec<MenuEntry> {
    let mut entries = Vec::new();
    for group in [dto::Group::NeedsYou, dto::Group::Running, dto::Group::Finished] {
        let of_group: Vec<_> = snapshot.sessions.iter().filter(|session| session.group == group && !session.archived).collect();
        entries.extend(of_group.iter().take(LISTED).map(|session| session_entry(snapshot, session)));
        if of_group.len() > LISTED {
            entries.push(item(words::menu_more(of_group.len() - LISTED), TrayAction::Show(dto::View::Sessions)));
        }
    }
    entries
}

fn session_entry(snapshot: &dto::Snapshot, session: &dto::Session) -> MenuEntry {
    let title = display::one_line(&session.title, TITLE);
    let open = TrayAction::Show(dto::View::Session { session: session.id.clone() });
    match session.group {
        dto::Group::NeedsYou => match answers(snapshot, session) {
            Some(mut entries) => {
                entries.push(item(words::OPEN, open));
                MenuEntry::Submenu { label: words::menu_needs_you(&title), entries }
            }
            None => item(words::menu_needs_you(&title), open),
        },
        dto::Group::Running => item(words::menu_running(&title), open),
        dto::Group::Finished if session.status == dto::SessionStatus::Failed => item(words::menu_failed(&title), open),
        dto::Group::Finished | dto::Group::Idle => item(words::menu_finished(&title), open),
    }
}

/// The oldest open question of a session, if a menu can show all of what is decided upon.
fn answers(snapshot: &dto::Snapshot, session: &dto::Session) -> Option<Vec<MenuEntry>> {
    let mut open = snapshot.approvals.iter().filter(|a| a.session == session.id && a.state == dto::ApprovalState::Pending);
    let approval = open.next()?;
    let dto::Ask::Command { command, display, .. } = &approval.body else { return None };
    if !crate::notification::fits(command) {
        return None;
    }
    let answer = |kind: dto::ChoiceKind, label: &str| {
        let offered = approval.choices.iter().any(|choice| choice.kind == kind);
        offered.then(|| item(label, TrayAction::Answer { approval: approval.id.clone(), kind }))
    };
    let mut entries: Vec<_> = display.lines().map(text).collect();
    entries.extend(answer(dto::ChoiceKind::Allow, words::ALLOW_ONCE));
    entries.extend(answer(dto::ChoiceKind::Deny, words::DENY));
    Some(entries)
}

fn accounts(snapshot: &dto::Snapshot) -> Vec<MenuEntry> {
    snapshot.providers.iter().filter(|provider| is_installed(provider)).map(|provider| account(snapshot, provider)).collect()
}

fn account(snapshot: &dto::Snapshot, provider: &dto::Provider) -> MenuEntry {
    let name = &provider.name;
    let sign_in = || TrayAction::Show(dto::View::SignIn { provider: provider.id.clone() });
    let look = || TrayAction::Show(dto::View::Settings { page: "accounts".to_owned() });
    let current = current(provider);
    let (words, action) = match current.map(|account| &account.state) {
        None => (words::NOT_SIGNED_IN.to_owned(), sign_in()),
        Some(dto::AccountState::SignedOut) if current.is_some_and(|account| !account.known) => {
            (words::NOT_SIGNED_IN.to_owned(), sign_in())
        }
        Some(dto::AccountState::SignedOut | dto::AccountState::ItemMissing) => (words::SIGNED_OUT.to_owned(), sign_in()),
        Some(dto::AccountState::SigningIn) => (words::SIGNING_IN.to_owned(), sign_in()),
        Some(dto::AccountState::Rejected { .. }) => (words::REJECTED.to_owned(), sign_in()),
        Some(dto::AccountState::KeychainLocked) => (words::KEYCHAIN_LOCKED.to_owned(), TrayAction::UnlockKeychain),
        Some(dto::AccountState::KeychainAbsent) => (words::KEYCHAIN_ABSENT.to_owned(), look()),
        Some(dto::AccountState::Troubled { .. }) => (words::NOT_WORKING.to_owned(), look()),
        Some(dto::AccountState::SignedIn) => (current.map(account_words).unwrap_or_default(), look()),
    };
    let label = words::menu_account(name, &words);
    let usable = || provider.accounts.iter().filter(|account| account.state == dto::AccountState::SignedIn);
    let switchable =
        usable().count() > 1 || (usable().count() == 1 && current.is_none_or(|account| usable().all(|u| u.id != account.id)));
    if !switchable || snapshot.quit.is_some() {
        return item(label, action);
    }
    let mut entries: Vec<_> = usable()
        .map(|account| MenuEntry::Item {
            label: account_words(account),
            action: Some(TrayAction::UseAccount { account: account.id.clone() }),
            checked: Some(account.current),
        })
        .collect();
    entries.push(MenuEntry::Separator);
    let verb = if action == TrayAction::UnlockKeychain {
        words::UNLOCK_KEYCHAIN
    } else if action == sign_in() {
        words::SIGN_IN
    } else {
        words::OPEN
    };
    entries.push(item(verb, action));
    MenuEntry::Submenu { label, entries }
}

/// The account's own name, and who it is.
fn account_words(account: &dto::Account) -> String {
    match &account.identity {
        Some(identity) if *identity != account.label => display::one_line(&format!("{} ({identity})", account.label), TITLE),
        _ => display::one_line(&account.label, TITLE),
    }
}

#[cfg(test)]
mod tests;
