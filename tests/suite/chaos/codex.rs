//! The same with the real Codex: a tool that takes a session of its own and ignores SIGTERM, and an MCP server that does not go
//! with its client.

use anyhow::{Result, ensure};
use harness::chaos::{Killer, Programs, Shape, Whose};

use super::matrix::{asked, play, ready, rounds};

const ROUNDS: usize = 1;

#[test]
fn nothing_survives_the_real_codex() -> Result<()> {
    let rounds = rounds(ROUNDS).min(50);
    ready()?;
    let mut killers = vec![Killer::Stop, Killer::Quit, Killer::AppKilledThenStart];
    if Programs::find()?.has_guard() {
        killers.push(Killer::AppKilled);
        if asked() {
            killers.extend([Killer::GuardsKilled, Killer::BothKilledThenStart]);
        }
    }
    let table = play(Whose::Codex, &killers, rounds)?;
    for killer in killers {
        let left = table.cell(Shape::Deaf, killer).map(|cell| (cell.rounds, cell.survivors));
        ensure!(left == Some((rounds, 0)), "{}: {left:?}", killer.name());
    }
    ensure!(table.strays.is_empty(), "{:?}", table.strays);
    Ok(())
}
