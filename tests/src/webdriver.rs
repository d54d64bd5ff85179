//! Drives the web view of an application that is already running, as WebDriver defines it, over plain HTTP on loopback.
//!
//! It attaches and never starts the application: its environment, log, pid and exit stay the test's own. One session lives
//! as long as the application's first window.

mod client;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::desktop::Desktop;
use crate::wait;
use client::Client;

/// The key under which WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The two variables that make the application's web view drivable, on a port of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspector {
    port: u16,
}

impl Inspector {
    /// Reserves a port.
    pub fn new() -> Result<Self> {
        Ok(Self { port: free_port()? })
    }

    /// To be given to the application.
    #[must_use]
    pub fn env(self) -> [(&'static str, String); 2] {
        [("TAURI_WEBVIEW_AUTOMATION", "true".to_owned()), ("WEBKIT_INSPECTOR_SERVER", format!("127.0.0.1:{}", self.port))]
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
    Ok(listener.local_addr()?.port())
}

/// A session with the application's window.
#[derive(Debug)]
pub struct Window {
    client: Client,
    session: String,
    driver: Driver,
}

#[derive(Debug)]
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended with the application.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An element of the page, found once: it is stale when the page has drawn another in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element(String);

impl Window {
    /// Attaches to the window of the application that was given `inspector`'s variables; waits until there is one.
    pub fn attach(desktop: &Desktop, inspector: Inspector) -> Result<Self> {
        let port = free_port()?;
        let driver = desktop
            .command("WebKitWebDriver")
            .arg(format!("--port={port}"))
            .arg(format!("--target=127.0.0.1:{}", inspector.port))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting WebKitWebDriver, of the package webkit2gtk-driver")?;
        let driver = Driver(driver);
        let client = Client::new(port);
        wait::until("answer of WebKitWebDriver", || client.get("/status").ok())?;
        let wanted = json!({ "capabilities": { "alwaysMatch": {} } });
        // Refused until the application has a window; nothing tells when that is.
        let mut refusal = None;
        let made = wait::until("WebDriver session", || match client.post("/session", &wanted) {
            Ok(made) => Some(made),
            Err(error) => {
                refusal = Some(error);
                None
            }
        });
        let made = made.with_context(|| format!("the last refusal was: {refusal:?}"))?;
        let id = made["sessionId"].as_str().context("the session has no id")?;
        Ok(Self { client, session: format!("/session/{id}"), driver })
    }

    /// Opens another page.
    pub fn navigate(&self, to: &str) -> Result<()> {
        self.post("url", &json!({ "url": to })).map(|_| ())
    }

    /// The element that `css` selects, or nothing.
    pub fn find(&self, css: &str) -> Result<Option<Element>> {
        Ok(self.find_all(css)?.into_iter().next())
    }

    /// Every element that `css` selects, in the page's order.
    pub fn find_all(&self, css: &str) -> Result<Vec<Element>> {
        let found = self.post("elements", &json!({ "using": "css selector", "value": css }))?;
        let found = found.as_array().context("no list of elements")?;
        found.iter().map(|one| Ok(Element(one[ELEMENT].as_str().context("an element has no id")?.to_owned()))).collect()
    }

    /// Waits for an element.
    pub fn wait_for(&self, css: &str) -> Result<Element> {
        wait::until(&format!("element {css}"), || self.find(css).ok()?).with_context(|| self.page())
    }

    /// Waits until the visible text of an element that `css` selects holds `text`; gives that element.
    pub fn wait_for_text(&self, css: &str, text: &str) -> Result<Element> {
        wait::until(&format!("text {text:?} in {css}"), || {
            let all = self.find_all(css).ok()?;
            all.into_iter().find(|one| self.text(one).is_ok_and(|shown| shown.contains(text)))
        })
        .with_context(|| self.page())
    }

    /// Waits until no element is selected by `css`.
    pub fn wait_gone(&self, css: &str) -> Result<()> {
        wait::until(&format!("page without {css}"), || self.find_all(css).ok()?.is_empty().then_some(()))
    }

    /// A click in the middle of an element, as a person sees it.
    pub fn click(&self, element: &Element) -> Result<()> {
        self.post(&format!("element/{}/click", element.0), &json!({})).map(|_| ())
    }

    /// Waits for an element and clicks it.
    pub fn click_on(&self, css: &str) -> Result<()> {
        let element = self.wait_for(css)?;
        self.click(&element).with_context(|| format!("clicking {css}"))
    }

    /// Types into an element. Keys without a character are in Unicode's private area: U+E007 is Enter.
    pub fn type_into(&self, element: &Element, text: &str) -> Result<()> {
        self.post(&format!("element/{}/value", element.0), &json!({ "text": text })).map(|_| ())
    }

    /// Empties a field.
    pub fn clear(&self, element: &Element) -> Result<()> {
        self.post(&format!("element/{}/clear", element.0), &json!({})).map(|_| ())
    }

    /// The text as it is laid out. Not WebDriver's own notion of it, which leaves out what is clipped to one line.
    pub fn text(&self, element: &Element) -> Result<String> {
        Ok(self.property(element, "innerText")?.as_str().unwrap_or_default().to_owned())
    }

    /// An attribute as it is written in the page.
    pub fn attribute(&self, element: &Element, name: &str) -> Result<Option<String>> {
        let value = self.get(&format!("element/{}/attribute/{name}", element.0))?;
        Ok(value.as_str().map(str::to_owned))
    }

    /// A property of the element's object, such as `value`.
    pub fn property(&self, element: &Element, name: &str) -> Result<Value> {
        self.get(&format!("element/{}/property/{name}", element.0))
    }

    /// Runs a function body in the page; `arguments[0]` and so on are `arguments`.
    pub fn execute(&self, script: &str, arguments: &[Value]) -> Result<Value> {
        self.post("execute/sync", &json!({ "script": script, "args": arguments }))
    }

    /// As [`Self::execute`], for a body that calls its last argument with the result when it has it.
    pub fn execute_async(&self, script: &str, arguments: &[Value]) -> Result<Value> {
        self.post("execute/async", &json!({ "script": script, "args": arguments }))
    }

    /// Waits until a script gives something else than null and false.
    pub fn wait_until(&self, what: &str, script: &str) -> Result<Value> {
        wait::until(what, || {
            let value = self.execute(script, &[]).ok()?;
            (!value.is_null() && value != Value::Bool(false)).then_some(value)
        })
        .with_context(|| self.page())
    }

    /// Writes what the page shows to a PNG file, once what changed last is painted.
    pub fn screenshot(&self, path: &Path) -> Result<()> {
        // A page that nobody can see paints no frames.
        let painted =
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done)); setTimeout(done, 500)";
        self.execute_async(painted, &[])?;
        let taken = self.get("screenshot")?;
        let picture = client::from_base64(taken.as_str().context("no screenshot")?)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, picture).with_context(|| format!("writing {}", path.display()))
    }

    /// What the page says, for the message of a failed wait.
    fn page(&self) -> String {
        let script = "return document.title + ': ' + document.body.innerText";
        match self.execute(script, &[]) {
            Ok(text) => format!("the page shows {text}"),
            Err(error) => format!("the page cannot be read: {error:#}"),
        }
    }

    fn get(&self, path: &str) -> Result<Value> {
        self.client.get(&format!("{}/{path}", self.session))
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.client.post(&format!("{}/{path}", self.session), body)
    }

    /// Ends the session; the window stays.
    pub fn detach(mut self) -> Result<()> {
        self.client.delete(&self.session)?;
        let ended = wait::until_within(Duration::from_millis(200), "end of the driver", || self.driver.0.try_wait().ok()?);
        // It serves on after a session; its drop ends it.
        drop(ended);
        Ok(())
    }
}

/// A page of markup in a stock browser of the same engine, for tests of this driver.
pub fn stock_browser(desktop: &Desktop, inspector: Inspector, page: &Path) -> Result<Child> {
    let found = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"]
        .map(|folder| Path::new(folder).join("webkit2gtk-4.1/MiniBrowser"));
    let Some(program) = found.iter().find(|program| program.exists()) else {
        bail!("there is no MiniBrowser in {found:?}");
    };
    let mut command: Command = desktop.command(program);
    command.envs(inspector.env()).arg("--automation").arg(page).spawn().context("starting MiniBrowser")
}
