//! A world of paper for tests: what a well-behaved one would answer to each effect, and what a person might want.

use turnkeep_model::{
    AccountId, ApprovalId, CredentialId, Effect, Input, ItemId, MessageId, ProviderId, ProviderTurn, RequestKey, RuntimeId,
    SessionId, SignInId, State, ThreadRef, TurnId,
    port::{
        AgentCommand, AgentEvent, Answer, Ask, AskBody, Capabilities, Choice, Failure, FailureClass, GoalSpec, GoalStatus, Goals,
        Identity, Item, ItemBody, Model, Observation, PlanStep, PlanStepStatus, ProbeAnswer, RateLimit, SessionSettings,
        Sessions, SignInMethod, SignInStep, ThreadSummary, TransportRecord, TurnOutcome, Usage,
    },
    state::{AppSettings, Asker, Attachment, Installed, Keychain, ProcessIdentity, Session},
};

pub(crate) fn provider() -> ProviderId {
    ProviderId::new("paper")
}

pub(crate) fn provider_found() -> Input {
    provider_serves(Sessions::Many)
}

pub(crate) fn provider_serves(sessions: Sessions) -> Input {
    let capabilities = Capabilities {
        sessions,
        resume: true,
        steer: true,
        interrupt: true,
        goals: Goals::Native,
        history_probe: true,
        approvals: true,
        threads: true,
        commands: true,
        fork: true,
    };
    let installed = Installed::Found { path: "/bin/paper".into(), version: None };
    Input::ProviderFound { provider: provider(), capabilities, installed }
}

pub(crate) fn someone(who: &str) -> Observation {
    Observation::Someone(Identity { fingerprint: who.into(), label: who.into(), plan: None })
}

pub(crate) fn failure(text: &str) -> Failure {
    Failure { class: FailureClass::Other, message: text.into(), detail: None }
}

pub(crate) fn create_session() -> Input {
    Input::CreateSession {
        provider: provider(),
        folder: "/folder".into(),
        title: String::new(),
        settings: SessionSettings::default(),
        thread: None,
    }
}

pub(crate) fn send(session: u64, message: &str) -> Input {
    Input::Send { session: SessionId(session), message: MessageId::new(message), text: format!("text of {message}") }
}

/// What the world answers, in order, when everything goes well. A turn is begun and says something; who ends it is
/// another matter: [`ends`].
pub(crate) fn answers(effect: &Effect) -> Vec<Input> {
    match effect {
        Effect::Spawn { runtime, .. } => vec![
            Input::RuntimeStarted {
                runtime: *runtime,
                process: ProcessIdentity { pid: 1, start_ticks: runtime.0, boot_id: "b".into() },
            },
            agent(*runtime, AgentEvent::Ready { version: "1".into(), identity: someone("who") }),
        ],
        Effect::Stop { runtime, .. } | Effect::Reap { runtime, .. } => {
            vec![Input::RuntimeGone { runtime: *runtime, closed: None }]
        }
        Effect::Release { runtime, session } => {
            vec![agent(*runtime, AgentEvent::SessionReleased { session: *session })]
        }
        Effect::Open { runtime, command }
        | Effect::ReadHistory { runtime, command }
        | Effect::Command { runtime, command }
        | Effect::Probe { runtime, command, .. } => obeyed(command).into_iter().map(|event| agent(*runtime, event)).collect(),
        Effect::SignIn { sign_in, .. } => vec![Input::SignInEnded { sign_in: *sign_in, result: Ok(someone("who")) }],
        Effect::CancelSignIn { sign_in } => {
            vec![Input::SignInEnded { sign_in: *sign_in, result: Err(failure("cancelled")) }]
        }
        Effect::Revoke { credential, .. } => vec![Input::Revoked { credential: *credential, result: Ok(()) }],
        Effect::Notify { key } => vec![Input::NotificationShown { key: key.clone() }],
        Effect::CloseNotification { .. } | Effect::Exit => Vec::new(),
    }
}

pub(crate) fn agent(runtime: RuntimeId, event: AgentEvent) -> Input {
    Input::Agent { runtime, event }
}

/// A thread that a provider may know.
pub(crate) fn thread(name: &str) -> ThreadSummary {
    ThreadSummary {
        thread: ThreadRef::new(name),
        title: format!("title of {name}"),
        preview: String::new(),
        folder: "/folder".into(),
        updated_at: 1,
        resumable: true,
    }
}

fn named(turn: TurnId) -> ProviderTurn {
    ProviderTurn::new(format!("pt{turn}"))
}

fn obeyed(command: &AgentCommand) -> Vec<AgentEvent> {
    match command {
        AgentCommand::OpenSession { session, settings, .. } => vec![AgentEvent::SessionOpened {
            session: *session,
            thread: ThreadRef::new(format!("thread {session}")),
            settings: settings.clone(),
        }],
        AgentCommand::ReleaseSession { session } => vec![AgentEvent::SessionReleased { session: *session }],
        AgentCommand::StartTurn { session, turn, .. } => vec![
            AgentEvent::TurnStarted { session: *session, turn: Some(*turn), provider_turn: named(*turn) },
            item(*session, *turn, "", false),
        ],
        AgentCommand::Steer { session, turn, message, .. } => {
            vec![AgentEvent::Steered { session: *session, turn: *turn, message: message.clone() }]
        }
        AgentCommand::Interrupt { session, turn } => {
            vec![AgentEvent::TurnEnded { session: *session, provider_turn: named(*turn), outcome: TurnOutcome::Interrupted }]
        }
        AgentCommand::Answer { session, request, .. } => {
            vec![AgentEvent::ApprovalResolved { session: *session, request: request.clone() }]
        }
        AgentCommand::SetGoal { session, goal } => {
            vec![AgentEvent::GoalChanged { session: *session, goal: goal.clone() }]
        }
        AgentCommand::Probe { session, turn, .. } => {
            vec![AgentEvent::Probed { session: *session, turn: *turn, found: ProbeAnswer::NotFound }]
        }
        AgentCommand::ReadHistory { session, .. } => {
            let past = |turn: &str, text: &str| {
                let body = ItemBody::AgentMessage { text: text.into(), final_answer: true };
                (ProviderTurn::new(turn), Item { id: ItemId::new(format!("past {text}")), body })
            };
            let items = vec![past("p1", "first"), past("p1", "second"), past("p2", "third")];
            vec![AgentEvent::History { session: *session, result: Ok(items) }]
        }
        AgentCommand::ReadIdentity => vec![AgentEvent::Identity { identity: someone("who") }],
        AgentCommand::ListModels
        | AgentCommand::ReadRateLimits
        | AgentCommand::ListThreads { .. }
        | AgentCommand::SignIn { .. }
        | AgentCommand::CancelSignIn
        | AgentCommand::SignOut => Vec::new(),
    }
}

/// The agent asks.
pub(crate) fn approval(session: SessionId) -> AgentEvent {
    approval_of(session, 0)
}

fn approval_of(session: SessionId, number: u8) -> AgentEvent {
    AgentEvent::ApprovalRequested {
        session,
        provider_turn: None,
        request: RequestKey::new(format!("r{number}")),
        ask: Ask {
            body: AskBody::Command { command: "rm".into(), cwd: "/".into(), may_run_unsandboxed: false },
            reason: None,
            choices: vec![Choice::Allow, Choice::Deny],
            item: None,
        },
    }
}

/// The answer of a turn, as an entry that begins or ends.
pub(crate) fn item(session: SessionId, turn: TurnId, text: &str, completed: bool) -> AgentEvent {
    let item = Item {
        id: ItemId::new(format!("answer {turn}")),
        body: ItemBody::AgentMessage { text: text.into(), final_answer: true },
    };
    let provider_turn = named(turn);
    if completed {
        AgentEvent::ItemCompleted { session, provider_turn, item }
    } else {
        AgentEvent::ItemStarted { session, provider_turn, item }
    }
}

/// The end of a turn that went well.
pub(crate) fn ends(runtime: RuntimeId, session: SessionId, turn: TurnId) -> Vec<Input> {
    let provider_turn = named(turn);
    vec![
        agent(runtime, item(session, turn, "done", true)),
        agent(runtime, AgentEvent::TurnEnded { session, provider_turn, outcome: TurnOutcome::Completed }),
    ]
}

/// Something that a person or a less well-behaved world might say, chosen by three numbers, mostly about what is there.
pub(crate) fn anything(state: &State, what: u8, which: u8, how: u8) -> Input {
    let session = *pick(state.sessions.keys(), which).unwrap_or(&SessionId(1));
    let account = *pick(state.accounts.keys(), which).unwrap_or(&AccountId(1));
    let credential = *pick(state.credentials.keys(), which).unwrap_or(&CredentialId(1));
    let approval = *pick(state.approvals.keys(), which).unwrap_or(&ApprovalId(1));
    let sign_in = *pick(state.sign_ins.keys(), which).unwrap_or(&SignInId(1));
    let runtime = *pick(state.runtimes.keys(), which).unwrap_or(&RuntimeId(1));
    let (turn, (runtime, of)) = pick(state.turns.iter(), which)
        .map_or((TurnId(1), (runtime, session)), |(id, entry)| (*id, (entry.runtime, entry.session)));
    let waiting = pick(state.sessions.iter().filter(|(_, entry)| !entry.queue.is_empty()), which);
    let (holder, queued) = waiting.map_or((session, MessageId::new("m0")), |(id, entry)| (*id, entry.queue[0].id.clone()));
    let undecided = pick(state.sessions.iter().filter(|(_, entry)| !entry.undecided.is_empty()), which);
    let message = MessageId::new(format!("m{how}"));
    let even = how.is_multiple_of(2);
    let goal = |status| Some(GoalSpec { objective: "win".into(), status, token_budget: None });
    match what % 56 {
        0 => create_session(),
        1..=5 => Input::Send { session, message, text: "send".into() },
        6 | 7 => Input::Steer { session: of, message, text: "steer".into() },
        8 => Input::EditQueued { session: holder, message: queued, text: "edited".into() },
        9 => Input::RemoveQueued { session: holder, message: queued },
        10 => Input::Interrupt { session: of },
        11 => Input::AnswerApproval { approval, answer: Answer::Choice(Choice::Allow), by: Asker::Tray },
        12 => Input::SetGoal { session, goal: goal(if even { GoalStatus::Active } else { GoalStatus::Paused }) },
        13 => Input::Rename { session, title: format!("title {how}") },
        14 => Input::Archive { session, archived: how.is_multiple_of(4) },
        15 => Input::MarkRead { session },
        16 => Input::TryAgain { session },
        17 | 18 => Input::ResolveUnknown { session: undecided.map_or(session, |(id, _)| *id), resend: even },
        19 | 20 => Input::SignIn {
            provider: provider(),
            account: even.then_some(account),
            label: "label".into(),
            method: SignInMethod::Browser,
            key: None,
        },
        21 => Input::CancelSignIn { sign_in },
        22 => Input::SignInEnded { sign_in, result: Err(failure("no")) },
        23 => Input::SignOut { account, now: even },
        24 => Input::UseAccount { account },
        25 => Input::RemoveAccount { account },
        26 => Input::SystemAccount { provider: provider(), present: !how.is_multiple_of(4) },
        27 => Input::Keychain { keychain: if how.is_multiple_of(4) { Keychain::Locked } else { Keychain::Unlocked } },
        28 => Input::Observed { credential, observation: if even { Observation::NoOne } else { someone("other") } },
        29 => Input::RuntimeGone { runtime, closed: Some(TransportRecord::default()) },
        30 => Input::RuntimeStartFailed { runtime, failure: failure("no") },
        31 | 32 => agent(runtime, approval_of(of, how)),
        33 => agent(runtime, AgentEvent::TurnStarted { session, turn: None, provider_turn: named(TurnId(u64::from(how))) }),
        34 => {
            let steps = vec![PlanStep { text: "step".into(), status: PlanStepStatus::Running }];
            agent(runtime, AgentEvent::Plan { session: of, steps })
        }
        35 => {
            let usage = Usage { total_tokens: u64::from(how), ..Usage::default() };
            agent(runtime, AgentEvent::Usage { session: of, usage })
        }
        36 => agent(runtime, item(of, turn, "said", even)),
        37 => {
            let outcome = match how % 4 {
                0 => TurnOutcome::Completed,
                1 => TurnOutcome::Unknown,
                2 => TurnOutcome::Failed(failure("failed")),
                _ => TurnOutcome::Failed(Failure { class: FailureClass::SignedOut, ..failure("who?") }),
            };
            agent(runtime, AgentEvent::TurnEnded { session: of, provider_turn: named(turn), outcome })
        }
        38 => agent(runtime, AgentEvent::SessionOpenFailed { session, failure: failure("no such thread") }),
        39 => agent(runtime, AgentEvent::TurnRejected { session: of, turn, failure: failure("rejected") }),
        40..=42 => {
            let steered = pick(state.turns.iter().filter(|(_, entry)| !entry.steers.is_empty()), which);
            let Some((turn, entry)) = steered else { return Input::Steer { session: of, message, text: "steer".into() } };
            let (session, message) = (entry.session, entry.steers[usize::from(how) % entry.steers.len()].id.clone());
            let event = if how.is_multiple_of(4) {
                AgentEvent::Steered { session, turn: *turn, message }
            } else {
                AgentEvent::SteerRefused { session, turn: *turn, message, failure: failure("busy") }
            };
            agent(entry.runtime, event)
        }
        43 => {
            let busy = Failure { class: FailureClass::ThreadBusy, ..failure("busy") };
            let opening = pick(state.sessions.iter().filter_map(|(id, entry)| opening(*id, entry)), which);
            let (session, runtime) = opening.unwrap_or((session, runtime));
            agent(runtime, AgentEvent::SessionOpenFailed { session, failure: if even { busy } else { failure("no") } })
        }
        44 => Input::DismissNotification { key: pick(state.notifications.keys(), which).cloned().unwrap_or_default() },
        45 => {
            let settings = SessionSettings { model: Some(format!("model {how}")), ..SessionSettings::default() };
            Input::SetSessionSettings { session, settings }
        }
        46 => Input::RenameAccount { account, label: format!("label {how}") },
        47 => Input::ChangeSettings { settings: AppSettings { muted: even, ..AppSettings::default() } },
        48 => agent(runtime, AgentEvent::TurnRetrying { session: of, provider_turn: named(turn), message: "again".into() }),
        49 => agent(runtime, AgentEvent::Models { models: vec![model(how)] }),
        50 => agent(runtime, AgentEvent::RateLimits { limits: vec![limit(how)], plan: Some("plan".into()) }),
        51 => agent(runtime, AgentEvent::TitleChanged { session: of, title: format!("its title {how}") }),
        52 => agent(runtime, AgentEvent::Fault { session: even.then_some(of), failure: failure("senseless") }),
        53 => Input::Revoked { credential, result: Err(failure("offline")) },
        54 => Input::SignInStep { sign_in, step: SignInStep::OpenUrl { url: "https://a.example".into() } },
        _ => {
            let found = if even { ProbeAnswer::Found(TurnOutcome::Completed) } else { ProbeAnswer::CannotTell };
            Input::Probed { turn, found }
        }
    }
}

fn model(number: u8) -> Model {
    Model {
        id: format!("model {number}"),
        name: String::new(),
        description: String::new(),
        efforts: Vec::new(),
        default_effort: None,
        is_default: true,
    }
}

fn limit(number: u8) -> RateLimit {
    RateLimit { window_minutes: None, used_percent: number % 100, resets_at: None }
}

fn opening(id: SessionId, session: &Session) -> Option<(SessionId, RuntimeId)> {
    let Attachment::Opening { runtime } = session.attachment else { return None };
    Some((id, runtime))
}

fn pick<T>(among: impl Iterator<Item = T>, which: u8) -> Option<T> {
    let mut all: Vec<T> = among.collect();
    (!all.is_empty()).then(|| all.swap_remove(usize::from(which) % all.len()))
}
