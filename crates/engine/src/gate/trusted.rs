//! Whom programs inside shall trust, where their requests are read: the gate writes it while the sandbox is built.
//!
//! To make an authority and to put it beside the host's takes as long as a fifth of a start. Done by the gate's own process,
//! nobody waits for it; and whoever would need it waits until it is whole, or hears that it never will be.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use egress::{Authority, Trust};
use model::{AUTHORITIES, Handed, JAVA_AUTHORITIES};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use sys::descriptors;

/// The gate's end of it.
pub struct Trusted {
    wire: OwnedFd,
    /// Somebody inside may be written in Java, which trusts in a way of its own.
    java: bool,
}

impl Trusted {
    /// What whoever makes the sandbox gets, and whoever writes.
    pub fn begin(java: bool) -> io::Result<(Handed, Option<Trusted>)> {
        let (ours, theirs) = descriptors::wire()?;
        let paths = [Some(AUTHORITIES), java.then_some(JAVA_AUTHORITIES)];
        let paths = paths.into_iter().flatten().map(PathBuf::from).collect();
        Ok((Handed { paths, wire: Some(theirs) }, Some(Trusted { wire: ours, java })))
    }

    /// Makes the authority, and writes it beside the host's own. Nothing: the sandbox will not be. `end` hangs up then.
    pub fn written(self, end: &OwnedFd) -> io::Result<Option<Authority>> {
        let Trusted { wire, java } = self;
        let authority = Authority::new().map_err(io::Error::other)?;
        let contents = contents(&authority, java).map_err(io::Error::other)?;
        let mut ready = [PollFd::new(&wire, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
        while let Err(error) = poll(&mut ready, None) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        if ready[0].revents().is_empty() {
            return Ok(None);
        }
        let (_, files) = descriptors::receive(wire.as_fd(), &mut [0; 16])?;
        if files.len() != contents.len() {
            return Ok(None);
        }
        let written = files.into_iter().zip(&contents).try_for_each(|(file, bytes)| File::from(file).write_all(bytes));
        let error =
            written.as_ref().map_or_else(|error| error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()), |()| 0);
        descriptors::send(wire.as_fd(), &error.to_le_bytes(), &[])?;
        written.map(|()| Some(authority))
    }
}

fn contents(authority: &Authority, java: bool) -> egress::Result<Vec<Vec<u8>>> {
    // From the one file where there is one: to look through the folder of single ones takes milliseconds.
    let host = egress::bundle();
    let roots = || match &host {
        Some(host) => Ok(egress::roots_in(host)),
        None => egress::roots(&Trust::Host),
    };
    let for_java = if java { Some(authority.java_store(&roots()?)) } else { None };
    let text = match host {
        Some(mut host) => {
            host.push(b'\n');
            host.extend_from_slice(authority.certificate_pem().as_bytes());
            host
        }
        None => authority.bundle(&roots()?),
    };
    Ok([Some(text), for_java].into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use rustix::fs::MemfdFlags;

    use super::*;

    fn file() -> File {
        File::from(rustix::fs::memfd_create(c"test", MemfdFlags::CLOEXEC).expect("a file"))
    }

    fn text(mut file: File) -> Vec<u8> {
        use std::io::{Read, Seek};
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("read");
        bytes
    }

    #[test]
    fn what_is_handed_over_is_whole_when_the_word_comes() {
        let (Handed { paths, wire }, writes) = Trusted::begin(true).expect("begun");
        assert_eq!(paths, [PathBuf::from(AUTHORITIES), PathBuf::from(JAVA_AUTHORITIES)]);
        let (wire, (_stays, end)) = (wire.expect("a wire"), descriptors::wire().expect("wires"));
        let (bundle, store) = (file(), file());
        descriptors::send(wire.as_fd(), b"write", &[bundle.as_fd(), store.as_fd()]).expect("sent");
        let authority = writes.expect("it writes").written(&end).expect("written").expect("an authority");
        let mut word = [1; 4];
        assert_eq!(descriptors::receive(wire.as_fd(), &mut word).expect("a word").0, 4);
        assert_eq!(word, [0; 4]);
        assert!(text(bundle).ends_with(authority.certificate_pem().as_bytes()));
        assert!(text(store).starts_with(&0xfeed_feed_u32.to_be_bytes()));
    }

    #[test]
    fn where_nothing_can_be_written_that_is_the_answer() {
        let (Handed { wire, .. }, writes) = Trusted::begin(false).expect("begun");
        let (wire, (_stays, end)) = (wire.expect("a wire"), descriptors::wire().expect("wires"));
        let full = File::options().write(true).open("/dev/full").expect("a full device");
        descriptors::send(wire.as_fd(), b"write", &[full.as_fd()]).expect("sent");
        assert!(writes.expect("it writes").written(&end).is_err());
        let mut word = [0; 4];
        descriptors::receive(wire.as_fd(), &mut word).expect("a word");
        assert_eq!(i32::from_le_bytes(word), Errno::NOSPC.raw_os_error());
    }

    #[test]
    fn nobody_waits_for_a_sandbox_that_will_not_be() {
        let (Handed { wire, .. }, writes) = Trusted::begin(false).expect("begun");
        let (stays, end) = descriptors::wire().expect("wires");
        drop(stays);
        assert!(writes.expect("it writes").written(&end).expect("ended").is_none());
        let (Handed { wire: other, .. }, writes) = Trusted::begin(false).expect("begun");
        let (_stays, end) = descriptors::wire().expect("wires");
        drop(other);
        assert!(writes.expect("it writes").written(&end).expect("ended").is_none());
        drop(wire);
        let (Handed { wire, .. }, writes) = Trusted::begin(false).expect("begun");
        drop(writes);
        // And the other way round: a gate that has gone never says that it is whole.
        assert_eq!(descriptors::receive(wire.expect("a wire").as_fd(), &mut [0; 4]).expect("an end").0, 0);
    }
}
