//! In a network of its own, turned to the gate by the kernel: what a sandbox does, with the system's own tools.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use hickory_proto::op::Message;
use hickory_proto::rr::{RData, RecordType};
use model::{Doors, Gated, HostName, NetworkDeed, NetworkEvent};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

use super::stage::{CALM, PATIENCE, Rules, denied, echo, heard, only, porter};
use crate::gate::question::tests::asked;
use crate::gate::{GateLimits, GateSettings, serve};

/// Says to the test that it is the one inside, and where to hand over the doors.
const INSIDE: &str = "BELLJAR_TEST_INSIDE";
const NETWORK: &str = "ip link set lo up && ip addr add 198.18.0.1/32 dev lo && \
    ip route add local default dev lo src 198.18.0.1 && ip -6 route add local default dev lo && nft -f -";
const TURNED: &str = "table inet gate {
    chain out {
    type nat hook output priority -100;
    meta l4proto tcp ip daddr != 127.0.0.0/8 redirect to :9
    meta l4proto tcp ip6 daddr != ::1 redirect to :9
    udp dport 53 redirect to :53
    }
}
";

#[test]
fn the_kernel_turns_everything_to_the_gate() {
    if let Some(socket) = std::env::var_os(INSIDE) {
        return inside(&UnixStream::connect(socket).expect("somebody outside"));
    }
    let made = Command::new("unshare")
        .args(["-Urn", "sh", "-c", "ip link set lo up && nft list ruleset"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // A test that can't be made must not look as if it held.
    assert!(made.is_ok_and(|status| status.success()), "needs user namespaces, and `ip` and `nft` in PATH");
    let _calm = CALM.read();
    let place = std::env::temp_dir().join(format!("belljar-gate-{}", std::process::id()));
    let waiting = std::os::unix::net::UnixListener::bind(&place).expect("a socket");
    let name = "gate::tests::inside::the_kernel_turns_everything_to_the_gate";
    let child = Command::new("unshare")
        .args(["-Urn", "--"])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, &place)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("somebody inside");
    let (socket, _) = waiting.accept().expect("it calls");
    std::fs::remove_file(&place).expect("removed");
    let doors = received(&socket);
    let first = i32::try_from(child.id()).expect("a number");
    let (until, end) = rustix::pipe::pipe().expect("a pipe");
    let events: Arc<Mutex<Vec<NetworkEvent>>> = Arc::default();
    let server = echo();
    let name = HostName::read("a.example").expect("a name");
    let gated = Gated { pinned: vec![(name, server.ip())], ..Gated::default() };
    let rules =
        Rules { knows: vec!["a.example"], opens: vec!["a.example:*"], leads_to: vec![server.ip()], ..Rules::default() };
    let porter = porter(rules, events.clone());
    let serving = std::thread::spawn(move || {
        let settings = GateSettings {
            porter: Rc::new(porter),
            gated,
            first,
            limits: GateLimits::default(),
            reader: None,
            visits: vec![],
            dialer: None,
            heeds_signals: false,
        };
        serve(settings, doors, until).expect("it served")
    });
    // Now it may begin; it needs the port of the server.
    (&socket).write_all(&server.port().to_be_bytes()).expect("sent");
    let said = child.wait_with_output().expect("it ended");
    drop(end);
    serving.join().expect("it served");
    let events = events.lock().expect("events").clone();
    let told =
        format!("{events:#?}\n{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success(), "{told}");
    let connects = only(&events, NetworkDeed::Connect);
    let through = connects.iter().filter(|event| !event.denied).count();
    assert_eq!(through, 3, "{told}");
    let refused: Vec<&str> = denied(&connects).iter().map(|event| event.host.clone().leak() as &str).collect();
    assert_eq!(refused, ["1.2.3.4", "2001:db8::7", "(the gate itself)"], "{told}");
    assert!(connects.iter().all(|event| event.caller.as_ref().is_some_and(|caller| caller.process == first)), "{told}");
    assert!(only(&events, NetworkDeed::Name).iter().all(|event| event.caller.is_some()), "{told}");
}

/// What a sandbox does: all of its network leads to these sockets, which somebody outside takes.
fn inside(socket: &UnixStream) {
    let mut network = Command::new("sh").args(["-c", NETWORK]).stdin(Stdio::piped()).spawn().expect("a shell");
    network.stdin.take().expect("its input").write_all(TURNED.as_bytes()).expect("rules");
    assert!(network.wait().expect("it ended").success());
    let listener = |place: &str| TcpListener::bind(place).expect("a door");
    let sockets: [OwnedFd; 4] = [
        listener("127.0.0.1:9").into(),
        listener("[::1]:9").into(),
        UdpSocket::bind("127.0.0.1:53").expect("a door").into(),
        listener("127.0.0.1:53").into(),
    ];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let handed = sockets.each_ref().map(AsFd::as_fd);
    assert!(with.push(SendAncillaryMessage::ScmRights(&handed)));
    rustix::net::sendmsg(socket, &[IoSlice::new(b"x")], &mut with, SendFlags::empty()).expect("sent");
    drop(sockets);
    let mut port = [0; 2];
    (&*socket).read_exact(&mut port).expect("a port");
    let port = u16::from_be_bytes(port);

    for version in [RecordType::A, RecordType::AAAA] {
        let questions = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        questions.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        // Whichever server of names is asked.
        questions.connect("8.8.8.8:53").expect("a way");
        questions.send(&asked("a.example.", version)).expect("sent");
        let mut room = [0; 512];
        let length = questions.recv(&mut room).expect("an answer");
        let answer = Message::from_vec(&room[..length]).expect("a message");
        let address: std::net::IpAddr = match &answer.answers[0].data {
            RData::A(address) => address.0.into(),
            RData::AAAA(address) => address.0.into(),
            other => unreachable!("{other:?}"),
        };
        let mut client = TcpStream::connect((address, port)).expect("a connection");
        client.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        client.write_all(b"hello").expect("sent");
        client.shutdown(Shutdown::Write).expect("half closed");
        assert_eq!(heard(client).as_deref(), Some(&b"hello"[..]), "{address}");
    }
    // Nobody is there, but it may be tried; the others may not, and the gate is no server.
    for place in ["198.18.1.1:1", "1.2.3.4:7777", "[2001:db8::7]:7777", "127.0.0.1:9"] {
        let client = TcpStream::connect(place).expect("a connection");
        client.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        assert_eq!(heard(client), None, "{place}");
    }
}

fn received(socket: &UnixStream) -> Doors {
    let mut byte = [0; 1];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut with, RecvFlags::CMSG_CLOEXEC).expect("doors");
    let mut handed = with.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(handed) => handed.collect::<Vec<OwnedFd>>(),
        _ => vec![],
    });
    let mut next = || handed.next().expect("a door");
    Doors { streams: vec![next(), next()], names: vec![next()], long_names: vec![next()] }
}
