//! The pipes of a child: whole lines in, whole frames out, one task a pipe.
//!
//! A reader never waits for what a line leads to, only for room; memory is bounded whatever comes. Never read inside a
//! `select!` that could drop half a line, and nothing that passes here is ever logged.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
};
use turnkeep_agents::{Frame, SecretSlot};
use zeroize::Zeroizing;

/// Longest line that is kept, in bytes.
pub(crate) const LONGEST_LINE: usize = 64 << 20;

/// Bytes of lines that may wait for their reader, beside the one that is being read.
pub(super) const UNREAD_BYTES: usize = LONGEST_LINE;

/// What a pipe brought.
#[derive(Debug)]
pub(crate) enum Line {
    /// Without its end. `ended` is false for what stood before the end of the stream.
    Whole { bytes: BytesMut, ended: bool, _room: OwnedSemaphorePermit },
    /// Longer than is kept; so many bytes were dropped.
    Oversized { bytes: u64 },
    /// Nothing more will come; `None`: the other side closed it.
    Closed { error: Option<String> },
}

/// Read lines until the end, or until `give_up` is told or dropped; [`Line::Closed`] is the last.
pub(crate) fn read_lines(
    pipe: impl AsyncRead + Send + Sync + Unpin + 'static,
    longest: usize,
    give_up: oneshot::Receiver<()>,
) -> mpsc::Receiver<Line> {
    let (to, lines) = mpsc::channel(64);
    let room = Arc::new(Semaphore::new(UNREAD_BYTES.max(longest)));
    tokio::spawn(Reader { pipe, longest, give_up, to, room, buffer: BytesMut::new(), looked_at: 0, dropped: 0 }.run());
    lines
}

/// A line this long leaves a block of memory behind that is not worth keeping.
const BIG: usize = 1 << 20;
const CHUNK: usize = 64 << 10;

struct Reader<R> {
    pipe: R,
    longest: usize,
    give_up: oneshot::Receiver<()>,
    to: mpsc::Sender<Line>,
    room: Arc<Semaphore>,
    buffer: BytesMut,
    /// How much of the buffer has no line end.
    looked_at: usize,
    /// Bytes of the line at hand that were not kept.
    dropped: u64,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    async fn run(mut self) {
        let error = loop {
            self.buffer.reserve(CHUNK);
            let read = tokio::select! {
                read = self.pipe.read_buf(&mut self.buffer) => read,
                _ = &mut self.give_up => break None,
            };
            match read {
                Ok(0) => break None,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error.to_string()),
            }
            if self.hand_over().await.is_none() {
                return;
            }
        };
        let rest = std::mem::take(&mut self.buffer);
        if self.dropped > 0 {
            let bytes = self.dropped + rest.len() as u64;
            let _ = self.to.send(Line::Oversized { bytes }).await;
        } else if !rest.is_empty() {
            let _ = self.send(rest, false).await;
        }
        let _ = self.to.send(Line::Closed { error }).await;
    }

    /// Send all whole lines of the buffer; `None` when nobody listens.
    async fn hand_over(&mut self) -> Option<()> {
        while let Some(end) = memchr::memchr(b'\n', self.buffer.get(self.looked_at..)?) {
            let mut line = self.buffer.split_to(self.looked_at + end + 1);
            self.looked_at = 0;
            line.truncate(line.len().saturating_sub(1));
            if self.dropped > 0 || line.len() > self.longest {
                let bytes = std::mem::take(&mut self.dropped) + line.len() as u64;
                self.to.send(Line::Oversized { bytes }).await.ok()?;
                continue;
            }
            if line.len() > BIG {
                self.buffer = BytesMut::from(self.buffer.as_ref());
            }
            self.send(line, true).await?;
        }
        self.looked_at = self.buffer.len();
        if self.dropped > 0 || self.buffer.len() > self.longest {
            self.dropped += self.buffer.len() as u64;
            self.buffer = BytesMut::new();
            self.looked_at = 0;
        }
        Some(())
    }

    async fn send(&self, bytes: BytesMut, ended: bool) -> Option<()> {
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(size).await.ok()?;
        self.to.send(Line::Whole { bytes, ended, _room: room }).await.ok()
    }
}

/// Gives the secret for a frame or for the process's start, and no other.
pub(crate) trait Fill: Send + Sync + 'static {
    /// `head`, the secret as a JSON string, `tail`, and a line end; or why not, for a person.
    fn fill(
        &self,
        head: &str,
        slot: SecretSlot,
        tail: &str,
    ) -> impl Future<Output = Result<Zeroizing<Vec<u8>>, turnkeep_model::port::Failure>> + Send;

    /// The secret as it is, for a variable of the process; or why not.
    fn value(&self, slot: SecretSlot) -> impl Future<Output = Result<Zeroizing<Vec<u8>>, turnkeep_model::port::Failure>> + Send;
}

/// Why a writer ended before its frames did.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The other side does not take it.
    Pipe(String),
    Secret(turnkeep_model::port::Failure),
}

/// Frames that may wait for a child that does not read, and their bytes beside those of the one at hand.
const FRAMES: usize = 4096;
const FRAME_BYTES: usize = 64 << 20;

/// What is to be written.
#[derive(Debug)]
pub(super) struct Frames {
    to: mpsc::Sender<Frame>,
    waiting: Arc<AtomicUsize>,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It waits to be written, or nobody writes any more.
    Taken,
    /// Nobody reads what is written.
    TooMuch,
}

impl Frames {
    pub(super) fn send(&self, frame: Frame) -> Sent {
        if self.waiting.load(Ordering::Acquire) > FRAME_BYTES {
            return Sent::TooMuch;
        }
        self.waiting.fetch_add(length(&frame), Ordering::AcqRel);
        if matches!(self.to.try_send(frame), Err(mpsc::error::TrySendError::Full(_))) { Sent::TooMuch } else { Sent::Taken }
    }
}

/// The other end of [`Frames`].
#[derive(Debug)]
pub(super) struct ToWrite {
    frames: mpsc::Receiver<Frame>,
    waiting: Arc<AtomicUsize>,
    at_hand: usize,
}

impl ToWrite {
    /// The next frame, once the one before is written.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        self.waiting.fetch_sub(std::mem::take(&mut self.at_hand), Ordering::AcqRel);
        let frame = self.frames.recv().await?;
        self.at_hand = length(&frame);
        Some(frame)
    }
}

/// A way for frames, bounded.
pub(super) fn frames() -> (Frames, ToWrite) {
    let (to, frames) = mpsc::channel(FRAMES);
    let waiting = Arc::<AtomicUsize>::default();
    (Frames { to, waiting: Arc::clone(&waiting) }, ToWrite { frames, waiting, at_hand: 0 })
}

fn length(frame: &Frame) -> usize {
    match frame {
        Frame::Text(text) => text.len(),
        Frame::WithSecret { head, slot: _, tail } => head.len() + tail.len(),
    }
}

/// Write frames until the sender is dropped, then close the pipe. What stops it earlier comes to the second channel.
pub(super) fn write_frames(pipe: impl AsyncWrite + Send + Unpin + 'static, fill: impl Fill) -> (Frames, mpsc::Receiver<Trouble>) {
    let (to, frames) = frames();
    let (tell, trouble) = mpsc::channel(1);
    tokio::spawn(async move {
        if let Err(why) = write_all(pipe, fill, frames).await {
            let _ = tell.send(why).await;
        }
    });
    (to, trouble)
}

async fn write_all(mut pipe: impl AsyncWrite + Unpin, fill: impl Fill, mut frames: ToWrite) -> Result<(), Trouble> {
    while let Some(frame) = frames.next().await {
        match frame {
            Frame::Text(text) => {
                let mut line = text.into_bytes();
                line.push(b'\n');
                pipe.write_all(&line).await.map_err(|error| Trouble::Pipe(error.to_string()))?;
            }
            Frame::WithSecret { head, slot, tail } => {
                let line = fill.fill(&head, slot, &tail).await.map_err(Trouble::Secret)?;
                pipe.write_all(&line).await.map_err(|error| Trouble::Pipe(error.to_string()))?;
            }
        }
    }
    Ok(())
}

/// The last lines of standard error, each cut to a bearable length. Clones are the same lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastLines(Arc<Mutex<std::collections::VecDeque<String>>>);

impl LastLines {
    const COUNT: usize = 20;
    const LENGTH: usize = 500;

    pub(crate) fn push(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line.get(..Self::LENGTH.min(line.len())).unwrap_or_default());
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == Self::COUNT {
            lines.pop_front();
        }
        lines.push_back(without_secrets(text.trim_end()));
    }

    pub(crate) fn to_vec(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Words that look like keys or tokens, struck out: an agent may say what it was given.
fn without_secrets(text: &str) -> String {
    let secret = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let bare = bare.rsplit(['=', ':', '"', '\'']).next().unwrap_or(bare);
        bare.len() >= 12 && (bare.starts_with("sk-") || bare.starts_with("eyJ")) || bare.len() >= 32 && looks_random(bare)
    };
    text.split(' ').map(|word| if secret(word) { "[struck out]" } else { word }).collect::<Vec<_>>().join(" ")
}

fn looks_random(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && word.chars().any(|c| c.is_ascii_digit())
        && word.chars().any(|c| c.is_ascii_uppercase())
        && word.chars().any(|c| c.is_ascii_lowercase())
}

/// How long a pipe may be silent, after its process has ended, before what still holds it open is not waited for.
pub(crate) const QUIET: Duration = Duration::from_millis(250);

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;
