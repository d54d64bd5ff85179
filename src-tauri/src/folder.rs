//! The folder of a new session: asking for one, and saying what is wrong with one that was typed.

use std::{
    io,
    path::{Path, PathBuf},
};

use tauri::{AppHandle, Manager as _};
use tokio::sync::oneshot;
use turnkeep_engine::Places;

/// Asks with the system's own dialog; `None` when the person changed their mind.
pub(crate) async fn pick(app: &AppHandle) -> Option<String> {
    let (answer, answered) = oneshot::channel();
    let window = app.get_webview_window(crate::window::MAIN);
    let asked = app.run_on_main_thread(move || {
        let mut dialog = rfd::AsyncFileDialog::new();
        if let Some(window) = &window {
            dialog = dialog.set_parent(window);
        }
        // Made on the main thread, as the system wants it; waited for elsewhere.
        let picked = dialog.pick_folder();
        tauri::async_runtime::spawn(async move {
            let _ = answer.send(picked.await);
        });
    });
    if let Err(error) = asked {
        tracing::warn!(%error, "no dialog could be shown");
        return None;
    }
    let picked = answered.await.ok().flatten()?;
    Some(picked.path().to_string_lossy().into_owned())
}

/// The folder that was meant, as an absolute path, or what is wrong with it.
pub(crate) fn check(typed: &str, home: &str) -> Result<String, String> {
    let typed = typed.trim();
    let path = match typed.strip_prefix('~') {
        Some("") => PathBuf::from(home),
        Some(rest) if rest.starts_with('/') => Path::new(home).join(rest.trim_start_matches('/')),
        _ => PathBuf::from(typed),
    };
    if typed.is_empty() {
        return Err("Choose a folder.".to_owned());
    }
    if !path.is_absolute() {
        return Err(format!("{typed} is not a full path: begin with / or ~/."));
    }
    match std::fs::read_dir(&path) {
        Ok(_) => path.to_str().map(str::to_owned).ok_or_else(|| "The name of this folder is not valid text.".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!("{typed} does not exist.")),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(format!("{typed} is not a folder.")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(format!("{typed} may not be read by you.")),
        Err(error) => Err(format!("{typed} cannot be used: {error}.")),
    }
}

/// The folder for what is only tried, made if need be.
pub(crate) fn scratch(places: &Places) -> Result<String, String> {
    let path = places.data.join("demo");
    std::fs::create_dir_all(&path).map_err(|error| format!("{} cannot be made: {error}.", path.display()))?;
    path.to_str().map(str::to_owned).ok_or_else(|| "The name of this folder is not valid text.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_checked_before_a_session_is_made_in_it() {
        let home = std::env::temp_dir();
        let home = home.to_str().unwrap();
        assert_eq!(check("~", home).as_deref(), Ok(home));
        assert_eq!(check(&format!(" {home} "), "/").as_deref(), Ok(home));
        assert!(check("src", home).unwrap_err().contains("not a full path"));
        assert!(check("/does/not/exist", home).unwrap_err().contains("does not exist"));
        assert!(check("/dev/null", home).unwrap_err().contains("not a folder"));
        assert!(check("  ", home).is_err());
    }
}
