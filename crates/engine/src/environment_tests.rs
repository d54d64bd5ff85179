use super::*;

fn environment(pairs: &[(&str, &str)]) -> Environment {
    let variables = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Environment { variables, fallback: None }
}

#[test]
fn a_child_gets_what_is_listed_and_no_secret() {
    let given = environment(&[
        ("PATH", "/bin"),
        ("LC_ALL", "C"),
        ("OPENAI_API_KEY", "sk-canary"),
        ("GITHUB_TOKEN", "canary"),
        ("MISE_GITHUB_TOKEN", "canary"),
        ("AGENT_HOME", "/c"),
        ("AGENT_API_KEY", "canary"),
        ("SOMETHING", "else"),
    ]);
    let got = given.handed_on(&["AGENT_"]);
    assert_eq!(got.keys().collect::<Vec<_>>(), ["AGENT_HOME", "LC_ALL", "PATH"]);
}

#[test]
fn values_with_line_ends_are_whole_and_what_is_no_variable_is_left_out() {
    let text = b"A=1\0FUNC=() {\n x=1\n}\0\nnoise\0=empty\0B=a=b\0C=\xff\0";
    let found = parse(text);
    assert_eq!(found.get("A").map(String::as_str), Some("1"));
    assert_eq!(found.get("FUNC").map(String::as_str), Some("() {\n x=1\n}"));
    assert_eq!(found.get("B").map(String::as_str), Some("a=b"));
    assert_eq!(found.len(), 3);
}

#[test]
fn each_shell_gets_flags_that_it_knows() {
    assert_eq!(arguments(Path::new("/bin/bash"), "x"), ["-l", "-i", "-c", "x"]);
    assert_eq!(arguments(Path::new("/bin/dash"), "x"), ["-l", "-c", "x"]);
    assert_eq!(arguments(Path::new("/usr/bin/nu"), "x"), ["--login", "--commands", "x"]);
    assert_eq!(arguments(Path::new("/usr/bin/pwsh"), "x"), ["-Login", "-NonInteractive", "-Command", "x"]);
}

#[test]
fn the_newest_version_is_searched_first_and_own_places_before_the_usual_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    for version in ["v9.1.0", "v22.11.0", "v22.9.1"] {
        std::fs::create_dir_all(folder.path().join(".nvm/versions/node").join(version)).expect("made");
    }
    let home = folder.path().to_str().expect("UTF-8");
    let path = environment(&[("HOME", home), ("PATH", "/own:relative:/own")]).search_path();
    assert_eq!(path[0], Path::new("/own"));
    assert_eq!(path.iter().filter(|it| *it == Path::new("/own")).count(), 1);
    assert!(!path.contains(&PathBuf::from("relative")));
    let nvm: Vec<_> = path.iter().filter(|it| it.to_string_lossy().contains(".nvm")).collect();
    assert!(nvm[0].ends_with("v22.11.0/bin") && nvm[2].ends_with("v9.1.0/bin"), "{nvm:?}");
}

#[cfg(unix)]
mod with_a_shell {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn shell(folder: &Path, script: &str) -> PathBuf {
        let path = folder.join("bash");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        path
    }

    async fn ask_shell(script: &str) -> Result<BTreeMap<String, String>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let shell = shell(folder.path(), script);
        let spawner = Spawner::start();
        let own = environment(&[("HOME", folder.path().to_str().expect("UTF-8")), ("PATH", "/usr/bin:/bin")]);
        let marker = format!("test-{}-{}", std::process::id(), folder.path().display());
        ask(&spawner, &shell, &own, &marker).await
    }

    #[tokio::test]
    async fn what_a_profile_prints_is_not_taken_for_the_environment() {
        let found = ask_shell("echo PATH=/wrong; printf 'no line end'; export FROM_PROFILE='a\nb'; eval \"$4\"; echo AFTER=1")
            .await
            .expect("an environment");
        assert_eq!(found.get("FROM_PROFILE").map(String::as_str), Some("a\nb"));
        assert_eq!(found.get("PATH").map(String::as_str), Some("/usr/bin:/bin"));
        assert!(!found.contains_key("AFTER"));
    }

    #[tokio::test]
    async fn a_shell_that_says_nothing_is_given_up() {
        assert_eq!(ask_shell("exit 3").await, Err("did not say its environment".to_owned()));
    }

    #[tokio::test]
    async fn a_profile_that_waits_for_ever_is_ended_with_all_that_it_began() {
        let begun = std::time::Instant::now();
        let why = ask_shell("(trap '' TERM; sleep 600) & sleep 600").await.expect_err("no answer");
        assert!(why.contains("5 s"), "{why}");
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
