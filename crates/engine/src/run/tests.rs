//! The loop with the real machine, a real file and a world of paper.

mod crashes;
mod depth;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use secrecy::{ExposeSecret, SecretString};
use turnkeep_model::{
    ItemId, MessageId, SessionId,
    port::DeltaStream,
    port::TurnOutcome,
    state::{ApprovalState, NotificationState},
};

use tokio::time::Instant;
use turnkeep_model::port::AgentEvent;

use super::*;
use crate::{
    Handle, Snapshot, TranscriptEvent, play,
    start::{Engine, Kit},
    store,
    world::Inbox,
};

/// Within this everything happens, or it never does.
const SOON: Duration = Duration::from_secs(10);

/// What a world of paper did.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) effects: Arc<Mutex<Vec<Effect>>>,
    pub(super) attended: Arc<Mutex<Vec<usize>>>,
    pub(super) staged: Arc<Mutex<Vec<String>>>,
    pub(super) inbox: Arc<Mutex<Option<Inbox>>>,
    /// Where the system tells of the engine's thread.
    #[cfg(target_os = "linux")]
    thread: Arc<Mutex<PathBuf>>,
}

/// Answers what is asked, at once and well; a turn ends only when the test says so.
pub(super) struct Paper {
    inbox: Inbox,
    record: Record,
    database: PathBuf,
    /// Turns end by themselves.
    eager: bool,
}

impl Outside for Paper {
    fn perform(&self, effect: Effect) {
        if let Effect::Command { command: turnkeep_model::port::AgentCommand::StartTurn { turn, .. }, .. } = &effect {
            let other = rusqlite::Connection::open(&self.database).unwrap();
            let marked: bool = other
                .query_row("SELECT count(*) FROM turns WHERE id = ?1 AND ended_at IS NULL", [turn.0], |row| row.get(0))
                .unwrap();
            assert!(marked, "turn {turn} was sent before its mark was on the disk");
        }
        for input in play::answers(&effect) {
            let _ = self.inbox.send(Arrival::Input(input));
        }
        if let (true, Effect::Command { runtime, command: turnkeep_model::port::AgentCommand::StartTurn { session, turn, .. } }) =
            (self.eager, &effect)
        {
            for input in play::ends(*runtime, *session, *turn) {
                let _ = self.inbox.send(Arrival::Input(input));
            }
        }
        self.record.effects.lock().unwrap().push(effect);
    }

    fn taken(&self, _runtime: RuntimeId, _words: usize) {}

    fn attend(&self, credentials: &BTreeMap<CredentialId, Credential>) {
        self.record.attended.lock().unwrap().push(credentials.len());
    }

    fn stage(&self, secret: SecretString) -> StagedSecret {
        let mut staged = self.record.staged.lock().unwrap();
        staged.push(secret.expose_secret().to_owned());
        StagedSecret(staged.len() as u64)
    }

    fn unlock(&self) {}

    fn rescan(&self) {
        let _ = self.inbox.send(Arrival::Input(play::provider_found()));
    }

    fn last_lines(&self, runtime: RuntimeId) -> Vec<String> {
        vec![format!("the last words of {runtime}")]
    }

    fn threads(&self, _runtime: RuntimeId, cursor: Option<String>, answer: oneshot::Sender<ThreadsAnswer>) {
        let threads = vec![play::thread(cursor.as_deref().unwrap_or("first"))];
        let _ = answer.send(Ok(turnkeep_model::port::ThreadPage { threads, next_cursor: None }));
    }

    async fn shut(self) {}
}

/// The real time, kept by tokio.
pub(super) struct PlainClock {
    start: Instant,
    at: Option<u64>,
}

impl Clock for PlainClock {
    fn now(&self) -> Now {
        let boot = 1_000_000 + u64::try_from(self.start.elapsed().as_millis()).unwrap();
        Now { wall: i64::try_from(boot).unwrap(), boot }
    }

    fn set(&mut self, at: Option<u64>) {
        self.at = at;
    }

    async fn rung(&mut self) {
        let Some(at) = self.at else { return std::future::pending().await };
        tokio::time::sleep(Duration::from_millis(at.saturating_sub(self.now().boot))).await;
    }
}

/// A machine that fails at what it is told to.
struct Brittle(Supervisor);

impl Machine for Brittle {
    fn recover(&mut self, now: Now) -> Step {
        self.0.recover(now)
    }

    fn handle(&mut self, now: Now, input: Input) -> Step {
        assert!(!matches!(&input, Input::Rename { title, .. } if title == "boom"), "no such title");
        self.0.handle(now, input)
    }

    fn next_deadline(&self) -> Option<u64> {
        self.0.next_deadline()
    }
}

/// An engine under test.
pub(super) struct Rig {
    pub(super) folder: Option<tempfile::TempDir>,
    pub(super) path: PathBuf,
    pub(super) engine: Engine,
    pub(super) handle: Handle,
    pub(super) record: Record,
}

pub(super) fn launch(path: &Path, crash: Crash, eager: bool) -> (Engine, Handle, Record) {
    let (writer, reader, loaded) = store::open(path).unwrap();
    launch_with(path, (writer, reader, loaded.state), crash, eager)
}

fn launch_with(
    path: &Path,
    (writer, reader, state): (Writer, store::Reader, turnkeep_model::State),
    crash: Crash,
    eager: bool,
) -> (Engine, Handle, Record) {
    let record = Record::default();
    let (seen, database) = (record.clone(), path.to_path_buf());
    let (engine, handle) = Kit {
        feed: state.clone(),
        machine: Brittle(Supervisor::new(state)),
        recovery: None,
        writer,
        reader,
        world: move |inbox: Inbox| {
            *seen.inbox.lock().unwrap() = Some(inbox.clone());
            #[cfg(target_os = "linux")]
            {
                let thread = std::fs::read_link("/proc/thread-self").unwrap();
                *seen.thread.lock().unwrap() = Path::new("/proc").join(thread);
            }
            for input in [play::provider_found(), Input::SystemAccount { provider: play::provider(), present: true }] {
                inbox.send(Arrival::Input(input)).unwrap();
            }
            Paper { inbox, record: seen, database, eager }
        },
        clock: || PlainClock { start: Instant::now(), at: None },
        crash,
        lock: None,
    }
    .launch()
    .unwrap();
    (engine, handle, record)
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("turnkeep.db");
        let (engine, handle, record) = launch(&path, Crash::default(), false);
        Self { folder: Some(folder), path, engine, handle, record }
    }

    async fn until(&self, what: &str, is: impl Fn(&Snapshot) -> bool) -> Snapshot {
        until(&self.handle, what, is).await
    }

    fn say(&self, arrival: Arrival) {
        self.record.inbox.lock().unwrap().as_ref().unwrap().send(arrival).unwrap();
    }

    /// A session of a provider that can run.
    async fn with_session(&self) -> SessionId {
        self.until("an account", |snapshot| !snapshot.state.accounts.is_empty()).await;
        self.handle.submit(play::create_session()).await.unwrap().session.unwrap()
    }

    /// A session with a turn that runs.
    async fn with_turn(&self) -> (SessionId, turnkeep_model::TurnId, RuntimeId) {
        let session = self.with_session().await;
        self.handle.send(session, MessageId::new("m"), "do it".into()).await.unwrap();
        let snapshot =
            self.until("a started turn", |snapshot| snapshot.state.turns.values().any(|turn| turn.provider_turn.is_some())).await;
        let (turn, entry) = snapshot.state.turns.iter().next().unwrap();
        (session, *turn, entry.runtime)
    }

    async fn quit(self) {
        drop(self.quit_and_keep().await);
    }

    /// Ends it; what it wrote stays.
    async fn quit_and_keep(self) -> (Option<tempfile::TempDir>, PathBuf) {
        self.handle.quit(Some(0));
        let ended = tokio::time::timeout(SOON, self.handle.exited()).await.unwrap();
        assert_eq!(ended, Ended::Quit);
        self.engine.join();
        (self.folder, self.path)
    }
}

pub(super) async fn until(handle: &Handle, what: &str, is: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let mut watch = handle.watch();
    let found = tokio::time::timeout(SOON, watch.wait_for(|snapshot| is(snapshot))).await;
    let found = found.unwrap_or_else(|_| panic!("never: {what}; {:#?}", handle.snapshot()));
    found.unwrap_or_else(|_| panic!("ended before: {what}")).clone()
}

#[tokio::test]
async fn a_message_becomes_a_turn_that_ends_and_is_told_of() {
    let rig = Rig::new();
    let mut notices = rig.handle.notifications().unwrap();
    assert!(rig.handle.notifications().is_none(), "there is one receiver");
    let (session, turn, runtime) = rig.with_turn().await;
    for input in play::ends(runtime, session, turn) {
        rig.say(Arrival::Input(input));
    }
    let snapshot = rig.until("the end", |snapshot| snapshot.state.turns.is_empty()).await;
    let last = snapshot.state.sessions[&session].last_turn.clone().unwrap();
    assert_eq!((last.turn, last.outcome), (turn, TurnOutcome::Completed));

    let notice = tokio::time::timeout(SOON, notices.recv()).await.unwrap().unwrap();
    let Notice::Show { key, .. } = notice else { panic!("{notice:?}") };
    rig.handle.submit(Input::NotificationShown { key: key.clone() }).await.unwrap();
    assert_eq!(rig.handle.snapshot().state.notifications[&key].state, NotificationState::Shown);
    assert!(notices.try_recv().is_err(), "once");

    let page = rig.handle.transcript_page(session, None, 10).await.unwrap();
    assert_eq!(page.entries.len(), 1);
    assert!(page.entries[0].completed);
    let found = rig.handle.search("done".into(), 10).await.unwrap();
    assert_eq!(found.len(), 1);
    let events = rig.handle.events(turnkeep_model::Seq(0), 500).await.unwrap();
    assert_eq!(events.last().unwrap().seq, rig.handle.snapshot().state.seq);
    assert!(rig.handle.snapshot().state.seen_messages.is_empty());
    rig.quit().await;
}

#[tokio::test]
async fn an_answer_comes_after_the_commit_and_says_what_was_made() {
    let rig = Rig::new();
    rig.until("an account", |snapshot| !snapshot.state.accounts.is_empty()).await;
    let ack = rig.handle.submit(play::create_session()).await.unwrap();
    let session = ack.session.unwrap();
    assert!(ack.changed);
    assert!(rig.handle.snapshot().state.seq >= ack.seq);
    let other = rusqlite::Connection::open(&rig.path).unwrap();
    let there: bool = other.query_row("SELECT count(*) FROM sessions WHERE id = ?1", [session.0], |row| row.get(0)).unwrap();
    assert!(there);
    let sent = rig.handle.send(session, MessageId::new("m"), "a".into()).await.unwrap();
    assert!(sent.changed);
    let again = rig.handle.send(session, MessageId::new("m"), "a".into()).await.unwrap();
    assert!(!again.changed, "a repeated id is nothing");
    let (folder, path) = rig.quit_and_keep().await;
    let (engine, handle, record) = launch(&path, Crash::default(), false);
    let rig = Rig { folder, path, engine, handle, record };
    let again = rig.handle.send(session, MessageId::new("m"), "a".into()).await.unwrap();
    assert!(!again.changed, "not at the next start either");
    let steered = rig.handle.steer(session, MessageId::new("m"), "a".into()).await.unwrap();
    assert!(!steered.changed);
    let other = rig.handle.send(session, MessageId::new("n"), "a".into()).await.unwrap();
    assert!(other.changed);
    rig.quit().await;
}

#[tokio::test]
async fn a_key_goes_to_the_vault_and_only_its_number_to_the_machine() {
    let rig = Rig::new();
    rig.until("the provider", |snapshot| !snapshot.state.providers.is_empty()).await;
    let key = SecretString::from("sk-very-secret");
    let ack = rig.handle.sign_in_with_key(play::provider(), None, "work".into(), key).await.unwrap();
    assert!(ack.sign_in.is_some());
    assert_eq!(*rig.record.staged.lock().unwrap(), ["sk-very-secret"]);
    rig.until("two accounts", |snapshot| snapshot.state.credentials.len() == 2).await;
    assert!(rig.record.attended.lock().unwrap().contains(&2), "what exists is watched");
    let path = rig.path.clone();
    let folder = rig.folder.as_ref().unwrap().path().to_path_buf();
    assert!(path.exists());
    let Rig { folder: kept, engine, handle, .. } = rig;
    handle.quit(Some(0));
    handle.exited().await;
    engine.join();
    for entry in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(14).any(|window| window == b"sk-very-secret"));
    }
    drop(kept);
}

#[tokio::test]
async fn a_window_opened_in_mid_turn_sees_the_text_so_far_and_what_follows() {
    let rig = Rig::new();
    let (session, turn, runtime) = rig.with_turn().await;
    let item = ItemId::new(format!("answer {turn}"));
    rig.until("its entry", |snapshot| snapshot.state.seq.0 > 0).await;
    let delta = |text: &str| Arrival::Event {
        runtime,
        event: AgentEvent::Delta { session, item: item.clone(), stream: DeltaStream::AgentMessage, text: text.into() },
    };
    for text in ["Hello", ", ", "wor"] {
        rig.say(delta(text));
    }
    // An answered wish says that everything before it was taken in.
    rig.handle.submit(Input::Tick).await.unwrap();
    let mut transcript = rig.handle.open_transcript(session, 50).await.unwrap();
    let Some(TranscriptEvent::Page(page)) = transcript.next().await else { panic!("a page first") };
    let text = |page: &store::Page| format!("{:?}", page.entries.last().unwrap().item.body);
    assert!(text(&page).contains("Hello, wor"), "{page:?}");

    rig.say(delta("ld"));
    rig.say(delta("!"));
    let mut rest = String::new();
    while rest != "ld!" {
        let event = tokio::time::timeout(SOON, transcript.next()).await.unwrap().unwrap();
        let TranscriptEvent::Delta { text, .. } = event else { panic!("{event:?}") };
        rest.push_str(&text);
    }
    for input in play::ends(runtime, session, turn) {
        rig.say(Arrival::Input(input));
    }
    let Some(TranscriptEvent::Upsert(entry)) = tokio::time::timeout(SOON, transcript.next()).await.unwrap() else {
        panic!("the end of the entry")
    };
    assert!(entry.completed);
    assert_eq!(entry.ordinal, page.entries.last().unwrap().ordinal);
    rig.quit().await;
}

#[tokio::test]
async fn a_panic_in_a_decision_stops_visibly_and_does_nothing_more() {
    let rig = Rig::new();
    let session = rig.with_session().await;
    let before = rig.handle.snapshot().state.seq;
    let refused = rig.handle.submit(Input::Rename { session, title: "boom".into() }).await;
    assert!(refused.is_err(), "{refused:?}");
    let snapshot = rig.until("the trouble", |snapshot| snapshot.trouble.is_some()).await;
    let trouble = snapshot.trouble.unwrap();
    assert!(!trouble.passing && trouble.message.contains("no such title"), "{trouble:?}");
    assert_eq!(snapshot.state.seq, before);
    let refused = rig.handle.send(session, MessageId::new("m"), "x".into()).await.unwrap_err();
    assert_eq!(refused, Refused::Trouble(trouble.clone()));
    // The transcript can still be read.
    rig.handle.transcript_page(session, None, 10).await.unwrap();
    rig.handle.quit(None);
    assert_eq!(tokio::time::timeout(SOON, rig.handle.exited()).await.unwrap(), Ended::Stopped(trouble));
    rig.engine.join();
}

#[tokio::test]
async fn asking_twice_is_asking_once() {
    let rig = Rig::new();
    rig.with_turn().await;
    for _ in 0..5 {
        rig.handle.submit(Input::Tick).await.unwrap();
    }
    let effects = rig.record.effects.lock().unwrap().clone();
    let spawns = effects.iter().filter(|effect| matches!(effect, Effect::Spawn { .. })).count();
    assert_eq!(spawns, 1, "{effects:#?}");
    rig.quit().await;
}

#[tokio::test]
async fn an_approval_is_answered_by_the_first_and_the_others_learn_it() {
    let rig = Rig::new();
    let (session, _, runtime) = rig.with_turn().await;
    let ask = play::approval(session);
    rig.say(Arrival::Input(play::agent(runtime, ask)));
    let snapshot = rig.until("a question", |snapshot| !snapshot.state.approvals.is_empty()).await;
    let approval = *snapshot.state.approvals.keys().next().unwrap();
    let allow = || turnkeep_model::port::Answer::Choice(turnkeep_model::port::Choice::Allow);
    use turnkeep_model::state::Asker;
    let (first, second) =
        tokio::join!(rig.handle.answer(approval, allow(), Asker::Tray), rig.handle.answer(approval, allow(), Asker::Window));
    assert_eq!((first.unwrap().changed, second.unwrap().changed), (true, false));
    assert!(matches!(rig.handle.snapshot().state.approvals[&approval].state, ApprovalState::Answered { by: Asker::Tray, .. }));
    rig.quit().await;
}

#[tokio::test]
async fn a_second_quit_ends_it_within_two_seconds_whatever_hangs() {
    let rig = Rig::new();
    rig.with_turn().await;
    rig.handle.quit(None);
    rig.until("the quit", |snapshot| snapshot.state.quit.is_some()).await;
    let asked = Instant::now();
    rig.handle.quit(None);
    tokio::time::timeout(SOON, rig.handle.exited()).await.unwrap();
    assert!(asked.elapsed() < Duration::from_millis(2_500), "{:?}", asked.elapsed());
    rig.engine.join();
}

#[tokio::test]
async fn nothing_is_done_while_the_disk_is_full_and_it_goes_on_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turnkeep.db");
    let (mut writer, reader, loaded) = store::open(&path).unwrap();
    let limit = |writer: &mut Writer, pages: u32| {
        writer.connection().pragma_update(None, "max_page_count", pages).unwrap();
    };
    let pages: u32 = writer.connection().pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    limit(&mut writer, pages + 20);
    let (engine, handle, record) = launch_with(&path, (writer, reader, loaded.state), Crash::default(), false);
    let rename = |title: String| Input::CreateSession {
        provider: play::provider(),
        folder: "/f".into(),
        title,
        settings: Default::default(),
        thread: None,
    };
    until(&handle, "an account", |snapshot| !snapshot.state.accounts.is_empty()).await;
    let mut done = 0;
    let held = loop {
        let asked = handle.clone();
        let wish = rename("x".repeat(8_000));
        let waiting = tokio::spawn(async move { asked.submit(wish).await });
        let mut watch = handle.watch();
        let full = async { watch.wait_for(|snapshot| snapshot.trouble.is_some()).await.unwrap().clone() };
        tokio::select! {
            snapshot = full => break (snapshot, waiting),
            () = async { while !waiting.is_finished() { tokio::task::yield_now().await; } } => {
                waiting.await.unwrap().unwrap();
                done += 1;
                assert!(done < 100, "the disk never gets full");
            }
        }
    };
    let (snapshot, waiting) = held;
    let trouble = snapshot.trouble.unwrap();
    assert!(trouble.passing && trouble.message.contains("make room"), "{trouble:?}");
    assert_eq!(snapshot.state.sessions.len(), done, "nothing is shown that is not written");
    let refused = handle.submit(rename("y".into())).await.unwrap_err();
    assert_eq!(refused, Refused::Trouble(trouble));
    assert!(!waiting.is_finished(), "what was decided waits");
    handle.quit(None);
    assert_eq!(tokio::time::timeout(SOON, handle.exited()).await.unwrap(), Ended::Quit, "a full disk prevents no end");
    engine.join();
    assert_eq!(record.effects.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_write_that_fails_ends_it_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turnkeep.db");
    let (mut writer, reader, loaded) = store::open(&path).unwrap();
    writer.connection().execute_batch("PRAGMA query_only = 1").unwrap();
    let (engine, handle, record) = launch_with(&path, (writer, reader, loaded.state), Crash::default(), false);
    let snapshot = until(&handle, "the trouble", |snapshot| snapshot.trouble.is_some()).await;
    assert!(!snapshot.trouble.unwrap().passing);
    assert_eq!(snapshot.state.seq.0, 0, "nothing is shown that is not written");
    assert!(matches!(handle.submit(play::create_session()).await, Err(Refused::Trouble(_))));
    handle.quit(None);
    assert!(matches!(tokio::time::timeout(SOON, handle.exited()).await.unwrap(), Ended::Stopped(_)));
    engine.join();
    assert_eq!(record.effects.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_reader_that_was_too_slow_begins_again_with_a_page() {
    let rig = Rig::new();
    let (session, turn, runtime) = rig.with_turn().await;
    let mut transcript = rig.handle.open_transcript(session, 5).await.unwrap();
    let last = 1_500;
    for number in 0..=last {
        let item = turnkeep_model::port::Item {
            id: ItemId::new(format!("i{number}")),
            body: turnkeep_model::port::ItemBody::Notice { text: String::new() },
        };
        let provider_turn = turnkeep_model::ProviderTurn::new(format!("pt{turn}"));
        rig.say(Arrival::Input(play::agent(runtime, AgentEvent::ItemCompleted { session, provider_turn, item })));
    }
    let mut waited = rig.handle.watch();
    loop {
        let page = rig.handle.transcript_page(session, None, 1).await.unwrap();
        if page.total >= last {
            break;
        }
        tokio::time::timeout(SOON, waited.changed()).await.unwrap().unwrap();
    }
    let Some(TranscriptEvent::Page(first)) = transcript.next().await else { panic!("the page of the opening") };
    assert!(first.total < last);
    let Some(TranscriptEvent::Page(again)) = transcript.next().await else { panic!("a page, because events were lost") };
    assert!(again.total >= last && again.entries.len() == 5);
    rig.quit().await;
}

#[tokio::test]
async fn what_could_not_be_written_is_not_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turnkeep.db");
    let (mut writer, reader, loaded) = store::open(&path).unwrap();
    let pages: u32 = writer.connection().pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    writer.connection().pragma_update(None, "max_page_count", pages + 20).unwrap();
    let (engine, handle, record) = launch_with(&path, (writer, reader, loaded.state), Crash::default(), false);
    until(&handle, "an account", |snapshot| !snapshot.state.accounts.is_empty()).await;
    let session = handle.submit(play::create_session()).await.unwrap().session.unwrap();
    let before = handle.snapshot().state.seq;
    let asked = handle.clone();
    let waiting = tokio::spawn(async move { asked.send(session, MessageId::new("m"), "x".repeat(400_000)).await });
    let snapshot = until(&handle, "a full disk", |snapshot| snapshot.trouble.is_some()).await;
    assert_eq!(snapshot.state.seq, before);
    assert!(!waiting.is_finished());
    let effects = record.effects.lock().unwrap().clone();
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Spawn { .. })), "{effects:#?}");
    handle.quit(None);
    tokio::time::timeout(SOON, handle.exited()).await.unwrap();
    engine.join();
    assert!(waiting.await.unwrap().is_err(), "it was never acknowledged");
}

/// Nothing but news wakes an engine: no timer runs when there is nothing to wait for, also with a session open, a turn
/// running and a window looking.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_idle_engine_sleeps() {
    let rig = Rig::new();
    let (session, _, runtime) = rig.with_turn().await;
    let mut transcript = rig.handle.open_transcript(session, 10).await.unwrap();
    transcript.next().await.unwrap();
    let switches = || -> u64 {
        let status = std::fs::read_to_string(rig.record.thread.lock().unwrap().join("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_whitespace().last().unwrap().parse().unwrap()
    };
    // The first second may still have work of before in it.
    let mut counted = Vec::new();
    for _ in 0..3 {
        let before = switches();
        tokio::time::sleep(Duration::from_secs(1)).await;
        counted.push(switches() - before);
    }
    assert!(counted.contains(&0), "woken each second: {counted:?}");
    let before = switches();
    rig.say(Arrival::Event {
        runtime,
        event: AgentEvent::Delta { session, item: ItemId::new("answer"), stream: DeltaStream::AgentMessage, text: "x".into() },
    });
    tokio::time::timeout(SOON, transcript.next()).await.unwrap().unwrap();
    // It is counted when the thread goes back to sleep.
    let moved = async {
        while switches() == before {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, moved).await.expect("the count can move");
    rig.quit().await;
}

#[tokio::test]
async fn a_forced_quit_waits_for_no_writer_that_hangs() {
    let rig = Rig::new();
    let session = rig.with_session().await;
    let other = rusqlite::Connection::open(&rig.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let asked = rig.handle.clone();
    let waiting = tokio::spawn(async move { asked.send(session, MessageId::new("m"), "x".into()).await });
    rig.handle.quit(None);
    let second = Instant::now();
    rig.handle.quit(None);
    assert_eq!(tokio::time::timeout(SOON, rig.handle.exited()).await.unwrap(), Ended::Forced);
    assert!(second.elapsed() < Duration::from_millis(2_500), "{:?}", second.elapsed());
    assert!(waiting.await.unwrap().is_err(), "it was never acknowledged");
    rig.engine.join();
}

#[tokio::test]
async fn a_database_that_somebody_else_holds_is_waited_for() {
    let rig = Rig::new();
    let session = rig.with_session().await;
    let other = rusqlite::Connection::open(&rig.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let asked = rig.handle.clone();
    let waiting = tokio::spawn(async move { asked.send(session, MessageId::new("m"), "x".into()).await });
    let snapshot = rig.until("the trouble", |snapshot| snapshot.trouble.is_some()).await;
    assert!(snapshot.trouble.unwrap().message.contains("another program"));
    other.execute_batch("ROLLBACK").unwrap();
    assert!(tokio::time::timeout(SOON, waiting).await.unwrap().unwrap().unwrap().changed);
    rig.until("no trouble", |snapshot| snapshot.trouble.is_none()).await;
    rig.quit().await;
}
