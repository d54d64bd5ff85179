//! Against a bus of its own, with a notifier that does what a test says.

#![expect(clippy::disallowed_types, reason = "inside the code that zbus generates for an interface")]

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Instant,
};

use turnkeep_engine::{Config, Engine, Places};
use turnkeep_model::{ApprovalId, SessionId};
use zbus::zvariant::OwnedValue;

use super::*;
use crate::shell::{Inner, Show};

/// A bus that can start nothing by itself.
struct Bus {
    daemon: Child,
    address: String,
    _folder: Folder,
}

/// Removed with all that is in it.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("turnkeep-notify-{}-{next}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Bus {
    fn start() -> Self {
        let folder = Folder::new();
        let config = folder.0.join("bus.conf");
        let text = format!(
            r#"<busconfig><type>session</type><listen>unix:dir={}</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"#,
            folder.0.display()
        );
        std::fs::write(&config, text).unwrap();
        let mut daemon = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--print-address"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon is installed");
        let mut address = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { daemon, address: address.trim().to_owned(), _folder: folder }
    }

    async fn connect(&self) -> Connection {
        zbus::connection::Builder::address(self.address.as_str()).unwrap().build().await.unwrap()
    }

    /// A notifier that can do these things.
    async fn notifier(&self, able: &'static [&'static str], hangs: bool) -> (Connection, Arc<Mutex<Vec<Called>>>) {
        let calls = Arc::default();
        let notifier = Notifier { able, hangs, calls: Arc::clone(&calls) };
        let bus = zbus::connection::Builder::address(self.address.as_str())
            .unwrap()
            .serve_at(PATH, notifier)
            .unwrap()
            .name(NAME)
            .unwrap()
            .build()
            .await
            .unwrap();
        (bus, calls)
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Called {
    Notify { replaces: u32, title: String, body: String, actions: Vec<String>, urgency: u8, expires: i32 },
    Close(u32),
}

struct Notifier {
    able: &'static [&'static str],
    hangs: bool,
    calls: Arc<Mutex<Vec<Called>>>,
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Notifier {
    fn get_capabilities(&self) -> Vec<&str> {
        self.able.to_vec()
    }

    #[expect(clippy::too_many_arguments, reason = "the call is like that")]
    async fn notify(
        &self,
        _name: String,
        replaces: u32,
        _icon: String,
        title: String,
        body: String,
        actions: Vec<String>,
        hints: BTreeMap<String, OwnedValue>,
        expires: i32,
    ) -> u32 {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        assert!(hints.contains_key("image-data"));
        let urgency = u8::try_from(hints["urgency"].try_clone().unwrap()).unwrap();
        let mut calls = self.calls.lock().unwrap();
        calls.push(Called::Notify { replaces, title, body, actions, urgency, expires });
        if replaces == 0 { 40 + u32::try_from(calls.len()).unwrap() } else { replaces }
    }

    fn close_notification(&self, id: u32) {
        self.calls.lock().unwrap().push(Called::Close(id));
    }
}

async fn click(notifier: &Connection, id: u32, action: &str) {
    notifier.emit_signal(None::<&str>, PATH, NAME, "ActionInvoked", &(id, action)).await.unwrap();
}

/// An engine with nothing in it.
fn shell(folder: &Folder) -> (Shell, mpsc::UnboundedReceiver<Show>) {
    let places = Places::below(&folder.0.join("home"));
    let config = Config { places: places.clone(), agents: Vec::new(), environment: Some(BTreeMap::new()) };
    let (_engine, handle) = Engine::start(config).unwrap();
    Inner::new(handle, places, &[], Vec::new())
}

fn completed(key: &str) -> Shown {
    Shown {
        key: key.to_owned(),
        title: "Finished: a < b".to_owned(),
        body: "a < b & c".to_owned(),
        actions: vec![Action::OpenSession(SessionId(7)), Action::MarkRead(SessionId(7))],
        click: Action::OpenWindow,
        urgency: Urgency::Normal,
        category: "x-turnkeep.completed",
        stays: false,
        session: Some(SessionId(7)),
    }
}

fn question(key: &str) -> Shown {
    Shown {
        actions: vec![Action::Allow(ApprovalId(1)), Action::Deny(ApprovalId(1))],
        urgency: Urgency::Critical,
        stays: true,
        ..completed(key)
    }
}

/// The next time that the window is wanted, while the desk listens.
async fn shown_next(desk: &mut Desk, heard: &mut Heard, shows: &mut mpsc::UnboundedReceiver<Show>) -> Option<Show> {
    let waited = async {
        loop {
            tokio::select! {
                biased;
                show = shows.recv() => return show,
                news = heard.next() => desk.learn(news).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waited).await.expect("a click arrives")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notification_is_shown_replaced_clicked_and_taken_away() {
    let (bus, folder) = (Bus::start(), Folder::new());
    let (shell, mut shows) = shell(&folder);
    let (notifier, calls) = bus.notifier(&["actions", "body", "body-markup"], false).await;
    let (mut desk, mut heard) = Desk::open(&shell, bus.connect().await).await.unwrap();

    desk.show(completed("k")).await;
    desk.show(completed("k")).await;
    let actions = ["default", "Open", "open", "Open", "mark-read", "Mark as read"].map(str::to_owned).to_vec();
    let notify = |replaces| Called::Notify {
        replaces,
        title: "Finished: a < b".into(),
        body: "a &lt; b &amp; c".into(),
        actions: actions.clone(),
        urgency: 1,
        expires: -1,
    };
    assert_eq!(*calls.lock().unwrap(), [notify(0), notify(41)]);

    // Anybody on the bus can say that a button was pressed: only the notifier is believed.
    let forger = bus.connect().await;
    click(&forger, 41, "open").await;
    // So is a notification that is not ours, and a button that is not on it.
    click(&notifier, 99, "open").await;
    click(&notifier, 41, "allow").await;
    notifier.emit_signal(None::<&str>, PATH, NAME, "ActivationToken", &(41_u32, "t1")).await.unwrap();
    click(&notifier, 41, "default").await;
    let show = shown_next(&mut desk, &mut heard, &mut shows).await.unwrap();
    assert_eq!(show.token.as_deref(), Some("t1"));
    assert!(shows.try_recv().is_err(), "one click, one window");

    desk.close("k").await;
    desk.close("k").await;
    assert_eq!(calls.lock().unwrap().last(), Some(&Called::Close(41)));
    assert_eq!(calls.lock().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notifier_without_buttons_gets_none_and_plain_text_stays_plain() {
    let (bus, folder) = (Bus::start(), Folder::new());
    let (shell, _shows) = shell(&folder);
    let (_notifier, calls) = bus.notifier(&["body"], false).await;
    let (mut desk, _heard) = Desk::open(&shell, bus.connect().await).await.unwrap();
    desk.show(question("k")).await;
    let wanted = Called::Notify {
        replaces: 0,
        title: "Finished: a < b".into(),
        body: "a < b & c".into(),
        actions: vec![],
        urgency: 2,
        expires: 0,
    };
    assert_eq!(*calls.lock().unwrap(), [wanted]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_waits_for_a_notifier_that_is_not_there_or_hangs() {
    let (bus, folder) = (Bus::start(), Folder::new());
    let (shell, _shows) = shell(&folder);
    let (mut desk, _heard) = Desk::open(&shell, bus.connect().await).await.unwrap();
    let asked = Instant::now();
    desk.show(completed("k")).await;
    desk.close("k").await;
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());

    let (_notifier, _calls) = bus.notifier(&["actions"], true).await;
    desk.meet().await;
    let asked = Instant::now();
    desk.show(completed("k")).await;
    assert!(asked.elapsed() < ANSWERED_WITHIN + Duration::from_secs(2), "{:?}", asked.elapsed());
    assert!(desk.banners.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notifier_that_comes_again_is_shown_what_still_waits() {
    let (bus, folder) = (Bus::start(), Folder::new());
    let (shell, mut shows) = shell(&folder);
    let (first, calls) = bus.notifier(&["actions"], false).await;
    let (mut desk, mut heard) = Desk::open(&shell, bus.connect().await).await.unwrap();
    desk.show(completed("done")).await;
    desk.show(question("asked")).await;
    assert_eq!(calls.lock().unwrap().len(), 2);

    first.close().await.unwrap();
    let (second, calls) = bus.notifier(&["actions"], false).await;
    // Its coming is heard, then its click.
    let again = async {
        while calls.lock().unwrap().is_empty() {
            let news = heard.next().await;
            desk.learn(news).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), again).await.expect("the question is shown again");
    assert!(matches!(calls.lock().unwrap()[..], [Called::Notify { replaces: 0, expires: 0, .. }]));
    click(&second, 41, "default").await;
    assert!(shown_next(&mut desk, &mut heard, &mut shows).await.is_some());
}
