//! Trees of the host's, copied by an assistant while whoever mounts them makes the places for them.

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use crate::assistant::Assistant;
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
    /// One for each: nobody began, somebody is at it, a descriptor and one, an error, or that it was taken.
    found: Vec<AtomicU32>,
}

/// Somebody who copies them.
pub struct Copying(pub(crate) Assistant);

impl Copying {
    pub fn join(self) -> io::Result<()> {
        self.0.join().map(drop)
    }
}

const NOT_YET: u32 = 0;
const ERROR: u32 = 1 << 31;
const TAKEN: u32 = u32::MAX;
/// The assistant copies it at this moment.
const BEGUN: u32 = u32::MAX - 1;
/// And somebody waits for that.
const AWAITED: u32 = u32::MAX - 2;
/// Whoever takes longer has been stopped, or worse.
pub(crate) const PATIENCE: futex::Timespec = futex::Timespec { tv_sec: 10, tv_nsec: 0 };

impl Copies {
    pub fn of(wanted: Vec<(CString, Walk)>) -> &'static Copies {
        let found = wanted.iter().map(|_| AtomicU32::new(NOT_YET)).collect();
        Box::leak(Box::new(Copies { wanted, found }))
    }

    pub fn count(&self) -> usize {
        self.wanted.len()
    }

    /// Copies all that nobody has taken, one after the other. Allocates nothing.
    pub(crate) fn make(&self) {
        for ((path, walk), found) in self.wanted.iter().zip(&self.found) {
            if found.compare_exchange(NOT_YET, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_err() {
                continue;
            }
            let copied = match walk {
                Walk::Plain => mounts::copy_plain_tree(path),
                Walk::Careful => mounts::copy_tree(path),
            };
            let word = match copied {
                Ok(tree) => tree.into_raw_fd().unsigned_abs() + 1,
                Err(error) => ERROR | error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()).unsigned_abs(),
            };
            if found.swap(word, Ordering::AcqRel) == AWAITED {
                // Whoever waits looks again before long, whatever is said here.
                match futex::wake(found, Flags::PRIVATE, 1) {
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }

    /// The one at `number`, once only; nothing, if nobody has begun to copy it: then that is up to the caller. To wait for an
    /// assistant that does not run yet, or that is making a network, takes longer than to copy.
    pub fn take(&self, number: usize) -> io::Result<Option<OwnedFd>> {
        let found = self.found.get(number).ok_or(io::ErrorKind::NotFound)?;
        let step = |from, to| found.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok();
        loop {
            match found.load(Ordering::Acquire) {
                NOT_YET if step(NOT_YET, TAKEN) => return Ok(None),
                BEGUN if step(BEGUN, AWAITED) => {}
                // Somebody was faster.
                NOT_YET | BEGUN => {}
                AWAITED => match futex::wait(found, Flags::PRIVATE, AWAITED, Some(&PATIENCE)) {
                    Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                },
                TAKEN => return Err(io::ErrorKind::NotFound.into()),
                word if !step(word, TAKEN) => {}
                error if error & ERROR != 0 => {
                    return Err(io::Error::from_raw_os_error((error & !ERROR).cast_signed()));
                }
                // SAFETY: the assistant opened it in the table we share and gave it up; the exchange gives it to us alone.
                descriptor => return Ok(Some(unsafe { OwnedFd::from_raw_fd((descriptor - 1).cast_signed()) })),
            }
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

    #[test]
    fn what_nobody_has_begun_is_left_to_whoever_wants_it_and_to_nobody_else() {
        let copies = Copies::of(vec![(c"/".into(), Walk::Plain)]);
        assert!(copies.take(0).is_ok_and(|copy| copy.is_none()));
        copies.make();
        assert_eq!(copies.take(0).map(drop).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
    }
}
