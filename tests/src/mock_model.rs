//! A scripted stand-in for the model's provider, on loopback: good enough for the real agent to work with.
//!
//! It records every request with its bearer. It never reaches beyond this machine.

mod chat;
mod chosen;
mod http;
mod issuer;
mod messages;
mod responses;
mod script;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::wait::PATIENCE;
pub use http::Request;
use http::Wire;
pub use issuer::{Consent, DeviceCode, Identity, Refresh};
use responses::After;
pub use script::{End, Part, Piece, Reply};
use tls::Authority;

/// The running mock; dropping it breaks every connection.
#[derive(Debug)]
pub struct MockModel {
    port: u16,
    authority: Arc<Authority>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    known: Mutex<Known>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Known {
    ended: bool,
    number: u64,
    requests: Vec<Request>,
    scripts: Vec<(String, Vec<Reply>)>,
    calls: BTreeMap<(String, usize), u32>,
    open: BTreeSet<String>,
    waiting: BTreeSet<String>,
    /// The only bearers that are accepted; nothing accepts all.
    accepted: Option<BTreeSet<String>>,
    identity: Identity,
    device_code: DeviceCode,
    consent: Consent,
    refresh: Refresh,
    connections: Vec<TcpStream>,
}

impl MockModel {
    /// Starts listening on a free port.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("listening on loopback")?;
        let port = listener.local_addr()?.port();
        let state = Arc::<State>::default();
        let authority = Arc::new(Authority::new().context("making a certificate")?);
        let (shared, signer) = (Arc::clone(&state), Arc::clone(&authority));
        thread::spawn(move || accept(&listener, &signer, &shared));
        Ok(Self { port, authority, state })
    }

    /// Where it listens, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The same, encrypted, for a client that trusts [`Self::authority`].
    #[must_use]
    pub fn tls_url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// The certificate of the mock's own authority, a PEM file.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.authority.file()
    }

    /// Answers every message that contains `words` with these replies, one for each model call of the turn. The newest
    /// script that fits is taken; a message that no script fits may carry one itself (`@mock …`).
    pub fn on(&self, words: &str, replies: Vec<Reply>) {
        self.state.lock().scripts.insert(0, (words.to_owned(), replies));
    }

    /// Lets every stream that waits, or will wait, at this gate go on.
    pub fn open(&self, gate: &str) {
        self.state.lock().open.insert(gate.to_owned());
        self.state.changed.notify_all();
    }

    /// Waits until a stream has come to this gate.
    pub fn wait_at(&self, gate: &str) -> Result<()> {
        self.wait(&format!("stream at the gate {gate}"), |known| known.waiting.contains(gate).then_some(()))
    }

    /// Every request so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.state.lock().requests.clone()
    }

    /// The model calls among them.
    #[must_use]
    pub fn model_calls(&self) -> Vec<Request> {
        self.requests().into_iter().filter(is_model_call).collect()
    }

    /// Waits for a request that fits.
    pub fn wait_request(&self, what: &str, fits: impl Fn(&Request) -> bool) -> Result<Request> {
        self.wait(what, |known| known.requests.iter().find(|request| fits(request)).cloned())
    }

    /// From now on only these bearers are accepted by the model and the account pages; others get 401.
    pub fn accept_only(&self, bearers: &[&str]) {
        self.state.lock().accepted = Some(bearers.iter().map(|&bearer| bearer.to_owned()).collect());
    }

    /// Who the next sign-in makes, and who the account pages speak of.
    pub fn sign_in_as(&self, identity: Identity) {
        self.state.lock().identity = identity;
    }

    /// What the person does with the device code that is shown.
    pub fn set_device_code(&self, answer: DeviceCode) {
        self.state.lock().device_code = answer;
    }

    /// What the person does when the browser asks for consent.
    pub fn set_consent(&self, answer: Consent) {
        self.state.lock().consent = answer;
    }

    /// How refresh requests are answered.
    pub fn set_refresh(&self, answer: Refresh) {
        self.state.lock().refresh = answer;
    }

    /// A token as the issuer makes them, for a test that plays another program.
    #[must_use]
    pub fn token(identity: &Identity, id: &str) -> String {
        issuer::mint(identity, id)
    }

    fn wait<T>(&self, what: &str, mut look: impl FnMut(&Known) -> Option<T>) -> Result<T> {
        let mut found = None;
        let (known, _) = self
            .state
            .changed
            .wait_timeout_while(self.state.lock(), PATIENCE, |known| {
                found = look(known);
                found.is_none()
            })
            .unwrap_or_else(PoisonError::into_inner);
        found.with_context(|| {
            let paths: Vec<&str> = known.requests.iter().map(|one| one.path.as_str()).collect();
            format!("the mock model saw no {what}; it had {paths:?}")
        })
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        let mut known = self.state.lock();
        known.ended = true;
        for connection in known.connections.drain(..) {
            // Closed by the client already, or closed now.
            let _ = connection.shutdown(Shutdown::Both);
        }
        drop(known);
        self.state.changed.notify_all();
        // Wakes the listener, which then sees the end.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Whether a model is asked for a turn: an agent's own questions, for a title or the like, come without tools.
fn is_model_call(request: &Request) -> bool {
    let with_tools = || request.json()["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let path = request.path.as_str();
    path.ends_with("/responses") || (path.ends_with("/messages") || path.ends_with("/chat/completions")) && with_tools()
}

fn accept(listener: &TcpListener, authority: &Arc<Authority>, state: &Arc<State>) {
    for connection in listener.incoming() {
        if state.lock().ended {
            return;
        }
        let Ok(connection) = connection else { continue };
        let (state, authority) = (Arc::clone(state), Arc::clone(authority));
        thread::spawn(move || {
            // A client that goes away in the middle is its own affair, and tested by what it does next.
            let _ = serve(&state, &authority, connection);
        });
    }
}

fn serve(state: &State, authority: &Authority, connection: TcpStream) -> Result<()> {
    connection.set_nodelay(true)?;
    let handle = connection.try_clone()?;
    state.lock().connections.push(connection.try_clone()?);
    let mut wire = if tls::wanted(&connection) {
        Wire::new(Box::new(authority.serve(connection)?))
    } else {
        Wire::new(Box::new(connection))
    };
    while let Some(request) = wire.request()? {
        state.lock().requests.push(request.clone());
        state.changed.notify_all();
        if let After::Close = answer(state, &mut wire, &request)? {
            break;
        }
    }
    Ok(handle.shutdown(Shutdown::Both)?)
}

fn answer(state: &State, wire: &mut Wire, request: &Request) -> io::Result<After> {
    let path = request.path.as_str();
    let signs_in = path.contains("/oauth/") || path.contains("/deviceauth/");
    if !signs_in && !state.accepts(request.credential()) {
        let body = json!({ "error": {
            "message": "Your authentication token has been invalidated. Please try signing in again.",
            "type": "invalid_request_error", "code": "token_invalidated", "param": null,
        }});
        wire.json(401, &body)?;
    } else if request.headers.get("upgrade").is_some_and(|to| to.eq_ignore_ascii_case("websocket")) {
        wire.json(426, &json!({ "error": { "message": "the mock speaks no WebSocket" } }))?;
    } else if request.method == "POST" && path.ends_with("/responses") {
        return responses::answer(state, wire, request);
    } else if request.method == "POST" && path.contains("/messages") {
        return messages::answer(state, wire, request);
    } else if request.method == "POST" && path.ends_with("/chat/completions") {
        return chat::answer(state, wire, request);
    } else if path.ends_with("/models") {
        wire.json(200, &json!({ "object": "list", "models": [], "data": [] }))?;
    } else if !issuer::answer(state, wire, request)? {
        wire.json(404, &json!({ "detail": "the mock has nothing here" }))?;
    }
    Ok(After::Keep)
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn script_for(&self, text: &str) -> Option<Vec<Reply>> {
        let known = self.lock();
        known.scripts.iter().find(|(words, _)| text.contains(words)).map(|(_, replies)| replies.clone())
    }

    /// How often this place of the script was asked for before.
    fn count(&self, text: &str, step: usize) -> u32 {
        let mut known = self.lock();
        let calls = known.calls.entry((text.to_owned(), step)).or_default();
        *calls += 1;
        *calls - 1
    }

    fn next_number(&self) -> u64 {
        let mut known = self.lock();
        known.number += 1;
        known.number
    }

    fn wait_at(&self, gate: &str) {
        let mut known = self.lock();
        known.waiting.insert(gate.to_owned());
        self.changed.notify_all();
        let shut = |known: &mut Known| !known.ended && !known.open.contains(gate);
        drop(self.changed.wait_while(known, shut).unwrap_or_else(PoisonError::into_inner));
    }

    fn pause(&self, time: Duration) {
        let ended = self.changed.wait_timeout_while(self.lock(), time, |known| !known.ended);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }

    fn wait_for_end(&self) {
        let ended = self.changed.wait_while(self.lock(), |known| !known.ended);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }

    fn accepts(&self, bearer: Option<&str>) -> bool {
        let known = self.lock();
        known.accepted.as_ref().is_none_or(|all| bearer.is_some_and(|one| all.contains(one)))
    }

    /// A token that was just issued is accepted, where only some are.
    fn accept(&self, bearer: &str) {
        if let Some(accepted) = &mut self.lock().accepted {
            accepted.insert(bearer.to_owned());
        }
    }

    fn identity(&self) -> Identity {
        self.lock().identity.clone()
    }

    fn device_code(&self) -> DeviceCode {
        self.lock().device_code
    }

    fn consent(&self) -> Consent {
        self.lock().consent
    }

    fn refresh(&self) -> Refresh {
        self.lock().refresh
    }
}

#[cfg(test)]
mod tests;
