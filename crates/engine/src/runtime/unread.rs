//! How much of what an agent said has not been taken in yet: the one brake on an agent that says too much.
//!
//! While there is too much, no further line of its output is read, so that its own pipe holds it up. Nothing is dropped,
//! orders are carried out all the while, and other agents notice nothing.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;

/// Words of one agent that may wait for the loop.
const WORDS: usize = 512;
/// Bytes of lines whose words may wait, beside the last one.
const BYTES: usize = 8 << 20;

/// Words that were told and not taken in. Clones count the same words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unread(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    words: AtomicUsize,
    /// Of the lines that were read since nothing was waiting.
    bytes: AtomicUsize,
    fewer: Notify,
}

impl Unread {
    /// A line was read.
    pub(crate) fn read(&self, bytes: usize) {
        if self.0.words.load(Ordering::Acquire) == 0 {
            self.0.bytes.store(0, Ordering::Release);
        }
        self.0.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// A word was told.
    pub(crate) fn told(&self) {
        self.0.words.fetch_add(1, Ordering::AcqRel);
    }

    /// So many were taken in.
    pub(crate) fn taken(&self, words: usize) {
        let _ = self.0.words.fetch_update(Ordering::AcqRel, Ordering::Acquire, |before| Some(before.saturating_sub(words)));
        self.0.fewer.notify_one();
    }

    /// Waits until another line may be read. For one waiter; nothing is lost when this is given up.
    pub(crate) async fn bearable(&self) {
        while !self.is_bearable() {
            self.0.fewer.notified().await;
        }
    }

    fn is_bearable(&self) -> bool {
        let words = self.0.words.load(Ordering::Acquire);
        words == 0 || (words < WORDS && self.0.bytes.load(Ordering::Acquire) < BYTES)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn waits(unread: &Unread) -> bool {
        tokio::time::timeout(Duration::from_millis(1), unread.bearable()).await.is_err()
    }

    #[tokio::test]
    async fn too_many_words_wait_until_some_are_taken() {
        let unread = Unread::default();
        (0..WORDS - 1).for_each(|_| unread.told());
        assert!(!waits(&unread).await);
        unread.told();
        assert!(waits(&unread).await);
        unread.taken(1);
        assert!(!waits(&unread).await);
    }

    #[tokio::test]
    async fn long_lines_wait_until_nothing_is_left_of_them() {
        let unread = Unread::default();
        unread.read(BYTES);
        assert!(!waits(&unread).await, "nothing was said of it yet");
        unread.told();
        unread.told();
        assert!(waits(&unread).await);
        unread.taken(1);
        assert!(waits(&unread).await);
        unread.taken(1);
        assert!(!waits(&unread).await);
        unread.read(1);
        unread.told();
        assert!(!waits(&unread).await, "what was taken in does not count any more");
    }
}
