//! What is left of a sandbox when nobody is in it any more: its mounts. To take them apart takes the kernel as long as to start a
//! program; so where somebody waits for an answer, they are left until that was given.
//!
//! Of this process: who holds none of it when it ends has left nothing, since the kernel closes its descriptors.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;

thread_local! {
    // Never dropped: to have that done at the end of a thread takes the C library longer than all of this.
    static LEFT: RefCell<ManuallyDrop<Leavings>> = const { RefCell::new(ManuallyDrop::new(Leavings::NONE)) };
}

struct Leavings {
    put_off: bool,
    mounts: Vec<OwnedFd>,
}

impl Leavings {
    const NONE: Leavings = Leavings { put_off: false, mounts: Vec::new() };
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

/// They are gone after this.
pub fn tidy() {
    // Not while it is borrowed: closing takes long.
    drop(LEFT.with_borrow_mut(|left| std::mem::take(&mut left.mounts)));
}
