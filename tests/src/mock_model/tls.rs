//! A certificate authority for one test, so that pages which must be encrypted can be served on loopback.
//!
//! Nothing else on the machine trusts it, and its key is never written down.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

#[derive(Debug)]
pub(super) struct Authority {
    folder: TempDir,
    server: Arc<ServerConfig>,
}

impl Authority {
    pub(super) fn new() -> Result<Self> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "Turnkeep test authority");
        let key = KeyPair::generate()?;
        let pem = authority.self_signed(&key)?.pem();
        let issuer = Issuer::new(authority, key);

        let key = KeyPair::generate()?;
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names)?.signed_by(&key, &issuer)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))?;
        let folder = tempfile::tempdir().context("making the authority's folder")?;
        fs::write(folder.path().join("authority.pem"), pem)?;
        Ok(Self { folder, server: Arc::new(server) })
    }

    /// The certificate that a client is to trust, as a PEM file.
    pub(super) fn file(&self) -> PathBuf {
        Path::join(self.folder.path(), "authority.pem")
    }

    pub(super) fn serve(&self, connection: TcpStream) -> Result<StreamOwned<ServerConnection, TcpStream>> {
        Ok(StreamOwned::new(ServerConnection::new(Arc::clone(&self.server))?, connection))
    }
}

/// Whether the client begins with an encrypted greeting: then the first byte is a TLS record of the handshake.
pub(super) fn wanted(connection: &TcpStream) -> bool {
    let mut first = [0];
    connection.peek(&mut first).is_ok_and(|length| length == 1 && first == [0x16])
}
