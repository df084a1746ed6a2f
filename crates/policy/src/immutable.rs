//! Files that never change once they are there: what was downloaded of them may be kept, and given to others who may have it.

use model::{Endpoint, Host};

use crate::host::{HostPattern, read_host};
use crate::pattern::Care;
use crate::url::UrlPattern;

/// `files.example.org/packages/**/*.whl`, `example.org:8443/pool/**`. Without a port, 443.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Immutable {
    host: HostPattern,
    path: UrlPattern,
    pub written: String,
}

impl Immutable {
    pub fn read(written: &str) -> Result<Immutable, String> {
        let shown = written.escape_debug();
        let Some(at) = written.find('/').filter(|at| *at > 0 && !written.contains("://")) else {
            return Err(format!("`{shown}` is no host with a path; write `files.example.org/packages/**`"));
        };
        let (host, path) = written.split_at(at);
        if path.contains('?') {
            return Err(format!("`{shown}`: what is asked for with a `?` is never kept"));
        }
        let host = HostPattern::read(host)?;
        if matches!(read_host(&host.host()), Some(Host::Address(_))) {
            return Err(format!(
                "`{shown}`: only what a name has proven to be its own is kept, and this is an address"
            ));
        }
        Ok(Immutable { host, path: UrlPattern::read(path)?, written: written.to_owned() })
    }

    /// Whether some file there is meant.
    pub fn is_at(&self, to: &Endpoint) -> bool {
        self.host.is_at(to, Care::Exact)
    }

    pub fn matches(&self, to: &Endpoint, path: &str) -> bool {
        self.is_at(to) && self.path.matches(path, Care::Exact)
    }
}

#[cfg(test)]
mod tests {
    use model::HostName;

    use super::*;

    fn is(pattern: &str, host: &str, port: u16, path: &str) -> bool {
        let host = Host::Name(HostName::read(host).expect("a name"));
        Immutable::read(pattern).expect("a pattern").matches(&Endpoint { host, port }, path)
    }

    #[test]
    fn a_file_is_known_by_its_host_its_port_and_its_path() {
        let wheels = "files.example.org/packages/*/*.whl";
        assert!(is(wheels, "files.example.org", 443, "/packages/ab/x-1.whl"));
        for (host, port, path) in [
            ("example.org", 443, "/packages/ab/x-1.whl"),
            ("files.example.org", 80, "/packages/ab/x-1.whl"),
            ("files.example.org", 443, "/packages/ab/cd/x-1.whl"),
            ("files.example.org", 443, "/packages/ab/x-1.whl/"),
            ("files.example.org", 443, "/packages/ab/x-1.html"),
            ("files.example.org", 443, "/packages//x-1.whl"),
            ("files.example.org", 443, "/packages/ab%2Fx-1.whl"),
            ("files.example.org", 443, "/packages/../x-1.whl"),
        ] {
            assert!(!is(wheels, host, port, path), "{host}:{port}{path}");
        }
        assert!(is("*.example.org:8443/pool/**", "a.example.org", 8443, "/pool/main/x.deb"));
    }

    #[test]
    fn what_is_no_such_pattern_is_refused() {
        for bad in [
            "", "/a", "example.org", "https://example.org/a", "example.org/a?b=*", "127.0.0.1:443/a", "[::1]:443/a",
            "10.0.0.0/8", "example.org/a b", "example.org/%41", "example.org/a/../b", "a b/c",
        ] {
            assert!(Immutable::read(bad).is_err(), "{bad}");
        }
    }
}
