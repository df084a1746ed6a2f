//! Hosts in rules and flags: a name, all below one, any name, addresses; and ports.
//!
//! Names and addresses are two worlds: no pattern of one is ever about the other, so a name that leads to a private address
//! opens nothing there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use model::{Endpoint, Host, HostName};

use crate::pattern::Care;

/// `example.org`, `*.example.org`, `*`, `192.0.2.7`, `10.0.0.0/8`, `localhost`; with a port, `:*`, or neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    who: Who,
    /// None is any.
    port: Option<u16>,
    /// Or else it is what goes without saying.
    port_is_said: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    /// Any name, and no address.
    Any,
    Name(HostName),
    /// All names below it, one label or more.
    Below(HostName),
    /// The host's own loopback.
    Loopback,
    Addresses(Block),
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    first: IpAddr,
    bits: u8,
}

/// Where machines in a cloud are told their own credentials. Whoever means one of them writes it, or what is next to it.
const METADATA: &[&str] = &[
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200", "169.254.0.23",
    "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
];

/// What goes without saying.
const PORT: u16 = 443;

impl HostPattern {
    pub fn read(written: &str) -> Result<HostPattern, String> {
        let shown = written.escape_debug();
        if written.contains("://") {
            return Err(format!("`{shown}` is an address of a page; write the host alone, such as `example.org`"));
        }
        let (host, port, port_is_said) = apart(written)?;
        let who = Who::read(host, written)?;
        if who == Who::Loopback && !(port_is_said && port.is_some()) {
            return Err(format!("`{shown}` is your own machine; write the port too, such as `localhost:5432`"));
        }
        Ok(HostPattern { who, port, port_is_said })
    }

    /// Without a port, what allows means 443, and what asks or denies means any.
    pub fn matches(&self, host: &Host, port: u16, care: Care) -> bool {
        self.names(host) && self.is_port(port, care)
    }

    pub fn is_at(&self, to: &Endpoint, care: Care) -> bool {
        self.matches(&to.host, to.port, care)
    }

    /// Whatever the port.
    pub fn names(&self, host: &Host) -> bool {
        match (&self.who, host) {
            // It is no name of the network's: whoever means it writes it.
            (Who::Any, Host::Name(name)) => !is_localhost(name),
            (Who::Name(known), Host::Name(name)) => known == name,
            (Who::Below(domain), Host::Name(name)) => is_below(name, domain),
            (Who::Loopback, Host::Name(name)) => is_localhost(name),
            (Who::Loopback, Host::Address(address)) => is_loopback(*address),
            (Who::Addresses(block), Host::Address(address)) => block.has(*address),
            (Who::Any | Who::Name(_) | Who::Below(_), Host::Address(_)) | (Who::Addresses(_), Host::Name(_)) => false,
        }
    }

    /// Whether it means this very address, which is not everybody's, rather than only having it among others: who writes
    /// `0.0.0.0/0` means the internet, and not what is at home.
    pub fn means(&self, address: IpAddr) -> bool {
        match &self.who {
            Who::Loopback => is_loopback(address),
            Who::Addresses(block) => block.has(address) && block.means(address.to_canonical()),
            Who::Any | Who::Name(_) | Who::Below(_) => false,
        }
    }

    fn is_port(&self, port: u16, care: Care) -> bool {
        let any = care == Care::Forgiving && !self.port_is_said;
        any || self.port.is_none_or(|known| known == port)
    }

    /// Whether it is about all that another one is about, which stands in a rule that allows.
    pub fn covers(&self, other: &HostPattern, care: Care) -> bool {
        self.covers_names(other)
            && match other.port {
                Some(port) => self.is_port(port, care),
                None => self.port.is_none() || care == Care::Forgiving && !self.port_is_said,
            }
    }

    /// The same, whatever the ports.
    pub fn covers_names(&self, other: &HostPattern) -> bool {
        match (&self.who, &other.who) {
            (_, Who::Name(name)) => self.names(&Host::Name(name.clone())),
            (Who::Any, Who::Any | Who::Below(_)) => true,
            (Who::Below(domain), Who::Below(below)) => domain == below || is_below(below, domain),
            (Who::Loopback, Who::Loopback) => true,
            (_, Who::Loopback) => {
                let own = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                own.into_iter().all(|address| self.names(&Host::Address(address)))
            }
            (Who::Addresses(block), Who::Addresses(smaller)) => block.bits <= smaller.bits && block.has(smaller.first),
            (Who::Loopback, Who::Addresses(block)) => block.is_one() && is_loopback(block.first),
            (Who::Any | Who::Name(_) | Who::Below(_) | Who::Loopback | Who::Addresses(_), _) => false,
        }
    }

    /// Whether there is something that both are about.
    pub fn meets(&self, other: &HostPattern, care: Care) -> bool {
        let any = |pattern: &HostPattern| pattern.port.is_none() || care == Care::Forgiving && !pattern.port_is_said;
        let loopback_in = |one: &HostPattern, two: &HostPattern| {
            let own = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            own.into_iter().map(Host::Address).any(|address| one.names(&address) && two.names(&address))
        };
        (any(self) || other.port.is_none() || self.port == other.port)
            && (self.covers_names(other) || other.covers_names(self) || loopback_in(self, other))
    }

    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The port of the host's own loopback that it means.
    pub fn loopback(&self) -> Option<u16> {
        let is_own = match &self.who {
            Who::Loopback => true,
            Who::Addresses(block) => block.is_one() && is_loopback(block.first),
            Who::Any | Who::Name(_) | Who::Below(_) => false,
        };
        self.port.filter(|_| is_own && self.port_is_said)
    }

    /// The same on each of these ports, unless it says which.
    pub fn on(&self, ports: &[u16]) -> Vec<HostPattern> {
        match self.port_is_said {
            true => vec![self.clone()],
            false => ports
                .iter()
                .map(|port| HostPattern { who: self.who.clone(), port: Some(*port), port_is_said: true })
                .collect(),
        }
    }

    /// As the name in an envelope: `*.example.org`, `10.0.0.0/8`.
    pub fn host(&self) -> String {
        match &self.who {
            Who::Any => "*".to_owned(),
            Who::Name(name) => name.to_string(),
            Who::Below(domain) => format!("*.{domain}"),
            Who::Loopback => "localhost".to_owned(),
            Who::Addresses(block) => block.to_string(),
        }
    }

    /// What an envelope speaks of, which may be a pattern that somebody asks for. Port 0 is any.
    pub fn of_envelope(name: &str, port: u16) -> Option<HostPattern> {
        let who = match read_host(name) {
            Some(Host::Name(name)) if is_localhost(&name) => Who::Loopback,
            Some(Host::Name(name)) => Who::Name(name),
            Some(Host::Address(address)) => Who::Addresses(Block::one(address)),
            None => Who::read(name, name).ok()?,
        };
        Some(HostPattern { who, port: (port > 0).then_some(port), port_is_said: true })
    }
}

/// As one would write it.
impl fmt::Display for HostPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host();
        match (self.port, host.contains(':')) {
            (Some(PORT), _) => out.write_str(&host),
            (Some(port), true) => write!(out, "[{host}]:{port}"),
            (Some(port), false) => write!(out, "{host}:{port}"),
            (None, true) => write!(out, "[{host}]:*"),
            (None, false) => write!(out, "{host}:*"),
        }
    }
}

/// A name or an address, each in the one spelling that programs agree on.
pub fn read_host(text: &str) -> Option<Host> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    match bare.parse::<IpAddr>() {
        Ok(address) => Some(Host::Address(address.to_canonical())),
        Err(_) => HostName::read(text).map(Host::Name),
    }
}

/// The host, and its port: none is any. And whether that was said.
fn apart(written: &str) -> Result<(&str, Option<u16>, bool), String> {
    let shown = written.escape_debug();
    let (host, port) = if let Some(rest) = written.strip_prefix('[') {
        // An address of version 6 has colons of its own.
        let (host, after) = rest.split_once(']').ok_or_else(|| format!("`{shown}` has a `[` without a `]`"))?;
        if !host.contains(':') {
            return Err(format!("`{shown}`: only addresses of version 6 stand in brackets, such as `[fd00::/8]:443`"));
        }
        match after.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if after.is_empty() => (host, None),
            None => return Err(format!("`{shown}`: after `]` comes a port, such as `[fd00::/8]:443`")),
        }
    } else {
        match written.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => (host, Some(port)),
            _ => (written, None),
        }
    };
    let said = match port {
        None => return Ok((host, Some(PORT), false)),
        Some("*") => None,
        // `parse` takes a sign, and zeros before the number.
        Some(text) => match text.parse::<u16>() {
            Ok(port) if port > 0 && port.to_string() == text => Some(port),
            _ => {
                let text = text.escape_debug();
                return Err(format!("`{shown}`: `{text}` is no port; it is 1 to 65535, or `*` for any"));
            }
        },
    };
    Ok((host, said, true))
}

impl Who {
    fn read(host: &str, written: &str) -> Result<Who, String> {
        let no_host = || {
            let shown = written.escape_debug();
            format!(
                "`{shown}` is no host; write `example.org`, `*.example.org`, `*`, `192.0.2.7` or `10.0.0.0/8`, other \
                 alphabets as `xn--…`"
            )
        };
        if let Some((first, bits)) = host.split_once('/') {
            return Block::read(first, bits, written)?.map(Who::Addresses).ok_or_else(no_host);
        }
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(Who::Addresses(Block::one(plain(address, written)?)));
        }
        if host == "*" {
            return Ok(Who::Any);
        }
        if let Some(domain) = host.strip_prefix("*.") {
            return HostName::read(domain).map(Who::Below).ok_or_else(no_host);
        }
        match HostName::read(host) {
            Some(name) if is_localhost(&name) => Ok(Who::Loopback),
            Some(name) => Ok(Who::Name(name)),
            None => Err(no_host()),
        }
    }
}

impl Block {
    fn one(address: IpAddr) -> Block {
        let first = address.to_canonical();
        Block { first, bits: if first.is_ipv4() { 32 } else { 128 } }
    }

    /// None for what is no address.
    fn read(first: &str, bits: &str, written: &str) -> Result<Option<Block>, String> {
        let shown = written.escape_debug();
        let Ok(first) = first.parse::<IpAddr>() else { return Ok(None) };
        let first = plain(first, written)?;
        let most = Block::one(first).bits;
        let bits = match bits.parse::<u8>() {
            Ok(number) if number <= most && number.to_string() == bits => number,
            _ => return Err(format!("`{shown}`: after `/` comes how many bits are fixed, 0 to {most}")),
        };
        let block = Block { first, bits };
        let begins = block.begins();
        if begins != first {
            return Err(format!("`{shown}` has bits beyond its first {bits}; write `{begins}/{bits}`"));
        }
        Ok(Some(block))
    }

    fn is_one(self) -> bool {
        self.bits == Block::one(self.first).bits
    }

    fn means(self, address: IpAddr) -> bool {
        let is_metadata = METADATA.iter().any(|known| known.parse() == Ok(address));
        match self.first {
            IpAddr::V4(_) if is_metadata => self.bits >= 24,
            IpAddr::V4(_) => self.bits >= 8,
            IpAddr::V6(_) if is_metadata => self.bits >= 64,
            // Whole networks of version 6 that are nobody's else have few bits.
            IpAddr::V6(first) => {
                self.bits >= 16
                    || [("fc00::", 7), ("fe80::", 9)].iter().any(|(home, bits)| {
                        let home = home.parse().unwrap_or(Ipv6Addr::UNSPECIFIED);
                        self.bits >= *bits && first.to_bits() & mask6(*bits) == home.to_bits()
                    })
            }
        }
    }

    fn begins(self) -> IpAddr {
        match self.first {
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & mask4(self.bits)).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & mask6(self.bits)).into(),
        }
    }

    fn has(self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => address.to_bits() & mask4(self.bits) == first.to_bits(),
            (IpAddr::V6(first), IpAddr::V6(address)) => address.to_bits() & mask6(self.bits) == first.to_bits(),
            _ => false,
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_one() { self.first.fmt(out) } else { write!(out, "{}/{}", self.first, self.bits) }
    }
}

fn mask4(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)
}

fn mask6(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

/// `::ffff:10.0.0.1` is `10.0.0.1`: one of them is enough to write, so that nobody has to think of both.
fn plain(address: IpAddr, written: &str) -> Result<IpAddr, String> {
    match address.to_canonical() {
        same if same == address => Ok(address),
        short => Err(format!("`{}` is an address of version 4 in disguise; write `{short}`", written.escape_debug())),
    }
}

fn is_localhost(name: &HostName) -> bool {
    name.as_str() == "localhost"
}

fn is_loopback(address: IpAddr) -> bool {
    [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)].contains(&address.to_canonical())
}

fn is_below(name: &HostName, domain: &HostName) -> bool {
    let start = name.as_str().strip_suffix(domain.as_str());
    start.is_some_and(|start| start.len() > 1 && start.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        HostPattern::read(text).expect("a host")
    }

    fn matches(text: &str, host: &str, port: u16) -> bool {
        pattern(text).matches(&read_host(host).expect("a host"), port, Care::Exact)
    }

    #[test]
    fn hosts_are_names_with_a_port() {
        assert!(matches("example.org", "EXAMPLE.org.", 443));
        assert!(!matches("example.org", "example.org", 80));
        assert!(!matches("example.org", "a.example.org", 443));
        assert!(matches("*.example.org", "a.b.example.org", 443));
        assert!(!matches("*.example.org", "example.org", 443));
        assert!(!matches("*.example.org", "evilexample.org", 443));
        assert!(matches("*:*", "anything", 1));
        assert!(matches("[::1]:80", "::1", 80));
    }

    #[test]
    fn names_and_addresses_are_two_worlds() {
        for name in ["*:*", "*.org:*", "a.org:*"] {
            for address in ["192.0.2.7", "::1", "10.0.0.1", "::ffff:10.0.0.1"] {
                assert!(!matches(name, address, 443), "{name} {address}");
            }
        }
        assert!(!matches("0.0.0.0/0:*", "a.org", 443));
        assert!(matches("0.0.0.0/0", "10.0.0.1", 443));
        assert!(!matches("0.0.0.0/0", "fd00::1", 443));
        assert!(matches("::/0", "fd00::1", 443));
        assert!(matches("10.0.0.0/8:5432", "10.255.0.1", 5432));
        assert!(matches("10.0.0.0/8:5432", "::ffff:10.255.0.1", 5432));
        assert!(!matches("10.0.0.0/8:5432", "11.0.0.1", 5432));
        assert!(matches("[fd00::/8]:443", "fdff::1", 443));
        assert!(!matches("[fd00::/8]:443", "fe00::1", 443));
        assert!(matches("192.0.2.7", "192.0.2.7", 443));
    }

    #[test]
    fn localhost_is_the_hosts_own_loopback_on_a_port() {
        assert!(matches("localhost:80", "127.0.0.1", 80));
        assert!(matches("localhost:80", "::1", 80));
        assert!(matches("LOCALHOST:80", "localhost", 80));
        assert!(!matches("localhost:80", "127.0.0.2", 80));
        assert!(!matches("localhost:80", "127.0.0.1", 81));
        assert!(!matches("*:*", "localhost", 80));
        for bad in ["localhost", "localhost:*"] {
            let message = HostPattern::read(bad).expect_err("no port");
            assert!(message.contains("write the port too"), "{message}");
        }
        assert_eq!(pattern("127.0.0.1:80").loopback(), Some(80));
        assert_eq!(pattern("127.0.0.1").loopback(), None);
        assert_eq!(pattern("127.0.0.0/8:80").loopback(), None);
    }

    #[test]
    fn what_is_no_host_is_refused_with_the_fix() {
        for bad in [
            "", ":", ":80", "exämple.org", "a b", "example.org:0", "example.org:70000", "example.org:+80",
            "example.org:080", "example.org:", "*a.org", "*.", "a.*.org", "**.org", "a/b", "https://a.org",
            "https://a.org/b", "user@a.org", "a\0.org", "a.org\0", "a%2eorg", "a.org\n", "127.1", "0x7f.1",
            "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.01", "1.2.3.4.", "10.0.0.1/8", "10.0.0.0/33",
            "10.0.0.0/+8", "10.0.0.0/08", "10.0.0.0/", "fd00::1/8", "[10.0.0.1]:80", "[a.org]:80", "[::1", "[::1]80",
            "[::1]:", "::ffff:10.0.0.1", "[::ffff:0.0.0.0/96]:1", "fe80::1%eth0", "*.127.1", "a.org:80:90",
        ] {
            assert!(HostPattern::read(bad).is_err(), "{bad:?}");
        }
        let message = HostPattern::read("10.1.2.3/8").expect_err("too many bits");
        assert!(message.ends_with("write `10.0.0.0/8`"), "{message}");
    }

    #[test]
    fn a_pattern_is_written_as_it_is_read() {
        for text in ["a.org", "*.a.org:8443", "*", "*:*", "10.0.0.0/8:5432", "[fd00::/8]:*", "localhost:1", "192.0.2.7"]
        {
            assert_eq!(pattern(text).to_string(), text);
        }
        assert_eq!(pattern("[fd00::/8]:443").to_string(), "fd00::/8");
        assert_eq!(pattern("fd00::/8"), HostPattern { port_is_said: false, ..pattern("[fd00::/8]:443") });
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        let covers = |wide: &str, narrow: &str| pattern(wide).covers(&pattern(narrow), Care::Exact);
        assert!(covers("*", "*.a.org") && covers("*.a.org", "*.b.a.org") && covers("*.a.org", "x.a.org"));
        assert!(!covers("*.a.org", "*") && !covers("*.b.a.org", "*.a.org") && !covers("*.a.org", "a.org"));
        assert!(covers("10.0.0.0/8", "10.1.0.0/16") && !covers("10.1.0.0/16", "10.0.0.0/8"));
        assert!(!covers("a.org", "a.org:*") && covers("a.org:*", "a.org:22"));
        assert!(covers("localhost:1", "127.0.0.1:1") && !covers("127.0.0.1:1", "localhost:1"));
        assert!(!covers("0.0.0.0/0", "*") && !covers("*", "0.0.0.0/0"));
        let meets = |one: &str, two: &str| pattern(one).meets(&pattern(two), Care::Forgiving);
        assert!(meets("x.a.org", "*.a.org") && meets("*.a.org", "x.a.org:22") && meets("127.0.0.0/8:1", "localhost:1"));
        assert!(!meets("a.org", "*.a.org") && !meets("a.org:22", "a.org:23") && !meets("*", "0.0.0.0/0"));
    }
}
