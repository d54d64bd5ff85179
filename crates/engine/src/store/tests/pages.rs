//! Reading a transcript, a search, the journal.

use rusqlite::params;
use turnkeep_model::{
    Change, ItemId, Seq,
    port::{Item, ItemBody, ItemStatus, TurnOutcome},
};

use super::{
    super::read::{EVENTS, PAGE, SEARCH, TOTAL},
    *,
};

fn ordinals(bench: &Bench, before: Option<u64>, limit: usize) -> Vec<u64> {
    let page = bench.reader.page(SESSION, before, limit).unwrap();
    page.entries.iter().map(|entry| entry.ordinal).collect()
}

/// A start reads none of them, and each is found by its key.
#[test]
fn ids_of_a_long_history_are_looked_up_and_not_read() {
    const MANY: usize = 100_000;
    let mut bench = Bench::new();
    {
        let mut connection = rusqlite::Connection::open(bench.path()).unwrap();
        let transaction = connection.transaction().unwrap();
        let mut insert = transaction.prepare("INSERT INTO seen_messages VALUES (?1)").unwrap();
        for number in 0..MANY {
            insert.execute([format!("019a-{number:012}-message")]).unwrap();
        }
        drop(insert);
        transaction.commit().unwrap();
    }
    let begun = std::time::Instant::now();
    let (_, reader, loaded) = open(&bench.path()).unwrap();
    let opened = begun.elapsed();
    assert!(loaded.state.seen_messages.is_empty());
    let begun = std::time::Instant::now();
    for number in (0..MANY).step_by(100) {
        assert!(reader.has_seen(&MessageId(format!("019a-{number:012}-message"))).unwrap());
    }
    println!("opened in {opened:?} beside {MANY} ids; a look takes {:?}", begun.elapsed() / 1_000);
    assert!(!reader.has_seen(&MessageId::new("another")).unwrap());
    bench.commit(&[created(), Change::MessageQueued { session: SESSION, message: queued("another") }]);
    assert!(reader.has_seen(&MessageId::new("another")).unwrap(), "what is committed is seen at once");
}

#[test]
fn pages_run_backwards_without_gaps() {
    let mut bench = Bench::new();
    bench.commit(&[created()]);
    for number in 1..=10 {
        let done = bench.commit(&[said(&format!("i{number}"), "x", true)]);
        assert_eq!(done.items[0].ordinal, number);
    }
    assert_eq!(ordinals(&bench, None, 4), [7, 8, 9, 10]);
    assert_eq!(ordinals(&bench, Some(7), 4), [3, 4, 5, 6]);
    let first = bench.reader.page(SESSION, Some(3), 4).unwrap();
    assert_eq!(first.before, None, "the beginning");
    assert_eq!(first.total, 10);
    assert_eq!(bench.reader.page(SESSION, None, 4).unwrap().before, Some(7));
    assert_eq!(bench.reader.page(SessionId(9), None, 4).unwrap().total, 0);
}

#[test]
fn an_item_keeps_its_place_and_its_time_when_it_is_completed() {
    let mut bench = Bench::new();
    bench.commit(&[created()]);
    let began = bench.commit(&[said("a", "", false)]);
    bench.commit(&[said("b", "second", true)]);
    let ended = bench.commit(&[said("a", "first", true)]);
    assert_eq!(began.items, ended.items);
    let page = bench.reader.page(SESSION, None, 10).unwrap();
    assert_eq!(page.entries[0].item.body, ItemBody::AgentMessage { text: "first".into(), final_answer: true });
    assert!(page.entries[0].completed);
    // A late start does not undo an end.
    bench.commit(&[said("a", "first", false)]);
    assert!(bench.reader.page(SESSION, None, 10).unwrap().entries[0].completed);
}

#[test]
fn what_still_runs_when_its_turn_ends_is_abandoned() {
    let mut bench = Bench::new();
    let body = ItemBody::Command {
        command: "make".into(),
        cwd: "/".into(),
        output: String::new(),
        exit_code: None,
        duration_ms: None,
        status: ItemStatus::Running,
    };
    let item = Item { id: ItemId::new("c"), body };
    bench.commit(&[
        created(),
        Change::TurnDispatched { turn: TURN, entry: turn(None) },
        Change::ItemRecorded { session: SESSION, turn: TURN, item, completed: false },
    ]);
    bench.commit(&[Change::TurnEnded { turn: TURN, outcome: TurnOutcome::Lost, at: 9 }]);
    let page = bench.reader.page(SESSION, None, 10).unwrap();
    assert!(page.entries[0].completed);
    assert!(matches!(page.entries[0].item.body, ItemBody::Command { status: ItemStatus::Abandoned, .. }));
}

#[test]
fn a_search_finds_words_and_their_beginnings_and_takes_anything() {
    let mut bench = Bench::new();
    bench.commit(&[
        created(),
        said("a", "The migration of the database is done.", true),
        said("b", "Nothing of that kind", true),
        said("c", "The database was migrated twice", false),
    ]);
    let found = |bench: &Bench, text: &str| -> Vec<u64> {
        bench.reader.search(text, 10).unwrap().iter().map(|found| found.entry.ordinal).collect()
    };
    assert_eq!(found(&bench, "data migr"), [1], "what still runs is not indexed");
    assert_eq!(found(&bench, "MIGRATION"), [1]);
    assert_eq!(found(&bench, "absent"), [] as [u64; 0]);
    for odd in ["", "\"", "a\" OR text:*", "(", "NEAR(", "*", "-database", "ü̈ \u{0} '"] {
        found(&bench, odd);
    }
    bench.commit(&[said("c", "The database was migrated twice", true), said("a", "rewritten", true)]);
    assert_eq!(found(&bench, "database"), [3]);
    assert_eq!(found(&bench, "rewritten"), [1]);
}

#[test]
fn the_journal_names_items_and_does_not_repeat_them() {
    let mut bench = Bench::new();
    bench.commit(&[created(), said("a", "a very long text", true)]);
    let events = bench.reader.events(Seq(0), 10).unwrap();
    assert_eq!(events.iter().map(|event| event.seq.0).collect::<Vec<_>>(), [1, 2]);
    assert!(events[1].change.contains("agent_message") && !events[1].change.contains("very long"), "{}", events[1].change);
    assert_eq!(bench.reader.events(Seq(1), 10).unwrap().len(), 1);
}

/// A read that walks a table, or sorts, gets slower with the history; one that only searches an index does not.
#[test]
fn no_read_depends_on_the_length_of_the_history() {
    let mut bench = Bench::new();
    bench.commit(&[created()]);
    let transaction = bench.writer.connection().transaction().unwrap();
    {
        let mut insert = transaction
            .prepare("INSERT INTO items (session, ordinal, item, turn, kind, completed, at, body) VALUES (1, ?1, ?1, 1, 'agent_message', 1, 1, '{}')")
            .unwrap();
        for ordinal in 1..=100_000 {
            insert.execute(params![ordinal]).unwrap();
        }
    }
    transaction.commit().unwrap();
    assert_eq!(bench.reader.page(SESSION, None, 50).unwrap().entries.len(), 50);
    assert_eq!(ordinals(&bench, Some(50_000), 2), [49_998, 49_999]);

    let plan = |sql: &str| -> Vec<String> {
        let mut statement = bench.reader.connection().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let count = statement.parameter_count();
        let values = vec![rusqlite::types::Value::from("1".to_owned()); count];
        statement.query_map(rusqlite::params_from_iter(values), |row| row.get(3)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let bad = |plan: &[String]| {
        plan.iter()
            .any(|line| (line.starts_with("SCAN") && !line.contains("VIRTUAL TABLE")) || line.contains("TEMP B-TREE FOR ORDER"))
    };
    for sql in [PAGE, TOTAL, SEARCH, EVENTS] {
        let plan = plan(sql);
        assert!(!bad(&plan), "{sql}\n{plan:#?}");
    }
    assert!(bad(&plan("SELECT * FROM items WHERE at = ?1")), "the check can fail");
    assert!(bad(&plan("SELECT * FROM items WHERE session = ?1 ORDER BY at")), "the check can fail");
}
