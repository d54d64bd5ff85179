//! The catalogue of every text that the Rust side shows: the tray, notifications, and the words inside a snapshot.
//!
//! One function a text, with its numbers and names as arguments, so that a translation replaces this file and no other.
//! It never looks at the state. Sentence case; no full stop on a label; a sentence has one.

/// The product.
pub const NAME: &str = "Turnkeep";

fn counted(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

// ---- counts --------------------------------------------------------------------------------

#[must_use]
pub fn turns(n: usize) -> String {
    counted(n, "turn", "turns")
}

#[must_use]
pub fn messages(n: usize) -> String {
    counted(n, "message", "messages")
}

#[must_use]
pub fn files(n: usize) -> String {
    counted(n, "file", "files")
}

#[must_use]
pub fn lines(n: usize) -> String {
    counted(n, "line", "lines")
}

// ---- the state in one line -----------------------------------------------------------------

#[must_use]
pub fn need_you(n: usize) -> String {
    counted(n, "needs you", "need you")
}

#[must_use]
pub fn need_you_and_running(needs: usize, running: usize) -> String {
    if running == 0 { need_you(needs) } else { format!("{}, {running} running", need_you(needs)) }
}

#[must_use]
pub fn running(n: usize) -> String {
    format!("{n} running, nothing needs you")
}

pub const NOTHING_RUNNING: &str = "Nothing is running";
pub const CANNOT_GO_ON: &str = "Turnkeep cannot go on: open it to see why";

#[must_use]
pub fn stopped(provider: &str, sessions: usize) -> String {
    format!("{provider} keeps stopping: {}", counted(sessions, "session needs a look", "sessions need a look"))
}

/// `ever`: somebody was signed in before.
#[must_use]
pub fn signed_out_of(providers: &str, ever: bool, waiting: usize) -> String {
    let out = if ever { format!("Signed out of {providers}") } else { format!("Not signed in to {providers}") };
    match waiting {
        0 => out,
        1 => format!("{out}: 1 message waits"),
        n => format!("{out}: {n} messages wait"),
    }
}

#[must_use]
pub fn quitting(turns: usize) -> String {
    match turns {
        0 => "Quitting".to_owned(),
        1 => "Quitting when 1 turn ends".to_owned(),
        n => format!("Quitting when {n} turns end"),
    }
}

#[must_use]
pub fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

// ---- the tray's menu -----------------------------------------------------------------------

pub const OPEN_APPLICATION: &str = "Open Turnkeep";
pub const OPEN: &str = "Open";
pub const ALLOW_ONCE: &str = "Allow once";
pub const DENY: &str = "Deny";
pub const MUTE: &str = "Mute notifications";
pub const MUTE_FOR_AN_HOUR: &str = "Mute for an hour";
pub const CANCEL_QUIT: &str = "Do not quit";
pub const UNLOCK_KEYCHAIN: &str = "Unlock the keychain";
pub const SIGN_IN: &str = "Sign in";
pub const TRY_AGAIN: &str = "Try again";
pub const MARK_READ: &str = "Mark as read";

#[must_use]
pub fn menu_needs_you(title: &str) -> String {
    format!("Needs you: {title}")
}

#[must_use]
pub fn menu_running(title: &str) -> String {
    format!("Running: {title}")
}

#[must_use]
pub fn menu_finished(title: &str) -> String {
    format!("Finished: {title}")
}

#[must_use]
pub fn menu_failed(title: &str) -> String {
    format!("Failed: {title}")
}

#[must_use]
pub fn menu_more(n: usize) -> String {
    format!("{n} more in the window")
}

#[must_use]
pub fn menu_account(provider: &str, account: &str) -> String {
    format!("{provider}: {account}")
}

pub const SIGNED_OUT: &str = "signed out";
pub const NOT_SIGNED_IN: &str = "not signed in";
pub const SIGNING_IN: &str = "signing in";
pub const REJECTED: &str = "sign-in not accepted";
pub const KEYCHAIN_LOCKED: &str = "the keychain is locked";
pub const KEYCHAIN_ABSENT: &str = "no keychain on this system";
pub const NOT_WORKING: &str = "needs a look";

/// An account that nobody named and whose identity is not known.
pub const API_KEY_ACCOUNT: &str = "API key";
pub const SYSTEM_ACCOUNT: &str = "Signed in on this computer";
pub const NEW_ACCOUNT: &str = "New account";

/// Why a session was not forked.
pub const CANNOT_FORK: &str = "This session cannot be forked now. Wait until its turn has ended, then try again.";

/// Why a server was not made an account.
pub const NOBODY_AT_SERVER: &str = "Nobody is signed in at this server. Sign in there first, then connect again.";
pub const SERVER_IN_LIST: &str = "This server is in the list already, and can be used.";

/// A server that nobody named.
#[must_use]
pub fn server_account(address: &str) -> String {
    format!("Server at {address}")
}

#[must_use]
pub fn quit(turns: usize) -> String {
    match turns {
        0 => "Quit".to_owned(),
        1 => "Quit when 1 turn ends".to_owned(),
        n => format!("Quit when {n} turns end"),
    }
}

#[must_use]
pub fn quit_now(turns: usize) -> String {
    match turns {
        0 => "Quit now".to_owned(),
        1 => "Interrupt 1 turn and quit".to_owned(),
        n => format!("Interrupt {n} turns and quit"),
    }
}

// ---- why a message waits -------------------------------------------------------------------

/// Of a turn whose end nobody saw.
pub const LOST_TURN: &str = "Turnkeep was ended while this turn ran, so how it ended is not known. What the agent did so far stays. \
                        Send a message to go on.";
pub const WAITS_FOR_QUIT: &str = "Kept, and not sent before Turnkeep starts again.";
pub const WAITS_FOR_TURN: &str = "Sent when the running turn ends.";
pub const WAITS_FOR_TRY_AGAIN: &str = "Waits until you try again.";
pub const WAITS_FOR_DECISION: &str = "Waits until you decide about the message whose outcome is unknown.";
pub const WAITS_FOR_PROBE: &str = "Waits while the history is asked about the message before it.";
pub const WAITS_FOR_SIGN_IN: &str = "Waits in the queue until you are signed in.";
pub const WAITS_FOR_UNLOCK: &str = "Waits until you unlock the keychain.";
pub const WAITS_FOR_KEYCHAIN: &str = "Waits: this system has no keychain that holds the sign-in.";
pub const WAITS_FOR_OLD_ACCOUNT: &str = "Sent when the old account has let go of this session.";
pub const WAITS_FOR_THREAD: &str = "Waits: another program has this session open.";
pub const WAITS_FOR_RESTART: &str = "Waits a moment before the next try.";

#[must_use]
pub fn waits_for_acceptance(provider: &str) -> String {
    format!("Waits until you sign in again: {provider} does not accept the account.")
}

#[must_use]
pub fn waits_for_start(provider: &str) -> String {
    format!("Sent as soon as {provider} is ready.")
}

#[must_use]
pub fn waits_for_install(provider: &str) -> String {
    format!("Waits until {provider} is installed.")
}

#[must_use]
pub fn waits_for_trouble(provider: &str) -> String {
    format!("Waits: the account of {provider} needs a look in the settings.")
}

// ---- rows of the list ----------------------------------------------------------------------

pub const OUTCOME_UNKNOWN: &str = "Outcome unknown: last message";
pub const LOST: &str = "Turnkeep stopped during this turn";

#[must_use]
pub fn retrying(provider: &str, message: &str) -> String {
    format!("{provider} is retrying: {message}")
}

#[must_use]
pub fn asks_to_run(command: &str) -> String {
    format!("Asks to run {command}")
}

#[must_use]
pub fn asks_to_change(files_changed: usize) -> String {
    format!("Asks to change {}", files(files_changed))
}

pub const ASKS_PERMISSIONS: &str = "Asks for more permissions";

#[must_use]
pub fn asks(question: &str) -> String {
    format!("Asks: {question}")
}

#[must_use]
pub fn waiting_turn(title: &str) -> String {
    format!("{title}: its turn still runs")
}

#[must_use]
pub fn waiting_process(provider: &str) -> String {
    format!("{provider}: its process is being stopped")
}

#[must_use]
pub fn waiting_revocation(account: &str) -> String {
    format!("{account}: its sign-out is being completed")
}

// ---- notifications -------------------------------------------------------------------------

#[must_use]
pub fn finished(title: &str) -> String {
    format!("Finished: {title}")
}

#[must_use]
pub fn failed(title: &str) -> String {
    format!("Failed: {title}")
}

#[must_use]
pub fn unknown(title: &str) -> String {
    format!("Outcome unknown: {title}")
}

#[must_use]
pub fn quiet(title: &str) -> String {
    format!("Quiet: {title}")
}

#[must_use]
pub fn quiet_body(provider: &str, minutes: u64) -> String {
    format!("Nothing was heard from {provider} for {minutes} min. The turn goes on; you can wait or interrupt it.")
}

#[must_use]
pub fn quiet_in_command(command: &str) -> String {
    format!("A command is taking long: {command}")
}

#[must_use]
pub fn unknown_body(provider: &str) -> String {
    format!("Nobody can say if {provider} got the last message. It is not sent again until you say so.")
}

#[must_use]
pub fn several_finished(n: usize) -> String {
    format!("{n} sessions finished")
}

#[must_use]
pub fn provider_asks_command(provider: &str) -> String {
    format!("{provider} asks to run a command")
}

#[must_use]
pub fn provider_asks_long_command(provider: &str) -> String {
    format!("{provider} asks to run a long command")
}

#[must_use]
pub fn provider_asks_hidden_command(provider: &str) -> String {
    format!("{provider} asks to run a command with hidden characters")
}

#[must_use]
pub fn provider_asks_change(provider: &str, files_changed: usize) -> String {
    format!("{provider} asks to change {}", files(files_changed))
}

#[must_use]
pub fn provider_asks_permissions(provider: &str) -> String {
    format!("{provider} asks for more permissions")
}

#[must_use]
pub fn provider_asks_question(provider: &str) -> String {
    format!("{provider} asks a question")
}

#[must_use]
pub fn read_before_answer(n: usize) -> String {
    if n == 1 {
        "Open it to read all of it before you answer.".to_owned()
    } else {
        format!("Open it to read all {n} lines before you answer.")
    }
}

pub const NETWORK: &str = "Use the network";
pub const OUTSIDE_SANDBOX: &str = "outside the sandbox";

#[must_use]
pub fn may_read(path: &str) -> String {
    format!("Read {path}")
}

#[must_use]
pub fn may_write(path: &str) -> String {
    format!("Write {path}")
}

#[must_use]
pub fn signed_out_title(provider: &str) -> String {
    format!("Signed out of {provider}")
}

#[must_use]
pub fn signed_out_body(finishing: usize, waiting: usize) -> String {
    let finish = match finishing {
        0 => String::new(),
        1 => "1 turn finishes on the old account. ".to_owned(),
        n => format!("{n} turns finish on the old account. "),
    };
    let wait = match waiting {
        0 => "New messages wait until you sign in.".to_owned(),
        1 => "1 message waits until you sign in.".to_owned(),
        n => format!("{n} messages wait until you sign in."),
    };
    finish + &wait
}

#[must_use]
pub fn keeps_stopping(provider: &str, folder: Option<&str>) -> String {
    folder.map_or_else(|| format!("{provider} keeps stopping"), |folder| format!("{provider} keeps stopping in {folder}"))
}

/// How long something took: seconds, then minutes, then hours.
#[must_use]
pub fn duration(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

// ---- refusals ------------------------------------------------------------------------------

pub const NO_SUCH_APPROVAL: &str = "This question is not open any more.";
pub const NOT_OFFERED: &str = "This answer was not offered.";
pub const WRONG_KIND_OF_ANSWER: &str = "This answer does not fit what was asked.";
pub const NOT_ALL_ANSWERED: &str = "Every question needs an answer.";
pub const FORM_IS_NOT_JSON: &str = "The answer to a form must be JSON text.";
