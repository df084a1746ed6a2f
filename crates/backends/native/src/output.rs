//! Output on its way to the caller: straight, or through us where it must pass an outlet, where there is a limit on it,
//! or where it goes to a file: the payload gets to append to it, not to change its mode, truncate it or read it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use model::{Outlet, Streams};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::input::is_file;

/// Pipes in place of standard output and standard error, each with what may still pass.
pub struct Pumps {
    pumps: Vec<Pump>,
    pub dropped: u64,
    /// Bytes that the caller took.
    pub passed: u64,
}

struct Pump {
    from: OwnedFd,
    /// The child's end, until the fork.
    child: Option<OwnedFd>,
    of: Stream,
    left: u64,
    outlet: Option<Box<dyn Outlet>>,
    /// What was read last, on its way through the outlet.
    read: Vec<u8>,
    /// May go, and is not yet taken by the caller. Nothing more is read until it is.
    waiting: Vec<u8>,
    /// Of that, how much is.
    taken: usize,
    ended: bool,
}

/// What comes through one pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Output,
    Error,
    /// Where both go to the same place, they come in the order in which they were said.
    Both,
}

/// A pipe that is ready takes this much without blocking. We must never block: the limits are ours to hold.
const AT_ONCE: usize = 4096;

impl Pumps {
    /// None unless there is a reason: then the child has the caller's own descriptors, and we cost nothing.
    pub fn prepare(
        limit: Option<u64>,
        terminal: bool,
        output: Option<Box<dyn Outlet>>,
        error: Option<Box<dyn Outlet>>,
        apart: bool,
    ) -> io::Result<Pumps> {
        let mut pumps = Vec::new();
        let (stdout, stderr) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let streams = match output.is_some() && error.is_some() && !apart && are_one(stdout, stderr) {
            true => vec![(Stream::Both, stdout, output)],
            false => vec![(Stream::Output, stdout, output), (Stream::Error, stderr, error)],
        };
        for (of, fd, outlet) in streams {
            if !terminal && (outlet.is_some() || limit.is_some() || is_file(fd)) {
                let (from, child) = pipe_with(PipeFlags::CLOEXEC)?;
                let left = limit.unwrap_or(u64::MAX);
                let (read, waiting) = (Vec::new(), Vec::new());
                let child = Some(child);
                pumps.push(Pump { from, child, of, left, outlet, read, waiting, taken: 0, ended: false });
            }
        }
        Ok(Pumps { pumps, dropped: 0, passed: 0 })
    }

    /// Of pipes that are there already, and that others write to before and after us.
    pub fn of_pipes(limit: Option<u64>, streams: Streams, output: OwnedFd, error: OwnedFd) -> Pumps {
        let pump = |from, of, outlet| {
            let (left, read, waiting) = (limit.unwrap_or(u64::MAX), Vec::new(), Vec::new());
            Pump { from, child: None, of, left, outlet, read, waiting, taken: 0, ended: false }
        };
        let pumps = vec![pump(output, Stream::Output, streams.output), pump(error, Stream::Error, streams.error)];
        Pumps { pumps, dropped: 0, passed: 0 }
    }

    /// Lets the payload open its output by name, as `/dev/stderr`: a pipe belongs to whoever made it.
    pub fn give_to(&self, user: u32, group: u32) -> io::Result<()> {
        self.pumps.iter().filter_map(|pump| pump.child.as_ref()).try_for_each(|child| handed_over(child, user, group))
    }

    /// What a program is to have as its output.
    pub fn output_of_child(&self) -> BorrowedFd<'_> {
        self.of_child(Stream::Output).unwrap_or(rustix::stdio::stdout())
    }

    pub fn error_of_child(&self) -> BorrowedFd<'_> {
        self.of_child(Stream::Error).unwrap_or(rustix::stdio::stderr())
    }

    fn of_child(&self, which: Stream) -> Option<BorrowedFd<'_>> {
        let pump = self.pumps.iter().find(|pump| pump.of == which || pump.of == Stream::Both);
        pump.and_then(|pump| pump.child.as_ref()).map(AsFd::as_fd)
    }

    pub fn enter_child(&self) {
        for pump in &self.pumps {
            let Some(child) = &pump.child else { continue };
            let moved = match pump.of {
                Stream::Output => rustix::stdio::dup2_stdout(child),
                Stream::Error => rustix::stdio::dup2_stderr(child),
                Stream::Both => rustix::stdio::dup2_stdout(child).and_then(|()| rustix::stdio::dup2_stderr(child)),
            };
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

    /// What to wait for: a descriptor, and whether to write to it rather than read.
    pub fn wanted(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
        self.pumps.iter().map(|pump| match pump.waiting.is_empty() {
            true => (pump.from.as_fd(), false),
            false => (pump.to(), true),
        })
    }

    /// Moves what can be moved without waiting; pipes that have ended are forgotten.
    pub fn pump(&mut self) -> io::Result<()> {
        let (dropped, passed) = (&mut self.dropped, &mut self.passed);
        let mut failed = None;
        self.pumps.retain_mut(|pump| match pump.once(dropped, passed) {
            Ok(more) => more,
            Err(error) => {
                failed = Some(error);
                false
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Moves all that is left, once nobody can write any more. Waits for the caller to take it only if `patient`, and
    /// not past a signal.
    pub fn drain(&mut self, patient: bool, signals: BorrowedFd<'_>) -> io::Result<()> {
        while !self.pumps.is_empty() {
            self.pump()?;
            if self.pumps.is_empty() {
                return Ok(());
            }
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut list = vec![PollFd::from_borrowed_fd(signals, PollFlags::IN)];
            list.extend(
                self.wanted()
                    .map(|(fd, out)| PollFd::from_borrowed_fd(fd, if out { PollFlags::OUT } else { PollFlags::IN })),
            );
            poll(&mut list, if patient { None } else { Some(&now) })?;
            let moving = list[1..].iter().any(|fd| !fd.revents().is_empty());
            let asked_to_end =
                list[0].revents().contains(PollFlags::IN) && sys::signals::read(signals)?.is_some_and(ends);
            if asked_to_end || !moving && !patient {
                self.dropped += self.pumps.iter().map(|pump| pump.left_over() as u64).sum::<u64>();
                return Ok(());
            }
        }
        Ok(())
    }

    /// Moves what has been said, though somebody may still have the other end: whoever that is speaks to nobody any more.
    /// Waits for the caller to take it, but not past a signal.
    pub fn drain_what_is_said(&mut self, signals: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            for pump in &mut self.pumps {
                if pump.waiting.is_empty() && !pump.ended && !is_ready(pump.from.as_fd(), PollFlags::IN)? {
                    pump.ended = true;
                    if let Some(outlet) = &mut pump.outlet {
                        outlet.end(&mut pump.waiting);
                    }
                }
            }
            self.pump()?;
            let waiting = self.pumps.iter().filter(|pump| !pump.waiting.is_empty());
            let mut list: Vec<PollFd<'_>> =
                waiting.map(|pump| PollFd::from_borrowed_fd(pump.to(), PollFlags::OUT)).collect();
            if list.is_empty() && self.pumps.is_empty() {
                return Ok(());
            }
            if list.is_empty() {
                continue;
            }
            list.push(PollFd::from_borrowed_fd(signals, PollFlags::IN));
            poll(&mut list, None)?;
            let told = list.last().is_some_and(|signals| signals.revents().contains(PollFlags::IN));
            if told && sys::signals::read(signals)?.is_some_and(ends) {
                self.dropped += self.pumps.iter().map(|pump| pump.left_over() as u64).sum::<u64>();
                return Ok(());
            }
        }
    }
}

pub fn handed_over(pipe: &OwnedFd, user: u32, group: u32) -> io::Result<()> {
    let (user, group) = (rustix::fs::Uid::from_raw(user), rustix::fs::Gid::from_raw(group));
    Ok(rustix::fs::fchown(pipe, Some(user), Some(group))?)
}

/// Whether two descriptors lead to the same pipe, file or socket.
fn are_one(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let place = |fd| rustix::fs::fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino));
    place(one).is_some_and(|place_of_one| Some(place_of_one) == place(other))
}

/// Signals that mean: stop waiting.
fn ends(signal: i32) -> bool {
    matches!(signal, 1 | 2 | 3 | 15)
}

impl Pump {
    fn to(&self) -> BorrowedFd<'static> {
        if self.of == Stream::Error { rustix::stdio::stderr() } else { rustix::stdio::stdout() }
    }

    fn left_over(&self) -> usize {
        self.waiting.len() - self.taken
    }

    /// False at the end.
    fn once(&mut self, dropped: &mut u64, passed: &mut u64) -> io::Result<bool> {
        if self.waiting.is_empty() && !self.ended && !self.read_some(dropped)? {
            return Ok(true);
        }
        self.write_some(dropped, passed)?;
        Ok(!self.ended || !self.waiting.is_empty())
    }

    /// False if there was nothing to read.
    fn read_some(&mut self, dropped: &mut u64) -> io::Result<bool> {
        if !is_ready(self.from.as_fd(), PollFlags::IN)? {
            return Ok(false);
        }
        // Into memory that is only touched where something is read.
        let into = if self.outlet.is_some() { &mut self.read } else { &mut self.waiting };
        into.clear();
        into.reserve(64 << 10);
        let read = match rustix::io::read(&self.from, spare_capacity(into)) {
            Ok(read) => read,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let pass = usize::try_from(self.left).unwrap_or(usize::MAX).min(read);
        self.left -= pass as u64;
        *dropped += (read - pass) as u64;
        into.truncate(pass);
        self.ended = read == 0;
        if let Some(outlet) = &mut self.outlet {
            match self.ended {
                true => outlet.end(&mut self.waiting),
                false => outlet.pass(&self.read, &mut self.waiting),
            }
        }
        Ok(true)
    }

    fn write_some(&mut self, dropped: &mut u64, passed: &mut u64) -> io::Result<()> {
        while self.left_over() > 0 && is_ready(self.to(), PollFlags::OUT)? {
            let now = self.left_over().min(AT_ONCE);
            match rustix::io::write(self.to(), &self.waiting[self.taken..self.taken + now]) {
                Ok(written) => {
                    self.taken += written;
                    *passed += written as u64;
                }
                Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
                // The reader has gone, so the child's pipe goes too: it hears of that as it would without us.
                Err(Errno::PIPE) => {
                    *dropped += self.left_over() as u64;
                    self.taken = self.waiting.len();
                    self.ended = true;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if self.left_over() == 0 {
            self.waiting.clear();
            self.taken = 0;
        }
        Ok(())
    }
}

/// Whether a descriptor can be read or written right now.
pub fn is_ready(fd: BorrowedFd<'_>, flags: PollFlags) -> io::Result<bool> {
    let mut one = [PollFd::from_borrowed_fd(fd, flags)];
    match poll(&mut one, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
