//! Ten deliberate mistakes. Each is the machine with one rule turned around, or with one thing wrong around it; for each
//! the search must find what it breaks.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use turnkeep_model::{
    Change, CredentialId, Input, RuntimeId, SessionId, State,
    port::{Capabilities, Observation, TurnOutcome},
    rules::{Fate, Introduction, Rules, Sound},
    state::{Account, Attachment, Phase, Runtime, TurnState},
};

use crate::{
    configurations,
    search::explore,
    universe::{Configuration, Flaw, Universe},
};

fn found<R: Flaw>(configuration: Configuration, expected: Expect) {
    let universe = Universe::<R>::new(configuration);
    let found = explore(&universe, universe.start(), 300_000);
    let trail = found.violation.or(found.stuck).expect("the mistake is not found");
    expected.assert_eq(&trail.to_string());
}

/// Stale is a mark, set at the moment of the change on what is ready then.
#[derive(Clone, Debug, Default, Hash)]
struct StaleIsAMark(BTreeSet<RuntimeId>);

impl Rules for StaleIsAMark {
    fn is_stale(&self, _state: &State, id: RuntimeId, _runtime: &Runtime) -> bool {
        self.0.contains(&id)
    }

    fn note(&mut self, state: &State, change: &Change) {
        if matches!(change, Change::EpochBegan { .. }) {
            self.0.extend(state.runtimes.iter().filter(|(_, r)| r.phase == Phase::Ready).map(|(id, _)| *id));
        }
    }
}

impl Flaw for StaleIsAMark {}

#[test]
fn stale_is_a_mark() {
    found::<StaleIsAMark>(
        configurations::sign_out(),
        expect![[r#"
        runtime 0 is old and idle, and left alone (2 steps)
          asked: Send
          asked: SignOut
    "#]],
    );
}

/// Whoever answers the handshake is let in.
#[derive(Clone, Debug, Default, Hash)]
struct AnyoneIsLetIn;

impl Rules for AnyoneIsLetIn {
    fn introduce(&self, _account: &Account, _seen: &Observation) -> Introduction {
        Introduction::Unnamed
    }
}

impl Flaw for AnyoneIsLetIn {}

#[test]
fn anyone_is_let_in() {
    found::<AnyoneIsLetIn>(
        configurations::behind_our_back(),
        expect![[r#"
        turn 0 runs on another account than it was meant for (7 steps)
          asked: Send
          other is signed in, by another program
          performed: spawn 0
          read from runtime 0: Ready
          runtime 0 takes: OpenSession
          read from runtime 0: SessionOpened
          runtime 0 takes: StartTurn
    "#]],
    );
}

/// That somebody else answers is a failed start, and no observation.
#[derive(Clone, Debug, Default, Hash)]
struct AStrangerIsAFailedStart;

impl Rules for AStrangerIsAFailedStart {
    fn introduce(&self, account: &Account, seen: &Observation) -> Introduction {
        match Sound.introduce(account, seen) {
            Introduction::Stranger => Introduction::Failed,
            known @ (Introduction::Named(_) | Introduction::Unnamed | Introduction::Failed) => known,
        }
    }
}

impl Flaw for AStrangerIsAFailedStart {}

#[test]
fn a_stranger_is_a_failed_start() {
    found::<AStrangerIsAFailedStart>(
        configurations::behind_our_back(),
        expect![[r#"
            a storm of processes (21 steps)
              asked: Send
              other is signed in, by another program
              performed: spawn 0
              read from runtime 0: Ready
              performed: stop 0 false
              read from runtime 0: its end
              performed: spawn 1
              read from runtime 1: Ready
              performed: stop 1 false
              read from runtime 1: its end
              performed: spawn 2
              read from runtime 2: Ready
              performed: stop 2 false
              read from runtime 2: its end
              performed: spawn 3
              read from runtime 3: Ready
              performed: stop 3 false
              read from runtime 3: its end
              killed, and started again
              performed: reap 4
              read from runtime 4: its end
        "#]],
    );
}

/// What was not acknowledged before a crash is sent again.
#[derive(Clone, Debug, Default, Hash)]
struct UnacknowledgedIsSentAgain;

impl Rules for UnacknowledgedIsSentAgain {
    fn fate(&self, _capabilities: &Capabilities, _has_thread: bool) -> Fate {
        Fate::Resend
    }
}

impl Flaw for UnacknowledgedIsSentAgain {}

#[test]
fn unacknowledged_is_sent_again() {
    found::<UnacknowledgedIsSentAgain>(
        configurations::crashes(),
        expect![[r#"
        message a reached an agent twice (14 steps)
          asked: Send
          performed: spawn 0
          read from runtime 0: Ready
          runtime 0 takes: OpenSession
          read from runtime 0: SessionOpened
          runtime 0 takes: StartTurn
          killed, and started again
          performed: reap 0
          read from runtime 0: its end
          performed: spawn 1
          read from runtime 1: Ready
          runtime 1 takes: OpenSession
          read from runtime 1: SessionOpened
          runtime 1 takes: StartTurn
    "#]],
    );
}

/// At the start turns are closed and sessions are free, before what was left is gone.
#[derive(Clone, Debug, Default, Hash)]
struct TurnsCloseBeforeTheReap;

impl Rules for TurnsCloseBeforeTheReap {}

impl Flaw for TurnsCloseBeforeTheReap {
    fn reload(state: &State) -> Vec<Change> {
        let open = state.turns.iter().filter(|(_, t)| t.state != TurnState::Probing);
        let closed = open.map(|(turn, _)| Change::TurnEnded { turn: *turn, outcome: TurnOutcome::Lost, at: 0 });
        let free = |session: &SessionId| Change::SessionAttached { session: *session, attachment: Attachment::Detached };
        closed.chain(state.sessions.keys().map(free)).collect()
    }
}

#[test]
fn turns_close_before_the_reap() {
    found::<TurnsCloseBeforeTheReap>(
        configurations::goal_survives(),
        expect![[r#"
            two live processes own one thread (8 steps)
              performed: spawn 0
              read from runtime 0: Ready
              runtime 0 takes: OpenSession
              asked: UseAccount
              killed, and started again
              performed: spawn 1
              read from runtime 1: Ready
              runtime 1 takes: OpenSession
        "#]],
    );
}

/// A quit is done when no turn runs.
#[derive(Clone, Debug, Default, Hash)]
struct QuitLooksAtTurnsOnly;

impl Rules for QuitLooksAtTurnsOnly {
    fn may_exit(&self, state: &State) -> bool {
        state.turns.is_empty()
    }
}

impl Flaw for QuitLooksAtTurnsOnly {}

#[test]
fn quit_looks_at_turns_only() {
    found::<QuitLooksAtTurnsOnly>(
        configurations::quit(),
        expect![[r#"
        a clean exit leaves a child (3 steps)
          asked: Send
          asked: Quit
          performed: exit
    "#]],
    );
}

/// The credential is revoked when one signs out.
#[derive(Clone, Debug, Default, Hash)]
struct RevokedAtOnce;

impl Rules for RevokedAtOnce {
    fn may_revoke(&self, _state: &State, _credential: CredentialId) -> bool {
        true
    }
}

impl Flaw for RevokedAtOnce {}

#[test]
fn revoked_at_once() {
    found::<RevokedAtOnce>(
        configurations::sign_out(),
        expect![[r#"
        a credential was revoked under a live process (4 steps)
          asked: Send
          performed: spawn 0
          asked: SignOut
          performed: revoke 0
    "#]],
    );
}

/// What is owed is not written down.
#[derive(Clone, Debug, Default, Hash)]
struct DebtsAreForgotten;

impl Rules for DebtsAreForgotten {}

impl Flaw for DebtsAreForgotten {
    fn reload(state: &State) -> Vec<Change> {
        let owed = state.credentials.iter().filter(|(_, c)| c.owed_revocation);
        owed.map(|(credential, _)| Change::CredentialForgotten { credential: *credential }).collect()
    }
}

#[test]
fn debts_are_forgotten() {
    found::<DebtsAreForgotten>(
        configurations::sign_out_and_crash(),
        expect![[r#"
        credential 0 has ended, and nobody owes its revocation (2 steps)
          asked: SignOut
          killed, and started again
    "#]],
    );
}

/// Only the end of a ready process is news.
#[derive(Clone, Debug, Default, Hash)]
struct EarlyEndsAreIgnored;

impl Rules for EarlyEndsAreIgnored {}

impl Flaw for EarlyEndsAreIgnored {
    fn hears(state: &State, input: &Input) -> bool {
        let starting = |id| state.runtimes.get(id).is_some_and(|r: &Runtime| r.phase == Phase::Starting);
        !matches!(input, Input::RuntimeGone { runtime, .. } | Input::RuntimeStartFailed { runtime, .. } if starting(runtime))
    }
}

#[test]
fn early_ends_are_ignored() {
    found::<EarlyEndsAreIgnored>(
        configurations::crashes(),
        expect![[r#"
            no settled state can be reached any more (3 steps)
              killed, and started again
              asked: Send
              runtime 0 dies
        "#]],
    );
}

/// Old runtimes are stopped whatever runs on them.
#[derive(Clone, Debug, Default, Hash)]
struct TheBusyAreStopped;

impl Rules for TheBusyAreStopped {
    fn may_retire(&self, _state: &State, _id: RuntimeId) -> bool {
        true
    }
}

impl Flaw for TheBusyAreStopped {}

#[test]
fn the_busy_are_stopped() {
    found::<TheBusyAreStopped>(
        configurations::sign_out(),
        expect![[r#"
        a running turn was killed (7 steps)
          asked: Send
          performed: spawn 0
          read from runtime 0: Ready
          runtime 0 takes: OpenSession
          read from runtime 0: SessionOpened
          asked: SignOut
          performed: stop 0 false
    "#]],
    );
}
