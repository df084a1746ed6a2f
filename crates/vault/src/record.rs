//! The file of one secret: what it is, what is said of it as JSON, and its value sealed to exactly that; a line each.
//!
//! Sealed even where the value is elsewhere: who changes where a secret may go, without the key, makes it unusable.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{LONGEST_SECRET, SecretShown, SecretSource, is_secret_name, is_variable, secret_host};
use serde::{Deserialize, Serialize};

/// Files of secrets end like this.
pub const ENDING: &str = ".secret";
const HEAD: &str = "belljar secret 1";
const MOST_HOSTS: usize = 64;
const LONGEST_PREFIX: usize = 32;

/// What is said of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    pub name: String,
    pub source: SecretSource,
    pub hosts: Vec<String>,
    pub variable: String,
    pub prefix: String,
    /// In seconds.
    pub ttl: Option<u64>,
    /// When it was set, in seconds since 1970.
    pub set: u64,
}

/// A file, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub about: About,
    /// What the seal is bound to: both lines before it, as they are.
    pub bound: Vec<u8>,
    pub sealed: Vec<u8>,
}

impl About {
    /// The lines that a seal is bound to.
    pub fn bound(&self) -> Vec<u8> {
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{HEAD}\n{json}\n").into_bytes()
    }

    pub fn shown(&self) -> SecretShown {
        let About { name, source, hosts, variable, prefix, ttl, set } = self.clone();
        SecretShown { name, source, hosts, variable, prefix, ttl, set, last_used: None, trouble: None }
    }
}

pub fn write(bound: &[u8], sealed: &[u8]) -> Vec<u8> {
    let mut file = bound.to_vec();
    file.extend_from_slice(STANDARD.encode(sealed).as_bytes());
    file.push(b'\n');
    file
}

/// The file of the secret `name`. Whatever is not as we write it is no file of ours.
pub fn read(name: &str, bytes: &[u8]) -> Result<Record, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "its file is no text")?;
    let rest = text.strip_prefix(HEAD).and_then(|rest| rest.strip_prefix('\n'));
    let rest = rest.ok_or("its file does not begin like a secret of this belljar")?;
    let (json, sealed) = rest.split_once('\n').ok_or("its file is torn")?;
    let sealed = sealed.strip_suffix('\n').ok_or("its file is torn")?;
    let about: About = serde_json::from_str(json).map_err(|_| "what its file says of it is not understood")?;
    if about.name != name {
        return Err("its file is of another secret");
    }
    if !is_sound(&about) {
        return Err("what its file says of it is not allowed");
    }
    let sealed = STANDARD.decode(sealed).map_err(|_| "its file is damaged")?;
    // A nonce and a tag are always there.
    if !(24 + 16..=24 + 16 + LONGEST_SECRET).contains(&sealed.len()) {
        return Err("its file is torn");
    }
    let bound = bytes[..HEAD.len() + 1 + json.len() + 1].to_vec();
    Ok(Record { about, bound, sealed })
}

/// As it could have been set.
fn is_sound(about: &About) -> bool {
    let About { name, source, hosts, variable, prefix, ttl, set: _ } = about;
    is_secret_name(name)
        && hosts.len() <= MOST_HOSTS
        && hosts.iter().all(|host| secret_host(host).as_ref() == Some(host))
        && is_variable(variable)
        && is_prefix(prefix)
        && (ttl.is_none() || matches!(source, SecretSource::Command(_)))
}

/// What a stand-in may begin with.
pub fn is_prefix(prefix: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    prefix.len() <= LONGEST_PREFIX && prefix.bytes().all(plain)
}

pub fn are_few(hosts: &[String]) -> bool {
    hosts.len() <= MOST_HOSTS
}
