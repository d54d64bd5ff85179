//! Long random lives: whatever is said in whatever order, nothing panics, the facts alone give the state, the same
//! inputs give the same steps, and what holds in small worlds holds here.

use proptest::{collection::vec, prelude::*};
use turnkeep_model::{
    AccountId, ApprovalId, CredentialId, Input, ItemId, MessageId, Now, ProviderId, ProviderTurn, RequestKey, RuntimeId,
    SessionId, SignInId, State, Supervisor, ThreadRef, TurnId, apply,
    port::{
        AgentEvent, Answer, Ask, AskBody, Capabilities, Choice, Failure, FailureClass, GoalSpec, GoalStatus, Goals, Identity,
        Item, ItemBody, Observation, ProbeAnswer, Sessions, SignInMethod, TransportRecord, TurnOutcome, Usage,
    },
    state::{AppSettings, Asker, Installed, Keychain, ProcessIdentity},
};

use crate::{promises, world::World};

/// One random action: what, and which of those that there are.
#[derive(Clone, Copy, Debug)]
struct Draw {
    what: u8,
    which: u8,
    how: u8,
}

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    vec((any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(what, which, how)| Draw { what, which, how }), 1..120)
}

fn capabilities(how: u8) -> Capabilities {
    let bit = |n: u8| how & (1 << n) != 0;
    Capabilities {
        sessions: if bit(0) { Sessions::Many } else { Sessions::One },
        resume: bit(1),
        steer: bit(2),
        interrupt: bit(3),
        goals: if bit(4) { Goals::Native } else { Goals::Driven },
        history_probe: bit(5),
        approvals: true,
        threads: false,
        commands: false,
        fork: false,
    }
}

/// A few ways to fail, for every branch that looks at the class.
fn failure(how: u8) -> Failure {
    let class = match how % 9 {
        0 => FailureClass::SignedOut,
        1 => FailureClass::ThreadBusy,
        2 => FailureClass::UsageLimit,
        3 => FailureClass::TransportClosed(Box::default()),
        4 => FailureClass::KeychainLocked,
        5 => FailureClass::KeychainAbsent,
        6 => FailureClass::StartFailed,
        7 => FailureClass::Timeout,
        _ => FailureClass::Other,
    };
    Failure { class, message: String::new(), detail: None }
}

fn outcome(how: u8) -> TurnOutcome {
    match how % 5 {
        0 | 1 => TurnOutcome::Completed,
        2 => TurnOutcome::Interrupted,
        3 => TurnOutcome::Failed(failure(how / 5)),
        _ => TurnOutcome::Unknown,
    }
}

fn observation(how: u8) -> Observation {
    match how % 5 {
        0 => Observation::NoOne,
        1 => Observation::Unknown { why: String::new() },
        who => Observation::Someone(Identity { fingerprint: format!("who {}", who / 4), label: String::new(), plan: None }),
    }
}

fn one<T: Copy>(of: impl Iterator<Item = T>, which: u8) -> Option<T> {
    let all: Vec<T> = of.collect();
    all.get(usize::from(which) % all.len().max(1)).copied()
}

/// The input that the draw means here; `None` where there is nothing that it could be about.
fn input(state: &State, draw: Draw, nth: usize) -> Option<Input> {
    let Draw { what, which, how } = draw;
    let provider = ProviderId::new("agent");
    let session = one(state.sessions.keys().copied(), which);
    let account = one(state.accounts.keys().copied(), which);
    let runtime = one(state.runtimes.keys().copied(), which);
    let turn = one(state.turns.iter().map(|(id, t)| (*id, t.runtime, t.session)), which);
    let fresh = MessageId(format!("m {nth}"));
    let agent = |runtime, event| Some(Input::Agent { runtime, event });
    let of_turn = |id: TurnId| state.turns.get(&id).and_then(|t| t.provider_turn.clone());
    match what % 40 {
        0 => Some(Input::CreateSession {
            provider,
            folder: String::new(),
            title: String::new(),
            settings: Default::default(),
            thread: (how % 4 == 0).then(|| ThreadRef(format!("given {which}"))),
        }),
        1..=3 => Some(Input::Send { session: session?, message: fresh, text: String::new() }),
        4 => Some(Input::Steer { session: session?, message: fresh, text: String::new() }),
        5 => {
            let goal = GoalSpec { objective: String::new(), status: GoalStatus::Active, token_budget: Some(u64::from(how)) };
            Some(Input::SetGoal { session: session?, goal: (how % 3 > 0).then_some(goal) })
        }
        6 => Some(Input::Interrupt { session: session? }),
        7 => Some(Input::Archive { session: session?, archived: how % 3 == 0 }),
        8 => Some(Input::TryAgain { session: session? }),
        9 => Some(Input::ResolveUnknown { session: session?, resend: how % 2 == 0 }),
        10 => {
            let queued = state.sessions.get(&session?)?.queue.first()?.id.clone();
            Some(Input::RemoveQueued { session: session?, message: queued })
        }
        11 => Some(Input::SignIn {
            provider,
            account: account.filter(|_| how % 2 == 0),
            label: String::new(),
            method: if how % 3 == 0 { SignInMethod::ApiKey } else { SignInMethod::Browser },
            key: None,
        }),
        12 => Some(Input::SignOut { account: account?, now: how % 3 == 0 }),
        13 => Some(Input::UseAccount { account: account? }),
        14 => Some(if how % 2 == 0 {
            Input::RemoveAccount { account: account? }
        } else {
            Input::SystemAccount { provider, present: how % 4 > 1 }
        }),
        15 => Some(Input::Keychain {
            keychain: match how % 4 {
                0 => Keychain::Locked,
                1 => Keychain::Absent { why: String::new() },
                _ => Keychain::Unlocked,
            },
        }),
        16 => {
            let credential = one(state.credentials.keys().copied(), which)?;
            Some(Input::Observed { credential, observation: observation(how) })
        }
        17 => {
            let sign_in = one(state.sign_ins.keys().copied(), which)?;
            Some(match how % 4 {
                0 => Input::CancelSignIn { sign_in },
                1 => Input::SignInEnded { sign_in, result: Err(failure(how / 4)) },
                _ => Input::SignInEnded { sign_in, result: Ok(observation(how / 4)) },
            })
        }
        18 => {
            let credential = one(state.credentials.keys().copied(), which)?;
            let used = state.runtimes.values().any(|r| r.credential == credential);
            let result = if how % 3 == 0 { Err(failure(how)) } else { Ok(()) };
            (!used).then_some(Input::Revoked { credential, result })
        }
        19 => Some(Input::RuntimeStarted {
            runtime: runtime?,
            process: ProcessIdentity { pid: u32::from(how), start_ticks: 0, boot_id: String::new() },
        }),
        20 => Some(Input::RuntimeStartFailed { runtime: runtime?, failure: failure(how) }),
        21 => Some(Input::RuntimeGone { runtime: runtime?, closed: (how % 2 == 0).then(TransportRecord::default) }),
        22..=24 => agent(runtime?, AgentEvent::Ready { version: String::new(), identity: observation(how) }),
        25..=27 => agent(
            runtime?,
            match how % 8 {
                0 => AgentEvent::SessionOpenFailed { session: session?, failure: failure(how / 8) },
                1 => AgentEvent::SessionReleased { session: session? },
                2 => AgentEvent::Fault { session, failure: failure(how / 8) },
                _ => AgentEvent::SessionOpened {
                    session: session?,
                    thread: ThreadRef(if how == 255 { String::new() } else { format!("thread {}", session?) }),
                    settings: Default::default(),
                },
            },
        ),
        28..=30 => {
            let (id, runtime, session) = turn?;
            let provider_turn = ProviderTurn(format!("turn {id}"));
            agent(runtime, AgentEvent::TurnStarted { session, turn: (how % 8 > 0).then_some(id), provider_turn })
        }
        31 => {
            let (id, runtime, session) = turn?;
            agent(runtime, AgentEvent::TurnRejected { session, turn: id, failure: failure(how) })
        }
        32 | 33 => {
            let (id, runtime, session) = turn?;
            agent(runtime, AgentEvent::TurnEnded { session, provider_turn: of_turn(id)?, outcome: outcome(how) })
        }
        34 => {
            let (id, runtime, session) = turn?;
            let ask = Ask {
                body: AskBody::Permissions { network: true, read: Vec::new(), write: Vec::new() },
                reason: None,
                choices: vec![Choice::Allow, Choice::Deny],
                item: None,
            };
            let request = RequestKey(format!("ask {}", how % 8));
            agent(runtime, AgentEvent::ApprovalRequested { session, provider_turn: of_turn(id), request, ask })
        }
        35 => {
            let approval = ApprovalId(u64::from(which) % state.next.approval.max(1));
            let choice = if how % 3 == 0 { Choice::AllowForSession } else { Choice::Allow };
            Some(Input::AnswerApproval { approval, answer: Answer::Choice(choice), by: Asker::Cli })
        }
        36 => {
            let (id, runtime, session) = turn?;
            let message = state.turns.get(&id)?.steers.first()?.id.clone();
            let event = if how % 2 == 0 {
                AgentEvent::Steered { session, turn: id, message }
            } else {
                AgentEvent::SteerRefused { session, turn: id, message, failure: failure(how) }
            };
            agent(runtime, event)
        }
        37 => {
            let (id, runtime, session) = turn?;
            let body = ItemBody::AgentMessage { text: "text".to_owned(), final_answer: how % 2 == 0 };
            let item = Item { id: ItemId(format!("item {how}")), body };
            let provider_turn = of_turn(id)?;
            agent(
                runtime,
                if how % 3 == 0 {
                    AgentEvent::Usage { session, usage: Usage { total_tokens: u64::from(how), ..Usage::default() } }
                } else {
                    AgentEvent::ItemCompleted { session, provider_turn, item }
                },
            )
        }
        38 => {
            let found = match how % 3 {
                0 => ProbeAnswer::NotFound,
                1 => ProbeAnswer::CannotTell,
                _ => ProbeAnswer::Found(outcome(how / 3)),
            };
            Some(Input::Probed { turn: turn?.0, found })
        }
        _ => match how % 16 {
            0 => Some(Input::Quit { deadline_ms: (how > 128).then_some(1_000) }),
            1 => Some(Input::MarkRead { session: session? }),
            2 => Some(Input::ChangeSettings { settings: AppSettings { muted: how > 128, ..AppSettings::default() } }),
            3 => {
                let key = one(0..state.notifications.len(), which).and_then(|n| state.notifications.keys().nth(n).cloned())?;
                Some(Input::DismissNotification { key })
            }
            4 => Some(Input::SignOut { account: AccountId(u64::from(which)), now: false }),
            5 => Some(Input::RuntimeGone { runtime: RuntimeId(u64::from(which)), closed: None }),
            6 => Some(Input::Send { session: SessionId(u64::from(which)), message: fresh, text: String::new() }),
            7 => Some(Input::CancelSignIn { sign_in: SignInId(u64::from(which)) }),
            9 => Some(Input::CancelQuit),
            10 => Some(Input::Consult { provider: ProviderId::new("agent") }),
            11 => Some(Input::Seen { session: session? }),
            8 => Some(Input::Observed { credential: CredentialId(u64::from(which)), observation: observation(how) }),
            _ => Some(Input::Tick),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn a_long_life(how in any::<u8>(), draws in draws()) {
        let mut machine = Supervisor::new(State::default());
        let mut folded = State::default();
        let mut world = World::default();
        let mut now = Now { wall: 0, boot: 1 };
        let provider = ProviderId::new("agent");
        let installed = Installed::Found { path: String::new(), version: None };
        let first = [
            Input::ProviderFound { provider: provider.clone(), capabilities: capabilities(how), installed },
            Input::SystemAccount { provider, present: true },
        ];
        let mut told = 0;
        for nth in 0..draws.len() + first.len() {
            let drawn = nth.checked_sub(first.len()).map(|n| draws[n]);
            let Some(input) = drawn.map_or_else(|| Some(first[nth].clone()), |draw| input(machine.state(), draw, nth)) else {
                continue;
            };
            told += 1;
            // Time goes on by itself, or jumps to what is waited for.
            now.boot += 1 + u64::from(drawn.map_or(0, |d| d.which));
            if input == Input::Tick {
                now.boot = machine.next_deadline().unwrap_or(now.boot).max(now.boot);
            }
            let killed = drawn.is_some_and(|d| d.what == 199);
            promises::asked(machine.state(), &mut world, &input);

            let (again, step) = if killed {
                machine = Supervisor::new(machine.state().clone());
                (machine.remade().recover(now), machine.recover(now))
            } else {
                (machine.remade().handle(now, input.clone()), machine.handle(now, input))
            };
            prop_assert_eq!(&step.changes, &again.changes, "the state and its clocks are all that the machine knows");
            for change in &step.changes {
                apply(&mut folded, change);
            }
            prop_assert_eq!(&folded, machine.state(), "the changes are all that happens to the state");
            prop_assert!(machine.next_deadline().is_none_or(|at| at > now.boot), "a deadline that has passed");
            for change in &step.changes {
                let followed = promises::follow(machine.state(), std::rc::Rc::make_mut(&mut world.ghost), change, u8::MAX);
                prop_assert_eq!(followed, Ok(()));
            }
            prop_assert_eq!(promises::keep(machine.state(), &world), Ok(()));
        }
        prop_assert!(told >= first.len());
    }
}
