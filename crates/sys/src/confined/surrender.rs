//! In the child of a fork: giving up everything, before the first hostile byte is looked at.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::{Resource, Rlimit};

use super::{CHANNEL, INPUT, PANICKED, WORDS};
use crate::checked;
use crate::filter::{Action, Half, Look, Program, Rule, Rules, compile};
use crate::limits::{Limit, lower};
use crate::process;

/// What the kernel allows a child.
pub(super) struct Allowed {
    pub(super) memory: u64,
    pub(super) cpu_seconds: u64,
}

/// What a child keeps, where it was before.
pub(super) struct Theirs<'a> {
    pub(super) file: Option<BorrowedFd<'a>>,
    pub(super) channel: BorrowedFd<'a>,
    pub(super) words: BorrowedFd<'a>,
}

/// In the child: gives up all but memory, the clock and its channel. From here on hostile bytes may be looked at.
pub(super) fn surrender(theirs: &Theirs<'_>, parent: rustix::process::Pid, allowed: &Allowed) -> io::Result<OwnedFd> {
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
    // musl's `abort` means itself, but knows itself by the number of its parent, since it is a copy. It is refused that, and
    // crashes by an instruction.
    set(
        libc::SYS_tkill,
        Rule::look(1, vec![(vec![libc::SIGABRT as u32], Rule::Always(Action::Fail(libc::EPERM as u16)))], death()),
    );
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
