//! Work on hostile bytes in a child that has given up everything: it computes, answers, and can do nothing else.
//!
//! The child is a copy of this process, so whatever is ready before (compiled rules, the bytes themselves) costs it
//! nothing. What it answers is as hostile as what it read: whoever asks must read the answer with the same care. One
//! child for each file ([`run`], [`run_on`]) keeps what took over the reader of one file from speaking of the next; a
//! [`Worker`] is cheaper and does not.

mod surrender;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::Timeout;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::process::{self, Alone, Forked, Namespaces};
use surrender::{Allowed, Theirs, surrender};

/// What a confined child may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Bytes of memory beyond what this process has mapped when the child begins.
    pub memory: u64,
    /// From the question to the answer, by the clock on the wall.
    pub time: Duration,
    /// Bytes of an answer.
    pub answer: usize,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Ended {
    /// By a signal, such as that of a stack that overflowed.
    Crashed(i32),
    /// Our own code gave up, and said this.
    Panicked(String),
    /// It asked the kernel for something that is not for it: whoever reads only bytes does not do that.
    Forbidden,
    TooSlow,
    TooMuchMemory,
    /// The answer is longer than it may be.
    TooLarge,
    /// What was said is no answer.
    Garbled,
    /// There was no child to ask.
    NotStarted(io::Error),
}

impl fmt::Display for Ended {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Crashed(signal) => write!(to, "the confined reader crashed (signal {signal})"),
            Ended::Panicked(said) => write!(to, "the confined reader gave up: {said}"),
            Ended::Forbidden => write!(to, "the confined reader tried what no reader needs, and was ended"),
            Ended::TooSlow => write!(to, "the confined reader took too long"),
            Ended::TooMuchMemory => write!(to, "the confined reader wanted too much memory"),
            Ended::TooLarge => write!(to, "the confined reader's answer is too long"),
            Ended::Garbled => write!(to, "the confined reader's answer is none"),
            Ended::NotStarted(error) => write!(to, "cannot start a confined reader: {error}"),
        }
    }
}

impl std::error::Error for Ended {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Ended::NotStarted(error) => Some(error),
            _ => None,
        }
    }
}

/// Runs `work` in a child that can only compute, and returns what it made. What `work` reads it borrows from here.
pub fn run(confinement: &Confinement, work: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>, Ended> {
    let begin = Instant::now();
    let mut child = Child::start(confinement, confinement.time, (None, None), |channel| say(&channel, &work()))?;
    child.answer_and_end(confinement, begin)
}

/// As [`run`], for work on a file too large to be held: the child may read `file`, from anywhere in it, and nothing else.
pub fn run_on(
    file: BorrowedFd<'_>,
    confinement: &Confinement,
    work: impl FnOnce(std::fs::File) -> Vec<u8>,
) -> Result<Vec<u8>, Ended> {
    let begin = Instant::now();
    let mut child = Child::start(confinement, confinement.time, (Some(file), None), |channel| {
        // SAFETY: `surrender` put the file there and this child forgot all other owners with its descriptors.
        let file = unsafe { std::fs::File::from_raw_fd(INPUT) };
        say(&channel, &work(file))
    })?;
    child.answer_and_end(confinement, begin)
}

/// A confined child that answers many questions. After one that it did not survive, the next is for a new child.
pub struct Worker {
    confinement: Confinement,
    work: Box<Work>,
    child: Option<Child>,
    /// A question that waits for its answer, and until when.
    asked: Option<Result<Instant, Ended>>,
    /// How long its child waits for another question before it ends by itself.
    lingers: Option<Duration>,
}

type Work = dyn Fn(&[u8]) -> Vec<u8>;

impl Worker {
    /// Starts now, from what this process knows now. Also a child that follows later needs this to have one thread.
    pub fn start(confinement: Confinement, work: impl Fn(&[u8]) -> Vec<u8> + 'static) -> Result<Worker, Ended> {
        Worker::begin(Worker { confinement, work: Box::new(work), child: None, asked: None, lingers: None })
    }

    /// The same for one that has answered all once it has answered: its child then ends by itself, after `lingers` or twice that. To
    /// have it end at once would take time from whoever has the answer, and who asks may be long about what follows.
    pub fn start_for_one(
        confinement: Confinement,
        lingers: Duration,
        work: impl Fn(&[u8]) -> Vec<u8> + 'static,
    ) -> Result<Worker, Ended> {
        let lingers = Some(lingers);
        Worker::begin(Worker { confinement, work: Box::new(work), child: None, asked: None, lingers })
    }

    fn begin(mut worker: Worker) -> Result<Worker, Ended> {
        worker.child = Some(worker.another()?);
        Ok(worker)
    }

    /// One question, one answer.
    pub fn ask(&mut self, question: &[u8]) -> Result<Vec<u8>, Ended> {
        self.put(question);
        self.answer()
    }

    /// Begins a question, so that others can be asked meanwhile. An answer that nobody took is forgotten.
    pub fn put(&mut self, question: &[u8]) {
        if self.asked.take().is_some() {
            // It still computes the answer to something else.
            self.child = None;
        }
        let deadline = Instant::now() + self.confinement.time;
        let sent = match self.child.take() {
            Some(child) => Ok(child),
            None => self.another(),
        }
        .and_then(|mut child| child.put(question, deadline).map(|()| child));
        self.asked = Some(match sent {
            Ok(child) => {
                self.child = Some(child);
                Ok(deadline)
            }
            Err(ended) => Err(ended),
        });
    }

    /// To the question that was put last.
    pub fn answer(&mut self) -> Result<Vec<u8>, Ended> {
        let deadline = self.asked.take().unwrap_or(Err(Ended::Garbled))?;
        let mut child = self.child.take().ok_or(Ended::Garbled)?;
        let answer = child.receive(&self.confinement, deadline)?;
        self.child = Some(child);
        Ok(answer)
    }

    /// Its child is told to end, and not waited for.
    pub fn end(&mut self) {
        if let Some(child) = &self.child {
            match process::signal(child.handle.as_fd(), libc::SIGKILL) {
                // It has ended by itself.
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Waits for the first of them that can be heard: it has answered, or never will. `None` if nobody was asked.
    pub fn first_to_answer(workers: &[Worker]) -> Option<usize> {
        let (mut places, mut channels, mut first) = (Vec::new(), Vec::new(), None);
        for (place, worker) in workers.iter().enumerate() {
            match (&worker.asked, &worker.child) {
                (Some(Ok(deadline)), Some(child)) => {
                    places.push(place);
                    channels.push(PollFd::new(&child.channel, PollFlags::IN));
                    first = first.min(Some((*deadline, place))).or(Some((*deadline, place)));
                }
                (Some(_), _) => return Some(place),
                (None, _) => {}
            }
        }
        let (deadline, late) = first?;
        if await_any(&mut channels, deadline).is_err() {
            // To hear it says that it is late.
            return Some(late);
        }
        let heard = channels.iter().position(|channel| !channel.revents().is_empty());
        Some(heard.and_then(|at| places.get(at).copied()).unwrap_or(late))
    }

    fn another(&self) -> Result<Child, Ended> {
        let work = &self.work;
        Child::start(&self.confinement, LIFE, (None, self.lingers), |channel| {
            let mut answered = false;
            loop {
                match hear(&channel) {
                    Ok(Some(question)) => say(&channel, &work(&question))?,
                    // Nobody is left to ask.
                    Ok(None) => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && !answered => continue,
                    Err(error) => return Err(error),
                }
                answered = true;
            }
        })
    }
}

/// Where the child finds what it may use; everything else is closed.
const INPUT: i32 = 0;
const CHANNEL: i32 = 1;
const WORDS: i32 = 2;

/// How a child tells that our own code gave up, and that it could not give up its powers.
const PANICKED: i32 = 101;
const NOT_CONFINED: i32 = 102;

/// What is read of a child's last words.
const LAST_WORDS: usize = 300;

/// How long a worker may compute, for all its questions together. Then another takes its place.
const LIFE: Duration = Duration::from_secs(3600);

/// The length that comes before a question or an answer.
const HEADER: usize = 8;

struct Child {
    pid: i32,
    handle: OwnedFd,
    channel: OwnedFd,
    /// Where a child's own runtime says why it aborts.
    words: OwnedFd,
    reaped: bool,
}

impl Child {
    fn start(
        confinement: &Confinement,
        life: Duration,
        (file, lingers): (Option<BorrowedFd<'_>>, Option<Duration>),
        work: impl FnOnce(OwnedFd) -> io::Result<()>,
    ) -> Result<Child, Ended> {
        let prepared = || {
            let alone = Alone::prove()?;
            let channel = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            if lingers.is_some() {
                // Before it gives up everything: by then it may ask for no such thing.
                rustix::net::sockopt::set_socket_timeout(&channel.1, Timeout::Recv, lingers)?;
            }
            // A child that fills it is not to wait for somebody to read it.
            let words = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK)?;
            let memory = mapped()?.saturating_add(confinement.memory);
            Ok((alone, channel, words, Allowed { memory, cpu_seconds: life.as_secs().saturating_add(2) }))
        };
        let (alone, (ours, theirs), (words, their_words), allowed) = prepared().map_err(Ended::NotStarted)?;
        let parent = rustix::process::getpid();
        match process::fork_into(alone, Namespaces::NONE, None).map_err(Ended::NotStarted)? {
            Forked::Parent { pid, handle } => Ok(Child { pid, handle, channel: ours, words, reaped: false }),
            Forked::Child => {
                let theirs = Theirs { file, channel: theirs.as_fd(), words: their_words.as_fd() };
                let Ok(channel) = surrender(&theirs, parent, &allowed) else { process::exit(NOT_CONFINED) };
                // Nothing that a fork copied is run at the end: neither destructors nor what was registered for the exit.
                process::exit(if work(channel).is_ok() { 0 } else { 1 })
            }
        }
    }

    fn put(&mut self, question: &[u8], deadline: Instant) -> Result<(), Ended> {
        match self.send(question, deadline) {
            Ok(()) => Ok(()),
            Err(Silence::Late) => Err(Ended::TooSlow),
            Err(Silence::Gone) => Err(self.why_it_ended(deadline)),
        }
    }

    /// The answer, where it is the last thing that the child says and it ends well.
    fn answer_and_end(&mut self, confinement: &Confinement, begin: Instant) -> Result<Vec<u8>, Ended> {
        let deadline = begin + confinement.time;
        let answer = self.receive(confinement, deadline)?;
        let mut more = [0];
        match self.read(&mut more, deadline) {
            Ok(_) => Err(Ended::Garbled),
            Err(Silence::Late) => Err(Ended::TooSlow),
            Err(Silence::Gone) => match self.end(deadline) {
                Some(process::Ended::Exited(0)) => Ok(answer),
                end => Err(self.named(end)),
            },
        }
    }

    fn receive(&mut self, confinement: &Confinement, deadline: Instant) -> Result<Vec<u8>, Ended> {
        let mut header = [0; HEADER];
        self.fill(&mut header, deadline)?;
        let length = usize::try_from(u64::from_le_bytes(header)).unwrap_or(usize::MAX);
        if length > confinement.answer {
            return Err(Ended::TooLarge);
        }
        let mut answer = vec![0; length];
        self.fill(&mut answer, deadline)?;
        Ok(answer)
    }

    fn fill(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<(), Ended> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..], deadline) {
                Ok(count) => filled += count,
                Err(Silence::Late) => return Err(Ended::TooSlow),
                Err(Silence::Gone) => return Err(self.why_it_ended(deadline)),
            }
        }
        Ok(())
    }

    /// At least one byte.
    fn read(&self, buffer: &mut [u8], deadline: Instant) -> Result<usize, Silence> {
        loop {
            match rustix::net::recv(&self.channel, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(Silence::Gone),
                Ok((count, _)) => return Ok(count),
                Err(rustix::io::Errno::AGAIN) => await_one(self.channel.as_fd(), PollFlags::IN, deadline)?,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err(Silence::Gone),
            }
        }
    }

    fn send(&self, question: &[u8], deadline: Instant) -> Result<(), Silence> {
        for mut part in [&(question.len() as u64).to_le_bytes()[..], question] {
            while !part.is_empty() {
                // Without a signal, whatever whoever uses this does about broken pipes.
                match rustix::net::send(&self.channel, part, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                    Ok(count) => part = &part[count..],
                    Err(rustix::io::Errno::AGAIN) => await_one(self.channel.as_fd(), PollFlags::OUT, deadline)?,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return Err(Silence::Gone),
                }
            }
        }
        Ok(())
    }

    /// For a child that closed its channel, or died.
    fn why_it_ended(&mut self, deadline: Instant) -> Ended {
        let end = self.end(deadline);
        self.named(end)
    }

    fn named(&self, end: Option<process::Ended>) -> Ended {
        let said = self.last_words();
        match end {
            None => Ended::TooSlow,
            Some(process::Ended::Exited(PANICKED)) => Ended::Panicked(said),
            Some(process::Ended::Exited(NOT_CONFINED)) => {
                Ended::NotStarted(io::Error::other("the child could not give up its powers"))
            }
            Some(process::Ended::Exited(_)) => Ended::Garbled,
            Some(process::Ended::Signalled(libc::SIGXCPU)) => Ended::TooSlow,
            // How Rust's runtime ends when it is refused memory; where `RUST_BACKTRACE` is set, it then looks for files.
            Some(process::Ended::Signalled(libc::SIGABRT | libc::SIGSYS))
                if said.starts_with("memory allocation of") =>
            {
                Ended::TooMuchMemory
            }
            Some(process::Ended::Signalled(libc::SIGSYS)) => Ended::Forbidden,
            Some(process::Ended::Signalled(signal)) => Ended::Crashed(signal),
        }
    }

    fn last_words(&self) -> String {
        let mut buffer = [0; LAST_WORDS];
        let count = rustix::io::read(&self.words, &mut buffer).unwrap_or(0);
        let safe = |letter: char| if letter.is_ascii_graphic() { letter } else { ' ' };
        String::from_utf8_lossy(&buffer[..count]).chars().map(safe).collect::<String>().trim().to_owned()
    }

    /// Waits for the end until `deadline`, then makes it.
    fn end(&mut self, deadline: Instant) -> Option<process::Ended> {
        let in_time = await_one(self.handle.as_fd(), PollFlags::IN, deadline).is_ok();
        let ended = self.kill_and_reap();
        if in_time { ended } else { None }
    }

    fn kill_and_reap(&mut self) -> Option<process::Ended> {
        if std::mem::replace(&mut self.reaped, true) {
            return None;
        }
        // One that has ended already can't be killed, which is as good.
        drop(process::signal(self.handle.as_fd(), libc::SIGKILL));
        process::wait(self.pid, false).ok().flatten().map(|(_, ended, _)| ended)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill_and_reap();
    }
}

/// Why nothing more is heard.
enum Silence {
    Late,
    Gone,
}

fn await_one(descriptor: BorrowedFd<'_>, for_what: PollFlags, deadline: Instant) -> Result<(), Silence> {
    await_any(&mut [PollFd::new(&descriptor, for_what)], deadline)
}

fn await_any(descriptors: &mut [PollFd<'_>], deadline: Instant) -> Result<(), Silence> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().min(1 << 30) as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(descriptors, Some(&timeout)) {
            Ok(0) => return Err(Silence::Late),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(Silence::Gone),
        }
    }
}

/// Bytes of address space that this process has; its copy begins with as many.
fn mapped() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: Option<u64> = text.split(' ').next().and_then(|pages| pages.parse().ok());
    let pages = pages.ok_or_else(|| io::Error::other("`/proc/self/statm` is not as it should be"))?;
    Ok(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// In the child: the next question, or nothing where nobody is left to ask.
fn hear(channel: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let mut header = [0; HEADER];
    if !read_whole(channel, &mut header, false)? {
        return Ok(None);
    }
    // Asked by our own parent, who is not hostile; what is too large ends us by the limit on memory.
    let mut question = vec![0; u64::from_le_bytes(header) as usize];
    Ok(read_whole(channel, &mut question, true)?.then_some(question))
}

/// Whether there was so much to read. `begun`: something of the same was read before.
fn read_whole(channel: &OwnedFd, buffer: &mut [u8], begun: bool) -> io::Result<bool> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::read(channel, &mut buffer[filled..]) {
            Ok(0) => return Ok(false),
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            // Whoever waits only so long for a question waits for all of one that has begun: what is left of it would be taken for the
            // next, and that one's answer for this one's.
            Err(rustix::io::Errno::AGAIN) if begun || filled > 0 => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// In the child: one answer.
fn say(channel: &OwnedFd, answer: &[u8]) -> io::Result<()> {
    for mut part in [&(answer.len() as u64).to_le_bytes()[..], answer] {
        while !part.is_empty() {
            match rustix::io::write(channel, part) {
                Ok(count) => part = &part[count..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
