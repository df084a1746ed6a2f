//! The network: what a sandbox reaches of it, and the seams around the gate that everything passes on its way out.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Approval, Judgement, Refusal, Trouble};

/// Which network can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// None but a loopback of its own.
    Closed,
    /// What goes out passes a gate outside, which decides at each crossing.
    Gated(Gated),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gated {
    /// What can be reached, as somebody wrote it: for people. The gate asks anew at each crossing.
    pub hosts: Vec<String>,
    /// Ports of the host's own loopback that stand in the place of the sandbox's.
    pub loopback: Vec<u16>,
    /// Some requests are read on their way, so programs inside must trust the gate's own authority.
    pub reads: bool,
    /// Names whose address somebody wrote down: it is not looked up.
    pub pinned: Vec<(HostName, IpAddr)>,
    pub secrets: Vec<SecretGrant>,
    /// Servers inside that can be reached from the host's loopback.
    pub published: Vec<Published>,
}

/// A secret that is added outside. What is inside has a value that stands for it and opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretGrant {
    pub name: String,
    /// Where it may go, as written: hosts, with or without ports.
    pub hosts: Vec<String>,
    /// The variable of the sandbox that has the stand-in.
    pub variable: String,
    pub stand_in: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Published {
    /// Of the host's loopback.
    pub host: u16,
    /// Of the sandbox's.
    pub guest: u16,
}

/// Where programs inside find the authorities that they shall trust, if requests are read.
pub const AUTHORITIES: &str = "/etc/belljar/authorities.pem";
/// The same for Java.
pub const JAVA_AUTHORITIES: &str = "/etc/belljar/authorities.jks";

/// A name of the network, in the one form in which it is compared, looked up, dialled and recorded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct HostName(String);

impl HostName {
    /// Letters, digits, `-` and `_` between dots; in any case, with or without the last dot. No address, whatever its spelling.
    pub fn read(text: &str) -> Option<HostName> {
        let text = text.strip_suffix('.').unwrap_or(text);
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        // Resolvers take `127.1`, `0x7f.1` and `2130706433` for addresses; no name ends like that.
        let last = text.rsplit('.').next().unwrap_or_default();
        let number = match last.as_bytes() {
            [b'0', b'x' | b'X', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
            digits => digits.iter().all(u8::is_ascii_digit),
        };
        let sound = !text.is_empty() && text.len() <= 253 && text.split('.').all(label) && !number;
        sound.then(|| HostName(text.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Somebody to talk to: by a name, or by an address that was never one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Host {
    Name(HostName),
    Address(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => name.fmt(out),
            Host::Address(address) => address.fmt(out),
        }
    }
}

/// Where a connection wants to go. Decided on and dialled as this one value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Endpoint {
    pub host: Host,
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(out, "[{address}]:{}", self.port),
            host => write!(out, "{host}:{}", self.port),
        }
    }
}

/// A request that was read on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingRequest {
    pub destination: Endpoint,
    pub method: String,
    /// From its first `/` on, without what follows a `?`.
    pub path: String,
    /// What follows the `?`, without it.
    pub query: String,
    /// How long its body is, where its head says so.
    pub body: Option<u64>,
}

/// How rules call a request that asks to go on as a web socket.
pub const WEB_SOCKET: &str = "WEBSOCKET";

/// What a porter says to a new connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// To all that goes over it.
    Whole(Judgement),
    /// Each request on it is judged by itself, so it is read. Never a denial.
    Read(Judgement),
}

/// The rule by which nobody names an address that a name leads to: no more than silence.
pub const NOT_NAMED: &str = "network.private";

/// Decides on what goes out, and writes it down. The gate asks, and does exactly as it is told.
pub trait Porter {
    /// Whether a name gets an address: it may be reached on some port.
    fn knows(&self, name: &HostName) -> Judgement;
    fn opens(&self, destination: &Endpoint) -> Opening;
    /// Whether a connection that was allowed by its name may lead to this address, which is not everybody's: it is of the
    /// host's own, of a private network, or of nobody's. Only somebody who wrote the address has allowed that.
    fn leads_to(&self, destination: &Endpoint, address: IpAddr) -> Judgement;
    fn lets(&self, request: &OutgoingRequest) -> Judgement;
    /// Whether some files of a host may be answered with what is kept of earlier downloads. Nobody has said so, if not said.
    fn keeps_some_of(&self, _destination: &Endpoint) -> bool {
        false
    }
    /// Whether what such a request leads to never changes, so that it may be kept and given to others who are let, too.
    fn keeps(&self, _request: &OutgoingRequest) -> bool {
        false
    }
    /// Whether a secret may be added to what goes there.
    fn adds(&self, secret: &str, destination: &Endpoint) -> Judgement;
    /// Asks a person about what a judgement left open. Takes as long as they take.
    fn asks(&self, judgement: &Judgement, about: &AskedAtGate) -> Asking;
    /// Writes it down, and returns when it is written. If it can't be, nothing more may go out.
    fn records(&self, event: &NetworkEvent) -> Result<(), Trouble>;
}

/// An answer in the making.
pub type Asking = Pin<Box<dyn Future<Output = Result<Approval, Refusal>>>>;

/// What a person is shown of something that waits at the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedAtGate {
    pub caller: Option<Caller>,
    pub destination: Endpoint,
    /// Method and path with query, where a request was read.
    pub request: Option<(String, String)>,
    /// How long its body is, and the digest of as much of it as was there when it was asked.
    pub body: Option<(u64, String)>,
}

/// Who inside talks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Caller {
    /// Numbered as the host sees it.
    pub process: i32,
    pub program: String,
}

/// Something that happened at the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkEvent {
    #[serde(skip)]
    pub what: NetworkDeed,
    #[serde(skip)]
    pub denied: bool,
    /// Numbers what belongs together: a connection, and the requests on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    #[serde(flatten)]
    pub caller: Option<Caller>,
    pub host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Where it was really dialled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Bytes that went out, and that came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<(u64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Duration>,
    /// What decided, and where it is written.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What would allow it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub grant: String,
    /// The name of a secret that was added, or whose stand-in was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// How often, where the same came again and again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Where what is kept of downloads had a part in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cached>,
}

/// What became of a download that is kept for others; with the BLAKE3 digest of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cached {
    /// It was answered with what is kept, and nobody outside was asked.
    Served(String),
    /// It came from outside, and is kept from now on.
    Kept(String),
    /// What was kept is no longer what it was: it is fetched again. The digest is what it should have had.
    Damaged(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkDeed {
    /// A name was asked for.
    Name,
    /// A connection is about to be dialled, or was refused.
    Connect,
    /// It has ended.
    Close,
    /// A request is about to be sent on, or was refused.
    Request,
    /// It was answered.
    Answer,
    /// A secret is about to be added, or its stand-in was seen where it has no business.
    Secret,
    /// A server inside was reached from outside.
    Visit,
}

impl NetworkDeed {
    /// As the record calls it.
    pub fn name(self) -> &'static str {
        match self {
            NetworkDeed::Name => "network.name",
            NetworkDeed::Connect => "network.connection",
            NetworkDeed::Close => "network.closed",
            NetworkDeed::Request => "network.request",
            NetworkDeed::Answer => "network.answer",
            NetworkDeed::Secret => "secret.used",
            NetworkDeed::Visit => "network.visit",
        }
    }
}

impl NetworkEvent {
    pub fn new(what: NetworkDeed, host: String) -> NetworkEvent {
        NetworkEvent {
            what,
            denied: false,
            connection: None,
            caller: None,
            host,
            port: None,
            address: None,
            method: None,
            path: None,
            status: None,
            bytes: None,
            took: None,
            rule: String::new(),
            why: String::new(),
            grant: String::new(),
            secret: None,
            times: None,
            cache: None,
        }
    }
}

/// Sockets that were opened in a sandbox's own network, for whoever stands outside of it.
#[derive(Debug, Default)]
pub struct Doors {
    /// Listen; whatever goes out over TCP arrives here and knows where it wanted to go. Version 4, then 6 if there is one.
    pub streams: Vec<OwnedFd>,
    /// Questions about names, each in a datagram.
    pub names: Vec<OwnedFd>,
    /// The same over TCP; they listen.
    pub long_names: Vec<OwnedFd>,
}

/// Files for programs inside, which whoever stands outside writes while the rest of the sandbox is made.
#[derive(Debug, Default)]
pub struct Handed {
    /// Paths inside.
    pub paths: Vec<PathBuf>,
    /// Whoever makes the sandbox sends them, empty and open for writing, in one message and in this order. The answer is the
    /// number of an error, four bytes, or zero when all are whole; an end without it says that they never will be.
    pub wire: Option<OwnedFd>,
}

/// Whoever stands outside of a sandbox's network and takes what comes out of it.
pub trait Outside {
    /// What programs inside need to trust it. It is asked once.
    fn files(&mut self) -> Handed;
    /// The walls are up, and these were opened behind them. `first`: the first process inside, as the host numbers it.
    fn takes(&mut self, doors: Doors, first: i32) -> Result<(), Trouble>;
    /// Hangs up when it is gone, and with it the way out.
    fn gone(&self) -> BorrowedFd<'_>;
}

/// What went out with one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub connections: u64,
    pub requests: u64,
    pub refused: u64,
    /// Bytes that went out, and that came back.
    pub sent: u64,
    pub received: u64,
    /// Bytes that programs inside got of what is kept of earlier downloads, and that nobody outside was asked for.
    #[serde(default)]
    pub cached: u64,
    /// Where connections went, without repetition, and no more than fit.
    pub hosts: Vec<String>,
    /// Names of secrets that were added.
    pub secrets: Vec<String>,
    /// What was refused, each with what would allow it; without repetition, and no more than fit.
    pub denied: Vec<crate::Denied>,
    /// It ended before the run did: what came later was refused.
    pub lost: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_form_and_is_no_address() {
        let read = |text: &str| HostName::read(text).map(|name| name.to_string());
        assert_eq!(read("EXAMPLE.org."), Some("example.org".to_owned()));
        assert_eq!(read("_dmarc.a-b.example"), Some("_dmarc.a-b.example".to_owned()));
        for bad in [
            "", ".", "a..b", "-a.org", "a-.org", "a.org..", "127.1", "127.0.0.1", "0x7f.1", "0x7f000001", "2130706433",
            "1.2.3.4.", "::1", "[::1]", "a b", "a\0.org", "a%2e.org", "user@a.org", "a.org:80", "ä.org", "a.€",
            "\u{bbde7}", "a/b", "a\n",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        assert_eq!(read(&"a".repeat(64)), None);
        assert_eq!(read(&["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(62)].join(".")), None);
    }
}
