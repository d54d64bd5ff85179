use expect_test::expect;
use turnkeep_model::{
    ItemId,
    port::{Failure, FailureClass, FileChange, FileChangeKind},
};

use super::*;

fn shown(body: ItemBody) -> String {
    let place = Place { ordinal: 7, turn: TurnId(2), completed: true, at: 9 };
    serde_json::to_string(&entry(place, &Item { id: ItemId::new("i1"), body })).unwrap()
}

#[test]
fn an_item_becomes_an_entry_with_its_place() {
    expect![[r#"{"ordinal":7,"id":"i1","turn":"2","completed":true,"at":9,"body":{"type":"command","command":"ls","cwd":"/x","output":"a\n","exitCode":0,"durationMs":12,"status":"completed"}}"#]]
        .assert_eq(&shown(ItemBody::Command {
            command: "ls".into(),
            cwd: "/x".into(),
            output: "a\n".into(),
            exit_code: Some(0),
            duration_ms: Some(12),
            status: ItemStatus::Completed,
        }));
}

#[test]
fn a_moved_file_says_where_to() {
    let changes =
        vec![FileChange { path: "a".into(), kind: FileChangeKind::Updated { moved_to: Some("b".into()) }, diff: "@@".into() }];
    expect![[r#"{"ordinal":7,"id":"i1","turn":"2","completed":true,"at":9,"body":{"type":"fileChange","changes":[{"path":"a","kind":"updated","movedTo":"b","diff":"@@"}],"status":"declined"}}"#]]
        .assert_eq(&shown(ItemBody::FileChange { changes, status: ItemStatus::Declined }));
}

#[test]
fn an_error_keeps_its_code() {
    let failure = Failure { class: FailureClass::UsageLimit, message: "Used up.".into(), detail: Some("429".into()) };
    expect![[r#"{"ordinal":7,"id":"i1","turn":"2","completed":true,"at":9,"body":{"type":"error","failure":{"code":"usageLimit","message":"Used up.","detail":"429"}}}"#]]
        .assert_eq(&shown(ItemBody::Error { failure }));
}
