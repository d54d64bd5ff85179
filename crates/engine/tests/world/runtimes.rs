//! One child: started, listened to, stopped, and gone with all that it began.

use std::{fs, time::Instant};

use turnkeep_engine::world::Arrival;
use turnkeep_model::{
    Input, RuntimeId,
    port::{AgentEvent, FailureClass, TransportRecord, TurnOutcome},
    state::{AccountKind::System, Installed},
};

use crate::fake::{FakeAgent, Stage, alive, is_alive};

/// Answers every line until its input ends.
const ECHO: &str = "echo ready; while read -r line; do echo \"got $line\"; done; echo bye";

pub(crate) fn failed(event: &AgentEvent) -> Option<TransportRecord> {
    let AgentEvent::TurnEnded { outcome: TurnOutcome::Failed(failure), .. } = event else { return None };
    let FailureClass::TransportClosed(record) = &failure.class else { return None };
    Some((**record).clone())
}

#[tokio::test]
async fn a_process_is_found_started_talked_to_and_stopped_by_its_input_ending() {
    let mut stage = Stage::new(ECHO);
    let installed = stage
        .input("the program", |input| match input {
            Input::ProviderFound { installed, .. } => Some(installed.clone()),
            _ => None,
        })
        .await;
    let path = stage.path("bin/fake-agent").to_string_lossy().into_owned();
    assert_eq!(installed, Installed::Found { path, version: Some("1.2.3".to_owned()) });
    stage.spawn(1, System);
    let process = stage.started().await;
    stage.ready().await;
    stage.start_turn(1, "hello");
    assert_eq!(stage.notice("got").await, "got turn hello");
    assert!(is_alive(process.pid));
    stage.stop(1, false);
    assert_eq!(stage.notice("bye").await, "bye", "what it says at its end is heard");
    assert_eq!(stage.gone().await, None);
    assert!(!is_alive(process.pid));
    assert_eq!(alive(&stage.instance), []);
}

#[tokio::test]
async fn streaming_text_goes_to_the_feed_and_the_rest_to_the_machine() {
    let mut stage = Stage::new("echo ready; echo delta one; echo two; read -r _");
    stage.spawn(1, System);
    stage.ready().await;
    let text = stage
        .next("the delta", |arrival| match arrival {
            Arrival::Event { runtime: RuntimeId(1), event: AgentEvent::Delta { text, .. } } => Some(text.clone()),
            _ => None,
        })
        .await;
    assert_eq!(text, "one");
    stage.notice("two").await;
}

#[tokio::test]
async fn a_flood_is_held_up_in_its_own_pipe_and_nothing_of_it_is_lost() {
    const MANY: usize = 100_000;
    let mut stage = Stage::new(
        "echo ready; read -r word what; [ \"$what\" = flood ] && seq -f 'item %.0f' 100000; echo ended; while read -r line; do echo \"got $line\"; done",
    );
    stage.spawn(1, System);
    stage.ready().await;
    stage.spawn(2, System);
    stage.ready().await;
    stage.start_turn(1, "flood");
    let waiting = stage.piles_up().await;
    assert!((500..=520).contains(&waiting), "{waiting} words wait to be taken in");
    // The other one is heard although nobody has taken in a word of the flood.
    stage.start_turn(2, "calm");
    let mut passed = 0;
    stage
        .next("the calm one", |arrival| {
            passed += 1;
            matches!(arrival, Arrival::Input(Input::Agent { runtime: RuntimeId(2), event: AgentEvent::TurnEnded { .. } }))
                .then_some(())
        })
        .await;
    assert!(passed < 10, "{passed} words came before it");
    stage.world.taken(RuntimeId(1), waiting);
    let mut items = waiting;
    stage
        .next("the end of the turn", |arrival| {
            let Arrival::Input(Input::Agent { runtime: RuntimeId(1), event }) = arrival else { return None };
            match event {
                AgentEvent::Notice { .. } => {
                    items += 1;
                    None
                }
                AgentEvent::TurnEnded { .. } => Some(()),
                _ => None,
            }
        })
        .await;
    assert_eq!(items, MANY, "each word, and the end of the turn after them");
    stage.stop(1, false);
    stage.gone().await;
}

#[tokio::test]
async fn one_that_floods_and_is_not_heard_is_stopped_all_the_same() {
    let mut stage = Stage::new("echo ready; read -r _; while :; do echo more; done");
    stage.spawn(1, System);
    let process = stage.started().await;
    stage.ready().await;
    stage.start_turn(1, "flood");
    stage.piles_up().await;
    stage.stop(1, true);
    stage.gone().await;
    assert!(!is_alive(process.pid));
    assert_eq!(alive(&stage.instance), []);
}

#[tokio::test]
async fn a_child_has_the_planned_environment_and_a_session_of_its_own() {
    let mut stage = Stage::new(
        "echo ready; echo vars $(env | cut -d= -f1 | sort | tr '\\n' ' '); echo at $(pwd); \
         echo ids $$ $(ps -o sid= -p $$) $(ps -o pgid= -p $$); echo files $(ls /proc/self/fd | wc -l); read -r _",
    );
    stage.spawn(7, System);
    let process = stage.started().await;
    let variables = stage.notice("vars").await;
    let expected = ["DBUS_SESSION_BUS_ADDRESS", "FAKE_HOME", "HOME", "PATH", "PWD", "TURNKEEP_RUNTIME"];
    for variable in variables.split_whitespace().skip(1) {
        assert!(expected.contains(&variable) || variable == "OLDPWD" || variable == "SHLVL" || variable == "_", "{variables}");
    }
    assert!(variables.contains("TURNKEEP_RUNTIME"));
    assert_eq!(stage.notice("at").await, format!("at {}", stage.path(".fake").display()));
    assert_eq!(stage.notice("ids").await, format!("ids {0} {0} {0}", process.pid));
    let marker = format!("TURNKEEP_RUNTIME={}-7", stage.instance);
    let environment = fs::read(format!("/proc/{}/environ", process.pid)).expect("it runs");
    assert!(environment.split(|byte| *byte == 0).any(|pair| pair == marker.as_bytes()));
    // Its three pipes, and the folder that is being listed.
    assert_eq!(stage.notice("files").await, "files 4");
}

#[tokio::test]
async fn a_last_line_without_its_end_is_acted_on_before_the_close_is_judged() {
    let mut stage = Stage::new("echo ready; read -r _; printf ended");
    stage.spawn(1, System);
    stage.ready().await;
    stage.start_turn(1, "x");
    let outcome = stage
        .event("the end of the turn", |event| match event {
            AgentEvent::TurnEnded { outcome, .. } => Some(outcome.clone()),
            _ => None,
        })
        .await;
    assert_eq!(outcome, TurnOutcome::Completed);
    let record = stage.gone().await.expect("it went by itself");
    assert!(record.trailing_flushed);
    assert_eq!(record.trailing_len, 5);
    assert_eq!((record.status.as_str(), record.exit_code), ("exited", Some(0)));
    assert_eq!((record.stream.as_str(), record.how.as_str()), ("stdout", "eof"));
}

#[tokio::test]
async fn a_process_that_ends_in_mid_turn_fails_the_turn_with_all_that_is_known() {
    let mut stage = Stage::new("echo ready; read -r _; echo one >&2; echo 'two sk-0123456789abcdef' >&2; exit 3");
    stage.spawn(1, System);
    let process = stage.started().await;
    stage.ready().await;
    stage.start_turn(1, "x");
    let record = stage.event("the failed turn", failed).await;
    assert_eq!((record.status.as_str(), record.exit_code, record.signal), ("exited", Some(3), None));
    assert_eq!(record.pid, Some(process.pid));
    assert_eq!(record.stderr, ["one", "two [struck out]"]);
    assert!(!record.trailing_flushed);
    assert_eq!(stage.gone().await.map(|it| it.exit_code), Some(Some(3)));
}

#[tokio::test]
async fn a_killed_process_is_told_by_its_signal() {
    let mut stage = Stage::new("echo ready; read -r _; kill -9 $$");
    stage.spawn(1, System);
    stage.ready().await;
    stage.start_turn(1, "x");
    let record = stage.event("the failed turn", failed).await;
    assert_eq!((record.status.as_str(), record.exit_code, record.signal), ("signalled", None, Some(9)));
    stage.gone().await;
}

#[tokio::test]
async fn a_process_that_closes_its_output_and_runs_on_is_stopped() {
    let mut stage = Stage::new("echo ready; read -r _; exec >&-; exec sleep 600");
    stage.spawn(1, System);
    let process = stage.started().await;
    stage.ready().await;
    stage.start_turn(1, "x");
    let record = stage.event("the failed turn", failed).await;
    assert_eq!((record.status.as_str(), record.how.as_str()), ("running", "eof"));
    stage.gone().await;
    assert!(!is_alive(process.pid));
}

#[tokio::test]
async fn a_process_that_never_becomes_ready_is_a_failed_start() {
    let agent = FakeAgent { ready_within: 300, ..FakeAgent::new() };
    let mut stage = Stage::with("echo thinking >&2; sleep 600", agent);
    stage.spawn(1, System);
    let process = stage.started().await;
    let failure = stage.start_failed().await;
    assert_eq!(failure.class, FailureClass::Timeout);
    assert_eq!(failure.detail.as_deref(), Some("thinking"));
    assert!(!is_alive(process.pid));
}

#[tokio::test]
async fn a_process_that_ends_before_it_is_ready_is_a_failed_start_that_says_why() {
    let mut stage = Stage::new("echo 'no such option' >&2; exit 2");
    stage.spawn(1, System);
    let failure = stage.start_failed().await;
    assert_eq!(failure.class, FailureClass::StartFailed);
    assert!(failure.message.contains("exit code 2"), "{}", failure.message);
    assert_eq!(failure.detail.as_deref(), Some("no such option"));
}

#[tokio::test]
async fn a_process_that_cannot_be_talked_to_is_stopped() {
    let mut stage = Stage::new("echo ready; read -r _; echo broken it makes no sense; sleep 600");
    stage.spawn(1, System);
    stage.ready().await;
    stage.start_turn(1, "x");
    let record = stage.event("the failed turn", failed).await;
    assert_eq!(record.how, "it makes no sense");
    assert!(stage.gone().await.is_some());
    assert_eq!(alive(&stage.instance), []);
}

#[tokio::test]
async fn what_ignores_every_request_is_killed_and_its_children_with_it() {
    let agent = FakeAgent { eof_grace: 200, ..FakeAgent::new() };
    let mut stage = Stage::with(
        "trap '' TERM HUP INT; echo ready; (setsid sh -c 'echo escaped $$; sleep 600' & sleep 600) & \
         env -i sh -c 'echo cleared $$; exec sleep 600' & while true; do sleep 1; done",
        agent,
    );
    stage.spawn(1, System);
    stage.ready().await;
    let (mut escaped, mut cleared) = (None, None);
    let (escaped, cleared) = stage
        .event("both children", |event| {
            let AgentEvent::Notice { text, .. } = event else { return None };
            let (who, pid) = text.split_once(' ')?;
            let pid: u32 = pid.parse().ok()?;
            if who == "escaped" {
                escaped = Some(pid)
            } else {
                cleared = Some(pid)
            }
            escaped.zip(cleared)
        })
        .await;
    let before = alive(&stage.instance);
    assert!(before.iter().any(|(pid, _)| *pid == escaped));
    // It has no marker: known by its parent alone.
    assert!(is_alive(cleared) && before.iter().all(|(pid, _)| *pid != cleared));
    let begun = Instant::now();
    stage.stop(1, false);
    assert_eq!(stage.gone().await, None);
    assert_eq!(alive(&stage.instance), []);
    let left: Vec<_> = before.iter().map(|(pid, _)| *pid).chain([cleared]).filter(|pid| is_alive(*pid)).collect();
    assert!(left.is_empty(), "{left:?} of {before:?}");
    assert!(begun.elapsed().as_secs() >= 2, "they were not asked politely first");
}

#[tokio::test]
async fn a_forced_stop_takes_less_than_two_seconds() {
    let mut stage = Stage::new("trap '' TERM; echo ready; while true; do sleep 1; done");
    stage.spawn(1, System);
    let process = stage.started().await;
    stage.ready().await;
    // It heeds neither the end of its input nor SIGTERM, and the force comes while it is still waited for.
    stage.stop(1, false);
    let begun = Instant::now();
    stage.stop(1, true);
    stage.gone().await;
    assert!(begun.elapsed().as_millis() < 1_800, "{:?}", begun.elapsed());
    assert!(!is_alive(process.pid));
}

#[tokio::test]
async fn a_grandchild_that_holds_the_output_open_does_not_hold_up_the_end() {
    let mut stage = Stage::new("echo ready; read -r _; setsid sleep 600 & printf 'half a line'; exit 4");
    stage.spawn(1, System);
    stage.ready().await;
    stage.start_turn(1, "x");
    assert_eq!(stage.notice("half").await, "half a line");
    let record = stage.event("the failed turn", failed).await;
    assert_eq!((record.exit_code, record.how.as_str()), (Some(4), "held open by another process"));
    stage.gone().await;
    assert_eq!(alive(&stage.instance), []);
}

#[tokio::test]
async fn an_endless_line_and_garbage_are_read_on() {
    let mut stage =
        Stage::new("echo ready; head -c 70000000 /dev/zero | tr '\\0' x; echo; printf '\\377\\376\\n'; echo after; read -r _");
    stage.spawn(1, System);
    stage.ready().await;
    assert_eq!(stage.notice("oversized").await, "oversized 70000000");
    assert_eq!(stage.notice("\u{fffd}").await, "\u{fffd}\u{fffd}");
    stage.notice("after").await;
}

#[tokio::test]
async fn a_child_that_does_not_read_is_still_heard() {
    let mut stage = Stage::new("echo ready; i=0; while [ $i -lt 5 ]; do sleep 0.1; echo tick $i; i=$((i+1)); done; sleep 600");
    stage.spawn(1, System);
    stage.ready().await;
    for _ in 0..20 {
        stage.start_turn(1, &"x".repeat(100_000));
    }
    stage.notice("tick 4").await;
    stage.stop(1, true);
    stage.gone().await;
}

#[tokio::test]
async fn what_is_not_supported_is_said_to_whom_it_concerns() {
    let mut stage = Stage::new(ECHO);
    stage.spawn(1, System);
    stage.ready().await;
    stage.world.perform(turnkeep_model::Effect::Command {
        runtime: RuntimeId(1),
        command: turnkeep_model::port::AgentCommand::Steer {
            session: crate::fake::SESSION,
            turn: crate::fake::TURN,
            message: turnkeep_model::MessageId::new("m"),
            text: String::new(),
        },
    });
    let failure = stage
        .event("the refusal", |event| match event {
            AgentEvent::SteerRefused { failure, .. } => Some(failure.clone()),
            _ => None,
        })
        .await;
    assert_eq!(failure.class, FailureClass::Unsupported);
}

#[tokio::test]
async fn a_start_that_is_not_wanted_any_more_starts_nothing() {
    let mut stage = Stage::new("touch \"$FAKE_HOME/was-here\"; echo ready; read -r _");
    stage.spawn(1, System);
    stage.stop(1, false);
    assert_eq!(stage.gone().await, None);
    stage.stop(1, false);
    assert_eq!(stage.gone().await, None, "the end is told to whoever asks again");
    assert!(!stage.path(".fake/was-here").exists());
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_and_found_once_it_is() {
    let mut stage = Stage::new(ECHO);
    fs::remove_file(stage.path("bin/fake-agent")).expect("removed");
    stage.spawn(1, System);
    let failure = stage.start_failed().await;
    assert_eq!(failure.class, FailureClass::StartFailed);
    assert!(failure.message.contains("not installed"), "{}", failure.message);
    assert!(failure.detail.is_some_and(|it| it.contains("/usr/bin")));
    crate::fake::install(&stage.path(""), ECHO);
    stage.spawn(2, System);
    stage.ready().await;
    stage.stop(2, false);
    stage.gone().await;
}

#[tokio::test]
async fn shutting_the_world_leaves_no_process() {
    let mut stage = Stage::new("trap '' TERM; setsid sleep 600 & echo ready; while true; do sleep 1; done");
    stage.spawn(1, System);
    stage.spawn(2, System);
    stage.ready().await;
    stage.ready().await;
    let Stage { world, instance, root, .. } = stage;
    world.shut().await;
    assert_eq!(alive(&instance), []);
    drop(root);
}
