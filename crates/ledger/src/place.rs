//! Where the parts of a record lie.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Result, cannot};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(PathBuf);

impl Place {
    pub fn new(folder: PathBuf) -> Place {
        Place(folder)
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    pub fn head(&self) -> PathBuf {
        self.0.join("head")
    }

    pub fn key(&self) -> PathBuf {
        self.0.join("key.pem")
    }

    pub fn public_key(&self) -> PathBuf {
        self.0.join("key.pub.pem")
    }

    pub fn anchors(&self) -> PathBuf {
        self.0.join("anchors.json")
    }

    /// Room that is kept for the last words of runs when the disk is full.
    pub fn reserve(&self) -> PathBuf {
        self.0.join("reserve")
    }

    pub fn segment(&self, number: u64) -> PathBuf {
        self.0.join(format!("{number:08}.log"))
    }

    pub fn index(&self, number: u64) -> PathBuf {
        self.0.join(format!("{number:08}.index"))
    }

    /// In their order.
    pub fn segments(&self) -> Result<Vec<u64>> {
        let mut numbers = Vec::new();
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(numbers),
            entries => entries.map_err(cannot("read", &self.0))?,
        };
        for entry in entries {
            let name = entry.map_err(cannot("read", &self.0))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".log")).filter(|stem| stem.len() >= 8);
            numbers.extend(number.and_then(|stem| stem.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    pub fn make(&self) -> Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(cannot("make", &self.0))
    }

    /// The names in it last from here on.
    pub fn sync(&self) -> Result<()> {
        File::open(&self.0).and_then(|folder| folder.sync_all()).map_err(cannot("write", &self.0))
    }
}

/// Of ours only, and never a link or a pipe that somebody put there.
pub fn options() -> std::fs::OpenOptions {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC | rustix::fs::OFlags::NONBLOCK;
    let mut options = File::options();
    options.read(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}

/// Puts a whole file in its place at once.
pub fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    use std::io::Write;
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = options().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().map_err(|error| {
        // Only a half-written file of ours: if it stays, it is in nobody's way.
        std::fs::remove_file(&beside).ok();
        cannot("write", path)(error)
    })
}
