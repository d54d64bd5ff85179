//! Tells Tauri which commands exist, and sees that there is a page to embed.

use std::{fs, path::Path};

/// Every command of ours: each needs a permission in `capabilities/`, or no window can call it.
const COMMANDS: &[&str] = &include!("commands.in");

/// What stands in the page's place until it was built.
const PLACEHOLDER: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Turnkeep</title>\
    <!-- placeholder --><p>The interface is not built yet. Run <code>cargo xtask run</code>.</p></html>\n";

fn main() {
    println!("cargo::rerun-if-changed=commands.in");
    println!("cargo::rerun-if-changed=../ui/dist");
    let page = Path::new("../ui/dist/index.html");
    if !page.exists() {
        // So that everything but the page can be checked and tested in a fresh clone.
        fs::create_dir_all("../ui/dist").expect("ui/dist can be made");
        fs::write(page, PLACEHOLDER).expect("ui/dist/index.html can be written");
    }
    let placeholder = fs::read_to_string(page).is_ok_and(|text| text.contains("<!-- placeholder -->"));
    if placeholder {
        println!("cargo::warning=ui/dist is not built: the window will say so. `cargo xtask run` builds it");
        assert!(
            std::env::var("PROFILE").as_deref() != Ok("release"),
            "a release needs the interface: build it with `npm --prefix ui ci && npm --prefix ui run build`, or `cargo xtask run`"
        );
    }
    let manifest = tauri_build::AppManifest::new().commands(COMMANDS);
    tauri_build::try_build(tauri_build::Attributes::new().app_manifest(manifest)).expect("Tauri's build step");
}
