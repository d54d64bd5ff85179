//! The store against real files: what goes in comes out, what is damaged is kept, what is newer is left alone.

mod files;
mod pages;
mod same;

use std::path::PathBuf;

use turnkeep_model::{
    AccountId, AuthEpoch, Change, ItemId, MessageId, ProviderId, RuntimeId, SessionId, State, TurnId,
    port::{Item, ItemBody, SessionSettings},
    state::{Attachment, Delivery, QueuedMessage, Session, Turn, TurnState},
};

use super::{Committed, Draft, Reader, StoreError, Writer, open};

/// A database in a folder of its own, and the state that was committed last.
pub(super) struct Bench {
    folder: tempfile::TempDir,
    pub(super) writer: Writer,
    pub(super) reader: Reader,
    pub(super) committed: State,
    at: i64,
}

impl Bench {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (writer, reader, loaded) = open(&folder.path().join("turnkeep.db")).unwrap();
        assert_eq!(loaded.state, State::default());
        Self { folder, writer, reader, committed: State::default(), at: 1_000 }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("turnkeep.db")
    }

    pub(super) fn try_commit(&mut self, changes: &[Change]) -> Result<Committed, StoreError> {
        self.at += 1;
        let mut next = self.committed.clone();
        let mut draft = Draft::new(&mut next, self.at);
        changes.iter().for_each(|change| draft.add(change));
        let done = self.writer.commit(&draft.finish())?;
        self.committed = next;
        Ok(done)
    }

    pub(super) fn commit(&mut self, changes: &[Change]) -> Committed {
        self.try_commit(changes).unwrap()
    }

    /// What a new start would read.
    pub(super) fn reloaded(&self) -> State {
        let (_, _, loaded) = open(&self.path()).unwrap();
        assert_eq!(loaded.missing, vec![]);
        // Those of earlier runs are looked up one by one; here they stand for what was looked up.
        let ids = rusqlite::Connection::open(self.path()).unwrap();
        let mut ids = ids.prepare("SELECT id FROM seen_messages").unwrap();
        let seen_messages = ids.query_map([], |row| row.get(0).map(MessageId)).unwrap().collect::<Result<_, _>>().unwrap();
        State { seen_messages, ..loaded.state }
    }
}

pub(super) const SESSION: SessionId = SessionId(1);
pub(super) const TURN: TurnId = TurnId(1);

pub(super) fn session() -> Session {
    Session {
        provider: ProviderId::new("p"),
        folder: "/f".into(),
        title: "t".into(),
        thread: None,
        settings: SessionSettings::default(),
        attachment: Attachment::Detached,
        queue: Vec::new(),
        undecided: Vec::new(),
        goal: None,
        goal_held: false,
        turn: None,
        last_turn: None,
        unread: false,
        archived: false,
        preview: String::new(),
        plan: Vec::new(),
        usage: Default::default(),
        created_at: 1,
        active_at: 1,
        open_failure: None,
        open_delay: Default::default(),
        restarts: Default::default(),
        history_owed: false,
        fork_of: None,
        commands: Vec::new(),
        seen_at: 0,
    }
}

pub(super) fn turn(message: Option<&str>) -> Turn {
    Turn {
        session: SESSION,
        runtime: RuntimeId(1),
        account: AccountId(1),
        epoch: AuthEpoch(1),
        message: message.map(MessageId::new),
        text: "do it".into(),
        state: TurnState::Dispatched,
        provider_turn: None,
        steers: Vec::new(),
        started_at: 5,
        retrying: None,
        interrupting: false,
        closed: None,
        quiet: None,
    }
}

pub(super) fn queued(id: &str) -> QueuedMessage {
    QueuedMessage { id: MessageId::new(id), text: format!("text of {id}"), at: 3, delivery: Delivery::Queued }
}

pub(super) fn created() -> Change {
    Change::SessionCreated { session: SESSION, entry: session() }
}

pub(super) fn said(id: &str, text: &str, completed: bool) -> Change {
    Change::ItemRecorded {
        session: SESSION,
        turn: TURN,
        item: Item { id: ItemId::new(id), body: ItemBody::AgentMessage { text: text.into(), final_answer: true } },
        completed,
    }
}
