//! Looks into another process's memory: what it hands to the kernel, read before the kernel acts on it.

use std::io;

use crate::checked;

/// Reads from there on as much as is mapped, and no more than fits. The process may change it at any time, also
/// after: what is read is what was asked for, not what happens.
pub fn read_of(process: i32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as usize as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the kernel writes at most `iov_len` bytes to `buffer`, which outlives the call; the other address is the
    // other process's, and is only read there.
    let count =
        checked(unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) } as i64)?;
    Ok(count as usize)
}
