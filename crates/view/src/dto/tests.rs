//! The TypeScript of every type here, in one checked-in file that must be up to date.

use std::path::Path;

use ts_rs::{Config, TS};

use super::*;

/// The declarations, in the order of this list.
fn typescript() -> String {
    let config = Config::default();
    let mut text = String::from(
        "// Generated from crates/view/src/dto.rs by its tests (UPDATE_WIRE=1 cargo test -p turnkeep-view). Do not edit.\n",
    );
    macro_rules! declare {
        ($($name:ident),* $(,)?) => {$(
            text.push_str("\nexport ");
            text.push_str(&$name::decl(&config));
            text.push('\n');
        )*};
    }
    declare!(
        Snapshot,
        Quit,
        Recovery,
        Provider,
        Installed,
        Account,
        AccountKind,
        Server,
        AccountState,
        Keychain,
        SignInMethod,
        SignInOffer,
        SignIn,
        Model,
        RateLimit,
        Failure,
        OfferedCommand,
        Group,
        Session,
        SessionStatus,
        Turn,
        Quiet,
        EndedTurn,
        Outcome,
        QueuedMessage,
        Delivery,
        Goal,
        GoalStatus,
        PlanStep,
        PlanStepStatus,
        Usage,
        SessionSettings,
        ApprovalMode,
        Sandbox,
        Approval,
        ApprovalState,
        Asker,
        Ask,
        Question,
        QuestionOption,
        ChoiceKind,
        Choice,
        Answer,
        TranscriptPage,
        TurnChanges,
        TurnDiff,
        Matches,
        RuntimeState,
        Runtime,
        ThreadPage,
        Thread,
        Entry,
        EntryBody,
        ItemStatus,
        FileChange,
        FileChangeKind,
        DeltaStream,
        TranscriptEvent,
        WindowEvent,
        View,
        Settings,
        Scheme,
        CommandError,
    );
    // Numbers here are far below 2^53.
    text.replace("bigint", "number")
}

#[test]
fn the_checked_in_typescript_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/src/lib/wire.ts");
    let wanted = typescript();
    if std::env::var_os("UPDATE_WIRE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "ui/src/lib/wire.ts is out of date: run UPDATE_WIRE=1 cargo test -p turnkeep-view");
}
