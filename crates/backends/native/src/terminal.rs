//! The sandbox's own terminal, shown in the caller's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

use model::Outlet;

use crate::output::is_ready;

pub struct Terminal {
    inner: OwnedFd,
    /// What is shown passes through it.
    outlet: Option<Box<dyn Outlet>>,
    /// What the caller's terminal was set to, to be put back.
    before: Option<Termios>,
    /// Typed and not yet taken; shown and not yet taken. Nothing more is read on a side until it is.
    typed: Vec<u8>,
    shown: Vec<u8>,
    /// Bytes that the caller took.
    passed: u64,
    input_open: bool,
    output_open: bool,
    /// When what is held back is let go: a person looks, and something may be a word that they wait for.
    rest: Option<Instant>,
}

/// So long nothing must come.
const REST: Duration = Duration::from_millis(30);

/// A terminal that is ready takes this much without blocking. We must never block: the limits are ours to hold.
const AT_ONCE: usize = 256;

impl Terminal {
    pub fn new(inner: OwnedFd, outlet: Option<Box<dyn Outlet>>) -> io::Result<Terminal> {
        rustix::io::ioctl_fionbio(&inner, true)?;
        let caller = rustix::stdio::stdin();
        let mut before = tcgetattr(caller).ok();
        if let Some(set) = &before {
            let mut raw = set.clone();
            raw.make_raw();
            // A terminal that can't be made raw still works, line by line.
            if tcsetattr(caller, OptionalActions::Now, &raw).is_err() {
                before = None;
            }
        }
        let (typed, shown) = (Vec::new(), Vec::new());
        let terminal = Terminal {
            inner,
            outlet,
            before,
            typed,
            shown,
            passed: 0,
            input_open: true,
            output_open: true,
            rest: None,
        };
        terminal.resize()?;
        Ok(terminal)
    }

    /// What to wait for: a descriptor, and whether to write to it rather than read.
    pub fn wanted(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
        let input = match self.typed.is_empty() {
            true => self.input_open.then(|| (rustix::stdio::stdin(), false)),
            false => Some((self.inner.as_fd(), true)),
        };
        let output = match self.shown.is_empty() {
            true => self.output_open.then(|| (self.inner.as_fd(), false)),
            false => Some((rustix::stdio::stdout(), true)),
        };
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

    /// Moves what can be moved without waiting, both ways.
    pub fn pump(&mut self) -> io::Result<()> {
        let mut buffer = [0u8; 16 << 10];
        if self.typed.is_empty() && self.input_open && is_ready(rustix::stdio::stdin(), PollFlags::IN)? {
            match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
                Ok(0) => {
                    self.input_open = false;
                    // Typed at the end of input, as a person would.
                    self.typed.push(4);
                }
                Ok(read) => self.typed.extend_from_slice(&buffer[..read]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::IO) => self.input_open = false,
                Err(error) => return Err(error.into()),
            }
        }
        if !self.typed.is_empty() {
            match rustix::io::write(&self.inner, &self.typed) {
                Ok(written) => drop(self.typed.drain(..written)),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::IO) => self.typed.clear(),
                Err(error) => return Err(error.into()),
            }
        }
        self.show(&mut buffer)
    }

    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// When [`Terminal::let_go`] is due.
    pub fn next(&self) -> Option<Instant> {
        self.rest
    }

    /// Shows what was held back, if nothing came for a while.
    pub fn let_go(&mut self, now: Instant) -> io::Result<()> {
        if self.rest.is_some_and(|moment| now >= moment) {
            self.rest = None;
            if let Some(outlet) = &mut self.outlet {
                outlet.rest(&mut self.shown);
            }
            return self.show(&mut []);
        }
        Ok(())
    }

    /// Nothing more will be shown than what was held back.
    fn end(&mut self) {
        self.output_open = false;
        if let Some(mut outlet) = self.outlet.take() {
            outlet.end(&mut self.shown);
        }
    }

    fn show(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        if self.shown.is_empty() && self.output_open && !buffer.is_empty() {
            match rustix::io::read(&self.inner, &mut *buffer) {
                Ok(read) if read > 0 => match &mut self.outlet {
                    None => self.shown.extend_from_slice(&buffer[..read]),
                    Some(outlet) => {
                        outlet.pass(&buffer[..read], &mut self.shown);
                        self.rest = outlet.holds().then(|| Instant::now() + REST);
                    }
                },
                Err(Errno::INTR | Errno::AGAIN) => {}
                // Nobody has the inner side open any more.
                Ok(_) | Err(Errno::IO) => self.end(),
                Err(error) => return Err(error.into()),
            }
        }
        while !self.shown.is_empty() && is_ready(rustix::stdio::stdout(), PollFlags::OUT)? {
            match rustix::io::write(rustix::stdio::stdout(), &self.shown[..self.shown.len().min(AT_ONCE)]) {
                Ok(written) => {
                    self.passed += written as u64;
                    self.shown.drain(..written);
                }
                Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
                Err(Errno::PIPE) => self.shown.clear(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // What was said at the very end is still shown, as far as somebody takes it.
        let mut buffer = [0u8; 16 << 10];
        while self.output_open && self.show(&mut buffer).is_ok() && self.shown.is_empty() {
            if !matches!(is_ready(self.inner.as_fd(), PollFlags::IN), Ok(true)) {
                break;
            }
        }
        // All that could be read is: whoever still has the inner side open will not be heard.
        if self.outlet.is_some() {
            self.end();
            if self.show(&mut buffer).is_err() {
                // The caller's terminal has gone away; there is nobody to show it to.
            }
        }
        if let Some(before) = &self.before
            && tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before).is_err()
        {
            // The caller's terminal has gone away; there is nothing to put back.
        }
    }
}
