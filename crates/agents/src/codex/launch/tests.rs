use std::collections::BTreeMap;

use turnkeep_model::{CredentialId, port::SignInMethod};

use super::*;
use crate::port::Purpose;

const HOME: &str = "/home/sam/.local/share/turnkeep/codex/3";

fn site(kind: AccountKind) -> Site {
    let environment = [
        ("HOME", "/home/sam"),
        ("PATH", "/usr/bin:/bin"),
        ("OPENAI_API_KEY", "sk-not-for-tools"),
        ("CODEX_API_KEY", "sk-not-for-tools"),
        ("CODEX_ACCESS_TOKEN", "not-for-tools"),
        ("CODEX_THREAD_ID", "of another codex"),
        ("CODEX_HOME", "/somewhere/else"),
        ("OPENROUTER_API_KEY", "named by the person's own config"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"),
        ("XDG_RUNTIME_DIR", "/run/user/1000"),
    ];
    Site {
        credential: CredentialId(3),
        purpose: Purpose::Serve { needs_key: kind == AccountKind::ApiKey },
        kind,
        program: "/opt/codex".into(),
        system_home: "/home/sam/.codex".into(),
        private_home: HOME.into(),
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

fn settings(launch: &Launch) -> Vec<&str> {
    assert_eq!(launch.args[0], "app-server");
    assert!(launch.args[1..].chunks(2).all(|pair| pair[0] == "-c"), "{:?}", launch.args);
    launch.args[1..].chunks(2).map(|pair| pair[1].as_str()).collect()
}

#[test]
fn a_key_lives_in_memory_in_a_home_of_its_own_that_shares_the_threads() {
    let launch = launch(&site(AccountKind::ApiKey)).expect("a plan");
    assert!(settings(&launch).contains(&"cli_auth_credentials_store=\"ephemeral\""));
    assert_eq!(launch.source, CredentialSource::Vault);
    assert_eq!(launch.environment["CODEX_HOME"], HOME);
    assert_eq!(launch.environment["CODEX_SQLITE_HOME"], "/home/sam/.codex");
    assert!(!launch.environment.contains_key("DBUS_SESSION_BUS_ADDRESS"), "it needs no keychain");
    let home = launch.home.expect("a home to make");
    assert_eq!(home.path, Path::new(HOME));
    let linked: Vec<&str> = home.links.iter().map(|link| link.name.as_str()).collect();
    for shared in ["sessions", "archived_sessions", "thread-writer-locks", "config.toml"] {
        assert!(linked.contains(&shared), "{shared} must be shared");
    }
    for private in ["auth.json", "auth.lock", "tmp", "models_cache.json", "app-server-control", "session_index.jsonl"] {
        assert!(!linked.contains(&private), "{private} must not be shared");
    }
    let targets: Vec<_> = home.links.iter().map(|link| link.target.clone()).collect();
    assert!(home.make_first.iter().all(|made| targets.contains(made)), "a directory is made to be linked to");
}

#[test]
fn a_sign_in_of_its_own_lies_in_the_keychain_under_the_name_that_codex_gives_it() {
    let launch = launch(&site(AccountKind::PrivateHome)).expect("a plan");
    assert!(settings(&launch).contains(&"cli_auth_credentials_store=\"keyring\""));
    let attributes = BTreeMap::from([
        ("service".to_owned(), "Codex Auth".to_owned()),
        // The first 16 digits of the path's SHA-256, worked out by another program.
        ("username".to_owned(), "cli|ad69347733f9ad7e".to_owned()),
    ]);
    assert_eq!(launch.source, CredentialSource::KeychainItem { attributes });
    assert_eq!(launch.environment["DBUS_SESSION_BUS_ADDRESS"], "unix:path=/run/user/1000/bus");
    assert_eq!(launch.environment["XDG_RUNTIME_DIR"], "/run/user/1000");
}

#[test]
fn the_person_s_own_home_is_used_as_it_is() {
    let launch = launch(&site(AccountKind::System)).expect("a plan");
    assert!(!settings(&launch).iter().any(|setting| setting.starts_with("cli_auth_credentials_store")));
    assert_eq!(launch.home, None);
    assert_eq!(launch.environment["CODEX_HOME"], "/home/sam/.codex");
    assert!(!launch.environment.contains_key("CODEX_SQLITE_HOME"));
    assert_eq!(launch.source, CredentialSource::File { path: "/home/sam/.codex/auth.json".into() });
}

#[test]
fn no_credential_of_codex_s_and_no_mark_of_another_codex_is_passed_on() {
    for kind in [AccountKind::ApiKey, AccountKind::PrivateHome, AccountKind::System] {
        let launch = launch(&site(kind.clone())).expect("a plan");
        let names: Vec<&str> = launch.environment.keys().map(String::as_str).collect();
        for name in ["OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_THREAD_ID"] {
            assert!(!names.contains(&name), "{name} with {kind:?}");
        }
        assert!(names.contains(&"OPENROUTER_API_KEY"), "what the person's own model provider needs stays");
        assert!(!format!("{launch:?}").contains("not-for-tools"));
    }
}

#[test]
fn every_start_is_quiet_and_lets_go_of_threads_at_once() {
    for kind in [AccountKind::ApiKey, AccountKind::PrivateHome, AccountKind::System] {
        let launch = launch(&site(kind.clone())).expect("a plan");
        let settings = settings(&launch);
        for setting in [
            "check_for_update_on_startup=false",
            "analytics.enabled=false",
            "thread_unload_delay_secs=0",
            "features.secret_auth_storage=false",
            "features.daemon_auto_start=false",
        ] {
            assert!(settings.contains(&setting), "{setting} with {kind:?}");
        }
        assert!(!settings.iter().any(|setting| setting.starts_with("model")), "the model is the person's choice");
    }
}

#[test]
fn databases_that_the_person_has_moved_stay_where_they_are() {
    let mut site = site(AccountKind::PrivateHome);
    site.environment.insert("CODEX_SQLITE_HOME".to_owned(), "/fast/disk".to_owned());
    assert_eq!(launch(&site).expect("a plan").environment["CODEX_SQLITE_HOME"], "/fast/disk");
}

#[test]
fn a_private_home_that_is_the_person_s_own_is_refused() {
    let mut site = site(AccountKind::PrivateHome);
    site.private_home.clone_from(&site.system_home);
    assert!(launch(&site).is_err());
}

#[test]
fn signing_in_is_started_as_serving_is() {
    let mut site = site(AccountKind::PrivateHome);
    let serving = launch(&site).expect("a plan");
    site.purpose = Purpose::SignIn { method: SignInMethod::DeviceCode };
    assert_eq!(launch(&site).expect("a plan"), serving);
}

#[cfg(unix)]
#[test]
fn a_path_that_is_no_text_is_refused_with_its_name() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut site = site(AccountKind::PrivateHome);
    site.private_home = Path::new(std::ffi::OsStr::from_bytes(b"/home/\xff/codex")).to_owned();
    let Err(error) = launch(&site) else { panic!("refused") };
    assert!(error.to_string().contains("UTF-8"), "{error}");
}
