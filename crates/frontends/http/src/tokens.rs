//! Tokens: who may ask what, for which tenant. Only digests are kept, in one file that its owner alone can read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

const PREFIX: &str = "bj_";
const FILE: &str = "tokens.json";
/// Of the file, in bytes, and of the list: a person made each of them.
const LARGEST: u64 = 8 << 20;
const MOST: usize = 10_000;
/// The tenant whose state is the user's own.
pub const LOCAL: &str = "local";

/// What a token lets its bearer do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Run commands, and make sandboxes for them.
    Run,
    /// Take changes, throw them away, snapshots, forks, removal.
    Files,
    /// Look at everything that is the tenant's.
    Read,
    /// Answer questions. Never on an agent's token.
    Approve,
    /// Secrets, and how the service does.
    Admin,
}

pub const ALL: [Scope; 5] = [Scope::Run, Scope::Files, Scope::Read, Scope::Approve, Scope::Admin];

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Scope::Run => "run",
            Scope::Files => "files",
            Scope::Read => "read",
            Scope::Approve => "approve",
            Scope::Admin => "admin",
        }
    }

    pub fn read(word: &str) -> Result<Scope, String> {
        let named = ALL.into_iter().find(|scope| scope.name() == word);
        named.ok_or_else(|| "use run, files, read, approve or admin".to_owned())
    }
}

/// What is kept of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    pub id: String,
    pub name: String,
    pub tenant: String,
    pub scopes: BTreeSet<Scope>,
    /// It is an agent's: whatever it asks for is asked for by this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Seconds since 1970.
    pub created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    hash: String,
}

impl Token {
    /// Whatever the file says: an agent approves nothing.
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) && !(scope == Scope::Approve && self.agent.is_some())
    }
}

/// What a new one is to be.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub name: String,
    pub tenant: String,
    pub scopes: BTreeSet<Scope>,
    pub agent: Option<String>,
    /// In seconds from now.
    pub lasts: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
pub enum BadTokens {
    #[error("{0}")]
    Wrong(String),
    #[error("cannot {does} `{}`: {source}", path.display())]
    Io { does: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` can't be understood: {why}; nobody is let in until it is mended", path.display())]
    Unreadable { path: PathBuf, why: String },
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    tokens: Vec<Token>,
}

type ByDigest = BTreeMap<[u8; 32], Token>;

/// The file, and what was in it when it was read last.
pub struct Tokens {
    folder: PathBuf,
    known: Mutex<(Option<Mark>, ByDigest)>,
}

/// Tells one writing of the file from another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Tokens {
    pub fn at(folder: PathBuf) -> Tokens {
        Tokens { folder, known: Mutex::default() }
    }

    /// Makes one, and says it: this is the only time that anybody can.
    pub fn create(&self, wanted: Wanted) -> Result<(Token, String), BadTokens> {
        let Wanted { name, tenant, scopes, agent, lasts } = wanted;
        let plain = |text: &str| {
            (1..=64).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
        };
        let wrong = |why: &str| Err(BadTokens::Wrong(why.to_owned()));
        if !plain(&tenant) {
            return wrong("a tenant is called by up to 64 small letters, digits, `-` and `_`");
        }
        let named = |agent: &str| plain(&agent.replace(['.', '@'], "-"));
        if agent.as_deref().is_some_and(|agent| !named(agent)) {
            return wrong("an agent is called by up to 64 small letters, digits and `-_.@`");
        }
        if agent.is_some() && scopes.contains(&Scope::Approve) {
            return wrong(
                "the scope `approve` is never on an agent's token: an agent can't approve what it asks for; leave one of the two out",
            );
        }
        if scopes.is_empty() || name.len() > 128 || name.contains(char::is_control) {
            return wrong("a token has at least one scope, and a name of up to 128 letters");
        }
        let token = format!("{PREFIX}{}", random(32)?);
        let made = Token {
            id: random(8)?,
            name,
            tenant,
            scopes,
            agent,
            created: now(),
            expires: lasts.map(|lasts| now().saturating_add(lasts)),
            hash: digest(&token).to_hex().to_string(),
        };
        let kept = made.clone();
        self.change(|tokens| {
            if tokens.len() >= MOST {
                return Err(BadTokens::Wrong(format!("there are {MOST} tokens already; revoke some")));
            }
            tokens.push(kept);
            Ok(())
        })?;
        Ok((made, token))
    }

    pub fn list(&self) -> Result<Vec<Token>, BadTokens> {
        Ok(self.read()?.tokens)
    }

    /// Whether there was such a one.
    pub fn revoke(&self, id: &str) -> Result<bool, BadTokens> {
        let mut found = false;
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.id != id);
            found = tokens.len() < before;
            Ok(())
        })?;
        Ok(found)
    }

    /// Whose token this is, if it is one and still holds. Found by its digest: how long that takes says nothing of the token.
    pub fn find(&self, said: &str) -> Result<Option<Token>, BadTokens> {
        if !said.starts_with(PREFIX) || said.len() > 256 {
            return Ok(None);
        }
        let path = self.folder.join(FILE);
        let mark = match fs::metadata(&path) {
            Ok(stat) => Mark { inode: stat.ino(), length: stat.len(), changed: (stat.mtime(), stat.mtime_nsec()) },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(BadTokens::Io { does: "look at", path, source }),
        };
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if known.0 != Some(mark) {
            let tokens = self.read()?.tokens;
            let by_digest = tokens.into_iter().filter_map(|token| {
                let digest = blake3::Hash::from_hex(&token.hash).ok()?;
                Some((*digest.as_bytes(), token))
            });
            *known = (Some(mark), by_digest.collect());
        }
        let found = known.1.get(digest(said).as_bytes()).cloned();
        Ok(found.filter(|token| token.expires.is_none_or(|expires| expires > now())))
    }

    /// Whether this one was not revoked meanwhile, nor changed, and is not over.
    pub fn holds(&self, token: &Token) -> Result<bool, BadTokens> {
        Ok(token.expires.is_none_or(|expires| expires > now()) && self.read()?.tokens.contains(token))
    }

    fn read(&self) -> Result<Kept, BadTokens> {
        let path = self.folder.join(FILE);
        let io = |does| {
            let path = path.clone();
            move |source| BadTokens::Io { does, path, source }
        };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Kept { version: 1, tokens: Vec::new() });
            }
            Err(error) => return Err(io("open")(error)),
        };
        let stat = file.metadata().map_err(io("look at"))?;
        let unreadable = |why: String| BadTokens::Unreadable { path: path.clone(), why };
        if stat.mode() & 0o077 != 0 || stat.uid() != rustix::process::geteuid().as_raw() {
            return Err(unreadable("others may read or write it; `chmod 600` it, as its owner".to_owned()));
        }
        let mut text = String::new();
        file.take(LARGEST).read_to_string(&mut text).map_err(io("read"))?;
        let kept: Kept = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        if kept.version != 1 {
            return Err(unreadable(format!("it has version {}, and this belljar knows 1", kept.version)));
        }
        Ok(kept)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Token>) -> Result<(), BadTokens>) -> Result<(), BadTokens> {
        make_private(&self.folder)?;
        let path = self.folder.join("tokens.lock");
        let io = |does, path: &Path| {
            let path = path.to_owned();
            move |source| BadTokens::Io { does, path, source }
        };
        let lock = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = lock.map_err(io("open", &path))?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| io("lock", &path)(error.into()))?;
        let mut kept = self.read()?;
        change(&mut kept.tokens)?;
        let text = serde_json::to_string_pretty(&kept).map_err(|error| BadTokens::Wrong(error.to_string()))?;
        write_private(&self.folder.join(FILE), &text)
    }
}

/// A folder that is its owner's alone.
pub fn make_private(folder: &Path) -> Result<(), BadTokens> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| BadTokens::Io { does: "make", path: folder.to_owned(), source })
}

/// In the place of what was there, whole or not at all.
pub fn write_private(path: &Path, text: &str) -> Result<(), BadTokens> {
    let io = |source| BadTokens::Io { does: "write", path: path.to_owned(), source };
    let new = path.with_extension(format!("new-{}", random(8)?));
    let mut file = File::options().create_new(true).write(true).mode(0o600).open(&new).map_err(io)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
    fs::rename(&new, path).map_err(io)
}

fn digest(token: &str) -> blake3::Hash {
    blake3::hash(token.as_bytes())
}

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// So many random bytes, as letters.
pub fn random(bytes: usize) -> Result<String, BadTokens> {
    let mut random = vec![0; bytes];
    let mut filled = 0;
    while filled < bytes {
        let more = rustix::rand::getrandom(&mut random[filled..], rustix::rand::GetRandomFlags::empty());
        filled += more.map_err(|error| BadTokens::Wrong(format!("the kernel has no random bytes: {error}")))?;
    }
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(name: &str) -> Tokens {
        let folder = std::env::temp_dir().join(format!("belljar-tokens-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        Tokens::at(folder)
    }

    fn wanted(agent: Option<&str>, scopes: &[Scope]) -> Wanted {
        let scopes = scopes.iter().copied().collect();
        Wanted { name: "n".into(), tenant: "t".into(), scopes, agent: agent.map(str::to_owned), lasts: None }
    }

    #[test]
    fn a_token_is_found_by_what_it_is_and_the_file_does_not_have_it() {
        let tokens = tokens("found");
        let (made, text) = tokens.create(wanted(None, &[Scope::Run])).expect("made");
        assert_eq!(tokens.find(&text).expect("read"), Some(made.clone()));
        assert_eq!(tokens.find(&format!("{text}0")).expect("read"), None);
        assert_eq!(tokens.find("").expect("read"), None);
        let file = fs::read_to_string(tokens.folder.join(FILE)).expect("read");
        assert!(!file.contains(&text[PREFIX.len()..]));
        assert_eq!(fs::metadata(tokens.folder.join(FILE)).expect("there").mode() & 0o777, 0o600);
        assert!(tokens.revoke(&made.id).expect("revoked"));
        assert_eq!(tokens.find(&text).expect("read"), None);
        drop(fs::remove_dir_all(&tokens.folder));
    }

    #[test]
    fn an_agents_token_never_approves_whatever_the_file_says() {
        let tokens = tokens("agent");
        assert!(tokens.create(wanted(Some("coder"), &[Scope::Run, Scope::Approve])).is_err());
        let (mut made, _) = tokens.create(wanted(Some("coder"), &[Scope::Run])).expect("made");
        made.scopes.insert(Scope::Approve);
        assert!(!made.has(Scope::Approve) && made.has(Scope::Run));
        drop(fs::remove_dir_all(&tokens.folder));
    }

    #[test]
    fn a_file_that_others_can_read_lets_nobody_in() {
        use std::os::unix::fs::PermissionsExt;
        let tokens = tokens("open");
        let (_, text) = tokens.create(wanted(None, &[Scope::Run])).expect("made");
        fs::set_permissions(tokens.folder.join(FILE), fs::Permissions::from_mode(0o644)).expect("changed");
        assert!(tokens.find(&text).is_err());
        drop(fs::remove_dir_all(&tokens.folder));
    }

    #[test]
    fn a_token_whose_time_is_over_is_none() {
        let tokens = tokens("expired");
        let (_, text) = tokens.create(Wanted { lasts: Some(0), ..wanted(None, &[Scope::Run]) }).expect("made");
        assert_eq!(tokens.find(&text).expect("read"), None);
        drop(fs::remove_dir_all(&tokens.folder));
    }
}
