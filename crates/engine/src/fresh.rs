//! Values that are fetched while a run goes on, as they become known to whoever guards what it says.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use secrets::Values;
use zeroize::Zeroizing;

use crate::rail::Rail;
use crate::release;

/// Room for a name and a value.
const LONGEST: usize = model::LONGEST_SECRET + 256;

/// Whoever fetches tells; we hear.
pub fn wires() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

pub fn message(name: &str, value: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new([name.as_bytes(), b"\0", value.as_bytes()].concat())
}

pub fn read(message: &[u8]) -> Option<(String, String)> {
    let (name, value) = std::str::from_utf8(message).ok()?.split_once('\0')?;
    Some((name.to_owned(), value.to_owned()))
}

/// What was known at first, and what came since.
pub struct Fresh {
    hears: OwnedFd,
    known: RefCell<Vec<(OsString, OsString)>>,
    rail: Rc<Rail>,
    /// How much has come.
    count: Cell<u64>,
}

impl Fresh {
    pub fn new(hears: OwnedFd, known: Vec<(OsString, OsString)>, rail: Rc<Rail>) -> Fresh {
        Fresh { hears, known: RefCell::new(known), rail, count: Cell::new(0) }
    }

    /// What has come since the last look. Looked for before anything is let out, and every now and then.
    pub fn take_in(&self) {
        let mut words = Zeroizing::new(vec![0; LONGEST]);
        while let Ok((count @ 1.., _)) = rustix::net::recv(&self.hears, words.as_mut_slice(), RecvFlags::DONTWAIT) {
            let Some((name, value)) = words.get(..count).and_then(read) else { continue };
            let pair = release::of_the_vault_by(&name, &value);
            if self.known.borrow().contains(&pair) {
                continue;
            }
            self.rail.learns(&name, &value);
            self.known.borrow_mut().push(pair);
            self.count.set(self.count.get() + 1);
        }
    }

    /// All values that are known now, if they are more than `seen`.
    pub fn since(&self, seen: u64) -> Option<(u64, Rc<Values>)> {
        self.take_in();
        let count = self.count.get();
        (count > seen).then(|| (count, Rc::new(release::known(&self.known.borrow()))))
    }
}
