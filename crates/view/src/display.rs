//! Commands as a person must see them: every character that hides, reorders or imitates is written out.
//!
//! The mapping loses nothing: [`exact`] gives back the very text that [`visible`] was given. It never shortens.

/// Opens and closes the name of a character that is written out.
const OPEN: char = '⟨';
const CLOSE: char = '⟩';
/// Stands before a line break, so that a break is told from a line that is too long for its place.
const LINE_END: char = '↵';
/// Stands for a tab.
const TAB: char = '⇥';

/// Code points that are invisible, change the order of others, act on a terminal, or look like a plain space:
/// what Unicode calls control, format, default-ignorable, private use, and the separators other than U+0020.
const HIDDEN: &[(u32, u32)] = &[
    (0x0000, 0x001f),
    (0x007f, 0x00a0),
    (0x00ad, 0x00ad),
    (0x034f, 0x034f),
    (0x0600, 0x0605),
    (0x061c, 0x061c),
    (0x06dd, 0x06dd),
    (0x070f, 0x070f),
    (0x0890, 0x0891),
    (0x08e2, 0x08e2),
    (0x115f, 0x1160),
    (0x1680, 0x1680),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x2000, 0x200f),
    (0x2028, 0x202f),
    (0x205f, 0x206f),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xe000, 0xf8ff),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xffff),
    (0x110bd, 0x110bd),
    (0x110cd, 0x110cd),
    (0x13430, 0x1343f),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0000, 0x0010_ffff),
];

/// Whether a character must be written out.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    let code = u32::from(c);
    // The last two code points of every plane are no characters at all.
    code & 0xfffe == 0xfffe || HIDDEN.iter().any(|&(first, last)| (first..=last).contains(&code))
}

/// The text with nothing in it that does not show. `\n` stays a line break, with a mark before it.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\n' => out.extend([LINE_END, '\n']),
            '\t' => out.push(TAB),
            OPEN | CLOSE | LINE_END | TAB => write_out(&mut out, c),
            // At the end of everything a space has nothing after it that would show it.
            ' ' if characters.peek().is_none() => write_out(&mut out, c),
            _ if is_hidden(c) => write_out(&mut out, c),
            _ => out.push(c),
        }
    }
    out
}

/// Whether [`visible`] has to write anything out, beyond line breaks and tabs.
#[must_use]
pub fn has_hidden(text: &str) -> bool {
    text.chars().any(|c| !matches!(c, '\n' | '\t') && is_hidden(c))
}

fn write_out(out: &mut String, c: char) {
    out.push(OPEN);
    out.push_str(&format!("U+{:04X}", u32::from(c)));
    out.push(CLOSE);
}

/// What [`visible`] was given; `None` for a text that it cannot have made.
#[must_use]
pub fn exact(shown: &str) -> Option<String> {
    let mut out = String::with_capacity(shown.len());
    let mut rest = shown.chars();
    while let Some(c) = rest.next() {
        match c {
            LINE_END => {
                if rest.next() != Some('\n') {
                    return None;
                }
                out.push('\n');
            }
            TAB => out.push('\t'),
            OPEN => {
                let (name, after) = rest.as_str().split_once(CLOSE)?;
                let code = u32::from_str_radix(name.strip_prefix("U+")?, 16).ok()?;
                out.push(char::from_u32(code)?);
                rest = after.chars();
            }
            CLOSE => return None,
            _ if is_hidden(c) => return None,
            _ => out.push(c),
        }
    }
    Some(out)
}

/// One line of at most `limit` characters: line breaks and runs of blanks become one space, the rest as [`visible`].
/// For titles and labels, never for what is decided upon.
#[must_use]
pub fn one_line(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split(|c: char| c.is_whitespace()).filter(|w| !w.is_empty()) {
        if count > 0 {
            out.push(' ');
            count += 1;
        }
        for c in word.chars() {
            if count >= limit {
                let kept = out.trim_end().chars().take(limit.saturating_sub(1)).collect::<String>();
                return format!("{}…", kept.trim_end());
            }
            if is_hidden(c) {
                continue;
            }
            out.push(c);
            count += 1;
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
