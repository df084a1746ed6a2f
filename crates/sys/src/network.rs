//! A network namespace with nothing in it but its own loopback.
//!
//! Making one is the dearest step of a sandbox, by far. So an assistant makes it on another processor, while its
//! caller goes on with the mounts and then joins.

use std::io;
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::assistant::Assistant;
use crate::process::Alone;
use crate::trees::Copies;

/// A namespace in the making.
pub struct Pending(Assistant);

/// Begins to make a namespace that will belong to the caller's user namespace. Before that, the same assistant copies
/// trees: they are needed sooner.
pub fn begin(alone: Alone, trees: &'static Copies) -> io::Result<Pending> {
    let work = |trees: &'static Copies| {
        trees.make();
        make().map(IntoRawFd::into_raw_fd)
    };
    Assistant::begin(alone, trees, work, None).map(Pending)
}

impl Pending {
    /// Waits until the namespace is there and moves into it.
    pub fn join(self) -> io::Result<()> {
        let fd = self.0.join()?;
        // SAFETY: the assistant opened it in the table we share, gave it up, and has ended.
        let namespace = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

/// Makes one and moves into it, with nobody's help.
pub fn make_own() -> io::Result<()> {
    Ok(enter_new()?)
}

fn enter_new() -> Result<(), Errno> {
    // SAFETY: a network namespace has no part in memory or descriptors.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
    raise_loopback()
}

fn make() -> Result<OwnedFd, Errno> {
    enter_new()?;
    rustix::fs::open(c"/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Brings up `lo` of the current network namespace.
fn raise_loopback() -> Result<(), Errno> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: an all-zero ifreq is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one ifreq, which outlives the call and names the interface, terminated.
    unsafe { ioctl(&socket, Setter::<{ libc::SIOCSIFFLAGS as u32 }, libc::ifreq>::new(request)) }
}
