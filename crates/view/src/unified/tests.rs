use super::*;

#[test]
fn each_file_has_its_own_lines_its_name_and_what_happened_to_it() {
    let text = "diff --git a/a b.txt b/a b.txt\nindex 1..2 100644\n--- a/a b.txt\n+++ b/a b.txt\n@@ -1,2 +1,2 @@\n--- a/not a header\n\
                ++++ b/nor this\n diff --git a/x b/x\ndiff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n\
                @@ -0,0 +1 @@\n+one\ndiff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n\
                @@ -1 +0,0 @@\n-one\ndiff --git a/was b/is\nsimilarity index 100%\nrename from was\nrename to is\n";
    let found = files(text);
    let told: Vec<_> = found.iter().map(|f| (f.path.as_str(), f.kind, f.moved_to.as_deref())).collect();
    assert_eq!(
        told,
        [
            ("a b.txt", dto::FileChangeKind::Updated, None),
            ("new", dto::FileChangeKind::Added, None),
            ("gone", dto::FileChangeKind::Deleted, None),
            ("was", dto::FileChangeKind::Updated, Some("is")),
        ]
    );
    assert_eq!(found.iter().map(|f| f.diff.as_str()).collect::<String>(), text, "nothing is lost");
}

#[test]
fn what_is_no_diff_is_kept_as_it_is() {
    for text in ["anything\nat all", "@@ -1 +x\n", "diff --git \u{20ac}\n"] {
        assert_eq!(files(text).iter().map(|f| f.diff.as_str()).collect::<String>(), text);
    }
    assert!(files("").is_empty());
}
