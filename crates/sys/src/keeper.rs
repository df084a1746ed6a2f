//! A process that does nothing but wait for the end: the sandbox's, when we tell it to, or our own, even if we are
//! killed. Then it removes what would be left: control groups outlive those who made them. It can also hold what takes long to
//! be taken apart, so that this happens at its end and not at ours.
//!
//! It shares our memory, because a copy would cost every start a tenth of a millisecond. So it may not use anything
//! that two threads can't use at once: it makes its system calls itself (`rustix` keeps no `errno`), allocates
//! nothing, and works on strings that were made for it.

use std::ffi::{CStr, CString, c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::checked;
use crate::process::{self, Alone, Ended};
use crate::stack;

pub struct Keeper {
    pid: i32,
    /// Through which it learns whose end to wait for besides ours.
    word: OwnedFd,
}

/// What the keeper works on. Leaked: it must outlive us.
struct Charge {
    folders: Vec<(CString, CString, CString)>,
    ward: Pid,
    /// Our end of `word`, in the keeper's own table of descriptors.
    ear: RawFd,
    /// In that table as well: open until it ends.
    holds: Option<RawFd>,
}

/// Beyond all numbers of processes. Words add up until they are read.
const NOW: u64 = 1 << 32;

impl Keeper {
    /// `folders`: control groups to be removed after our end, the innermost first. `holds`: stays open for as long as it is there,
    /// whatever becomes of ours.
    pub fn start(folders: &[CString], holds: Option<BorrowedFd<'_>>, _alone: Alone) -> io::Result<Keeper> {
        let with_members = |folder: &CString| {
            let mut members = folder.as_bytes().to_vec();
            members.extend_from_slice(b"/cgroup.procs");
            Ok((folder.clone(), CString::new(members)?, state_of(folder)?))
        };
        let folders: io::Result<Vec<_>> = folders.iter().map(with_members).collect();
        let word = eventfd(0, EventfdFlags::CLOEXEC)?;
        let holds = holds.map(|held| held.as_raw_fd());
        let charge = Charge { folders: folders?, ward: rustix::process::getpid(), ear: word.as_raw_fd(), holds };
        let charge = Box::leak(Box::new(charge));
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
        Ok(Keeper { pid, word })
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Has the groups removed as soon as `first`, a child of ours that is not waited for yet, has ended.
    pub fn remove_after(&self, first: i32) -> io::Result<()> {
        // Beside us: some kernels would have it take our processor while another has nothing to do. Where that can't be had, it is only
        // later.
        let elsewhere = process::stay_elsewhere(self.pid);
        let said = self.say(first as u64);
        // It has been woken there. If others run there, it may come back.
        match elsewhere.and_then(|all| all.map_or(Ok(()), |all| process::run_anywhere(self.pid, &all))) {
            Ok(()) | Err(_) => said,
        }
    }

    /// Waits until it has removed the groups, which nobody is in any more.
    pub fn finish(self) -> io::Result<()> {
        // It may have looked for `first` only when that was waited for, and its number somebody else's.
        self.say(NOW)?;
        match process::wait(self.pid, false)? {
            Some((_, Ended::Exited(0), _)) => Ok(()),
            Some((_, Ended::Exited(errno), _)) => Err(io::Error::from_raw_os_error(errno)),
            other => Err(io::Error::other(format!("their keeper was ended: {other:?}"))),
        }
    }

    /// For one that has no groups: what it held is let go of, however it ended.
    pub fn let_go(self) -> io::Result<()> {
        self.say(NOW)?;
        process::wait(self.pid, false).map(drop)
    }

    fn say(&self, word: u64) -> io::Result<()> {
        rustix::io::write(&self.word, &word.to_ne_bytes())?;
        Ok(())
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
        Err(error) => error.raw_os_error(),
    }
}

fn watch(charge: &Charge) -> Result<(), Errno> {
    let ear = forget_all_but(charge.ear, charge.holds)?;
    wait_for_either(charge.ward, &ear)?;
    charge.folders.iter().try_for_each(|(folder, members, state)| remove_with(folder, members, state))
}

/// Closes our copies of everything else: a pipe that the keeper held would never end for its reader.
fn forget_all_but(ear: RawFd, holds: Option<RawFd>) -> Result<OwnedFd, Errno> {
    let close = |first: u32, last: u32| -> Result<(), Errno> {
        if first > last {
            return Ok(());
        }
        // SAFETY: the keeper's table of descriptors is its own, and nothing in it but `ear` and `holds` is used.
        unsafe { syscalls::syscall!(syscalls::Sysno::close_range, first, last, 0) }
            .map_err(|error| Errno::from_raw_os_error(error.into_raw()))?;
        Ok(())
    };
    let other = holds.unwrap_or(ear);
    let [lower, upper] = [ear.min(other) as u32, ear.max(other) as u32];
    if lower > 0 {
        close(0, lower - 1)?;
    }
    if upper > 0 {
        close(lower + 1, upper - 1)?;
    }
    close(upper + 1, u32::MAX)?;
    // SAFETY: open in this table, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(ear) })
}

/// Until the ward has ended, or the process that it has named, or until it says so.
fn wait_for_either(ward: Pid, ear: &OwnedFd) -> Result<(), Errno> {
    let Some(ward) = open_process(ward)? else { return Ok(()) };
    wait_for_any(&[&ward, ear])?;
    if has_ended(&ward)? {
        return Ok(());
    }
    let mut word = [0u8; 8];
    rustix::io::read(ear, &mut word)?;
    let word = u64::from_ne_bytes(word);
    if word >= NOW {
        return Ok(());
    }
    let named = i32::try_from(word).ok().and_then(Pid::from_raw).ok_or(Errno::INVAL)?;
    match open_process(named)? {
        Some(named) => wait_for_any(&[&ward, &named, ear]),
        None => Ok(()),
    }
}

/// None if it has ended and been waited for already.
fn open_process(pid: Pid) -> Result<Option<OwnedFd>, Errno> {
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => Ok(Some(process)),
        // Or its number is a thread's of somebody else by now.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn has_ended(process: &OwnedFd) -> Result<bool, Errno> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    Ok(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now))? > 0)
}

fn wait_for_any(any: &[&OwnedFd]) -> Result<(), Errno> {
    // At most three, and nothing may be allocated here.
    let last = any.len() - 1;
    let mut list = [0, 1, 2].map(|at: usize| PollFd::new(any[at.min(last)], PollFlags::IN));
    loop {
        match poll(&mut list, None) {
            Err(Errno::INTR) => {}
            other => return other.map(drop),
        }
    }
}

/// Removes a control group, ending whatever is left in it and waiting for that end.
pub fn remove(folder: &CStr) -> io::Result<()> {
    let mut members = folder.to_bytes().to_vec();
    members.extend_from_slice(b"/cgroup.procs");
    Ok(remove_with(folder, &CString::new(members)?, &state_of(folder)?)?)
}

/// Where a group of the older kind is told to stand still, if it can be.
fn state_of(folder: &CStr) -> io::Result<CString> {
    let mut state = folder.to_bytes().to_vec();
    state.extend_from_slice(b"/freezer.state");
    Ok(CString::new(state)?)
}

/// Who stands still in a group of the older kind can't even be ended.
fn thaw(state: &CStr) -> Result<(), Errno> {
    match rustix::fs::openat(CWD, state, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => rustix::io::write(file, b"THAWED").map(drop),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

fn remove_with(folder: &CStr, members: &CStr, state: &CStr) -> Result<(), Errno> {
    loop {
        match rustix::fs::unlinkat(CWD, folder, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::BUSY) => {
                thaw(state)?;
                end_first_member(members)?;
            }
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
        // The last process is past its end, but not yet out of the group, and nothing tells when it is. A moment's sleep, not
        // a yield: under real-time scheduling, who only yields never lets it finish.
        let moment = rustix::time::Timespec { tv_sec: 0, tv_nsec: 50_000 };
        // Cut short by a signal, it only looks again earlier.
        drop(rustix::thread::nanosleep(&moment));
        return Ok(());
    };
    let Some(process) = open_process(pid)? else { return Ok(()) };
    match pidfd_send_signal(process.as_fd(), Signal::KILL) {
        Ok(()) => wait_for_any(&[&process]),
        Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error),
    }
}
