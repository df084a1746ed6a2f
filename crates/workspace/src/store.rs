//! Where everything is kept: one folder of the user's, with the state, the layers and the blobs in it.
//!
//! A run that changes nothing never opens the state: its layer holds its own record, and is gone with it. So a start
//! stays fast, and what a killed belljar leaves is found by the next.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode};
use rustix::io::Errno;

use crate::blobs::Blobs;
use crate::error::{Error, Result, cannot};
use crate::files::Folder;
use crate::record::Record;
use crate::remove;
use crate::session::is_untouched;
use crate::state::State;
use crate::workspaces;

#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A sandbox that nobody else uses while this is held.
pub struct Locked {
    pub record: Record,
    /// Its topmost layer: the lock is on this.
    layer: Folder,
}

/// Whoever only looks at a sandbox, or takes a snapshot of it, is done within this.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(500);

/// The name of the record that a layer holds until the state knows of it.
pub const CLAIM: &str = "claim";

impl Store {
    /// In the user's folder for state, by the usual variables.
    pub fn of_the_user() -> Option<Store> {
        if let Some(folder) = workspaces::given_state() {
            return Some(Store::at(folder.to_owned()));
        }
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        // A home is not ours to make.
        let home = || variable("HOME").filter(|home| home.is_dir()).map(|home| home.join(".local/state"));
        let folder = variable("XDG_STATE_HOME").or_else(home)?;
        Some(Store::at(folder.join("belljar")))
    }

    pub fn at(folder: PathBuf) -> Store {
        Store { folder }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn layers(&self) -> PathBuf {
        self.folder.join("layers")
    }

    pub fn layer(&self, id: &str) -> PathBuf {
        self.layers().join(id)
    }

    pub fn blobs(&self) -> Blobs {
        Blobs::at(self.folder.join("blobs"))
    }

    /// The folder is there, free of links, and nobody else's.
    pub fn ready(&mut self) -> Result<()> {
        let layers = self.layers();
        let make = || -> io::Result<()> {
            use std::os::unix::fs::DirBuilderExt;
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&layers)
        };
        // Folders around it may be links; it is not, or somebody else says where our state is.
        if std::fs::symlink_metadata(&self.folder).is_ok_and(|stat| stat.is_symlink()) {
            return Err(Error::State { path: self.folder.clone(), why: "it is a link".to_owned() });
        }
        let seen = match Folder::open(&self.folder).and_then(|folder| folder.seen()) {
            Ok(seen) => seen,
            Err(_) => {
                make().map_err(|error| Error::State {
                    path: self.folder.clone(),
                    why: format!("it can't be made: {error}"),
                })?;
                self.folder = std::fs::canonicalize(&self.folder).map_err(cannot("find", &self.folder))?;
                let opened = Folder::open(&self.folder).and_then(|folder| folder.seen());
                opened.map_err(cannot("open", &self.folder))?
            }
        };
        let us = rustix::process::geteuid().as_raw();
        if seen.owner.0 != us {
            let why = format!("it belongs to user {}, and you are user {us}", seen.owner.0);
            return Err(Error::State { path: self.folder.clone(), why });
        }
        if seen.mode & 0o022 != 0 {
            return Err(Error::State { path: self.folder.clone(), why: "others may write to it".to_owned() });
        }
        // Commands and variables are in the state, and names of files: nobody else's business.
        if seen.mode & 0o077 != 0 {
            rustix::fs::chmod(&self.folder, Mode::from_raw_mode(0o700)).map_err(cannot("close", &self.folder))?;
        }
        make().map_err(cannot("make", &layers))
    }

    pub fn state(&self) -> Result<State> {
        State::open(&self.folder)
    }

    /// All records, the one that was used last first, and whether each runs now. What earlier belljars could not
    /// write down any more is written down first.
    pub fn records(&self, state: &mut State) -> Result<Vec<(Record, bool)>> {
        let live = self.adopt(state)?;
        let mut records = Vec::new();
        for record in live {
            records.push((record, true));
        }
        for record in state.records()? {
            if !records.iter().any(|(known, _): &(Record, bool)| known.id == record.id) {
                let running = self.is_locked(record.top());
                records.push((record, running));
            }
        }
        records.sort_by_key(|(record, _)| std::cmp::Reverse(record.used));
        Ok(records)
    }

    /// Takes the records of layers whose makers are gone into the state; returns those whose makers live.
    fn adopt(&self, state: &mut State) -> Result<Vec<Record>> {
        let mut live = Vec::new();
        for id in self.layer_names()? {
            let claim = self.layer(&id).join(CLAIM);
            let text = match std::fs::read(&claim) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(cannot("read", claim)(error)),
            };
            // A belljar that was killed while it wrote this had not begun anything.
            let Ok(record) = serde_json::from_slice::<Record>(&text) else { continue };
            match self.lock_layer(&id) {
                // Its maker may have come to its end between our look and our lock, and written down more.
                Ok(_lock) if !claim.exists() => {}
                // Nothing is lost with a run that was killed before it changed anything.
                Ok(_lock) if is_untouched(self, &record)? => self.remove_layer(&id)?,
                Ok(_lock) => {
                    state.save(&record, &Default::default())?;
                    self.unclaim(&id)?;
                }
                Err(Errno::WOULDBLOCK) => live.push(record),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(cannot("lock", self.layer(&id))(error)),
            }
        }
        Ok(live)
    }

    /// The layer holds a record that we can't read, and that is not just cut off.
    pub fn has_unknown_claim(&self, id: &str) -> Result<bool> {
        let claim = self.layer(id).join(CLAIM);
        match std::fs::read(&claim) {
            Ok(text) => Ok(serde_json::from_slice::<Record>(&text).is_err_and(|error| !error.is_eof())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(cannot("read", claim)(error)),
        }
    }

    /// The state knows of this layer now.
    pub fn unclaim(&self, id: &str) -> Result<()> {
        let claim = self.layer(id).join(CLAIM);
        match std::fs::remove_file(&claim) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("remove", claim)(error)),
            _ => Ok(()),
        }
    }

    /// Finds the one that `which` means: an id or the start of one, a name, or `last`.
    pub fn find(&self, state: &mut State, which: &str) -> Result<(Record, bool)> {
        // By its whole id, which no name can be: among thousands, the others are not even read.
        if let Some(record) = state.record(which)? {
            let running = self.is_locked(record.top());
            return Ok((record, running));
        }
        let mut records = self.records(state)?;
        if which == "last" {
            return if records.is_empty() { Err(Error::None) } else { Ok(records.swap_remove(0)) };
        }
        if let Some(at) = records.iter().position(|(record, _)| record.name.as_deref() == Some(which)) {
            return Ok(records.swap_remove(at));
        }
        let mut found: Vec<_> = records.into_iter().filter(|(record, _)| record.id.starts_with(which)).collect();
        match found.len() {
            _ if which.is_empty() => Err(Error::NoSuch(which.to_owned())),
            0 => Err(Error::NoSuch(which.to_owned())),
            1 => Ok(found.swap_remove(0)),
            _ => {
                let candidates = found.iter().map(|(record, _)| record.id[..12.min(record.id.len())].to_owned());
                Err(Error::Ambiguous { which: which.to_owned(), candidates: candidates.collect() })
            }
        }
    }

    /// Finds one and keeps others from using it meanwhile.
    pub fn lock(&self, state: &mut State, which: &str) -> Result<Locked> {
        let (record, _) = self.find(state, which)?;
        let busy = |record: &Record| Error::Busy(record.shown());
        let begun = std::time::Instant::now();
        let locked = loop {
            match self.lock_layer(record.top()) {
                Err(Errno::WOULDBLOCK) if begun.elapsed() < PATIENCE => std::thread::sleep(PATIENCE / 100),
                locked => break locked,
            }
        };
        let layer = match locked {
            Ok(layer) => layer,
            Err(Errno::WOULDBLOCK) => return Err(busy(&record)),
            Err(error) => return Err(cannot("open", self.layer(record.top()))(error)),
        };
        // Somebody may have gone on with it between our look and our lock.
        match state.record(&record.id)? {
            None => Err(Error::NoSuch(which.to_owned())),
            Some(now) if now.top() != record.top() => Err(busy(&record)),
            Some(now) => Ok(Locked { record: now, layer }),
        }
    }

    /// Makes a layer with a pair of folders for each workspace, and keeps it for ourselves.
    pub fn make_layer(&self, id: &str) -> Result<Folder> {
        let path = self.layer(id);
        let make = || -> std::result::Result<Folder, Errno> {
            loop {
                rustix::fs::mkdir(&path, Mode::from_raw_mode(0o700))?;
                // Whoever collects what is nobody's may have been faster, and removed it.
                match self.flock_layer(id, FlockOperation::LockExclusive) {
                    Err(Errno::NOENT) => {}
                    Ok(layer) if !path.exists() => drop(layer),
                    locked => return locked,
                }
            }
        };
        make().map_err(cannot("make", &path))
    }

    pub fn lock_layer(&self, id: &str) -> std::result::Result<Folder, Errno> {
        self.flock_layer(id, FlockOperation::NonBlockingLockExclusive)
    }

    /// Somebody works with it. Who asks this does not keep others from asking.
    pub fn is_locked(&self, id: &str) -> bool {
        matches!(self.flock_layer(id, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK))
    }

    fn flock_layer(&self, id: &str, operation: FlockOperation) -> std::result::Result<Folder, Errno> {
        let folder =
            Folder::open(&self.layer(id)).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        rustix::fs::flock(folder.fd(), operation)?;
        Ok(folder)
    }

    /// What is in the folder of layers.
    pub fn layer_names(&self) -> Result<BTreeSet<String>> {
        let path = self.layers();
        let folder = match Folder::open(&path) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(cannot("open", path)(error)),
        };
        let names = folder.names().map_err(cannot("list", path))?;
        Ok(names.into_iter().filter_map(|name| String::from_utf8(name).ok()).filter(|name| is_id(name)).collect())
    }

    /// Removes layers that no other record needs.
    pub fn remove_layers(&self, state: &State, ids: impl IntoIterator<Item = String>) -> Result<()> {
        let needed: BTreeSet<String> = state.records()?.iter().flat_map(|record| record.needed().cloned()).collect();
        for id in ids {
            if !needed.contains(&id) {
                self.remove_layer(&id)?;
            }
        }
        Ok(())
    }

    pub fn remove_layer(&self, id: &str) -> Result<()> {
        let path = self.layers();
        let folder = Folder::open(&path).map_err(cannot("open", &path))?;
        remove::tree(folder.fd(), OsStr::from_bytes(id.as_bytes())).map_err(cannot("remove", path.join(id)))
    }
}

/// As we make them: 32 digits.
pub fn is_id(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// 128 bits that nobody can guess.
pub fn new_id() -> Result<String> {
    let mut bytes = [0u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        let more = rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty());
        filled += more.map_err(cannot("read", "/dev/urandom"))?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

impl Locked {
    pub fn into_parts(self) -> (Record, Folder) {
        (self.record, self.layer)
    }
}
