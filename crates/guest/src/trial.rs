//! What must not succeed from inside, tried by the first process before it starts the payload: a canary.
//!
//! It is behind the same filter, in the same namespaces and without the same powers as the payload, so what it can't do,
//! the payload can't do. Whatever succeeds is undone, and the payload is never started.

use std::fmt;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::net::{AddressFamily, SocketType};
use std::net::SocketAddrV4;
use sys::seccomp;

/// One thing to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// A call that is on no list. The parent must be asked about it, and says no.
    ForbiddenCall,
    /// A folder beside those that are granted.
    MakeFolder,
    /// Whoever started us, from a namespace where nobody did.
    SeeParent,
    /// An address that is nobody's. Nothing is sent: the kernel only looks for a way there.
    ReachOut,
    /// A capability, or a way to one.
    HoldPower,
    /// The caller's terminal.
    OpenTerminal,
    /// One more descriptor than may be open.
    OpenMore { than: u64 },
}

impl Trial {
    /// False if it worked.
    pub fn is_refused(self) -> bool {
        match self {
            Trial::ForbiddenCall => seccomp::ask_for_what_is_refused() == seccomp::REFUSED_BY_PARENT,
            Trial::MakeFolder => {
                let place = c"/.belljar-canary";
                match rustix::fs::mkdirat(CWD, place, Mode::from_raw_mode(0o700)) {
                    // Whether it can be taken back or not: it could be made.
                    Ok(()) => {
                        rustix::fs::unlinkat(CWD, place, AtFlags::REMOVEDIR).ok();
                        false
                    }
                    Err(_) => true,
                }
            }
            Trial::SeeParent => rustix::process::getppid().is_none(),
            Trial::ReachOut => match rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None) {
                // From a range that is kept for examples (RFC 5737).
                Ok(socket) => rustix::net::connect(&socket, &SocketAddrV4::new([192, 0, 2, 1].into(), 9)).is_err(),
                Err(_) => true,
            },
            Trial::HoldPower => {
                let none = rustix::thread::capabilities(None).is_ok_and(|sets| {
                    sets.effective.is_empty() && sets.permitted.is_empty() && sets.inheritable.is_empty()
                });
                none && rustix::thread::no_new_privs().is_ok_and(|forbidden| forbidden)
            }
            Trial::OpenTerminal => {
                let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
                rustix::fs::open(c"/dev/tty", flags, Mode::empty()).is_err()
            }
            Trial::OpenMore { than } => {
                let first = i32::try_from(than).unwrap_or(i32::MAX);
                // Our standard input may be closed; the root is always there.
                match rustix::fs::open(c"/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
                    Ok(root) => rustix::io::fcntl_dupfd_cloexec(&root, first).is_err(),
                    Err(_) => false,
                }
            }
        }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trial::ForbiddenCall => write!(out, "a call that is on no list"),
            Trial::MakeFolder => write!(out, "to make a folder at /"),
            Trial::SeeParent => write!(out, "to see a parent"),
            Trial::ReachOut => write!(out, "to reach 192.0.2.1"),
            Trial::HoldPower => write!(out, "to hold a capability, or to be able to gain one"),
            Trial::OpenTerminal => write!(out, "to open the caller's terminal"),
            Trial::OpenMore { than } => write!(out, "to have more than {than} descriptors"),
        }
    }
}
