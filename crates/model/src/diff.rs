//! What a turn changed: counted as a whole, kept up to a length.
//!
//! Never fails: a text that is no diff has no files and no changed lines.

use crate::port::TurnDiff;

/// Bytes of one turn's diff that are kept.
pub const DIFF_KEPT: usize = 512 * 1024;

/// The diff, cut off after the last whole line that fits.
#[must_use]
pub fn bounded(unified: &str) -> TurnDiff {
    let kept = if unified.len() <= DIFF_KEPT {
        unified.len()
    } else {
        unified.as_bytes().get(..DIFF_KEPT).and_then(|head| head.iter().rposition(|byte| *byte == b'\n')).map_or(0, |at| at + 1)
    };
    let mut diff = TurnDiff {
        text: unified.get(..kept).unwrap_or_default().to_owned(),
        files: 0,
        added: 0,
        removed: 0,
        dropped: (unified.len() - kept) as u64,
    };
    // Lines that a hunk still has to give, old and new: a removed line may look like a file's header.
    let (mut old, mut new) = (0_u64, 0_u64);
    for line in unified.split_inclusive('\n') {
        match line.as_bytes().first() {
            Some(b'+') if new > 0 => {
                diff.added += 1;
                new -= 1;
            }
            Some(b'-') if old > 0 => {
                diff.removed += 1;
                old -= 1;
            }
            Some(b'\\') => {}
            _ if old > 0 && new > 0 => {
                old -= 1;
                new -= 1;
            }
            _ if line.starts_with("@@ ") => (old, new) = lengths(line).unwrap_or_default(),
            _ if line.starts_with("diff --git ") => diff.files += 1,
            _ => {}
        }
    }
    diff
}

/// The lines that a hunk has on either side: `@@ -1,3 +1,4 @@`, where a length of one may be left out.
fn lengths(header: &str) -> Option<(u64, u64)> {
    let mut sides = header.split(' ').skip(1);
    let mut length = |sign| {
        let side = sides.next()?.strip_prefix(sign)?;
        side.split_once(',').map_or(Some(1), |(_, length)| length.trim_end().parse().ok())
    };
    Some((length('-')?, length('+')?))
}

#[cfg(test)]
mod tests;
