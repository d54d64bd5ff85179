use turnkeep_model::port::Question;

use super::*;
use crate::sample::{Sample, answers};

fn choice(kind: dto::ChoiceKind) -> dto::Answer {
    dto::Answer::Choice { kind }
}

#[test]
fn an_offered_choice_is_taken_with_its_rule() {
    let mut sample = Sample::new();
    sample.running(1, "One");
    sample.asks_command(1, "ls").ask.choices = vec![Choice::Allow, Choice::AllowAlways { rule: vec!["ls".into()] }, Choice::Deny];
    let given = |kind| answer(&sample.state, ApprovalId(1), choice(kind));
    assert_eq!(given(dto::ChoiceKind::Allow), Ok(Answer::Choice(Choice::Allow)));
    assert_eq!(given(dto::ChoiceKind::AllowAlways), Ok(Answer::Choice(Choice::AllowAlways { rule: vec!["ls".into()] })));
    assert_eq!(given(dto::ChoiceKind::AllowForSession), Err(Refused::NotOffered));
    assert_eq!(given(dto::ChoiceKind::DenyAndStop), Err(Refused::NotOffered));
}

#[test]
fn what_is_not_open_cannot_be_answered() {
    let mut sample = Sample::new();
    sample.running(1, "One");
    sample.asks_command(1, "ls").state = ApprovalState::Moot;
    assert_eq!(answer(&sample.state, ApprovalId(1), choice(dto::ChoiceKind::Allow)), Err(Refused::NotOpen));
    assert_eq!(answer(&sample.state, ApprovalId(2), choice(dto::ChoiceKind::Allow)), Err(Refused::NotOpen));
}

#[test]
fn questions_want_all_their_answers_and_only_those_on_offer() {
    let question = |id: &str, free_text| Question {
        id: id.into(),
        header: String::new(),
        text: String::new(),
        options: vec![("Yes".into(), String::new()), ("No".into(), String::new())],
        free_text,
        secret: false,
    };
    let mut sample = Sample::new();
    sample.running(1, "One");
    sample.asks(1, AskBody::Questions { questions: vec![question("a", false), question("b", true)] });
    let given = |pairs: &[(&str, &[&str])]| {
        answer(&sample.state, ApprovalId(1), dto::Answer::Answers { answers: answers(pairs) }).map(drop)
    };
    assert_eq!(given(&[("a", &["Yes"]), ("b", &["Perhaps"])]), Ok(()));
    assert_eq!(given(&[("a", &["Yes"])]), Err(Refused::NotAllAnswered));
    assert_eq!(given(&[("a", &[]), ("b", &["x"])]), Err(Refused::NotAllAnswered));
    assert_eq!(given(&[("a", &["Perhaps"]), ("b", &["x"])]), Err(Refused::NotOffered));
    assert_eq!(given(&[("a", &["Yes"]), ("b", &["x"]), ("c", &["x"])]), Err(Refused::NotOffered));
    let form = dto::Answer::Form { json: "{}".into() };
    assert_eq!(answer(&sample.state, ApprovalId(1), form), Err(Refused::WrongKind));
}

#[test]
fn a_form_takes_json_and_nothing_else() {
    let mut sample = Sample::new();
    sample.running(1, "One");
    sample.asks(1, AskBody::Form { server: "s".into(), message: "m".into(), schema: None });
    let given = |json: &str| answer(&sample.state, ApprovalId(1), dto::Answer::Form { json: json.into() });
    assert_eq!(given(r#"{"a":1}"#), Ok(Answer::Form(r#"{"a":1}"#.into())));
    assert_eq!(given("{"), Err(Refused::NotJson));
}
