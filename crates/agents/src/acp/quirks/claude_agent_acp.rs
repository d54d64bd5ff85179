//! `claude-agent-acp` (seen with 0.101.0): its own default mode runs commands without asking anybody.

use turnkeep_model::port::{ApprovalMode, FailureClass};

use super::{Mode, NONE, Quirks};

pub(in crate::acp) const CLAUDE_AGENT_ACP: Quirks = Quirks {
    asks_in: Some("default"),
    modes: &[
        Mode { id: "default", approval: ApprovalMode::Always, sandbox: None },
        Mode { id: "acceptEdits", approval: ApprovalMode::OnRequest, sandbox: None },
        Mode { id: "bypassPermissions", approval: ApprovalMode::Never, sandbox: None },
        // A model decides whether to ask, which mostly is no.
        Mode { id: "auto", approval: ApprovalMode::Never, sandbox: None },
    ],
    kinds: &[
        ("rate_limit", FailureClass::RateLimit),
        ("server_error", FailureClass::Overloaded),
        ("overloaded", FailureClass::Overloaded),
        ("billing_error", FailureClass::UsageLimit),
        ("model_not_found", FailureClass::ModelNotFound),
    ],
    ..NONE
};
