//! What the native backend needs to know of this host before it plans: a handful of cheap look-ups.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::Access;

use crate::groups::Placement;

/// Facts, as plain data: a plan is a pure function of these and a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub identity: Identity,
    /// Version of Landlock; zero for none.
    pub landlock: i32,
    pub groups: Placement,
    pub processors: u32,
    /// Device nodes of the closed list that are here.
    pub devices: Vec<PathBuf>,
}

/// Who asks, and so who the payload can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The payload is the caller, without any right that the caller has beyond files.
    Ordinary { user: u32, group: u32 },
    /// The caller is root and the payload somebody who exists nowhere else.
    Root { payload: u32 },
    /// The caller is root without the rights that it takes to be somebody else.
    PowerlessRoot,
}

/// User numbers from here on belong to nobody: above those of containers, below what programs take for negative.
const NOBODY_ELSE: u32 = 0x7000_0000;

const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// What a process has found, by its number, and when: a carrier of the service looks before it gets its job. Whoever is forked from it is
/// somebody else, and so is its payload.
static FOUND: Mutex<Option<(u32, Instant, Host)>> = Mutex::new(None);

/// A carrier may wait for its job for as long as it likes, and the host changes meanwhile.
const HOLDS: Duration = Duration::from_secs(5);

impl Host {
    /// Looked up once in each process, for a while.
    pub fn known() -> Host {
        let own = std::process::id();
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        match &*found {
            Some((who, when, host)) if *who == own && when.elapsed() < HOLDS => host.clone(),
            _ => found.insert((own, Instant::now(), Host::look())).2.clone(),
        }
    }

    fn look() -> Host {
        Host {
            identity: identity(),
            landlock: sys::landlock::abi(),
            groups: Placement::look(),
            processors: rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count()),
            devices: DEVICES
                .iter()
                .map(PathBuf::from)
                .filter(|path| rustix::fs::access(path, Access::EXISTS).is_ok())
                .collect(),
        }
    }
}

fn identity() -> Identity {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    if user != 0 || !in_the_first_user_namespace() {
        return Identity::Ordinary { user, group };
    }
    let can = |capability| sys::capabilities::holds(capability).unwrap_or(false);
    if can(sys::capabilities::SYS_ADMIN) && can(sys::capabilities::SETUID) {
        // Each live process has a number of its own, so each live sandbox has a user of its own.
        let pid = rustix::process::getpid().as_raw_nonzero().get() as u32;
        Identity::Root { payload: NOBODY_ELSE + (pid & 0x003f_ffff) }
    } else {
        Identity::PowerlessRoot
    }
}

/// There, every user number maps to itself.
fn in_the_first_user_namespace() -> bool {
    sys::paths::read_short("/proc/self/uid_map".as_ref())
        .is_ok_and(|map| String::from_utf8_lossy(&map).split_ascii_whitespace().eq(["0", "0", "4294967295"]))
}
