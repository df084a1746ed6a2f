//! Doors to the gate, opened in the network of a container that is not ours: by a process that enters it and hands them out.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use sys::process::{self, Alone, Forked, Namespaces};
use sys::{capabilities, descriptors};

use crate::facts::Engine;

/// Whether we could enter the network of a container of this engine's: as root, or because it is in a user namespace of ours.
pub fn can_enter(engine: &Engine) -> bool {
    let own = rustix::process::geteuid();
    let ours = engine.rootless && engine.owner == own.as_raw();
    ours || own.is_root() && capabilities::holds(capabilities::SYS_ADMIN).unwrap_or(false)
}

/// `first`: a process of the container. `loopback`: ports of its own loopback that lead out as well.
pub fn open(first: i32, loopback: &[u16]) -> io::Result<model::Doors> {
    let network = std::fs::File::open(format!("/proc/{first}/ns/net"))?;
    let own = std::fs::metadata("/proc/self/ns/net")?;
    use std::os::unix::fs::MetadataExt;
    // Ours would be the host's: everything in it would be led to the gate.
    if network.metadata()?.ino() == own.ino() {
        return Err(io::Error::other("it has no network of its own"));
    }
    // Whose network it is; nobody but root and its owner gets any further.
    let users = match rustix::process::geteuid().is_root() {
        true => None,
        false => Some(std::fs::File::open(format!("/proc/{first}/ns/user"))?),
    };
    let (ours, theirs) = descriptors::wire()?;
    let pid = match process::fork_into(Alone::prove()?, Namespaces::NONE, None)? {
        Forked::Child => {
            drop(ours);
            let users = users.as_ref().map(AsFd::as_fd);
            process::exit(i32::from(enter(users, network.as_fd(), loopback, theirs.as_fd()).is_err()))
        }
        Forked::Parent { pid, .. } => pid,
    };
    drop(theirs);
    let mut words = [0u8; 256];
    let received = descriptors::receive(ours.as_fd(), &mut words);
    process::wait(pid, false)?;
    let (count, all) = received?;
    if count != 1 || all.len() % 3 != 0 || all.is_empty() {
        let said = String::from_utf8_lossy(&words[..count]).into_owned();
        return Err(io::Error::other(if said.is_empty() { "nobody could enter it".to_owned() } else { said }));
    }
    let mut doors = model::Doors::default();
    let mut all = all.into_iter();
    while let (Some(streams), Some(names), Some(long_names)) = (all.next(), all.next(), all.next()) {
        doors.streams.push(streams);
        doors.names.push(names);
        doors.long_names.push(long_names);
    }
    Ok(doors)
}

fn enter(
    users: Option<BorrowedFd<'_>>,
    network: BorrowedFd<'_>,
    loopback: &[u16],
    wire: BorrowedFd<'_>,
) -> io::Result<()> {
    let users = users.map_or(Ok(()), |users| move_into_link_name_space(users, Some(LinkNameSpaceType::User)));
    let opened = users
        .and_then(|()| move_into_link_name_space(network, Some(LinkNameSpaceType::Network)))
        .map_err(io::Error::from)
        .and_then(|()| sys::doors::open(loopback));
    match opened {
        Ok((four, six)) => {
            let both = std::iter::once(four).chain(six);
            let all: Vec<OwnedFd> = both.flat_map(|doors| [doors.streams, doors.names, doors.long_names]).collect();
            let borrowed: Vec<BorrowedFd<'_>> = all.iter().map(AsFd::as_fd).collect();
            descriptors::send(wire, b".", &borrowed)
        }
        Err(error) => {
            let mut said = format!("{error:>2}");
            said.truncate(200);
            descriptors::send(wire, said.as_bytes(), &[])
        }
    }
}
