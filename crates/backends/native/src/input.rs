//! Input on its way to the payload: straight, or through us where it is a file of the host's.
//!
//! A descriptor of a file is more than its bytes: its owner may change its mode and times through it, even if it was
//! opened for reading only. So the payload gets a pipe instead.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

pub struct Input {
    /// The child's end, until the fork.
    child: Option<OwnedFd>,
    /// Ours, until all has been passed on or nobody reads any more.
    to: Option<OwnedFd>,
    waiting: Vec<u8>,
}

/// Whether a descriptor is that of a plain file.
pub fn is_file(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file())
}

impl Input {
    pub fn prepare(terminal: bool) -> io::Result<Input> {
        if terminal || !is_file(rustix::stdio::stdin()) {
            return Ok(Input { child: None, to: None, waiting: Vec::new() });
        }
        let (child, to) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only our end: a payload that does not read must not stop us.
        rustix::io::ioctl_fionbio(&to, true)?;
        Ok(Input { child: Some(child), to: Some(to), waiting: Vec::new() })
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
        self.child = None;
        self
    }

    /// Where there is something to write to, when it takes more.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.to.as_ref().map(|to| to.as_fd())
    }

    /// Moves what fits.
    pub fn pump(&mut self) -> io::Result<()> {
        let Some(to) = &self.to else { return Ok(()) };
        if self.waiting.is_empty() {
            self.waiting.reserve(32 << 10);
            match rustix::io::read(rustix::stdio::stdin(), spare_capacity(&mut self.waiting)) {
                Ok(0) => {
                    self.to = None;
                    return Ok(());
                }
                Ok(_) => {}
                Err(Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        match rustix::io::write(to, &self.waiting) {
            Ok(written) => {
                self.waiting.drain(..written);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Nobody reads any more, which is the payload's right.
            Err(Errno::PIPE) => self.to = None,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
