//! Commands: started as they were asked for, bounded, and gone with all that they started.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use tempfile::TempDir;
use turnkeep_agents::errand::{Command, Done, Errand, Exit, NotDoneWhy, Outcome, Screen, Task};

use super::super::{Errands, Kit};
use crate::runtime::{Spawner, become_subreaper, reap};

const PATIENCE: Duration = Duration::from_secs(30);

/// Starts something that ignores being asked to end, in a session of its own and without a parent, which then says so by a
/// file; and waits for ever.
const STUBBORN: &str =
    r#"mkfifo hold; setsid sh -c '(trap "" TERM INT HUP; mkfifo hold2; echo > up; exec cat hold2) &' & cat hold"#;

struct Ground {
    folder: TempDir,
    errands: Errands,
    marker: String,
    key: u64,
}

impl Ground {
    fn new() -> Self {
        become_subreaper();
        let folder = tempfile::tempdir().expect("a folder");
        let marker = format!("test-{}-{}", std::process::id(), folder.path().display());
        let environment = BTreeMap::from([
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ("OWN".to_owned(), "the agent's".to_owned()),
            (reap::MARKER.to_owned(), marker.clone()),
        ]);
        let kit = Kit { spawner: Spawner::start(), environment, marker: marker.clone() };
        Self { folder, errands: Errands::new(Some(kit)), marker, key: 0 }
    }

    fn begin(&mut self, task: Task) -> u64 {
        self.key += 1;
        self.errands.begin(Errand { key: self.key, task });
        self.key
    }

    /// The answer to one; those to others that come before are dropped.
    async fn answer(&mut self, key: u64) -> Outcome {
        let found = async {
            loop {
                let (of, outcome) = self.errands.next().await;
                if of == key {
                    return outcome;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("it is answered")
    }

    async fn done(&mut self, task: Task) -> Outcome {
        let key = self.begin(task);
        self.answer(key).await
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        Command {
            folder: self.folder.path().to_owned(),
            directory: self.folder.path().to_owned(),
            program: program.to_owned(),
            arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
            variables: Vec::new(),
            keep: 1 << 20,
        }
    }

    async fn start(&mut self, script: &str) {
        let command = self.command("sh", &["-c", script]);
        let started = self.done(Task::Start { terminal: "t".to_owned(), command }).await;
        assert_eq!(started, Ok(Done::Started));
    }

    async fn ended(&mut self) -> Screen {
        let Ok(Done::Screen(screen)) = self.done(Task::Await { terminal: "t".to_owned() }).await else { panic!("it ends") };
        screen
    }

    async fn family(&self) -> usize {
        reap::family(self.marker.clone(), Vec::new()).await.len()
    }

    /// Waits until a command has made this file: a process tells in no other way.
    async fn file(&self, name: &str) {
        let path = self.folder.path().join(name);
        let there = async {
            while !path.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, there).await.expect("the file comes");
    }
}

fn terminal() -> String {
    "t".to_owned()
}

#[tokio::test]
async fn a_command_runs_where_and_with_what_it_was_given() {
    let mut ground = Ground::new();
    fs::create_dir(ground.folder.path().join("below")).expect("made");
    let mut command =
        ground.command("sh", &["-c", "pwd; echo $OWN $GIVEN; echo $TURNKEEP_RUNTIME; cat; echo no input >&2; exit 3"]);
    command.directory = ground.folder.path().join("below");
    command.variables = vec![
        ("GIVEN".to_owned(), "value".to_owned()),
        // Nothing that it is given takes it out of our sight.
        (reap::MARKER.to_owned(), "other".to_owned()),
        (reap::TERMINAL.to_owned(), "other".to_owned()),
    ];
    assert_eq!(ground.done(Task::Start { terminal: terminal(), command }).await, Ok(Done::Started));
    let screen = ground.ended().await;
    let real = ground.folder.path().canonicalize().expect("real").join("below");
    let expected = format!("{}\nthe agent's value\n{}\n", real.display(), ground.marker);
    assert!(screen.text.contains(&expected), "{screen:?}");
    assert!(screen.text.contains("no input") && !screen.truncated, "{screen:?}");
    assert_eq!(screen.exit, Some(Exit { code: Some(3), signal: None }));
    assert_eq!(ground.done(Task::Look { terminal: terminal() }).await, Ok(Done::Screen(screen.clone())));
    assert_eq!(ground.done(Task::Release { terminal: terminal() }).await, Ok(Done::Screen(screen)));
    let forgotten = ground.done(Task::Look { terminal: terminal() }).await.expect_err("it is forgotten");
    assert_eq!(forgotten.why, NotDoneWhy::NotFound);
}

#[tokio::test]
async fn what_cannot_be_started_says_what_and_where() {
    let mut ground = Ground::new();
    let missing = ground.command("no-such-program", &[]);
    let missing = ground.done(Task::Start { terminal: terminal(), command: missing }).await.expect_err("it is not there");
    assert_eq!(missing.why, NotDoneWhy::NotFound);
    assert!(missing.message.contains("no-such-program"), "{}", missing.message);
    let mut outside = ground.command("true", &[]);
    outside.directory = PathBuf::from("/");
    let outside = ground.done(Task::Start { terminal: terminal(), command: outside }).await.expect_err("it is refused");
    assert_eq!(outside.why, NotDoneWhy::Refused);
    assert!(outside.message.contains("not below the session's folder"), "{}", outside.message);
}

#[tokio::test]
async fn only_the_last_part_of_much_output_is_kept() {
    let mut ground = Ground::new();
    let mut command = ground.command("sh", &["-c", "seq 1 100000"]);
    command.keep = 12;
    ground.done(Task::Start { terminal: terminal(), command }).await.expect("started");
    let screen = ground.ended().await;
    assert_eq!((screen.text.as_str(), screen.truncated), ("9999\n100000\n", true));
}

#[tokio::test]
async fn a_command_that_is_killed_takes_all_that_it_started_along_and_can_still_be_looked_at() {
    let mut ground = Ground::new();
    ground.start(&format!("echo before; {STUBBORN}")).await;
    ground.file("up").await;
    assert!(ground.family().await > 1, "it started something");
    let Ok(Done::Screen(screen)) = ground.done(Task::Kill { terminal: terminal() }).await else { panic!("it is killed") };
    assert_eq!(ground.family().await, 0, "something is left of it");
    assert_eq!(screen.exit, Some(Exit { code: None, signal: Some("SIGTERM".to_owned()) }));
    assert_eq!(screen.text, "before\n");
    assert_eq!(ground.done(Task::Look { terminal: terminal() }).await, Ok(Done::Screen(screen.clone())));
    assert_eq!(ground.done(Task::Kill { terminal: terminal() }).await, Ok(Done::Screen(screen)), "killing it again is nothing");
}

#[tokio::test]
async fn releasing_a_command_ends_it() {
    let mut ground = Ground::new();
    ground.start(STUBBORN).await;
    ground.file("up").await;
    ground.done(Task::Release { terminal: terminal() }).await.expect("released");
    assert_eq!(ground.family().await, 0);
}

#[tokio::test]
async fn a_command_in_the_background_does_not_keep_its_parent_from_having_ended() {
    let mut ground = Ground::new();
    ground.start("mkfifo hold; cat hold & echo done").await;
    let screen = ground.ended().await;
    assert_eq!((screen.text.as_str(), screen.exit), ("done\n", Some(Exit { code: Some(0), signal: None })));
    assert!(ground.family().await > 0, "it runs on until it is released");
    ground.done(Task::Release { terminal: terminal() }).await.expect("released");
    assert_eq!(ground.family().await, 0);
}

#[tokio::test]
async fn nothing_is_left_once_the_process_is_let_go_of_not_even_what_was_just_being_started() {
    let mut ground = Ground::new();
    ground.start(STUBBORN).await;
    ground.file("up").await;
    let command = ground.command("sh", &["-c", "mkfifo late; cat late"]);
    ground.begin(Task::Start { terminal: "late".to_owned(), command });
    ground.errands.shut();
    tokio::time::timeout(PATIENCE, ground.errands.gone()).await.expect("they go");
    assert_eq!(ground.family().await, 0);
    let after = ground.done(Task::Read { folder: "/".into(), path: "/x".into(), first_line: 1, lines: None }).await;
    assert_eq!(after.expect_err("nothing is done any more").why, NotDoneWhy::Failed);
}

#[tokio::test]
async fn what_is_written_and_then_read_is_read_as_it_was_written() {
    let mut ground = Ground::new();
    let (folder, path) = (ground.folder.path().to_owned(), ground.folder.path().join("a"));
    let keys: Vec<u64> = (0..20)
        .map(|count| {
            ground.begin(Task::Write { folder: folder.clone(), path: path.clone(), text: format!("text {count}") });
            ground.begin(Task::Read { folder: folder.clone(), path: path.clone(), first_line: 1, lines: None })
        })
        .collect();
    for (count, key) in keys.into_iter().enumerate() {
        assert_eq!(ground.answer(key).await, Ok(Done::Read { text: format!("text {count}") }));
    }
}
