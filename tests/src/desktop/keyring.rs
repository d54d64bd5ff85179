//! The Secret Service of a private desktop, seen by another program than the one under test.
//!
//! It reads and changes only the keyring that this desktop made for itself.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use zbus::zvariant::{Dict, ObjectPath, OwnedObjectPath, OwnedValue, Value};

use super::Desktop;
use super::bus::Target;

pub(super) const SERVICE: &str = "org.freedesktop.secrets";
pub(super) const PASSWORD: &str = "test";
const ROOT: &str = "/org/freedesktop/secrets";
const LOGIN: &str = "/org/freedesktop/secrets/collection/login";

/// Names an item: every pair must be equal.
pub type Attributes = BTreeMap<String, String>;

type Secret = (OwnedObjectPath, Vec<u8>, Vec<u8>, String);

/// An item of the keyring, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyringItem {
    pub path: String,
    pub label: String,
    pub attributes: Attributes,
    pub locked: bool,
}

impl Desktop {
    /// Every item of the default collection.
    pub fn keyring_items(&self) -> Result<Vec<KeyringItem>> {
        let value = self.bus.property(collection("org.freedesktop.Secret.Collection"), "Items")?;
        let paths = Vec::<OwnedObjectPath>::try_from(value).context("the items of the keyring")?;
        paths.iter().map(|path| self.keyring_item(path)).collect()
    }

    fn keyring_item(&self, path: &OwnedObjectPath) -> Result<KeyringItem> {
        let of = item(path.as_str());
        let label = self.bus.property(of, "Label")?;
        let attributes = self.bus.property(of, "Attributes")?;
        let locked = self.bus.property(of, "Locked")?;
        Ok(KeyringItem {
            path: path.to_string(),
            label: String::try_from(label)?,
            attributes: Attributes::try_from(Dict::try_from(attributes)?)?,
            locked: bool::try_from(locked)?,
        })
    }

    /// The secret of an item of an unlocked keyring.
    pub fn keyring_secret(&self, of: &KeyringItem) -> Result<Vec<u8>> {
        let session = self.plain_session()?;
        let answer = self.bus.call(item(&of.path), "GetSecret", &(&session))?;
        let (_, _, secret, _) = answer.body().deserialize::<Secret>().context("the secret")?;
        Ok(secret)
    }

    /// Makes an item, or takes the place of the one with the same attributes.
    pub fn set_keyring_item(&self, label: &str, attributes: &Attributes, secret: &[u8]) -> Result<()> {
        let session = self.plain_session()?;
        let properties: BTreeMap<&str, Value<'_>> = BTreeMap::from([
            ("org.freedesktop.Secret.Item.Label", Value::from(label)),
            ("org.freedesktop.Secret.Item.Attributes", Value::from(Dict::from(attributes.clone()))),
        ]);
        let none: &[u8] = &[];
        let body = (&properties, (&session, none, secret, "text/plain"), true);
        self.bus.call(collection("org.freedesktop.Secret.Collection"), "CreateItem", &body)?;
        Ok(())
    }

    /// Deletes an item, as a keyring program does when the person asks it to.
    pub fn delete_keyring_item(&self, gone: &KeyringItem) -> Result<()> {
        self.bus.call(item(&gone.path), "Delete", &()).map(|_| ())
    }

    /// Locks the default collection: nothing can be read until a person gives the password.
    pub fn lock_keyring(&self) -> Result<()> {
        let login = ObjectPath::try_from(LOGIN)?;
        self.bus.call(service("org.freedesktop.Secret.Service"), "Lock", &(vec![login]))?;
        ensure!(self.keyring_locked()?, "the keyring did not lock");
        Ok(())
    }

    /// Unlocks the default collection with its password, as the person's prompt would.
    pub fn unlock_keyring(&self) -> Result<()> {
        let session = self.plain_session()?;
        let none: &[u8] = &[];
        let password = (&session, none, PASSWORD.as_bytes(), "text/plain");
        let body = (ObjectPath::try_from(LOGIN)?, password);
        let inner = "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface";
        self.bus.call(service(inner), "UnlockWithMasterPassword", &body)?;
        ensure!(!self.keyring_locked()?, "the keyring did not unlock");
        Ok(())
    }

    /// Whether the default collection is locked.
    pub fn keyring_locked(&self) -> Result<bool> {
        let value = self.bus.property(collection("org.freedesktop.Secret.Collection"), "Locked")?;
        bool::try_from(value).context("whether the keyring is locked")
    }

    fn plain_session(&self) -> Result<OwnedObjectPath> {
        let to = service("org.freedesktop.Secret.Service");
        let answer = self.bus.call(to, "OpenSession", &("plain", Value::from("")))?;
        let (_, session) = answer.body().deserialize::<(OwnedValue, OwnedObjectPath)>().context("a session with the keyring")?;
        Ok(session)
    }
}

fn service(interface: &str) -> Target<'_> {
    Target { service: SERVICE, path: ROOT, interface }
}

fn collection(interface: &str) -> Target<'_> {
    Target { service: SERVICE, path: LOGIN, interface }
}

fn item(path: &str) -> Target<'_> {
    Target { service: SERVICE, path, interface: "org.freedesktop.Secret.Item" }
}
