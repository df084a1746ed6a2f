//! The user's secrets: kept sealed, in the desktop's keyring, or fetched from a variable or a command when they are used.
//!
//! A folder, only its owner's: `NAME.secret` for each secret, `key`, which they are sealed with, and `lock`. Nothing is
//! there, and nothing is looked at, until the first secret is set. Blocking and plain; no threads.

mod command;
mod error;
mod folder;
mod key;
mod keyring;
mod record;

pub use error::{Error, Result};

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use command::{Failed, Said};
use folder::{Folder, Locked};
use key::Key;
use model::{NewSecret, SecretShown, SecretSource, SecretText, is_secret_name, is_variable, secret_host};
use record::{About, ENDING, Record};

/// What reads a stored file. Not for use: for those who try it with all kinds of bytes.
#[doc(hidden)]
pub mod hostile {
    pub use crate::record::{Record, read, write};
}

/// How long what a command said is used, if nobody says otherwise.
pub const USUAL_TTL: Duration = Duration::from_secs(15 * 60);
/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Vault {
    folder: PathBuf,
    /// How long a command may take.
    patience: Duration,
    /// When the other end of this is gone, nobody wants an answer any more.
    until: Option<OwnedFd>,
    /// What commands said, and until when it may be used. Only here, never on a disk.
    said: Mutex<HashMap<String, Cached>>,
}

struct Cached {
    source: SecretSource,
    value: SecretText,
    until: Instant,
}

/// A value, and what was said with it when it was set.
#[derive(Clone, Debug)]
pub struct Fetched {
    pub value: SecretText,
    /// After this time it must be fetched anew; none: it holds until it is set anew.
    pub expires: Option<Duration>,
    pub about: SecretShown,
}

impl Vault {
    pub fn at(folder: impl Into<PathBuf>) -> Vault {
        Vault { folder: folder.into(), patience: PATIENCE, until: None, said: Mutex::default() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The same, less patient with commands.
    pub fn with_patience(self, patience: Duration) -> Vault {
        Vault { patience, ..self }
    }

    /// The same, which gives up on a command when the other end of this is hung up.
    pub fn until(self, hung_up: OwnedFd) -> Vault {
        Vault { until: Some(hung_up), ..self }
    }

    /// What would be kept, without keeping it: whatever is wrong with `new` is said here. Made before it is recorded.
    pub fn foresee(&self, new: &NewSecret) -> Result<SecretShown> {
        let before = match Folder::open(&self.folder)? {
            Some(folder) => known(&folder, &new.name)?,
            None => None,
        };
        Ok(about(new, before.as_ref())?.shown())
    }

    /// Keeps a secret, or replaces the one of that name; what `new` does not say stays as it was.
    pub fn set(&self, new: &NewSecret) -> Result<SecretShown> {
        about(new, None)?;
        let folder = Folder::make(&self.folder)?;
        let locked = folder.lock()?;
        let before = known(&folder, &new.name)?;
        let about = about(new, before.as_ref())?;
        let others = folder.names()?.iter().any(|name| name.ends_with(ENDING));
        let key = Key::read_or_make(&folder, &locked, others)?;
        let kept: &[u8] = match (&about.source, &new.value) {
            (SecretSource::Store, Some(value)) => value.reveal().as_bytes(),
            (SecretSource::Keyring, Some(value)) => {
                keyring::store(&about.name, value)?;
                &[]
            }
            _ => &[],
        };
        let bound = about.bound();
        let sealed = key.seal(kept, &bound)?;
        folder.put(&locked, &file(&about.name), &record::write(&bound, &sealed))?;
        // What is no longer asked is not left behind.
        if before.is_some_and(|before| before.source == SecretSource::Keyring) && about.source != SecretSource::Keyring
        {
            keyring::clear(&about.name)?;
        }
        self.forget(&about.name);
        Ok(about.shown())
    }

    /// All of them, in order. What can't be read is listed with its trouble, so that it can be removed.
    pub fn list(&self) -> Result<Vec<SecretShown>> {
        let Some(folder) = Folder::open(&self.folder)? else { return Ok(Vec::new()) };
        let mut list = Vec::new();
        for name in names(&folder)? {
            match read(&folder, &name) {
                Ok(Some(record)) => list.push(record.about.shown()),
                // Removed since.
                Ok(None) => {}
                Err(error) => list.push(troubled(&name, &error)),
            }
        }
        Ok(list)
    }

    /// What is said of one; whatever is wrong with its file is said in it.
    pub fn look(&self, name: &str) -> Result<SecretShown> {
        valid(name)?;
        let folder = self.open(name)?;
        match read(&folder, name) {
            Ok(Some(record)) => Ok(record.about.shown()),
            Ok(None) => Err(none(&folder, name)),
            Err(error) => Ok(troubled(name, &error)),
        }
    }

    /// Says what it was. Needs no key, and takes a damaged file away too.
    pub fn remove(&self, name: &str) -> Result<SecretShown> {
        valid(name)?;
        let folder = self.open(name)?;
        let locked = folder.lock()?;
        let was = match read(&folder, name) {
            Ok(Some(record)) => record.about.shown(),
            Ok(None) => return Err(none(&folder, name)),
            Err(error) => troubled(name, &error),
        };
        if was.trouble.is_none() && was.source == SecretSource::Keyring {
            keyring::clear(name)?;
        }
        self.take_away(&folder, &locked, name)?;
        Ok(was)
    }

    /// The value, from wherever it is. May wait: for a command, or for a person who unlocks the keyring.
    pub fn fetch(&self, name: &str) -> Result<Fetched> {
        valid(name)?;
        let folder = self.open(name)?;
        let record = read(&folder, name)?.ok_or_else(|| none(&folder, name))?;
        // Also where the value is elsewhere: what is said of it is only believed if it is sealed.
        let kept = Key::read(&folder)?.open(&record.sealed, &record.bound);
        let kept = kept.ok_or_else(|| Error::Sealed { name: name.to_owned() })?;
        let about = record.about.shown();
        let (value, expires) = match &record.about.source {
            SecretSource::Store => (readable(name, &kept)?, None),
            elsewhere => self.fetch_from(name, elsewhere, record.about.ttl.map(Duration::from_secs))?,
        };
        Ok(Fetched { value, expires, about })
    }

    /// Where one comes from, how long it may be used, and what was said of it; without fetching it.
    pub fn source(&self, name: &str) -> Result<(SecretSource, Option<Duration>, SecretShown)> {
        valid(name)?;
        let folder = self.open(name)?;
        let record = read(&folder, name)?.ok_or_else(|| none(&folder, name))?;
        if Key::read(&folder)?.open(&record.sealed, &record.bound).is_none() {
            return Err(Error::Sealed { name: name.to_owned() });
        }
        let ttl = record.about.ttl.map(Duration::from_secs);
        Ok((record.about.source.clone(), ttl, record.about.shown()))
    }

    /// The value of a secret that somebody else says the source of, and how long it may be used. What is stored needs its file.
    pub fn fetch_from(
        &self,
        name: &str,
        source: &SecretSource,
        ttl: Option<Duration>,
    ) -> Result<(SecretText, Option<Duration>)> {
        valid(name)?;
        let mut expires = None;
        let value = match source {
            SecretSource::Store => return self.fetch(name).map(|fetched| (fetched.value, fetched.expires)),
            SecretSource::Keyring => keyring::look_up(name)?,
            SecretSource::Variable(variable) => {
                let missing = || Error::NoVariable { name: name.to_owned(), variable: variable.clone() };
                let value =
                    zeroize::Zeroizing::new(std::env::var_os(variable).ok_or_else(missing)?.into_encoded_bytes());
                readable(name, &value)?
            }
            SecretSource::Command(line) => {
                let (value, left) = self.asked(name, line, source, ttl.unwrap_or(USUAL_TTL))?;
                expires = Some(left);
                value
            }
        };
        Ok((value, expires))
    }

    fn open(&self, name: &str) -> Result<Folder> {
        Folder::open(&self.folder)?.ok_or_else(|| Error::None { name: name.to_owned(), near: String::new() })
    }

    fn take_away(&self, folder: &Folder, locked: &Locked, name: &str) -> Result<()> {
        self.forget(name);
        folder.remove(locked, &file(name))
    }

    /// What a command says, or said not long ago; and how long that may be used.
    fn asked(&self, name: &str, line: &str, source: &SecretSource, ttl: Duration) -> Result<(SecretText, Duration)> {
        let mut said = self.said.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(cached) = said.get(name).filter(|cached| cached.source == *source) {
            let left = cached.until.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Ok((cached.value.clone(), left));
            }
        }
        said.remove(name);
        let asked_at = Instant::now();
        let value = ask(name, line, self.patience, self.until.as_ref().map(AsFd::as_fd))?;
        // Counted from before it was asked: it may have been made at once.
        let until = asked_at.checked_add(ttl).unwrap_or(asked_at);
        said.insert(name.to_owned(), Cached { source: source.clone(), value: value.clone(), until });
        Ok((value, until.saturating_duration_since(Instant::now())))
    }

    fn forget(&self, name: &str) {
        self.said.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).remove(name);
    }
}

fn ask(name: &str, line: &str, patience: Duration, until: Option<BorrowedFd<'_>>) -> Result<SecretText> {
    let failed = |why: String| Error::Command { name: name.to_owned(), why, complaint: String::new() };
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line]);
    let said = command::run(&mut shell, &[], patience, until).map_err(|error| match error {
        Failed::Start(error) => failed(format!("could not be started: {error}")),
        Failed::Unwanted => failed("was ended: nobody waits for it any more".to_owned()),
        Failed::Late(after) => failed(format!("said nothing more for {} seconds, and was ended", after.as_secs_f32())),
        Failed::TooMuch => failed(format!("said more than {} KiB, and was ended", model::LONGEST_SECRET >> 10)),
    })?;
    if !said.status.success() {
        let (why, complaint) = (format!("failed ({})", said.status), format!(": {}", complaint(&said)));
        return Err(Error::Command { name: name.to_owned(), why, complaint });
    }
    readable(name, &said.output)
}

/// The last of what a program complained about, as one line, without anything that it printed as a value.
fn complaint(said: &Said) -> String {
    const MOST: usize = 500;
    let output = String::from_utf8_lossy(&said.output);
    let mut text = zeroize::Zeroizing::new(String::from_utf8_lossy(said.complaint.trim_ascii()).into_owned());
    for part in output.split_ascii_whitespace().filter(|part| part.len() > 2) {
        *text = text.replace(part, "[hidden]");
    }
    let line = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let skip = line.chars().count().saturating_sub(MOST);
    if line.is_empty() { "it said nothing about it".to_owned() } else { line.chars().skip(skip).collect() }
}

fn readable(name: &str, bytes: &[u8]) -> Result<SecretText> {
    SecretText::read(bytes).map_err(|why| Error::BadValue { name: name.to_owned(), why })
}

fn valid(name: &str) -> Result<()> {
    if is_secret_name(name) { Ok(()) } else { Err(Error::Name { name: name.chars().take(100).collect() }) }
}

fn file(name: &str) -> String {
    format!("{name}{ENDING}")
}

fn names(folder: &Folder) -> Result<Vec<String>> {
    let names = folder.names()?;
    let ours = names.iter().filter_map(|name| name.strip_suffix(ENDING)).filter(|name| is_secret_name(name));
    Ok(ours.map(str::to_owned).collect())
}

fn read(folder: &Folder, name: &str) -> Result<Option<Record>> {
    let Some(bytes) = folder.read(&file(name))? else { return Ok(None) };
    record::read(name, &bytes).map(Some).map_err(|why| Error::Bad { name: name.to_owned(), why })
}

/// What is said of a secret that is to be replaced. One that is damaged, or that somebody changed, has no say: else the
/// hosts that they wrote would be sealed with the next value.
fn known(folder: &Folder, name: &str) -> Result<Option<About>> {
    valid(name)?;
    let record = match read(folder, name) {
        Err(Error::Bad { .. }) => return Ok(None),
        record => record?,
    };
    let Some(record) = record else { return Ok(None) };
    Ok(Key::read(folder)?.open(&record.sealed, &record.bound).map(|_| record.about))
}

/// What is to be said of a new one. Everything that is not in order ends here.
fn about(new: &NewSecret, before: Option<&About>) -> Result<About> {
    let NewSecret { name, source, value, hosts, ttl, variable, prefix } = new;
    valid(name)?;
    if source.takes_value() != value.is_some() {
        return Err(Error::Value { name: name.clone(), wanted: source.takes_value() });
    }
    // As it would be read back.
    if SecretSource::read(&source.to_string()).as_ref() != Ok(source) {
        return Err(Error::Command { name: name.clone(), why: "is not one line".to_owned(), complaint: String::new() });
    }
    let is_command = matches!(source, SecretSource::Command(_));
    if ttl.is_some() && !is_command {
        return Err(Error::Ttl { name: name.clone() });
    }
    let hosts = match (hosts, before) {
        (Some(hosts), _) => {
            let bad = |host: &String| Error::Host { host: host.chars().take(100).collect() };
            hosts.iter().map(|host| secret_host(host).ok_or_else(|| bad(host))).collect::<Result<Vec<String>>>()?
        }
        (None, Some(before)) => before.hosts.clone(),
        (None, None) => Vec::new(),
    };
    if !record::are_few(&hosts) {
        return Err(Error::Host { host: format!("{} and more", hosts[0]) });
    }
    let usual = || name.replace(['-', '.'], "_");
    let variable = variable.clone().or_else(|| Some(before?.variable.clone())).unwrap_or_else(usual);
    if !is_variable(&variable) {
        return Err(Error::Variable { name: variable });
    }
    let prefix = prefix.clone().or_else(|| Some(before?.prefix.clone())).unwrap_or_default();
    if !record::is_prefix(&prefix) {
        return Err(Error::Prefix { prefix });
    }
    let ttl = ttl.map(|ttl| ttl.as_secs().max(1)).or_else(|| before?.ttl).filter(|_| is_command);
    let set = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(About { name: name.clone(), source: source.clone(), hosts, variable, prefix, ttl, set })
}

fn troubled(name: &str, error: &Error) -> SecretShown {
    SecretShown {
        name: name.to_owned(),
        source: SecretSource::Store,
        hosts: Vec::new(),
        variable: String::new(),
        prefix: String::new(),
        ttl: None,
        set: 0,
        last_used: None,
        trouble: Some(format!("{error}; fix: {}", error.fix())),
    }
}

/// There is none, and perhaps one that is called almost like it.
fn none(folder: &Folder, name: &str) -> Error {
    let likeness = |known: &str| strsim::jaro_winkler(&known.to_ascii_lowercase(), &name.to_ascii_lowercase());
    let known = names(folder).unwrap_or_default();
    let near = known.iter().map(|known| (likeness(known), known)).filter(|(likeness, _)| *likeness > 0.8);
    let near = near.max_by(|left, right| left.0.total_cmp(&right.0));
    let near = near.map_or_else(String::new, |(_, near)| format!("; did you mean `{near}`?"));
    Error::None { name: name.to_owned(), near }
}
