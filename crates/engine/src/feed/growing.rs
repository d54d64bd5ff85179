//! The text of an entry that still runs, kept so that a window opened in the middle sees it.

use std::collections::BTreeMap;

use turnkeep_model::port::{DeltaStream, ItemBody};

use crate::store::Entry;

/// Bytes of text that are kept of one running entry; of more, the newest.
pub(super) const KEPT: usize = 1024 * 1024;

/// One running entry.
#[derive(Debug, Default)]
pub(super) struct Growing {
    /// As it was recorded last; `None` while only text has come.
    pub(super) entry: Option<Entry>,
    text: BTreeMap<DeltaStream, String>,
}

impl Growing {
    /// More text.
    pub(super) fn grow(&mut self, stream: DeltaStream, text: &str) {
        let kept = self.text.entry(stream).or_default();
        kept.push_str(text);
        if kept.len() > KEPT {
            // Half at once, so that a long stream is not moved for every piece.
            let mut cut = kept.len() - KEPT / 2;
            while !kept.is_char_boundary(cut) {
                cut += 1;
            }
            kept.drain(..cut);
        }
    }

    /// The entry was recorded (again). Text of its own replaces what was collected.
    pub(super) fn restart(&mut self, entry: Entry) {
        let mut body = entry.item.body.clone();
        self.text.retain(|stream, _| text_of(&mut body, *stream).is_none_or(|text| text.is_empty()));
        self.entry = Some(entry);
    }

    /// The entry with its text so far, once it was recorded.
    pub(super) fn whole(&self) -> Option<Entry> {
        let mut entry = self.entry.clone()?;
        for (stream, text) in &self.text {
            if let Some(into) = text_of(&mut entry.item.body, *stream) {
                into.push_str(text);
            }
        }
        Some(entry)
    }
}

/// Where the text of a stream belongs in an entry.
fn text_of(body: &mut ItemBody, stream: DeltaStream) -> Option<&mut String> {
    match (stream, body) {
        (DeltaStream::AgentMessage, ItemBody::AgentMessage { text, .. })
        | (DeltaStream::Reasoning, ItemBody::Reasoning { text, .. })
        | (DeltaStream::ReasoningSummary, ItemBody::Reasoning { summary: text, .. })
        | (DeltaStream::CommandOutput, ItemBody::Command { output: text, .. })
        | (DeltaStream::Plan, ItemBody::Plan { text }) => Some(text),
        _ => None,
    }
}
