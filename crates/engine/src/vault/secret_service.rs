//! The Secret Service of the session bus. Questions are asked over the bus directly, because the store asks the person for
//! the unlock whenever it meets a locked item.

use std::{collections::BTreeMap, sync::Arc};

use keyring_core::api::CredentialStoreApi;
use zbus::{
    Connection, Message,
    zvariant::{ObjectPath, OwnedObjectPath, OwnedValue},
};

use super::VaultError;

/// Its name on the bus.
pub(crate) const NAME: &str = "org.freedesktop.secrets";
const PATH: &str = "/org/freedesktop/secrets";
const SERVICE: &str = "org.freedesktop.Secret.Service";
const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const ITEM: &str = "org.freedesktop.Secret.Item";
const PROMPT: &str = "org.freedesktop.Secret.Prompt";

pub(super) fn store() -> keyring_core::Result<Arc<dyn CredentialStoreApi>> {
    Ok(zbus_secret_service_keyring_store::Store::new()?)
}

/// Whether the collection that new items go to is locked.
pub(super) async fn is_locked() -> Result<bool, VaultError> {
    let bus = connect().await?;
    let collection = default_collection(&bus).await?;
    let reply = call(&bus, collection.as_str(), "org.freedesktop.DBus.Properties", "Get", &(COLLECTION, "Locked")).await?;
    let value: OwnedValue = body(&reply)?;
    bool::try_from(value).map_err(|error| VaultError::Refused { why: error.to_string() })
}

pub(super) async fn find(attributes: &BTreeMap<String, String>) -> Result<(), VaultError> {
    let (open, locked) = search(&connect().await?, attributes).await?;
    match (open.is_empty(), locked.is_empty()) {
        (false, _) => Ok(()),
        (true, false) => Err(VaultError::Locked),
        (true, true) => Err(VaultError::Missing),
    }
}

pub(super) async fn delete(attributes: &BTreeMap<String, String>) -> Result<(), VaultError> {
    let bus = connect().await?;
    let (open, locked) = search(&bus, attributes).await?;
    for item in open {
        let reply = call(&bus, item.as_str(), ITEM, "Delete", &()).await?;
        let prompt: OwnedObjectPath = body(&reply)?;
        if prompt.as_str() != "/" {
            return Err(VaultError::Locked);
        }
    }
    if locked.is_empty() { Ok(()) } else { Err(VaultError::Locked) }
}

/// Ask the person; returns when the prompt was answered.
pub(super) async fn unlock() -> Result<(), VaultError> {
    let bus = connect().await?;
    let collection = default_collection(&bus).await?;
    let reply = call(&bus, PATH, SERVICE, "Unlock", &(vec![collection.as_ref()],)).await?;
    let (unlocked, prompt): (Vec<OwnedObjectPath>, OwnedObjectPath) = body(&reply)?;
    if prompt.as_str() == "/" {
        return if unlocked.is_empty() { Err(VaultError::Locked) } else { Ok(()) };
    }
    let completed = zbus::MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .path(prompt.as_str())
        .and_then(|rule| rule.interface(PROMPT))
        .and_then(|rule| rule.member("Completed"))
        .map_err(refused)?
        .build();
    let mut answers = zbus::MessageStream::for_match_rule(completed, &bus, Some(1)).await.map_err(judge_bus)?;
    call(&bus, prompt.as_str(), PROMPT, "Prompt", &("",)).await?;
    let answer = crate::watch::next(&mut answers).await.ok_or(VaultError::Hung)?.map_err(judge_bus)?;
    let (dismissed, _): (bool, OwnedValue) = body(&answer)?;
    if dismissed { Err(VaultError::Locked) } else { Ok(()) }
}

/// What an error of the store means.
pub(super) fn judge(error: &keyring_core::Error) -> VaultError {
    if matches!(error, keyring_core::Error::NoEntry) {
        VaultError::Missing
    } else if matches!(error, keyring_core::Error::NoStorageAccess(_)) {
        VaultError::Locked
    } else {
        VaultError::Refused { why: error.to_string() }
    }
}

async fn connect() -> Result<Connection, VaultError> {
    Connection::session().await.map_err(|error| VaultError::Absent { why: format!("no session bus ({error})") })
}

async fn default_collection(bus: &Connection) -> Result<OwnedObjectPath, VaultError> {
    let reply = call(bus, PATH, SERVICE, "ReadAlias", &("default",)).await?;
    let path: OwnedObjectPath = body(&reply)?;
    if path.as_str() == "/" {
        return Err(VaultError::Absent { why: "the keychain has no default collection".to_owned() });
    }
    Ok(path)
}

async fn search(
    bus: &Connection,
    attributes: &BTreeMap<String, String>,
) -> Result<(Vec<OwnedObjectPath>, Vec<OwnedObjectPath>), VaultError> {
    body(&call(bus, PATH, SERVICE, "SearchItems", &(attributes,)).await?)
}

async fn call<B>(bus: &Connection, path: &str, interface: &str, method: &str, arguments: &B) -> Result<Message, VaultError>
where
    B: serde::Serialize + zbus::zvariant::DynamicType,
{
    let path = ObjectPath::try_from(path).map_err(|error| VaultError::Refused { why: error.to_string() })?;
    bus.call_method(Some(NAME), path, Some(interface), method, arguments).await.map_err(judge_bus)
}

fn body<T>(message: &Message) -> Result<T, VaultError>
where
    T: serde::de::DeserializeOwned + zbus::zvariant::Type,
{
    message.body().deserialize().map_err(refused)
}

fn judge_bus(error: zbus::Error) -> VaultError {
    let zbus::Error::MethodError(name, text, _) = &error else { return refused(error) };
    let why = text.clone().unwrap_or_else(|| name.to_string());
    match name.as_str() {
        "org.freedesktop.DBus.Error.ServiceUnknown" | "org.freedesktop.DBus.Error.NameHasNoOwner" => {
            VaultError::Absent { why: "no keychain runs in this session".to_owned() }
        }
        "org.freedesktop.DBus.Error.NoReply" | "org.freedesktop.DBus.Error.TimedOut" => VaultError::Hung,
        "org.freedesktop.Secret.Error.IsLocked" => VaultError::Locked,
        name if name.starts_with("org.freedesktop.DBus.Error.Spawn") => {
            VaultError::Absent { why: format!("the keychain could not be started: {why}") }
        }
        _ => VaultError::Refused { why },
    }
}

fn refused(error: impl std::fmt::Display) -> VaultError {
    VaultError::Refused { why: error.to_string() }
}
