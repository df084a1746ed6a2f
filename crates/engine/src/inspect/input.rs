//! Code that comes in on standard input: read before anything runs, as far as the bounds go.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use code::{Language, Wanted};
use model::Request;
use policy::Facts;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::gather::words;

/// So much is read before anything runs, and so long is waited for it.
const LARGEST: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_millis(900);

/// What was read of the caller's input because it is code; it still has to reach whoever reads it.
#[derive(Default)]
pub struct Begun {
    pub bytes: Vec<u8>,
    pub(super) follows: Follows,
    pub(super) language: Option<Language>,
}

/// What comes after that.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Follows {
    /// Nobody looked, or somebody types it: that is told, and no more can be said of it.
    #[default]
    Unknown,
    Nothing,
    /// More than is read before it runs: whoever wants to hide code puts it there.
    More,
}

/// Reads what comes in on standard input, if the command would run that: to its end, or as far as the bounds go.
pub fn input(request: &Request, facts: &Facts) -> Begun {
    let wanted = code::wanted(&words(request, facts)).into_iter().find_map(|wanted| match wanted {
        Wanted::Input { language } => Some(language),
        _ => None,
    });
    let stdin = rustix::stdio::stdin();
    match wanted {
        None => Begun::default(),
        Some(_) if rustix::termios::isatty(stdin) => Begun::default(),
        // Through a terminal of its own nothing can be put first, so nothing is read.
        Some(_) if request.terminal => Begun { follows: Follows::More, ..Begun::default() },
        Some(language) => {
            let (bytes, whole) = begun(stdin);
            let follows = if whole { Follows::Nothing } else { Follows::More };
            Begun { bytes, follows, language }
        }
    }
}

/// As much as comes within the bounds, and whether that is all.
fn begun(from: BorrowedFd<'_>) -> (Vec<u8>, bool) {
    let end = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    while bytes.len() < LARGEST {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let mut list = [PollFd::from_borrowed_fd(from, PollFlags::IN)];
        match poll(&mut list, Some(&left)) {
            Ok(0) => return (bytes, false),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return (bytes, false),
        }
        bytes.reserve(64 << 10);
        match rustix::io::read(from, spare_capacity(&mut bytes)) {
            // Closed is empty, too.
            Ok(0) | Err(Errno::BADF) => return (bytes, true),
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return (bytes, false),
        }
    }
    (bytes, false)
}
