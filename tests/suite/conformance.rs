//! One suite of behaviours for every agent, each with its real process: another agent is one more line.
//!
//! The engine is driven at its handle, as a window does. What a real program cannot be made to do, a relay in front of it does.

mod agents;
mod before;
mod cases;
mod controls;
mod ends;
mod rig;

use std::io::Write as _;

use rig::Rig;

/// A behaviour: what stands between the engine and the agent, and what is then done and seen.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    relay: fn(&agents::Wire, &std::path::Path) -> Option<harness::relay::Relay>,
    check: fn(&mut Rig) -> anyhow::Result<()>,
}

/// Where a behaviour means nothing for an agent: said aloud, never passed over in silence.
const NOT_APPLICABLE: &[(&str, &str, &str)] = &[
    ("fake", SERVED, "its protocol has no such requests"),
    ("codex", SERVED, "its protocol has no such requests"),
    ("codex_acp", SERVED, "it reads, writes and runs by itself"),
    ("claude_agent_acp", SERVED, "it reads, writes and runs by itself"),
    ("opencode", SERVED, "it reads, writes and runs by itself"),
];

/// The name of a case that only agents which ask something of their client can show.
const SERVED: &str = "its client serves it within limits";

/// Runs a case for an agent, with what it stands on.
fn run(agent: &agents::Candidate, case: &Case) {
    if let Some((_, _, why)) = NOT_APPLICABLE.iter().find(|(of, what, _)| *of == agent.name && *what == case.name) {
        let _ = writeln!(std::io::stderr(), "NOT APPLICABLE: {} for {}: {why}", case.name, agent.name);
        return;
    }
    let told = |error: anyhow::Error, rig: Option<&Rig>| {
        let more = rig.map(Rig::told).unwrap_or_default();
        panic!("{} for {}: {error:#}\n{more}", case.name, agent.name);
    };
    match Rig::start(agent, case.relay, agent.patience) {
        Err(error) => told(error, None),
        Ok(mut rig) => {
            if let Err(error) = (case.check)(&mut rig).and_then(|()| rig.leaves_nothing()) {
                told(error, Some(&rig));
            }
        }
    }
}

macro_rules! cases {
    ($agent:expr; $($case:ident in $module:ident),* $(,)?) => {$(
        #[test]
        fn $case() {
            super::run(&$agent, &super::$module::$case);
        }
    )*};
}

macro_rules! agents {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            cases! { super::agents::$name;
                a_turn_completes in cases,
                its_text_is_streamed in cases,
                what_is_allowed_is_done in cases,
                what_is_denied_is_not_done in cases,
                a_question_ends_with_its_turn in cases,
                a_turn_is_interrupted in cases,
                a_running_turn_is_steered_or_the_message_waits in cases,
                a_session_goes_on_after_a_restart in cases,
                a_sign_out_lets_the_running_turn_finish in cases,
                what_is_not_declared_is_refused in cases,
                its_client_serves_it_within_limits in cases,
                what_it_knows_is_listed_and_gone_on_with in before,
                a_fork_goes_on_by_itself in before,
                its_commands_are_told in before,
                killed_in_a_turn in ends,
                killed_while_idle in ends,
                nonsense_does_no_harm in ends,
                a_slow_start_is_waited_for in ends,
                the_output_ends_while_starting in ends,
                the_output_ends_while_opening in ends,
                the_output_ends_in_a_turn in ends,
                the_output_ends_while_asking in ends,
                a_last_message_without_a_newline_counts in ends,
            }
        }
    )*};
}

agents!(fake, demo, codex, codex_acp, claude_agent_acp, opencode);
