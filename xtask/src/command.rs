//! Other programs: run to their end, with their output shown as it comes and also kept where it is counted.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{root, say};

/// A program in the workspace's folder, or in `folder` of it, with nothing on its standard input.
pub(crate) fn program(name: &str, words: &[&str], folder: &str) -> Command {
    let mut command = Command::new(name);
    command.args(words).current_dir(root().join(folder)).stdin(Stdio::null());
    command
}

/// Cargo, the one that runs us.
pub(crate) fn cargo(words: &[&str]) -> Command {
    program(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()), words, "")
}

/// Runs it; an exit code other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("starting {shown}"))?;
    if !status.success() {
        bail!("{shown}: {status}");
    }
    Ok(())
}

/// Runs it, and hands each line of its standard output to `line` as well.
pub(crate) fn watch(command: &mut Command, mut line: impl FnMut(&str)) -> Result<()> {
    let shown = shown(command);
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("starting {shown}"))?;
    let output = child.stdout.take().context("no output to read")?;
    for text in BufReader::new(output).split(b'\n') {
        let text = text.with_context(|| format!("reading from {shown}"))?;
        let text = String::from_utf8_lossy(&text);
        say(&text);
        line(&text);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{shown}: {status}");
    }
    Ok(())
}

/// Whether it can be run and succeeds, without showing anything.
pub(crate) fn succeeds(name: &str, words: &[&str]) -> bool {
    let mut command = program(name, words, "");
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Its standard output, if it succeeds.
pub(crate) fn output(name: &str, words: &[&str]) -> Option<String> {
    let output = program(name, words, "").stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn shown(command: &Command) -> String {
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    let name = command.get_program().to_string_lossy().into_owned();
    [name].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
