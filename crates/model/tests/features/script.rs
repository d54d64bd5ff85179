//! A script of inputs, a line each, and what the machine makes of it.
//!
//! A line that begins with a dot is played without being shown. `-` stands for "none".

use std::fmt::Write;

use turnkeep_model::{
    AccountId, ApprovalId, CredentialId, Effect, Input, ItemId, MessageId, Now, ProviderId, ProviderTurn, RequestKey, RuntimeId,
    ServerAddress, SessionId, SignInId, State, Step, Supervisor, ThreadRef, TurnId,
    port::{
        AgentEvent, Answer, Ask, AskBody, Capabilities, Choice, Failure, FailureClass, GoalSpec, GoalStatus, Goals, Identity,
        Item, ItemBody, ItemStatus, Observation, OfferedCommand, ProbeAnswer, Sessions, SignInMethod, TransportRecord,
        TurnOutcome, Usage,
    },
    state::{AppSettings, Asker, Installed, Keychain},
};

/// The machine, played upon.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) machine: Supervisor,
    now: Now,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { machine: Supervisor::new(State::default()), now: Now { wall: 1_000, boot: 1_000 } }
    }

    /// Plays a script; returns what was shown.
    pub(crate) fn play(&mut self, script: &str) -> String {
        let mut shown = String::new();
        for line in script.lines().map(str::trim).filter(|l| !l.is_empty()) {
            let quiet = line.strip_prefix('.');
            let step = self.say(quiet.unwrap_or(line));
            if quiet.is_none() {
                writeln!(shown, "{line}").unwrap();
                show(&mut shown, &step);
            }
        }
        shown
    }

    fn say(&mut self, line: &str) -> Step {
        self.now.boot += 1;
        self.now.wall += 1;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["killed"] => {
                self.machine = Supervisor::new(self.machine.state().clone());
                self.machine.recover(self.now)
            }
            ["minutes", n] => {
                self.now.boot += number(n) * 60_000;
                self.now.wall += i64::try_from(number(n) * 60_000).unwrap();
                self.machine.handle(self.now, Input::Tick)
            }
            ["heard", s] => self.machine.handle(self.now, Input::Heard { session: session(s), at: self.now }),
            // What the engine does when the clock rings: first it tells when text came last.
            ["heard-ago", s, ms] => {
                let at = Now { wall: self.now.wall, boot: self.now.boot - number(ms) };
                self.machine.handle(self.now, Input::Heard { session: session(s), at })
            }
            ["later"] => {
                let next = self.machine.next_deadline().expect("nothing is waited for");
                self.now.wall += i64::try_from(next.saturating_sub(self.now.boot)).unwrap();
                self.now.boot = next;
                self.machine.handle(self.now, Input::Tick)
            }
            _ => {
                let input = input(&words, line);
                self.machine.handle(self.now, input)
            }
        }
    }
}

/// What stands after a signed-in account, a session and a running turn.
pub(crate) const RUNNING: &str = "
    .agent many native probe
    .home present
    .session
    .send 0 hello
    .ready 0 me
    .opened 0 0
    .turn 0 0 0 p0
";

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("not a number: {word}"))
}

fn session(word: &str) -> SessionId {
    SessionId(number(word))
}

fn class(word: &str) -> FailureClass {
    match word {
        "signed-out" => FailureClass::SignedOut,
        "busy" => FailureClass::ThreadBusy,
        "limit" => FailureClass::UsageLimit,
        "closed" => FailureClass::TransportClosed(Box::default()),
        "locked" => FailureClass::KeychainLocked,
        "timeout" => FailureClass::Timeout,
        "start" => FailureClass::StartFailed,
        "other" => FailureClass::Other,
        _ => panic!("not a class: {word}"),
    }
}

fn failure(word: &str) -> Failure {
    Failure { class: class(word), message: word.to_owned(), detail: None }
}

fn seen(word: &str) -> Observation {
    match word {
        "nobody" => Observation::NoOne,
        "unknown" => Observation::Unknown { why: String::new() },
        who => Observation::Someone(Identity { fingerprint: who.to_owned(), label: String::new(), plan: None }),
    }
}

fn outcome(words: &[&str]) -> TurnOutcome {
    match words {
        ["completed"] => TurnOutcome::Completed,
        ["interrupted"] => TurnOutcome::Interrupted,
        ["lost"] => TurnOutcome::Lost,
        ["cut"] => {
            let record = TransportRecord { stream: "socket".to_owned(), ..TransportRecord::default() };
            let class = FailureClass::TransportClosed(Box::new(record));
            TurnOutcome::Failed(Failure { class, message: String::new(), detail: None })
        }
        ["failed", class] => TurnOutcome::Failed(failure(class)),
        _ => panic!("not an outcome: {words:?}"),
    }
}

fn goal(status: GoalStatus) -> GoalSpec {
    GoalSpec { objective: "the goal".to_owned(), status, token_budget: Some(100) }
}

fn input(words: &[&str], line: &str) -> Input {
    let provider = ProviderId::new("agent");
    let agent = |runtime: &str, event| Input::Agent { runtime: RuntimeId(number(runtime)), event };
    match *words {
        ["agent", sessions, goals, probe, ref missing @ ..] => Input::ProviderFound {
            provider,
            capabilities: Capabilities {
                sessions: if sessions == "many" { Sessions::Many } else { Sessions::One },
                resume: true,
                steer: true,
                interrupt: true,
                goals: if goals == "native" { Goals::Native } else { Goals::Driven },
                history_probe: probe == "probe",
                approvals: true,
                threads: sessions == "many",
                commands: true,
                fork: sessions == "many",
            },
            installed: match missing {
                ["missing"] => Installed::Missing { searched: Vec::new() },
                _ => Installed::Found { path: "/bin/agent".to_owned(), version: None },
            },
        },
        ["home", word] => Input::SystemAccount { provider, present: word == "present" },
        ["adopt", thread] => Input::CreateSession {
            provider,
            folder: "/work".to_owned(),
            title: "old".to_owned(),
            settings: Default::default(),
            thread: Some(ThreadRef::new(thread)),
        },
        ["consult"] => Input::Consult { provider },
        ["cancel-quit"] => Input::CancelQuit,
        ["seen-all", s] => Input::Seen { session: session(s) },
        ["mute-until", at] => {
            let muted_until = Some(i64::try_from(number(at)).unwrap());
            Input::ChangeSettings { settings: AppSettings { muted_until, ..AppSettings::default() } }
        }
        ["history", r, s, ref turns @ ..] => {
            let said = |(at, turn): (usize, &&str)| {
                let body = ItemBody::AgentMessage { text: format!("said {at}"), final_answer: true };
                (ProviderTurn::new(*turn), Item { id: ItemId::new(format!("old {at}")), body })
            };
            let result =
                if turns == ["failed"] { Err(failure("timeout")) } else { Ok(turns.iter().enumerate().map(said).collect()) };
            agent(r, AgentEvent::History { session: session(s), result })
        }
        ["diff", r, s, name, unified] => {
            let unified = unified.replace('|', "\n").replace('_', " ");
            agent(r, AgentEvent::Diff { session: session(s), provider_turn: ProviderTurn::new(name), unified })
        }
        ["session"] => Input::CreateSession {
            provider,
            folder: "/work".to_owned(),
            title: String::new(),
            settings: Default::default(),
            thread: None,
        },
        ["fork", s] => Input::ForkSession { session: session(s), title: "fork".to_owned() },
        ["commands", r, s, ref names @ ..] => {
            let command =
                |name: &&str| OfferedCommand { name: (*name).to_owned(), description: String::new(), hint: String::new() };
            agent(r, AgentEvent::Commands { session: session(s), commands: names.iter().map(command).collect() })
        }
        ["send", s, text] => Input::Send { session: session(s), message: MessageId::new(text), text: text.to_owned() },
        ["steer", s, text] => Input::Steer { session: session(s), message: MessageId::new(text), text: text.to_owned() },
        ["interrupt", s] => Input::Interrupt { session: session(s) },
        ["goal", s, "active"] => Input::SetGoal { session: session(s), goal: Some(goal(GoalStatus::Active)) },
        ["goal", s, "-"] => Input::SetGoal { session: session(s), goal: None },
        ["archive", s] => Input::Archive { session: session(s), archived: true },
        ["read", s] => Input::MarkRead { session: session(s) },
        ["try", s] => Input::TryAgain { session: session(s) },
        ["resolve", s, word] => Input::ResolveUnknown { session: session(s), resend: word == "resend" },
        ["answer", a, word] => Input::AnswerApproval {
            approval: ApprovalId(number(a)),
            answer: Answer::Choice(if word == "allow" { Choice::Allow } else { Choice::AllowForSession }),
            by: Asker::Window,
        },
        ["sign-in", account] => Input::SignIn {
            provider,
            account: (account != "-").then(|| AccountId(number(account))),
            label: String::new(),
            method: SignInMethod::Browser,
            key: None,
        },
        ["attach", address] => Input::Attach { provider, address: ServerAddress::new(address), label: String::new() },
        ["cancel", n] => Input::CancelSignIn { sign_in: SignInId(number(n)) },
        ["signed-in", n, "failed"] => Input::SignInEnded { sign_in: SignInId(number(n)), result: Err(failure("other")) },
        ["signed-in", n, who] => Input::SignInEnded { sign_in: SignInId(number(n)), result: Ok(seen(who)) },
        ["sign-out", a] => Input::SignOut { account: AccountId(number(a)), now: false },
        ["sign-out", a, "now"] => Input::SignOut { account: AccountId(number(a)), now: true },
        ["use", a] => Input::UseAccount { account: AccountId(number(a)) },
        ["remove", a] => Input::RemoveAccount { account: AccountId(number(a)) },
        ["mute"] => Input::ChangeSettings { settings: AppSettings { muted: true, ..AppSettings::default() } },
        ["dismiss", ..] => Input::DismissNotification { key: line.trim_start_matches("dismiss ").to_owned() },
        ["quit"] => Input::Quit { deadline_ms: None },
        ["quit", ms] => Input::Quit { deadline_ms: Some(number(ms)) },
        ["keychain", word] => Input::Keychain {
            keychain: match word {
                "locked" => Keychain::Locked,
                "unlocked" => Keychain::Unlocked,
                _ => Keychain::Absent { why: String::new() },
            },
        },
        ["seen", c, who] => Input::Observed { credential: CredentialId(number(c)), observation: seen(who) },
        ["revoked", c] => Input::Revoked { credential: CredentialId(number(c)), result: Ok(()) },
        ["not-revoked", c] => Input::Revoked { credential: CredentialId(number(c)), result: Err(failure("other")) },
        ["gone", r] => Input::RuntimeGone { runtime: RuntimeId(number(r)), closed: None },
        ["died", r] => Input::RuntimeGone { runtime: RuntimeId(number(r)), closed: Some(TransportRecord::default()) },
        ["not-started", r, class] => Input::RuntimeStartFailed { runtime: RuntimeId(number(r)), failure: failure(class) },
        ["ready", r, who] => agent(r, AgentEvent::Ready { version: "1".to_owned(), identity: seen(who) }),
        ["identity", r, who] => agent(r, AgentEvent::Identity { identity: seen(who) }),
        ["limits", r] => agent(r, AgentEvent::RateLimits { limits: Vec::new(), plan: None }),
        ["opened", r, s] => {
            let thread = ThreadRef(format!("t{s}"));
            agent(r, AgentEvent::SessionOpened { session: session(s), thread, settings: Default::default() })
        }
        ["opened-as", r, s, thread] => {
            let thread = ThreadRef::new(thread);
            agent(r, AgentEvent::SessionOpened { session: session(s), thread, settings: Default::default() })
        }
        ["opened", r, s, "nameless"] => {
            let thread = ThreadRef::new("");
            agent(r, AgentEvent::SessionOpened { session: session(s), thread, settings: Default::default() })
        }
        ["not-opened", r, s, class] => agent(r, AgentEvent::SessionOpenFailed { session: session(s), failure: failure(class) }),
        ["released", r, s] => agent(r, AgentEvent::SessionReleased { session: session(s) }),
        ["turn", r, s, turn, name] => {
            let turn = (turn != "-").then(|| TurnId(number(turn)));
            agent(r, AgentEvent::TurnStarted { session: session(s), turn, provider_turn: ProviderTurn::new(name) })
        }
        ["rejected", r, s, turn, class] => {
            let turn = TurnId(number(turn));
            agent(r, AgentEvent::TurnRejected { session: session(s), turn, failure: failure(class) })
        }
        ["retrying", r, s, name] => {
            let provider_turn = ProviderTurn::new(name);
            agent(r, AgentEvent::TurnRetrying { session: session(s), provider_turn, message: "again".to_owned() })
        }
        ["ended", r, s, name, ref how @ ..] => {
            let provider_turn = ProviderTurn::new(name);
            agent(r, AgentEvent::TurnEnded { session: session(s), provider_turn, outcome: outcome(how) })
        }
        ["says", r, s, name, how, text] => {
            let body = ItemBody::AgentMessage { text: text.to_owned(), final_answer: how == "last" };
            let item = Item { id: ItemId::new("i"), body };
            agent(r, AgentEvent::ItemCompleted { session: session(s), provider_turn: ProviderTurn::new(name), item })
        }
        ["patience", quiet, idle] => Input::ChangeSettings {
            settings: AppSettings { quiet_after: number(quiet), idle_after: number(idle), ..AppSettings::default() },
        },
        ["command", r, s, name, id, how] => {
            let status = match how {
                "runs" => ItemStatus::Running,
                "abandoned" => ItemStatus::Abandoned,
                _ => ItemStatus::Completed,
            };
            let (command, cwd, output) = (format!("run {id}"), String::new(), String::new());
            let body = ItemBody::Command { command, cwd, output, exit_code: None, duration_ms: None, status };
            let (provider_turn, item) = (ProviderTurn::new(name), Item { id: ItemId::new(id), body });
            let session = session(s);
            agent(
                r,
                if status == ItemStatus::Running {
                    AgentEvent::ItemStarted { session, provider_turn, item }
                } else {
                    AgentEvent::ItemCompleted { session, provider_turn, item }
                },
            )
        }
        ["asks", r, s, name, key] => {
            let provider_turn = (name != "-").then(|| ProviderTurn::new(name));
            let body = AskBody::Permissions { network: true, read: Vec::new(), write: Vec::new() };
            let ask = Ask { body, reason: None, choices: vec![Choice::Allow, Choice::Deny], item: None };
            agent(r, AgentEvent::ApprovalRequested { session: session(s), provider_turn, request: RequestKey::new(key), ask })
        }
        ["settled", r, s, key] => agent(r, AgentEvent::ApprovalResolved { session: session(s), request: RequestKey::new(key) }),
        ["steered", r, s, turn, message] => {
            let (turn, message) = (TurnId(number(turn)), MessageId::new(message));
            agent(r, AgentEvent::Steered { session: session(s), turn, message })
        }
        ["not-steered", r, s, turn, message] => {
            let (turn, message) = (TurnId(number(turn)), MessageId::new(message));
            agent(r, AgentEvent::SteerRefused { session: session(s), turn, message, failure: failure("other") })
        }
        ["goal-is", r, s, word] => {
            let status = if word == "done" { GoalStatus::Done } else { GoalStatus::Paused };
            agent(r, AgentEvent::GoalChanged { session: session(s), goal: Some(goal(status)) })
        }
        ["used", r, s, tokens] => {
            let usage = Usage { total_tokens: number(tokens), ..Usage::default() };
            agent(r, AgentEvent::Usage { session: session(s), usage })
        }
        ["named", r, s, thread] => {
            agent(r, AgentEvent::ThreadNamed { session: session(s), thread: ThreadRef::new(thread.replace('_', " ")) })
        }
        ["no-answer", r, s] => agent(r, AgentEvent::Fault { session: Some(session(s)), failure: failure("timeout") }),
        ["probed", turn, "not-found"] => Input::Probed { turn: TurnId(number(turn)), found: ProbeAnswer::NotFound },
        ["probed", turn, "running", name] => {
            Input::Probed { turn: TurnId(number(turn)), found: ProbeAnswer::Running(ProviderTurn::new(name)) }
        }
        ["probed", turn, "cannot-tell"] => Input::Probed { turn: TurnId(number(turn)), found: ProbeAnswer::CannotTell },
        ["probed", turn, ref how @ ..] => Input::Probed { turn: TurnId(number(turn)), found: ProbeAnswer::Found(outcome(how)) },
        _ => panic!("not understood: {line}"),
    }
}

fn show(shown: &mut String, step: &Step) {
    for change in &step.changes {
        writeln!(shown, "    {}", brief(&format!("{change:?}"))).unwrap();
    }
    for effect in &step.effects {
        let text = if let Effect::Command { runtime, command } = effect {
            format!("{} by={runtime}", brief(&format!("{command:?}")))
        } else {
            brief(&format!("{effect:?}"))
        };
        writeln!(shown, "    => {text}").unwrap();
    }
}

/// A debug text without what is long or always the same.
fn brief(text: &str) -> String {
    let Some((name, fields)) = text.split_once(" { ") else { return text.to_owned() };
    let mut words = vec![name.to_owned()];
    for field in top_level(fields.strip_suffix(" }").unwrap_or(fields)) {
        let Some((key, value)) = field.split_once(": ") else {
            words.push(field);
            continue;
        };
        let value = plain(value);
        if !["provider", "version", "settings", "folder", "at", "kind", "process"].contains(&key) && value.len() <= 60 {
            words.push(format!("{key}={value}"));
        } else if key == "command" {
            words.push(brief(&value));
        }
    }
    words.join(" ")
}

/// Ids without their types, texts without quotes.
fn plain(value: &str) -> String {
    let mut value = value.to_owned();
    for id in
        ["AccountId", "CredentialId", "AuthEpoch", "RuntimeId", "SessionId", "TurnId", "ApprovalId", "SignInId", "MessageId"]
            .into_iter()
            .chain(["ServerAddress", "ThreadRef", "ProviderTurn", "RequestKey", "ItemId", "Some"])
    {
        while let Some(at) = value.find(&format!("{id}(")) {
            let Some(end) = closing(&value[at..], '(', ')') else { break };
            value.replace_range(at + end..=at + end, "");
            value.replace_range(at..=at + id.len(), "");
        }
    }
    while let Some(at) = value.find("Failure { class: ") {
        let class: String = value[at + 17..].chars().take_while(|c| c.is_alphabetic()).collect();
        let Some(end) = closing(&value[at..], '{', '}') else { break };
        value.replace_range(at..=at + end, &class);
    }
    value.replace('"', "")
}

fn closing(text: &str, opens: char, closes: char) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == opens) - i32::from(c == closes);
        (c == closes && depth == 0).then_some(at)
    })
}

fn top_level(fields: &str) -> Vec<String> {
    let mut depth = 0;
    let mut parts = vec![String::new()];
    for c in fields.chars() {
        depth += i32::from("{[(".contains(c)) - i32::from("}])".contains(c));
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.into_iter().map(|p| p.trim().to_owned()).collect()
}
