//! The process that makes carriers: forked before the server's first thread, and never has a second one itself.
//!
//! All of its carriers wait at one socket, and the kernel hands each job to exactly one. When the server ends, however it does,
//! the launcher is killed, and each carrier is told to end: it ends its sandbox and writes so to the record.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use model::{Service, Watch, Zygote, agents};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::process::{self, Alone, Forked, Namespaces};
use sys::{carried, descriptors, signals};

use crate::carrier;

/// Makes what does a job: with this state, and somebody who is told things.
pub type Maker = fn(Option<PathBuf>, Box<dyn Watch>) -> Box<dyn Service>;

/// Carriers at once, whatever waits: whoever admits jobs has a smaller limit.
const MOST: usize = 1_024;
/// A carrier that ends without a job is broken; so many in a row, and there is a pause before the next.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Variables that a carrier keeps: what tools need, and nothing that is the server's own. Who started the server is kept as
/// well: an agent that did is still one.
const KEPT: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR", "DOCKER_HOST", "CONTAINER_HOST", "SSL_CERT_FILE", "SSL_CERT_DIR", "BELLJAR_RUNSC",
];

/// Makes a warm interpreter, whose door is its input.
pub type Warms = fn(&Interpreter, OwnedFd) -> std::process::Command;

/// A warm interpreter that the launcher keeps.
pub struct Interpreter {
    pub name: String,
    /// By its real path.
    pub program: PathBuf,
    /// What it has loaded before anybody asks.
    pub preload: Vec<String>,
    state: Option<(Child, OwnedFd)>,
    /// One that ends is begun again, so often and no more: something is wrong with it.
    tries: u32,
    begun: Instant,
}

const TRIES: u32 = 5;
/// One that lived so long is no try.
const LIVED: Duration = Duration::from_secs(60);

impl Interpreter {
    pub fn new(name: &str, program: PathBuf, preload: Vec<String>) -> Interpreter {
        Interpreter { name: name.to_owned(), program, preload, state: None, tries: TRIES, begun: Instant::now() }
    }

    /// A way to it, for one carrier.
    pub(crate) fn reach(&self) -> io::Result<Zygote> {
        let (_, door) = self.state.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(Zygote { door: door.try_clone()?, program: self.program.clone() })
    }

    fn begin(&mut self, warms: Warms) {
        while self.state.is_none() && self.tries > 0 {
            self.tries -= 1;
            self.begun = Instant::now();
            let begun = descriptors::wire().and_then(|(ours, theirs)| Ok((warms(self, theirs).spawn()?, ours)));
            // Without it, what it would have made faster is as slow as ever.
            self.state = begun.ok();
        }
    }

    fn is(&self, pid: i32) -> bool {
        self.state.as_ref().is_some_and(|(child, _)| i32::try_from(child.id()) == Ok(pid))
    }

    /// After its end.
    fn begin_anew(&mut self, warms: Warms) {
        self.state = None;
        if self.begun.elapsed() > LIVED {
            self.tries = TRIES;
        }
        self.begin(warms);
    }
}

/// What the server holds of it.
pub struct Launched {
    /// Where jobs are handed over.
    pub(crate) jobs: OwnedFd,
    /// As long as this is open, there is somebody to work for.
    pub(crate) lifeline: OwnedFd,
    pub(crate) launcher: OwnedFd,
}

/// What it works with.
pub struct Means {
    pub make: Maker,
    pub warms: Warms,
    /// Warm interpreters to keep.
    pub warm: Vec<Interpreter>,
    /// Carriers that wait.
    pub ready: usize,
}

/// Begins it. `forget`: descriptors that are the server's alone.
pub fn launch(alone: Alone, means: Means, forget: &[i32]) -> io::Result<Launched> {
    let (jobs, theirs) = descriptors::wire()?;
    let (ends, lifeline) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let parent = process_number();
    match process::fork_into(alone, Namespaces::NONE, None)? {
        Forked::Parent { handle, .. } => Ok(Launched { jobs, lifeline, launcher: handle }),
        Forked::Child => {
            drop((jobs, lifeline));
            forget.iter().for_each(|number| drop(descriptors::take(*number)));
            let ended = begin(parent).and_then(|()| keep_carriers(theirs.as_fd(), ends.as_fd(), means));
            process::exit(i32::from(ended.is_err()))
        }
    }
}

fn process_number() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn begin(parent: i32) -> io::Result<()> {
    process::die_with_parent()?;
    if rustix::process::getppid().is_none_or(|now| now.as_raw_nonzero().get() != parent) {
        return Err(io::Error::other("the server has ended"));
    }
    // Keys of the server's terminal are for the server, which ends in its own order. What was ignored where it was started is
    // none of what jobs ignore: Ctrl-C in a terminal of theirs is for them.
    process::new_session()?;
    signals::heed_all();
    carried::keep_variables(Alone::prove()?, is_kept);
    let nothing = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(())
}

fn is_kept(name: &OsStr, value: &OsStr) -> bool {
    let one: [(OsString, OsString); 1] = [(name.to_owned(), value.to_owned())];
    let named = name.to_str().is_some_and(|name| KEPT.contains(&name) || name.starts_with("LC_"));
    named || agents::no_person(&one).is_some()
}

fn keep_carriers(jobs: BorrowedFd<'_>, ends: BorrowedFd<'_>, means: Means) -> io::Result<()> {
    let Means { make, warms, mut warm, ready } = means;
    let mask = signals::block_all()?;
    let told = signals::descriptor()?;
    let (taken, takes) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let own = process_number();
    warm.iter_mut().for_each(|one| one.begin(warms));
    // Carriers are copies of this process, and have all of it at once.
    make(None, Box::new(Nobody)).rehearse();
    let (mut idle, mut all) = (BTreeSet::new(), BTreeSet::new());
    let mut broken = 0;
    // Carriers with a job come before the next carrier. Only for speed: where it can't be had, everything is as it was.
    let patient = process::let_others_go_on(true).unwrap_or(false);
    let as_before = || if patient { process::let_others_go_on(false).map(drop) } else { Ok(()) };
    loop {
        while idle.len() < ready && all.len() < MOST && broken < ready {
            match process::fork_into(Alone::prove()?, Namespaces::NONE, None)? {
                Forked::Parent { pid, .. } => {
                    idle.insert(pid);
                    all.insert(pid);
                }
                Forked::Child => {
                    let ended = signals::restore(&mask)
                        .and_then(|()| as_before())
                        .and_then(|()| carried::told_to_end_with(own))
                        .and_then(|()| carrier::carry(jobs, takes.as_fd(), &warm, make));
                    process::exit(i32::from(ended.is_err()))
                }
            }
        }
        let waited = [
            PollFd::new(&told, PollFlags::IN),
            PollFd::new(&taken, PollFlags::IN),
            PollFd::from_borrowed_fd(ends, PollFlags::IN),
        ];
        let mut waited = waited;
        let until = (broken >= ready).then_some(&PATIENCE);
        match poll(&mut waited, until) {
            Ok(0) => broken = 0,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !waited[1].revents().is_empty() {
            broken = 0;
            // One number each, written whole.
            let mut numbers = [0; 4 * 64];
            let count = rustix::io::read(&taken, &mut numbers)?;
            for number in numbers[..count].chunks_exact(4) {
                idle.remove(&i32::from_le_bytes([number[0], number[1], number[2], number[3]]));
            }
        }
        while let Some(signal) = signals::read(told.as_fd())? {
            // Told to end: each carrier is told the same by our end.
            if signal == rustix::process::Signal::TERM.as_raw() {
                return Ok(());
            }
        }
        while let Ok(Some((pid, _, _))) = process::wait(-1, true) {
            if warm.iter().any(|one| one.is(pid)) {
                // One that is begun anew begins as we are.
                as_before()?;
                warm.iter_mut().filter(|one| one.is(pid)).for_each(|one| one.begin_anew(warms));
                if patient {
                    process::let_others_go_on(true)?;
                }
                continue;
            }
            all.remove(&pid);
            broken += usize::from(idle.remove(&pid));
        }
        if !waited[2].revents().is_empty() {
            break;
        }
    }
    // The server is gone, and has waited for what it cared for. Carriers that wait find that out by themselves; whoever still
    // works is told by our end.
    Ok(())
}

/// Nothing is to be told while nothing is done for anybody.
pub(crate) struct Nobody;

impl Watch for Nobody {
    fn progress(&self, _: &str, _: u64, _: u64) {}

    fn warn(&self, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_keeps_no_variable_that_is_the_servers_own() {
        let kept = |name: &str| is_kept(OsStr::new(name), OsStr::new("x"));
        assert!(kept("PATH") && kept("LC_ALL") && kept("CLAUDECODE"));
        for name in ["BELLJAR_TOKEN", "AWS_SECRET_ACCESS_KEY", "LISTEN_FDS", "LD_PRELOAD", "SSH_AUTH_SOCK"] {
            assert!(!kept(name), "{name}");
        }
    }
}
