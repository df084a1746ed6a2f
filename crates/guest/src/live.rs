//! A first process that stays: it starts what it is told to, as often as it is told, always under the walls that it is
//! under itself, and reports each end.
//!
//! Its orders come over the wire, which nobody inside holds. What it starts gets three descriptors and nothing else of it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sys::process::{self, Alone, Ended, Strings};
use sys::{descriptors, signals};

use crate::wire::Stage;

/// What is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    pub program: CString,
    pub directory: CString,
    pub arguments: Vec<CString>,
    pub environment: Vec<CString>,
}

/// No more than what a kernel would take as words and variables of one program, several times over.
const LONGEST: usize = 64 << 20;

impl Errand {
    /// As `decode` reads it. Not text: words and variables may be any bytes.
    pub fn encode(&self) -> Vec<u8> {
        let Errand { program, directory, arguments, environment } = self;
        let mut bytes = Vec::new();
        for count in [arguments.len() as u64, environment.len() as u64] {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        for word in [program, directory].into_iter().chain(arguments).chain(environment) {
            bytes.extend_from_slice(word.as_bytes_with_nul());
        }
        bytes
    }

    /// `None` for anything that `encode` does not make.
    pub fn decode(bytes: &[u8]) -> Option<Errand> {
        let (arguments, rest) = bytes.split_first_chunk::<8>()?;
        let (environment, mut rest) = rest.split_first_chunk::<8>()?;
        let mut word = || -> Option<CString> {
            let end = rest.iter().position(|byte| *byte == 0)?;
            let (word, after) = rest.split_at(end + 1);
            rest = after;
            CString::from_vec_with_nul(word.to_vec()).ok()
        };
        let (program, directory) = (word()?, word()?);
        let mut words = |count: [u8; 8]| (0..u64::from_le_bytes(count)).map(|_| word()).collect::<Option<Vec<_>>>();
        let (arguments, environment) = (words(*arguments)?, words(*environment)?);
        rest.is_empty().then_some(Errand { program, directory, arguments, environment })
    }
}

/// What the first process is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start what the first descriptor with it says, with the next three as input, output and error output; or, on a
    /// terminal of its own, with none.
    Start { number: u32, terminal: bool },
    /// Send a signal to what was started, and to its whole group.
    Signal { number: u32, signal: i32 },
    /// Do what the first descriptor with it says to files, with the next three as input, output and error output. No
    /// program is started: the code is ours.
    Files { number: u32 },
}

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is started. Carries the outer end of its terminal, if it has one.
    Started {
        number: u32,
        terminal: bool,
    },
    NotStarted {
        number: u32,
        stage: Stage,
        errno: i32,
    },
    /// With what it used, in microseconds and bytes.
    Ended {
        number: u32,
        status: i32,
        user: u64,
        system: u64,
        peak: u64,
    },
}

pub const RECORD: usize = 40;
const ERRNO: std::ops::Range<i32> = 1..4096;
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;
const STAGES: [Stage; 4] = [Stage::Fork, Stage::Terminal, Stage::WorkingDirectory, Stage::Execute];

fn record(kind: u32, number: u32, small: [u32; 2], large: [u64; 3]) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    for (at, word) in [kind, number, small[0], small[1]].into_iter().enumerate() {
        record[at * 4..at * 4 + 4].copy_from_slice(&word.to_le_bytes());
    }
    for (at, word) in large.into_iter().enumerate() {
        record[16 + at * 8..24 + at * 8].copy_from_slice(&word.to_le_bytes());
    }
    record
}

type Parts = (u32, u32, [u32; 2], [u64; 3]);

fn parts(record: &[u8]) -> Option<Parts> {
    let record: &[u8; RECORD] = record.try_into().ok()?;
    let (four, rest) = record.split_first_chunk::<16>()?;
    let words: Vec<u32> =
        four.chunks_exact(4).filter_map(|word| Some(u32::from_le_bytes(word.try_into().ok()?))).collect();
    let large: Vec<u64> =
        rest.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?))).collect();
    let ([kind, number, one, two], [first, second, third]) = (words.try_into().ok()?, large.try_into().ok()?);
    Some((kind, number, [one, two], [first, second, third]))
}

impl Order {
    pub fn encode(self) -> [u8; RECORD] {
        match self {
            Order::Start { number, terminal } => record(1, number, [u32::from(terminal), 0], [0; 3]),
            Order::Signal { number, signal } => record(2, number, [signal as u32, 0], [0; 3]),
            Order::Files { number } => record(6, number, [0; 2], [0; 3]),
        }
    }

    pub fn decode(bytes: &[u8]) -> Option<Order> {
        match parts(bytes)? {
            (1, number, [terminal @ 0..=1, 0], [0, 0, 0]) => Some(Order::Start { number, terminal: terminal == 1 }),
            (2, number, [signal, 0], [0, 0, 0]) => {
                let signal = i32::try_from(signal).ok().filter(|signal| SIGNALS.contains(signal))?;
                Some(Order::Signal { number, signal })
            }
            (6, number, [0, 0], [0, 0, 0]) => Some(Order::Files { number }),
            _ => None,
        }
    }
}

impl Said {
    pub fn encode(self) -> [u8; RECORD] {
        match self {
            Said::Started { number, terminal } => record(3, number, [u32::from(terminal), 0], [0; 3]),
            Said::NotStarted { number, stage, errno } => record(4, number, [stage as u32, errno as u32], [0; 3]),
            Said::Ended { number, status, user, system, peak } => {
                record(5, number, [status as u32, 0], [user, system, peak])
            }
        }
    }

    pub fn decode(bytes: &[u8]) -> Option<Said> {
        match parts(bytes)? {
            (3, number, [terminal @ 0..=1, 0], [0, 0, 0]) => Some(Said::Started { number, terminal: terminal == 1 }),
            (4, number, [stage, errno], [0, 0, 0]) => {
                let errno = i32::try_from(errno).ok().filter(|errno| ERRNO.contains(errno))?;
                Some(Said::NotStarted { number, stage: *STAGES.get(stage as usize)?, errno })
            }
            (5, number, [status, 0], [user, system, peak]) => {
                Some(Said::Ended { number, status: status as i32, user, system, peak })
            }
            _ => None,
        }
    }
}

/// What the parent hears next, with what came along; `None` when there is nobody any more.
pub fn hear(wire: BorrowedFd<'_>) -> io::Result<Option<(Said, Vec<OwnedFd>)>> {
    let mut words = [0; RECORD + 1];
    match descriptors::receive(wire, &mut words) {
        Ok((0, _)) => Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::CONNRESET.raw_os_error()) => Ok(None),
        Ok((length, along)) => match words.get(..length).and_then(Said::decode) {
            Some(said) => Ok(Some((said, along))),
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "the sandbox's first process sent no valid record")),
        },
        Err(error) => Err(error),
    }
}

/// Where somebody who has results finds the way out for them.
pub const RESULTS: i32 = 3;
/// Where descriptors come in for somebody who is handed more of them later.
pub const PARCELS: i32 = 4;

/// What is running, by the number that the parent gave it.
struct Running {
    number: u32,
    pid: i32,
}

/// Never returns. `umask`, `mask`: what programs get.
pub fn serve(wire: BorrowedFd<'_>, umask: Mode, mask: &signals::Mask, alone: Alone) -> ! {
    let served = Serving { wire, umask, mask, alone, running: Vec::new(), ending: false }.until_told();
    process::exit(if served.is_ok() { 0 } else { 125 })
}

struct Serving<'a> {
    wire: BorrowedFd<'a>,
    umask: Mode,
    mask: &'a signals::Mask,
    alone: Alone,
    running: Vec<Running>,
    /// Somebody asked us to end, and we do once nothing runs any more.
    ending: bool,
}

const CHILD: i32 = rustix::process::Signal::CHILD.as_raw();
const ENDS: [i32; 4] = [1, 2, 3, 15];

impl Serving<'_> {
    fn until_told(mut self) -> io::Result<()> {
        let signals = signals::descriptor()?;
        loop {
            if self.ending && self.running.is_empty() {
                return Ok(());
            }
            let mut sources =
                [PollFd::from_borrowed_fd(self.wire, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
            match poll(&mut sources, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let told = !sources[0].revents().is_empty();
            // All of them, but ends in their order: one that began after the signal came has not ended yet.
            while let Some(signal) = signals::read(signals.as_fd())? {
                match signal {
                    CHILD => {}
                    signal => {
                        self.ending |= ENDS.contains(&signal);
                        self.running.iter().for_each(|running| to_group(running.pid, signal));
                    }
                }
            }
            self.reap()?;
            if told && !self.obey()? {
                return Ok(());
            }
        }
    }

    /// Whoever ended, orphans too.
    fn reap(&mut self) -> io::Result<()> {
        while let Ok(Some((pid, ended, used))) = process::wait(-1, true) {
            let Some(at) = self.running.iter().position(|running| running.pid == pid) else { continue };
            let number = self.running.swap_remove(at).number;
            let status = match ended {
                Ended::Exited(code) => code << 8,
                Ended::Signalled(signal) => signal,
            };
            let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            let (user, system, peak) = (micros(used.user), micros(used.system), used.peak_resident);
            self.say(Said::Ended { number, status, user, system, peak }, &[])?;
        }
        Ok(())
    }

    /// False when nobody is there any more to obey.
    fn obey(&mut self) -> io::Result<bool> {
        let mut words = [0; RECORD + 1];
        let (length, along) = descriptors::receive(self.wire, &mut words)?;
        if length == 0 {
            return Ok(false);
        }
        match words.get(..length).and_then(Order::decode).ok_or(io::ErrorKind::InvalidData)? {
            Order::Signal { number, signal } => {
                self.running
                    .iter()
                    .filter(|running| running.number == number)
                    .for_each(|one| to_group(one.pid, signal));
            }
            Order::Files { number } => {
                if let Err(error) = self.work_on_files(number, along) {
                    let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
                    self.say(Said::NotStarted { number, stage: Stage::Fork, errno }, &[])?;
                }
            }
            Order::Start { number, terminal } => {
                if let Err((stage, error)) = self.start(number, terminal, along) {
                    let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
                    self.say(Said::NotStarted { number, stage, errno }, &[])?;
                }
            }
        }
        Ok(true)
    }

    fn start(&mut self, number: u32, terminal: bool, along: Vec<OwnedFd>) -> Result<(), (Stage, io::Error)> {
        let broken = || (Stage::Fork, io::Error::from(io::ErrorKind::InvalidData));
        let mut along = along.into_iter();
        let errand = along.next().ok_or_else(broken)?;
        let errand = read(&errand).map_err(|error| (Stage::Fork, error))?;
        let Errand { program, directory, arguments, environment } = Errand::decode(&errand).ok_or_else(broken)?;
        let (arguments, environment) = (Strings::new(arguments), Strings::new(environment));
        let (outer, streams) = match terminal {
            true => {
                let (outer, inner) = own_terminal().map_err(|error| (Stage::Terminal, error))?;
                (Some(outer), Streams::Terminal(inner))
            }
            false => {
                let streams: Vec<OwnedFd> = along.by_ref().take(3).collect();
                (None, Streams::Three(streams.try_into().map_err(|_| broken())?))
            }
        };
        // Somebody who has more to say than goes to its output gets another way out for that, under a number of its own; ours
        // could be just that number, so another of the same wire is used meanwhile.
        let results = along.next();
        let above = |one: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(one, PARCELS + 1);
        let spare = results.as_ref().map(|_| above(self.wire)).transpose();
        let spare = spare.map_err(|error| (Stage::Fork, error.into()))?;
        // It may have the number of the results, which come to their place first.
        let parcels = along.next().map(|parcels| above(parcels.as_fd())).transpose();
        let parcels = parcels.map_err(|error| (Stage::Fork, error.into()))?;
        let wire = spare.as_ref().map_or(self.wire, AsFd::as_fd);
        let (umask, mask) = (self.umask, self.mask);
        let begin = || -> i32 {
            rustix::process::umask(umask);
            let stopped = |stage, error: io::Error| {
                let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
                // Nobody to tell is nobody to start it for.
                match descriptors::send(wire, &Said::NotStarted { number, stage, errno }.encode(), &[]) {
                    Ok(()) | Err(_) => process::exit(125),
                }
            };
            let ready = || -> Result<(), (Stage, io::Error)> {
                process::new_session().map_err(|error| (Stage::Terminal, error))?;
                streams.take().map_err(|error| (Stage::Terminal, error))?;
                rustix::process::chdir(&*directory).map_err(|error| (Stage::WorkingDirectory, error.into()))?;
                signals::reset_actions();
                signals::restore(mask).map_err(|error| (Stage::Execute, error))?;
                process::close_on_exec_from(3).map_err(|error| (Stage::Execute, error))?;
                for (own, number) in [(&results, RESULTS), (&parcels, PARCELS)] {
                    if let Some(own) = own {
                        process::put_at(own.as_fd(), number).map_err(|error| (Stage::Terminal, error))?;
                    }
                }
                Ok(())
            };
            match ready() {
                Ok(()) => stopped(Stage::Execute, process::execute(&program, &arguments, &environment)),
                Err((stage, error)) => stopped(stage, error),
            }
        };
        // Listed before it can end: what is not known is taken for an orphan.
        let pid = process::start_borrowing(self.alone, begin).map_err(|error| (Stage::Fork, error))?;
        self.running.push(Running { number, pid });
        let outer: Vec<BorrowedFd<'_>> = outer.iter().map(AsFd::as_fd).collect();
        self.say(Said::Started { number, terminal }, &outer).map_err(|error| (Stage::Fork, error))
    }

    /// A copy of us that does it and ends. It may allocate: it has one thread, as we have.
    fn work_on_files(&mut self, number: u32, along: Vec<OwnedFd>) -> io::Result<()> {
        let mut along = along.into_iter();
        let operation = read(&along.next().ok_or(io::ErrorKind::InvalidData)?)?;
        let operation = crate::files::Operation::decode(&operation).ok_or(io::ErrorKind::InvalidData)?;
        let streams: Vec<OwnedFd> = along.by_ref().take(3).collect();
        let streams = Streams::Three(streams.try_into().map_err(|_| io::ErrorKind::InvalidData)?);
        // Listed before it can end, as everything that is started.
        match process::fork_plainly(self.alone)? {
            None => match streams.take() {
                Ok(()) => crate::files::work(&operation, self.umask, self.mask),
                Err(_) => process::exit(125),
            },
            Some(pid) => self.running.push(Running { number, pid }),
        }
        self.say(Said::Started { number, terminal: false }, &[])
    }

    fn say(&self, said: Said, along: &[BorrowedFd<'_>]) -> io::Result<()> {
        descriptors::send(self.wire, &said.encode(), along)
    }
}

/// It may have ended this very moment.
fn to_group(pid: i32, signal: i32) {
    match process::kill(-pid, signal) {
        Ok(()) | Err(_) => {}
    }
}

/// What a program gets as its input and output.
enum Streams {
    Terminal(OwnedFd),
    Three([OwnedFd; 3]),
}

impl Streams {
    fn take(&self) -> io::Result<()> {
        let [input, output, error] = match self {
            Streams::Terminal(terminal) => {
                process::take_terminal(terminal.as_fd())?;
                [terminal, terminal, terminal]
            }
            Streams::Three([input, output, error]) => [input, output, error],
        };
        // None of them is below three: those places were closed and are nobody's.
        rustix::stdio::dup2_stdin(input)?;
        rustix::stdio::dup2_stdout(output)?;
        Ok(rustix::stdio::dup2_stderr(error)?)
    }
}

/// Both ends of a new one: the outer and the inner.
pub(crate) fn own_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let outer = rustix::fs::open(c"/dev/ptmx", flags, Mode::empty())?;
    rustix::pty::unlockpt(&outer)?;
    let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY | rustix::pty::OpenptFlags::CLOEXEC;
    let inner = rustix::pty::ioctl_tiocgptpeer(&outer, flags)?;
    Ok((outer, inner))
}

/// Closes everything but the wire, and keeps the numbers of input and output from being given to anything else.
pub(crate) fn keep_only(wire: BorrowedFd<'_>) -> io::Result<()> {
    process::close_all_from(0, wire.as_raw_fd())?;
    // Each gets the lowest number that is free, and stays open for ever.
    for _ in 0..3 {
        std::mem::forget(rustix::fs::open(c"/dev/null", OFlags::RDWR, Mode::empty())?);
    }
    Ok(())
}

fn read(file: &OwnedFd) -> io::Result<Vec<u8>> {
    let size = usize::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(usize::MAX);
    if size > LONGEST {
        return Err(Errno::TOOBIG.into());
    }
    let mut bytes = vec![0; size];
    let mut done = 0;
    while done < size {
        match rustix::io::pread(file, &mut bytes[done..], done as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => done += read,
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word() -> impl Strategy<Value = CString> {
        proptest::collection::vec(1u8.., 0..20).prop_map(|bytes| CString::new(bytes).expect("no zero in it"))
    }

    proptest! {
        #[test]
        fn an_errand_survives_the_wire(program in word(), directory in word(),
            arguments in proptest::collection::vec(word(), 0..5), environment in proptest::collection::vec(word(), 0..5)) {
            let errand = Errand { program, directory, arguments, environment };
            prop_assert_eq!(Errand::decode(&errand.encode()), Some(errand));
        }

        #[test]
        fn no_bytes_panic_and_what_is_decoded_encodes_to_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some(errand) = Errand::decode(&bytes) {
                prop_assert_eq!(errand.encode(), bytes.clone());
            }
            if let Some(order) = Order::decode(&bytes) {
                prop_assert_eq!(order.encode().to_vec(), bytes.clone());
            }
            if let Some(said) = Said::decode(&bytes) {
                prop_assert_eq!(said.encode().to_vec(), bytes);
            }
        }

        #[test]
        fn records_of_every_kind_are_read_strictly(kind in 0u32..8, number in any::<u32>(), one in 0u32..5000, two in 0u32..5000,
            large in any::<u64>()) {
            let bytes = record(kind, number, [one, two], [large, 0, 0]);
            if let Some(order) = Order::decode(&bytes) {
                prop_assert_eq!(order.encode(), bytes);
            }
            if let Some(said) = Said::decode(&bytes) {
                prop_assert_eq!(said.encode(), bytes);
            }
        }
    }

    #[test]
    fn a_count_that_lies_is_no_errand() {
        let errand = Errand {
            program: c"/bin/true".into(),
            directory: c"/".into(),
            arguments: vec![c"true".into()],
            environment: Vec::new(),
        };
        let mut bytes = errand.encode();
        bytes[0] = 200;
        assert_eq!(Errand::decode(&bytes), None);
        bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Errand::decode(&bytes), None);
    }
}
