//! The guard's program, built as it is now and put where those that start guards look for it.
//!
//! A package's tests are built without the programs of other packages; a test of yesterday's guard would say nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};

/// Builds it, once in each test program; where it lies.
pub fn built() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    match built {
        Ok(program) => Ok(program.clone()),
        Err(why) => bail!("building the guard: {why}"),
    }
}

fn build() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let mut profile = own.parent().context("this program lies in no folder")?;
    if profile.ends_with("deps") {
        profile = profile.parent().context("deps lies in no folder")?;
    }
    let target = profile.parent().context("the profile lies in no folder")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "turnkeep-guard", "--target-dir"]).arg(target);
    if profile.ends_with("release") {
        command.arg("--release");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let status = command.current_dir(root).stdin(Stdio::null()).stdout(Stdio::null()).status().context("starting cargo")?;
    ensure!(status.success(), "cargo build --package turnkeep-guard: {status}");
    let program = profile.join("turnkeep-guard");
    ensure!(program.is_file(), "{} is not there", program.display());
    Ok(program)
}
