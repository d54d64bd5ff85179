//! `codex-acp` (seen with 2.6.0): a rejection other than 401, and an overload, end a turn well and come as text.

use turnkeep_model::port::{ApprovalMode, FailureClass, Sandbox};

use super::{Mode, NONE, Quirks};

pub(in crate::acp) const CODEX_ACP: Quirks = Quirks {
    // Its own choice lets a model decide what is worth asking.
    asks_in: Some("workspace-write"),
    modes: &[
        Mode { id: "workspace-write", approval: ApprovalMode::OnRequest, sandbox: Some(Sandbox::WriteFolder) },
        Mode { id: "read-only", approval: ApprovalMode::OnRequest, sandbox: Some(Sandbox::ReadOnly) },
        Mode { id: "agent-full-access", approval: ApprovalMode::Never, sandbox: Some(Sandbox::Full) },
        Mode { id: "agent", approval: ApprovalMode::Never, sandbox: Some(Sandbox::WriteFolder) },
    ],
    allows_outside_sandbox: true,
    nameless_text_is_own: true,
    failures_as_text: &[
        ("unexpected status 401", FailureClass::SignedOut),
        ("unexpected status 429", FailureClass::RateLimit),
        ("unexpected status", FailureClass::Other),
        ("experiencing high demand", FailureClass::Overloaded),
        ("exceeded retry limit", FailureClass::Overloaded),
        ("stream disconnected", FailureClass::Network),
        ("error sending request", FailureClass::Network),
        ("hit your usage limit", FailureClass::UsageLimit),
    ],
    ..NONE
};
