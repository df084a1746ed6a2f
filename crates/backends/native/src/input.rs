//! Input on its way to the payload: straight, or through us where we have read of it, or where it is a file of the host's.
//!
//! A descriptor of a file is more than its bytes: its owner may change its mode and times through it, even if it was
//! opened for reading only. So the payload gets a pipe instead.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::PollFlags;
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::output::{handed_over, is_ready};

pub struct Input {
    /// The child's end, until the fork.
    child: Option<OwnedFd>,
    /// Ours, until all has been passed on or nobody reads any more.
    to: Option<OwnedFd>,
    waiting: Vec<u8>,
    /// Of that, how much it has.
    taken: usize,
    /// The payload's end again, to know at the end what it has not read.
    unread: Option<OwnedFd>,
    /// After that comes what the caller's input has.
    more: bool,
}

/// Whether a descriptor is that of a plain file.
pub fn is_file(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file())
}

impl Input {
    /// `begin`: was read already, and comes before the rest.
    pub fn prepare(terminal: bool, begin: Vec<u8>) -> io::Result<Input> {
        if terminal || begin.is_empty() && !is_file(rustix::stdio::stdin()) {
            return Ok(Input { child: None, to: None, waiting: begin, taken: 0, unread: None, more: true });
        }
        let (child, to) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only our end: a payload that does not read must not stop us.
        rustix::io::ioctl_fionbio(&to, true)?;
        Ok(Input { child: Some(child), to: Some(to), waiting: begin, taken: 0, unread: None, more: true })
    }

    /// This and nothing else: the caller's own input is not for it.
    pub fn only(begin: Vec<u8>) -> io::Result<Input> {
        let (child, to) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&to, true)?;
        let to = (!begin.is_empty()).then_some(to);
        Ok(Input { child: Some(child), to, waiting: begin, taken: 0, unread: None, more: false })
    }

    /// As for output.
    pub fn give_to(&self, user: u32, group: u32) -> io::Result<()> {
        self.child.as_ref().map_or(Ok(()), |child| handed_over(child, user, group))
    }

    /// What a program is to have as its input.
    pub fn childs(&self) -> BorrowedFd<'_> {
        self.child.as_ref().map_or(rustix::stdio::stdin(), |child| child.as_fd())
    }

    pub fn enter_child(&self) {
        if let Some(child) = &self.child
            && rustix::stdio::dup2_stdin(child).is_err()
        {
            // Nothing of the payload has run; without its pipe it must not.
            sys::process::exit(125);
        }
    }

    pub fn enter_parent(mut self) -> Input {
        self.unread = self.child.take();
        self
    }

    /// Puts back what the payload did not read, where that can be done: whoever shares the file goes on from there.
    pub fn give_back(&self) {
        let Some(pipe) = &self.unread else { return };
        if !self.more || !is_file(rustix::stdio::stdin()) {
            return;
        }
        let left = rustix::io::ioctl_fionread(pipe).unwrap_or_default() + (self.waiting.len() - self.taken) as u64;
        let back = i64::try_from(left).unwrap_or_default();
        // A file that can't be moved in is one that nobody goes on with.
        rustix::fs::seek(rustix::stdio::stdin(), rustix::fs::SeekFrom::Current(-back)).unwrap_or_default();
    }

    /// What to wait for: a descriptor, and whether to write to it rather than read.
    pub fn wanted(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.to.as_ref().map(|to| match self.waiting.is_empty() {
            true => (rustix::stdio::stdin(), false),
            false => (to.as_fd(), true),
        })
    }

    /// Moves what there is, and what fits.
    pub fn pump(&mut self) -> io::Result<()> {
        let Some(to) = &self.to else { return Ok(()) };
        if self.waiting.is_empty() {
            // A pipe that nobody writes to must not stop us either.
            if !is_ready(rustix::stdio::stdin(), PollFlags::IN)? {
                return Ok(());
            }
            self.waiting.reserve(32 << 10);
            match rustix::io::read(rustix::stdio::stdin(), spare_capacity(&mut self.waiting)) {
                Ok(0) => {
                    self.to = None;
                    return Ok(());
                }
                Ok(_) => {}
                Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        match rustix::io::write(to, &self.waiting[self.taken..]) {
            Ok(written) => {
                self.taken += written;
                if self.taken >= self.waiting.len() {
                    self.waiting.clear();
                    self.taken = 0;
                    if !self.more {
                        self.to = None;
                    }
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Nobody reads any more, which is the payload's right.
            Err(Errno::PIPE) => self.to = None,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
