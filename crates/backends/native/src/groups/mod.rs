//! Control groups: limits that hold for all processes of a sandbox together.
//!
//! The unified hierarchy (v2) where a part of it is ours, the older one (v1) as root. Elsewhere there are none, and
//! `measure` watches instead.

mod freezer;
mod v1;
mod v2;

use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use sys::keeper::{self, Keeper};
use sys::process::Alone;

use freezer::Freezer;

/// Where groups can be made on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Below this folder of the unified hierarchy.
    Unified {
        parent: PathBuf,
        cpu: bool,
    },
    /// Below these folders of the older hierarchies.
    Older {
        memory: PathBuf,
        cpu: Option<PathBuf>,
        accounting: Option<PathBuf>,
    },
    Nowhere {
        why: String,
    },
}

/// What a group holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    pub memory: u64,
    pub millicpus: Option<u32>,
    /// Processor time must be readable.
    pub count_cpu_time: bool,
}

impl Placement {
    pub fn look() -> Placement {
        let own = match sys::paths::read_short("/proc/self/cgroup".as_ref()).map(String::from_utf8) {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => return Placement::Nowhere { why: format!("/proc/self/cgroup: {error}") },
            Err(error) => {
                return Placement::Nowhere { why: format!("/proc/self/cgroup: {error}") };
            }
        };
        if rustix::fs::access("/sys/fs/cgroup/cgroup.controllers", rustix::fs::Access::EXISTS).is_ok() {
            v2::look(Path::new("/sys/fs/cgroup"), &own)
        } else {
            v1::look(Path::new("/sys/fs/cgroup"), &own)
        }
    }

    /// A child is born into its group, which is there before the child and whatever its limits will be.
    pub fn is_of_birth(&self) -> bool {
        matches!(self, Placement::Unified { .. })
    }

    /// The folders that a group called `name` would have, the first being the one a child can be born into.
    fn folders(&self, name: &str, ceiling: Option<&Ceiling>) -> Vec<PathBuf> {
        match self {
            Placement::Unified { parent, .. } => vec![parent.join(name)],
            Placement::Older { memory, cpu, accounting } => {
                let cpu = cpu.as_ref().filter(|_| ceiling.is_some_and(|ceiling| ceiling.millicpus.is_some()));
                let accounting = accounting.as_ref().filter(|_| ceiling.is_some_and(|ceiling| ceiling.count_cpu_time));
                let mut folders: Vec<_> =
                    std::iter::once(memory).chain(cpu).chain(accounting).map(|parent| parent.join(name)).collect();
                folders.dedup();
                folders
            }
            Placement::Nowhere { .. } => Vec::new(),
        }
    }
}

/// A group that exists, with somebody who removes it even if we are killed.
pub struct Group {
    folders: Vec<PathBuf>,
    unified: Option<OwnedFd>,
    /// What is read at the very end, opened while there is time: the most memory used, and what was ended for it.
    peak: Option<OwnedFd>,
    events: Option<OwnedFd>,
    keeper: Keeper,
    /// Made when somebody first wants them to stand still.
    freezer: Option<Freezer>,
}

impl Group {
    /// `None` where there is nowhere to make one. `held`: its keeper has this open until its end.
    pub fn make(
        placement: &Placement,
        ceiling: &Ceiling,
        held: Option<BorrowedFd<'_>>,
        alone: Alone,
    ) -> io::Result<Option<Group>> {
        let Some(group) = Group::begin(placement, Some(ceiling), held, alone)? else { return Ok(None) };
        match group.limit(ceiling) {
            Ok(()) => Ok(Some(group)),
            Err(error) => Err(group.undone(error)),
        }
    }

    /// For a child that is born before its limits are known: whoever makes one sees to it that there are some (`limit`) before anything
    /// runs in it that is not ours. `None` where children are not born into groups.
    pub fn make_for_birth(placement: &Placement, alone: Alone) -> io::Result<Option<Group>> {
        if placement.is_of_birth() { Group::begin(placement, None, None, alone) } else { Ok(None) }
    }

    fn begin(
        placement: &Placement,
        ceiling: Option<&Ceiling>,
        held: Option<BorrowedFd<'_>>,
        alone: Alone,
    ) -> io::Result<Option<Group>> {
        let mut random = [0u8; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let name =
            format!("belljar-{}-{:016x}", rustix::process::getpid().as_raw_nonzero(), u64::from_le_bytes(random));
        let folders = placement.folders(&name, ceiling);
        if folders.is_empty() {
            return Ok(None);
        }
        // The keeper first: from the moment a folder exists, somebody else knows of it.
        let names: io::Result<Vec<CString>> = folders.iter().rev().map(|folder| name_of(folder)).collect();
        let keeper = Keeper::start(&names?, held, alone)?;
        let mut group = Group { folders, unified: None, peak: None, events: None, keeper, freezer: None };
        match group.make_folders(placement) {
            Ok(()) => Ok(Some(group)),
            Err(error) => Err(group.undone(error)),
        }
    }

    fn make_folders(&mut self, placement: &Placement) -> io::Result<()> {
        for folder in &self.folders {
            std::fs::create_dir(folder).map_err(|error| naming("make", folder, error))?;
        }
        if placement.is_of_birth() {
            self.unified = Some(v2::open(&self.folders[0])?);
        }
        let (peak, events) = match self.unified {
            Some(_) => ("memory.peak", "memory.events"),
            None => ("memory.max_usage_in_bytes", "memory.oom_control"),
        };
        self.peak = open(&self.folders[0], peak);
        self.events = open(&self.folders[0], events);
        Ok(())
    }

    /// From here on it holds what it is for.
    pub fn limit(&self, ceiling: &Ceiling) -> io::Result<()> {
        match self.unified {
            Some(_) => v2::limit(&self.folders[0], ceiling),
            None => v1::limit(&self.folders, ceiling),
        }
    }

    fn undone(self, error: io::Error) -> io::Error {
        match self.remove() {
            Ok(()) => error,
            Err(also) => io::Error::new(error.kind(), format!("{error}; and it could not be removed: {also}")),
        }
    }

    /// Where a child can be born into.
    pub fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        self.unified.as_ref().map(|folder| folder.as_fd())
    }

    /// Open files through which a child enters by itself, where it can't be born inside.
    pub fn entrances(&self) -> io::Result<Vec<OwnedFd>> {
        let older = self.folders.iter().filter(|_| self.unified.is_none());
        older
            .map(|folder| {
                let path = folder.join("tasks");
                let opened = rustix::fs::open(&path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
                opened.map_err(|error| naming("open", &path, error.into()))
            })
            .collect()
    }

    /// The same for somebody who is there already, whatever the kind of groups.
    pub fn ways_in(&self) -> io::Result<Vec<OwnedFd>> {
        let name = if self.unified.is_some() { "cgroup.procs" } else { "tasks" };
        let open = |folder: &std::path::PathBuf| {
            let path = folder.join(name);
            let opened = rustix::fs::open(&path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
            opened.map_err(|error| naming("open", &path, error.into()))
        };
        self.folders.iter().map(open).collect()
    }

    /// The process that waits to clean up after us; a child of ours, and none of the sandbox's.
    pub fn keeper(&self) -> i32 {
        self.keeper.pid()
    }

    pub fn peak_memory(&self) -> Option<u64> {
        number(&read(self.peak.as_ref()?)?)
    }

    /// All of its processes stand still until `thaw`.
    pub fn freeze(&mut self) -> io::Result<()> {
        let freezer = match self.freezer.take() {
            Some(freezer) => freezer,
            None => Freezer::of(&self.folders[0], self.unified.is_some())?,
        };
        self.freezer.insert(freezer).freeze()
    }

    /// Also for whoever ends them: one that stands still does not always end.
    pub fn thaw(&self) -> io::Result<()> {
        self.freezer.as_ref().map_or(Ok(()), Freezer::thaw)
    }

    /// In use now, with what the kernel keeps of files for it.
    pub fn memory(&self) -> Option<u64> {
        let name = if self.unified.is_some() { "memory.current" } else { "memory.usage_in_bytes" };
        number(&read(&open(&self.folders[0], name)?)?)
    }

    pub fn out_of_memory_kills(&self) -> u64 {
        self.events.as_ref().and_then(read).and_then(|text| entry(&text, "oom_kill")).unwrap_or(0)
    }

    /// Processor time used so far.
    pub fn cpu_time(&self) -> Option<Duration> {
        match self.unified {
            Some(_) => open(&self.folders[0], "cpu.stat")
                .as_ref()
                .and_then(read)
                .and_then(|text| entry(&text, "usage_usec"))
                .map(Duration::from_micros),
            None => self
                .folders
                .iter()
                .find_map(|folder| number(&read(&open(folder, "cpuacct.usage")?)?))
                .map(Duration::from_nanos),
        }
    }

    /// Has the group removed when `first`, the last of its processes, has ended; to be followed by `await_removal`.
    pub fn remove_after(&self, first: i32) -> io::Result<()> {
        self.keeper.remove_after(first)
    }

    /// Waits for what `remove_after` began, and does it here if that went wrong.
    pub fn await_removal(self) -> io::Result<()> {
        let Group { folders, keeper, freezer, .. } = self;
        freezer.map_or(Ok(()), Freezer::remove)?;
        keeper.finish().or_else(|_| remove(&folders))
    }

    /// Removes a group here and now, ending whoever is still in it.
    pub fn remove(self) -> io::Result<()> {
        let Group { folders, keeper, freezer, .. } = self;
        freezer.map_or(Ok(()), Freezer::remove)?;
        remove(&folders)?;
        keeper.dismiss()
    }
}

fn remove(folders: &[PathBuf]) -> io::Result<()> {
    folders
        .iter()
        .rev()
        .try_for_each(|folder| keeper::remove(&name_of(folder)?).map_err(|error| naming("remove", folder, error)))
}

fn name_of(folder: &Path) -> io::Result<CString> {
    Ok(CString::new(folder.as_os_str().as_bytes())?)
}

fn naming(what: &str, path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what} the control group `{}`: {error}", path.display()))
}

fn write(folder: &Path, file: &str, value: &str) -> io::Result<()> {
    let path = folder.join(file);
    // Not one that makes files: an absent one is an error, or none, but never a file of ours.
    std::fs::OpenOptions::new().write(true).open(&path).and_then(|mut file| file.write_all(value.as_bytes())).map_err(
        |error| io::Error::new(error.kind(), format!("cannot write `{value}` to `{}`: {error}", path.display())),
    )
}

/// The same, where a kernel built otherwise has no such file.
fn write_if_there(folder: &Path, file: &str, value: &str) -> io::Result<()> {
    match write(folder, file, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Microseconds of each period. The kernel takes no quota below a millisecond, and no period above a second.
fn quota(millicpus: u32) -> (u64, u64) {
    let period: u64 = if millicpus < 10 { 1_000_000 } else { 100_000 };
    (u64::from(millicpus) * period / 1000, period)
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn entry(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| number(line.strip_prefix(key)?.strip_prefix(' ')?))
}

fn open(folder: &Path, file: &str) -> Option<OwnedFd> {
    rustix::fs::open(folder.join(file), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// All of these files are short, and whole in one read.
fn read(file: &OwnedFd) -> Option<String> {
    let mut text = vec![0; 4096];
    let length = rustix::io::pread(file, &mut text, 0).ok()?;
    text.truncate(length);
    String::from_utf8(text).ok()
}

/// The group of `controller` in the text of /proc/self/cgroup; the empty name is the unified hierarchy.
fn own_group<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let controllers = fields.nth(1)?;
        let path = fields.next()?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_share_of_a_processor_is_one_that_the_kernel_takes() {
        for millicpus in [1, 9, 10, 500, 1500, u32::MAX] {
            let (share, period) = quota(millicpus);
            assert!(share >= 1000 && period <= 1_000_000, "{millicpus}: {share} of {period}");
            assert_eq!(share * 1000, u64::from(millicpus) * period);
        }
    }
}
