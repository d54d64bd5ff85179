//! What a window, a tray or an API holds: wishes in, snapshots and transcripts out, from any thread and any runtime.

use std::sync::{Arc, Mutex, PoisonError};

use secrecy::SecretString;
use tokio::sync::{mpsc, oneshot, watch};
use turnkeep_model::{
    AccountId, ApprovalId, Input, MessageId, ProviderId, RuntimeId, Seq, ServerAddress, SessionId, ThreadRef, TurnId,
    port::{Answer, SessionSettings, SignInMethod, TurnDiff},
    state::Asker,
};

use crate::{
    feed::{Events, Snapshot, TranscriptEvent, Trouble},
    run::{Ack, Ask, Ended, Insistence, Notice, Refused},
    store::{EndedRuntime, Event, Found, Matches, Page, Reader, StoreError},
    world::Greeting,
};

/// Why a read gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine has ended.
    #[error("Turnkeep has stopped")]
    Ended,
}

/// One of any number of equal handles.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) asks: mpsc::UnboundedSender<Ask>,
    pub(crate) snapshot: watch::Receiver<Snapshot>,
    pub(crate) ended: watch::Receiver<Option<Ended>>,
    pub(crate) notices: Arc<Mutex<Option<mpsc::UnboundedReceiver<Notice>>>>,
    pub(crate) reader: Arc<Mutex<Reader>>,
    pub(crate) insistence: Arc<Insistence>,
    pub(crate) engine: tokio::runtime::Handle,
}

impl Handle {
    /// The newest snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot.borrow().clone()
    }

    /// Tells of every newer snapshot; those in between may be left out.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Snapshot> {
        self.snapshot.clone()
    }

    /// Hands an input to the machine; answers when what came of it is written down.
    ///
    /// # Errors
    /// [`Refused`]: the input had no effect.
    pub async fn submit(&self, input: Input) -> Result<Ack, Refused> {
        if let Input::Send { message, .. } | Input::Steer { message, .. } = &input
            && self.was_taken_before(message.clone()).await?
        {
            return Ok(Ack { seq: self.snapshot.borrow().state.seq, ..Ack::default() });
        }
        let (answer, answered) = oneshot::channel();
        self.ask(Ask::Submit { input, answer: Some(answer) })?;
        answered.await.map_err(|_| Refused::Ended)?
    }

    /// The machine knows the message ids of this run; those of earlier runs are looked up. An id that nobody can look up
    /// is not let in: it could be delivered twice.
    async fn was_taken_before(&self, message: MessageId) -> Result<bool, Refused> {
        self.read(move |reader| reader.has_seen(&message)).await.map_err(|error| match error {
            ReadError::Store(error) => Refused::Trouble(Trouble { passing: true, message: error.to_string() }),
            ReadError::Ended => Refused::Ended,
        })
    }

    /// Hands an input to the machine and does not wait: for callers that cannot, such as a menu. Not for messages, whose
    /// ids have to be looked up first.
    pub fn tell(&self, input: Input) {
        if self.ask(Ask::Submit { input, answer: None }).is_err() {
            tracing::debug!("an input came after the end");
        }
    }

    pub(crate) fn ask(&self, ask: Ask) -> Result<(), Refused> {
        self.asks.send(ask).map_err(|_| Refused::Ended)
    }

    // ---- wishes --------------------------------------------------------------------------------

    /// Makes a session in this folder (absolute path); [`Ack::session`] says which. With `thread`, of one that the
    /// provider already knows.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn create_session(
        &self,
        provider: ProviderId,
        folder: String,
        title: String,
        settings: SessionSettings,
        thread: Option<ThreadRef>,
    ) -> Result<Ack, Refused> {
        self.submit(Input::CreateSession { provider, folder, title, settings, thread }).await
    }

    /// Makes a session that goes on from where this one is; [`Ack::session`] says which, none where it cannot be done now.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn fork_session(&self, session: SessionId, title: String) -> Result<Ack, Refused> {
        self.submit(Input::ForkSession { session, title }).await
    }

    /// Delivers a message when the session is idle. A message id that was used before changes nothing.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn send(&self, session: SessionId, message: MessageId, text: String) -> Result<Ack, Refused> {
        self.submit(Input::Send { session, message, text }).await
    }

    /// Adds a message to the running turn, or sends it when there is none.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn steer(&self, session: SessionId, message: MessageId, text: String) -> Result<Ack, Refused> {
        self.submit(Input::Steer { session, message, text }).await
    }

    /// Ends the running turn early.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn interrupt(&self, session: SessionId) -> Result<Ack, Refused> {
        self.submit(Input::Interrupt { session }).await
    }

    /// Answers a question; [`Ack::changed`] is false when another answer was first.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn answer(&self, approval: ApprovalId, answer: Answer, by: Asker) -> Result<Ack, Refused> {
        self.submit(Input::AnswerApproval { approval, answer, by }).await
    }

    /// Begins to sign in; the steps come with the snapshots, under [`Ack::sign_in`].
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn sign_in(
        &self,
        provider: ProviderId,
        account: Option<AccountId>,
        label: String,
        method: SignInMethod,
    ) -> Result<Ack, Refused> {
        self.submit(Input::SignIn { provider, account, label, method, key: None }).await
    }

    /// Signs in with an API key, which goes to the vault and nowhere else.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn sign_in_with_key(
        &self,
        provider: ProviderId,
        account: Option<AccountId>,
        label: String,
        key: SecretString,
    ) -> Result<Ack, Refused> {
        let (answer, answered) = oneshot::channel();
        self.ask(Ask::SignInWithKey { provider, account, label, key, answer })?;
        answered.await.map_err(|_| Refused::Ended)?
    }

    /// Connects to a server that somebody else started, to see that it is there and who it is, and lets go of it again.
    /// Takes half a minute at most.
    ///
    /// # Errors
    /// What to tell the person who typed the address.
    pub async fn greet_server(&self, provider: ProviderId, address: ServerAddress) -> Result<Greeting, String> {
        let (answer, answered) = oneshot::channel();
        self.ask(Ask::Greet { provider, address, answer }).map_err(|refused| refused.to_string())?;
        let greeted = answered.await.map_err(|_| Refused::Ended.to_string())?;
        greeted.map_err(|failure| failure.message)
    }

    /// Makes a server that somebody else started an account, or tries it again where it is one.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn attach(&self, provider: ProviderId, address: ServerAddress, label: String) -> Result<Ack, Refused> {
        self.submit(Input::Attach { provider, address, label }).await
    }

    /// Asks the person to unlock the keychain; what comes of it is seen in the snapshots.
    pub fn unlock_keychain(&self) {
        let _ = self.ask(Ask::Unlock);
    }

    /// Looks for the providers' programs again.
    pub fn rescan_providers(&self) {
        let _ = self.ask(Ask::Rescan);
    }

    /// Not now after all. Nothing where nobody asked for an end, or where it was insisted on.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn cancel_quit(&self) -> Result<Ack, Refused> {
        self.insistence.relent();
        self.submit(Input::CancelQuit).await
    }

    /// Ends when running turns are done, or after so many milliseconds. A second time: within two seconds, come what
    /// may. Wait for [`Self::exited`].
    pub fn quit(&self, deadline_ms: Option<u64>) {
        self.insistence.insist();
        self.tell(Input::Quit { deadline_ms });
    }

    /// Waits for the end.
    pub async fn exited(&self) -> Ended {
        let mut ended = self.ended.clone();
        let end = ended.wait_for(Option::is_some).await;
        end.ok().and_then(|end| end.clone()).unwrap_or(Ended::Abandoned)
    }

    /// Notifications to show and to take away. There is one receiver; whoever asks first has it.
    #[must_use]
    pub fn notifications(&self) -> Option<mpsc::UnboundedReceiver<Notice>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    // ---- reading -------------------------------------------------------------------------------

    /// Follows a session: its last `limit` entries, then what happens.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn open_transcript(&self, session: SessionId, limit: usize) -> Result<Transcript, ReadError> {
        let mut transcript = Transcript { handle: self.clone(), session, limit, page: None, events: None };
        transcript.begin().await?;
        Ok(transcript)
    }

    /// The last `limit` entries before an ordinal, or of all. Running entries are as they were recorded last.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn transcript_page(&self, session: SessionId, before: Option<u64>, limit: usize) -> Result<Page, ReadError> {
        self.read(move |reader| reader.page(session, before, limit)).await
    }

    /// Entries of all sessions that hold these words, newest first.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn search(&self, text: String, limit: usize) -> Result<Vec<Found>, ReadError> {
        self.read(move |reader| reader.search(&text, limit)).await
    }

    /// What a turn changed, with the text; `None` where it changed nothing that was told.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn turn_diff(&self, session: SessionId, turn: TurnId) -> Result<Option<TurnDiff>, ReadError> {
        self.read(move |reader| reader.diff(session, turn)).await
    }

    /// Entries of one session that hold these words, newest first: those before an ordinal, or all.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn find(&self, session: SessionId, text: String, before: Option<u64>, limit: usize) -> Result<Matches, ReadError> {
        self.read(move |reader| reader.find(session, &text, before, limit)).await
    }

    /// The processes that ended last, newest first.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn ended_runtimes(&self, limit: usize) -> Result<Vec<EndedRuntime>, ReadError> {
        self.read(move |reader| reader.ended_runtimes(limit)).await
    }

    /// What a process wrote to its standard error last: at most 20 lines of at most 500 bytes. Nothing of a process of an
    /// earlier run.
    ///
    /// # Errors
    /// [`ReadError::Ended`].
    pub async fn last_lines(&self, runtime: RuntimeId) -> Result<Vec<String>, ReadError> {
        let (answer, answered) = oneshot::channel();
        self.ask(Ask::LastLines { runtime, answer }).map_err(|_| ReadError::Ended)?;
        answered.await.map_err(|_| ReadError::Ended)
    }

    /// The journal after a change, oldest first.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn events(&self, after: Seq, limit: usize) -> Result<Vec<Event>, ReadError> {
        self.read(move |reader| reader.events(after, limit)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let reader = Arc::clone(&self.reader);
        let reading = self.engine.spawn_blocking(move || read(&reader.lock().unwrap_or_else(PoisonError::into_inner)));
        Ok(reading.await.map_err(|_| ReadError::Ended)??)
    }
}

/// A session that somebody looks at.
#[derive(Debug)]
pub struct Transcript {
    handle: Handle,
    session: SessionId,
    limit: usize,
    page: Option<Page>,
    events: Option<Events>,
}

impl Transcript {
    /// Whose transcript this is.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// What happens next; a page first, and again whenever the reader was too slow. `None` when the engine ended.
    pub async fn next(&mut self) -> Option<TranscriptEvent> {
        loop {
            if let Some(page) = self.page.take() {
                return Some(TranscriptEvent::Page(page));
            }
            let events = self.events.as_mut()?;
            if let Some(event) = events.next().await {
                return Some(event);
            }
            if !events.lost() {
                return None;
            }
            if let Err(error) = self.begin().await {
                tracing::warn!(%error, session = %self.session, "a transcript could not be read again");
                self.events = None;
            }
        }
    }

    /// What has happened already, up to `limit` events, without waiting.
    pub fn ready(&mut self, limit: usize) -> Vec<TranscriptEvent> {
        let mut found: Vec<TranscriptEvent> = self.page.take().map(TranscriptEvent::Page).into_iter().collect();
        if let Some(events) = self.events.as_mut().filter(|events| !events.lost()) {
            found.extend(std::iter::from_fn(|| events.ready()).take(limit.saturating_sub(found.len())));
        }
        found
    }

    /// Subscribes first and reads then, so that nothing is between the two.
    async fn begin(&mut self) -> Result<(), ReadError> {
        let (answer, answered) = oneshot::channel();
        self.handle.ask(Ask::Subscribe { session: self.session, answer }).map_err(|_| ReadError::Ended)?;
        let (events, running) = answered.await.map_err(|_| ReadError::Ended)?;
        let mut page = self.handle.transcript_page(self.session, None, self.limit).await?;
        for entry in &mut page.entries {
            if let Some(live) = running.iter().find(|live| live.ordinal == entry.ordinal && !entry.completed) {
                entry.item = live.item.clone();
            }
        }
        self.page = Some(page);
        self.events = Some(events);
        Ok(())
    }
}
