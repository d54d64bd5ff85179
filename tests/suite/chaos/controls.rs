//! The negative controls: each of the three ways to count sees a survivor that is planted for it alone.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use harness::chaos::{self, Census, Ended, Killer, Report, Shape, Table, Tree};
use harness::{process, wait};
use rustix::process::Signal;
use tempfile::TempDir;

fn tree() -> Result<(TempDir, Tree)> {
    let folder = tempfile::tempdir()?;
    let tree = Tree::new(&folder.path().join("tree"), Vec::new())?;
    Ok((folder, tree))
}

/// Ended when the test is over.
struct Planted(Child);

impl Drop for Planted {
    fn drop(&mut self) {
        let below = i32::try_from(self.0.id()).map(process::descendants).unwrap_or_default();
        for row in below {
            chaos::strike(row.pid, row.start_ticks, Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Planted {
    fn start(words: &[&str]) -> Result<Self> {
        Ok(Self(Command::new("sh").args(["-c", "sleep 600; :"]).args(words).stdin(Stdio::null()).spawn()?))
    }

    fn row(&self) -> Result<process::Row> {
        process::row(i32::try_from(self.0.id())?).context("it is gone already")
    }
}

fn count(tree: &Tree) -> (usize, usize, usize) {
    let census = Census::of(tree);
    (census.marked, census.descended, census.holding)
}

#[test]
fn a_survivor_is_seen_by_the_word_on_its_command_line() -> Result<()> {
    let (_folder, tree) = tree()?;
    ensure!(count(&tree) == (0, 0, 0), "nothing was planted: {:?}", count(&tree));
    let planted = Planted::start(&[&tree.mark()])?;
    wait::until("marked survivor", || (count(&tree) == (1, 0, 0)).then_some(()))?;
    drop(planted);
    ensure!(count(&tree) == (0, 0, 0), "it is gone: {:?}", count(&tree));
    Ok(())
}

#[test]
fn a_survivor_is_seen_by_what_it_wrote_down_and_its_child_with_it() -> Result<()> {
    let (_folder, tree) = tree()?;
    let planted = Planted::start(&[])?;
    let row = planted.row()?;
    let child = wait::until("child", || process::descendants(row.pid).into_iter().next())?;
    std::fs::write(tree.folder.join("record"), format!("x {} {} 1\n", row.pid, row.start_ticks + 1))?;
    ensure!(count(&tree) == (0, 0, 0), "another start time is another process: {:?}", count(&tree));
    std::fs::write(tree.folder.join("record"), format!("x {} {} 1\n", row.pid, row.start_ticks))?;
    ensure!(count(&tree) == (0, 2, 0), "{:?}", count(&tree));
    ensure!(!chaos::strike(child.pid, child.start_ticks + 1, Signal::KILL), "a signal that was meant for another");
    ensure!(chaos::strike(child.pid, child.start_ticks, Signal::KILL), "it was to be signalled");
    wait::until("end of both", || (count(&tree) == (0, 0, 0)).then_some(()))
}

#[test]
fn a_survivor_is_seen_by_the_lock_that_it_holds() -> Result<()> {
    let (_folder, tree) = tree()?;
    drop(File::create(tree.folder.join("free.lock"))?);
    ensure!(count(&tree) == (0, 0, 0), "nobody holds it: {:?}", count(&tree));
    let held = File::create(tree.folder.join("x.lock"))?;
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive)?;
    ensure!(count(&tree) == (0, 0, 1), "{:?}", count(&tree));
    // Who inherited it holds it as well.
    let heir = held.try_clone()?;
    drop(held);
    ensure!(count(&tree) == (0, 0, 1), "{:?}", count(&tree));
    drop(heir);
    ensure!(count(&tree) == (0, 0, 0), "{:?}", count(&tree));
    Ok(())
}

#[test]
fn a_survivor_stands_in_the_table() {
    let left = |survivors| Census { holding: survivors, ..Census::default() };
    let ended = |survivors, took| Ended { shape: Shape::Plain, left: left(survivors), took };
    let report = |ended| Report { killer: Killer::Stop, trees: vec![ended], strays: Vec::new() };
    let mut reports: Vec<Report> = (1_u32..=99).map(|number| report(ended(0, Some(f64::from(number))))).collect();
    reports.push(report(ended(2, None)));
    let table = Table::of(&[Killer::Stop], &reports);
    let cell = table.cell(Shape::Plain, Killer::Stop).unwrap();
    assert_eq!((cell.rounds, cell.survivors), (100, 2));
    assert_eq!((cell.percentile(50), cell.percentile(99)), (Some(50.0), Some(99.0)));
    assert!(table.to_string().contains("2/100 50 99"), "{table}");
    assert!(table.cell(Shape::Deaf, Killer::Stop).is_none());
}
