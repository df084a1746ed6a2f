//! Where a sandbox that stays is visited: a socket in the user's own folder, named like the sandbox.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::error::{Result, cannot};
use crate::store::Store;

const WAITING: i32 = 128;

fn folder(store: &Store) -> PathBuf {
    store.folder().join("live")
}

fn open_folder(store: &Store) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        folder(store),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// By the folder's descriptor: a path of the user's may be longer than a socket's may be.
fn address(folder: &OwnedFd, id: &str) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(format!("/proc/self/fd/{}/{id}", folder.as_raw_fd()))?)
}

fn socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// For whoever holds the sandbox's lock: whatever has the name is left from a host that is gone.
pub fn expect(store: &Store, id: &str) -> Result<OwnedFd> {
    let listen = || -> io::Result<OwnedFd> {
        match rustix::fs::mkdir(folder(store), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = open_folder(store)?;
        match rustix::fs::unlinkat(&folder, id, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let listener = socket()?;
        rustix::net::bind(&listener, &address(&folder, id)?)?;
        rustix::net::listen(&listener, WAITING)?;
        Ok(listener)
    };
    listen().map_err(cannot("expect visitors in", folder(store)))
}

/// For whoever expected them.
pub fn expect_no_more(store: &Store, id: &str) -> Result<()> {
    let leave = || -> io::Result<()> {
        match rustix::fs::unlinkat(&open_folder(store)?, id, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    };
    leave().map_err(cannot("clear", folder(store)))
}

/// A way to its host; nothing if it has none.
pub fn call_on(store: &Store, id: &str) -> Result<Option<OwnedFd>> {
    let call = || -> io::Result<Option<OwnedFd>> {
        let folder = match open_folder(store) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            folder => folder?,
        };
        let socket = socket()?;
        match rustix::net::connect(socket.as_fd(), &address(&folder, id)?) {
            Ok(()) => Ok(Some(socket)),
            Err(Errno::NOENT | Errno::CONNREFUSED) => Ok(None),
            Err(error) => Err(error.into()),
        }
    };
    call().map_err(cannot("visit a sandbox in", folder(store)))
}
