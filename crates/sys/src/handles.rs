//! What a filesystem itself calls a file: the same for as long as the file lives, whatever its path is.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::checked;

/// The kind of a handle, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    pub kind: i32,
    pub bytes: Vec<u8>,
}

const LONGEST: usize = 128;

#[repr(C)]
struct Raw {
    length: u32,
    kind: i32,
    bytes: [u8; LONGEST],
}

/// The handle of an open file; an error where its filesystem has none.
pub fn handle(file: BorrowedFd<'_>) -> io::Result<Handle> {
    let mut raw = Raw { length: LONGEST as u32, kind: 0, bytes: [0; LONGEST] };
    let mut mount = 0i32;
    // SAFETY: the path is an empty, terminated string; `raw` says truly how many bytes it has room for, and both it and
    // `mount` outlive the call.
    checked(unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            file.as_raw_fd(),
            c"".as_ptr(),
            &raw mut raw,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    })?;
    let length = (raw.length as usize).min(LONGEST);
    Ok(Handle { kind: raw.kind, bytes: raw.bytes[..length].to_vec() })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_folder_keeps_its_handle_and_shares_it_with_nobody() {
        let open = |path: &str| std::fs::File::open(path).expect("it is there");
        let handle = |path: &str| handle(open(path).as_fd()).expect("a handle");
        assert_eq!(handle("/usr"), handle("/usr"));
        assert_ne!(handle("/usr"), handle("/usr/bin"));
    }
}
