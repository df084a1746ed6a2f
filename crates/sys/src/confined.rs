//! Work on hostile bytes in a child that has given up everything: it computes, answers, and can do nothing else.
//!
//! The child is a copy of this process, so whatever is ready before (compiled rules, the bytes themselves) costs it
//! nothing. What it answers is as hostile as what it read: whoever asks must read the answer with the same care. One
//! child for each file ([`run`], [`run_on`]) keeps what took over the reader of one file from speaking of the next; a
//! [`Worker`] is cheaper and does not.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit};

use crate::checked;
use crate::filter::{Action, Half, Look, Program, Rule, Rules, compile};
use crate::limits::{Limit, lower};
use crate::process::{self, Alone, Forked, Namespaces};

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
    let mut child = Child::start(confinement, confinement.time, None, |channel| say(&channel, &work()))?;
    child.answer_and_end(confinement, begin)
}

/// As [`run`], for work on a file too large to be held: the child may read `file`, from anywhere in it, and nothing else.
pub fn run_on(
    file: BorrowedFd<'_>,
    confinement: &Confinement,
    work: impl FnOnce(std::fs::File) -> Vec<u8>,
) -> Result<Vec<u8>, Ended> {
    let begin = Instant::now();
    let mut child = Child::start(confinement, confinement.time, Some(file), |channel| {
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
}

type Work = dyn Fn(&[u8]) -> Vec<u8>;

impl Worker {
    /// Starts now, from what this process knows now. Also a child that follows later needs this to have one thread.
    pub fn start(confinement: Confinement, work: impl Fn(&[u8]) -> Vec<u8> + 'static) -> Result<Worker, Ended> {
        let mut worker = Worker { confinement, work: Box::new(work), child: None };
        worker.child = Some(worker.another()?);
        Ok(worker)
    }

    /// One question, one answer.
    pub fn ask(&mut self, question: &[u8]) -> Result<Vec<u8>, Ended> {
        let deadline = Instant::now() + self.confinement.time;
        let mut child = match self.child.take() {
            Some(child) => child,
            None => self.another()?,
        };
        let answer = child.ask(question, &self.confinement, deadline)?;
        self.child = Some(child);
        Ok(answer)
    }

    fn another(&self) -> Result<Child, Ended> {
        let work = &self.work;
        Child::start(&self.confinement, LIFE, None, |channel| {
            // Ends when nobody is left to ask.
            while let Some(question) = hear(&channel)? {
                say(&channel, &work(&question))?;
            }
            Ok(())
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
        file: Option<BorrowedFd<'_>>,
        work: impl FnOnce(OwnedFd) -> io::Result<()>,
    ) -> Result<Child, Ended> {
        let prepared = || {
            let alone = Alone::prove()?;
            let channel = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
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

    fn ask(&mut self, question: &[u8], confinement: &Confinement, deadline: Instant) -> Result<Vec<u8>, Ended> {
        match self.send(question, deadline) {
            Ok(()) => {}
            Err(Silence::Late) => return Err(Ended::TooSlow),
            Err(Silence::Gone) => return Err(self.why_it_ended(deadline)),
        }
        self.receive(confinement, deadline)
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
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().min(1 << 30) as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&descriptor, for_what)], Some(&timeout)) {
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

/// What the kernel allows a child.
struct Allowed {
    memory: u64,
    cpu_seconds: u64,
}

/// What a child keeps, where it was before.
struct Theirs<'a> {
    file: Option<BorrowedFd<'a>>,
    channel: BorrowedFd<'a>,
    words: BorrowedFd<'a>,
}

/// In the child: gives up all but memory, the clock and its channel. From here on hostile bytes may be looked at.
fn surrender(theirs: &Theirs<'_>, parent: rustix::process::Pid, allowed: &Allowed) -> io::Result<OwnedFd> {
    process::die_with_parent()?;
    // It may have ended before it could be tied to us.
    if rustix::process::getppid() != Some(parent) {
        return Err(io::Error::other("the parent is gone"));
    }
    process::forbid_inspection()?;
    process::forbid_new_privileges()?;
    forget_handlers();
    keep_only(theirs)?;
    std::panic::set_hook(Box::new(|panic| {
        // SAFETY: `keep_only` put the pipe there, and nothing closes it.
        let words = unsafe { BorrowedFd::borrow_raw(WORDS) };
        let said = match panic.location() {
            Some(place) => format!("{}:{}", place.file(), place.line()),
            None => "somewhere".to_owned(),
        };
        // Nobody has to hear it: the exit code says what happened.
        rustix::io::write(words, said.as_bytes()).unwrap_or_default();
        process::exit(PANICKED)
    }));
    for limit in [Limit::OpenFiles, Limit::FileSize, Limit::LockedMemory, Limit::MessageQueues, Limit::Processes] {
        lower(limit, 0)?;
    }
    lower(Limit::Core, 1)?;
    // The parent watches the clock; this is for a child whose parent is stopped meanwhile.
    limit(Resource::Cpu, allowed.cpu_seconds, 1)?;
    limit(Resource::As, allowed.memory, 0)?;
    install(&program(rustix::process::getpid()))?;
    // SAFETY: `keep_only` put our end there; no other owner of it is left in this process.
    Ok(unsafe { OwnedFd::from_raw_fd(CHANNEL) })
}

/// `more` for the last limit of all, where reaching the first is said by a signal of its own.
fn limit(resource: Resource, value: u64, more: u64) -> io::Result<()> {
    let highest = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let (current, maximum) = (highest.min(value), highest.min(value.saturating_add(more)));
    Ok(rustix::process::setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) })?)
}

/// Handlers are of the parent's making; a child that crashes is to end at once and by the true signal.
fn forget_handlers() {
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGXCPU, libc::SIGSYS]
    {
        // SAFETY: SIG_DFL is always a valid action, and setting it can't fail for these signals.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Puts the three descriptors where they belong, and closes all others.
fn keep_only(theirs: &Theirs<'_>) -> io::Result<()> {
    // First out of the way: one may be where another is to be.
    let aside = |descriptor: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(descriptor, WORDS + 1);
    let file = theirs.file.map(aside).transpose()?;
    let (channel, words) = (aside(theirs.channel)?, aside(theirs.words)?);
    let input = file.as_ref().unwrap_or(&channel);
    for (from, to) in [(input, INPUT), (&channel, CHANNEL), (&words, WORDS)] {
        // SAFETY: takes two integers. Whoever owned `to` in the parent is never run in this child.
        checked(unsafe { libc::dup2(from.as_raw_fd(), to) }.into())?;
    }
    // The last of their owners here: they are closed with all others.
    std::mem::forget((file, channel, words));
    process::close_all_from((WORDS + 1) as u32, WORDS)
}

/// What a reader of bytes needs. Whoever does anything else is ended: no reader does by accident.
fn rules(own: rustix::process::Pid) -> Rules {
    let allow = || Rule::Always(Action::Allow);
    let bad_descriptor = || Rule::Always(Action::Fail(libc::EBADF as u16));
    // Looks at nothing that is above `int`: the kernel does not either.
    let only = |argument, values: &[i32]| {
        let values = values.iter().map(|value| *value as u32).collect();
        Rule::look(argument, vec![(values, allow())], bad_descriptor())
    };
    let death = || Rule::Always(Action::Notify);
    let mut rules = Rules::default();
    let mut set = |call: libc::c_long, rule: Rule| rules.set(call as u32, rule);
    for call in [
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigaction,
        libc::SYS_sigaltstack,
        libc::SYS_clock_gettime,
        libc::SYS_getrandom,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_sched_yield,
        libc::SYS_restart_syscall,
        libc::SYS_close,
    ] {
        set(call, allow());
    }
    // Before it closes one, Rust asks in debug builds whether it is open.
    set(libc::SYS_fcntl, Rule::look(1, vec![(vec![libc::F_GETFD as u32], allow())], death()));
    // Asked for a hint of a file's size. They take paths too, which a filter can't read.
    for call in [libc::SYS_statx, libc::SYS_newfstatat] {
        set(call, Rule::Always(Action::Fail(libc::ENOSYS as u16)));
    }
    // The channel is a socket: to look anywhere in it fails by itself.
    for call in [libc::SYS_read, libc::SYS_pread64, libc::SYS_lseek, libc::SYS_fstat] {
        set(call, only(0, &[INPUT, CHANNEL]));
    }
    for call in [libc::SYS_write, libc::SYS_writev] {
        set(call, only(0, &[CHANNEL, WORDS]));
    }
    // Memory that no file is behind, and that is never run.
    let anonymous = Rule::Look(Box::new(Look {
        half: Half::Low(3),
        mask: libc::MAP_ANONYMOUS as u32,
        arms: vec![(vec![(libc::MAP_ANONYMOUS as u32, libc::MAP_ANONYMOUS as u32)], allow())],
        otherwise: death(),
    }));
    set(libc::SYS_mmap, Rule::without_bits(2, libc::PROT_EXEC as u32, anonymous, death()));
    set(libc::SYS_mprotect, Rule::without_bits(2, libc::PROT_EXEC as u32, allow(), death()));
    // How `abort` ends; for nobody else.
    let abort = Rule::look(2, vec![(vec![libc::SIGABRT as u32], allow())], death());
    set(libc::SYS_tgkill, Rule::look(0, vec![(vec![own.as_raw_nonzero().get() as u32], abort)], death()));
    rules
}

/// The rules as the kernel takes them, where nobody listens: what would be asked about ends the process instead.
fn program(own: rustix::process::Pid) -> Program {
    let mut program = compile(&rules(own));
    for instruction in &mut program.0 {
        if instruction.code == (libc::BPF_RET | libc::BPF_K) as u16 && instruction.k == libc::SECCOMP_RET_USER_NOTIF {
            instruction.k = libc::SECCOMP_RET_KILL_PROCESS;
        }
    }
    program
}

fn install(program: &Program) -> io::Result<()> {
    let header = libc::sock_fprog {
        len: u16::try_from(program.0.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?,
        filter: program.0.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies `len` instructions, which `program` holds; it does not write to them.
    checked(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const header) }).map(drop)
}

/// In the child: the next question, or nothing where nobody is left to ask.
fn hear(channel: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let mut header = [0; HEADER];
    if !read_whole(channel, &mut header)? {
        return Ok(None);
    }
    // Asked by our own parent, who is not hostile; what is too large ends us by the limit on memory.
    let mut question = vec![0; u64::from_le_bytes(header) as usize];
    Ok(read_whole(channel, &mut question)?.then_some(question))
}

/// Whether there was so much to read.
fn read_whole(channel: &OwnedFd, buffer: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::read(channel, &mut buffer[filled..]) {
            Ok(0) => return Ok(false),
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::native_architecture;

    /// What the kernel would answer to a call with these arguments.
    fn said(call: libc::c_long, arguments: [u64; 6]) -> Option<Action> {
        let own = rustix::process::getpid();
        crate::filter::interpret(&program(own), native_architecture(), call as u32, &arguments)
    }

    /// The interpreter knows no action that ends: for it, that is none.
    const DEATH: Option<Action> = None;

    #[test]
    fn nothing_that_opens_sends_starts_or_traces_is_survived() {
        let deadly = [
            libc::SYS_openat,
            libc::SYS_openat2,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_sendmsg,
            libc::SYS_sendto,
            libc::SYS_recvmsg,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_ptrace,
            libc::SYS_process_vm_writev,
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_pidfd_send_signal,
            libc::SYS_memfd_create,
            libc::SYS_io_uring_setup,
            libc::SYS_ioctl,
            libc::SYS_dup,
            libc::SYS_dup3,
            libc::SYS_prctl,
            libc::SYS_bpf,
            libc::SYS_userfaultfd,
            libc::SYS_shmat,
        ];
        for call in deadly {
            assert_eq!(said(call, [0; 6]), DEATH, "call {call}");
        }
        let own = rustix::process::getpid();
        assert_eq!(crate::filter::interpret(&program(own), 0x4000_0003, libc::SYS_read as u32, &[0; 6]), DEATH);
    }

    #[test]
    fn descriptors_are_read_and_written_where_they_are_and_nowhere_else() {
        assert_eq!(said(libc::SYS_read, [0; 6]), Some(Action::Allow));
        assert_eq!(said(libc::SYS_read, [5, 0, 0, 0, 0, 0]), Some(Action::Fail(libc::EBADF as u16)));
        assert_eq!(said(libc::SYS_write, [1, 0, 0, 0, 0, 0]), Some(Action::Allow));
        assert_eq!(said(libc::SYS_write, [0; 6]), Some(Action::Fail(libc::EBADF as u16)));
    }

    #[test]
    fn memory_is_anonymous_and_never_run() {
        let private = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let writable = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let executable = (libc::PROT_READ | libc::PROT_EXEC) as u64;
        assert_eq!(said(libc::SYS_mmap, [0, 1, writable, private, 0, 0]), Some(Action::Allow));
        assert_eq!(said(libc::SYS_mmap, [0, 1, executable, private, 0, 0]), DEATH);
        assert_eq!(said(libc::SYS_mmap, [0, 1, writable, libc::MAP_PRIVATE as u64, 0, 0]), DEATH);
        assert_eq!(said(libc::SYS_mprotect, [0, 1, executable, 0, 0, 0]), DEATH);
        assert_eq!(said(libc::SYS_mprotect, [0, 1, writable, 0, 0, 0]), Some(Action::Allow));
    }

    #[test]
    fn a_signal_reaches_nobody_but_oneself_and_only_to_abort() {
        let own = rustix::process::getpid().as_raw_nonzero().get() as u64;
        let abort = libc::SIGABRT as u64;
        assert_eq!(said(libc::SYS_tgkill, [own, own, abort, 0, 0, 0]), Some(Action::Allow));
        assert_eq!(said(libc::SYS_tgkill, [own, own, libc::SIGKILL as u64, 0, 0, 0]), DEATH);
        assert_eq!(said(libc::SYS_tgkill, [1, 1, abort, 0, 0, 0]), DEATH);
    }
}
