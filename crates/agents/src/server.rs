//! Addresses of servers that somebody else started: which ones we connect to, and why not to the others.
//!
//! Only text; nothing here connects. What is spoken over a socket is not encrypted, so nothing leaves this computer.

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
};

use turnkeep_model::ServerAddress;
use url::{Host, Url};

/// Bytes of the longest path of a socket that is taken; the system's own limit is for the socket that a link leads to.
const LONGEST_PATH: usize = 4_096;

/// Where a server listens. Both speak WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// An absolute path, which may be a link to the socket.
    Unix { path: PathBuf },
    /// A loopback address; `path` begins with a slash.
    WebSocket { host: IpAddr, port: u16, path: String },
}

/// Why an address is not taken, for the person who typed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("Give the address of the server: unix:///path/to/the.sock or ws://127.0.0.1:PORT.")]
    Empty,
    #[error("This is no address of a server. Give unix:///path/to/the.sock or ws://127.0.0.1:PORT.")]
    Malformed,
    #[error("Give the whole path of the socket, from the root: unix:///path/to/the.sock.")]
    Path,
    #[error("The path of the socket is too long.")]
    TooLong,
    #[error(
        "wss:// is not supported. On this computer ws://127.0.0.1 is as private; for a server on another one, forward its \
         socket with `ssh -L` and use that."
    )]
    Tls,
    #[error("A server speaks WebSocket: give ws://127.0.0.1:PORT, not http.")]
    Http,
    #[error(
        "Only servers on this computer are used (127.0.0.1, [::1] or localhost): ws:// is not encrypted, and everyone on the \
         way could read the conversation. Forward the port with `ssh -L` and use ws://127.0.0.1:PORT."
    )]
    NotLoopback,
    #[error("Leave the name and password out of the address: they would be kept where everyone can read them.")]
    UserInfo,
    #[error("Give the port of the server: ws://127.0.0.1:PORT.")]
    NoPort,
    #[error("Leave out what begins with ? or #: a server's address has no such part.")]
    Extra,
}

impl Server {
    /// Reads what a person typed. A bare absolute path is that of a socket.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(AddressError::Malformed);
        }
        let path = text.strip_prefix("unix://").or_else(|| text.starts_with('/').then_some(text));
        if let Some(path) = path {
            if !path.starts_with('/') || path == "/" {
                return Err(AddressError::Path);
            }
            if path.len() > LONGEST_PATH {
                return Err(AddressError::TooLong);
            }
            return Ok(Self::Unix { path: PathBuf::from(path) });
        }
        if text.starts_with("unix:") || text.starts_with(['~', '.']) {
            return Err(AddressError::Path);
        }
        let url = Url::parse(text).map_err(|_| AddressError::Malformed)?;
        match url.scheme() {
            "ws" => {}
            "wss" => return Err(AddressError::Tls),
            "http" | "https" => return Err(AddressError::Http),
            _ => return Err(AddressError::Malformed),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::UserInfo);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(AddressError::Extra);
        }
        let host = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            // Never asked of a resolver, which could say anything.
            Some(Host::Domain("localhost")) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Some(Host::Domain(_)) => return Err(AddressError::NotLoopback),
            None => return Err(AddressError::Malformed),
        };
        if !host.is_loopback() {
            return Err(AddressError::NotLoopback);
        }
        let port = url.port().filter(|port| *port != 0).ok_or(AddressError::NoPort)?;
        Ok(Self::WebSocket { host, port, path: url.path().to_owned() })
    }

    /// The one way in which the address is written: two that mean the same are the same.
    #[must_use]
    pub fn address(&self) -> ServerAddress {
        ServerAddress::new(match self {
            Self::Unix { path } => format!("unix://{}", path.display()),
            Self::WebSocket { host, port, path } => {
                let mut text = match host {
                    IpAddr::V4(host) => format!("ws://{host}:{port}"),
                    IpAddr::V6(host) => format!("ws://[{host}]:{port}"),
                };
                if path != "/" {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "{path}");
                }
                text
            }
        })
    }
}

#[cfg(test)]
mod tests;
