//! Where explorations start, and what may go wrong in each: small enough to be seen whole.

use turnkeep_model::{
    AccountId, CredentialId, Input, MessageId, Now, ProviderId, SessionId, SignInId, State, Supervisor,
    port::{Capabilities, GoalSpec, GoalStatus, Goals, Sessions, SignInMethod},
    state::{AppSettings, Installed},
};

use crate::{
    universe::{Configuration, seen},
    world::{Hazard, Who},
};

pub(crate) const FIRST: AccountId = AccountId(0);
pub(crate) const SECOND: AccountId = AccountId(1);
const ONE: SessionId = SessionId(0);
const TWO: SessionId = SessionId(1);

fn provider() -> ProviderId {
    ProviderId::new("agent")
}

fn shared() -> Capabilities {
    Capabilities {
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
    }
}

/// Puts a machine into the state in which an exploration starts, by what anyone would do to get there.
struct Start {
    machine: Supervisor,
    configuration: Configuration,
}

impl Start {
    fn new(capabilities: Capabilities) -> Self {
        let mut start = Self { machine: Supervisor::new(State::default()), configuration: Configuration::default() };
        let installed = Installed::Found { path: String::new(), version: None };
        start.told(Input::ProviderFound { provider: provider(), capabilities, installed });
        start.told(Input::ChangeSettings { settings: AppSettings { quiet_after: 0, idle_after: 0, ..AppSettings::default() } });
        start.configuration.signs_in = "new";
        start
    }

    fn told(&mut self, input: Input) {
        self.machine.handle(Now { wall: 0, boot: 1 }, input);
    }

    /// Minutes until a silence is told, and until a process without work is stopped.
    fn patience(mut self, quiet_after: u64, idle_after: u64) -> Self {
        self.told(Input::ChangeSettings { settings: AppSettings { quiet_after, idle_after, ..AppSettings::default() } });
        self
    }

    /// The person's own sign-in on this computer.
    fn at_home(mut self, who: Who) -> Self {
        self.configuration.home = Some(who);
        self.told(Input::SystemAccount { provider: provider(), present: true });
        let credential = self.machine.state().accounts.values().find_map(|a| a.credential).unwrap();
        self.told(Input::Observed { credential, observation: seen(Some(who)) });
        self
    }

    /// An account of ours.
    fn signed_in(mut self, who: Who) -> Self {
        let sign_in = SignInId(self.machine.state().next.sign_in);
        let credential = CredentialId(self.machine.state().next.credential);
        let method = SignInMethod::Browser;
        self.told(Input::SignIn { provider: provider(), account: None, label: String::new(), method, key: None });
        self.told(Input::SignInEnded { sign_in, result: Ok(seen(Some(who))) });
        self.configuration.vault.push((credential, who));
        self
    }

    fn session(mut self) -> Self {
        self.told(Input::CreateSession {
            provider: provider(),
            folder: String::new(),
            title: String::new(),
            settings: Default::default(),
            thread: None,
        });
        self
    }

    fn goal(mut self, token_budget: Option<u64>) -> Self {
        let goal = GoalSpec { objective: "goal".to_owned(), status: GoalStatus::Active, token_budget };
        self.told(Input::SetGoal { session: ONE, goal: Some(goal) });
        self
    }

    fn may(mut self, hazard: Hazard, times: u8) -> Self {
        self.configuration.hazards.push((hazard, times));
        self
    }

    fn asked(self, input: Input) -> Self {
        self.may(Hazard::Person(input), 1)
    }

    fn done(mut self) -> Configuration {
        self.configuration.state = self.machine.state().clone();
        let count = |h: &Hazard| {
            matches!(h, Hazard::Kill | Hazard::Die | Hazard::Vanish | Hazard::Switch(_) | Hazard::Refuse)
                || matches!(h, Hazard::Person(Input::Archive { .. }))
        };
        let again: u8 = self.configuration.hazards.iter().filter(|(h, _)| count(h)).map(|(_, times)| *times).sum();
        let sessions = u8::try_from(self.machine.state().sessions.len()).unwrap();
        self.configuration.starts = (2 + again) * sessions;
        self.configuration
    }
}

fn send(session: SessionId, text: &str) -> Input {
    Input::Send { session, message: MessageId::new(text), text: String::new() }
}

fn steer(session: SessionId, text: &str) -> Input {
    Input::Steer { session, message: MessageId::new(text), text: String::new() }
}

fn sign_in_again(account: AccountId) -> Input {
    let method = SignInMethod::Browser;
    Input::SignIn { provider: provider(), account: Some(account), label: String::new(), method, key: None }
}

const QUIT: Input = Input::Quit { deadline_ms: None };

/// Two messages, whatever dies.
pub(crate) fn crashes() -> Configuration {
    Start::new(shared())
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(send(ONE, "b"))
        .may(Hazard::Kill, 1)
        .may(Hazard::Die, 1)
        .may(Hazard::Vanish, 1)
        .done()
}

/// A message, and a process that dies again and again, until a person tries again.
pub(crate) fn gives_up() -> Configuration {
    Start::new(shared())
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .may(Hazard::Die, 3)
        .may(Hazard::Person(Input::TryAgain { session: ONE }), 1)
        .done()
}

/// Messages that are refused, threads that are busy, answers that never come.
pub(crate) fn refusals() -> Configuration {
    Start::new(shared())
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(send(ONE, "b"))
        .may(Hazard::Reject, 1)
        .may(Hazard::Busy, 1)
        .may(Hazard::NoAnswer, 1)
        .may(Hazard::Person(Input::TryAgain { session: ONE }), 2)
        .done()
}

/// Signing out and in again, with messages on their way.
pub(crate) fn sign_out() -> Configuration {
    Start::new(shared())
        .signed_in("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(send(ONE, "b"))
        .asked(Input::SignOut { account: FIRST, now: false })
        .asked(sign_in_again(FIRST))
        .done()
}

/// The same with one message, and the application is killed.
pub(crate) fn sign_out_and_crash() -> Configuration {
    Start::new(shared())
        .signed_in("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(Input::SignOut { account: FIRST, now: false })
        .asked(sign_in_again(FIRST))
        .may(Hazard::Kill, 1)
        .done()
}

/// Somebody else signs in where we do not see it.
pub(crate) fn behind_our_back() -> Configuration {
    Start::new(shared())
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(send(ONE, "b"))
        .may(Hazard::Switch(Some("other")), 1)
        .may(Hazard::Switch(None), 1)
        .may(Hazard::Kill, 1)
        .done()
}

/// Somebody signs out elsewhere, and in again.
pub(crate) fn signed_out_elsewhere() -> Configuration {
    Start::new(shared())
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(send(ONE, "b"))
        .may(Hazard::Switch(None), 1)
        .may(Hazard::Switch(Some("me")), 1)
        .done()
}

/// The provider refuses the account in the middle of a turn; a person tries again, or takes another account.
pub(crate) fn refused_account() -> Configuration {
    Start::new(shared())
        .at_home("me")
        .signed_in("other")
        .session()
        .asked(send(ONE, "a"))
        .asked(send(ONE, "b"))
        .asked(Input::TryAgain { session: ONE })
        .asked(Input::UseAccount { account: SECOND })
        .may(Hazard::Refuse, 1)
        .done()
}

/// Switching to another account and back, with a goal.
pub(crate) fn goal_moves() -> Configuration {
    Start::new(shared())
        .signed_in("me")
        .signed_in("other")
        .session()
        .goal(None)
        .asked(Input::UseAccount { account: SECOND })
        .asked(Input::UseAccount { account: FIRST })
        .may(Hazard::GoalTurn, 2)
        .done()
}

/// Switching to another account with a goal, while processes die.
pub(crate) fn goal_survives() -> Configuration {
    Start::new(shared())
        .signed_in("me")
        .signed_in("other")
        .session()
        .goal(None)
        .asked(Input::UseAccount { account: SECOND })
        .may(Hazard::GoalTurn, 2)
        .may(Hazard::Die, 1)
        .may(Hazard::Kill, 1)
        .done()
}

/// A goal that we drive, on agents that serve one session each.
pub(crate) fn driven_goal() -> Configuration {
    let capabilities = Capabilities { sessions: Sessions::One, goals: Goals::Driven, history_probe: false, ..shared() };
    Start::new(capabilities)
        .at_home("me")
        .signed_in("other")
        .session()
        .goal(Some(2))
        .asked(Input::UseAccount { account: SECOND })
        .asked(Input::Interrupt { session: ONE })
        .asked(Input::ResolveUnknown { session: ONE, resend: true })
        .may(Hazard::Kill, 1)
        .done()
}

/// Quitting, once or twice, with a question open.
pub(crate) fn quit() -> Configuration {
    Start::new(shared())
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(send(ONE, "b"))
        .asked(QUIT)
        .asked(QUIT)
        .may(Hazard::Ask, 1)
        .may(Hazard::Kill, 1)
        .done()
}

/// A quit that is taken back, at any moment, while the application is killed.
pub(crate) fn quit_taken_back() -> Configuration {
    taken_back(Hazard::Kill)
}

/// The same while the agent dies.
pub(crate) fn quit_taken_back_without_an_agent() -> Configuration {
    taken_back(Hazard::Die)
}

fn taken_back(end: Hazard) -> Configuration {
    Start::new(shared())
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(QUIT)
        .asked(Input::CancelQuit)
        .asked(QUIT)
        .may(Hazard::Ask, 1)
        .may(end, 1)
        .done()
}

/// A thread from elsewhere, whose history is read before anything is sent to it, while the application is killed.
pub(crate) fn adopted() -> Configuration {
    from_elsewhere(Hazard::Kill)
}

/// The same while the agent dies.
pub(crate) fn adopted_by_one_that_dies() -> Configuration {
    from_elsewhere(Hazard::Die)
}

fn from_elsewhere(end: Hazard) -> Configuration {
    let mut start = Start::new(Capabilities { threads: true, ..shared() }).at_home("me");
    start.told(Input::CreateSession {
        provider: provider(),
        folder: String::new(),
        title: String::new(),
        settings: Default::default(),
        thread: Some(turnkeep_model::ThreadRef::new("old")),
    });
    start
        .asked(send(ONE, "a"))
        .asked(QUIT)
        .asked(Input::CancelQuit)
        .asked(Input::Consult { provider: provider() })
        .may(Hazard::NoAnswer, 1)
        .may(end, 1)
        .done()
}

/// Quitting with a deadline while somebody signs in.
pub(crate) fn quit_in_sign_in() -> Configuration {
    Start::new(shared())
        .signed_in("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(sign_in_again(FIRST))
        .asked(Input::Quit { deadline_ms: Some(1_000) })
        .done()
}

/// A question, answered from everywhere.
pub(crate) fn approvals() -> Configuration {
    Start::new(shared())
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(Input::Interrupt { session: ONE })
        .may(Hazard::Ask, 2)
        .may(Hazard::Answer, 3)
        .may(Hazard::Die, 1)
        .may(Hazard::Kill, 1)
        .done()
}

/// Two sessions share a process, one of them goes to another account while the other works.
pub(crate) fn two_sessions() -> Configuration {
    Start::new(shared())
        .signed_in("me")
        .signed_in("other")
        .session()
        .session()
        .asked(send(ONE, "a"))
        .asked(send(TWO, "b"))
        .asked(send(TWO, "c"))
        .asked(Input::UseAccount { account: SECOND })
        .done()
}

/// Two sessions, a process each; nobody can be asked about the history.
pub(crate) fn a_process_each() -> Configuration {
    let capabilities = Capabilities { sessions: Sessions::One, history_probe: false, ..shared() };
    Start::new(capabilities)
        .at_home("me")
        .session()
        .session()
        .asked(send(ONE, "a"))
        .asked(send(TWO, "b"))
        .asked(Input::ResolveUnknown { session: ONE, resend: true })
        .may(Hazard::Kill, 1)
        .done()
}

/// Additions to a running turn.
pub(crate) fn steering() -> Configuration {
    Start::new(shared())
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(steer(ONE, "b"))
        .asked(Input::ResolveUnknown { session: ONE, resend: false })
        .may(Hazard::Die, 1)
        .may(Hazard::Kill, 1)
        .done()
}

/// A turn says nothing for long, asks, and goes on.
pub(crate) fn silence() -> Configuration {
    Start::new(shared())
        .patience(10, 0)
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(steer(ONE, "b"))
        .may(Hazard::Ask, 1)
        .may(Hazard::Kill, 1)
        .done()
}

/// A session is put away whatever it waits for, beside another one, while answers get lost.
pub(crate) fn put_away() -> Configuration {
    Start::new(shared())
        .at_home("me")
        .session()
        .session()
        .asked(send(ONE, "a"))
        .asked(send(TWO, "b"))
        .asked(Input::Archive { session: ONE, archived: true })
        .may(Hazard::NoAnswer, 1)
        .done()
}

/// The same with a process of its own, while the application is killed.
pub(crate) fn put_away_alone() -> Configuration {
    Start::new(Capabilities { sessions: Sessions::One, ..shared() })
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(Input::Archive { session: ONE, archived: true })
        .asked(send(ONE, "b"))
        .may(Hazard::NoAnswer, 1)
        .may(Hazard::Kill, 1)
        .done()
}

/// A process has nothing to do for long, between two messages of two sessions.
pub(crate) fn idleness() -> Configuration {
    Start::new(shared())
        .patience(0, 15)
        .signed_in("me")
        .session()
        .session()
        .asked(send(ONE, "a"))
        .asked(send(TWO, "b"))
        .asked(Input::SignOut { account: FIRST, now: false })
        .done()
}

/// The same with one session, while processes die and the application is killed.
pub(crate) fn idleness_and_crash() -> Configuration {
    Start::new(shared())
        .patience(10, 15)
        .at_home("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(send(ONE, "b"))
        .may(Hazard::Kill, 1)
        .may(Hazard::Die, 1)
        .done()
}

/// A keychain item is deleted by another program; and the account is removed.
pub(crate) fn deleted_item() -> Configuration {
    Start::new(shared())
        .signed_in("me")
        .session()
        .asked(send(ONE, "a"))
        .asked(Input::RemoveAccount { account: FIRST })
        .asked(Input::SignOut { account: FIRST, now: true })
        .may(Hazard::DeleteItem(CredentialId(0)), 1)
        .may(Hazard::Kill, 2)
        .done()
}
