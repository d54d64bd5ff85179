//! `cargo xtask test`: every check, each with its time, and one line that says how it ended.
//!
//! A step that fails does not stop the others, unless they need what it makes.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::command::{cargo, program, succeeds};
use crate::packages::{self, Consent};
use crate::{Options, command, say, ui};

/// The application as it is shipped: its page is part of it.
const FEATURES: &str = "turnkeep/custom-protocol";

#[derive(Debug, Default)]
struct Report {
    steps: Vec<(String, Duration, Outcome)>,
    passed: u64,
    failed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// Tests that one line of a runner's output speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    passed: u64,
    failed: u64,
}

pub(crate) fn test(options: Options) -> Result<ExitCode> {
    let mut report = Report::default();
    let prepared = prepare(&mut report, options);
    if prepared {
        if options.fast { fast(&mut report) } else { full(&mut report) }
    }
    Ok(report.close())
}

/// What everything else needs; false if it cannot be had.
fn prepare(report: &mut Report, options: Options) -> bool {
    let consent = if options.yes || packages::is_root() { Consent::Given } else { Consent::Ask };
    let lists: &[&str] = if options.fast { &[] } else { &[packages::BUILD, packages::TEST] };
    report.step("system packages", || packages::ensure(lists, consent))
        && report.step("node", packages::ensure_node)
        && report.step("ui packages", || ui::install("ui"))
        && (options.fast || report.step("agents", || ui::install("tests/agents")))
        // The application takes the page in when it is compiled.
        && report.step("ui build", ui::build)
}

fn fast(report: &mut Report) {
    interface(report);
    report.run("format", &mut cargo(&["fmt", "--all", "--check"]));
    let pure = ["-p", "turnkeep-model", "-p", "turnkeep-agents", "-p", "turnkeep-view", "-p", "xtask"];
    report.tests("pure tests", &mut cargo(&[&["test", "--no-fail-fast"], &pure[..]].concat()));
    let tidy = ["test", "-p", "turnkeep-tests", "--test", "suite", "tidy::"];
    report.tests("tidy", &mut cargo(&tidy));
}

fn full(report: &mut Report) {
    interface(report);
    report.run("format", &mut cargo(&["fmt", "--all", "--check"]));
    let workspace = ["--workspace", "--all-targets", "--features", FEATURES];
    let deny = ["--", "-D", "warnings"];
    report.run("lints", &mut cargo(&[&["clippy"], &workspace[..], &deny[..]].concat()));
    let doc = ["doc", "--workspace", "--no-deps", "--document-private-items", "--features", FEATURES];
    report.run("documentation", cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"));
    // The end-to-end tests start the program that this makes.
    if report.run("build", &mut cargo(&[&["build"], &workspace[..]].concat())) {
        let all = ["test", "--workspace", "--no-fail-fast", "--features", FEATURES];
        report.tests("tests", &mut cargo(&all));
    }
    if succeeds("cargo", &["deny", "--version"]) {
        report.run("cargo deny", &mut cargo(&["deny", "check", "licenses", "bans", "sources"]));
    } else {
        // The tidy test has checked licences and duplicates against the same file.
        report.skip("cargo deny (not installed)");
    }
}

fn interface(report: &mut Report) {
    report.run("ui check", &mut program("npm", &["run", "--silent", "check"], "ui"));
    report.tests("ui tests", &mut program("npm", &["run", "--silent", "test"], "ui"));
}

impl Report {
    fn step(&mut self, name: &str, work: impl FnOnce() -> Result<()>) -> bool {
        say(&format!("\n== {name}"));
        let start = Instant::now();
        let done = work();
        let outcome = match &done {
            Ok(()) => Outcome::Passed,
            Err(error) => {
                say(&format!("{name} failed: {error:#}"));
                Outcome::Failed
            }
        };
        self.steps.push((name.to_owned(), start.elapsed(), outcome));
        done.is_ok()
    }

    fn run(&mut self, name: &str, command: &mut Command) -> bool {
        self.step(name, || command::run(command))
    }

    /// A step whose output says how many tests it ran; one that says nothing has failed.
    fn tests(&mut self, name: &str, command: &mut Command) {
        let mut sum = Count::default();
        self.step(name, || {
            command::watch(command, |line| {
                let count = count(line).unwrap_or_default();
                sum.passed += count.passed;
                sum.failed += count.failed;
            })?;
            anyhow::ensure!(sum.passed > 0, "it ran no test");
            Ok(())
        });
        self.passed += sum.passed;
        self.failed += sum.failed;
    }

    fn skip(&mut self, name: &str) {
        self.steps.push((name.to_owned(), Duration::ZERO, Outcome::Skipped));
    }

    fn close(&self) -> ExitCode {
        say("\n== times");
        for (name, time, outcome) in &self.steps {
            let word = match outcome {
                Outcome::Passed => "passed",
                Outcome::Failed => "FAILED",
                Outcome::Skipped => "skipped",
            };
            say(&format!("{:>8.1} s  {word:<8} {name}", time.as_secs_f64()));
        }
        let (passed, failed) = self.totals();
        say(&format!("{passed} passed, {failed} failed"));
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Tests and steps together: a step without a test of its own is one check.
    fn totals(&self) -> (u64, u64) {
        let of = |wanted: Outcome| {
            let steps = self.steps.iter().filter(|(_, _, outcome)| *outcome == wanted).count();
            u64::try_from(steps).unwrap_or(u64::MAX)
        };
        (self.passed + of(Outcome::Passed), self.failed + of(Outcome::Failed))
    }
}

/// Reads `test result: ok. 3 passed; 0 failed; …` and vitest's `Tests  1 failed | 3 passed (4)`.
fn count(line: &str) -> Option<Count> {
    let plain = without_colours(line);
    let rest = match plain.trim().strip_prefix("test result:") {
        Some(rest) => rest,
        None => plain.trim().strip_prefix("Tests ")?,
    };
    let words: Vec<&str> = rest.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let before = |name: &str| {
        let pairs = words.windows(2).find(|pair| pair[1] == name);
        pairs.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
    };
    Some(Count { passed: before("passed"), failed: before("failed") })
}

/// Takes out the terminal's colour codes: escape, bracket, numbers, `m`.
fn without_colours(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_runners_are_counted() {
        let line = "test result: FAILED. 16 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(count(line), Some(Count { passed: 16, failed: 3 }));
        let line = "      \u{1b}[2mTests\u{1b}[22m  1 failed | 41 passed (42)";
        assert_eq!(count(line), Some(Count { passed: 41, failed: 1 }));
        assert_eq!(count(" Test Files  2 passed (2)"), None);
        assert_eq!(count("running 3 tests"), None);
    }

    #[test]
    fn a_failed_step_fails_the_whole() {
        let mut report = Report::default();
        assert!(report.step("good", || Ok(())));
        assert_eq!(report.totals(), (1, 0));
        assert!(!report.step("bad", || anyhow::bail!("planted")));
        report.skip("skipped");
        assert_eq!(report.totals(), (1, 1));
        assert_eq!(report.close(), ExitCode::FAILURE);
    }

    #[test]
    fn a_runner_that_ran_nothing_has_failed() {
        let mut report = Report::default();
        report.tests("empty", &mut program("echo", &["test result: ok. 0 passed; 0 failed"], ""));
        assert_eq!(report.totals(), (0, 1));
        report.tests("three", &mut program("echo", &["test result: ok. 3 passed; 0 failed"], ""));
        assert_eq!(report.totals(), (4, 1));
        report.tests("dies", &mut program("false", &[], ""));
        assert_eq!(report.totals(), (4, 2));
    }
}
