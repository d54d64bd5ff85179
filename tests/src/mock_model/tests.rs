use std::io::{Read as _, Write as _};

use super::*;

fn post(mock: &MockModel, path: &str, bearer: &str, body: &serde_json::Value) -> TcpStream {
    let mut connection = TcpStream::connect(("127.0.0.1", mock.port)).unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nauthorization: Bearer {bearer}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all((head + &body).as_bytes()).unwrap();
    connection.shutdown(Shutdown::Write).unwrap();
    connection
}

fn ask(mock: &MockModel, bearer: &str, input: serde_json::Value) -> TcpStream {
    post(mock, "/v1/responses", bearer, &json!({ "input": input }))
}

fn whole(mut connection: TcpStream) -> String {
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    text
}

fn user(text: &str) -> serde_json::Value {
    json!({ "role": "user", "content": [{ "type": "input_text", "text": text }] })
}

#[test]
fn a_script_is_followed_through_the_calls_of_a_turn() {
    let mock = MockModel::start().unwrap();
    mock.on("tidy up", vec![Reply::command("ls"), Reply::say("All tidy.")]);
    let first = whole(ask(&mock, "k", json!([user("<environment>"), user("please tidy up")])));
    assert!(first.contains("exec_command") && !first.contains("All tidy."), "{first}");

    let output = json!({ "type": "function_call_output", "call_id": "call_1_0", "output": "" });
    let second = whole(ask(&mock, "k", json!([user("please tidy up"), output])));
    assert!(second.contains("All tidy.") && second.contains("response.completed"), "{second}");
    assert_eq!(mock.model_calls().len(), 2);
    assert_eq!(mock.model_calls()[0].bearer(), Some("k"));
}

#[test]
fn a_gate_holds_the_stream_until_it_is_opened() {
    let mock = MockModel::start().unwrap();
    let mut stream = ask(&mock, "k", json!([user("@mock say one [[half]]two")]));
    mock.wait_at("half").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut early = [0; 64 * 1024];
    let mut text = String::new();
    while let Ok(length @ 1..) = stream.read(&mut early) {
        text.push_str(&String::from_utf8_lossy(&early[..length]));
    }
    assert!(text.contains("\"one \"") && !text.contains("two"), "{text}");
    mock.open("half");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(whole(stream).contains("one two"));
}

#[test]
fn refusals_and_cuts_stop_after_their_number() {
    let mock = MockModel::start().unwrap();
    let refused = json!([user("@mock http 500 1")]);
    assert!(whole(ask(&mock, "k", refused.clone())).starts_with("HTTP/1.1 500"));
    assert!(whole(ask(&mock, "k", refused)).contains("recovered"));
    let cut = json!([user("@mock say part ++ cut 1")]);
    assert!(!whole(ask(&mock, "k", cut.clone())).contains("response.completed"));
    assert!(whole(ask(&mock, "k", cut)).contains("response.completed"));
}

#[test]
fn only_the_named_bearers_are_let_in() {
    let mock = MockModel::start().unwrap();
    mock.accept_only(&["good"]);
    assert!(whole(ask(&mock, "bad", json!([]))).starts_with("HTTP/1.1 401"));
    assert!(whole(ask(&mock, "good", json!([]))).starts_with("HTTP/1.1 200"));
    let grant = json!({ "grant_type": "authorization_code" });
    let tokens = whole(post(&mock, "/oauth/token", "", &grant));
    let body: serde_json::Value = serde_json::from_str(tokens.split_once("\r\n\r\n").unwrap().1).unwrap();
    let issued = body["access_token"].as_str().unwrap();
    assert!(whole(ask(&mock, issued, json!([]))).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_stream_that_hangs_ends_with_the_mock() {
    let mock = MockModel::start().unwrap();
    let stream = ask(&mock, "k", json!([user("@mock say begun ++ hang")]));
    mock.wait_request("call", |request| request.path == "/v1/responses").unwrap();
    drop(mock);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = stream;
    let mut rest = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("response.completed"));
}
