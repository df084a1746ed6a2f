//! Trees of the host's, copied by an assistant while whoever mounts them makes the places for them.

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use crate::mounts;

/// How a path is walked to: over names that nobody can change, or following no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    Plain,
    Careful,
}

/// Trees that are being copied. Leaked: the assistant may write to it at any time.
pub struct Copies {
    wanted: Vec<(CString, Walk)>,
    /// One for each: nothing yet, a descriptor and one, an error, or that it was taken.
    found: Vec<AtomicU32>,
}

const NOT_YET: u32 = 0;
const ERROR: u32 = 1 << 31;
const TAKEN: u32 = u32::MAX;
/// Whoever takes longer has been stopped, or worse.
const PATIENCE: futex::Timespec = futex::Timespec { tv_sec: 10, tv_nsec: 0 };

impl Copies {
    pub fn of(wanted: Vec<(CString, Walk)>) -> &'static Copies {
        let found = wanted.iter().map(|_| AtomicU32::new(NOT_YET)).collect();
        Box::leak(Box::new(Copies { wanted, found }))
    }

    pub fn count(&self) -> usize {
        self.wanted.len()
    }

    /// Copies them all, one after the other. Allocates nothing.
    pub(crate) fn make(&self) {
        for ((path, walk), found) in self.wanted.iter().zip(&self.found) {
            let copied = match walk {
                Walk::Plain => mounts::copy_plain_tree(path),
                Walk::Careful => mounts::copy_tree(path),
            };
            let word = match copied {
                Ok(tree) => tree.into_raw_fd().unsigned_abs() + 1,
                Err(error) => ERROR | error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()).unsigned_abs(),
            };
            found.store(word, Ordering::Release);
            // That nobody waits is no failure; and whoever does looks again before long.
            match futex::wake(found, Flags::PRIVATE, 1) {
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// The one at `number`, waited for; once only.
    pub fn take(&self, number: usize) -> io::Result<OwnedFd> {
        let found = self.found.get(number).ok_or(io::ErrorKind::NotFound)?;
        while found.load(Ordering::Acquire) == NOT_YET {
            match futex::wait(found, Flags::PRIVATE, NOT_YET, Some(&PATIENCE)) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match found.swap(TAKEN, Ordering::AcqRel) {
            TAKEN => Err(io::ErrorKind::NotFound.into()),
            error if error & ERROR != 0 => Err(io::Error::from_raw_os_error((error & !ERROR).cast_signed())),
            // SAFETY: the assistant opened it in the table we share and gave it up; the swap gives it to us alone.
            descriptor => Ok(unsafe { OwnedFd::from_raw_fd((descriptor - 1).cast_signed()) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_copied_is_said_where_it_is_wanted() {
        let none = CString::from(c"/there-is-no-such-folder");
        let copies = Copies::of(vec![(none.clone(), Walk::Plain), (none, Walk::Careful)]);
        copies.make();
        for number in 0..2 {
            // Without the right to copy any, that is what is said.
            let error = copies.take(number).map(drop).map_err(|error| error.kind());
            assert!(matches!(error, Err(io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)), "{error:?}");
        }
        assert!(copies.take(2).is_err());
    }

    #[test]
    fn nobody_gets_a_tree_twice() {
        let copies = Copies::of(vec![(c"/".into(), Walk::Plain)]);
        copies.found[0].store(ERROR | 1, Ordering::Release);
        assert_eq!(copies.take(0).map(drop).map_err(|error| error.raw_os_error()), Err(Some(1)));
        assert_eq!(copies.take(0).map(drop).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
    }
}
