//! How much a writable place of the host has grown. Walked from descriptor to descriptor, because the guest changes it
//! meanwhile: a folder that becomes a link leads nowhere.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::Limits;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::pipe::PipeFlags;
use sys::identity::{self, Mapping};
use sys::process::{self, Alone, Forked, Namespaces};

/// Walking may take this share of the time at most.
const WALK_SHARE: u32 = 20;
/// What a run waits for its first walk, which goes on beside it.
const FIRST_BUDGET: Duration = Duration::from_micros(300);
/// Deeper than any project; whoever goes deeper can't be measured, and counts as over the limit.
const DEEPEST: usize = 200;

pub struct Disk {
    place: PathBuf,
    device: u64,
    bytes: u64,
    inodes: u64,
    /// When the payload began, by the clock that changes of files are stamped with.
    begun: Option<Stamp>,
    /// Of the first walk, which begins before the payload does. Where it is long it ends later: what was changed by then may have been
    /// nothing before, and is not in it.
    before: Option<Size>,
    walk: Option<Walk>,
    /// There is a folder that the payload has closed even to us: so somebody walks who may open it.
    by_helper: bool,
    helper: Option<Helper>,
    not_before: Instant,
    /// When the walk under way began, and the last that came to its end.
    began: Option<Instant>,
    measured: Option<Instant>,
}

#[derive(Clone, Copy, Default)]
struct Size {
    bytes: u64,
    inodes: u64,
    /// Folders that could not be looked into.
    closed: u64,
    /// Of these bytes and inodes, those of files that were changed since the payload began.
    fresh: (u64, u64),
}

/// A walk under way: it goes on with the next look.
struct Walk {
    open: Vec<Dir>,
    /// Folders that were looked into: one that is moved meanwhile is met twice, and what is in it is not stamped anew by that.
    seen: HashSet<(u64, u64)>,
    size: Size,
    took: Duration,
}

impl Disk {
    /// Before the payload begins.
    pub fn look(place: &Path, limits: &Limits) -> io::Result<Disk> {
        let device = std::fs::metadata(place).map_or(0, |stat| stat.dev());
        let mut disk = Disk {
            place: place.to_owned(),
            device,
            bytes: limits.disk,
            inodes: limits.inodes,
            begun: None,
            before: None,
            walk: None,
            by_helper: false,
            helper: None,
            not_before: Instant::now(),
            began: None,
            measured: None,
        };
        // Only a measure is taken: whoever can't be measured even now is found to be so by the next look, and ended.
        disk.is_over(&[], FIRST_BUDGET)?;
        disk.begun = Some(now());
        Ok(disk)
    }

    pub fn was_measured_since(&self, moment: Instant) -> bool {
        self.measured.is_some_and(|measured| measured >= moment)
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
        self.began.get_or_insert_with(Instant::now);
        let Some((size, took)) = self.go_on(budget)? else { return Ok(false) };
        self.measured = self.began.take();
        let Measured::Size(size) = size else { return Ok(true) };
        self.not_before = Instant::now() + took * WALK_SHARE;
        let (fresh_bytes, fresh_inodes) = size.fresh;
        let old = Size { bytes: size.bytes - fresh_bytes, inodes: size.inodes - fresh_inodes, ..size };
        let before = *self.before.get_or_insert(old);
        let grown = size.bytes.saturating_sub(before.bytes) + nameless;
        // A folder that was closed to us meanwhile could hold anything.
        Ok(grown > self.bytes || size.inodes.saturating_sub(before.inodes) > self.inodes || size.closed > before.closed)
    }

    /// Goes on with a walk; its result when it is at its end, and how long it took.
    fn go_on(&mut self, budget: Duration) -> io::Result<Option<(Measured, Duration)>> {
        if self.by_helper {
            let helper = match self.helper.take() {
                Some(helper) => helper,
                None => Helper::begin(&self.place, self.begun)?,
            };
            return Ok(match helper.result()? {
                Ok(found) => Some(found),
                Err(helper) => {
                    self.helper = Some(helper);
                    None
                }
            });
        }
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None => Walk::begin(&self.place)?,
        };
        let started = Instant::now();
        let progress = walk.go_on(started + budget, self.begun)?;
        walk.took += started.elapsed();
        match progress {
            Progress::NotMeasurable => Ok(Some((Measured::No, walk.took))),
            Progress::Finished => Ok(Some((Measured::Size(walk.size), walk.took))),
            Progress::More => {
                self.walk = Some(walk);
                Ok(None)
            }
            Progress::Closed => {
                self.by_helper = true;
                Ok(None)
            }
        }
    }
}

/// Seconds and nanoseconds.
type Stamp = (i64, i64);

fn now() -> Stamp {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec)
}

enum Measured {
    Size(Size),
    /// Nobody can tell, which counts as over the limit.
    No,
}

/// Seven numbers.
const MESSAGE: usize = 56;

/// A process of the same user in a user namespace of its own, in which no mode of its files keeps it out.
struct Helper {
    pid: i32,
    handle: OwnedFd,
    answer: OwnedFd,
}

impl Helper {
    fn begin(place: &Path, begun: Option<Stamp>) -> io::Result<Helper> {
        let alone = Alone::prove()?;
        // Asked for here: in a new namespace nobody has a number until the maps are written.
        let map = |outside| Mapping { inside: 0, outside };
        let user = map(rustix::process::geteuid().as_raw());
        let group = map(rustix::process::getegid().as_raw());
        let (answer, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let namespaces = Namespaces { user: true, ..Namespaces::NONE };
        match process::fork_into(alone, namespaces, None)? {
            Forked::Child => {
                let started = Instant::now();
                let measured = identity::map_self(user, group).and_then(|()| measure_all(place, begun));
                let took = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let words = match measured {
                    Ok(Measured::Size(Size { bytes, inodes, closed, fresh })) => {
                        [1, took, bytes, inodes, closed, fresh.0, fresh.1]
                    }
                    Ok(Measured::No) | Err(_) => [0, took, 0, 0, 0, 0, 0],
                };
                let mut message = [0u8; MESSAGE];
                for (at, word) in message.chunks_exact_mut(8).zip(words) {
                    at.copy_from_slice(&word.to_ne_bytes());
                }
                match rustix::io::write(&ours, &message) {
                    Ok(_) => process::exit(0),
                    Err(_) => process::exit(1),
                }
            }
            Forked::Parent { pid, handle } => Ok(Helper { pid, handle, answer }),
        }
    }

    /// What it found and how long it took, or itself if it is still at it.
    fn result(self) -> io::Result<Result<(Measured, Duration), Helper>> {
        let mut message = [0u8; MESSAGE];
        let length = match rustix::io::read(&self.answer, &mut message) {
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(Err(self)),
            length => length?,
        };
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| message[at * 8 + byte]));
        let measured = match length == message.len() && word(0) == 1 {
            true => {
                Measured::Size(Size { bytes: word(2), inodes: word(3), closed: word(4), fresh: (word(5), word(6)) })
            }
            false => Measured::No,
        };
        Ok(Ok((measured, Duration::from_nanos(word(1)))))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is waited for.
        match process::signal(self.handle.as_fd(), 9).and_then(|()| process::wait(self.pid, false)) {
            Ok(_) | Err(_) => {}
        }
    }
}

/// All of it at once.
fn measure_all(place: &Path, begun: Option<Stamp>) -> io::Result<Measured> {
    let mut walk = Walk::begin(place)?;
    loop {
        match walk.go_on(Instant::now() + Duration::from_secs(60), begun)? {
            Progress::More => {}
            Progress::Finished => return Ok(Measured::Size(walk.size)),
            Progress::NotMeasurable | Progress::Closed => return Ok(Measured::No),
        }
    }
}

enum Progress {
    More,
    Finished,
    NotMeasurable,
    /// A folder of ours that somebody has closed to us: that can only be the payload.
    Closed,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Walk {
    fn begin(place: &Path) -> io::Result<Walk> {
        let mut walk = Walk { open: Vec::new(), seen: HashSet::new(), size: Size::default(), took: Duration::ZERO };
        match rustix::fs::open(place, FOLDER, Mode::empty()) {
            Ok(folder) => walk.open.push(Dir::new(folder)?),
            // A single file is limited by its own size.
            Err(rustix::io::Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(walk)
    }

    fn go_on(&mut self, until: Instant, begun: Option<Stamp>) -> io::Result<Progress> {
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
            let bytes = stat.st_blocks.max(0) as u64 * 512;
            self.size.inodes += 1;
            self.size.bytes += bytes;
            // Nobody sets this stamp.
            if begun.is_some_and(|begun| (stat.st_ctime, stat.st_ctime_nsec as i64) >= begun) {
                self.size.fresh = (self.size.fresh.0 + bytes, self.size.fresh.1 + 1);
            }
            if FileType::from_raw_mode(stat.st_mode).is_dir() && self.seen.insert((stat.st_dev, stat.st_ino)) {
                match rustix::fs::openat(folder.fd()?, entry.file_name(), FOLDER, Mode::empty()) {
                    Ok(_) if self.open.len() == DEEPEST => return Ok(Progress::NotMeasurable),
                    Ok(below) => self.open.push(Dir::new(below)?),
                    Err(rustix::io::Errno::ACCESS) if stat.st_uid == rustix::process::geteuid().as_raw() => {
                        return Ok(Progress::Closed);
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
