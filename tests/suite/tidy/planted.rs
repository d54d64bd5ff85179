//! The negative controls: each rule finds the defect that is planted for it, and lets the sound form pass.

use std::collections::BTreeSet;

use super::crates::{Member, Need, direction};
use super::licences::{self, Package, Policy};
use super::text;

type Rule = fn(&str, &str) -> Vec<String>;

#[track_caller]
fn finds(rule: Rule, path: &str, defect: &str, sound: &str) {
    assert_eq!(rule(path, defect).len(), 1, "the planted defect is not found in {path}");
    assert_eq!(rule(path, sound), [] as [String; 0], "the sound form is refused in {path}");
}

#[test]
fn a_file_that_is_too_long() {
    let (long, short) = ("let a = 1;\n".repeat(501), "let a = 1;\n// why\n\n".repeat(500));
    finds(text::length, "crates/model/src/a.rs", &long, &short);
    finds(text::length, "ui/src/a.svelte", &long, &short);
    assert!(text::length("crates/model/src/a/tests.rs", &long).is_empty());
    assert!(text::length("notes.md", &long).is_empty());
}

#[test]
fn something_left_to_do() {
    let defect = concat!("// TO", "DO: later");
    finds(text::leftovers, "ui/src/a.ts", defect, concat!("const MAS", "TO", "DON = 1"));
    finds(text::leftovers, "README.md", concat!("FIX", "ME"), "fix me");
}

#[test]
fn a_path_of_one_machine() {
    let defect = concat!("see `/wo", "rk/main`");
    finds(text::machine, "README.md", defect, concat!("see $HOME/wo", "rk/main, /var/wo", "rk/x"));
}

#[test]
fn a_registry() {
    finds(text::registries, "README.md", concat!("https://crates", ".io/a"), "the Rust registry");
    let (bad, good) = (r#""resolved": "https://mirror/a.tgz","#, r#""integrity": "sha512-a""#);
    finds(text::registries, "ui/package-lock.json", bad, good);
    assert!(text::registries("Cargo.lock", concat!("crates", ".io-index")).is_empty());
}

#[test]
fn a_provider_named_outside_its_folder() {
    let defect = concat!("if provider == \"Co", "dex\" {");
    finds(text::provider, "crates/model/src/a.rs", defect, "if provider == one {");
    finds(text::provider, "ui/src/a.svelte", defect, "provider.name");
    assert!(text::provider(concat!("crates/agents/src/co", "dex/wire.rs"), defect).is_empty());
    assert!(text::provider("crates/view/src/tray/tests.rs", defect).is_empty());
    let inline = format!("fn a() {{}}\n\n#[cfg(test)]\nmod tests {{\n{defect}\n}}");
    assert!(text::provider("crates/model/src/a.rs", &inline).is_empty());
}

#[test]
fn a_secret_outside_the_vault() {
    finds(text::secrets, "crates/engine/src/run.rs", "key.expose_secret()", "key: SecretString");
    finds(text::secrets, "src-tauri/src/main.rs", "key: SecretString", "key: StagedSecret");
    assert!(text::secrets("crates/engine/src/vault.rs", "key.expose_secret()").is_empty());
}

#[test]
fn a_module_without_a_purpose_and_an_allowed_lint() {
    finds(text::style, "crates/model/src/a.rs", "use b;", "#![no_std]\n//! What a is.\nuse b;");
    let allowed = "//! A.\n#[allow(dead_code)]";
    finds(text::style, "crates/model/src/a.rs", allowed, "//! A.\n#[expect(dead_code, reason = \"b\")]");
}

#[test]
fn a_test_that_sleeps() {
    let (bad, good) = ("std::thread::sleep(second)", "wait::until(\"it\", look)");
    finds(text::sleeps, "tests/suite/desktop.rs", bad, good);
    finds(text::sleeps, "crates/engine/src/run/tests.rs", bad, good);
    assert!(text::sleeps("crates/engine/src/run.rs", bad).is_empty());
    let awaited = "tokio::time::sleep(second).await";
    finds(text::sleeps, "tests/suite/engine.rs", awaited, good);
    assert!(text::sleeps("crates/engine/src/run/tests.rs", awaited).is_empty());
}

#[test]
fn all_rules_are_applied() {
    let everything = concat!("let k = key.expose_secret(); // TO", "DO /wo", "rk/a crates", ".io co", "dex");
    // Without a first line that says what it is for: that is the sixth.
    assert_eq!(text::check("crates/model/src/a.rs", everything).len(), 6);
}

fn member(name: &str, needs: &[(&str, &[&str])]) -> Member {
    let needs = needs.iter().map(|(name, features)| Need {
        name: (*name).to_owned(),
        features: features.iter().map(|&feature| feature.to_owned()).collect(),
    });
    Member { name: name.to_owned(), needs: needs.collect() }
}

fn workspace(more: Vec<Member>) -> Vec<Member> {
    let sound = [
        member("turnkeep-model", &[("serde", &[])]),
        member("turnkeep-agents", &[("turnkeep-model", &[]), ("url", &[])]),
        member("turnkeep-view", &[("turnkeep-model", &[])]),
        member("turnkeep-engine", &[("tokio", &["process"]), ("rusqlite", &[])]),
        member("turnkeep", &[("tauri", &[]), ("tokio", &["rt"])]),
        member("turnkeep-demo", &[("serde_json", &[])]),
        member("turnkeep-guard", &[("libc", &[])]),
        member("xtask", &[]),
    ];
    sound.into_iter().chain(more).collect()
}

#[test]
fn a_dependency_that_points_the_wrong_way() {
    assert_eq!(direction(&workspace(Vec::new())), [] as [String; 0]);
    for planted in [
        member("turnkeep-model", &[("tokio", &[])]),
        member("turnkeep-model", &[("turnkeep-agents", &[])]),
        member("turnkeep-agents", &[("turnkeep-engine", &[])]),
        member("turnkeep-view", &[("tauri", &[])]),
        member("turnkeep-demo", &[("turnkeep-model", &[])]),
        member("turnkeep-engine", &[("tauri", &[])]),
        member("turnkeep", &[("rusqlite", &[])]),
        member("turnkeep", &[("tokio", &["process"])]),
        member("turnkeep-engine", &[("turnkeep-tests", &[])]),
    ] {
        let found = direction(&workspace(vec![planted.clone()]));
        assert_eq!(found.len(), 1, "{planted:?}: {found:?}");
    }
    assert!(!direction(&[]).is_empty(), "a workspace without these crates is not this one");
}

const SETTINGS: &str = r#"
[licenses]
allow = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
]

[bans]
skip = [
    { crate = "old@1.0.0", reason = "it is known" },
]
"#;

fn package(name: &str, version: &str, licence: &str) -> Package {
    Package { name: name.to_owned(), version: version.to_owned(), licence: licence.to_owned() }
}

#[test]
fn a_licence_that_is_not_allowed() {
    let policy = Policy::read(SETTINGS);
    let all = [
        package("a", "1.0.0", "MIT OR GPL-3.0"),
        package("b", "1.0.0", "(MIT OR Apache-2.0) AND GPL-3.0"),
        package("c", "1.0.0", ""),
        package("d", "1.0.0", "GPL-3.0/MIT"),
        package("e", "1.0.0", "Apache-2.0 WITH LLVM-exception"),
        package("f", "1.0.0", "Apache-2.0 WITH Classpath-exception"),
    ];
    let found = licences::refused(&policy, &all);
    let names: Vec<&str> = found.iter().map(|line| &line[..1]).collect();
    assert_eq!(names, ["b", "c", "f"]);
    let none = BTreeSet::new();
    assert_eq!(licences::satisfied("MIT OR", &none), None);
    assert_eq!(licences::satisfied("( MIT", &none), None);
}

#[test]
fn a_duplicate_that_is_not_known_and_a_known_one_that_is_none() {
    let policy = Policy::read(SETTINGS);
    let known = [package("old", "1.0.0", "MIT"), package("old", "2.0.0", "MIT")];
    assert_eq!(licences::duplicates(&policy, &known), [] as [String; 0]);
    let new = [known.to_vec(), vec![package("old", "3.0.0", "MIT")]].concat();
    assert_eq!(licences::duplicates(&policy, &new).len(), 1);
    assert_eq!(licences::duplicates(&policy, &known[1..]).len(), 1, "the list is kept short");
}
