//! Which crate may know which: the layout of the workspace as data.

use serde_json::Value;

/// A crate of the workspace and what it depends on in order to be built and run.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) needs: Vec<Need>,
}

#[derive(Debug, Clone)]
pub(super) struct Need {
    pub(super) name: String,
    pub(super) features: Vec<String>,
}

/// The whole of what these crates may need.
const ONLY: [(&str, &[&str]); 6] = [
    ("turnkeep-model", &["serde", "thiserror"]),
    ("turnkeep-agents", &["turnkeep-model", "serde", "serde_json", "thiserror", "url", "memchr", "sha2"]),
    ("turnkeep-view", &["turnkeep-model", "turnkeep-agents", "serde", "serde_json"]),
    // A program of its own: it knows nothing of what supervises it.
    ("turnkeep-demo", &["serde_json"]),
    // One runs beside every agent.
    ("turnkeep-guard", &["libc", "rustix"]),
    ("xtask", &["anyhow"]),
];

/// What nobody but these crates may need.
const RESERVED: [(&str, &[&str]); 8] = [
    ("rusqlite", &["turnkeep-engine"]),
    ("keyring-core", &["turnkeep-engine"]),
    ("zbus-secret-service-keyring-store", &["turnkeep-engine"]),
    ("secrecy", &["turnkeep-engine"]),
    ("tokio", &["turnkeep-engine", "turnkeep", "turnkeep-tests"]),
    ("tauri", &["turnkeep"]),
    ("turnkeep-tests", &[]),
    ("turnkeep", &[]),
];

/// A feature of a crate, and the only ones that may ask for it.
const FEATURES: [(&str, &str, &[&str]); 1] = [("tokio", "process", &["turnkeep-engine"])];

pub(super) fn members(metadata: &Value) -> Vec<Member> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    let members = packages.iter().map(|package| {
        let needs = package["dependencies"].as_array().unwrap().iter();
        // A null kind is an ordinary dependency; tests may know more.
        let needs = needs.filter(|need| need["kind"].is_null()).map(|need| Need {
            name: text(&need["name"]),
            features: need["features"].as_array().unwrap().iter().map(text).collect(),
        });
        Member { name: text(&package["name"]), needs: needs.collect() }
    });
    members.collect()
}

/// Everything that points the wrong way.
pub(super) fn direction(members: &[Member]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, _) in ONLY {
        if !members.iter().any(|member| member.name == name) {
            found.push(format!("there is no crate {name}"));
        }
    }
    for member in members {
        for need in &member.needs {
            found.extend(wrong(&member.name, need).map(|why| format!("{}: {why}", member.name)));
        }
    }
    found
}

fn wrong(member: &str, need: &Need) -> Option<String> {
    let only = ONLY.iter().find(|(name, _)| *name == member);
    if only.is_some_and(|(_, all)| !all.contains(&need.name.as_str())) {
        return Some(format!("may not depend on {}", need.name));
    }
    let reserved = RESERVED.iter().find(|(name, _)| *name == need.name);
    if reserved.is_some_and(|(_, all)| !all.contains(&member)) {
        return Some(format!("{} is for others", need.name));
    }
    let feature = FEATURES.iter().find(|(name, feature, all)| {
        *name == need.name && need.features.iter().any(|has| has == feature) && !all.contains(&member)
    });
    feature.map(|(name, feature, _)| format!("the feature {feature} of {name} is for others"))
}
