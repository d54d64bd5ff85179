//! Notifications where the system has its own way, through `notify-rust`.
//!
//! Its calls block until somebody answers, so each banner has a thread of its own for as long as it is there.

use turnkeep_view::notification::Shown;

use super::{Lately, Turning, Wish, act, decide, unwatched};
use crate::shell::Shell;

/// Shows what the engine raises until it ends.
pub(crate) async fn start(shell: Shell) {
    let Some(mut notices) = shell.engine.notifications() else { return };
    let mut lately = Lately::default();
    let mut turning = Turning::of(&shell);
    loop {
        let wishes = tokio::select! {
            () = turning.away() => unwatched(&shell, &mut lately),
            notice = notices.recv() => match notice {
                Some(notice) => vec![decide(&shell, &mut lately, notice)],
                None => return,
            },
        };
        for wish in wishes {
            carry_out(&shell, wish);
        }
    }
}

fn carry_out(shell: &Shell, wish: Wish) {
    // What is shown cannot be taken away here; an answer that comes too late is refused by the machine.
    let Wish::Show { shown, .. } = wish else { return };
    let shell = Shell::clone(shell);
    let thread = std::thread::Builder::new().name("notification".into());
    if let Err(error) = thread.spawn(move || show(&shell, &shown)) {
        tracing::warn!(%error, "a notification was not shown");
    }
}

fn show(shell: &Shell, shown: &Shown) {
    let mut banner = notify_rust::Notification::new();
    banner.appname("Turnkeep").summary(&shown.title).body(&shown.body);
    for action in &shown.actions {
        banner.action(action.name(), action.label());
    }
    let waited = banner.show().and_then(|handle| {
        handle.wait_for_response(|response: &notify_rust::NotificationResponse| {
            if matches!(response, notify_rust::NotificationResponse::Default) {
                act(shell, &shown.click, None);
            } else if let notify_rust::NotificationResponse::Action(name) = response
                && let Some(action) = shown.actions.iter().find(|action| action.name() == name)
            {
                act(shell, action, None);
            }
        })
    });
    if let Err(error) = waited {
        tracing::info!(%error, key = shown.key, "a notification was not shown");
    }
}
