//! A file on its way into the cache: written as it passes, and there only when it is whole.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;

use super::entry::{Entry, Told};
use super::{Key, now};

pub struct Keeping {
    folder: PathBuf,
    draft: Draft,
    key: Key,
    told: Told,
    length: u64,
    written: u64,
    hasher: blake3::Hasher,
    _turn: Turn,
}

impl Keeping {
    pub(super) fn begin(
        folder: &Path,
        key: &Key,
        length: u64,
        told: Told,
        writing: &Rc<Cell<usize>>,
    ) -> io::Result<Keeping> {
        let draft = Draft::new(folder)?;
        // Now rather than in the middle, and seen by others who look for room. Not every file system can.
        match fallocate(&draft.file, FallocateFlags::empty(), 0, length) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        let (folder, key, hasher) = (folder.to_owned(), key.clone(), blake3::Hasher::new());
        Ok(Keeping { folder, draft, key, told, length, written: 0, hasher, _turn: Turn::take(writing) })
    }

    /// Here and now: the record lies on the same disk and is waited for as well. An error: it can't be kept.
    pub fn takes(&mut self, data: &[u8]) -> io::Result<()> {
        self.written += data.len() as u64;
        if self.written > self.length {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.hasher.update(data);
        self.draft.file.write_all(data)
    }

    /// All has come. From now on it is there, for everybody; nothing of it, if it is not what was announced.
    pub fn ends(self) -> io::Result<String> {
        if self.written != self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let digest = self.hasher.finalize().to_hex().to_string();
        let entry = Entry {
            key: self.key.0.clone(),
            digest: digest.clone(),
            length: self.length,
            stored: now(),
            told: self.told,
        };
        // The content first: a name leads to a whole file, or to none. Not forced to the disk: what a crash leaves of it is
        // compared with its digest like everything else.
        self.draft.becomes(&self.folder.join("contents").join(&digest))?;
        let mut named = Draft::new(&self.folder)?;
        named.file.write_all(entry.text().as_bytes())?;
        named.becomes(&self.folder.join("names").join(self.key.name()))?;
        Ok(digest)
    }
}

/// A file that nobody knows yet; gone if it does not become something. Locked while somebody writes it, so that what a killed
/// gate left behind is known.
struct Draft {
    file: File,
    path: Option<PathBuf>,
}

impl Draft {
    fn new(folder: &Path) -> io::Result<Draft> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut noise = [0; 8];
        rustix::rand::getrandom(&mut noise, rustix::rand::GetRandomFlags::empty())?;
        let name = format!("{}-{number}-{:016x}", std::process::id(), u64::from_le_bytes(noise));
        let path = folder.join("coming").join(name);
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        let draft = Draft { file, path: Some(path) };
        flock(&draft.file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(draft)
    }

    fn becomes(mut self, place: &Path) -> io::Result<()> {
        let Some(path) = &self.path else { return Err(io::ErrorKind::NotFound.into()) };
        fs::rename(path, place)?;
        self.path = None;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            super::remove(path);
        }
    }
}

/// A place among those that are written at once.
struct Turn(Rc<Cell<usize>>);

impl Turn {
    fn take(writing: &Rc<Cell<usize>>) -> Turn {
        writing.set(writing.get() + 1);
        Turn(writing.clone())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}
