//! The WebDriver client on a page of its own, in a stock browser with the same engine as the application's window.

use std::fs;

use harness::desktop::{Desktop, Keyring, Notifier, Options, Tray};
use harness::webdriver::{Inspector, Window, stock_browser};
use serde_json::json;

const PAGE: &str = r##"<!doctype html><title>A page</title>
<input id="name" aria-label="name"><button id="greet">Greet</button><p id="greeting"></p>
<script>
document.querySelector("#greet").onclick = () => setTimeout(() => {
  document.querySelector("#greeting").textContent = "Hello, " + document.querySelector("#name").value;
}, 100);
</script>"##;

#[test]
fn a_page_is_read_typed_into_and_clicked() {
    let options = Options { tray: Tray::None, keyring: Keyring::None, notifier: Notifier::None, ..Options::default() };
    let desktop = Desktop::start(options).unwrap();
    let page = desktop.home().join("page.html");
    fs::write(&page, PAGE).unwrap();
    let inspector = Inspector::new().unwrap();
    let mut browser = stock_browser(&desktop, inspector, &page).unwrap();
    let window = Window::attach(&desktop, inspector).unwrap();
    window.navigate(&format!("file://{}", page.display())).unwrap();

    let name = window.wait_for("#name").unwrap();
    window.type_into(&name, "Ada").unwrap();
    assert_eq!(window.property(&name, "value").unwrap(), json!("Ada"));
    assert_eq!(window.attribute(&name, "aria-label").unwrap().as_deref(), Some("name"));
    window.click_on("#greet").unwrap();
    let greeting = window.wait_for_text("#greeting", "Hello, Ada").unwrap();
    assert_eq!(window.text(&greeting).unwrap(), "Hello, Ada");
    window.clear(&name).unwrap();
    assert_eq!(window.property(&name, "value").unwrap(), json!(""));
    assert_eq!(window.execute("return arguments[0] + 1", &[json!(1)]).unwrap(), json!(2));
    let later = "const done = arguments[arguments.length - 1]; setTimeout(() => done('late'), 10)";
    assert_eq!(window.execute_async(later, &[]).unwrap(), json!("late"));
    assert!(window.execute("throw new Error('planted')", &[]).is_err());
    assert_eq!(window.find("#nothing").unwrap(), None);
    window.wait_until("title", "return document.title === 'A page'").unwrap();
    let picture = desktop.folder().join("page.png");
    window.screenshot(&picture).unwrap();
    assert_eq!(&fs::read(picture).unwrap()[1..4], b"PNG");
    window.detach().unwrap();
    browser.kill().unwrap();
    browser.wait().unwrap();
}
