use expect_test::{Expect, expect};
use proptest::{prelude::*, test_runner::TestRunner};

use super::*;

fn check(command: &str, shown: Expect) {
    shown.assert_eq(&visible(command));
    assert_eq!(exact(&visible(command)).as_deref(), Some(command));
}

#[test]
fn an_ordinary_command_is_shown_as_it_is() {
    check(
        "pnpm test:db --reset --url postgres://localhost:5433/x",
        expect!["pnpm test:db --reset --url postgres://localhost:5433/x"],
    );
    check("grep -rn 'naïve — 日本 🦀' src", expect!["grep -rn 'naïve — 日本 🦀' src"]);
}

#[test]
fn what_hides_is_written_out() {
    check("ls \u{202e}txt.sh", expect!["ls ⟨U+202E⟩txt.sh"]);
    check("cat a\u{200b}b", expect!["cat a⟨U+200B⟩b"]);
    check(
        "printf '\u{1b}[2K\u{1b}]8;;https://example.test\u{7}'",
        expect!["printf '⟨U+001B⟩[2K⟨U+001B⟩]8;;https://example.test⟨U+0007⟩'"],
    );
    check("rm\u{a0}-rf x", expect!["rm⟨U+00A0⟩-rf x"]);
    check("echo \u{e0041}\u{e007f}", expect!["echo ⟨U+E0041⟩⟨U+E007F⟩"]);
    check("true \r\nfalse", expect!["true ⟨U+000D⟩↵\nfalse"]);
    check("a\tb", expect!["a⇥b"]);
    check("echo hi ", expect!["echo hi⟨U+0020⟩"]);
}

#[test]
fn the_marks_themselves_cannot_be_forged() {
    check("echo ⟨U+0041⟩ ↵ ⇥", expect!["echo ⟨U+27E8⟩U+0041⟨U+27E9⟩ ⟨U+21B5⟩ ⟨U+21E5⟩"]);
}

#[test]
fn a_text_that_was_never_made_here_has_no_exact_form() {
    for forged in ["⟨U+110000⟩", "⟨U+41", "U+41⟩", "⟨41⟩", "a↵b", "a\u{202e}b", "⟨⟩", "↵"] {
        assert_eq!(exact(forged), None, "{forged:?}");
    }
}

/// Any character, and those that matter often.
fn command() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        3 => any::<char>(),
        3 => proptest::char::range(' ', '~'),
        2 => proptest::sample::select(vec!['\n', '\t', '\r', '\u{1b}', '\u{202e}', '\u{2066}', '\u{200d}', '⟨', '⟩', '↵', '⇥', ' ', 'U', '+', '0']),
        1 => (0_u32..HIDDEN.len() as u32, any::<u32>()).prop_filter_map("a surrogate", |(range, at)| {
            let (first, last) = HIDDEN[range as usize];
            char::from_u32(first + at % (last - first + 1))
        }),
    ];
    proptest::collection::vec(character, 0..40).prop_map(String::from_iter)
}

/// Fails for a mapping that hides or merges anything.
fn shows_exactly(shown: impl Fn(&str) -> String) -> Result<(), String> {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(5_000);
    TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() })
        .run(&command(), |command| {
            let shown = shown(&command);
            prop_assert_eq!(exact(&shown), Some(command));
            prop_assert!(!shown.chars().any(|c| c != '\n' && is_hidden(c)));
            Ok(())
        })
        .map_err(|error| error.to_string())
}

#[test]
fn the_exact_bytes_are_recoverable_from_what_is_shown() {
    shows_exactly(visible).unwrap();
}

#[test]
fn a_mapping_that_hides_something_is_found_out() {
    shows_exactly(|command| visible(&command.replace('\u{202e}', ""))).unwrap_err();
    shows_exactly(|command| command.to_owned()).unwrap_err();
    shows_exactly(|command| visible(command).replace("⟨U+27E8⟩", "⟨")).unwrap_err();
}

#[test]
fn a_label_is_one_short_line() {
    assert_eq!(one_line("  Round\n\tinvoice\u{202e} totals  ", 40), "Round invoice totals");
    assert_eq!(one_line("Round invoice totals per tax line", 14), "Round invoice…");
    assert_eq!(one_line("Round", 5), "Round");
    assert_eq!(one_line("Rounds", 5), "Roun…");
    assert_eq!(one_line("", 5), "");
}
