//! The engine as a program of its own, without a desktop: wishes come in as lines, states and acknowledgements go out as lines.
//!
//! It adds nothing to the engine and hides nothing of it, so that a test may end it wherever it likes.

#[cfg(target_os = "linux")]
#[path = "engine_alone/failing_disk.rs"]
mod failing_disk;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use harness::engine::Wish;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::signal::unix::{SignalKind, signal};
use turnkeep_engine::{Ack, Config, Ended, Engine, Handle, Notice, Places, Refused};
use turnkeep_model::port::{Answer, Choice, SessionSettings};
use turnkeep_model::state::Asker;
use turnkeep_model::{AccountId, ApprovalId, Input, MessageId, ProviderId, Seq, SessionId};

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let root = PathBuf::from(arguments.next().context("the folder of the engine is missing")?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    // What a login shell would say.
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let places = Places::below(&root);
    // The person's own agents; with the word `own`, no others.
    let mut agents = turnkeep_engine::own_agents::all(&places).all;
    if arguments.next().is_some_and(|word| word == "own") {
        agents.drain(..turnkeep_agents::builtin().len());
    }
    let config = Config { places, agents, environment: Some(environment) };
    let (engine, handle) = match Engine::start(config) {
        Ok(started) => started,
        Err(why) => {
            say(&json!({ "refused": why.to_string() }))?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let ended = runtime.block_on(drive(&handle))?;
    engine.join();
    // A read of the standard input cannot be ended.
    runtime.shutdown_background();
    say(&json!({ "ended": format!("{ended:?}") }))?;
    Ok(ExitCode::from(u8::from(!matches!(ended, Ended::Quit | Ended::Forced))))
}

/// Until the engine has ended.
async fn drive(handle: &Handle) -> Result<Ended> {
    let mut snapshots = handle.watch();
    snapshots.mark_changed();
    let mut notices = handle.notifications().context("the notifications were taken already")?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut open = true;
    let mut terminate = signal(SignalKind::terminate()).context("listening to SIGTERM")?;
    loop {
        tokio::select! {
            // As the application does: a quit, and twice a forced one.
            Some(()) = terminate.recv() => handle.quit(None),
            ended = handle.exited() => return Ok(ended),
            changed = snapshots.changed() => if changed.is_ok() {
                let snapshot = snapshots.borrow_and_update().clone();
                let trouble = snapshot.trouble.as_ref().map(|trouble| trouble.message.clone());
                say(&json!({ "state": &*snapshot.state, "trouble": trouble }))?;
            },
            notice = notices.recv() => if let Some(Notice::Show { key, .. }) = notice {
                // As a desktop does that shows everything at once.
                handle.tell(Input::NotificationShown { key });
            },
            line = lines.next_line(), if open => match line? {
                Some(line) => do_it(handle, serde_json::from_str(&line).context("a wish")?).await?,
                None => open = false,
            },
        }
    }
}

async fn do_it(handle: &Handle, wish: Wish) -> Result<()> {
    let done = match wish {
        Wish::SignIn { key } => handle.sign_in_with_key(provider(), None, "work".to_owned(), key.into()).await,
        Wish::Create { folder, provider: of } => {
            let provider = of.map_or_else(provider, ProviderId::new);
            handle.create_session(provider, folder, "Alone".to_owned(), SessionSettings::default(), None).await
        }
        Wish::Send { session, message, text } => handle.send(SessionId(session), MessageId::new(message), text).await,
        Wish::Interrupt { session } => handle.interrupt(SessionId(session)).await,
        Wish::Archive { session } => handle.submit(Input::Archive { session: SessionId(session), archived: true }).await,
        Wish::Allow { approval } => handle.answer(ApprovalId(approval), Answer::Choice(Choice::Allow), Asker::Window).await,
        Wish::Deny { approval } => handle.answer(ApprovalId(approval), Answer::Choice(Choice::Deny), Asker::Notification).await,
        Wish::SignOut { account } => handle.submit(Input::SignOut { account: AccountId(account), now: false }).await,
        Wish::Quit => {
            handle.quit(None);
            return Ok(());
        }
        Wish::Journal => {
            let events = handle.events(Seq(0), usize::MAX / 2).await?;
            let events: Vec<Value> = events
                .iter()
                .map(|event| json!({ "seq": event.seq, "change": serde_json::from_str::<Value>(&event.change).unwrap_or_default() }))
                .collect();
            return say(&json!({ "journal": events }));
        }
    };
    say(&acknowledged(done))
}

fn acknowledged(done: Result<Ack, Refused>) -> Value {
    match done {
        Ok(ack) => json!({ "ack": {
            "seq": ack.seq, "changed": ack.changed, "session": ack.session, "signIn": ack.sign_in, "turn": ack.turn,
        }}),
        Err(why) => json!({ "not": why.to_string() }),
    }
}

fn provider() -> ProviderId {
    ProviderId::new("codex")
}

fn say(line: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("nobody listens")
}
