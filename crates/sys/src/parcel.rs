//! Bytes in memory that one process writes and others read: bounded before, and changed by nobody after.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};
use rustix::io::Errno;

const FOR_EVER: SealFlags = SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// Empty, and never a program.
pub fn make() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(c"belljar-parcel", flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 have no such thing.
        Err(Errno::INVAL) => Ok(memfd_create(c"belljar-parcel", flags)?),
        made => Ok(made?),
    }
}

/// It has room for so many bytes, and never for more. They take no memory until they are written.
pub fn bound(parcel: BorrowedFd<'_>, most: u64) -> io::Result<()> {
    ftruncate(parcel, most)?;
    Ok(fcntl_add_seals(parcel, SealFlags::GROW | SealFlags::SHRINK)?)
}

/// From here on it is what it is. An error if somebody could still write to it: whoever has it mapped, above all.
pub fn shut(parcel: BorrowedFd<'_>) -> io::Result<()> {
    match fcntl_add_seals(parcel, FOR_EVER) {
        // Whoever had it may have sealed it already.
        Err(Errno::PERM) if is_shut(parcel) => Ok(()),
        shut => Ok(shut?),
    }
}

pub fn is_shut(parcel: BorrowedFd<'_>) -> bool {
    fcntl_get_seals(parcel).is_ok_and(|seals| seals.contains(FOR_EVER))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn nobody_writes_more_than_there_is_room_for_nor_anything_afterwards() -> io::Result<()> {
        let parcel = make()?;
        bound(parcel.as_fd(), 8)?;
        assert_eq!(rustix::io::pwrite(&parcel, b"12345678", 0), Ok(8));
        assert!(rustix::io::pwrite(&parcel, b"9", 8).is_err());
        assert!(ftruncate(&parcel, 16).is_err() && ftruncate(&parcel, 4).is_err());
        assert!(!is_shut(parcel.as_fd()));
        shut(parcel.as_fd())?;
        assert!(is_shut(parcel.as_fd()));
        assert_eq!(rustix::io::pwrite(&parcel, b"x", 0), Err(Errno::PERM));
        shut(parcel.as_fd())
    }

    #[test]
    fn what_was_sealed_by_somebody_else_counts_only_if_it_is_sealed_whole() -> io::Result<()> {
        let parcel = make()?;
        bound(parcel.as_fd(), 8)?;
        fcntl_add_seals(&parcel, SealFlags::SEAL)?;
        assert!(shut(parcel.as_fd()).is_err());
        Ok(())
    }
}
