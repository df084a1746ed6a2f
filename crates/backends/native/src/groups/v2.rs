//! The unified hierarchy. A group with controllers may not hold processes itself, so a sandbox's group is made
//! beside our own: below the nearest ancestor that is ours to divide.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags};

use super::{Ceiling, Placement, own_group, quota, write};

pub(super) fn look(root: &Path, own: &str) -> Placement {
    let Some(path) = own_group(own, "") else {
        return Placement::Nowhere { why: "this process is in no unified control group".to_owned() };
    };
    let mut place: PathBuf = root.join(path.trim_start_matches('/'));
    let mut reason = format!("`{}` is not ours to divide", place.display());
    // Ourselves first: at the very root, processes and controllers may live together.
    loop {
        match controllers_for_children(&place) {
            Ok(cpu) => return Placement::Unified { parent: place, cpu },
            Err(why) => reason = why,
        }
        if place == root || !place.pop() {
            return Placement::Nowhere { why: reason };
        }
    }
}

/// Whether groups below `place` get memory limits (needed) and processor limits (told).
fn controllers_for_children(place: &Path) -> Result<bool, String> {
    // A child that is made below `place` is moved from our group, which takes rights over both.
    for file in ["", "cgroup.procs", "cgroup.subtree_control"] {
        rustix::fs::access(place.join(file), Access::WRITE_OK)
            .map_err(|error| format!("`{}` is not delegated to this user: {error}", place.display()))?;
    }
    let has = |list: &str, name: &str| list.split_ascii_whitespace().any(|entry| entry == name);
    let read = |file: &str| std::fs::read_to_string(place.join(file)).unwrap_or_default();
    let enabled = read("cgroup.subtree_control");
    if has(&enabled, "memory") {
        return Ok(has(&enabled, "cpu"));
    }
    let available = read("cgroup.controllers");
    if !has(&available, "memory") {
        return Err(format!("`{}` has no memory controller", place.display()));
    }
    let wanted = if has(&available, "cpu") { "+memory +cpu" } else { "+memory" };
    match std::fs::write(place.join("cgroup.subtree_control"), wanted) {
        Ok(()) => Ok(wanted.contains("cpu")),
        Err(error) => Err(format!("`{}` can't give its children controllers: {error}", place.display())),
    }
}

pub(super) fn fill(folder: &Path, ceiling: &Ceiling) -> io::Result<OwnedFd> {
    write(folder, "memory.max", &ceiling.memory.to_string())?;
    // Absent where the kernel has no swap at all.
    if folder.join("memory.swap.max").exists() {
        write(folder, "memory.swap.max", "0")?;
    }
    if let Some(millicpus) = ceiling.millicpus {
        let (share, period) = quota(millicpus);
        write(folder, "cpu.max", &format!("{share} {period}"))?;
    }
    Ok(rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}
