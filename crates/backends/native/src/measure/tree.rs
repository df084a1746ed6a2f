//! What all processes below the first one use together, from /proc.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sys::paths::read_short;

use super::records;

/// From linux/magic.h.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

pub struct Tree {
    first: i32,
    /// Somebody who came from elsewhere, and when they began: their number may come to mean another.
    guest: Option<(i32, u64)>,
    pub memory: u64,
    pub cpu_time: Duration,
    /// Files that are open and have no name any more: device and bytes.
    pub removed_files: Vec<(u64, u64)>,
    /// How many processes there were when last looked.
    pub processes: u64,
    /// Bytes that went through calls such as read and write.
    pub read: u64,
    pub written: u64,
    /// What each process that lives had used by itself when last seen, and all that are gone.
    own: HashMap<(i32, u64), u64>,
    gone: u64,
    /// Where to go on looking at descriptors, when there are too many for one look.
    turn: usize,
    ticks_per_second: u64,
}

impl Tree {
    pub fn new(first: i32) -> Tree {
        Tree {
            first,
            guest: None,
            memory: 0,
            cpu_time: Duration::ZERO,
            removed_files: Vec::new(),
            processes: 0,
            read: 0,
            written: 0,
            own: HashMap::new(),
            gone: 0,
            turn: 0,
            ticks_per_second: rustix::param::clock_ticks_per_second().max(1),
        }
    }

    /// Somebody inside who is no child of the first.
    pub fn invite(&mut self, guest: i32) {
        self.guest = began(guest).map(|began| (guest, began));
    }

    /// Whether there is nobody but the first. Its children are asked for at once, under the kernel's lock: whoever lost their parent is
    /// one of them, so that no chain of short lives passes by. Without an answer it is not.
    pub fn is_alone(&self) -> bool {
        let children = read_short(Path::new(&format!("/proc/{0}/task/{0}/children", self.first)));
        self.guest.is_none() && children.is_ok_and(|children| children.trim_ascii().is_empty())
    }

    /// Looks at everything once. A process that ends meanwhile counts for nothing: it holds nothing any more.
    pub fn look(&mut self, memory_limit: Option<u64>, budget: Duration) {
        let started = Instant::now();
        let processes = self.find();
        let mut upper: u64 = processes.iter().map(|process| resident(process)).sum();
        self.count_time(&processes);
        // What is shared was counted once a process: look closer only if even that would be too much.
        if memory_limit.is_some_and(|limit| upper > limit) {
            upper = processes.iter().map(|process| share(process).unwrap_or_else(|| resident(process))).sum();
        }
        self.memory = upper + self.files(&processes, started, budget);
    }

    /// How much was read and written; more is not looked at than there is time for.
    pub fn look_at_transfers(&mut self, budget: Duration) {
        let started = Instant::now();
        let processes = self.find();
        self.processes = processes.len() as u64;
        let (mut read, mut written) = (0u64, 0u64);
        for process in processes.iter().take_while(|_| started.elapsed() < budget) {
            // With those of the threads that ended, and of the children that were waited for.
            let record = read_short(&process.join("io")).unwrap_or_default();
            read = read.saturating_add(records::count(&record, "rchar:"));
            written = written.saturating_add(records::count(&record, "wchar:"));
        }
        // What nobody waited for is gone with its process, and was read and written all the same.
        (self.read, self.written) = (self.read.max(read), self.written.max(written));
    }

    /// A child's time becomes its parent's when that waits for it, and nobody's if nobody does. So there are two sums,
    /// each of which may be too small and none too large: of all who live with what they waited for, and of what each
    /// one ever seen used by itself.
    fn count_time(&mut self, processes: &[PathBuf]) {
        let mut own = HashMap::with_capacity(processes.len());
        let mut with_children = 0u64;
        for process in processes {
            let Some(stat) = read_short(&process.join("stat")).ok().and_then(|record| records::stat(&record)) else {
                continue;
            };
            with_children = with_children.saturating_add(stat.ticks).saturating_add(stat.of_children);
            own.insert((stat.pid, stat.started), stat.ticks);
        }
        let gone: u64 = self.own.iter().filter(|(process, _)| !own.contains_key(process)).map(|(_, ticks)| ticks).sum();
        self.gone = self.gone.saturating_add(gone);
        let each = own.values().sum::<u64>().saturating_add(self.gone);
        self.own = own;
        let ticks = with_children.max(each);
        let time = Duration::from_millis(ticks.saturating_mul(1000) / self.ticks_per_second);
        self.cpu_time = self.cpu_time.max(time);
    }

    fn find(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut waiting = vec![self.first];
        waiting.extend(self.guest.filter(|(guest, known)| began(*guest) == Some(*known)).map(|(guest, _)| guest));
        let mut seen = HashSet::new();
        while let Some(pid) = waiting.pop() {
            if !seen.insert(pid) {
                continue;
            }
            let folder = PathBuf::from(format!("/proc/{pid}"));
            let Ok(threads) = std::fs::read_dir(folder.join("task")) else { continue };
            for thread in threads.flatten() {
                let children = read_short(&thread.path().join("children")).unwrap_or_default();
                waiting.extend(records::children(&children));
            }
            found.push(folder);
        }
        found
    }

    /// Files in memory that no process needs to have mapped: the private filesystem as a whole, and unnamed ones.
    fn files(&mut self, processes: &[PathBuf], started: Instant, budget: Duration) -> u64 {
        let mut seen = HashSet::new();
        let mut bytes = processes.iter().find_map(|process| private_filesystem(process)).unwrap_or(0);
        self.removed_files.clear();
        self.turn = self.turn.wrapping_add(1);
        let offset = self.turn % processes.len().max(1);
        let in_turn = processes.iter().cycle().skip(offset).take(processes.len());
        for process in in_turn {
            let Ok(descriptors) = std::fs::read_dir(process.join("fd")) else { continue };
            for descriptor in descriptors.flatten() {
                if started.elapsed() > budget {
                    return bytes;
                }
                let path = descriptor.path();
                let Ok(target) = std::fs::read_link(&path) else { continue };
                let target = target.as_os_str().as_encoded_bytes();
                let unnamed = target.starts_with(b"/memfd:");
                if (unnamed || target.ends_with(b" (deleted)"))
                    && let Ok(stat) = std::fs::metadata(&path)
                    && stat.is_file()
                    && seen.insert((stat.dev(), stat.ino()))
                {
                    match unnamed {
                        true => bytes += stat.blocks() * 512,
                        false => self.removed_files.push((stat.dev(), stat.blocks() * 512)),
                    }
                }
            }
        }
        bytes
    }
}

/// Memory of its own and shared with others of the sandbox, from a thread that lives: the first may have ended.
fn resident(process: &Path) -> u64 {
    let threads = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    threads
        .map(|thread| {
            let status = read_short(&thread.path().join("status")).unwrap_or_default();
            records::kilobytes(&status, "RssAnon:").saturating_add(records::kilobytes(&status, "RssShmem:"))
        })
        .find(|bytes| *bytes > 0)
        .unwrap_or(0)
}

/// Its fair share: what it shares with others is counted in parts.
fn share(process: &Path) -> Option<u64> {
    let rollup = read_short(&process.join("smaps_rollup")).ok()?;
    Some(records::kilobytes(&rollup, "Pss_Anon:").saturating_add(records::kilobytes(&rollup, "Pss_Shmem:")))
}

fn began(process: i32) -> Option<u64> {
    let record = read_short(Path::new(&format!("/proc/{process}/stat"))).ok()?;
    records::stat(&record).map(|stat| stat.started)
}

/// What is in the filesystem that holds the sandbox's /tmp, seen through a process's own root.
fn private_filesystem(process: &Path) -> Option<u64> {
    let inside = process.join("root/tmp");
    let space = rustix::fs::statfs(&inside).ok()?;
    let own = std::fs::metadata(&inside).ok()?.dev() != std::fs::metadata("/tmp").map_or(0, |stat| stat.dev());
    (own && space.f_type == TMPFS).then(|| (space.f_blocks - space.f_bfree) * space.f_bsize as u64)
}
