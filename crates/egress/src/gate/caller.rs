//! Who inside talks: found by the socket at the other end of what we accepted.
//!
//! `/proc/net/tcp` would tell, but the kernel walks its whole table of connections for it: milliseconds on a large machine.
//! So the sockets of the few processes inside are asked themselves; the table is read only where that is not allowed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use model::Caller;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

const MOST_PROCESSES: usize = 4096;
/// Of one process: listed, and looked at.
const MOST_LISTED: usize = 1 << 16;
const MOST_DESCRIPTORS: usize = 1024;
/// Whoever has many processes with many sockets must not have us search through all of them for each connection: while we do,
/// nobody else is served, and the time is not counted as theirs. So there is this much of it, and it comes back slowly.
const MOST_TIME: Duration = Duration::from_millis(200);
/// What comes back is this part of the time that passes.
const COMES_BACK: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Tcp,
    Udp,
}

/// Sockets whose place is remembered.
const MOST_SEEN: usize = 4096;

pub struct Callers {
    /// The first process inside; all others come from it.
    first: i32,
    /// Whoever talked last is likely to talk next.
    last: Option<Place>,
    /// Those that were looked at for another's sake: connections often come many at once, and to look through all of them for
    /// each would take longer than all else. Where they were is looked at again, so that what is told is always so.
    seen: HashMap<SocketAddr, Place>,
    /// What is left to search in, and when that was so.
    left: (Duration, Instant),
}

/// Where a socket is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    process: i32,
    descriptor: i32,
}

impl Callers {
    pub fn new(first: i32) -> Callers {
        Callers { first, last: None, seen: HashMap::new(), left: (MOST_TIME, Instant::now()) }
    }

    /// Who has the socket that has this address inside. Nobody is found where it would take too long.
    pub fn find(&mut self, over: Over, address: SocketAddr) -> Option<Caller> {
        let (left, since) = self.left;
        let now = Instant::now();
        let left = left.saturating_add(now.saturating_duration_since(since) / COMES_BACK).min(MOST_TIME);
        let wanted = canonical(address);
        let found = self.remembered(over, wanted).or_else(|| self.search(over, wanted, now + left));
        self.left = (left.saturating_sub(now.elapsed()), Instant::now());
        self.last = Some(found?);
        found.map(|place| caller(place.process))
    }

    /// Without a search: where it was seen, where the last one was, or beside that.
    fn remembered(&mut self, over: Over, wanted: SocketAddr) -> Option<Place> {
        let seen = self.seen.remove(&wanted);
        let next = self.last.map(|last| Place { descriptor: last.descriptor.saturating_add(1), ..last });
        [seen, self.last, next].into_iter().flatten().find(|place| place.is_of(over, wanted))
    }

    fn search(&mut self, over: Over, wanted: SocketAddr, until: Instant) -> Option<Place> {
        let (first, last) = (self.first, self.last);
        let mut look = Search { over, wanted, first, until, table: None, seen: &mut self.seen };
        if let Some(found) = last.and_then(|last| look.through(last.process)) {
            return Some(found);
        }
        let mut found = None;
        descendants(first, until, children, |process| {
            found = look.through(process);
            found.is_some()
        });
        found
    }
}

impl Place {
    fn is_of(self, over: Over, wanted: SocketAddr) -> bool {
        let handle = Pid::from_raw(self.process).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let copy = handle.and_then(|handle| pidfd_getfd(handle, self.descriptor, PidfdGetfdFlags::empty()).ok());
        copy.is_some_and(|copy| name_of(copy.as_fd(), over).is_some_and(|name| is(name, wanted)))
    }
}

/// The first that is wanted, of a process and all that came from it.
fn descendants(
    first: i32,
    until: Instant,
    children: impl Fn(i32) -> Vec<i32>,
    mut wanted: impl FnMut(i32) -> bool,
) -> Option<i32> {
    if first <= 0 {
        return None;
    }
    let mut waiting = vec![first];
    let mut seen = 0;
    while let Some(process) = waiting.pop() {
        if wanted(process) {
            return Some(process);
        }
        if Instant::now() >= until {
            return None;
        }
        seen += 1;
        let room = MOST_PROCESSES.saturating_sub(seen + waiting.len());
        waiting.extend(children(process).into_iter().take(room));
    }
    None
}

fn children(process: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let lists = threads.flatten().take(MOST_PROCESSES).map(|thread| fs::read(thread.path().join("children")));
    lists.flatten().flat_map(|list| numbers(&list)).collect()
}

/// From `/proc/PID/task/TID/children`.
fn numbers(list: &[u8]) -> Vec<i32> {
    let words = list.split(|byte| byte.is_ascii_whitespace());
    words.filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok()).filter(|number| *number > 0).collect()
}

struct Search<'a> {
    over: Over,
    wanted: SocketAddr,
    first: i32,
    until: Instant,
    /// The numbers of the sockets with that address, once the kernel's table had to be read.
    table: Option<Vec<u64>>,
    seen: &'a mut HashMap<SocketAddr, Place>,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// All sockets of one process.
    fn through(&mut self, process: i32) -> Option<Place> {
        let handle = Pid::from_raw(process).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())?;
        if self.is_over() {
            return None;
        }
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
        let names = descriptors.flatten().take(MOST_LISTED).map(|descriptor| descriptor.file_name());
        let mut numbers: Vec<i32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
        // Whoever has many has the newest at the end.
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        for descriptor in numbers.into_iter().take(MOST_DESCRIPTORS) {
            let link = fs::read_link(format!("/proc/{process}/fd/{descriptor}"));
            let Some(inode) = link.ok().and_then(|link| socket(link.as_os_str().as_encoded_bytes())) else { continue };
            let place = Place { process, descriptor };
            // A copy for a moment: whatever it is, we only ask for its address.
            let same = match pidfd_getfd(&handle, descriptor, PidfdGetfdFlags::empty()) {
                Ok(copy) => name_of(copy.as_fd(), self.over).is_some_and(|name| self.is_it(name, place)),
                Err(Errno::PERM | Errno::NOSYS) => {
                    let table = self.table.get_or_insert_with(|| read_table(self.first, self.over, self.wanted));
                    table.contains(&inode)
                }
                Err(_) => false,
            };
            if same {
                return Some(place);
            }
            if self.is_over() {
                return None;
            }
        }
        None
    }

    /// If not, it is remembered for others.
    fn is_it(&mut self, name: SocketAddr, place: Place) -> bool {
        if is(name, self.wanted) {
            return true;
        }
        if self.over == Over::Tcp && name.port() != 0 {
            if self.seen.len() >= MOST_SEEN {
                self.seen.clear();
            }
            self.seen.insert(canonical(name), place);
        }
        false
    }
}

/// The number of a socket, from a link of `/proc/PID/fd`.
fn socket(link: &[u8]) -> Option<u64> {
    let number = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Of a socket of this kind.
fn name_of(socket: BorrowedFd<'_>, over: Over) -> Option<SocketAddr> {
    use rustix::net::{SocketType, getsockname, sockopt::socket_type};
    let kind = match over {
        Over::Tcp => SocketType::STREAM,
        Over::Udp => SocketType::DGRAM,
    };
    socket_type(socket).ok().filter(|found| *found == kind)?;
    SocketAddr::try_from(getsockname(socket).ok()?).ok()
}

/// Datagrams can be sent by a socket that has only a port.
fn is(name: SocketAddr, wanted: SocketAddr) -> bool {
    let name = canonical(name);
    name.port() == wanted.port() && (name.ip() == wanted.ip() || name.ip().is_unspecified())
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn read_table(first: i32, over: Over, wanted: SocketAddr) -> Vec<u64> {
    let names = match over {
        Over::Tcp => ["tcp", "tcp6"],
        Over::Udp => ["udp", "udp6"],
    };
    let tables = names.into_iter().filter_map(|name| fs::read_to_string(format!("/proc/{first}/net/{name}")).ok());
    tables.flat_map(|text| sockets(&text, wanted)).collect()
}

/// The numbers of sockets with that local address, from `/proc/net/tcp` and its like.
fn sockets(text: &str, wanted: SocketAddr) -> Vec<u64> {
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let name = table_address(words.nth(1)?)?;
        let inode = words.nth(7)?.parse().ok()?;
        (inode != 0 && is(name, wanted)).then_some(inode)
    };
    text.lines().skip(1).filter_map(line).collect()
}

/// Each four bytes are written as a number of this machine.
fn table_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    if !address.is_ascii() {
        return None;
    }
    let mut bytes = Vec::new();
    for part in address.as_bytes().chunks(8) {
        let number = u32::from_str_radix(std::str::from_utf8(part).ok().filter(|part| part.len() == 8)?, 16).ok()?;
        bytes.extend(number.to_ne_bytes());
    }
    let address = match bytes.len() {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

fn caller(process: i32) -> Caller {
    // The kernel gives all of it at once.
    let mut room = [0; 64];
    let read = File::open(format!("/proc/{process}/comm")).and_then(|mut file| file.read(&mut room));
    let program = program_name(room.get(..read.unwrap_or(0)).unwrap_or_default());
    Caller { process, program }
}

/// The guest chooses its name: nothing of it may reach a terminal as it is.
fn program_name(comm: &[u8]) -> String {
    let name = String::from_utf8_lossy(comm.strip_suffix(b"\n").unwrap_or(comm));
    name.chars().map(|letter| if letter == ' ' || letter.is_ascii_graphic() { letter } else { '?' }).take(64).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;
    use crate::gate::tests::stage::CALM;

    #[test]
    fn whoever_holds_the_socket_is_the_caller() {
        let _calm = CALM.read();
        let own = i32::try_from(std::process::id()).expect("a number");
        let mut callers = Callers::new(own);
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(place) else { continue };
            let stream = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
            let (_accepted, peer) = listener.accept().expect("a connection");
            let found = callers.find(Over::Tcp, peer).expect("it is us");
            assert_eq!(found.process, own);
            assert!(!found.program.is_empty());
            assert_eq!(callers.find(Over::Udp, peer), None);
            drop(stream);
            assert_eq!(callers.find(Over::Tcp, peer), None, "a socket that was closed is nobody's");
        }
        let datagrams = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        let port = datagrams.local_addr().expect("an address").port();
        assert!(callers.find(Over::Udp, ([127, 0, 0, 1], port).into()).is_some());
    }

    #[test]
    fn it_is_found_fast() {
        let _calm = CALM.read();
        let own = i32::try_from(std::process::id()).expect("a number");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let _stream = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (_accepted, peer) = listener.accept().expect("a connection");
        let best = (0..20).map(|_| {
            let began = Instant::now();
            assert!(Callers::new(own).find(Over::Tcp, peer).is_some());
            began.elapsed()
        });
        let best = best.min().expect("twenty");
        assert!(best.as_micros() < 3000, "{best:?}");
    }

    #[test]
    fn of_many_that_come_at_once_each_is_found_and_the_search_is_made_once() {
        let _calm = CALM.read();
        let own = i32::try_from(std::process::id()).expect("a number");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        let mut streams: Vec<_> = (0..50).map(|_| TcpStream::connect(address).expect("a connection")).collect();
        let mut callers = Callers::new(own);
        // The oldest is asked for first: all others are looked at for its sake.
        let peers: Vec<SocketAddr> = streams.iter().map(|stream| stream.local_addr().expect("an address")).collect();
        assert!(callers.find(Over::Tcp, peers[0]).is_some());
        assert!(peers[1..].iter().all(|peer| callers.seen.contains_key(peer)));
        // What was seen is not believed: this one is gone, and its place has another.
        let (gone, kept) = (streams.remove(10), peers[10]);
        drop(gone);
        let _other = TcpStream::connect(address).expect("a connection");
        assert_eq!(callers.find(Over::Tcp, kept), None);
        assert!(peers[1..].iter().filter(|peer| **peer != kept).all(|peer| callers.find(Over::Tcp, *peer).is_some()));
    }

    #[test]
    fn all_who_came_from_the_first_are_asked_and_no_more_than_fit() {
        let tree = |process: i32| match process {
            1 => vec![2, 3],
            3 => vec![4],
            4 => vec![5, 6],
            _ => vec![],
        };
        let later = Instant::now() + Duration::from_secs(60);
        assert_eq!(descendants(1, later, tree, |process| process == 6), Some(6));
        assert_eq!(descendants(1, later, tree, |process| process == 7), None);
        let mut asked = 0;
        let endless = |process: i32| vec![process + 1, process + 2];
        assert_eq!(
            descendants(1, later, endless, |_| {
                asked += 1;
                false
            }),
            None
        );
        assert!(asked <= MOST_PROCESSES, "{asked}");
        let mut asked = 0;
        let none = descendants(1, Instant::now(), endless, |_| {
            asked += 1;
            false
        });
        assert_eq!((none, asked), (None, 1), "when the time is over, nobody else is asked");
        assert_eq!(descendants(0, later, tree, |_| true), None);
    }

    #[test]
    fn the_kernels_tables_are_read() {
        assert_eq!(numbers(b"12 345 \n"), [12, 345]);
        assert_eq!(numbers(b"x -4 0 99999999999 7"), [7]);
        assert_eq!(socket(b"socket:[123]"), Some(123));
        assert_eq!(socket(b"pipe:[123]"), None);
        assert_eq!(socket(b"/tmp/socket:[1]"), None);
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0\n   \
            1: 0100007F:1F90 0100007F:C350 06 00000000:00000000 00:00000000 00000000  1000        0 0 1 0 100 0 0 10 0\n   \
            2: garbage\n";
        if cfg!(target_endian = "little") {
            assert_eq!(sockets(text, ([127, 0, 0, 1], 8080).into()), [4242]);
            let six = "0000000000000000FFFF00000100007F:0050";
            assert_eq!(table_address(six).map(canonical), Some(([127, 0, 0, 1], 80).into()));
        }
        assert_eq!(sockets(text, ([127, 0, 0, 2], 8080).into()), [] as [u64; 0]);
        for bad in ["", ":", "0100007F", "0100007:0050", "0100007F:", "ä100007F:0050", "0100007F0100007F:0050"] {
            assert_eq!(table_address(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_programs_name_is_safe_to_look_at() {
        assert_eq!(program_name(b"curl\n"), "curl");
        assert_eq!(program_name(b"\x1b[2Jx\xff y\n"), "?[2Jx? y");
    }
}
