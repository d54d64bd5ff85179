//! The tables and the journal tell the same story: whatever happened, reading the one equals folding the other.

use proptest::prelude::*;
use turnkeep_model::{Change, Input, Now, Seq, State, Step, Supervisor, apply};

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
    fn new() -> Self {
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
        for input in
            [play::provider_found(), Input::SystemAccount { provider: play::provider(), present: true }, play::create_session()]
        {
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
            12 | 13 => self.commit(),
            _ => {
                let input = play::anything(self.supervisor.state(), what, which, how);
                self.take(input);
            }
        }
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
        let mut story = Story::new();
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
    for _ in 0..24 {
        let actions = prop::collection::vec(any::<(u8, u8, u8, u8)>(), 400).new_tree(&mut runner).unwrap().current();
        let mut story = Story::new();
        actions.into_iter().for_each(|action| story.act(action));
        for (name, count) in story.seen {
            *seen.entry(name).or_default() += count;
        }
    }
    let wanted = [
        "AccountAdded",
        "AccountSignedIn",
        "AccountSignedOut",
        "ApprovalAnswered",
        "ApprovalMoot",
        "ApprovalRequested",
        "CredentialAdded",
        "CredentialForgotten",
        "EpochBegan",
        "GoalSet",
        "ItemRecorded",
        "KeychainSeen",
        "MessageEdited",
        "MessageQueued",
        "MessageRemoved",
        "NotificationDismissed",
        "NotificationRaised",
        "NotificationShown",
        "PlanChanged",
        "QuitBegan",
        "Recovered",
        "RevocationOwed",
        "RuntimePhased",
        "RuntimeProcess",
        "RuntimeReady",
        "RuntimeRemoved",
        "RuntimeRequested",
        "SessionArchived",
        "SessionAttached",
        "SessionCreated",
        "SessionOpenFailed",
        "SessionRead",
        "SessionRenamed",
        "SignInBegan",
        "SignInClosed",
        "SignInFailed",
        "SteerDelivered",
        "SteerSent",
        "ThreadNamed",
        "TurnDispatched",
        "TurnEnded",
        "TurnInterrupting",
        "TurnReturned",
        "TurnStarted",
        "UnknownResolved",
        "UsageCounted",
    ];
    let missing: Vec<_> = wanted.iter().filter(|name| !seen.contains_key(**name)).collect();
    assert!(missing.is_empty(), "never happened: {missing:?}\nhappened: {seen:#?}");
}

/// A row that is not written is found.
#[test]
fn a_forgotten_row_is_noticed() {
    let mut story = Story::new();
    story.take(play::send(1, "m"));
    story.commit();
    story.bench.writer.connection().execute("UPDATE sessions SET body = replace(body, '/folder', '/other')", []).unwrap();
    let noticed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| story.check()));
    assert!(noticed.is_err());
}
