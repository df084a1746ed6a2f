//! What people outside see and do: `belljar net`, servers inside that are published, secrets in a query and as a password.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::served::free_port;
use crate::told;
use crate::world::{NAME, OTHER, World};

pub const ALL: &[(&str, Check)] = &[
    ("what_went_out_can_be_read_by_a_person", read_by_people),
    ("a_published_server_is_reached_from_the_host_and_from_no_other_sandbox", published),
    ("a_secret_goes_into_a_query_and_a_password", in_query_and_password),
    ("what_stands_for_a_secret_is_refused_elsewhere", elsewhere),
];

fn read_by_people(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "1ms")?;
    let nobody = free_port()?;
    let script = format!(
        "curl -sS -m 10 {0}; echo; curl -s -m 10 http://localhost:{nobody}/; curl -sS -m 10 -d x {1}; curl -s -m 10 https://evil.test/; \
         curl -s -m 10 https://198.51.100.7/; true",
        world.url("/bytes/3000?a=b"),
        world.url("/echo")
    );
    let local = format!("--allow-net=localhost:{nobody}");
    world.expect(&[&local], &["sh", "-c", &script], 0, "refused by belljar")?;
    let said = world.desk.expect(&["net"], 0, "")?;
    let text = String::from_utf8_lossy(&said.out).into_owned();
    let line = |parts: &[&str]| text.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    let at = format!("{NAME}:{}", world.https);
    let wanted: &[&[&str]] = &[
        &[&format!("GET {at}/bytes/3000"), "by curl (", "200", "2.9 KiB in"],
        &["✗", &format!("POST {at}/echo"), "by curl (", "what would allow it"],
        &[&format!("connect {at}"), "at 127.0.0.1"],
        // Which of the two loopbacks comes first is the resolver's choice.
        &["connect ", &format!(":{nobody}  by curl"), "cannot connect: Connection refused"],
        &["✗", "name evil.test", "is not a granted host", "what would allow it"],
        &["✗", "connect 198.51.100.7:443", "is not a granted host", "what would allow it"],
    ];
    for parts in wanted {
        if !line(parts) {
            return Err(format!("no line with {parts:?} in\n{text}"));
        }
    }
    if text.contains("a=b") {
        return Err(format!("a query is shown:\n{text}"));
    }
    let denied = world.desk.say(&["net", "--denied"])?;
    let denied = String::from_utf8_lossy(&denied.out).into_owned();
    match denied.lines().all(|line| line.contains('✗')) && denied.lines().count() >= 3 {
        true => Ok(()),
        false => Err(denied),
    }
}

fn published(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let port = free_port()?;
    let flag = format!("--publish={port}:8000");
    let script = "import http.server, sys\n\
        class Page(http.server.BaseHTTPRequestHandler):\n\
        \x20   def do_GET(self):\n\
        \x20       self.send_response(200); self.send_header('content-length', '6'); self.end_headers(); self.wfile.write(b'inside')\n\
        \x20   def log_message(self, *_): pass\n\
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 8000), Page)\n\
        import threading; threading.Thread(target=server.serve_forever, daemon=True).start()\n\
        print('ready', flush=True); sys.stdin.read()\n";
    let mut command = world.command(&[&flag], &["/usr/bin/python3", "-c", script]);
    let mut child = told(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())?;
    let mut line = String::new();
    told(BufReader::new(child.stdout.take().ok_or("it has an output")?).read_line(&mut line))?;
    let checked = (line.trim() == "ready").then_some(()).ok_or("it is not ready".to_owned()).and_then(|()| {
        for _ in 0..3 {
            let page = fetched(port)?;
            if !page.ends_with("inside") {
                return Err(format!("from the host: {page}"));
            }
        }
        // Another sandbox has a loopback of its own, and does not get there over the network either.
        for address in ["127.0.0.1", "10.0.2.2", "localhost"] {
            let said = world.run(&[], &["curl", "-sS", "-m", "5", &format!("http://{address}:{port}/")])?;
            if said.code == Some(0) || String::from_utf8_lossy(&said.out).contains("inside") {
                return Err(format!("from another sandbox, at {address}: {said:?}"));
            }
        }
        Ok(())
    });
    drop(child.stdin.take());
    let done = told(child.wait_with_output())?;
    checked.map_err(|error| format!("{error}\n{}", String::from_utf8_lossy(&done.stderr)))?;
    // With the sandbox, it is gone.
    if TcpStream::connect(("127.0.0.1", port)).is_ok() {
        return Err("it still listens".to_owned());
    }
    let said = world.desk.expect(&["log", "--json", "--type", "network.visit"], 0, "")?;
    match String::from_utf8_lossy(&said.out).lines().count() {
        3 => Ok(()),
        other => Err(format!("{other} visits on the record: {said:?}")),
    }
}

fn fetched(port: u16) -> Result<String, String> {
    let mut stream = told(TcpStream::connect(("127.0.0.1", port)))?;
    told(stream.set_read_timeout(Some(Duration::from_secs(10))))?;
    told(stream.write_all(b"GET / HTTP/1.0\r\n\r\n"))?;
    let mut page = String::new();
    told(stream.read_to_string(&mut page))?;
    Ok(page)
}

const VALUE: &str = "walrus+under/the=ice 4711";

/// A world with a secret in the vault for its server.
fn keeping(who: Who) -> Result<World, String> {
    let world = World::of(who)?;
    let host = format!("{NAME}:{}", world.https);
    let mut set = world.desk.project.command(["secret", "set", "API_TOKEN", "--host", &host]);
    let mut child = told(set.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())?;
    told(child.stdin.take().ok_or("it has an input")?.write_all(VALUE.as_bytes()))?;
    let done = told(child.wait_with_output())?;
    match done.status.success() {
        true => Ok(world),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}

fn in_query_and_password(who: Who) -> Result<(), String> {
    let world = keeping(who)?;
    let open = world.open();
    let mut flags: Vec<&str> = open.iter().map(String::as_str).collect();
    flags.push("--secret=API_TOKEN");
    let script = format!(
        "curl -sS -m 10 \"{0}?key=$API_TOKEN&b=c\"; curl -sS -m 10 -u \"me:$API_TOKEN\" {0}",
        world.url("/echo")
    );
    let said = world.expect(&flags, &["sh", "-c", &script], 0, "\"GET\"")?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    let encoded = "walrus%2Bunder%2Fthe%3Dice%204711";
    let password = "bWU6d2FscnVzK3VuZGVyL3RoZT1pY2UgNDcxMQ==";
    for value in [VALUE, encoded, password] {
        if out.contains(value) || said.error.contains(value) {
            return Err(format!("it is seen inside: {said:?}"));
        }
    }
    let arrived = world.arrived()?;
    let [query, basic] = arrived.as_slice() else { return Err(format!("{arrived:?}")) };
    let path = format!("/echo?key={encoded}&b=c");
    match query["path"] == path.as_str() && basic["headers"]["authorization"] == format!("Basic {password}") {
        true => Ok(()),
        false => Err(format!("{arrived:?}")),
    }
}

fn elsewhere(who: Who) -> Result<(), String> {
    let world = keeping(who)?;
    let open = world.open();
    let mut flags: Vec<&str> = open.iter().map(String::as_str).collect();
    let other = format!("--allow-net={OTHER}:{}", world.http);
    let clear = format!("http://{OTHER}:{}/echo", world.http);
    flags.extend(["--secret=API_TOKEN", &other]);
    let code = "curl -sS -m 10 -o /dev/null -w '%{http_code} '";
    let script = format!(
        "{code} -H \"Authorization: Bearer $API_TOKEN\" {clear}; {code} \"{clear}?key=$API_TOKEN\"; \
         {code} -u \"me:$API_TOKEN\" {clear}; {code} -H \"Authorization: Bearer $API_TOKEN\" http://{NAME}:{}/echo",
        world.http
    );
    let said = world.run(&flags, &["sh", "-c", &script])?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    let sent = world.arrived()?;
    if out.contains("200") || !sent.is_empty() {
        return Err(format!("{said:?} {sent:?}"));
    }
    let used = world.desk.expect(&["log", "--json", "--type", "secret.used"], 0, "")?;
    let text = String::from_utf8_lossy(&used.out).into_owned();
    match text.lines().filter(|line| line.contains("\"denied\":true") && line.contains("API_TOKEN")).count() {
        0 => Err(format!("nothing of it is on the record: {text}")),
        _ => Ok(()),
    }
}
