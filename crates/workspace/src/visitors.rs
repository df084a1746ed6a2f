//! Where a sandbox that stays is visited: a socket in the user's own folder, named like the sandbox. Beside it lies what the state
//! knows of it, which nobody changes as long as it is open: so visitors need not open the state.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::error::{Result, cannot};
use crate::record::Record;
use crate::store::{Store, is_id};

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

fn beside(id: &str) -> String {
    format!("{id}.record")
}

fn socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// For whoever holds the sandbox's lock: whatever has the name is left from a host that is gone.
pub fn expect(store: &Store, record: &Record) -> Result<OwnedFd> {
    let id = record.id.as_str();
    let listen = || -> io::Result<OwnedFd> {
        match rustix::fs::mkdir(folder(store), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = open_folder(store)?;
        remove(&folder, id)?;
        // Before anybody can come: whoever is let in by this host finds what this host wrote.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, beside(id), flags, Mode::RUSR | Mode::WUSR)?;
        File::from(file).write_all(&serde_json::to_vec(record)?)?;
        let listener = socket()?;
        rustix::net::bind(&listener, &address(&folder, id)?)?;
        rustix::net::listen(&listener, WAITING)?;
        Ok(listener)
    };
    listen().map_err(cannot("expect visitors in", folder(store)))
}

/// For whoever expected them.
pub fn expect_no_more(store: &Store, id: &str) -> Result<()> {
    let leave = || match open_folder(store) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        folder => remove(&folder?, id),
    };
    leave().map_err(cannot("clear", folder(store)))
}

/// The socket first: what lies beside it is only believed if somebody answers there.
fn remove(folder: &OwnedFd, id: &str) -> io::Result<()> {
    for name in [id, &beside(id)] {
        match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What is known of an open sandbox; nothing if it is not open, or is not meant by its whole id.
pub fn known(store: &Store, id: &str) -> Result<Option<Record>> {
    if !is_id(id) || call_on(store, id)?.is_none() {
        return Ok(None);
    }
    let read = || -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut text = Vec::new();
        File::from(rustix::fs::openat(&open_folder(store)?, beside(id), flags, Mode::empty())?)
            .read_to_end(&mut text)?;
        Ok(text)
    };
    // Its host may be leaving, or be of another version: then the state knows.
    Ok(read().ok().and_then(|text| serde_json::from_slice::<Record>(&text).ok()).filter(|record| record.id == id))
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
