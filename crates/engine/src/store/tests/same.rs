//! The tables and the journal tell the same story: whatever happened, reading the one equals folding the other.

use proptest::prelude::*;
use turnkeep_model::{
    Change, Input, Now, Seq, State, Step, Supervisor, apply,
    port::{AgentEvent, Answer, Choice, Failure, FailureClass, Sessions, SignInOffer, TurnOutcome},
    state::{ApprovalState, Asker},
};

use super::*;
use crate::play;

/// Drives the real machine against the real store, through ends of the process too.
struct Story {
    bench: Bench,
    supervisor: Supervisor,
    now: Now,
    /// What the world has not said yet.
    unsaid: Vec<Input>,
    pending: Vec<Change>,
    /// How often each kind of change happened.
    seen: std::collections::BTreeMap<String, u32>,
}

impl Story {
    fn new(sessions: Sessions) -> Self {
        let mut story = Self {
            bench: Bench::new(),
            supervisor: Supervisor::new(State::default()),
            now: Now { wall: 1, boot: 1 },
            unsaid: Vec::new(),
            pending: Vec::new(),
            seen: Default::default(),
        };
        story.bench.writer.hurry();
        let step = story.supervisor.recover(story.now);
        story.took(step);
        for input in [
            play::provider_serves(sessions),
            Input::SystemAccount { provider: play::provider(), present: true },
            play::create_session(),
        ] {
            story.take(input);
        }
        story
    }

    fn take(&mut self, input: Input) {
        self.now = Now { wall: self.now.wall + 10, boot: self.now.boot + 10 };
        let step = self.supervisor.handle(self.now, input);
        self.took(step);
    }

    fn took(&mut self, step: Step) {
        for change in &step.changes {
            let text = format!("{change:?}");
            let name = text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
            *self.seen.entry(name.to_owned()).or_default() += 1;
        }
        self.pending.extend(step.changes);
        self.unsaid.extend(step.effects.iter().flat_map(play::answers));
    }

    fn commit(&mut self) {
        let changes = std::mem::take(&mut self.pending);
        self.bench.commit(&changes);
    }

    fn act(&mut self, (kind, what, which, how): (u8, u8, u8, u8)) {
        match kind % 16 {
            0..=6 if !self.unsaid.is_empty() => {
                let input = self.unsaid.remove(usize::from(which) % self.unsaid.len());
                self.take(input);
            }
            // An answer that never comes.
            7 if !self.unsaid.is_empty() => drop(self.unsaid.remove(usize::from(which) % self.unsaid.len())),
            8 => {
                let turns: Vec<_> = self.supervisor.state().turns.iter().map(|(id, turn)| (*id, turn.clone())).collect();
                for (id, turn) in turns {
                    play::ends(turn.runtime, turn.session, id).into_iter().for_each(|input| self.take(input));
                }
            }
            9 => {
                if let Some(deadline) = self.supervisor.next_deadline() {
                    self.now.boot = deadline;
                }
                self.take(Input::Tick);
            }
            10 if how < 40 => {
                // The process ends; what it was told and did not say is gone.
                self.commit();
                self.unsaid.clear();
                self.supervisor = Supervisor::new(self.bench.reloaded());
                let step = self.supervisor.recover(self.now);
                self.took(step);
            }
            11 if how < 20 => self.take(Input::Quit { deadline_ms: Some(50) }),
            14 if how < 128 => self.refuse_a_steer(how),
            15 if how < 64 => self.reject_an_account(),
            13 if how < 128 => self.answer_a_question(),
            12 if how < 64 => self.introduce_an_agent(how),
            12 | 13 => self.commit(),
            _ => {
                let input = play::anything(self.supervisor.state(), what, which, how);
                self.take(input);
            }
        }
    }

    /// Something is added to a running turn, and comes back.
    fn refuse_a_steer(&mut self, how: u8) {
        let running = self.supervisor.state().turns.values().find(|turn| turn.provider_turn.is_some());
        let Some((session, runtime)) = running.map(|turn| (turn.session, turn.runtime)) else { return };
        let message = MessageId::new(format!("steer {how}"));
        self.take(Input::Steer { session, message: message.clone(), text: "steer".into() });
        let holder = self.supervisor.state().turns.iter().find(|(_, turn)| turn.steers.iter().any(|steer| steer.id == message));
        let Some(turn) = holder.map(|(id, _)| *id) else { return };
        self.take(play::agent(runtime, AgentEvent::SteerRefused { session, turn, message, failure: play::failure("busy") }));
    }

    /// An agent tells of a way to sign in.
    fn introduce_an_agent(&mut self, how: u8) {
        let state = self.supervisor.state();
        let Some((runtime, entry)) = state.runtimes.iter().next() else { return };
        let Some(provider) = state.providers.get(&entry.provider) else { return };
        let (runtime, capabilities) = (*runtime, provider.capabilities.clone());
        let by = turnkeep_model::port::OfferedBy::Agent;
        let offer = SignInOffer { id: format!("way {how}"), name: "A way".into(), description: String::new(), by };
        self.take(play::agent(runtime, AgentEvent::Introduced { capabilities, sign_in: vec![offer] }));
    }

    /// The agent asks, and a person answers.
    fn answer_a_question(&mut self) {
        let running = self.supervisor.state().turns.values().find(|turn| turn.provider_turn.is_some());
        let Some((session, runtime)) = running.map(|turn| (turn.session, turn.runtime)) else { return };
        self.take(play::agent(runtime, play::approval(session)));
        let pending = self.supervisor.state().approvals.iter().find(|(_, entry)| entry.state == ApprovalState::Pending);
        let Some(approval) = pending.map(|(id, _)| *id) else { return };
        self.take(Input::AnswerApproval { approval, answer: Answer::Choice(Choice::Allow), by: Asker::Api });
    }

    /// The provider does not accept a credential, and a person tries it again.
    fn reject_an_account(&mut self) {
        let running = self.supervisor.state().turns.values().find(|turn| turn.provider_turn.is_some());
        let Some(turn) = running.cloned() else { return };
        let failure = Failure { class: FailureClass::SignedOut, ..play::failure("who?") };
        let (session, provider_turn) = (turn.session, turn.provider_turn.unwrap());
        let outcome = TurnOutcome::Failed(failure);
        self.take(play::agent(turn.runtime, AgentEvent::TurnEnded { session, provider_turn, outcome }));
        self.take(Input::TryAgain { session });
    }

    fn check(&mut self) {
        self.commit();
        let mut folded = State::default();
        let mut after = Seq(0);
        loop {
            let events = self.bench.reader.events(after, 500).unwrap();
            let Some(last) = events.last() else { break };
            after = last.seq;
            for event in &events {
                apply(&mut folded, &serde_json::from_str(&event.change).unwrap());
                assert_eq!(folded.seq, event.seq);
            }
        }
        let loaded = self.bench.reloaded();
        assert_eq!(loaded, folded, "tables and journal");
        assert_eq!(&loaded, self.supervisor.state(), "tables and machine");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables_journal_and_machine_agree(actions in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 0..160)) {
        let one = actions.len().is_multiple_of(2);
        let mut story = Story::new(if one { Sessions::One } else { Sessions::Many });
        for action in actions {
            story.act(action);
        }
        story.check();
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(48)
}

/// The test above only means something if its stories are rich.
#[test]
fn the_stories_reach_every_kind_of_entity() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    for sessions in [Sessions::One, Sessions::Many].into_iter().cycle().take(24) {
        let actions = prop::collection::vec(any::<(u8, u8, u8, u8)>(), 400).new_tree(&mut runner).unwrap().current();
        let mut story = Story::new(sessions);
        actions.into_iter().for_each(|action| story.act(action));
        for (name, count) in story.seen {
            *seen.entry(name).or_default() += count;
        }
    }
    let wanted = [
        "ProviderKnown",
        "ProviderIntroduced",
        "ModelsListed",
        "AccountAdded",
        "AccountRenamed",
        "AccountRemoved",
        "EpochBegan",
        "AccountSignedIn",
        "AccountSignedOut",
        "AccountIdentified",
        "AccountTroubled",
        "AccountTried",
        "AccountRestartsCounted",
        "AccountVerified",
        "LimitsRead",
        "CredentialAdded",
        "RevocationOwed",
        "RevocationDelayed",
        "CredentialForgotten",
        "SignInBegan",
        "SignInStepped",
        "SignInCancelling",
        "SignInFailed",
        "SignInClosed",
        "KeychainSeen",
        "RuntimeRequested",
        "RuntimeProcess",
        "RuntimeReady",
        "RuntimeFaulted",
        "RuntimePhased",
        "RuntimeRemoved",
        "SessionCreated",
        "SessionAttached",
        "ThreadNamed",
        "SessionConfigured",
        "SessionRenamed",
        "SessionArchived",
        "SessionRead",
        "SessionOpenFailed",
        "OpenDelayed",
        "RestartsCounted",
        "GoalSet",
        "GoalHeld",
        "PlanChanged",
        "UsageCounted",
        "PreviewChanged",
        "MessageQueued",
        "MessageEdited",
        "MessageRemoved",
        "TurnDispatched",
        "TurnStarted",
        "TurnPhased",
        "TurnRetrying",
        "TurnInterrupting",
        "SteerSent",
        "SteerDelivered",
        "SteerReturned",
        "UndecidedSettled",
        "UnknownResolved",
        "TurnReturned",
        "TurnEnded",
        "ItemRecorded",
        "ApprovalRequested",
        "ApprovalAnswered",
        "ApprovalMoot",
        "NotificationRaised",
        "NotificationShown",
        "NotificationDismissed",
        "SettingsChanged",
        "QuitBegan",
        "Recovered",
    ];
    let missing: Vec<_> = wanted.iter().filter(|name| !seen.contains_key(**name)).collect();
    assert!(missing.is_empty(), "never happened: {missing:?}\nhappened: {seen:#?}");
}

/// A row that is not written is found.
#[test]
fn a_forgotten_row_is_noticed() {
    let mut story = Story::new(Sessions::Many);
    story.take(play::send(1, "m"));
    story.commit();
    story.bench.writer.connection().execute("UPDATE sessions SET body = replace(body, '/folder', '/other')", []).unwrap();
    let noticed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| story.check()));
    assert!(noticed.is_err());
}
