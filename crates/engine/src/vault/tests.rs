use super::*;

#[test]
fn a_frame_is_one_json_line_whatever_the_secret_holds() {
    for secret in ["sk-plain", "with \"quotes\" and \\", "line\nend\u{1f}\t", "ümläut 🔑", ""] {
        let line = frame("{\"key\":", secret, "}");
        let (end, text) = line.split_last().expect("a line");
        assert_eq!(*end, b'\n');
        assert!(!text.contains(&b'\n'));
        let value: serde_json::Value = serde_json::from_slice(text).expect("JSON");
        assert_eq!(value["key"], secret);
    }
}

#[test]
fn what_is_said_about_a_key_does_not_tell_it() {
    let identity = identity_of(&SecretString::from("sk-proj-abcdefghijklmnop7Q2F"));
    assert_eq!(identity.label, "API key ending 7Q2F");
    assert!(!identity.fingerprint.contains("abcd"));
    assert_eq!(identity_of(&SecretString::from("short")).label, "API key");
    assert_ne!(identity_of(&SecretString::from("a")).fingerprint, identity_of(&SecretString::from("b")).fingerprint);
    let vault = Vault::new("test");
    let _ = vault.stage(SecretString::from("sk-canary"));
    assert!(!format!("{vault:?}").contains("canary"));
}

#[test]
fn a_key_that_cannot_be_one_is_refused_in_plain_words() {
    for (key, word) in [("", "empty"), ("  \n", "empty"), ("two words", "space"), (&"x".repeat(3000), "too long")] {
        let refused = accept(&SecretString::from(key)).expect_err("it is refused");
        assert!(refused.message.contains(word), "{}", refused.message);
    }
    assert_eq!(accept(&SecretString::from(" sk-1\n")).expect("a key").expose_secret(), "sk-1");
}

#[test]
fn a_staged_secret_of_an_earlier_run_is_not_a_later_one() {
    let first = Vault::new("test").stage(SecretString::from("a"));
    let then = crate::clock::now().wall;
    while crate::clock::now().wall == then {
        std::hint::spin_loop();
    }
    let second = Vault::new("test").stage(SecretString::from("b"));
    assert_ne!(first, second);
}
