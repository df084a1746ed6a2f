//! How much there is, and what goes first: what nobody has used for longest.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock, statvfs};

use super::{Cache, now, open, read_entry, remove};

/// It is counted anew after so much of all that may be kept was added, because others add too.
const RECOUNT_PART: u64 = 16;
/// Of a disk this much stays free, for the record above all; of a small one a tenth.
const RESERVE: u64 = 1 << 30;
const RESERVE_PART: u64 = 10;

/// As far as is known.
#[derive(Clone, Copy)]
pub(super) struct Count {
    total: u64,
    added: u64,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub files: u64,
    pub bytes: u64,
}

struct Seen {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Cache {
    /// Whether there is room for so much more, after what was used least has gone.
    pub(super) fn make_room(&self, length: u64) -> bool {
        if !disk_has(&self.folder, length) {
            return false;
        }
        let known = self.count.get().filter(|count| count.added < self.most / RECOUNT_PART);
        let mut total = match known {
            Some(count) => count.total,
            None => total(&self.folder),
        };
        if total.saturating_add(length) > self.most {
            // A little more than is needed, so that not every download looks through all.
            let goal = (self.most - self.most / RESERVE_PART).saturating_sub(length);
            total = evict(&self.folder, goal);
        }
        let added = known.map_or(0, |count| count.added) + length;
        self.count.set(Some(Count { total: total + length, added }));
        total.saturating_add(length) <= self.most
    }
}

fn disk_has(folder: &Path, length: u64) -> bool {
    let Ok(disk) = statvfs(folder) else { return false };
    let (free, all) = (disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize));
    free >= length.saturating_add(RESERVE.min(all / RESERVE_PART))
}

/// What is there, and what is on its way.
fn total(folder: &Path) -> u64 {
    let all = ["contents", "coming"].into_iter().flat_map(|part| list(&folder.join(part)));
    all.map(|seen| seen.bytes).sum()
}

/// Until no more than `goal` is there. Returns how much is.
fn evict(folder: &Path, goal: u64) -> u64 {
    sweep_drafts(folder, false);
    let mut contents = list(&folder.join("contents"));
    contents.sort_by_key(|seen| seen.used);
    let mut total = total(folder);
    for seen in contents {
        if total <= goal {
            break;
        }
        // Whoever reads it this moment has it open.
        remove(&seen.path);
        total = total.saturating_sub(seen.bytes);
    }
    forget_names(folder);
    total
}

/// Removes what was not used for so long, what is too old, and what killed gates have left.
pub fn collect(folder: &Path, unused_for: Duration, only_tell: bool) -> Collected {
    let mut collected = sweep_drafts(folder, only_tell);
    let too_old: BTreeSet<PathBuf> = names(folder)
        .filter(|(_, entry)| entry.as_ref().is_some_and(|entry| !entry.is_fresh(now())))
        .filter_map(|(_, entry)| Some(folder.join("contents").join(entry?.digest)))
        .collect();
    for seen in list(&folder.join("contents")) {
        // A clock that was set back: it was used just now.
        let unused = seen.used.elapsed().unwrap_or_default();
        if unused < unused_for && !too_old.contains(&seen.path) {
            continue;
        }
        collected.files += 1;
        collected.bytes += seen.bytes;
        if !only_tell {
            remove(&seen.path);
        }
    }
    if !only_tell {
        forget_names(folder);
    }
    collected
}

/// Names of what is no longer there.
fn forget_names(folder: &Path) {
    for (path, entry) in names(folder) {
        let content = entry.map(|entry| folder.join("contents").join(entry.digest));
        if !content.is_some_and(|content| content.exists()) {
            remove(&path);
        }
    }
}

fn names(folder: &Path) -> impl Iterator<Item = (PathBuf, Option<super::Entry>)> {
    list(&folder.join("names")).into_iter().map(|seen| {
        let entry = read_entry(&seen.path).ok().flatten();
        (seen.path, entry)
    })
}

/// What nobody writes any more, and never became something.
fn sweep_drafts(folder: &Path, only_tell: bool) -> Collected {
    let mut collected = Collected::default();
    for seen in list(&folder.join("coming")) {
        let left = |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if !open(&seen.path).is_ok_and(left) {
            continue;
        }
        collected.files += 1;
        collected.bytes += seen.bytes;
        if !only_tell {
            remove(&seen.path);
        }
    }
    collected
}

/// What can't be looked at is not counted: it is gone, or not ours.
fn list(folder: &Path) -> Vec<Seen> {
    let see = |entry: io::Result<fs::DirEntry>| -> Option<Seen> {
        let entry = entry.ok()?;
        let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(Seen { path: entry.path(), bytes: data.len(), used: data.modified().ok()? })
    };
    fs::read_dir(folder).map(|entries| entries.filter_map(see).collect()).unwrap_or_default()
}
