//! The one way out to a browser: what may be opened is decided here, from the address alone.
//!
//! It never opens what is not https, mailto, or http on this very computer (the end of a provider's own sign-in), and
//! never without having said the real host first.

use std::net::IpAddr;

use serde::Serialize;
use url::{Host, Url};

/// An address longer than this is nobody's link.
const LONGEST: usize = 8 * 1024;

/// What a screen is told about a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenedLink {
    /// Where it leads: the host, or the address of a mail.
    pub(crate) host: String,
    pub(crate) opened: bool,
}

/// Why a link is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    NotAnAddress,
    Scheme,
    /// A name or a password stands before the host, which hides where it leads.
    Credentials,
}

impl Refused {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::NotAnAddress => "This is not an address that can be opened.",
            Self::Scheme => "Only https and mailto links are opened.",
            Self::Credentials => "This link hides where it leads behind a user name. It is not opened.",
        }
    }
}

/// The address as it will be opened, and where it leads.
pub(crate) fn check(link: &str) -> Result<(Url, String), Refused> {
    if link.len() > LONGEST {
        return Err(Refused::NotAnAddress);
    }
    let url = Url::parse(link).map_err(|_| Refused::NotAnAddress)?;
    let host = match url.scheme() {
        "https" => host(&url)?,
        "http" if is_loopback(&url) => host(&url)?,
        "mailto" => {
            let to = url.path();
            // More than an address would fill in a letter that nobody wrote.
            if to.is_empty() || !to.contains('@') || url.query().is_some() {
                return Err(Refused::NotAnAddress);
            }
            to.to_owned()
        }
        _ => return Err(Refused::Scheme),
    };
    Ok((url, host))
}

fn host(url: &Url) -> Result<String, Refused> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::Credentials);
    }
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or(Refused::NotAnAddress)?;
    Ok(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip).is_loopback(),
        None => false,
    }
}

/// Hands a checked address to the system's own opener. Blocks for the start of a process.
pub(crate) fn open(url: &Url) -> Result<(), String> {
    open::that_detached(url.as_str()).map_err(|error| format!("No program opened the link ({error}): copy it into a browser."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(link: &str) -> Result<String, Refused> {
        check(link).map(|(_, host)| host)
    }

    #[test]
    fn https_mail_and_this_computer_are_opened() {
        assert_eq!(led("https://example.com/a?b#c"), Ok("example.com".into()));
        assert_eq!(led("HTTPS://EXAMPLE.com:8443/"), Ok("example.com:8443".into()));
        assert_eq!(led("mailto:someone@example.com"), Ok("someone@example.com".into()));
        assert_eq!(led("http://localhost:1455/auth"), Ok("localhost:1455".into()));
        assert_eq!(led("http://127.0.0.1:1455/"), Ok("127.0.0.1:1455".into()));
        assert_eq!(led("http://[::1]:1455/"), Ok("[::1]:1455".into()));
    }

    #[test]
    fn the_host_that_is_told_is_the_real_one() {
        // A Cyrillic letter is told as what it is.
        assert_eq!(led("https://ex\u{430}mple.com"), Ok("xn--exmple-4nf.com".into()));
        assert_eq!(led("https://google.com@evil.test/"), Err(Refused::Credentials));
        assert_eq!(led("https://a:b@evil.test/"), Err(Refused::Credentials));
        assert_eq!(led("https://evil.test\\@google.com/"), Ok("evil.test".into()));
        assert_eq!(led("https://google.com\n.evil.test/"), Ok("google.com.evil.test".into()));
    }

    #[test]
    fn everything_else_is_refused() {
        for link in [
            "http://example.com",
            "http://127.0.0.1.evil.test/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "vscode://x",
            "smb://host/share",
            "ssh://-oProxyCommand=x/",
            "ftp://example.com",
            "tauri://localhost",
            "blob:https://example.com/x",
        ] {
            assert_eq!(led(link), Err(Refused::Scheme), "{link}");
        }
        for link in ["", "--help", "example.com", "/etc/passwd", "https://", "mailto:", "mailto:a@b.test?body=x", "mailto:x"] {
            assert_eq!(led(link), Err(Refused::NotAnAddress), "{link}");
        }
        assert_eq!(led(&format!("https://example.com/{}", "a".repeat(LONGEST))), Err(Refused::NotAnAddress));
    }
}
