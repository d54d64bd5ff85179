use std::process::{Command, Stdio};

use super::*;

#[test]
fn a_name_with_a_parenthesis_is_read() {
    let mut fields = vec!["S", "7"];
    fields.extend(["0"; 17]);
    fields.push("4242");
    let line = format!("12 (a) b (c) {}", fields.join(" "));
    let row = parse_stat(&line).unwrap();
    assert_eq!((row.pid, row.parent, row.state, row.start_ticks), (12, 7, 'S', 4242));
    assert_eq!(row.name, "a) b (c");
}

#[test]
fn a_descendant_is_found_and_its_end_is_seen() {
    let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).stdin(Stdio::null()).spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let sleeper = wait::until("grandchild", || descendants(pid).into_iter().find(|row| row.name == "sleep")).unwrap();
    assert!(descendants(me()).iter().any(|row| row.pid == sleeper.pid));
    assert!(pss_kib(pid).unwrap() > 0);

    // Negative control: a process that lives is not reported as gone.
    assert!(wait_gone(sleeper.pid, sleeper.start_ticks, Duration::from_millis(30)).is_err());
    assert!(signal_own(sleeper.pid, sleeper.start_ticks, Signal::KILL).unwrap());
    wait_gone(sleeper.pid, sleeper.start_ticks, wait::PATIENCE).unwrap();
    child.wait().unwrap();
}

#[test]
fn another_start_time_is_another_process_and_is_not_signalled() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let ticks = row(pid).unwrap().start_ticks;
    assert!(!signal_own(pid, ticks + 1, Signal::KILL).unwrap());
    wait_gone(pid, ticks + 1, Duration::from_millis(1)).unwrap();
    assert!(!signal_own(1, row(1).unwrap().start_ticks, Signal::CONT).unwrap(), "pid 1 is not ours");
    assert!(signal_own(pid, ticks, Signal::KILL).unwrap());
    child.wait().unwrap();
}
