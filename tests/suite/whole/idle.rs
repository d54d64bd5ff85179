//! Nothing to do: nothing done. With the window closed no thread of the application wakes up, and no browser is there.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{process, wait};

use super::app::{App, Setup};

/// How long is looked. A timer of half a second, as a library without a runtime of its own keeps, would show 10 times.
const WINDOW: Duration = Duration::from_secs(5);

#[test]
fn an_idle_application_sleeps() -> Result<()> {
    let mut app = App::prepare(Setup::default())?;
    app.launch(&["--hidden"])?;
    let pid = app.pid()?;
    // The start is over: agents were looked for, the panel has drawn the icon.
    let mut calm = u64::MAX;
    wait::until("end of the start", || {
        calm = process::wake_ups(pid, WINDOW).ok()?;
        (calm <= 2).then_some(())
    })
    .with_context(|| format!("it wakes up {calm} times in {} s", WINDOW.as_secs()))?;
    let again = process::wake_ups(pid, WINDOW)?;
    ensure!(again <= 2, "it woke up {again} times in {} s", WINDOW.as_secs());
    ensure!(app.web_processes()?.is_empty() && app.find_window().is_none(), "a window or a browser without being asked");
    let pss = process::pss_kib(pid)?;
    ensure!(pss < 100 * 1024, "{pss} KiB for an icon in the tray");
    app.check_log()
}

#[test]
fn the_measure_sees_a_timer_of_half_a_second() -> Result<()> {
    let mut restless = Command::new("sh").args(["-c", "while sleep 0.5; do :; done"]).spawn()?;
    let seen = process::wake_ups(i32::try_from(restless.id())?, WINDOW);
    restless.kill()?;
    restless.wait()?;
    let seen = seen?;
    ensure!(seen >= 6, "only {seen} wake-ups were seen");
    Ok(())
}
