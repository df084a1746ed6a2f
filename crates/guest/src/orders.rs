//! Everything the first process needs to know. One that is forked by whoever knows it has a copy; one that was begun before
//! anybody knew is told.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};
use sys::process::Strings;
use sys::{descriptors, signals};

use crate::files::Operation;
use crate::step::Step;
use crate::trial::Trial;

/// What it does, in this order: steps, trials, and then what it is there for.
#[derive(Serialize, Deserialize)]
pub struct Orders {
    /// What depends on nothing but the host, and may have been done by whoever is told the rest.
    #[serde(skip)]
    pub groundwork: Vec<Step>,
    pub steps: Vec<Step>,
    /// What must not succeed once all steps are taken.
    pub trials: Vec<Trial>,
    /// Nothing: it stays, and starts what it will be told to.
    pub payload: Option<Payload>,
    /// Instead of a payload: work on files, by code of ours.
    pub files: Option<Operation>,
    /// To whoever stands outside and writes files for us.
    #[serde(skip)]
    pub handed: Option<OwnedFd>,
    /// The signal mask that the payload gets: the caller's.
    pub mask: signals::Mask,
    /// Report how long each step took.
    pub trace: bool,
}

#[derive(Serialize, Deserialize)]
pub struct Payload {
    pub program: CString,
    pub arguments: Strings,
    pub environment: Strings,
    pub directory: CString,
    pub terminal: bool,
    /// Numbers of descriptors that it gets besides input and output.
    pub gifts: Vec<RawFd>,
}

/// What comes before them on the wire.
const TOLD: &[u8] = b"orders";
/// No more than what a kernel would take as words and variables of one program, several times over.
const LONGEST: u64 = 64 << 20;

impl Orders {
    /// By its number in reports.
    pub fn step(&self, number: u32) -> Option<&Step> {
        self.groundwork.iter().chain(&self.steps).nth(number as usize)
    }

    /// Tells a first process that waits for them. `streams`: what the payload gets as input, output and error output.
    pub fn tell(&self, wire: BorrowedFd<'_>, streams: [BorrowedFd<'_>; 3]) -> io::Result<()> {
        let bytes = postcard::to_stdvec(self).map_err(io::Error::other)?;
        // Words and variables can be longer than what a socket takes at once.
        let file = rustix::fs::memfd_create(c"belljar-orders", MemfdFlags::CLOEXEC)?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
        let all: Vec<BorrowedFd<'_>> =
            [file.as_fd()].into_iter().chain(streams).chain(self.handed.as_ref().map(AsFd::as_fd)).collect();
        descriptors::send(wire, TOLD, &all)
    }

    /// Waits for them. With them, what the payload gets as input, output and error output.
    pub(crate) fn hear(wire: BorrowedFd<'_>) -> io::Result<(Orders, [OwnedFd; 3])> {
        let mut words = [0; TOLD.len() + 1];
        let (count, received) = descriptors::receive(wire, &mut words)?;
        let mut received = received.into_iter();
        let mut next = || received.next().ok_or(io::ErrorKind::UnexpectedEof);
        if words.get(..count) != Some(TOLD) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (file, streams) = (next()?, [next()?, next()?, next()?]);
        let length = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(u64::MAX);
        if length > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match rustix::io::pread(&file, &mut bytes[filled..], filled as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        let orders: Orders = postcard::from_bytes(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok((Orders { handed: received.next(), ..orders }, streams))
    }
}
