//! Stacks for processes that share our memory.

use std::ffi::c_void;
use std::io;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};

const SIZE: usize = 64 << 10;
/// The largest page there is on what we build for.
const GUARD: usize = 64 << 10;

/// The upper end of a new stack, which is never given back: whoever runs on it may outlive us. Straight from the
/// kernel, so that the pages nobody touches cost nothing; an allocator would have to clear them.
pub(crate) fn top() -> io::Result<*mut c_void> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::STACK;
    // SAFETY: a new private mapping at an address of the kernel's choice touches no memory of ours.
    let bottom = unsafe { mmap_anonymous(std::ptr::null_mut(), GUARD + SIZE, access, flags)? };
    // SAFETY: the lower part of the mapping just made, which nobody uses: whoever runs off the stack ends there.
    unsafe { mprotect(bottom, GUARD, MprotectFlags::empty())? };
    // SAFETY: one past the end of the mapping just made, which is page-aligned and so aligned for any call.
    Ok(unsafe { bottom.byte_add(GUARD + SIZE) })
}
