//! Limits that nothing in the kernel holds here: looked at again and again, and the run ended when one is over.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::{Access, Grant, Overrun};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use crate::groups::Group;

/// How often: soon at first, because a leak is fastest in its first second, and never so often that it costs.
const SOONEST: Duration = Duration::from_millis(10);
const LATEST: Duration = Duration::from_millis(100);
/// Walking a tree may take this share of the time at most.
const WALK_SHARE: u32 = 20;

/// From linux/magic.h.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

pub struct Measure {
    first: i32,
    memory: Option<u64>,
    cpu_time: Option<Duration>,
    disks: Vec<Disk>,
    next: Option<Instant>,
    pause: Duration,
    ticks_per_second: u64,
    page: u64,
}

/// A writable place of the host, and how much there was in it before.
struct Disk {
    place: PathBuf,
    limit: u64,
    inodes: u64,
    free_before: Free,
    /// Counted when it is first needed, and so only if the run lasts.
    before: Option<Size>,
    not_before: Instant,
}

#[derive(Clone, Copy, Default)]
struct Size {
    bytes: u64,
    inodes: u64,
}

#[derive(Clone, Copy)]
struct Free {
    bytes: u64,
    inodes: u64,
}

impl Measure {
    pub fn new(first: i32, grant: &Grant, grouped: bool) -> Measure {
        let powers = grant.powers();
        let limits = &powers.limits;
        let writable = powers.files.places.iter().filter(|place| place.access == Access::Write);
        let disks: Vec<Disk> = writable
            .filter_map(|place| {
                Some(Disk {
                    place: place.path.clone(),
                    limit: limits.disk,
                    inodes: limits.inodes,
                    free_before: free(&place.path)?,
                    before: None,
                    not_before: Instant::now(),
                })
            })
            .collect();
        let memory = (!grouped).then_some(limits.memory);
        let cpu_time = limits.cpu_time;
        let needed = memory.is_some() || cpu_time.is_some() || !disks.is_empty();
        Measure {
            first,
            memory,
            cpu_time,
            disks,
            next: needed.then(|| Instant::now() + SOONEST),
            pause: SOONEST,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
            page: rustix::param::page_size() as u64,
        }
    }

    /// When to look again.
    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Looks, if it is time to, and says which limit is over.
    pub fn overrun(&mut self, now: Instant, group: Option<&Group>) -> io::Result<Option<Overrun>> {
        if self.next.is_none_or(|next| now < next) {
            return Ok(None);
        }
        self.pause = (self.pause * 2).min(LATEST);
        let over = self.look(now, group)?;
        self.next = Some(Instant::now() + self.pause);
        Ok(over)
    }

    fn look(&mut self, now: Instant, group: Option<&Group>) -> io::Result<Option<Overrun>> {
        let by_group = group.and_then(Group::cpu_time);
        if self.memory.is_some() || (self.cpu_time.is_some() && by_group.is_none()) {
            let tree = self.tree();
            if self.memory.is_some_and(|limit| tree.memory > limit) {
                return Ok(Some(Overrun::Memory));
            }
            if self.cpu_time.is_some_and(|limit| by_group.unwrap_or(tree.cpu_time) > limit) {
                return Ok(Some(Overrun::CpuTime));
            }
        } else if let (Some(limit), Some(used)) = (self.cpu_time, by_group)
            && used > limit
        {
            return Ok(Some(Overrun::CpuTime));
        }
        for disk in &mut self.disks {
            if disk.is_over(now)? {
                return Ok(Some(Overrun::Disk));
            }
        }
        Ok(None)
    }

    /// All processes below the first one.
    fn tree(&self) -> Tree {
        let mut tree = Tree::default();
        let mut in_memory_files = HashSet::new();
        let mut waiting = vec![self.first];
        let mut seen = HashSet::new();
        while let Some(pid) = waiting.pop() {
            if !seen.insert(pid) {
                continue;
            }
            let folder = PathBuf::from(format!("/proc/{pid}"));
            let Ok(threads) = std::fs::read_dir(folder.join("task")) else {
                continue;
            };
            for thread in threads.flatten() {
                let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
                waiting.extend(children.split_ascii_whitespace().filter_map(|child| child.parse::<i32>().ok()));
            }
            // A process that ends while we look counts for nothing: it uses nothing any more.
            let statm = std::fs::read_to_string(folder.join("statm")).unwrap_or_default();
            let mut pages = statm.split_ascii_whitespace().filter_map(|field| field.parse::<u64>().ok());
            let (resident, shared) = (pages.nth(1).unwrap_or(0), pages.next().unwrap_or(0));
            tree.memory += resident.saturating_sub(shared) * self.page;
            tree.cpu_time += self.cpu_time_of(&folder);
            tree.memory += files_in_memory(&folder, &mut in_memory_files);
        }
        tree
    }

    /// Its own time and that of the children it has waited for.
    fn cpu_time_of(&self, folder: &Path) -> Duration {
        let stat = std::fs::read_to_string(folder.join("stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks: u64 =
            after_name.split_ascii_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 1000 / self.ticks_per_second.max(1))
    }
}

#[derive(Default)]
struct Tree {
    memory: u64,
    cpu_time: Duration,
}

/// Open files that live in memory: unnamed ones, and those of the private filesystem that holds /tmp. Each once.
fn files_in_memory(process: &Path, seen: &mut HashSet<(u64, u64)>) -> u64 {
    let mut bytes = 0;
    // The private filesystem as a whole, through the process's own root.
    let root = process.join("root/tmp");
    let of_the_host = std::fs::metadata("/tmp").map_or(0, |stat| stat.dev());
    if let (Ok(stat), Ok(space)) = (std::fs::metadata(&root), rustix::fs::statfs(&root))
        && space.f_type == TMPFS
        && stat.dev() != of_the_host
        && seen.insert((stat.dev(), 0))
    {
        bytes += (space.f_blocks.saturating_sub(space.f_bfree)) * space.f_bsize as u64;
    }
    let Ok(descriptors) = std::fs::read_dir(process.join("fd")) else {
        return bytes;
    };
    for descriptor in descriptors.flatten() {
        let unnamed = std::fs::read_link(descriptor.path())
            .is_ok_and(|target| target.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"));
        if unnamed
            && let Ok(stat) = std::fs::metadata(descriptor.path())
            && seen.insert((stat.dev(), stat.ino()))
        {
            bytes += stat.blocks() * 512;
        }
    }
    bytes
}

impl Disk {
    fn is_over(&mut self, now: Instant) -> io::Result<bool> {
        let Some(free_now) = free(&self.place) else {
            return Ok(false);
        };
        // Cheap first: whoever writes this much takes it from what was free. Others may give some back meanwhile,
        // so half of the limit is enough to look closer.
        let taken = self.free_before.bytes.saturating_sub(free_now.bytes);
        let taken_inodes = self.free_before.inodes.saturating_sub(free_now.inodes);
        if taken < self.limit / 2 && taken_inodes < self.inodes / 2 || now < self.not_before {
            return Ok(false);
        }
        let started = Instant::now();
        let Some(size) = size_of_tree(&self.place)? else { return Ok(true) };
        self.not_before = Instant::now() + started.elapsed() * WALK_SHARE;
        // What was there at the start is not known exactly when we only count now: what is free tells how much less
        // it must have been, at most.
        let before = *self.before.get_or_insert(Size {
            bytes: size.bytes.saturating_sub(taken),
            inodes: size.inodes.saturating_sub(taken_inodes),
        });
        Ok(size.bytes.saturating_sub(before.bytes) > self.limit
            || size.inodes.saturating_sub(before.inodes) > self.inodes)
    }
}

fn free(place: &Path) -> Option<Free> {
    let space = rustix::fs::statvfs(place).ok()?;
    Some(Free { bytes: space.f_bfree * space.f_frsize, inodes: space.f_ffree })
}

/// Deeper than any project; whoever goes deeper can't be measured, and counts as over the limit.
const DEEPEST: usize = 200;

/// Bytes on disk and entries of a tree that the guest changes meanwhile: from descriptor to descriptor, so that a
/// folder that becomes a link leads nowhere. `None`: too deep to be measured.
fn size_of_tree(place: &Path) -> io::Result<Option<Size>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut size = Size::default();
    let mut open = vec![Dir::new(rustix::fs::open(place, flags, Mode::empty())?)?];
    while let Some(folder) = open.last_mut() {
        let entry = match folder.read() {
            Some(Ok(entry)) => entry,
            // At its end, or removed while we read it.
            Some(Err(_)) | None => {
                open.pop();
                continue;
            }
        };
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(stat) = rustix::fs::statat(folder.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
        size.inodes += 1;
        size.bytes += stat.st_blocks.max(0) as u64 * 512;
        if FileType::from_raw_mode(stat.st_mode).is_dir()
            && let Ok(below) = rustix::fs::openat(folder.fd()?, entry.file_name(), flags, Mode::empty())
        {
            if open.len() == DEEPEST {
                return Ok(None);
            }
            open.push(Dir::new(below)?);
        }
    }
    Ok(Some(size))
}
