//! A private, real, throw-away Linux desktop: bus, X server, window manager, notification daemon, keyring and panel.
//!
//! Each has its own home and runtime folder, so several run side by side. Whatever was started in it is ended with it,
//! also what made itself a daemon; nothing that does not descend from the test is ever signalled, and the person's own
//! desktop is never touched.

mod bus;
mod config;
mod keyring;
mod notifications;
mod screen;
mod tray;
mod watcher;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tokio::sync::oneshot;
use zbus::Connection;

use crate::process::{self, Row};
use crate::wait;
use bus::Bus;
pub use keyring::{Attributes, KeyringItem};
pub use notifications::{Action, Notification};
use screen::Screen;
pub use screen::{Button, Key, OpenWindow, Picture};
pub use tray::{MenuEntry, Pixmap, TrayItem};

/// A proxy that refuses every connection.
const NOWHERE: &str = "http://127.0.0.1:9";

/// What hosts the tray.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tray {
    /// A panel that draws the icons and can be clicked.
    #[default]
    Panel,
    /// Only the service that items register with.
    Watcher,
    /// No tray at all.
    None,
}

/// The state of the Secret Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keyring {
    #[default]
    Unlocked,
    Locked,
    /// No such service on the bus.
    None,
}

/// Who shows notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notifier {
    #[default]
    Dunst,
    None,
}

/// The desktop that a test wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub tray: Tray,
    pub keyring: Keyring,
    pub notifier: Notifier,
    /// Width and height of the screen in pixels.
    pub size: (u16, u16),
}

impl Default for Options {
    fn default() -> Self {
        Self { tray: Tray::default(), keyring: Keyring::default(), notifier: Notifier::default(), size: (1280, 800) }
    }
}

/// A part of the desktop that a test may end and start again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    Panel,
    Keyring,
    Notifier,
    Watcher,
}

impl Service {
    fn bus_name(self) -> &'static str {
        match self {
            Self::Panel | Self::Watcher => watcher::NAME,
            Self::Keyring => keyring::SERVICE,
            Self::Notifier => notifications::SERVICE,
        }
    }
}

/// The running desktop. Dropping it ends it.
#[derive(Debug)]
pub struct Desktop {
    options: Options,
    environment: BTreeMap<String, String>,
    bus: Bus,
    screen: Screen,
    seen: notifications::Seen,
    monitor: Option<Connection>,
    watcher: Option<oneshot::Sender<()>>,
    services: BTreeMap<Service, Child>,
    ground: Ground,
}

/// The folder and the two processes that everything else stands on.
#[derive(Debug)]
struct Ground {
    folder: TempDir,
    /// Ends its process group when this process dies without a chance to clean up.
    lifeline: Child,
    children: Vec<Child>,
    /// Processes of this desktop that became our children when their own parent ended: nobody else waits for them.
    adopted: Mutex<BTreeSet<i32>>,
}

impl Desktop {
    /// Starts a desktop and waits until every part of it answers.
    pub fn start(options: Options) -> Result<Self> {
        process::adopt_orphans()?;
        let mut ground = Ground::new()?;
        let mut environment = ground.environment();
        let address = ground.start_bus(&environment)?;
        environment.insert("DBUS_SESSION_BUS_ADDRESS".to_owned(), address.clone());
        let display = ground.start_x(&environment, options.size)?;
        environment.insert("DISPLAY".to_owned(), display.clone());
        ground.start_window_manager(&environment)?;

        let bus = Bus::connect(&address)?;
        let screen = Screen::connect(&display)?;
        let mut desktop = Self {
            options,
            environment,
            bus,
            screen,
            seen: notifications::Seen::default(),
            monitor: None,
            watcher: None,
            services: BTreeMap::new(),
            ground,
        };
        desktop.listen()?;
        if options.keyring != Keyring::None {
            desktop.spawn_service(Service::Keyring)?;
        }
        if options.notifier == Notifier::Dunst {
            desktop.spawn_service(Service::Notifier)?;
        }
        match options.tray {
            Tray::Panel => desktop.spawn_service(Service::Panel)?,
            Tray::Watcher => desktop.start_service(Service::Watcher)?,
            Tray::None => {}
        }
        let started: Vec<Service> = desktop.services.keys().copied().collect();
        for service in started {
            desktop.wait_service(service)?;
        }
        if options.keyring == Keyring::Locked {
            desktop.lock_keyring()?;
        }
        Ok(desktop)
    }

    /// Every variable that a program of this desktop gets, and no other.
    #[must_use]
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// A command that runs in this desktop: its environment and home, nothing on its standard input.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.environment).current_dir(self.home()).stdin(Stdio::null());
        command
    }

    /// The desktop's own folder: `home/`, `run/`, `tmp/`, `logs/`. Not under its `TMPDIR`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.ground.folder.path()
    }

    /// The home folder, empty but for the settings of the desktop itself.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.folder().join("home")
    }

    /// Where the parts of the desktop write what they have to say, one file each.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.folder().join("logs")
    }

    /// The live processes of this desktop, its own parts excepted.
    #[must_use]
    pub fn programs(&self) -> Vec<Row> {
        let parts = self.ground.children.iter().chain(self.services.values());
        let parts: Vec<i32> = parts.map(pid_of).chain([pid_of(&self.ground.lifeline)]).collect();
        let of_parts: Vec<i32> =
            parts.iter().flat_map(|part| process::descendants(*part)).map(|row| row.pid).chain(parts.iter().copied()).collect();
        self.ground.processes().into_iter().filter(|row| !of_parts.contains(&row.pid)).collect()
    }

    /// Ends a part of the desktop at once, as a crash of it would.
    pub fn end_service(&mut self, service: Service) -> Result<()> {
        if service == Service::Watcher {
            // The service leaves the bus with its connection.
            drop(self.watcher.take());
        }
        if let Some(mut child) = self.services.remove(&service) {
            child.kill()?;
            child.wait()?;
        }
        wait::until("end of the service", || (!self.bus.has_owner(service.bus_name())).then_some(()))
    }

    /// Starts a part of the desktop and waits until it answers.
    pub fn start_service(&mut self, service: Service) -> Result<()> {
        if service == Service::Watcher {
            let connection = self.bus.another()?;
            let (ready, started) = oneshot::channel();
            let (end, ended) = oneshot::channel();
            self.bus.spawn(watcher::serve(connection, ready, ended));
            self.bus.run(started).context("the tray watcher ended early")??;
            self.watcher = Some(end);
            return Ok(());
        }
        self.spawn_service(service)?;
        self.wait_service(service)
    }

    /// The whole screen.
    pub fn picture(&self) -> Result<Picture> {
        self.screen.picture()
    }

    /// Writes the whole screen to a PNG file.
    pub fn screenshot(&self, path: &Path) -> Result<()> {
        self.picture()?.save(path)
    }

    /// A real click at a place of the screen.
    pub fn click(&self, x: i16, y: i16, button: Button) -> Result<()> {
        self.screen.click(x, y, button)
    }

    /// Moves the pointer, without a click.
    pub fn move_pointer(&self, x: i16, y: i16) -> Result<()> {
        self.screen.move_to(x, y)
    }

    /// Presses keys together, as in Ctrl+Q: `&[Key::CONTROL, Key(u32::from('q'))]`.
    pub fn press(&self, keys: &[Key]) -> Result<()> {
        self.screen.press(keys)
    }

    /// The windows that the window manager looks after, oldest first; a panel is one too.
    pub fn windows(&self) -> Result<Vec<OpenWindow>> {
        self.screen.windows()
    }

    /// Waits for a visible window with exactly this title.
    pub fn wait_window(&self, title: &str) -> Result<OpenWindow> {
        wait::until(&format!("window {title:?}"), || {
            self.windows().ok()?.into_iter().find(|window| window.title == title && window.visible)
        })
        .with_context(|| format!("open were {:?}", self.windows().unwrap_or_default()))
    }

    /// Clicks the close button of a window's frame, so to say: the window manager tells the program.
    pub fn close_window(&self, window: &OpenWindow) -> Result<()> {
        self.screen.close(window.id)
    }

    /// Where the tray icons are on the screen, left to right. Needs [`Tray::Panel`].
    pub fn tray_icon_places(&self) -> Result<Vec<(i16, i16)>> {
        ensure!(self.options.tray == Tray::Panel, "this desktop has no panel");
        let (width, strip) = (self.options.size.0, self.options.size.0 / 4);
        let left = i16::try_from(width - strip)?;
        let picture = self.screen.part(left, 0, strip, config::PANEL_HEIGHT)?;
        let icons = screen::icons_in(&picture).into_iter();
        icons.map(|(x, y)| Ok((left + i16::try_from(x)?, i16::try_from(y)?))).collect()
    }

    /// Clicks the one tray icon in the panel with the mouse, once the panel has drawn it.
    pub fn click_tray_icon(&self, button: Button) -> Result<()> {
        let (x, y) = wait::until("single icon in the tray of the panel", || match self.tray_icon_places().ok()?[..] {
            [place] => Some(place),
            _ => None,
        })?;
        self.click(x, y, button)
    }

    fn listen(&mut self) -> Result<()> {
        let connection = self.bus.another()?;
        let (seen, stream) = self.bus.run(notifications::watch(&connection))?;
        self.bus.spawn(notifications::record(seen.clone(), stream));
        self.seen = seen;
        self.monitor = Some(connection);
        Ok(())
    }

    fn spawn_service(&mut self, service: Service) -> Result<()> {
        let folder = self.folder().to_owned();
        let child = match service {
            Service::Watcher => return Ok(()),
            Service::Keyring => {
                let mut command = self.command("gnome-keyring-daemon");
                command
                    .args(["--foreground", "--unlock", "--components=secrets"])
                    .arg("--control-directory")
                    .arg(folder.join("run/keyring"))
                    .stdin(Stdio::piped());
                let mut child = self.ground.spawn("keyring", &mut command)?;
                let mut stdin = child.stdin.take().context("the keyring has no input")?;
                stdin.write_all(keyring::PASSWORD.as_bytes())?;
                child
            }
            Service::Notifier => {
                let (chooser, settings) = (folder.join("choose-action"), folder.join("dunstrc"));
                let text = config::chooser(&folder.join("wanted-action"), &folder.join("offered-actions"));
                fs::write(&chooser, text)?;
                fs::set_permissions(&chooser, fs::Permissions::from_mode(0o700))?;
                fs::write(&settings, config::dunst(&chooser))?;
                let mut command = self.command("dunst");
                self.ground.spawn("dunst", command.arg("-conf").arg(settings))?
            }
            Service::Panel => {
                let settings = self.home().join(".config/xfce4/xfconf/xfce-perchannel-xml");
                fs::create_dir_all(&settings)?;
                fs::write(settings.join("xfce4-panel.xml"), config::PANEL)?;
                let mut command = self.command("xfce4-panel");
                self.ground.spawn("panel", command.arg("--disable-wm-check"))?
            }
        };
        self.services.insert(service, child);
        Ok(())
    }

    fn wait_service(&mut self, service: Service) -> Result<()> {
        let (bus, logs) = (&self.bus, self.ground.folder.path().join("logs"));
        let Some(child) = self.services.get_mut(&service) else { return Ok(()) };
        let state = wait::until(service.bus_name(), || match (bus.has_owner(service.bus_name()), child.try_wait()) {
            (true, _) => Some(Ok(())),
            (false, Ok(None)) => None,
            (false, ended) => Some(Err(ended)),
        })?;
        match state {
            Ok(()) => Ok(()),
            Err(ended) => bail!("{service:?} ended early: {ended:?}; see {}", logs.display()),
        }
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        let ended = process::end_all(|| self.programs());
        self.watcher = None;
        self.monitor = None;
        let all = process::end_all(|| self.ground.processes());
        for child in self.services.values_mut() {
            process::reap(pid_of(child));
        }
        if let Err(error) = ended.and(all)
            && !std::thread::panicking()
        {
            panic!("a desktop left processes behind: {error:#}");
        }
    }
}

impl Ground {
    fn new() -> Result<Self> {
        // A short path, since a socket's may have 107 bytes; and not in the temporary folder, in which Codex refuses a home.
        let folder = tempfile::Builder::new().prefix("tk-").tempdir_in("/var/tmp").context("making the folder of a desktop")?;
        for name in ["home", "run", "tmp", "logs", "services"] {
            fs::create_dir(folder.path().join(name))?;
        }
        fs::set_permissions(folder.path().join("run"), fs::Permissions::from_mode(0o700))?;
        let mut command = Command::new("sh");
        // The input closes when this process dies, however it dies.
        command.args(["-c", "read -r _; trap '' TERM; kill -TERM 0"]);
        let lifeline = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting sh")?;
        Ok(Self { folder, lifeline, children: Vec::new(), adopted: Mutex::default() })
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        BTreeMap::from(
            [
                ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
                ("LANG", "C.UTF-8".to_owned()),
                ("USER", "tester".to_owned()),
                ("LOGNAME", "tester".to_owned()),
                ("SHELL", "/bin/bash".to_owned()),
                ("HOME", path("home")),
                ("TMPDIR", path("tmp")),
                ("XDG_RUNTIME_DIR", path("run")),
                ("XDG_CONFIG_HOME", path("home/.config")),
                ("XDG_DATA_HOME", path("home/.local/share")),
                ("XDG_STATE_HOME", path("home/.local/state")),
                ("XDG_CACHE_HOME", path("home/.cache")),
                ("XDG_SESSION_TYPE", "x11".to_owned()),
                ("XDG_CURRENT_DESKTOP", "XFCE".to_owned()),
                ("GDK_BACKEND", "x11".to_owned()),
                ("GSETTINGS_BACKEND", "memory".to_owned()),
                ("LIBGL_ALWAYS_SOFTWARE", "1".to_owned()),
                ("NO_AT_BRIDGE", "1".to_owned()),
                // Nothing leaves this machine: there is nobody at this port.
                ("HTTP_PROXY", NOWHERE.to_owned()),
                ("HTTPS_PROXY", NOWHERE.to_owned()),
                ("http_proxy", NOWHERE.to_owned()),
                ("https_proxy", NOWHERE.to_owned()),
                ("NO_PROXY", "localhost,127.0.0.1".to_owned()),
                ("no_proxy", "localhost,127.0.0.1".to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        )
    }

    /// Starts a part of the desktop in the lifeline's group; its standard error goes to `logs/name.log`.
    fn spawn(&self, name: &str, command: &mut Command) -> Result<Child> {
        let log = File::create(self.folder.path().join("logs").join(format!("{name}.log")))?;
        command.process_group(pid_of(&self.lifeline)).stderr(log.try_clone()?);
        if name != "bus" && name != "xvfb" {
            command.stdout(log);
        }
        let program = command.get_program().to_string_lossy().into_owned();
        command.spawn().with_context(|| format!("starting {program}, a program that the tests need"))
    }

    /// Starts a server that says on its standard output where it is, and gives that line.
    fn spawn_server(&mut self, name: &str, command: &mut Command) -> Result<String> {
        let mut child = self.spawn(name, command.stdout(Stdio::piped()).stdin(Stdio::null()))?;
        let output = child.stdout.take().with_context(|| format!("{name} has no output"))?;
        self.children.push(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let log = self.folder.path().join("logs").join(format!("{name}.log"));
        ensure!(!line.is_empty(), "{name} ended early: {}", fs::read_to_string(log)?);
        Ok(line)
    }

    fn start_bus(&mut self, environment: &BTreeMap<String, String>) -> Result<String> {
        let folder = self.folder.path().to_owned();
        // The panel reads its settings from this service; no other may start by itself.
        let settings = "org.xfce.Xfconf.service";
        let installed = Path::new("/usr/share/dbus-1/services").join(settings);
        symlink(installed, folder.join("services").join(settings))?;
        let file = folder.join("bus.conf");
        fs::write(&file, config::bus(&folder.join("run/bus"), &folder.join("services")))?;
        let mut command = Command::new("dbus-daemon");
        command.env_clear().envs(environment).args(["--nofork", "--nopidfile", "--print-address=1"]);
        let line = self.spawn_server("bus", command.arg(format!("--config-file={}", file.display())))?;
        Ok(line.trim().to_owned())
    }

    fn start_x(&mut self, environment: &BTreeMap<String, String>, size: (u16, u16)) -> Result<String> {
        let mut command = Command::new("Xvfb");
        command
            .env_clear()
            .envs(environment)
            .args(["-displayfd", "1", "-screen", "0"])
            .arg(format!("{}x{}x24", size.0, size.1))
            .args(["-nolisten", "tcp", "-noreset", "-dpi", "96"]);
        screen::parse_display(&self.spawn_server("xvfb", &mut command)?)
    }

    fn start_window_manager(&mut self, environment: &BTreeMap<String, String>) -> Result<()> {
        let mark = self.folder.path().join("window-manager-is-there");
        let mut command = Command::new("openbox");
        command
            .env_clear()
            .envs(environment)
            .stdin(Stdio::null())
            .arg("--sm-disable")
            .arg("--startup")
            .arg(format!("touch {}", mark.display()));
        let child = self.spawn("openbox", &mut command)?;
        self.children.push(child);
        wait::until("window manager", || mark.exists().then_some(()))
    }

    /// Our descendants that belong to this desktop: started in it, in its folders, or by one that was.
    fn processes(&self) -> Vec<Row> {
        let folder = self.folder.path();
        let mark = folder.display().to_string();
        let all = process::descendants(process::me());
        let mut ours: Vec<Row> = Vec::new();
        for row in all {
            // Parents come first, so a child of one of ours is seen as ours whatever its environment.
            let belongs = ours.iter().any(|known| known.pid == row.parent)
                || process::environment(row.pid).iter().any(|entry| entry.contains(&mark))
                || process::folder(row.pid).is_some_and(|cwd| cwd.starts_with(folder));
            if belongs {
                ours.push(row);
            }
        }
        let orphans = ours.iter().filter(|row| row.parent == process::me()).map(|row| row.pid);
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner).extend(orphans);
        ours
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // After a start that failed half-way there is no Desktop to do this.
        let ended = process::end_all(|| self.processes());
        for child in self.children.iter_mut().chain([&mut self.lifeline]) {
            // Dead already, or ours to end: either way its exit status is collected.
            let _ = child.kill();
            let _ = child.wait();
        }
        let adopted = std::mem::take(self.adopted.get_mut().unwrap_or_else(PoisonError::into_inner));
        adopted.into_iter().for_each(process::reap);
        if let Err(error) = ended
            && !std::thread::panicking()
        {
            panic!("a desktop left processes behind: {error:#}");
        }
    }
}

fn pid_of(child: &Child) -> i32 {
    i32::try_from(child.id()).unwrap_or(i32::MAX)
}
