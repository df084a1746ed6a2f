//! The host's side: takes visitors' orders to the first process, and its reports back to them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use guest::live::{Errand, Order, Said};
use model::Overrun;
use rustix::io::Errno;
use rustix::net::SocketFlags;
use sys::descriptors;

use super::Greeting;
use super::contexts::{BUSY, Contexts, DONE, Ends, FULL, IDLE, INTERRUPT, NONE, Wanted, has_parcels};
use crate::denials::Denials;

/// So that whatever they all say at once fits into the wire: the first process may wait for us meanwhile.
const MOST_VISITORS: usize = 128;
const KILL: i32 = 9;
/// Longer than anything that a visitor may want.
const LONGEST: usize = 256;
/// What comes with the wish for a new context: its errand and its ends of its pipes (some have one more), then ours.
const OF_A_CONTEXT: usize = 5;

pub struct Desk {
    listener: OwnedFd,
    greeting: Vec<u8>,
    visitors: Vec<Visitor>,
    next: u32,
    /// Who wants it to stand still or to go on, and what is said to them.
    wishes: Vec<(OwnedFd, Wish)>,
    /// Nothing is started meanwhile.
    asleep: bool,
    /// What is being started. One at a time: until it is, the first process stands still, and others wait at the door.
    starting: Option<u32>,
    contexts: Contexts,
    /// Who gave a context back, and what had been refused before.
    returned: Vec<(OwnedFd, Counts)>,
}

struct Visitor {
    connection: OwnedFd,
    /// What it started, if that has not ended.
    errand: Option<Running>,
    gone: bool,
}

#[derive(Clone, Copy)]
struct Running {
    number: u32,
    before: Counts,
}

/// What happened in the sandbox so far, whoever did it.
#[derive(Clone, Copy)]
pub struct Counts {
    pub refused: u64,
    /// Ended by the kernel for want of memory.
    pub killed: u64,
}

/// What came in: words of a program that is about to be started.
pub struct Coming {
    pub words: Vec<String>,
}

impl Desk {
    /// `listener`: where visitors come, one message at a time.
    pub fn new(listener: OwnedFd, greeting: &Greeting) -> io::Result<Desk> {
        rustix::io::ioctl_fionbio(&listener, true)?;
        Ok(Desk {
            listener,
            greeting: greeting.encode(),
            visitors: Vec::new(),
            wishes: Vec::new(),
            asleep: false,
            next: 0,
            starting: None,
            contexts: Contexts::default(),
            returned: Vec::new(),
        })
    }

    pub fn wanted(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let heard = self.visitors.iter().filter(|visitor| self.starting.is_none() || visitor.errand.is_some());
        let visitors = heard.map(|visitor| visitor.connection.as_fd());
        // With as many as there can be, who knocks waits, and so do we: else we would hear nothing but that.
        (self.visitors.len() < MOST_VISITORS).then(|| self.listener.as_fd()).into_iter().chain(visitors)
    }

    /// Nobody is there who could have something started, nor is anything being started.
    pub fn is_empty(&self) -> bool {
        self.visitors.is_empty() && self.starting.is_none() && self.wishes.is_empty() && self.returned.is_empty()
    }

    /// Lets visitors in, and takes one order of each. `wire` leads to the first process.
    pub fn serve(&mut self, wire: BorrowedFd<'_>, before: Counts) -> io::Result<Vec<Coming>> {
        self.let_in()?;
        let mut coming = Vec::new();
        let mut interrupted = Vec::new();
        let mut back = Vec::new();
        for visitor in &mut self.visitors {
            let waits = self.starting.is_some() && visitor.errand.is_none();
            if waits || !crate::output::is_ready(visitor.connection.as_fd(), rustix::event::PollFlags::IN)? {
                continue;
            }
            let mut words = [0; LONGEST];
            // Whoever says something that is nothing is treated as if it had gone.
            let taken = descriptors::receive(visitor.connection.as_fd(), &mut words);
            let wish = taken.as_ref().ok().and_then(|(length, _)| Wish::named(words.get(..*length)?));
            if let (Some(wish), None) = (wish, visitor.errand) {
                self.wishes.push((visitor.connection.try_clone()?, wish));
                continue;
            }
            let wanted = taken.as_ref().ok().and_then(|(length, _)| Wanted::decode(words.get(..*length)?));
            if let Some(wanted) = wanted {
                let along = taken.map(|(_, along)| along).unwrap_or_default();
                let talk = visitor.connection.as_fd();
                let answer = match (wanted, visitor.errand) {
                    (Wanted::Lend(_) | Wanted::Make(..), None) if self.asleep => Some(ASLEEP.to_vec()),
                    (Wanted::Lend(name), None) => match self.contexts.find(&name) {
                        None => Some(NONE.to_vec()),
                        Some((_, true)) => Some(BUSY.to_vec()),
                        Some((number, false)) => {
                            visitor.errand = Some(Running { number, before });
                            // One that does not listen has it all the same, and takes it along.
                            visitor.gone = self.contexts.lend(number, talk).is_err();
                            None
                        }
                    },
                    (Wanted::Make(name, _), None) if self.contexts.find(&name).is_some() => Some(BUSY.to_vec()),
                    (Wanted::Make(..), None) if self.contexts.is_full() => Some(FULL.to_vec()),
                    (Wanted::Make(name, language), None) => {
                        let mut along = along;
                        let theirs = OF_A_CONTEXT + usize::from(has_parcels(language));
                        let ours = along.split_off(along.len().min(theirs));
                        match Ends::of(ours) {
                            None => visitor.gone = true,
                            Some(ends) => {
                                let number = self.next;
                                self.next = self.next.wrapping_add(1);
                                visitor.errand = Some(Running { number, before });
                                self.starting = Some(number);
                                let what = format!("(a context: {name})");
                                let program = along.first().map(words_of).and_then(|words| words.into_iter().next());
                                coming.push(Coming { words: program.into_iter().chain([what]).collect() });
                                self.contexts.add(name, language, number, ends);
                                let along: Vec<BorrowedFd<'_>> = along.iter().map(AsFd::as_fd).collect();
                                descriptors::send(wire, &Order::Start { number, terminal: false }.encode(), &along)?;
                            }
                        }
                        None
                    }
                    (Wanted::GiveBack, Some(Running { number, before })) => {
                        if self.contexts.take_back(number) {
                            visitor.errand = None;
                            back.push((visitor.connection.try_clone()?, before));
                        }
                        None
                    }
                    (Wanted::List, None) => Some(self.contexts.list()),
                    (Wanted::Interrupt(name), None) => match self.contexts.find(&name) {
                        None => Some(NONE.to_vec()),
                        Some((_, false)) => Some(IDLE.to_vec()),
                        Some((number, true)) => {
                            interrupted.push(number);
                            Some(DONE.to_vec())
                        }
                    },
                    (Wanted::End(name), None) => match self.contexts.find(&name) {
                        None => Some(NONE.to_vec()),
                        Some((number, _)) => {
                            self.contexts.await_end(number, visitor.connection.try_clone()?);
                            descriptors::send(wire, &Order::Signal { number, signal: KILL }.encode(), &[])?;
                            None
                        }
                    },
                    // Whoever has one already, or gives back what they do not have.
                    (_, errand) => {
                        abandon(errand, wire)?;
                        visitor.gone = true;
                        None
                    }
                };
                if let Some(answer) = answer {
                    visitor.gone = descriptors::send(talk, &answer, &[]).is_err();
                }
                if visitor.gone {
                    abandon(visitor.errand.take(), wire)?;
                }
                continue;
            }
            let order = taken.ok().and_then(|(length, along)| Some((Order::decode(words.get(..length)?)?, along)));
            match (order, visitor.errand) {
                (Some((Order::Start { .. } | Order::Files { .. }, _)), None) if self.asleep => {
                    // One that does not listen is gone as well.
                    visitor.gone = descriptors::send(visitor.connection.as_fd(), ASLEEP, &[]).map_or(true, |()| true);
                }
                (Some((Order::Start { terminal, .. }, along)), None) => {
                    let number = self.next;
                    self.next = self.next.wrapping_add(1);
                    visitor.errand = Some(Running { number, before });
                    self.starting = Some(number);
                    coming.push(Coming { words: along.first().map(words_of).unwrap_or_default() });
                    let along: Vec<BorrowedFd<'_>> = along.iter().map(AsFd::as_fd).collect();
                    descriptors::send(wire, &Order::Start { number, terminal }.encode(), &along)?;
                }
                (Some((Order::Files { .. }, along)), None) => {
                    let number = self.next;
                    self.next = self.next.wrapping_add(1);
                    visitor.errand = Some(Running { number, before });
                    self.starting = Some(number);
                    let along: Vec<BorrowedFd<'_>> = along.iter().map(AsFd::as_fd).collect();
                    descriptors::send(wire, &Order::Files { number }.encode(), &along)?;
                }
                (Some((Order::Signal { signal, .. }, _)), Some(Running { number, .. })) => {
                    descriptors::send(wire, &Order::Signal { number, signal }.encode(), &[])?;
                }
                (Some((Order::Signal { .. }, _)), None) => {}
                (Some((Order::Start { .. } | Order::Files { .. }, _)) | None, errand) => {
                    abandon(errand, wire)?;
                    visitor.gone = true;
                }
            }
        }
        for number in interrupted {
            let has = self.visitors.iter().find(|one| one.errand.is_some_and(|its| its.number == number));
            if let Some(visitor) = has {
                match descriptors::send(visitor.connection.as_fd(), INTERRUPT, &[]) {
                    // One that does not listen is found out about later.
                    Ok(()) | Err(_) => {}
                }
            }
        }
        self.visitors.retain(|visitor| !visitor.gone);
        self.returned.append(&mut back);
        Ok(coming)
    }

    /// Those whose cell is over are told what was refused meanwhile.
    pub fn tell_the_returned(&mut self, denials: &Denials, killed: u64) {
        for (visitor, before) in std::mem::take(&mut self.returned) {
            let told = told(denials, killed.saturating_sub(before.killed), before.refused);
            match descriptors::send(visitor.as_fd(), &told, &[]) {
                // Whoever does not listen does without.
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Everything is to end: contexts hear that no cell will come any more.
    pub fn lets_contexts_go(&mut self) {
        self.contexts.let_go();
    }

    fn let_in(&mut self) -> io::Result<()> {
        while self.visitors.len() < MOST_VISITORS {
            let connection = match rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC) {
                Ok(connection) => connection,
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            // The folder that it is in is its owner's alone; that is not all that is known of who comes.
            let peer = rustix::net::sockopt::socket_peercred(&connection)?;
            let ours = rustix::process::geteuid();
            if peer.uid != ours && !peer.uid.is_root() {
                continue;
            }
            rustix::io::ioctl_fionbio(&connection, true)?;
            let gone = descriptors::send(connection.as_fd(), &self.greeting, &[]).is_err();
            self.visitors.push(Visitor { connection, errand: None, gone });
        }
        Ok(())
    }

    /// Tells whom it concerns what the first process said.
    pub fn pass_on(
        &mut self,
        wire: BorrowedFd<'_>,
        said: Said,
        along: &[OwnedFd],
        denials: &Denials,
        killed: u64,
    ) -> io::Result<()> {
        let number = match said {
            Said::Started { number, .. } | Said::NotStarted { number, .. } | Said::Ended { number, .. } => number,
        };
        if self.starting == Some(number) {
            self.starting = None;
        }
        if !matches!(said, Said::Started { .. }) {
            self.contexts.ended(number);
        }
        let Some(visitor) = self.visitors.iter_mut().find(|one| one.errand.is_some_and(|its| its.number == number))
        else {
            return Ok(());
        };
        let along: Vec<BorrowedFd<'_>> = along.iter().map(AsFd::as_fd).collect();
        if let (Said::Ended { .. }, Some(Running { before, .. })) = (said, visitor.errand) {
            visitor.errand = None;
            let told = told(denials, killed.saturating_sub(before.killed), before.refused);
            // One that does not listen would miss its own end: it is treated as gone.
            visitor.gone = descriptors::send(visitor.connection.as_fd(), &told, &[]).is_err();
        }
        if matches!(said, Said::NotStarted { .. }) {
            visitor.errand = None;
        }
        visitor.gone |= descriptors::send(visitor.connection.as_fd(), &said.encode(), &along).is_err();
        if visitor.gone {
            abandon(visitor.errand, wire)?;
        }
        self.visitors.retain(|visitor| !visitor.gone);
        Ok(())
    }
}

/// What a visitor may want of all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Pause,
    Resume,
}

impl Wish {
    pub fn word(self) -> &'static [u8] {
        match self {
            Wish::Pause => b"pause",
            Wish::Resume => b"resume",
        }
    }

    fn named(word: &[u8]) -> Option<Wish> {
        [Wish::Pause, Wish::Resume].into_iter().find(|wish| wish.word() == word)
    }
}

/// Said to who comes while everything stands still.
pub const ASLEEP: &[u8] = b"asleep";
/// Said to who waits for something, when it begins to stand still and when it goes on.
pub const PAUSED: &[u8] = b"paused";
pub const RESUMED: &[u8] = b"resumed";

impl Desk {
    pub fn wishes(&mut self) -> Vec<(OwnedFd, Wish)> {
        std::mem::take(&mut self.wishes)
    }

    pub fn is_asleep(&self) -> bool {
        self.asleep
    }

    /// Whoever waits for something does not count the time meanwhile.
    pub fn falls_asleep(&mut self, asleep: bool) {
        self.asleep = asleep;
        let word = if asleep { PAUSED } else { RESUMED };
        for visitor in self.visitors.iter().filter(|visitor| visitor.errand.is_some()) {
            match descriptors::send(visitor.connection.as_fd(), word, &[]) {
                // One that does not listen is found out about later.
                Ok(()) | Err(_) => {}
            }
        }
    }
}

/// Nobody waits any more for what was started.
fn abandon(errand: Option<Running>, wire: BorrowedFd<'_>) -> io::Result<()> {
    let Some(Running { number, .. }) = errand else { return Ok(()) };
    descriptors::send(wire, &Order::Signal { number, signal: KILL }.encode(), &[])
}

impl Desk {
    /// The sandbox ends because a limit of all that is in it was reached: who is there is told which.
    pub fn say_farewell(&self, overrun: Overrun) {
        let words = format!("over\t{}\n", name_of(overrun));
        for visitor in self.visitors.iter().filter(|visitor| visitor.errand.is_some()) {
            match descriptors::send(visitor.connection.as_fd(), words.as_bytes(), &[]) {
                // One that does not listen learns that the sandbox is gone.
                Ok(()) | Err(_) => {}
            }
        }
    }
}

const OVERRUNS: [(Overrun, &str); 6] = [
    (Overrun::WallTime, "wall-time"),
    (Overrun::CpuTime, "cpu-time"),
    (Overrun::Memory, "memory"),
    (Overrun::Disk, "disk"),
    (Overrun::Cancelled, "cancelled"),
    (Overrun::Suspended, "suspended"),
];

fn name_of(overrun: Overrun) -> &'static str {
    OVERRUNS.iter().find(|(known, _)| *known == overrun).map_or("cancelled", |(_, name)| name)
}

/// As a visitor hears it.
pub fn overrun_named(words: &[u8]) -> Option<Overrun> {
    let name = std::str::from_utf8(words).ok()?.strip_prefix("over\t")?.trim_end();
    OVERRUNS.iter().find(|(_, known)| *known == name).map(|(overrun, _)| *overrun)
}

/// How many calls were refused in the sandbox since then, how many processes were killed for memory, and the newest refusals: which of those who were there made
/// them is not known.
fn told(denials: &Denials, killed: u64, before: u64) -> Vec<u8> {
    let new = denials.count().saturating_sub(before);
    let mut text = format!("refused\t{new}\t{killed}\n");
    if new > 0 {
        for denial in denials.list.iter().rev().take(20) {
            let detail = denial.detail.as_deref().unwrap_or_default();
            let clean = |text: &str| text.replace(['\t', '\n'], " ");
            text.push_str(&format!(
                "{}\t{}\t{}\t{}\t{}\n",
                denial.call,
                clean(detail),
                clean(&denial.program),
                denial.process,
                denial.times
            ));
        }
    }
    text.into_bytes()
}

/// As the record shall have them.
fn words_of(errand: &OwnedFd) -> Vec<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 64 << 10];
    while let Ok(read @ 1..) = rustix::io::pread(errand, &mut buffer, bytes.len() as u64) {
        bytes.extend_from_slice(&buffer[..read]);
    }
    let errand = Errand::decode(&bytes);
    let words = errand.map(|errand| errand.arguments).unwrap_or_default();
    words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
