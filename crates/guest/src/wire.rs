//! What the first process tells the parent: fixed-size records on a socket, some with descriptors.
//!
//! The payload never holds the socket. Still, the parent reads it as if it did: anything that is not a record
//! is an error.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

pub const RECORD: usize = 16;

/// How many doors there can be: none, or three for each version of the protocol.
pub const DOORS: [u32; 3] = [0, 3, 6];
/// What a first process offers, if it does: its namespaces and the rules of Landlock.
pub const OFFERED: [&str; 8] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "landlock"];
/// A listener, a terminal, all doors and what is offered.
const MOST: usize = 16;

/// The numbers that the kernel gives errors.
const ERRNO: std::ops::Range<i32> = 1..4096;

/// Something the parent learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// A step is done; only sent when asked for, with the time since the step before it.
    Done { step: u32, nanoseconds: u64 },
    /// A step failed: the sandbox is not raised, and nothing of the payload has run.
    Failed { step: u32, errno: i32 },
    /// Every wall is up. Carries the seccomp listener, the terminal if there is one, so many doors to the network, and what
    /// is offered to who comes later.
    Armed { filtered: bool, terminal: bool, offers: bool, doors: u32 },
    /// So many trials failed, as all of them should; the payload is about to be started.
    Proven { trials: u32 },
    /// A trial succeeded: a wall does not stand, and nothing of the payload has run.
    Breached { trial: u32 },
    /// The payload could not be started.
    CannotStart { stage: Stage, errno: i32 },
    /// The payload ended; this is its wait status.
    Ended { status: i32 },
}

/// What the payload was doing when it could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Fork,
    Terminal,
    WorkingDirectory,
    Execute,
}

impl Report {
    pub fn encode(self) -> [u8; RECORD] {
        let (kind, small, large): (u32, u32, u64) = match self {
            Report::Done { step, nanoseconds } => (1, step, nanoseconds),
            Report::Failed { step, errno } => (2, step, errno as u32 as u64),
            Report::Armed { filtered, terminal, offers, doors } => {
                (3, u32::from(filtered) | u32::from(terminal) << 1 | u32::from(offers) << 2, doors.into())
            }
            Report::CannotStart { stage, errno } => (4, stage as u32, errno as u32 as u64),
            Report::Ended { status } => (5, 0, status as u32 as u64),
            Report::Proven { trials } => (6, trials, 0),
            Report::Breached { trial } => (7, trial, 0),
        };
        let mut record = [0; RECORD];
        record[..4].copy_from_slice(&kind.to_le_bytes());
        record[4..8].copy_from_slice(&small.to_le_bytes());
        record[8..].copy_from_slice(&large.to_le_bytes());
        record
    }

    /// `None` for anything that `encode` does not make.
    pub fn decode(record: &[u8]) -> Option<Report> {
        let record: &[u8; RECORD] = record.try_into().ok()?;
        let (kind, rest) = record.split_first_chunk::<4>()?;
        let (small, large) = rest.split_first_chunk::<4>()?;
        let (kind, small) = (u32::from_le_bytes(*kind), u32::from_le_bytes(*small));
        let large = u64::from_le_bytes(large.try_into().ok()?);
        let narrow = || u32::try_from(large).ok().map(|number| number as i32);
        // Those who read one take it for the kernel's, and some panic if it can't be.
        let errno = || narrow().filter(|errno| ERRNO.contains(errno));
        Some(match kind {
            1 => Report::Done { step: small, nanoseconds: large },
            2 => Report::Failed { step: small, errno: errno()? },
            3 if small < 8 => {
                let doors = u32::try_from(large).ok().filter(|doors| DOORS.contains(doors))?;
                Report::Armed { filtered: small & 1 != 0, terminal: small & 2 != 0, offers: small & 4 != 0, doors }
            }
            4 => {
                let stage = [Stage::Fork, Stage::Terminal, Stage::WorkingDirectory, Stage::Execute];
                Report::CannotStart { stage: *stage.get(small as usize)?, errno: errno()? }
            }
            5 if small == 0 => Report::Ended { status: narrow()? },
            6 if large == 0 => Report::Proven { trials: small },
            7 if large == 0 => Report::Breached { trial: small },
            _ => return None,
        })
    }
}

/// Both ends of a new wire: the parent's and the child's.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a record, and copies of `descriptors` with it.
pub fn send(wire: BorrowedFd<'_>, report: Report, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut extra = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !extra.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    rustix::net::sendmsg(wire, &[IoSlice::new(&report.encode())], &mut extra, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next record with its descriptors; `None` when the other side is gone.
pub fn receive(wire: BorrowedFd<'_>) -> io::Result<Option<(Report, Vec<OwnedFd>)>> {
    // One byte more than a record, so that a longer one does not look like one.
    let mut record = [0u8; RECORD + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut extra = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match rustix::net::recvmsg(wire, &mut [IoSliceMut::new(&mut record)], &mut extra, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            // A peer that ended with something unread resets the connection rather than closing it.
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            other => break other?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let descriptors: Vec<OwnedFd> = extra
        .drain()
        .flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => rights.collect(),
            _ => Vec::new(),
        })
        .collect();
    let whole = !received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    match record.get(..received.bytes).and_then(Report::decode) {
        Some(report) if whole => Ok(Some((report, descriptors))),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the sandbox's first process sent no valid record")),
    }
}

/// The parent's word that maps and control groups are done.
pub fn release(wire: BorrowedFd<'_>) -> io::Result<()> {
    rustix::net::send(wire, b"go", SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Most descriptors in one message; the kernel's own limit is 253.
const BATCH: usize = 64;

/// Hands over what was opened, in order, and says when that was the last of them.
pub fn send_descriptors(wire: BorrowedFd<'_>, descriptors: &[OwnedFd]) -> io::Result<()> {
    let mut batches = descriptors.chunks(BATCH).peekable();
    while let Some(batch) = batches.next() {
        let last = [u8::from(batches.peek().is_none())];
        let batch: Vec<BorrowedFd<'_>> = batch.iter().map(|one| one.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
        let mut extra = SendAncillaryBuffer::new(&mut space);
        if !extra.push(SendAncillaryMessage::ScmRights(&batch)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        rustix::net::sendmsg(wire, &[IoSlice::new(&last)], &mut extra, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// Takes what `send_descriptors` sends.
pub(crate) fn receive_descriptors(wire: BorrowedFd<'_>, descriptors: &mut Vec<OwnedFd>) -> io::Result<()> {
    loop {
        let mut last = [0u8; 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
        let mut extra = RecvAncillaryBuffer::new(&mut space);
        match rustix::net::recvmsg(wire, &mut [IoSliceMut::new(&mut last)], &mut extra, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(received) if received.bytes == 1 && !received.flags.contains(ReturnFlags::CTRUNC) => {}
            Ok(_) => return Err(rustix::io::Errno::PIPE.into()),
            Err(error) => return Err(error.into()),
        }
        for message in extra.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if last == [1] {
            return Ok(());
        }
    }
}

/// Waits for the parent's word; an error if the parent is gone.
pub(crate) fn await_release(wire: BorrowedFd<'_>) -> io::Result<()> {
    let mut word = [0u8; 2];
    loop {
        match rustix::net::recv(wire.as_fd(), &mut word, RecvFlags::empty()) {
            Ok((_, 2)) if &word == b"go" => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Err(rustix::io::Errno::PIPE.into()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// An error if the parent is gone already: then nobody would end us.
pub(crate) fn parent_lives(wire: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = [0u8; 1];
    match rustix::net::recv(wire.as_fd(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, 0)) => Err(rustix::io::Errno::PIPE.into()),
        Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_decoded_encodes_to_the_same_bytes(bytes in proptest::array::uniform16(any::<u8>()), kind in 0u8..8) {
            let mut record = bytes;
            record[..4].copy_from_slice(&u32::from(kind).to_le_bytes());
            if let Some(report) = Report::decode(&record) {
                prop_assert_eq!(report.encode(), record);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(report) = Report::decode(&bytes) {
                prop_assert_eq!(report.encode().to_vec(), bytes);
            }
        }
    }

    #[test]
    fn every_report_survives_the_wire() {
        let (here, there) = pair().expect("a socket pair");
        for report in [
            Report::Done { step: 7, nanoseconds: u64::MAX },
            Report::Failed { step: u32::MAX, errno: 1 },
            Report::Armed { filtered: true, terminal: false, offers: false, doors: 0 },
            Report::Armed { filtered: true, terminal: true, offers: true, doors: 6 },
            Report::CannotStart { stage: Stage::Execute, errno: 2 },
            Report::Ended { status: 0x7f00 },
            Report::Proven { trials: 7 },
            Report::Breached { trial: 6 },
        ] {
            send(there.as_fd(), report, &[]).expect("sent");
            let (received, descriptors) = receive(here.as_fd()).expect("received").expect("not closed");
            assert_eq!((received, descriptors.len()), (report, 0));
        }
        drop(there);
        assert!(receive(here.as_fd()).expect("closed is no error").is_none());
    }

    #[test]
    fn all_descriptors_there_can_be_arrive_in_order() {
        let (here, there) = pair().expect("a socket pair");
        let sent: Vec<OwnedFd> = (0..MOST).map(|_| pair().expect("a socket pair").0).collect();
        let borrowed: Vec<BorrowedFd<'_>> = sent.iter().map(AsFd::as_fd).collect();
        send(there.as_fd(), Report::Armed { filtered: true, terminal: true, offers: true, doors: 6 }, &borrowed)
            .expect("sent");
        let (_, received) = receive(here.as_fd()).expect("received").expect("not closed");
        let inode = |fd: &OwnedFd| rustix::fs::fstat(fd).expect("open").st_ino;
        assert_eq!(received.iter().map(inode).collect::<Vec<_>>(), sent.iter().map(inode).collect::<Vec<_>>());
    }

    #[test]
    fn a_number_of_doors_that_there_can_not_be_is_no_record() {
        for doors in [1, 2, 4, 5, 7, u32::MAX] {
            let report = Report::Armed { filtered: true, terminal: false, offers: false, doors };
            assert_eq!(Report::decode(&report.encode()), None);
        }
    }

    #[test]
    fn an_error_number_that_no_kernel_gives_is_no_record() {
        // Found by the fuzzer: the supervisor panicked over such a number.
        for errno in [0, -1, 4096, 65_536, i32::MIN, i32::MAX] {
            for report in [Report::Failed { step: 0, errno }, Report::CannotStart { stage: Stage::Execute, errno }] {
                assert_eq!(Report::decode(&report.encode()), None);
            }
        }
    }

    #[test]
    fn a_record_of_the_wrong_length_is_an_error() {
        let (here, there) = pair().expect("a socket pair");
        for length in [1, RECORD - 1, RECORD + 1, 4096] {
            rustix::net::send(&there, &vec![1u8; length], SendFlags::empty()).expect("sent");
            assert!(receive(here.as_fd()).is_err(), "{length} bytes were taken for a record");
        }
    }
}
