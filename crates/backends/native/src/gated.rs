//! Sandboxes with a way out, for real: a gate of the test's own stands outside and says where each connection wanted to go.
//!
//! Each test starts this program anew, as whoever we are and, if root, as the ordinary user for tests as well. There, the part
//! that is ignored otherwise runs in a copy that has one thread: sandboxes are forked from nothing else.
#![allow(clippy::print_stderr)]

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command as Program;

use guest::Step;
use guest::wire::{self, Report};
use model::{
    AUTHORITIES, Access, Command, Doors, Files, Gated, Handed, JAVA_AUTHORITIES, Limits, Network, Origin, Outside,
    Place, Powers, Streams, Trouble,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};
use sys::process::{self, Alone, Forked, Namespaces};
use sys::{descriptors, dialer, seccomp};

use crate::host::Host;
use crate::launch::{Raised, launch};
use crate::plan::{Mode, plan};
use crate::trust::Trust;

/// What connections to it make the gate do.
const END: u16 = 6666;
const VISIT: u16 = 7000;
/// Where the visited server listens.
const SERVER: u16 = 8000;

/// A gate in a process of its own.
struct Gate {
    label: &'static str,
    files: Vec<(PathBuf, Vec<u8>)>,
    gone: OwnedFd,
    held: Option<OwnedFd>,
    pid: Option<i32>,
}

impl Gate {
    fn new(label: &'static str, files: Vec<(PathBuf, Vec<u8>)>) -> Gate {
        let (gone, held) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
        Gate { label, files, gone, held: Some(held), pid: None }
    }
}

/// Written by a process of its own, as the real gate's are.
fn handed(files: Vec<(PathBuf, Vec<u8>)>) -> Handed {
    let (paths, contents): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    if paths.is_empty() {
        return Handed::default();
    }
    let (ours, theirs) = descriptors::wire().expect("a wire");
    match process::fork_into(Alone::prove().expect("one thread"), Namespaces::NONE, None).expect("a fork") {
        Forked::Child => {
            drop(theirs);
            let (_, opened) = descriptors::receive(ours.as_fd(), &mut [0; 8]).expect("files");
            assert_eq!(opened.len(), contents.len());
            for (file, bytes) in opened.into_iter().zip(&contents) {
                std::fs::File::from(file).write_all(bytes).expect("written");
            }
            descriptors::send(ours.as_fd(), &0_i32.to_le_bytes(), &[]).expect("said");
            process::exit(0)
        }
        Forked::Parent { .. } => Handed { paths, wire: Some(theirs) },
    }
}

impl Outside for Gate {
    fn files(&mut self) -> Handed {
        handed(std::mem::take(&mut self.files))
    }

    fn takes(&mut self, doors: Doors, _: i32) -> Result<(), Trouble> {
        let alone = Alone::prove().expect("one thread");
        let visits = dialer::start(doors.streams[0].as_fd(), alone).expect("a dialer");
        match process::fork_into(alone, Namespaces::NONE, None).expect("a fork") {
            Forked::Child => {
                process::die_with_parent().expect("dies");
                serve(self.label, &doors, &visits);
                process::exit(0)
            }
            Forked::Parent { pid, .. } => self.pid = Some(pid),
        }
        // Its end is the gate's alone now.
        self.held = None;
        Ok(())
    }

    fn gone(&self) -> BorrowedFd<'_> {
        self.gone.as_fd()
    }
}

fn serve(label: &str, doors: &Doors, visits: &OwnedFd) {
    let all: Vec<&OwnedFd> = doors.streams.iter().chain(&doors.names).chain(&doors.long_names).collect();
    loop {
        let mut list: Vec<PollFd<'_>> = all.iter().map(|door| PollFd::new(*door, PollFlags::IN)).collect();
        poll(&mut list, None).expect("polled");
        let ready: Vec<bool> = list.iter().map(|polled| !polled.revents().is_empty()).collect();
        for (at, door) in all.iter().enumerate().filter(|(at, _)| ready[*at]) {
            if (doors.streams.len()..doors.streams.len() + doors.names.len()).contains(&at) {
                answer_name(door);
                continue;
            }
            let mut stream = TcpStream::from(rustix::net::accept(door).expect("accepted"));
            let six = stream.local_addr().expect("an address").is_ipv6();
            let wanted: SocketAddr = match six {
                true => rustix::net::sockopt::ipv6_original_dst(&stream).expect("known").into(),
                false => rustix::net::sockopt::ip_original_dst(&stream).expect("known").into(),
            };
            let kind = if at < doors.streams.len() { "gate" } else { "names" };
            match wanted.port() {
                END => return,
                VISIT => stream.write_all(visit(visits).as_bytes()).expect("said"),
                _ => stream.write_all(format!("{label} {kind} {wanted}").as_bytes()).expect("said"),
            }
        }
    }
}

/// What the server inside says, and what is said of a port at which there is none.
fn visit(visits: &OwnedFd) -> String {
    let ask = |port: u16| {
        rustix::net::send(visits, &port.to_be_bytes(), SendFlags::empty()).expect("asked");
        let mut word = [0u8; 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut extra = RecvAncillaryBuffer::new(&mut space);
        rustix::net::recvmsg(visits, &mut [IoSliceMut::new(&mut word)], &mut extra, RecvFlags::CMSG_CLOEXEC)
            .expect("answered");
        let mut rights = extra.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => Some(rights),
            _ => None,
        });
        (word[0], rights.next().and_then(|mut rights| rights.next()))
    };
    let (word, none) = ask(SERVER + 1);
    let (_, connected) = ask(SERVER);
    let mut said = String::new();
    if let Some(connected) = connected {
        TcpStream::from(connected).read_to_string(&mut said).expect("read");
    }
    format!("{said} {word} {}", none.is_none())
}

/// Every name has one address of version 4.
fn answer_name(door: &OwnedFd) {
    let mut question = [0u8; 512];
    let (length, _, from) = rustix::net::recvfrom(door, &mut question, RecvFlags::empty()).expect("asked");
    let question = &question[..length];
    let name = question[12..].iter().position(|byte| *byte == 0).expect("a name") + 12;
    let four = question[name + 1..name + 3] == [0, 1];
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(four), 0, 0, 0, 0]);
    answer.extend(&question[12..name + 5]);
    if four {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 198, 18, 7, 7]);
    }
    rustix::net::sendto(door, &answer, SendFlags::empty(), &from.expect("from somewhere")).expect("answered");
}

fn powers(command: &[&str], network: Network) -> Powers {
    let place = |path: &str, folder| Place {
        path: path.into(),
        access: Access::Read,
        folder,
        origin: Origin::System,
        owner: (0, 0),
    };
    let link = |at: &str, to: &str| (PathBuf::from(at), PathBuf::from(to));
    Powers {
        command: Command {
            program: command[0].into(),
            arguments: command.iter().map(Into::into).collect(),
            directory: "/".into(),
            terminal: false,
        },
        files: Files {
            ground: model::Ground::Host,
            places: vec![place("/etc/ld.so.cache", false), place("/etc/ssl/certs", true), place("/usr", true)],
            links: vec![link("/bin", "usr/bin"), link("/lib", "usr/lib"), link("/lib64", "usr/lib64")],
            hidden: Vec::new(),
            home: "/home/inside".into(),
            user_name: "inside".to_owned(),
        },
        environment: vec![("PATH".into(), "/usr/bin:/usr/sbin".into())],
        network,
        limits: Limits {
            wall_time: None,
            millicpus: None,
            cpu_time: None,
            memory: 1 << 30,
            processes: 256,
            disk: 64 << 20,
            inodes: 8192,
            open_files: 1024,
            largest_file: 64 << 20,
            output: None,
        },
    }
}

fn gated() -> Network {
    Network::Gated(Gated { loopback: vec![5432], ..Gated::default() })
}

fn raise(powers: &Powers, outside: Option<Box<dyn Outside>>) -> Result<Raised, model::SetupFailure> {
    raise_and_time(powers, outside, false)
}

fn raise_and_time(
    powers: &Powers,
    mut outside: Option<Box<dyn Outside>>,
    trace: bool,
) -> Result<Raised, model::SetupFailure> {
    let host = Host { groups: crate::groups::Placement::Nowhere { why: "a test".to_owned() }, ..Host::known() };
    let handed = outside.as_mut().map(|outside| outside.files()).unwrap_or_default();
    let trust = Trust::look(powers, handed.paths.clone());
    let blueprint = plan(powers, &[], trust, &host, Mode::Full).expect("planned");
    let streams = Streams { outside, ..Streams::default() };
    launch(None, blueprint, powers, &host, (streams, handed), trace, crate::launch::Starts::Command)
}

/// Answers what is asked until the payload has ended: its exit code, or below zero what else happened.
fn outcome(raised: &Raised) -> i32 {
    let listener = raised.listener.as_ref().expect("a filter");
    loop {
        let mut list = [PollFd::new(&raised.wire, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        poll(&mut list, Some(&PATIENCE)).expect("polled");
        assert!(list.iter().any(|polled| !polled.revents().is_empty()), "nothing happened for long");
        if list[1].revents().contains(PollFlags::IN) {
            answer_next(listener);
        }
        if !list[0].revents().is_empty() {
            return match wire::receive(raised.wire.as_fd()).expect("heard") {
                Some((Report::Ended { status }, _)) if status & 0x7f == 0 => status >> 8,
                other => {
                    eprintln!("{other:?}");
                    -1
                }
            };
        }
    }
}

fn answer_next(listener: &OwnedFd) {
    if let Some(asked) = seccomp::receive(listener.as_fd()).expect("asked") {
        // Whoever asked may have ended meanwhile.
        seccomp::answer(listener.as_fd(), &asked, crate::calls::answer(&asked)).ok();
    }
}

/// Of the test's own, so that nothing waits for ever.
const PATIENCE: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

fn end(raised: Raised) -> io::Result<()> {
    process::signal(raised.handle.as_fd(), 9)?;
    process::wait(raised.pid, false).map(drop)
}

/// Runs a script of Python's inside; it fails by an exception.
fn inside(script: &str, network: Network, files: Vec<(PathBuf, Vec<u8>)>) {
    let outside = matches!(network, Network::Gated(_)).then(|| -> Box<dyn Outside> { Box::new(Gate::new("A", files)) });
    let script = format!("{COMMON}\n{script}");
    let raised = raise(&powers(&["/usr/bin/python3", "-c", &script], network), outside).expect("raised");
    assert_eq!(outcome(&raised), 0);
    end(raised).expect("ended");
}

const COMMON: &str = r#"
import socket, os, errno, time, struct, subprocess
socket.setdefaulttimeout(5)
def said(host, port):
    with socket.create_connection((host, port)) as c: return c.recv(200).decode()
def refused(host, port):
    try: said(host, port)
    except ConnectionRefusedError: return True
    except ConnectionResetError: return True
    return False
"#;

const REACHES: &str = r#"
assert said("1.2.3.4", 443) == "A gate 1.2.3.4:443", said("1.2.3.4", 443)
assert said("2001:db8::1", 80) == "A gate [2001:db8::1]:80"
assert said("169.254.169.254", 80) == "A gate 169.254.169.254:80"
assert said("198.18.0.1", 22) == "A gate 198.18.0.1:22"
# DNS over TCP is for the names, whoever is asked.
assert said("8.8.8.8", 53) == "A names 8.8.8.8:53", said("8.8.8.8", 53)
assert said("2001:db8::1", 53) == "A names [2001:db8::1]:53"
# A granted port of the loopback stands in the place of the own; others do not.
assert said("127.0.0.1", 5432) == "A gate 127.0.0.1:5432"
assert said("::1", 5432) == "A gate [::1]:5432"
assert refused("127.0.0.1", 5433) and refused("::1", 5433)
# Straight to the gate: it sees itself as the destination.
assert said("127.0.0.1", 47) == "A gate 127.0.0.1:47"
# Names.
begin = time.monotonic()
assert socket.getaddrinfo("x.test", 443, type=socket.SOCK_STREAM) == [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("198.18.7.7", 443))]
assert subprocess.check_output(["getent", "hosts", "x.test"]).split()[0] == b"198.18.7.7"
assert subprocess.check_output(["getent", "ahosts", "y.test"]).split()[0] == b"198.18.7.7"
assert time.monotonic() - begin < 2, "names take too long"
assert said("x.test", 80) == "A gate 198.18.7.7:80"
# Datagrams are refused at once, in both versions.
for family, host in [(socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2001:db8::1")]:
    with socket.socket(family, socket.SOCK_DGRAM) as d:
        d.connect((host, 443)); begin = time.monotonic()
        try: d.send(b"quic"); d.recv(10); assert False
        except ConnectionRefusedError: pass
        assert time.monotonic() - begin < 0.5
# But a question for a name is answered, whoever it is put to.
for family, host in [(socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2001:db8::1")]:
    with socket.socket(family, socket.SOCK_DGRAM) as d:
        d.connect((host, 53)); d.send(b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01x\x00\x00\x01\x00\x01")
        assert d.recv(200)[-4:] == bytes([198, 18, 7, 7])
# Servers of its own.
for family, host in [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.2")]:
    with socket.create_server((host, 8080), family=family) as s:
        with socket.create_connection((host, 8080)) as c, s.accept()[0] as a: a.send(b"own"); assert c.recv(9) == b"own"
"#;

const HOLDS: &str = r#"
# No descriptor but the three, and the one that lists them.
assert set(map(int, os.listdir("/proc/self/fd"))) <= {0, 1, 2, 3}, os.listdir("/proc/self/fd")
# Nobody inside changes routes or addresses, or the table.
def route(kind, flags, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as n:
        n.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        return struct.unpack("=i", n.recv(4096)[16:20])[0]
device = struct.pack("=HHI", 8, 4, 1)
assert route(25, 5, struct.pack("=8BI", 2, 0, 0, 0, 255, 3, 254, 2, 0) + device) == -errno.EPERM
assert route(25, 5, struct.pack("=8BI", 10, 0, 0, 0, 255, 3, 254, 2, 0) + device) == -errno.EPERM
assert route(24, 0x605, struct.pack("=8BI", 2, 8, 0, 0, 254, 3, 253, 1, 0) + device) == -errno.EPERM
assert route(16, 5, struct.pack("=BxHiII", 0, 0, 1, 0, 1)) == -errno.EPERM
try: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12); assert False
except PermissionError: pass
# Nor listens where the gate does.
for port in (47, 53):
    for family, host in [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1")]:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(family, kind) as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                try: s.bind((host, port)); assert False, (host, port)
                except PermissionError: pass
# Nor makes packets itself.
for family, kind, protocol in [(2, 3, 1), (2, 2, 1), (10, 3, 58), (17, 3, 3), (2, 5, 132)]:
    try: socket.socket(family, kind, protocol); assert False, (family, kind, protocol)
    except OSError: pass
assert [name for _, name in socket.if_nameindex()] == ["lo"]
"#;

const LOSES: &str = r#"
assert said("1.2.3.4", 443) == "A gate 1.2.3.4:443"
try: said("1.2.3.4", 6666)
except ConnectionResetError: pass
# It has ended when its sockets are closed, which is when this is refused.
begin = time.monotonic()
while not refused("1.2.3.4", 443): assert time.monotonic() - begin < 5
assert refused("2001:db8::1", 443) and refused("8.8.8.8", 53) and refused("127.0.0.1", 5432)
try: socket.getaddrinfo("x.test", 443); assert False
except socket.gaierror: pass
"#;

const VISITED: &str = r#"
with socket.create_server(("127.0.0.1", 8000)) as s:
    v = socket.create_connection(("1.2.3.4", 7000))
    a, peer = s.accept(); assert peer[0] == "127.0.0.1", peer
    a.send(b"welcome"); a.close()
    got = v.recv(200); assert got == b"welcome 111 true", got
with socket.create_server(("::1", 8000), family=socket.AF_INET6) as s:
    v = socket.create_connection(("1.2.3.4", 7000))
    a, peer = s.accept(); a.send(b"six"); a.close()
    got = v.recv(200); assert got == b"six 111 true", got
# Whoever dials is not to be seen.
assert all(int(p) < 100 for p in os.listdir("/proc") if p.isdigit())
"#;

const TRUSTS: &str = r#"
for path in ["/etc/belljar/authorities.pem", "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt"]:
    assert open(path).read() == "the gate's", path
    assert os.stat(path).st_mode & 0o777 == 0o444
    try: open(path, "w"); assert False
    except OSError as e: assert e.errno in (errno.EROFS, errno.EACCES), e
assert open("/etc/belljar/authorities.jks").read() == "java's"
java = "/etc/ssl/certs/java/cacerts"
assert not os.path.exists(java) or open(java).read() == "java's"
assert open("/etc/resolv.conf").read().startswith("nameserver 127.0.0.1\n")
"#;

// The test's gate reads nothing, so those who sent something are reset when they have read what it says.
const PROGRAMS: &str = r#"
def out(*words):
    begin = time.monotonic()
    done = subprocess.run(words, capture_output=True, timeout=20)
    return done.stdout.decode() + done.stderr.decode(), time.monotonic() - begin
if os.path.exists("/usr/bin/curl"):
    text, took = out("curl", "-sS", "--http0.9", "http://x.test/"); assert text.startswith("A gate 198.18.7.7:80") and took < 3, (text, took)
    text, took = out("curl", "-sS", "--http0.9", "http://[2001:db8::1]/"); assert text.startswith("A gate [2001:db8::1]:80"), text
if os.path.exists("/usr/bin/node"):
    script = "require('net').connect(443, 'x.test').on('data', d => process.stdout.write(d))"
    text, took = out("node", "-e", script); assert text == "A gate 198.18.7.7:443" and took < 5, (text, took)
    script = "require('dns').resolve4('x.test', (e, a) => console.log(e || a[0], Object.keys(require('os').networkInterfaces())))"
    text, took = out("node", "-e", script); assert text == "198.18.7.7 [ 'lo' ]\n", text
"#;

/// The parts that need a process of their own; `SCENE` says which.
#[test]
#[ignore = "started by the other tests"]
fn scene() {
    let ended = process::in_a_copy(|| {
        act();
        0
    });
    assert!(matches!(ended, Ok(process::Ended::Exited(0))), "{ended:?}");
}

fn act() {
    match std::env::var("SCENE").expect("a scene").as_str() {
        "reaches" => inside(REACHES, gated(), Vec::new()),
        "holds" => inside(HOLDS, gated(), Vec::new()),
        "loses" => inside(LOSES, gated(), Vec::new()),
        "visited" => inside(VISITED, gated(), Vec::new()),
        "trusts" => inside(
            TRUSTS,
            gated(),
            vec![(AUTHORITIES.into(), b"the gate's".to_vec()), (JAVA_AUTHORITIES.into(), b"java's".to_vec())],
        ),
        "programs" => inside(PROGRAMS, gated(), Vec::new()),
        "neighbours" => neighbours(),
        "dialer" => {
            let raised = raise(&powers(&["/usr/bin/true"], gated()), Some(Box::new(Harmless))).expect("raised");
            end(raised).expect("ended");
        }
        "nobody" => {
            let failed = raise(&powers(&["/usr/bin/true"], gated()), None).err().expect("nobody is there");
            assert_eq!(failed.wall, Some(model::Wall::Network), "{failed:?}");
        }
        "gone" => {
            let (alive, dead) = rustix::pipe::pipe().expect("a pipe");
            drop(dead);
            let gate: Box<dyn Outside> = Box::new(Gone(alive));
            let failed = raise(&powers(&["/usr/bin/true"], gated()), Some(gate)).err().expect("nobody writes");
            assert!(failed.message.contains("the gate"), "{failed:?}");
        }
        "costs" => costs(),
        _ => unreachable!("no such scene"),
    }
}

fn neighbours() {
    let script = format!(
        "{COMMON}\ns = socket.create_server(('0.0.0.0', 8123))\ntry: said('1.2.3.4', {END})\nexcept OSError: pass\ntime.sleep(60)"
    );
    let gate: Box<dyn Outside> = Box::new(Gate::new("A", Vec::new()));
    let first = raise(&powers(&["/usr/bin/python3", "-c", &script], gated()), Some(gate)).expect("raised");
    // It listens when its gate has ended. Until then it may ask.
    let listener = first.listener.as_ref().expect("a filter");
    let gone = first.outside.as_ref().expect("a gate").gone();
    loop {
        let mut list = [PollFd::from_borrowed_fd(gone, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        poll(&mut list, Some(&PATIENCE)).expect("polled");
        if !list[0].revents().is_empty() {
            break;
        }
        assert!(!list[1].revents().is_empty(), "it never listened");
        answer_next(listener);
    }
    let script = format!(
        "{COMMON}\nassert refused('127.0.0.1', 8123)\nassert said('198.18.0.1', 8123) == 'B gate 198.18.0.1:8123'"
    );
    let gate: Box<dyn Outside> = Box::new(Gate::new("B", Vec::new()));
    let second = raise(&powers(&["/usr/bin/python3", "-c", &script], gated()), Some(gate)).expect("raised");
    let ended = outcome(&second);
    end(second).expect("ended");
    end(first).expect("ended");
    assert_eq!(ended, 0);
}

/// Where nothing is done but taken.
struct Nobody(OwnedFd, Doors);

impl Outside for Nobody {
    fn files(&mut self) -> Handed {
        Handed::default()
    }

    fn takes(&mut self, doors: Doors, _: i32) -> Result<(), Trouble> {
        self.1 = doors;
        Ok(())
    }

    fn gone(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// It was to write a file, and has gone before.
struct Gone(OwnedFd);

impl Outside for Gone {
    fn files(&mut self) -> Handed {
        let (ours, theirs) = descriptors::wire().expect("a wire");
        drop(ours);
        Handed { paths: vec![AUTHORITIES.into()], wire: Some(theirs) }
    }

    fn takes(&mut self, _: Doors, _: i32) -> Result<(), Trouble> {
        unreachable!("no wall was up")
    }

    fn gone(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Looks at what it has started to dial, and ends it.
struct Harmless;

impl Outside for Harmless {
    fn files(&mut self) -> Handed {
        Handed::default()
    }

    fn takes(&mut self, doors: Doors, first: i32) -> Result<(), Trouble> {
        let alone = Alone::prove().expect("one thread");
        let visits = dialer::start(doors.streams[0].as_fd(), alone).expect("a dialer");
        let children = std::fs::read_to_string("/proc/thread-self/children").expect("children");
        let mut children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        let dialler = children.rfind(|pid: &i32| *pid != first).expect("one more");
        let status = std::fs::read_to_string(format!("/proc/{dialler}/status")).expect("its status");
        let says = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
            line.split_whitespace().next().expect("a value").to_owned()
        };
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(says(set), "0000000000000000", "{set}");
        }
        assert_eq!((says("NoNewPrivs:"), says("Seccomp:")), ("1".to_owned(), "2".to_owned()));
        assert_ne!(says("Uid:"), "0");
        // Whoever may look at all finds one descriptor.
        if let Ok(open) = std::fs::read_dir(format!("/proc/{dialler}/fd")) {
            assert_eq!(open.count(), 1);
        }
        drop(visits);
        let ended = process::wait(dialler, false).expect("waited").map(|(_, ended, _)| ended);
        assert_eq!(ended, Some(process::Ended::Exited(0)));
        Ok(())
    }

    fn gone(&self) -> BorrowedFd<'_> {
        rustix::stdio::stdin()
    }
}

/// For people: how long `true` takes, without and with a way out that is not used.
fn costs() {
    let mut taken = [Vec::new(), Vec::new()];
    for round in 0..200 {
        for (network, taken) in [Network::Closed, gated()].into_iter().zip(&mut taken) {
            let begin = std::time::Instant::now();
            let outside: Box<dyn Outside> = Box::new(Nobody(rustix::pipe::pipe().expect("a pipe").0, Doors::default()));
            let raised = raise(&powers(&["/usr/bin/true"], network), Some(outside)).expect("raised");
            assert_eq!(outcome(&raised), 0);
            end(raised).expect("ended");
            if round >= 20 {
                taken.push(begin.elapsed());
            }
        }
    }
    for taken in &mut taken {
        taken.sort();
    }
    let mut opening: Vec<u64> = (0..100).map(|_| time_to_open()).collect();
    opening.sort_unstable();
    let [closed, gated] = taken.map(|taken| taken[taken.len() / 2]);
    eprintln!("closed {closed:?}, gated {gated:?}, of that to open doors {} ns (medians)", opening[50]);
}

fn time_to_open() -> u64 {
    let outside: Box<dyn Outside> = Box::new(Nobody(rustix::pipe::pipe().expect("a pipe").0, Doors::default()));
    let raised = raise_and_time(&powers(&["/usr/bin/true"], gated()), Some(outside), true).expect("raised");
    let step = Step::OpenDoors { loopback: vec![5432] }.to_string();
    let took = raised.clock.parts.iter().find(|(name, _)| *name == step).expect("a step").1;
    assert_eq!(outcome(&raised), 0);
    end(raised).expect("ended");
    took
}

/// As whoever we are and, if that is root, as the ordinary user as well.
fn play(scene: &str) {
    let this = std::env::current_exe().expect("our path");
    // Nothing waits for ever.
    let bounded = || {
        let mut program = Program::new("timeout");
        program.args(["--kill-after=1", "60"]);
        program
    };
    let mut plain = bounded();
    plain.arg(&this);
    let mut all = vec![plain];
    if rustix::process::geteuid().is_root()
        && Program::new("id").arg(ORDINARY).output().is_ok_and(|id| id.status.success())
    {
        let mut ordinary = bounded();
        ordinary.args(["setpriv", "--reuid", ORDINARY, "--regid", ORDINARY, "--init-groups"]).arg(&this);
        all.push(ordinary);
    }
    for mut program in all {
        program.args(["--exact", "gated::scene", "--ignored", "--nocapture", "--test-threads=1"]);
        let done = program.env("SCENE", scene).current_dir("/").output().expect("started");
        assert!(
            done.status.success() && String::from_utf8_lossy(&done.stdout).contains("1 passed"),
            "{program:?}: {}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

const ORDINARY: &str = "belljar-test";

#[test]
fn what_goes_out_arrives_at_the_gate_and_nothing_else_goes() {
    play("reaches");
}

#[test]
fn programs_find_names_and_connect_without_being_told_anything() {
    play("programs");
}

#[test]
fn nobody_inside_can_change_where_it_goes() {
    play("holds");
}

#[test]
fn when_the_gate_dies_nothing_opens() {
    play("loses");
}

#[test]
fn a_server_inside_can_be_visited() {
    play("visited");
}

#[test]
fn whoever_visits_for_us_can_do_nothing_else_and_ends_with_us() {
    play("dialer");
}

#[test]
fn the_files_of_the_gate_are_in_the_places_that_programs_know() {
    play("trusts");
}

#[test]
fn sandboxes_side_by_side_do_not_see_each_other() {
    play("neighbours");
}

#[test]
fn nothing_runs_where_the_gate_has_gone_before_it_wrote_its_files() {
    play("gone");
}

#[test]
fn without_anybody_outside_nothing_runs() {
    play("nobody");
}
