//! The machine's state as one [`dto::Snapshot`]: groups, statuses and reasons are computed here, from facts alone.

use turnkeep_agents::{Card, ProgramSource};
use turnkeep_model::{
    AccountId, ProviderId, ServerAddress, SessionId, TurnId, derive,
    port::{self, FailureClass, Goals, SignInStep, TurnOutcome},
    state::{self, AccountProblem, Attachment, Now, Phase, State},
};

use crate::{display, dto, words};

mod parts;
mod runtime;
mod session;

pub(crate) use parts::file_change;
pub use parts::{failure, goal_from, session_settings_from, settings, settings_from};
pub use runtime::{Ended, live_runtimes, runtime, threads};
pub use session::{commands, group};

/// What a snapshot is made from.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub state: &'a State,
    pub cards: &'a [Card],
    pub now: Now,
    /// Of the application.
    pub version: &'a str,
    /// The person's home, so that folders can be shown below `~`.
    pub home: &'a str,
    pub recovery: Option<&'a dto::Recovery>,
    pub fatal: Option<&'a str>,
}

impl<'a> Facts<'a> {
    /// The provider's name for people.
    #[must_use]
    pub fn provider_name(&self, provider: &'a ProviderId) -> &'a str {
        self.card(provider).map_or(provider.as_str(), |card| card.name.as_str())
    }

    fn card(&self, provider: &ProviderId) -> Option<&'a Card> {
        self.cards.iter().find(|card| card.id == *provider)
    }

    /// A folder as people write it.
    #[must_use]
    pub fn folder(&self, path: &str) -> String {
        match path.strip_prefix(self.home) {
            Some("") if !self.home.is_empty() => "~".to_owned(),
            Some(rest) if !self.home.is_empty() && rest.starts_with('/') => format!("~{rest}"),
            _ => path.to_owned(),
        }
    }

    /// Running turns on what is no longer the provider's current sign-in.
    pub fn finishing(&self, provider: &ProviderId) -> impl Iterator<Item = &'a state::Turn> {
        let entry = self.state.providers.get(provider);
        let of_provider = provider.clone();
        self.state.turns.values().filter(move |turn| {
            let theirs = self.state.sessions.get(&turn.session).is_some_and(|session| session.provider == of_provider);
            theirs && entry.is_some_and(|entry| turn.epoch != entry.epoch)
        })
    }

    /// Boot milliseconds as Unix milliseconds.
    fn wall(&self, boot: u64) -> i64 {
        let from_now = i64::try_from(boot).unwrap_or(i64::MAX).saturating_sub_unsigned(self.now.boot);
        self.now.wall.saturating_add(from_now)
    }
}

/// Everything but transcripts.
#[must_use]
pub fn snapshot(facts: &Facts<'_>) -> dto::Snapshot {
    let state = facts.state;
    dto::Snapshot {
        seq: state.seq.0,
        now: facts.now.wall,
        version: facts.version.to_owned(),
        home: facts.home.to_owned(),
        providers: facts.cards.iter().map(|card| provider(facts, card)).collect(),
        keychain: parts::keychain(&state.keychain),
        sign_ins: state.sign_ins.iter().map(|(id, sign_in)| parts::sign_in(id.0, sign_in)).collect(),
        sessions: session::sessions(facts),
        approvals: approvals(state),
        settings: settings(&state.settings),
        quit: state.quit.as_ref().map(|quit| self::quit(facts, quit)),
        recovery: facts.recovery.cloned(),
        fatal: facts.fatal.map(str::to_owned),
    }
}

fn provider(facts: &Facts<'_>, card: &Card) -> dto::Provider {
    let entry = facts.state.providers.get(&card.id);
    // What the machine heard of the program itself is later than what its card says.
    let capabilities = entry.map_or(&card.capabilities, |entry| &entry.capabilities);
    let accounts = accounts(facts, &card.id);
    let built_in = card.program == ProgramSource::Own;
    dto::Provider {
        id: card.id.to_string(),
        name: card.name.clone(),
        installed: entry.map_or(dto::Installed::Unknown, |entry| parts::installed(&entry.installed)),
        current: entry.and_then(|entry| entry.current).map(|id| id.to_string()),
        needs_account: !built_in || accounts.iter().any(|account| account.state != dto::AccountState::SignedIn),
        accounts,
        models: entry.map(|entry| entry.models.iter().map(parts::model).collect()).unwrap_or_default(),
        sign_in: card.sign_in.iter().map(parts::sign_in_method).collect(),
        offers: entry.map(|entry| entry.offers.iter().map(parts::sign_in_offer).collect()).unwrap_or_default(),
        install: card.install.clone(),
        built_in,
        serve: card.serve.clone(),
        can_steer: capabilities.steer,
        has_goals: capabilities.goals != Goals::None,
        has_threads: capabilities.threads,
        has_commands: capabilities.commands,
        finishing_turns: count(facts.finishing(&card.id).count()),
    }
}

fn accounts(facts: &Facts<'_>, provider: &ProviderId) -> Vec<dto::Account> {
    let current = facts.state.providers.get(provider).and_then(|entry| entry.current);
    let theirs = facts.state.accounts.iter().filter(|(_, account)| account.provider == *provider);
    theirs
        .map(|(&id, account)| dto::Account {
            id: id.to_string(),
            label: account_label(account),
            identity: account.identity.as_ref().map(|identity| identity.label.clone()),
            plan: account.identity.as_ref().and_then(|identity| identity.plan.clone()),
            kind: match account.kind {
                state::AccountKind::ApiKey => dto::AccountKind::ApiKey,
                state::AccountKind::PrivateHome => dto::AccountKind::PrivateHome,
                state::AccountKind::System => dto::AccountKind::System,
                state::AccountKind::Server { .. } => dto::AccountKind::Server,
            },
            server: account.kind.server().map(|address| server(facts, id, address)),
            current: current == Some(id),
            state: account_state(facts, id, account),
            limits: account.limits.iter().map(parts::rate_limit).collect(),
            verified_at: account.verified_at,
            known: account.verified_at.is_some() || account.identity.is_some(),
            given_up: account.restarts.given_up.as_ref().map(failure),
            finishing_turns: count(facts.finishing(provider).filter(|turn| turn.account == id).count()),
            revocation_owed: facts.state.credentials.values().any(|c| c.account == id && c.owed_revocation),
        })
        .collect()
}

fn server(facts: &Facts<'_>, id: AccountId, address: &ServerAddress) -> dto::Server {
    let mut connections = facts.state.runtimes.values().filter(|runtime| runtime.account == id);
    let connection = connections.find(|runtime| runtime.phase == Phase::Ready);
    dto::Server {
        address: address.to_string(),
        connected: connection.is_some(),
        version: connection.and_then(|runtime| runtime.version.clone()),
    }
}

/// The person's name for it, else who it is, else what it is.
pub(crate) fn account_label(account: &state::Account) -> String {
    if !account.label.is_empty() {
        return account.label.clone();
    }
    if let Some(address) = account.kind.server() {
        return words::server_account(address.as_str());
    }
    account.identity.as_ref().map_or_else(
        || {
            let word = match account.kind {
                state::AccountKind::ApiKey => words::API_KEY_ACCOUNT,
                state::AccountKind::PrivateHome => words::NEW_ACCOUNT,
                state::AccountKind::System | state::AccountKind::Server { .. } => words::SYSTEM_ACCOUNT,
            };
            word.to_owned()
        },
        |identity| identity.label.clone(),
    )
}

fn account_state(facts: &Facts<'_>, id: AccountId, account: &state::Account) -> dto::AccountState {
    if facts.state.sign_ins.values().any(|sign_in| sign_in.account == id && sign_in.failure.is_none()) {
        return dto::AccountState::SigningIn;
    }
    match &account.problem {
        Some(AccountProblem::Rejected(failure)) => dto::AccountState::Rejected { failure: parts::failure(failure) },
        Some(AccountProblem::ItemMissing) => dto::AccountState::ItemMissing,
        Some(AccountProblem::SignedOutElsewhere) => dto::AccountState::SignedOut,
        Some(AccountProblem::KeychainLocked) => dto::AccountState::KeychainLocked,
        Some(AccountProblem::KeychainAbsent) => dto::AccountState::KeychainAbsent,
        Some(AccountProblem::Other(failure)) => dto::AccountState::Troubled { failure: parts::failure(failure) },
        None if account.credential.is_none() => dto::AccountState::SignedOut,
        // What lies in the keychain is out of reach while it is locked, whoever noticed it.
        None if derive::needs_keychain(&account.kind) && facts.state.keychain == state::Keychain::Locked => {
            dto::AccountState::KeychainLocked
        }
        None => dto::AccountState::SignedIn,
    }
}

/// Those of turns that have not ended, oldest first; answered ones stay until then, so that everyone learns the answer.
fn approvals(state: &State) -> Vec<dto::Approval> {
    let mut all: Vec<_> = state.approvals.iter().collect();
    all.sort_by_key(|(id, approval)| (approval.asked_at, **id));
    all.into_iter().map(|(id, approval)| parts::approval(id.0, approval)).collect()
}

fn quit(facts: &Facts<'_>, quit: &state::Quit) -> dto::Quit {
    let state = facts.state;
    let turns = state.turns.values().filter_map(|turn| {
        let session = state.sessions.get(&turn.session)?;
        Some(words::waiting_turn(&display::one_line(&session.title, 60)))
    });
    let busy = |id| state.turns.values().any(|turn| turn.runtime == id);
    let runtimes = state.runtimes.iter().filter(|(id, _)| !busy(**id));
    let runtimes = runtimes.map(|(_, runtime)| words::waiting_process(facts.provider_name(&runtime.provider)));
    dto::Quit {
        since: quit.since,
        forced: quit.forced,
        waiting_for: turns.chain(runtimes).collect(),
        deadline: quit.deadline.map(|boot| facts.wall(boot)),
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
