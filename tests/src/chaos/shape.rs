//! In what ways a process gets away from who started it.

use serde::{Deserialize, Serialize};

/// What one member of a tree does; the agent itself is the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    Plain,
    NewGroup,
    NewSession,
    /// A session of its own, no parent, no descriptor of those before it.
    Daemon,
    /// Ignores SIGTERM, SIGHUP and SIGINT.
    Deaf,
    /// Forks a successor and exits, every millisecond.
    Respawner,
    /// Carries nothing of the environment that it was started in.
    ClearedEnvironment,
    /// Its parent went at once.
    LeaderGone,
    /// All of that.
    AllAtOnce,
}

impl Shape {
    pub const ALL: [Self; 9] = [
        Self::Plain,
        Self::NewGroup,
        Self::NewSession,
        Self::Daemon,
        Self::Deaf,
        Self::Respawner,
        Self::ClearedEnvironment,
        Self::LeaderGone,
        Self::AllAtOnce,
    ];

    /// Small letters and hyphens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::NewGroup => "new-group",
            Self::NewSession => "new-session",
            Self::Daemon => "daemon",
            Self::Deaf => "deaf",
            Self::Respawner => "respawner",
            Self::ClearedEnvironment => "cleared-environment",
            Self::LeaderGone => "leader-gone",
            Self::AllAtOnce => "all-at-once",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.name() == name)
    }
}
