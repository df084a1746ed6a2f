//! Watches a raised sandbox to its end: answers refused calls, holds the limits that the kernel does not, passes
//! signals and output on, and leaves nothing behind.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use guest::live::{self, Said};
use guest::wire::{self, Report, Stage};
use model::{
    Enforcement, Exit, Finished, Goes, Grant, Inspected, Outcome, Overrun, Sample, SetupFailure, StartFailure, Timing,
    Usage, Wall, Witness,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sys::process::{self, Ended};
use sys::{seccomp, signals};

use crate::behind::Behind;
use crate::denials::Denials;
use crate::groups::Group;
use crate::input::Input;
use crate::launch::Raised;
use crate::leavings::{self, Left};
use crate::live::desk::{Counts, Desk, Wish};
use crate::measure::{Measure, records};
use crate::output::Pumps;
use crate::programs::Programs;
use crate::terminal::Terminal;

pub struct Supervised {
    pub raised: Raised,
    pub grant: Grant,
    pub enforcement: Enforcement,
    pub backend: &'static str,
    /// Where visitors come, if it stays.
    pub desk: Option<Desk>,
    /// How long it may take, where that is not up to the grant.
    pub time: Option<Duration>,
}

/// How long somebody who was asked to end may take.
const GRACE: Duration = Duration::from_secs(5);
/// This many interrupts within a second mean it.
const INSISTENCE: u32 = 3;

impl model::Sandbox for Warm {
    fn supervise(self: Box<Self>) -> Outcome {
        self.to_the_end()
    }
}

impl model::Sandbox for Supervised {
    fn supervise(self: Box<Self>) -> Outcome {
        let mut watch = Watch::new(self.raised, &self.grant, self.desk);
        if let Some(time) = self.time {
            watch.deadline = Some(watch.raised.started + time);
        }
        Warm { watch, grant: self.grant, enforcement: self.enforcement, backend: self.backend }.to_the_end()
    }
}

impl Supervised {
    /// Waits until somebody behind the carrier waits for the word to go.
    pub fn warm_up(self) -> Result<Warm, SetupFailure> {
        let mut watch = Watch::new(self.raised, &self.grant, None);
        watch.deadline = Some(Instant::now() + LONGEST_WARMING);
        let watched = watch.until(Until::Ready);
        let mut warm = Warm { watch, grant: self.grant, enforcement: self.enforcement, backend: self.backend };
        if watched.is_ok() && warm.watch.behind.ready && warm.watch.overrun.is_none() {
            return Ok(warm);
        }
        // Ended, with its reason.
        warm.watch.overrun = None;
        match warm.to_the_end() {
            Outcome::NotSetUp(failure) => Err(failure),
            _ => Err(SetupFailure {
                wall: None,
                message: "it was not ready in time".to_owned(),
                fix: "see `belljar doctor`".to_owned(),
                layers: false,
            }),
        }
    }
}

/// How long a guest may take until it waits for its payload.
const LONGEST_WARMING: Duration = Duration::from_secs(60);

/// A raised sandbox whose watching may have begun.
pub struct Warm {
    watch: Watch,
    grant: Grant,
    enforcement: Enforcement,
    backend: &'static str,
}

impl Warm {
    /// From here on, for `grant`: its command and its time. Everything else is as it was made.
    pub fn begin(&mut self, grant: Grant) {
        let now = Instant::now();
        self.watch.raised.started = now;
        self.watch.deadline = grant.powers().limits.wall_time.map(|time| now + time);
        self.grant = grant;
    }

    /// The same for somebody who was told what to run, and what to say it to, only now.
    pub(crate) fn begin_told(&mut self, grant: Grant, pumps: Pumps, input: Input, witness: Option<Box<dyn Witness>>) {
        self.watch.raised.pumps = pumps;
        self.watch.raised.input = input;
        let words = grant.powers().command.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let proven = std::mem::take(&mut self.watch.raised.proven);
        self.watch.programs = Programs::of_a_copy(witness, &proven, words, self.watch.raised.pid);
        self.watch.raised.proven = proven;
        self.watch.measure.restart();
        self.begin(grant);
    }

    /// Nobody who came in has ended or said anything.
    pub(crate) fn stands_still(&self) -> bool {
        !self.watch.behind.stirs()
    }

    /// Ended now, whatever it does.
    pub(crate) fn at_once(mut self) -> Outcome {
        self.watch.deadline = Some(Instant::now());
        self.to_the_end()
    }

    pub fn to_the_end(self) -> Outcome {
        let Warm { mut watch, grant, enforcement, backend } = self;
        let watched = watch.until(Until::End);
        let watched = watched.and(watch.thaw());
        if let Some(desk) = &watch.desk {
            // It ends with its first process, and that one may be whom the kernel ended.
            let killed = watch.raised.group.as_ref().is_some_and(|group| group.out_of_memory_kills() > 0);
            let killed = killed && watch.grace.is_none();
            if let Some(overrun) = watch.overrun.or(killed.then_some(Overrun::Memory)) {
                desk.say_farewell(overrun);
            }
        }
        let heard = watch.hear_the_last();
        let told = watch.programs.tell_last().map_err(|trouble| io::Error::other(trouble.to_string()));
        let stayed = watch.desk.is_some();
        let Watch { mut raised, denials, mut programs, ended, start_failure, overrun, terminal, behind, .. } = watch;
        raised.clock.lap("payload: fork, exec, run, end");
        // Before the group is removed, which begins as soon as the first process is gone.
        let memory = raised.group.as_ref().and_then(Group::peak_memory);
        let kills = raised.group.as_ref().map_or(0, Group::out_of_memory_kills);
        raised.clock.lap("parent: read the control group");
        // First of all that nothing of it lives on; then whether the watching itself went well.
        let mut removing = Err(io::ErrorKind::NotFound.into());
        let later = leavings::are_put_off();
        let reaped = end(&raised, || {
            programs.ending();
            // As late as there is still something to wait for: whoever removes it may take our processor.
            if leavings::go_on_beside() {
                let group = raised.group.as_ref().map_or(Ok(()), |group| group.remove_after(raised.pid));
                let mounts = raised.keeper.as_ref().map_or(Ok(()), |keeper| keeper.remove_after(raised.pid));
                removing = group.and(mounts);
            }
        });
        let mounts = raised.mounts.take().map_or(Ok(()), |mounts| leavings::leave(Left::Mounts(mounts)));
        raised.clock.lap("parent: end the namespaces");
        drop(terminal);
        raised.input.give_back();
        // Signals stay blocked to our end: one that arrives now must not cost the result.
        let drained = raised.pumps.drain(overrun.is_none(), raised.signals.as_fd());
        let elapsed = raised.started.elapsed();
        let removed = raised.group.take().map_or(Ok(()), |group| match removing {
            // Only if nobody is in it any more.
            Ok(()) if reaped.is_ok() => leavings::leave(Left::Group { group, begun: true }),
            _ if later && reaped.is_ok() => leavings::leave(Left::Group { group, begun: false }),
            Ok(()) => group.await_removal(),
            Err(_) => group.remove(),
        });
        let removed = removed.and(mounts).and(raised.keeper.take().map_or(Ok(()), |keeper| match removing {
            Ok(()) if reaped.is_ok() => leavings::leave(Left::Keeper(keeper)),
            // It holds nothing but mounts.
            _ => keeper.dismiss(),
        }));
        raised.clock.lap("parent: wait until the control group is removed");

        let well = watched
            .and(heard)
            .map_err(|error| ("watch it", error))
            .and(told.map_err(|error| ("record it", error)))
            .and(drained.map_err(|error| ("pass its output on", error)))
            .and(removed.map_err(|error| ("remove its control group", error)))
            .and(reaped.map_err(|error| ("end it", error)));
        let (first, used) = match well {
            Ok(reaped) => reaped,
            Err((what, error)) => {
                // Of all that is done here, only passing output on needs room somewhere.
                let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
                let (what, fix) = match is_full {
                    true => ("pass its output on", "send it to where there is room"),
                    false => (what, "please report this"),
                };
                return Outcome::NotSetUp(SetupFailure {
                    wall: Some(Wall::CleanUp),
                    message: format!("the run was ended because belljar could not {what}: {error}"),
                    fix: fix.to_owned(),
                    layers: false,
                });
            }
        };
        let short = overrun.is_some() || kills > 0;
        if let Some(failure) = behind.failure(ended, short, backend) {
            return Outcome::NotSetUp(failure);
        }
        let ended = behind.ended(ended);
        if let Some((stage, errno)) = start_failure {
            return Outcome::NotStarted(cannot_start(stage, errno, &grant));
        }
        let exit = match (ended, first) {
            (Some(Ended::Exited(code)), _) => Exit::Code(code),
            (Some(Ended::Signalled(signal)), _) | (None, Ended::Signalled(signal)) => Exit::Signal(signal),
            // It stayed until somebody asked it to end.
            (None, Ended::Exited(0)) if stayed => Exit::Code(0),
            // The first process ended without a word about the payload: it was killed with all others.
            (None, Ended::Exited(_)) => Exit::Signal(9),
        };
        let out_of_memory = kills > 0 && exit == Exit::Signal(9);
        let accepted = enforcement
            .walls
            .iter()
            .filter(|holding| holding.held != model::Held::Fully)
            .map(|holding| (holding.wall, holding.held.clone()))
            .collect();
        Outcome::Ran(Box::new(Finished {
            run: String::new(),
            exit,
            overrun: overrun.or(out_of_memory.then_some(Overrun::Memory)),
            usage: Usage {
                wall_time: elapsed,
                user_time: used.user + behind.used[0],
                system_time: used.system + behind.used[1],
                peak_memory: memory.unwrap_or(used.peak_resident),
                out_of_memory_kills: kills,
            },
            denials: denials.list,
            denials_not_listed: denials.not_listed,
            output_dropped: raised.pumps.dropped,
            enforcement,
            accepted_gaps: accepted,
            leftover: None,
            inspected: Inspected::default(),
            redacted: Vec::new(),
            captured: None,
            unguarded: Vec::new(),
            traffic: None,
            alerts: Vec::new(),
            gathered: None,
            backend: backend.to_owned(),
            because: String::new(),
            image: None,
            timing: raised.clock.parts.into_iter().map(|(step, nanoseconds)| Timing { step, nanoseconds }).collect(),
        }))
    }
}

/// Ends the first process, and with it all others, and waits for that. `meanwhile`: it takes the kernel as long as a
/// tenth of a whole run, and another processor.
fn end(raised: &Raised, meanwhile: impl FnOnce()) -> io::Result<(Ended, process::Used)> {
    match process::signal(raised.handle.as_fd(), 9) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
        Err(error) => return Err(error),
    }
    meanwhile();
    let (_, ended, used) = process::wait(raised.pid, false)?.ok_or(io::ErrorKind::NotFound)?;
    if raised.sweep {
        // Whoever takes an earlier one apart is a child of ours, too.
        let tidied = leavings::tidy();
        sweep(raised.group.as_ref().map(Group::keeper))?;
        tidied?;
    }
    Ok((ended, used))
}

/// Ends every process that has become ours because its parent ended, until there is none. Each one that ends hands
/// its own children to us, so that nobody gets away by forking.
fn sweep(keeper: Option<i32>) -> io::Result<()> {
    loop {
        let children = std::fs::read("/proc/thread-self/children")?;
        let mut any = false;
        for pid in records::children(&children).filter(|pid| Some(*pid) != keeper) {
            any = true;
            process::kill(pid, 9)?;
            process::wait(pid, false)?;
        }
        if !any {
            return Ok(());
        }
    }
}

/// How long to watch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Until somebody behind a carrier waits for the word to go.
    Ready,
    End,
}

struct Watch {
    raised: Raised,
    denials: Denials,
    programs: Programs,
    measure: Measure,
    terminal: Option<Terminal>,
    deadline: Option<Instant>,
    /// When somebody who was asked to end will be ended.
    grace: Option<Instant>,
    interrupts: (u32, Instant),
    ended: Option<Ended>,
    start_failure: Option<(Stage, i32)>,
    behind: Behind,
    desk: Option<Desk>,
    /// Since when everything in it stands still.
    asleep: Option<Instant>,
    overrun: Option<Overrun>,
    /// Nobody takes what goes out any more. Nothing opens by that: the sockets that it leads to are gone as well.
    shut: bool,
    /// The first process was told to end, and says nothing of what we wait for.
    ends_ahead: bool,
}

impl Watch {
    fn new(mut raised: Raised, grant: &Grant, desk: Option<Desk>) -> Watch {
        let limits = &grant.powers().limits;
        let words = &grant.powers().command.arguments;
        let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        if let Some(listener) = &raised.listener {
            // Only for speed: older kernels answer no, and nothing changes.
            seccomp::prefer_same_cpu(listener.as_fd());
        }
        let disks = std::mem::take(&mut raised.disks);
        let mut measure = Measure::new(raised.pid, limits, disks, raised.group.is_some());
        if let Some(guest) = raised.guest {
            measure.invite(guest);
        }
        Watch {
            deadline: limits.wall_time.map(|time| raised.started + time),
            measure,
            programs: match desk {
                Some(_) => Programs::of_a_host(raised.witness.take(), &raised.proven, raised.pid),
                None => {
                    let programs = Programs::new(raised.witness.take(), words, &raised.proven, raised.behind.is_some());
                    programs.started_by(raised.pid)
                }
            },
            desk,
            behind: match raised.offers {
                true => Behind::new(raised.behind.take()).ends_with_its_report(),
                false => Behind::new(raised.behind.take()),
            },
            raised,
            denials: Denials::default(),
            terminal: None,
            grace: None,
            interrupts: (0, Instant::now()),
            ended: None,
            start_failure: None,
            asleep: None,
            overrun: None,
            shut: false,
            ends_ahead: false,
        }
    }

    fn until(&mut self, until: Until) -> io::Result<()> {
        if let Some(inner) = self.raised.terminal.take() {
            self.terminal = Some(Terminal::new(inner, self.raised.screen.take())?);
        }
        loop {
            let now = Instant::now();
            if self.desk.as_ref().is_some_and(Desk::is_empty) {
                self.measure.rest_if_alone(now);
            }
            if let Some(overrun) = self.overrun_at(now)? {
                self.overrun = Some(overrun);
                return Ok(());
            }
            if self.sample(now)? == Goes::Ended {
                self.overrun = Some(Overrun::Suspended);
                return Ok(());
            }
            if let Some(terminal) = &mut self.terminal {
                terminal.let_go(now)?;
            }
            if self.programs.next().is_some_and(|moment| now >= moment) {
                self.programs.tell().map_err(|trouble| io::Error::other(trouble.to_string()))?;
            }
            let ready = self.wait_for_something(now)?;
            if ready.visitors || ready.wire {
                self.measure.wake();
            }
            if ready.refused
                && let Some(listener) = &self.raised.listener
            {
                self.denials.answer_next(listener.as_fd(), &mut self.programs)?;
            }
            // Nobody is behind that filter any more, and nobody comes: to wait for it would be to turn round and round.
            if ready.nobody_asks {
                self.raised.listener = None;
                self.end_ahead_of_its_report()?;
            }
            if ready.input {
                self.raised.input.pump()?;
            }
            if ready.output {
                self.raised.pumps.pump()?;
            }
            if ready.terminal
                && let Some(terminal) = &mut self.terminal
            {
                terminal.pump()?;
            }
            while ready.signal
                && let Some(signal) = signals::read(self.raised.signals.as_fd())?
            {
                self.pass_on(signal)?;
            }
            self.shut |= ready.outside;
            if ready.visitors
                && let Some(desk) = &mut self.desk
            {
                let killed = self.raised.group.as_ref().map_or(0, Group::out_of_memory_kills);
                let counts = Counts { refused: self.denials.count(), killed };
                let coming = desk.serve(self.raised.wire.as_fd(), counts)?;
                coming.into_iter().for_each(|one| self.programs.expect(one.words));
                desk.tell_the_returned(&self.denials, killed);
                for (who, wish) in desk.wishes() {
                    self.grant_a_wish(&who, wish)?;
                }
            }
            if ready.behind && self.behind.hear(&mut self.start_failure)? {
                return Ok(());
            }
            if until == Until::Ready && self.behind.ready {
                return Ok(());
            }
            if ready.wire && self.hear()? {
                return Ok(());
            }
        }
    }

    /// Whoever came in from outside has ended, and all that they started: the kernel says so of their filter, which nobody gets out
    /// of. How they ended is told by whoever sent them, a moment later; nobody else is left to wait for the first process.
    fn end_ahead_of_its_report(&mut self) -> io::Result<()> {
        if self.behind.will_tell_of_its_end() {
            match process::signal(self.raised.handle.as_fd(), 9) {
                Err(error) if error.raw_os_error() != Some(Errno::SRCH.raw_os_error()) => return Err(error),
                _ => self.ends_ahead = true,
            }
        }
        Ok(())
    }

    /// Stands still or goes on, and says how that went. Time does not run meanwhile.
    fn grant_a_wish(&mut self, who: &OwnedFd, wish: Wish) -> io::Result<()> {
        let Some(desk) = &mut self.desk else { return Ok(()) };
        let done = match (wish, &mut self.raised.group) {
            (_, None) => Err(io::Error::other("there are no control groups for it here")),
            (Wish::Pause, Some(_)) if desk.is_asleep() => Ok(()),
            (Wish::Pause, Some(group)) => group.freeze(),
            (Wish::Resume, Some(group)) => group.thaw(),
        };
        let said = match &done {
            Ok(()) => "done".to_owned(),
            Err(error) => error.to_string(),
        };
        if done.is_ok() && desk.is_asleep() != (wish == Wish::Pause) {
            desk.falls_asleep(wish == Wish::Pause);
            match wish {
                Wish::Pause => self.asleep = Some(Instant::now()),
                Wish::Resume => self.wake_up(),
            }
        }
        match sys::descriptors::send(who.as_fd(), said.as_bytes(), &[]) {
            // Whoever asked may be gone; what they asked for is done.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn wake_up(&mut self) {
        let stood = self.asleep.take().map_or(Duration::ZERO, |since| since.elapsed());
        self.deadline = self.deadline.map(|deadline| deadline + stood);
    }

    /// Whoever is to end must be able to.
    fn thaw(&mut self) -> io::Result<()> {
        if self.asleep.is_none() {
            return Ok(());
        }
        self.wake_up();
        if let Some(desk) = &mut self.desk {
            desk.falls_asleep(false);
        }
        self.raised.group.as_ref().map_or(Ok(()), Group::thaw)
    }

    /// What was said before the carrier ended, and not heard yet.
    fn hear_the_last(&mut self) -> io::Result<()> {
        self.behind.hear(&mut self.start_failure).map(drop)
    }

    /// Which limit is over, if any.
    fn overrun_at(&mut self, now: Instant) -> io::Result<Option<Overrun>> {
        let past = |moment: Option<Instant>| moment.is_some_and(|moment| now >= moment);
        if self.asleep.is_none() && past(self.deadline) {
            return Ok(Some(Overrun::WallTime));
        }
        if past(self.grace) {
            return Ok(Some(Overrun::Cancelled));
        }
        self.measure.overrun(now, self.raised.group.as_ref())
    }

    /// Tells what is used so far, if it is time to.
    fn sample(&mut self, now: Instant) -> io::Result<Goes> {
        let Some(used) = self.measure.sample(now, self.raised.group.as_ref()) else { return Ok(Goes::On) };
        let sample = Sample {
            after: self.raised.started.elapsed(),
            output: self.raised.pumps.passed + self.terminal.as_ref().map_or(0, Terminal::passed),
            denials: self.denials.count(),
            ..used
        };
        self.programs.sampled(&sample).map_err(|trouble| io::Error::other(trouble.to_string()))
    }

    fn wait_for_something(&self, now: Instant) -> io::Result<Ready> {
        let mut sources: Vec<(What, BorrowedFd<'_>)> = vec![(What::Signal, self.raised.signals.as_fd())];
        if !self.ends_ahead {
            sources.push((What::Wire, self.raised.wire.as_fd()));
        }
        let outside = self.raised.outside.iter().filter(|_| !self.shut);
        sources.extend(outside.map(|outside| (What::Outside, outside.gone())));
        sources.extend(self.desk.iter().flat_map(Desk::wanted).map(|visitor| (What::Visitors, visitor)));
        sources.extend(self.behind.wanted().map(|report| (What::Behind, report)));
        sources.extend(self.raised.listener.iter().map(|listener| (What::Refused, listener.as_fd())));
        sources.extend(
            self.raised.pumps.wanted().map(|(pump, out)| (if out { What::OutputTo } else { What::Output }, pump)),
        );
        let input = self.raised.input.wanted();
        sources.extend(input.map(|(input, out)| (if out { What::InputTo } else { What::Input }, input)));
        let terminal = self.terminal.iter().flat_map(Terminal::wanted);
        sources.extend(terminal.map(|(fd, out)| (if out { What::TerminalTo } else { What::Terminal }, fd)));
        let mut list: Vec<_> = sources
            .iter()
            .map(|(what, fd)| {
                let flags = if matches!(what, What::InputTo | What::OutputTo | What::TerminalTo) {
                    PollFlags::OUT
                } else {
                    PollFlags::IN
                };
                PollFd::from_borrowed_fd(*fd, flags)
            })
            .collect();

        let screen = self.terminal.as_ref().and_then(Terminal::next);
        let deadline = self.deadline.filter(|_| self.asleep.is_none());
        let next =
            [deadline, self.grace, self.measure.next(), self.programs.next(), screen].into_iter().flatten().min();
        let timeout = next.map(|moment| timespec(moment.saturating_duration_since(now)));
        match poll(&mut list, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |what: What| {
            sources.iter().zip(&list).any(|((source, _), polled)| *source == what && !polled.revents().is_empty())
        };
        let asked = sources.iter().zip(&list).find(|((source, _), _)| *source == What::Refused);
        let asked = asked.map(|(_, polled)| polled.revents());
        Ok(Ready {
            wire: is_ready(What::Wire),
            signal: is_ready(What::Signal),
            // A filter that nobody is behind any more only hangs up.
            refused: asked.is_some_and(|asked| asked.contains(PollFlags::IN)),
            nobody_asks: asked.is_some_and(|asked| asked.contains(PollFlags::HUP) && !asked.contains(PollFlags::IN)),
            outside: is_ready(What::Outside),
            behind: is_ready(What::Behind),
            visitors: is_ready(What::Visitors),
            input: is_ready(What::Input) || is_ready(What::InputTo),
            output: is_ready(What::Output) || is_ready(What::OutputTo),
            terminal: is_ready(What::Terminal) || is_ready(What::TerminalTo),
        })
    }

    /// What the first process says. True when there is nothing more to wait for.
    fn hear(&mut self) -> io::Result<bool> {
        if let Some(desk) = &mut self.desk {
            let Some((said, along)) = live::hear(self.raised.wire.as_fd())? else { return Ok(true) };
            // It never came to ask for the program.
            if matches!(said, Said::NotStarted { stage, .. } if stage != Stage::Execute) {
                self.programs.expect_no_more();
            }
            let killed = self.raised.group.as_ref().map_or(0, Group::out_of_memory_kills);
            desk.pass_on(self.raised.wire.as_fd(), said, &along, &self.denials, killed)?;
            return Ok(false);
        }
        match wire::receive(self.raised.wire.as_fd())? {
            None => Ok(true),
            Some((Report::CannotStart { stage, errno }, _)) => {
                self.start_failure = Some((stage, errno));
                Ok(false)
            }
            Some((Report::Ended { status }, _)) => {
                self.ended = Some(Ended::from_status(status));
                Ok(true)
            }
            Some((report, _)) => Err(io::Error::new(io::ErrorKind::InvalidData, format!("unexpected {report:?}"))),
        }
    }

    /// Signals to us are meant for the payload; the first process hands them on to its whole group.
    fn pass_on(&mut self, signal: i32) -> io::Result<()> {
        let now = Instant::now();
        match signal {
            SIGCHLD | SIGPIPE => return Ok(()),
            SIGTERM | SIGHUP | SIGQUIT => {
                self.thaw()?;
                self.desk.iter_mut().for_each(Desk::lets_contexts_go);
                self.grace = self.grace.or(Some(now + GRACE));
            }
            SIGINT => {
                self.desk.iter_mut().for_each(Desk::lets_contexts_go);
                let (count, since) = self.interrupts;
                self.interrupts = if now - since < Duration::from_secs(1) { (count + 1, since) } else { (1, now) };
                // Without somebody at a terminal who could press it again, once must do.
                if !rustix::termios::isatty(rustix::stdio::stdin()) {
                    self.grace = self.grace.or(Some(now + GRACE));
                } else if self.interrupts.0 >= INSISTENCE {
                    self.grace = Some(now);
                }
            }
            SIGWINCH => {
                self.terminal.as_ref().map_or(Ok(()), Terminal::resize)?;
                return self.behind.tell(signal).map(drop);
            }
            SIGTSTP | SIGTTIN | SIGTTOU => {
                // As in a shell: the whole job stops, we last; and all go on together.
                self.tell(SIGTSTP)?;
                signals::stop_self()?;
                return self.tell(SIGCONT);
            }
            _ => {}
        }
        self.tell(signal)
    }

    fn tell(&self, signal: i32) -> io::Result<()> {
        if self.behind.tell(signal)? {
            return Ok(());
        }
        match process::signal(self.raised.handle.as_fd(), signal) {
            Err(error) if error.raw_os_error() != Some(Errno::SRCH.raw_os_error()) => Err(error),
            _ => Ok(()),
        }
    }
}

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGPIPE: i32 = 13;
const SIGTERM: i32 = 15;
const SIGCHLD: i32 = 17;
const SIGCONT: i32 = 18;
const SIGTSTP: i32 = 20;
const SIGTTIN: i32 = 21;
const SIGTTOU: i32 = 22;
const SIGWINCH: i32 = 28;

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Wire,
    Signal,
    Refused,
    Outside,
    Behind,
    Visitors,
    Input,
    InputTo,
    Output,
    OutputTo,
    Terminal,
    TerminalTo,
}

struct Ready {
    wire: bool,
    signal: bool,
    refused: bool,
    nobody_asks: bool,
    outside: bool,
    behind: bool,
    visitors: bool,
    input: bool,
    output: bool,
    terminal: bool,
}

pub fn timespec(duration: Duration) -> Timespec {
    // Rounded up, so that a wait never ends just before its moment.
    let duration = duration + Duration::from_micros(1);
    Timespec { tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), tv_nsec: duration.subsec_nanos().into() }
}

pub fn cannot_start(stage: Stage, errno: i32, grant: &Grant) -> StartFailure {
    let command = &grant.powers().command;
    let error = io::Error::from_raw_os_error(errno);
    let program = command.program.display();
    let errno = Errno::from_raw_os_error(errno);
    let (found, message, fix) = match (stage, errno) {
        (Stage::WorkingDirectory, _) => (
            true,
            format!("cannot enter `{}`: {error}", command.directory.display()),
            "choose a folder that the sandbox can see with `--cwd`".to_owned(),
        ),
        (Stage::Fork | Stage::Terminal, _) => {
            (true, format!("cannot start `{program}`: {error}"), "see `belljar doctor`".to_owned())
        }
        (Stage::Execute, Errno::NOENT) => (
            false,
            format!("cannot run `{program}`: it, or the interpreter or loader it names, is not there"),
            "check the path, and its first line if it is a script; `--read PATH` shows the sandbox more".to_owned(),
        ),
        (Stage::Execute, Errno::ACCESS) => (
            true,
            format!("cannot run `{program}`: {error}"),
            "make it executable (`chmod +x`), or name its interpreter".to_owned(),
        ),
        (Stage::Execute, Errno::TOOBIG) => (
            true,
            format!("cannot run `{program}`: its arguments and environment are too long"),
            "pass them in a file or on standard input".to_owned(),
        ),
        (Stage::Execute, Errno::NOEXEC) => (
            true,
            format!("cannot run `{program}`: it is neither a program for this machine nor a script with a `#!` line"),
            "name its interpreter: `belljar run -- sh FILE`".to_owned(),
        ),
        (Stage::Execute, _) => (true, format!("cannot run `{program}`: {error}"), "see `belljar doctor`".to_owned()),
    };
    StartFailure { found, message, fix }
}
