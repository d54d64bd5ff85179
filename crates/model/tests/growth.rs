//! What an input costs must not grow with the sessions that it has nothing to do with.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::{Duration, Instant};

use turnkeep_model::{
    Input, ItemId, MessageId, Now, ProviderId, ProviderTurn, RuntimeId, SessionId, State, Supervisor, ThreadRef, TurnId,
    port::{AgentEvent, Capabilities, Goals, Item, ItemBody, Observation, Sessions},
    state::Installed,
};

const NOW: Now = Now { wall: 1, boot: 1 };

/// One session at work among so many that are open and idle.
fn at_work(sessions: u64) -> Supervisor {
    let mut machine = Supervisor::new(State::default());
    let provider = ProviderId::new("agent");
    let capabilities = Capabilities {
        sessions: Sessions::Many,
        resume: true,
        steer: true,
        interrupt: true,
        goals: Goals::Native,
        history_probe: true,
        approvals: true,
        threads: false,
        commands: false,
        fork: false,
    };
    let installed = Installed::Found { path: String::new(), version: None };
    let runtime = RuntimeId(0);
    machine.handle(NOW, Input::ProviderFound { provider: provider.clone(), capabilities, installed });
    machine.handle(NOW, Input::SystemAccount { provider: provider.clone(), present: true });
    for session in (0..sessions).map(SessionId) {
        let (folder, title, settings) = (String::new(), format!("session {session}"), Default::default());
        machine.handle(NOW, Input::CreateSession { provider: provider.clone(), folder, title, settings, thread: None });
        machine.handle(NOW, Input::Send { session, message: MessageId(format!("m {session}")), text: String::new() });
        if session.0 == 0 {
            let identity = Observation::Unknown { why: String::new() };
            machine.handle(NOW, Input::Agent { runtime, event: AgentEvent::Ready { version: String::new(), identity } });
        }
        let (turn, provider_turn) = (TurnId(session.0), ProviderTurn(format!("turn {session}")));
        let opened =
            AgentEvent::SessionOpened { session, thread: ThreadRef(format!("t {session}")), settings: Default::default() };
        let started = AgentEvent::TurnStarted { session, turn: Some(turn), provider_turn: provider_turn.clone() };
        machine.handle(NOW, Input::Agent { runtime, event: opened });
        machine.handle(NOW, Input::Agent { runtime, event: started });
        if session.0 > 0 {
            let outcome = turnkeep_model::port::TurnOutcome::Completed;
            machine.handle(NOW, Input::Agent { runtime, event: AgentEvent::TurnEnded { session, provider_turn, outcome } });
        }
    }
    assert_eq!(machine.state().turns.len(), 1);
    machine
}

/// The best of several rounds, so that a busy computer does not matter.
fn cost_of_an_item(machine: &mut Supervisor) -> Duration {
    let round = |machine: &mut Supervisor| {
        let begun = Instant::now();
        for nth in 0..500 {
            let item = Item {
                id: ItemId(format!("i {nth}")),
                body: ItemBody::Reasoning { summary: String::new(), text: String::new() },
            };
            let event = AgentEvent::ItemCompleted { session: SessionId(0), provider_turn: ProviderTurn::new("turn 0"), item };
            let step = machine.handle(NOW, Input::Agent { runtime: RuntimeId(0), event });
            assert_eq!(step.changes.len(), 1);
        }
        begun.elapsed()
    };
    (0..20).map(|_| round(machine)).min().unwrap()
}

#[test]
fn an_input_costs_the_same_among_many_sessions() {
    let few = cost_of_an_item(&mut at_work(10));
    let many = cost_of_an_item(&mut at_work(3_000));
    println!("an item among 10 sessions: {:?}, among 3,000: {:?}", few / 500, many / 500);
    assert!(many < few * 4, "among 10 sessions {few:?}, among 3,000 {many:?}");
}
