//! What every file and every dependency of the project must keep to.
//!
//! Each rule is a function over data, and is also seen to find a planted defect; the tests at the end lay the rules over the
//! project as it is.

mod crates;
mod licences;
mod planted;
mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text files of the project: those that git knows, and those that it would.
fn files() -> Vec<(String, String)> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).unwrap();
    let files: Vec<(String, String)> = names
        .split_terminator('\0')
        // Deleted but not yet committed, or not text: nothing to read.
        .filter_map(|name| Some((name.to_owned(), fs::read_to_string(root().join(name)).ok()?)))
        .collect();
    assert!(files.len() > 20, "git lists only {} text files", files.len());
    files
}

fn metadata(more: &[&str]) -> Value {
    let shown = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(more)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(shown.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&shown.stderr));
    serde_json::from_slice(&shown.stdout).unwrap()
}

fn assert_none(found: &[String]) {
    assert!(found.is_empty(), "{} found:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_file_keeps_to_the_rules() {
    let found: Vec<String> = files().iter().flat_map(|(path, text)| text::check(path, text)).collect();
    assert_none(&found);
}

#[test]
fn dependencies_point_one_way() {
    assert_none(&crates::direction(&crates::members(&metadata(&["--no-deps"]))));
}

#[test]
fn every_licence_is_allowed_and_every_duplicate_is_known() {
    let settings = fs::read_to_string(root().join("deny.toml")).unwrap();
    let policy = licences::Policy::read(&settings);
    let packages = licences::packages(&metadata(&[]));
    assert!(packages.len() > 50, "only {} packages", packages.len());
    let mut found = licences::refused(&policy, &packages);
    found.extend(licences::duplicates(&policy, &packages));
    assert_none(&found);
}
