//! Explores the machine in a hostile environment, exhaustively within small bounds: every promise holds in every state,
//! and from every state a settled one can be reached. The same search finds each of ten deliberate mistakes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod configurations;
mod mistakes;
mod promises;
mod random;
mod search;
mod universe;
mod world;

use std::time::Instant;

use turnkeep_model::rules::Sound;

use crate::{
    search::{Found, explore},
    universe::{Configuration, Universe},
};

const LIMIT: usize = 1_000_000;

#[expect(clippy::print_stdout, reason = "how much was seen is worth to know")]
fn whole(name: &str, configuration: Configuration) -> Found {
    let universe = Universe::<Sound>::new(configuration);
    let begun = Instant::now();
    let found = explore(&universe, universe.start(), LIMIT);
    println!("{name}: {} states, {} transitions, {:.1?}", found.states, found.transitions, begun.elapsed());
    if let Some(trail) = found.violation.as_ref().or(found.stuck.as_ref()) {
        panic!("{name}: {trail}");
    }
    assert!(found.exhausted, "{name}: more than {LIMIT} states");
    found
}

/// One test for each configuration: it is seen whole, without a broken promise and without a dead end, and these stories
/// come true in it.
macro_rules! explored {
    ($($name:ident: [$($story:literal),* $(,)?];)*) => {$(
        #[test]
        fn $name() {
            let found = whole(stringify!($name), configurations::$name());
            for story in [$($story),*] {
                assert!(found.stories.contains_key(story), "never: {story}; only {:?}", found.stories.keys());
            }
        }
    )*};
}

explored! {
    crashes: ["two messages are done", "a turn is lost"];
    gives_up: ["a given up start", "every message is done"];
    refusals: ["two messages are done", "a message comes back"];
    sign_out: ["two messages are done", "a credential is revoked", "signed out with a running turn"];
    sign_out_and_crash: ["every message is done", "a credential is revoked", "a turn is lost"];
    behind_our_back: ["two messages are done"];
    signed_out_elsewhere: ["two messages are done", "signed out with a running turn"];
    refused_account: ["two messages are done", "a turn is completed after a refusal", "turns are completed on two accounts"];
    goal_moves: ["turns are completed on two accounts"];
    goal_survives: ["turns are completed on two accounts", "a turn is lost"];
    driven_goal: ["turns are completed on two accounts", "a turn is unknown", "an unknown message is sent again"];
    quit: ["a clean quit after a completed turn", "a quit after an interrupted turn"];
    quit_taken_back: ["a clean quit after a completed turn", "every message is done"];
    quit_taken_back_without_an_agent: ["a clean quit after a completed turn", "every message is done"];
    adopted: ["every message is done"];
    adopted_by_one_that_dies: ["every message is done"];
    quit_in_sign_in: ["a clean quit after a completed turn", "a quit after an interrupted turn"];
    approvals: ["an approval is answered", "every message is done"];
    two_sessions: ["turns are completed on two accounts", "two messages are done"];
    a_process_each: ["a turn is unknown", "two messages are done"];
    steering: ["two messages are done", "a turn is lost"];
    put_away: ["two messages are done", "who was put away left no process"];
    put_away_alone: ["two messages are done", "who was put away left no process"];
    silence: ["two messages are done", "a turn is quiet", "a silence is over"];
    idleness: ["two messages are done", "a process is started again"];
    idleness_and_crash: ["two messages are done", "a process is started again", "a turn is quiet"];
    deleted_item: ["a credential is revoked", "every message is done"];
}
