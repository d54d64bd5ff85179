//! Whatever arrives, the machine goes on; and it ends no turn that Codex did not end.

use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::Value;
use turnkeep_model::{ProviderTurn, port::AgentEvent};

use super::{ALL, Play, purpose};
use crate::port::Purpose;

/// What happens to a line on its way.
#[derive(Clone, Debug)]
enum Bend {
    Drop,
    Twice,
    Cut(Index),
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    /// It comes after the next one.
    Later,
    /// A member has another value.
    Value(Index, &'static str),
}

fn bend() -> impl Strategy<Value = Bend> {
    let odd = prop::sample::select(vec!["null", "0", "-1", "1e400", "\"\"", "[]", "{}", "\"\\u0000\"", "true", "[[[[]]]]"]);
    prop_oneof![
        Just(Bend::Drop),
        Just(Bend::Twice),
        any::<Index>().prop_map(Bend::Cut),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Bend::Set(at, byte)),
        (any::<Index>(), vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Bend::Insert(at, bytes)),
        Just(Bend::Later),
        (any::<Index>(), odd).prop_map(|(at, value)| Bend::Value(at, value)),
    ]
}

/// Lines of a transcript after what happened to them, the machine's commands in between.
fn replay(transcript: &str, bends: &[(Index, Bend)]) {
    let mut steps: Vec<Value> =
        transcript.lines().map(|line| serde_json::from_str(line).expect("a line of a transcript")).collect();
    let what = match steps.first().and_then(|first| first["purpose"].as_str()).map(purpose) {
        Some(what) => {
            steps.remove(0);
            what
        }
        None => Purpose::Serve { needs_key: true },
    };
    let mut play = Play::new(&what);
    let mut ends = Vec::new();
    let mut late: Option<Vec<u8>> = None;
    for (at, step) in steps.iter().enumerate() {
        if let Some(command) = step.get("do") {
            play.command(&serde_json::from_value(command.clone()).expect("a command in a transcript"));
            continue;
        }
        if step.get("close").is_some() {
            break;
        }
        let mut message = step["in"].clone();
        if let Some(method) = step["to"].as_str() {
            // An answer to something that was never asked comes with an id of its own.
            let id = play.open.get_mut(method).and_then(std::collections::VecDeque::pop_front);
            message["id"] = id.unwrap_or_else(|| 900.into());
        }
        let mut lines = vec![message.to_string().into_bytes()];
        for (_, bend) in bends.iter().filter(|(index, _)| index.index(steps.len()) == at) {
            lines = lines.into_iter().flat_map(|line| bent(line, bend, &mut late)).collect();
        }
        if !lines.is_empty() {
            lines.extend(late.take_if(|_| at % 2 == 0));
        }
        for line in lines {
            let text = String::from_utf8_lossy(&line).into_owned();
            ends.extend(text.contains("turn/completed").then_some(text));
            play.line(&line);
        }
        play.pass(50);
    }
    let unfounded = unfounded(&play.take(), &ends);
    assert!(unfounded.is_none(), "{unfounded:?} was not ended by Codex");
    play.close();
    play.pass(1_000_000);
}

/// A turn that was told to have ended though no line of Codex's said so.
fn unfounded(events: &[AgentEvent], ends: &[String]) -> Option<ProviderTurn> {
    events.iter().find_map(|event| match event {
        AgentEvent::TurnEnded { provider_turn, .. } => {
            // As it stood in the line; one with an escape in it may have been written otherwise there.
            let name = Value::from(provider_turn.as_str()).to_string();
            let said = name.contains('\\') || ends.iter().any(|line| line.contains(&name));
            (!said).then(|| provider_turn.clone())
        }
        _ => None,
    })
}

fn bent(mut line: Vec<u8>, bend: &Bend, late: &mut Option<Vec<u8>>) -> Vec<Vec<u8>> {
    match bend {
        Bend::Drop => return Vec::new(),
        Bend::Twice => return vec![line.clone(), line],
        Bend::Later => {
            *late = Some(line);
            return Vec::new();
        }
        Bend::Cut(at) => line.truncate(at.index(line.len() + 1)),
        Bend::Set(at, byte) => {
            if !line.is_empty() {
                let at = at.index(line.len());
                line[at] = *byte;
            }
        }
        Bend::Insert(at, bytes) => {
            let at = at.index(line.len() + 1);
            line.splice(at..at, bytes.iter().copied());
        }
        Bend::Value(at, value) => {
            let Ok(mut message) = serde_json::from_slice::<Value>(&line) else { return vec![line] };
            let mut places = Vec::new();
            pointers(&message, &mut String::new(), &mut places);
            let place = &places[at.index(places.len())];
            if let Some(found) = message.pointer_mut(place) {
                *found = Value::from("@@");
            }
            line = message.to_string().replace("\"@@\"", value).into_bytes();
        }
    }
    vec![line]
}

fn pointers(value: &Value, at: &mut String, all: &mut Vec<String>) {
    all.push(at.clone());
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, member)| (name.clone(), member)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (name, member) in members {
        let length = at.len();
        at.push('/');
        at.push_str(&name);
        pointers(member, at, all);
        at.truncate(length);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_survived(lines in vec(vec(any::<u8>(), 0..200), 0..40)) {
        let mut play = Play::running();
        for line in &lines {
            play.line(line);
        }
        let ended = |play: &Play| play.events.iter().any(|event| matches!(event, AgentEvent::TurnEnded { .. }));
        prop_assert!(!ended(&play));
        play.hear("turn/completed", r#"{"threadId":"thread-1","turn":{"id":"turn-1","status":"completed"}}"#);
        prop_assert!(ended(&play));
    }

    #[test]
    fn any_text_of_a_person_is_sent_as_one_line_of_json(text in any::<String>()) {
        let mut play = Play::open();
        play.command(&super::start_turn(1, &text));
        prop_assert_eq!(play.sent.last().expect("it was sent")["params"]["input"][0]["text"].as_str(), Some(text.as_str()));
    }

    #[test]
    fn bent_transcripts_end_no_turn_by_themselves(
        which in any::<Index>(),
        bends in vec((any::<Index>(), bend()), 1..6),
    ) {
        replay(ALL[which.index(ALL.len())], &bends);
    }
}

#[test]
fn the_end_of_a_turn_without_a_name_ends_none() {
    let mut play = Play::running();
    play.hear("turn/completed", r#"{"threadId":"thread-1","turn":{"id":null,"status":"completed"}}"#);
    assert!(!play.take().iter().any(|event| matches!(event, AgentEvent::TurnEnded { .. })));
}

#[test]
fn the_check_sees_an_end_that_codex_did_not_tell() {
    let mut play = Play::running();
    play.close();
    let ends = [r#"{"method":"turn/completed","params":{"threadId":"thread-1","turn":{"id":"turn-2"}}}"#.to_owned()];
    assert_eq!(unfounded(&play.take(), &ends), Some(ProviderTurn::new("turn-1")));
}
