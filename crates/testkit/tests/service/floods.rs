//! More than there is room for: connections, bytes that grow, clients that take their time; and guests who look for the way in.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::json;

use crate::client::{self, Address};
use crate::desk::Desk;
use crate::server::{Server, until};
use crate::{holds, told};

pub const ALL: &[(&str, Check)] = &[
    ("ten_thousand_connections_keep_nobody_out", connections),
    ("who_is_being_answered_is_not_sent_away_for_others", answered),
    ("nothing_that_is_sent_is_unpacked", bombs),
    ("a_guest_does_not_reach_the_service_that_runs_it", guests),
    ("an_answer_is_good_for_one_question_and_nobody_can_give_it_twice", replay),
];

const CONNECTIONS: usize = 10_000;

/// As many descriptors as that takes, if this process may have them.
fn raise() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = CONNECTIONS as u64 + 1_000;
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.map(|most| most.max(wanted));
    // Whoever is not root has what it has.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    raised.or_else(|_| setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })).ok();
    getrlimit(Resource::Nofile).current.map_or(CONNECTIONS, |most| usize::try_from(most).unwrap_or(CONNECTIONS))
}

/// In KiB.
fn memory(process: i32) -> Result<u64, String> {
    let status = told(fs::read_to_string(format!("/proc/{process}/status")))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("it has a size")?;
    told(line.trim().trim_end_matches(" kB").trim().parse())
}

fn connections(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let Address::Port(port) = server.address else { return Err("it is on loopback".to_owned()) };
    let most = raise().saturating_sub(500).min(CONNECTIONS);
    let run = json!({"command": ["true"]});
    server.post("/v1/run", &run)?.expect(200)?;
    let before = memory(server.pid())?;
    let mut all: Vec<TcpStream> = Vec::with_capacity(most);
    let (mut during, mut began) = (0, 0);
    while all.len() < most {
        let mut stream = told(TcpStream::connect(("127.0.0.1", port)))?;
        // Some say nothing, some begin and go no further.
        if all.len().is_multiple_of(2)
            && stream.write_all(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").is_ok()
        {
            began += 1;
        }
        all.push(stream);
        if all.len().is_multiple_of(most / 10) {
            server.get("/v1/sandboxes")?.expect(200)?;
            during = during.max(memory(server.pid())?);
        }
    }
    holds(began > most / 4, "it was a flood")?;
    server.post("/v1/run", &run)?.expect(200)?;
    let grown = during.max(memory(server.pid())?).saturating_sub(before);
    // Not for each a buffer: as many as are let in at once.
    holds(grown < 64 << 10, format!("it grew by {grown} KiB"))?;
    let descriptors = told(fs::read_dir(format!("/proc/{}/fd", server.pid())))?.count();
    holds(descriptors < 1_400, format!("it has {descriptors} descriptors"))?;
    // Most were sent away: their end is there to be read.
    let open = all.iter_mut().filter_map(|stream| {
        stream.set_nonblocking(true).ok()?;
        matches!(stream.read(&mut [0; 512]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock).then_some(())
    });
    let open = open.count();
    holds(open <= 1_100, format!("{open} are still connected"))?;
    drop(all);
    until("they are gone", || Ok(told(fs::read_dir(format!("/proc/{}/fd", server.pid())))?.count() < 100))?;
    server.post("/v1/run", &run)?.expect(200).map(drop)
}

fn answered(who: Who) -> Result<(), String> {
    let server = Server::with(Desk::of(who)?, &["--connections", "4"])?;
    let Address::Port(port) = server.address else { return Err("it is on loopback".to_owned()) };
    let mark = crate::server::mark("answered");
    let waits = server.begin_endless(&mark, true)?;
    let crowd: Vec<TcpStream> =
        (0..50).map(|_| told(TcpStream::connect(("127.0.0.1", port)))).collect::<Result<_, _>>()?;
    for _ in 0..20 {
        server.get("/v1/sandboxes")?.expect(200)?;
    }
    holds(!crate::server::processes(&mark).is_empty(), "who listens to a stream is answered as long as that goes on")?;
    drop((waits, crowd));
    until("it has ended", || Ok(crate::server::processes(&mark).is_empty()))
}

fn bombs(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let bearer = format!("Bearer {}", server.token);
    let before = memory(server.pid())?;
    // 64 MiB of zeros, by the host's own gzip.
    let packed = std::process::Command::new("sh").args(["-c", "head -c 67108864 /dev/zero | gzip -9"]).output();
    let packed = told(packed)?.stdout;
    holds(packed.len() < 100 << 10, "it is small")?;
    let made = server.post("/v1/sandboxes", &json!({"open": false}))?.expect(201)?.json()?;
    let file = format!("/v1/sandboxes/{}/files?path=a", made["id"].as_str().unwrap_or_default());
    for (method, path, kind) in [
        ("POST", "/v1/run", "application/json"),
        ("PUT", &file, "application/octet-stream"),
        ("POST", "/mcp", "application/json"),
    ] {
        for encoding in ["gzip", "deflate", "br", "zstd", "identity, gzip", "x-unknown"] {
            let headers = [("Authorization", bearer.as_str()), ("Content-Type", kind), ("Content-Encoding", encoding)];
            let answer =
                client::receive(client::send(&server.address, method, path, &headers, &packed)?)?.expect(415)?;
            holds(answer.json()?["type"] == "urn:belljar:problem:media-type", answer.text())?;
        }
    }
    let grown = memory(server.pid())?.saturating_sub(before);
    holds(grown < 16 << 10, format!("it grew by {grown} KiB"))?;
    // The control: as it is, a body is read.
    let headers =
        [("Authorization", bearer.as_str()), ("Content-Type", "application/json"), ("Content-Encoding", "identity")];
    let body = br#"{"command": ["true"]}"#;
    client::receive(client::send(&server.address, "POST", "/v1/run", &headers, body)?)?.expect(200).map(drop)
}

/// Says which of these places somebody answers at.
const LOOKS: &str = "\
import socket, sys
for place in sys.argv[1:]:
    try:
        if place.startswith('/'):
            door = socket.socket(socket.AF_UNIX)
            address = place
        else:
            host, port = place.rsplit(':', 1)
            door = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)
            address = (host, int(port))
        door.settimeout(5)
        door.connect(address)
        door.sendall(b'GET /v1/health HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')
        if b'\"status\":\"ok\"' in door.recv(4096):
            print('reached', place)
    except OSError as error:
        print('not', place, error)
";

fn guests(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let Address::Port(port) = server.address else { return Err("it is on loopback".to_owned()) };
    let desk = Desk::of(who)?;
    let path = desk.home.join("api").display().to_string();
    let on_a_socket = Server::with(desk, &["--listen", &format!("unix:{path}")])?;
    let mut places = vec![format!("127.0.0.1:{port}"), format!("127.0.0.2:{port}"), format!("0.0.0.0:{port}"), path];
    // What this machine is called by others, if it is.
    let own = told(std::process::Command::new("hostname").arg("-I").output())?;
    places.extend(String::from_utf8_lossy(&own.stdout).split_whitespace().map(|address| format!("{address}:{port}")));
    let words: Vec<&str> =
        ["/usr/bin/python3", "-c", LOOKS].into_iter().chain(places.iter().map(String::as_str)).collect();
    // The control: from here it is there.
    let here = told(std::process::Command::new(words[0]).args(&words[1..]).output())?;
    let here = String::from_utf8_lossy(&here.stdout).into_owned();
    for place in [&places[0], &places[3]] {
        holds(here.contains(&format!("reached {place}")), &here)?;
    }
    let tenant = server.make_token(&["--tenant", "other"])?;
    let named = json!({"network": {"allow": ["example.org"]}});
    for (server, token, options) in [
        (&server, &server.token, json!({})),
        (&on_a_socket, &on_a_socket.token, json!({})),
        (&server, &tenant, json!({})),
        (&server, &tenant, named),
    ] {
        let body = json!({"command": words, "options": options});
        let said = server.as_(token, "POST", "/v1/run", Some(&body), &[])?.expect(200)?.text();
        holds(!said.contains("reached") && said.contains("not 127.0.0.1"), said)?;
    }
    // A tenant has no host whose own network it could ask for, however it is written.
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "127.1", "[::1]", "127.0.0.0/8", "2130706433"] {
        let options = json!({"network": {"allow": [format!("{host}:{port}")]}});
        let body = json!({"command": words, "options": options});
        let refused = server.as_(&tenant, "POST", "/v1/run", Some(&body), &[])?.expect(422)?.text();
        holds(refused.contains("only the tenant `local`"), refused)?;
    }
    Ok(())
}

fn replay(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[[rule]]\nwhen = { program = \"id\" }\nthen = \"ask\"\nwhy = \"a person looks\"\n")?;
    let server = Server::with(desk, &[])?;
    let agent = server.make_token(&["--agent", "coder", "--scopes", "run,read"])?;
    let other = server.make_token(&["--tenant", "other", "--scopes", "run,read,approve"])?;
    let asks = || server.send(&agent, "POST", "/v1/run", Some(&json!({"command": ["id"]})), &[]);
    let question = |known: &str| -> Result<serde_json::Value, String> {
        let mut found = json!(null);
        until("there is a new question", || {
            let all = server.get("/v1/approvals")?.expect(200)?.json()?;
            let new = all["items"].as_array().into_iter().flatten().find(|one| one["id"] != known);
            found = new.cloned().unwrap_or_default();
            Ok(found.is_object())
        })?;
        Ok(found)
    };
    let waits = asks()?;
    let first = question("")?;
    let place = |question: &serde_json::Value| format!("/v1/approvals/{}", question["id"].as_str().unwrap_or_default());
    let yes = json!({"decision": "once", "digest": first["digest"]});
    server.as_(&other, "POST", &place(&first), Some(&yes), &[])?.expect(404)?;
    server.post(&place(&first), &yes)?.expect(200)?;
    client::receive(waits)?.expect(200)?;
    // The same answer again, for the same words asked again: nobody has answered those.
    server.post(&place(&first), &yes)?.expect(404)?;
    let waits = asks()?;
    let second = question(first["id"].as_str().unwrap_or_default())?;
    holds(second["id"] != first["id"], "it is a new question")?;
    server.post(&place(&first), &yes)?.expect(404)?;
    for token in [&agent, &other] {
        let refused = server.as_(token, "POST", &place(&second), Some(&yes), &[])?;
        holds(matches!(refused.status, 403 | 404), refused.text())?;
    }
    let no = json!({"decision": "deny", "digest": second["digest"], "reason": "not again"});
    server.post(&place(&second), &no)?.expect(200)?;
    client::receive(waits)?.expect(403)?;
    let answered = server.entries("approval.answered")?;
    let yes: Vec<bool> = answered.iter().map(|entry| entry["data"]["yes"] == true).collect();
    holds(yes == [true, false], format!("{answered:?}"))
}
