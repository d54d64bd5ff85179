#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]
//! The desktop application: a tray, a window when somebody wants one, and notifications, around one engine.
//!
//! It shows and asks; it decides nothing. Without a window it holds no web view.

mod args;
mod commands;
mod diagnostics;
mod folder;
#[cfg(target_os = "linux")]
mod instance;
mod links;
mod notify;
mod own_agents;
#[cfg(test)]
mod permissions;
#[cfg(target_os = "linux")]
mod png;
mod pump;
mod shell;
mod start;
mod tray;
mod window;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

fn main() -> ExitCode {
    let (text, code) = match args::parse(std::env::args_os().skip(1)) {
        Ok(args::Wanted::Run(opening)) => match start::run(opening) {
            Ok(code) => return code,
            Err(why) => return complain(&why),
        },
        // Nothing of the desktop is touched.
        Ok(args::Wanted::DemoAgent(arguments)) => return turnkeep_demo::main(arguments),
        Ok(args::Wanted::Version) => (format!("turnkeep {}\n", shell::VERSION), ExitCode::SUCCESS),
        Ok(args::Wanted::Help) => (args::HELP.to_owned(), ExitCode::SUCCESS),
        Err(why) => return complain(&why),
    };
    // A reader that went away has had enough.
    let _ = io::stdout().write_all(text.as_bytes());
    code
}

fn complain(why: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "turnkeep: {why}");
    ExitCode::FAILURE
}
