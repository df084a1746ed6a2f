//! Output on its way to the caller: straight, or through us where there is a limit on it, or where it goes to a file:
//! the payload gets to append to it, not to change its mode, truncate it or read it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::input::is_file;

/// Pipes in place of standard output and standard error, each with what may still pass.
pub struct Pumps {
    pumps: Vec<Pump>,
    pub dropped: u64,
}

struct Pump {
    from: OwnedFd,
    /// The child's end, until the fork.
    child: Option<OwnedFd>,
    error: bool,
    left: u64,
}

impl Pumps {
    /// None unless there is a reason: then the child has the caller's own descriptors, and we cost nothing.
    pub fn prepare(limit: Option<u64>, terminal: bool) -> io::Result<Pumps> {
        let mut pumps = Vec::new();
        for (error, fd) in [(false, rustix::stdio::stdout()), (true, rustix::stdio::stderr())] {
            if !terminal && (limit.is_some() || is_file(fd)) {
                let (from, child) = pipe_with(PipeFlags::CLOEXEC)?;
                pumps.push(Pump { from, child: Some(child), error, left: limit.unwrap_or(u64::MAX) });
            }
        }
        Ok(Pumps { pumps, dropped: 0 })
    }

    pub fn enter_child(&self) {
        for pump in &self.pumps {
            let Some(child) = &pump.child else { continue };
            let moved = if pump.error { rustix::stdio::dup2_stderr(child) } else { rustix::stdio::dup2_stdout(child) };
            if moved.is_err() {
                // Nothing of the payload has run; without its pipe it must not.
                sys::process::exit(125);
            }
        }
    }

    pub fn enter_parent(mut self) -> Pumps {
        self.pumps.iter_mut().for_each(|pump| pump.child = None);
        self
    }

    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pumps.iter().map(|pump| pump.from.as_fd())
    }

    /// Moves what is there now; pipes that have ended are forgotten.
    pub fn pump(&mut self) -> io::Result<()> {
        let dropped = &mut self.dropped;
        let mut failed = None;
        self.pumps.retain_mut(|pump| match pump.once(dropped) {
            Ok(more) => more,
            Err(error) => {
                failed = Some(error);
                false
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Moves all that is left, once nobody can write any more.
    pub fn drain(&mut self) -> io::Result<()> {
        while !self.pumps.is_empty() {
            self.pump()?;
        }
        Ok(())
    }
}

impl Pump {
    /// False at the end.
    fn once(&mut self, dropped: &mut u64) -> io::Result<bool> {
        let mut ready = [PollFd::new(&self.from, PollFlags::IN)];
        if rustix::event::poll(&mut ready, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }))? == 0 {
            return Ok(true);
        }
        let mut buffer = [0u8; 64 << 10];
        let read = match rustix::io::read(&self.from, &mut buffer) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let pass = usize::try_from(self.left).unwrap_or(usize::MAX).min(read);
        self.left -= pass as u64;
        *dropped += (read - pass) as u64;
        let to = if self.error { rustix::stdio::stderr() } else { rustix::stdio::stdout() };
        if let Err(error) = write_all(to, &buffer[..pass]) {
            if error != Errno::PIPE {
                return Err(error.into());
            }
            // The reader has gone. The child is not to be stopped by that; what it still says is dropped.
            self.left = 0;
            *dropped += pass as u64;
        }
        Ok(true)
    }
}

pub fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                rustix::event::poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
