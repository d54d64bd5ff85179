//! There are no guards here.

use std::{convert::Infallible, io, path::Path, process::ExitStatus, time::Duration};

use tokio::process::Child;
use turnkeep_model::state::ProcessIdentity;

use super::super::child::{Group, Plan, Secret, Spawner};

/// Is never made.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub(crate) child: Child,
    pub(crate) identity: ProcessIdentity,
    never: Infallible,
}

#[expect(clippy::unused_async, reason = "the same as where there are guards")]
pub(crate) async fn spawn(
    _: &Spawner,
    _: &Path,
    _: &Plan,
    _: &[Secret],
    _: &str,
    _: Group,
) -> Result<io::Result<Guarded>, String> {
    Err("not for this system".to_owned())
}

impl Guarded {
    #[expect(clippy::unused_async, reason = "the same as where there are guards")]
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self.never {}
    }

    pub(crate) fn stop(&mut self, _grace: Duration) {}

    #[expect(clippy::unused_async, reason = "the same as where there are guards")]
    pub(crate) async fn end(&mut self, _grace: Duration) {}

    pub(crate) const fn is_lost(&self) -> bool {
        false
    }
}
