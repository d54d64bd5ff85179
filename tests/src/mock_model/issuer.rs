//! The part of the mock that signs people in: browser and device code, token refresh, revocation, and the account's own pages.
//!
//! Its tokens are unsigned and mean nothing anywhere else.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::State;
use super::http::{Request, Wire};

/// Who the next sign-in makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub account: String,
    pub user: String,
    pub email: String,
    pub plan: String,
}

impl Default for Identity {
    fn default() -> Self {
        Self::named("one")
    }
}

impl Identity {
    /// An identity whose parts all carry `name`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            account: format!("acct-{name}"),
            user: format!("user-{name}"),
            email: format!("{name}@example.com"),
            plan: "plus".to_owned(),
        }
    }
}

/// What the person does with a device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceCode {
    #[default]
    Pending,
    Approved,
    Denied,
}

/// What the person does on the page that asks for consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consent {
    #[default]
    Given,
    Denied,
}

/// How a refresh is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Refresh {
    #[default]
    Granted,
    AlreadyUsed,
    Expired,
    Broken,
}

/// Answers one request of the issuer or the account pages; false if it is none of theirs.
pub(super) fn answer(state: &State, wire: &mut Wire, request: &Request) -> io::Result<bool> {
    let path = request.path.as_str();
    let (identity, consent) = (state.identity(), state.consent());
    if path.ends_with("/oauth/authorize") {
        let to = request.query_field("redirect_uri").unwrap_or_default();
        let state = request.query_field("state").unwrap_or_default();
        let answer = match consent {
            Consent::Given => "code=mock-code",
            Consent::Denied => "error=access_denied&error_description=denied",
        };
        wire.redirect(&format!("{to}?{answer}&state={state}"))?;
    } else if path.ends_with("/oauth/token") {
        token(state, wire, request)?;
    } else if path.ends_with("/oauth/revoke") {
        wire.json(200, &json!({}))?;
    } else if path.ends_with("/deviceauth/usercode") {
        wire.json(
            200,
            &json!({
                "device_auth_id": "device-1", "user_code": "ABCD-1234", "interval": "1",
                "expires_at": "2099-01-01T00:00:00+00:00",
            }),
        )?;
    } else if path.ends_with("/deviceauth/token") {
        match state.device_code() {
            DeviceCode::Approved => wire.json(
                200,
                &json!({
                    "authorization_code": "device-code", "code_challenge": "x", "code_verifier": "y",
                }),
            )?,
            DeviceCode::Denied => wire.json(400, &json!({ "error": "access_denied" }))?,
            DeviceCode::Pending => wire.json(403, &json!({ "error": { "code": "deviceauth_authorization_pending" } }))?,
        }
    } else if path.ends_with("/accounts/check") {
        let account = json!({
            "id": identity.account, "plan_type": identity.plan, "name": "Personal",
            "structure": "personal", "workspace_backend_origin": "NO_CONSTRAINT",
            "account_routing_override": "NO_CONSTRAINT",
        });
        wire.json(
            200,
            &json!({
                "accounts": [account], "account_ordering": [identity.account],
                "default_account_id": identity.account,
            }),
        )?;
    } else if path.contains("wham/usage") {
        let window = |percent: u8, seconds: u64| {
            json!({
                "used_percent": percent, "limit_window_seconds": seconds,
                "reset_after_seconds": 1000, "reset_at": now() + 1000,
            })
        };
        wire.json(
            200,
            &json!({
                "plan_type": identity.plan,
                "rate_limit": {
                    "allowed": true, "limit_reached": false,
                    "primary_window": window(12, 18_000), "secondary_window": window(34, 604_800),
                },
                "credits": { "has_credits": false, "unlimited": false, "balance": "0" },
            }),
        )?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn token(state: &State, wire: &mut Wire, request: &Request) -> io::Result<()> {
    let grant = request.field("grant_type").unwrap_or_default();
    if grant.ends_with("token-exchange") {
        return wire.json(200, &json!({ "access_token": "sk-exchanged", "token_type": "bearer" }));
    }
    if grant == "refresh_token" {
        let refused = |code: &str| json!({ "error": { "code": code, "message": code } });
        match state.refresh() {
            Refresh::Granted => {}
            Refresh::AlreadyUsed => return wire.json(401, &refused("refresh_token_reused")),
            Refresh::Expired => return wire.json(401, &refused("refresh_token_expired")),
            Refresh::Broken => return wire.json(500, &json!({ "error": "mock" })),
        }
    }
    let number = state.next_number();
    let identity = state.identity();
    let access = mint(&identity, &format!("access-{number}"));
    state.accept(&access);
    wire.json(
        200,
        &json!({
            "id_token": mint(&identity, &format!("id-{number}")), "access_token": access,
            "refresh_token": format!("refresh-{number}"), "expires_in": 3600, "token_type": "Bearer",
        }),
    )
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// An unsigned token for an hour.
pub(super) fn mint(identity: &Identity, id: &str) -> String {
    let claims = json!({
        "iss": "mock", "sub": identity.user, "iat": now(), "exp": now() + 3600, "jti": id,
        "email": identity.email,
        "https://api.openai.com/auth": {
            "chatgpt_plan_type": identity.plan, "chatgpt_user_id": identity.user,
            "user_id": identity.user, "chatgpt_account_id": identity.account,
        },
        "https://api.openai.com/profile": { "email": identity.email },
    });
    let part = |value: &Value| base64url(value.to_string().as_bytes());
    format!("{}.{}.{}", part(&json!({ "alg": "none", "typ": "JWT" })), part(&claims), base64url(b"mock"))
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - group.len()));
        for digit in 0..=group.len() {
            let index = word >> (18 - 6 * digit) & 63;
            out.push(char::from(DIGITS[index as usize]));
        }
    }
    out
}
