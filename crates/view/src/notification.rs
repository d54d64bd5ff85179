//! What a desktop notification says and offers, as a pure function of the state.
//!
//! Plain text: whoever shows it must escape it. What is decided upon is shown whole or not offered to be decided.

use turnkeep_model::{
    AccountId, ApprovalId, ProviderId, SessionId, TurnId,
    port::{AskBody, Choice},
    state::{self, ApprovalState, NotificationKind},
};

use crate::{
    display,
    snapshot::{Facts, account_label},
    words,
};

/// A notification as it is to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The fact that it tells; the same key replaces what was shown before.
    pub key: String,
    pub title: String,
    /// Lines of plain text.
    pub body: String,
    /// In the order of their buttons.
    pub actions: Vec<Action>,
    /// What a click on the text does.
    pub click: Action,
    pub urgency: Urgency,
    /// For sound and filter rules of the desktop.
    pub category: &'static str,
    /// Stays until it is answered here or elsewhere.
    pub stays: bool,
    pub session: Option<SessionId>,
}

/// How loud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    Normal,
    /// Somebody waits for the person.
    Critical,
}

/// What a button does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    OpenSession(SessionId),
    OpenWindow,
    Allow(ApprovalId),
    Deny(ApprovalId),
    SignIn(ProviderId),
    MarkRead(SessionId),
    TryAgain(SessionId),
}

impl Action {
    /// A name for the wire, unique within its notification.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::OpenSession(_) | Self::OpenWindow => "open",
            Self::Allow(_) => "allow",
            Self::Deny(_) => "deny",
            Self::SignIn(_) => "sign-in",
            Self::MarkRead(_) => "mark-read",
            Self::TryAgain(_) => "try-again",
        }
    }

    /// On the button.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::OpenSession(_) | Self::OpenWindow => words::OPEN,
            Self::Allow(_) => words::ALLOW_ONCE,
            Self::Deny(_) => words::DENY,
            Self::SignIn(_) => words::SIGN_IN,
            Self::MarkRead(_) => words::MARK_READ,
            Self::TryAgain(_) => words::TRY_AGAIN,
        }
    }
}

/// What a notification or a menu can show of a command without cutting it: lines, and characters in all.
const COMMAND_LINES: usize = 3;
const COMMAND_CHARACTERS: usize = 160;
const TITLE: usize = 60;
const BODY: usize = 200;

/// Whether a command is short and plain enough to be decided upon outside the window.
#[must_use]
pub fn fits(command: &str) -> bool {
    let shown = display::visible(command);
    !display::has_hidden(command) && shown.chars().count() <= COMMAND_CHARACTERS && shown.lines().count() <= COMMAND_LINES
}

/// The person asked for no banner of this kind, or for none now. `minute`: minutes after midnight, local time.
#[must_use]
pub fn is_silenced(kind: &NotificationKind, settings: &state::AppSettings, minute: u16) -> bool {
    let wanted = match kind {
        NotificationKind::TurnCompleted { .. } => settings.notify_completed,
        NotificationKind::TurnFailed { .. }
        | NotificationKind::TurnLost { .. }
        | NotificationKind::OutcomeUnknown { .. }
        | NotificationKind::TurnQuiet { .. }
        | NotificationKind::RuntimeFailed { .. } => settings.notify_failures,
        NotificationKind::ApprovalNeeded { .. } => settings.notify_approvals,
        NotificationKind::SignedOut { .. } => settings.notify_sign_outs,
    };
    let quiet = settings
        .quiet_hours
        .is_some_and(|(from, to)| if from <= to { (from..to).contains(&minute) } else { minute >= from || minute < to });
    !wanted || settings.muted || quiet
}

/// What to show for a raised notification; `None` where its subject is gone or decided.
#[must_use]
pub fn notification(facts: &Facts<'_>, key: &str) -> Option<Shown> {
    let entry = facts.state.notifications.get(key)?;
    let mut shown = match &entry.kind {
        NotificationKind::TurnCompleted { turn } => completed(facts, entry.session?, *turn)?,
        NotificationKind::TurnFailed { failure, .. } => failed(facts, entry.session?, &failure.message)?,
        NotificationKind::TurnLost { .. } => failed(facts, entry.session?, words::LOST_TURN)?,
        NotificationKind::OutcomeUnknown { .. } => unknown(facts, entry.session?)?,
        NotificationKind::TurnQuiet { turn } => quiet(facts, entry.session?, *turn)?,
        NotificationKind::ApprovalNeeded { approval } => asked(facts, *approval)?,
        NotificationKind::SignedOut { provider, account } => signed_out(facts, provider, *account),
        NotificationKind::RuntimeFailed { provider, failure } => stopped(facts, provider, entry.session, &failure.message),
    };
    key.clone_into(&mut shown.key);
    Some(shown)
}

/// Many completions at once, as one. Shown under the key of the last.
#[must_use]
pub fn several(key: &str, sessions: &[String]) -> Shown {
    let mut body = sessions.iter().take(3).map(|title| display::one_line(title, TITLE)).collect::<Vec<_>>().join("\n");
    if sessions.len() > 3 {
        body.push_str("\n…");
    }
    Shown {
        key: key.to_owned(),
        title: words::several_finished(sessions.len()),
        body,
        actions: vec![Action::OpenWindow],
        click: Action::OpenWindow,
        urgency: Urgency::Normal,
        category: "x-turnkeep.completed",
        stays: false,
        session: None,
    }
}

fn about(facts: &Facts<'_>, id: SessionId, title: String, lines: &[String], actions: Vec<Action>) -> Option<Shown> {
    facts.state.sessions.contains_key(&id).then(|| Shown {
        key: String::new(),
        title,
        body: lines.iter().filter(|line| !line.is_empty()).cloned().collect::<Vec<_>>().join("\n"),
        actions,
        click: Action::OpenSession(id),
        urgency: Urgency::Normal,
        category: "x-turnkeep.completed",
        stays: false,
        session: Some(id),
    })
}

fn title(session: &state::Session) -> String {
    display::one_line(&session.title, TITLE)
}

fn completed(facts: &Facts<'_>, id: SessionId, turn: TurnId) -> Option<Shown> {
    let session = facts.state.sessions.get(&id)?;
    let took = session.last_turn.as_ref().filter(|ended| ended.turn == turn);
    let mut place = vec![facts.provider_name(&session.provider).to_owned(), facts.folder(&session.folder)];
    place.extend(took.map(|ended| words::duration(ended.ended_at.saturating_sub(ended.started_at))));
    let lines = [display::one_line(&session.preview, BODY), place.join(" · ")];
    let actions = vec![Action::OpenSession(id), Action::MarkRead(id)];
    about(facts, id, words::finished(&title(session)), &lines, actions)
}

fn place(facts: &Facts<'_>, session: &state::Session) -> String {
    format!("{} · {}", facts.provider_name(&session.provider), facts.folder(&session.folder))
}

fn failed(facts: &Facts<'_>, id: SessionId, message: &str) -> Option<Shown> {
    let session = facts.state.sessions.get(&id)?;
    let lines = [display::one_line(message, BODY), place(facts, session)];
    let shown = about(facts, id, words::failed(&title(session)), &lines, vec![Action::OpenSession(id)])?;
    Some(Shown { category: "x-turnkeep.failed", ..shown })
}

fn unknown(facts: &Facts<'_>, id: SessionId) -> Option<Shown> {
    let session = facts.state.sessions.get(&id)?;
    let lines = [words::unknown_body(facts.provider_name(&session.provider)), place(facts, session)];
    let shown = about(facts, id, words::unknown(&title(session)), &lines, vec![Action::OpenSession(id)])?;
    Some(Shown { category: "x-turnkeep.failed", ..shown })
}

fn quiet(facts: &Facts<'_>, id: SessionId, turn: TurnId) -> Option<Shown> {
    let session = facts.state.sessions.get(&id)?;
    let quiet = facts.state.turns.get(&turn)?.quiet.as_ref()?;
    let provider = facts.provider_name(&session.provider);
    let what = match &quiet.command {
        Some(command) => words::quiet_in_command(&display::one_line(&display::visible(command), BODY)),
        None => words::quiet_body(provider, facts.state.settings.quiet_after),
    };
    let lines = [what, place(facts, session)];
    let shown = about(facts, id, words::quiet(&title(session)), &lines, vec![Action::OpenSession(id)])?;
    Some(Shown { category: "x-turnkeep.quiet", ..shown })
}

fn asked(facts: &Facts<'_>, id: ApprovalId) -> Option<Shown> {
    let approval = facts.state.approvals.get(&id).filter(|approval| approval.state == ApprovalState::Pending)?;
    let session = facts.state.sessions.get(&approval.session)?;
    let provider = facts.provider_name(&session.provider);
    let name = title(session);
    let mut meta = format!("{name} · {}", facts.folder(&session.folder));
    // A decision is offered only where all of what it is about stands in the text.
    let (title, what, whole) = match &approval.ask.body {
        AskBody::Command { command, cwd, may_run_unsandboxed } => {
            if *cwd != session.folder {
                meta = format!("{name} · {}", facts.folder(cwd));
            }
            if *may_run_unsandboxed {
                meta = format!("{meta} · {}", words::OUTSIDE_SANDBOX);
            }
            let lines = command.lines().count();
            if fits(command) {
                (words::provider_asks_command(provider), display::visible(command), true)
            } else if display::has_hidden(command) {
                (words::provider_asks_hidden_command(provider), words::read_before_answer(lines), false)
            } else {
                (words::provider_asks_long_command(provider), words::read_before_answer(lines), false)
            }
        }
        AskBody::FileChange { changes, .. } => {
            let paths = changes.iter().take(3).map(|change| display::one_line(&facts.folder(&change.path), TITLE));
            (words::provider_asks_change(provider, changes.len()), paths.collect::<Vec<_>>().join("\n"), false)
        }
        AskBody::Permissions { network, read, write } => {
            let mut wanted: Vec<String> = network.then(|| words::NETWORK.to_owned()).into_iter().collect();
            wanted.extend(read.iter().map(|path| words::may_read(&display::visible(path))));
            wanted.extend(write.iter().map(|path| words::may_write(&display::visible(path))));
            let whole = wanted.len() <= COMMAND_LINES && wanted.iter().map(|line| line.chars().count()).sum::<usize>() <= BODY;
            wanted.truncate(COMMAND_LINES);
            (words::provider_asks_permissions(provider), wanted.join("\n"), whole)
        }
        AskBody::Questions { questions } => {
            let text = questions.first().map_or("", |question| &question.text);
            (words::provider_asks_question(provider), display::one_line(text, BODY), false)
        }
        AskBody::Form { message, .. } => (words::provider_asks_question(provider), display::one_line(message, BODY), false),
    };
    let offered = |choice: &Choice| approval.ask.choices.contains(choice);
    let mut actions = Vec::new();
    if whole && offered(&Choice::Allow) {
        actions.push(Action::Allow(id));
    }
    if offered(&Choice::Deny) {
        actions.push(Action::Deny(id));
    }
    actions.insert(if whole { actions.len() } else { 0 }, Action::OpenSession(approval.session));
    let shown = about(facts, approval.session, title, &[what, meta], actions)?;
    Some(Shown { urgency: Urgency::Critical, category: "x-turnkeep.approval", stays: true, ..shown })
}

fn signed_out(facts: &Facts<'_>, provider: &ProviderId, account: AccountId) -> Shown {
    let finishing = facts.finishing(provider).filter(|turn| turn.account == account).count();
    let theirs = facts.state.sessions.values().filter(|session| session.provider == *provider);
    let waiting = theirs.map(|session| session.queue.len()).sum();
    let name = facts.state.accounts.get(&account).map(account_label).unwrap_or_default();
    let lines = [words::signed_out_body(finishing, waiting), display::one_line(&name, TITLE)];
    Shown {
        key: String::new(),
        title: words::signed_out_title(facts.provider_name(provider)),
        body: lines.iter().filter(|line| !line.is_empty()).cloned().collect::<Vec<_>>().join("\n"),
        actions: vec![Action::SignIn(provider.clone()), Action::OpenWindow],
        click: Action::SignIn(provider.clone()),
        urgency: Urgency::Critical,
        category: "x-turnkeep.account",
        stays: false,
        session: None,
    }
}

fn stopped(facts: &Facts<'_>, provider: &ProviderId, session: Option<SessionId>, why: &str) -> Shown {
    let found = session.and_then(|id| Some((id, facts.state.sessions.get(&id)?)));
    let folder = found.map(|(_, session)| facts.folder(&session.folder));
    let lines = [display::one_line(why, BODY), found.map(|(_, session)| title(session)).unwrap_or_default()];
    let open = found.map_or(Action::OpenWindow, |(id, _)| Action::OpenSession(id));
    let mut actions: Vec<Action> = found.map(|(id, _)| Action::TryAgain(id)).into_iter().collect();
    actions.push(open.clone());
    Shown {
        key: String::new(),
        title: words::keeps_stopping(facts.provider_name(provider), folder.as_deref()),
        body: lines.iter().filter(|line| !line.is_empty()).cloned().collect::<Vec<_>>().join("\n"),
        actions,
        click: open,
        urgency: Urgency::Normal,
        category: "x-turnkeep.failed",
        stays: false,
        session,
    }
}

#[cfg(test)]
mod tests;
