//! Installing a filter, and answering for the kernel what it asks about.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::checked;
use crate::filter::Program;

/// Puts this process, and all it starts, behind `program` for good. The listener is told of refused calls.
/// Requires `forbid_new_privileges`.
pub fn install(program: &Program) -> io::Result<OwnedFd> {
    let header = libc::sock_fprog {
        len: u16::try_from(program.0.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?,
        filter: program.0.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies `len` instructions, which `program` holds; it does not write to them.
    let fd = checked(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const header,
        )
    })?;
    // SAFETY: the kernel made this descriptor for this call; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// The same without a listener, for a program that asks nobody.
pub fn install_alone(program: &Program) -> io::Result<()> {
    let header = libc::sock_fprog {
        len: u16::try_from(program.0.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?,
        filter: program.0.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies `len` instructions, which `program` holds; it does not write to them.
    checked(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const header) }).map(drop)
}

/// What a parent answers the call below with: no kernel gives this number for it, so whoever gets it knows that the
/// filter asked, and that the parent said no.
pub const REFUSED_BY_PARENT: i32 = libc::EHWPOISON;
pub const REFUSED_CALL: u32 = libc::SYS_bpf as u32;

/// Makes a call that no filter of ours lets through and that does nothing where there is none. The number of its error.
pub fn ask_for_what_is_refused() -> i32 {
    // SAFETY: bpf(2) with a command that does not exist and no attributes reads and writes nothing of ours.
    let result = checked(unsafe { libc::syscall(libc::SYS_bpf, i32::MAX, 0usize, 0u32) });
    result.err().and_then(|error| error.raw_os_error()).unwrap_or(0)
}

/// A call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The kernel's own mark for this very call.
    pub id: u64,
    /// The calling thread, numbered as we see it.
    pub thread: i32,
    pub number: u32,
    pub architecture: u32,
    pub arguments: [u64; 6],
}

/// What the caller gets to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Fail(i32),
    /// Succeeds with nothing done.
    Pretend,
    /// The kernel does as it was asked. Never the end of a check: what it was asked may have been changed since.
    Proceed,
}

// From linux/seccomp.h: _IOWR('!', 0, seccomp_notif) and so on.
const RECEIVE: libc::c_ulong = 0xC050_2100;
const SEND: libc::c_ulong = 0xC018_2101;
const STILL_VALID: libc::c_ulong = 0x4008_2102;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
const WAKE_ON_SAME_CPU: libc::c_ulong = 1;
const PROCEED: u32 = 1;

/// The next waiting call. `None`: its process was killed meanwhile, or nothing is left to wait for.
pub fn receive(listener: BorrowedFd<'_>) -> io::Result<Option<Asked>> {
    // SAFETY: the kernel requires an all-zero record, and fills it.
    let mut record: libc::seccomp_notif = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: RECEIVE writes one record, which outlives the call.
    match checked(unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE as _, &raw mut record) }.into()) {
        Ok(_) => Ok(Some(Asked {
            id: record.id,
            thread: record.pid as i32,
            number: record.data.nr as u32,
            architecture: record.data.arch,
            arguments: record.data.args,
        })),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the call still waits: only then was what we read about its thread about that thread.
pub fn still_waits(listener: BorrowedFd<'_>, asked: &Asked) -> bool {
    // SAFETY: STILL_VALID reads one 64-bit id, which outlives the call.
    unsafe { libc::ioctl(listener.as_raw_fd(), STILL_VALID as _, &raw const asked.id) == 0 }
}

/// Answers a waiting call. A caller that was killed meanwhile needs none.
pub fn answer(listener: BorrowedFd<'_>, asked: &Asked, answer: Answer) -> io::Result<()> {
    let response = libc::seccomp_notif_resp {
        id: asked.id,
        val: 0,
        error: match answer {
            Answer::Fail(errno) => -errno,
            Answer::Pretend | Answer::Proceed => 0,
        },
        flags: match answer {
            Answer::Proceed => PROCEED,
            Answer::Fail(_) | Answer::Pretend => 0,
        },
    };
    // SAFETY: SEND reads one response, which outlives the call.
    match checked(unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw const response) }.into()) {
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Lets caller and listener hand over on one processor, where the kernel knows how (6.6); faster, nothing else.
pub fn prefer_same_cpu(listener: BorrowedFd<'_>) -> bool {
    // SAFETY: SET_FLAGS takes an integer.
    unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS as _, WAKE_ON_SAME_CPU) == 0 }
}

/// Whether this kernel knows listeners at all.
pub fn can_notify() -> bool {
    let mut sizes: [u16; 3] = [0; 3];
    const GET_NOTIF_SIZES: libc::c_uint = 3;
    // SAFETY: writes three 16-bit sizes, which outlive the call.
    unsafe { libc::syscall(libc::SYS_seccomp, GET_NOTIF_SIZES, 0, sizes.as_mut_ptr()) == 0 }
}
