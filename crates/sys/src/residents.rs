//! Whoever lives in a sandbox, found from outside by the process that watches over it.
//!
//! Nothing was left anywhere for this: the kernel knows who is whose child. Every look at a process goes through one
//! descriptor of its folder in /proc, which never comes to mean another process.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use crate::process;

/// Looked at in search of one that lets us in.
const MOST: usize = 1024;
/// Of a record in /proc.
const LONGEST: u64 = 4 << 20;

pub enum Found {
    /// It has ended, or was another's.
    Gone,
    /// It runs, but whoever is in there can't be looked into by us.
    Closed,
    Here(Residence),
}

/// A network that somebody else's processes live in.
pub struct Residence {
    /// The first process. Readable when it has ended, and with it all others.
    pub first: OwnedFd,
    pub network: OwnedFd,
    /// One of them, in /proc.
    one: OwnedFd,
}

/// How long this machine runs; as the kernel dates the start of processes.
pub fn uptime() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Whether this is still the process of ours that had the number at that time.
pub fn lives(process: i32, at: Duration) -> bool {
    matches!(Known::open(process), Ok(Some(known)) if known.is_ours_since(at))
}

/// Where numbers of processes mean what they mean to us, as long as this machine runs. Nothing, where /proc does not tell.
pub fn numbered_in() -> Option<u64> {
    rustix::fs::stat("/proc/self/ns/pid").ok().map(|namespace| namespace.st_ino)
}

/// Those that the process watches over which had the number at that time.
pub fn of(supervisor: i32, at: Duration) -> io::Result<Found> {
    let Some(known) = Known::open(supervisor)?.filter(|known| known.is_ours_since(at)) else { return Ok(Found::Gone) };
    let own =
        namespace(rustix::fs::open("/proc/self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?.as_fd())?;
    let Some((first, handle)) = known.children()?.into_iter().find_map(|child| first_of(child, supervisor)) else {
        return Ok(Found::Gone);
    };
    let mut waiting = VecDeque::from([first]);
    let mut seen = 0;
    while let Some(one) = waiting.pop_front() {
        seen += 1;
        if seen > MOST {
            break;
        }
        for child in one.children().unwrap_or_default() {
            waiting.extend(Known::open(child)?.filter(|known| known.field("PPid:") == Some(one.number.to_string())));
        }
        // Not everybody lets us: some forbid everybody to look into them.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(network) = rustix::fs::openat(&one.folder, "ns/net", flags, Mode::empty()) else { continue };
        if namespace(network.as_fd())? != own {
            return Ok(Found::Here(Residence { first: handle, network, one: one.folder }));
        }
    }
    Ok(Found::Closed)
}

impl Residence {
    /// Whether somebody waits for visitors at that port.
    pub fn listens(&self, port: u16) -> bool {
        ["net/tcp", "net/tcp6"].iter().any(|name| read(self.one.as_fd(), name).is_ok_and(|text| lists(&text, port)))
    }
}

/// The first process of a namespace of its own, and a handle of it.
fn first_of(number: i32, parent: i32) -> Option<(Known, OwnedFd)> {
    let known = Known::open(number).ok()??;
    let handle = process::open(number).ok()?;
    // Read after the handle was made: if it still lives, both are the same process.
    let inner: Vec<String> = known.field("NSpid:")?.split_whitespace().map(str::to_owned).collect();
    let is_first = inner.len() > 1 && inner.last().is_some_and(|last| last == "1");
    (is_first && known.field("PPid:") == Some(parent.to_string())).then_some((known, handle))
}

struct Known {
    number: i32,
    folder: OwnedFd,
}

impl Known {
    fn open(number: i32) -> io::Result<Option<Known>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(format!("/proc/{number}"), flags, Mode::empty()) {
            Ok(folder) => Ok(Some(Known { number, folder })),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn is_ours_since(&self, at: Duration) -> bool {
        let user = rustix::process::geteuid().as_raw().to_string();
        let users = self.field("Uid:").unwrap_or_default();
        let ours = users.split_whitespace().count() == 4 && users.split_whitespace().all(|one| one == user);
        // Whoever got the number later began later.
        ours && self.began().is_some_and(|began| began <= at)
    }

    fn began(&self) -> Option<Duration> {
        let text = read(self.folder.as_fd(), "stat").ok()?;
        // The name may have any letters, brackets too.
        let ticks: u64 = text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
        let each = rustix::param::clock_ticks_per_second().max(1);
        Some(Duration::from_secs(ticks / each) + Duration::from_secs(ticks % each) / u32::try_from(each).ok()?)
    }

    fn field(&self, name: &str) -> Option<String> {
        let text = read(self.folder.as_fd(), "status").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().to_owned())
    }

    fn children(&self) -> io::Result<Vec<i32>> {
        let text = read(self.folder.as_fd(), &format!("task/{}/children", self.number))?;
        Ok(text.split_whitespace().filter_map(|word| word.parse().ok()).collect())
    }
}

fn read(folder: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    let file = rustix::fs::openat(folder, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::new();
    File::from(file).take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn namespace(fd: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(fd)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// As /proc/net/tcp writes it: state `0A` is one that listens.
fn lists(text: &str, port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    text.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, state) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        local.ends_with(&wanted) && state == "0A"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_is_known_by_port_and_state() {
        let text = "  sl  local_address rem_address   st tx_queue\n   0: 0100007F:1F90 00000000:0000 0A 0:0\n   \
                    1: 0100007F:0050 0100007F:1234 01 0:0\n";
        assert!(lists(text, 8080));
        assert!(!lists(text, 80) && !lists(text, 0x1234) && !lists("", 1));
    }

    #[test]
    fn we_live_since_before_now_and_not_since_before_we_began() {
        let ours = i32::try_from(std::process::id()).expect("a number");
        assert!(lives(ours, uptime()));
        assert!(!lives(ours, Duration::ZERO));
        assert!(!lives(i32::MAX, uptime()) && !lives(-1, uptime()));
    }

    #[test]
    fn who_watches_over_nobody_has_no_residents() -> io::Result<()> {
        let ours = i32::try_from(std::process::id()).expect("a number");
        assert!(matches!(of(ours, uptime())?, Found::Gone));
        assert!(matches!(of(i32::MAX, uptime())?, Found::Gone));
        Ok(())
    }
}
