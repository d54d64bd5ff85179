//! Where the program says what it does: JSON lines in files of bounded size, and a person's own terminal on request.
//!
//! ERROR means a defect of ours; they are counted so that a test can insist on none. Writing never holds anybody up:
//! what a slow disk cannot take is dropped.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use tracing::{Event, Level, Subscriber};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    EnvFilter, Layer,
    layer::{Context, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

/// The variable with the filter for standard error; unset, nothing is written there.
pub const LOG_VARIABLE: &str = "TURNKEEP_LOG";
/// The variable with the filter for the file.
pub const LOG_FILE_VARIABLE: &str = "TURNKEEP_LOG_FILE";

/// Bytes of one file, and how many old ones stay beside it: 48 MiB in all.
const FILE_BYTES: u64 = 8 * 1024 * 1024;
const OLD_FILES: u32 = 5;
/// Lines that may wait for the disk.
const WAITING_LINES: usize = 8_192;

static ERRORS: AtomicU64 = AtomicU64::new(0);

/// ERROR events since the start of this process.
#[must_use]
pub fn errors() -> u64 {
    ERRORS.load(Ordering::Relaxed)
}

/// Keeps the writing alive; what waits is written when it is dropped, for a second at most.
#[derive(Debug)]
#[must_use = "logging ends when this is dropped"]
pub struct Logs {
    _guard: WorkerGuard,
}

/// Starts logging for this process. A second call, or a program that logs already, keeps the first.
///
/// # Errors
/// Where the file cannot be opened.
pub fn start(folder: &Path) -> io::Result<Logs> {
    let (writer, guard) = writer(folder)?;
    let file_filter = EnvFilter::try_from_env(LOG_FILE_VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
    let file = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(writer).with_filter(file_filter);
    let person = std::env::var(LOG_VARIABLE).ok().filter(|filter| !filter.is_empty()).map(|filter| {
        tracing_subscriber::fmt::layer()
            .with_target(false)
            .with_writer(io::stderr)
            .with_filter(EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info")))
    });
    if let Err(error) = tracing_subscriber::registry().with(file).with(person).with(CountErrors).try_init() {
        tracing::debug!(%error, "logging was already set up");
    }
    Ok(Logs { _guard: guard })
}

fn writer(folder: &Path) -> io::Result<(NonBlocking, WorkerGuard)> {
    let rolling = Rolling::open(folder, FILE_BYTES, OLD_FILES)?;
    Ok(NonBlockingBuilder::default().buffered_lines_limit(WAITING_LINES).lossy(true).thread_name("log").finish(rolling))
}

/// Counts what must never happen.
#[derive(Debug)]
struct CountErrors;

impl<S: Subscriber> Layer<S> for CountErrors {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == Level::ERROR {
            ERRORS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A file that moves aside when it is full: `turnkeep.log`, `turnkeep.log.1` (newest of the old), …
#[derive(Debug)]
struct Rolling {
    path: PathBuf,
    file: File,
    written: u64,
    limit: u64,
    old: u32,
}

impl Rolling {
    fn open(folder: &Path, limit: u64, old: u32) -> io::Result<Self> {
        let path = folder.join("turnkeep.log");
        let file = append_to(&path)?;
        let written = file.metadata()?.len();
        Ok(Self { path, file, written, limit, old })
    }

    fn numbered(&self, number: u32) -> PathBuf {
        self.path.with_extension(format!("log.{number}"))
    }

    fn roll(&mut self) -> io::Result<()> {
        for number in (1..self.old).rev() {
            let from = self.numbered(number);
            if from.exists() {
                fs::rename(from, self.numbered(number + 1))?;
            }
        }
        fs::rename(&self.path, self.numbered(1))?;
        self.file = append_to(&self.path)?;
        self.written = 0;
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl Write for Rolling {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // One call is one line.
        if self.written > 0 && self.written + bytes.len() as u64 > self.limit {
            self.roll()?;
        }
        self.file.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests;
