//! Guards, on Linux.

use std::{
    io,
    os::{fd::AsFd as _, unix::process::ExitStatusExt as _},
    path::Path,
    process::ExitStatus,
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt as _,
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};
use turnkeep_guard::wire::{FRAME, GUARDS, Order, Program, VERSION, Variable, Word};
use turnkeep_model::state::ProcessIdentity;
use zeroize::Zeroizing;

use super::super::{
    before_exec,
    child::{Group, Plan, Secret, Spawner, noted, surround},
    leaf, reap,
};

/// How long a guard may take to start what it is told.
const START: Duration = Duration::from_secs(20);

/// How long a guard may take to go once it has said its last word.
const GOODBYE: Duration = Duration::from_secs(2);

/// A guard and the runtime in it.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// The guard itself. Its pipes are the runtime's.
    pub(crate) child: Child,
    /// Of the runtime.
    pub(crate) identity: ProcessIdentity,
    contact: Contact,
    status: Option<ExitStatus>,
    over: Option<Over>,
}

/// How the contact ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// Nothing is left of what the guard held.
    Proven,
    /// The guard is gone without a word.
    Lost,
}

/// Why there is no guard, where the process may be started without.
pub(crate) type Unusable = String;

/// Start a guard, and the planned process in it.
/// The secrets are not in the guard's own environment, which lasts as long as it does.
pub(crate) async fn spawn(
    spawner: &Spawner,
    program: &Path,
    plan: &Plan,
    secrets: &[Secret],
    marker: &str,
    group: Group,
) -> Result<io::Result<Guarded>, Unusable> {
    let told = Program {
        leaf: (group == Group::OfItsOwn).then(|| leaf::make(marker)).flatten().map(Into::into),
        variables: secrets.iter().map(|(name, value)| Variable::new(name.as_bytes(), value)).collect(),
        program: plan.program.clone().into_os_string(),
        arguments: plan.args.iter().map(Into::into).collect(),
    };
    let Some(text) = told.encode().map(Zeroizing::new) else { return Ok(Err(io::ErrorKind::InvalidInput.into())) };
    let tag = turnkeep_guard::tag_of(marker);
    let (around, guard) = (plan.clone(), program.to_owned());
    let spawned = spawner.there(move || {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let mut command = Command::new(guard);
        command.arg0("turnkeep-guard").arg(VERSION.to_string());
        command.arg(std::os::fd::AsRawFd::as_raw_fd(&theirs).to_string());
        surround(&mut command, &around);
        command.env(GUARDS, "1");
        before_exec::prepare_guard(&mut command, Some(tag), theirs.as_fd());
        let child = noted(command.spawn()?)?;
        ours.set_nonblocking(true)?;
        Ok((child, UnixStream::from_std(ours)?))
    });
    let (mut child, stream) = match spawned.await {
        Ok(spawned) => spawned,
        // The folder may be what is missing: whoever starts it alone finds out.
        Err(error) => {
            if plan.directory.as_ref().is_none_or(|folder| folder.is_dir()) {
                spawner.no_guards(&format!("{} could not be started: {error}", program.display()));
            }
            return Err(error.to_string());
        }
    };
    let mut contact = Contact { stream, heard: [0; FRAME], length: 0 };
    let started = async {
        let length = u32::try_from(text.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        contact.stream.write_all(&Order::Start { length }.encode()).await?;
        contact.stream.write_all(&text).await?;
        contact.word().await
    };
    match timeout(START, started).await {
        Ok(Ok(Some(Word::Started { pid, start_ticks }))) => {
            let identity = reap::identity_of(pid, start_ticks);
            Ok(Ok(Guarded { child, identity, contact, status: None, over: None }))
        }
        Ok(Ok(Some(Word::NotStarted { error }))) => {
            let _ = child.wait().await;
            Ok(Err(io::Error::from_raw_os_error(error)))
        }
        Ok(Ok(Some(_)) | Err(_) | Ok(None)) => {
            drop(contact);
            let ended = timeout(GOODBYE, child.wait()).await;
            if let Ok(Ok(status)) = ended
                && status.code() == Some(turnkeep_guard::NOT_UNDERSTOOD.into())
            {
                let why = format!("{} is of another version", program.display());
                spawner.no_guards(&why);
                return Err(why);
            }
            // Whatever it started is killed with it.
            let _ = child.start_kill();
            tokio::spawn(async move { child.wait().await });
            Ok(Err(io::Error::other("its guard ended before it was started")))
        }
        Err(_) => {
            let _ = child.start_kill();
            tokio::spawn(async move { child.wait().await });
            Ok(Err(io::Error::new(io::ErrorKind::TimedOut, "its guard did not start it in time")))
        }
    }
}

impl Guarded {
    /// Until the runtime's own process has ended.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            if self.over.is_some() {
                return Err(io::Error::new(io::ErrorKind::ConnectionReset, "its guard was ended"));
            }
            self.hear().await;
        }
    }

    /// End everything, from now on firmly after this grace.
    pub(crate) fn stop(&mut self, grace: Duration) {
        let grace = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
        // A guard that takes no order is one that is gone: its end is heard.
        if let Err(error) = self.contact.stream.try_write(&Order::Stop { grace }.encode()) {
            tracing::debug!(%error, "a guard takes no order");
        }
    }

    /// The same, until there is nothing left or the guard is gone.
    pub(crate) async fn end(&mut self, grace: Duration) {
        self.stop(grace);
        let mut patience = grace * 5;
        while self.over.is_none() {
            if timeout(patience, self.hear()).await.is_err() {
                tracing::warn!(process = ?self.identity, "a guard cannot end what it holds; waiting on");
                patience = Duration::from_secs(60);
            }
        }
        if self.over == Some(Over::Lost) {
            tracing::warn!(process = ?self.identity, "the guard of an agent was ended by somebody else; what it held is looked for");
        }
        if timeout(GOODBYE, self.child.wait()).await.is_err() {
            tracing::warn!(guard = self.child.id(), "a guard that has nothing to do any more does not end");
            let _ = self.child.start_kill();
            let _ = self.child.wait().await;
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.over == Some(Over::Lost)
    }

    /// One word. Nothing is lost when this is given up.
    async fn hear(&mut self) {
        match self.contact.word().await {
            Ok(Some(Word::Exited { status })) => self.status = Some(ExitStatus::from_raw(status)),
            Ok(Some(Word::Gone)) => self.over = Some(Over::Proven),
            Ok(Some(Word::Started { .. } | Word::NotStarted { .. })) => {}
            Ok(None) | Err(_) => self.over = Some(Over::Lost),
        }
    }
}

#[derive(Debug)]
struct Contact {
    stream: UnixStream,
    heard: [u8; FRAME],
    length: usize,
}

impl Contact {
    /// Nothing at the end. A word that is not understood ends the contact, too.
    async fn word(&mut self) -> io::Result<Option<Word>> {
        loop {
            self.stream.readable().await?;
            match self.stream.try_read(self.heard.get_mut(self.length..).unwrap_or_default()) {
                Ok(0) => return Ok(None),
                Ok(read) => {
                    self.length += read;
                    if self.length == FRAME {
                        self.length = 0;
                        return Word::decode(&self.heard).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}
