//! Putting the application together, and taking it apart.
//!
//! One runtime is made here and entered, so that everything on the bus uses it: a library that finds none starts threads
//! of its own, which wake up for ever.

use std::{process::ExitCode, sync::Arc, time::Duration};

use tauri::{App, AppHandle, Builder, RunEvent};
use turnkeep_engine::{
    Config, Ended, Engine, Places, StartError,
    lock::LockError,
    logs,
    own_agents::{self, Agents},
};

use crate::{
    args::Opening,
    commands, notify,
    shell::{Inner, Shell},
    tray, window,
};

/// How long the window system may take to let go once everything is written down.
const LEFT_WITHIN: Duration = Duration::from_secs(1);

/// Runs until somebody quits.
///
/// # Errors
/// Why it cannot start, and what to do.
pub(crate) fn run(opening: Opening) -> Result<ExitCode, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("shell")
        .enable_all()
        .build()
        .map_err(|error| format!("no threads can be started: {error}"))?;
    tauri::async_runtime::set(runtime.handle().clone());
    let _entered = runtime.enter();

    let places = Places::find().map_err(|error| error.to_string())?;
    places.make().map_err(|error| error.to_string())?;
    let _logs = logs::start(&places.logs()).map_err(|error| format!("no log can be written: {error}"))?;

    #[cfg(target_os = "linux")]
    let (bus, starts) = match runtime.block_on(crate::instance::claim(opening)) {
        crate::instance::Claim::First { bus, starts } => (Some(bus), Some(starts)),
        crate::instance::Claim::Second => {
            tracing::info!("runs already; its window was asked for");
            return Ok(ExitCode::SUCCESS);
        }
        crate::instance::Claim::NoBus { why } => {
            tracing::warn!(why, "no session bus: no tray and no notifications");
            (None, None)
        }
    };
    #[cfg(target_os = "linux")]
    let dark = gtk::init().map(|()| tray::theme_is_dark());
    #[cfg(target_os = "linux")]
    let Ok(dark) = dark else {
        return Err("no display can be opened. Turnkeep needs a desktop session (DISPLAY or WAYLAND_DISPLAY); \
                    `turnkeep serve`, which will not, does not exist yet"
            .to_owned());
    };
    #[cfg(not(target_os = "linux"))]
    let dark = false;

    let Agents { all: agents, problems } = own_agents::all(&places);
    let config = Config { places: places.clone(), agents: agents.clone(), environment: None };
    let (engine, handle) = Engine::start(config).map_err(|error| explain(&error))?;
    let (shell, shows) = Inner::new(handle, places, &agents, problems);

    let builder = Builder::default().manage(Arc::clone(&shell)).invoke_handler(tauri::generate_handler![
        commands::answer,
        crate::own_agents::add_own_agent,
        crate::own_agents::own_agents,
        crate::own_agents::remove_own_agent,
        commands::archive_session,
        commands::attach_server,
        commands::cancel_sign_in,
        commands::change_settings,
        commands::check_folder,
        commands::close_session,
        commands::cancel_quit,
        commands::configure_session,
        commands::create_session,
        commands::diagnostics,
        commands::edit_queued,
        commands::fork_session,
        commands::hide_window,
        commands::interrupt,
        commands::look::find_entries,
        commands::look::provider_threads,
        commands::look::runtimes,
        commands::look::session_commands,
        commands::look::turn_changes,
        commands::mark_read,
        commands::open_link,
        commands::open_session,
        commands::pick_folder,
        commands::quit,
        commands::remove_account,
        commands::remove_queued,
        commands::rename_account,
        commands::rename_session,
        commands::rescan_providers,
        commands::resolve_unknown,
        commands::seen,
        commands::send,
        commands::set_goal,
        commands::sign_in,
        commands::sign_out,
        commands::steer,
        commands::transcript_page,
        commands::try_again,
        commands::try_demo,
        commands::unlock_keychain,
        commands::use_account,
        commands::watch,
    ]);
    #[cfg(not(target_os = "linux"))]
    let builder = {
        let shell = Arc::clone(&shell);
        builder.plugin(tauri_plugin_single_instance::init(move |_, _, _| shell.show(None, None)))
    };
    let watching = Arc::clone(&shell);
    let app = builder
        .on_window_event(move |window, event| window::happened(window, event, &watching))
        .build(context())
        .map_err(|error| format!("the desktop cannot be used: {error}"));
    let app = match app {
        Ok(app) => app,
        Err(why) => {
            shell.quit();
            engine.join();
            return Err(why);
        }
    };

    begin(
        &app,
        &shell,
        opening,
        dark,
        shows,
        #[cfg(target_os = "linux")]
        bus,
    );
    #[cfg(target_os = "linux")]
    if let Some(starts) = starts {
        tokio::spawn(later_starts(Arc::clone(&shell), starts));
    }

    let code = app.run_return(move |_, event| {
        if let RunEvent::ExitRequested { code: None, api, .. } = event {
            // The last window closed: only the engine's end is the end.
            api.prevent_exit();
        }
    });
    engine.join();
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// What the build put in: the configuration, the page, the permissions.
#[expect(clippy::disallowed_types, reason = "inside the macro's own code")]
fn context() -> tauri::Context {
    tauri::generate_context!()
}

/// What runs beside the windows.
fn begin(
    app: &App,
    shell: &Shell,
    opening: Opening,
    dark: bool,
    shows: tokio::sync::mpsc::UnboundedReceiver<crate::shell::Show>,
    #[cfg(target_os = "linux")] bus: Option<zbus::Connection>,
) {
    let handle = app.handle();
    tokio::spawn(windows(handle.clone(), Arc::clone(shell), shows));
    tokio::spawn(window::titles(handle.clone(), Arc::clone(shell)));
    tokio::spawn(signals(Arc::clone(shell)));
    #[cfg(target_os = "linux")]
    let notifying = tokio::spawn(notify::start(Arc::clone(shell), bus));
    #[cfg(not(target_os = "linux"))]
    let notifying = tokio::spawn(notify::start(Arc::clone(shell)));
    tokio::spawn(end(handle.clone(), Arc::clone(shell), notifying));
    tokio::spawn(open(handle.clone(), Arc::clone(shell), opening, dark));
}

/// Starts the tray, and shows the window where it is wanted.
async fn open(app: AppHandle, shell: Shell, opening: Opening, dark: bool) {
    if opening == Opening::Show {
        shell.show(None, None);
    }
    let onboarded = shell.engine.snapshot().state.settings.onboarded;
    if opening == Opening::WhereNeeded && !onboarded {
        shell.show(None, None);
    }
    let shown = tray::start(app, Arc::clone(&shell), dark).await;
    if !shown && opening == Opening::WhereNeeded {
        tracing::info!("no panel shows a tray: the window is the way in");
        shell.show(None, None);
    }
}

/// Shows the window as often as somebody wants it: off the workers, because it waits for the main thread.
async fn windows(app: AppHandle, shell: Shell, mut shows: tokio::sync::mpsc::UnboundedReceiver<crate::shell::Show>) {
    while let Some(wanted) = shows.recv().await {
        let (app, shell) = (app.clone(), Arc::clone(&shell));
        let shown = tokio::task::spawn_blocking(move || window::show(&app, &shell, wanted.token)).await;
        if let Err(error) = shown {
            tracing::error!(%error, "showing the window panicked");
        }
    }
}

/// A second start.
#[cfg(target_os = "linux")]
async fn later_starts(shell: Shell, mut starts: tokio::sync::mpsc::UnboundedReceiver<Option<String>>) {
    while let Some(token) = starts.recv().await {
        shell.show(None, token);
    }
}

/// SIGTERM and SIGINT are a quit; twice, a forced one.
#[cfg(unix)]
async fn signals(shell: Shell) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        tracing::warn!("signals cannot be listened to");
        return;
    };
    loop {
        tokio::select! {
            Some(()) = terminate.recv() => tracing::info!("SIGTERM"),
            Some(()) = interrupt.recv() => tracing::info!("SIGINT"),
            else => return,
        }
        shell.quit();
    }
}

#[cfg(not(unix))]
async fn signals(shell: Shell) {
    while tokio::signal::ctrl_c().await.is_ok() {
        shell.quit();
    }
}

/// Leaves once the engine has ended, and whatever the window system does.
async fn end(app: AppHandle, shell: Shell, notifying: tokio::task::JoinHandle<()>) {
    let how = shell.engine.exited().await;
    let code = match &how {
        Ended::Quit | Ended::Forced => 0,
        Ended::Stopped(_) | Ended::Abandoned | Ended::Crashed(_) => 1,
    };
    tracing::info!(?how, code, "leaving");
    // It takes its questions off the screen; nobody waits for a notifier that hangs.
    let _ = tokio::time::timeout(LEFT_WITHIN / 2, notifying).await;
    let watchdog = std::thread::Builder::new().name("leaving".into()).spawn(move || {
        std::thread::sleep(LEFT_WITHIN);
        tracing::warn!("the window system holds on; left without it");
        std::process::exit(code);
    });
    if let Err(error) = watchdog {
        tracing::warn!(%error, "leaving is not watched");
    }
    app.exit(code);
}

fn explain(error: &StartError) -> String {
    match error {
        StartError::Lock(LockError::Held { .. }) => {
            format!("{error}, but not in this desktop session: quit it there, or end that process, and start again")
        }
        StartError::Lock(LockError::File { .. }) | StartError::Places(_) | StartError::Store(_) | StartError::Thread(_) => {
            error.to_string()
        }
    }
}
