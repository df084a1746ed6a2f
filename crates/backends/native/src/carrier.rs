//! A carrier: a program that stands between the payload and our walls and is a kernel to it. It is started in the
//! payload's place, in the same namespaces, on the same files and within the same limits.
//!
//! It keeps powers that no payload has, all of them over nothing but what it makes itself. So what breaks out of it is still
//! in here, in a user namespace that owns neither our mounts nor our network.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use guest::Step;
use model::Limits;
use sys::limits::Limit;

use crate::plan::{Skeleton, Unplannable};

/// Where things are for a carrier: the root that the payload is to see, itself, a folder to write to, what it is told.
pub const GUEST: &str = "/guest";
pub const PROGRAM: &str = "/carrier";
pub const STATE: &str = "/state";
pub const BUNDLE: &str = "/bundle";

/// What is started, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    pub backend: &'static str,
    /// Where it is on the host. It needs no other file of the host's.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Where the program is of which the first process behind it is part.
    pub usher: PathBuf,
    /// Files below `BUNDLE`.
    pub files: Vec<(&'static str, Vec<u8>)>,
}

/// What ties it to us.
pub struct Ties {
    /// Descriptors that it gets under the numbers that they have here.
    pub gifts: Vec<OwnedFd>,
    /// Where the first process behind it reports, as ours does on the wire.
    pub report: OwnedFd,
    /// Where it hears of signals: the carrier would not pass them on.
    pub tell: OwnedFd,
}

impl Carrier {
    pub(crate) fn skeleton(&self, root: &mut Skeleton) -> Result<(), Unplannable> {
        root.file(Path::new(PROGRAM), 0o555, Vec::new())?;
        root.folder(Path::new(STATE), 0o700)?;
        // It mounts roots of its own on the last.
        for folder in ["/proc", "/dev/pts", "/tmp"] {
            root.folder(Path::new(folder), 0o755)?;
        }
        root.link(Path::new("/dev/ptmx"), Path::new("pts/ptmx"))?;
        for (name, contents) in &self.files {
            root.file(&Path::new(BUNDLE).join(name), 0o444, contents.clone())?;
        }
        Ok(())
    }
}

/// Those that hold for each process are the payload's, and are lowered behind the carrier. What is left bounds what a
/// carrier that was taken over could start.
pub(crate) fn lower_limits(steps: &mut Vec<Step>, limits: &Limits) {
    /// Threads of its own.
    const OWN: u64 = 1024;
    /// It has as many for each process that it carries.
    const EACH: u64 = 8;
    steps.extend([
        // One byte: less than any core file, and the one value at which the kernel starts no helper either.
        Step::Lower(Limit::Core, 1),
        Step::Lower(Limit::Processes, limits.processes.saturating_mul(EACH).saturating_add(OWN)),
        Step::Lower(Limit::Nice, 0),
        Step::Lower(Limit::RealtimePriority, 0),
        Step::Lower(Limit::LockedMemory, 8 << 20),
        Step::Lower(Limit::MessageQueues, 819_200),
    ]);
}
