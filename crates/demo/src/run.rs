//! The dull loop around the machine: one thread reads lines, one writes them, one waits for each command.
//!
//! It must end when its input ends, whatever the reader of its output does, and leave no command behind.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io::{self, BufRead, Read as _, Write},
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use crate::{
    Options,
    agent::{Agent, In, Out},
    history::History,
    turn::LONGEST_OUTPUT,
};

/// A longer line is thrown away.
pub(crate) const LONGEST_LINE: u64 = 16 << 20;

/// How long a reader of our output may take for the rest of it.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What ends when asked to by `crash`.
const CRASHED: u8 = 70;

pub(crate) fn run(options: Options) -> ExitCode {
    let (history, why) = History::open(options.state);
    if let Some(why) = why {
        let _ = writeln!(io::stderr(), "turnkeep demo-agent: {why}");
    }
    let mut agent = Agent::new(history, options.pace);
    let (inbox, arrivals) = channel();
    let (lines, to_write) = channel::<String>();
    let reader = inbox.clone();
    thread::spawn(move || read(io::stdin().lock(), &reader));
    let (written, all_written) = channel();
    thread::spawn(move || {
        // Whoever does not read any more has closed our input, or soon does.
        let _ = write(&to_write);
        let _ = written.send(());
    });
    let mut commands = Commands { running: BTreeMap::new(), inbox };
    let code = serve(&mut agent, &arrivals, &lines, &mut commands);
    commands.end();
    drop(lines);
    let _ = all_written.recv_timeout(LAST_WORDS);
    code
}

fn serve(agent: &mut Agent, arrivals: &Receiver<In>, lines: &Sender<String>, commands: &mut Commands) -> ExitCode {
    loop {
        let arrival = match agent.due() {
            // What has arrived comes before what is due.
            Some(due) => arrivals.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => arrivals.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let now = Instant::now();
        match arrival {
            Ok(In::Line(line)) => agent.receive(now, &line),
            Ok(In::TooLong) => agent.too_long(),
            Ok(In::Ran { session, call, result }) => {
                let well = commands.ended(&session, &call);
                agent.ran(now, &session, &call, &result.map(|(output, read)| (output, read && well)));
            }
            Err(RecvTimeoutError::Timeout) => agent.step(now),
            Ok(In::End) | Err(RecvTimeoutError::Disconnected) => return ExitCode::SUCCESS,
        }
        while let Some(out) = agent.out.pop_front() {
            match out {
                // The writer has gone: the end of the input follows.
                Out::Send(message) => drop(lines.send(format!("{message}\n"))),
                Out::Run { session, call, program, cwd } => commands.start(session, call, program, &cwd),
                Out::Kill { session } => commands.kill(&session),
                Out::Crash => return ExitCode::from(CRASHED),
            }
        }
    }
}

pub(crate) fn read(mut input: impl BufRead, inbox: &Sender<In>) {
    loop {
        let mut line = Vec::new();
        let arrival = match (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => In::End,
            Ok(_) if line.len() as u64 == LONGEST_LINE && !line.ends_with(b"\n") => match input.skip_until(b'\n') {
                Ok(_) => In::TooLong,
                Err(_) => In::End,
            },
            Ok(_) => In::Line(line),
        };
        let end = matches!(arrival, In::End);
        if inbox.send(arrival).is_err() || end {
            return;
        }
    }
}

fn write(lines: &Receiver<String>) -> io::Result<()> {
    let mut output = io::stdout().lock();
    while let Ok(line) = lines.recv() {
        output.write_all(line.as_bytes())?;
        output.flush()?;
    }
    Ok(())
}

/// The commands that run, one a session at most.
struct Commands {
    running: BTreeMap<String, Running>,
    inbox: Sender<In>,
}

struct Running {
    call: String,
    child: Child,
}

impl Commands {
    fn start(&mut self, session: String, call: String, program: &'static [&'static str], cwd: &Path) {
        self.kill(&session);
        let inbox = self.inbox.clone();
        let ended = move |session, call, result| drop(inbox.send(In::Ran { session, call, result }));
        let Some((program, arguments)) = program.split_first() else { return };
        let child = Command::new(program)
            .args(arguments)
            .current_dir(cwd)
            // Held open by us: a command that reads it ends with us, however we end.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        match child {
            Err(error) => ended(session, call, Err(error.to_string())),
            Ok(mut child) => {
                let Some(mut output) = child.stdout.take() else { return };
                let (of, of_call) = (session.clone(), call.clone());
                thread::spawn(move || {
                    let mut bytes = Vec::new();
                    let read = (&mut output).take(LONGEST_OUTPUT as u64).read_to_end(&mut bytes);
                    // The rest is read so that the command can end.
                    let rest = io::copy(&mut output, &mut io::sink());
                    let mut text = String::from_utf8_lossy(&bytes).into_owned();
                    if rest.as_ref().is_ok_and(|rest| *rest > 0) {
                        text.push_str("\n(and more)\n");
                    }
                    ended(of, of_call, Ok((text, read.is_ok() && rest.is_ok())));
                });
                self.running.insert(session, Running { call, child });
            }
        }
    }

    /// Whether a command that has closed its output ended well.
    fn ended(&mut self, session: &str, call: &str) -> bool {
        match self.running.entry(session.to_owned()) {
            Entry::Occupied(entry) if entry.get().call == call => {
                entry.remove().child.wait().is_ok_and(|status| status.success())
            }
            Entry::Occupied(_) | Entry::Vacant(_) => false,
        }
    }

    /// Ends it, and waits until it has ended.
    fn kill(&mut self, session: &str) {
        if let Some(mut running) = self.running.remove(session) {
            // It may have ended already.
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }

    fn end(&mut self) {
        let all: Vec<String> = self.running.keys().cloned().collect();
        all.iter().for_each(|session| self.kill(session));
    }
}
