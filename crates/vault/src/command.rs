//! Runs a program outside and takes what it says: bounded in time and size, wiped afterwards. No threads: sandboxes are
//! forked from this process.

use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use model::LONGEST_SECRET;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use zeroize::Zeroizing;

/// Of what it says on its error output.
const MOST_COMPLAINT: usize = 4096;

pub struct Said {
    pub status: ExitStatus,
    pub output: Zeroizing<Vec<u8>>,
    /// May repeat what it printed: whoever shows it takes that out.
    pub complaint: Zeroizing<Vec<u8>>,
}

#[derive(Debug)]
pub enum Failed {
    Start(io::Error),
    Late(Duration),
    TooMuch,
    /// Whoever wanted to know has gone.
    Unwanted,
}

/// `input` goes to its standard input, which then ends. `until`: given up when the other end of it is gone.
pub fn run(
    command: &mut Command,
    input: &[u8],
    patience: Duration,
    until: Option<BorrowedFd<'_>>,
) -> Result<Said, Failed> {
    let deadline = Instant::now() + patience;
    // A group of its own: what it starts ends with it.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut started = Started { child: command.spawn().map_err(Failed::Start)?, ended: false };
    let term = Term { deadline, patience, until };
    let (output, complaint) = listen(&mut started.child, input, &term)?;
    let status = wait(&mut started.child, &term)?;
    started.ended = true;
    Ok(Said { status, output, complaint })
}

/// How long it is waited for.
struct Term<'a> {
    deadline: Instant,
    patience: Duration,
    until: Option<BorrowedFd<'a>>,
}

/// Whoever did not end in time ends now, with all that it started.
struct Started {
    child: Child,
    /// And was waited for: its number may be another's.
    ended: bool,
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
        self.child.wait().ok();
    }
}

type Heard = (Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>);

fn listen(child: &mut Child, input: &[u8], term: &Term<'_>) -> Result<Heard, Failed> {
    let taken = |pipe: Option<OwnedFd>| pipe.ok_or_else(|| Failed::Start(io::ErrorKind::BrokenPipe.into()));
    let stdin = taken(child.stdin.take().map(OwnedFd::from))?;
    let stdout = taken(child.stdout.take().map(OwnedFd::from))?;
    let stderr = taken(child.stderr.take().map(OwnedFd::from))?;
    for pipe in [&stdin, &stdout, &stderr] {
        let flags = rustix::fs::fcntl_getfl(pipe).map_err(|error| Failed::Start(error.into()))?;
        rustix::fs::fcntl_setfl(pipe, flags | OFlags::NONBLOCK).map_err(|error| Failed::Start(error.into()))?;
    }
    // Room for all of it: a list that grows leaves copies behind.
    let mut output = Zeroizing::new(Vec::with_capacity(LONGEST_SECRET + 4));
    let mut complaint = Zeroizing::new(Vec::with_capacity(MOST_COMPLAINT));
    let (mut stdin, mut stdout, mut stderr) =
        (Some(std::fs::File::from(stdin)), std::fs::File::from(stdout), Some(std::fs::File::from(stderr)));
    let mut rest = input;
    if rest.is_empty() {
        stdin = None;
    }
    loop {
        let mut waits = vec![PollFd::new(&stdout, PollFlags::IN)];
        waits.extend(stderr.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        waits.extend(stdin.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        pause(waits, term)?;
        if let Some(pipe) = &mut stdin {
            match pipe.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if is_not_yet(&error) => {}
                // Who does not want it has not read it; what it says tells.
                Err(_) => rest = &[],
            }
            if rest.is_empty() {
                stdin = None;
            }
        }
        if let Some(pipe) = &mut stderr
            && hear(pipe, &mut complaint, MOST_COMPLAINT, true)?
        {
            stderr = None;
        }
        // The first line's end is no part of a value.
        if hear(&mut stdout, &mut output, LONGEST_SECRET + 2, false)? {
            // What is there already is heard; whoever holds on to it says no more.
            if let Some(pipe) = &mut stderr {
                hear(pipe, &mut complaint, MOST_COMPLAINT, true)?;
            }
            return Ok((output, complaint));
        }
    }
}

/// Whether that was all.
fn hear(pipe: &mut std::fs::File, into: &mut Vec<u8>, most: usize, drop_more: bool) -> Result<bool, Failed> {
    let mut part = Zeroizing::new([0u8; 4096]);
    // So often at most, so that the others are heard too.
    for _ in 0..32 {
        match pipe.read(&mut part[..]) {
            Ok(0) => return Ok(true),
            Ok(count) => {
                let room = most.saturating_sub(into.len());
                if count > room && !drop_more {
                    return Err(Failed::TooMuch);
                }
                into.extend_from_slice(&part[..count.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_not_yet(&error) => return Ok(false),
            Err(error) => return Err(Failed::Start(error)),
        }
    }
    Ok(false)
}

fn wait(child: &mut Child, term: &Term<'_>) -> Result<ExitStatus, Failed> {
    let handle = sys::process::open(child.id().cast_signed()).map_err(Failed::Start)?;
    loop {
        if let Some(status) = child.try_wait().map_err(Failed::Start)? {
            return Ok(status);
        }
        pause(vec![PollFd::new(&handle, PollFlags::IN)], term)?;
    }
}

fn pause<'a>(mut waits: Vec<PollFd<'a>>, term: &Term<'a>) -> Result<(), Failed> {
    let left = term.deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Failed::Late(term.patience));
    }
    // Without asking for anything: that it was hung up is told all the same.
    waits.extend(term.until.map(|until| PollFd::from_borrowed_fd(until, PollFlags::empty())));
    let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    match poll(&mut waits, Some(&left)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(Failed::Start(error.into())),
    }
    let is_unwanted = term.until.is_some() && waits.last().is_some_and(|last| !last.revents().is_empty());
    if is_unwanted { Err(Failed::Unwanted) } else { Ok(()) }
}

fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
