//! The folder of secrets: only its owner's, and nothing in it is a link, a pipe or somebody else's.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::error::{Error, Result, cannot};

/// Larger is no file of ours: a value, sealed and as text, with what is said of it.
const LARGEST: usize = 256 << 10;
/// Half-written files begin like this. No name of a file that counts does.
const BEGUN: &str = "new-";
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Folder {
    path: PathBuf,
    fd: OwnedFd,
}

/// While it lives, nobody else changes anything.
pub struct Locked {
    _lock: File,
}

impl Folder {
    /// `None`: it is not there, so there are no secrets.
    pub fn open(path: &Path) -> Result<Option<Folder>> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let name = path.file_name().unwrap_or_default();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let around = match rustix::fs::open(parent, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            around => around.map_err(cannot("open", parent))?,
        };
        // Whoever may write there could put another folder in the place of ours.
        let stat = rustix::fs::fstat(&around).map_err(cannot("look at", parent))?;
        owned(parent, &stat)?;
        if stat.st_mode & 0o022 != 0 {
            return Err(wrong(parent, "others may write to it", format!("chmod go-w '{}'", parent.display())));
        }
        let fd = match rustix::fs::openat(&around, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(planted(path, "it is a link, or no folder")),
            fd => fd.map_err(cannot("open", path))?,
        };
        private(path, &rustix::fs::fstat(&fd).map_err(cannot("look at", path))?, 0o700)?;
        Ok(Some(Folder { path: path.to_owned(), fd }))
    }

    pub fn make(path: &Path) -> Result<Folder> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(cannot("make", path))?;
        let gone = || cannot("open", path)(std::io::Error::from(std::io::ErrorKind::NotFound));
        Folder::open(path)?.ok_or_else(gone)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn lock(&self) -> Result<Locked> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let path = self.path("lock");
        let fd =
            rustix::fs::openat(&self.fd, "lock", flags, Mode::from_raw_mode(0o600)).map_err(link_or("open", &path))?;
        private(&path, &rustix::fs::fstat(&fd).map_err(cannot("look at", &path))?, 0o600)?;
        let began = Instant::now();
        loop {
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Locked { _lock: fd.into() }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    return Err(Error::Busy { path: self.path.clone(), seconds: PATIENCE.as_secs() });
                }
                Err(error) => return Err(cannot("lock", &path)(error)),
            }
        }
    }

    /// The names of what counts, in order.
    pub fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(cannot("read", &self.path))? {
            let entry = entry.map_err(cannot("read", &self.path))?;
            names.extend(entry.file_name().to_str().ok().filter(|name| !name.starts_with(BEGUN)).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// All of a file; `None` if there is none.
    pub fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let path = self.path(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            fd => fd.map_err(link_or("open", &path))?,
        };
        private(&path, &rustix::fs::fstat(&fd).map_err(cannot("look at", &path))?, 0o600)?;
        // Room for all of it: a list that grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(LARGEST + 1));
        File::from(fd).take(LARGEST as u64 + 1).read_to_end(&mut bytes).map_err(cannot("read", &path))?;
        if bytes.len() > LARGEST {
            return Err(planted(&path, "it is larger than any secret"));
        }
        Ok(Some(bytes))
    }

    /// Puts a whole file in its place at once, and on the disk.
    pub fn put(&self, _: &Locked, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(name);
        // What a killed process had begun is nobody's: whoever writes holds the lock, which is ours.
        for left in self.left_over()? {
            self.unlink(&left)?;
        }
        let beside = format!("{BEGUN}{}", std::process::id());
        let write = || -> std::io::Result<()> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = rustix::fs::openat(&self.fd, beside.as_str(), flags, Mode::from_raw_mode(0o600))?;
            let mut file = File::from(fd);
            // Whatever the mask of this process is.
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o600))?;
            file.write_all(bytes)?;
            file.sync_all()?;
            rustix::fs::renameat(&self.fd, beside.as_str(), &self.fd, name)?;
            Ok(rustix::fs::fsync(&self.fd)?)
        };
        write().map_err(cannot("write", &path))
    }

    pub fn remove(&self, _: &Locked, name: &str) -> Result<()> {
        self.unlink(name)?;
        rustix::fs::fsync(&self.fd).map_err(cannot("write", &self.path))
    }

    fn left_over(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(cannot("read", &self.path))? {
            let entry = entry.map_err(cannot("read", &self.path))?;
            names.extend(entry.file_name().to_str().ok().filter(|name| name.starts_with(BEGUN)).map(str::to_owned));
        }
        Ok(names)
    }

    fn unlink(&self, name: &str) -> Result<()> {
        rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()).map_err(cannot("remove", self.path(name)))
    }
}

fn link_or(doing: &'static str, path: &Path) -> impl FnOnce(Errno) -> Error {
    let path = path.to_owned();
    move |error| match error {
        Errno::LOOP => planted(&path, "it is a link"),
        error => cannot(doing, path)(error),
    }
}

/// Of ours only: its owner, its kind, its names, and nobody else may so much as read it.
fn private(path: &Path, stat: &Stat, mode: u32) -> Result<()> {
    owned(path, stat)?;
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if !is_folder && FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(planted(path, "it is no plain file"));
    }
    if !is_folder && stat.st_nlink != 1 {
        return Err(planted(path, "it has another name elsewhere"));
    }
    if stat.st_mode & 0o077 != 0 {
        let fix = format!("chmod {mode:o} '{}', and set anew what others may have read", path.display());
        return Err(wrong(path, "others may read or write it", fix));
    }
    Ok(())
}

fn owned(path: &Path, stat: &Stat) -> Result<()> {
    let us = rustix::process::geteuid().as_raw();
    if stat.st_uid == us {
        return Ok(());
    }
    Err(planted(path, &format!("it belongs to user {}, and we are user {us}", stat.st_uid)))
}

fn planted(path: &Path, why: &str) -> Error {
    wrong(path, why, "see who put it there, and move it away".to_owned())
}

fn wrong(path: &Path, why: &str, fix: String) -> Error {
    Error::Unsafe { path: path.to_owned(), why: why.to_owned(), fix }
}
