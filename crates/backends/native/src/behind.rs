//! What is heard from behind a carrier: the first process there reports on a pipe what ours reports on the wire.
//!
//! The pipe passes through the carrier, so its bytes are those of whoever took the carrier over. They decide nothing but
//! what this run is said to have come to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use guest::usher;
use guest::wire::{RECORD, Report, Stage};
use model::{SetupFailure, Wall};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sys::process::Ended;

/// Whether something can be read here, or nothing more will come.
pub fn stirs(descriptor: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    !matches!(poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], Some(&now)), Ok(0))
}

/// Nothing at all, where nobody carries.
#[derive(Default)]
pub struct Behind {
    report: Option<OwnedFd>,
    tell: Option<OwnedFd>,
    /// Somebody is there.
    pub ready: bool,
    ended: Option<Ended>,
    trouble: Option<Report>,
    heard: Vec<u8>,
    /// Time that it took, the user's and the system's, where somebody says so.
    pub used: [Duration; 2],
    /// Nobody else would hear of its end.
    only_witness: bool,
}

impl Behind {
    pub fn new(ends: Option<(OwnedFd, OwnedFd)>) -> Behind {
        let (report, tell) = ends.unzip();
        Behind { report, tell, ..Behind::default() }
    }

    /// Where whoever reports is the only one that knows of the end.
    pub fn ends_with_its_report(mut self) -> Behind {
        self.only_witness = true;
        self
    }

    /// Whether its end is told here, and has yet to be.
    pub fn will_tell_of_its_end(&self) -> bool {
        self.only_witness && self.ready && self.report.is_some()
    }

    /// Has something to say, or never will have anything more to say.
    pub fn stirs(&self) -> bool {
        self.report.as_ref().is_none_or(|report| stirs(report.as_fd()))
    }

    /// Somebody carries.
    fn carried(&self) -> bool {
        self.tell.is_some()
    }

    /// Passes a signal on to the payload. False if nobody carries: then it is ours to pass on.
    pub fn tell(&self, signal: i32) -> io::Result<bool> {
        let Some(tell) = &self.tell else { return Ok(false) };
        match rustix::io::write(tell, &[u8::try_from(signal).unwrap_or(0)]) {
            // Gone already; or deaf, and then it is ended when its time is over.
            Ok(_) | Err(Errno::PIPE | Errno::AGAIN) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    pub fn wanted(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.report.iter().map(AsFd::as_fd)
    }

    /// Takes what was said. True when there is nothing more to wait for.
    pub fn hear(&mut self, start_failure: &mut Option<(Stage, i32)>) -> io::Result<bool> {
        let Some(report) = &self.report else { return Ok(false) };
        // As much as a few records; there are never more.
        let mut bytes = [0u8; RECORD * 8];
        match rustix::io::read(report, &mut bytes) {
            Ok(0) => {
                self.report = None;
                return Ok(self.only_witness);
            }
            Ok(count) => self.heard.extend_from_slice(&bytes[..count]),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        while let Some((record, rest)) = self.heard.split_first_chunk::<RECORD>() {
            let said = Report::decode(record);
            self.heard = rest.to_vec();
            match said {
                Some(Report::Proven { .. }) if !self.ready => self.ready = true,
                Some(Report::Done { step: which @ 0..=1, nanoseconds }) if self.only_witness => {
                    self.used[which as usize] = Duration::from_nanos(nanoseconds);
                }
                Some(Report::Ended { status }) if self.ready => {
                    self.ended = Some(Ended::from_status(status));
                    return Ok(true);
                }
                Some(Report::CannotStart { stage, errno }) if self.ready => {
                    *start_failure = Some((stage, errno));
                    return Ok(true);
                }
                Some(trouble @ (Report::Failed { .. } | Report::Breached { .. })) => {
                    self.trouble = Some(trouble);
                    return Ok(true);
                }
                _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "no valid record came from behind")),
            }
        }
        Ok(false)
    }

    /// How the payload ended. `ours`: the carrier, or where there is none, the payload itself.
    pub fn ended(&self, ours: Option<Ended>) -> Option<Ended> {
        if self.carried() { self.ended } else { ours }
    }

    /// Why nothing of the payload has run, if so. `carrier`: how that ended. `short`: it was ended for a limit.
    pub fn failure(&self, carrier: Option<Ended>, short: bool, backend: &str) -> Option<SetupFailure> {
        let failure = |wall: Option<Wall>, message: String, fix: &str| {
            Some(SetupFailure { wall, message, fix: fix.to_owned(), layers: false })
        };
        match self.trouble {
            Some(Report::Failed { step, errno }) => {
                let step = usher::STEPS.get(step as usize).copied().unwrap_or("do something");
                let error = io::Error::from_raw_os_error(errno);
                failure(
                    Some(Wall::User),
                    format!("inside, `{backend}` could not {step}: {error}"),
                    "see `belljar doctor`",
                )
            }
            Some(_) => {
                let message =
                    format!("inside `{backend}`, a wall does not stand: something was possible that must not be");
                failure(Some(Wall::Privileges), message, "please report this")
            }
            None if !self.carried() || self.ready || short => None,
            None => {
                let how = match carrier {
                    Some(Ended::Exited(code)) => format!("with code {code}"),
                    Some(Ended::Signalled(signal)) => format!("by signal {signal}"),
                    None => "without a word".to_owned(),
                };
                let message = format!("`{backend}` ended {how} before the command was started");
                failure(Some(Wall::SystemCalls), message, "see `belljar doctor`, and what it said above")
            }
        }
    }
}
