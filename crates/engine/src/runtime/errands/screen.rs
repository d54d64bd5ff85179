//! The last part of what a command wrote, as text.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use turnkeep_agents::errand::{Exit, Screen};

use crate::world::lock;

/// Bytes that are kept of a command's output, the last ones. Clones are the same bytes.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    most: usize,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    bytes: VecDeque<u8>,
    dropped: bool,
}

impl Kept {
    pub(super) fn new(most: usize) -> Self {
        Self { most, inner: Arc::default() }
    }

    pub(super) fn push(&self, more: &[u8]) {
        let mut inner = lock(&self.inner);
        let fits = more.get(more.len().saturating_sub(self.most)..).unwrap_or_default();
        let over = (inner.bytes.len() + fits.len()).saturating_sub(self.most);
        inner.dropped |= over > 0 || fits.len() < more.len();
        inner.bytes.drain(..over);
        inner.bytes.extend(fits);
    }

    pub(super) fn screen(&self, exit: Option<Exit>) -> Screen {
        let mut inner = lock(&self.inner);
        let dropped = inner.dropped;
        let (text, cut) = text(inner.bytes.make_contiguous(), dropped, exit.is_some(), self.most);
        Screen { text, truncated: dropped || cut, exit }
    }
}

/// The bytes as text of at most `most` bytes, and whether its beginning had to go. `dropped`: something stood before them;
/// `whole`: nothing comes after them.
fn text(bytes: &[u8], dropped: bool, whole: bool, most: usize) -> (String, bool) {
    // The rest of a character whose beginning is gone.
    let rest = if dropped { bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count() } else { 0 };
    let mut bytes = bytes.get(rest..).unwrap_or_default();
    if !whole {
        bytes = bytes.get(..bytes.len() - begun(bytes)).unwrap_or_default();
    }
    let text = String::from_utf8_lossy(bytes);
    // What is no text takes more room as text.
    let from = text.ceil_char_boundary(text.len().saturating_sub(most));
    (text.get(from..).unwrap_or_default().to_owned(), from > 0)
}

/// Bytes at the end that may be the beginning of a character.
fn begun(bytes: &[u8]) -> usize {
    for back in 1..=3.min(bytes.len()) {
        let needs = match bytes.get(bytes.len() - back) {
            Some(0xC2..=0xDF) => 2,
            Some(0xE0..=0xEF) => 3,
            Some(0xF0..=0xF4) => 4,
            Some(0x80..=0xBF) => continue,
            _ => return 0,
        };
        return if needs > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(most: usize, parts: &[&[u8]], ended: bool) -> (String, bool) {
        let kept = Kept::new(most);
        parts.iter().for_each(|part| kept.push(part));
        let screen = kept.screen(ended.then(Exit::default));
        (screen.text, screen.truncated)
    }

    #[test]
    fn the_last_part_is_kept_and_cut_between_characters() {
        assert_eq!(shown(100, &[b"ab", b"cd"], true), ("abcd".to_owned(), false));
        assert_eq!(shown(3, &[b"ab", b"cd"], true), ("bcd".to_owned(), true));
        assert_eq!(shown(3, &[b"abcdef"], true), ("def".to_owned(), true));
        assert_eq!(shown(0, &[b"abc"], true), (String::new(), true));
        // "ä" and "€" have two and three bytes.
        assert_eq!(shown(3, &["xä€".as_bytes()], true), ("€".to_owned(), true));
        assert_eq!(shown(4, &["xä€".as_bytes()], true), ("€".to_owned(), true));
        assert_eq!(shown(2, &["xä€".as_bytes()], true), (String::new(), true));
    }

    #[test]
    fn a_character_that_has_only_begun_waits_for_its_rest() {
        let euro = "€".as_bytes();
        assert_eq!(shown(100, &[b"a", &euro[..2]], false), ("a".to_owned(), false));
        assert_eq!(shown(100, &[b"a", &euro[..2], &euro[2..]], false), ("a€".to_owned(), false));
        assert_eq!(shown(100, &[b"a", &euro[..2]], true), ("a\u{fffd}".to_owned(), false));
    }

    #[test]
    fn what_is_no_text_does_not_take_more_than_is_kept() {
        let (text, truncated) = shown(4, &[&[0xFF; 4]], true);
        assert_eq!((text.as_str(), truncated), ("\u{fffd}", true));
    }
}
