//! Mounts, by descriptor: a tree is made apart, given its attributes, and only then attached.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};
use serde::{Deserialize, Serialize};

use crate::checked;

/// What may be done through a mount. Set-user-id bits never work below one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    pub read_only: bool,
    pub devices: bool,
}

impl Attributes {
    pub const READ_ONLY: Attributes = Attributes { read_only: true, devices: false };
    pub const READ_WRITE: Attributes = Attributes { read_only: false, devices: false };
    pub const DEVICE: Attributes = Attributes { read_only: false, devices: true };
}

/// Opens a place to look from, following no link anywhere in `path`.
pub fn open_without_links(root: BorrowedFd<'_>, path: &CStr) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(root, path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), resolve)?)
}

/// Opens a place beneath `root`, following no link and never leaving it.
pub fn open_beneath(root: BorrowedFd<'_>, path: &CStr) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(root, path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), resolve)?)
}

/// A detached copy of the mounts at and below the absolute `path`, which may contain no link.
pub fn copy_tree(path: &CStr) -> io::Result<OwnedFd> {
    let place = open_without_links(CWD, path)?;
    copy_tree_at(place.as_fd())
}

const COPY: OpenTreeFlags =
    OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC).union(OpenTreeFlags::AT_RECURSIVE);

/// A detached copy of the mounts at and below an open place.
pub fn copy_tree_at(place: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(open_tree(place, c"", COPY | OpenTreeFlags::AT_EMPTY_PATH)?)
}

/// A detached copy of the mounts at and below `path`, on the way to which nobody can have put a link.
pub fn copy_plain_tree(path: &CStr) -> io::Result<OwnedFd> {
    Ok(open_tree(CWD, path, COPY | OpenTreeFlags::AT_SYMLINK_NOFOLLOW)?)
}

/// Gives a whole tree its attributes and cuts it off from the mounts it was copied from: what is mounted
/// below it later is not seen by the host, nor the other way round.
pub fn confine(tree: BorrowedFd<'_>, attributes: Attributes) -> io::Result<()> {
    set_attributes(tree, true, attributes, None)
}

/// The same, and on-disk owners of the tree are seen as `owners` (a user namespace) maps them.
pub fn confine_and_map(tree: BorrowedFd<'_>, attributes: Attributes, owners: BorrowedFd<'_>) -> io::Result<()> {
    set_attributes(tree, true, attributes, Some(owners))
}

/// Makes one mount, and none below it, read-only.
pub fn seal(mount: BorrowedFd<'_>) -> io::Result<()> {
    set_attributes(mount, false, Attributes::READ_ONLY, None)
}

fn set_attributes(
    tree: BorrowedFd<'_>,
    recursive: bool,
    attributes: Attributes,
    owners: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let Attributes { read_only, devices } = attributes;
    let set = libc::MOUNT_ATTR_NOSUID
        | if read_only { libc::MOUNT_ATTR_RDONLY } else { 0 }
        | if devices { 0 } else { libc::MOUNT_ATTR_NODEV }
        | if owners.is_some() { libc::MOUNT_ATTR_IDMAP } else { 0 };
    let request = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: owners.map_or(0, |owners| owners.as_raw_fd() as u64),
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty, terminated string and `request` outlives the call, with its true size.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const request,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// Attaches a detached tree over an open place.
pub fn attach(tree: BorrowedFd<'_>, place: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, c"", place, c"", flags)?)
}

/// Attaches a detached tree over `path`, on the way to which nobody can have put a link.
pub fn attach_plainly(tree: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    Ok(move_mount(tree, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// A setting of a new filesystem: a flag, or a key with a value.
pub type Setting<'a> = (&'a CStr, Option<&'a CStr>);

/// A new, detached filesystem.
pub fn create(kind: &CStr, settings: &[Setting<'_>], attributes: Attributes) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in settings {
        match value {
            Some(value) => fsconfig_set_string(context.as_fd(), *key, *value)?,
            None => fsconfig_set_flag(context.as_fd(), *key)?,
        }
    }
    fsconfig_create(context.as_fd())?;
    let mut flags = MountAttrFlags::MOUNT_ATTR_NOSUID;
    if attributes.read_only {
        flags |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    if !attributes.devices {
        flags |= MountAttrFlags::MOUNT_ATTR_NODEV;
    }
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}

/// A detached overlay: the folders `lower`, the topmost first, with changes to them in `upper` below `layer`, and
/// `work` beside it for the kernel's own use.
pub fn create_overlay(lower: &[CString], layer: &CStr) -> io::Result<OwnedFd> {
    // The longest text that the kernel takes as one setting, with its end.
    const LONGEST: usize = 256;
    let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let mut joined = Vec::with_capacity(LONGEST);
    for folder in lower {
        if !joined.is_empty() {
            joined.push(b':');
        }
        joined.extend_from_slice(folder.as_bytes());
    }
    if joined.len() < LONGEST {
        fsconfig_set_string(context.as_fd(), c"lowerdir", CString::new(joined)?.as_c_str())?;
    } else {
        // Since Linux 6.5.
        for folder in lower {
            fsconfig_set_string(context.as_fd(), c"lowerdir+", folder.as_c_str())?;
        }
    }
    for (key, name) in [(c"upperdir", b"/upper".as_slice()), (c"workdir", b"/work")] {
        let folder = CString::new([layer.to_bytes(), name].concat())?;
        fsconfig_set_string(context.as_fd(), key, folder.as_c_str())?;
    }
    // Attributes that nobody in a user namespace may write have another name there.
    fsconfig_set_flag(context.as_fd(), c"userxattr")?;
    // Numbers of files stay what they are below: git takes a file with another number for a changed one.
    fsconfig_set_string(context.as_fd(), c"xino", c"off")?;
    // Else the end of every run would write the whole filesystem of the layer to disk, everybody's files included.
    fsconfig_set_flag(context.as_fd(), c"volatile")?;
    fsconfig_create(context.as_fd())?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}

/// Nothing mounted from here on is seen outside this mount namespace, nor the other way round.
pub fn keep_private() -> io::Result<()> {
    use rustix::mount::{MountPropagationFlags, mount_change};
    Ok(mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// The mounts that this process sees, to be asked later whether they are still the same.
pub fn watched() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(c"/proc/self/mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Whether something was mounted or unmounted since `watched`. What can't be found out may have been.
pub fn have_changed(watched: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut one = [PollFd::from_borrowed_fd(watched, PollFlags::PRI)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    !matches!(poll(&mut one, Some(&now)), Ok(0))
}

/// Makes the current folder, which must be the root of a mount, the root, and detaches the old one, which lies on top of it until
/// then.
pub fn change_root_to_here() -> io::Result<()> {
    use rustix::mount::{UnmountFlags, unmount};
    rustix::process::pivot_root(c".", c".")?;
    unmount(c".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir(c"/")?)
}

#[cfg(test)]
mod tests {
    use rustix::mount::{MountFlags, mount};

    use super::*;
    use crate::process::{Ended, Namespaces, in_a_copy, unshare};

    #[test]
    fn what_is_mounted_meanwhile_is_noticed() {
        let ended = in_a_copy(|| {
            let noticed = || -> io::Result<bool> {
                unshare(Namespaces { user: true, mount: true, ..Namespaces::NONE })?;
                keep_private()?;
                let before = watched()?;
                let still = !have_changed(before.as_fd());
                mount(c"none", c"/mnt", c"tmpfs", MountFlags::empty(), None)?;
                // Of whoever looked before; whoever looks now sees it as it is.
                Ok(still && have_changed(before.as_fd()) && !have_changed(watched()?.as_fd()))
            };
            noticed().map_or_else(|error| error.raw_os_error().unwrap_or(1), |noticed| i32::from(!noticed))
        });
        assert_eq!(ended.expect("a copy"), Ended::Exited(0));
    }
}
