//! The built-in demo agent: a real agent in a process of its own that speaks the Agent Client Protocol, version 1.
//!
//! Everything in the product can be tried with it, without an account or a network: what a person types chooses one of its
//! scripts. It never uses the network, writes only below its state folder and, after it was allowed, into the sub-folder
//! `turnkeep-demo` of a session's folder.

mod agent;
mod history;
mod run;
mod scratch;
mod script;
mod through;
mod turn;
mod wire;

use std::{
    ffi::OsString,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

pub use crate::script::WORDS;

/// How long a step of a script takes, in milliseconds: the variable that tests set to nought.
pub const PACE: &str = "TURNKEEP_DEMO_PACE_MS";

/// The variable that names the folder for the sessions' histories.
pub const STATE: &str = "TURNKEEP_DEMO_STATE";

const USUAL_PACE: Duration = Duration::from_millis(40);

/// How it is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pace: Duration,
    /// Without one, nothing is kept and no session can be loaded.
    state: Option<PathBuf>,
}

/// Runs the agent on the standard streams until its input ends. `arguments` are those after `demo-agent`.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match parse(arguments, |name| std::env::var_os(name)) {
        Ok(Some(options)) => run::run(options),
        Ok(None) => {
            // A reader that went away has had enough.
            let _ = io::stdout().write_all(help().as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => {
            let _ = writeln!(io::stderr(), "turnkeep demo-agent: {why}");
            ExitCode::FAILURE
        }
    }
}

/// None: help is wanted.
fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<Options>, String> {
    let mut pace = variable(PACE);
    let mut state = variable(STATE).filter(|it| !it.is_empty()).map(PathBuf::from).or_else(|| usual_state(&variable));
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--help" | "-h") => return Ok(None),
            Some("--state") => state = Some(arguments.next().ok_or("--state needs a folder")?.into()),
            Some("--pace") => pace = Some(arguments.next().ok_or("--pace needs milliseconds")?),
            Some("--forget") => state = None,
            _ => return Err(format!("{} is not understood: see --help", argument.to_string_lossy())),
        }
    }
    let pace =
        match pace {
            None => USUAL_PACE,
            Some(pace) => pace.to_str().and_then(|it| it.parse().ok()).map(Duration::from_millis).ok_or_else(|| {
                format!("{} is no number of milliseconds: give one to --pace or {PACE}", pace.to_string_lossy())
            })?,
        };
    Ok(Some(Options { pace, state }))
}

/// Where programs keep what they may lose.
fn usual_state(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name| variable(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let base = folder("XDG_STATE_HOME")
        .or_else(|| folder("LOCALAPPDATA"))
        .or_else(|| folder("HOME").map(|home| home.join(".local/state")))?;
    Some(base.join("turnkeep").join("demo"))
}

fn help() -> String {
    let words: String = WORDS.iter().map(|(word, what)| format!("  {word:<14}{what}\n")).collect();
    format!(
        "\
The demo agent of Turnkeep: an agent that speaks the Agent Client Protocol (version 1) on its standard streams.
It is scripted: it asks no model, uses no network, and needs no account.

Usage: turnkeep demo-agent [--state <folder> | --forget] [--pace <ms>]

  --state <folder>   where the sessions' histories are kept, also {STATE}
  --forget           keep nothing; no session can be loaded again
  --pace <ms>        how long a step takes, also {PACE}; the usual is {}

What is typed chooses a script:

{words}
Anything else is the tour. The end of its input ends it.
",
        USUAL_PACE.as_millis()
    )
}
