//! A visitor who runs a cell in a context: an interpreter that waits behind walls which stand already. If there is none, it is
//! started with a kernel of ours in place of the cell's code, and waits for the next one afterwards.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use guest::live::{Order, Said};
use model::{
    CellHears, CellLanguage, CellNews, CellWork, ContextDeed, ContextShown, Enforcement, Exit, Finished, Grant,
    Inspected, Makes, Outcome, Overrun, Parcel, ParcelDeed, SetupFailure, Streams, Trouble, Usage, Wall,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use sys::process::Ended;
use sys::{descriptors, signals};

use super::contexts::{BUSY, DONE, Ends, FULL, IDLE, INTERRUPT, NONE, Wanted, has_parcels, lent};
use super::desk::{ASLEEP, PAUSED, RESUMED, overrun_named};
use super::visit::{GRACE, KILL, LONGEST, Refused, errand, failure, greeted, refused, sealed};
use crate::cells::{Frame, Frames};
use crate::launch::{cannot, check_descriptors};
use crate::output::{Pumps, handed_over, is_ready};
use crate::supervise::{cannot_start, timespec};

/// How long somebody who was interrupted may take to stop, before the context is ended for it.
const PATIENCE: Duration = Duration::from_secs(3);
const INTERRUPTS: i32 = 2;

pub struct CellVisit {
    host: OwnedFd,
    grant: Grant,
    enforcement: Enforcement,
    pumps: Pumps,
    /// Where cells go in, and what is still to go.
    cells: OwnedFd,
    sending: Vec<u8>,
    sent: usize,
    /// Of that, how much is the cell.
    whole: usize,
    results: OwnedFd,
    frames: Frames,
    hears: Box<dyn CellHears>,
    number: u64,
    signals: OwnedFd,
    started: Instant,
    deadline: Option<Instant>,
    paused: Option<Instant>,
    /// When a context that was interrupted is ended.
    patience: Option<Instant>,
    overrun: Option<Overrun>,
    refused: Refused,
    end: Option<End>,
}

enum End {
    /// It said that it is done.
    Done(u8),
    Not(guest::wire::Stage, i32),
    /// The interpreter ended.
    Ended(Ended),
    /// What it told was nothing.
    Nonsense,
    /// It did not stop.
    Deaf,
    /// The sandbox itself ended.
    Gone,
}

pub fn begin(
    host: OwnedFd,
    grant: &Grant,
    enforcement: Enforcement,
    streams: Streams,
    work: CellWork,
) -> Result<CellVisit, SetupFailure> {
    check_descriptors()?;
    let greeting = greeted(&host, grant)?;
    let CellWork { context, language, makes, kernel, code, parcel, mut hears } = work;
    // Never put back: a signal that arrives later must not cost the result.
    signals::block_all().map_err(cannot("block signals"))?;
    let signals = signals::descriptor().map_err(cannot("listen for signals"))?;
    let reach = cannot("reach the sandbox's host");
    let (mut end, mut paused) = (None, None);
    let found = match makes {
        Makes::Always => None,
        Makes::Never | Makes::IfMissing => borrowed(&host, &context)?,
    };
    let (ends, number) = match (found, makes) {
        (Some(found), _) => found,
        (None, Makes::Never) => {
            return Err(failure(format!("there is no context `{context}`"), "make it first; or it ended meanwhile"));
        }
        (None, Makes::IfMissing | Makes::Always) => {
            let errand = errand(grant, &greeting, Some(&kernel)).map_err(cannot("pass on the command"))?;
            let errand = sealed(&errand).map_err(cannot("pass on the command"))?;
            let (ends, theirs) = pipes(language, greeting.owner).map_err(cannot("make pipes"))?;
            let all = std::iter::once(errand.as_fd()).chain(theirs.iter().map(AsFd::as_fd)).chain(ends.all());
            let wanted = Wanted::Make(context.clone(), language).encode();
            descriptors::send(host.as_fd(), &wanted, &all.collect::<Vec<_>>()).map_err(reach)?;
            (end, paused) = made(&host, &context)?;
            (ends, 1)
        }
    };
    hears.hear(CellNews::Begun { fresh: number == 1, number });
    let deed = match &parcel {
        None => String::new(),
        // Whoever has a context without anything for it is gone: so is the context, then.
        Some(parcel) => handed_in(&ends, parcel).map_err(cannot("hand variables to the context"))?,
    };
    let mut sending = format!("{number} {}{deed}\n", code.len()).into_bytes();
    sending.extend_from_slice(code.as_bytes());
    let limits = &grant.powers().limits;
    let started = Instant::now();
    let Ends { cells, output, error, results, parcels: _ } = ends;
    let mut visit = CellVisit {
        host,
        grant: grant.clone(),
        enforcement,
        pumps: Pumps::of_pipes(limits.output, streams, output, error),
        cells,
        whole: sending.len(),
        sending,
        sent: 0,
        results,
        frames: Frames::default(),
        hears,
        number,
        signals,
        started,
        deadline: limits.wall_time.map(|time| started + time),
        paused,
        patience: None,
        overrun: None,
        refused: Refused::default(),
        end,
    };
    // It may begin while we do something else.
    visit.send_some().map_err(cannot("hand the code over"))?;
    Ok(visit)
}

/// Before the words that it comes with. What is said is what is to be done with it.
fn handed_in(ends: &Ends, parcel: &Parcel) -> io::Result<String> {
    let parcels = ends.parcels.as_ref().ok_or(io::ErrorKind::Unsupported)?;
    let hand_in = |bytes: BorrowedFd<'_>| descriptors::send(parcels.as_fd(), b"parcel", &[bytes]);
    match parcel.deed {
        ParcelDeed::Save(most) => {
            hand_in(parcel.bytes.as_fd())?;
            Ok(format!(" save {most}"))
        }
        ParcelDeed::Load => {
            let (_, along) = descriptors::receive(parcel.bytes.as_fd(), &mut [0; 16])?;
            let bytes = along.into_iter().next().ok_or(io::ErrorKind::UnexpectedEof)?;
            // What others read as well must be what it is for good.
            if !sys::parcel::is_shut(bytes.as_fd()) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            hand_in(bytes.as_fd())?;
            Ok(" load 0".to_owned())
        }
    }
}

/// Whether it was started; if not, why. Everything may have been paused meanwhile.
fn made(host: &OwnedFd, context: &str) -> Result<(Option<End>, Option<Instant>), SetupFailure> {
    let mut paused = None;
    loop {
        let received = descriptors::receive_whole(host.as_fd(), LONGEST);
        let (words, _) = received.map_err(cannot("reach the sandbox's host"))?;
        match words.as_slice() {
            PAUSED => paused = Some(Instant::now()),
            RESUMED => paused = None,
            words => {
                return match Said::decode(words) {
                    Some(Said::Started { .. }) => Ok((None, paused)),
                    Some(Said::NotStarted { stage, errno, .. }) => Ok((Some(End::Not(stage, errno)), paused)),
                    Some(Said::Ended { .. }) | None => Err(not_lent(words, context)),
                };
            }
        }
    }
}

/// One that is there, and which cell of it this is.
fn borrowed(host: &OwnedFd, context: &str) -> Result<Option<(Ends, u64)>, SetupFailure> {
    let (words, along) = asked(host, &Wanted::Lend(context.to_owned())).map_err(cannot("reach the sandbox's host"))?;
    match words.as_slice() {
        NONE => Ok(None),
        words => match (lent(words), Ends::of(along)) {
            (Some(number), Some(ends)) => Ok(Some((ends, number))),
            _ => Err(not_lent(words, context)),
        },
    }
}

fn not_lent(words: &[u8], context: &str) -> SetupFailure {
    match words {
        BUSY => failure(
            format!("something runs in the context `{context}`, or it was made meanwhile"),
            "wait for its end, interrupt it, or use another",
        ),
        FULL => failure("there are as many contexts as there can be".to_owned(), "remove one that is not needed"),
        ASLEEP => failure("the sandbox is paused, and nothing can be started in it".to_owned(), "resume it first"),
        _ => failure("the sandbox's host lends no context".to_owned(), "stop it, and open it again"),
    }
}

/// What the host answers to it.
fn asked(host: &OwnedFd, wanted: &Wanted) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    descriptors::send(host.as_fd(), &wanted.encode(), &[])?;
    let (words, along) = descriptors::receive_whole(host.as_fd(), LONGEST)?;
    match words.is_empty() {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok((words, along)),
    }
}

/// Our ends, and those of the interpreter: input, output, error output, results, and where descriptors come in.
fn pipes(language: CellLanguage, owner: Option<(u32, u32)>) -> io::Result<(Ends, Vec<OwnedFd>)> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC);
    let ((input, cells), (output, out), (error, err), (results, told)) = (pipe()?, pipe()?, pipe()?, pipe()?);
    // Only our end: somebody who does not read must not stop us.
    rustix::io::ioctl_fionbio(&cells, true)?;
    let mut theirs = vec![input, out, err, told];
    if let Some((user, group)) = owner {
        theirs.iter().try_for_each(|end| handed_over(end, user, group))?;
    }
    let mut parcels = None;
    if has_parcels(language) {
        let (ours, into) = descriptors::wire()?;
        // Nothing is ever read from it: whoever is inside can't even try to say something there, or hand us something.
        rustix::net::shutdown(&into, rustix::net::Shutdown::Write)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        parcels = Some(ours);
        theirs.push(into);
    }
    Ok((Ends { cells, output, error, results, parcels }, theirs))
}

fn trouble(error: io::Error) -> Trouble {
    Trouble {
        message: format!("the sandbox's host does not answer: {error}"),
        fix: "stop it, and open it again".to_owned(),
    }
}

/// The greeting is not needed: nothing is started.
fn answer(host: &OwnedFd, wanted: &Wanted) -> Result<Vec<u8>, Trouble> {
    descriptors::receive_whole(host.as_fd(), LONGEST).map_err(trouble)?;
    asked(host, wanted).map(|(words, _)| words).map_err(trouble)
}

pub fn contexts(host: &OwnedFd) -> Result<Vec<ContextShown>, Trouble> {
    let words = answer(host, &Wanted::List)?;
    serde_json::from_slice(&words).map_err(|error| trouble(error.into()))
}

/// Whether there was something to do it to.
pub fn do_to(host: &OwnedFd, context: &str, deed: ContextDeed) -> Result<bool, Trouble> {
    let wanted = match deed {
        ContextDeed::Interrupt => Wanted::Interrupt(context.to_owned()),
        ContextDeed::End => Wanted::End(context.to_owned()),
    };
    match answer(host, &wanted)?.as_slice() {
        DONE | IDLE => Ok(true),
        NONE => Ok(false),
        _ => Err(trouble(io::ErrorKind::InvalidData.into())),
    }
}

impl model::Sandbox for CellVisit {
    fn supervise(mut self: Box<Self>) -> Outcome {
        let watched = self.watch();
        // What it said before its end is heard to its end.
        let told =
            if watched.is_ok() && !matches!(self.end, Some(End::Nonsense)) { self.hear_results() } else { Ok(()) };
        let kept = matches!(self.end, Some(End::Done(_))) && watched.is_ok() && told.is_ok();
        match kept {
            true => self.give_back(),
            false => self.end_it(),
        }
        let drained = self.pumps.drain_what_is_said(self.signals.as_fd());
        if let Err(error) = watched.and(told).and(drained) {
            self.hears.hear(CellNews::Lost("belljar could not watch over it".to_owned()));
            return Outcome::NotSetUp(SetupFailure {
                wall: Some(Wall::CleanUp),
                message: format!("the context was ended because belljar could not watch over it: {error}"),
                fix: "please report this".to_owned(),
                layers: false,
            });
        }
        let lost = match &self.end {
            Some(End::Done(_)) => None,
            Some(End::Not(stage, errno)) => {
                return Outcome::NotStarted(cannot_start(*stage, *errno, &self.grant));
            }
            Some(End::Ended(Ended::Exited(code))) => Some(format!("its interpreter ended with {code}")),
            Some(End::Ended(Ended::Signalled(signal))) => Some(format!("its interpreter was ended by signal {signal}")),
            Some(End::Nonsense) => Some("it told results that are none, and was ended".to_owned()),
            Some(End::Deaf) => Some("it did not stop when it was interrupted, and was ended".to_owned()),
            Some(End::Gone) | None => Some("the sandbox ended".to_owned()),
        };
        if let Some(lost) = lost {
            self.hears.hear(CellNews::Lost(lost));
        }
        let exit = match self.end {
            Some(End::Done(code)) => Exit::Code(code.into()),
            Some(End::Ended(Ended::Exited(code))) => Exit::Code(code),
            Some(End::Ended(Ended::Signalled(signal))) => Exit::Signal(signal),
            _ => Exit::Signal(KILL),
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
            usage: Usage { wall_time: self.started.elapsed(), out_of_memory_kills: killed, ..Usage::default() },
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

impl CellVisit {
    fn watch(&mut self) -> io::Result<()> {
        while self.end.is_none() {
            let now = Instant::now();
            let past = |moment: Option<Instant>| moment.is_some_and(|moment| now >= moment);
            if past(self.deadline.filter(|_| self.paused.is_none() && self.overrun.is_none())) {
                self.overrun = Some(Overrun::WallTime);
                self.interrupt(Some(now + PATIENCE));
            }
            if past(self.patience.filter(|_| self.paused.is_none())) {
                self.end = Some(End::Deaf);
                return Ok(());
            }
            let said = self.wait_for_something(now)?;
            self.send_some()?;
            self.pumps.pump()?;
            self.hear_results()?;
            while let Some(signal) = signals::read(self.signals.as_fd())? {
                if matches!(signal, 1 | 2 | 3 | 15) {
                    self.overrun = self.overrun.or(Some(Overrun::Cancelled));
                    self.interrupt(Some(now + PATIENCE));
                }
            }
            if said && self.end.is_none() {
                self.hear()?;
            }
        }
        Ok(())
    }

    /// True if the host said something.
    fn wait_for_something(&self, now: Instant) -> io::Result<bool> {
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut list =
            vec![readable(self.host.as_fd()), readable(self.signals.as_fd()), readable(self.results.as_fd())];
        if self.sent < self.sending.len() {
            list.push(PollFd::from_borrowed_fd(self.cells.as_fd(), PollFlags::OUT));
        }
        let out = |out: bool| if out { PollFlags::OUT } else { PollFlags::IN };
        list.extend(self.pumps.wanted().map(|(fd, writes)| PollFd::from_borrowed_fd(fd, out(writes))));
        let deadline = self.deadline.filter(|_| self.overrun.is_none());
        let next = [deadline, self.patience].into_iter().flatten().min().filter(|_| self.paused.is_none());
        let timeout: Option<Timespec> = next.map(|moment| timespec(moment.saturating_duration_since(now)));
        match poll(&mut list, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(!list[0].revents().is_empty())
    }

    fn send_some(&mut self) -> io::Result<()> {
        while self.sent < self.sending.len() {
            match rustix::io::write(&self.cells, &self.sending[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                // It has ended, which is heard of too.
                Err(Errno::PIPE) => self.sent = self.sending.len(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// As far as something is there. What is told of cells before this one was meant for somebody who is gone.
    fn hear_results(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        while matches!(self.end, None | Some(End::Ended(_))) && is_ready(self.results.as_fd(), PollFlags::IN)? {
            let read = match rustix::io::read(&self.results, &mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let frames = self.frames.push(&buffer[..read]);
            let number = self.number;
            for frame in frames.into_iter().filter(|frame| frame.cell() >= number) {
                if frame.cell() > number || matches!(self.end, Some(End::Done(_))) {
                    self.end = Some(End::Nonsense);
                    return Ok(());
                }
                self.take(frame);
            }
            if self.frames.is_broken() || matches!(self.end, Some(End::Done(_))) && !self.frames.is_between() {
                self.end = Some(End::Nonsense);
            }
        }
        Ok(())
    }

    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Part { result, value, kind, bytes, .. } => {
                self.hears.hear(CellNews::Part { result, value, kind, bytes });
            }
            Frame::Failed { error, .. } => self.hears.hear(CellNews::Failed(error)),
            Frame::Done { exit, interrupted, left_out, .. } => {
                self.hears.hear(CellNews::Done { interrupted, left_out: left_out.into() });
                if self.end.is_none() {
                    // Nobody is done with what they have not even read.
                    let read = self.sent >= self.whole;
                    self.end = Some(if read { End::Done(exit) } else { End::Nonsense });
                }
            }
        }
    }

    fn hear(&mut self) -> io::Result<()> {
        let words = match descriptors::receive_whole(self.host.as_fd(), LONGEST) {
            Ok((words, _)) if !words.is_empty() => words,
            Ok(_) | Err(_) => {
                self.end = Some(End::Gone);
                return Ok(());
            }
        };
        match words.as_slice() {
            PAUSED => self.paused = self.paused.or(Some(Instant::now())),
            RESUMED => {
                let stood = self.paused.take().map_or(Duration::ZERO, |since| since.elapsed());
                self.deadline = self.deadline.map(|deadline| deadline + stood);
                self.patience = self.patience.map(|patience| patience + stood);
            }
            INTERRUPT => self.interrupt(None),
            words => match Said::decode(words) {
                Some(Said::Started { .. }) => {}
                Some(Said::NotStarted { stage, errno, .. }) => self.end = Some(End::Not(stage, errno)),
                Some(Said::Ended { status, .. }) => self.end = Some(End::Ended(Ended::from_status(status))),
                None => match overrun_named(words) {
                    Some(overrun) => self.overrun = self.overrun.or(Some(overrun)),
                    None => self.refused = refused(words),
                },
            },
        }
        Ok(())
    }

    /// By a signal to all that the cell started; and with a word to the kernel, for those where a signal does not reach the code.
    fn interrupt(&mut self, patience: Option<Instant>) {
        self.patience = self.patience.or(patience);
        self.sending.extend_from_slice(b"interrupt\n");
        self.tell(INTERRUPTS);
    }

    fn tell(&self, signal: i32) {
        match descriptors::send(self.host.as_fd(), &Order::Signal { number: 0, signal }.encode(), &[]) {
            // Gone; that is heard of, too.
            Ok(()) | Err(_) => {}
        }
    }

    /// Whoever comes next may have it; and says what was refused meanwhile.
    fn give_back(&mut self) {
        if descriptors::send(self.host.as_fd(), &Wanted::GiveBack.encode(), &[]).is_ok() {
            self.await_host(|_, words| words.starts_with(b"refused\t"));
        }
    }

    /// It does not go on without anybody.
    fn end_it(&mut self) {
        if matches!(self.end, Some(End::Not(..) | End::Ended(_) | End::Gone)) {
            return;
        }
        self.tell(KILL);
        self.await_host(|_, words| matches!(Said::decode(words), Some(Said::Ended { .. })));
    }

    /// A host that says nothing is gone itself.
    fn await_host(&mut self, is_it: impl Fn(&Self, &[u8]) -> bool) {
        let until = Instant::now() + GRACE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut one = [PollFd::from_borrowed_fd(self.host.as_fd(), PollFlags::IN)];
            match poll(&mut one, Some(&timespec(left))) {
                Ok(1..) => {}
                Err(Errno::INTR) => continue,
                _ => return,
            }
            let Ok((said, _)) = descriptors::receive_whole(self.host.as_fd(), LONGEST) else { return };
            if said.starts_with(b"refused\t") {
                self.refused = refused(&said);
            }
            if said.is_empty() || is_it(self, &said) {
                return;
            }
        }
    }
}
