//! The agent's standard output: whole lines, and lines that are not.

use std::fs::File;
use std::io::{Result, Write as _, stdout};

use serde_json::Value;

/// Writes one message and its newline at once.
pub(crate) fn line(message: &Value) -> Result<()> {
    raw(format!("{message}\n").as_bytes())
}

pub(crate) fn raw(bytes: &[u8]) -> Result<()> {
    let mut output = stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

/// A line of valid JSON of about `length` bytes.
pub(crate) fn long_line(length: usize) -> Result<()> {
    let piece = [b'x'; 64 * 1024];
    let mut output = stdout().lock();
    output.write_all(br#"{"method":"fake/long","params":{"text":""#)?;
    let mut left = length;
    while left > 0 {
        let now = left.min(piece.len());
        output.write_all(&piece[..now])?;
        left -= now;
    }
    output.write_all(b"\"}}\n")?;
    output.flush()
}

/// Closes the pipe to the client; what is written later goes nowhere.
pub(crate) fn close() -> Result<()> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nowhere)?;
    Ok(())
}
