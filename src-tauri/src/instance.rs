//! One Turnkeep a desktop session: a second start opens the window of the first.
//!
//! Spoken as `org.freedesktop.Application`, so that a desktop which starts programs over the bus does the same. It runs
//! before there is a window system, so that a second start costs nothing.

#![expect(clippy::disallowed_types, reason = "inside the code that zbus generates for an interface")]

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use tokio::sync::mpsc;
use zbus::{
    Connection,
    fdo::{RequestNameFlags, RequestNameReply},
    names::{BusName, WellKnownName},
    zvariant::{OwnedValue, Value},
};

use crate::args::Opening;

/// Everything asked of the bus at the start ends after this, so that a hung bus cannot keep anybody.
const ASKED_WITHIN: Duration = Duration::from_secs(3);
const NAME: &str = "io.github.turnkeep.app";
const PATH: &str = "/io/github/turnkeep/app";
const TOKEN: &str = "activation-token";

/// What came of asking to be the only one.
#[derive(Debug)]
pub(crate) enum Claim {
    /// This is the one: the session bus, and the tokens of later starts.
    First { bus: Connection, starts: mpsc::UnboundedReceiver<Option<String>> },
    /// Another one is there, and was told.
    Second,
    /// Nobody can be asked: only the lock of the state directory keeps two apart.
    NoBus { why: String },
}

/// Asks to be the one.
pub(crate) async fn claim(opening: Opening) -> Claim {
    match tokio::time::timeout(ASKED_WITHIN, ask(opening)).await {
        Ok(Ok(claim)) => claim,
        Ok(Err(error)) => Claim::NoBus { why: error.to_string() },
        Err(_) => Claim::NoBus { why: "the session bus does not answer".to_owned() },
    }
}

async fn ask(opening: Opening) -> zbus::Result<Claim> {
    let (started, starts) = mpsc::unbounded_channel();
    let bus = zbus::connection::Builder::session()?.serve_at(PATH, Application { started })?.build().await?;
    let name = WellKnownName::try_from(name(std::env::var_os(turnkeep_engine::places::HOME_VARIABLE).as_deref()))?;
    match bus.request_name_with_flags(&name, RequestNameFlags::DoNotQueue.into()).await {
        Ok(RequestNameReply::PrimaryOwner | RequestNameReply::AlreadyOwner) => return Ok(Claim::First { bus, starts }),
        Ok(RequestNameReply::InQueue | RequestNameReply::Exists) | Err(zbus::Error::NameTaken) => {}
        Err(error) => return Err(error),
    }
    // Started by the desktop at login, a second one has nothing to show.
    if opening != Opening::Hidden {
        let mut about: BTreeMap<&str, Value<'_>> = BTreeMap::new();
        if let Some(token) = token() {
            about.insert(TOKEN, token.into());
        }
        bus.call_method(Some(BusName::from(name)), PATH, Some("org.freedesktop.Application"), "Activate", &(about,)).await?;
    }
    Ok(Claim::Second)
}

/// A separate installation has a name of its own.
fn name(home: Option<&std::ffi::OsStr>) -> String {
    match home.filter(|home| !home.is_empty()) {
        None => NAME.to_owned(),
        Some(home) => {
            let mut hasher = DefaultHasher::new();
            home.hash(&mut hasher);
            format!("{NAME}.at{:016x}", hasher.finish())
        }
    }
}

/// The proof that a person started this, for those who must believe it.
fn token() -> Option<String> {
    ["XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|token| !token.is_empty()))
}

struct Application {
    started: mpsc::UnboundedSender<Option<String>>,
}

#[zbus::interface(name = "org.freedesktop.Application")]
impl Application {
    fn activate(&self, about: BTreeMap<String, OwnedValue>) {
        tracing::info!("started once more");
        let token = about.get(TOKEN).and_then(|token| <&str>::try_from(token).ok()).map(str::to_owned);
        let _ = self.started.send(token);
    }

    /// Nothing can be opened with Turnkeep: its window is.
    fn open(&self, _addresses: Vec<String>, about: BTreeMap<String, OwnedValue>) {
        self.activate(about);
    }

    fn activate_action(&self, _action: String, _parameters: Vec<OwnedValue>, about: BTreeMap<String, OwnedValue>) {
        self.activate(about);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separate_installation_is_another_one() {
        let at = |home: &str| name(Some(home.as_ref()));
        assert_eq!(name(None), NAME);
        assert_eq!(at(""), NAME);
        assert_ne!(at("/a"), at("/b"));
        assert_eq!(at("/a"), at("/a"));
        assert!(WellKnownName::try_from(at("/a")).is_ok());
    }
}
