//! What is left of a sandbox when nobody is in it any more: its mounts and its control group. To take them apart takes the kernel as
//! long as to start a program; so where somebody waits for an answer, they are left until that was given.
//!
//! Of this process: who ends before that has left nothing, since the kernel closes its descriptors, and a group's keeper removes it
//! when its ward has ended.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;

use crate::groups::Group;

thread_local! {
    // Never dropped: to have that done at the end of a thread takes the C library longer than all of this.
    static LEFT: RefCell<ManuallyDrop<Leavings>> = const { RefCell::new(ManuallyDrop::new(Leavings::NONE)) };
}

struct Leavings {
    put_off: bool,
    mounts: Vec<OwnedFd>,
    groups: Vec<Group>,
}

impl Leavings {
    const NONE: Leavings = Leavings { put_off: false, mounts: Vec::new(), groups: Vec::new() };
}

/// From here on they are left until `tidy`.
pub fn put_off() {
    LEFT.with_borrow_mut(|left| left.put_off = true);
}

/// Has these mounts taken apart, now or later.
pub fn leave(mounts: OwnedFd) {
    let now = LEFT.with_borrow_mut(|left| match left.put_off {
        true => {
            left.mounts.push(mounts);
            None
        }
        false => Some(mounts),
    });
    drop(now);
}

/// Whether there is a later.
pub fn are_put_off() -> bool {
    LEFT.with_borrow(|left| left.put_off)
}

/// Has this group, which nobody is in any more, removed later.
pub fn leave_group(group: Group) {
    LEFT.with_borrow_mut(|left| left.groups.push(group));
}

/// They are gone after this.
pub fn tidy() {
    // Not while it is borrowed: closing takes long.
    let (groups, mounts) =
        LEFT.with_borrow_mut(|left| (std::mem::take(&mut left.groups), std::mem::take(&mut left.mounts)));
    drop(mounts);
    // What can't be removed here stays with its keeper, who tries again after our end.
    match groups.into_iter().try_for_each(Group::remove) {
        Ok(()) | Err(_) => {}
    }
}
