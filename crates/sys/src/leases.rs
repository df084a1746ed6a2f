//! Whether somebody has a file open for writing: under no name can one see that, but the kernel knows.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::checked;

/// `F_SETSIG`, which the bindings lack on some targets.
const SET_SIGNAL: libc::c_int = 10;

/// Somebody else may still write to the file, through a descriptor or a mapping that they have. `file` is open for
/// reading only. False where the kernel does not say: on filesystems of others, and for files of other people.
pub fn has_writers(file: BorrowedFd<'_>) -> io::Result<bool> {
    let number = file.as_raw_fd();
    // Whoever opens it just then is told to us by this signal, which nobody minds, instead of one that ends us.
    // SAFETY: takes three integers.
    checked(unsafe { libc::fcntl(number, SET_SIGNAL, libc::SIGURG) }.into())?;
    // A lease for readers is not given while there is a writer.
    // SAFETY: takes three integers.
    match checked(unsafe { libc::fcntl(number, libc::F_SETLEASE, libc::F_RDLCK) }.into()) {
        Ok(_) => {
            // SAFETY: takes three integers.
            checked(unsafe { libc::fcntl(number, libc::F_SETLEASE, libc::F_UNLCK) }.into())?;
            Ok(false)
        }
        Err(error) => Ok(error.raw_os_error() == Some(libc::EAGAIN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_writer_is_seen_as_long_as_it_has_the_file_open() {
        let path = std::env::temp_dir().join(format!("belljar-leases-{}", std::process::id()));
        let writer = std::fs::File::create(&path).expect("a file");
        let reader = std::fs::File::open(&path).expect("it is there");
        assert!(has_writers(reader.as_fd()).expect("it is asked"));
        drop(writer);
        assert!(!has_writers(reader.as_fd()).expect("it is asked"));
        std::fs::remove_file(path).expect("it goes");
    }
}
