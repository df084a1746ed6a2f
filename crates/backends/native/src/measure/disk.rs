//! How much a writable place of the host has grown. Walked from descriptor to descriptor, because the guest changes it
//! meanwhile: a folder that becomes a link leads nowhere.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

/// Walking may take this share of the time at most.
const WALK_SHARE: u32 = 20;
/// Deeper than any project; whoever goes deeper can't be measured, and counts as over the limit.
const DEEPEST: usize = 200;

pub struct Disk {
    place: PathBuf,
    device: u64,
    bytes: u64,
    inodes: u64,
    /// Of the first walk, which begins with the run.
    before: Option<Size>,
    walk: Option<Walk>,
    not_before: Instant,
}

#[derive(Clone, Copy, Default)]
struct Size {
    bytes: u64,
    inodes: u64,
    /// Folders that could not be looked into.
    closed: u64,
}

/// A walk under way: it goes on with the next look.
struct Walk {
    open: Vec<Dir>,
    size: Size,
    took: Duration,
}

impl Disk {
    pub fn new(place: &Path, bytes: u64, inodes: u64) -> Disk {
        let device = std::fs::metadata(place).map_or(0, |stat| stat.dev());
        Disk { place: place.to_owned(), device, bytes, inodes, before: None, walk: None, not_before: Instant::now() }
    }

    /// `removed`: files without a name that processes hold open, which no walk finds.
    pub fn is_over(&mut self, removed: &[(u64, u64)], budget: Duration) -> io::Result<bool> {
        let nameless: u64 = removed.iter().filter(|(device, _)| *device == self.device).map(|(_, bytes)| bytes).sum();
        if nameless > self.bytes {
            return Ok(true);
        }
        if Instant::now() < self.not_before {
            return Ok(false);
        }
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None => Walk::begin(&self.place)?,
        };
        let started = Instant::now();
        let finished = match walk.go_on(started + budget)? {
            Progress::NotMeasurable => return Ok(true),
            Progress::More => false,
            Progress::Finished => true,
        };
        walk.took += started.elapsed();
        if !finished {
            self.walk = Some(walk);
            return Ok(false);
        }
        self.not_before = Instant::now() + walk.took * WALK_SHARE;
        let before = *self.before.get_or_insert(walk.size);
        let grown = walk.size.bytes.saturating_sub(before.bytes) + nameless;
        // A folder that was closed to us meanwhile could hold anything.
        Ok(grown > self.bytes
            || walk.size.inodes.saturating_sub(before.inodes) > self.inodes
            || walk.size.closed > before.closed)
    }
}

enum Progress {
    More,
    Finished,
    NotMeasurable,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Walk {
    fn begin(place: &Path) -> io::Result<Walk> {
        let mut walk = Walk { open: Vec::new(), size: Size::default(), took: Duration::ZERO };
        match rustix::fs::open(place, FOLDER, Mode::empty()) {
            Ok(folder) => walk.open.push(Dir::new(folder)?),
            // A single file is limited by its own size.
            Err(rustix::io::Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(walk)
    }

    fn go_on(&mut self, until: Instant) -> io::Result<Progress> {
        while let Some(folder) = self.open.last_mut() {
            if Instant::now() >= until {
                return Ok(Progress::More);
            }
            let entry = match folder.read() {
                Some(Ok(entry)) => entry,
                // At its end, or removed while we read it.
                Some(Err(_)) | None => {
                    self.open.pop();
                    continue;
                }
            };
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(folder.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            self.size.inodes += 1;
            self.size.bytes += stat.st_blocks.max(0) as u64 * 512;
            if FileType::from_raw_mode(stat.st_mode).is_dir() {
                match rustix::fs::openat(folder.fd()?, entry.file_name(), FOLDER, Mode::empty()) {
                    Ok(_) if self.open.len() == DEEPEST => return Ok(Progress::NotMeasurable),
                    Ok(below) => self.open.push(Dir::new(below)?),
                    // Somebody closed it who is the same user as we: that can only be the payload.
                    Err(rustix::io::Errno::ACCESS) if stat.st_uid == rustix::process::geteuid().as_raw() => {
                        return Ok(Progress::NotMeasurable);
                    }
                    Err(rustix::io::Errno::ACCESS) => self.size.closed += 1,
                    // Gone, or no folder any more.
                    Err(_) => {}
                }
            }
        }
        Ok(Progress::Finished)
    }
}
