//! The commands of the project: `cargo xtask run`, `cargo xtask test` and `cargo xtask chaos`.
//!
//! They change nothing outside the checkout except system packages, and those only with consent.

mod chaos;
mod command;
mod packages;
mod run;
mod test;
mod ui;

use std::env;
use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask run [--yes] [--release]
    Build and start the application. Says which system packages are missing and asks before it installs them.
cargo xtask test [--yes] [--fast]
    Everything that CI runs: formatting, lints, the interface's and all other tests, with the real agents in a
    real desktop. As root, or with --yes, missing packages are installed without a question.
    --fast: no lints, no desktop, no real agents.
cargo xtask chaos [<rounds>]
    Ends the application, its guards and its agents in every way, each so many times (1000), with trees of processes that
    do not want to end; prints what was left and how long it took, with the guards and without.
";

/// What the person said on the command line.
#[derive(Debug, Default, Clone, Copy)]
struct Options {
    rounds: Option<u32>,
    yes: bool,
    fast: bool,
    release: bool,
}

fn main() -> ExitCode {
    let mut words = env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let mut options = Options::default();
    for word in words {
        match word.as_str() {
            "--yes" => options.yes = true,
            "--fast" => options.fast = true,
            "--release" => options.release = true,
            _ if command == "chaos" && word.parse::<u32>().is_ok_and(|rounds| rounds > 0) => options.rounds = word.parse().ok(),
            _ => {
                complain(&format!("unknown option {word}\n{HELP}"));
                return ExitCode::from(2);
            }
        }
    }
    let done = match command.as_str() {
        "run" => run::run(options),
        "test" => test::test(options),
        "chaos" => chaos::chaos(options),
        _ => {
            complain(HELP);
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            complain(&format!("cargo xtask {command}: {error:#}\n"));
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Prints a line.
#[expect(clippy::print_stdout, reason = "the output of a program for the command line, which its own tests capture")]
fn say(text: &str) {
    println!("{text}");
}

fn complain(text: &str) {
    let _ = write!(stderr(), "{text}");
}
