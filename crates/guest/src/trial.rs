//! What must not succeed from inside, tried by the first process before it starts the payload: a canary.
//!
//! It is behind the same filter, in the same namespaces and without the same powers as the payload, so what it can't do,
//! the payload can't do. Whatever succeeds is undone, and the payload is never started.

use std::fmt;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType};
use serde::{Deserialize, Serialize};
use sys::{doors, seccomp};

/// Of a range that is kept for examples (RFC 5737), and the port at which everything is thrown away.
const NOBODY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9);

/// One thing to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trial {
    /// A call that is on no list. The parent must be asked about it, and says no.
    ForbiddenCall,
    /// A folder beside those that are granted.
    MakeFolder,
    /// Whoever started us, from a namespace where nobody did.
    SeeParent,
    /// An address that is nobody's. Nothing is sent: the kernel only looks for a way there.
    ReachOut,
    /// The same where a gate takes what goes out, but no datagrams: one is sent, and must be refused at once, from here.
    ReachPastGate,
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
                Ok(socket) => rustix::net::connect(&socket, &NOBODY).is_err(),
                Err(_) => true,
            },
            Trial::ReachPastGate => is_kept_in().unwrap_or(false),
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

/// Whether a datagram to an address that is nobody's ends in our own network, and at once.
fn is_kept_in() -> rustix::io::Result<bool> {
    /// It is answered while it is sent; only a way out would take longer.
    const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    rustix::net::connect(&socket, &NOBODY)?;
    // Somewhere else, it would come from another address: a refusal could be that of somebody on the way.
    let from = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
    if from.ip() != IpAddr::V4(doors::SOURCE) {
        return Ok(false);
    }
    match rustix::net::send(&socket, b"belljar", SendFlags::NOSIGNAL) {
        Ok(_) => {}
        Err(error) => return Ok(error == Errno::CONNREFUSED),
    }
    rustix::event::poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&PATIENCE))?;
    let heard = rustix::net::recv(&socket, &mut [0u8; 1], RecvFlags::DONTWAIT);
    Ok(matches!(heard, Err(Errno::CONNREFUSED)))
}

impl fmt::Display for Trial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trial::ForbiddenCall => write!(out, "a call that is on no list"),
            Trial::MakeFolder => write!(out, "to make a folder at /"),
            Trial::SeeParent => write!(out, "to see a parent"),
            Trial::ReachOut => write!(out, "to reach 192.0.2.1"),
            Trial::ReachPastGate => write!(out, "to reach 192.0.2.1 past the gate"),
            Trial::HoldPower => write!(out, "to hold a capability, or to be able to gain one"),
            Trial::OpenTerminal => write!(out, "to open the caller's terminal"),
            Trial::OpenMore { than } => write!(out, "to have more than {than} descriptors"),
        }
    }
}
