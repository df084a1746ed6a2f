//! A visitor's side: one command in a sandbox that stands already.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use guest::live::{Errand, Order, Said};
use guest::wire::Stage;
use model::{
    Denial, Enforcement, Exit, Finished, Grant, Inspected, Outcome, Overrun, SetupFailure, Streams, Trouble, Usage,
    Wall,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use sys::process::Ended;
use sys::{descriptors, signals};

use super::Greeting;
use super::desk::{ASLEEP, PAUSED, RESUMED, Wish, overrun_named};
use crate::input::Input;
use crate::launch::{cannot, check_descriptors};
use crate::output::Pumps;
use crate::supervise::{cannot_start, timespec};
use crate::terminal::Terminal;

/// How long somebody who was asked to end may take.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// Longer than any greeting and any list of refusals.
pub(super) const LONGEST: usize = 64 << 10;
pub(super) const KILL: i32 = 9;

/// Something that was started there.
pub struct Visit {
    host: OwnedFd,
    grant: Grant,
    enforcement: Enforcement,
    pumps: Pumps,
    input: Input,
    terminal: Option<Terminal>,
    screen: Option<Box<dyn model::Outlet>>,
    signals: OwnedFd,
    started: Instant,
    deadline: Option<Instant>,
    /// Since when it stands still.
    paused: Option<Instant>,
    /// When somebody who was asked to end will be ended.
    grace: Option<Instant>,
    overrun: Option<Overrun>,
    refused: Refused,
    end: Option<End>,
}

/// What happened in the sandbox meanwhile.
#[derive(Default)]
pub(super) struct Refused {
    pub denials: Vec<Denial>,
    pub not_listed: u64,
    /// Ended by the kernel for want of memory.
    pub killed: u64,
}

enum End {
    Not(Stage, i32),
    Ended(Ended, Usage),
    /// The sandbox itself ended.
    Gone,
    /// Everything in it stands still.
    Asleep,
}

pub(super) fn failure(message: String, fix: &str) -> SetupFailure {
    SetupFailure { wall: None, message, fix: fix.to_owned(), layers: false }
}

/// What is started there.
pub enum Starts {
    /// The command of the grant.
    Command,
    /// Code of ours, which works on files; and how long it may take.
    Files(Box<guest::files::Operation>, Option<Duration>),
}

/// Starts it in the sandbox that `host` leads to.
pub fn begin(
    host: OwnedFd,
    grant: &Grant,
    enforcement: Enforcement,
    streams: Streams,
    starts: Starts,
) -> Result<Visit, SetupFailure> {
    check_descriptors()?;
    let greeting = greeted(&host, grant)?;
    let powers = grant.powers();
    let Streams { input, output, error, terminal, apart, witness: _, outside: _ } = streams;
    let files = matches!(starts, Starts::Files(..));
    let own_terminal = powers.command.terminal && !files;
    // What is told of files has a measure of its own.
    let limit = powers.limits.output.filter(|_| !files);
    let pumps = Pumps::prepare(limit, own_terminal, output, error, apart).map_err(cannot("make pipes"))?;
    let input = if files { Input::only(input) } else { Input::prepare(own_terminal, input) };
    let input = input.map_err(cannot("make pipes"))?;
    if let Some((user, group)) = greeting.owner {
        pumps.give_to(user, group).and_then(|()| input.give_to(user, group)).map_err(cannot("hand its pipes over"))?;
    }
    // Never put back: a signal that arrives later must not cost the result.
    signals::block_all().map_err(cannot("block signals"))?;
    let signals = signals::descriptor().map_err(cannot("listen for signals"))?;
    let (errand, order, time) = match starts {
        Starts::Command => {
            let order = Order::Start { number: 0, terminal: own_terminal };
            (errand(grant, &greeting, None).map_err(cannot("pass on the command"))?, order, powers.limits.wall_time)
        }
        Starts::Files(operation, time) => (operation.encode(), Order::Files { number: 0 }, time),
    };
    let errand = sealed(&errand).map_err(cannot("pass on the command"))?;
    let three = [input.childs(), pumps.output_of_child(), pumps.error_of_child()];
    let along: Vec<BorrowedFd<'_>> = match own_terminal {
        true => vec![errand.as_fd()],
        false => std::iter::once(errand.as_fd()).chain(three).collect(),
    };
    descriptors::send(host.as_fd(), &order.encode(), &along).map_err(cannot("reach the sandbox's host"))?;
    let started = Instant::now();
    let deadline = time.map(|time| started + time);
    Ok(Visit {
        host,
        grant: grant.clone(),
        enforcement,
        pumps: pumps.enter_parent(),
        input: input.enter_parent(),
        terminal: None,
        screen: terminal,
        signals,
        started,
        deadline,
        paused: None,
        grace: None,
        overrun: None,
        refused: Refused::default(),
        end: None,
    })
}

/// Whose walls these are: they must be those that the grant demands.
pub(super) fn greeted(host: &OwnedFd, grant: &Grant) -> Result<Greeting, SetupFailure> {
    let received = descriptors::receive_whole(host.as_fd(), LONGEST);
    let (words, _) = received.map_err(cannot("be let into the sandbox"))?;
    let greeting = Some(words.as_slice()).filter(|words| !words.is_empty()).and_then(Greeting::decode);
    let greeting = greeting
        .ok_or_else(|| failure("the sandbox's host lets nobody in".to_owned(), "stop it, and open it again"))?;
    let differs = greeting.differs(grant);
    if !differs.is_empty() {
        return Err(failure(
            format!("the sandbox stands with other walls than this command may have: {} differ", differs.join(" and ")),
            "ask for the same as when it was opened, or stop it: the next command opens it anew",
        ));
    }
    Ok(greeting)
}

/// The grant's command as the first process is told it; `instead`: with these words after the program's name.
pub(super) fn errand(grant: &Grant, greeting: &Greeting, instead: Option<&[String]>) -> io::Result<Vec<u8>> {
    let string = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| io::Error::other("it has a zero byte in it"));
    let powers = grant.powers();
    let command = &powers.command;
    let mut environment = Vec::new();
    for (name, value) in &powers.environment {
        let stands = greeting.stand_ins.iter().find(|(variable, _)| name.as_bytes() == variable.as_bytes());
        let value = stands.map_or(value.as_os_str(), |(_, stands)| OsStr::new(stands));
        let mut entry = name.clone();
        entry.push("=");
        entry.push(value);
        environment.push(string(&entry)?);
    }
    let arguments: io::Result<Vec<CString>> = match instead {
        None => command.arguments.iter().map(|word| string(word)).collect(),
        Some(words) => {
            let words = words.iter().map(|word| OsStr::new(word.as_str()));
            command.arguments.first().map(|word| word.as_os_str()).into_iter().chain(words).map(string).collect()
        }
    };
    let errand = Errand {
        program: string(command.program.as_os_str())?,
        directory: string(command.directory.as_os_str())?,
        arguments: arguments?,
        environment,
    };
    Ok(errand.encode())
}

/// Has everything in the sandbox that `host` leads to stand still, or go on.
pub fn wish(host: &OwnedFd, pause: bool) -> Result<(), Trouble> {
    let cannot = |why: String| Trouble {
        message: format!("the sandbox can't be {}: {why}", if pause { "paused" } else { "resumed" }),
        fix: "control groups are needed for that: run belljar as root, or in a delegated group (`belljar doctor`)"
            .to_owned(),
    };
    let broken = |error: io::Error| cannot(format!("its host does not answer: {error}"));
    descriptors::receive_whole(host.as_fd(), LONGEST).map_err(broken)?;
    let wish = if pause { Wish::Pause } else { Wish::Resume };
    descriptors::send(host.as_fd(), wish.word(), &[]).map_err(broken)?;
    let (said, _) = descriptors::receive_whole(host.as_fd(), LONGEST).map_err(broken)?;
    match String::from_utf8_lossy(&said).as_ref() {
        "done" => Ok(()),
        "" => Err(broken(io::ErrorKind::UnexpectedEof.into())),
        why => Err(cannot(why.to_owned())),
    }
}

/// In memory, and changed by nobody any more.
pub(super) fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(c"belljar-errand", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&file, rest)?..];
    }
    rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}

impl model::Sandbox for Visit {
    fn supervise(mut self: Box<Self>) -> Outcome {
        let watched = self.watch();
        // Whatever happens from here on, it does not go on without anybody.
        if self.end.is_none() {
            let end = Order::Signal { number: 0, signal: KILL };
            let told = descriptors::send(self.host.as_fd(), &end.encode(), &[]);
            if told.is_ok() && watched.is_ok() {
                self.hear_the_end();
            }
        }
        drop(self.terminal.take());
        self.input.give_back();
        let drained = self.pumps.drain_what_is_said(self.signals.as_fd());
        if let Err(error) = watched.and(drained) {
            return Outcome::NotSetUp(SetupFailure {
                wall: Some(Wall::CleanUp),
                message: format!("the command was ended because belljar could not watch it: {error}"),
                fix: "please report this".to_owned(),
                layers: false,
            });
        }
        let (exit, usage) = match self.end {
            Some(End::Asleep) => {
                return Outcome::NotSetUp(failure(
                    "the sandbox is paused, and nothing can be started in it".to_owned(),
                    "resume it first",
                ));
            }
            Some(End::Not(stage, errno)) => return Outcome::NotStarted(cannot_start(stage, errno, &self.grant)),
            Some(End::Ended(Ended::Exited(code), usage)) => (Exit::Code(code), usage),
            Some(End::Ended(Ended::Signalled(signal), usage)) => (Exit::Signal(signal), usage),
            Some(End::Gone) | None => (Exit::Signal(KILL), Usage::default()),
        };
        let gone = matches!(self.end, Some(End::Gone)).then_some(Overrun::Cancelled);
        let accepted = self.enforcement.walls.iter().filter(|holding| holding.held != model::Held::Fully);
        let accepted_gaps = accepted.map(|holding| (holding.wall, holding.held.clone())).collect();
        let Refused { denials, not_listed: denials_not_listed, killed } = self.refused;
        let out_of_memory = (killed > 0 && exit == Exit::Signal(KILL)).then_some(Overrun::Memory);
        Outcome::Ran(Box::new(Finished {
            run: String::new(),
            exit,
            overrun: self.overrun.or(out_of_memory).or(gone),
            usage: Usage { wall_time: self.started.elapsed(), out_of_memory_kills: killed, ..usage },
            denials,
            denials_not_listed,
            output_dropped: self.pumps.dropped,
            enforcement: self.enforcement,
            accepted_gaps,
            leftover: None,
            inspected: Inspected::default(),
            redacted: Vec::new(),
            captured: None,
            unguarded: Vec::new(),
            traffic: None,
            alerts: Vec::new(),
            gathered: None,
            backend: "native".to_owned(),
            because: String::new(),
            image: None,
            timing: Vec::new(),
        }))
    }
}

impl Visit {
    fn watch(&mut self) -> io::Result<()> {
        while self.end.is_none() {
            let now = Instant::now();
            let past = |moment: Option<Instant>| moment.is_some_and(|moment| now >= moment);
            let deadline = self.deadline.filter(|_| self.paused.is_none());
            if past(deadline) || past(self.grace) {
                self.overrun = Some(if past(deadline) { Overrun::WallTime } else { Overrun::Cancelled });
                return Ok(());
            }
            if let Some(terminal) = &mut self.terminal {
                terminal.let_go(now)?;
            }
            let said = self.wait_for_something(now)?;
            self.input.pump()?;
            self.pumps.pump()?;
            if let Some(terminal) = &mut self.terminal {
                terminal.pump()?;
            }
            while let Some(signal) = signals::read(self.signals.as_fd())? {
                self.pass_on(signal)?;
            }
            if said {
                self.hear()?;
            }
        }
        Ok(())
    }

    /// True if the host said something.
    fn wait_for_something(&self, now: Instant) -> io::Result<bool> {
        let mut list = vec![
            PollFd::from_borrowed_fd(self.host.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
        ];
        let terminal = self.terminal.iter().flat_map(Terminal::wanted);
        let others = self.pumps.wanted().chain(self.input.wanted()).chain(terminal);
        list.extend(
            others.map(|(fd, out)| PollFd::from_borrowed_fd(fd, if out { PollFlags::OUT } else { PollFlags::IN })),
        );
        let screen = self.terminal.as_ref().and_then(Terminal::next);
        let deadline = self.deadline.filter(|_| self.paused.is_none());
        let next = [deadline, self.grace, screen].into_iter().flatten().min();
        let timeout: Option<Timespec> = next.map(|moment| timespec(moment.saturating_duration_since(now)));
        match poll(&mut list, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(!list[0].revents().is_empty())
    }

    fn hear(&mut self) -> io::Result<()> {
        let (words, along) = match descriptors::receive_whole(self.host.as_fd(), LONGEST) {
            Ok((words, along)) if !words.is_empty() => (words, along),
            Ok(_) | Err(_) => {
                self.end = Some(End::Gone);
                return Ok(());
            }
        };
        let words = words.as_slice();
        match words {
            ASLEEP => {
                self.end = Some(End::Asleep);
                return Ok(());
            }
            PAUSED => {
                self.paused = self.paused.or(Some(Instant::now()));
                return Ok(());
            }
            RESUMED => {
                let stood = self.paused.take().map_or(Duration::ZERO, |since| since.elapsed());
                self.deadline = self.deadline.map(|deadline| deadline + stood);
                return Ok(());
            }
            _ => {}
        }
        match Said::decode(words) {
            Some(Said::Started { terminal: true, .. }) => {
                let outer = along.into_iter().next().ok_or(io::ErrorKind::InvalidData)?;
                self.terminal = Some(Terminal::new(outer, self.screen.take())?);
            }
            Some(Said::Started { .. }) => {}
            Some(Said::NotStarted { stage, errno, .. }) => self.end = Some(End::Not(stage, errno)),
            Some(Said::Ended { status, user, system, peak, .. }) => {
                let (user_time, system_time) = (Duration::from_micros(user), Duration::from_micros(system));
                let usage = Usage { user_time, system_time, peak_memory: peak, ..Usage::default() };
                self.end = Some(End::Ended(Ended::from_status(status), usage));
            }
            None => match overrun_named(words) {
                Some(overrun) => self.overrun = self.overrun.or(Some(overrun)),
                None => self.refused = refused(words),
            },
        }
        Ok(())
    }

    /// Killed, it says so soon; a host that does not is gone itself.
    fn hear_the_end(&mut self) {
        let until = Instant::now() + GRACE;
        while self.end.is_none() && Instant::now() < until {
            let left = timespec(until.saturating_duration_since(Instant::now()));
            let mut one = [PollFd::from_borrowed_fd(self.host.as_fd(), PollFlags::IN)];
            match poll(&mut one, Some(&left)) {
                Ok(1..) if self.hear().is_ok() => {}
                Err(Errno::INTR) => {}
                _ => return,
            }
        }
    }

    fn pass_on(&mut self, signal: i32) -> io::Result<()> {
        const INTERRUPT: i32 = 2;
        match signal {
            13 | 17 => return Ok(()),
            1 | 3 | 15 => self.grace = self.grace.or(Some(Instant::now() + GRACE)),
            INTERRUPT if !rustix::termios::isatty(rustix::stdio::stdin()) => {
                self.grace = self.grace.or(Some(Instant::now() + GRACE));
            }
            28 => return self.terminal.as_ref().map_or(Ok(()), Terminal::resize),
            _ => {}
        }
        match descriptors::send(self.host.as_fd(), &Order::Signal { number: 0, signal }.encode(), &[]) {
            // Gone; that is heard of, too.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// As the desk tells it.
pub(super) fn refused(words: &[u8]) -> Refused {
    let text = String::from_utf8_lossy(words);
    let mut lines = text.lines();
    let counts = lines.next().and_then(|line| line.strip_prefix("refused\t")?.split_once('\t'));
    let (count, killed) = counts.unwrap_or_default();
    let (count, killed): (u64, u64) = (count.parse().unwrap_or(0), killed.parse().unwrap_or(0));
    let denial = |line: &str| -> Option<Denial> {
        let mut words = line.split('\t');
        let (call, detail, program) = (words.next()?, words.next()?, words.next()?);
        let (process, times) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let detail = (!detail.is_empty()).then(|| detail.to_owned());
        Some(Denial {
            wall: Wall::SystemCalls,
            call: call.to_owned(),
            detail,
            program: program.to_owned(),
            process,
            times,
        })
    };
    let list: Vec<Denial> = lines.filter_map(denial).collect();
    let listed: u64 = list.iter().map(|denial| denial.times).sum();
    Refused { denials: list, not_listed: count.saturating_sub(listed), killed }
}
