//! A process that does nothing but wait for our end. If we end without having dismissed it, it removes what we
//! can't remove any more: control groups outlive those who made them.
//!
//! It shares our memory, because a copy would cost every start a tenth of a millisecond. So it may not use anything
//! that two threads can't use at once: it makes its system calls itself (`rustix` keeps no `errno`), allocates
//! nothing, and works on strings that were made for it.

use std::ffi::{CStr, CString, c_int, c_void};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::checked;
use crate::process::{self, Alone};
use crate::stack;

pub struct Keeper {
    pid: i32,
}

/// What the keeper works on. Leaked: it must outlive us.
struct Charge {
    folders: Vec<(CString, CString)>,
    ward: Pid,
}

impl Keeper {
    /// `folders`: control groups to be removed after our end, the innermost first.
    pub fn start(folders: &[CString], _alone: Alone) -> io::Result<Keeper> {
        let with_members = |folder: &CString| {
            let mut members = folder.as_bytes().to_vec();
            members.extend_from_slice(b"/cgroup.procs");
            Ok((folder.clone(), CString::new(members)?))
        };
        let folders: io::Result<Vec<_>> = folders.iter().map(with_members).collect();
        let charge = Box::leak(Box::new(Charge { folders: folders?, ward: rustix::process::getpid() }));
        let stack = stack::top()?;
        // SAFETY: stack and charge are never freed or touched again by us. `keep` uses neither the allocator nor
        // thread-local storage, the two things it shares with us.
        let pid = checked(unsafe {
            let flags = libc::CLONE_VM | libc::SIGCHLD;
            libc::clone(keep, stack, flags, (&raw mut *charge).cast()).into()
        })?;
        let pid = pid as i32;
        // Out of the caller's process group before there is anything to keep: what ends that must not end the keeper.
        // SAFETY: takes two integers.
        checked(unsafe { libc::setpgid(pid, pid) }.into())?;
        Ok(Keeper { pid })
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The groups are gone; it may go too.
    pub fn dismiss(self) -> io::Result<()> {
        process::kill(self.pid, libc::SIGKILL)?;
        process::wait(self.pid, false).map(drop)
    }
}

extern "C" fn keep(charge: *mut c_void) -> c_int {
    // SAFETY: `start` leaked it, and nobody changes it.
    let charge = unsafe { &*charge.cast::<Charge>() };
    match watch(charge) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn watch(charge: &Charge) -> Result<(), Errno> {
    match pidfd_open(charge.ward, PidfdFlags::empty()) {
        Ok(ward) => wait_for_end(&ward)?,
        // Gone before we looked.
        Err(Errno::SRCH) => {}
        Err(error) => return Err(error),
    }
    charge.folders.iter().try_for_each(|(folder, members)| remove_with(folder, members))
}

fn wait_for_end(process: &OwnedFd) -> Result<(), Errno> {
    loop {
        match poll(&mut [PollFd::new(process, PollFlags::IN)], None) {
            Err(Errno::INTR) => {}
            other => return other.map(drop),
        }
    }
}

/// Removes a control group, ending whatever is left in it and waiting for that end.
pub fn remove(folder: &CStr) -> io::Result<()> {
    let mut members = folder.to_bytes().to_vec();
    members.extend_from_slice(b"/cgroup.procs");
    Ok(remove_with(folder, &CString::new(members)?)?)
}

fn remove_with(folder: &CStr, members: &CStr) -> Result<(), Errno> {
    loop {
        match rustix::fs::unlinkat(CWD, folder, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::BUSY) => end_first_member(members)?,
            Err(error) => return Err(error),
        }
    }
}

/// Ends the group's first process and waits for it: with the first of a sandbox, all others end.
fn end_first_member(members: &CStr) -> Result<(), Errno> {
    let mut text = [0u8; 16];
    let length = match rustix::fs::openat(CWD, members, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => rustix::io::read(file, &mut text)?,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error),
    };
    let digits = text[..length].iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0i32, |number, digit| number.wrapping_mul(10).wrapping_add(i32::from(digit - b'0')));
    let Some(pid) = Pid::from_raw(number) else {
        // The last process is past its end, but not yet out of the group: nothing to wait on but the scheduler.
        rustix::thread::sched_yield();
        return Ok(());
    };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error),
    };
    match pidfd_send_signal(process.as_fd(), Signal::KILL) {
        Ok(()) => wait_for_end(&process),
        Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error),
    }
}
