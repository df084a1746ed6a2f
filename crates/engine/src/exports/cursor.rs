//! How far an export has come, by name: written after somebody else has taken what is before it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use export::Origin;
use ledger::Ledger;
use model::{EntryQuery, Export, Trouble};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

const LONGEST_NAME: usize = 64;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Noted {
    version: u32,
    /// Of which record; in another, the same number is another entry.
    installation: String,
    format: String,
    /// Which entries; else those that were left out the last time would never be sent.
    entries: String,
    after: u64,
    /// Runs that were taken in part, and wait for their end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<String>,
}

pub struct Cursor {
    path: PathBuf,
    noted: Noted,
    /// As long as it is there, nobody else goes on from here.
    _lock: File,
}

impl Cursor {
    pub fn open(ledger: &Ledger, name: &str, wish: &Export, origin: &Origin) -> Result<Cursor, Trouble> {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        if name.is_empty() || name.len() > LONGEST_NAME || name.starts_with('.') || !name.chars().all(fits) {
            return Err(Trouble {
                message: format!("`{}` is no name for a cursor", name.escape_debug()),
                fix: "use up to 64 letters, digits, `-`, `_` and `.`".to_owned(),
            });
        }
        let folder = ledger.folder().parent().unwrap_or(ledger.folder()).join("exports");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(cannot("make", &folder))?;
        let lock_path = folder.join(format!("{name}.lock"));
        let lock = options().write(true).create(true).open(&lock_path).map_err(cannot("open", &lock_path))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => Trouble {
                message: format!("another `belljar export` goes on from cursor `{name}` right now"),
                fix: "use another name, or end that one".to_owned(),
            },
            error => cannot("lock", &lock_path)(error.into()),
        })?;
        let path = folder.join(format!("{name}.json"));
        let new = Noted {
            version: 1,
            installation: origin.installation.clone(),
            format: wish.format.name().to_owned(),
            entries: described(&wish.query),
            after: 0,
            open: Vec::new(),
        };
        let noted = match read(&path)? {
            None => new,
            Some(noted) => {
                if let Some(what) = differs(&noted, &new) {
                    return Err(Trouble {
                        message: format!("cursor `{name}` is of another {what}"),
                        fix: format!("use another name, or remove {} to begin anew", path.display()),
                    });
                }
                noted
            }
        };
        Ok(Cursor { path, noted, _lock: lock })
    }

    pub fn after(&self) -> u64 {
        self.noted.after
    }

    pub fn open_runs(&self) -> &[String] {
        &self.noted.open
    }

    pub fn write(&mut self, after: u64, open: Vec<String>) -> Result<(), Trouble> {
        if (self.noted.after, &self.noted.open) == (after, &open) {
            return Ok(());
        }
        (self.noted.after, self.noted.open) = (after, open);
        let beside = self.path.with_extension("new");
        let text = serde_json::to_string(&self.noted).unwrap_or_default();
        let write = || -> io::Result<()> {
            let mut file = options().write(true).create(true).truncate(true).open(&beside)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&beside, &self.path)
        };
        write().map_err(cannot("write", &self.path))
    }
}

/// What is not the same. Times are not looked at: `--since 1h` is another one each time.
fn differs(noted: &Noted, new: &Noted) -> Option<&'static str> {
    let Noted { version, installation, format, entries, after: _, open: _ } = noted;
    match () {
        () if *version != new.version => Some("version of belljar"),
        () if *installation != new.installation => Some("record"),
        () if *format != new.format => Some("format"),
        () if *entries != new.entries => Some("choice of entries"),
        () => None,
    }
}

fn described(query: &EntryQuery) -> String {
    let EntryQuery { run, user, agent, denied, kinds, except, since: _, until: _, after: _ } = query;
    serde_json::json!({"run": run, "user": user, "agent": agent, "denied": denied, "kinds": kinds, "except": except})
        .to_string()
}

fn read(path: &Path) -> Result<Option<Noted>, Trouble> {
    let mut text = String::new();
    match options().open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.and_then(|file| file.take(1 << 20).read_to_string(&mut text)).map_err(cannot("read", path))?,
    };
    // Guessing would lose entries or send all of them again; whoever put it there decides.
    let noted = serde_json::from_str(&text).map_err(|error| Trouble {
        message: format!("`{}` is no cursor: {error}", path.display()),
        fix: "remove it to send everything again".to_owned(),
    })?;
    Ok(Some(noted))
}

/// Of ours only, and never a link or a pipe that somebody put there.
fn options() -> std::fs::OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut options = File::options();
    options.read(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}

fn cannot(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Trouble {
    let path = path.to_owned();
    move |error| Trouble {
        message: format!("cannot {doing} `{}`: {error}", path.display()),
        fix: "see that the folder is yours and has room".to_owned(),
    }
}
