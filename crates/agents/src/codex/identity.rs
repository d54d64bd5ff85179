//! Who stands behind Codex's own credential file, and which program its wrapper script would start.
//!
//! Reads what it is given and keeps nothing of it: a token never leaves this file, not even in part.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use turnkeep_model::port::{Identity, Observation};

#[derive(Deserialize)]
struct AuthFile<'a> {
    #[serde(borrow, rename = "OPENAI_API_KEY", default)]
    api_key: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    tokens: Option<Tokens<'a>>,
}

#[derive(Deserialize)]
struct Tokens<'a> {
    #[serde(borrow, default)]
    id_token: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    account_id: Option<String>,
}

#[derive(Default, Deserialize)]
struct Claims {
    #[serde(default)]
    email: Option<String>,
    #[serde(rename = "https://api.openai.com/auth", default)]
    auth: AuthClaims,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AuthClaims {
    chatgpt_plan_type: Option<String>,
    chatgpt_user_id: Option<String>,
    user_id: Option<String>,
    chatgpt_account_id: Option<String>,
}

/// The same fingerprints as the protocol machine makes, so that a file and a process can be compared.
pub(super) fn read(content: &[u8], digest: &dyn Fn(&[u8]) -> String) -> Observation {
    if content.iter().all(u8::is_ascii_whitespace) {
        return Observation::NoOne;
    }
    let Ok(file) = serde_json::from_slice::<AuthFile<'_>>(content) else {
        // A file that is being written, or damaged: Codex itself says who is signed in.
        return Observation::Unknown { why: "the credential file of Codex is not whole".to_owned() };
    };
    if let Some(tokens) = file.tokens {
        let claims = tokens.id_token.as_deref().and_then(claims).unwrap_or_default();
        let email = claims.email.filter(|email| !email.is_empty());
        let person = claims.auth.chatgpt_user_id.or(claims.auth.user_id).or_else(|| email.clone()).unwrap_or_default();
        let workspace = tokens.account_id.or(claims.auth.chatgpt_account_id).unwrap_or_default();
        if person.is_empty() && workspace.is_empty() {
            return Observation::Unknown { why: "the credential file of Codex does not say whose it is".to_owned() };
        }
        return Observation::Someone(Identity {
            fingerprint: format!("chatgpt:{person}:{workspace}"),
            label: email.unwrap_or_else(|| "ChatGPT account".to_owned()),
            plan: claims.auth.chatgpt_plan_type,
        });
    }
    match file.api_key.as_deref().map(str::trim).filter(|key| !key.is_empty()) {
        Some(key) => {
            let end: Vec<char> = key.chars().rev().take(4).collect();
            let label = if key.chars().count() >= 16 {
                format!("API key ending {}", end.into_iter().rev().collect::<String>())
            } else {
                "API key".to_owned()
            };
            Observation::Someone(Identity { fingerprint: format!("api-key:{}", digest(key.as_bytes())), label, plan: None })
        }
        None => Observation::NoOne,
    }
}

/// The middle part of a JSON web token. Its signature is not looked at: the file is the person's own.
fn claims(token: &str) -> Option<Claims> {
    serde_json::from_slice(&base64url(token.split('.').nth(1)?)?).ok()
}

fn base64url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'-' | b'+' => 62,
            b'_' | b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

/// The native program that the npm package's script starts, where that script was found.
pub(super) fn native_programs(found: &Path) -> Vec<PathBuf> {
    let Some(target) = target(std::env::consts::OS, std::env::consts::ARCH) else { return Vec::new() };
    let is_script = found.extension().is_some_and(|it| it == "js");
    let Some(package) = found.parent().and_then(Path::parent).filter(|_| is_script) else { return Vec::new() };
    let (platform, triple, name) = target;
    let in_vendor = |root: PathBuf| root.join("vendor").join(triple).join("bin").join(name);
    let mut candidates = vec![in_vendor(package.join("node_modules/@openai").join(platform))];
    candidates.extend(package.parent().map(|scope| in_vendor(scope.join(platform))));
    candidates.push(in_vendor(package.to_owned()));
    candidates
}

fn target(os: &str, arch: &str) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match (os, arch) {
        ("linux", "x86_64") => ("codex-linux-x64", "x86_64-unknown-linux-musl", "codex"),
        ("linux", "aarch64") => ("codex-linux-arm64", "aarch64-unknown-linux-musl", "codex"),
        ("macos", "x86_64") => ("codex-darwin-x64", "x86_64-apple-darwin", "codex"),
        ("macos", "aarch64") => ("codex-darwin-arm64", "aarch64-apple-darwin", "codex"),
        ("windows", "x86_64") => ("codex-win32-x64", "x86_64-pc-windows-msvc", "codex.exe"),
        ("windows", "aarch64") => ("codex-win32-arm64", "aarch64-pc-windows-msvc", "codex.exe"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(bytes: &[u8]) -> String {
        format!("{} bytes", bytes.len())
    }

    fn read_text(text: &str) -> Observation {
        read(text.as_bytes(), &digest)
    }

    /// {"email":"user@example.com","https://api.openai.com/auth":{"chatgpt_plan_type":"plus","chatgpt_user_id":"user-1","chatgpt_account_id":"acct-0"}}
    const CLAIMS: &str = "eyJlbWFpbCI6InVzZXJAZXhhbXBsZS5jb20iLCJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9wbGFuX3R5cGUiOiJwbHVzIiwiY2hhdGdwdF91c2VyX2lkIjoidXNlci0xIiwiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjdC0wIn19";

    #[test]
    fn a_chatgpt_sign_in_is_its_person_and_workspace_whatever_the_tokens() {
        let file = |access: &str| {
            format!(
                r#"{{"auth_mode":"chatgpt","OPENAI_API_KEY":"sk-exchanged","tokens":{{"id_token":"e30.{CLAIMS}.c2ln",
                "access_token":"{access}","refresh_token":"rt-canary","account_id":"acct-1"}},"last_refresh":"x"}}"#
            )
        };
        let Observation::Someone(identity) = read_text(&file("one")) else { panic!("nobody was found") };
        assert_eq!(identity.fingerprint, "chatgpt:user-1:acct-1");
        assert_eq!(identity.label, "user@example.com");
        assert_eq!(identity.plan.as_deref(), Some("plus"));
        assert_eq!(read_text(&file("two")), Observation::Someone(identity));
    }

    #[test]
    fn an_api_key_is_its_digest_and_its_end() {
        let Observation::Someone(identity) = read_text(r#"{"auth_mode":"apikey","OPENAI_API_KEY":"sk-0123456789-7Q2F"}"#) else {
            panic!("nobody was found")
        };
        assert_eq!(identity.fingerprint, "api-key:18 bytes");
        assert_eq!(identity.label, "API key ending 7Q2F");
    }

    #[test]
    fn an_empty_file_is_nobody_and_a_torn_one_is_not_known() {
        for text in ["", " \n", "{}", r#"{"OPENAI_API_KEY":null,"tokens":null}"#, r#"{"OPENAI_API_KEY":""}"#] {
            assert_eq!(read_text(text), Observation::NoOne, "{text}");
        }
        for text in ["{", r#"{"tokens":{"id_token":"x"}}"#, r#"{"tokens":{"id_token":"a.!.b"}}"#, "\u{feff}{}"] {
            assert!(matches!(read_text(text), Observation::Unknown { .. }), "{text}");
        }
    }

    #[test]
    fn the_script_of_the_package_leads_to_the_native_program_and_nothing_else_does() {
        let found = native_programs(Path::new("/n/lib/node_modules/@openai/codex/bin/codex.js"));
        if let Some((platform, triple, name)) = target(std::env::consts::OS, std::env::consts::ARCH) {
            let nested = format!("/n/lib/node_modules/@openai/codex/node_modules/@openai/{platform}/vendor/{triple}/bin/{name}");
            let beside = format!("/n/lib/node_modules/@openai/{platform}/vendor/{triple}/bin/{name}");
            assert_eq!(found.get(..2).unwrap_or_default(), [PathBuf::from(nested), PathBuf::from(beside)]);
        }
        assert!(native_programs(Path::new("/usr/local/bin/codex")).is_empty());
        assert!(native_programs(Path::new("codex.js")).is_empty());
    }
}
