//! Rules about one file: its path and its text.

/// Words that must not stand in this file either are put together here.
const LEFTOVERS: [&str; 3] = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X")];
const MACHINE: &str = concat!("/wo", "rk/");
const REGISTRIES: [&str; 5] = [
    concat!("npm", "js.org"),
    concat!("npm", "js.com"),
    concat!("crates", ".io"),
    concat!("py", "pi.org"),
    concat!("debian", ".org"),
];
const PROVIDER: &str = concat!("co", "dex");
const LONGEST: usize = 500;

/// Where a provider may be named, apart from its own folder. A test shows a provider's real words; documents are for people.
const NAMES_PROVIDERS: [&str; 9] = [
    // Agents that speak the common protocol are named where they are listed.
    "crates/agents/src/acp/",
    concat!("crates/agents/src/co", "dex/"),
    // The one list of providers.
    "crates/agents/src/lib.rs",
    "tests/",
    "icons/",
    "ui/demo/",
    "ui/src/lib/demo/",
    "ui/src/lib/catalogue",
    ".gitignore",
];

/// Everything that is wrong with a file.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let rules: [fn(&str, &str) -> Vec<String>; 8] = [length, leftovers, machine, registries, provider, secrets, style, sleeps];
    rules.iter().flat_map(|rule| rule(path, text)).collect()
}

fn rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.contains(".test.") || path.ends_with("tests.rs")
}

fn lock(path: &str) -> bool {
    path.ends_with("Cargo.lock") || path.ends_with("package-lock.json")
}

/// The lines that `bad` finds, with their numbers.
fn lines(path: &str, text: &str, why: &str, bad: impl Fn(&str) -> bool) -> Vec<String> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| bad(line))
        .map(|(number, line)| format!("{path}:{}: {why}: {}", number + 1, line.trim()))
        .collect()
}

/// No file has more than 500 lines of code; tests may be of any length.
pub(super) fn length(path: &str, text: &str) -> Vec<String> {
    let code = [".rs", ".ts", ".svelte", ".mjs", ".css"].iter().any(|end| path.ends_with(end));
    let generated = text.lines().take(3).any(|line| line.contains("generated"));
    if !code || is_test(path) && !path.starts_with("tests/src/") || generated {
        return Vec::new();
    }
    let comment = |line: &str| ["//", "/*", "*", "<!--"].iter().any(|start| line.starts_with(start)) || line.is_empty();
    let count = text.lines().filter(|line| !comment(line.trim())).count();
    if count <= LONGEST {
        return Vec::new();
    }
    vec![format!("{path}: {count} lines of code, {LONGEST} are the most")]
}

/// What is left to do is an issue, not a comment.
pub(super) fn leftovers(path: &str, text: &str) -> Vec<String> {
    if lock(path) {
        return Vec::new();
    }
    let word = |line: &str, word: &str| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            [before, after].iter().all(|c| c.is_none_or(|c| !c.is_alphanumeric() && c != '_'))
        })
    };
    lines(path, text, "left over", |line| LEFTOVERS.iter().any(|leftover| word(line, leftover)))
}

/// No path of one machine.
pub(super) fn machine(path: &str, text: &str) -> Vec<String> {
    let names = |line: &str| {
        line.match_indices(MACHINE).any(|(at, _)| {
            // As the root of a path, not as a folder within one.
            let before = line[..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && !"._-}$)".contains(c))
        })
    };
    lines(path, text, "a path of one machine", names)
}

/// No registry's host outside Cargo's lock file, whose format needs it.
pub(super) fn registries(path: &str, text: &str) -> Vec<String> {
    if path.ends_with("Cargo.lock") {
        return Vec::new();
    }
    let mut found = lines(path, text, "a registry's host", |line| REGISTRIES.iter().any(|host| line.contains(host)));
    if path.ends_with("package-lock.json") {
        found.extend(lines(path, text, "where a package came from", |line| line.contains("\"resolved\": \"http")));
    }
    found
}

/// A provider's name stands in its folder; everything else is said in the vocabulary of all.
pub(super) fn provider(path: &str, text: &str) -> Vec<String> {
    let program = ["crates/", "src-tauri/", "ui/", "xtask/"].iter().any(|at| path.starts_with(at));
    let may = NAMES_PROVIDERS.iter().any(|at| path.starts_with(at))
        || is_test(path)
        || path.ends_with(".md")
        || path.ends_with("sample.rs");
    if !program || may {
        return Vec::new();
    }
    // A comment may give an example; what is compiled may not know one.
    let code = |line: &str| !line.trim_start().starts_with("//");
    lines(path, without_tests(text), "names a provider", |line| code(line) && line.to_lowercase().contains(PROVIDER))
}

/// A Rust file without the module of tests at its end.
fn without_tests(text: &str) -> &str {
    text.split_once("\n#[cfg(test)]\nmod tests {").map_or(text, |(code, _)| code)
}

/// Secrets are typed in the engine only, and read in its vault only.
pub(super) fn secrets(path: &str, text: &str) -> Vec<String> {
    if !rust(path) || is_test(path) || path.starts_with("crates/engine/src/vault") {
        return Vec::new();
    }
    let engine = path.starts_with("crates/engine/");
    let types = ["SecretString", "SecretBox", "secrecy::"];
    lines(path, without_tests(text), "a secret outside the vault", |line| {
        line.contains("expose_secret") || line.contains("ExposeSecret") || !engine && types.iter().any(|name| line.contains(name))
    })
}

/// A module says what it is for; a lint is expected with a reason, never allowed.
pub(super) fn style(path: &str, text: &str) -> Vec<String> {
    if !rust(path) {
        return Vec::new();
    }
    let mut found = lines(path, text, "expect it, with a reason", |line| {
        let line = line.trim_start();
        line.starts_with("#[allow(") || line.starts_with("#![allow(")
    });
    // An attribute of the whole crate may come first.
    let first = text.lines().find(|line| !line.is_empty() && !line.starts_with("#!["));
    if !is_test(path) && !first.is_some_and(|line| line.starts_with("//!")) {
        found.push(format!("{path}:1: the module does not say what it is for"));
    }
    found
}

/// A test waits for what it waits for. Beside real processes nothing sleeps at all; elsewhere a paused clock may.
pub(super) fn sleeps(path: &str, text: &str) -> Vec<String> {
    let tests = rust(path) && is_test(path) && !path.starts_with("tests/src/");
    // In the tidy test stand the words themselves.
    if !tests || path.starts_with("tests/suite/tidy/") {
        return Vec::new();
    }
    let real = path.starts_with("tests/suite/");
    lines(path, text, "a sleep", |line| line.contains("thread::sleep(") || real && line.contains("time::sleep("))
}
