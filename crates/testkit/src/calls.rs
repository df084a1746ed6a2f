//! Every conditional rule of the call filter, with right and with wrong arguments. Pointers are bad throughout: a
//! call that passes the filter comes back from the kernel with an error of its own, and nothing is done.

use std::io;

use crate::escapes::kernel::support::{BAD, NOWHERE, answer, in_child, is_refusal};

/// What the filter makes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The kernel answers.
    Allowed,
    /// Refused, and somebody is told.
    Refused,
    /// Refused without a word, with this error.
    Silently(i32),
    /// Nothing is done, and the caller is told otherwise.
    Pretended,
}

/// One call that is made, and what is to come of it.
#[derive(Clone, Debug)]
pub struct Probe {
    /// As denials name it.
    pub call: String,
    pub arguments: [u64; 6],
    pub expected: Expected,
    number: libc::c_long,
}

impl Probe {
    /// Makes the call in a process of its own. The error, and whether it is the expected one.
    pub fn make(&self) -> io::Result<(i32, bool)> {
        let errno = match self.number {
            FOREIGN => in_child(by_int_0x80)?.unwrap_or(libc::EPERM),
            number => answer(number, self.arguments)?,
        };
        let as_expected = match self.expected {
            Expected::Allowed => !is_refusal(errno),
            Expected::Refused => is_refusal(errno),
            Expected::Silently(silent) => errno == silent,
            Expected::Pretended => errno == 0,
        };
        Ok((errno, as_expected))
    }
}

const FOREIGN: libc::c_long = -1;
const X32: libc::c_long = 0x4000_0000;
/// In the high half of an argument of 32 bits, which the kernel does not look at.
const RUBBISH: u64 = 0xdead_beef << 32;

/// All probes. Sockets come last: there are more of them than a list of denials is long.
pub fn probes() -> Vec<Probe> {
    let mut list = List(Vec::new());
    namespaces(&mut list);
    modes(&mut list);
    controls(&mut list);
    options(&mut list);
    limits(&mut list);
    list.add("call 20", FOREIGN, [0; 6], Expected::Refused);
    for number in [libc::SYS_getpid, libc::SYS_bpf] {
        list.add(&format!("call {}", number | X32), number | X32, [0; 6], Expected::Refused);
    }
    sockets(&mut list);
    list.0
}

struct List(Vec<Probe>);

impl List {
    fn add(&mut self, call: &str, number: libc::c_long, arguments: [u64; 6], expected: Expected) {
        self.0.push(Probe { call: call.to_owned(), arguments, expected, number });
    }

    /// Both ways: as it is, and with rubbish where the kernel does not look.
    fn both(&mut self, call: &str, number: libc::c_long, arguments: [u64; 6], narrow: &[usize], expected: Expected) {
        self.add(call, number, arguments, expected);
        let mut high = arguments;
        for argument in narrow {
            high[*argument] ^= RUBBISH;
        }
        self.add(call, number, high, expected);
    }
}

fn expect(allowed: bool) -> Expected {
    if allowed { Expected::Allowed } else { Expected::Refused }
}

fn namespaces(list: &mut List) {
    let ended = libc::SIGCHLD as u64;
    let new = [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];
    // Plain; as the caller's sibling; sharing descriptors; and a thread without what it needs.
    for flags in [ended, 0x8000 | ended, 0x400 | ended, 0x1_0000] {
        list.both("clone", libc::SYS_clone, [flags, 0, 0, 0, 0, 0], &[0], Expected::Allowed);
    }
    for flag in new {
        list.both("clone", libc::SYS_clone, [flag | ended, 0, 0, 0, 0, 0], &[0], Expected::Refused);
        list.both("unshare", libc::SYS_unshare, [flag, 0, 0, 0, 0, 0], &[0], Expected::Refused);
    }
    list.add("clone3", libc::SYS_clone3, [NOWHERE, 88, 0, 0, 0, 0], Expected::Silently(libc::ENOSYS));
    for flag in [0, 0x200, 0x400, 0x4_0000, 0x4_0600] {
        list.add("unshare", libc::SYS_unshare, [flag, 0, 0, 0, 0, 0], Expected::Allowed);
    }
    for flag in [0x80, 0x100, 0x800, 0x1_0000, 0x400 | 0x80, 0x200 | 0x1000_0000] {
        list.both("unshare", libc::SYS_unshare, [flag, 0, 0, 0, 0, 0], &[0], Expected::Refused);
    }
}

fn modes(list: &mut List) {
    let (creates, unnamed) = (libc::O_CREAT as u64, libc::O_TMPFILE as u64);
    for mode in [0, 0o644, 0o1777, 0o2755, 0o4755, 0o6755] {
        let plain = expect(mode & 0o6000 == 0);
        list.both("chmod", libc::SYS_chmod, [NOWHERE, mode, 0, 0, 0, 0], &[1], plain);
        list.both("fchmod", libc::SYS_fchmod, [BAD, mode, 0, 0, 0, 0], &[1], plain);
        list.both("fchmodat", libc::SYS_fchmodat, [BAD, NOWHERE, mode, 0, 0, 0], &[2], plain);
        list.both("fchmodat2", 452, [BAD, NOWHERE, mode, 0, 0, 0], &[2], plain);
        list.both("creat", libc::SYS_creat, [NOWHERE, mode, 0, 0, 0, 0], &[1], plain);
        for flags in [0, 1, creates, creates | 1, unnamed | 2] {
            // Without a file to make, nobody looks at the mode.
            let expected = if flags < 3 { Expected::Allowed } else { plain };
            list.both("open", libc::SYS_open, [NOWHERE, flags, mode, 0, 0, 0], &[1, 2], expected);
            list.both("openat", libc::SYS_openat, [BAD, NOWHERE, flags, mode, 0, 0], &[2, 3], expected);
        }
        for kind in [0, 0o100000, 0o010000, 0o140000, 0o020000, 0o060000] {
            let expected = if kind & 0o160000 == 0o020000 || kind == 0o060000 { Expected::Refused } else { plain };
            list.both("mknod", libc::SYS_mknod, [NOWHERE, kind | mode, 0, 0, 0, 0], &[1], expected);
            list.both("mknodat", libc::SYS_mknodat, [BAD, NOWHERE, kind | mode, 0, 0, 0], &[2], expected);
        }
    }
    list.add("openat2", libc::SYS_openat2, [BAD, NOWHERE, NOWHERE, 24, 0, 0], Expected::Silently(libc::ENOSYS));
}

fn sockets(list: &mut List) {
    const MULTIPATH: u64 = 262;
    let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u64;
    for (level, option, allowed) in [
        (6, 31, false),
        (0, 64, false),
        (41, 64, false),
        (0, 65, false),
        (41, 65, false),
        (6, 1, true),
        (1, 31, true),
        (1, 64, true),
        (41, 31, true),
        (17, 31, true),
    ] {
        let arguments = [BAD, level, option, NOWHERE, 4, 0];
        list.both("setsockopt", libc::SYS_setsockopt, arguments, &[1, 2], expect(allowed));
    }
    for family in [0, 1, 2, 10, 16, 17, 40] {
        for kind in [1, 2, 3, 5] {
            let expected = expect(family == 1 && kind != 3);
            list.both("socketpair", libc::SYS_socketpair, [family, kind, 0, NOWHERE, 0, 0], &[0, 1, 2], expected);
        }
    }
    for family in [0, 1, 2, 3, 10, 15, 16, 17, 21, 29, 30, 31, 38, 40, 41, 43, 44, 45, 99] {
        for kind in [1, 2, 3, 5, 10] {
            for protocol in [0, 1, 6, 17, 132, 136, 16] {
                let allowed = match (family, kind) {
                    (2 | 10, 1) => protocol == 0 || protocol == 6,
                    (2 | 10, 2) => protocol == 0 || protocol == 17,
                    // The family itself knows one protocol only; what it says of others is the kernel's answer.
                    (1, 1 | 2 | 5) => true,
                    (16, _) => protocol == 0,
                    _ => false,
                };
                let arguments = [family, kind | flags, protocol, 0, 0, 0];
                list.both("socket", libc::SYS_socket, arguments, &[0, 1, 2], expect(allowed));
            }
        }
        let arguments = [family, 1, MULTIPATH, 0, 0, 0];
        let of_the_internet = matches!(family, 2 | 10);
        let expected = match family {
            _ if of_the_internet => Expected::Silently(libc::EPROTONOSUPPORT),
            // A local socket knows no protocols: what it says of one is the kernel's answer.
            1 => expect(true),
            _ => expect(false),
        };
        list.both("socket", libc::SYS_socket, arguments, &[0, 1, 2], expected);
    }
}

fn controls(list: &mut List) {
    for command in [0x5412, 0x541c, 0x541d, 0x5423, 0x5437, 0xc004_5877, 0xc004_5878] {
        list.both("ioctl", libc::SYS_ioctl, [BAD, command, NOWHERE, 0, 0, 0], &[1], Expected::Refused);
    }
    // Neighbours of those: how a terminal is set and sized, how much there is to read, which protocol it speaks.
    for command in [0x5401, 0x5402, 0x5413, 0x541b, 0x5421, 0x5424, 0x5441] {
        list.both("ioctl", libc::SYS_ioctl, [BAD, command, NOWHERE, 0, 0, 0], &[1], Expected::Allowed);
    }
}

fn options(list: &mut List) {
    // With arguments that none of them takes.
    for option in [1, 4, 15, 16, 21, 22, 23, 26, 30, 36, 37, 38, 40, 41, 42, 47, 52, 53, 65, 0x5356_4d41] {
        list.both("prctl", libc::SYS_prctl, [option, BAD, BAD, BAD, BAD, 0], &[0], Expected::Allowed);
    }
    for option in [0, 5, 6, 9, 10, 13, 14, 19, 20, 24, 28, 35, 54, 57, 58, 59, 60, 61, 62, 69, 70, 99, 0x7fff_ffff] {
        list.both("prctl", libc::SYS_prctl, [option, BAD, BAD, BAD, BAD, 0], &[0], Expected::Refused);
    }
    for (personality, allowed) in [
        (0, true),
        (0xffff_ffff, true),
        (0x4_0000, true),
        (0x40_0000, false),
        (0x10_0000, false),
        (0x400_0000, false),
        (0x44_0000, false),
        (8, false),
    ] {
        list.both("personality", libc::SYS_personality, [personality, 0, 0, 0, 0, 0], &[0], expect(allowed));
    }
}

fn limits(list: &mut List) {
    const CORE: u64 = 4;
    for limit in [0, 1, 3, 6, 7, 8] {
        list.both("prlimit64", libc::SYS_prlimit64, [0, limit, NOWHERE, 0, 0, 0], &[1], Expected::Allowed);
        list.both("setrlimit", libc::SYS_setrlimit, [limit, NOWHERE, 0, 0, 0, 0], &[0], Expected::Allowed);
    }
    list.both("prlimit64", libc::SYS_prlimit64, [0, CORE, 0, NOWHERE, 0, 0], &[1], Expected::Allowed);
    // With a bad pointer, which the kernel itself would not take.
    list.both("prlimit64", libc::SYS_prlimit64, [0, CORE, NOWHERE, 0, 0, 0], &[1], Expected::Pretended);
    list.both("prlimit64", libc::SYS_prlimit64, [0, CORE, 1 << 40, 0, 0, 0], &[1], Expected::Pretended);
    list.both("setrlimit", libc::SYS_setrlimit, [CORE, NOWHERE, 0, 0, 0, 0], &[0], Expected::Pretended);
}

/// The 32-bit ABI's getpid; the error as a code, 0 for success.
fn by_int_0x80() -> i32 {
    let mut result: i64 = 20;
    // SAFETY: takes no argument and touches no memory of ours; the registers it may change are named.
    unsafe {
        std::arch::asm!("int 0x80", inout("rax") result, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    if result < 0 { -(result as i32) } else { 0 }
}
