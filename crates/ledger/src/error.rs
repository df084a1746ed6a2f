//! What can go wrong with the record: each error names the file and what to do.

use std::io;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing} `{}`: {source}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("the disk is full, and the record at `{}` can't be written", path.display())]
    Full { path: PathBuf },
    #[error("another process has held the record at `{}` for {seconds} seconds", path.display())]
    Busy { path: PathBuf, seconds: u64 },
    #[error("`{}` is no {what}: {why}", path.display())]
    Bad { path: PathBuf, what: &'static str, why: String },
    #[error("an entry of {bytes} bytes is larger than the record takes ({most})")]
    TooLarge { bytes: usize, most: usize },
    #[error("there is no random number to be had from the kernel: {0}")]
    Random(io::Error),
    #[error("the anchor `{anchor}` did not take a checkpoint: {why}")]
    Anchor { anchor: String, why: String },
    #[error("there is no record at `{}`", path.display())]
    None { path: PathBuf },
}

impl Error {
    /// What somebody can do about it.
    pub fn fix(&self) -> &'static str {
        match self {
            Error::Full { .. } => "make room there; nothing runs without its record",
            Error::File { .. } => "see that the folder is yours and writable; nothing runs without its record",
            Error::Busy { .. } => "see `ps` for a belljar that is stopped, and let it go on or end it",
            Error::Bad { .. } => "see `belljar ledger verify`",
            Error::TooLarge { .. } => "use a shorter command",
            Error::Random(_) => "see that /dev/urandom works",
            Error::Anchor { .. } => "it is tried again with the next checkpoint; see `belljar ledger anchor`",
            Error::None { .. } => "one is begun by the first `belljar run`",
        }
    }

    /// Whether room is what is missing.
    pub fn is_full(&self) -> bool {
        matches!(self, Error::Full { .. })
    }
}

/// For `map_err`: what we were doing, to what.
pub(crate) fn cannot<E: Into<io::Error>>(doing: &'static str, path: impl AsRef<Path>) -> impl FnOnce(E) -> Error {
    move |source| {
        let (source, path) = (source.into(), path.as_ref().to_owned());
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full { path },
            _ => Error::File { doing, path, source },
        }
    }
}
