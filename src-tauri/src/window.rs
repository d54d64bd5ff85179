//! The one window: made when somebody wants to see it, destroyed when it is closed, so that nothing of a web view is
//! left in between.
//!
//! Whatever waits for the main thread must not be called on an async worker: the main thread may be waiting for one.

use std::{fs, io, path::Path, time::Duration};

use serde::{Deserialize, Serialize};
use tauri::{
    AppHandle, LogicalSize, Manager as _, PhysicalPosition, WebviewUrl, WebviewWindow, WebviewWindowBuilder, Window, WindowEvent,
    webview::NewWindowResponse,
};

use crate::shell::Shell;

pub(crate) const MAIN: &str = "main";
/// Logical pixels.
const SIZE: (f64, f64) = (1180.0, 760.0);
const LEAST: (f64, f64) = (420.0, 420.0);

/// Least time between two changes of the title.
const RENAMED_EVERY: Duration = Duration::from_millis(150);

/// Where the window was, so that it comes back there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Frame {
    /// Logical pixels.
    width: f64,
    height: f64,
    /// Physical pixels.
    position: Option<(i32, i32)>,
    maximized: bool,
}

/// Shows the window, and makes it first if there is none. Blocks for the main thread.
pub(crate) fn show(app: &AppHandle, shell: &Shell, token: Option<String>) {
    let window = match app.get_webview_window(MAIN) {
        Some(window) => window,
        None => match build(app, shell) {
            Ok(window) => window,
            Err(error) => {
                tracing::warn!(%error, "the window could not be made");
                return;
            }
        },
    };
    let front = window.clone();
    let brought = window.run_on_main_thread(move || {
        // All three are wishes that a window manager may refuse; none of them matters enough to stop for.
        let _ = front.unminimize();
        let _ = front.show();
        activate(&front, token.as_deref());
        let _ = front.set_focus();
    });
    if let Err(error) = brought {
        tracing::debug!(%error, "the window went before it was shown");
    }
}

#[cfg(target_os = "linux")]
fn activate(window: &WebviewWindow, token: Option<&str>) {
    use gtk::prelude::GtkWindowExt as _;
    if let (Some(token), Ok(window)) = (token, window.gtk_window()) {
        window.set_startup_id(token);
    }
}

#[cfg(not(target_os = "linux"))]
fn activate(_: &WebviewWindow, _: Option<&str>) {}

fn build(app: &AppHandle, shell: &Shell) -> tauri::Result<WebviewWindow> {
    let started = std::time::Instant::now();
    let frame = read(&file(shell));
    let (width, height) = frame.map_or(SIZE, |frame| (frame.width.max(LEAST.0), frame.height.max(LEAST.1)));
    let builder = WebviewWindowBuilder::new(app, MAIN, WebviewUrl::App("index.html".into()))
        .title(title(shell))
        .inner_size(width, height)
        .min_inner_size(LEAST.0, LEAST.1)
        .prevent_overflow()
        .maximized(frame.is_some_and(|frame| frame.maximized))
        .data_directory(shell.places.data.join("webview"))
        .devtools(cfg!(debug_assertions))
        // The page is ours and stays: whatever a link or a script in it wants, nothing else is ever loaded.
        .on_navigation(is_own)
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .on_download(|_, _| false);
    let window = builder.build()?;
    if let Some(position) = frame.and_then(|frame| frame.position).filter(|_| !frame.is_some_and(|frame| frame.maximized)) {
        restore(&window, position);
    }
    tracing::info!(ms = started.elapsed().as_millis() as u64, "the window was made");
    Ok(window)
}

/// Only the embedded page, under the name that each system gives it.
fn is_own(url: &tauri::Url) -> bool {
    match url.scheme() {
        "tauri" => url.host_str() == Some("localhost"),
        "http" | "https" => url.host_str() == Some("tauri.localhost") && url.port().is_none(),
        _ => false,
    }
}

/// Puts the window back, if a screen is still there.
fn restore(window: &WebviewWindow, (x, y): (i32, i32)) {
    let Ok(screens) = window.available_monitors() else { return };
    let seen = screens.iter().any(|screen| {
        let (at, size) = (screen.position(), screen.size());
        let across = i64::from(x) - i64::from(at.x);
        let down = i64::from(y) - i64::from(at.y);
        (0..i64::from(size.width).saturating_sub(80)).contains(&across)
            && (0..i64::from(size.height).saturating_sub(80)).contains(&down)
    });
    if seen && let Err(error) = window.set_position(PhysicalPosition::new(x, y)) {
        tracing::debug!(%error, "the window could not be put where it was");
    }
}

/// Closes it as if the person had. Never blocks.
pub(crate) fn close(window: &WebviewWindow) {
    if let Err(error) = window.close() {
        tracing::debug!(%error, "the window was gone already");
    }
}

/// Keeps the title saying what the tray says, and what is open.
pub(crate) async fn titles(app: AppHandle, shell: Shell) {
    let (mut snapshots, mut looks) = (shell.engine.watch(), shell.looks());
    let mut titled = String::new();
    loop {
        let changed = tokio::select! {
            changed = snapshots.changed() => changed,
            changed = looks.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
        let title = title(&shell);
        if title != titled
            && let Some(window) = app.get_webview_window(MAIN)
        {
            match window.set_title(&title) {
                Ok(()) => titled = title,
                Err(error) => tracing::debug!(%error, "the title could not be set"),
            }
        }
        tokio::time::sleep(RENAMED_EVERY).await;
    }
}

fn title(shell: &Shell) -> String {
    let session = shell.session().map(|id| id.to_string());
    turnkeep_view::tray::window_title(&shell.snapshot(&shell.engine.snapshot()), session.as_deref())
}

/// What happens to the window, on the main thread.
pub(crate) fn happened(window: &Window, event: &WindowEvent, shell: &Shell) {
    if window.label() != MAIN {
        return;
    }
    if let WindowEvent::Focused(focused) = event {
        shell.focus(*focused);
    } else if let WindowEvent::CloseRequested { .. } = event {
        remember(window, &file(shell));
    } else if let WindowEvent::Destroyed = event {
        shell.closed();
    }
}

// ---- where it was ----------------------------------------------------------------------------

fn file(shell: &Shell) -> std::path::PathBuf {
    shell.places.state.join("window.json")
}

fn remember(window: &Window, file: &Path) {
    let frame = || -> tauri::Result<Frame> {
        let size: LogicalSize<f64> = window.inner_size()?.to_logical(window.scale_factor()?);
        let maximized = window.is_maximized()?;
        let before = read(file).filter(|_| maximized);
        Ok(Frame {
            width: before.map_or(size.width, |frame| frame.width),
            height: before.map_or(size.height, |frame| frame.height),
            position: window.outer_position().ok().map(|at| (at.x, at.y)),
            maximized,
        })
    };
    let kept = frame().map_err(io::Error::other).and_then(|frame| fs::write(file, serde_json::to_vec(&frame)?));
    if let Err(error) = kept {
        tracing::info!(%error, "where the window was is not remembered");
    }
}

/// A file that cannot be understood is no file.
fn read(file: &Path) -> Option<Frame> {
    let frame: Frame = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let sane = |side: f64| side.is_finite() && (1.0..=32_000.0).contains(&side);
    Some(frame).filter(|frame| sane(frame.width) && sane(frame.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_embedded_page_is_ever_loaded() {
        let own = |url: &str| is_own(&tauri::Url::parse(url).unwrap());
        assert!(own("tauri://localhost/index.html"));
        assert!(own("http://tauri.localhost/"));
        for other in [
            "https://example.com/",
            "http://localhost:1420/",
            "http://tauri.localhost:81/",
            "tauri://other/",
            "file:///etc/passwd",
            "data:text/html,x",
            "about:blank",
            "blob:tauri://localhost/x",
        ] {
            assert!(!own(other), "{other}");
        }
    }

    #[test]
    fn a_damaged_memory_of_the_window_is_forgotten() {
        let file = std::env::temp_dir().join(format!("turnkeep-window-{}.json", std::process::id()));
        for (text, kept) in [
            (r#"{"width":800,"height":600,"position":[1,2],"maximized":false}"#, true),
            (r#"{"width":1e300,"height":600,"position":null,"maximized":false}"#, false),
            (r#"{"width":-5,"height":600,"position":null,"maximized":false}"#, false),
            ("{", false),
            ("", false),
        ] {
            fs::write(&file, text).unwrap();
            assert_eq!(read(&file).is_some(), kept, "{text}");
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(read(&file), None);
    }
}
