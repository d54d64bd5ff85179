//! The matrix: each shape of a tree below each way to end its supervisor.

use std::path::Path;

use anyhow::{Result, ensure};
use harness::chaos::{self, Done, GUARD, Job, Killer, Programs, Report, Shape, Table, Whose};

/// How often each cell is played in an ordinary run.
const ROUNDS: usize = 2;
/// Each has nine trees, of which some keep a core busy.
const AT_A_TIME: usize = 1;

/// Whether somebody asked for rounds.
pub(super) fn asked() -> bool {
    std::env::var_os("TURNKEEP_CHAOS_ROUNDS").is_some()
}

/// The number that the person asked for, else this.
pub(super) fn rounds(usual: usize) -> usize {
    std::env::var("TURNKEEP_CHAOS_ROUNDS").ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

/// The guard as it is now, unless somebody said which.
pub(super) fn ready() -> Result<()> {
    if std::env::var_os(GUARD).is_none() {
        harness::guard::built()?;
    }
    Ok(())
}

/// Does jobs in a folder of their own.
pub(super) fn work(jobs: Vec<Job>) -> Result<Vec<Done>> {
    ready()?;
    let folder = tempfile::Builder::new().prefix("tk-chaos-").tempdir_in("/var/tmp")?;
    chaos::work(Path::new(env!("CARGO_BIN_EXE_chaos_worker")), folder.path(), AT_A_TIME, jobs, |_| {})
}

#[expect(clippy::print_stdout, reason = "the table is what one runs it for")]
pub(super) fn play(whose: Whose, killers: &[Killer], rounds: usize) -> Result<Table> {
    let of = |number| killers.iter().map(move |killer| Job::Round { whose, killer: *killer, number });
    let done = work((0..rounds).flat_map(of).collect())?;
    let reports: Vec<Report> =
        done.into_iter().filter_map(|one| if let Done::Round(report) = one { Some(report) } else { None }).collect();
    let table = Table::of(killers, &reports);
    println!("{table}");
    Ok(table)
}

/// Whether the engine alone, without a guard, is held to leave nothing: not before somebody starts it again, and not what
/// neither carries its mark nor descends from what it knew.
fn alone_leaves_nothing(shape: Shape, killer: Killer) -> bool {
    match killer {
        Killer::Stop | Killer::Quit => shape != Shape::AllAtOnce,
        Killer::AppKilledThenStart | Killer::BothKilledThenStart => {
            !matches!(shape, Shape::ClearedEnvironment | Shape::AllAtOnce)
        }
        Killer::AppKilled | Killer::GuardsKilled | Killer::GroupStopped | Killer::GroupKilled => false,
    }
}

#[test]
#[ignore = "not yet without a survivor in every round: `cargo xtask chaos` plays it"]
fn nothing_survives_its_runtime() -> Result<()> {
    let rounds = rounds(ROUNDS);
    ready()?;
    let table = play(Whose::EachShape, &Killer::OURS, rounds)?;
    ensure!(table.strays.is_empty(), "processes that belong to no tree were left: {:?}", table.strays);
    let guarded = Programs::find()?.has_guard();
    for killer in Killer::OURS {
        for shape in Shape::ALL {
            let Some(cell) = table.cell(shape, killer) else {
                ensure!(!guarded && killer == Killer::GuardsKilled, "{} was not played", killer.name());
                continue;
            };
            ensure!(cell.rounds == rounds, "{} {}: {} rounds", shape.name(), killer.name(), cell.rounds);
            if guarded || alone_leaves_nothing(shape, killer) {
                ensure!(cell.survivors == 0, "{} {}: {} survivors", shape.name(), killer.name(), cell.survivors);
            }
        }
    }
    Ok(())
}

#[test]
fn a_process_group_alone_is_not_enough() -> Result<()> {
    let rounds = rounds(ROUNDS);
    let table = play(Whose::EachShape, &Killer::BASELINE, rounds)?;
    let left = |shape, killer| table.cell(shape, killer).map_or(0, |cell| cell.survivors);
    for shape in [Shape::NewGroup, Shape::NewSession, Shape::Daemon, Shape::AllAtOnce] {
        ensure!(left(shape, Killer::GroupStopped) >= rounds, "{} did not survive its group's end", shape.name());
    }
    for shape in Shape::ALL {
        ensure!(left(shape, Killer::GroupKilled) >= rounds, "{} did not survive its supervisor", shape.name());
    }
    // What stays in the group is ended with it, so it is not the count that is wrong.
    ensure!(left(Shape::Plain, Killer::GroupStopped) == 0, "a plain child survived its group's end");
    Ok(())
}
