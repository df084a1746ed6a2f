//! What a container says, on its way to the caller, and what the caller says on its way to it: over one connection.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use model::Outlet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// A pipe or terminal that is ready takes this much without blocking. We must never block: the limits are ours to hold.
const AT_ONCE: usize = 4096;
const AT_ONCE_TO_A_TERMINAL: usize = 256;
/// So long nothing must come until what is held back is shown to a person.
const REST: Duration = Duration::from_millis(30);

/// One stream of the caller's.
pub struct Out {
    to: BorrowedFd<'static>,
    outlet: Option<Box<dyn Outlet>>,
    left: u64,
    /// May go, and is not yet taken. Nothing more is read until it is.
    waiting: Vec<u8>,
    taken: usize,
    /// Nobody reads it any more.
    closed: bool,
    person: bool,
    rest: Option<Instant>,
    pub dropped: u64,
    pub passed: u64,
}

impl Out {
    pub fn new(to: BorrowedFd<'static>, outlet: Option<Box<dyn Outlet>>, limit: Option<u64>, person: bool) -> Out {
        let left = limit.unwrap_or(u64::MAX);
        let (waiting, rest) = (Vec::new(), None);
        Out { to, outlet, left, waiting, taken: 0, closed: false, person, rest, dropped: 0, passed: 0 }
    }

    pub fn waits(&self) -> Option<BorrowedFd<'static>> {
        (self.left_over() > 0).then_some(self.to)
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// When what is held back is let go.
    pub fn next(&self) -> Option<Instant> {
        self.rest
    }

    pub fn let_go(&mut self, now: Instant) {
        if self.rest.is_some_and(|moment| now >= moment)
            && let Some(outlet) = &mut self.outlet
        {
            self.rest = None;
            outlet.rest(&mut self.waiting);
        }
    }

    pub fn say(&mut self, bytes: &[u8]) {
        let pass = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        self.left -= pass as u64;
        self.dropped += (bytes.len() - pass) as u64;
        match &mut self.outlet {
            Some(outlet) => {
                outlet.pass(&bytes[..pass], &mut self.waiting);
                self.rest = (self.person && outlet.holds()).then(|| Instant::now() + REST);
            }
            None => self.waiting.extend_from_slice(&bytes[..pass]),
        }
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        if let Some(mut outlet) = self.outlet.take() {
            outlet.end(&mut self.waiting);
        }
    }

    fn left_over(&self) -> usize {
        self.waiting.len() - self.taken
    }

    pub fn pump(&mut self) -> io::Result<()> {
        let most = if self.person { AT_ONCE_TO_A_TERMINAL } else { AT_ONCE };
        while self.left_over() > 0 && !self.closed && is_ready(self.to, PollFlags::OUT)? {
            let now = self.left_over().min(most);
            match rustix::io::write(self.to, &self.waiting[self.taken..self.taken + now]) {
                Ok(written) => {
                    self.taken += written;
                    self.passed += written as u64;
                }
                Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
                Err(Errno::PIPE) => self.closed = true,
                Err(error) => return Err(error.into()),
            }
        }
        if self.closed {
            self.dropped += self.left_over() as u64;
            self.taken = self.waiting.len();
        }
        if self.left_over() == 0 {
            self.waiting.clear();
            self.taken = 0;
        }
        Ok(())
    }
}

/// Both ways between the caller and the container.
pub struct Line {
    stream: UnixStream,
    /// What the engine said that is no whole frame yet.
    heard: Vec<u8>,
    frames: bool,
    pub output: Out,
    /// None where both go to the same place: they then come in the order in which they were said.
    pub error: Option<Out>,
    typed: Vec<u8>,
    input_open: bool,
    /// The container's input is closed as soon as all of it has arrived.
    half_closed: bool,
    pub ended: bool,
}

/// Before each piece: which stream it is of, and how long.
const FRAME: usize = 8;
const ERROR_STREAM: u8 = 2;
const MOST_HEARD: usize = 64 << 10;

impl Line {
    pub fn new(
        (stream, heard): (UnixStream, Vec<u8>),
        frames: bool,
        output: Out,
        error: Option<Out>,
        typed: Vec<u8>,
    ) -> io::Result<Line> {
        stream.set_nonblocking(true)?;
        let mut line =
            Line { stream, heard, frames, output, error, typed, input_open: true, half_closed: false, ended: false };
        line.deliver();
        Ok(line)
    }

    fn outs(&self) -> impl Iterator<Item = &Out> {
        std::iter::once(&self.output).chain(&self.error)
    }

    pub fn outs_mut(&mut self) -> impl Iterator<Item = &mut Out> {
        std::iter::once(&mut self.output).chain(&mut self.error)
    }

    pub fn dropped(&self) -> u64 {
        self.outs().map(|out| out.dropped).sum()
    }

    pub fn passed(&self) -> u64 {
        self.outs().map(|out| out.passed).sum()
    }

    pub fn next(&self) -> Option<Instant> {
        self.outs().filter_map(Out::next).min()
    }

    /// It says something that nobody reads any more.
    pub fn is_unheard(&self) -> bool {
        self.outs().any(Out::is_closed)
    }

    /// What to wait for: a descriptor, and whether to write to it rather than read.
    pub fn wanted(&self) -> Vec<(BorrowedFd<'_>, bool)> {
        let mut all: Vec<(BorrowedFd<'_>, bool)> =
            self.outs().filter_map(|out| out.waits().map(|to| (to, true))).collect();
        if all.is_empty() && !self.ended {
            all.push((self.stream.as_fd(), false));
        }
        if !self.typed.is_empty() {
            all.push((self.stream.as_fd(), true));
        } else if self.input_open {
            all.push((rustix::stdio::stdin(), false));
        }
        all
    }

    /// Moves what can be moved without waiting.
    pub fn pump(&mut self) -> io::Result<()> {
        self.outs_mut().try_for_each(Out::pump)?;
        if !self.ended && self.outs().all(|out| out.waits().is_none()) {
            self.hear()?;
            self.outs_mut().try_for_each(Out::pump)?;
        }
        self.pass_input()
    }

    fn hear(&mut self) -> io::Result<()> {
        let mut buffer = [0u8; 32 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => {
                self.ended = true;
                self.outs_mut().for_each(Out::end);
            }
            Ok(read) => {
                self.heard.extend_from_slice(&buffer[..read]);
                self.deliver();
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // As good as an end: whether the engine is still there is asked of others.
            Err(_) => {
                self.ended = true;
                self.outs_mut().for_each(Out::end);
            }
        }
        Ok(())
    }

    fn deliver(&mut self) {
        if !self.frames {
            self.output.say(&self.heard);
            self.heard.clear();
            return;
        }
        loop {
            let Some(head) = self.heard.first_chunk::<FRAME>() else { return };
            let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
            let there = self.heard.len() - FRAME;
            // A long piece is passed on as it comes.
            let now = length.min(there);
            if now < length && there < MOST_HEARD {
                return;
            }
            let kind = head[0];
            let out = match &mut self.error {
                Some(error) if kind == ERROR_STREAM => error,
                _ => &mut self.output,
            };
            out.say(&self.heard[FRAME..FRAME + now]);
            let rest = (length - now) as u32;
            match rest {
                0 => drop(self.heard.drain(..FRAME + now)),
                _ => {
                    self.heard.drain(FRAME..FRAME + now);
                    self.heard[4..FRAME].copy_from_slice(&rest.to_be_bytes());
                    return;
                }
            }
        }
    }

    fn pass_input(&mut self) -> io::Result<()> {
        if self.typed.is_empty() && self.input_open && is_ready(rustix::stdio::stdin(), PollFlags::IN)? {
            let mut buffer = [0u8; 32 << 10];
            match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
                Ok(0) => {
                    self.input_open = false;
                    if !self.frames {
                        // Typed at the end of input, as a person would.
                        self.typed.push(4);
                    }
                }
                Ok(read) => self.typed.extend_from_slice(&buffer[..read]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                // A terminal that is not ours at the moment, or gone.
                Err(_) => self.input_open = false,
            }
        }
        while !self.typed.is_empty() {
            match self.stream.write(&self.typed) {
                Ok(written) => drop(self.typed.drain(..written)),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                    return Ok(());
                }
                // Nobody reads any more, which is the payload's right.
                Err(_) => {
                    self.typed.clear();
                    self.input_open = false;
                }
            }
        }
        if !self.input_open && !self.half_closed && self.frames {
            self.half_closed = true;
            match self.stream.shutdown(std::net::Shutdown::Write) {
                // Gone already.
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Passes on what is left once the container has ended. Waits for the caller only if `patient`, and not past a signal.
    pub fn drain(&mut self, patient: bool, signals: BorrowedFd<'_>) -> io::Result<()> {
        self.input_open = false;
        self.typed.clear();
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            self.outs_mut().try_for_each(Out::pump)?;
            let waits: Vec<BorrowedFd<'_>> = self.outs().filter_map(Out::waits).collect();
            if self.ended && waits.is_empty() {
                return Ok(());
            }
            let mut list = vec![PollFd::from_borrowed_fd(signals, PollFlags::IN)];
            list.extend(waits.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::OUT)));
            if waits.is_empty() {
                list.push(PollFd::new(&self.stream, PollFlags::IN));
            }
            // The engine closes the line when all is said; a line that stays open has nothing more to say.
            let second = Timespec { tv_sec: 1, tv_nsec: 0 };
            let ready = match poll(&mut list, if patient && !waits.is_empty() { None } else { Some(&second) }) {
                Err(Errno::INTR) => continue,
                ready => ready?,
            };
            let signalled = !list[0].revents().is_empty();
            if ready == 0 || (signalled && !waits.is_empty()) || (Instant::now() > until && waits.is_empty()) {
                self.ended = true;
                self.outs_mut().for_each(Out::end);
                return self.outs_mut().try_for_each(Out::pump);
            }
            if waits.is_empty() {
                self.hear()?;
            }
        }
    }
}

/// Whether a descriptor can be read or written right now.
fn is_ready(fd: BorrowedFd<'_>, flags: PollFlags) -> io::Result<bool> {
    let mut one = [PollFd::from_borrowed_fd(fd, flags)];
    match poll(&mut one, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether two descriptors lead to the same place.
pub fn are_one(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let what = |fd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok();
    what(one).is_some_and(|seen| what(other) == Some(seen))
}
