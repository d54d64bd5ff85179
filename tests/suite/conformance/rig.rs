//! An engine with one agent, in folders of its own, and a person who waits for what is to be seen.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use harness::agent::Line;
use harness::mock_model::MockModel;
use harness::process::{self, Row};
use harness::relay::{self, Relay};
use tempfile::TempDir;
use turnkeep_agents::{Agent, Card, CredentialSource, Frame, Launch, LaunchError, Out, ProgramSource, Protocol, Purpose, Site};
use turnkeep_engine::store::Entry;
use turnkeep_engine::{Config, Engine, Handle, Places, TranscriptEvent, Unanswered};
use turnkeep_model::port::{
    AgentEvent, Answer, Choice, DeltaStream, ItemBody, Observation, SessionSettings, ThreadPage, TurnOutcome,
};
use turnkeep_model::state::{
    AccountKind, Approval, ApprovalState, Asker, EndedTurn, Installed, Phase, Session, State, Turn, TurnState,
};
use turnkeep_model::{ApprovalId, CredentialId, Input, MessageId, RuntimeId, SessionId, ThreadRef, TurnId, derive};

use super::agents::{Candidate, Wire};

/// The engine is told where the agent's program is; everything else is the agent's own.
#[derive(Debug)]
struct At {
    agent: Arc<dyn Agent>,
    card: Card,
}

impl Agent for At {
    fn card(&self) -> &Card {
        &self.card
    }

    fn launch(&self, site: &Site) -> Result<Launch, LaunchError> {
        self.agent.launch(site)
    }

    fn protocol(&self, purpose: &Purpose) -> Box<dyn Protocol> {
        self.agent.protocol(purpose)
    }

    fn says_signed_out(&self, text: &str) -> bool {
        self.agent.says_signed_out(text)
    }

    fn system_sources(&self, home: &Path) -> Vec<CredentialSource> {
        self.agent.system_sources(home)
    }

    fn read_identity(&self, content: &[u8], digest: &dyn Fn(&[u8]) -> String) -> Observation {
        self.agent.read_identity(content, digest)
    }
}

/// A running engine and what it stands on.
pub(super) struct Rig {
    pub(super) candidate: Candidate,
    pub(super) mock: MockModel,
    pub(super) patience: Duration,
    folder: TempDir,
    running: Option<(Engine, Handle)>,
    runtime: tokio::runtime::Runtime,
    messages: u64,
}

impl Rig {
    pub(super) fn start(candidate: &Candidate, relay: fn(&Wire, &Path) -> Option<Relay>, patience: Duration) -> Result<Self> {
        // Some agents refuse a home below the temporary folder.
        let folder = tempfile::Builder::new().prefix("tk-").tempdir_in("/var/tmp")?;
        for name in ["home", "work", "tmp", "bin"] {
            fs::create_dir(folder.path().join(name))?;
        }
        let mock = MockModel::start()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut rig = Self { candidate: *candidate, mock, patience, folder, running: None, runtime, messages: 0 };
        let real = (candidate.prepare)(&rig)?;
        let program = rig.path("bin/agent");
        let exports: String = real.variables.iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect();
        let arguments: String = real.arguments.iter().map(|argument| format!(" '{argument}'")).collect();
        match relay(&candidate.wire, rig.folder.path()) {
            None => {
                relay::write_script(&program, &format!("{exports}exec '{}'{arguments} \"$@\"", real.program.display()))?;
            }
            Some(relay) => {
                let inner = rig.path("bin/real");
                relay::write_script(&inner, &format!("{exports}exec '{}'{arguments} \"$@\"", real.program.display()))?;
                let relay = Relay { program: inner, ..relay };
                relay.install(Path::new(env!("CARGO_BIN_EXE_relay")), &program)?;
            }
        }
        rig.launch()?;
        Ok(rig)
    }

    /// A file in the rig's folder.
    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Starts the engine; the agent is there and somebody is signed in when this returns.
    pub(super) fn launch(&mut self) -> Result<()> {
        harness::guard::built()?;
        let agent = turnkeep_agents::agent(&self.candidate.provider()).context("the agent is not built in")?;
        let card = Card { program: ProgramSource::Path(self.path("bin/agent")), ..agent.card().clone() };
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let environment = BTreeMap::from([
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), text(self.path("home"))),
            ("TMPDIR".to_owned(), text(self.path("tmp"))),
        ]);
        let config = Config {
            places: Places::below(&self.path("turnkeep")),
            agents: vec![Arc::new(At { agent, card })],
            environment: Some(environment),
        };
        self.running = Some(Engine::start(config)?);
        self.wait("the agent's program", |state| {
            let provider = state.providers.get(&self.candidate.provider())?;
            matches!(provider.installed, Installed::Found { .. }).then_some(())
        })?;
        (self.candidate.sign_in)(self)
    }

    pub(super) fn handle(&self) -> Result<&Handle> {
        Ok(&self.running.as_ref().context("the engine does not run")?.1)
    }

    pub(super) fn state(&self) -> Result<Arc<State>> {
        Ok(self.handle()?.snapshot().state)
    }

    /// Quits without haste, and waits for the end.
    pub(super) fn quit(&mut self) -> Result<()> {
        let (engine, handle) = self.running.take().context("the engine does not run")?;
        handle.quit(None);
        self.runtime
            .block_on(async { tokio::time::timeout(self.patience, handle.exited()).await })
            .context("the engine does not end")?;
        engine.join();
        ensure!(self.processes().is_empty(), "processes outlive the engine: {:?}", self.processes());
        Ok(())
    }

    /// Waits for something to be true of the state.
    pub(super) fn wait<T>(&self, what: &str, mut look: impl FnMut(&State) -> Option<T>) -> Result<T> {
        let mut watch = self.handle()?.watch();
        let found = self.runtime.block_on(async {
            tokio::time::timeout(self.patience, async {
                loop {
                    if let Some(found) = look(&watch.borrow_and_update().state) {
                        return Some(found);
                    }
                    watch.changed().await.ok()?;
                }
            })
            .await
        });
        found.ok().flatten().with_context(|| format!("there was no {what}"))
    }

    /// The agent's machine, once it has greeted a process of the agent: only then does it know what that can do.
    pub(super) fn greeted(&self) -> Result<Box<dyn Protocol>> {
        let agent = turnkeep_agents::agent(&self.candidate.provider()).context("the agent is not built in")?;
        let home = self.path("home");
        let environment = BTreeMap::from([
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), home.to_string_lossy().into_owned()),
        ]);
        let site = Site {
            credential: CredentialId(1),
            kind: AccountKind::System,
            purpose: Purpose::Serve { needs_key: false },
            program: self.path("bin/agent"),
            system_home: home.join(&agent.card().system_home.1),
            private_home: self.path("private"),
            environment,
        };
        let launch = agent.launch(&site)?;
        let mut command = std::process::Command::new(&launch.program.path);
        command.args(&launch.args).env_clear().envs(&launch.environment).stderr(std::process::Stdio::null());
        let mut process = harness::agent::Agent::start(&mut command)?;
        let mut machine = agent.protocol(&site.purpose);
        loop {
            while let Some(out) = machine.poll() {
                match out {
                    Out::Send(Frame::Text(text)) => process.send_raw(format!("{text}\n").as_bytes())?,
                    Out::Event(AgentEvent::Ready { .. }) => return Ok(machine),
                    Out::Send(Frame::WithSecret { .. }) | Out::Event(_) | Out::Serve(_) | Out::WakeAt(_) => {}
                    Out::Stop { why } => bail!("it cannot be talked to: {why}"),
                }
            }
            match process.line(self.patience)? {
                Line::Message(message) => machine.receive(0, message.to_string().as_bytes()),
                Line::Raw(_) => {}
                Line::Unfinished(_) | Line::End => bail!("it ended before it was ready"),
            }
        }
    }

    // ---- what a person does --------------------------------------------------------------------

    pub(super) fn session(&self) -> Result<SessionId> {
        self.session_with(self.candidate.settings.clone_into_settings())
    }

    pub(super) fn session_with(&self, settings: SessionSettings) -> Result<SessionId> {
        let folder = self.path("work").to_string_lossy().into_owned();
        let made = self.handle()?.create_session(self.candidate.provider(), folder, "Conformance".to_owned(), settings, None);
        self.runtime.block_on(made)?.session.context("no session was made")
    }

    /// A session on a thread that the agent knows.
    pub(super) fn session_on(&self, thread: ThreadRef) -> Result<SessionId> {
        let (folder, settings) =
            (self.path("work").to_string_lossy().into_owned(), self.candidate.settings.clone_into_settings());
        let made = self.handle()?.create_session(self.candidate.provider(), folder, "Before".to_owned(), settings, Some(thread));
        self.runtime.block_on(made)?.session.context("no session was made")
    }

    /// A session that goes on from where this one is, where that can be.
    pub(super) fn fork(&self, session: SessionId) -> Result<Option<SessionId>> {
        Ok(self.runtime.block_on(self.handle()?.fork_session(session, "Fork".to_owned()))?.session)
    }

    /// The threads that the agent knows.
    pub(super) fn threads(&self) -> Result<ThreadPage, Unanswered> {
        let handle = self.handle().map_err(|_| Unanswered::Gone)?;
        self.runtime.block_on(handle.threads(&self.candidate.provider(), None))
    }

    /// Everything that the engine knew is gone; the agent's own is not.
    pub(super) fn forget(&self) -> Result<()> {
        ensure!(self.running.is_none(), "the engine runs");
        fs::remove_dir_all(self.path("turnkeep")).context("forgetting")
    }

    pub(super) fn send(&mut self, session: SessionId, text: &str) -> Result<MessageId> {
        let message = self.message();
        self.runtime.block_on(self.handle()?.send(session, message.clone(), text.to_owned()))?;
        Ok(message)
    }

    pub(super) fn steer(&mut self, session: SessionId, text: &str) -> Result<MessageId> {
        let message = self.message();
        self.runtime.block_on(self.handle()?.steer(session, message.clone(), text.to_owned()))?;
        Ok(message)
    }

    fn message(&mut self) -> MessageId {
        self.messages += 1;
        MessageId::new(format!("message-{}-{}", std::process::id(), self.messages))
    }

    pub(super) fn interrupt(&self, session: SessionId) -> Result<()> {
        self.runtime.block_on(self.handle()?.interrupt(session))?;
        Ok(())
    }

    pub(super) fn answer(&self, approval: ApprovalId, choice: Choice) -> Result<()> {
        let answered = self.handle()?.answer(approval, Answer::Choice(choice), Asker::Window);
        ensure!(self.runtime.block_on(answered)?.changed, "the answer came too late");
        Ok(())
    }

    pub(super) fn submit(&self, input: Input) -> Result<()> {
        self.runtime.block_on(self.handle()?.submit(input))?;
        Ok(())
    }

    /// Lets go on what waits in the middle of a message.
    pub(super) fn release(&self) -> Result<()> {
        self.mock.open("middle");
        fs::write(self.path("middle"), "").context("opening the gate")
    }

    // ---- what a person sees --------------------------------------------------------------------

    pub(super) fn seen(&self, session: SessionId) -> Result<Session> {
        self.state()?.sessions.get(&session).cloned().context("the session is gone")
    }

    /// Waits until the agent has begun the session's turn.
    pub(super) fn started(&self, session: SessionId) -> Result<(TurnId, Turn)> {
        self.wait("started turn", |state| {
            derive::open_turns_of(state, session)
                .find(|(_, turn)| turn.state == TurnState::Started)
                .map(|(id, turn)| (id, turn.clone()))
        })
    }

    /// Waits until a turn of the session that carried this message has ended.
    pub(super) fn ended(&self, session: SessionId, message: &MessageId) -> Result<EndedTurn> {
        self.wait(&format!("end of the turn of {message}"), |state| {
            let last = state.sessions.get(&session)?.last_turn.as_ref()?;
            (last.message.as_ref() == Some(message)).then(|| last.clone())
        })
    }

    /// A whole turn that must complete.
    pub(super) fn complete(&mut self, session: SessionId, text: &str) -> Result<EndedTurn> {
        let message = self.send(session, text)?;
        let ended = self.ended(session, &message)?;
        ensure!(ended.outcome == TurnOutcome::Completed, "the turn did not complete: {:?}", ended.outcome);
        Ok(ended)
    }

    /// Waits for a question of the session, or for the end of its turn (none then).
    pub(super) fn asked(&self, session: SessionId, message: &MessageId) -> Result<Option<(ApprovalId, Approval)>> {
        self.wait("question or end", |state| {
            let pending = |approval: &Approval| approval.session == session && approval.state == ApprovalState::Pending;
            let found = state.approvals.iter().find(|(_, approval)| pending(approval));
            let last = state.sessions.get(&session)?.last_turn.as_ref();
            let ended = last.is_some_and(|last| last.message.as_ref() == Some(message));
            match found {
                Some((id, approval)) => Some(Some((*id, approval.clone()))),
                None => ended.then_some(None),
            }
        })
    }

    pub(super) fn entries(&self, session: SessionId) -> Result<Vec<Entry>> {
        Ok(self.runtime.block_on(self.handle()?.transcript_page(session, None, 10_000))?.entries)
    }

    /// What the agent said in a turn, its messages one after the other.
    pub(super) fn said(&self, session: SessionId, turn: TurnId) -> Result<String> {
        let texts = self.entries(session)?.into_iter().filter(|entry| entry.turn == turn);
        Ok(texts
            .filter_map(|entry| if let ItemBody::AgentMessage { text, .. } = entry.item.body { Some(text) } else { None })
            .collect())
    }

    /// Follows the session until the first streamed words of the agent, which must come while its turn runs.
    pub(super) fn first_words(&self, session: SessionId) -> Result<String> {
        let handle = self.handle()?;
        let words = self.runtime.block_on(async {
            tokio::time::timeout(self.patience, async {
                let mut transcript = handle.open_transcript(session, 100).await?;
                loop {
                    let words = match transcript.next().await.context("the engine has ended")? {
                        TranscriptEvent::Delta { stream: DeltaStream::AgentMessage, text, .. } => Some(text.to_string()),
                        TranscriptEvent::Upsert(entry) => unfinished(&entry),
                        TranscriptEvent::Page(page) => page.entries.iter().find_map(unfinished),
                        TranscriptEvent::Delta { .. } | TranscriptEvent::Diff { .. } => None,
                    };
                    if let Some(words) = words.filter(|words| !words.trim().is_empty()) {
                        return anyhow::Ok(words);
                    }
                }
            })
            .await
        });
        let words = words.context("there were no streamed words")??;
        let running = self.state()?.turns.values().any(|turn| turn.session == session);
        ensure!(running, "the words came after the end");
        Ok(words)
    }

    /// The one runtime that is there, and ready.
    pub(super) fn ready_runtime(&self) -> Result<RuntimeId> {
        self.wait("ready runtime", |state| {
            state.runtimes.iter().find(|(_, runtime)| runtime.phase == Phase::Ready).map(|(id, _)| *id)
        })
    }

    /// Everything that runs on behalf of this rig's agent.
    pub(super) fn processes(&self) -> Vec<Row> {
        let home = format!("HOME={}", self.path("home").display());
        let ours = |row: &Row| row.state != 'Z' && process::environment(row.pid).contains(&home);
        process::table().into_iter().filter(ours).collect()
    }

    /// Quits and looks that nothing is left.
    pub(super) fn leaves_nothing(&mut self) -> Result<()> {
        self.release()?;
        if self.running.is_some() {
            let turns: Vec<SessionId> = self.state()?.turns.values().map(|turn| turn.session).collect();
            for session in turns {
                self.interrupt(session)?;
            }
            self.quit()?;
        }
        Ok(())
    }

    /// What there is to be told when something went wrong.
    pub(super) fn told(&self) -> String {
        let Ok(state) = self.state() else { return "the engine does not run".to_owned() };
        let requests: Vec<String> = self.mock.requests().iter().map(|request| request.path.clone()).collect();
        format!(
            "providers {:#?}\naccounts {:#?}\nruntimes {:#?}\nsessions {:#?}\nturns {:#?}\nthe model had {requests:?}",
            state.providers, state.accounts, state.runtimes, state.sessions, state.turns
        )
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some((engine, handle)) = self.running.take() {
            handle.quit(Some(0));
            handle.quit(Some(0));
            let ended = self.runtime.block_on(async { tokio::time::timeout(Duration::from_secs(10), handle.exited()).await });
            if ended.is_ok() {
                engine.join();
            }
        }
    }
}

/// The words so far of a message that is not complete.
fn unfinished(entry: &Entry) -> Option<String> {
    let ItemBody::AgentMessage { text, .. } = &entry.item.body else { return None };
    (!entry.completed).then(|| text.clone())
}

/// Waits until the current account of the provider is signed in.
pub(super) fn signed_in_already(rig: &Rig) -> Result<()> {
    rig.wait("signed-in account", |state| {
        let (_, account) = derive::current_account(state, &rig.candidate.provider())?;
        derive::is_signed_in(account).then_some(())
    })
}

/// Fails with what was there instead.
pub(super) fn no<T>(what: &str, instead: &impl std::fmt::Debug) -> Result<T> {
    bail!("{what}: {instead:?}")
}
