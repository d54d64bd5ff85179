//! One round: a tree of each shape below one application, one way to end it, and what is left then.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::app::{App, Programs, Trees, guarded, plant, plant_codex, yes};
use super::bury;
use super::census::{Census, strike};
use super::shape::Shape;
use crate::mock_model::MockModel;
use crate::process::{self, Row};
use crate::wait;

/// What ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Killer {
    /// The sessions are put away; the engine stops their runtimes.
    Stop,
    /// The application is asked to quit by SIGTERM.
    Quit,
    /// The application is killed, and nobody starts it again.
    AppKilled,
    /// The application is killed and started again at once.
    AppKilledThenStart,
    /// Each runtime's guard is killed.
    GuardsKilled,
    /// The application and all guards are killed in the same instant, then it is started again.
    BothKilledThenStart,
    /// The baseline stops its process group.
    GroupStopped,
    /// The baseline is killed.
    GroupKilled,
}

impl Killer {
    /// Those of the product.
    pub const OURS: [Self; 6] =
        [Self::Stop, Self::Quit, Self::AppKilled, Self::AppKilledThenStart, Self::GuardsKilled, Self::BothKilledThenStart];
    /// Those of the baseline, which knows process groups only.
    pub const BASELINE: [Self; 2] = [Self::GroupStopped, Self::GroupKilled];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Quit => "app TERM",
            Self::AppKilled => "app KILL",
            Self::AppKilledThenStart => "app KILL, start",
            Self::GuardsKilled => "guard KILL",
            Self::BothKilledThenStart => "both KILL, start",
            Self::GroupStopped => "group: stop",
            Self::GroupKilled => "group: KILL",
        }
    }

    /// For how long the end of a tree is waited for when nobody says that it has come.
    fn limit(self) -> Duration {
        match self {
            Self::GroupStopped | Self::GroupKilled => Duration::from_millis(1500),
            Self::Stop
            | Self::Quit
            | Self::AppKilled
            | Self::AppKilledThenStart
            | Self::GuardsKilled
            | Self::BothKilledThenStart => Duration::from_secs(6),
        }
    }
}

/// What became of one tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub shape: Shape,
    /// What is left when its end is said, or the wait is over.
    pub left: Census,
    /// From the killing to the last lock that was let go, in milliseconds; none if something is left.
    pub took: Option<f64>,
}

/// What became of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub killer: Killer,
    /// Empty where there was nothing to kill.
    pub trees: Vec<Ended>,
    /// Processes of the round that belong to no tree, at the end of a round after which nothing may be left.
    pub strays: Vec<String>,
}

/// Whose trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whose {
    /// One of each shape, each below an agent of its own.
    EachShape,
    /// The tool and the MCP server of the real Codex.
    Codex,
}

/// Plays one round in a folder of its own, which is removed, and leaves no process behind.
pub fn play(folder: &Path, programs: &Programs, whose: Whose, killer: Killer, number: usize) -> Result<Report> {
    alone(&folder.join(format!("{killer:?}-{number}")), |root| {
        let mut mock = None;
        let trees = match whose {
            Whose::EachShape => {
                let wanted: Vec<_> = Shape::ALL.iter().map(|shape| (shape.name().to_owned(), *shape, 1)).collect();
                plant(root, programs, &wanted)?
            }
            Whose::Codex => plant_codex(root, programs, mock.insert(MockModel::start()?))?,
        };
        let played = match killer {
            Killer::GroupStopped | Killer::GroupKilled => baseline(root, programs, killer, &trees),
            Killer::Stop
            | Killer::Quit
            | Killer::AppKilled
            | Killer::AppKilledThenStart
            | Killer::GuardsKilled
            | Killer::BothKilledThenStart => {
                // A kill may meet a turn; who is stopped or asked to quit in good order waits for its end.
                let in_a_turn = number % 2 == 1 && !matches!(killer, Killer::Stop | Killer::Quit);
                let text = match whose {
                    Whose::Codex => "Please start it",
                    Whose::EachShape if in_a_turn => "Please hang",
                    Whose::EachShape => super::SHORT,
                };
                let rests = whose == Whose::Codex || !in_a_turn;
                ours(root, programs, killer, &trees, text, rests)
            }
        };
        for (_, tree) in trees.values() {
            tree.stop();
        }
        played
    })
}

/// Does it in a folder that is made for it and removed, and ends every process that was started meanwhile.
pub(super) fn alone<T>(root: &Path, play: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    if root.exists() {
        // One that failed was left to be looked at.
        fs::remove_dir_all(root)?;
    }
    fs::create_dir_all(root)?;
    let played = play(root);
    let ended = bury::end_all();
    let told = || fs::read_to_string(root.join("engine.log")).unwrap_or_default();
    let report = played.with_context(|| format!("{}\n{}", root.display(), told()))?;
    ended?;
    fs::remove_dir_all(root)?;
    Ok(report)
}

/// When each tree held no lock any more.
pub(super) type Gone = BTreeMap<String, Instant>;

/// Watches the locks while `kill` does its work; `kill` says when it began for each tree, and what its word is worth: if it
/// gave its word that all is gone, nothing is waited for.
pub(super) fn watched<T>(trees: &Trees, limit: Duration, kill: impl FnOnce() -> Result<(T, bool)>) -> Result<(Gone, T)> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut gone = Gone::new();
            while !over.load(Ordering::Relaxed) && gone.len() < trees.len() {
                for (name, (_, tree)) in trees {
                    if !gone.contains_key(name) && tree.is_free() {
                        gone.insert(name.clone(), Instant::now());
                    }
                }
                thread::sleep(Duration::from_millis(4));
            }
            gone
        });
        let killed = kill();
        if killed.as_ref().is_ok_and(|(_, word)| !word) {
            // Whether it came or not is seen in what the watcher found.
            let _ = wait::until_within(limit, "end of all trees", || watcher.is_finished().then_some(()));
        } else {
            // One more look at those that went just now.
            let _ = wait::until_within(Duration::from_millis(20), "last look", || watcher.is_finished().then_some(()));
        }
        over.store(true, Ordering::Relaxed);
        let gone = watcher.join().ok().context("the watcher panicked")?;
        Ok((gone, killed?.0))
    })
}

/// What is left of each tree. A process that is about to end is given the moment that this takes.
fn judge(trees: &Trees, gone: &Gone, since: impl Fn(&str) -> Instant) -> Vec<Ended> {
    let mut all = Vec::new();
    for (name, (shape, tree)) in trees {
        let settled = wait::until_within(Duration::from_millis(100), "settled census", || {
            let census = Census::of(tree);
            (census.survivors() == 0 || !gone.contains_key(name)).then_some(census)
        });
        let left = settled.unwrap_or_else(|_| Census::of(tree));
        let took = gone.get(name).filter(|_| left.survivors() == 0);
        let took = took.map(|at| at.saturating_duration_since(since(name)).as_secs_f64() * 1000.0);
        all.push(Ended { shape: *shape, left, took });
    }
    all
}

fn ours(root: &Path, programs: &Programs, killer: Killer, trees: &Trees, text: &str, rests: bool) -> Result<Report> {
    let mut app = App::start(root, programs)?;
    app.open_all(trees, text)?;
    if rests {
        app.rest()?;
    }
    let guards = guarded(&app, programs, trees.len())?;
    let mut report = Report { killer, trees: Vec::new(), strays: Vec::new() };
    if guards.is_empty() && killer == Killer::GuardsKilled {
        return Ok(report);
    }
    let mut begun: BTreeMap<String, Instant> = BTreeMap::new();
    let start = Instant::now();
    let (gone, next) = watched(trees, killer.limit(), || match killer {
        Killer::Stop => {
            for name in trees.keys() {
                begun.insert(name.clone(), Instant::now());
                app.put_away(name);
            }
            yes(app.engine.until("end of all runtimes", no_runtime)?)?;
            Ok((None, true))
        }
        Killer::Quit => {
            ensure!(strike(app.pid(), app.start_ticks, Signal::TERM), "the engine was gone");
            ensure!(app.engine.wait_exit()?.success(), "the quit went badly: {:?}", app.engine.last);
            Ok((None, true))
        }
        Killer::AppKilled => app.engine.kill().map(|()| (None, false)),
        Killer::AppKilledThenStart => {
            app.engine.kill()?;
            again(root, programs, &app).map(|next| (Some(next), true))
        }
        Killer::GuardsKilled => {
            for row in &guards {
                ensure!(strike(row.pid, row.start_ticks, Signal::KILL), "a guard was gone");
            }
            yes(app.engine.until("end of all runtimes", no_runtime)?)?;
            Ok((None, true))
        }
        Killer::BothKilledThenStart => {
            kill_at_once(&app, &guards);
            app.engine.kill()?;
            again(root, programs, &app).map(|next| (Some(next), true))
        }
        Killer::GroupStopped | Killer::GroupKilled => Ok((None, false)),
    })?;
    report.trees = judge(trees, &gone, |name| begun.get(name).copied().unwrap_or(start));
    // Whoever still has an application to ask ends it in good order.
    if let Some(mut last) = next.or((killer == Killer::Stop || killer == Killer::GuardsKilled).then_some(app)) {
        quit(&mut last)?;
    }
    if report.trees.iter().all(|ended| ended.left.survivors() == 0) {
        report.strays = strays();
    }
    Ok(report)
}

pub(super) fn no_runtime(state: &Value) -> bool {
    state["runtimes"].as_object().is_some_and(serde_json::Map::is_empty)
}

/// Whoever could act on the end of another is stopped first, so that none can.
fn kill_at_once(app: &App, guards: &[Row]) {
    for signal in [Signal::STOP, Signal::KILL] {
        for row in guards {
            strike(row.pid, row.start_ticks, signal);
        }
        strike(app.pid(), app.start_ticks, signal);
    }
}

/// Starts it on the same folder; the runtimes of the run before are accounted for when this returns.
pub fn again(root: &Path, programs: &Programs, before: &App) -> Result<App> {
    let old = App::runtimes(&before.engine.state);
    let mut next = App::start(root, programs)?;
    let accounted = |state: &Value| {
        let now = App::runtimes(state);
        !state.is_null() && old.values().all(|id| !now.values().any(|it| it == id))
    };
    yes(next.engine.until("account of the earlier runtimes", accounted)?)?;
    Ok(next)
}

/// A turn that hangs is not waited for: a quit, and then a forced one.
pub(super) fn quit(app: &mut App) -> Result<()> {
    for _ in 0..2 {
        strike(app.pid(), app.start_ticks, Signal::TERM);
    }
    app.engine.wait_exit().map(drop)
}

/// What lives below this process although nothing should.
pub(super) fn strays() -> Vec<String> {
    let none = wait::until_within(Duration::from_secs(1), "end of the round", || {
        process::descendants(process::me()).is_empty().then_some(())
    });
    if none.is_ok() {
        return Vec::new();
    }
    let left = process::descendants(process::me());
    left.iter().map(|row| format!("{} {}", row.pid, process::command_line(row.pid))).collect()
}

/// A supervisor that knows process groups only, and its input, whose end it takes for an order to stop.
struct Group {
    child: Child,
    input: Option<ChildStdin>,
    start_ticks: u64,
}

fn baseline(root: &Path, programs: &Programs, killer: Killer, trees: &Trees) -> Result<Report> {
    let mut groups = Vec::new();
    for (shape, tree) in trees.values() {
        let mut command = Command::new(&programs.group_only);
        command.arg(&programs.hostile).args(["agent", shape.name()]).arg(&tree.folder).arg(tree.mark());
        command.env_clear().current_dir(root).stdin(Stdio::piped());
        let mut child = bury::keep(|| {
            let child = command.spawn().context("starting the baseline")?;
            Ok((i32::try_from(child.id())?, child))
        })?;
        let input = child.stdin.take();
        let start_ticks = process::row(i32::try_from(child.id())?).context("the baseline is gone already")?.start_ticks;
        groups.push(Group { child, input, start_ticks });
    }
    wait::until("all trees", || trees.values().all(|(_, tree)| tree.is_complete()).then_some(()))?;
    let start = Instant::now();
    let (gone, ()) = watched(trees, killer.limit(), || {
        for group in &mut groups {
            if killer == Killer::GroupStopped {
                group.input = None;
            } else {
                strike(i32::try_from(group.child.id())?, group.start_ticks, Signal::KILL);
            }
        }
        for group in &mut groups {
            group.child.wait()?;
        }
        Ok(((), false))
    })?;
    Ok(Report { killer, trees: judge(trees, &gone, |_| start), strays: Vec::new() })
}
