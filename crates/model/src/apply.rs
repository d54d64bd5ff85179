//! What each change does to the state: the only place that writes to it. Never decides anything, never fails: a change
//! about something that is not there is nothing.

use crate::{
    change::Change,
    ids::{MessageId, TurnId},
    port::TurnOutcome,
    state::{
        AccountProblem, ApprovalState, Attachment, Delivery, EndedTurn, NotificationState, Phase, Provider, QueuedMessage,
        Session, State, TurnState,
    },
};

/// Carries one change into the state and counts it.
pub fn apply(state: &mut State, change: &Change) {
    state.seq.0 += 1;
    match change {
        // ---- providers, accounts, credentials ----
        Change::ProviderKnown { provider, capabilities, installed } => {
            let entry = state.providers.entry(provider.clone()).or_insert_with(|| Provider {
                epoch: Default::default(),
                current: None,
                capabilities: capabilities.clone(),
                installed: installed.clone(),
                models: Vec::new(),
                offers: Vec::new(),
                introduced: false,
            });
            entry.introduced &= entry.capabilities == *capabilities;
            entry.capabilities = capabilities.clone();
            entry.installed = installed.clone();
        }
        Change::ProviderIntroduced { provider, capabilities, offers } => with(state.providers.get_mut(provider), |p| {
            p.capabilities = capabilities.clone();
            p.offers.clone_from(offers);
            p.introduced = true;
        }),
        Change::ModelsListed { provider, models } => with(state.providers.get_mut(provider), |p| p.models = models.clone()),
        Change::AccountAdded { account, entry } => {
            state.next.account = state.next.account.max(account.0 + 1);
            state.accounts.insert(*account, entry.clone());
        }
        Change::AccountRenamed { account, label } => with(state.accounts.get_mut(account), |a| a.label = label.clone()),
        Change::AccountRemoved { account } => {
            state.accounts.remove(account);
        }
        Change::EpochBegan { provider, epoch, current } => with(state.providers.get_mut(provider), |p| {
            p.epoch = *epoch;
            p.current = *current;
        }),
        Change::AccountSignedIn { account, credential, identity } => {
            let kind = state.credentials.get(credential).map(|c| c.kind.clone());
            with(state.accounts.get_mut(account), |a| {
                a.credential = Some(*credential);
                a.identity = identity.clone();
                if let Some(kind) = kind {
                    a.kind = kind;
                }
            });
        }
        Change::AccountSignedOut { account } => with(state.accounts.get_mut(account), |a| {
            a.credential = None;
            a.trial = false;
        }),
        Change::AccountIdentified { account, identity } => {
            with(state.accounts.get_mut(account), |a| a.identity = Some(identity.clone()));
        }
        Change::AccountTroubled { account, problem } => with(state.accounts.get_mut(account), |a| {
            a.problem = problem.clone();
            a.trial = false;
        }),
        Change::AccountTried { account } => with(state.accounts.get_mut(account), |a| a.trial = true),
        Change::AccountRestartsCounted { account, restarts } => {
            with(state.accounts.get_mut(account), |a| a.restarts = restarts.clone());
        }
        Change::AccountVerified { account, at } => with(state.accounts.get_mut(account), |a| {
            a.verified_at = Some(*at);
            a.trial = false;
            if matches!(a.problem, Some(AccountProblem::Rejected(_))) {
                a.problem = None;
            }
        }),
        Change::LimitsRead { account, limits, plan } => with(state.accounts.get_mut(account), |a| {
            a.limits = limits.clone();
            if let (Some(identity), Some(plan)) = (a.identity.as_mut(), plan) {
                identity.plan = Some(plan.clone());
            }
        }),
        Change::CredentialAdded { credential, entry } => {
            state.next.credential = state.next.credential.max(credential.0 + 1);
            state.credentials.insert(*credential, entry.clone());
        }
        Change::RevocationOwed { credential } => {
            with(state.credentials.get_mut(credential), |c| c.owed_revocation = true);
        }
        Change::RevocationDelayed { credential, not_before } => {
            with(state.credentials.get_mut(credential), |c| c.not_before = *not_before);
        }
        Change::CredentialForgotten { credential } => {
            state.credentials.remove(credential);
        }
        Change::SignInBegan { sign_in, entry } => {
            state.next.sign_in = state.next.sign_in.max(sign_in.0 + 1);
            state.sign_ins.insert(*sign_in, entry.clone());
        }
        Change::SignInStepped { sign_in, step } => {
            with(state.sign_ins.get_mut(sign_in), |s| s.step = Some(step.clone()));
        }
        Change::SignInCancelling { sign_in } => with(state.sign_ins.get_mut(sign_in), |s| s.cancelling = true),
        Change::SignInFailed { sign_in, failure } => {
            with(state.sign_ins.get_mut(sign_in), |s| s.failure = Some(failure.clone()));
        }
        Change::SignInClosed { sign_in } => {
            state.sign_ins.remove(sign_in);
        }
        Change::KeychainSeen { keychain } => state.keychain = keychain.clone(),

        // ---- runtimes ----
        Change::RuntimeRequested { runtime, entry } => {
            state.next.runtime = state.next.runtime.max(runtime.0 + 1);
            state.runtimes.insert(*runtime, entry.clone());
        }
        Change::RuntimeProcess { runtime, process } => {
            with(state.runtimes.get_mut(runtime), |r| r.process = Some(process.clone()));
        }
        Change::RuntimeReady { runtime, version, identity } => with(state.runtimes.get_mut(runtime), |r| {
            r.phase = Phase::Ready;
            r.version = Some(version.clone());
            r.identity = identity.clone();
        }),
        Change::RuntimeFaulted { runtime, failure } => {
            with(state.runtimes.get_mut(runtime), |r| r.fault = Some(failure.clone()));
        }
        Change::RuntimePhased { runtime, phase } => {
            with(state.runtimes.get_mut(runtime), |r| r.phase = phase.clone());
        }
        Change::RuntimeRemoved { runtime, .. } => {
            state.runtimes.remove(runtime);
        }

        // ---- sessions ----
        Change::SessionCreated { session, entry } => {
            state.next.session = state.next.session.max(session.0 + 1);
            state.sessions.insert(*session, entry.clone());
        }
        Change::SessionAttached { session, attachment } => with(state.sessions.get_mut(session), |s| {
            s.attachment = attachment.clone();
            if matches!(attachment, Attachment::Open { .. }) {
                s.open_delay = Default::default();
            }
        }),
        Change::ThreadNamed { session, thread } => {
            with(state.sessions.get_mut(session), |s| s.thread = Some(thread.clone()));
        }
        Change::SessionConfigured { session, settings } => {
            with(state.sessions.get_mut(session), |s| s.settings = settings.clone());
        }
        Change::SessionRenamed { session, title } => {
            with(state.sessions.get_mut(session), |s| s.title = title.clone());
        }
        Change::SessionArchived { session, archived } => {
            with(state.sessions.get_mut(session), |s| s.archived = *archived);
        }
        Change::SessionRead { session, at } => with(state.sessions.get_mut(session), |s| {
            s.unread = false;
            s.seen_at = s.seen_at.max(*at);
        }),
        Change::HistoryRead { session, turns } => {
            state.next.turn += turns;
            with(state.sessions.get_mut(session), |s| s.history_owed = false);
        }
        // A transcript is the store's.
        Change::HistoryCopied { .. } => {}
        Change::CommandsOffered { session, commands } => {
            with(state.sessions.get_mut(session), |s| s.commands = commands.clone());
        }
        Change::SessionOpenFailed { session, failure } => with(state.sessions.get_mut(session), |s| {
            s.open_failure = failure.clone();
            s.open_delay = Default::default();
        }),
        Change::OpenDelayed { session, delay } => with(state.sessions.get_mut(session), |s| s.open_delay = *delay),
        Change::RestartsCounted { session, restarts } => {
            with(state.sessions.get_mut(session), |s| s.restarts = restarts.clone());
        }
        Change::GoalSet { session, goal } => with(state.sessions.get_mut(session), |s| s.goal = goal.clone()),
        Change::GoalHeld { session, held } => with(state.sessions.get_mut(session), |s| s.goal_held = *held),
        Change::PlanChanged { session, steps } => with(state.sessions.get_mut(session), |s| s.plan = steps.clone()),
        Change::UsageCounted { session, usage } => with(state.sessions.get_mut(session), |s| s.usage = usage.clone()),
        Change::PreviewChanged { session, preview } => {
            with(state.sessions.get_mut(session), |s| s.preview = preview.clone());
        }

        // ---- messages and turns ----
        Change::MessageQueued { session, message } => {
            state.seen_messages.insert(message.id.clone());
            with(state.sessions.get_mut(session), |s| {
                s.active_at = s.active_at.max(message.at);
                s.queue.push(message.clone());
            });
        }
        Change::MessageEdited { session, message, text } => with(state.sessions.get_mut(session), |s| {
            with(s.queue.iter_mut().find(|m| m.id == *message), |m| m.text = text.clone());
        }),
        Change::MessageRemoved { session, message } => {
            with(state.sessions.get_mut(session), |s| s.queue.retain(|m| m.id != *message));
        }
        Change::UndecidedSettled { session, message, delivery } => with(state.sessions.get_mut(session), |s| {
            if let Some(mut message) = take_message(&mut s.undecided, message)
                && *delivery == Delivery::NotAdmitted
            {
                message.delivery = Delivery::NotAdmitted;
                put_first(s, message);
            }
        }),
        Change::UnknownResolved { session, resend } => with(state.sessions.get_mut(session), |s| {
            for mut message in std::mem::take(&mut s.undecided) {
                if *resend {
                    message.delivery = Delivery::NotAdmitted;
                    put_first(s, message);
                }
            }
        }),
        Change::TurnDispatched { turn, entry } => {
            state.next.turn = state.next.turn.max(turn.0 + 1);
            with(state.sessions.get_mut(&entry.session), |s| {
                s.queue.retain(|m| Some(&m.id) != entry.message.as_ref());
                s.turn = s.turn.or(Some(*turn));
                s.active_at = s.active_at.max(entry.started_at);
            });
            state.turns.insert(*turn, entry.clone());
        }
        Change::TurnStarted { turn, provider_turn } => {
            let Some(started) = state.turns.get_mut(turn) else { return };
            started.state = TurnState::Started;
            started.provider_turn = Some(provider_turn.clone());
            with(state.sessions.get_mut(&started.session), |s| s.open_delay = Default::default());
        }
        Change::TurnPhased { turn, state: phase, closed } => with(state.turns.get_mut(turn), |t| {
            t.state = *phase;
            t.closed = closed.clone();
            t.quiet = None;
        }),
        Change::TurnRejoined { turn, runtime, provider_turn } => {
            let epoch = state.runtimes.get(runtime).map(|r| r.epoch);
            with(state.turns.get_mut(turn), |t| {
                t.runtime = *runtime;
                t.epoch = epoch.unwrap_or(t.epoch);
                t.state = TurnState::Started;
                t.provider_turn = Some(provider_turn.clone());
                t.closed = None;
            });
        }
        Change::TurnRetrying { turn, message } => with(state.turns.get_mut(turn), |t| t.retrying = message.clone()),
        Change::TurnQuieted { turn, quiet } => with(state.turns.get_mut(turn), |t| t.quiet = Some(quiet.clone())),
        Change::TurnHeard { turn } => with(state.turns.get_mut(turn), |t| t.quiet = None),
        Change::TurnInterrupting { turn } => with(state.turns.get_mut(turn), |t| t.interrupting = true),
        Change::SteerSent { turn, message } => {
            state.seen_messages.insert(message.id.clone());
            with(state.turns.get_mut(turn), |t| t.steers.push(message.clone()));
        }
        Change::SteerDelivered { turn, message, delivery } => with(state.turns.get_mut(turn), |t| {
            with(t.steers.iter_mut().find(|m| m.id == *message), |m| m.delivery = *delivery);
        }),
        Change::SteerReturned { turn, message } => {
            let Some(turn) = state.turns.get_mut(turn) else { return };
            let Some(mut returned) = take_message(&mut turn.steers, message) else { return };
            returned.delivery = Delivery::NotAdmitted;
            with(state.sessions.get_mut(&turn.session), |s| put_first(s, returned));
        }
        Change::TurnReturned { turn } => {
            let Some(returned) = state.turns.remove(turn) else { return };
            state.approvals.retain(|_, a| a.turn != *turn);
            let message = returned.message.map(|id| QueuedMessage {
                id,
                text: returned.text,
                at: returned.started_at,
                delivery: Delivery::NotAdmitted,
            });
            with(state.sessions.get_mut(&returned.session), |s| {
                for (place, message) in message.into_iter().chain(unanswered(returned.steers)).enumerate() {
                    s.queue.insert(place, QueuedMessage { delivery: Delivery::NotAdmitted, ..message });
                }
            });
            pass_on(state, *turn, returned.session);
        }
        Change::TurnEnded { turn, outcome, at } => {
            let Some(ended) = state.turns.remove(turn) else { return };
            state.approvals.retain(|_, a| a.turn != *turn);
            let unknown = (*outcome == TurnOutcome::Unknown)
                .then(|| {
                    ended.message.clone().map(|id| QueuedMessage {
                        id,
                        text: ended.text,
                        at: ended.started_at,
                        delivery: Delivery::Unknown,
                    })
                })
                .flatten();
            with(state.sessions.get_mut(&ended.session), |s| {
                let lost = unanswered(ended.steers).map(|m| QueuedMessage { delivery: Delivery::Unknown, ..m });
                s.undecided.extend(unknown.into_iter().chain(lost));
                s.unread = *outcome != TurnOutcome::Interrupted;
                s.active_at = s.active_at.max(*at);
                s.last_turn = Some(EndedTurn {
                    turn: *turn,
                    provider_turn: ended.provider_turn,
                    account: ended.account,
                    message: ended.message,
                    outcome: outcome.clone(),
                    started_at: ended.started_at,
                    ended_at: *at,
                });
            });
            pass_on(state, *turn, ended.session);
        }
        // The transcript is the store's.
        Change::ItemRecorded { .. } | Change::TurnDiffed { .. } => {}

        // ---- approvals, notifications, the application ----
        Change::ApprovalRequested { approval, entry } => {
            state.next.approval = state.next.approval.max(approval.0 + 1);
            state.approvals.insert(*approval, entry.clone());
        }
        Change::ApprovalAnswered { approval, choice, by, at } => with(state.approvals.get_mut(approval), |a| {
            a.state = ApprovalState::Answered { choice: choice.clone(), by: *by, at: *at };
        }),
        Change::ApprovalMoot { approval } => with(state.approvals.get_mut(approval), |a| a.state = ApprovalState::Moot),
        Change::NotificationRaised { key, entry } => {
            state.notifications.insert(key.clone(), entry.clone());
        }
        Change::NotificationShown { key } => {
            with(state.notifications.get_mut(key), |n| n.state = NotificationState::Shown);
        }
        Change::NotificationDismissed { key } => {
            state.notifications.remove(key);
        }
        Change::SettingsChanged { settings } => state.settings = settings.clone(),
        Change::QuitBegan { quit } => state.quit = Some(*quit),
        Change::QuitCancelled | Change::Recovered => state.quit = None,
    }
}

fn with<T>(entry: Option<&mut T>, change: impl FnOnce(&mut T)) {
    if let Some(entry) = entry {
        change(entry);
    }
}

fn take_message(from: &mut Vec<QueuedMessage>, id: &MessageId) -> Option<QueuedMessage> {
    let place = from.iter().position(|m| m.id == *id)?;
    Some(from.remove(place))
}

/// Before what waits for its first try, behind what came back earlier.
fn put_first(session: &mut Session, message: QueuedMessage) {
    let place = session.queue.iter().take_while(|m| m.delivery == Delivery::NotAdmitted).count();
    session.queue.insert(place, message);
}

fn unanswered(steers: Vec<QueuedMessage>) -> impl Iterator<Item = QueuedMessage> {
    steers.into_iter().filter(|m| m.delivery == Delivery::Sending)
}

/// The session's turn is over: another one that is open there (nobody asked for it) takes its place.
fn pass_on(state: &mut State, over: TurnId, session: crate::ids::SessionId) {
    let other = state.turns.iter().find(|(_, t)| t.session == session).map(|(id, _)| *id);
    with(state.sessions.get_mut(&session), |s| {
        if s.turn == Some(over) {
            s.turn = other;
        }
    });
}
