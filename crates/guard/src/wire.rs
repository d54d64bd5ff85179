//! What the application and a guard say to each other over their socket: frames of sixteen bytes, and one text.
//!
//! The guard's program may be of another version than the application that starts it (an update while it runs), so the
//! version stands in every frame, and is the guard's first argument.

use std::ffi::{OsStr, OsString};

/// Raised whenever a frame changes its meaning.
pub const VERSION: u8 = 1;

/// Bytes of a frame.
pub const FRAME: usize = 16;

/// Longest text that goes with [`Order::Start`], in bytes: more than a system takes as arguments.
pub const LONGEST_TEXT: u32 = 4 << 20;

/// The environment variable by which guards are told from what they guard; its value says nothing.
pub const GUARDS: &str = "TURNKEEP_GUARDS";

/// What a guard is told. That the socket ends means `Stop` with the usual grace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start the runtime. The text of `length` bytes that follows is a [`Program`].
    Start { length: u32 },
    /// End everything: politely, and after so many milliseconds firmly. The shortest grace that was ever said counts.
    Stop { grace: u32 },
    /// Hand a signal on to the runtime's own process.
    Signal { number: i32 },
}

/// What a guard says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The runtime runs. `start_ticks`: as in `/proc/PID/stat`.
    Started { pid: u32, start_ticks: u64 },
    /// The runtime could not be started; nothing is left. An error number of the system.
    NotStarted { error: i32 },
    /// The runtime's own process ended, with this status as `wait` gives it. What it started may run on.
    Exited { status: i32 },
    /// Nothing is left of anything. The last word.
    Gone,
}

impl Order {
    #[must_use]
    pub fn encode(self) -> [u8; FRAME] {
        match self {
            Self::Start { length } => frame(1, length, 0),
            Self::Stop { grace } => frame(2, grace, 0),
            Self::Signal { number } => frame(3, number.cast_unsigned(), 0),
        }
    }

    /// Nothing for what this version does not know.
    #[must_use]
    pub fn decode(bytes: &[u8; FRAME]) -> Option<Self> {
        match parts(bytes)? {
            (1, length, _) => Some(Self::Start { length }),
            (2, grace, _) => Some(Self::Stop { grace }),
            (3, number, _) => Some(Self::Signal { number: number.cast_signed() }),
            _ => None,
        }
    }
}

impl Word {
    #[must_use]
    pub fn encode(self) -> [u8; FRAME] {
        match self {
            Self::Started { pid, start_ticks } => frame(1, pid, start_ticks),
            Self::NotStarted { error } => frame(2, error.cast_unsigned(), 0),
            Self::Exited { status } => frame(3, status.cast_unsigned(), 0),
            Self::Gone => frame(4, 0, 0),
        }
    }

    /// Nothing for what this version does not know.
    #[must_use]
    pub fn decode(bytes: &[u8; FRAME]) -> Option<Self> {
        match parts(bytes)? {
            (1, pid, start_ticks) => Some(Self::Started { pid, start_ticks }),
            (2, error, _) => Some(Self::NotStarted { error: error.cast_signed() }),
            (3, status, _) => Some(Self::Exited { status: status.cast_signed() }),
            (4, _, _) => Some(Self::Gone),
            _ => None,
        }
    }
}

fn frame(kind: u8, short: u32, long: u64) -> [u8; FRAME] {
    let mut bytes = [0; FRAME];
    bytes[0] = VERSION;
    bytes[1] = kind;
    bytes[4..8].copy_from_slice(&short.to_le_bytes());
    bytes[8..].copy_from_slice(&long.to_le_bytes());
    bytes
}

fn parts(bytes: &[u8; FRAME]) -> Option<(u8, u32, u64)> {
    let [version, kind, _, _, a, b, c, d, long @ ..] = *bytes;
    (version == VERSION).then(|| (kind, u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(long)))
}

/// A variable that only the runtime gets: a secret, which is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable(Vec<u8>);

impl Variable {
    #[must_use]
    pub fn new(name: &[u8], value: &[u8]) -> Self {
        Self([name, b"=", value].concat())
    }

    /// Name and value.
    #[must_use]
    pub fn parts(&self) -> (&[u8], &[u8]) {
        let middle = self.0.iter().position(|byte| *byte == b'=').unwrap_or(self.0.len());
        let (name, value) = self.0.split_at(middle);
        (name, value.get(1..).unwrap_or_default())
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=…", String::from_utf8_lossy(self.parts().0))
    }
}

impl Drop for Variable {
    fn drop(&mut self) {
        // Not left behind in memory that is given away again.
        std::hint::black_box(&mut self.0).fill(0);
        std::hint::black_box(&self.0);
    }
}

/// What a guard is to start. Its environment but for `variables`, its folder and its standard streams are the guard's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The control group that the runtime is put into: a folder that exists and is empty.
    pub leaf: Option<OsString>,
    pub variables: Vec<Variable>,
    pub program: OsString,
    pub arguments: Vec<OsString>,
}

#[cfg(unix)]
impl Program {
    /// Strings with a NUL after each, the variables between their number and the program; nothing where one of them holds a NUL
    /// itself.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let leaf = bytes_of(self.leaf.as_deref().unwrap_or_default());
        let number = self.variables.len().to_string();
        let words = [leaf, number.as_bytes()].into_iter().chain(self.variables.iter().map(|variable| variable.0.as_slice()));
        let words = words.chain([bytes_of(&self.program)]).chain(self.arguments.iter().map(|word| bytes_of(word)));
        // At once as long as it gets: no half of it is left behind in memory.
        let mut text = Vec::with_capacity(words.clone().map(|word| word.len() + 1).sum());
        for bytes in words {
            if bytes.contains(&0) {
                return None;
            }
            text.extend_from_slice(bytes);
            text.push(0);
        }
        Some(text)
    }

    /// Nothing for what [`Program::encode`] cannot have made.
    #[must_use]
    pub fn decode(text: &[u8]) -> Option<Self> {
        use std::os::unix::ffi::OsStringExt as _;
        let mut words = text.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let owned = |word: &[u8]| OsString::from_vec(word.to_vec());
        let leaf = words.next().filter(|leaf| !leaf.is_empty()).map(owned);
        let number: usize = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
        let variables: Vec<_> = words.by_ref().take(number).map(|word| Variable(word.to_vec())).collect();
        let program = words.next().filter(|program| !program.is_empty()).map(owned)?;
        Some(Self { leaf, variables, program, arguments: words.map(owned).collect() })
    }
}

#[cfg(unix)]
fn bytes_of(text: &OsStr) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_and_word_survives_its_way() {
        for order in [Order::Start { length: 7 }, Order::Stop { grace: 2_000 }, Order::Signal { number: 15 }] {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
        let started = Word::Started { pid: 4_194_303, start_ticks: u64::MAX };
        for word in [started, Word::NotStarted { error: 2 }, Word::Exited { status: -1 }, Word::Gone] {
            assert_eq!(Word::decode(&word.encode()), Some(word));
        }
    }

    #[test]
    fn another_version_and_unknown_frames_are_not_understood() {
        let mut bytes = Word::Gone.encode();
        bytes[0] = VERSION + 1;
        assert_eq!(Word::decode(&bytes), None);
        assert_eq!(Order::decode(&frame(9, 0, 0)), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_program_survives_its_way_with_empty_arguments() {
        let variables = vec![Variable::new(b"KEY", b"a=b")];
        let program =
            Program { leaf: None, variables, program: "/bin/a b".into(), arguments: vec!["".into(), "x\ny".into(), "".into()] };
        assert_eq!(Program::decode(&program.encode().expect("no NUL")), Some(program.clone()));
        let variables = Vec::new();
        let bare = Program { leaf: Some("/sys/x".into()), variables, arguments: Vec::new(), ..program.clone() };
        assert_eq!(Program::decode(&bare.encode().expect("no NUL")), Some(bare));
        assert_eq!(Program { arguments: vec!["a\0b".into()], ..program }.encode(), None);
        assert_eq!((Program::decode(b""), Program::decode(b"\x000\0\0"), Program::decode(b"x")), (None, None, None));
        assert_eq!(Program::decode(b"\x002\0A=1\0/bin/x\0"), None, "a variable too few");
    }

    #[test]
    fn a_variable_is_not_shown() {
        let variable = Variable::new(b"KEY", b"very=secret");
        assert_eq!(format!("{variable:?}"), "KEY=…");
        assert_eq!(variable.parts(), (&b"KEY"[..], &b"very=secret"[..]));
    }
}
