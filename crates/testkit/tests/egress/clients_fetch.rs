//! Programs that fetch: by which version of HTTP, how much, how slowly, and whatever they were told of proxies.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use belljar_testkit::Who;

use crate::needing::Needing;
use crate::served::Served;
use crate::told;
use crate::world::{NAME, World};

pub const ALL: &[Needing] = &[
    ("wget_downloads_and_its_posts_are_refused", &["wget"], wget),
    ("curl_speaks_http_2_with_a_server_that_does", &["curl", "node"], http2),
    ("events_arrive_while_the_answer_is_open", &["curl"], events),
    ("a_large_download_passes_and_the_gate_stays_small", &["curl"], large),
    ("a_large_download_over_http_2_passes_and_the_gate_stays_small", &["curl", "node"], large_http2),
    ("a_large_upload_passes_and_the_gate_stays_small", &["curl"], upload),
    ("proxies_that_a_program_was_told_of_make_no_difference", &["curl"], proxies),
    ("datagrams_are_refused_at_once", &["python3"], datagrams),
    ("version_6_is_reached_where_it_is_granted", &["curl"], version6),
];

fn wget(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "1ms")?;
    let url = world.url("/bytes/100000");
    world.expect(&[], &["sh", "-ec", &format!("wget -q -T 10 -t 1 -O got {url}; wc -c <got")], 0, "100000")?;
    let post = format!("wget -nv -T 10 -t 1 --content-on-error --post-data=a=b -O - {}", world.url("/echo"));
    let said = world.run(&[], &["sh", "-c", &post])?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    if said.code == Some(0) || !said.error.contains("403") || !out.contains("refused by belljar") {
        return Err(format!("{said:?}"));
    }
    match world.arrived()?.as_slice() {
        [one] if one["method"] == "GET" => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// node's server, which speaks both versions.
const TWO: &str = "const fs = require('fs'), folder = process.argv[1];
const server = require('http2').createSecureServer({ allowHTTP1: true,
  key: fs.readFileSync(folder + '/server.key'), cert: fs.readFileSync(folder + '/server.pem') });
server.on('request', (from, to) => {
  let left = Number(from.url.split('/zeros/')[1] || 0), piece = Buffer.alloc(1 << 16);
  if (left) {
    const more = () => { while (left) { const size = Math.min(left, piece.length); left -= size;
      if (!to.write(piece.subarray(0, size))) return to.once('drain', more); } to.end(); };
    return more();
  }
  to.end('spoken: ' + from.httpVersion + ' ' + from.method); });
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit()).resume();";

fn http2(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let two = Served::telling(Command::new("node").args(["-e", TWO]).arg(&world.folder))?;
    let url = format!("https://{NAME}:{}/", two.port);
    let show = ["-sS", "-m", "10", "-w", " %{http_version}"];
    // Not read, then read.
    let grants = [format!("--allow-net={NAME}:{}", two.port), format!("--allow-net=127.0.0.1:{}", two.port)];
    let ca = world.folder.join("ca.pem").to_string_lossy().into_owned();
    let read = format!("--read={ca}");
    let words = [&["curl"], &show[..], &["--http2", "--cacert", &ca, &url]].concat();
    world.expect(&[&grants[0], &grants[1], &read], &words, 0, "spoken: 2.0 GET 2")?;
    world.reads_at("download", two.port, "1ms")?;
    for (flag, said) in [("--http2", "spoken: 2.0 GET 2"), ("--http1.1", "spoken: 1.1 GET 1.1")] {
        world.expect(&[], &[&["curl"], &show[..], &[flag, &url]].concat(), 0, said)?;
    }
    let words = [&["curl"], &show[..], &["--http2", "-d", "x", &url]].concat();
    let said = world.expect(&[], &words, 0, "refused by belljar")?;
    match String::from_utf8_lossy(&said.out).contains("spoken") {
        true => Err(format!("it was posted: {said:?}")),
        false => Ok(()),
    }
}

fn events(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "1ms")?;
    let mut command = world.command(&[], &["curl", "-sSN", "-m", "30", &world.url("/drip")]);
    let mut child = told(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("it has an output")?).lines();
    let mut next = || lines.next().transpose().map_err(|error| error.to_string());
    // The server says no more until it sees this file; it would go on after ten seconds.
    let began = Instant::now();
    let first = next()?;
    let go = world.folder.join("go");
    told(std::fs::write(go, ""))?;
    let (_, second) = (next()?, next()?);
    let done = told(child.wait_with_output())?;
    let both = (first.as_deref(), second.as_deref());
    match both == (Some("data: first"), Some("data: second")) && began.elapsed() < Duration::from_secs(8) {
        true => Ok(()),
        false => Err(format!("{both:?} after {:?}: {}", began.elapsed(), String::from_utf8_lossy(&done.stderr))),
    }
}

const LARGE: u64 = 300_000_000;

fn large(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let open = world.open();
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let ca = world.folder.join("ca.pem").to_string_lossy().into_owned();
    let read = format!("--read={ca}");
    let url = world.url(&format!("/zeros/{LARGE}"));
    let words = ["curl", "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{size_download}", "--cacert", &ca, &url];
    let said = LARGE.to_string();
    stays_small(&world, &[open.as_slice(), &[&read]].concat(), &words, &said)?;
    world.reads("download", "1ms")?;
    let words = [&words[..words.len() - 3], &[url.as_str()]].concat();
    stays_small(&world, &[], &words, &said)
}

fn large_http2(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let two = Served::telling(Command::new("node").args(["-e", TWO]).arg(&world.folder))?;
    world.reads_at("download", two.port, "1ms")?;
    let url = format!("https://{NAME}:{}/zeros/{LARGE}", two.port);
    let words = ["curl", "-sS", "-m", "60", "--http2", "-o", "/dev/null", "-w", "%{size_download}", &url];
    stays_small(&world, &[], &words, &LARGE.to_string())
}

fn upload(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.desk.policy(&format!(
        "[network]\nallow = [\"127.0.0.1:{0}\"]\n[[rule]]\nid = \"up\"\nthen = \"allow\"\nwhy = \"it is ours\"\n\
         when = {{ host = \"{NAME}:{0}\", method = \"PUT\", url = \"/swallow\" }}\n",
        world.https
    ))?;
    let script = format!("head -c {LARGE} /dev/zero | curl -sS -m 60 -T - -w done {}", world.url("/swallow"));
    stays_small(&world, &[], &["sh", "-c", &script], "done")?;
    match world.arrived()?.last() {
        Some(one) if one["body"] == LARGE => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// Runs it, and looks at belljar's own memory all the while.
fn stays_small(world: &World, flags: &[&str], words: &[&str], said: &str) -> Result<(), String> {
    let mut command = world.command(flags, words);
    let mut child = told(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())?;
    let (mut most, mut seen) = (0, 0);
    while told(child.try_wait())?.is_none() {
        let sizes = below(child.id() as i32).into_iter().filter_map(resident);
        most = most.max(sizes.max().unwrap_or(0));
        seen += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    let done = told(child.wait_with_output())?;
    let (out, error) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if !done.status.success() || !out.contains(said) {
        return Err(format!("{out} {error}"));
    }
    match seen > 3 && most > 0 && most < 64 << 20 {
        true => Ok(()),
        false => Err(format!("{most} bytes of memory at the most, in {seen} looks")),
    }
}

/// The process and all below it.
fn below(above: i32) -> Vec<i32> {
    let mut all = vec![above];
    let mut at = 0;
    while let Some(process) = all.get(at) {
        let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
        all.extend(children.split_whitespace().filter_map(|word| word.parse::<i32>().ok()));
        at += 1;
    }
    all
}

/// Of what is belljar's own: memory that no file has.
fn resident(process: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    field("Name:").filter(|name| name.starts_with("belljar"))?;
    field("RssAnon:")?.strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|size| size << 10)
}

fn proxies(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "1ms")?;
    let url = world.url("/echo");
    // What belljar's own environment says of proxies does not get inside.
    let mut outer = world.command(&[], &["curl", "-sS", "-m", "10", &url]);
    let done = told(outer.env("HTTPS_PROXY", "http://127.0.0.1:9").env("https_proxy", "http://127.0.0.1:9").output())?;
    if !String::from_utf8_lossy(&done.stdout).contains("\"GET\"") {
        return Err(format!("{done:?}"));
    }
    for set in ["NO_PROXY='*'".to_owned(), format!("NO_PROXY={NAME}"), "HTTPS_PROXY= HTTP_PROXY= ALL_PROXY=".to_owned()]
    {
        world.expect(&[], &["sh", "-c", &format!("{set} curl -sS -m 10 {url}")], 0, "\"GET\"")?;
    }
    // A proxy that is not granted is not reached, with or without a name that is.
    let script = format!("https_proxy=http://127.0.0.1:{} curl -sS -m 10 {url}", world.http);
    let said = world.run(&[], &["sh", "-c", &script])?;
    match said.code {
        Some(5 | 7) => Ok(()),
        _ => Err(format!("{said:?}")),
    }
}

fn datagrams(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let open = world.open();
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let script = format!(
        "import errno, socket, time\n\
         began = time.monotonic()\n\
         address = socket.getaddrinfo('{NAME}', {port}, socket.AF_INET, socket.SOCK_DGRAM)[0][4]\n\
         for to in [address, ('192.0.2.1', 443), ('192.0.2.1', 123)]:\n\
         \x20   s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)\n\
         \x20   try:\n\
         \x20       s.connect(to); s.send(b'hello'); s.recv(10); print('answered', to)\n\
         \x20   except TimeoutError: print('silence', to)\n\
         \x20   except OSError as error: print('refused', errno.errorcode[error.errno])\n\
         print('quick' if time.monotonic() - began < 2 else 'slow')\n",
        port = world.https
    );
    let said = world.expect(&open, &["/usr/bin/python3", "-c", &script], 0, "quick")?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    match out.lines().filter(|line| line.starts_with("refused")).count() {
        3 => Ok(()),
        _ => Err(out),
    }
}

/// The world's page, on version 6.
const SIX: &str = "import http.server, socket, sys
class Six(http.server.ThreadingHTTPServer): address_family = socket.AF_INET6
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header('content-length', '3'); self.end_headers(); self.wfile.write(b'six')
    def log_message(self, *_): pass
server = Six(('::1', 0), Page)
print(server.server_address[1], flush=True)
server.serve_forever()";

fn version6(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let six = Served::telling(Command::new("/usr/bin/python3").args(["-c", SIX]))?;
    let by_name = format!("http://six.world.test:{}/", six.port);
    let by_address = format!("http://[::1]:{}/", six.port);
    let flags = [
        "--add-host=six.world.test=::1".to_owned(),
        format!("--allow-net=six.world.test:{}", six.port),
        format!("--allow-net=[::1]:{}", six.port),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    for words in [&["-6", by_name.as_str()][..], &[&by_name], &["-4", &by_name], &[&by_address]] {
        world.expect(&flags, &[&["curl", "-sS", "-m", "10"], words].concat(), 0, "six")?;
    }
    // A name whose server has only the older version is reached by those who only speak the newer.
    let open = world.open();
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let url = format!("http://{NAME}:{}/echo", world.http);
    world.expect(&open, &["curl", "-6", "-sS", "-m", "10", &url], 0, "\"GET\"")?;
    let said = world.run(&[], &["curl", "-6", "-sS", "-m", "10", &by_address])?;
    match said.code {
        Some(7) => Ok(()),
        _ => Err(format!("{said:?}")),
    }
}
