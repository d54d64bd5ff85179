//! Files that are not as they should be, and commits that fail.

use std::fs;

use turnkeep_model::{Change, State, port::TurnOutcome};

use super::{super::load::Missing, *};
use crate::store::open::{check_library, known, suspect_mark};

#[test]
fn the_library_is_new_enough_and_an_old_one_is_refused() {
    check_library(rusqlite::version_number(), rusqlite::version()).unwrap();
    let refused = check_library(3_051_002, "3.51.2").unwrap_err().to_string();
    assert!(refused.contains("3.51.2") && refused.contains("3.51.3"), "{refused}");
}

#[test]
fn a_newer_database_is_refused_and_not_touched() {
    let mut bench = Bench::new();
    bench.commit(&[created()]);
    let path = bench.path();
    let Bench { folder, writer, reader, .. } = bench;
    drop(reader);
    writer.close();
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", known() + 1).unwrap();
    newer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(newer);
    let list = |folder: &tempfile::TempDir| {
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (bytes, names) = (fs::read(&path).unwrap(), list(&folder));

    let error = open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found, .. } if found == known() + 1), "{error}");
    assert!(error.to_string().contains("newer Turnkeep"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(list(&folder), names);
}

#[test]
fn a_damaged_database_is_put_aside_whole_and_a_fresh_one_begun() {
    for damage in [b"this was never a database, whatever its name says".to_vec(), {
        let mut head = b"SQLite format 3\0".to_vec();
        head.resize(8192, 0xAA);
        // A version that is not newer.
        head[60..64].copy_from_slice(&[0, 0, 0, 1]);
        head
    }] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("turnkeep.db");
        fs::write(&path, &damage).unwrap();
        let (mut writer, _, loaded) = open(&path).unwrap();
        let [Missing::Database { aside, .. }] = loaded.missing.as_slice() else {
            panic!("{:?}", loaded.missing);
        };
        assert_eq!(fs::read(aside).unwrap(), damage, "nothing of it is lost");
        assert_eq!(loaded.state, State::default());
        let mut next = State::default();
        let mut draft = Draft::new(&mut next, 1);
        draft.add(&created());
        writer.commit(&draft.finish()).unwrap();
    }
}

#[test]
fn damage_that_only_a_commit_meets_is_looked_for_at_the_next_start() {
    let mut bench = Bench::new();
    bench.commit(&[created()]);
    for number in 0..200 {
        bench.commit(&[said(&format!("i{number}"), &"words ".repeat(200), true)]);
    }
    let path = bench.path();
    let Bench { folder: _folder, writer, reader, .. } = bench;
    drop(reader);
    writer.close();
    // Pages in the middle hold transcripts: nothing that a start reads.
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 16 * 4096].fill(0x5A);
    fs::write(&path, &bytes).unwrap();
    let (_, _, loaded) = open(&path).unwrap();
    assert_eq!(loaded.missing, vec![], "the damage is not where a start looks");

    fs::write(suspect_mark(&path), b"").unwrap();
    let (_, _, loaded) = open(&path).unwrap();
    assert!(matches!(loaded.missing.as_slice(), [Missing::Database { .. }]), "{:?}", loaded.missing);
    assert!(!suspect_mark(&path).exists(), "asked once");
}

#[test]
fn a_row_that_cannot_be_read_is_left_out_and_kept() {
    let mut bench = Bench::new();
    bench.commit(&[created(), Change::TurnDispatched { turn: TURN, entry: turn(None) }]);
    let broken = "{\"provider\":12}";
    bench.writer.connection().execute("UPDATE sessions SET body = ?1", [broken]).unwrap();
    let (mut writer, _, loaded) = open(&bench.path()).unwrap();
    assert!(matches!(loaded.missing.as_slice(), [Missing::Row { source: "sessions", .. }]), "{:?}", loaded.missing);
    assert_eq!(loaded.state.sessions.len(), 0);
    assert_eq!(loaded.state.turns.len(), 0, "a turn of a session that is not there");
    assert_eq!(loaded.state.next.session, 2, "its number is not used again");
    let kept: String = writer.connection().query_row("SELECT body FROM unreadable", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, broken);
}

#[test]
fn a_full_disk_writes_nothing_of_the_batch_and_trying_again_works() {
    let mut bench = Bench::new();
    bench.commit(&[created()]);
    let pages: u32 = bench.writer.connection().pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    bench.writer.connection().pragma_update(None, "max_page_count", pages).unwrap();
    let batch = [Change::MessageQueued { session: SESSION, message: queued("m") }, said("i", &"x".repeat(100_000), true)];
    let error = bench.try_commit(&batch).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().contains("make room"), "{error}");
    assert_eq!(bench.reloaded(), bench.committed, "nothing of it");

    bench.writer.connection().pragma_update(None, "max_page_count", 1_000_000).unwrap();
    bench.commit(&batch);
    let state = bench.reloaded();
    assert_eq!(state.sessions[&SESSION].queue.len(), 1);
}

#[test]
fn a_file_that_cannot_be_written_is_doubted_at_the_next_start() {
    let mut bench = Bench::new();
    bench.commit(&[created()]);
    let before = bench.reloaded();
    bench.writer.connection().execute_batch("PRAGMA query_only = 1").unwrap();
    let error = bench.try_commit(&[said("i", "x", true)]).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "only a full disk may be tried again: {error}");
    assert!(suspect_mark(&bench.path()).exists());
    bench.writer.connection().execute_batch("PRAGMA query_only = 0").unwrap();
    assert_eq!(bench.reloaded(), before);
    assert!(!suspect_mark(&bench.path()).exists(), "it was looked at, and is sound");
}

#[test]
fn space_that_the_journal_leaves_goes_back_to_the_system() {
    let mut bench = Bench::new();
    let read = |bench: &mut Bench, what: &str| -> u32 {
        bench.writer.connection().pragma_query_value(None, what, |row| row.get(0)).unwrap()
    };
    assert_eq!(read(&mut bench, "auto_vacuum"), 2, "incremental");
    assert_eq!(read(&mut bench, "foreign_keys"), 1);
    bench.writer.keep(10);
    bench.writer.hurry();
    bench.commit(&[created()]);
    let long = "x".repeat(2_000);
    let rename = |number: u32| Change::SessionRenamed { session: SESSION, title: format!("{long}{number}") };
    for number in 0..999 {
        bench.commit(&[rename(number)]);
    }
    let before = read(&mut bench, "page_count");
    for number in 0..3 {
        bench.commit(&[rename(number)]);
    }
    let after = read(&mut bench, "page_count");
    assert!(after + 200 < before, "{before} pages, then {after}");
}

#[test]
fn what_must_survive_a_power_loss_is_committed_in_full() {
    let mut bench = Bench::new();
    let mode = |bench: &mut Bench| -> u32 {
        bench.writer.connection().pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap()
    };
    let (normal, full) = (1, 2);
    bench.commit(&[created()]);
    assert_eq!(mode(&mut bench), normal);
    bench.commit(&[
        Change::MessageQueued { session: SESSION, message: queued("a") },
        Change::TurnDispatched { turn: TURN, entry: turn(Some("a")) },
    ]);
    assert_eq!(mode(&mut bench), normal, "message and mark are lost together or not at all");
    bench.commit(&[said("i", "x", true)]);
    assert_eq!(mode(&mut bench), normal);
    bench.commit(&[Change::TurnEnded { turn: TURN, outcome: TurnOutcome::Completed, at: 9 }]);
    assert_eq!(mode(&mut bench), full);
    bench.commit(&[Change::MessageQueued { session: SESSION, message: queued("b") }]);
    assert_eq!(mode(&mut bench), normal);
    bench.commit(&[Change::TurnDispatched { turn: TurnId(2), entry: turn(Some("b")) }]);
    assert_eq!(mode(&mut bench), full, "the message could be on the disk without its mark");
}

#[test]
fn the_journal_is_trimmed_by_count_and_by_age_and_never_needed() {
    let mut bench = Bench::new();
    bench.writer.keep(100);
    bench.writer.hurry();
    bench.commit(&[created()]);
    let rename = |title: &str| Change::SessionRenamed { session: SESSION, title: title.into() };
    for number in 0..2_500 {
        bench.commit(&[rename(&number.to_string())]);
    }
    let count = |bench: &mut Bench| -> u64 {
        bench.writer.connection().query_row("SELECT count(*) FROM journal", [], |row| row.get(0)).unwrap()
    };
    let kept = count(&mut bench);
    assert!((100..1_200).contains(&kept), "{kept}");
    assert_eq!(bench.reloaded(), bench.committed);

    bench.at += 30 * 24 * 60 * 60 * 1000;
    for number in 0..1_001 {
        bench.commit(&[rename(&number.to_string())]);
    }
    let old: u64 = bench
        .writer
        .connection()
        .query_row("SELECT count(*) FROM journal WHERE at < ?1", [bench.at - 20 * 24 * 60 * 60 * 1000], |row| row.get(0))
        .unwrap();
    assert_eq!(old, 0);
    bench.writer.connection().execute("DELETE FROM journal", []).unwrap();
    assert_eq!(bench.reloaded(), bench.committed);
}

#[cfg(unix)]
#[test]
fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    assert_eq!(fs::metadata(bench.path()).unwrap().permissions().mode() & 0o777, 0o600);
}
