//! The tray of this system, kept as the snapshot says.
//!
//! What it shows is decided by [`turnkeep_view::tray`]; here it is only drawn, and clicks are passed on.

pub(crate) mod icons;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod native;

use std::time::Duration;

use turnkeep_engine::clock;
use turnkeep_model::{AccountId, ApprovalId, Input, state::Asker};
use turnkeep_view::{
    dto,
    tray::{Tray, TrayAction, tray},
};

use crate::shell::Shell;

#[cfg(target_os = "linux")]
pub(crate) use linux::{start, theme_is_dark};
#[cfg(not(target_os = "linux"))]
pub(crate) use native::start;

/// Milliseconds.
const HOUR: i64 = 60 * 60 * 1000;
/// Least time between two drawings: what changes faster is nobody's to read.
const EVERY: Duration = Duration::from_millis(150);

/// Calls `draw` with each new tray until the engine ends.
async fn follow<F: Future<Output = ()>>(shell: Shell, mut draw: impl FnMut(Tray) -> F) {
    let mut snapshots = shell.engine.watch();
    let mut drawn: Option<Tray> = None;
    while snapshots.changed().await.is_ok() {
        let snapshot = snapshots.borrow_and_update().clone();
        let snapshot = shell.snapshot(&snapshot);
        let next = tray(&snapshot);
        if drawn.as_ref() != Some(&next) {
            drawn = Some(next.clone());
            draw(next).await;
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Carries out what was clicked. Never waits.
fn act(shell: &Shell, action: &TrayAction, token: Option<String>) {
    tracing::info!(?action, "clicked in the tray");
    match action {
        TrayAction::Open => shell.show(None, token),
        TrayAction::Show(view) => shell.show(Some(view.clone()), token),
        TrayAction::Answer { approval, kind } => {
            if let Ok(approval) = approval.parse() {
                shell.answer(ApprovalId(approval), *kind, Asker::Tray);
            }
        }
        TrayAction::UseAccount { account } => {
            if let Ok(account) = account.parse() {
                shell.engine.tell(Input::UseAccount { account: AccountId(account) });
            }
        }
        TrayAction::UnlockKeychain => shell.engine.unlock_keychain(),
        TrayAction::Mute { muted } => {
            let mut settings = shell.engine.snapshot().state.settings.clone();
            settings.muted = *muted;
            shell.engine.tell(Input::ChangeSettings { settings });
        }
        TrayAction::MuteForAnHour { muted } => {
            let mut settings = shell.engine.snapshot().state.settings.clone();
            settings.muted_until = muted.then(|| clock::now().wall.saturating_add(HOUR));
            shell.engine.tell(Input::ChangeSettings { settings });
        }
        TrayAction::Quit => shell.quit(),
        TrayAction::CancelQuit => {
            let engine = shell.engine.clone();
            tauri::async_runtime::spawn(async move {
                if let Err(why) = engine.cancel_quit().await {
                    tracing::info!(%why, "the quit goes on");
                }
            });
        }
    }
}

/// Where a click on the icon leads: to what needs a person, if one thing does.
fn clicked(shell: &Shell, token: Option<String>) {
    let snapshot = shell.snapshot(&shell.engine.snapshot());
    let mut needs = snapshot.sessions.iter().filter(|session| session.group == dto::Group::NeedsYou);
    let view = match (needs.next(), needs.next()) {
        (Some(one), None) => Some(dto::View::Session { session: one.id.clone() }),
        _ => None,
    };
    shell.show(view, token);
}
