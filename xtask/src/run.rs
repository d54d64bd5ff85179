//! `cargo xtask run`: from a fresh checkout to a running application.

use std::env;
use std::process::ExitCode;

use anyhow::Result;

use crate::packages::{self, Consent};
use crate::{Options, command, say, ui};

const NO_DISPLAY: &str = "\
There is no display here (neither WAYLAND_DISPLAY nor DISPLAY is set), so there can be no tray icon and no window.
A form without a desktop, `turnkeep serve`, which shows the same interface in a browser, is planned but does not exist yet.
`cargo xtask test` works without a display.";

pub(crate) fn run(options: Options) -> Result<ExitCode> {
    let display = ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|name| env::var_os(name).is_some_and(|v| !v.is_empty()));
    if cfg!(target_os = "linux") && !display {
        say(NO_DISPLAY);
        return Ok(ExitCode::FAILURE);
    }
    let consent = if options.yes { Consent::Given } else { Consent::Ask };
    packages::ensure(&[packages::BUILD], consent)?;
    packages::ensure_node()?;
    ui::install("ui")?;
    ui::build()?;
    let release: &[&str] = if options.release { &["--release"] } else { &[] };
    // The application looks for it beside itself.
    command::run(&mut command::cargo(&[&["build", "--package", "turnkeep-guard"], release].concat()))?;
    let words = [&["run", "--package", "turnkeep", "--features", "custom-protocol"], release].concat();
    let status = command::cargo(&words).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
