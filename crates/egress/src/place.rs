//! Where something is sent: an address as people write it, and the machines that it means.

use std::net::{SocketAddr, ToSocketAddrs};

use hyper::Uri;

use crate::error::{Error, Result};

/// Whether what is sent may be read on its way to another machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    #[default]
    Needed,
    NotNeeded,
}

/// An address of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) encrypted: bool,
    pub(crate) path: String,
    /// As it may be shown: what follows a `?` may be a token.
    pub(crate) shown: String,
}

impl Url {
    pub fn read(text: &str) -> Result<Url> {
        let place = text.split(['?', '#']).next().unwrap_or_default();
        let bad = |why| Error::Place { place: place.to_owned(), why };
        let uri: Uri = text.parse().map_err(|_| bad("it is no address"))?;
        let encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad("it begins with neither https:// nor http://")),
        };
        let authority = uri.authority().ok_or_else(|| bad("it names no machine"))?;
        if authority.as_str().contains('@') {
            // Not shown either.
            let place = format!("{}://…@{}", if encrypted { "https" } else { "http" }, authority.host());
            let why = "a name and password do not belong into an address, where others see them: use --header-file";
            return Err(Error::Place { place, why });
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(bad("it names no machine"));
        }
        if authority.port_u16().is_none() && authority.as_str() != authority.host() {
            return Err(bad("its port is no number up to 65535"));
        }
        let port = authority.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let shown = format!("{}://{authority}{}", if encrypted { "https" } else { "http" }, uri.path());
        Ok(Url { host, port, encrypted, path, shown })
    }

    /// The same place, at `path` if none was named.
    pub fn or_at(mut self, path: &str) -> Url {
        if self.path == "/" {
            path.clone_into(&mut self.path);
            self.shown = self.shown.trim_end_matches('/').to_owned() + path;
        }
        self
    }

    /// As the header `Host` has it.
    pub(crate) fn host_header(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.encrypted, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.shown)
    }
}

/// The machines that a name means. Waits as long as the machine's own resolver does.
pub(crate) fn machines(
    host: &str,
    port: u16,
    shown: &str,
    encrypted: bool,
    encryption: Encryption,
) -> Result<Vec<SocketAddr>> {
    let place = || shown.to_owned();
    let found = (host, port).to_socket_addrs().map_err(|source| Error::Name { place: place(), source })?;
    let found: Vec<SocketAddr> = found.collect();
    // All of them: one that is not ours would be enough to read it.
    let here = found.iter().all(|address| address.ip().to_canonical().is_loopback());
    if !here && !encrypted && encryption == Encryption::Needed {
        return Err(Error::NotEncrypted { place: place() });
    }
    match found.is_empty() {
        true => Err(Error::Name { place: place(), source: std::io::ErrorKind::AddrNotAvailable.into() }),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_shown_without_what_may_be_a_token() {
        let url = Url::read("https://example.org:8443/a/b?token=sesame").expect("it is one");
        assert_eq!((url.host.as_str(), url.port, url.encrypted), ("example.org", 8443, true));
        assert_eq!(url.path, "/a/b?token=sesame");
        assert_eq!(url.to_string(), "https://example.org:8443/a/b");
        let url = Url::read("http://[::1]:80").expect("it is one");
        assert_eq!((url.host.as_str(), url.host_header().as_str(), url.path.as_str()), ("::1", "[::1]", "/"));
        assert_eq!(url.or_at("/v1/traces").to_string(), "http://[::1]:80/v1/traces");
    }

    #[test]
    fn what_is_no_address_is_complained_about_without_its_secrets() {
        for bad in
            ["", "example.org", "ftp://example.org/", "https://", "https:///x", "https://a:99999/", "https://a b/"]
        {
            assert!(matches!(Url::read(bad), Err(Error::Place { .. })), "{bad}");
        }
        let said = Url::read("https://anna:sesame@example.org/").expect_err("it has a password").to_string();
        assert!(!said.contains("sesame"), "{said}");
    }

    #[test]
    fn plain_text_goes_to_this_machine_only_unless_it_is_said() {
        let to = |host, encrypted, encryption| machines(host, 80, host, encrypted, encryption);
        assert!(to("127.0.0.1", false, Encryption::Needed).is_ok());
        assert!(to("::ffff:127.0.0.1", false, Encryption::Needed).is_ok());
        assert!(matches!(to("192.0.2.1", false, Encryption::Needed), Err(Error::NotEncrypted { .. })));
        assert!(to("192.0.2.1", false, Encryption::NotNeeded).is_ok());
        assert!(to("192.0.2.1", true, Encryption::Needed).is_ok());
    }
}
