//! The user's secrets: what is said of them, and the one type that holds a value.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{HostName, Trouble};

/// The user's secrets, as front-ends speak of them. Values go in and never come out this way.
pub trait Secrets {
    /// A value is about to be read: says no to whoever may not set one, and from here on this process leaves no core file.
    fn awaits_value(&self) -> Result<(), Trouble>;
    /// Keeps it, or replaces what is kept under that name; what `new` does not say stays as it was.
    fn set(&self, new: NewSecret) -> Result<SecretShown, Trouble>;
    fn list(&self) -> Result<Vec<SecretShown>, Trouble>;
    /// Says what it was.
    fn remove(&self, name: &str) -> Result<SecretShown, Trouble>;
}

/// In bytes.
pub const LONGEST_SECRET: usize = 64 << 10;
/// Of its name, in letters.
pub const LONGEST_SECRET_NAME: usize = 64;

/// The value of a secret. Wiped when it is dropped; nothing prints it by accident.
#[derive(Clone)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// A value as it was typed, or as a program said it: the end of its line is no part of it. It goes into headers, where
    /// anything but visible ASCII with spaces inside could begin another.
    pub fn read(bytes: &[u8]) -> Result<SecretText, BadValue> {
        let bytes = bytes.strip_suffix(b"\n").map_or(bytes, |line| line.strip_suffix(b"\r").unwrap_or(line));
        let visible = |byte: &u8| matches!(byte, b' '..=b'~');
        match std::str::from_utf8(bytes) {
            _ if bytes.is_empty() => Err(BadValue::Empty),
            _ if bytes.len() > LONGEST_SECRET => Err(BadValue::TooLong),
            Ok(text) if bytes.iter().all(visible) && text.trim_matches(' ') == text => {
                Ok(SecretText(Zeroizing::new(text.to_owned())))
            }
            _ => Err(BadValue::NotVisible),
        }
    }

    /// The value itself: for whoever sends it where it belongs, or takes it out of what is said.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretText(hidden)")
    }
}

/// Why bytes are no value of a secret. Never which bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadValue {
    Empty,
    TooLong,
    NotVisible,
}

impl fmt::Display for BadValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadValue::Empty => out.write_str("it is empty"),
            BadValue::TooLong => write!(out, "it has more than {} KiB", LONGEST_SECRET >> 10),
            BadValue::NotVisible => out.write_str(
                "it has something else than visible ASCII letters with spaces between them; it goes into a header of HTTP, which takes one line of those",
            ),
        }
    }
}

/// Where a value comes from when it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum SecretSource {
    /// A sealed file of ours.
    Store,
    /// The desktop's keyring.
    Keyring,
    /// A variable of belljar's own environment.
    Variable(String),
    /// What a command says, outside of every sandbox.
    Command(String),
}

impl SecretSource {
    /// As people write it: `store`, `keyring`, `env:VAR`, `cmd:COMMAND`.
    pub fn read(text: &str) -> Result<SecretSource, String> {
        let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
        match (kind, rest) {
            ("store", None) => Ok(SecretSource::Store),
            ("keyring", None) => Ok(SecretSource::Keyring),
            ("env", Some(name)) if is_variable(name) => Ok(SecretSource::Variable(name.to_owned())),
            ("env", _) => Err("write env:VAR, with the name of a variable".to_owned()),
            ("cmd", Some(line)) if line.len() > LONGEST_COMMAND || line.contains(char::is_control) => {
                Err(format!("a command is one line of at most {LONGEST_COMMAND} bytes"))
            }
            ("cmd", Some(line)) if !line.trim().is_empty() => Ok(SecretSource::Command(line.to_owned())),
            ("cmd", _) => Err("write cmd:COMMAND, such as `cmd:gh auth token`".to_owned()),
            _ => Err("it is no source; use store, keyring, env:VAR or cmd:COMMAND".to_owned()),
        }
    }

    /// Whether a value is handed over when it is set.
    pub fn takes_value(&self) -> bool {
        matches!(self, SecretSource::Store | SecretSource::Keyring)
    }
}

const LONGEST_COMMAND: usize = 4096;

impl fmt::Display for SecretSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretSource::Store => out.write_str("store"),
            SecretSource::Keyring => out.write_str("keyring"),
            SecretSource::Variable(name) => write!(out, "env:{name}"),
            SecretSource::Command(line) => write!(out, "cmd:{line}"),
        }
    }
}

impl From<SecretSource> for String {
    fn from(source: SecretSource) -> String {
        source.to_string()
    }
}

impl TryFrom<String> for SecretSource {
    type Error = String;

    fn try_from(text: String) -> Result<SecretSource, String> {
        SecretSource::read(&text)
    }
}

/// A secret to be kept. What is `None` stays as it was, or is what is usual.
#[derive(Clone, Debug)]
pub struct NewSecret {
    pub name: String,
    pub source: SecretSource,
    /// Exactly where the source takes one.
    pub value: Option<SecretText>,
    /// Where it may go if nobody says otherwise.
    pub hosts: Option<Vec<String>>,
    /// How long what a command said is used before it is asked again.
    pub ttl: Option<Duration>,
    /// The variable inside that has the stand-in [default: the name].
    pub variable: Option<String>,
    /// What the stand-in begins with, for programs that look at it.
    pub prefix: Option<String>,
}

/// What may be shown of a secret: nothing that depends on its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretShown {
    pub name: String,
    pub source: SecretSource,
    pub hosts: Vec<String>,
    pub variable: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// In seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
    /// When it was set, in seconds since 1970.
    pub set: u64,
    /// When it was added to a request last, as far as the record tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<String>,
    /// Why it can't be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Letters, digits, `_`, `-` and `.`; the first is a letter, a digit or `_`.
pub fn is_secret_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=LONGEST_SECRET_NAME).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with(['-', '.'])
}

/// A name that every shell can speak of.
pub fn is_variable(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// A host that a secret may go to, in the form in which it is kept: a name, `*.` and a name, or an address; with a port or
/// without.
pub fn secret_host(text: &str) -> Option<String> {
    if text.len() > 300 {
        return None;
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let plain = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    let port = match port {
        Some(port) => format!(":{}", port.parse::<u16>().ok().filter(|_| plain(port))?),
        None => String::new(),
    };
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Some(format!("[{}]{port}", address.parse::<std::net::Ipv6Addr>().ok()?));
    }
    if let Ok(address) = host.parse::<std::net::Ipv4Addr>() {
        return Some(format!("{address}{port}"));
    }
    let (star, name) = host.strip_prefix("*.").map_or(("", host), |name| ("*.", name));
    Some(format!("{star}{}{port}", HostName::read(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_line_of_visible_letters() {
        let read = |bytes: &[u8]| SecretText::read(bytes).map(|text| text.reveal().to_owned());
        assert_eq!(read(b"glass bell 7\n").as_deref(), Ok("glass bell 7"));
        assert_eq!(read(b"glass\r\n").as_deref(), Ok("glass"));
        assert_eq!(read(b"\n"), Err(BadValue::Empty));
        for bad in [&b"a\nb"[..], b"a\0b", b"a\n\n", b" a", b"a ", b"a\tb", b"\xff", "ä".as_bytes(), b"a\r", b"a\x1b"]
        {
            assert_eq!(read(bad), Err(BadValue::NotVisible), "{}", bad.escape_ascii());
        }
        assert_eq!(read(&[b'a'; LONGEST_SECRET]).map(|text| text.len()), Ok(LONGEST_SECRET));
        assert_eq!(read(&[b'a'; LONGEST_SECRET + 1]), Err(BadValue::TooLong));
    }

    #[test]
    fn nothing_prints_a_value() {
        let value = SecretText::read(b"fish-under-glass").expect("a value");
        let new = NewSecret {
            name: "a".to_owned(),
            source: SecretSource::Store,
            value: Some(value),
            hosts: None,
            ttl: None,
            variable: None,
            prefix: None,
        };
        assert!(!format!("{new:?} {new:#?}").contains("fish"));
    }

    #[test]
    fn names_and_variables_are_plain() {
        for good in ["GITHUB_TOKEN", "a", "a.b-c_1", "_x", "7"] {
            assert!(is_secret_name(good), "{good}");
        }
        for bad in ["", "-a", ".", "..", ".a", "a/b", "a b", "a\n", "ä", "a=b", "a@b", &"a".repeat(65)] {
            assert!(!is_secret_name(bad), "{bad:?}");
        }
        assert!(is_variable("_A1") && !is_variable("1A") && !is_variable("A-B") && !is_variable(""));
    }

    #[test]
    fn a_host_has_one_form() {
        for (text, host) in [
            ("API.GitHub.com", "api.github.com"),
            ("*.example.org:8443", "*.example.org:8443"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("::1", "[::1]"),
            ("[::1]:443", "[::1]:443"),
        ] {
            assert_eq!(secret_host(text).as_deref(), Some(host));
        }
        for bad in [
            "", "*", "*.", "a:0", "a:", "a:x", "a:+1", "a:65536", "https://a", "a/b", "u@a", "127.1", "a b", "[::1",
            "a\n",
        ] {
            assert_eq!(secret_host(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_source_reads_back_as_it_is_written() {
        for text in ["store", "keyring", "env:TOKEN", "cmd:gh auth token --host a:b"] {
            assert_eq!(SecretSource::read(text).map(|source| source.to_string()).as_deref(), Ok(text));
        }
        for bad in ["", "stores", "store:", "env", "env:", "env:A=B", "cmd:", "cmd: ", "cmd:a\nb", "file:x"] {
            assert!(SecretSource::read(bad).is_err(), "{bad:?}");
        }
    }
}
