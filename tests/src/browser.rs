//! The person's browser, played by the test: a program that is handed addresses in its place, and a visit that goes where a
//! browser would be sent.
//!
//! It speaks plain HTTP to loopback and to nothing else.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};

use crate::wait;

/// A page that has not come by then never will.
const ANSWER: Duration = Duration::from_secs(30);
/// A browser gives up after about as many.
const REDIRECTS: usize = 10;

/// The program that stands in for the system's opener, and what it was handed.
#[derive(Debug)]
pub struct Browser {
    folder: PathBuf,
}

impl Browser {
    /// Makes the opener in a folder of its own.
    pub fn install(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let opener = folder.join("xdg-open");
        // One line an address, and whole lines even when two come at once.
        let text = format!("#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{}'\n", folder.join("opened").display());
        fs::write(&opener, text).context("writing the opener")?;
        fs::set_permissions(&opener, fs::Permissions::from_mode(0o755))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// To be put first on a `PATH`.
    #[must_use]
    pub fn bin(&self) -> &Path {
        &self.folder
    }

    /// Every address that was to be opened, oldest first.
    #[must_use]
    pub fn opened(&self) -> Vec<String> {
        fs::read_to_string(self.folder.join("opened")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits until so many addresses were to be opened; gives the last of them.
    pub fn wait_opened(&self, times: usize) -> Result<String> {
        wait::until(&format!("address {times} at the browser"), || self.opened().get(times - 1).cloned())
    }
}

/// Where a visit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub url: String,
    pub status: u16,
    pub body: String,
}

/// Asks for a page as a browser does, redirects included.
pub fn visit(url: &str) -> Result<Page> {
    let mut url = url.to_owned();
    for _ in 0..REDIRECTS {
        let (status, location, body) = get(&url).with_context(|| format!("visiting {url}"))?;
        match location {
            Some(to) if (300..400).contains(&status) => url = absolute(&url, &to)?,
            _ => return Ok(Page { url, status, body }),
        }
    }
    bail!("sent on and on, last to {url}")
}

fn absolute(from: &str, to: &str) -> Result<String> {
    if to.starts_with("http://") {
        return Ok(to.to_owned());
    }
    let (host, _) = split(from)?;
    Ok(format!("http://{host}{to}"))
}

fn split(url: &str) -> Result<(&str, String)> {
    let rest = url.strip_prefix("http://").with_context(|| format!("{url} is not plain HTTP"))?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    Ok((host, if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }))
}

fn get(url: &str) -> Result<(u16, Option<String>, String)> {
    let (host, path) = split(url)?;
    let mut connection = TcpStream::connect(host).with_context(|| format!("connecting to {host}"))?;
    connection.set_read_timeout(Some(ANSWER))?;
    write!(connection, "GET {path} HTTP/1.1\r\nhost: {host}\r\naccept: text/html\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut more = [0; 16 * 1024];
    while !complete(&answer) {
        match connection.read(&mut more)? {
            0 => break,
            length => answer.extend_from_slice(&more[..length]),
        }
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no head")?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).context("the answer has no status")?;
    Ok((status, header(head, "location"), body.to_owned()))
}

fn header(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}

/// A server may keep the connection open after its answer.
fn complete(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let length = header(&String::from_utf8_lossy(&answer[..end]), "content-length");
    length.and_then(|length| length.parse().ok()).is_some_and(|length: usize| answer.len() >= end + 4 + length)
}

/// The port of this machine on which the agent waits for a browser: every process that signs in takes it from the one
/// before, so that tests have to take turns, also those of another run beside this one.
#[derive(Debug)]
pub struct SignInPort {
    _lock: File,
}

impl SignInPort {
    pub const NUMBER: u16 = 1455;
    /// Taken when another program does not give up the first.
    pub const FALLBACK: u16 = 1457;

    /// Waits until it is this test's turn.
    pub fn take() -> Result<Self> {
        let path = Path::new("/var/tmp").join(format!("turnkeep-tests-port-{}", Self::NUMBER));
        let lock =
            File::options().create(true).append(true).open(&path).with_context(|| format!("opening {}", path.display()))?;
        flock(&lock, FlockOperation::LockExclusive).context("waiting for the port")?;
        Ok(Self { _lock: lock })
    }
}
