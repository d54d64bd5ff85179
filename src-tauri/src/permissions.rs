//! Which window may call what, compared with a list that was looked at: adding to it fails until the list is changed too.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// "window permission" of every capability that the build put in.
fn granted() -> BTreeSet<String> {
    let built: Value = serde_json::from_str(&read("gen/schemas/capabilities.json")).unwrap();
    let mut pairs = BTreeSet::new();
    for (name, capability) in built.as_object().unwrap() {
        assert_eq!(capability.get("remote"), None, "{name} lets a web site in");
        assert_eq!(capability["local"], Value::Bool(true), "{name}");
        assert_eq!(capability.get("webviews"), None, "{name}");
        for window in capability["windows"].as_array().unwrap() {
            for permission in capability["permissions"].as_array().unwrap() {
                pairs.insert(format!("{} {}", window.as_str().unwrap(), permission.as_str().expect("a plain permission")));
            }
        }
    }
    pairs
}

#[test]
fn the_windows_may_call_what_the_list_says_and_nothing_else() {
    let listed: BTreeSet<String> = read("permissions.txt").lines().map(str::to_owned).collect();
    assert_eq!(granted(), listed, "look at the difference, then change permissions.txt");
}

#[test]
fn every_capability_is_named_in_the_configuration() {
    let config: Value = serde_json::from_str(&read("tauri.conf.json")).unwrap();
    let security = &config["app"]["security"];
    assert_eq!(security["capabilities"], serde_json::json!(["main-window"]));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("capabilities");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["main-window.json"]);
}

#[test]
fn the_page_can_load_nothing_but_itself() {
    let config: Value = serde_json::from_str(&read("tauri.conf.json")).unwrap();
    let app = &config["app"];
    let csp = app["security"]["csp"].as_object().unwrap();
    assert_eq!(csp["default-src"], "'none'");
    assert_eq!(csp["script-src"], "'self'");
    assert_eq!(csp["require-trusted-types-for"], "'script'");
    let text = Value::Object(csp.clone()).to_string();
    for never in ["unsafe", "*", "https:", "http://l", "ws:", "blob:"] {
        assert!(!text.contains(never), "{never} in {text}");
    }
    assert_eq!(app["withGlobalTauri"], false);
    assert_eq!(app["security"]["freezePrototype"], true);
    assert_eq!(app["security"]["assetProtocol"]["enable"], false);
    assert_eq!(app["security"].get("dangerousDisableAssetCspModification"), None);
    assert_eq!(app["windows"], serde_json::json!([]), "a window is made when somebody wants one");
}

#[test]
fn every_command_is_handled_listed_and_allowed() {
    let listed: BTreeSet<String> = serde_lines(&read("commands.in"));
    let source = ["src/commands.rs", "src/commands/look.rs", "src/own_agents.rs"].map(read).concat();
    let defined: BTreeSet<String> = source
        .split("#[tauri::command")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("fn ")?.1.split_once('(')?.0.to_owned()))
        .collect();
    let start = read("src/start.rs");
    let handler = start.split_once("generate_handler![").unwrap().1.split_once(']').unwrap().0;
    let handled: BTreeSet<String> = handler
        .split(',')
        .filter_map(|path| Some(path.trim().rsplit("::").next()?.to_owned()))
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(defined, listed);
    assert_eq!(handled, listed);
    let allowed: BTreeSet<String> = listed.iter().map(|name| format!("main allow-{}", name.replace('_', "-"))).collect();
    assert_eq!(granted(), allowed, "only our own commands, not one of Tauri's");
}

/// The quoted words of a list.
fn serde_lines(text: &str) -> BTreeSet<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}
