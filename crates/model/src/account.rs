//! Who is signed in. A change of it takes effect at once and waits for nothing; what it means for processes follows from
//! the rules in [`crate::settle`].

use crate::{
    change::Change,
    derive,
    effect::Effect,
    ids::{AccountId, CredentialId, ProviderId, ServerAddress, SignInId, StagedSecret},
    port::{Failure, FailureClass, Observation, SignInMethod},
    rules::Rules,
    state::{Account, AccountKind, AccountProblem, Credential, Keychain, Restarts, SignIn},
    supervisor::Supervisor,
};

/// Milliseconds that a person has for a sign-in.
const SIGN_IN_WITHIN: u64 = 15 * 60 * 1000;
/// Milliseconds before a failed revocation is tried again.
const REVOKE_AGAIN_AFTER: u64 = 30_000;

impl<R: Rules> Supervisor<R> {
    /// Somebody looked who stands behind a credential. Only the credential that an account has now counts.
    pub(crate) fn observe(&mut self, credential: CredentialId, seen: Observation) {
        let Some((id, account)) = self.state.accounts.iter().find(|(_, a)| a.credential == Some(credential)) else { return };
        let id = *id;
        match seen {
            Observation::Unknown { .. } => {}
            Observation::Someone(identity) => {
                let other = account.identity.as_ref().is_some_and(|known| known.fingerprint != identity.fingerprint);
                if account.identity.as_ref() != Some(&identity) {
                    self.commit(Change::AccountIdentified { account: id, identity });
                }
                if other {
                    self.identity_changed(id);
                }
            }
            // What a locked keychain hides is not gone.
            Observation::NoOne if derive::needs_keychain(&account.kind) && self.state.keychain == Keychain::Locked => {}
            // The connection is what we have, and it is there; that nobody is signed in behind it is the server's word.
            Observation::NoOne if account.kind.server().is_some() => self.rejected(id, signed_out_there()),
            Observation::NoOne => {
                let ours = account.kind != AccountKind::System;
                self.leave(id, ours);
                let problem = if ours { AccountProblem::ItemMissing } else { AccountProblem::SignedOutElsewhere };
                self.commit(Change::AccountTroubled { account: id, problem: Some(problem) });
            }
        }
    }

    /// The provider refused the credential of the account that new turns go to.
    pub(crate) fn rejected(&mut self, account: AccountId, failure: Failure) {
        if !self.is_current(account) {
            return;
        }
        self.commit(Change::AccountTroubled { account, problem: Some(AccountProblem::Rejected(failure)) });
        self.identity_changed(account);
    }

    /// A call with the account's credential really succeeded.
    pub(crate) fn verified(&mut self, account: AccountId) {
        self.commit(Change::AccountVerified { account, at: self.now.wall });
    }

    pub(crate) fn sign_out(&mut self, account: AccountId, now: bool) {
        let Some(credential) = self.state.accounts.get(&account).and_then(|a| a.credential) else { return };
        let owed = self.state.credentials.get(&credential).is_some_and(|c| c.kind.server().is_none());
        self.leave(account, owed);
        if self.state.accounts.get(&account).is_some_and(|a| a.problem.is_some()) {
            self.commit(Change::AccountTroubled { account, problem: None });
        }
        if now {
            let runtimes = &self.state.runtimes;
            let uses = |r| runtimes.get(&r).is_some_and(|r| r.credential == credential);
            let turns: Vec<_> = self.state.turns.iter().filter(|(_, t)| uses(t.runtime)).map(|(id, _)| *id).collect();
            for turn in turns {
                self.interrupt(turn);
            }
        }
    }

    pub(crate) fn use_account(&mut self, account: AccountId) {
        let Some(entry) = self.state.accounts.get(&account) else { return };
        let provider = entry.provider.clone();
        if !self.is_current(account) {
            self.forgive_account(account);
            self.begin_epoch(provider, Some(account));
        }
    }

    pub(crate) fn remove_account(&mut self, account: AccountId) {
        let Some(entry) = self.state.accounts.get(&account) else { return };
        // The provider's own sign-in on this computer is not ours to take off the list.
        if entry.kind == AccountKind::System {
            return;
        }
        let provider = entry.provider.clone();
        self.sign_out(account, false);
        for sign_in in self.sign_ins_of(account) {
            self.cancel_sign_in(sign_in);
        }
        if self.is_current(account) {
            self.begin_epoch(provider, None);
        }
        self.commit(Change::AccountRemoved { account });
    }

    /// The provider's own sign-in on this computer was looked at.
    pub(crate) fn system_account(&mut self, provider: ProviderId, present: bool) {
        if !self.state.providers.contains_key(&provider) {
            return;
        }
        let known = self.state.accounts.iter().find(|(_, a)| a.provider == provider && a.kind == AccountKind::System);
        let known = known.map(|(id, a)| (*id, a.credential, a.problem.clone(), a.trial));
        match (known, present) {
            (Some((_, Some(credential), ..)), false) => self.observe(credential, Observation::NoOne),
            (None | Some((_, None, ..)), false) => {}
            // Written anew: worth a try, and no more than that.
            (Some((account, Some(_), Some(AccountProblem::Rejected(_)), false)), true) => {
                self.commit(Change::AccountTried { account });
            }
            (Some((_, Some(_), ..)), true) => {}
            (Some((account, None, problem, _)), true) => {
                let leaving = self.state.credentials.values().any(|c| c.account == account && c.owed_revocation);
                if leaving {
                    return;
                }
                let credential = self.new_credential(&provider, account, AccountKind::System);
                self.commit(Change::AccountSignedIn { account, credential, identity: None });
                match problem {
                    Some(AccountProblem::Rejected(_)) => self.commit(Change::AccountTried { account }),
                    Some(_) => self.commit(Change::AccountTroubled { account, problem: None }),
                    None => {}
                }
                self.arrive(provider, account);
            }
            (None, true) => {
                let account = self.new_account(&provider, String::new(), AccountKind::System);
                let credential = self.new_credential(&provider, account, AccountKind::System);
                self.commit(Change::AccountSignedIn { account, credential, identity: None });
                self.arrive(provider, account);
            }
        }
    }

    /// A sign-in of the provider on this computer is taken to be there. One that was ended here stays ended.
    pub(crate) fn system_assumed(&mut self, provider: ProviderId) {
        let known = self.state.accounts.values().find(|a| a.provider == provider && a.kind == AccountKind::System);
        if known.is_none_or(|a| a.credential.is_some() || a.problem.is_some()) {
            self.system_account(provider, true);
        }
    }

    /// Makes a server that somebody else started an account, or tries it again where it is one already. Nothing is
    /// connected before a session needs it.
    pub(crate) fn attach(&mut self, provider: ProviderId, address: ServerAddress, label: String) {
        if self.state.quit.is_some() || !self.state.providers.contains_key(&provider) {
            return;
        }
        let kind = AccountKind::Server { address };
        let known = self.state.accounts.iter().find(|(_, a)| a.provider == provider && a.kind == kind).map(|(id, _)| *id);
        let account = known.unwrap_or_else(|| self.new_account(&provider, label, kind.clone()));
        let Some(entry) = self.state.accounts.get(&account) else { return };
        if entry.credential.is_some() {
            if entry.problem.is_some() && !entry.trial {
                self.commit(Change::AccountTried { account });
            }
            self.forgive_account(account);
            return;
        }
        let credential = self.new_credential(&provider, account, kind);
        self.commit(Change::AccountSignedIn { account, credential, identity: None });
        self.arrive(provider, account);
    }

    // ---- signing in ------------------------------------------------------------------------

    pub(crate) fn begin_sign_in(
        &mut self,
        provider: ProviderId,
        account: Option<AccountId>,
        label: String,
        method: SignInMethod,
        key: Option<StagedSecret>,
    ) {
        // What the provider's own program does is done to its own sign-in on this computer, of which there is one.
        let own = match &method {
            SignInMethod::Advertised { .. } | SignInMethod::Elsewhere => true,
            SignInMethod::Browser | SignInMethod::DeviceCode | SignInMethod::ApiKey => false,
        };
        let system = |(_, a): &(&AccountId, &Account)| a.provider == provider && a.kind == AccountKind::System;
        let account = if own { self.state.accounts.iter().find(system).map(|(id, _)| *id) } else { account };
        let known = account.and_then(|id| self.state.accounts.get(&id)).filter(|a| a.provider == provider);
        if self.state.quit.is_some() || !self.state.providers.contains_key(&provider) || account.is_some() != known.is_some() {
            return;
        }
        let kind = match (known.map(|a| &a.kind), &method) {
            // A server's sign-in is its own business.
            (Some(AccountKind::Server { .. }), _) => return,
            (Some(AccountKind::System), _) | (_, SignInMethod::Advertised { .. } | SignInMethod::Elsewhere) => {
                AccountKind::System
            }
            (_, SignInMethod::ApiKey) => AccountKind::ApiKey,
            (_, SignInMethod::Browser | SignInMethod::DeviceCode) => AccountKind::PrivateHome,
        };
        let account = match account {
            Some(account) => account,
            None => self.new_account(&provider, label, kind.clone()),
        };
        for earlier in self.sign_ins_of(account) {
            self.cancel_sign_in(earlier);
        }
        let credential = self.new_credential(&provider, account, kind);
        let sign_in = SignInId(self.state.next.sign_in);
        let entry = SignIn {
            provider: provider.clone(),
            account,
            credential,
            method: method.clone(),
            step: None,
            failure: None,
            cancelling: false,
            deadline: self.now.boot + SIGN_IN_WITHIN,
        };
        self.commit(Change::SignInBegan { sign_in, entry });
        self.ask(Effect::SignIn { sign_in, provider, account, credential, method, key });
    }

    /// Gives up a sign-in that runs, or takes one that failed off the list.
    pub(crate) fn cancel_sign_in(&mut self, sign_in: SignInId) {
        let Some(entry) = self.state.sign_ins.get(&sign_in) else { return };
        if entry.failure.is_some() {
            self.close_sign_in(sign_in);
        } else if !entry.cancelling {
            self.commit(Change::SignInCancelling { sign_in });
        }
    }

    pub(crate) fn sign_in_ended(&mut self, sign_in: SignInId, result: Result<Observation, Failure>) {
        let Some(entry) = self.state.sign_ins.get(&sign_in).filter(|s| s.failure.is_none()).cloned() else { return };
        let no_one = || Failure {
            class: FailureClass::SignedOut,
            message: "The sign-in ended, and yet nobody is signed in. Try again.".to_owned(),
            detail: None,
        };
        let identity = match result {
            Ok(Observation::Someone(identity)) => Ok(Some(identity)),
            Ok(Observation::Unknown { .. }) => Ok(None),
            Ok(Observation::NoOne) => Err(no_one()),
            Err(failure) => Err(failure),
        };
        let Some(account) = self.state.accounts.get(&entry.account).filter(|_| !entry.cancelling) else {
            self.close_sign_in(sign_in);
            return;
        };
        match identity {
            Err(failure) => {
                self.commit(Change::SignInFailed { sign_in, failure });
                self.end_credential(entry.credential);
            }
            Ok(identity) => {
                let before = account.credential;
                let troubled = account.problem.is_some();
                let refused = matches!(account.problem, Some(AccountProblem::Rejected(_)));
                let unnamed = identity.is_none();
                self.commit(Change::AccountSignedIn { account: entry.account, credential: entry.credential, identity });
                self.commit(Change::SignInClosed { sign_in });
                if refused && unnamed {
                    // Nobody was named, so only a call that succeeds says that the provider accepts it.
                    self.commit(Change::AccountTried { account: entry.account });
                } else if troubled {
                    self.commit(Change::AccountTroubled { account: entry.account, problem: None });
                }
                if let Some(before) = before {
                    self.end_credential(before);
                }
                self.arrive(entry.provider, entry.account);
            }
        }
    }

    /// Takes a sign-in away, with what it may have left: its credential, and an account that was made for it alone.
    pub(crate) fn close_sign_in(&mut self, sign_in: SignInId) {
        let Some(entry) = self.state.sign_ins.get(&sign_in).cloned() else { return };
        self.commit(Change::SignInClosed { sign_in });
        self.end_credential(entry.credential);
        let unused = |a: &Account| a.credential.is_none() && a.identity.is_none() && a.verified_at.is_none();
        if self.state.accounts.get(&entry.account).is_some_and(unused)
            && !self.is_current(entry.account)
            && self.sign_ins_of(entry.account).is_empty()
        {
            self.commit(Change::AccountRemoved { account: entry.account });
        }
    }

    pub(crate) fn revoked(&mut self, credential: CredentialId, result: Result<(), Failure>) {
        if !self.state.credentials.get(&credential).is_some_and(|c| c.owed_revocation) {
            return;
        }
        match result {
            Ok(()) => self.commit(Change::CredentialForgotten { credential }),
            Err(_) => {
                let not_before = self.now.boot + REVOKE_AGAIN_AFTER;
                self.commit(Change::RevocationDelayed { credential, not_before });
            }
        }
    }

    // ---- parts -----------------------------------------------------------------------------

    pub(crate) fn is_current(&self, account: AccountId) -> bool {
        let Some(entry) = self.state.accounts.get(&account) else { return false };
        self.state.providers.get(&entry.provider).is_some_and(|p| p.current == Some(account))
    }

    /// No failed start of an earlier credential or run speaks against the next one.
    pub(crate) fn forgive_account(&mut self, account: AccountId) {
        if self.state.accounts.get(&account).is_some_and(|a| a.restarts != Restarts::default()) {
            self.commit(Change::AccountRestartsCounted { account, restarts: Restarts::default() });
        }
    }

    /// The account has no credential from here on.
    fn leave(&mut self, account: AccountId, owed: bool) {
        let Some(credential) = self.state.accounts.get(&account).and_then(|a| a.credential) else { return };
        self.commit(Change::AccountSignedOut { account });
        if owed {
            self.commit(Change::RevocationOwed { credential });
        }
        self.identity_changed(account);
    }

    /// The account has a credential from here on; it becomes the current one where there is none that could be used.
    fn arrive(&mut self, provider: ProviderId, account: AccountId) {
        let usable = derive::current_account(&self.state, &provider).is_some_and(|(_, a)| derive::is_signed_in(a));
        if self.is_current(account) || !usable {
            self.forgive_account(account);
            self.begin_epoch(provider, Some(account));
        }
    }

    fn identity_changed(&mut self, account: AccountId) {
        self.forgive_account(account);
        if self.is_current(account)
            && let Some(provider) = self.state.accounts.get(&account).map(|a| a.provider.clone())
        {
            self.begin_epoch(provider, Some(account));
        }
    }

    fn begin_epoch(&mut self, provider: ProviderId, current: Option<AccountId>) {
        let Some(mut epoch) = self.state.providers.get(&provider).map(|p| p.epoch) else { return };
        epoch.0 += 1;
        self.commit(Change::EpochBegan { provider, epoch, current });
    }

    fn end_credential(&mut self, credential: CredentialId) {
        if self.state.credentials.get(&credential).is_some_and(|c| !c.owed_revocation && c.kind.is_revoked()) {
            self.commit(Change::RevocationOwed { credential });
        }
    }

    fn sign_ins_of(&self, account: AccountId) -> Vec<SignInId> {
        self.state.sign_ins.iter().filter(|(_, s)| s.account == account).map(|(id, _)| *id).collect()
    }

    fn new_account(&mut self, provider: &ProviderId, label: String, kind: AccountKind) -> AccountId {
        let account = AccountId(self.state.next.account);
        let entry = Account {
            provider: provider.clone(),
            label,
            kind,
            credential: None,
            identity: None,
            problem: None,
            trial: false,
            limits: Vec::new(),
            verified_at: None,
            restarts: Restarts::default(),
        };
        self.commit(Change::AccountAdded { account, entry });
        account
    }

    fn new_credential(&mut self, provider: &ProviderId, account: AccountId, kind: AccountKind) -> CredentialId {
        let credential = CredentialId(self.state.next.credential);
        let entry = Credential { provider: provider.clone(), account, kind, owed_revocation: false, not_before: 0 };
        self.commit(Change::CredentialAdded { credential, entry });
        credential
    }
}

fn signed_out_there() -> Failure {
    Failure {
        class: FailureClass::SignedOut,
        message: "Nobody is signed in at this server. Sign in there, by the means of whoever started it, then try again."
            .to_owned(),
        detail: None,
    }
}
