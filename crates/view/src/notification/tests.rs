use expect_test::{Expect, expect};
use turnkeep_model::{
    port::{FailureClass, FileChange, FileChangeKind, Question, TurnOutcome},
    state::{AppSettings, Notification, NotificationState},
};

use super::*;
use crate::sample::{Sample, WALL, failure, message};

fn raise(sample: &mut Sample, session: Option<u64>, kind: NotificationKind) -> Option<Shown> {
    let entry = Notification { kind, session: session.map(SessionId), state: NotificationState::Raised, at: WALL };
    sample.state.notifications.insert("k".to_owned(), entry);
    notification(&sample.facts(), "k")
}

fn check(shown: Option<Shown>, wanted: Expect) {
    let text = shown.map_or("none".to_owned(), |shown| {
        let buttons = shown.actions.iter().map(|action| format!("[{}]", action.label())).collect::<Vec<_>>().join(" ");
        format!(
            "{}\n{}\n{buttons}\nclick: {:?}, {:?}, {}{}",
            shown.title,
            shown.body,
            shown.click,
            shown.urgency,
            shown.category,
            if shown.stays { ", stays" } else { "" }
        )
    });
    wanted.assert_eq(&text);
}

#[test]
fn a_completed_turn() {
    let mut sample = Sample::new();
    sample.ended(1, "Add dark map tiles", TurnOutcome::Completed).preview = "All 14 checks pass. Two files changed.".into();
    check(
        raise(&mut sample, Some(1), NotificationKind::TurnCompleted { turn: TurnId(1) }),
        expect![[r#"
        Finished: Add dark map tiles
        All 14 checks pass. Two files changed.
        Codex · ~/src/billing · 18 min
        [Open] [Mark as read]
        click: OpenSession(SessionId(1)), Normal, x-turnkeep.completed"#]],
    );
}

#[test]
fn a_failed_turn() {
    let mut sample = Sample::new();
    let why =
        failure(FailureClass::Network, "Codex stopped before the turn was complete. The files it changed stay as they are.");
    sample.ended(1, "Find the flaky login test", TurnOutcome::Failed(why.clone()));
    check(
        raise(&mut sample, Some(1), NotificationKind::TurnFailed { turn: TurnId(1), failure: why }),
        expect![[r#"
        Failed: Find the flaky login test
        Codex stopped before the turn was complete. The files it changed stay as they are.
        Codex · ~/src/billing
        [Open]
        click: OpenSession(SessionId(1)), Normal, x-turnkeep.failed"#]],
    );
}

#[test]
fn an_unknown_outcome() {
    let mut sample = Sample::new();
    sample.ended(1, "Index the archive", TurnOutcome::Unknown);
    check(
        raise(&mut sample, Some(1), NotificationKind::OutcomeUnknown { turn: TurnId(1) }),
        expect![[r#"
        Outcome unknown: Index the archive
        Nobody can say if Codex got the last message. It is not sent again until you say so.
        Codex · ~/src/billing
        [Open]
        click: OpenSession(SessionId(1)), Normal, x-turnkeep.failed"#]],
    );
}

fn asked(change: impl FnOnce(&mut Sample)) -> Option<Shown> {
    let mut sample = Sample::new();
    sample.running(1, "Round invoice totals per tax line");
    change(&mut sample);
    raise(&mut sample, Some(1), NotificationKind::ApprovalNeeded { approval: ApprovalId(1) })
}

#[test]
fn a_command_that_fits_is_shown_exactly_and_can_be_allowed() {
    check(
        asked(|sample| {
            sample.asks_command(1, "pnpm test:db --reset --url postgres://localhost:5433/billing_test");
        }),
        expect![[r#"
            Codex asks to run a command
            pnpm test:db --reset --url postgres://localhost:5433/billing_test
            Round invoice totals per tax line · ~/src/billing
            [Allow once] [Deny] [Open]
            click: OpenSession(SessionId(1)), Critical, x-turnkeep.approval, stays"#]],
    );
}

#[test]
fn a_long_command_cannot_be_allowed_unread() {
    check(
        asked(|sample| {
            sample.asks_command(1, &"echo\n".repeat(14));
        }),
        expect![[r#"
        Codex asks to run a long command
        Open it to read all 14 lines before you answer.
        Round invoice totals per tax line · ~/src/billing
        [Open] [Deny]
        click: OpenSession(SessionId(1)), Critical, x-turnkeep.approval, stays"#]],
    );
    check(
        asked(|sample| {
            sample.asks_command(1, &"x".repeat(161));
        }),
        expect![[r#"
        Codex asks to run a long command
        Open it to read all of it before you answer.
        Round invoice totals per tax line · ~/src/billing
        [Open] [Deny]
        click: OpenSession(SessionId(1)), Critical, x-turnkeep.approval, stays"#]],
    );
}

#[test]
fn hidden_characters_are_told_and_not_shown_as_nothing() {
    check(
        asked(|sample| {
            sample.asks_command(1, "ls \u{202e}x");
        }),
        expect![[r#"
        Codex asks to run a command with hidden characters
        Open it to read all of it before you answer.
        Round invoice totals per tax line · ~/src/billing
        [Open] [Deny]
        click: OpenSession(SessionId(1)), Critical, x-turnkeep.approval, stays"#]],
    );
}

#[test]
fn a_command_outside_the_sandbox_in_another_folder_says_so() {
    check(
        asked(|sample| {
            let body = AskBody::Command { command: "ls".into(), cwd: "/home/maria/other".into(), may_run_unsandboxed: true };
            sample.asks(1, body);
        }),
        expect![[r#"
            Codex asks to run a command
            ls
            Round invoice totals per tax line · ~/other · outside the sandbox
            [Allow once] [Deny] [Open]
            click: OpenSession(SessionId(1)), Critical, x-turnkeep.approval, stays"#]],
    );
}

#[test]
fn other_questions() {
    let change = |path: &str| FileChange { path: path.into(), kind: FileChangeKind::Added, diff: String::new() };
    check(
        asked(|sample| {
            let changes = vec![change("/home/maria/src/billing/a.ts"), change("b.ts")];
            sample.asks(1, AskBody::FileChange { changes, grant_root: None });
        }),
        expect![[r#"
            Codex asks to change 2 files
            ~/src/billing/a.ts
            b.ts
            Round invoice totals per tax line · ~/src/billing
            [Open] [Deny]
            click: OpenSession(SessionId(1)), Critical, x-turnkeep.approval, stays"#]],
    );
    check(
        asked(|sample| {
            sample.asks(1, AskBody::Permissions { network: true, read: vec![], write: vec!["/etc".into()] });
        }),
        expect![[r#"
            Codex asks for more permissions
            Use the network
            Write /etc
            Round invoice totals per tax line · ~/src/billing
            [Allow once] [Deny] [Open]
            click: OpenSession(SessionId(1)), Critical, x-turnkeep.approval, stays"#]],
    );
    let question = Question {
        id: "q".into(),
        header: "h".into(),
        text: "Keep the old bucket until Friday?".into(),
        options: vec![],
        free_text: true,
        secret: false,
    };
    check(
        asked(|sample| {
            sample.asks(1, AskBody::Questions { questions: vec![question] });
        }),
        expect![[r#"
        Codex asks a question
        Keep the old bucket until Friday?
        Round invoice totals per tax line · ~/src/billing
        [Open] [Deny]
        click: OpenSession(SessionId(1)), Critical, x-turnkeep.approval, stays"#]],
    );
}

#[test]
fn an_answered_question_is_not_shown() {
    check(asked(|sample| sample.asks_command(1, "ls").state = ApprovalState::Moot), expect!["none"]);
    check(asked(|_| ()), expect!["none"]);
}

#[test]
fn a_sign_out() {
    let mut sample = Sample::new();
    sample.running(1, "One");
    sample.running(2, "Two");
    sample.session(3, "Three").queue.push(message("m", "x"));
    sample.sign_out();
    let kind = NotificationKind::SignedOut { provider: ProviderId::new("codex"), account: AccountId(1) };
    check(
        raise(&mut sample, None, kind),
        expect![[r#"
        Signed out of Codex
        2 turns finish on the old account. 1 message waits until you sign in.
        work
        [Sign in] [Open]
        click: SignIn(ProviderId("codex")), Critical, x-turnkeep.account"#]],
    );
}

#[test]
fn a_process_that_keeps_stopping() {
    let mut sample = Sample::new();
    sample.session(1, "Port the parser to nom 8");
    let why = failure(FailureClass::StartFailed, "Started 3 times in 60 s, then given up: port 4096 is in use.");
    let kind = NotificationKind::RuntimeFailed { provider: ProviderId::new("codex"), failure: why };
    check(
        raise(&mut sample, Some(1), kind.clone()),
        expect![[r#"
        Codex keeps stopping in ~/src/billing
        Started 3 times in 60 s, then given up: port 4096 is in use.
        Port the parser to nom 8
        [Try again] [Open]
        click: OpenSession(SessionId(1)), Normal, x-turnkeep.failed"#]],
    );
    check(
        raise(&mut sample, None, kind),
        expect![[r#"
        Codex keeps stopping
        Started 3 times in 60 s, then given up: port 4096 is in use.
        [Open]
        click: OpenWindow, Normal, x-turnkeep.failed"#]],
    );
}

#[test]
fn many_completions_are_one() {
    let titles: Vec<String> = ["One", "Two", "Three", "Four"].map(str::to_owned).to_vec();
    check(
        Some(several("k", &titles)),
        expect![[r#"
        4 sessions finished
        One
        Two
        Three
        …
        [Open]
        click: OpenWindow, Normal, x-turnkeep.completed"#]],
    );
}

#[test]
fn mute_quiet_hours_and_kinds_silence() {
    let kind = NotificationKind::TurnCompleted { turn: TurnId(1) };
    let silent = |settings: &AppSettings, minute| is_silenced(&kind, settings, minute);
    let plain = AppSettings::default();
    assert!(!silent(&plain, 0));
    assert!(silent(&AppSettings { muted: true, ..plain.clone() }, 0));
    assert!(silent(&AppSettings { notify_completed: false, ..plain.clone() }, 0));
    let night = AppSettings { quiet_hours: Some((22 * 60, 7 * 60)), ..plain.clone() };
    assert_eq!([21, 22, 23, 0, 6, 7, 12].map(|hour| silent(&night, hour * 60)), [false, true, true, true, true, false, false]);
    let noon = AppSettings { quiet_hours: Some((12 * 60, 13 * 60)), ..plain };
    assert_eq!([11, 12, 13].map(|hour| silent(&noon, hour * 60)), [false, true, false]);
}

#[test]
fn every_button_of_a_notification_has_its_own_name() {
    let shown = asked(|sample| {
        sample.asks_command(1, "ls");
    })
    .unwrap();
    let mut names: Vec<_> = shown.actions.iter().map(Action::name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
