use super::*;

#[test]
fn files_are_bounded_in_size_and_in_number_and_no_line_is_torn() {
    let folder = tempfile::tempdir().unwrap();
    let mut rolling = Rolling::open(folder.path(), 1_000, 3).unwrap();
    for number in 0..500 {
        rolling.write_all(format!("line {number:>5} {}\n", "x".repeat(80)).as_bytes()).unwrap();
    }
    let mut names: Vec<String> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["turnkeep.log", "turnkeep.log.1", "turnkeep.log.2", "turnkeep.log.3"]);
    let mut last = 500;
    for name in names {
        let text = fs::read_to_string(folder.path().join(&name)).unwrap();
        assert!(text.len() <= 1_000, "{name}: {}", text.len());
        for line in text.lines().rev() {
            last -= 1;
            assert!(line.starts_with(&format!("line {last:>5} ")) && line.len() == 91, "{name}: {line}");
        }
    }
}

#[test]
fn a_later_run_goes_on_in_the_same_file_and_rolls_at_the_same_size() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..4 {
        let mut rolling = Rolling::open(folder.path(), 100, 2).unwrap();
        rolling.write_all(format!("{}\n", "x".repeat(59)).as_bytes()).unwrap();
    }
    assert_eq!(fs::metadata(folder.path().join("turnkeep.log")).unwrap().len(), 60);
    assert_eq!(fs::metadata(folder.path().join("turnkeep.log.2")).unwrap().len(), 60);
    assert!(!folder.path().join("turnkeep.log.3").exists());
}

#[cfg(unix)]
#[test]
fn a_log_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let _rolling = Rolling::open(folder.path(), 100, 2).unwrap();
    let mode = fs::metadata(folder.path().join("turnkeep.log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn defects_are_counted_and_nothing_else() {
    use tracing_subscriber::layer::SubscriberExt as _;
    let before = errors();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(CountErrors), || {
        tracing::warn!("an agent misbehaves");
        tracing::info!("all is well");
        tracing::error!("a defect of ours");
    });
    assert_eq!(errors() - before, 1);
}

#[test]
fn a_line_is_json_and_holds_its_fields() {
    let folder = tempfile::tempdir().unwrap();
    {
        let (writer, _guard) = writer(folder.path()).unwrap();
        let file = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(writer);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(file), || {
            tracing::info!(session = 7, "it began");
        });
    }
    let text = fs::read_to_string(folder.path().join("turnkeep.log")).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((line["session"].as_u64(), line["message"].as_str()), (Some(7), Some("it began")));
}
