//! Descriptors handed from one process to another, with a few words.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// Takes a descriptor that somebody left open for us under a number, if it is open.
pub fn take(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: F_GETFD takes no further argument and changes nothing.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it is open, and whoever calls this says that it was left for them: nothing else in this process owns it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// With one message.
pub const MOST: usize = 16;

/// Two ends of a wire on which messages stay whole.
pub fn wire() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

pub fn send(wire: BorrowedFd<'_>, words: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut extra = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !extra.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    loop {
        match rustix::net::sendmsg(wire, &[IoSlice::new(words)], &mut extra, SendFlags::NOSIGNAL) {
            Ok(sent) if sent == words.len() => return Ok(()),
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether there is something to read now, or it has ended.
pub fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    is_readable_within(descriptor, Duration::ZERO)
}

/// The same, or soon.
pub fn is_readable_within(descriptor: BorrowedFd<'_>, patience: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let until = Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: patience.subsec_nanos().into() };
    let mut one = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    !matches!(poll(&mut one, Some(&until)), Ok(0))
}

/// How many words came, and what came with them. No words: the other end is gone. A message that did not fit is an error.
pub fn receive(wire: BorrowedFd<'_>, words: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut extra = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match rustix::net::recvmsg(wire, &mut [IoSliceMut::new(words)], &mut extra, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    if received.flags.intersects(ReturnFlags::CTRUNC | ReturnFlags::TRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut descriptors = Vec::new();
    for message in extra.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok((received.bytes, descriptors))
}

/// The same for a message of any length up to `longest`, with no more room than it takes: most are short, and room for the longest
/// would have to be cleared for each.
pub fn receive_whole(wire: BorrowedFd<'_>, longest: usize) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let look = || rustix::net::recv(wire, &mut [0; 0], RecvFlags::PEEK | RecvFlags::TRUNC);
    let (_, length) = rustix::io::retry_on_intr(look)?;
    if length > longest {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut words = vec![0; length];
    let (count, descriptors) = receive(wire, &mut words)?;
    words.truncate(count);
    Ok((words, descriptors))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_is_handed_over_is_the_same_file() -> io::Result<()> {
        let (here, there) = wire()?;
        let (read, written) = rustix::pipe::pipe()?;
        send(here.as_fd(), b"take", &[written.as_fd()])?;
        let mut words = [0; 8];
        let (count, mut descriptors) = receive(there.as_fd(), &mut words)?;
        assert_eq!((&words[..count], descriptors.len()), (&b"take"[..], 1));
        std::fs::File::from(descriptors.remove(0)).write_all(b"x")?;
        let mut got = [0; 2];
        assert_eq!(rustix::io::read(&read, &mut got)?, 1);
        drop(here);
        assert_eq!(receive(there.as_fd(), &mut words)?.0, 0);
        Ok(())
    }

    #[test]
    fn a_message_comes_whole_whatever_its_length() -> io::Result<()> {
        let (here, there) = wire()?;
        let (_, written) = rustix::pipe::pipe()?;
        send(here.as_fd(), &[7; 5000], &[written.as_fd()])?;
        send(here.as_fd(), b"ab", &[])?;
        send(here.as_fd(), &[1; 9], &[])?;
        let (words, descriptors) = receive_whole(there.as_fd(), 5000)?;
        assert_eq!((words, descriptors.len()), (vec![7; 5000], 1));
        assert_eq!(receive_whole(there.as_fd(), 5000)?.0, b"ab");
        assert!(receive_whole(there.as_fd(), 8).is_err(), "it is longer than that");
        assert_eq!(receive_whole(there.as_fd(), 9)?.0, [1; 9]);
        drop(here);
        assert!(receive_whole(there.as_fd(), 9)?.0.is_empty(), "nobody is there any more");
        Ok(())
    }

    #[test]
    fn a_message_that_does_not_fit_is_an_error() -> io::Result<()> {
        let (here, there) = wire()?;
        send(here.as_fd(), &[1; 9], &[])?;
        assert!(receive(there.as_fd(), &mut [0; 8]).is_err());
        Ok(())
    }
}
