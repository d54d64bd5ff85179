//! `opencode acp` (seen with 1.18.33): it has an account per model provider, and says no code for a missing one.

use super::{NONE, Quirks};

pub(in crate::acp) const OPENCODE: Quirks = Quirks {
    // A key that a model provider rejects is that provider's affair, and keeps its own text.
    signed_out: &["providerautherror"],
    ..NONE
};
