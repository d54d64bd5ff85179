//! Names of things. Every id is minted by the machine from a saved counter, or by the caller; never at random here.

use serde::{Deserialize, Serialize};

macro_rules! number_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The id with this text, as it is: never trimmed, never folded.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text of the id.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

number_id! {
    /// An identity at a provider, as Turnkeep lists it. Survives signing out and in again.
    AccountId,
    /// One sign-in of an account: a key in the vault, or a private provider home. Never reused.
    CredentialId,
    /// Counts changes of identity or of the signed-in state at one provider.
    AuthEpoch,
    /// One provider process. Never reused, also across restarts of the application.
    RuntimeId,
    /// A thread of work in one folder.
    SessionId,
    /// One message being worked on.
    TurnId,
    /// One question that a person must answer.
    ApprovalId,
    /// One attempt to sign in.
    SignInId,
    /// Position of a committed change.
    Seq,
    /// A secret that waits in the vault's memory to be stored; says nothing about its text.
    StagedSecret,
}

text_id! {
    /// A kind of agent, for example an entry of the registry.
    ProviderId,
    /// Made by the sender of a message, unique for ever; a repeated one is ignored.
    MessageId,
    /// Where a server listens that somebody else started: "unix:///path" or "ws://127.0.0.1:4500", checked at the edge.
    ServerAddress,
    /// The provider's own name of a session, compared byte by byte.
    ThreadRef,
    /// The provider's own name of a turn.
    ProviderTurn,
    /// The provider's own id of a request that waits for an answer, unique within its runtime.
    RequestKey,
    /// The provider's own id of a transcript item, unique within its session.
    ItemId,
}
