//! Noticing within two seconds that somebody signed in or out elsewhere: in a terminal, in the keychain, in a file.
//!
//! News only wakes; what is told is what a look finds then, so that late, lost and doubled news do no harm. While nothing
//! happens, nothing runs. What a file means is for the agent's folder to say.

#[cfg(target_os = "linux")]
#[path = "files_linux.rs"]
mod files;
#[cfg(not(target_os = "linux"))]
#[path = "files_other.rs"]
mod files;
mod keychain;
mod look;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
};
use turnkeep_agents::Agent;
use turnkeep_model::{CredentialId, ProviderId, port::Observation, state::AccountKind, state::Credential};
use zeroize::Zeroizing;

use crate::{vault, world::Shared};

/// A credential to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Attended {
    provider: ProviderId,
    kind: AccountKind,
}

type Attendance = BTreeMap<CredentialId, Attended>;

/// The watchers of one world. They end with it.
#[derive(Debug)]
pub(crate) struct Watch {
    attended: watch::Sender<Attendance>,
    looker: Looker,
    tasks: Vec<AbortHandle>,
}

/// Asks for a look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looker(Arc<Notify>);

impl Looker {
    /// Look soon, once for any number of calls.
    pub(crate) fn look(&self) {
        self.0.notify_one();
    }
}

impl Watch {
    pub(crate) fn start(shared: Arc<Shared>) -> Self {
        let looker = Looker::default();
        let attended = watch::Sender::new(Attendance::new());
        let paths = watch::Sender::new(std::collections::BTreeSet::<PathBuf>::new());
        let tasks = vec![
            tokio::spawn(files::watch(paths.subscribe(), looker.clone())).abort_handle(),
            tokio::spawn(keychain::watch(looker.clone())).abort_handle(),
            tokio::spawn(look::run(shared, looker.clone(), attended.subscribe(), paths)).abort_handle(),
        ];
        Self { attended, looker, tasks }
    }

    pub(crate) fn looker(&self) -> Looker {
        self.looker.clone()
    }

    /// These credentials exist now; those that are only owed a revocation are of no interest.
    pub(crate) fn attend(&self, credentials: &BTreeMap<CredentialId, Credential>) {
        let attended: Attendance = credentials
            .iter()
            // A server tells by itself who is signed in there.
            .filter(|(_, it)| !it.owed_revocation && it.kind.server().is_none())
            .map(|(id, it)| (*id, Attended { provider: it.provider.clone(), kind: it.kind.clone() }))
            .collect();
        let changed = self.attended.send_if_modified(|before| {
            let changed = *before != attended;
            *before = attended;
            changed
        });
        if changed {
            self.looker.look();
        }
    }

    pub(crate) fn stop(&self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}

/// More than this is no credential file.
const LONGEST_FILE: u64 = 1 << 20;

/// What a credential file says; `None` where there is no such file.
pub(crate) async fn read_file(agent: &dyn Agent, path: &Path) -> Option<Observation> {
    let at = path.to_owned();
    let content = tokio::task::spawn_blocking(move || content(&at)).await.ok()?;
    match content {
        Ok(content) => Some(agent.read_identity(&content, &vault::digest)),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => None,
        Err(error) => Some(Observation::Unknown { why: format!("{} could not be read ({error})", path.display()) }),
    }
}

fn content(path: &Path) -> std::io::Result<Zeroizing<Vec<u8>>> {
    use std::io::Read;
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe in its place must not keep anybody waiting.
        options.custom_flags(libc::O_NONBLOCK);
    }
    let file = options.open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.len() > LONGEST_FILE {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "it is no credential file"));
    }
    let mut content = Zeroizing::new(Vec::with_capacity(usize::try_from(about.len()).unwrap_or(0) + 1));
    file.take(LONGEST_FILE).read_to_end(&mut content)?;
    Ok(content)
}

/// The next of a stream.
pub(crate) async fn next<S: futures_core::Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}
