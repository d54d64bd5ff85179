use std::{fs, os::unix::fs::symlink};

use super::*;

/// A watch of one path below a folder, and what it saw.
struct Watched {
    root: tempfile::TempDir,
    looker: Looker,
    _paths: watch::Sender<BTreeSet<PathBuf>>,
    task: tokio::task::JoinHandle<()>,
}

impl Watched {
    async fn new(prepare: impl FnOnce(&Path), path: &str) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        prepare(root.path());
        let looker = Looker::default();
        let (paths, told) = watch::channel(BTreeSet::from([root.path().join(path)]));
        let task = tokio::spawn(watch(told, looker.clone()));
        let it = Self { root, looker, _paths: paths, task };
        it.news("the first look").await;
        it
    }

    async fn news(&self, of: &str) {
        let told = tokio::time::timeout(Duration::from_secs(2), self.looker.0.notified()).await;
        assert!(told.is_ok(), "no news of {of}");
    }

    /// Events that belong together come together; after this the watch has seen them all.
    async fn quiet(&self) {
        while tokio::time::timeout(Duration::from_millis(200), self.looker.0.notified()).await.is_ok() {}
    }

    async fn sees(&self, what: &str, change: impl FnOnce(&Path)) {
        self.quiet().await;
        change(self.root.path());
        self.news(what).await;
    }

    async fn does_not_see(&self, what: &str, change: impl FnOnce(&Path)) {
        self.quiet().await;
        change(self.root.path());
        let told = tokio::time::timeout(Duration::from_millis(300), self.looker.0.notified()).await;
        assert!(told.is_err(), "news of {what}");
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn write(root: &Path, path: &str, text: &str) {
    fs::write(root.join(path), text).expect("written");
}

#[tokio::test]
async fn a_file_written_replaced_deleted_and_made_again_is_news_each_time() {
    let watched = Watched::new(
        |root| {
            fs::create_dir(root.join("home")).expect("made");
            write(root, "home/auth.json", "1");
        },
        "home/auth.json",
    )
    .await;
    watched.sees("a file that was written in place", |root| write(root, "home/auth.json", "2")).await;
    watched
        .sees("a file that was replaced", |root| {
            write(root, "home/new", "3");
            fs::rename(root.join("home/new"), root.join("home/auth.json")).expect("renamed");
        })
        .await;
    watched.sees("the new file written", |root| write(root, "home/auth.json", "4")).await;
    watched.sees("a deleted file", |root| fs::remove_file(root.join("home/auth.json")).expect("removed")).await;
    watched.sees("a file made later", |root| write(root, "home/auth.json", "5")).await;
    watched.does_not_see("another file", |root| write(root, "home/other.json", "6")).await;
}

#[tokio::test]
async fn a_folder_that_goes_and_comes_is_followed() {
    let watched = Watched::new(|_| {}, "some/home/auth.json").await;
    watched.sees("the first folder", |root| fs::create_dir(root.join("some")).expect("made")).await;
    watched
        .sees("the folder and its file at once", |root| {
            fs::create_dir(root.join("some/home")).expect("made");
            write(root, "some/home/auth.json", "1");
        })
        .await;
    watched.sees("the file written", |root| write(root, "some/home/auth.json", "2")).await;
    watched.sees("the folder deleted", |root| fs::remove_dir_all(root.join("some/home")).expect("removed")).await;
    watched
        .sees("the folder made again", |root| {
            fs::create_dir_all(root.join("some/home")).expect("made");
        })
        .await;
    watched.sees("the file in it", |root| write(root, "some/home/auth.json", "3")).await;
    watched.sees("the folder moved away", |root| fs::rename(root.join("some/home"), root.join("some/x")).expect("moved")).await;
}

#[tokio::test]
async fn a_link_is_followed_and_its_change_is_news() {
    let watched = Watched::new(
        |root| {
            for home in ["one", "two"] {
                fs::create_dir(root.join(home)).expect("made");
                write(root, &format!("{home}/auth.json"), home);
            }
            symlink("one", root.join("home")).expect("linked");
        },
        "home/auth.json",
    )
    .await;
    watched.sees("the file behind the link", |root| write(root, "one/auth.json", "1")).await;
    watched.does_not_see("the file behind another link", |root| write(root, "two/auth.json", "1")).await;
    watched
        .sees("the link changed", |root| {
            symlink("two", root.join("new")).expect("linked");
            fs::rename(root.join("new"), root.join("home")).expect("renamed");
        })
        .await;
    watched.sees("the file behind the new link", |root| write(root, "two/auth.json", "2")).await;
    watched.does_not_see("the file behind the old link", |root| write(root, "one/auth.json", "2")).await;
}

#[test]
fn links_in_a_circle_end() {
    let root = tempfile::tempdir().expect("a folder");
    symlink("b", root.path().join("a")).expect("linked");
    symlink("a", root.path().join("b")).expect("linked");
    let mut wanted = BTreeMap::new();
    want(&root.path().join("a/auth.json"), &mut wanted, LINKS);
    assert!(!wanted.is_empty());
}
