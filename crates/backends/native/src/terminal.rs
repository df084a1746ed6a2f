//! The sandbox's own terminal, shown in the caller's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

use crate::output::write_all;

pub struct Terminal {
    inner: OwnedFd,
    /// What the caller's terminal was set to, to be put back.
    before: Option<Termios>,
    input_open: bool,
    output_open: bool,
}

impl Terminal {
    pub fn new(inner: OwnedFd) -> Terminal {
        let caller = rustix::stdio::stdin();
        let before = tcgetattr(caller).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            raw.make_raw();
            // A terminal that can't be made raw still works, line by line.
            if tcsetattr(caller, OptionalActions::Now, &raw).is_err() {
                return Terminal { inner, before: None, input_open: true, output_open: true };
            }
        }
        let terminal = Terminal { inner, before, input_open: true, output_open: true };
        match terminal.resize() {
            Ok(()) | Err(_) => terminal,
        }
    }

    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let input = self.input_open.then(rustix::stdio::stdin);
        let output = self.output_open.then(|| self.inner.as_fd());
        input.into_iter().chain(output)
    }

    /// The inner terminal is as large as the outer one.
    pub fn resize(&self) -> io::Result<()> {
        for outer in [rustix::stdio::stdout(), rustix::stdio::stdin(), rustix::stdio::stderr()] {
            if isatty(outer) {
                return Ok(tcsetwinsize(&self.inner, tcgetwinsize(outer)?)?);
            }
        }
        Ok(())
    }

    /// Moves what is there now, both ways.
    pub fn pump(&mut self) -> io::Result<()> {
        let mut buffer = [0u8; 16 << 10];
        if self.input_open && is_ready(rustix::stdio::stdin())? {
            match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
                Ok(0) => {
                    self.input_open = false;
                    // Typed at the end of input, as a person would.
                    write_all(self.inner.as_fd(), &[4])?;
                }
                Ok(read) => write_all(self.inner.as_fd(), &buffer[..read])?,
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::IO) => self.input_open = false,
                Err(error) => return Err(error.into()),
            }
        }
        if self.output_open && is_ready(self.inner.as_fd())? {
            self.show(&mut buffer)?;
        }
        Ok(())
    }

    fn show(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match rustix::io::read(&self.inner, &mut *buffer) {
            Ok(read) if read > 0 => match write_all(rustix::stdio::stdout(), &buffer[..read]) {
                Ok(()) | Err(Errno::PIPE) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            // Nobody has the inner side open any more.
            Ok(_) | Err(Errno::IO) => {
                self.output_open = false;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut buffer = [0u8; 16 << 10];
        while self.output_open && matches!(is_ready(self.inner.as_fd()), Ok(true)) && self.show(&mut buffer).is_ok() {}
        if let Some(before) = &self.before
            && tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, before).is_err()
        {
            // The caller's terminal has gone away; there is nothing to put back.
        }
    }
}

fn is_ready(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut one = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    match poll(&mut one, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
