//! Code inside that wants the gate to fall, to hang, to forget, or to stay.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::Value;

use crate::attacks::{in_the_open, same};
use crate::told;
use crate::world::{NAME, World};

pub const ALL: &[(&str, Check)] = &[
    ("long_refusals_do_not_make_the_gate_look_lost", long),
    ("a_flood_of_names_is_no_flood_of_records", names),
    ("more_connections_than_there_may_be_are_refused_and_the_rest_go_on", crowd),
    ("nothing_is_left_when_belljar_is_killed", left),
];

fn long(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let port = world.http;
    world.desk.policy(&format!(
        "[network]\nallow = [\"127.0.0.1:{port}\"]\n[[rule]]\nwhen = {{ host = \"{NAME}:{port}\", url = \"/echo\" }}\nthen = \
         \"allow\"\nwhy = \"a test\"\n"
    ))?;
    let script = format!(
        r#"
import http.client
c = http.client.HTTPConnection("{NAME}", {port}, timeout=10)
for number in range(100):
    c.request("GET", "/%d/" % number + '"' * 20000)
    assert c.getresponse().read() and True
c.request("GET", "/echo")
print(c.getresponse().status)
"#
    );
    let said = world.run(&["--json"], &["/usr/bin/python3", "-c", &script])?;
    same((said.code, world.arrived()?.len()), (Some(0), 1), &said.out)?;
    let result: Value = told(serde_json::from_str(said.error.trim().lines().last().unwrap_or_default()))?;
    let network = &result["network"];
    same(
        (network["lost"] == Value::Bool(true), network["refused"].as_u64(), network["requests"].as_u64()),
        (false, Some(100), Some(1)),
        network,
    )
}

fn names(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let script = r#"
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect(("9.9.9.9", 53))
for number in range(20000):
    name = b"%d" % number
    s.send(b"\0\1\1\0\0\1\0\0\0\0\0\0" + bytes([len(name)]) + name + b"\4evil\4test\0\0\1\0\1")
    s.recv(512)
print("asked")
"#;
    let said = in_the_open(&world, &[], &["/usr/bin/python3", "-c", script])?;
    same(String::from_utf8_lossy(&said.out).into_owned(), "asked\n".to_owned(), &said.error)?;
    let log = world.desk.expect(&["log", "--json", "--run", "last"], 0, "")?;
    let lines = log.out.iter().filter(|byte| **byte == b'\n').count();
    same(lines < 4300, true, lines)
}

fn crowd(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let script = format!(
        r#"
import socket, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (8000, 8000))
held, refused = [], 0
first = socket.create_connection(("{NAME}", {raw}), 10)
assert first.recv(100)
for number in range(3000):
    s = socket.socket()
    s.setblocking(False)
    try:
        s.connect(("198.18.1.1", {http}))
    except OSError:
        pass
    held.append(s)
first.sendall(b"still here")
print(first.recv(100).decode(), flush=True)
for s in held:
    s.close()
import time, urllib.request
for _ in range(50):
    try:
        print(urllib.request.urlopen("http://{NAME}:{http}/bytes/3", timeout=5).read().decode())
        break
    except OSError:
        time.sleep(0.1)
"#,
        raw = world.raw,
        http = world.http
    );
    let began = Instant::now();
    let said = in_the_open(&world, &["--timeout=60s"], &["/usr/bin/python3", "-c", &script])?;
    same(String::from_utf8_lossy(&said.out).into_owned(), "still here\nxxx\n".to_owned(), &said.error)?;
    same(began.elapsed() < Duration::from_secs(45), true, began.elapsed())
}

fn left(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let free = told(told(std::net::TcpListener::bind("127.0.0.1:0"))?.local_addr())?.port();
    let publish = format!("--publish={free}:8000");
    let script = "import socket, time\ns = socket.create_server(('127.0.0.1', 8000))\nprint('listens', flush=True)\ntime.sleep(600)";
    let files = || -> BTreeSet<String> {
        let all = std::fs::read_dir("/tmp").into_iter().flatten().flatten();
        all.map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.contains("belljar"))
            .collect()
    };
    let before = files();
    let mut command = world.command(&[&publish], &["/usr/bin/python3", "-c", script]);
    let mut child = told(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn())?;
    let mut line = String::new();
    told(BufReader::new(child.stdout.take().ok_or("it has an output")?).read_line(&mut line))?;
    let below = below(child.id() as i32);
    same((line.as_str(), below.len() > 1), ("listens\n", true), &below)?;
    same(std::net::TcpStream::connect(("127.0.0.1", free)).is_ok(), true, "published")?;
    // The outermost that is belljar: what a tool around it would kill.
    told(child.kill())?;
    told(child.wait())?;
    let until = Instant::now() + Duration::from_secs(10);
    let alive = || below.iter().filter(|process| is_alive(**process)).copied().collect::<Vec<i32>>();
    while !alive().is_empty() && Instant::now() < until {
        std::thread::yield_now();
    }
    same(alive(), Vec::new(), "processes")?;
    same(std::net::TcpStream::connect(("127.0.0.1", free)).is_err(), true, "the port is still there")?;
    same(files().difference(&before).count(), 0, files())
}

fn is_alive(process: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

fn below(above: i32) -> Vec<i32> {
    let (mut waiting, mut found) = (vec![above], Vec::new());
    while let Some(process) = waiting.pop() {
        let list = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
        let children: Vec<i32> = list.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        waiting.extend(&children);
        found.extend(children);
    }
    found
}
