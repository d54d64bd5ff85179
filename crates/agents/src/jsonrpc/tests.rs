use proptest::prelude::*;

use super::*;

fn raw(text: &str) -> Box<RawValue> {
    serde_json::from_str(text).expect("JSON in a test")
}

fn ask(requests: &mut Requests<u32>, what: u32) {
    requests.ask("do", Params::of(&serde_json::json!({})), 1_000, what);
}

fn send_all(requests: &mut Requests<u32>, now: Clock) -> usize {
    std::iter::from_fn(|| requests.send(now)).count()
}

fn text(frame: Option<Frame>) -> String {
    match frame {
        Some(Frame::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_says_which_protocol_it_is_only_where_that_is_wanted() {
    let mut bare = Requests::new(Dialect::Bare, 8);
    ask(&mut bare, 1);
    assert_eq!(text(bare.send(0)), r#"{"id":1,"method":"do","params":{}}"#);
    let mut full = Requests::new(Dialect::Version2, 8);
    ask(&mut full, 1);
    assert_eq!(text(full.send(0)), r#"{"jsonrpc":"2.0","id":1,"method":"do","params":{}}"#);
    assert_eq!(text(Some(full.notify("go"))), r#"{"jsonrpc":"2.0","method":"go"}"#);
    assert_eq!(text(Some(full.reply("\"a\"", &true))), r#"{"jsonrpc":"2.0","id":"a","result":true}"#);
    let refusal = text(Some(bare.refuse("7", -32601, "a \"quoted\"\nword")));
    assert_eq!(refusal, r#"{"id":7,"error":{"code":-32601,"message":"a \"quoted\"\nword"}}"#);
}

#[test]
fn a_secret_has_its_place_and_never_its_text() {
    let mut requests = Requests::new(Dialect::Bare, 8);
    let params = Params::Secret { head: "{\"key\":".to_owned(), slot: SecretSlot::ApiKey, tail: "}".to_owned() };
    requests.ask("login", params, 1_000, 1);
    let Some(Frame::WithSecret { head, slot: SecretSlot::ApiKey, tail }) = requests.send(0) else { panic!("a secret frame") };
    let whole: serde_json::Value = serde_json::from_str(&format!("{head}\"sk\"{tail}")).expect("one message");
    assert_eq!(whole["params"]["key"], "sk");
}

#[test]
fn what_does_not_fit_in_flight_waits_for_an_answer() {
    let mut requests = Requests::new(Dialect::Bare, IN_FLIGHT);
    for n in 0..200 {
        ask(&mut requests, n);
    }
    assert_eq!(send_all(&mut requests, 0), IN_FLIGHT);
    // Out of order: each answer makes room for one.
    for id in [64, 1, 33] {
        assert_eq!(requests.answer(&raw(&id.to_string())), Some(Answered { asked: id - 1, late: false }));
    }
    assert_eq!(send_all(&mut requests, 0), 3);
    assert_eq!(requests.in_flight(), IN_FLIGHT);
}

#[test]
fn a_request_without_an_answer_ends_at_its_deadline_and_makes_room() {
    let mut requests = Requests::new(Dialect::Bare, 1);
    ask(&mut requests, 1);
    ask(&mut requests, 2);
    assert_eq!(send_all(&mut requests, 5_000), 1);
    assert_eq!(requests.next_deadline(), Some(6_000));
    assert!(requests.expire(5_999).is_empty());
    assert_eq!(requests.expire(6_000), [1]);
    // The patience of one that waited counts from when it is sent.
    assert_eq!(send_all(&mut requests, 9_000), 1);
    assert_eq!(requests.next_deadline(), Some(10_000));
    assert_eq!(requests.answer(&raw("1")), Some(Answered { asked: 1, late: true }), "a late answer is known as such");
    assert_eq!(requests.answer(&raw("1")), None, "once");
}

#[test]
fn answers_to_nothing_are_counted() {
    let mut requests = Requests::new(Dialect::Bare, 8);
    ask(&mut requests, 1);
    send_all(&mut requests, 0);
    for id in ["2", "\"1\"", "1.0", "-1", "null", "{}", "99999999999999999999999"] {
        assert_eq!(requests.answer(&raw(id)), None, "{id}");
    }
    assert_eq!(requests.strays(), 7);
    assert!(requests.answer(&raw("1")).is_some());
    assert_eq!(requests.answer(&raw("1")), None, "answered twice");
}

#[test]
fn late_requests_are_forgotten_in_the_end() {
    let mut requests = Requests::new(Dialect::Bare, 1);
    for n in 0..300 {
        ask(&mut requests, n);
        send_all(&mut requests, u64::from(n) * 2_000);
        requests.expire(u64::from(n) * 2_000 + 1_000);
    }
    assert_eq!(requests.answer(&raw("1")), None);
    assert!(requests.answer(&raw("300")).is_some());
}

#[test]
fn draining_tells_everything_once() {
    let mut requests = Requests::new(Dialect::Bare, 2);
    for n in 0..5 {
        ask(&mut requests, n);
    }
    send_all(&mut requests, 0);
    let mut left = requests.drain();
    left.sort_unstable();
    assert_eq!(left, [0, 1, 2, 3, 4]);
    assert!(requests.drain().is_empty() && requests.send(0).is_none());
}

proptest! {
    /// Whatever comes in which order: never too many in flight, and each request ends exactly once.
    #[test]
    fn every_request_ends_once(steps in proptest::collection::vec((0u8..4, 1u64..40), 0..200)) {
        let mut requests = Requests::new(Dialect::Bare, 4);
        let (mut now, mut asked) = (0, 0);
        let mut ended = BTreeMap::<u32, u32>::new();
        for (what, n) in steps {
            match what {
                0 => {
                    ask(&mut requests, asked);
                    asked += 1;
                }
                1 => {
                    if let Some(Answered { asked, late: false }) = requests.answer(&raw(&n.to_string())) {
                        *ended.entry(asked).or_default() += 1;
                    }
                }
                2 => {
                    now += n * 100;
                    for asked in requests.expire(now) {
                        *ended.entry(asked).or_default() += 1;
                    }
                }
                _ => {
                    send_all(&mut requests, now);
                }
            }
            prop_assert!(requests.in_flight() <= 4);
        }
        for asked in requests.drain() {
            *ended.entry(asked).or_default() += 1;
        }
        prop_assert_eq!(ended.len(), asked as usize);
        prop_assert!(ended.values().all(|times| *times == 1));
    }
}
