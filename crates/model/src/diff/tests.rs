use super::*;

const TWO: &str = "diff --git a/one.txt b/one.txt\nindex 1..2 100644\n--- a/one.txt\n+++ b/one.txt\n@@ -1,3 +1,3 @@\n same\n--- old\n\
                   +++ new\n same\n\\ No newline at end of file\ndiff --git a/two.txt b/two.txt\nnew file mode 100644\n\
                   --- /dev/null\n+++ b/two.txt\n@@ -0,0 +1 @@\n+only\n";

#[test]
fn files_and_lines_are_counted_and_headers_are_not() {
    let diff = bounded(TWO);
    assert_eq!((diff.files, diff.added, diff.removed, diff.dropped), (2, 2, 1, 0));
    assert_eq!(diff.text, TWO);
}

#[test]
fn what_is_too_long_is_cut_after_a_whole_line_and_counted_all_the_same() {
    let lines = 60_000;
    let mut long = format!("diff --git a/l b/l\n--- a/l\n+++ b/l\n@@ -0,0 +1,{lines} @@\n");
    (0..lines).for_each(|at| long.push_str(&format!("+line {at} \u{e9}\n")));
    let diff = bounded(&long);
    assert!(diff.text.len() <= DIFF_KEPT && diff.text.len() > DIFF_KEPT - 100, "{}", diff.text.len());
    assert!(diff.text.ends_with('\n') && long.starts_with(&diff.text));
    assert_eq!(diff.dropped, (long.len() - diff.text.len()) as u64);
    assert_eq!(diff.added, lines);
}

#[test]
fn anything_is_taken() {
    let endless = "\u{20ac}".repeat(DIFF_KEPT);
    for text in ["", "\n", "@@ -1 +x @@\n+a", "@@", "+a\n-b", "@@ -99999999999999999999 +1 @@", &endless] {
        let diff = bounded(text);
        assert_eq!((diff.files, diff.text.len() as u64 + diff.dropped), (0, text.len() as u64), "{}", text.len());
    }
}
