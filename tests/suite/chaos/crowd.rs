//! Many at once.

use anyhow::{Context, Result, ensure};
use harness::chaos::{Crowd, Done, Job, Killer, Stopped};

use super::matrix::{asked, work};

#[expect(clippy::print_stdout, reason = "the figures are what one runs it for")]
fn gather(crowd: Crowd) -> Result<Stopped> {
    let done = work(vec![Job::Crowd(crowd)])?.into_iter().next();
    let Some(Done::Crowd(stopped)) = done else { anyhow::bail!("it said something else: {done:?}") };
    println!(
        "{} runtimes × {} processes, {}: opened in {:.0} ms, gone in {:.0} ms, said in {:.0} ms; the application {} KiB (PSS), {} threads; \
         a guard {:?} KiB",
        crowd.runtimes,
        crowd.members + 1,
        crowd.killer.name(),
        stopped.opened,
        stopped.gone,
        stopped.word,
        stopped.pss_kib,
        stopped.threads,
        stopped.guard_kib,
    );
    ensure!(stopped.strays.is_empty(), "{:?}", stopped.strays);
    Ok(stopped)
}

/// The program that the engine runs in says its whole state at every change, which grows with the square of their number.
#[test]
fn many_sessions_run_at_once_and_leave_nothing() -> Result<()> {
    let runtimes = if asked() { 200 } else { 40 };
    let stopped = gather(Crowd { runtimes, members: 0, killer: Killer::Quit })?;
    ensure!(stopped.pss_kib < 256 << 10, "the application holds {} KiB", stopped.pss_kib);
    ensure!(stopped.threads < 64, "the application has {} threads", stopped.threads);
    Ok(())
}

/// A figure, not a promise: `cargo xtask chaos` shows it.
#[test]
fn whole_trees_are_stopped_together() -> Result<()> {
    let runtimes = if asked() { 100 } else { 20 };
    for killer in [Killer::Stop, Killer::Quit] {
        gather(Crowd { runtimes, members: 4, killer }).with_context(|| killer.name())?;
    }
    Ok(())
}
