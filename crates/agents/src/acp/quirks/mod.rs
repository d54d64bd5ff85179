//! What the known agents do otherwise than the protocol lets one expect: data, read by the machine.
//!
//! A quirk is a fact that was seen or read in the agent's own program. An agent without an entry has none.

use turnkeep_model::port::{ApprovalMode, FailureClass, Sandbox};

mod claude_agent_acp;
mod codex_acp;
mod opencode;

pub(super) use claude_agent_acp::CLAUDE_AGENT_ACP;
pub(super) use codex_acp::CODEX_ACP;
pub(super) use opencode::OPENCODE;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quirks {
    /// The mode to be set where nobody chose one, because the agent's own choice acts without asking.
    pub(super) asks_in: Option<&'static str>,
    /// What its modes mean, the best one of equal meaning first.
    pub(super) modes: &'static [Mode],
    /// Allowing a command may also run it outside the agent's sandbox.
    pub(super) allows_outside_sandbox: bool,
    /// Parts of a refusal's text or of its data, in lower case, that mean that nobody is signed in.
    pub(super) signed_out: &'static [&'static str],
    /// Words in a refusal's data (`errorKind`, `errorName`) and what they mean.
    pub(super) kinds: &'static [(&'static str, FailureClass)],
    /// Text without a message's id is the adapter's own, not the model's.
    pub(super) nameless_text_is_own: bool,
    /// Parts of the adapter's own last text, in lower case, that mean that a turn failed though it is said to have ended well.
    pub(super) failures_as_text: &'static [(&'static str, FailureClass)],
}

/// What a mode of an agent means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) id: &'static str,
    pub(super) approval: ApprovalMode,
    pub(super) sandbox: Option<Sandbox>,
}

/// An agent that does as the protocol says.
pub(super) const NONE: Quirks = Quirks {
    asks_in: None,
    modes: &[],
    allows_outside_sandbox: false,
    signed_out: &[],
    kinds: &[],
    nameless_text_is_own: false,
    failures_as_text: &[],
};
