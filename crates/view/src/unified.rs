//! A unified diff of several files, one file after the other.
//!
//! Never fails: what names no file is shown as one without a name.

use crate::dto;

/// The files in their order; each keeps its own lines as they are.
#[must_use]
pub fn files(unified: &str) -> Vec<dto::FileChange> {
    let mut files: Vec<dto::FileChange> = Vec::new();
    // Lines that a hunk still has to give: what looks like a header there is text.
    let (mut old, mut new) = (0_u64, 0_u64);
    for line in unified.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        let in_hunk = old > 0 || new > 0;
        if !in_hunk && let Some(names) = bare.strip_prefix("diff --git ") {
            files.push(file(second(names)));
        }
        if files.is_empty() {
            files.push(file(""));
        }
        let Some(file) = files.last_mut() else { continue };
        file.diff.push_str(line);
        if in_hunk {
            match bare.as_bytes().first() {
                Some(b'+') => new = new.saturating_sub(1),
                Some(b'-') => old = old.saturating_sub(1),
                Some(b'\\') => {}
                _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
            }
        } else if let Some(header) = bare.strip_prefix("@@ ") {
            (old, new) = lengths(header).unwrap_or_default();
        } else {
            header(file, bare);
        }
    }
    files
}

fn file(path: &str) -> dto::FileChange {
    dto::FileChange { path: path.to_owned(), kind: dto::FileChangeKind::Updated, moved_to: None, diff: String::new() }
}

/// What a line before the first hunk says about the file.
fn header(file: &mut dto::FileChange, line: &str) {
    if line.starts_with("new file mode") {
        file.kind = dto::FileChangeKind::Added;
    } else if line.starts_with("deleted file mode") {
        file.kind = dto::FileChangeKind::Deleted;
    } else if let Some(from) = line.strip_prefix("rename from ") {
        from.clone_into(&mut file.path);
    } else if let Some(to) = line.strip_prefix("rename to ") {
        file.moved_to = Some(to.to_owned());
    } else if let Some(path) = line.strip_prefix("--- a/").filter(|_| file.moved_to.is_none()) {
        path.trim_end_matches('\t').clone_into(&mut file.path);
    } else if let Some(path) = line.strip_prefix("+++ b/").filter(|_| file.moved_to.is_none()) {
        path.trim_end_matches('\t').clone_into(&mut file.path);
    }
}

/// `a/name b/name`: the name, where both sides have the same one.
fn second(names: &str) -> &str {
    let half = names.len() / 2;
    match (names.get(..half), names.get(half + 1..)) {
        (Some(a), Some(b)) if a.strip_prefix("a/") == b.strip_prefix("b/") => b.strip_prefix("b/").unwrap_or(b),
        _ => names.rsplit_once(" b/").map_or(names, |(_, name)| name),
    }
}

/// The lines that a hunk has on either side: `-1,3 +1,4 @@`.
fn lengths(header: &str) -> Option<(u64, u64)> {
    let mut sides = header.split(' ');
    let mut length = |sign| {
        let side = sides.next()?.strip_prefix(sign)?;
        side.split_once(',').map_or(Some(1), |(_, length)| length.parse().ok())
    };
    Some((length('-')?, length('+')?))
}

#[cfg(test)]
mod tests;
