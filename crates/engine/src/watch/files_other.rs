//! News of credential files: written, replaced, deleted, made later; their folder too, and links on the way.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use tokio::sync::watch;

use super::Looker;

/// No news is asked of these systems yet; a look at the files' stamps this often is what is left.
const EVERY: Duration = Duration::from_millis(1500);

pub(super) async fn watch(mut paths: watch::Receiver<BTreeSet<PathBuf>>, looker: Looker) {
    let mut before = Vec::new();
    loop {
        let now: Vec<_> = paths
            .borrow_and_update()
            .iter()
            .map(|path| std::fs::metadata(path).ok().and_then(|it| Some((it.modified().ok()?, it.len()))))
            .collect();
        if now != before {
            before = now;
            looker.look();
        }
        tokio::time::sleep(EVERY).await;
    }
}
