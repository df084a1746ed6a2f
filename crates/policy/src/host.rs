//! Hosts in rules: a name, all below one, or any; and ports.

use crate::pattern::Care;

/// A host, all below a domain (`*.example.org`), or any (`*`); with a port, or 443.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    name: String,
    /// None is any.
    port: Option<u16>,
    /// Or else it is what goes without saying.
    port_is_said: bool,
}

impl HostPattern {
    pub fn read(written: &str) -> Result<HostPattern, String> {
        if written.contains('/') {
            return Err(format!("`{written}` is an address of a page; write the host alone, such as `example.org`"));
        }
        let (name, port) = match written.rsplit_once(':') {
            // An address of version 6 has colons of its own.
            Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port {
                "*" => (name, None),
                _ => match port.parse::<u16>() {
                    Ok(port) if port > 0 => (name, Some(port)),
                    _ => return Err(format!("`{written}`: `{port}` is no port; it is 1 to 65535, or `*` for any")),
                },
            },
            _ => (written, Some(443)),
        };
        let port_is_said = name.len() < written.len();
        let name = name.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
        let known = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | ':' | '_');
        let rest = name.strip_prefix("*.").unwrap_or(if name == "*" { "x" } else { &name });
        if rest.is_empty() || !rest.chars().all(known) {
            return Err(format!(
                "`{}` is no host; write `example.org`, `*.example.org` or `*`, other alphabets as `xn--…`",
                written.escape_debug()
            ));
        }
        Ok(HostPattern { name, port, port_is_said })
    }

    /// Without a port, what allows means 443, and what asks or denies means any.
    pub fn matches(&self, name: &str, port: u16, care: Care) -> bool {
        let any_port = care == Care::Forgiving && !self.port_is_said;
        self.names(name) && (any_port || self.port.is_none_or(|known| known == port))
    }

    /// Whatever the port.
    pub fn names(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        match self.name.strip_prefix("*.") {
            Some(domain) => name.strip_suffix(domain).is_some_and(|start| start.len() > 1 && start.ends_with('.')),
            None => self.name == "*" || self.name == name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_with_a_port() {
        let matches = |pattern: &str, name: &str, port| {
            HostPattern::read(pattern).expect("a host").matches(name, port, Care::Exact)
        };
        assert!(matches("example.org", "EXAMPLE.org.", 443));
        assert!(!matches("example.org", "example.org", 80));
        assert!(!matches("example.org", "a.example.org", 443));
        assert!(matches("*.example.org", "a.b.example.org", 443));
        assert!(!matches("*.example.org", "example.org", 443));
        assert!(!matches("*.example.org", "evilexample.org", 443));
        assert!(matches("*:*", "anything", 1));
        assert!(matches("[::1]:80", "::1", 80));
        for bad in ["", "exämple.org", "a b", "example.org:0", "example.org:70000", "*a.org", "a/b"] {
            assert!(HostPattern::read(bad).is_err(), "{bad}");
        }
    }
}
