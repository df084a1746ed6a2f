//! Downloads that are kept for the next sandbox: files that never change, as the policy says, of servers that have proven who
//! they are.
//!
//! It lies at the gate, outside of every sandbox. Whoever is inside can ask for a file, and is judged as ever; what is kept is
//! only what the server itself answered to the gate, under what was asked for. Nothing in here can stop a download: what can't
//! be kept, or is no longer what it was, is fetched.

mod entry;
mod fit;
mod keeping;
mod room;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::{Endpoint, Host};

pub use entry::{Entry, Told};
pub(crate) use fit::{answer as fit_answer, request as fit_request};
pub(crate) use keeping::Keeping;
pub use room::{Collected, collect};

/// What reads bytes that a server chose, or that lie on the disk. Not for use: for those who try it with all kinds of bytes.
pub(crate) mod hostile {
    use hyper::header::{HeaderName, HeaderValue};
    use hyper::{HeaderMap, StatusCode};

    pub use super::entry::{Entry, Told};

    /// Whether an answer with these headers, a line each, may be kept.
    pub fn fit(lines: &[u8], length: u64) -> Option<(u64, Told)> {
        let mut headers = HeaderMap::new();
        for line in lines.split(|byte| *byte == b'\n') {
            let at = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = (HeaderName::from_bytes(&line[..at]).ok()?, HeaderValue::from_bytes(&line[at + 1..]));
            headers.append(name, value.ok()?);
        }
        super::fit_answer(StatusCode::OK, &headers, Some(length))
    }
}

/// After this it is fetched again: what a registry takes back must not live on here for ever.
const LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Of these a gate writes at once; others just pass.
const MOST_WRITING: usize = 16;
/// Of all that may be kept, one file may be so much.
const LARGEST_PART: u64 = 4;
/// Read at once.
const PIECE: usize = 256 << 10;
/// More than this is looked through on a thread of its own: others wait for the gate.
const QUICK: u64 = 1 << 20;
const LONGEST_KEY: usize = 4096;

/// What a file is known by: scheme, host, port and path, the one value that was judged and dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Of what is encrypted, and of names: nobody proves to be an address.
    pub fn new(endpoint: &Endpoint, path: &str) -> Option<Key> {
        let text = format!("https://{endpoint}{path}");
        let sound = matches!(endpoint.host, Host::Name(_)) && path.starts_with('/') && text.len() <= LONGEST_KEY;
        (sound && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(Key(text))
    }

    fn name(&self) -> String {
        blake3::hash(self.0.as_bytes()).to_hex().to_string()
    }
}

pub struct Cache {
    folder: PathBuf,
    /// Bytes of all files together.
    most: u64,
    writing: Rc<Cell<usize>>,
    count: Cell<Option<room::Count>>,
}

/// What there is of a file.
pub(crate) enum Found {
    Nothing,
    Damaged(String),
    Whole(Whole),
}

/// A file that is what it was when it was kept. Held open: whoever removes it takes nothing from us.
pub(crate) struct Whole {
    file: File,
    pub entry: Entry,
}

impl Cache {
    /// Nothing, if nothing is to be kept. The folder is made when there is something to keep.
    pub fn at(folder: PathBuf, most: u64) -> Option<Cache> {
        (most > 0).then(|| Cache { folder, most, writing: Rc::default(), count: Cell::new(None) })
    }

    pub(crate) async fn find(&self, key: &Key) -> Found {
        if !is_ours(&self.folder) {
            return Found::Nothing;
        }
        let name = self.folder.join("names").join(key.name());
        let entry = match read_entry(&name) {
            Ok(Some(entry)) if entry.key == key.0 => entry,
            Ok(_) => {
                remove(&name);
                return Found::Damaged("unreadable".to_owned());
            }
            Err(_) => return Found::Nothing,
        };
        if !entry.is_fresh(now()) {
            remove(&name);
            return Found::Nothing;
        }
        let content = self.folder.join("contents").join(&entry.digest);
        let Ok(file) = open(&content) else {
            remove(&name);
            return Found::Nothing;
        };
        let (length, digest) = (entry.length, entry.digest.clone());
        let look = move || (is_whole(&file, length, &digest), file);
        let looked = match length > QUICK {
            true => tokio::task::spawn_blocking(look).await.ok(),
            false => Some(look()),
        };
        match looked {
            Some((true, file)) => {
                // For whoever makes room: it was used. If that can't be noted, it goes a little earlier.
                file.set_modified(SystemTime::now()).ok();
                Found::Whole(Whole { file, entry })
            }
            _ => {
                remove(&name);
                remove(&content);
                Found::Damaged(entry.digest)
            }
        }
    }

    /// To be given what comes, piece by piece. Nothing, if there is no room for it.
    pub(crate) fn begin(&self, key: &Key, length: u64, told: Told) -> Option<Keeping> {
        if self.writing.get() >= MOST_WRITING || length == 0 || length > self.most / LARGEST_PART {
            return None;
        }
        make_folders(&self.folder).ok()?;
        self.make_room(length).then_some(())?;
        Keeping::begin(&self.folder, key, length, told, &self.writing).ok()
    }
}

impl Whole {
    /// The next piece, from there on. Fewer bytes than there should be are an error: an end would look like the file's.
    pub fn piece(&self, at: u64) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.entry.length.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut piece = vec![0; left.min(PIECE)];
        self.file.read_exact_at(&mut piece, at)?;
        Ok(piece)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// `None`: there is something, and it can't be understood.
fn read_entry(path: &Path) -> io::Result<Option<Entry>> {
    let mut bytes = Vec::new();
    open(path)?.take(entry::LONGEST + 1).read_to_end(&mut bytes)?;
    Ok(Entry::read(&bytes))
}

/// A file, and nothing that leads elsewhere.
fn open(path: &Path) -> io::Result<File> {
    let no_links = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(no_links.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Whether all of it is what it was.
fn is_whole(file: &File, length: u64, digest: &str) -> bool {
    let (mut hasher, mut piece, mut at) = (blake3::Hasher::new(), vec![0; PIECE], 0);
    loop {
        match file.read_at(&mut piece, at) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&piece[..count]);
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
        if at > length {
            return false;
        }
    }
    at == length && hasher.finalize().to_hex().as_str() == digest
}

/// Of no use any more. Where it can't be removed it is found to be so each time.
fn remove(path: &Path) {
    fs::remove_file(path).ok();
}

/// For us alone.
fn make_folders(folder: &Path) -> io::Result<()> {
    for part in ["names", "contents", "coming"] {
        DirBuilder::new().recursive(true).mode(0o700).create(folder.join(part))?;
    }
    is_ours(folder).then_some(()).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
}

/// One that others could write to is none of ours.
fn is_ours(folder: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::metadata(folder).is_ok_and(|seen| seen.is_dir() && seen.uid() == own && seen.mode() & 0o077 == 0)
}
