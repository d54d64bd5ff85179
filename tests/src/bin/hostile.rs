//! An agent that starts a tree of processes which do not want to end, and is the demo agent then.
//!
//! `hostile agent SHAPE FOLDER tree=FOLDER [COUNT]`; `hostile member …` is one of the tree, and `hostile server …` one that is
//! a server of the Model Context Protocol without a tool, and goes on when its client has gone. A member ends by itself when its folder is gone or its time is over.

use std::fs::File;
use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use harness::chaos::{self, Shape, Tree};
use rustix::process::{Pid, WaitOptions, setpgid, setsid, waitpid};
use serde_json::{Value, json};

/// How often a member looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// How long a generation of the respawner lives.
const GENERATION: Duration = Duration::from_millis(1);
/// The same where that is only one of its ways.
const LONG_GENERATION: Duration = Duration::from_millis(20);

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, shape, folder, mark, ..] = &words[..] else { bail!("hostile agent SHAPE FOLDER tree=FOLDER [COUNT]") };
    let shape = Shape::named(shape).with_context(|| format!("no shape {shape}"))?;
    let count = words.get(4).map_or(Ok(1), |count| count.parse())?;
    let start = Start { shape, folder: PathBuf::from(folder), mark: mark.clone(), begun: Instant::now() };
    match &**what {
        "agent" => agent(&start, count),
        "member" => start.live("member-0"),
        "server" => server(&start),
        _ => bail!("{what} is no kind of member"),
    }
}

/// The agent: the second one in the same folder starts no tree.
fn agent(start: &Start, count: usize) -> Result<ExitCode> {
    let first = Tree { folder: start.folder.clone(), expected: Vec::new() }.members().is_empty();
    if first {
        for number in 0..count {
            start.member(&format!("member-{number}"))?;
        }
    }
    let _lock = first.then(|| chaos::join(&start.folder, "agent")).transpose()?;
    Ok(turnkeep_demo::main(["--forget".into(), "--pace".into(), "0".into()]))
}

fn server(start: &Start) -> Result<ExitCode> {
    ignore_signals();
    let _lock = chaos::join(&start.folder, "server")?;
    for line in stdin().lock().lines().map_while(Result::ok) {
        let request: Value = serde_json::from_str(&line).unwrap_or_default();
        let result = match request["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": request["params"]["protocolVersion"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "stubborn", "version": "0" },
            }),
            Some("tools/list") => json!({ "tools": [] }),
            _ => json!({}),
        };
        if let Some(id) = request.get("id") {
            let mut out = stdout().lock();
            // A client that went away is no reason to go.
            let _ = writeln!(out, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result })).and_then(|()| out.flush());
        }
    }
    start.linger();
    Ok(ExitCode::SUCCESS)
}

struct Start {
    shape: Shape,
    folder: PathBuf,
    mark: String,
    begun: Instant,
}

/// Which side of a fork this is.
enum Side {
    Parent(Pid),
    Child,
}

#[expect(unsafe_code, reason = "std offers no fork; what is tried here is what programs do that have one")]
fn fork() -> Result<Side> {
    // SAFETY: this process has one thread, so the child finds every lock and the heap as the parent left them.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()).context("forking"),
        0 => Ok(Side::Child),
        pid => Ok(Side::Parent(Pid::from_raw(pid).context("a child has a number")?)),
    }
}

#[expect(unsafe_code, reason = "std offers no way to ignore a signal")]
fn ignore_signals() {
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        // SAFETY: no handler is set, and nothing else in this process sets one.
        unsafe {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

#[expect(unsafe_code, reason = "std closes only what it opened")]
fn close_everything() {
    // SAFETY: nothing that owns a descriptor is used or dropped in this process after that.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
    }
    // So that no file that is opened later is taken for a standard stream.
    for _ in 0..3 {
        if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
            std::mem::forget(null);
        }
    }
}

impl Start {
    /// Starts one member; it is there when its lock is held.
    fn member(&self, name: &str) -> Result<()> {
        match self.shape {
            Shape::ClearedEnvironment => return self.execute().map(drop),
            Shape::Plain | Shape::NewGroup | Shape::NewSession | Shape::Deaf | Shape::Respawner => {
                if let Side::Child = fork()? {
                    self.part();
                    let _ = self.live(name);
                    std::process::exit(0);
                }
            }
            Shape::Daemon | Shape::LeaderGone | Shape::AllAtOnce => match fork()? {
                Side::Parent(leader) => {
                    waitpid(Some(leader), WaitOptions::empty())?;
                }
                Side::Child => {
                    self.part();
                    if let Side::Child = fork()? {
                        let _ = self.second(name);
                    }
                    std::process::exit(0);
                }
            },
        }
        Ok(())
    }

    /// What the first child does to get away.
    fn part(&self) {
        // Neither can fail in a fresh child.
        match self.shape {
            Shape::NewGroup => drop(setpgid(None, None)),
            Shape::NewSession | Shape::Daemon | Shape::AllAtOnce => drop(setsid()),
            Shape::Plain | Shape::Deaf | Shape::Respawner | Shape::ClearedEnvironment | Shape::LeaderGone => {}
        }
    }

    /// The child of the child, whose parent goes at once.
    fn second(&self, name: &str) -> Result<()> {
        match self.shape {
            Shape::AllAtOnce => {
                close_everything();
                // An ignored signal stays ignored over an exec.
                ignore_signals();
                self.execute().map(drop)
            }
            Shape::Daemon => {
                close_everything();
                self.live(name).map(drop)
            }
            Shape::Plain
            | Shape::NewGroup
            | Shape::NewSession
            | Shape::Deaf
            | Shape::Respawner
            | Shape::ClearedEnvironment
            | Shape::LeaderGone => self.live(name).map(drop),
        }
    }

    /// A member that is executed anew, with nothing in its environment.
    fn execute(&self) -> Result<std::process::Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["member", self.shape.name()]).arg(&self.folder).arg(&self.mark).env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().context("starting a member")
    }

    fn live(&self, name: &str) -> Result<ExitCode> {
        if matches!(self.shape, Shape::Deaf | Shape::AllAtOnce) {
            ignore_signals();
        }
        let _lock = chaos::join(&self.folder, name)?;
        if matches!(self.shape, Shape::Respawner | Shape::AllAtOnce) {
            return self.respawn(name);
        }
        self.linger();
        Ok(ExitCode::SUCCESS)
    }

    fn linger(&self) {
        while !chaos::over(&self.folder, self.begun) {
            sleep(LOOK);
        }
    }

    fn respawn(&self, name: &str) -> Result<ExitCode> {
        while !chaos::over(&self.folder, self.begun) {
            sleep(if self.shape == Shape::Respawner { GENERATION } else { LONG_GENERATION });
            if let Side::Parent(_) = fork()? {
                // The lock is the child's as well.
                std::process::exit(0);
            }
            chaos::write_down(&self.folder, name)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
