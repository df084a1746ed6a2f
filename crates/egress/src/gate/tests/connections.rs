//! Connections: what is granted arrives, all else is reset and written down, and nothing is dialled that is not.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use hickory_proto::rr::RecordType;
use model::{Gated, HostName, NetworkDeed, Published};

use super::stage::{CALM, PUBLIC, Rules, Setup, Stage, at, denied, echo, heard, only, server};
use crate::gate::GateLimits;
use crate::gate::hello::tests::{HIDING, said_to, with_extensions};

/// A door to the first name that is asked for, `a.example`, on that port; the server is where it leads.
fn to_a_name(port: u16, rules: Rules, server: SocketAddr) -> Stage {
    let rules = Rules { knows: vec!["a.example"], ..rules };
    let stage = Setup {
        rules,
        destinations: vec![SocketAddr::from(([198, 18, 1, 1], port))],
        lands: Some(server),
        resolves: vec![PUBLIC],
        ..Setup::default()
    }
    .opened();
    stage.asks("a.example.", RecordType::A);
    stage
}

fn opening(list: &[&'static str]) -> Rules {
    Rules { opens: list.to_vec(), ..Rules::default() }
}

/// A server that must not be reached.
fn forbidden() -> (SocketAddr, Arc<AtomicUsize>) {
    let reached = Arc::new(AtomicUsize::new(0));
    let count = reached.clone();
    let at = server(move |mut stream| {
        // What matters is whether anything of the client's arrives.
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok();
        count.fetch_add(bytes.len() + 1, Ordering::SeqCst);
    });
    (at, reached)
}

fn why_not(stage: Stage) -> String {
    let (events, traffic) = stage.ends();
    let denied = denied(&events);
    assert_eq!(denied.len(), 1, "{events:#?}");
    assert_eq!(traffic.refused, 1);
    assert_eq!(traffic.denied.len(), 1);
    denied[0].why.clone()
}

#[test]
fn what_is_granted_arrives_and_is_written_down_before_and_after() {
    let _calm = CALM.read();
    let stage = to_a_name(5432, opening(&["a.example:5432"]), echo());
    let mut client = stage.connect(0);
    client.write_all(b"\0\0\0\x08hello").expect("sent");
    client.shutdown(Shutdown::Write).expect("half closed");
    assert_eq!(heard(client).as_deref(), Some(&b"\0\0\0\x08hello"[..]));
    let (events, traffic) = stage.ends();
    let deeds: Vec<NetworkDeed> = events.iter().map(|event| event.what).collect();
    assert_eq!(deeds, [NetworkDeed::Name, NetworkDeed::Connect, NetworkDeed::Close]);
    let (connect, close) = (&events[1], &events[2]);
    assert_eq!((connect.host.as_str(), connect.port, connect.address), ("a.example", Some(5432), Some(PUBLIC)));
    assert_eq!(connect.rule, "test.rule (policy.toml:7)");
    assert_eq!(connect.caller.as_ref().map(|caller| caller.process), i32::try_from(std::process::id()).ok());
    assert_eq!((close.connection, close.bytes), (connect.connection, Some((9, 9))));
    assert_eq!((traffic.connections, traffic.sent, traffic.received), (1, 9, 9));
    assert_eq!(traffic.hosts, ["a.example:5432"]);
}

#[test]
fn what_is_not_granted_is_reset_and_not_dialled() {
    let (server, reached) = forbidden();
    let stage = to_a_name(22, opening(&["a.example:23"]), server);
    let mut client = stage.connect(0);
    // That it was refused is felt by whichever comes first.
    client.write_all(b"hello").ok();
    assert_eq!(heard(client).unwrap_or_default(), b"");
    assert_eq!(why_not(stage), "the test says so");
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

#[test]
fn an_address_is_judged_as_an_address() {
    let destinations = vec![at("9.9.9.9:7777"), at("[::ffff:9.9.9.9]:7777"), at("9.9.9.8:7777"), at("9.9.9.9:0")];
    let rules = opening(&["9.9.9.9:7777", "9.9.9.9:0"]);
    let stage = Setup { rules, destinations, lands: Some(echo()), ..Setup::default() }.opened();
    for (door, expected) in [(0, &b"x"[..]), (1, b"x"), (2, b""), (3, b"")] {
        let mut client = stage.connect(door);
        client.write_all(b"x").ok();
        client.shutdown(Shutdown::Write).ok();
        assert_eq!(heard(client).unwrap_or_default(), expected, "{door}");
    }
    let (events, _) = stage.ends();
    assert_eq!(denied(&events).len(), 2);
}

#[test]
fn an_address_that_stands_for_nobody_leads_nowhere() {
    let destinations =
        vec![at("198.18.200.200:443"), at("[fd62:656c:6c6a::1:0:9]:443"), at("[fd62:656c:6c6a:5::1]:443")];
    let rules = opening(&["198.18.200.200:443", "fd62:656c:6c6a::1:0:9:443"]);
    let stage = Setup { rules, destinations, lands: Some(echo()), ..Setup::default() }.opened();
    for door in 0..3 {
        assert_eq!(stage.heard(door), None);
    }
    let (events, _) = stage.ends();
    assert!(denied(&events).iter().all(|event| event.rule == "gate.stand-in"));
    assert_eq!(events.len(), 3);
}

#[test]
fn the_gate_itself_is_no_server() {
    // Without being turned to us there is no destination at all, or it is our own.
    let door = TcpListener::bind("127.0.0.1:0").expect("a door");
    let own = door.local_addr().expect("an address");
    drop(door);
    for destinations in [vec![own], vec![at("0.0.0.0:0")]] {
        let stage = Setup { destinations, ..Setup::default() }.opened();
        assert_eq!(stage.heard(0), None);
        let (events, _) = stage.ends();
        assert_eq!(denied(&events).len(), 1, "{events:#?}");
    }
}

#[test]
fn names_that_lead_to_this_machine_or_a_private_network_are_refused() {
    for text in
        ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00:ec2::254", "::ffff:192.168.0.1", "64:ff9b::a00:1"]
    {
        let address = text.parse().expect("an address");
        let (server, reached) = forbidden();
        let stage = Setup {
            rules: Rules { knows: vec!["a.example"], opens: vec!["a.example:*"], ..Rules::default() },
            destinations: vec![at("198.18.1.1:7777")],
            lands: Some(server),
            resolves: vec![address],
            ..Setup::default()
        }
        .opened();
        stage.asks("a.example.", RecordType::A);
        assert_eq!(stage.heard(0), None, "{text}");
        let why = why_not(stage);
        assert!(why.starts_with("it leads to "), "{why}");
        assert_eq!(reached.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn an_address_that_is_denied_is_denied_by_every_name() {
    for denied in [true, false] {
        let stage = Setup {
            rules: Rules {
                knows: vec!["a.example"],
                opens: vec!["a.example:*"],
                denies: if denied { vec![PUBLIC] } else { vec![] },
                ..Rules::default()
            },
            destinations: vec![at("198.18.1.1:7777")],
            lands: Some(echo()),
            resolves: vec![PUBLIC],
            ..Setup::default()
        }
        .opened();
        stage.asks("a.example.", RecordType::A);
        let client = stage.connect(0);
        client.shutdown(Shutdown::Write).ok();
        heard(client);
        let (events, _) = stage.ends();
        let connects = only(&events, NetworkDeed::Connect);
        assert_eq!((connects[0].denied, connects[0].address), (denied, Some(PUBLIC)));
    }
}

#[test]
fn of_several_addresses_only_those_that_may_be_are_tried() {
    let private = "10.0.0.5".parse().expect("an address");
    let granted = "10.0.0.6".parse().expect("an address");
    let stage = Setup {
        rules: Rules {
            knows: vec!["a.example"],
            opens: vec!["a.example:*"],
            leads_to: vec![granted],
            ..Rules::default()
        },
        destinations: vec![at("198.18.1.1:7777")],
        lands: Some(echo()),
        resolves: vec![private, granted, PUBLIC],
        ..Setup::default()
    }
    .opened();
    stage.asks("a.example.", RecordType::A);
    let client = stage.connect(0);
    client.shutdown(Shutdown::Write).expect("half closed");
    assert_eq!(heard(client), Some(vec![]));
    let (events, _) = stage.ends();
    let connects = only(&events, NetworkDeed::Connect);
    assert_eq!(
        connects.iter().map(|event| (event.denied, event.address)).collect::<Vec<_>>(),
        [(true, Some(private)), (false, Some(granted))]
    );
}

#[test]
fn a_pinned_name_is_not_looked_up_and_its_address_must_be_granted() {
    let here = Ipv4Addr::LOCALHOST.into();
    for allowed in [true, false] {
        let server = echo();
        let stage = Setup {
            rules: Rules {
                knows: vec!["a.example"],
                opens: vec!["a.example:*"],
                leads_to: if allowed { vec![here] } else { vec![] },
                ..Rules::default()
            },
            destinations: vec![SocketAddr::from(([198, 18, 1, 1], server.port()))],
            gated: Gated { pinned: vec![(HostName::read("a.example").expect("a name"), here)], ..Gated::default() },
            resolves: vec![PUBLIC],
            ..Setup::default()
        }
        .opened();
        stage.asks("a.example.", RecordType::A);
        let client = stage.connect(0);
        client.shutdown(Shutdown::Write).ok();
        heard(client);
        let (events, _) = stage.ends();
        assert_eq!(only(&events, NetworkDeed::Connect)[0].denied, !allowed);
    }
}

#[test]
fn tls_must_be_for_the_name_that_was_granted() {
    let good = said_to("a.example", &[b"h2"]);
    let hidden = with_extensions(&good, &[(0xfe0d, HIDING.to_vec())]);
    let shouted = said_to("A.Example", &[]);
    for port in [443, 8443] {
        for (hello, expected) in [
            (good.clone(), None),
            (shouted.clone(), None),
            (said_to("evil.example", &[]), Some("its TLS is for `evil.example`")),
            (said_to("x.a.example", &[]), Some("its TLS is for `x.a.example`")),
            (said_to("192.0.2.1", &[]), Some("its TLS does not say whom it is for")),
            (hidden.clone(), Some("encrypted client hello hides the name")),
            (vec![22, 3, 1, 0, 5, 2, 0, 0, 1, 0], Some("its TLS can't be understood: it begins with something else")),
        ] {
            let (heard_of, hears) = mpsc::channel();
            let server = server(move |mut stream| {
                let mut bytes = Vec::new();
                stream.read_to_end(&mut bytes).ok();
                heard_of.send(bytes.clone()).ok();
                stream.write_all(&bytes).ok();
            });
            let stage = to_a_name(port, opening(&["a.example:*"]), server);
            let mut client = stage.connect(0);
            // Byte by byte: it must not matter.
            for byte in &hello {
                if client.write_all(&[*byte]).is_err() {
                    break;
                }
            }
            client.shutdown(Shutdown::Write).ok();
            match expected {
                None => {
                    assert_eq!(heard(client), Some(hello));
                    stage.ends();
                }
                Some(expected) => {
                    // That it was refused is felt by whichever comes first.
                    assert_eq!(heard(client).unwrap_or_default(), b"", "{expected}");
                    assert_eq!(why_not(stage), expected);
                    // On other ports it was dialled, since the server could have been the first to speak.
                    let arrived = hears.recv_timeout(Duration::from_millis(if port == 443 { 20 } else { 5000 }));
                    assert_eq!(arrived.unwrap_or_default(), b"", "{expected}");
                }
            }
        }
    }
}

#[test]
fn an_address_has_no_name_in_tls_but_those_that_were_written_for_it() {
    let pinned = HostName::read("pinned.example").expect("a name");
    for (name, passes) in [("9.9.9.9", true), ("pinned.example", true), ("other.example", false), ("localhost", false)]
    {
        let stage = Setup {
            rules: opening(&["9.9.9.9:443"]),
            destinations: vec![at("9.9.9.9:443")],
            gated: Gated { pinned: vec![(pinned.clone(), PUBLIC)], ..Gated::default() },
            lands: Some(echo()),
            ..Setup::default()
        }
        .opened();
        let hello = said_to(name, &[]);
        let mut client = stage.connect(0);
        client.write_all(&hello).expect("sent");
        client.shutdown(Shutdown::Write).ok();
        assert_eq!(heard(client).unwrap_or_default(), if passes { hello } else { vec![] }, "{name}");
        stage.ends();
    }
}

#[test]
fn ports_of_the_web_carry_nothing_else() {
    for (port, says, why) in [
        (443, &b"GET / HTTP/1.1\r\n\r\n"[..], "what goes to port 443 must be TLS"),
        (443, b"SSH-2.0-x\r\n", "what goes to port 443 must be TLS"),
        (80, b"SSH-2.0-x\r\n", "what goes to port 80 must be HTTP"),
        (80, b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", "its TLS can't be understood: it begins with something else"),
        (80, b"GET / HTTP/1.1\r\n\r\n", "its requests can't be read here"),
    ] {
        let (server, reached) = forbidden();
        let stage = to_a_name(port, opening(&["a.example:*"]), server);
        let mut client = stage.connect(0);
        client.write_all(says).expect("sent");
        assert_eq!(heard(client), None);
        assert_eq!(why_not(stage), why);
        assert_eq!(reached.load(Ordering::SeqCst), 0);
    }
    let (server, _) = forbidden();
    let stage = to_a_name(80, opening(&["a.example:*"]), server);
    let mut client = stage.connect(0);
    client.write_all(&said_to("a.example", &[])).expect("sent");
    assert_eq!(heard(client), None);
    assert_eq!(why_not(stage), "what goes to port 80 must be HTTP");
}

#[test]
fn requests_are_known_on_any_port_and_nothing_of_them_arrives_unread() {
    let (heard_of, hears) = mpsc::channel();
    let server = server(move |mut stream| {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok();
        heard_of.send(bytes).ok();
    });
    let stage = to_a_name(8080, opening(&["a.example:*"]), server);
    let mut client = stage.connect(0);
    for part in [&b"G"[..], b"ET", b" ", b"/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"] {
        client.write_all(part).expect("sent");
    }
    assert_eq!(heard(client), None);
    assert_eq!(hears.recv().expect("a connection"), b"");
    assert_eq!(why_not(stage), "its requests can't be read here");
}

#[test]
fn where_requests_are_judged_nothing_else_passes() {
    for says in [&b"SSH-2.0-x\r\n"[..], b"\0\0\0\x08", b"EHLO x\r\n"] {
        let (server, reached) = forbidden();
        let rules = Rules { reads: vec!["a.example:9000"], ..Rules::default() };
        let stage = to_a_name(9000, rules, server);
        let mut client = stage.connect(0);
        client.write_all(says).expect("sent");
        assert_eq!(heard(client), None);
        assert!(why_not(stage).contains("neither HTTP nor TLS"));
        assert_eq!(reached.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_server_may_speak_first_and_a_client_may_stay_silent() {
    let server = server(|mut stream| {
        stream.write_all(b"220 welcome\r\n").ok();
        let mut line = [0; 9];
        stream.read_exact(&mut line).ok();
        stream.write_all(&line).ok();
    });
    let mut rules = opening(&["a.example:25"]);
    rules.knows = vec!["a.example"];
    let stage = Setup {
        rules,
        destinations: vec![at("198.18.1.1:25")],
        lands: Some(server),
        resolves: vec![PUBLIC],
        // Patience is for those who have begun.
        limits: GateLimits { hello: Duration::from_millis(300), ..GateLimits::default() },
        ..Setup::default()
    }
    .opened();
    stage.asks("a.example.", RecordType::A);
    let mut client = stage.connect(0);
    let mut welcome = [0; 13];
    client.read_exact(&mut welcome).expect("a welcome");
    assert_eq!(&welcome, b"220 welcome\r\n");
    // Longer than a client has that has begun.
    client.set_read_timeout(Some(Duration::from_millis(600))).expect("a time-out");
    assert!(client.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
    client.write_all(b"EHLO me\r\n").expect("sent");
    assert_eq!(heard(client).as_deref(), Some(&b"EHLO me\r\n"[..]));
    let (events, _) = stage.ends();
    assert_eq!(only(&events, NetworkDeed::Close)[0].bytes, Some((9, 22)));
}

#[test]
fn both_sides_can_end_their_half_and_go_on_listening() {
    // The server ends first and hears the rest.
    let (heard_of, hears) = mpsc::channel();
    let server = server(move |mut stream| {
        stream.write_all(b"all I say").ok();
        stream.shutdown(Shutdown::Write).ok();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok();
        heard_of.send(bytes).ok();
    });
    let stage = to_a_name(7777, opening(&["a.example:*"]), server);
    let mut client = stage.connect(0);
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).expect("all");
    assert_eq!(bytes, b"all I say");
    let large: Vec<u8> = (0..3_000_000u32).map(|number| (number % 251) as u8).collect();
    client.write_all(&large).expect("sent");
    client.shutdown(Shutdown::Write).expect("half closed");
    assert!(hears.recv_timeout(super::stage::PATIENCE).expect("heard") == large);
    stage.ends();
}

#[test]
fn a_slow_reader_gets_everything_and_is_waited_for() {
    let large: Vec<u8> = (0..20_000_000u32).map(|number| (number % 253) as u8).collect();
    let copy = large.clone();
    let server = server(move |mut stream| {
        stream.write_all(&copy).ok();
    });
    let stage = to_a_name(7777, opening(&["a.example:*"]), server);
    let mut client = stage.connect(0);
    let mut got = Vec::new();
    let mut room = [0; 1000];
    for _ in 0..100 {
        let length = client.read(&mut room).expect("some");
        got.extend(&room[..length]);
    }
    client.read_to_end(&mut got).expect("the rest");
    assert!(got == large);
    let (events, traffic) = stage.ends();
    assert_eq!(only(&events, NetworkDeed::Close)[0].bytes, Some((0, large.len() as u64)));
    assert_eq!(traffic.received, large.len() as u64);
}

#[test]
fn who_says_nothing_or_too_little_is_not_waited_for() {
    for (says, port) in [(&b""[..], 443), (&[22, 3, 1][..], 443), (b"GE", 8080), (b"", 80)] {
        let mut rules = opening(&["a.example:*"]);
        rules.knows = vec!["a.example"];
        let stage = Setup {
            rules,
            destinations: vec![SocketAddr::from(([198, 18, 1, 1], port))],
            lands: Some(echo()),
            resolves: vec![PUBLIC],
            limits: GateLimits { hello: Duration::from_millis(100), ..GateLimits::default() },
            ..Setup::default()
        }
        .opened();
        stage.asks("a.example.", RecordType::A);
        let mut client = stage.connect(0);
        client.write_all(says).expect("sent");
        assert_eq!(heard(client), None);
        assert!(why_not(stage).starts_with("it did not say"));
    }
}

#[test]
fn what_can_not_be_written_down_is_not_dialled_and_ends_what_is_open() {
    let (server, reached) = forbidden();
    let mut rules = opening(&["a.example:*"]);
    // The name, and the first connection.
    rules.room = Some(2);
    let stage = to_a_name(7777, rules, server);
    let mut first = stage.connect(0);
    first.write_all(b"hello").expect("sent");
    let count = || only(&stage.events(), NetworkDeed::Connect).len();
    let began = std::time::Instant::now();
    while count() == 0 {
        assert!(began.elapsed() < super::stage::PATIENCE);
        std::thread::yield_now();
    }
    assert_eq!(stage.heard(0), None);
    // The first one is ended by it.
    assert_eq!(heard(first).unwrap_or_default(), b"");
    assert_eq!(stage.heard(0), None);
    let (events, traffic) = stage.ends();
    assert_eq!(events.len(), 2);
    assert!(traffic.lost);
    // At most the first: its five bytes, and that it came.
    assert!(reached.load(Ordering::SeqCst) <= 6);
}

#[test]
fn a_person_decides_while_the_client_waits() {
    for approves in [true, false] {
        let rules = Rules { asks: vec!["a.example:7777"], approves: Some(approves), ..Rules::default() };
        let stage = to_a_name(7777, rules, echo());
        let mut client = stage.connect(0);
        client.write_all(b"x").ok();
        client.shutdown(Shutdown::Write).ok();
        assert_eq!(heard(client).unwrap_or_default(), if approves { &b"x"[..] } else { b"" });
        let (events, _) = stage.ends();
        let connect = &only(&events, NetworkDeed::Connect)[0];
        assert_eq!(connect.denied, !approves);
        assert_eq!(connect.why, if approves { "approved by somebody" } else { "a.example:7777: they said no" });
    }
}

#[test]
fn a_person_decides_on_a_host_whose_requests_are_read_as_well() {
    let rules = Rules {
        reads: vec!["a.example:7777"],
        asks: vec!["a.example:7777"],
        approves: Some(false),
        ..Rules::default()
    };
    let stage = to_a_name(7777, rules, echo());
    let mut client = stage.connect(0);
    client.write_all(b"GET / HTTP/1.1\r\nhost: a.example:7777\r\n\r\n").ok();
    assert_eq!(heard(client).unwrap_or_default(), b"");
    let (events, _) = stage.ends();
    let connects = only(&events, NetworkDeed::Connect);
    assert_eq!(connects.len(), 1);
    assert!(connects[0].denied && connects[0].why.contains("they said no"), "{connects:?}");
}

#[test]
fn who_leaves_is_no_longer_asked_for() {
    let _calm = CALM.read();
    let rules = Rules { asks: vec!["a.example:7777"], approves: None, ..Rules::default() };
    let mut setup = Setup {
        rules: Rules { knows: vec!["a.example"], ..rules },
        destinations: vec![at("198.18.1.1:7777")],
        ..Setup::default()
    };
    // While the first is there, nobody else has a place.
    setup.limits.connections = 1;
    let stage = setup.opened();
    stage.asks("a.example.", RecordType::A);
    let mut client = stage.connect(0);
    client.write_all(b"already said").expect("sent");
    assert_eq!(stage.heard(0), None);
    drop(client);
    let began = std::time::Instant::now();
    loop {
        // Refused at once while the place is taken, perhaps before the connection is known here; kept waiting when it is free.
        let waits = stage.tries(0).and_then(|mut next| {
            next.set_read_timeout(Some(Duration::from_millis(100)))?;
            next.read(&mut [0])
        });
        match waits {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            _ => assert!(began.elapsed() < super::stage::PATIENCE, "the place is still taken"),
        }
    }
    stage.ends();
}

#[test]
fn only_so_many_are_open_at_once_and_a_flood_is_no_flood_of_entries() {
    let mut rules = opening(&["a.example:*"]);
    rules.knows = vec!["a.example"];
    let stage = Setup {
        rules,
        destinations: vec![at("198.18.1.1:7777")],
        lands: Some(echo()),
        resolves: vec![PUBLIC],
        limits: GateLimits { connections: 5, ..GateLimits::default() },
        ..Setup::default()
    }
    .opened();
    stage.asks("a.example.", RecordType::A);
    let held: Vec<TcpStream> = (0..5).map(|_| stage.connect(0)).collect();
    for _ in 0..300 {
        assert_eq!(stage.heard(0), None);
    }
    for mut client in held {
        client.write_all(b"x").expect("sent");
        client.shutdown(Shutdown::Write).expect("half closed");
        assert_eq!(heard(client), Some(b"x".to_vec()));
    }
    let (events, traffic) = stage.ends();
    assert_eq!(denied(&events).len(), 101);
    assert_eq!(traffic.refused, 300);
}

#[test]
fn five_hundred_at_once_are_served() {
    let _calm = CALM.write();
    let mut rules = opening(&["a.example:*"]);
    rules.knows = vec!["a.example"];
    let stage = to_a_name(7777, rules, echo());
    let mut clients: Vec<TcpStream> = (0..500).map(|_| stage.connect(0)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.write_all(&(number as u32).to_be_bytes()).expect("sent");
    }
    for (number, client) in clients.into_iter().enumerate() {
        client.shutdown(Shutdown::Write).expect("half closed");
        assert_eq!(heard(client), Some((number as u32).to_be_bytes().to_vec()));
    }
    let (events, traffic) = stage.ends();
    assert_eq!((traffic.connections, only(&events, NetworkDeed::Close).len()), (500, 500));
}

#[test]
fn nobody_there_is_a_reset_and_is_written_down() {
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let stage = to_a_name(7777, opening(&["a.example:*"]), gone);
    assert_eq!(stage.heard(0), None);
    let (events, _) = stage.ends();
    let close = &only(&events, NetworkDeed::Close)[0];
    assert!(close.why.starts_with("cannot connect: "), "{}", close.why);
}

#[test]
fn what_is_open_at_the_end_is_written_down_as_ended() {
    let stage = to_a_name(
        7777,
        opening(&["a.example:*"]),
        server(|mut stream| {
            stream.write_all(b"hello").ok();
            stream.read_to_end(&mut Vec::new()).ok();
        }),
    );
    let mut client = stage.connect(0);
    client.read_exact(&mut [0; 5]).expect("hello");
    let (events, _) = stage.ends();
    assert_eq!(only(&events, NetworkDeed::Close)[0].bytes, Some((0, 5)));
    assert_ne!(heard(client), Some(b"more".to_vec()));
}

#[test]
fn visitors_reach_a_server_inside_through_somebody_inside() {
    let server = server(|mut stream| {
        let mut bytes = [0; 3];
        stream.read_exact(&mut bytes).ok();
        stream.write_all(b"inside").ok();
    });
    let (ours, theirs) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .expect("two sockets");
    std::thread::spawn(move || dials(&theirs, server));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let published = listener.local_addr().expect("an address");
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = closed.local_addr().expect("an address");
    let visits = vec![
        (Published { host: published.port(), guest: 8000 }, listener),
        (Published { host: nobody.port(), guest: 8001 }, closed),
    ];
    let stage = Setup { visits, dialer: Some(ours), ..Setup::default() }.opened();
    for _ in 0..3 {
        let mut visitor = TcpStream::connect(published).expect("a visit");
        visitor.write_all(b"GET").expect("sent");
        assert_eq!(heard(visitor), Some(b"inside".to_vec()));
        assert_eq!(heard(TcpStream::connect(nobody).expect("a visit")), None);
    }
    let (events, _) = stage.ends();
    assert_eq!(only(&events, NetworkDeed::Visit).len(), 6);
    let bytes: Vec<_> = only(&events, NetworkDeed::Close).iter().filter_map(|event| event.bytes).collect();
    assert_eq!(bytes.iter().filter(|bytes| **bytes == (6, 3)).count(), 3);
}

/// Somebody inside: port 8000 is that server, all others are closed.
fn dials(socket: &OwnedFd, server: SocketAddr) {
    use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    use std::os::fd::AsFd;
    let mut asked = [0; 2];
    while rustix::net::recv(socket, &mut asked[..], RecvFlags::empty()).is_ok_and(|(length, _)| length == 2) {
        if asked != 8000u16.to_be_bytes() {
            rustix::net::send(socket, &[1], SendFlags::empty()).expect("sent");
            continue;
        }
        let stream = TcpStream::connect(server).expect("a connection");
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        let handed = [stream.as_fd()];
        assert!(with.push(SendAncillaryMessage::ScmRights(&handed)));
        let bytes = [std::io::IoSlice::new(&[0])];
        rustix::net::sendmsg(socket, &bytes, &mut with, SendFlags::empty()).expect("sent");
    }
}
