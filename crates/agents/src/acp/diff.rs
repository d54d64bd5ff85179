//! Two versions of a text as one unified diff: what is equal at both ends is left out, but for some lines of it.

use std::fmt::Write as _;

/// Equal lines that are shown around a change.
const AROUND: usize = 3;

/// The change as a unified diff without file names. Linear in the length of the texts.
pub(super) fn unified(old: &str, new: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - start;
    let end = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (gone, come) = (part(&before, start, end), part(&after, start, end));
    if gone.is_empty() && come.is_empty() {
        return String::new();
    }
    let lead = before.get(start.saturating_sub(AROUND)..start).unwrap_or_default();
    let tail = before.get(before.len() - end..).unwrap_or_default();
    let tail = tail.get(..tail.len().min(AROUND)).unwrap_or_default();
    let first = start - lead.len() + 1;
    let count = |lines: &[&str]| lead.len() + lines.len() + tail.len();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "@@ -{first},{} +{first},{} @@", count(gone), count(come));
    for (sign, lines) in [(' ', lead), ('-', gone), ('+', come), (' ', tail)] {
        for line in lines {
            let _ = writeln!(text, "{sign}{line}");
        }
    }
    text
}

fn part<'a, 'b>(lines: &'a [&'b str], start: usize, end: usize) -> &'a [&'b str] {
    lines.get(start..lines.len() - end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_some_lines_around_it() {
        let diff = unified("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
        assert_eq!(diff, "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
    }

    #[test]
    fn added_and_taken_lines_are_counted() {
        assert_eq!(unified("a\na\n", "a\na\na\n"), "@@ -1,2 +1,3 @@\n a\n a\n+a\n");
        assert_eq!(unified("a\nb\n", "b\n"), "@@ -1,2 +1,1 @@\n-a\n b\n");
        assert_eq!(unified("", "x\n"), "@@ -1,0 +1,1 @@\n+x\n");
        assert_eq!(unified("same\n", "same\n"), "");
    }
}
