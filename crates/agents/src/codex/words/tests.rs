use expect_test::{Expect, expect, expect_file};
use serde_json::json;

use super::*;

const BY_ACCOUNT: Standing = Standing { by_account: true, signed_in: true };
const OWN_PROVIDER: Standing = Standing { by_account: false, signed_in: true };

fn error(message: &str, info: Value) -> wire::TurnError {
    wire::TurnError { message: message.to_owned(), codex_error_info: info, additional_details: None }
}

fn class(message: &str, info: Value, standing: Standing) -> FailureClass {
    of_turn(&error(message, info), standing).class
}

/// Every end by an error that was recorded of the real program: as an account's, and as another model provider's.
#[test]
fn recorded_errors() {
    let mut table = String::new();
    for line in include_str!("../transcripts/errors.jsonl").lines() {
        let recorded: wire::TurnError = serde_json::from_str(line).expect("a recorded error");
        let account = of_turn(&recorded, BY_ACCOUNT);
        let own = of_turn(&recorded, OWN_PROVIDER);
        table.push_str(&format!("{:?} / {:?}\n", account.class, own.class));
        table.push_str(&format!("    {}\n", account.message));
        if own.message != account.message {
            table.push_str(&format!("    own provider: {}\n", own.message));
        }
    }
    expect_file!["../transcripts/errors.words.txt"].assert_eq(&table);
}

#[test]
fn every_text_of_codex_s_that_means_signed_out_says_the_same() {
    for reason in [
        "you have since logged out or signed in to another account. Please sign in again.",
        "your refresh token was already used. Please log out and sign in again.",
        "your refresh token has expired. Please log out and sign in again.",
        "your refresh token was revoked. Please log out and sign in again.",
    ] {
        let text = format!("Your access token could not be refreshed because {reason}");
        assert!(signed_out(&text), "{text}");
        // Whatever code came with it, and whoever serves the model: the text is Codex's own.
        for info in [json!("unauthorized"), json!("other"), json!(null), json!({"httpConnectionFailed": {"httpStatusCode": 401}})]
        {
            let failure = of_turn(&error(&text, info), OWN_PROVIDER);
            assert_eq!(failure.class, FailureClass::SignedOut, "{text}");
            assert_eq!(failure.message, "Codex (OpenAI) isn't connected. Sign in to Codex, then send your message again.");
            assert!(failure.detail.is_some_and(|detail| detail.contains(reason)), "its own text is kept as the detail");
        }
    }
}

#[test]
fn a_401_means_signed_out_only_where_the_account_serves_the_model() {
    let info = || json!({"httpConnectionFailed": {"httpStatusCode": 401}});
    let text = "unexpected status 401 Unauthorized: Incorrect API key provided";
    assert_eq!(class(text, info(), BY_ACCOUNT), FailureClass::SignedOut);
    let own = of_turn(&error(text, info()), OWN_PROVIDER);
    assert_eq!(own.class, FailureClass::Other);
    assert_eq!(own.message, text);
    assert!(!signed_out(text), "a text without its provider says nothing");
}

#[test]
fn what_is_not_about_the_account_keeps_its_own_text() {
    for (text, info) in [
        ("unexpected status 403 Forbidden: unsupported_country", json!({"httpConnectionFailed": {"httpStatusCode": 403}})),
        ("Failed to refresh token: 500 Internal Server Error", json!("other")),
        ("MCP server `x` is not logged in", json!("other")),
        ("sandbox error: not signed in to the vault", json!("sandboxError")),
        ("The tool printed: Please sign in again", json!("other")),
    ] {
        let failure = of_turn(&error(text, info), BY_ACCOUNT);
        assert_ne!(failure.class, FailureClass::SignedOut, "{text}");
        assert_eq!(failure.message, text);
    }
}

#[test]
fn an_account_that_was_replaced_is_told_apart_from_one_that_is_gone() {
    let text = "Fatal error: application network permission was revoked";
    assert_eq!(class(text, json!("other"), BY_ACCOUNT), FailureClass::AccountChanged);
    let gone = Standing { by_account: true, signed_in: false };
    assert_eq!(class(text, json!("other"), gone), FailureClass::SignedOut);
}

#[test]
fn a_code_counts_more_than_a_text_that_looks_like_a_network_s() {
    let text = "stream disconnected before completion: too much";
    assert_eq!(class(text, json!("contextWindowExceeded"), BY_ACCOUNT), FailureClass::ContextWindow);
    assert_eq!(class(text, json!("other"), BY_ACCOUNT), FailureClass::Network);
    let later = json!({"a_code_of_a_later_version": {"httpStatusCode": 503}});
    assert_eq!(class("x", later, BY_ACCOUNT), FailureClass::Overloaded);
    assert_eq!(class("x", json!([1, 2]), BY_ACCOUNT), FailureClass::Other);
    assert_eq!(class("", json!(null), BY_ACCOUNT), FailureClass::Other);
}

#[test]
fn refused_requests_are_told_with_what_was_asked() {
    let refused = |message: &str, expected: FailureClass| {
        let failure = of_refusal(&RpcError { code: -32600, message: message.to_owned() }, "open the thread");
        assert_eq!(failure.class, expected, "{message}");
        failure.message
    };
    assert_eq!(
        refused("thread 1 already has an active writer", FailureClass::ThreadBusy),
        "Codex could not open the thread: thread 1 already has an active writer"
    );
    refused("no rollout found for thread id 1", FailureClass::ThreadNotFound);
    refused("thread not found: 1", FailureClass::ThreadNotFound);
    refused("session 1 is archived. Run `codex unarchive 1`", FailureClass::ThreadNotFound);
    refused("Server overloaded; retry later.", FailureClass::Overloaded);
    refused("workspace routing discovery failed", FailureClass::Network);
    refused("goals feature is disabled", FailureClass::Other);
    refused("This thread was created with a different ChatGPT account or workspace.", FailureClass::AccountChanged);
    assert_eq!(refused("codex account authentication required to read rate limits", FailureClass::SignedOut), NOT_CONNECTED);
    let long = format!("Invalid request: unknown variant, expected one of {}\nand more", "x".repeat(5_000));
    assert!(refused(&long, FailureClass::Other).len() < 500, "a list of 5 kB is no message");
}

#[test]
fn sign_ins_that_fail_say_what_to_do() {
    fn check(error: Option<&str>, cancelled: bool, expected: Expect) {
        let failure = of_sign_in(error, cancelled);
        expected.assert_eq(&format!("{:?}: {}", failure.class, failure.message));
    }
    check(
        Some(
            "failed to save api key: failed to write OAuth tokens to keyring: Platform secure storage failure: no secret service provider or dbus session found",
        ),
        false,
        expect![
            "KeychainAbsent: This system has no keychain that Codex could keep a sign-in in. Start one (for example GNOME Keyring or KWallet), or use an API key."
        ],
    );
    check(
        Some("Couldn't access platform secure storage: SS error: prompt dismissed"),
        false,
        expect![
            "KeychainLocked: The system's keychain is locked, so Codex could not use its sign-in. Unlock it, then try again."
        ],
    );
    check(Some("Login server error: Login cancelled"), true, expect!["Other: The sign-in was cancelled. Nothing was changed."]);
    check(
        Some("Login server error: Login cancelled"),
        false,
        expect![
            "Other: Another Codex program started its own sign-in and took over the address that the browser returns to (127.0.0.1:1455). Finish that one, then try again here, or sign in with a device code."
        ],
    );
    check(
        Some("failed to start login server: Port 127.0.0.1:1457 is already in use"),
        false,
        expect![
            "Other: Both addresses that the browser could return to (127.0.0.1:1455 and 127.0.0.1:1457) are in use by other programs. Close one of them and try again, or sign in with a device code."
        ],
    );
    check(
        Some("API key login is disabled. Use ChatGPT login instead."),
        false,
        expect!["Other: Codex is set up (forced_login_method in its config.toml) to allow only the other kind of sign-in."],
    );
    check(
        Some("error sending request for url"),
        false,
        expect!["Network: OpenAI's sign-in could not be reached. Check the network, then try again."],
    );
    check(None, false, expect!["Other: Codex ended the sign-in without saying why. Try again."]);
}
