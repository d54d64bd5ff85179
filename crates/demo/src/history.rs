//! What the agent keeps: the updates of each session, so that it can be loaded again, and whether it is signed out.
//!
//! One file a session, a JSON value a line: the session's head first, then every update as it was sent, texts whole. A file that
//! cannot be read is a session that does not exist.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

const SIGNED_OUT: &str = "signed-out";

/// One session as it was kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kept {
    pub(crate) cwd: PathBuf,
    pub(crate) updates: Vec<Value>,
}

impl Kept {
    /// The turns that were begun.
    pub(crate) fn turns(&self) -> u64 {
        self.updates.iter().filter(|update| update["sessionUpdate"] == "user_message_chunk").map(|_| 1).sum()
    }

    pub(crate) fn title(&self) -> Option<String> {
        let first = self.updates.iter().find(|update| update["sessionUpdate"] == "user_message_chunk")?;
        Some(first["content"]["text"].as_str()?.lines().next()?.chars().take(80).collect())
    }
}

/// Where it is kept: a folder, or nowhere.
#[derive(Debug)]
pub(crate) struct History {
    folder: Option<PathBuf>,
    signed_out: bool,
    made: u64,
}

impl History {
    /// A folder that cannot be made is none; why is given too.
    pub(crate) fn open(folder: Option<PathBuf>) -> (Self, Option<String>) {
        let (folder, why) = match folder.map(|folder| private(&folder).map(|()| folder)).transpose() {
            Ok(folder) => (folder, None),
            Err(why) => (None, Some(format!("nothing is kept: {why}"))),
        };
        (Self { folder, signed_out: false, made: 0 }, why)
    }

    pub(crate) fn keeps(&self) -> bool {
        self.folder.is_some()
    }

    /// Begins a session; gives its id.
    pub(crate) fn begin(&mut self, cwd: &Path) -> io::Result<String> {
        loop {
            self.made += 1;
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let id = format!("demo-{:x}-{}-{}", since.as_millis(), std::process::id(), self.made);
            let Some(path) = self.path(&id) else { return Ok(id) };
            match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    file.write_all(format!("{}\n", json!({ "sessionId": id, "cwd": cwd })).as_bytes())?;
                    return Ok(id);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Begins a session that holds what another one holds; none where that one does not exist.
    pub(crate) fn fork(&mut self, of: &str, cwd: &Path) -> io::Result<Option<(String, Kept)>> {
        let Some(kept) = self.read(of) else { return Ok(None) };
        let id = self.begin(cwd)?;
        for update in &kept.updates {
            self.add(&id, update);
        }
        Ok(Some((id, kept)))
    }

    /// Adds an update. What cannot be kept is lost, and nothing else is.
    pub(crate) fn add(&self, id: &str, update: &Value) {
        let Some(path) = self.path(id) else { return };
        let file = fs::OpenOptions::new().append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{update}\n").as_bytes()));
    }

    pub(crate) fn read(&self, id: &str) -> Option<Kept> {
        let text = fs::read_to_string(self.path(id)?).ok()?;
        // A last line may be torn.
        let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let head = lines.next().filter(|head| head["sessionId"] == id)?;
        Some(Kept { cwd: head["cwd"].as_str()?.into(), updates: lines.collect() })
    }

    /// All sessions, the newest first.
    pub(crate) fn list(&self) -> Vec<(String, Kept)> {
        let entries = self.folder.as_ref().and_then(|folder| fs::read_dir(folder).ok());
        let mut all: Vec<(String, Kept)> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let name = entry.ok()?.file_name().into_string().ok()?;
                let id = name.strip_suffix(".jsonl")?.to_owned();
                let kept = self.read(&id)?;
                Some((id, kept))
            })
            .collect();
        all.sort_by(|(one, _), (other, _)| other.cmp(one));
        all
    }

    pub(crate) fn is_signed_out(&self) -> bool {
        match &self.folder {
            Some(folder) => folder.join(SIGNED_OUT).exists(),
            None => self.signed_out,
        }
    }

    pub(crate) fn set_signed_out(&mut self, signed_out: bool) -> io::Result<()> {
        self.signed_out = signed_out;
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.join(SIGNED_OUT);
        if signed_out {
            return fs::write(path, "");
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The file of a session. An id is a file's name only where it looks like one of ours.
    fn path(&self, id: &str) -> Option<PathBuf> {
        let ours = id.starts_with("demo-") && id.len() < 80 && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        ours.then(|| self.folder.as_ref().map(|folder| folder.join(format!("{id}.jsonl")))).flatten()
    }
}

/// The folder, for its owner only.
fn private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}
