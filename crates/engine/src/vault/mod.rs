//! The keychain of the operating system: what a person entrusts to us lies there and nowhere else.
//!
//! The only place that can name a secret. A locked keychain, one that is absent and an item that is missing are three
//! different answers, found out without asking the person; only [`Vault::unlock`] and the storing of a key may bring a prompt.
//! Nothing here waits longer than its deadline, and nothing is ever written to a file instead.

mod thread;

#[cfg(target_os = "linux")]
mod secret_service;
#[cfg(target_os = "linux")]
use secret_service as system;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
use other as system;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

pub use secrecy::SecretString;
use secrecy::{ExposeSecret, zeroize::Zeroizing};
use sha2::{Digest, Sha256};
use turnkeep_model::{
    CredentialId, StagedSecret,
    port::{Failure, FailureClass, Identity},
    state::Keychain,
};

#[cfg(target_os = "linux")]
pub(crate) use self::secret_service::NAME as SERVICE_ON_BUS;
use self::thread::KeychainThread;

/// Our name in the keychain: nobody else's items have it.
const SERVICE: &str = "dev.turnkeep.Turnkeep";

/// For everything that must not ask a person.
const DEADLINE: Duration = Duration::from_secs(3);

/// For a person to answer a prompt.
const PROMPT_DEADLINE: Duration = Duration::from_secs(120);

/// Why the keychain did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("the keychain is locked")]
    Locked,
    #[error("there is no keychain: {why}")]
    Absent { why: String },
    #[error("the keychain has no such item")]
    Missing,
    #[error("the keychain did not answer in time")]
    Hung,
    /// It answered, and said no.
    #[error("the keychain refused: {why}")]
    Refused { why: String },
}

impl VaultError {
    /// In words that a person can act on.
    #[must_use]
    pub fn to_failure(&self) -> Failure {
        let (class, message, detail) = match self {
            Self::Locked => (FailureClass::KeychainLocked, "The keychain is locked. Unlock it, then try again.", None),
            Self::Absent { why } => (
                FailureClass::KeychainAbsent,
                "This computer has no keychain that Turnkeep can use, so nothing was stored. Start one (on Linux: GNOME \
                 Keyring, KWallet or KeePassXC), then try again.",
                Some(why.clone()),
            ),
            Self::Missing => (FailureClass::SignedOut, "The sign-in is not in the keychain any more. Sign in again.", None),
            Self::Hung => (
                FailureClass::KeychainAbsent,
                "The keychain does not answer. Look for an open password prompt, or restart the keychain, then try again.",
                None,
            ),
            Self::Refused { why } => {
                (FailureClass::Other, "The keychain did not do what it was asked. Try again.", Some(why.clone()))
            }
        };
        Failure { class, message: message.to_owned(), detail }
    }
}

/// Access to the keychain. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Vault {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    instance: String,
    staged: Mutex<Staged>,
    /// Who the keys are that were seen, so that nobody has to be asked twice.
    identities: Mutex<BTreeMap<CredentialId, Identity>>,
    thread: KeychainThread,
}

#[derive(Debug, Default)]
struct Staged {
    secrets: BTreeMap<StagedSecret, SecretString>,
    next: u64,
}

impl Vault {
    /// The vault of this state directory; items of others are never touched.
    #[must_use]
    pub fn new(instance: &str) -> Self {
        // An id from an earlier run must not name a later secret.
        let next = u64::try_from(crate::clock::now().wall).unwrap_or(0).saturating_mul(1000);
        Self {
            inner: Arc::new(Inner {
                instance: instance.to_owned(),
                staged: Mutex::new(Staged { secrets: BTreeMap::new(), next }),
                identities: Mutex::default(),
                thread: KeychainThread::default(),
            }),
        }
    }

    /// Hold a secret in memory until a sign-in stores it. Never touches the keychain.
    #[must_use]
    pub fn stage(&self, secret: SecretString) -> StagedSecret {
        let mut staged = self.inner.staged.lock().unwrap_or_else(PoisonError::into_inner);
        let id = StagedSecret(staged.next);
        staged.next += 1;
        staged.secrets.insert(id, secret);
        id
    }

    /// Let go of a secret that will not be stored.
    pub fn unstage(&self, staged: StagedSecret) {
        self.inner.staged.lock().unwrap_or_else(PoisonError::into_inner).secrets.remove(&staged);
    }

    /// What can be said about the keychain without asking the person.
    pub async fn look(&self) -> Keychain {
        match within(system::is_locked()).await {
            Ok(true) | Err(VaultError::Locked) => Keychain::Locked,
            Ok(false) | Err(VaultError::Missing) => Keychain::Unlocked,
            Err(VaultError::Absent { why } | VaultError::Refused { why }) => Keychain::Absent { why },
            Err(VaultError::Hung) => Keychain::Absent { why: "the keychain does not answer".to_owned() },
        }
    }

    /// Ask the person to unlock the keychain, and wait for the answer.
    ///
    /// # Errors
    /// [`VaultError::Locked`] if the person declined.
    pub async fn unlock(&self) -> Result<(), VaultError> {
        tokio::time::timeout(PROMPT_DEADLINE, system::unlock()).await.unwrap_or(Err(VaultError::Hung))
    }

    /// Whether an item with these attributes is there and can be read, found out without asking the person.
    ///
    /// # Errors
    /// [`VaultError::Missing`], [`VaultError::Locked`] and the others, as they are.
    pub(crate) async fn find(&self, attributes: &BTreeMap<String, String>) -> Result<(), VaultError> {
        within(system::find(attributes)).await
    }

    /// Delete the items with these attributes, if there are any and the keychain is open.
    pub(crate) async fn delete_found(&self, attributes: &BTreeMap<String, String>) -> Result<(), VaultError> {
        within(system::delete(attributes)).await
    }

    /// Whether the key of this credential is there.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) async fn has(&self, credential: CredentialId) -> Result<(), VaultError> {
        self.find(&self.attributes(credential)).await
    }

    /// Store a staged key for this credential; it is not held in memory any more, whatever comes of it.
    ///
    /// # Errors
    /// A [`Failure`] in plain words.
    pub(crate) async fn keep(&self, credential: CredentialId, staged: StagedSecret) -> Result<Identity, Failure> {
        let secret = self.inner.staged.lock().unwrap_or_else(PoisonError::into_inner).secrets.remove(&staged);
        let Some(secret) = secret else { return Err(plain("The key is not held in memory any more. Enter it again.")) };
        let secret = accept(&secret)?;
        let identity = identity_of(&secret);
        within(system::is_locked())
            .await
            .and_then(|locked| if locked { Err(VaultError::Locked) } else { Ok(()) })
            .map_err(|error| error.to_failure())?;
        let label = format!("Turnkeep: {}", identity.label);
        let user = self.user(credential);
        self.run(move || entry(&user, Some(&label))?.set_password(secret.expose_secret()))
            .await
            .map_err(|error| error.to_failure())?;
        self.remember(credential, &identity);
        Ok(identity)
    }

    /// Remove the key of this credential; that it was not there is a success.
    ///
    /// # Errors
    /// Whatever keeps it from being removed now.
    pub(crate) async fn forget(&self, credential: CredentialId) -> Result<(), VaultError> {
        match self.has(credential).await {
            Err(VaultError::Missing) => return Ok(()),
            found => found?,
        }
        let user = self.user(credential);
        match self.run(move || entry(&user, None)?.delete_credential()).await {
            Ok(()) | Err(VaultError::Missing) => {}
            Err(error) => return Err(error),
        }
        self.inner.identities.lock().unwrap_or_else(PoisonError::into_inner).remove(&credential);
        Ok(())
    }

    /// `head`, the key of this credential as a JSON string, `tail` and a line end, in memory that is wiped.
    ///
    /// # Errors
    /// Never prompts: a locked keychain is [`VaultError::Locked`].
    pub(crate) async fn fill(&self, credential: CredentialId, head: &str, tail: &str) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let secret = self.read(credential).await?;
        self.remember(credential, &identity_of(&secret));
        Ok(frame(head, secret.expose_secret(), tail))
    }

    /// The key of this credential as it is, in memory that is wiped.
    ///
    /// # Errors
    /// As [`Self::fill`].
    pub(crate) async fn value(&self, credential: CredentialId) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let secret = self.read(credential).await?;
        self.remember(credential, &identity_of(&secret));
        Ok(Zeroizing::new(secret.expose_secret().as_bytes().to_vec()))
    }

    /// Whose key it is; the keychain is asked at most once in a run.
    ///
    /// # Errors
    /// Never prompts.
    pub(crate) async fn identity(&self, credential: CredentialId) -> Result<Identity, VaultError> {
        if let Some(known) = self.inner.identities.lock().unwrap_or_else(PoisonError::into_inner).get(&credential) {
            return Ok(known.clone());
        }
        let identity = identity_of(&self.read(credential).await?);
        self.remember(credential, &identity);
        Ok(identity)
    }

    /// Attributes by which the item of this credential is found.
    pub(crate) fn attributes(&self, credential: CredentialId) -> BTreeMap<String, String> {
        BTreeMap::from([("service".to_owned(), SERVICE.to_owned()), ("username".to_owned(), self.user(credential))])
    }

    async fn read(&self, credential: CredentialId) -> Result<SecretString, VaultError> {
        // Reading a locked item asks the person: look first.
        self.has(credential).await?;
        let user = self.user(credential);
        self.run(move || entry(&user, None)?.get_password().map(SecretString::from)).await
    }

    fn user(&self, credential: CredentialId) -> String {
        format!("{}/{credential}", self.inner.instance)
    }

    fn remember(&self, credential: CredentialId, identity: &Identity) {
        let mut identities = self.inner.identities.lock().unwrap_or_else(PoisonError::into_inner);
        identities.insert(credential, identity.clone());
    }

    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> keyring_core::Result<T> + Send + 'static,
    ) -> Result<T, VaultError> {
        self.inner.thread.run(job, DEADLINE).await.ok_or(VaultError::Hung)?.map_err(|error| system::judge(&error))
    }
}

async fn within<T>(question: impl Future<Output = Result<T, VaultError>>) -> Result<T, VaultError> {
    tokio::time::timeout(DEADLINE, question).await.unwrap_or(Err(VaultError::Hung))
}

/// A new store for each use: one whose keychain was restarted never works again.
fn entry(user: &str, label: Option<&str>) -> keyring_core::Result<keyring_core::Entry> {
    let modifiers = label.map(|label| [("label", label)].into_iter().collect());
    system::store()?.build(SERVICE, user, modifiers.as_ref())
}

/// A key as it is to be stored: without the white space of a copied line.
fn accept(secret: &SecretString) -> Result<SecretString, Failure> {
    let text = secret.expose_secret().trim();
    if text.is_empty() {
        return Err(plain("The API key is empty. Copy the whole key, then try again."));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(plain("The API key has a line break or a space in it. Copy the key alone, then try again."));
    }
    if text.len() > 2000 {
        return Err(plain("That is too long to be an API key. Copy the key alone, then try again."));
    }
    Ok(SecretString::from(text))
}

fn plain(message: &str) -> Failure {
    Failure { class: FailureClass::Other, message: message.to_owned(), detail: None }
}

/// A digest that names a key and does not tell it: 64 bits of SHA-256, in hexadecimal.
#[must_use]
pub(crate) fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().take(8).fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn identity_of(secret: &SecretString) -> Identity {
    let text = secret.expose_secret();
    let end: String = text.chars().rev().take(4).collect::<Vec<_>>().into_iter().rev().collect();
    let label = if text.chars().count() >= 16 { format!("API key ending {end}") } else { "API key".to_owned() };
    Identity { fingerprint: format!("api-key:{}", digest(text.as_bytes())), label, plan: None }
}

/// One allocation, so that no copy stays behind.
fn frame(head: &str, secret: &str, tail: &str) -> Zeroizing<Vec<u8>> {
    let mut line = Zeroizing::new(Vec::with_capacity(head.len() + 6 * secret.len() + tail.len() + 3));
    line.extend_from_slice(head.as_bytes());
    line.push(b'"');
    for byte in secret.bytes() {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let high = HEX.get(usize::from(byte >> 4)).copied().unwrap_or(b'0');
                let low = HEX.get(usize::from(byte & 15)).copied().unwrap_or(b'0');
                line.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
            _ => line.push(byte),
        }
    }
    line.push(b'"');
    line.extend_from_slice(tail.as_bytes());
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests;
