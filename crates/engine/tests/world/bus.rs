//! A session bus of its own with a real keychain on it. What reads the bus's address from its environment runs in a child
//! of the test program, one test each.

use std::{
    fs,
    future::poll_fn,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    pin::Pin,
    process::{Child, Command, Stdio},
};

use futures_core::Stream;

use crate::fake::PATIENCE;

const NAME: &str = "org.freedesktop.secrets";

/// The bus of this test process and what runs on it; ends with it.
pub(crate) struct Bus {
    folder: PathBuf,
    children: Vec<Child>,
}

impl Bus {
    fn start(folder: PathBuf) -> Self {
        let config = folder.join("bus.conf");
        let text = format!(
            "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
             \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\"><busconfig><type>session</type>\
             <listen>{}</listen><auth>EXTERNAL</auth><policy context=\"default\"><allow send_destination=\"*\" \
             eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>",
            address(&folder)
        );
        fs::write(&config, text).expect("written");
        let mut daemon = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--print-address"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon starts");
        let mut said = String::new();
        BufReader::new(daemon.stdout.take().expect("piped")).read_line(&mut said).expect("an address");
        Self { folder, children: vec![daemon] }
    }

    pub(crate) async fn with_keyring(mut self) -> Self {
        self.start_keyring().await;
        self
    }

    pub(crate) async fn start_keyring(&mut self) {
        let bus = zbus::Connection::session().await.expect("the bus");
        let names = zbus::fdo::DBusProxy::new(&bus).await.expect("the bus");
        let mut owners = names.receive_name_owner_changed_with_args(&[(0, NAME)]).await.expect("it is told");
        let mut keyring = self
            .command("gnome-keyring-daemon")
            .args(["--foreground", "--unlock", "--components=secrets"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("gnome-keyring-daemon starts");
        keyring.stdin.take().expect("piped").write_all(b"test\n").expect("it takes the password");
        self.children.push(keyring);
        let came = async {
            while !names.name_has_owner(NAME.try_into().expect("a name")).await.expect("the bus answers") {
                poll_fn(|context| Pin::new(&mut owners).poll_next(context)).await;
            }
        };
        tokio::time::timeout(PATIENCE, came).await.expect("the keychain comes to the bus");
    }

    pub(crate) fn end_keyring(&mut self) {
        let mut keyring = self.children.pop().expect("it runs");
        keyring.kill().expect("it is ours");
        keyring.wait().expect("it ends");
    }

    /// A command with this bus and a home of its own.
    pub(crate) fn command(&self, program: &str) -> Command {
        inside_of(&self.folder, program)
    }

    fn say(&self, to: &str, path: &str, method: &str, arguments: &[&str]) -> String {
        let output = self
            .command("dbus-send")
            .args(["--session", "--print-reply", &format!("--dest={to}"), path, method])
            .args(arguments)
            .output()
            .expect("dbus-send runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Store an item as another program does.
    pub(crate) fn store(&self, attributes: &[(&str, &str)], secret: &str) {
        let mut tool = self.command("secret-tool");
        tool.args(["store", "--label=test"]).args(attributes.iter().flat_map(|(name, value)| [*name, *value]));
        let mut tool = tool.stdin(Stdio::piped()).spawn().expect("secret-tool starts");
        tool.stdin.take().expect("piped").write_all(secret.as_bytes()).expect("it takes the secret");
        assert!(tool.wait().expect("it ends").success());
    }

    /// What another program finds.
    pub(crate) fn lookup(&self, attributes: &[(&str, &str)]) -> String {
        let mut tool = self.command("secret-tool");
        tool.arg("lookup").args(attributes.iter().flat_map(|(name, value)| [*name, *value]));
        String::from_utf8_lossy(&tool.output().expect("secret-tool runs").stdout).into_owned()
    }

    /// Delete items as another program does.
    pub(crate) fn clear(&self, attributes: &[(&str, &str)]) {
        let mut tool = self.command("secret-tool");
        tool.arg("clear").args(attributes.iter().flat_map(|(name, value)| [*name, *value]));
        assert!(tool.status().expect("secret-tool runs").success());
    }

    pub(crate) fn lock(&self) {
        self.say(
            "org.freedesktop.secrets",
            "/org/freedesktop/secrets",
            "org.freedesktop.Secret.Service.Lock",
            &["array:objpath:/org/freedesktop/secrets/collection/login"],
        );
    }

    pub(crate) fn signal_keyring(&self, signal: rustix::process::Signal) {
        let pid = self.children.last().expect("it runs").id();
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("small")).expect("not nought");
        rustix::process::kill_process(pid, signal).expect("it is ours");
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn address(folder: &Path) -> String {
    format!("unix:path={}", folder.join("bus").display())
}

fn inside_of(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("DBUS_SESSION_BUS_ADDRESS", address(folder))
        .env("HOME", folder)
        .env("XDG_DATA_HOME", folder)
        .env("XDG_RUNTIME_DIR", folder)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY");
    command
}

/// Where the folder of a test's bus is, in the process that runs it.
const INSIDE: &str = "TURNKEEP_TEST_INSIDE";

/// Run this test in a process of its own whose session bus is a private one, without anything on it.
pub(crate) fn on_a_bus(name: &str, body: impl AsyncFnOnce(Bus)) {
    let Some(folder) = std::env::var_os(INSIDE) else {
        let folder = tempfile::tempdir().expect("a folder");
        let program = std::env::current_exe().expect("the test program");
        let output = inside_of(folder.path(), &program.to_string_lossy())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(INSIDE, folder.path())
            .output()
            .expect("the test program runs again");
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(body(Bus::start(folder.into())));
    runtime.shutdown_background();
}

/// The same without any bus.
pub(crate) fn without_a_bus(name: &str, body: impl AsyncFnOnce()) {
    on_a_bus(name, async |bus| {
        drop(bus);
        body().await;
    });
}
