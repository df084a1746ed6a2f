//! The first process's records: what is taken for one is one, byte by byte, and leads to nothing absurd.

use std::cell::OnceCell;
use std::os::fd::{AsFd, OwnedFd};

use guest::wire::{self, RECORD, Report};
use rustix::net::SendFlags;

pub fn law(bytes: &[u8]) {
    let decoded = Report::decode(bytes);
    if let Some(report) = decoded {
        assert_eq!(report.encode().as_slice(), bytes, "{report:?} is encoded as something else");
        match report {
            // What others make of a number that no kernel gives is anybody's guess.
            Report::Failed { errno, .. } | Report::CannotStart { errno, .. } => {
                assert!((1..4096).contains(&errno), "{report:?} has no error number");
                rustix::io::Errno::from_raw_os_error(errno);
            }
            Report::Ended { status } => {
                sys::process::Ended::from_status(status);
            }
            Report::Done { .. } | Report::Armed { .. } | Report::Proven { .. } | Report::Breached { .. } => {}
        }
    }
    // The same over a socket. One without bytes looks like the end.
    if (1..=2 * RECORD).contains(&bytes.len()) {
        let received = over_a_socket(bytes);
        assert_eq!(received, decoded, "the socket makes another record of {bytes:?}");
    }
}

fn over_a_socket(bytes: &[u8]) -> Option<Report> {
    thread_local! {
        static PAIR: OnceCell<(OwnedFd, OwnedFd)> = const { OnceCell::new() };
    }
    PAIR.with(|pair| {
        let (here, there) = pair.get_or_init(|| wire::pair().expect("a socket pair"));
        rustix::net::send(there, bytes, SendFlags::empty()).expect("sent");
        let (report, descriptors) = wire::receive(here.as_fd()).ok()?.expect("the other end is open");
        assert!(descriptors.is_empty(), "descriptors out of nowhere");
        Some(report)
    })
}
