//! `cargo xtask bench service`: what a run costs whoever asks for it over HTTP, with policy, scan and ledger, beside the same program
//! without any sandbox.

mod docker;
mod idle;
mod streams;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::Who;
use testkit::contestant::belljar;

use crate::bench::field::Field;
use crate::bench::runners::{quiet, time};
use crate::bench::samples::{Samples, Table, median, met, milliseconds, percentile};

const PYTHON: &str = "/usr/bin/python3";
const FULL: Amounts = Amounts { runs: 300, slow: 20, seconds: 10, clients: 4, streams: 100, idle: 1000 };
const QUICK: Amounts = Amounts { runs: 10, slow: 2, seconds: 1, clients: 2, streams: 10, idle: 10 };

struct Amounts {
    runs: usize,
    slow: usize,
    seconds: u64,
    clients: usize,
    streams: usize,
    idle: usize,
}

pub fn service(flags: &[&str]) -> Result<(), String> {
    let super::Wish { quick, markdown, runs } = super::Wish::read("service", flags)?;
    let mut amounts = if quick { QUICK } else { FULL };
    amounts.runs = runs.unwrap_or(amounts.runs);
    crate::release::everything()?;
    let field = Field::make()?;
    let mut samples = Samples::open("service")?;
    let mut tables = Vec::new();
    println!("docker exec and docker run");
    let docker = docker::measure(amounts.slow);
    for who in [Who::Ordinary, Who::Root] {
        let server = Server::start(&field, who)?;
        println!("as {}: snippets, sandboxes, forks, streams, idle sandboxes", who.name());
        tables.push(snippets(&field, who, &server, &amounts, &mut samples)?);
        tables.push(sandboxes(&field, who, &server, (&amounts, &docker), &mut samples)?);
        tables.push(forks(who, &server, &amounts, &mut samples)?);
        tables.push(streams::measure(who, &server, &amounts, &mut samples)?);
        tables.push(idle::measure(who, &server, &amounts, &mut samples)?);
        tables.push(many(who, &server, &amounts, &mut samples)?);
    }
    super::report(tables, quick, markdown, &samples);
    Ok(())
}

struct Server {
    child: Child,
    port: u16,
    token: String,
}

impl Server {
    fn start(field: &Field, who: Who) -> Result<Server, String> {
        let state = field.home(who).join("service");
        let mut command = Command::new(belljar());
        command.args(["serve", "--listen", "127.0.0.1:0", "--state"]).arg(&state);
        // Nothing of it is to wait for anything but the machine.
        for limit in ["rate", "open-per-tenant", "open-per-agent", "jobs", "jobs-per-tenant", "jobs-per-agent"] {
            command.arg(format!("--{limit}")).arg("100000");
        }
        quiet(&mut command, field, who, &field.home(who));
        let mut child = command.stderr(Stdio::piped()).spawn().map_err(|error| format!("cannot serve: {error}"))?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("it has an error output")?);
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|count| count > 0) {
            if let Some((_, port)) = line.split_once("listening at http://127.0.0.1:") {
                let port = port.trim().parse().map_err(|_| format!("no port: {line}"))?;
                std::thread::spawn(move || drop(std::io::copy(&mut lines, &mut std::io::sink())));
                let token = std::fs::read_to_string(state.join("token")).map_err(|error| error.to_string())?;
                return Ok(Server { child, port, token: token.trim().to_owned() });
            }
            line.clear();
        }
        Err("the service ended before it listened".to_owned())
    }

    fn client(&self) -> Result<Client, String> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let reader = BufReader::new(stream.try_clone().map_err(|error| error.to_string())?);
        Ok(Client { stream, reader, token: self.token.clone() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // In order: what stands ready goes with it.
        drop(Command::new("kill").arg(self.child.id().to_string()).status());
        drop(self.child.wait());
    }
}

/// One connection that stays.
struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    token: String,
}

impl Client {
    fn send(&mut self, method: &str, path: &str, body: &Value) -> Result<(), String> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).map_err(|error| error.to_string())
    }

    fn ask(&mut self, method: &str, path: &str, body: &Value) -> Result<(Duration, Value), String> {
        let begun = Instant::now();
        self.send(method, path, body)?;
        let (status, text) = self.answer()?;
        let took = begun.elapsed();
        match status {
            200..300 => Ok((took, serde_json::from_str(&text).unwrap_or(Value::Null))),
            _ => Err(format!("{method} {path}: {status} {text}")),
        }
    }

    fn answer(&mut self) -> Result<(u16, String), String> {
        let mut line = String::new();
        let (mut status, mut length) = (0, 0);
        loop {
            line.clear();
            if self.reader.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
                return Err("the connection ended".to_owned());
            }
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            if let Some(rest) = text.strip_prefix("HTTP/1.1 ") {
                status = rest.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or(0);
            } else if let Some((name, value)) = text.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).map_err(|error| error.to_string())?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// A snippet; whether something stood ready for it.
    fn run(&mut self, code: &str) -> Result<(Duration, bool), String> {
        let (took, told) = self.ask("POST", "/v1/run", &json!({"language": "python", "code": code}))?;
        match told["result"]["exit"] == 0 {
            true => Ok((took, told["result"]["backend_because"] == "it stood ready")),
            false => Err(format!("`{code}` failed: {told}")),
        }
    }

    fn until_ready(&mut self) -> Result<(), String> {
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            // Text, and so no value: looked at as it is.
            let request =
                format!("GET /v1/metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\r\n", self.token);
            self.stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
            if !self.answer()?.1.contains("belljar_service_warm_ready 0\n") {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err("nothing stands ready after a minute".to_owned())
    }
}

fn keep(samples: &mut Samples, what: &str, name: &str, who: Who, times: &[Duration]) -> Result<(), String> {
    times.iter().try_for_each(|time| samples.keep(what, name, who.name(), time.as_secs_f64() * 1e3, "ms"))
}

/// A snippet in a sandbox of its own, asked for over HTTP, and the bare interpreter, in turn.
fn snippets(
    field: &Field,
    who: Who,
    server: &Server,
    amounts: &Amounts,
    samples: &mut Samples,
) -> Result<Table, String> {
    let title = format!("A Python snippet over HTTP, each in a sandbox of its own, as {}", who.name());
    let mut table = Table::new(title, &["", "runs", "p50 ms", "p99 ms", "of the bare one", "wanted"]);
    let mut client = server.client()?;
    let heavy = "import numpy, pandas\nprint(1)";
    let mut has_heavy = Command::new(PYTHON);
    let has_heavy = quiet(has_heavy.args(["-I", "-c", heavy]), field, who, &field.home(who)).status();
    let mut cases = vec![("`print(1)`", "print(1)", &["-I", "-S"][..], amounts.runs, (0.25, 1.0))];
    if has_heavy.is_ok_and(|status| status.success()) {
        cases.push(("with numpy and pandas", heavy, &["-I"][..], amounts.slow, (0.05, f64::INFINITY)));
    } else {
        eprintln!("skipped: {PYTHON} has no numpy and pandas (Debian: python3-pandas)");
    }
    for (name, code, flags, runs, (half, most)) in cases {
        client.run(code)?;
        let (mut ours, mut bare, mut ready) = (Vec::new(), Vec::new(), 0);
        for _ in 0..runs {
            client.until_ready()?;
            let (took, stood) = client.run(code)?;
            ours.push(took);
            ready += usize::from(stood);
            let mut command = Command::new(PYTHON);
            bare.push(time(quiet(command.args(flags).args(["-c", code]), field, who, &field.home(who)))?);
        }
        keep(samples, name, "belljar serve", who, &ours)?;
        keep(samples, name, "bare", who, &bare)?;
        let ratio = |share: f64| percentile(&ours, share).as_secs_f64() / percentile(&bare, share).as_secs_f64();
        let wanted = match most.is_finite() {
            true => met(ratio(0.5) <= half && ratio(0.99) <= most, &format!("p50 ≤ {half} ×, p99 ≤ {most} ×")),
            false => met(ratio(0.5) <= half, &format!("p50 ≤ {half} ×")),
        };
        let both = |times: &[Duration]| [milliseconds(median(times)), milliseconds(percentile(times, 0.99))];
        let row = |what: String, times: &[Duration], ratio: String, wanted: String| {
            let [p50, p99] = both(times);
            vec![what, times.len().to_string(), p50, p99, ratio, wanted]
        };
        table.rows.push(row(format!("{name}: the bare interpreter"), &bare, String::new(), String::new()));
        let share = format!("{:.2} ×, p99 {:.2} ×; {ready} of {runs} stood ready", ratio(0.5), ratio(0.99));
        table.rows.push(row(format!("{name}: belljar serve"), &ours, share, wanted));
    }
    Ok(table)
}

/// Commands in a sandbox that stays.
fn sandboxes(
    field: &Field,
    who: Who,
    server: &Server,
    (amounts, docker): (&Amounts, &Result<[Vec<Duration>; 2], String>),
    samples: &mut Samples,
) -> Result<Table, String> {
    let title = format!("Sandboxes that stay, over HTTP, as {}", who.name());
    let mut table = Table::new(title, &["", "runs", "p50 ms", "p99 ms", "ratio", "wanted"]);
    let mut client = server.client()?;
    let (mut makes, mut opens, mut execs, mut bare) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..amounts.runs.div_ceil(10) {
        let (made, told) = client.ask("POST", "/v1/sandboxes", &json!({"open": false}))?;
        let id = told["id"].as_str().ok_or("a sandbox has an id")?.to_owned();
        let (opened, _) = client.ask("POST", &format!("/v1/sandboxes/{id}/open"), &json!({}))?;
        makes.push(made);
        opens.push(made + opened);
        for _ in 0..10 {
            let body = json!({"command": ["/bin/true"]});
            let (took, told) = client.ask("POST", &format!("/v1/sandboxes/{id}/exec"), &body)?;
            if told["result"]["exit"] != 0 {
                return Err(format!("it failed: {told}"));
            }
            execs.push(took);
            let mut command = Command::new("/bin/true");
            bare.push(time(quiet(&mut command, field, who, &field.home(who)))?);
        }
        client.ask("POST", &format!("/v1/sandboxes/{id}/stop"), &json!({}))?;
        client.ask("DELETE", &format!("/v1/sandboxes/{id}"), &Value::Null)?;
    }
    let mut row = |what: &str, times: &[Duration], ratio: String, wanted: String| -> Result<(), String> {
        keep(samples, "sandboxes", what, who, times)?;
        let (p50, p99) = (milliseconds(median(times)), milliseconds(percentile(times, 0.99)));
        table.rows.push(vec![what.to_owned(), times.len().to_string(), p50, p99, ratio, wanted]);
        Ok(())
    };
    row("make one", &makes, String::new(), met(median(&makes) < Duration::from_millis(5), "p50 < 5 ms"))?;
    row("make and open one", &opens, String::new(), String::new())?;
    row("a bare fork and exec of /bin/true", &bare, String::new(), String::new())?;
    let ratio = median(&execs).as_secs_f64() / median(&bare).as_secs_f64();
    row("the same in an open one", &execs, format!("{ratio:.1} ×"), met(ratio <= 3.0, "≤ 3 ×"))?;
    match docker {
        Ok([peer_execs, peer_starts]) => {
            for (name, times, least) in [("docker exec", peer_execs, 15.0), ("docker run", peer_starts, 80.0)] {
                let ratio = median(times).as_secs_f64() / median(&execs).as_secs_f64();
                let wanted = met(ratio >= least, &format!("≥ {least} ×"));
                row(name, times, format!("{ratio:.1} × that in an open one"), wanted)?;
            }
        }
        Err(why) => row("docker", &[], format!("not measured: {why}"), String::new())?,
    }
    Ok(table)
}

/// A live context with 50 MB, as arrays have them, into four branches that have answered.
fn forks(who: Who, server: &Server, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    const BRANCHES: u32 = 4;
    let title =
        format!("A live Python context with a heap of 50 MB into {BRANCHES} branches, over HTTP, as {}", who.name());
    let mut table = Table::new(title, &["", "forks", "p50 ms", "p99 ms", "of a bare start", "wanted"]);
    let mut client = server.client()?;
    let (_, made) = client.ask("POST", "/v1/sandboxes", &json!({}))?;
    let id = made["id"].as_str().ok_or("a sandbox has an id")?.to_owned();
    let heaps = [
        (
            "in arrays",
            "import pickle\nclass Array:\n    def __init__(self, data): self.data = data\n    \
             def __reduce_ex__(self, protocol): return (Array, (pickle.PickleBuffer(self.data),))\n\
             heap = Array(bytearray(50 << 20))\ndef answer(): return len(heap.data)",
        ),
        ("in one bytearray", "heap = bytearray(50 << 20)\ndef answer(): return len(heap)"),
    ];
    for (name, code) in heaps {
        let cell = |code: &str| json!({"language": "python", "code": code});
        client.ask("POST", &format!("/v1/sandboxes/{id}/code"), &cell(code))?;
        let (mut whole, mut each, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..amounts.slow {
            let path = format!("/v1/sandboxes/{id}/contexts/python/fork");
            let (mut took, told) = client.ask("POST", &path, &json!({"count": BRANCHES}))?;
            let forks: Vec<String> = told["forks"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|fork| fork["id"].as_str().unwrap_or_default().to_owned())
                .collect();
            for fork in &forks {
                let (answered, told) = client.ask("POST", &format!("/v1/sandboxes/{fork}/code"), &cell("answer()"))?;
                if told["result"]["cell"]["results"][0]["parts"][0]["data"] != "52428800" {
                    return Err(format!("a branch does not have what it should: {told}"));
                }
                took += answered;
            }
            whole.push(took);
            each.push(took / BRANCHES);
            let begun = Instant::now();
            Command::new(PYTHON).args(["-I", "-c", "pass"]).status().map_err(|error| error.to_string())?;
            bare.push(begun.elapsed());
            for fork in &forks {
                client.ask("DELETE", &format!("/v1/sandboxes/{fork}"), &Value::Null)?;
            }
        }
        let ratio = |times: &[Duration]| format!("{:.1} ×", median(times).as_secs_f64() / median(&bare).as_secs_f64());
        for (what, times, wanted) in [
            ("all of it", &whole, String::new()),
            ("for each branch", &each, met(median(&each) <= Duration::from_millis(15), "p50 ≤ 15 ms")),
        ] {
            let what = format!("{name}: {what}");
            keep(samples, "forks of a context", &what, who, times)?;
            let (p50, p99) = (milliseconds(median(times)), milliseconds(percentile(times, 0.99)));
            table.rows.push(vec![what, times.len().to_string(), p50, p99, ratio(times), wanted]);
        }
    }
    client.ask("DELETE", &format!("/v1/sandboxes/{id}"), &Value::Null)?;
    Ok(table)
}

/// As many snippets as there can be.
fn many(who: Who, server: &Server, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let title = format!("Snippets in a second, {} clients, as {}", amounts.clients, who.name());
    let mut table = Table::new(title, &["", "a second", "stood ready", "wanted"]);
    let (done, ready) = (AtomicU64::new(0), AtomicU64::new(0));
    let until = Instant::now() + Duration::from_secs(amounts.seconds);
    let work = || -> Result<(), String> {
        let mut client = server.client()?;
        while Instant::now() < until {
            let (_, stood) = client.run("print(1)")?;
            done.fetch_add(1, Ordering::Relaxed);
            ready.fetch_add(u64::from(stood), Ordering::Relaxed);
        }
        Ok(())
    };
    let ended: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..amounts.clients).map(|_| scope.spawn(work)).collect();
        all.into_iter().map(|one| one.join().unwrap_or_else(|_| Err("a client gave up".to_owned()))).collect()
    });
    ended.into_iter().collect::<Result<Vec<()>, String>>()?;
    let (done, ready) = (done.into_inner(), ready.into_inner());
    let rate = done as f64 / amounts.seconds as f64;
    samples.keep("throughput", "belljar serve", who.name(), rate, "a second")?;
    let share = format!("{:.0} %", 100.0 * ready as f64 / done.max(1) as f64);
    table.rows.push(vec!["`print(1)`".to_owned(), format!("{rate:.0}"), share, met(rate >= 150.0, "≥ 150")]);
    Ok(table)
}
