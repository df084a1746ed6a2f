//! The unified hierarchy. A group with controllers may not hold processes itself, so a sandbox's group is made
//! beside our own: below the nearest ancestor that is ours to divide.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags};

use super::{Ceiling, Placement, own_group, quota, write, write_if_there};

const CONTROLLERS_BELOW: &str = "cgroup.subtree_control";

pub(super) fn look(root: &Path, own: &str) -> Placement {
    let Some(path) = own_group(own, "") else {
        return Placement::Nowhere { why: "this process is in no unified control group".to_owned() };
    };
    // By components, which have no slash at their end: the path is shown to people.
    let mut place: PathBuf = root.join(path.trim_start_matches('/')).components().collect();
    let mut nearest = None;
    // Ourselves first: at the very root, processes and controllers may live together.
    loop {
        match controllers_for_children(&place) {
            Ok(cpu) => return Placement::Unified { parent: place, cpu },
            Err(why) => {
                // What can be mended is where we are, not at the root.
                let why = nearest.get_or_insert(why);
                if place == root || !place.pop() {
                    return Placement::Nowhere { why: std::mem::take(why) };
                }
            }
        }
    }
}

/// Whether groups below `place` get memory limits (needed) and can get processor limits (told).
fn controllers_for_children(place: &Path) -> Result<bool, String> {
    // A child that is made below `place` is moved from our group, which takes rights over both.
    for file in ["", "cgroup.procs", CONTROLLERS_BELOW] {
        rustix::fs::access(place.join(file), Access::WRITE_OK)
            .map_err(|error| format!("`{}` is not delegated to this user: {error}", place.display()))?;
    }
    let has = |list: &str, name: &str| list.split_ascii_whitespace().any(|entry| entry == name);
    let read = |file: &str| std::fs::read_to_string(place.join(file)).unwrap_or_default();
    let enabled = read(CONTROLLERS_BELOW);
    if has(&enabled, "memory") && has(&enabled, "cpu") {
        return Ok(true);
    }
    let available = read("cgroup.controllers");
    if !has(&available, "memory") {
        return Err(format!("`{}` has no memory controller", place.display()));
    }
    if !has(&enabled, "memory") {
        std::fs::write(place.join(CONTROLLERS_BELOW), "+memory")
            .map_err(|error| format!("`{}` can't give its children controllers: {error}", place.display()))?;
    }
    Ok(has(&available, "cpu"))
}

/// What a child is born into.
pub(super) fn open(folder: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

pub(super) fn limit(folder: &Path, ceiling: &Ceiling) -> io::Result<()> {
    write(folder, "memory.max", &ceiling.memory.to_string())?;
    // Absent where the kernel has no swap at all.
    write_if_there(folder, "memory.swap.max", "0")?;
    if let Some(millicpus) = ceiling.millicpus {
        // Not before somebody asks: it changes how processors are shared among all groups here. systemd counts memory
        // nearly everywhere, and processors only where a unit limits them.
        if let Some(parent) = folder.parent().filter(|_| !folder.join("cpu.max").exists()) {
            write(parent, CONTROLLERS_BELOW, "+cpu")?;
        }
        let (share, period) = quota(millicpus);
        write(folder, "cpu.max", &format!("{share} {period}"))?;
    }
    Ok(())
}
