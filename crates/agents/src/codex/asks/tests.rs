use std::collections::BTreeMap;

use super::*;

fn read_text(method: &str, params: &str) -> Option<Asked> {
    let raw: Box<RawValue> = serde_json::from_str(params).expect("JSON in a test");
    read(method, &raw)
}

#[test]
fn a_command_offers_the_saved_rule_that_codex_proposes() {
    let decisions = r#"{"threadId":"t","command":"ls","availableDecisions":["accept",{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["ls","-l"]}},"cancel"]}"#;
    let asked = read_text("item/commandExecution/requestApproval", decisions).expect("a question");
    assert!(asked.ask.choices.contains(&Choice::AllowAlways { rule: vec!["ls".to_owned(), "-l".to_owned()] }));
    assert_eq!(asked.ask.choices.last(), Some(&Choice::Deny), "the safe one is last");
    let none = read_text("item/commandExecution/requestApproval", r#"{"threadId":"t"}"#).expect("a question");
    assert_eq!(none.ask.choices, [Choice::Allow, Choice::AllowForSession, Choice::DenyAndStop, Choice::Deny]);
}

#[test]
fn a_wish_for_the_network_names_the_host() {
    let params = r#"{"threadId":"t","networkApprovalContext":{"host":"example.com","protocol":"https"}}"#;
    let asked = read_text("item/commandExecution/requestApproval", params).expect("a question");
    let AskBody::Command { command, .. } = asked.ask.body else { panic!("a command") };
    assert_eq!(command, "network access to example.com (https)");
}

#[test]
fn every_path_that_a_grant_covers_is_shown() {
    let params = r#"{"threadId":"t","permissions":{"network":null,"fileSystem":{"read":["/a"],"write":null,"entries":[
        {"path":{"type":"path","path":"/b"},"access":"write"},
        {"path":{"type":"glob_pattern","pattern":"/c/**"},"access":"read"},
        {"path":{"type":"special","value":{"kind":"home"}},"access":"write"},
        {"path":{"type":"path","path":"/d"},"access":"deny"},
        {"something":"new"}]}}}"#;
    let asked = read_text("item/permissions/requestApproval", params).expect("a question");
    let AskBody::Permissions { network, read, write } = asked.ask.body else { panic!("permissions") };
    assert!(!network);
    assert_eq!(read, ["/a", "/c/**"]);
    assert_eq!(write, ["/b", "{\"kind\":\"home\"}", "{\"something\":\"new\"}"]);
    let granted = answer(&asked.wanted, &Answer::Choice(Choice::AllowForSession)).expect("a grant");
    assert_eq!(granted["scope"], "session");
    assert!(granted["permissions"].get("network").is_none(), "what was not wished for is not granted");
    assert_eq!(granted["permissions"]["fileSystem"]["entries"][4]["something"], "new");
    let denied = answer(&asked.wanted, &Answer::Choice(Choice::Deny)).expect("a refusal");
    assert_eq!(denied, json!({"permissions": {}, "scope": "turn"}));
}

#[test]
fn a_tool_that_may_be_remembered_offers_that_and_others_do_not() {
    let form = |meta: &str| {
        let params = format!(
            r#"{{"threadId":"t","serverName":"s","mode":"form","_meta":{meta},"message":"m","requestedSchema":{{"type":"object","properties":{{}}}}}}"#
        );
        read_text("mcpServer/elicitation/request", &params).expect("a question")
    };
    let remembered = form(r#"{"persist":["session","always"]}"#);
    assert!(remembered.ask.choices.contains(&Choice::AllowForSession));
    let always = answer(&remembered.wanted, &Answer::Choice(Choice::AllowAlways { rule: Vec::new() })).expect("an answer");
    assert_eq!(always["_meta"]["persist"], "always");
    assert_eq!(form("null").ask.choices, [Choice::Allow, Choice::DenyAndStop, Choice::Deny]);
}

#[test]
fn a_form_with_fields_cannot_be_allowed_without_filling_it_in() {
    let params = r#"{"threadId":"t","serverName":"s","mode":"form","message":"m","requestedSchema":{"properties":{"a":{"type":"string"}}}}"#;
    let asked = read_text("mcpServer/elicitation/request", params).expect("a question");
    assert_eq!(asked.ask.choices, [Choice::DenyAndStop, Choice::Deny]);
    assert!(answer(&asked.wanted, &Answer::Form("[1]".to_owned())).is_err());
    assert!(answer(&asked.wanted, &Answer::Form("{".to_owned())).is_err());
    let filled = answer(&asked.wanted, &Answer::Form("{\"a\":\"x\"}".to_owned())).expect("an answer");
    assert_eq!(filled["content"]["a"], "x");
}

#[test]
fn a_page_to_visit_is_told_with_its_address_and_other_kinds_are_left_to_openai() {
    let url = r#"{"threadId":"t","serverName":"s","mode":"url","message":"Sign in","url":"https://x.y/z"}"#;
    let asked = read_text("mcpServer/elicitation/request", url).expect("a question");
    let AskBody::Form { message, schema: None, .. } = asked.ask.body else { panic!("a form") };
    assert_eq!(message, "Sign in\nhttps://x.y/z");
    let verification = r#"{"threadId":"t","serverName":"s","mode":"openai/userVerification","title":"t","challenge":"c"}"#;
    assert!(read_text("mcpServer/elicitation/request", verification).is_none());
    assert!(read_text("attestation/generate", "{}").is_none());
    assert!(read_text("item/tool/call", r#"{"threadId":"t"}"#).is_none());
}

#[test]
fn questions_without_options_take_typed_text() {
    let params = r#"{"threadId":"t","questions":[
        {"id":"a","question":"free?","options":null,"isSecret":true},
        {"id":"b","question":"one of?","isOther":false,"options":[{"label":"X","description":"d"}]}]}"#;
    let asked = read_text("item/tool/requestUserInput", params).expect("a question");
    let AskBody::Questions { questions } = &asked.ask.body else { panic!("questions") };
    assert_eq!(questions.iter().map(|q| (q.free_text, q.secret)).collect::<Vec<_>>(), [(true, true), (false, false)]);
    let answers = BTreeMap::from([("a".to_owned(), vec!["typed".to_owned()])]);
    let result = answer(&asked.wanted, &Answer::Answers(answers)).expect("an answer");
    assert_eq!(result, json!({"answers": {"a": {"answers": ["typed"]}}}));
    let left = answer(&asked.wanted, &Answer::Choice(Choice::Deny)).expect("an answer");
    assert_eq!(left, json!({"answers": {}}));
}

#[test]
fn an_answer_of_another_kind_is_refused() {
    let decision = Wanted::Decision(vec![Choice::Allow]);
    assert!(answer(&decision, &Answer::Form("{}".to_owned())).is_err());
    assert!(answer(&decision, &Answer::Answers(BTreeMap::new())).is_err());
    assert!(answer(&Wanted::Answers, &Answer::Choice(Choice::Allow)).is_err());
    assert!(answer(&Wanted::Permissions(Value::Null), &Answer::Choice(Choice::AllowAlways { rule: vec![] })).is_err());
}
