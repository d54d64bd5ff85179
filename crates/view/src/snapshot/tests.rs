use turnkeep_model::{
    RuntimeId,
    port::{GoalSpec, GoalStatus, TransportRecord},
    state::{Quit, Restarts, SignIn},
};

use super::*;
use crate::sample::{Sample, WALL, failure as failed, message};

fn session(sample: &Sample, id: u64) -> dto::Session {
    snapshot(&sample.facts()).sessions.into_iter().find(|session| session.id == id.to_string()).unwrap()
}

fn place(sample: &Sample, id: u64) -> (dto::Group, dto::SessionStatus) {
    let session = session(sample, id);
    (session.group, session.status)
}

#[test]
fn every_session_stands_in_one_group_by_its_need() {
    let mut sample = Sample::new();
    sample.running(1, "asks");
    sample.asks_command(1, "ls");
    sample.running(2, "runs");
    sample.ended(3, "done", TurnOutcome::Completed);
    sample.ended(4, "failed", TurnOutcome::Failed(failed(FailureClass::Network, "No network.")));
    sample.session(5, "idle");
    sample.ended(6, "unknown", TurnOutcome::Unknown).undecided.push(message("m", "x"));
    sample.session(7, "cannot open").open_failure = Some(failed(FailureClass::ThreadNotFound, "It is gone."));
    sample.ended(8, "archived", TurnOutcome::Completed).archived = true;
    sample.ended(9, "read", TurnOutcome::Failed(failed(FailureClass::Network, "No network."))).unread = false;

    use dto::{Group, SessionStatus as Status};
    assert_eq!(place(&sample, 1), (Group::NeedsYou, Status::NeedsApproval { count: 1 }));
    assert_eq!(place(&sample, 2), (Group::Running, Status::Running));
    assert_eq!(place(&sample, 3), (Group::Finished, Status::Idle));
    assert_eq!(place(&sample, 4), (Group::Finished, Status::Failed));
    assert_eq!(place(&sample, 5), (Group::Idle, Status::Idle));
    assert_eq!(place(&sample, 6), (Group::NeedsYou, Status::OutcomeUnknown));
    assert_eq!(place(&sample, 7), (Group::NeedsYou, Status::Failed));
    assert_eq!(place(&sample, 8), (Group::Idle, Status::Idle));
    assert_eq!(place(&sample, 9), (Group::Idle, Status::Idle));
    assert_eq!(session(&sample, 1).preview, "Asks to run ls");
    assert_eq!(session(&sample, 4).preview, "No network.");
    assert_eq!(session(&sample, 6).undecided.len(), 1);
}

#[test]
fn the_list_has_the_oldest_need_first_and_the_newest_rest() {
    let mut sample = Sample::new();
    sample.session(1, "idle, long ago");
    sample.session(2, "idle, just used");
    sample.running(3, "runs, younger").started_at = 20;
    sample.running(4, "runs, older").started_at = 10;
    sample.ended(5, "done", TurnOutcome::Completed);
    sample.ended(6, "done, newer", TurnOutcome::Completed);
    sample.ended(7, "failed", TurnOutcome::Lost).active_at = 1;
    sample.running(8, "asks, younger");
    sample.asks_command(8, "ls");
    sample.running(9, "asks, older");
    sample.asks_command(9, "ls").asked_at = 1;
    let titles: Vec<_> = snapshot(&sample.facts()).sessions.into_iter().map(|session| session.title).collect();
    assert_eq!(
        titles,
        [
            "asks, older",
            "asks, younger",
            "runs, older",
            "runs, younger",
            "failed",
            "done, newer",
            "done",
            "idle, just used",
            "idle, long ago"
        ]
    );
}

/// Why the one message of session 1 waits.
fn waits(change: impl FnOnce(&mut Sample)) -> (Option<String>, dto::SessionStatus) {
    let mut sample = Sample::new();
    sample.session(1, "One").queue.push(message("m", "x"));
    change(&mut sample);
    let session = session(&sample, 1);
    (session.waits_for, session.status)
}

#[test]
fn a_waiting_message_says_what_for() {
    let words = |(words, status): (Option<String>, dto::SessionStatus)| (words.unwrap_or_default(), status);
    use dto::SessionStatus as Status;
    assert_eq!(waits(|sample| sample.session(1, "One").queue.clear()).0, None);
    assert_eq!(words(waits(|_| ())), ("Sent as soon as Codex is ready.".into(), Status::Starting));
    assert_eq!(words(waits(Sample::sign_out)), (words::WAITS_FOR_SIGN_IN.into(), Status::SignedOut));
    assert_eq!(
        words(waits(|sample| sample.state.keychain = state::Keychain::Locked)),
        (words::WAITS_FOR_UNLOCK.into(), Status::KeychainLocked)
    );
    assert_eq!(
        words(waits(|sample| sample.account(1, "", "x").problem = Some(AccountProblem::ItemMissing))),
        (words::WAITS_FOR_SIGN_IN.into(), Status::SignedOut)
    );
    assert_eq!(
        words(waits(|sample| {
            let rejected = failed(FailureClass::SignedOut, "401");
            sample.account(1, "", "x").problem = Some(AccountProblem::Rejected(rejected));
        }))
        .1,
        Status::SignedOut
    );
    assert_eq!(
        words(waits(|sample| {
            sample.running(1, "One");
            sample.state.sessions.get_mut(&SessionId(1)).unwrap().queue.push(message("m", "x"));
        })),
        (words::WAITS_FOR_TURN.into(), Status::Running)
    );
    assert_eq!(
        words(waits(|sample| {
            sample.state.sessions.get_mut(&SessionId(1)).unwrap().attachment = Attachment::Releasing { runtime: RuntimeId(1) };
        }))
        .0,
        words::WAITS_FOR_OLD_ACCOUNT
    );
    assert_eq!(
        words(waits(|sample| {
            let gave_up = failed(FailureClass::StartFailed, "Started 3 times.");
            sample.account(1, "", "x").restarts = Restarts { given_up: Some(gave_up), ..Restarts::default() };
        })),
        (words::WAITS_FOR_TRY_AGAIN.into(), Status::Failed)
    );
    assert_eq!(
        words(waits(|sample| sample.state.quit = Some(Quit { since: 1, deadline: None, forced: false }))).0,
        words::WAITS_FOR_QUIT
    );
    assert_eq!(
        words(waits(|sample| {
            let codex = sample.state.providers.get_mut(&ProviderId::new("codex")).unwrap();
            codex.installed = state::Installed::Missing { searched: vec![] };
        }))
        .0,
        "Waits until Codex is installed."
    );
}

#[test]
fn a_turn_on_an_account_that_is_no_longer_current_is_finishing() {
    let mut sample = Sample::new();
    sample.running(1, "One");
    assert!(!session(&sample, 1).on_old_account);
    sample.sign_out();
    assert!(session(&sample, 1).on_old_account);
    let shown = snapshot(&sample.facts());
    assert_eq!(shown.providers[0].finishing_turns, 1);
    assert_eq!(shown.providers[0].accounts[0].finishing_turns, 1);
    assert_eq!(shown.providers[0].accounts[0].state, dto::AccountState::SignedOut);
    assert_eq!(session(&sample, 1).account.as_deref(), Some("1"));
}

#[test]
fn an_account_tells_the_first_thing_a_person_must_know() {
    let state_of = |change: &dyn Fn(&mut Sample)| {
        let mut sample = Sample::new();
        change(&mut sample);
        snapshot(&sample.facts()).providers[0].accounts[0].state.clone()
    };
    assert_eq!(state_of(&|_| ()), dto::AccountState::SignedIn);
    assert_eq!(state_of(&|sample| sample.state.keychain = state::Keychain::Locked), dto::AccountState::KeychainLocked);
    assert_eq!(
        state_of(&|sample| {
            sample.sign_out();
            let sign_in = SignIn {
                provider: ProviderId::new("codex"),
                account: AccountId(1),
                credential: turnkeep_model::CredentialId(2),
                method: port::SignInMethod::Browser,
                step: None,
                failure: None,
                cancelling: false,
                deadline: 1,
            };
            sample.state.sign_ins.insert(turnkeep_model::SignInId(1), sign_in);
        }),
        dto::AccountState::SigningIn
    );
    let mut sample = Sample::new();
    sample.account(2, "", "pia@example.test");
    sample.account(3, "", "x").identity = None;
    let labels: Vec<_> = snapshot(&sample.facts()).providers[0].accounts.iter().map(|account| account.label.clone()).collect();
    assert_eq!(labels, ["work", "pia@example.test", words::NEW_ACCOUNT]);
}

#[test]
fn a_quit_says_what_it_waits_for_and_until_when() {
    let mut sample = Sample::new();
    sample.running(1, "Port the parser");
    sample.state.quit = Some(Quit { since: 5, deadline: Some(530_000), forced: false });
    let quit = snapshot(&sample.facts()).quit.unwrap();
    assert_eq!(quit.waiting_for, ["Port the parser: its turn still runs"]);
    assert_eq!(quit.deadline, Some(WALL + 30_000));
}

#[test]
fn a_goal_that_waits_for_a_sign_in_says_so() {
    let mut sample = Sample::new();
    sample.session(1, "One").goal =
        Some(GoalSpec { objective: "All green".into(), status: GoalStatus::Active, token_budget: None });
    sample.sign_out();
    assert_eq!(session(&sample, 1).status, dto::SessionStatus::SignedOut);
    assert_eq!(session(&sample, 1).waits_for, None);
}

#[test]
fn a_closed_transport_is_told_with_all_that_is_known() {
    let record = TransportRecord {
        pid: Some(48213),
        status: "exited".into(),
        exit_code: Some(101),
        stream: "stdout".into(),
        how: "eof".into(),
        trailing_flushed: true,
        trailing_len: 12,
        turn: Some(TurnId(4)),
        turn_state: "started".into(),
        stderr: vec!["boom".into()],
        ..TransportRecord::default()
    };
    let shown = failure(&failed(FailureClass::TransportClosed(Box::new(record)), "Codex stopped."));
    assert_eq!(shown.code, "transportClosed");
    expect_test::expect![[r"
        transport_closed_before_turn_completed
        process: pid 48213, exited
        exit code: 101
        closed: stdout (eof)
        last line without line end: read, 12 bytes
        turn: 4, started
        last lines of standard error:
          boom"]]
    .assert_eq(&shown.detail.unwrap());
}

#[test]
fn settings_survive_the_way_to_a_screen_and_back() {
    let set = state::AppSettings { quiet_hours: Some((1320, 420)), quit_deadline: Some(60), ..state::AppSettings::default() };
    assert_eq!(settings_from(settings(&set)), set);
    let wild = dto::Settings { text_size: 9000, quiet_hours: Some((9000, 1)), ..settings(&set) };
    assert_eq!(settings_from(wild).text_size, 200);
}

#[test]
fn folders_are_written_below_the_home() {
    let sample = Sample::new();
    let facts = sample.facts();
    assert_eq!(facts.folder("/home/maria/src/x"), "~/src/x");
    assert_eq!(facts.folder("/home/maria"), "~");
    assert_eq!(facts.folder("/home/marianne"), "/home/marianne");
    assert_eq!(Facts { home: "", ..facts }.folder("/x"), "/x");
}
