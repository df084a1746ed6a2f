//! The first process inside a kernel of its own (gVisor's): there, nothing of ours holds yet but that kernel's walls.
//!
//! It is started with nothing but three descriptors, says that it is there, and waits for the word to go. Then it reads
//! its orders, starts the payload as an ordinary user without any power, reaps, passes signals on, and reports the end.
//! So a guest can be made ready before anybody knows what it is for.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::Mode;
use rustix::io::{Errno, FdFlags};
use sys::filter::Program;
use sys::identity::{self, Mapping};
use sys::limits::{self, Limit};
use sys::process::{self, Alone, Namespaces, Strings};
use sys::{capabilities, seccomp, signals};

use crate::trial::Trial;
use crate::wire::{Report, Stage};

/// Where it is in there, and so what it is called: the program that it is part of knows by that.
pub const NAME: &str = "/.belljar/usher";
/// Its descriptors: where it reports, where its orders are, and from where it hears the word to go; after that, numbers of
/// signals for the payload, a byte each.
pub const REPORT: RawFd = 3;
pub const ORDERS: RawFd = 4;
pub const GO: RawFd = 5;

/// What went wrong before the payload was started, by number of `Report::Failed`.
pub const STEPS: [&str; 5] = [
    "read its orders", "become the payload's user", "drop all capabilities", "lower limits",
    "install the list of calls",
];
const READ: u32 = 0;
const USER: u32 = 1;
const DROP: u32 = 2;
const LOWER: u32 = 3;
const FILTER: u32 = 4;

/// Who we are in there. The payload is root's user, to whom all files belong, by another number and without any power.
const OURSELVES: u32 = 65534;

/// No more than what a kernel would take as words and variables of one program, several times over.
const LONGEST: usize = 64 << 20;

/// What is to be started, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    pub user: u32,
    pub group: u32,
    pub umask: u32,
    pub terminal: bool,
    /// Whether it must not reach any network.
    pub closed: bool,
    pub processes: u64,
    pub open_files: u64,
    pub largest_file: u64,
    pub cpu_seconds: Option<u64>,
    pub program: CString,
    pub directory: CString,
    pub arguments: Vec<CString>,
    pub environment: Vec<CString>,
    /// Which calls the payload may make, as `sys::filter::Program` writes it.
    pub filter: Vec<u8>,
}

impl Errand {
    /// As `decode` reads it. Not text: words and variables may be any bytes.
    pub fn encode(&self) -> Vec<u8> {
        let Errand {
            user,
            group,
            umask,
            terminal,
            closed,
            processes,
            open_files,
            largest_file,
            cpu_seconds,
            program,
            directory,
            arguments,
            environment,
            filter,
        } = self;
        let mut bytes = Vec::new();
        let numbers = [
            u64::from(*user),
            u64::from(*group),
            u64::from(*umask),
            u64::from(*terminal),
            u64::from(*closed),
            *processes,
            *open_files,
            *largest_file,
            cpu_seconds.unwrap_or(u64::MAX),
            arguments.len() as u64,
            environment.len() as u64,
            filter.len() as u64,
        ];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        for word in [program, directory].into_iter().chain(arguments).chain(environment) {
            bytes.extend_from_slice(word.as_bytes_with_nul());
        }
        bytes.extend_from_slice(filter);
        bytes
    }

    /// `None` for anything that `encode` does not make.
    pub fn decode(bytes: &[u8]) -> Option<Errand> {
        let mut rest = bytes;
        let mut number = || -> Option<u64> {
            let (number, after) = rest.split_first_chunk::<8>()?;
            rest = after;
            Some(u64::from_le_bytes(*number))
        };
        let narrow = |number: u64| u32::try_from(number).ok();
        let truth = |number: u64| (number < 2).then_some(number == 1);
        let (user, group, umask) = (narrow(number()?)?, narrow(number()?)?, narrow(number()?)?);
        let (terminal, closed) = (truth(number()?)?, truth(number()?)?);
        let (processes, open_files, largest_file) = (number()?, number()?, number()?);
        let cpu_seconds = Some(number()?).filter(|seconds| *seconds != u64::MAX);
        let (arguments, environment, filter) = (number()?, number()?, number()?);
        let mut word = || -> Option<CString> {
            let end = rest.iter().position(|byte| *byte == 0)?;
            let (word, after) = rest.split_at(end + 1);
            rest = after;
            CString::from_vec_with_nul(word.to_vec()).ok()
        };
        let (program, directory) = (word()?, word()?);
        let mut words = |count: u64| (0..count).map(|_| word()).collect::<Option<Vec<CString>>>();
        let (arguments, environment) = (words(arguments)?, words(environment)?);
        let filter = (rest.len() as u64 == filter).then(|| rest.to_vec())?;
        let errand = Errand {
            user,
            group,
            umask,
            terminal,
            closed,
            processes,
            open_files,
            largest_file,
            cpu_seconds,
            program,
            directory,
            arguments,
            environment,
            filter,
        };
        Some(errand)
    }

    /// What must not succeed in there, once every power is given up.
    pub fn trials(&self) -> Vec<Trial> {
        let mut trials = vec![Trial::HoldPower, Trial::MakeFolder, Trial::OpenMore { than: self.open_files }];
        if self.closed {
            trials.push(Trial::ReachOut);
        }
        trials
    }
}

/// Takes its descriptors, and follows its orders. Returns only where it has none: somebody has called it by hand.
pub fn begin() -> std::process::ExitCode {
    match [REPORT, ORDERS, GO].map(sys::descriptors::take) {
        [Some(report), Some(orders), Some(go)] => follow(report, orders, go),
        _ => std::process::ExitCode::from(125),
    }
}

/// Never returns.
fn follow(report: OwnedFd, orders: OwnedFd, go: OwnedFd) -> ! {
    let report = report.as_fd();
    let prepared = Alone::prove().and_then(|alone| {
        // Whoever is in here with us later may not look into us, nor take our descriptors.
        process::forbid_inspection()?;
        process::forbid_new_privileges()?;
        // Somebody else than the payload, whom it may not even signal. To become the payload's user, and to pass signals on.
        capabilities::keep_over_change_of_user()?;
        identity::become_only(OURSELVES, OURSELVES)?;
        capabilities::hold_only(&[capabilities::KILL, capabilities::SETGID, capabilities::SETUID])?;
        // The only ones that are still open when the payload starts.
        rustix::io::fcntl_setfd(report, FdFlags::CLOEXEC)?;
        rustix::io::fcntl_setfd(&go, FdFlags::CLOEXEC)?;
        Ok((alone, signals::block_all()?))
    });
    let (alone, mask) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => fail(report, failed(READ, &error)),
    };
    say(report, Report::Proven { trials: 0 });
    if !matches!(rustix::io::read(&go, &mut [0u8; 1]), Ok(1)) {
        // Nobody is there any more who could want anything.
        process::exit(125);
    }
    let errand = match read_all(orders.as_fd()).map(|bytes| Errand::decode(&bytes)) {
        Ok(Some(errand)) => errand,
        Ok(None) => fail(report, failed(READ, &io::ErrorKind::InvalidData.into())),
        Err(error) => fail(report, failed(READ, &error)),
    };
    drop(orders);
    let (trials, arguments) = (errand.trials(), Strings::new(errand.arguments.clone()));
    let environment = Strings::new(errand.environment.clone());
    let Some(filter) = Program::from_bytes(&errand.filter) else {
        fail(report, failed(READ, &io::ErrorKind::InvalidData.into()))
    };
    let start = || -> i32 {
        let begin = || -> Result<std::convert::Infallible, Report> {
            let at = |stage| move |error: io::Error| cannot_start(stage, &error);
            begin_a_group(errand.terminal).map_err(at(Stage::Terminal))?;
            give_up_all_power(&errand)?;
            if let Some(trial) = trials.iter().position(|trial| !trial.is_refused()) {
                return Err(Report::Breached { trial: trial as u32 });
            }
            rustix::process::chdir(&*errand.directory)
                .map_err(|error| cannot_start(Stage::WorkingDirectory, &error.into()))?;
            rustix::process::umask(Mode::from_raw_mode(errand.umask));
            signals::reset_actions();
            signals::restore(&mask).map_err(at(Stage::Execute))?;
            seccomp::install_alone(&filter).map_err(|error| failed(FILTER, &error))?;
            if seccomp::ask_for_what_is_refused() != Errno::PERM.raw_os_error() {
                return Err(Report::Breached { trial: trials.len() as u32 });
            }
            Err(cannot_start(Stage::Execute, &process::execute(&errand.program, &arguments, &environment)))
        };
        let Err(trouble) = begin();
        fail(report, trouble)
    };
    let payload = match process::start_borrowing(alone, start) {
        Ok(pid) => pid,
        Err(error) => fail(report, cannot_start(Stage::Fork, &error)),
    };
    // From here on, nothing but the report: not even the caller's input and output.
    (0..REPORT).for_each(|number| drop(sys::descriptors::take(number)));
    let status = match reap_until(payload, go.as_fd()) {
        Ok(status) => status,
        Err(error) => fail(report, failed(READ, &error)),
    };
    say(report, Report::Ended { status });
    process::exit(0)
}

/// A group of processes for the payload, to which signals go as a whole. The terminal belongs to the session that it was
/// started with, which is ours.
fn begin_a_group(terminal: bool) -> io::Result<()> {
    if !terminal {
        return process::new_session();
    }
    rustix::process::setpgid(None, None)?;
    Ok(rustix::termios::tcsetpgrp(rustix::stdio::stdin(), rustix::process::getpid())?)
}

/// Waits until the payload ends, reaping every orphan and passing on what comes from outside.
fn reap_until(payload: i32, outside: BorrowedFd<'_>) -> io::Result<i32> {
    const STOP: u8 = rustix::process::Signal::TSTP.as_raw() as u8;
    const FIRM_STOP: u8 = rustix::process::Signal::STOP.as_raw() as u8;
    let signals = signals::descriptor()?;
    let mut listens = true;
    loop {
        let mut sources = [PollFd::new(&signals, PollFlags::IN), PollFd::from_borrowed_fd(outside, PollFlags::IN)];
        let sources = if listens { &mut sources[..] } else { &mut sources[..1] };
        match rustix::event::poll(sources, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let asked = sources.get(1).is_some_and(|source| !source.revents().is_empty());
        while signals::read(signals.as_fd())?.is_some() {}
        while let Ok(Some((pid, ended, _))) = process::wait(-1, true) {
            if pid == payload {
                return Ok(match ended {
                    process::Ended::Exited(code) => code << 8,
                    process::Ended::Signalled(signal) => signal,
                });
            }
        }
        if !asked {
            continue;
        }
        let mut signal = [0u8; 1];
        match rustix::io::read(outside, &mut signal) {
            Ok(1) => {
                // The payload's group is an orphan to the kernel, which then ignores a polite stop.
                let signal = if signal[0] == STOP { FIRM_STOP } else { signal[0] };
                // It may have ended this very moment.
                match process::kill(-payload, signal.into()) {
                    Ok(()) | Err(_) => {}
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // Nobody is there any more; whoever was ends us.
            Ok(_) | Err(_) => listens = false,
        }
    }
}

/// An ordinary user, to whom the files belong, of a namespace that owns nothing; no capability, no way to one, and limits.
fn give_up_all_power(errand: &Errand) -> Result<(), Report> {
    let to_us = |inside| Mapping { inside, outside: 0 };
    // From here on, nobody inside has anything to say to whom we were: not a signal, not a look.
    identity::become_only(0, 0)
        .and_then(|()| process::unshare(Namespaces { user: true, ..Namespaces::NONE }))
        .and_then(|()| identity::map_self_in_a_guest(to_us(errand.user), to_us(errand.group)))
        .map_err(|error| failed(USER, &error))?;
    capabilities::drop_all_in_a_guest().map_err(|error| failed(DROP, &error))?;
    let limits = [
        (Limit::Core, 0),
        (Limit::Processes, errand.processes),
        (Limit::OpenFiles, errand.open_files),
        (Limit::FileSize, errand.largest_file),
    ];
    let time = errand.cpu_seconds.map(|seconds| (Limit::CpuSeconds, seconds));
    for (limit, value) in limits.into_iter().chain(time) {
        limits::lower(limit, value).map_err(|error| failed(LOWER, &error))?;
    }
    Ok(())
}

fn read_all(orders: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut part = vec![0u8; 64 << 10];
    loop {
        // From its beginning, wherever whoever wrote it has stopped.
        match rustix::io::pread(orders, &mut part, bytes.len() as u64)? {
            0 => return Ok(bytes),
            count => bytes.extend_from_slice(&part[..count]),
        }
        if bytes.len() > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}

fn failed(step: u32, error: &io::Error) -> Report {
    Report::Failed { step, errno: errno(error) }
}

fn cannot_start(stage: Stage, error: &io::Error) -> Report {
    Report::CannotStart { stage, errno: errno(error) }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error())
}

/// Whole records only: fewer bytes than a pipe writes at once.
fn say(report: BorrowedFd<'_>, what: Report) {
    match rustix::io::write(report, &what.encode()) {
        Ok(written) if written == what.encode().len() => {}
        // A supervisor that can't be told is gone, and we with it.
        Ok(_) | Err(_) => process::exit(125),
    }
}

fn fail(report: BorrowedFd<'_>, what: Report) -> ! {
    say(report, what);
    process::exit(125)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn word() -> impl Strategy<Value = CString> {
        proptest::collection::vec(1u8.., 0..12).prop_map(|bytes| CString::new(bytes).unwrap_or_default())
    }

    proptest! {
        #[test]
        fn what_is_ordered_is_what_is_read(
            numbers in (any::<u32>(), any::<bool>(), any::<u64>(), proptest::option::of(0..u64::MAX)),
            words in (word(), word()),
            filter in proptest::collection::vec(any::<u8>(), 0..20),
            lists in (proptest::collection::vec(word(), 0..5), proptest::collection::vec(word(), 0..5)),
        ) {
            let (user, truth, size, cpu_seconds) = numbers;
            let errand = Errand {
                user, group: !user, umask: user / 2, terminal: truth, closed: !truth, processes: size, open_files: !size,
                largest_file: size / 3, cpu_seconds, program: words.0, directory: words.1,
                arguments: lists.0, environment: lists.1, filter,
            };
            prop_assert_eq!(Errand::decode(&errand.encode()), Some(errand));
        }

        #[test]
        fn no_orders_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(errand) = Errand::decode(&bytes) {
                prop_assert_eq!(errand.encode(), bytes);
            }
        }
    }

    #[test]
    fn half_an_order_is_none() {
        let word = |text: &str| CString::new(text).unwrap_or_default();
        let errand = Errand {
            user: 1000,
            group: 1000,
            umask: 0o22,
            terminal: false,
            closed: true,
            processes: 4,
            open_files: 64,
            largest_file: 1,
            cpu_seconds: None,
            program: word("/bin/sh"),
            directory: word("/"),
            arguments: vec![word("sh"), word("")],
            environment: vec![word("A=b")],
            filter: vec![1, 2, 3],
        };
        let whole = errand.encode();
        assert!((0..whole.len()).all(|end| Errand::decode(&whole[..end]).is_none()));
        assert_eq!(Errand::decode(&[whole, vec![0]].concat()), None);
    }
}
