//! Where exports go, and what happens when a place is not who it should be, is away, or is hostile.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::Value;

use crate::place::{Sink, answer, desk_with_runs, listen, numbers, post};
use crate::told;

pub const ALL: &[(&str, Check)] = &[
    ("a_real_server_gets_everything_over_tls", over_tls),
    ("a_stranger_gets_nothing", stranger),
    ("an_answer_that_is_no_yes_is_an_error_in_time", hostile),
    ("one_that_follows_waits_for_a_place_that_is_away", away),
    ("syslog_arrives_in_frames_in_datagrams_and_at_the_socket", syslog),
    ("metrics_are_served_to_this_machine_and_go_on", page),
    ("what_does_not_fit_together_is_refused_with_its_fix", misfits),
    ("a_file_gets_lines_at_its_end", file),
];

fn over_tls(who: Who) -> Result<(), String> {
    let desk = desk_with_runs(who, 2)?;
    let sink = Sink::start(&desk.home.join("sink"), Some("IP:127.0.0.1,DNS:localhost"))?;
    let headers = desk.project.work.join("headers");
    desk.put("headers", "Authorization: Bearer sesame-open\n")?;
    let (ca, headers) = (sink.authority(), headers.to_string_lossy().into_owned());
    let to = format!("https://127.0.0.1:{}/in?key=1", sink.port);
    let send = |format: &str, more: &[&str]| {
        let words = ["export", format, "--to", &to, "--ca", &ca, "--header-file", &headers];
        desk.expect(&[&words, more].concat(), 0, "").map(drop)
    };
    let all = numbers(&String::from_utf8_lossy(&desk.expect(&["export", "ndjson"], 0, "")?.out));
    send("cloudevents", &[])?;
    send("cloudevents", &["--one-each", "--type", "run.ended"])?;
    send("ndjson", &[])?;
    send("ocsf", &[])?;
    send("prometheus", &[])?;
    let base = format!("https://localhost:{}", sink.port);
    desk.expect(&["export", "otlp", "--to", &base, "--ca", &ca], 0, "")?;
    let posts = sink.posts()?;
    let types: Vec<&str> = posts.iter().filter_map(|post| post["headers"]["content-type"].as_str()).collect();
    let wanted = [
        "application/cloudevents-batch+json", "application/cloudevents+json", "application/cloudevents+json",
        "application/x-ndjson", "application/json", "text/plain; version=0.0.4; charset=utf-8", "application/json",
    ];
    if types != wanted
        || posts[0]["headers"]["authorization"] != "Bearer sesame-open"
        || posts[0]["path"] != "/in?key=1"
    {
        return Err(format!("{posts:?}"));
    }
    let body = |at: usize| posts[at]["body"].as_str().unwrap_or_default();
    let batch: Vec<Value> = told(serde_json::from_str(body(0)))?;
    let sent: Vec<u64> = batch.iter().filter_map(|event| event["data"]["n"].as_u64()).collect();
    if sent != all
        || numbers(body(3)) != all
        || posts[6]["path"] != "/v1/traces"
        || !body(5).contains("belljar_runs_total")
    {
        return Err(format!("{sent:?} of {all:?}: {}", posts[6]["path"]));
    }
    match batch.iter().all(|event| event["specversion"] == "1.0") {
        true => Ok(()),
        false => Err(body(0).to_owned()),
    }
}

fn stranger(who: Who) -> Result<(), String> {
    let desk = desk_with_runs(who, 1)?;
    let good = Sink::start(&desk.home.join("good"), Some("IP:127.0.0.1"))?;
    let other = Sink::start(&desk.home.join("other"), Some("DNS:somewhere.example"))?;
    let to = |sink: &Sink| format!("https://127.0.0.1:{}/", sink.port);
    // Nobody of this machine knows the authority; another's is no better; and the right one vouches for another name.
    let refused = "did not prove who it is";
    let said = desk.say(&["export", "ndjson", "--to", &to(&good)])?;
    let unknown = said.error.contains(refused) || said.error.contains("no certificates of authorities");
    if said.code != Some(125) || !unknown {
        return Err(format!("{said:?}"));
    }
    desk.expect(&["export", "ndjson", "--to", &to(&good), "--ca", &other.authority()], 125, refused)?;
    desk.expect(&["export", "ndjson", "--to", &to(&other), "--ca", &other.authority()], 125, refused)?;
    // The same for streams.
    let tls = format!("tls://127.0.0.1:{}", good.port);
    desk.expect(&["export", "syslog", "--to", &tls, "--ca", &other.authority()], 125, refused)?;
    // No TLS where TLS is meant.
    let plain = Sink::start(&desk.home.join("plain"), None)?;
    desk.expect(&["export", "ndjson", "--to", &to(&plain), "--ca", &good.authority()], 125, "")?;
    // Nor without encryption to another machine.
    let away = ["export", "ndjson", "--to", "http://192.0.2.1/"];
    desk.expect(&away, 125, "would not be encrypted")?;
    desk.expect(&["export", "syslog", "--to", "udp://192.0.2.1"], 125, "would not be encrypted")?;
    for sink in [&good, &other, &plain] {
        if !sink.posts()?.is_empty() {
            return Err(format!("a stranger got {:?}", sink.posts()?));
        }
    }
    // The control.
    desk.expect(&["export", "ndjson", "--to", &to(&good), "--ca", &good.authority()], 0, "")?;
    if good.posts()?.len() == 1 { Ok(()) } else { Err("the control failed".to_owned()) }
}

fn hostile(who: Who) -> Result<(), String> {
    let desk = desk_with_runs(who, 1)?;
    type Behaviour = fn(TcpStream);
    let behaviours: [(&str, Behaviour, i32); 4] = [
        ("answered 500", |mut stream| drop(post(&mut stream).map(|_| answer(&mut stream, 500))), 125),
        ("leads elsewhere", |mut stream| drop(post(&mut stream).map(|_| answer(&mut stream, 302))), 125),
        ("did not answer as it should", drop, 125),
        (
            "",
            |mut stream| {
                post(&mut stream);
                let head = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n");
                let chunk = [b'x'; 1 << 16];
                let mut sent = 0;
                while head.is_ok() && sent < 1 << 30 && stream.write_all(&chunk).is_ok() {
                    sent += chunk.len();
                }
                assert!(sent < 64 << 20, "it read {sent} bytes");
            },
            0,
        ),
    ];
    for (said, behave, code) in behaviours {
        let (listener, at) = listen()?;
        let serving = std::thread::spawn(move || listener.accept().map(|(stream, _)| behave(stream)));
        let began = Instant::now();
        desk.expect(&["export", "ndjson", "--to", &format!("http://{at}/")], code, said)?;
        if began.elapsed() > Duration::from_secs(10) {
            return Err(format!("{said}: it took {:?}", began.elapsed()));
        }
        told(serving.join().map_err(|_| format!("{said}: the place failed")))?.map_err(|error| error.to_string())?;
    }
    // Nobody there at all.
    let (listener, at) = listen()?;
    drop(listener);
    desk.expect(&["export", "ndjson", "--to", &format!("http://{at}/")], 125, "cannot connect to").map(drop)
}

fn away(who: Who) -> Result<(), String> {
    let desk = desk_with_runs(who, 1)?;
    let (listener, at) = listen()?;
    let words = ["export", "ndjson", "-f", "--cursor", "c", "--to"].map(str::to_owned);
    let mut command = desk.project.command(words.into_iter().chain([format!("http://{at}/")]));
    let mut child = told(command.stderr(Stdio::piped()).spawn())?;
    let told_of_it = || -> Result<Vec<u64>, String> {
        let mut taken = Vec::new();
        // Twice a no; then what was not taken comes again, whole.
        let mut refused = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = told(listener.accept())?;
            refused.push(post(&mut stream).ok_or("no post")?);
            answer(&mut stream, 503)?;
        }
        let (mut stream, _) = told(listener.accept())?;
        let body = post(&mut stream).ok_or("no post")?;
        answer(&mut stream, 200)?;
        if refused[0] != body || refused[1] != body {
            return Err(format!("{refused:?} is not {body}"));
        }
        taken.extend(numbers(&body));
        // And what happens from now on.
        desk.expect(&["run", "-q", "--", "true"], 0, "")?;
        let all = numbers(&String::from_utf8_lossy(&desk.expect(&["export", "ndjson"], 0, "")?.out));
        while taken.len() < all.len() {
            let (mut stream, _) = told(listener.accept())?;
            taken.extend(numbers(&post(&mut stream).ok_or("no post")?));
            answer(&mut stream, 200)?;
        }
        if taken == all { Ok(taken) } else { Err(format!("{taken:?} of {all:?}")) }
    };
    let taken = told_of_it();
    told(child.kill().and_then(|()| child.wait()))?;
    let mut said = String::new();
    told(child.stderr.take().ok_or("it has errors")?.read_to_string(&mut said))?;
    taken?;
    match said.contains("answered 503") && said.contains("trying again") && said.contains("it is taken again") {
        true => Ok(()),
        false => Err(said),
    }
}

fn syslog(who: Who) -> Result<(), String> {
    let desk = desk_with_runs(who, 1)?;
    let lines = String::from_utf8_lossy(&desk.expect(&["export", "syslog"], 0, "")?.out).into_owned();
    let lines: Vec<&str> = lines.lines().collect();
    // Frames.
    let (listener, at) = listen()?;
    let reading = std::thread::spawn(move || -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        told(listener.accept()).and_then(|(mut stream, _)| told(stream.read_to_end(&mut all)))?;
        Ok(all)
    });
    desk.expect(&["export", "syslog", "--to", &format!("tcp://{at}")], 0, "")?;
    let all = reading.join().map_err(|_| "the reader failed")??;
    // The same under TLS.
    let mut sink = Sink::of_a_stream(&desk.home.join("sink"), "IP:127.0.0.1")?;
    let to = format!("tls://127.0.0.1:{}", sink.port);
    desk.expect(&["export", "syslog", "--to", &to, "--ca", &sink.authority()], 0, "")?;
    if sink.stream()? != all {
        return Err("under TLS something else came".to_owned());
    }
    let mut rest = all.as_slice();
    for line in &lines {
        let blank = rest.iter().position(|byte| *byte == b' ').ok_or("a frame has a length")?;
        let length: usize = told(String::from_utf8_lossy(&rest[..blank]).parse())?;
        let (frame, after) = rest[blank + 1..].split_at_checked(length).ok_or("a frame is whole")?;
        if frame != line.as_bytes() {
            return Err(format!("{} is not {line}", String::from_utf8_lossy(frame)));
        }
        rest = after;
    }
    // Datagrams.
    let socket = told(UdpSocket::bind("127.0.0.1:0"))?;
    told(socket.set_read_timeout(Some(Duration::from_secs(10))))?;
    desk.expect(&["export", "syslog", "--to", &format!("udp://{}", told(socket.local_addr())?)], 0, "")?;
    let mut buffer = vec![0; 65536];
    for line in &lines {
        let count = told(socket.recv(&mut buffer))?;
        if &buffer[..count] != line.as_bytes() {
            return Err(format!("{line} is not what came"));
        }
    }
    // The machine's own socket. It holds only a few, so somebody reads.
    let path = desk.project.work.join("log");
    let socket = told(UnixDatagram::bind(&path))?;
    told(desk.project.give(&path))?;
    let count = lines.len();
    let reading = std::thread::spawn(move || -> Result<Vec<Vec<u8>>, String> {
        let mut buffer = vec![0; 65536];
        (0..count).map(|_| told(socket.recv(&mut buffer)).map(|length| buffer[..length].to_vec())).collect()
    });
    desk.expect(&["export", "syslog", "--to", &format!("unix:{}", path.display())], 0, "")?;
    let came = reading.join().map_err(|_| "the reader failed")??;
    match came.iter().zip(&lines).all(|(came, line)| came == line.as_bytes()) {
        true => Ok(()),
        false => Err("the socket got something else".to_owned()),
    }
}

fn page(who: Who) -> Result<(), String> {
    let desk = desk_with_runs(who, 1)?;
    let refused = ["export", "prometheus", "--listen", "0.0.0.0:0"];
    desk.expect(&refused, 125, "--listen-anywhere")?;
    desk.expect(&["export", "ocsf", "--listen", "127.0.0.1:0"], 125, "only metrics")?;
    let mut command = desk.project.command(["export", "prometheus", "--listen", "127.0.0.1:0"]);
    let mut child = told(command.stderr(Stdio::piped()).spawn())?;
    let look = |child: &mut std::process::Child| -> Result<(), String> {
        let mut line = String::new();
        told(BufReader::new(child.stderr.take().ok_or("it has errors")?).read_line(&mut line))?;
        let at = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).ok_or(line.clone())?.to_owned();
        let runs = || -> Result<f64, String> {
            let mut stream = told(TcpStream::connect(&at))?;
            told(stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))?;
            let mut said = String::new();
            told(stream.read_to_string(&mut said))?;
            let line = said.lines().find(|line| line.starts_with("belljar_runs_total{outcome=\"ran\""));
            let number = line.and_then(|line| line.rsplit(' ').next()).ok_or(said.clone())?;
            told(number.parse())
        };
        let before = runs()?;
        desk.expect(&["run", "-q", "--", "true"], 0, "")?;
        // It hears of it from the kernel, a moment later.
        let began = Instant::now();
        while runs()? == before && began.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        if (before, runs()?) == (1.0, 2.0) { Ok(()) } else { Err(format!("{before} and then {}", runs()?)) }
    };
    let looked = look(&mut child);
    told(child.kill().and_then(|()| child.wait()))?;
    looked
}

fn misfits(who: Who) -> Result<(), String> {
    let desk = desk_with_runs(who, 1)?;
    for (words, said) in [
        (&["ocsf", "--to", "udp://127.0.0.1"][..], "only syslog goes there"),
        (&["syslog", "--to", "https://127.0.0.1/"], "syslog is not posted"),
        (&["prometheus", "-f"], "--listen ADDRESS"),
        (&["prometheus", "--cursor", "a"], "leave out --cursor"),
        (&["ndjson", "--to", "https://anna:sesame@127.0.0.1/"], "--header-file"),
        (&["ndjson", "--to", "ftp://127.0.0.1/"], "it is no place"),
        (&["ndjson", "--cursor", "../x"], "is no name for a cursor"),
        (&["ndjson", "--to", "file:/not/there/x"], "cannot write"),
        (&["ndjson", "--to", "https://127.0.0.1:1/", "--ca", "/not/there"], "cannot read"),
        (&["xml"], "belljar: "),
    ] {
        let heard = desk.expect(&[&["export"], words].concat(), 125, said)?;
        if heard.error.contains("sesame") || heard.error.lines().count() > 3 {
            return Err(format!("{heard:?}"));
        }
    }
    Ok(())
}

fn file(who: Who) -> Result<(), String> {
    let desk = desk_with_runs(who, 1)?;
    let path = desk.project.work.join("all.ndjson");
    desk.put("all.ndjson", "{\"torn")?;
    let to = format!("file:{}", path.display());
    desk.expect(&["export", "ndjson", "--to", &to, "--cursor", "f"], 0, "was never whole")?;
    desk.expect(&["run", "-q", "--", "true"], 0, "")?;
    desk.expect(&["export", "ndjson", "--to", &to, "--cursor", "f"], 0, "")?;
    let all = desk.expect(&["export", "ndjson"], 0, "")?.out;
    let kept = told(fs::read_to_string(&path))?;
    if kept.as_bytes() != [b"{\"torn\n".as_slice(), &all].concat() {
        return Err(kept);
    }
    // Metrics take the place of those before.
    let page = desk.project.work.join("page.prom");
    for _ in 0..2 {
        desk.expect(&["export", "prometheus", "--to", &format!("file:{}", page.display())], 0, "")?;
    }
    let text = told(fs::read_to_string(&page))?;
    match text.matches("# TYPE belljar_runs_total").count() {
        1 => Ok(()),
        _ => Err(text),
    }
}
