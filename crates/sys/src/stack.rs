//! Stacks for processes that share our memory.

use std::ffi::c_void;
use std::io;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

const SIZE: usize = 64 << 10;

/// The upper end of a new stack, which is never given back: whoever runs on it may outlive us. Straight from the
/// kernel, so that the pages nobody touches cost nothing; an allocator would have to clear them.
pub(crate) fn top() -> io::Result<*mut c_void> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping at an address of the kernel's choice touches no memory of ours.
    let bottom = unsafe { mmap_anonymous(std::ptr::null_mut(), SIZE, access, MapFlags::PRIVATE | MapFlags::STACK)? };
    // SAFETY: one past the end of the mapping just made, which is page-aligned and so aligned for any call.
    Ok(unsafe { bottom.byte_add(SIZE) })
}
