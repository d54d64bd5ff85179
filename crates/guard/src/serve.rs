//! The guard's life: told what to start, starts it, waits, and ends everything that descends from it.
//!
//! One thread, no clock but the grace of a stop. Its last word is said only when the system says that it has no child left.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
        unix::{ffi::OsStrExt as _, net::UnixStream, process::CommandExt as _},
    },
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, WaitOptions, chdir, getpid, kill_process, set_child_subreaper, setsid, wait},
};

use crate::{
    NOT_UNDERSTOOD,
    child::Fresh,
    leaf::Leaf,
    signals::{Came, Signals},
    tree,
    wire::{FRAME, GUARDS, LONGEST_TEXT, Order, Program, VERSION, Variable, Word},
};

/// From SIGTERM to SIGKILL where nobody says otherwise.
const GRACE: Duration = Duration::from_secs(2);
/// Between two looks at the tree while it is asked politely.
const LOOK: Duration = Duration::from_millis(10);
/// The same while it is killed; the end of a child is told at once in any case.
const KILL: Duration = Duration::from_millis(1);
/// A killed process that does not end is in the kernel's hands; it is looked at less often after so long.
const STUCK: Duration = Duration::from_secs(2);

pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut number = || arguments.next()?.to_str()?.parse::<i32>().ok();
    let (Some(version), Some(descriptor)) = (number(), number()) else { return ExitCode::from(NOT_UNDERSTOOD) };
    if version != i32::from(VERSION) {
        return ExitCode::from(NOT_UNDERSTOOD);
    }
    match contact(descriptor).and_then(Guard::start) {
        Ok(Some(mut guard)) => {
            guard.serve();
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[expect(unsafe_code, reason = "the descriptor was handed over by its number")]
fn contact(descriptor: RawFd) -> io::Result<UnixStream> {
    if descriptor < 3 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: only asks whether the number is an open descriptor.
    if unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and nothing else in this program has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }.into())
}

struct Guard {
    /// `None` once the application is gone.
    contact: Option<UnixStream>,
    /// The beginning of an order.
    heard: ([u8; FRAME], usize),
    signals: Signals,
    /// The runtime's own process, until it was waited for.
    main: Option<i32>,
    leaf: Option<Leaf>,
}

/// What is to be ended how, once that is known.
#[derive(Clone, Copy, Debug)]
struct Ending {
    begun: Instant,
    grace: Duration,
}

/// Whether there are children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Some,
    None,
}

impl Guard {
    /// Hear what to start, and start it; nothing where the application is gone already or the start failed.
    fn start(mut contact: UnixStream) -> io::Result<Option<Self>> {
        // The application has done so before the exec; a person that tries the program out has not.
        let _ = setsid();
        let signals = Signals::hold_back()?;
        set_child_subreaper(Some(getpid()))?;
        let Some(program) = hear_program(&mut contact)? else { return Ok(None) };
        let leaf = program.leaf.clone().map(Leaf::new);
        let started = start(&program, leaf.as_ref());
        // From here on only the runtime has them: they end when it ends.
        let free = let_go_of_streams().and_then(|()| Ok(chdir("/")?));
        let pid = match started {
            Ok(pid) => pid,
            Err(error) => {
                let word = Word::NotStarted { error: error.raw_os_error().unwrap_or(libc::EINVAL) };
                contact.write_all(&word.encode())?;
                if let Some(leaf) = leaf {
                    leaf.remove();
                }
                return Ok(None);
            }
        };
        let start_ticks = tree::look(pid).map_or(0, |it| it.start_ticks);
        let mut guard = Self { contact: Some(contact), heard: ([0; FRAME], 0), signals, main: Some(pid), leaf };
        if free.is_err() {
            guard.end(Ending { begun: Instant::now(), grace: Duration::ZERO });
            return Err(io::ErrorKind::Other.into());
        }
        if let Some(contact) = &guard.contact {
            contact.set_nonblocking(true)?;
        }
        guard.say(Word::Started { pid: pid.cast_unsigned(), start_ticks });
        Ok(Some(guard))
    }

    fn serve(&mut self) {
        loop {
            let (came, orders) = self.wait_for(None);
            if came.child {
                self.bury();
            }
            let mut grace = came.end.then_some(GRACE);
            for order in orders {
                if let Some(wanted) = self.obey(order) {
                    grace = Some(grace.map_or(wanted, |grace| grace.min(wanted)));
                }
            }
            if let Some(grace) = grace {
                self.end(Ending { begun: Instant::now(), grace });
                self.say(Word::Gone);
                return;
            }
        }
    }

    /// The grace, if the order is to end.
    fn obey(&mut self, order: Order) -> Option<Duration> {
        match order {
            Order::Stop { grace } => Some(Duration::from_millis(grace.into())),
            Order::Signal { number } => {
                // It was not waited for, so the number is still its.
                if let (Some(pid), Some(signal)) = (self.main.and_then(Pid::from_raw), Signal::from_named_raw(number)) {
                    let _ = kill_process(pid, signal);
                }
                None
            }
            Order::Start { .. } => None,
        }
    }

    /// End everything; nothing descends from this process when it returns.
    fn end(&mut self, mut ending: Ending) {
        let us = getpid().as_raw_nonzero().get();
        let mut asked: Vec<tree::Member> = Vec::new();
        let mut looked: Option<Instant> = None;
        let mut killed = false;
        loop {
            if self.bury() == Left::None && self.is_empty() {
                break;
            }
            let now = Instant::now();
            let firm = now.duration_since(ending.begun) >= ending.grace;
            let look = looked.is_none_or(|at| now.duration_since(at) >= LOOK);
            if firm
                && !std::mem::replace(&mut killed, true)
                && let Some(leaf) = &self.leaf
            {
                leaf.kill();
            }
            if firm {
                // What a killed parent leaves becomes a child of ours; one that forks a successor and ends has to be hit
                // within its life, so this pass is as short as can be.
                for pid in tree::children(us) {
                    tree::signal_child(pid, Signal::KILL);
                }
            }
            if look {
                let tree = tree::descendants(us);
                asked.retain(|member| tree.iter().any(|it| same(it, member)));
                for member in tree {
                    if firm {
                        tree::signal(member, Signal::KILL);
                    } else if !asked.iter().any(|it| same(it, &member)) {
                        tree::signal(member, Signal::TERM);
                        // One that was halted hears nothing.
                        tree::signal(member, Signal::CONT);
                        asked.push(member);
                    }
                }
                looked = Some(Instant::now());
            }
            let left = ending.grace.saturating_sub(ending.begun.elapsed());
            let stuck = firm && ending.begun.elapsed() > ending.grace + STUCK;
            let time = if stuck {
                LOOK * 10
            } else if firm {
                KILL
            } else {
                LOOK.min(left)
            };
            let (_, orders) = self.wait_for(Some(time));
            for order in orders {
                if let Some(grace) = self.obey(order) {
                    // Counted from when it was said.
                    ending.grace = ending.grace.min(ending.begun.elapsed() + grace);
                }
            }
        }
        if let Some(leaf) = &self.leaf {
            leaf.remove();
        }
    }

    /// Whether the control group is empty, too.
    fn is_empty(&self) -> bool {
        self.leaf.as_ref().is_none_or(|leaf| leaf.members().is_empty())
    }

    /// Wait for those that have ended.
    fn bury(&mut self) -> Left {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.main == Some(pid.as_raw_nonzero().get()) {
                        self.main = None;
                        self.say(Word::Exited { status: status.as_raw() });
                    }
                }
                Ok(None) => return Left::Some,
                Err(rustix::io::Errno::INTR) => {}
                // No child at all: the only proof there is.
                Err(_) => return Left::None,
            }
        }
    }

    /// Until something comes, or the time is over. The end of the contact is an order to stop.
    fn wait_for(&mut self, time: Option<Duration>) -> (Came, Vec<Order>) {
        let time = time.map(|time| Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() });
        let heard = {
            let signals = PollFd::new(&self.signals, PollFlags::IN);
            match &self.contact {
                Some(contact) => poll(&mut [signals, PollFd::new(contact, PollFlags::IN)], time.as_ref()),
                None => poll(&mut [signals], time.as_ref()),
            }
        };
        if heard == Ok(0) {
            return (Came::default(), Vec::new());
        }
        (self.signals.take(), self.hear())
    }

    fn hear(&mut self) -> Vec<Order> {
        let mut orders = Vec::new();
        while let Some(contact) = &mut self.contact {
            let (frame, length) = &mut self.heard;
            match contact.read(frame.get_mut(*length..).unwrap_or_default()) {
                Ok(0) => {}
                Ok(read) => {
                    *length += read;
                    if *length == FRAME {
                        *length = 0;
                        orders.extend(Order::decode(frame));
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => {}
            }
            self.contact = None;
            orders.push(Order::Stop { grace: u32::try_from(GRACE.as_millis()).unwrap_or(u32::MAX) });
        }
        orders
    }

    /// An application that is gone does not mind.
    fn say(&mut self, word: Word) {
        if let Some(contact) = &mut self.contact {
            let _ = contact.write_all(&word.encode());
        }
    }
}

const fn same(one: &tree::Member, other: &tree::Member) -> bool {
    one.pid == other.pid && one.start_ticks == other.start_ticks
}

/// Nothing where the application went away instead.
fn hear_program(contact: &mut UnixStream) -> io::Result<Option<Program>> {
    let mut frame = [0; FRAME];
    match contact.read_exact(&mut frame) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let Some(Order::Start { length: length @ ..=LONGEST_TEXT }) = Order::decode(&frame) else { return Err(invalid()) };
    let mut text = vec![0; length as usize];
    contact.read_exact(&mut text)?;
    let program = Program::decode(&text);
    std::hint::black_box(&mut text).fill(0);
    std::hint::black_box(&text);
    program.map(Some).ok_or_else(invalid)
}

/// In a session of its own, to be killed by the kernel when this process ends before it.
#[expect(unsafe_code, reason = "std offers no safe way to leave the session or to set a death signal in a child")]
fn start(program: &Program, leaf: Option<&Leaf>) -> io::Result<i32> {
    let door = leaf.and_then(|leaf| leaf.door().ok());
    let fresh =
        Fresh { death: Some((getpid(), Signal::KILL)), group: door.as_ref().map(|door| door.as_raw_fd()), ..Fresh::default() };
    let mut command = Command::new(&program.program);
    command.args(&program.arguments).env_remove(GUARDS);
    for (name, value) in program.variables.iter().map(Variable::parts) {
        command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
    }
    // SAFETY: the closure makes system calls only, on values that were copied into it before the fork.
    unsafe {
        command.pre_exec(move || fresh.enter());
    }
    // Waited for among all others.
    Ok(command.spawn()?.id().cast_signed())
}

fn let_go_of_streams() -> io::Result<()> {
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(rustix::stdio::dup2_stderr(&nothing)?)
}
