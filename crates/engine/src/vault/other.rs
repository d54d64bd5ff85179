//! The keychains of macOS and Windows: there is one whenever somebody is signed in to the computer, and it opens with that.

use std::{collections::BTreeMap, sync::Arc};

use keyring_core::api::CredentialStoreApi;

use super::VaultError;

#[cfg(target_os = "macos")]
pub(super) fn store() -> keyring_core::Result<Arc<dyn CredentialStoreApi>> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

#[cfg(windows)]
pub(super) fn store() -> keyring_core::Result<Arc<dyn CredentialStoreApi>> {
    Ok(windows_native_keyring_store::Store::new()?)
}

#[cfg(not(any(target_os = "macos", windows)))]
pub(super) fn store() -> keyring_core::Result<Arc<dyn CredentialStoreApi>> {
    Err(keyring_core::Error::NoDefaultStore)
}

#[expect(clippy::unused_async, reason = "the Secret Service has to be asked")]
pub(super) async fn is_locked() -> Result<bool, VaultError> {
    store().map(|_| false).map_err(|error| VaultError::Absent { why: error.to_string() })
}

pub(super) async fn find(attributes: &BTreeMap<String, String>) -> Result<(), VaultError> {
    let (Some(service), Some(user)) = (attributes.get("service").cloned(), attributes.get("username").cloned()) else {
        return Err(VaultError::Missing);
    };
    // Attributes of an entry are read without its secret, so nobody is asked.
    let found = tokio::task::spawn_blocking(move || store()?.build(&service, &user, None)?.get_attributes().map(|_| ()));
    found.await.map_err(|_| VaultError::Hung)?.map_err(|error| judge(&error))
}

pub(super) async fn delete(attributes: &BTreeMap<String, String>) -> Result<(), VaultError> {
    let (Some(service), Some(user)) = (attributes.get("service").cloned(), attributes.get("username").cloned()) else {
        return Ok(());
    };
    let gone = tokio::task::spawn_blocking(move || store()?.build(&service, &user, None)?.delete_credential());
    match gone.await.map_err(|_| VaultError::Hung)?.map_err(|error| judge(&error)) {
        Err(VaultError::Missing) => Ok(()),
        done => done,
    }
}

#[expect(clippy::unused_async, reason = "the Secret Service has to be asked")]
pub(super) async fn unlock() -> Result<(), VaultError> {
    Ok(())
}

pub(super) fn judge(error: &keyring_core::Error) -> VaultError {
    if matches!(error, keyring_core::Error::NoEntry) {
        VaultError::Missing
    } else if matches!(error, keyring_core::Error::NoStorageAccess(_)) {
        VaultError::Locked
    } else {
        VaultError::Refused { why: error.to_string() }
    }
}
