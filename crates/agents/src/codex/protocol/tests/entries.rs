//! What becomes of entries, and of lines that make no sense.

use turnkeep_model::port::{AgentEvent, DeltaStream, Item, ItemBody, ItemStatus, TurnOutcome};

use super::{COMPLETED, Play, message, names, outcome, shown};
use crate::port::Protocol as _;

// ---- answers and progress

#[test]
fn progress_before_a_tool_call_is_not_the_answer() {
    let mut play = Play::running();
    play.hear("item/completed", &message("I will look.", "null", "m1"));
    play.hear(
        "item/started",
        r#"{"threadId":"thread-1","turnId":"turn-1","item":{"type":"commandExecution","id":"c","command":"ls","status":"inProgress"}}"#,
    );
    play.take();
    play.hear("turn/completed", COMPLETED);
    let events = play.take();
    let finals = events.iter().filter(|event| shown(event).contains("\"final_answer\":true")).count();
    assert_eq!(finals, 0, "{events:?}");
    assert!(matches!(
        &events[0],
        AgentEvent::ItemCompleted { item: Item { body: ItemBody::Command { status: ItemStatus::Abandoned, .. }, .. }, .. }
    ));
}

#[test]
fn a_phase_that_is_told_decides_at_once() {
    let mut play = Play::running();
    play.take();
    play.hear("item/completed", &message("thinking aloud", "\"commentary\"", "m1"));
    play.hear("item/completed", &message("the answer", "\"final_answer\"", "m2"));
    play.hear("turn/completed", COMPLETED);
    let shown: Vec<String> = play.take().iter().map(shown).collect();
    assert!(shown[0].contains("\"final_answer\":false") && shown[1].contains("\"final_answer\":true"), "{shown:?}");
    assert!(shown[2].starts_with("TurnEnded"), "nothing is told twice: {shown:?}");
}

#[test]
fn an_interrupted_turn_has_no_answer_but_keeps_its_partial_text() {
    let mut play = Play::running();
    play.hear("item/started", &message("", "null", "m1"));
    play.hear("item/agentMessage/delta", r#"{"threadId":"thread-1","turnId":"turn-1","itemId":"m1","delta":"half"}"#);
    play.take();
    play.hear("turn/completed", r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"interrupted"}}"#);
    let events = play.take();
    let AgentEvent::ItemCompleted { item: Item { body: ItemBody::AgentMessage { text, final_answer }, .. }, .. } = &events[0]
    else {
        panic!("{events:?}")
    };
    assert_eq!((text.as_str(), *final_answer), ("half", false));
}

#[test]
fn a_large_output_keeps_its_beginning_and_its_end() {
    let mut play = Play::running();
    let output = format!("first{}last", "é".repeat(2_000_000));
    play.take();
    play.hear(
        "item/completed",
        &format!(
            r#"{{"threadId":"thread-1","turnId":"turn-1","item":{{"type":"commandExecution","id":"c","status":"completed","aggregatedOutput":"{output}"}}}}"#
        ),
    );
    let [AgentEvent::ItemCompleted { item: Item { body: ItemBody::Command { output, .. }, .. }, .. }] = &play.take()[..] else {
        panic!("an entry")
    };
    assert!(output.len() < 1024 * 1024 + 100, "{}", output.len());
    assert!(output.starts_with("first") && output.ends_with("last") && output.contains("bytes left out"));
}

#[test]
fn streamed_output_of_a_command_is_bounded_too() {
    let mut play = Play::running();
    play.hear(
        "item/started",
        r#"{"threadId":"thread-1","turnId":"turn-1","item":{"type":"commandExecution","id":"c","status":"inProgress"}}"#,
    );
    let delta = format!(r#"{{"threadId":"thread-1","turnId":"turn-1","itemId":"c","delta":"{}"}}"#, "x".repeat(1_000_000));
    for _ in 0..20 {
        play.hear("item/commandExecution/outputDelta", &delta);
    }
    play.take();
    play.hear("turn/completed", COMPLETED);
    let events = play.take();
    let AgentEvent::ItemCompleted { item: Item { body: ItemBody::Command { output, .. }, .. }, .. } = &events[0] else {
        panic!("{events:?}")
    };
    assert!(output.len() <= 2 * 1024 * 1024, "{}", output.len());
}

#[test]
fn an_entry_of_an_unknown_kind_is_shown_by_its_name_and_odd_members_are_skipped() {
    let mut play = Play::running();
    play.take();
    play.hear(
        "item/completed",
        r#"{"threadId":"thread-1","turnId":"turn-1","item":{"type":"hologram","id":"h","text":"shimmer","status":7,"changes":"no"}}"#,
    );
    let [AgentEvent::ItemCompleted { item, .. }] = &play.take()[..] else { panic!("an entry") };
    assert_eq!(item.body, ItemBody::Other { kind: "hologram".to_owned(), text: "shimmer".to_owned() });
}

#[test]
fn paragraphs_of_a_reasoning_are_kept_apart() {
    let mut play = Play::running();
    play.take();
    for index in [0, 1] {
        play.hear(
            "item/reasoning/summaryPartAdded",
            &format!(r#"{{"threadId":"thread-1","turnId":"turn-1","itemId":"r","summaryIndex":{index}}}"#),
        );
    }
    let [AgentEvent::Delta { stream: DeltaStream::ReasoningSummary, text, .. }] = &play.take()[..] else { panic!("a delta") };
    assert_eq!(text, "\n\n");
}

// ---- lines that make no sense

#[test]
fn odd_lines_are_told_ever_more_rarely_and_disturb_nothing() {
    let mut play = Play::running();
    play.take();
    for _ in 0..1000 {
        play.line(b"\xff\xfe");
        play.line(b"{\"method\":\"turn/compl");
        play.line(b"[1,2]");
        play.line(b"{}");
        play.line(b"   ");
    }
    let told = names(&mut play);
    assert!(told.iter().all(|name| name == "Fault"));
    assert_eq!(told.len(), 12, "4000 lines, told at each power of two");
    play.hear("turn/completed", COMPLETED);
    assert_eq!(outcome(&mut play), Some(TurnOutcome::Completed));
}

#[test]
fn a_line_that_was_too_long_to_keep_is_told() {
    let mut play = Play::running();
    play.take();
    play.machine.receive_oversized(play.now, 90_000_000);
    play.drain();
    let [AgentEvent::Fault { failure, .. }] = &play.take()[..] else { panic!("a fault") };
    assert!(failure.message.contains("90000000 bytes"));
}

#[test]
fn methods_of_a_newer_codex_are_counted_and_ignored() {
    let mut play = Play::running();
    play.take();
    for n in 0..200 {
        play.hear(&format!("new/{n}"), "{}");
        play.hear("new/1", "{}");
    }
    assert!(play.events.is_empty());
    assert_eq!(play.machine.unknown.get("new/1"), Some(&201));
    assert!(play.machine.unknown.len() <= 65);
}
