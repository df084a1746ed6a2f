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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::new_id;

    fn record(id: &str) -> Record {
        let text = serde_json::json!({
            "id": id, "name": null, "made": true, "created": 1, "used": 2, "command": ["true"], "settings": {},
            "workspaces": [], "layers": ["a"], "snapshots": [], "moment": null, "boot": null,
        });
        let defaults = serde_json::to_value(crate::record::Settings::default()).expect("settings");
        let text = serde_json::Value::Object(
            text.as_object()
                .expect("an object")
                .iter()
                .map(|(key, value)| (key.clone(), if key == "settings" { defaults.clone() } else { value.clone() }))
                .collect(),
        );
        serde_json::from_value(text).expect("a record")
    }

    #[test]
    fn what_lies_beside_a_socket_is_believed_while_somebody_answers_there() {
        let folder = std::env::temp_dir().join(format!("belljar-visitors-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let store = Store::at(folder.clone());
        let id = new_id().expect("an id");
        assert_eq!(known(&store, &id).expect("nothing is there"), None);
        let host = expect(&store, &record(&id)).expect("a host");
        assert_eq!(known(&store, &id).expect("it is open").map(|known| known.used), Some(2));
        // Neither the start of an id nor a name that leads elsewhere.
        assert_eq!(known(&store, &id[..12]).expect("no id"), None);
        assert_eq!(known(&store, &format!("../live/{id}")).expect("no id"), None);
        // Killed: both are left, and nobody answers.
        drop(host);
        assert!(folder.join("live").join(beside(&id)).exists());
        assert_eq!(known(&store, &id).expect("it is not open"), None);
        // The next host says what it knows, whatever lay there.
        let host = expect(&store, &Record { used: 3, ..record(&id) }).expect("another host");
        assert_eq!(known(&store, &id).expect("it is open").map(|known| known.used), Some(3));
        // One of another sandbox is not this one's.
        let other = new_id().expect("an id");
        std::fs::write(folder.join("live").join(beside(&id)), serde_json::to_vec(&record(&other)).expect("text"))
            .expect("a file");
        assert_eq!(known(&store, &id).expect("it is open"), None);
        drop(host);
        expect_no_more(&store, &id).expect("cleared");
        assert_eq!(std::fs::read_dir(folder.join("live")).expect("a folder").count(), 0);
        std::fs::remove_dir_all(&folder).expect("it was ours");
    }
}
