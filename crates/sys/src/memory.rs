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

/// The same at many places with one call: at each as much as its part of `buffer` holds, `part` bytes. Returns how many
/// of the parts, from the first on, were read whole.
pub fn read_parts_of(process: i32, addresses: &[u64], part: usize, buffer: &mut [u8]) -> io::Result<usize> {
    // As many as the kernel takes at once.
    const MOST: usize = 1024;
    let most = addresses.len().min(MOST).min(buffer.len().checked_div(part).unwrap_or(0));
    if most == 0 {
        return Ok(0);
    }
    let remote: Vec<libc::iovec> = addresses[..most]
        .iter()
        .map(|address| libc::iovec { iov_base: *address as usize as *mut libc::c_void, iov_len: part })
        .collect();
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: most * part };
    // SAFETY: the kernel writes at most `iov_len` bytes to `buffer`, which is that long and outlives the call, as does
    // the list; its addresses are the other process's, and are only read there.
    let count = checked(unsafe {
        libc::process_vm_readv(process, &raw const local, 1, remote.as_ptr(), most as libc::c_ulong, 0)
    } as i64)?;
    Ok(count as usize / part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_in_their_order_and_up_to_the_first_that_is_not_there() -> io::Result<()> {
        let own = std::process::id().cast_signed();
        let words = [*b"first...", *b"second..", *b"third..."];
        let address = |word: &[u8; 8]| word.as_ptr() as u64;
        let mut buffer = [0; 24];
        let all = words.each_ref().map(address);
        assert_eq!(read_parts_of(own, &all, 8, &mut buffer)?, 3);
        assert_eq!(&buffer, b"first...second..third...");
        assert_eq!(read_parts_of(own, &[all[2], 8, all[0]], 8, &mut buffer)?, 1);
        assert_eq!(&buffer[..8], b"third...");
        // No more than there is room for, nor anything of nothing.
        assert_eq!(read_parts_of(own, &all, 8, &mut buffer[..17])?, 2);
        assert_eq!(read_parts_of(own, &all, 0, &mut buffer)?, 0);
        assert_eq!(read_parts_of(own, &[], 8, &mut buffer)?, 0);
        Ok(())
    }
}
