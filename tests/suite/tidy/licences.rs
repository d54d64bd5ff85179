//! The licences of everything that is built in, and what is built in twice, against the lists of `deny.toml`.
//!
//! The same file serves `cargo deny`, where that is installed; this needs nothing but the test.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Policy {
    allowed: BTreeSet<String>,
    /// `name@version` that may stand beside a newer one.
    doubled: BTreeSet<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) licence: String,
}

impl Policy {
    /// Reads the arrays `allow` of `[licenses]` and `skip` of `[bans]`.
    pub(super) fn read(settings: &str) -> Self {
        let mut policy = Self::default();
        let (mut table, mut array) = ("", "");
        for line in settings.lines().map(str::trim) {
            if line.starts_with('[') {
                (table, array) = (line, "");
            } else if let Some((name, "[")) = line.split_once(" = ") {
                array = name;
            } else if line == "]" {
                array = "";
            } else if let Some(quoted) = line.split('"').nth(1) {
                match (table, array) {
                    ("[licenses]", "allow") => policy.allowed.insert(quoted.to_owned()),
                    ("[bans]", "skip") => policy.doubled.insert(quoted.to_owned()),
                    _ => false,
                };
            }
        }
        policy
    }
}

pub(super) fn packages(metadata: &Value) -> Vec<Package> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = metadata["packages"].as_array().unwrap().iter();
    all.map(|package| Package {
        name: text(&package["name"]),
        version: text(&package["version"]),
        licence: text(&package["license"]),
    })
    .collect()
}

pub(super) fn refused(policy: &Policy, packages: &[Package]) -> Vec<String> {
    let fits = |package: &&Package| satisfied(&package.licence, &policy.allowed) != Some(true);
    packages
        .iter()
        .filter(fits)
        .map(|one| format!("{} {}: the licence {:?} is not allowed", one.name, one.version, one.licence))
        .collect()
}

pub(super) fn duplicates(policy: &Policy, packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for (name, all) in versions {
        let known = |version: &&&str| policy.doubled.contains(&format!("{name}@{version}"));
        let unknown: Vec<&&str> = all.iter().filter(|version| !known(version)).collect();
        if unknown.len() > 1 {
            found.push(format!("{name} is built {} times: {unknown:?}", unknown.len()));
        }
        if all.len() > 1 {
            used.extend(all.iter().filter(known).map(|version| format!("{name}@{version}")));
        }
    }
    let stale = policy.doubled.difference(&used);
    found.extend(stale.map(|entry| format!("deny.toml skips {entry}, which is no duplicate")));
    found
}

/// Whether an SPDX expression can be met with these licences; nothing if it is no expression.
pub(super) fn satisfied(expression: &str, allowed: &BTreeSet<String>) -> Option<bool> {
    // Old crates write a slash for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words: Vec<&str> = spaced.split_whitespace().rev().collect();
    let value = any(&mut words, allowed)?;
    words.is_empty().then_some(value)
}

fn any(words: &mut Vec<&str>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut value = all(words, allowed)?;
    while words.pop_if(|word| *word == "OR").is_some() {
        value |= all(words, allowed)?;
    }
    Some(value)
}

fn all(words: &mut Vec<&str>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut value = one(words, allowed)?;
    while words.pop_if(|word| *word == "AND").is_some() {
        value &= one(words, allowed)?;
    }
    Some(value)
}

fn one(words: &mut Vec<&str>, allowed: &BTreeSet<String>) -> Option<bool> {
    let word = words.pop()?;
    if word == "(" {
        let value = any(words, allowed)?;
        return (words.pop()? == ")").then_some(value);
    }
    if word == ")" || word == "OR" || word == "AND" {
        return None;
    }
    let mut licence = word.to_owned();
    if words.pop_if(|word| *word == "WITH").is_some() {
        licence = format!("{licence} WITH {}", words.pop()?);
    }
    Some(allowed.contains(&licence))
}
