//! A process that does nothing but wait for our end. If we end without having dismissed it, it removes what we
//! can't remove any more: control groups outlive those who made them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use sys::process::{self, Alone};

pub struct Keeper {
    pid: i32,
    line: OwnedFd,
}

impl Keeper {
    pub fn start(folders: &[PathBuf], alone: Alone) -> io::Result<Keeper> {
        let (ear, line) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        match process::fork(alone)? {
            Some(pid) => Ok(Keeper { pid, line }),
            None => watch(ear, folders),
        }
    }

    /// The groups are gone; it may go too.
    pub fn dismiss(self) -> io::Result<()> {
        rustix::io::write(&self.line, b".")?;
        process::wait(self.pid, false).map(drop)
    }
}

fn watch(ear: OwnedFd, folders: &[PathBuf]) -> ! {
    let listen = || -> io::Result<bool> {
        // A signal to the caller's process group must not reach us, nor a reader of its output wait for us.
        process::new_session()?;
        process::close_all_from(0, ear.as_raw_fd())?;
        loop {
            match rustix::io::read(&ear, &mut [0u8; 1]) {
                Err(Errno::INTR) => {}
                read => return Ok(read? == 1),
            }
        }
    };
    match listen() {
        Ok(true) => process::exit(0),
        Ok(false) | Err(_) => {}
    }
    let removed = folders.iter().rev().all(|folder| remove(folder).is_ok());
    process::exit(if removed { 0 } else { 1 })
}

/// Removes a group, ending whatever is left in it and waiting for that end.
pub fn remove(folder: &Path) -> io::Result<()> {
    loop {
        match rustix::fs::rmdir(folder) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::BUSY) => end_members(folder)?,
            Err(error) => return Err(error.into()),
        }
    }
}

fn end_members(folder: &Path) -> io::Result<()> {
    let members = match std::fs::read_to_string(folder.join("cgroup.procs")) {
        Ok(members) => members,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for pid in members.lines().filter_map(|line| line.parse().ok()) {
        // A number that means nobody any more, or is not ours to see, leaves the group without our help.
        let Ok(handle) = process::open(pid) else {
            continue;
        };
        match process::signal(handle.as_fd(), 9) {
            Ok(()) => {
                poll(&mut [PollFd::new(&handle, PollFlags::IN)], None)?;
            }
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
    }
    if members.is_empty() {
        // Its last process is past its end, but not yet out of the group: nothing to wait on but the scheduler.
        std::thread::yield_now();
    }
    Ok(())
}
