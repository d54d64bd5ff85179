use super::{AddressError, Server};

fn written(text: &str) -> Result<String, AddressError> {
    Server::parse(text).map(|server| server.address().0)
}

#[test]
fn an_address_has_one_way_to_be_written() {
    for (typed, kept) in [
        ("unix:///run/codex.sock", "unix:///run/codex.sock"),
        (" /run/codex.sock\n", "unix:///run/codex.sock"),
        ("unix:///tmp/a b?c#d%20e", "unix:///tmp/a b?c#d%20e"),
        ("ws://127.0.0.1:4500", "ws://127.0.0.1:4500"),
        ("ws://127.0.0.1:4500/", "ws://127.0.0.1:4500"),
        ("WS://LOCALHOST:4500", "ws://127.0.0.1:4500"),
        ("ws://127.9.9.9:1/x/y", "ws://127.9.9.9:1/x/y"),
        ("ws://[::1]:4500", "ws://[::1]:4500"),
        ("ws://2130706433:4500", "ws://127.0.0.1:4500"),
    ] {
        assert_eq!(written(typed).as_deref(), Ok(kept), "{typed}");
        assert_eq!(written(kept).as_deref(), Ok(kept), "{kept} is not read as it is written");
    }
}

#[test]
fn what_is_not_taken_is_refused_with_its_reason() {
    for (typed, why) in [
        ("", AddressError::Empty),
        ("  ", AddressError::Empty),
        ("codex", AddressError::Malformed),
        ("unix:///a\u{0}b", AddressError::Malformed),
        ("unix://", AddressError::Path),
        ("unix://run/codex.sock", AddressError::Path),
        ("unix:/", AddressError::Path),
        ("~/codex.sock", AddressError::Path),
        ("./codex.sock", AddressError::Path),
        ("wss://127.0.0.1:4500", AddressError::Tls),
        ("http://127.0.0.1:4500", AddressError::Http),
        ("ftp://127.0.0.1:4500", AddressError::Malformed),
        ("ws://192.168.0.5:4500", AddressError::NotLoopback),
        ("ws://0.0.0.0:4500", AddressError::NotLoopback),
        ("ws://[::]:4500", AddressError::NotLoopback),
        ("ws://localhost.evil.example:4500", AddressError::NotLoopback),
        ("ws://127.0.0.1.nip.io:4500", AddressError::NotLoopback),
        ("ws://[::ffff:192.168.0.5]:4500", AddressError::NotLoopback),
        ("ws://me:secret@127.0.0.1:4500", AddressError::UserInfo),
        ("ws://me@127.0.0.1:4500", AddressError::UserInfo),
        ("ws://127.0.0.1", AddressError::NoPort),
        ("ws://127.0.0.1:0", AddressError::NoPort),
        ("ws://127.0.0.1:99999", AddressError::Malformed),
        ("ws://127.0.0.1:4500/?token=x", AddressError::Extra),
        ("ws://127.0.0.1:4500/#x", AddressError::Extra),
    ] {
        assert_eq!(written(typed), Err(why), "{typed}");
    }
    assert_eq!(written(&format!("unix:///{}", "x".repeat(5_000))), Err(AddressError::TooLong));
}
