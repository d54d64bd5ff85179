//! What the window may ask for: each command is one wish to the engine, and says what came of it.
//!
//! Nothing is decided here but whether a wish makes sense at all. A key that is typed goes to the vault and nowhere else.

pub(crate) mod look;

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::Deserialize;
use tauri::{AppHandle, State, WebviewWindow, ipc::Channel};
use turnkeep_agents::Server;
use turnkeep_engine::{Ack, Handle, ReadError, Refused};
use turnkeep_model::{
    AccountId, ApprovalId, Input, MessageId, ProviderId, SessionId, SignInId, ThreadRef,
    port::{GoalSpec, Observation, SessionSettings, SignInMethod},
    state::Asker,
};
use turnkeep_view::{answer, dto, snapshot, words};

use crate::{folder, links, pump, pump::Pump, shell::Shell, window};

pub(crate) type Done<T = ()> = Result<T, dto::CommandError>;

/// Entries of a transcript in one page, and the most that may be asked for.
const PAGE: usize = 200;
const LARGEST_PAGE: usize = 1000;

/// A key that somebody typed. It cannot be printed.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

pub(crate) fn refused(code: &str, message: impl Into<String>) -> dto::CommandError {
    dto::CommandError { code: code.to_owned(), message: message.into() }
}

fn not_taken(why: &Refused) -> dto::CommandError {
    match why {
        Refused::Trouble(trouble) => refused("trouble", trouble.message.clone()),
        Refused::Ended => refused("ended", why.to_string()),
    }
}

pub(crate) fn not_read(why: &ReadError) -> dto::CommandError {
    refused("other", why.to_string())
}

pub(crate) fn number<T>(text: &str, of: impl FnOnce(u64) -> T) -> Done<T> {
    u64::from_str(text).map(of).map_err(|_| refused("notFound", "There is no such entry."))
}

/// The session with this id, if there is one: a wish about another would be lost without a word.
pub(crate) fn session(engine: &Handle, id: &str) -> Done<SessionId> {
    let id = number(id, SessionId)?;
    let known = engine.snapshot().state.sessions.contains_key(&id);
    if known { Ok(id) } else { Err(refused("notFound", "This session does not exist any more.")) }
}

fn account(engine: &Handle, id: &str) -> Done<AccountId> {
    let id = number(id, AccountId)?;
    let known = engine.snapshot().state.accounts.contains_key(&id);
    if known { Ok(id) } else { Err(refused("notFound", "This account does not exist any more.")) }
}

async fn submit(engine: &Handle, input: Input) -> Done<Ack> {
    engine.submit(input).await.map_err(|why| not_taken(&why))
}

// ---- looking ---------------------------------------------------------------------------------

#[tauri::command(async)]
pub(crate) fn watch(shell: State<'_, Shell>, channel: Channel<Vec<dto::WindowEvent>>) -> Done {
    shell.feed(Pump::start(Shell::clone(&shell), channel));
    Ok(())
}

#[tauri::command]
pub(crate) async fn open_session(shell: State<'_, Shell>, session: String) -> Done {
    let id = self::session(&shell.engine, &session)?;
    let transcript = shell.engine.open_transcript(id, PAGE).await.map_err(|why| not_read(&why))?;
    shell.look_at(Some(id), Some(transcript));
    Ok(())
}

#[tauri::command(async)]
pub(crate) fn close_session(shell: State<'_, Shell>) -> Done {
    shell.look_at(None, None);
    Ok(())
}

#[tauri::command]
pub(crate) async fn transcript_page(
    shell: State<'_, Shell>,
    session: String,
    before: Option<u64>,
    limit: usize,
) -> Done<dto::TranscriptPage> {
    let id = self::session(&shell.engine, &session)?;
    let page = shell.engine.transcript_page(id, before, limit.clamp(1, LARGEST_PAGE)).await;
    Ok(pump::page(id, page.map_err(|why| not_read(&why))?))
}

// ---- sessions --------------------------------------------------------------------------------

#[tauri::command]
pub(crate) async fn create_session(
    shell: State<'_, Shell>,
    provider: String,
    folder: String,
    title: String,
    settings: dto::SessionSettings,
    thread: Option<String>,
) -> Done<String> {
    let folder = folder::check(&folder, &shell.home).map_err(|why| refused("folder", why))?;
    let settings = snapshot::session_settings_from(settings);
    let made = shell
        .engine
        .create_session(ProviderId::new(provider.clone()), folder, title, settings, thread.clone().map(ThreadRef::new))
        .await;
    let made = made.map_err(|why| not_taken(&why))?;
    let known = || {
        let thread = thread.map(ThreadRef::new)?;
        let state = shell.engine.snapshot().state;
        let mut of_provider = state.sessions.iter().filter(|(_, session)| session.provider.as_str() == provider);
        of_provider.find(|(_, session)| session.thread.as_ref() == Some(&thread)).map(|(id, _)| *id)
    };
    made.session.or_else(known).map(|id| id.to_string()).ok_or_else(|| refused("notFound", "There is no such provider."))
}

/// A session that goes on from where this one is.
#[tauri::command]
pub(crate) async fn fork_session(shell: State<'_, Shell>, session: String, title: String) -> Done<String> {
    let session = self::session(&shell.engine, &session)?;
    let made = shell.engine.fork_session(session, title).await.map_err(|why| not_taken(&why))?;
    made.session.map(|id| id.to_string()).ok_or_else(|| refused("other", words::CANNOT_FORK))
}

/// A session with the agent that is built in, in a scratch folder of ours.
#[tauri::command]
pub(crate) async fn try_demo(shell: State<'_, Shell>, title: String) -> Done<String> {
    let provider = shell.built_in().ok_or_else(|| refused("notFound", "No agent is built in."))?;
    let places = shell.places.clone();
    let folder = tauri::async_runtime::spawn_blocking(move || folder::scratch(&places)).await;
    let folder = folder.map_err(|error| refused("other", error.to_string()))?.map_err(|why| refused("folder", why))?;
    let made = shell.engine.create_session(provider, folder, title, SessionSettings::default(), None).await;
    let made = made.map_err(|why| not_taken(&why))?;
    made.session.map(|id| id.to_string()).ok_or_else(|| refused("notFound", "The built-in agent is not there."))
}

#[tauri::command]
pub(crate) async fn send(shell: State<'_, Shell>, session: String, message: String, text: String) -> Done {
    let session = self::session(&shell.engine, &session)?;
    submit(&shell.engine, Input::Send { session, message: MessageId::new(message), text }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn steer(shell: State<'_, Shell>, session: String, message: String, text: String) -> Done {
    let session = self::session(&shell.engine, &session)?;
    submit(&shell.engine, Input::Steer { session, message: MessageId::new(message), text }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn edit_queued(shell: State<'_, Shell>, session: String, message: String, text: String) -> Done {
    let session = self::session(&shell.engine, &session)?;
    submit(&shell.engine, Input::EditQueued { session, message: MessageId::new(message), text }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn remove_queued(shell: State<'_, Shell>, session: String, message: String) -> Done {
    let session = self::session(&shell.engine, &session)?;
    submit(&shell.engine, Input::RemoveQueued { session, message: MessageId::new(message) }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn interrupt(shell: State<'_, Shell>, session: String) -> Done {
    let session = self::session(&shell.engine, &session)?;
    submit(&shell.engine, Input::Interrupt { session }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn answer(shell: State<'_, Shell>, approval: String, answer: dto::Answer) -> Done {
    let approval = number(&approval, ApprovalId)?;
    let state = shell.engine.snapshot().state;
    let answer = answer::answer(&state, approval, answer).map_err(|why| refused("answer", why.words()))?;
    submit(&shell.engine, Input::AnswerApproval { approval, answer, by: Asker::Window }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn set_goal(shell: State<'_, Shell>, session: String, goal: Option<dto::Goal>) -> Done {
    let session = self::session(&shell.engine, &session)?;
    let goal: Option<GoalSpec> = goal.map(snapshot::goal_from);
    submit(&shell.engine, Input::SetGoal { session, goal }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn configure_session(shell: State<'_, Shell>, session: String, settings: dto::SessionSettings) -> Done {
    let session = self::session(&shell.engine, &session)?;
    let settings = snapshot::session_settings_from(settings);
    submit(&shell.engine, Input::SetSessionSettings { session, settings }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn rename_session(shell: State<'_, Shell>, session: String, title: String) -> Done {
    let session = self::session(&shell.engine, &session)?;
    submit(&shell.engine, Input::Rename { session, title }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn archive_session(shell: State<'_, Shell>, session: String, archived: bool) -> Done {
    let session = self::session(&shell.engine, &session)?;
    submit(&shell.engine, Input::Archive { session, archived }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn mark_read(shell: State<'_, Shell>, session: String) -> Done {
    let session = self::session(&shell.engine, &session)?;
    submit(&shell.engine, Input::MarkRead { session }).await.map(drop)
}

/// Said when the window turns to something else: everything up to now was seen.
#[tauri::command]
pub(crate) async fn seen(shell: State<'_, Shell>, session: String) -> Done {
    let session = self::session(&shell.engine, &session)?;
    submit(&shell.engine, Input::Seen { session }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn try_again(shell: State<'_, Shell>, session: String) -> Done {
    let session = self::session(&shell.engine, &session)?;
    submit(&shell.engine, Input::TryAgain { session }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn resolve_unknown(shell: State<'_, Shell>, session: String, resend: bool) -> Done {
    let session = self::session(&shell.engine, &session)?;
    submit(&shell.engine, Input::ResolveUnknown { session, resend }).await.map(drop)
}

// ---- accounts --------------------------------------------------------------------------------

#[tauri::command]
pub(crate) async fn sign_in(
    shell: State<'_, Shell>,
    provider: String,
    account: Option<String>,
    label: String,
    method: dto::SignInMethod,
    offer: Option<String>,
    key: Option<Key>,
) -> Done<String> {
    let provider = ProviderId::new(provider);
    let account = account.map(|id| self::account(&shell.engine, &id)).transpose()?;
    let begun = match (method, key) {
        (dto::SignInMethod::ApiKey, Some(key)) if !key.0.trim().is_empty() => {
            shell.engine.sign_in_with_key(provider, account, label, key.0.trim().into()).await
        }
        (dto::SignInMethod::ApiKey, _) => return Err(refused("key", "Enter the key.")),
        (dto::SignInMethod::Browser, _) => shell.engine.sign_in(provider, account, label, SignInMethod::Browser).await,
        (dto::SignInMethod::DeviceCode, _) => shell.engine.sign_in(provider, account, label, SignInMethod::DeviceCode).await,
        (dto::SignInMethod::Elsewhere, _) => shell.engine.sign_in(provider, account, label, SignInMethod::Elsewhere).await,
        (dto::SignInMethod::Advertised, _) => {
            let Some(id) = offer else { return Err(refused("notFound", "There is no such way to sign in.")) };
            shell.engine.sign_in(provider, account, label, SignInMethod::Advertised { id }).await
        }
    };
    let begun = begun.map_err(|why| not_taken(&why))?;
    begun.sign_in.map(|id| id.to_string()).ok_or_else(|| refused("other", "A sign-in for this account runs already."))
}

#[tauri::command]
pub(crate) async fn cancel_sign_in(shell: State<'_, Shell>, sign_in: String) -> Done {
    let sign_in = number(&sign_in, SignInId)?;
    submit(&shell.engine, Input::CancelSignIn { sign_in }).await.map(drop)
}

/// Uses a server that is already running as an account, once it has said who it is; or tries it again.
#[tauri::command]
pub(crate) async fn attach_server(shell: State<'_, Shell>, provider: String, address: String, label: String) -> Done {
    let provider = ProviderId::new(provider);
    let server = Server::parse(&address).map_err(|why| refused("address", why.to_string()))?;
    let greeted = shell.engine.greet_server(provider.clone(), server.address()).await;
    let greeting = greeted.map_err(|why| refused("server", why))?;
    if greeting.identity == Observation::NoOne {
        return Err(refused("server", words::NOBODY_AT_SERVER));
    }
    let attached = shell.engine.attach(provider, server.address(), label).await.map_err(|why| not_taken(&why))?;
    if attached.changed { Ok(()) } else { Err(refused("other", words::SERVER_IN_LIST)) }
}

#[tauri::command]
pub(crate) async fn sign_out(shell: State<'_, Shell>, account: String, now: bool) -> Done {
    let account = self::account(&shell.engine, &account)?;
    submit(&shell.engine, Input::SignOut { account, now }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn use_account(shell: State<'_, Shell>, account: String) -> Done {
    let account = self::account(&shell.engine, &account)?;
    submit(&shell.engine, Input::UseAccount { account }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn rename_account(shell: State<'_, Shell>, account: String, label: String) -> Done {
    let account = self::account(&shell.engine, &account)?;
    submit(&shell.engine, Input::RenameAccount { account, label }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn remove_account(shell: State<'_, Shell>, account: String) -> Done {
    let account = self::account(&shell.engine, &account)?;
    submit(&shell.engine, Input::RemoveAccount { account }).await.map(drop)
}

#[tauri::command(async)]
pub(crate) fn unlock_keychain(shell: State<'_, Shell>) -> Done {
    shell.engine.unlock_keychain();
    Ok(())
}

#[tauri::command(async)]
pub(crate) fn rescan_providers(shell: State<'_, Shell>) -> Done {
    shell.engine.rescan_providers();
    Ok(())
}

// ---- the application -------------------------------------------------------------------------

#[tauri::command]
pub(crate) async fn change_settings(shell: State<'_, Shell>, settings: dto::Settings) -> Done {
    let settings = snapshot::settings_from(settings);
    submit(&shell.engine, Input::ChangeSettings { settings }).await.map(drop)
}

#[tauri::command]
pub(crate) async fn open_link(url: String, confirmed: bool) -> Done<links::OpenedLink> {
    let (url, host) = links::check(&url).map_err(|why| refused("link", why.words()))?;
    if confirmed {
        let opened = tauri::async_runtime::spawn_blocking(move || links::open(&url)).await;
        opened.map_err(|error| refused("other", error.to_string()))?.map_err(|why| refused("link", why))?;
    }
    Ok(links::OpenedLink { host, opened: confirmed })
}

#[tauri::command]
pub(crate) async fn pick_folder(app: AppHandle) -> Done<Option<String>> {
    Ok(folder::pick(&app).await)
}

/// What is wrong with the folder, or nothing.
#[tauri::command]
pub(crate) async fn check_folder(shell: State<'_, Shell>, path: String) -> Done<Option<String>> {
    let home = shell.home.clone();
    let checked = tauri::async_runtime::spawn_blocking(move || folder::check(&path, &home).err()).await;
    checked.map_err(|error| refused("other", error.to_string()))
}

#[tauri::command]
pub(crate) async fn cancel_quit(shell: State<'_, Shell>) -> Done {
    let ack = shell.engine.cancel_quit().await.map_err(|why| not_taken(&why))?;
    if ack.changed { Ok(()) } else { Err(refused("other", "It is too late: everything is being ended already.")) }
}

#[tauri::command(async)]
pub(crate) fn quit(shell: State<'_, Shell>, force: bool) -> Done {
    if force && shell.engine.snapshot().state.quit.is_none() {
        shell.quit();
    }
    shell.quit();
    Ok(())
}

#[tauri::command(async)]
pub(crate) fn hide_window(window: WebviewWindow) -> Done {
    window::close(&window);
    Ok(())
}

#[tauri::command(async)]
pub(crate) fn diagnostics(shell: State<'_, Shell>) -> Done<BTreeMap<&'static str, String>> {
    Ok(crate::diagnostics::collect(&shell))
}
