//! A small world to look at, for the tests.

use std::collections::BTreeMap;

use turnkeep_agents::{Card, ProgramSource};
use turnkeep_model::{
    AccountId, ApprovalId, AuthEpoch, CredentialId, MessageId, ProviderId, RequestKey, RuntimeId, SessionId, TurnId,
    port::{
        Ask, AskBody, Capabilities, Choice, Failure, FailureClass, Goals, Identity, SessionSettings, Sessions, SignInMethod,
        TurnOutcome, Usage,
    },
    state::{
        Account, AccountKind, Approval, ApprovalState, Attachment, Delivery, EndedTurn, Installed, Now, OpenDelay, Provider,
        QueuedMessage, Restarts, Session, State, Turn, TurnState,
    },
};

use crate::snapshot::Facts;

/// Unix milliseconds of the sample's present.
pub(crate) const WALL: i64 = 1_000_000;

pub(crate) struct Sample {
    pub(crate) state: State,
    pub(crate) cards: Vec<Card>,
}

pub(crate) fn capabilities() -> Capabilities {
    Capabilities {
        sessions: Sessions::Many,
        resume: true,
        steer: true,
        interrupt: true,
        goals: Goals::Native,
        history_probe: true,
        approvals: true,
        threads: true,
        commands: true,
        fork: true,
    }
}

pub(crate) fn failure(class: FailureClass, message: &str) -> Failure {
    Failure { class, message: message.to_owned(), detail: None }
}

impl Sample {
    /// One provider that is installed, with one account that is signed in, and no session.
    pub(crate) fn new() -> Self {
        let provider = ProviderId::new("codex");
        let card = Card {
            id: provider.clone(),
            name: "Codex".to_owned(),
            full_name: "Codex (OpenAI)".to_owned(),
            capabilities: capabilities(),
            sign_in: vec![SignInMethod::Browser, SignInMethod::DeviceCode, SignInMethod::ApiKey],
            program: ProgramSource::Search { names: vec!["codex".to_owned()], says_version: true },
            install: vec!["npm install -g @openai/codex".to_owned()],
            system_home: ("CODEX_HOME".to_owned(), ".codex".to_owned()),
            own_variables: Vec::new(),
            serve: None,
        };
        let mut state = State::default();
        state.providers.insert(
            provider,
            Provider {
                epoch: AuthEpoch(3),
                current: Some(AccountId(1)),
                capabilities: capabilities(),
                installed: Installed::Found { path: "/usr/bin/codex".into(), version: Some("0.58.0".into()) },
                models: Vec::new(),
                offers: Vec::new(),
                introduced: false,
            },
        );
        let mut sample = Self { state, cards: vec![card] };
        sample.account(1, "work", "maria@northwind.dev");
        sample
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            state: &self.state,
            cards: &self.cards,
            now: Now { wall: WALL, boot: 500_000 },
            version: "0.1.0",
            home: "/home/maria",
            recovery: None,
            fatal: None,
        }
    }

    pub(crate) fn account(&mut self, id: u64, label: &str, identity: &str) -> &mut Account {
        let account = Account {
            provider: ProviderId::new("codex"),
            label: label.to_owned(),
            kind: AccountKind::PrivateHome,
            credential: Some(CredentialId(id)),
            identity: Some(Identity { fingerprint: identity.to_owned(), label: identity.to_owned(), plan: Some("Team".into()) }),
            problem: None,
            trial: false,
            limits: Vec::new(),
            verified_at: None,
            restarts: Restarts::default(),
        };
        self.state.accounts.insert(AccountId(id), account);
        self.state.accounts.get_mut(&AccountId(id)).unwrap()
    }

    /// An agent that is built in, with the account that such a one always has; gives it.
    pub(crate) fn built_in(&mut self, id: u64) -> &mut Account {
        let provider = ProviderId::new("own");
        let own = Card { id: provider.clone(), name: "Own".to_owned(), program: ProgramSource::Own, ..self.cards[0].clone() };
        self.cards.push(own);
        let entry = Provider { current: Some(AccountId(id)), ..self.state.providers[&ProviderId::new("codex")].clone() };
        self.state.providers.insert(provider.clone(), entry);
        let account = self.account(id, "", "");
        account.provider = provider;
        account
    }

    pub(crate) fn sign_out(&mut self) {
        self.state.accounts.get_mut(&AccountId(1)).unwrap().credential = None;
        self.state.providers.get_mut(&ProviderId::new("codex")).unwrap().epoch = AuthEpoch(4);
    }

    pub(crate) fn session(&mut self, id: u64, title: &str) -> &mut Session {
        let session = Session {
            provider: ProviderId::new("codex"),
            folder: "/home/maria/src/billing".to_owned(),
            title: title.to_owned(),
            thread: None,
            settings: SessionSettings::default(),
            attachment: Attachment::Detached,
            queue: Vec::new(),
            undecided: Vec::new(),
            goal: None,
            goal_held: false,
            turn: None,
            last_turn: None,
            unread: false,
            seen_at: 0,
            history_owed: false,
            fork_of: None,
            commands: Vec::new(),
            archived: false,
            preview: String::new(),
            plan: Vec::new(),
            usage: Usage::default(),
            created_at: 0,
            active_at: 1000 * i64::try_from(id).unwrap(),
            open_failure: None,
            open_delay: OpenDelay::default(),
            restarts: Restarts::default(),
        };
        self.state.sessions.insert(SessionId(id), session);
        self.state.sessions.get_mut(&SessionId(id)).unwrap()
    }

    /// A session with a running turn of the same number.
    pub(crate) fn running(&mut self, id: u64, title: &str) -> &mut Turn {
        let session = self.session(id, title);
        session.turn = Some(TurnId(id));
        session.attachment = Attachment::Open { runtime: RuntimeId(1) };
        let turn = Turn {
            session: SessionId(id),
            runtime: RuntimeId(1),
            account: AccountId(1),
            epoch: AuthEpoch(3),
            message: Some(MessageId::new(format!("m{id}"))),
            text: "Do it.".to_owned(),
            state: TurnState::Started,
            provider_turn: None,
            steers: Vec::new(),
            started_at: 100 * i64::try_from(id).unwrap(),
            retrying: None,
            interrupting: false,
            closed: None,
            quiet: None,
        };
        self.state.turns.insert(TurnId(id), turn);
        self.state.turns.get_mut(&TurnId(id)).unwrap()
    }

    /// A session whose last turn ended like this, not yet looked at.
    pub(crate) fn ended(&mut self, id: u64, title: &str, outcome: TurnOutcome) -> &mut Session {
        let session = self.session(id, title);
        session.unread = true;
        session.last_turn = Some(EndedTurn {
            turn: TurnId(id),
            provider_turn: None,
            account: AccountId(1),
            message: None,
            outcome,
            started_at: 0,
            ended_at: 1_080_000,
        });
        session
    }

    /// A question of the running turn of the same number.
    pub(crate) fn asks(&mut self, id: u64, body: AskBody) -> &mut Approval {
        let approval = Approval {
            session: SessionId(id),
            runtime: RuntimeId(1),
            turn: TurnId(id),
            request: RequestKey::new(format!("r{id}")),
            ask: Ask { body, reason: None, choices: vec![Choice::Allow, Choice::AllowForSession, Choice::Deny], item: None },
            state: ApprovalState::Pending,
            asked_at: 10 * i64::try_from(id).unwrap(),
        };
        self.state.approvals.insert(ApprovalId(id), approval);
        self.state.approvals.get_mut(&ApprovalId(id)).unwrap()
    }

    pub(crate) fn asks_command(&mut self, id: u64, command: &str) -> &mut Approval {
        let cwd = "/home/maria/src/billing".to_owned();
        self.asks(id, AskBody::Command { command: command.to_owned(), cwd, may_run_unsandboxed: false })
    }
}

pub(crate) fn message(id: &str, text: &str) -> QueuedMessage {
    QueuedMessage { id: MessageId::new(id), text: text.to_owned(), at: 7, delivery: Delivery::Queued }
}

/// No answers, for questions.
pub(crate) fn answers(pairs: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    pairs.iter().map(|(id, texts)| ((*id).to_owned(), texts.iter().map(|text| (*text).to_owned()).collect())).collect()
}
