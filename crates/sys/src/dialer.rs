//! Somebody inside a sandbox's network who connects to its servers for us: published ports.
//!
//! A process of its own, because to enter a network takes rights that whoever carries the connections should not have, and
//! because the one who asks is to stay outside. It can do nothing else: it has no right left, no descriptor but the one it
//! is asked on, and no call but those that this takes.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::filter::{self, Action, Program, Rule, Rules};
use crate::process::{self, Alone, Forked, Namespaces};
use crate::{capabilities, checked, identity};

/// A byte that says that it went well. Any other is the number of an error, or 255.
pub const CONNECTED: u8 = 0;
/// What it says once, when it is ready to be asked.
const READY: u8 = b'r';

// From linux/sockios.h and nsfs.h.
const SOCKET_NAMESPACE: libc::c_ulong = 0x894C;
const OWNING_USER_NAMESPACE: libc::c_ulong = 0xB701;

/// Starts one in the network that `door`, a socket, was opened in. On the socket that is returned, each message of two
/// bytes, a port in the network's order, is answered with `CONNECTED` and a descriptor, or with another byte and none.
/// It ends when that socket is closed, or with us.
pub fn start(door: BorrowedFd<'_>, alone: Alone) -> io::Result<OwnedFd> {
    start_in(&ask_for_namespace(door, SOCKET_NAMESPACE)?, alone)
}

/// The same in a network that is known by its namespace.
pub fn start_in(network: &OwnedFd, alone: Alone) -> io::Result<OwnedFd> {
    let owner = ask_for_namespace(network.as_fd(), OWNING_USER_NAMESPACE)?;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let parent = rustix::process::getpid();
    let only = only_dialling();
    match process::fork_into(alone, Namespaces::NONE, None)? {
        Forked::Child => {
            drop(ours);
            let began = enter(&owner, network, parent).and_then(|()| {
                process::close_all_from(0, theirs.as_raw_fd())?;
                // Nobody listens: a call of a foreign kind is then no call.
                drop(crate::seccomp::install(&only)?);
                rustix::net::send(&theirs, &[READY], SendFlags::NOSIGNAL)?;
                serve(&theirs)
            });
            process::exit(if began.is_ok() { 0 } else { 1 })
        }
        Forked::Parent { .. } => {}
    }
    drop(theirs);
    // One that could not give up what it has, or not enter, closes without a word.
    let mut word = [0u8; 1];
    match rustix::io::retry_on_intr(|| rustix::net::recv(&ours, &mut word, RecvFlags::empty()))? {
        (_, 1) if word == [READY] => Ok(ours),
        _ => Err(io::Error::other("nobody could enter the sandbox's network")),
    }
}

/// Beyond all calls that there are.
const HIGHEST: u32 = 1024;

/// What is left to do: to be asked, to connect, to answer, to end.
fn only_dialling() -> Program {
    let mut rules = Rules::default();
    // Refused by the kernel itself: nobody is there to be asked.
    (0..HIGHEST).for_each(|call| rules.set(call, Rule::Always(Action::Fail(libc::EPERM as u16))));
    for call in [
        libc::SYS_recvfrom,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
        libc::SYS_socket,
        libc::SYS_setsockopt,
        libc::SYS_connect,
        libc::SYS_close,
        libc::SYS_exit_group,
        libc::SYS_exit,
        libc::SYS_rt_sigreturn,
        libc::SYS_restart_syscall,
    ] {
        rules.set(call as u32, Rule::Always(Action::Allow));
    }
    filter::compile(&rules)
}

fn ask_for_namespace(of: BorrowedFd<'_>, what: libc::c_ulong) -> io::Result<OwnedFd> {
    // SAFETY: both requests take nothing and return a new descriptor.
    let fd = checked(unsafe { libc::ioctl(of.as_raw_fd(), what as _) }.into())?;
    // SAFETY: the kernel made it for this call, so nothing else owns or closes it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Into the namespaces, and then without any right: as root, not even as somebody whom files of the host belong to.
fn enter(owner: &OwnedFd, network: &OwnedFd, parent: rustix::process::Pid) -> io::Result<()> {
    let was_root = rustix::process::geteuid().is_root();
    move_into_link_name_space(owner.as_fd(), Some(LinkNameSpaceType::User))?;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
    if was_root {
        identity::become_only(0, 0)?;
    }
    process::forbid_new_privileges()?;
    capabilities::drop_all()?;
    process::forbid_inspection()?;
    // After every change of identity, which clears it; and then whether it was in time.
    process::die_with_parent()?;
    match rustix::process::getppid() == Some(parent) {
        true => Ok(()),
        false => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

fn serve(asked: &OwnedFd) -> io::Result<()> {
    loop {
        let mut port = [0u8; 3];
        let length = match rustix::net::recv(asked, &mut port, RecvFlags::empty()) {
            Ok((_, length)) => length,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let connected = match length {
            0 => return Ok(()),
            2 => connect(u16::from_be_bytes([port[0], port[1]])),
            _ => Err(Errno::INVAL),
        };
        answer(asked, connected)?;
    }
}

fn connect(port: u16) -> Result<OwnedFd, Errno> {
    let to = |address: IpAddr| {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // Full waiting rooms take minutes to give up on; those who ask next do not wait for that.
        rustix::net::sockopt::set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Send, Some(PATIENCE))?;
        rustix::net::connect(&socket, &SocketAddr::new(address, port))?;
        rustix::net::sockopt::set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Send, None)?;
        Ok(socket)
    };
    match to(Ipv4Addr::LOCALHOST.into()) {
        Err(Errno::CONNREFUSED) => to(Ipv6Addr::LOCALHOST.into()).map_err(|_: Errno| Errno::CONNREFUSED),
        connected => connected,
    }
}

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

fn answer(asked: &OwnedFd, connected: Result<OwnedFd, Errno>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut extra = SendAncillaryBuffer::new(&mut space);
    let word = match &connected {
        Ok(_) => CONNECTED,
        Err(error) => u8::try_from(error.raw_os_error()).unwrap_or(u8::MAX).max(1),
    };
    let rights = connected.as_ref().map(|socket| [socket.as_fd()]);
    if let Ok(rights) = &rights
        && !extra.push(SendAncillaryMessage::ScmRights(rights))
    {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    rustix::net::sendmsg(asked, &[IoSlice::new(&[word])], &mut extra, SendFlags::NOSIGNAL)?;
    Ok(())
}
