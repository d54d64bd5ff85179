//! What a provider's folder must offer, and what it may ask of the engine.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use turnkeep_model::{
    CredentialId, ProviderId,
    port::{AgentCommand, AgentEvent, Capabilities, Observation, SignInMethod, TransportRecord, Unsupported},
    state::AccountKind,
};

use crate::errand::{Errand, Outcome};

/// Milliseconds of a clock that never goes back; only differences mean anything.
pub type Clock = u64;

/// A kind of agent.
pub trait Agent: Send + Sync + std::fmt::Debug {
    /// What can be said about it without starting it.
    fn card(&self) -> &Card;

    /// How to start it for this site.
    ///
    /// # Errors
    /// [`LaunchError`] where the site lacks what the agent needs.
    fn launch(&self, site: &Site) -> Result<Launch, LaunchError>;

    /// A new machine for one process, which will speak first if the protocol wants that.
    fn protocol(&self, purpose: &Purpose) -> Box<dyn Protocol>;

    /// Whether a text of this provider's own means that nobody is signed in (any more).
    fn says_signed_out(&self, text: &str) -> bool;

    /// Where the person's own sign-in may lie, given its canonical home; it is there if any of them is.
    fn system_sources(&self, home: &Path) -> Vec<CredentialSource> {
        let _ = home;
        Vec::new()
    }

    /// Who stands behind a credential file with this content; `digest` names a secret without telling it.
    ///
    /// A fingerprint is made of parts between colons; an empty part, or one that is left out at the end, is not known.
    fn read_identity(&self, content: &[u8], digest: &dyn Fn(&[u8]) -> String) -> Observation {
        let _ = (content, digest);
        Observation::Unknown { why: "this provider's credential file is not read".to_owned() }
    }

    /// Programs to take instead of the one that was found at this real path, the best first, where they exist: what a
    /// wrapper script would start.
    fn better_programs(&self, found: &Path) -> Vec<PathBuf> {
        let _ = found;
        Vec::new()
    }
}

/// What a list of agents shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    pub id: ProviderId,
    /// "Codex"
    pub name: String,
    /// For messages: "Codex (OpenAI)".
    pub full_name: String,
    /// As far as they can be known before it has introduced itself.
    pub capabilities: Capabilities,
    pub sign_in: Vec<SignInMethod>,
    pub program: ProgramSource,
    /// Commands that install it, one a line, for a person to copy.
    pub install: Vec<String>,
    /// A command that starts a server which this application can be a client of, for a person to copy; `None` where there
    /// is no such thing.
    pub serve: Option<String>,
    /// The environment variable and the folder below the person's home where its own sign-in lies.
    pub system_home: (String, String),
    /// How further variables begin that are its own, so that they are handed on to it.
    pub own_variables: Vec<String>,
}

/// Where an agent's program comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramSource {
    /// Searched for on the PATH and in the usual places, by these names in this order; asked for its version if it
    /// is known to answer that.
    Search { names: Vec<String>, says_version: bool },
    /// At this path, and nowhere else.
    Path(PathBuf),
    /// This application itself.
    Own,
}

/// Why a process is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To serve sessions.
    Serve {
        /// An API key must be given in memory before anything else.
        needs_key: bool,
    },
    /// Nothing is started: sessions are served by a server that somebody else started, and that may have other clients.
    Attach,
    /// To sign in, and nothing else.
    SignIn { method: SignInMethod },
    /// To sign out (revoking at the provider), and nothing else.
    SignOut,
}

/// Where a process is to run. Paths are absolute and canonical, links resolved (of a home that is not made yet: its
/// parent's): providers name keychain items after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    pub credential: CredentialId,
    pub kind: AccountKind,
    pub purpose: Purpose,
    /// The verified program.
    pub program: PathBuf,
    /// The person's own home of this provider, which holds the shared sessions ("~/.codex" unless moved).
    pub system_home: PathBuf,
    /// Ours, for this credential alone; does not exist before the first launch.
    pub private_home: PathBuf,
    /// The person's login-shell environment, already reduced to what may be passed on.
    pub environment: BTreeMap<String, String>,
}

/// A plan to start a process. Everything in it may be written to a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: Program,
    pub args: Vec<String>,
    /// The whole environment of the child but for [`Self::secrets`].
    pub environment: BTreeMap<String, String>,
    /// Variables of the child whose value is a secret, put in when it is started.
    pub secrets: BTreeMap<String, SecretSlot>,
    /// Made, or brought up to date, before the start.
    pub home: Option<HomePlan>,
    pub directory: Option<PathBuf>,
    pub stdio: Stdio,
    /// Where its credential lies, so that the engine can look before it starts, and watch.
    pub source: CredentialSource,
    /// Milliseconds from start to [`AgentEvent::Ready`] before it counts as failed.
    pub ready_within: u64,
    /// Milliseconds from closing its input to SIGTERM.
    pub eof_grace: u64,
}

/// Why no plan could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The home cannot be used as it is.
    #[error("{home} cannot be used: {why}")]
    Home { home: String, why: String },
    /// It is a server's, which somebody else starts.
    #[error("it is a server that somebody else starts")]
    NotOurs,
}

/// What to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
}

/// How it talks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdio {
    /// One JSON text a line, both ways.
    JsonLines,
}

/// A private home whose shared parts are links into the person's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomePlan {
    /// Mode 0700.
    pub path: PathBuf,
    /// Directories that must exist before they are linked to.
    pub make_first: Vec<PathBuf>,
    pub links: Vec<HomeLink>,
}

/// One link; skipped where the target does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeLink {
    pub name: String,
    pub target: PathBuf,
}

/// Where a credential lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// In our vault, given in memory by the frame or the variable that asks for [`SecretSlot::ApiKey`].
    Vault,
    /// In the OS keychain, in an item that the provider's program makes itself. Attributes to search by.
    KeychainItem { attributes: BTreeMap<String, String> },
    /// In a file of the provider's home.
    File { path: PathBuf },
    /// Wherever the program keeps it, which nobody here can look into: it is taken to be there until the agent says
    /// otherwise. A change of one of these files is worth another try.
    Assumed { watch: Vec<PathBuf> },
    /// Not needed, or not known.
    None,
}

/// Which secret goes into a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretSlot {
    /// The API key of the runtime's credential: in a frame as a JSON string with its quotes.
    ApiKey,
}

/// One message to the process, without its line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Text(String),
    /// `head`, then the secret, then `tail`.
    WithSecret {
        head: String,
        slot: SecretSlot,
        tail: String,
    },
}

/// What a protocol machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Out {
    Send(Frame),
    Event(AgentEvent),
    /// Do this for the agent, and tell [`Protocol::served`] what came of it.
    Serve(Errand),
    /// Call [`Protocol::wake`] at this time; a later one replaces it.
    WakeAt(Clock),
    /// The process must be stopped: it cannot be talked to. Why, for the record.
    Stop {
        why: String,
    },
}

/// A machine per process. Never blocks, never fails on any input.
pub trait Protocol: Send + std::fmt::Debug {
    /// Carry out a command, now or when the handshake is done.
    ///
    /// # Errors
    /// [`Unsupported`] where the agent's card does not declare it.
    fn command(&mut self, now: Clock, command: AgentCommand) -> Result<(), Unsupported>;

    /// One line from the process, without its line end; any bytes at all.
    fn receive(&mut self, now: Clock, line: &[u8]);

    /// A line was too long to be kept; so many bytes were dropped.
    fn receive_oversized(&mut self, now: Clock, bytes: u64);

    /// The time asked for by [`Out::WakeAt`] has come.
    fn wake(&mut self, now: Clock);

    /// What came of an errand that was asked for by [`Out::Serve`]; told once, unless the transport closes before.
    fn served(&mut self, now: Clock, key: u64, outcome: Outcome) {
        let _ = (now, key, outcome);
    }

    /// The transport closed; every open turn ends as failed with this record (session, thread, turn and state filled in here).
    fn closed(&mut self, now: Clock, record: TransportRecord);

    /// The next thing to do, until `None`.
    fn poll(&mut self) -> Option<Out>;
}
