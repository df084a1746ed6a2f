//! Signals as data: blocked, then read, so that no code ever runs in a handler.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use serde::{Deserialize, Serialize};

use crate::checked;

/// The signals that were blocked before, to be put back for a program that is about to start.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(into = "u64", from = "u64")]
pub struct Mask(libc::sigset_t);

/// A bit for each signal, the first for the first.
impl From<Mask> for u64 {
    fn from(mask: Mask) -> u64 {
        // SAFETY: only reads the set.
        let blocked = |signal: &u32| unsafe { libc::sigismember(&mask.0, *signal as i32) == 1 };
        (1..=64).filter(blocked).fold(0, |bits, signal| bits | 1 << (signal - 1))
    }
}

impl From<u64> for Mask {
    fn from(bits: u64) -> Mask {
        // SAFETY: an all-zero set is valid memory for sigemptyset to overwrite, and only fails on a null pointer. Signals that
        // the C library keeps for itself are not added, and can't be blocked.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            (1..=64).filter(|signal| bits & 1 << (signal - 1) != 0).for_each(|signal| {
                libc::sigaddset(&mut set, signal);
            });
            Mask(set)
        }
    }
}

/// Blocks every signal that can be blocked; what arrives waits until it is read.
pub fn block_all() -> io::Result<Mask> {
    set_mask(&full())
}

/// Puts an earlier mask back.
pub fn restore(mask: &Mask) -> io::Result<()> {
    set_mask(&mask.0).map(drop)
}

fn full() -> libc::sigset_t {
    // SAFETY: an all-zero set is valid memory for sigfillset to overwrite, and it only fails on a null pointer.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&mut set);
        set
    }
}

fn set_mask(set: &libc::sigset_t) -> io::Result<Mask> {
    // SAFETY: an all-zero set is valid memory to be overwritten; both sets outlive the call.
    unsafe {
        let mut before = std::mem::zeroed();
        checked(libc::sigprocmask(libc::SIG_SETMASK, set, &mut before).into())?;
        Ok(Mask(before))
    }
}

/// Gives back its default action to the one signal that Rust's runtime ignores. Handlers end with an exec by
/// themselves, and what the caller ignores (as `nohup` does) the payload may ignore too.
pub fn reset_actions() {
    // SAFETY: SIG_DFL is always a valid action, and setting it can't fail for this signal.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Whoever started this may have ignored some, as shells do for what runs in the background; nobody here heeds that. Without SIGPIPE,
/// which Rust's runtime has its reasons for.
pub fn heed_all() {
    for signal in (1..=31).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP, libc::SIGPIPE].contains(signal)) {
        // SAFETY: SIG_DFL is always a valid action.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Waits for any of the blocked signals and takes it.
pub fn take_next() -> io::Result<i32> {
    let set = full();
    loop {
        // SAFETY: the set outlives the call; a null info is allowed.
        match checked(unsafe { libc::sigwaitinfo(&set, std::ptr::null_mut()) }.into()) {
            Ok(signal) => return Ok(signal as i32),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whatever has come so far was not meant for what is done from now on.
pub fn forget_pending() -> io::Result<()> {
    let (set, now) = (full(), libc::timespec { tv_sec: 0, tv_nsec: 0 });
    loop {
        // SAFETY: set and time outlive the call; a null info is allowed.
        match checked(unsafe { libc::sigtimedwait(&set, std::ptr::null_mut(), &now) }.into()) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A descriptor from which the blocked signals can be read, and that can be polled.
pub fn descriptor() -> io::Result<OwnedFd> {
    let set = full();
    // SAFETY: -1 asks for a new descriptor; the set outlives the call.
    let fd = checked(unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) }.into())?;
    // SAFETY: the kernel made this descriptor for this call; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// The next signal waiting at `descriptor`, if any.
pub fn read(descriptor: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    // SAFETY: an all-zero record is a valid value.
    let mut record: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the kernel writes at most `size` bytes to a record of that size.
    match checked(unsafe { libc::read(descriptor.as_raw_fd(), (&raw mut record).cast(), size) } as libc::c_long) {
        Ok(read) if read as usize == size => Ok(Some(record.ssi_signo as i32)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Stops this process as a terminal's stop key would, until someone continues it.
pub fn stop_self() -> io::Result<()> {
    // SAFETY: raise takes an integer; SIGSTOP can be neither blocked nor handled.
    checked(unsafe { libc::raise(libc::SIGSTOP) }.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::process::{Ended, in_a_copy, kill};

    #[test]
    fn what_came_before_is_forgotten_and_what_comes_after_is_heard() {
        let ended = in_a_copy(|| {
            let own = std::process::id().cast_signed();
            let heard = || -> io::Result<i32> {
                block_all()?;
                let signals = descriptor()?;
                for signal in [libc::SIGTSTP, libc::SIGUSR1, libc::SIGUSR1, libc::SIGTERM] {
                    kill(own, signal)?;
                }
                forget_pending()?;
                if read(signals.as_fd())?.is_some() {
                    return Ok(1);
                }
                kill(own, libc::SIGUSR2)?;
                Ok(i32::from(read(signals.as_fd())? != Some(libc::SIGUSR2)))
            };
            heard().unwrap_or(2)
        });
        assert_eq!(ended.expect("a copy"), Ended::Exited(0));
    }

    #[test]
    fn a_mask_survives_as_a_number() {
        for bits in [0, 1, 1 << 14 | 1 << 1, 1 << 63 | 1] {
            assert_eq!(u64::from(Mask::from(bits)), bits, "{bits:x}");
        }
    }
}
