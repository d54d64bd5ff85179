use turnkeep_model::{
    MessageId, Seq,
    port::{Item, ItemBody, ItemStatus, TurnOutcome},
};

use super::{
    growing::KEPT,
    watcher::{BYTES_WAITING, EVENTS_WAITING},
    *,
};
use crate::store::Placed;

const SESSION: SessionId = SessionId(1);

fn message(id: &str, text: &str, completed: bool) -> Change {
    Change::ItemRecorded {
        session: SESSION,
        turn: TurnId(1),
        item: Item { id: ItemId::new(id), body: ItemBody::AgentMessage { text: text.into(), final_answer: true } },
        completed,
    }
}

fn publish(feed: &mut Feed, ordinal: u64, change: &Change) {
    let state = feed.state();
    feed.publish(state, std::slice::from_ref(change), &Committed { items: vec![Placed { ordinal, at: 1 }] });
}

fn grow(feed: &mut Feed, id: &str, text: &str, now: Instant) {
    feed.absorb(SESSION, ItemId::new(id), DeltaStream::AgentMessage, text, now);
}

fn all(events: &mut Events) -> Vec<String> {
    std::iter::from_fn(|| events.ready())
        .map(|event| match event {
            TranscriptEvent::Page(_) => "page".to_owned(),
            TranscriptEvent::Upsert(entry) => format!("{} {}: {}", entry.ordinal, entry.completed, text(&entry.item.body)),
            TranscriptEvent::Delta { item, text, .. } => format!("{item} += {text}"),
            TranscriptEvent::Diff { turn, .. } => format!("diff of {turn}"),
        })
        .collect()
}

fn text(body: &ItemBody) -> &str {
    if let ItemBody::AgentMessage { text, .. } = body {
        text
    } else if let ItemBody::Command { status: ItemStatus::Abandoned, .. } = body {
        "abandoned"
    } else {
        "runs"
    }
}

#[test]
fn the_first_of_a_burst_goes_at_once_and_the_rest_thirty_times_a_second() {
    let mut feed = Feed::new(State::default(), None);
    let start = Instant::now();
    publish(&mut feed, 1, &message("a", "", false));
    let (mut events, _) = feed.subscribe(SESSION, start);
    let mut flushes = Vec::new();
    for millisecond in 0..1_000 {
        let now = start + Duration::from_millis(millisecond);
        grow(&mut feed, "a", "x", now);
        if feed.next_flush().is_some_and(|due| due <= now) {
            feed.flush(now);
            flushes.push(all(&mut events));
        }
    }
    assert_eq!(flushes[0], ["a += x"], "at once");
    assert!((29..=31).contains(&flushes.len()), "{}", flushes.len());
    assert_eq!(flushes[1], [format!("a += {}", "x".repeat(33))], "one event for all of them");
}

#[test]
fn nothing_is_due_when_nobody_looks() {
    let mut feed = Feed::new(State::default(), None);
    grow(&mut feed, "a", "x", Instant::now());
    assert_eq!(feed.next_flush(), None);
    let (events, _) = feed.subscribe(SESSION, Instant::now());
    drop(events);
    grow(&mut feed, "a", "x", Instant::now());
    feed.flush(Instant::now());
    grow(&mut feed, "a", "x", Instant::now());
    assert_eq!(feed.next_flush(), None, "whoever looked has gone");
}

#[test]
fn a_newcomer_gets_the_text_so_far_once() {
    let mut feed = Feed::new(State::default(), None);
    let now = Instant::now();
    publish(&mut feed, 1, &message("a", "", false));
    let (mut first, running) = feed.subscribe(SESSION, now);
    assert_eq!(running.len(), 1);
    grow(&mut feed, "a", "Hello", now);
    feed.flush(now);
    grow(&mut feed, "a", ", world", now);
    let (mut second, running) = feed.subscribe(SESSION, now);
    assert_eq!(text(&running[0].item.body), "Hello, world");
    feed.flush(now + FLUSH_EVERY * 2);
    assert_eq!(all(&mut first), ["a += Hello", "a += , world"]);
    assert_eq!(all(&mut second), [] as [&str; 0]);
    grow(&mut feed, "a", "!", now + FLUSH_EVERY * 3);
    feed.flush(now + FLUSH_EVERY * 3);
    assert_eq!(all(&mut second), ["a += !"]);
}

#[test]
fn an_end_replaces_what_waits() {
    let mut feed = Feed::new(State::default(), None);
    let now = Instant::now();
    let (mut events, _) = feed.subscribe(SESSION, now);
    grow(&mut feed, "a", "early", now);
    publish(&mut feed, 1, &message("a", "", false));
    grow(&mut feed, "a", " and late", now);
    publish(&mut feed, 1, &message("a", "all of it", true));
    feed.flush(now + FLUSH_EVERY);
    assert_eq!(all(&mut events), ["1 false: early", "1 true: all of it"]);
    assert_eq!(feed.subscribe(SESSION, now).1, [], "nothing runs");
}

#[test]
fn what_never_ended_is_abandoned_with_its_turn() {
    let mut feed = Feed::new(State::default(), None);
    let now = Instant::now();
    let body = ItemBody::Command {
        command: "make".into(),
        cwd: "/".into(),
        output: String::new(),
        exit_code: None,
        duration_ms: None,
        status: ItemStatus::Running,
    };
    let item = Item { id: ItemId::new("c"), body };
    let began = Change::ItemRecorded { session: SESSION, turn: TurnId(1), item, completed: false };
    let (mut events, _) = feed.subscribe(SESSION, now);
    publish(&mut feed, 4, &began);
    all(&mut events);
    let end = |turn| Change::TurnEnded { turn: TurnId(turn), outcome: TurnOutcome::Lost, at: 1 };
    publish(&mut feed, 0, &end(2));
    assert_eq!(all(&mut events), [] as [&str; 0], "another turn");
    publish(&mut feed, 0, &end(1));
    assert_eq!(all(&mut events), ["4 true: abandoned"]);
}

#[test]
fn a_slow_client_loses_its_place_and_costs_no_more_than_its_share() {
    let now = Instant::now();
    for (text, most) in [("x", EVENTS_WAITING), ("y".repeat(100_000).as_str(), BYTES_WAITING / 100_000)] {
        let mut feed = Feed::new(State::default(), None);
        let (mut slow, _) = feed.subscribe(SESSION, now);
        let (mut quick, _) = feed.subscribe(SESSION, now);
        for number in 0..2 * EVENTS_WAITING {
            publish(&mut feed, 1, &message(&format!("i{number}"), text, true));
            assert_eq!(all(&mut quick).len(), 1, "the other one is not held up");
        }
        assert!(slow.lost() && !quick.lost());
        let kept = all(&mut slow).len();
        assert!(kept <= most, "{kept} kept, {most} allowed");
    }
}

#[tokio::test]
async fn whoever_lost_its_place_is_told_at_once_and_not_after_what_waits() {
    let mut feed = Feed::new(State::default(), None);
    let (mut slow, _) = feed.subscribe(SESSION, Instant::now());
    for number in 0..=EVENTS_WAITING {
        publish(&mut feed, 1, &message(&format!("i{number}"), "", true));
    }
    assert_eq!(slow.next().await, None);
    assert!(slow.lost());
}

#[test]
fn the_text_that_is_kept_is_bounded_and_is_the_newest() {
    let mut feed = Feed::new(State::default(), None);
    let now = Instant::now();
    publish(&mut feed, 1, &message("a", "", false));
    for number in 0..3_000 {
        grow(&mut feed, "a", &format!("{number:>6}ü{}", "x".repeat(992)), now);
    }
    let (_, running) = feed.subscribe(SESSION, now);
    let kept = text(&running[0].item.body);
    assert!((KEPT / 2..=KEPT).contains(&kept.len()), "{}", kept.len());
    assert!(kept.contains("  2999ü"));
    // No more entries than so many, whatever an agent makes up.
    for number in 0..10_000 {
        grow(&mut feed, &format!("i{number}"), "x", now);
    }
    assert_eq!(feed.sessions[&SESSION].running.len(), RUNNING_LIMIT);
}

#[test]
fn a_session_that_nobody_needs_is_forgotten() {
    let mut feed = Feed::new(State::default(), None);
    let now = Instant::now();
    let (events, _) = feed.subscribe(SESSION, now);
    publish(&mut feed, 1, &message("a", "", false));
    grow(&mut feed, "a", "x", now);
    drop(events);
    publish(&mut feed, 1, &message("a", "x", true));
    publish(&mut feed, 1, &Change::SessionRead { session: SESSION, at: 1 });
    assert!(feed.sessions.is_empty());
    assert_eq!(feed.next_flush(), None);
}

#[test]
fn a_snapshot_never_holds_the_history_of_messages() {
    let mut state = State { seq: Seq(3), ..State::default() };
    state.seen_messages.insert(MessageId::new("m"));
    let feed = Feed::new(state, None);
    assert!(feed.state().seen_messages.is_empty());
    assert_eq!(feed.watch().borrow().state.seq, Seq(3));
}
