//! Contents by their hash: what a file was before, kept until nobody needs it.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::files::{Folder, Seen};

mod draft;

pub use draft::{Draft, is_draft};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(*blake3::hash(bytes).as_bytes())
    }

    pub fn read(bytes: &[u8]) -> Option<Hash> {
        bytes.try_into().ok().map(Hash)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A folder of blobs, made when the first is kept.
#[derive(Clone, Debug)]
pub struct Blobs(PathBuf);

impl Blobs {
    pub fn at(folder: PathBuf) -> Blobs {
        Blobs(folder)
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The hash of a file with at most `most` bytes, whose contents are kept if they are text of at most `kept` bytes.
    pub fn keep_file(&self, folder: &Folder, path: &[u8], kept: u64, most: u64) -> io::Result<Option<Hash>> {
        if let Some(contents) = folder.read(path, kept)? {
            let hash = Hash::of(&contents);
            if crate::text::is_text(&contents) {
                self.keep(hash, &contents)?;
            }
            return Ok(Some(hash));
        }
        hash_file(folder, path, most)
    }

    /// The folder, made if there is none. While this is kept, nobody collects blobs that nobody refers to yet.
    pub fn hold(&self) -> io::Result<Folder> {
        self.make()?;
        let folder = Folder::open(&self.0)?;
        rustix::fs::flock(folder.fd(), FlockOperation::LockShared)?;
        Ok(folder)
    }

    /// The folder, for whoever removes what nobody needs; nothing if there is none, or somebody keeps something now.
    pub fn hold_alone(&self) -> Option<Folder> {
        let folder = Folder::open(&self.0).ok()?;
        rustix::fs::flock(folder.fd(), FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(folder)
    }

    fn make(&self) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }

    fn keep(&self, hash: Hash, contents: &[u8]) -> io::Result<()> {
        let path = self.0.join(hash.to_string());
        if path.exists() {
            return Ok(());
        }
        self.make()?;
        // Two that keep the same write the same.
        let draft = self.0.join(format!("{hash}.{}", std::process::id()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&draft, flags, Mode::from_raw_mode(0o600))?;
        std::fs::File::from(file).write_all(contents)?;
        std::fs::rename(draft, path)
    }

    /// What was kept under this hash; nothing if it is not there, or not what it should be.
    pub fn read(&self, hash: Hash) -> Option<Vec<u8>> {
        let contents = std::fs::read(self.0.join(hash.to_string())).ok()?;
        (Hash::of(&contents) == hash).then_some(contents)
    }
}

/// The hash of a file, unless it has more than `most` bytes or is no file.
pub fn hash_file(folder: &Folder, path: &[u8], most: u64) -> io::Result<Option<Hash>> {
    let file = folder.open_file(path)?;
    let seen = Seen::of(&rustix::fs::fstat(&file)?);
    if !seen.is_file() || seen.size > most {
        return Ok(None);
    }
    let mut file = std::fs::File::from(file).take(most);
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0u8; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Some(Hash(*hasher.finalize().as_bytes()))),
            length => hasher.update(&buffer[..length]),
        };
    }
}
