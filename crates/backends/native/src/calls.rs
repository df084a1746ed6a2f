//! The closed list of system calls, and what is asked of their arguments.
//!
//! What real tool-chains need is here; what isn't here is refused, and so is every call the kernel will learn
//! after this was written.

use sys::filter::{self, Action, Half, Look, Program, Rule, Rules};
use sys::seccomp::{Answer, Asked};
use syscalls::Sysno as Call;

const EPERM: i32 = 1;
const ENOSYS: i32 = 38;
const EPROTONOSUPPORT: u16 = 93;

/// What the filter depends on besides the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// No network namespace holds the network, so sockets are refused by family.
    pub no_sockets: bool,
    /// Processors are held by affinity, which must then stay as it is.
    pub fixed_affinity: bool,
    /// It is for a carrier: a kernel of its own, which makes namespaces and mounts of its own.
    pub carrier: bool,
}

/// Always allowed: they act on the caller, its own processes, or on files that other walls guard.
const ALLOWED: &[Call] = &[
    // Files and folders
    Call::read,
    Call::write,
    Call::pread64,
    Call::pwrite64,
    Call::readv,
    Call::writev,
    Call::preadv,
    Call::pwritev,
    Call::preadv2,
    Call::pwritev2,
    Call::close,
    Call::close_range,
    Call::lseek,
    Call::fstat,
    Call::newfstatat,
    Call::statx,
    Call::statfs,
    Call::fstatfs,
    Call::faccessat,
    Call::faccessat2,
    Call::readlinkat,
    Call::getdents64,
    Call::getcwd,
    Call::chdir,
    Call::fchdir,
    Call::mkdirat,
    Call::unlinkat,
    Call::linkat,
    Call::symlinkat,
    Call::fchown,
    Call::fchownat,
    Call::utimensat,
    Call::umask,
    Call::truncate,
    Call::ftruncate,
    Call::fallocate,
    Call::fadvise64,
    Call::readahead,
    Call::fsync,
    Call::fdatasync,
    Call::sync,
    Call::syncfs,
    Call::sync_file_range,
    Call::flock,
    Call::dup,
    Call::dup3,
    Call::pipe2,
    Call::sendfile,
    Call::splice,
    Call::tee,
    Call::vmsplice,
    Call::copy_file_range,
    Call::cachestat,
    Call::getxattr,
    Call::lgetxattr,
    Call::fgetxattr,
    Call::listxattr,
    Call::llistxattr,
    Call::flistxattr,
    Call::setxattr,
    Call::lsetxattr,
    Call::fsetxattr,
    Call::removexattr,
    Call::lremovexattr,
    Call::fremovexattr,
    Call::inotify_init1,
    Call::inotify_add_watch,
    Call::inotify_rm_watch,
    // Memory
    Call::mmap,
    Call::munmap,
    Call::mremap,
    Call::mprotect,
    Call::madvise,
    Call::brk,
    Call::msync,
    Call::mincore,
    Call::mlock,
    Call::mlock2,
    Call::munlock,
    Call::mlockall,
    Call::munlockall,
    Call::memfd_create,
    Call::pkey_alloc,
    Call::pkey_free,
    Call::pkey_mprotect,
    Call::membarrier,
    Call::mseal,
    Call::map_shadow_stack,
    Call::remap_file_pages,
    Call::get_mempolicy,
    Call::set_mempolicy,
    Call::mbind,
    Call::process_madvise,
    Call::process_mrelease,
    // Processes and threads
    Call::exit,
    Call::exit_group,
    Call::wait4,
    Call::waitid,
    Call::kill,
    Call::tkill,
    Call::tgkill,
    Call::getpid,
    Call::getppid,
    Call::gettid,
    Call::getpgid,
    Call::setpgid,
    Call::getsid,
    Call::setsid,
    Call::getuid,
    Call::geteuid,
    Call::getgid,
    Call::getegid,
    Call::getresuid,
    Call::getresgid,
    Call::getgroups,
    Call::setuid,
    Call::setgid,
    Call::setreuid,
    Call::setregid,
    Call::setresuid,
    Call::setresgid,
    Call::setgroups,
    Call::setfsuid,
    Call::setfsgid,
    Call::capget,
    Call::capset,
    Call::getrusage,
    Call::getrlimit,
    Call::times,
    Call::set_tid_address,
    Call::set_robust_list,
    Call::get_robust_list,
    Call::rseq,
    Call::futex,
    Call::futex_waitv,
    Call::futex_wait,
    Call::futex_wake,
    Call::futex_requeue,
    Call::sched_yield,
    Call::sched_getaffinity,
    Call::sched_getparam,
    Call::sched_setparam,
    Call::sched_getscheduler,
    Call::sched_setscheduler,
    Call::sched_get_priority_max,
    Call::sched_get_priority_min,
    Call::sched_rr_get_interval,
    Call::sched_getattr,
    Call::sched_setattr,
    Call::getpriority,
    Call::setpriority,
    Call::ioprio_get,
    Call::ioprio_set,
    Call::getcpu,
    Call::pidfd_open,
    Call::pidfd_send_signal,
    Call::pidfd_getfd,
    Call::ptrace,
    Call::process_vm_readv,
    Call::process_vm_writev,
    Call::kcmp,
    Call::restart_syscall,
    // Signals
    Call::rt_sigaction,
    Call::rt_sigprocmask,
    Call::rt_sigreturn,
    Call::rt_sigpending,
    Call::rt_sigtimedwait,
    Call::rt_sigqueueinfo,
    Call::rt_tgsigqueueinfo,
    Call::rt_sigsuspend,
    Call::sigaltstack,
    Call::signalfd4,
    // Time
    Call::clock_gettime,
    Call::clock_getres,
    Call::clock_nanosleep,
    Call::nanosleep,
    Call::gettimeofday,
    Call::getitimer,
    Call::setitimer,
    Call::timer_create,
    Call::timer_settime,
    Call::timer_gettime,
    Call::timer_getoverrun,
    Call::timer_delete,
    Call::timerfd_create,
    Call::timerfd_settime,
    Call::timerfd_gettime,
    // Waiting
    Call::ppoll,
    Call::pselect6,
    Call::epoll_create1,
    Call::epoll_ctl,
    Call::epoll_pwait,
    Call::epoll_pwait2,
    Call::eventfd2,
    Call::io_setup,
    Call::io_destroy,
    Call::io_submit,
    Call::io_cancel,
    Call::io_getevents,
    Call::io_pgetevents,
    // Sockets, once made
    Call::bind,
    Call::listen,
    Call::accept,
    Call::accept4,
    Call::connect,
    Call::getsockname,
    Call::getpeername,
    Call::sendto,
    Call::recvfrom,
    Call::sendmsg,
    Call::recvmsg,
    Call::sendmmsg,
    Call::recvmmsg,
    Call::shutdown,
    Call::getsockopt,
    // Memory, semaphores and queues of its own namespace
    Call::shmget,
    Call::shmat,
    Call::shmctl,
    Call::shmdt,
    Call::semget,
    Call::semop,
    Call::semctl,
    Call::semtimedop,
    Call::msgget,
    Call::msgsnd,
    Call::msgrcv,
    Call::msgctl,
    Call::mq_open,
    Call::mq_unlink,
    Call::mq_timedsend,
    Call::mq_timedreceive,
    Call::mq_notify,
    Call::mq_getsetattr,
    // Further walls of its own making: they can only narrow
    Call::seccomp,
    Call::landlock_create_ruleset,
    Call::landlock_add_rule,
    Call::landlock_restrict_self,
    // Facts
    Call::uname,
    Call::sysinfo,
    Call::getrandom,
];

/// The same with older names, which only some machines have.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[Call] = &[
    Call::stat,
    Call::lstat,
    Call::access,
    Call::readlink,
    Call::getdents,
    Call::mkdir,
    Call::rmdir,
    Call::unlink,
    Call::rename,
    Call::renameat,
    Call::link,
    Call::symlink,
    Call::chown,
    Call::lchown,
    Call::utime,
    Call::utimes,
    Call::futimesat,
    Call::dup2,
    Call::pipe,
    Call::inotify_init,
    Call::fork,
    Call::vfork,
    Call::getpgrp,
    Call::alarm,
    Call::pause,
    Call::time,
    Call::poll,
    Call::select,
    Call::epoll_create,
    Call::epoll_wait,
    Call::eventfd,
    Call::signalfd,
    Call::arch_prctl,
];
#[cfg(target_arch = "aarch64")]
const ALLOWED_HERE: &[Call] = &[Call::renameat];

// Flags of clone(2) that make a namespace. (CLONE_NEWTIME has no bit there: it is the exit signal's.)
const NEW_NAMESPACE: u32 =
    0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000;
// What unshare(2) may undo: shared descriptors, working directory and semaphore adjustments.
const HARMLESS_UNSHARE: u32 = 0x400 | 0x200 | 0x0004_0000;

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const SOCKET_TYPE: u32 = 0xf;
const STREAM: u32 = 1;
const DATAGRAM: u32 = 2;
const SEQUENCED: u32 = 5;
const IPPROTO_TCP: u32 = 6;
const IPPROTO_UDP: u32 = 17;
const IPPROTO_MPTCP: u32 = 262;

const SET_ID_BITS: u32 = 0o6000;
#[cfg(target_arch = "x86_64")]
const CREATES: u32 = 0o100 | 0o20000000;
#[cfg(target_arch = "aarch64")]
const CREATES: u32 = 0o100 | 0o20000000;

const RLIMIT_CORE: u32 = 4;
const PR_SET_DUMPABLE: u32 = 4;
const RENAME_WHITEOUT: u32 = 4;
const F_SETLEASE: u32 = 1024;
const F_NOTIFY: u32 = 1026;

/// Commands to terminals that reach others: push input, control the console, change the line's protocol.
const REFUSED_CONTROLS: &[(u32, &str)] = &[
    (0x5412, "TIOCSTI"),
    (0x541c, "TIOCLINUX"),
    (0x541d, "TIOCCONS"),
    (0x5423, "TIOCSETD"),
    (0x5437, "TIOCVHANGUP"),
    (0xc004_5877, "FIFREEZE"),
    (0xc004_5878, "FITHAW"),
];

/// Options of prctl(2), first and last of each run: about the caller's own name, signals, memory and threads.
const ALLOWED_PRCTL: &[(u32, u32)] = &[
    (1, 3),                     // death signal, reading dumpable
    (7, 8),                     // keeping capabilities, of which there are none
    (15, 16),                   // name
    (21, 23),                   // seccomp; reading the bounding set
    (25, 27),                   // time-stamp counter; reading secure bits
    (29, 34),                   // timer slack, performance events of its own, machine-check policy
    (36, 47),                   // subreaper, no new privileges, huge pages, ambient capabilities (none)
    (50, 53),                   // vector length, speculation
    (55, 56),                   // tagged addresses
    (63, 66),                   // vector length, memory-deny-write-execute
    (68, 68),                   // reading its own vector
    (71, 76),                   // shadow stack
    (0x5356_4d41, 0x5356_4d41), // name of an anonymous mapping
    (0x5961_6d61, 0x5961_6d61), // who may trace it, under Yama
];

/// Ways of personality(2): ask, plain, and without address randomisation, for debuggers and sanitizers.
const ALLOWED_PERSONALITIES: &[u32] = &[0, 0xffff_ffff, 0x0004_0000];

/// What a carrier needs besides, to shut itself and others in: namespaces, mounts of its own, a root of its own. That it
/// owns none of ours is the user namespace's business.
const CARRIERS: &[Call] = &[Call::mount, Call::umount2, Call::pivot_root, Call::chroot];
/// The one namespace that it has no use for.
const NEW_CGROUP: u32 = 0x0200_0000;
/// Options of prctl(2) by which it gives up powers: the bounding set, secure bits.
const CARRIERS_PRCTL: &[(u32, u32)] = &[(24, 24), (28, 28)];

const ALLOW: Rule = Rule::Always(Action::Allow);
const REFUSE: Rule = Rule::Always(Action::Notify);
const TELL: Rule = Rule::Always(Action::Notify);
/// Above all numbers that calls have.
const HIGHEST: usize = 1024;
/// Succeeds with nothing done.
const PRETEND: Rule = Rule::Always(Action::Fail(0));
const UNKNOWN: Rule = Rule::Always(Action::Fail(ENOSYS as u16));

/// The whole list as rules for the filter. Pure.
pub fn rules(options: Options) -> Rules {
    let mut rules = Rules::default();
    let mut set = |call: Call, rule: Rule| rules.set(number(call), rule);
    for call in ALLOWED.iter().chain(ALLOWED_HERE) {
        set(*call, ALLOW);
    }

    // Somebody is told, and they go on: see `programs`.
    set(Call::execve, TELL);
    set(Call::execveat, TELL);
    set(Call::clone, Rule::without_bits(0, NEW_NAMESPACE, ALLOW, REFUSE));
    // Its flags are behind a pointer, out of a filter's sight. The C libraries then use clone.
    set(Call::clone3, UNKNOWN);
    set(Call::unshare, Rule::without_bits(0, !HARMLESS_UNSHARE, ALLOW, REFUSE));

    // A set-user-id file in a writable workspace would serve other users of the host.
    let mode_at = |argument| Rule::without_bits(argument, SET_ID_BITS, ALLOW, REFUSE);
    let create_at = |flags: u8, mode: u8| Rule::without_bits(flags, CREATES, ALLOW, mode_at(mode));
    set(Call::fchmod, mode_at(1));
    set(Call::fchmodat, mode_at(2));
    set(Call::fchmodat2, mode_at(2));
    set(Call::openat, create_at(2, 3));
    // Its mode is behind a pointer; those who use it fall back to openat.
    set(Call::openat2, UNKNOWN);
    set(Call::mknodat, plain_node_at(2));
    #[cfg(target_arch = "x86_64")]
    {
        set(Call::open, create_at(1, 2));
        set(Call::creat, mode_at(1));
        set(Call::chmod, mode_at(1));
        set(Call::mknod, plain_node_at(1));
    }

    // A whiteout is a device node by another name.
    set(Call::renameat2, Rule::without_bits(4, RENAME_WHITEOUT, ALLOW, REFUSE));
    // A lease or a watch on a file that is only to be read holds up whoever writes it on the host.
    set(Call::fcntl, Rule::look(1, vec![(vec![F_SETLEASE, F_NOTIFY], REFUSE)], ALLOW));

    set(Call::socket, sockets(options.no_sockets));
    set(Call::socketpair, pairs(options.no_sockets));
    // TCP_ULP, for TLS and others in the kernel; and replacing packet-filter tables.
    let refuse_options = |options: Vec<u32>| Rule::look(2, vec![(options, REFUSE)], ALLOW);
    set(
        Call::setsockopt,
        Rule::look(1, vec![(vec![6], refuse_options(vec![31])), (vec![0, 41], refuse_options(vec![64, 65]))], ALLOW),
    );
    let controls = REFUSED_CONTROLS.iter().map(|(command, _)| *command).collect();
    set(Call::ioctl, Rule::look(1, vec![(controls, REFUSE)], ALLOW));
    let mut options_of_prctl = ALLOWED_PRCTL.to_vec();
    if options.carrier {
        options_of_prctl.extend(CARRIERS_PRCTL);
        options_of_prctl.sort_unstable();
    }
    let prctl = Look { half: Half::Low(0), mask: u32::MAX, arms: vec![(options_of_prctl, ALLOW)], otherwise: REFUSE };
    set(Call::prctl, Rule::Look(Box::new(prctl)));
    set(Call::personality, Rule::look(0, vec![(ALLOWED_PERSONALITIES.to_vec(), ALLOW)], REFUSE));

    // Core files stay off whatever the program would like: see `answer`. Asking for the limit is not changing it.
    let not_core = |argument| Rule::look(argument, vec![(vec![RLIMIT_CORE], REFUSE)], ALLOW);
    let null = |half, otherwise| Look { half, mask: u32::MAX, arms: vec![(vec![(0, 0)], ALLOW)], otherwise };
    let null_high = Rule::Look(Box::new(null(Half::High(2), not_core(1))));
    let null_low = Look { arms: vec![(vec![(0, 0)], null_high)], ..null(Half::Low(2), not_core(1)) };
    set(Call::prlimit64, Rule::Look(Box::new(null_low)));
    set(Call::setrlimit, not_core(0));
    set(Call::sched_setaffinity, if options.fixed_affinity { REFUSE } else { ALLOW });
    if options.carrier {
        for call in CARRIERS {
            set(*call, ALLOW);
        }
        set(Call::clone, Rule::without_bits(0, NEW_CGROUP, ALLOW, REFUSE));
    }
    rules
}

/// The same list for a payload behind a carrier, where nobody can be asked: each call is answered as we would.
pub fn behind() -> Program {
    let listed = rules(Options::default());
    let mut rules = Rules::default();
    for call in (0..HIGHEST).filter_map(Call::new) {
        let plain = match (call, listed.get(number(call))) {
            (Call::execve | Call::execveat, _) => ALLOW,
            (Call::prctl, Rule::Look(look)) => {
                let mut look = (**look).clone();
                look.arms.push((vec![(PR_SET_DUMPABLE, PR_SET_DUMPABLE)], PRETEND));
                without_asking(&Rule::Look(Box::new(look)), EPERM)
            }
            (Call::prlimit64 | Call::setrlimit, rule) => without_asking(rule, 0),
            (_, rule) => without_asking(rule, EPERM),
        };
        rules.set(number(call), plain);
    }
    filter::compile(&rules).without_a_listener(ENOSYS as u16)
}

fn without_asking(rule: &Rule, errno: i32) -> Rule {
    match rule {
        Rule::Always(Action::Notify) => Rule::Always(Action::Fail(errno as u16)),
        Rule::Always(action) => Rule::Always(*action),
        Rule::Look(look) => {
            let arms = look.arms.iter().map(|(spans, rule)| (spans.clone(), without_asking(rule, errno))).collect();
            let otherwise = without_asking(&look.otherwise, errno);
            Rule::Look(Box::new(Look { arms, otherwise, ..(**look).clone() }))
        }
    }
}

/// Plain files, pipes and sockets, without set-id bits; no devices.
fn plain_node_at(mode: u8) -> Rule {
    let kinds = [0, 0o100_000, 0o010_000, 0o140_000].map(|kind| (kind, kind)).to_vec();
    Rule::Look(Box::new(Look {
        half: Half::Low(mode),
        mask: 0o170_000 | SET_ID_BITS,
        arms: vec![(kinds, ALLOW)],
        otherwise: REFUSE,
    }))
}

/// `kinds` of sockets lead on to their rules.
fn of_kind(kinds: Vec<(u32, Rule)>) -> Rule {
    let arms = kinds.into_iter().map(|(kind, rule)| (vec![(kind, kind)], rule)).collect();
    Rule::Look(Box::new(Look { half: Half::Low(1), mask: SOCKET_TYPE, arms, otherwise: REFUSE }))
}

fn sockets(none: bool) -> Rule {
    if none {
        return REFUSE;
    }
    let protocols = |allowed: Vec<u32>, otherwise| Rule::look(2, vec![(allowed, ALLOW)], otherwise);
    // Go and others try it first and are content with TCP; not worth a word.
    let multipath = Rule::look(2, vec![(vec![IPPROTO_MPTCP], Rule::Always(Action::Fail(EPROTONOSUPPORT)))], REFUSE);
    let internet = of_kind(vec![
        (STREAM, protocols(vec![0, IPPROTO_TCP], multipath)),
        (DATAGRAM, protocols(vec![0, IPPROTO_UDP], REFUSE)),
    ]);
    let local = of_kind(vec![(STREAM, ALLOW), (DATAGRAM, ALLOW), (SEQUENCED, ALLOW)]);
    // Only the routing protocol: which addresses do I have?
    let routing = protocols(vec![0], REFUSE);
    Rule::look(
        0,
        vec![(vec![AF_INET, AF_INET6], internet), (vec![AF_UNIX], local), (vec![AF_NETLINK], routing)],
        REFUSE,
    )
}

/// Connected pairs. A datagram one can still be pointed at any path, so it needs the walls around sockets.
fn pairs(no_sockets: bool) -> Rule {
    let mut kinds = vec![(STREAM, ALLOW), (SEQUENCED, ALLOW)];
    if !no_sockets {
        kinds.push((DATAGRAM, ALLOW));
    }
    Rule::look(0, vec![(vec![AF_UNIX], of_kind(kinds))], REFUSE)
}

fn number(call: Call) -> u32 {
    call.id() as u32
}

/// What a refused caller is told.
pub fn answer(asked: &Asked) -> Answer {
    if asked.architecture != sys::filter::native_architecture() {
        return Answer::Fail(EPERM);
    }
    match Call::new(asked.number as usize) {
        Some(Call::execve | Call::execveat) => Answer::Proceed,
        // Programs that guard secrets switch core files off and give up if they can't. They are off.
        Some(Call::prlimit64) | Some(Call::setrlimit) => Answer::Pretend,
        // Nor who may inspect them: nobody else is there, and we must be able to measure them.
        Some(Call::prctl) if asked.arguments[0] as u32 == PR_SET_DUMPABLE => Answer::Pretend,
        // A call newer than our list: its users know how to do without.
        None => Answer::Fail(ENOSYS),
        Some(_) => Answer::Fail(EPERM),
    }
}

/// The call and what was wrong with it, for people.
pub fn describe(asked: &Asked) -> (String, Option<String>) {
    if asked.architecture != sys::filter::native_architecture() {
        return (format!("call {}", asked.number), Some("of a foreign ABI".to_owned()));
    }
    let Some(call) = Call::new(asked.number as usize) else {
        return (format!("call {}", asked.number), Some("unknown to this version".to_owned()));
    };
    let low = |argument: usize| asked.arguments[argument] as u32;
    let detail = match call {
        Call::socket | Call::socketpair => {
            Some(format!("family {}, type {}, protocol {}", family_name(low(0)), low(1) & SOCKET_TYPE, low(2)))
        }
        Call::ioctl => {
            REFUSED_CONTROLS.iter().find(|(command, _)| *command == low(1)).map(|(_, name)| (*name).to_owned())
        }
        Call::clone | Call::unshare => Some("new namespaces".to_owned()),
        Call::prctl => Some(format!("option {}", low(0))),
        Call::personality => Some(format!("{:#x}", low(0))),
        Call::setsockopt => Some(format!("level {}, option {}", low(1), low(2))),
        Call::fchmod | Call::fchmodat | Call::fchmodat2 | Call::openat => {
            Some("set-user-id or set-group-id".to_owned())
        }
        #[cfg(target_arch = "x86_64")]
        Call::chmod | Call::creat | Call::open => Some("set-user-id or set-group-id".to_owned()),
        Call::fcntl => Some("a lease or watch".to_owned()),
        Call::mknodat | Call::renameat2 => Some("a device node".to_owned()),
        #[cfg(target_arch = "x86_64")]
        Call::mknod => Some("a device node".to_owned()),
        _ => None,
    };
    (call.name().to_owned(), detail)
}

fn family_name(family: u32) -> String {
    let known = [
        (1, "unix"),
        (2, "inet"),
        (10, "inet6"),
        (15, "key"),
        (16, "netlink"),
        (17, "packet"),
        (21, "rds"),
        (29, "can"),
        (30, "tipc"),
        (31, "bluetooth"),
        (38, "alg"),
        (40, "vsock"),
        (41, "kcm"),
        (43, "smc"),
        (44, "xdp"),
        (45, "mctp"),
    ];
    known
        .iter()
        .find(|(number, _)| *number == family)
        .map_or_else(|| family.to_string(), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sys::filter::{compile, interpret, native_architecture};

    fn arguments() -> impl Strategy<Value = [u64; 6]> {
        // Values that rules look at, and anything.
        let interesting = prop_oneof![
            Just(0u64),
            Just(1),
            Just(2),
            Just(5),
            Just(6),
            Just(10),
            Just(16),
            Just(17),
            Just(31),
            Just(38),
            Just(64),
            Just(0x5412),
            Just(0x1_0000_5412),
            Just(0o4755),
            Just(0o100),
            Just(0x1000_0000),
            Just(0xffff_ffff),
            any::<u64>(),
        ];
        proptest::array::uniform6(interesting)
    }

    proptest! {
        #[test]
        fn the_program_says_what_the_rules_say(number in 0u32..700, arguments in arguments(), none in any::<bool>()) {
            let rules = rules(Options { no_sockets: none, fixed_affinity: none, carrier: !none });
            let program = compile(&rules);
            let expected = rules.get(number).decide(&arguments);
            prop_assert_eq!(interpret(&program, native_architecture(), number, &arguments), Some(expected));
        }

        #[test]
        fn no_call_of_a_foreign_abi_passes(architecture in any::<u32>(), number in any::<u32>(), arguments in arguments()) {
            let program = compile(&rules(Options::default()));
            let foreign = architecture != native_architecture() || number >= 0x4000_0000;
            if foreign {
                prop_assert_eq!(interpret(&program, architecture, number, &arguments), Some(Action::Notify));
            }
        }
    }

    proptest! {
        #[test]
        fn behind_a_carrier_each_call_is_answered_as_we_would(number in 0u32..700, arguments in arguments()) {
            let asked = Asked { id: 0, thread: 1, number, architecture: native_architecture(), arguments };
            let expected = match (rules(Options::default()).get(number).decide(&arguments), answer(&asked)) {
                (Action::Notify, Answer::Proceed) => Action::Allow,
                (Action::Notify, Answer::Pretend) => Action::Fail(0),
                (Action::Notify, Answer::Fail(errno)) => Action::Fail(errno as u16),
                (decided, _) => decided,
            };
            prop_assert_eq!(interpret(&behind(), native_architecture(), number, &arguments), Some(expected));
        }
    }

    #[test]
    fn a_carrier_may_shut_itself_in_and_nothing_else() {
        let payload = rules(Options::default());
        let carrier = rules(Options { carrier: true, ..Options::default() });
        let more: Vec<&str> = (0..HIGHEST)
            .filter_map(Call::new)
            .filter(|call| carrier.get(number(*call)) != payload.get(number(*call)))
            .map(|call| call.name())
            .collect();
        assert_eq!(more, ["clone", "pivot_root", "prctl", "chroot", "mount", "umount2"]);
    }

    #[test]
    fn what_made_most_kernel_exploits_is_refused() {
        let rules = rules(Options::default());
        for call in [
            Call::bpf,
            Call::io_uring_setup,
            Call::io_uring_enter,
            Call::io_uring_register,
            Call::perf_event_open,
            Call::userfaultfd,
            Call::keyctl,
            Call::add_key,
            Call::request_key,
            Call::mount,
            Call::umount2,
            Call::pivot_root,
            Call::chroot,
            Call::setns,
            Call::open_tree,
            Call::move_mount,
            Call::fsopen,
            Call::fsmount,
            Call::mount_setattr,
            Call::open_by_handle_at,
            Call::init_module,
            Call::finit_module,
            Call::kexec_load,
            Call::reboot,
            Call::swapon,
            Call::quotactl,
            Call::acct,
            Call::syslog,
            Call::clock_settime,
            Call::settimeofday,
            Call::clock_adjtime,
            Call::adjtimex,
            Call::fanotify_init,
            Call::name_to_handle_at,
            Call::sethostname,
            Call::setdomainname,
            Call::vhangup,
            Call::memfd_secret,
            Call::move_pages,
            Call::migrate_pages,
        ] {
            assert_eq!(*rules.get(number(call)), REFUSE, "{} is allowed", call.name());
        }
    }
}
