//! A network namespace with nothing in it but its own loopback.
//!
//! Making one is the dearest step of a sandbox, by far. So an assistant makes it on another processor, while its
//! caller goes on with the mounts and then joins. The assistant shares its caller's memory and descriptors; it makes
//! its system calls itself (`rustix` keeps no `errno`) and allocates nothing.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::checked;
use crate::process::{self, Alone, Ended};
use crate::stack;

/// A namespace in the making.
pub struct Pending {
    assistant: i32,
    /// The descriptor of the namespace, or a negative error. Leaked: the assistant may write to it at any time.
    result: &'static AtomicI32,
}

/// Begins to make a namespace that will belong to the caller's user namespace.
pub fn begin(_alone: Alone) -> io::Result<Pending> {
    let result: &'static AtomicI32 = Box::leak(Box::new(AtomicI32::new(-Errno::IO.raw_os_error())));
    let stack = stack::top()?;
    let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: the stack is never freed or touched again by us, and `result` is meant to be shared. `assist` uses
    // neither the allocator nor thread-local storage, which it shares with us.
    let pid = checked(unsafe {
        let argument = (&raw const *result).cast_mut().cast::<c_void>();
        libc::clone(assist, stack, flags, argument).into()
    })?;
    Ok(Pending { assistant: pid as i32, result })
}

impl Pending {
    /// Waits until the namespace is there and moves into it.
    pub fn join(self) -> io::Result<()> {
        let ended = process::wait(self.assistant, false)?;
        if !matches!(ended, Some((_, Ended::Exited(0), _))) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let fd = self.result.load(Ordering::Acquire);
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        // SAFETY: the assistant opened it in the table we share, gave it up, and has ended.
        let namespace = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

extern "C" fn assist(result: *mut c_void) -> c_int {
    // SAFETY: `begin` leaked it.
    let result = unsafe { &*result.cast::<AtomicI32>() };
    let made = make().map_or_else(|error| -error.raw_os_error(), IntoRawFd::into_raw_fd);
    result.store(made, Ordering::Release);
    0
}

fn make() -> Result<OwnedFd, Errno> {
    // SAFETY: a network namespace has no part in memory or descriptors.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
    raise_loopback()?;
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
