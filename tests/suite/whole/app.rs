//! The application under test, and what a person does with it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use harness::browser::Browser;
use harness::desktop::{Desktop, Keyring, Notification, Notifier, OpenWindow, Options, Picture, Tray};
use harness::fake_agent::{FakeAgent, Script};
use harness::mock_model::MockModel;
use harness::process::{self, Row};
use harness::webdriver::{Inspector, Window};
use harness::{real_codex, wait};

/// The title of the application's window begins with this.
const TITLE: &str = "Turnkeep";
/// What the test's person has in the keychain after [`App::sign_in_with_key`].
pub(crate) const KEY: &str = "sk-canary-7d1f2c9b-KEY1";

/// What the person's computer looks like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) keyring: Keyring,
    pub(crate) tray: Tray,
    pub(crate) notifier: Notifier,
    /// Whether `codex` is found by the login shell.
    pub(crate) codex: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self { keyring: Keyring::Unlocked, tray: Tray::Panel, notifier: Notifier::Dunst, codex: true }
    }
}

/// The running application. Dropping it ends the desktop, and everything in it.
#[derive(Debug)]
pub(crate) struct App {
    // Before the desktop, so that the driver ends first.
    pub(crate) window: Option<Window>,
    child: Option<Child>,
    inspector: Inspector,
    pub(crate) mock: MockModel,
    pub(crate) browser: Browser,
    pub(crate) desktop: Desktop,
}

impl App {
    /// A computer with the application on it, not started yet.
    pub(crate) fn prepare(setup: Setup) -> Result<Self> {
        let desktop =
            Desktop::start(Options { keyring: setup.keyring, tray: setup.tray, notifier: setup.notifier, ..Options::default() })?;
        let mock = MockModel::start()?;
        real_codex::write_config(&desktop.home().join(".codex"), &mock, real_codex::Account::SignedIn)?;
        // As a version manager does it: the program is on the PATH of a login shell, and of nothing else.
        let mut profile = String::new();
        if setup.codex {
            let folder = real_codex::folder_in(&desktop.home().join("tools"))?;
            profile.push_str(&format!("export PATH=\"{}:$PATH\"\n", folder.display()));
        }
        for (name, value) in real_codex::env(&mock) {
            profile.push_str(&format!("export {name}='{value}'\n"));
        }
        fs::write(desktop.home().join(".bash_profile"), profile)?;
        fs::create_dir_all(desktop.home().join("project"))?;
        let browser = Browser::install(&desktop.home().join("browser"))?;
        Ok(Self { window: None, child: None, inspector: Inspector::new()?, mock, browser, desktop })
    }

    /// Puts the scripted agent where the real one would be found.
    pub(crate) fn install_fake_agent(&self, script: &Script) -> Result<FakeAgent> {
        let program = Path::new(env!("CARGO_BIN_EXE_fake_agent"));
        let fake = FakeAgent::install(program, &self.desktop.home().join("fake"), script)?;
        let profile = self.desktop.home().join(".bash_profile");
        let line = format!("export PATH=\"{}:$PATH\"\n", fake.bin().display());
        fs::write(&profile, fs::read_to_string(&profile)? + &line)?;
        Ok(fake)
    }

    /// Runs a test on a computer on which the application has just been started. What went wrong comes with a picture of
    /// the screen in `artifacts` and the application's last words.
    pub(crate) fn run(setup: Setup, test: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        Self::run_prepared(Self::prepare(setup)?, |app| app.launch(&[]).and_then(|()| test(app)))
    }

    /// As [`Self::run`], with the scripted agent in the place of the real one.
    pub(crate) fn run_with_fake(script: &Script, test: impl FnOnce(&mut Self, &FakeAgent) -> Result<()>) -> Result<()> {
        let app = Self::prepare(Setup { codex: false, ..Setup::default() })?;
        let fake = app.install_fake_agent(script)?;
        Self::run_prepared(app, |app| app.launch(&[]).and_then(|()| test(app, &fake)))
    }

    /// As [`Self::run`], on a computer that the test has made ready; the test starts the application.
    pub(crate) fn run_prepared(mut app: Self, test: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let outcome = test(&mut app).and_then(|()| app.check_log());
        outcome.with_context(|| {
            let name = format!("failed-{}", std::thread::current().name().unwrap_or("test").replace("::", "-"));
            let picture =
                app.picture(&name).map_or_else(|error| format!("no picture: {error:#}"), |()| format!("artifacts/{name}.png"));
            let log = fs::read_to_string(app.desktop.logs().join("turnkeep.log")).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(40)..].join("\n");
            format!("the screen: {picture}\nthe application's last words:\n{last}\nwhat went wrong:")
        })
    }

    /// Starts the application, and waits until its tray icon is there.
    pub(crate) fn launch(&mut self, arguments: &[&str]) -> Result<()> {
        self.spawn(arguments, &[])?;
        wait::until("tray icon of the application", || self.desktop.tray_item().ok())?;
        Ok(())
    }

    /// Starts the application with more in its environment, and waits for nothing.
    pub(crate) fn spawn(&mut self, arguments: &[&str], more: &[(&str, &str)]) -> Result<()> {
        self.window = None;
        self.inspector = Inspector::new()?;
        let log = fs::File::options().create(true).append(true).open(self.desktop.logs().join("turnkeep.log"))?;
        // A signal that is ignored stays so over the exec: a file that may not grow is an error to it, and not its end.
        let mut command = self.desktop.command("sh");
        command
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(program()?)
            .args(arguments)
            .env("SHELL", "/bin/bash")
            .env("TURNKEEP_LOG", "info,turnkeep=debug,turnkeep_engine=debug")
            .env_remove("TURNKEEP_HOME")
            .env("PATH", format!("{}:{}", self.browser.bin().display(), self.desktop.env()["PATH"]))
            .envs(self.inspector.env())
            .envs(more.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.child = Some(command.spawn().context("starting the application")?);
        Ok(())
    }

    /// The pid of the application.
    pub(crate) fn pid(&self) -> Result<i32> {
        let child = self.child.as_ref().context("the application was not started")?;
        Ok(i32::try_from(child.id())?)
    }

    /// Ends the application without a warning.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let mut child = self.child.take().context("the application was not started")?;
        child.kill()?;
        child.wait()?;
        self.window = None;
        Ok(())
    }

    /// Waits until the application has ended by itself; its exit code.
    pub(crate) fn wait_exit(&mut self) -> Result<i32> {
        let mut child = self.child.take().context("the application was not started")?;
        let status = wait::until_within(Duration::from_secs(30), "end of the application", || child.try_wait().ok().flatten())?;
        status.code().context("the application was ended by a signal")
    }

    // ---- the window --------------------------------------------------------------------------

    /// The window that is open, to be driven.
    pub(crate) fn page(&self) -> Result<&Window> {
        self.window.as_ref().context("no window was opened")
    }

    /// Clicks the tray icon, and takes hold of the window that comes.
    pub(crate) fn open_window(&mut self) -> Result<()> {
        self.desktop.click_tray_icon(harness::desktop::Button::Left)?;
        self.attach()?;
        // Who clicks wants to type: what the person looks at depends on it.
        wait::until("window with the keyboard", || self.find_window().filter(|window| window.active)).map(|_| ())
    }

    /// Takes hold of the window that is there or comes.
    pub(crate) fn attach(&mut self) -> Result<()> {
        self.wait_window()?;
        self.window = Some(Window::attach(&self.desktop, self.inspector)?);
        self.page()?.wait_for("main, nav")?;
        Ok(())
    }

    /// Waits for the application's window, whatever it says after its name.
    pub(crate) fn wait_window(&self) -> Result<OpenWindow> {
        wait::until("window of the application", || self.find_window())
    }

    /// The application's window, if there is one.
    pub(crate) fn find_window(&self) -> Option<OpenWindow> {
        self.desktop.windows().ok()?.into_iter().find(|window| window.title.contains(TITLE) && window.visible)
    }

    /// Closes the window as a person does, and waits until nothing of a browser is left but what Tauri keeps.
    pub(crate) fn close_window(&mut self) -> Result<()> {
        let window = self.wait_window()?;
        if let Some(page) = self.window.take() {
            page.detach()?;
        }
        self.desktop.close_window(&window)?;
        wait::until("end of the web process", || self.web_processes().ok()?.is_empty().then_some(()))?;
        ensure!(self.find_window().is_none(), "the window is still there");
        Ok(())
    }

    /// Processes that render a page for the application.
    pub(crate) fn web_processes(&self) -> Result<Vec<Row>> {
        Ok(process::web_processes(self.pid()?))
    }

    /// Clicks what has this test id.
    pub(crate) fn click(&self, id: &str) -> Result<()> {
        self.page()?.click_on(&test_id(id)).with_context(|| format!("clicking {id}"))
    }

    /// Types into what has this test id, after what is there.
    pub(crate) fn type_into(&self, id: &str, text: &str) -> Result<()> {
        let field = self.page()?.wait_for(&test_id(id))?;
        self.page()?.type_into(&field, text).with_context(|| format!("typing into {id}"))
    }

    /// Waits until an element with this test id contains the text.
    pub(crate) fn see(&self, id: &str, text: &str) -> Result<()> {
        self.page()?.wait_for_text(&test_id(id), text).map(|_| ())
    }

    /// Waits for an account's row in the settings to be in this state.
    pub(crate) fn see_account(&self, state: &str) -> Result<()> {
        let row = format!("[data-testid=account][data-state={state}]");
        self.page()?.wait_for(&row).map(|_| ())
    }

    /// Keeps a picture of the whole screen, for people to look at. The first paint of a window comes some time after the
    /// window, and nothing tells when.
    pub(crate) fn picture(&self, name: &str) -> Result<()> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../artifacts");
        fs::create_dir_all(&folder)?;
        if let Some(page) = &self.window {
            // As the page is now: the screen may be some frames behind it.
            page.screenshot(&folder.join(format!("{name}-page.png")))?;
        }
        let file = folder.join(format!("{name}.png"));
        let picture = wait::until_within(Duration::from_secs(5), "painted window", || {
            let picture = self.desktop.picture().ok()?;
            let painted = self.find_window().is_none_or(|window| is_painted(&picture, &window));
            painted.then_some(picture)
        });
        match picture {
            Ok(picture) => picture.save(&file),
            Err(_) => self.desktop.screenshot(&file),
        }
    }

    /// Keeps a picture of the screen once a notification is on it.
    pub(crate) fn picture_of_notification(&self, name: &str) -> Result<()> {
        wait::until("notification on the screen", || (self.desktop.displayed_count().ok()? > 0).then_some(()))?;
        self.picture(name)
    }

    // ---- what a person does often --------------------------------------------------------------

    /// Passes the welcome, if it is shown.
    pub(crate) fn pass_welcome(&self) -> Result<()> {
        let page = self.page()?;
        wait::until("welcome or list", || {
            (page.find(&test_id("first-run")).ok()?.is_some() || page.find(&test_id("session-list")).ok()?.is_some())
                .then_some(())
        })?;
        if page.find(&test_id("first-run"))?.is_some() {
            self.click("skip-first-run")?;
        }
        page.wait_for(&test_id("session-list")).map(|_| ())
    }

    /// Signs in with an API key, in the settings.
    pub(crate) fn sign_in_with_key(&self) -> Result<()> {
        self.click("open-settings")?;
        self.click("add-account")?;
        self.click("method-apiKey")?;
        self.type_into("sign-in-label", "work")?;
        self.type_into("sign-in-key", KEY)?;
        self.click("sign-in-start")?;
        self.see_account("signedIn")?;
        self.page()?.wait_gone("dialog[open]")?;
        self.click("settings-back")
    }

    /// Makes a session in the person's project folder.
    pub(crate) fn new_session(&self, title: &str) -> Result<()> {
        self.click("new-session")?;
        self.fill_new_session(title)
    }

    /// As [`Self::new_session`], of the provider with this id; more than one is there to choose from.
    pub(crate) fn new_session_of(&self, provider: &str, title: &str) -> Result<()> {
        self.click("new-session")?;
        self.page()?.wait_for(&test_id("new-provider"))?;
        let choose = "const e = document.querySelector(arguments[0]); e.value = arguments[1];\
                      e.dispatchEvent(new Event('change', { bubbles: true }));";
        self.page()?.execute(choose, &[test_id("new-provider").into(), provider.into()])?;
        self.fill_new_session(title)
    }

    fn fill_new_session(&self, title: &str) -> Result<()> {
        // The folder of the last session stands there already.
        let folder = self.page()?.wait_for(&test_id("new-folder"))?;
        self.page()?.clear(&folder)?;
        self.type_into("new-folder", &self.project().display().to_string())?;
        self.type_into("new-title", title)?;
        self.click("new-create")?;
        self.see("session-title", title)?;
        self.page()?.wait_gone("dialog[open]")?;
        self.page()?.wait_for(&test_id("composer-input")).map(|_| ())
    }

    /// Sends a message in the session that is open.
    pub(crate) fn send(&self, text: &str) -> Result<()> {
        self.type_into("composer-input", text)?;
        self.click("send")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.desktop.home().join("project")
    }

    /// The processes of Codex that the application runs.
    pub(crate) fn codex(&self) -> Result<Vec<Row>> {
        let all = process::descendants(self.pid()?);
        Ok(all.into_iter().filter(|row| process::command_line(row.pid).contains("app-server")).collect())
    }

    /// Waits for the one Codex that serves sessions.
    pub(crate) fn wait_codex(&self) -> Result<Row> {
        wait::until("one process of Codex", || match &self.codex().ok()?[..] {
            [one] => Some(one.clone()),
            _ => None,
        })
    }

    /// The notifications so far that contain the text in their title or body.
    pub(crate) fn notifications_of(&self, text: &str) -> Vec<Notification> {
        let all = self.desktop.notifications().into_iter();
        all.filter(|shown| shown.summary.contains(text) || shown.body.contains(text)).collect()
    }

    /// Our own log says nothing of a bug of ours.
    pub(crate) fn check_log(&self) -> Result<()> {
        let log = fs::read_to_string(self.desktop.logs().join("turnkeep.log"))?;
        ensure!(log.contains("INFO"), "the application has no log");
        for line in log.lines() {
            if line.contains("ERROR") || line.contains("panicked") {
                bail!("the log says: {line}");
            }
        }
        Ok(())
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.window = None;
        if let Some(mut child) = self.child.take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether there is more than one colour in the middle of the window.
fn is_painted(picture: &Picture, window: &OpenWindow) -> bool {
    let across = |start: i16, size: u16| {
        let from = u16::try_from(start.max(0)).unwrap_or(0);
        (from + size / 4..from + size / 4 * 3).step_by(2)
    };
    let seen: BTreeSet<[u8; 3]> = across(window.y, window.height)
        .flat_map(|y| across(window.x, window.width).map(move |x| (x, y)))
        .filter(|&(x, y)| x < picture.width && y < picture.height)
        .map(|(x, y)| picture.at(x, y))
        .collect();
    seen.len() > 4
}

/// The selector of a test id.
pub(crate) fn test_id(id: &str) -> String {
    format!("[data-testid={id}]")
}

/// The application that was built with the tests.
pub(crate) fn program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("TURNKEEP_BIN") {
        return Ok(path.into());
    }
    let mut folder = std::env::current_exe()?;
    folder.pop();
    folder.pop();
    let program = folder.join("turnkeep");
    ensure!(program.exists(), "{} is not there: build it with `cargo build -p turnkeep`", program.display());
    // It lies beside the application.
    harness::guard::built()?;
    Ok(program)
}
