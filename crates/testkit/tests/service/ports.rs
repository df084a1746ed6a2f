//! Servers inside that are visited through the API: by curl, by a WebSocket client, and by a client that sends exactly what it is told.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use belljar_testkit::Who;
use belljar_testkit::contestant::peers_folder;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::client::{self, Address, Answer};
use crate::server::{Server, until};
use crate::{holds, told};

pub const ALL: &[(&str, Check)] = &[
    ("a_server_inside_is_visited_with_its_token_and_only_so", visited),
    ("what_is_ours_stays_outside_and_what_a_guest_says_is_its_own", apart),
    ("bodies_of_any_size_stream_both_ways", streams),
    ("a_websocket_goes_through_and_is_cut_when_the_port_is_closed", websocket),
    ("no_answer_of_a_guest_harms_whoever_visits", hostile),
    ("a_port_is_its_tenants_own_and_ends_with_the_sandbox", ends),
    ("what_a_sandbox_had_to_do_with_the_network_is_listed", network),
];

const PORT: u16 = 8123;

struct Stage {
    server: Server,
    sandbox: String,
    run: String,
    host: String,
    token: String,
}

impl Stage {
    fn new(who: Who) -> Result<Stage, String> {
        let server = Server::start(who)?;
        let made = json!({"name": "served", "files": {"inside.py": include_str!("inside.py")}});
        let made = server.post("/v1/sandboxes", &made)?.expect(201)?.json()?;
        let sandbox = made["id"].as_str().ok_or("an id")?.to_owned();
        let mut stage = Stage { server, sandbox, run: String::new(), host: String::new(), token: String::new() };
        stage.open()?;
        // Not yet.
        let early = stage.visit("GET", "/", &[], b"")?.expect(502)?;
        holds(early.text().contains("nobody-listens"), early.text())?;
        stage.begin()?;
        Ok(stage)
    }

    fn begin(&mut self) -> Result<(), String> {
        let body =
            json!({"command": ["python3", "inside.py", PORT.to_string()], "background": true, "interactive": true});
        let begun = self.server.post(&self.path("exec"), &body)?.expect(202)?.json()?;
        self.run = begun["id"].as_str().ok_or("an id")?.to_owned();
        self.says("listens")
    }

    /// Waits until it said so.
    fn says(&self, what: &str) -> Result<(), String> {
        let mut stream =
            self.server.send(&self.server.token, "GET", &format!("/v1/runs/{}/events", self.run), None, &[])?;
        let mut heard = String::new();
        let mut buffer = [0; 4096];
        while !heard.contains(what) {
            match told(stream.read(&mut buffer))? {
                0 => return Err(format!("it ended: {heard}")),
                count => heard.push_str(&String::from_utf8_lossy(&buffer[..count])),
            }
        }
        Ok(())
    }

    fn open(&mut self) -> Result<Value, String> {
        let opened = self.server.post(&self.path("ports"), &json!({"port": PORT}))?.expect(201)?.json()?;
        let text = |name: &str| opened[name].as_str().map(str::to_owned).ok_or(opened.to_string());
        (self.host, self.token) = (text("host")?, text("token")?);
        holds(text("url")? == format!("http://{}/", self.host), &opened)?;
        Ok(opened)
    }

    fn path(&self, what: &str) -> String {
        format!("/v1/sandboxes/{}/{what}", self.sandbox)
    }

    /// With the token, and these besides.
    fn visit(&self, method: &str, path: &str, more: &[(&str, &str)], body: &[u8]) -> Result<Answer, String> {
        let mut headers = vec![("Belljar-Port-Token", self.token.as_str())];
        headers.extend(more);
        self.plain(method, path, &headers, body)
    }

    fn plain(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer, String> {
        let mut all = vec![("Host", self.host.as_str())];
        all.extend(headers);
        client::receive(client::send(&self.server.address, method, path, &all, body)?)
    }

    fn port(&self) -> Result<u16, String> {
        match self.server.address {
            Address::Port(port) => Ok(port),
            Address::Sealed(_) | Address::Socket(_) => Err("it is on loopback".to_owned()),
        }
    }

    fn close(&self) -> Result<(), String> {
        let path = self.path(&format!("ports/{PORT}"));
        self.server.as_(&self.server.token, "DELETE", &path, None, &[])?.expect(200).map(drop)
    }
}

/// What the server saw of a request.
fn seen(answer: &Answer, name: &str) -> Result<Vec<String>, String> {
    let seen = answer.json()?;
    let all = seen["headers"].as_array().cloned().unwrap_or_default();
    let its = all.iter().filter(|pair| pair[0].as_str().is_some_and(|known| known.eq_ignore_ascii_case(name)));
    Ok(its.filter_map(|pair| pair[1].as_str().map(str::to_owned)).collect())
}

fn visited(who: Who) -> Result<(), String> {
    let mut stage = Stage::new(who)?;
    let answer = stage.visit("POST", "/a%2Fb//c?x=1&y=%20", &[("X-Own", "1")], b"body")?.expect(200)?;
    let saw = answer.json()?;
    holds(saw["method"] == "POST" && saw["path"] == "/a%2Fb//c?x=1&y=%20" && saw["length"] == 4, &saw)?;
    // All of it is the server's, whatever the API has there.
    holds(
        stage.visit("GET", "/v1/health", &[], b"")?.expect(200)?.json()?["path"] == "/v1/health",
        "it is the guest's",
    )?;
    let bearer = format!("Bearer {}", stage.server.token);
    for headers in [
        &[][..],
        &[("Belljar-Port-Token", "bp_wrong")],
        &[("Authorization", bearer.as_str())],
        &[("Cookie", "belljar_port=bp_wrong")],
    ] {
        let refused = stage.plain("GET", "/", headers, b"")?.expect(401)?;
        holds(!refused.text().contains("X-Own"), "nothing of it was let through")?;
    }
    // A browser comes once with the token in the address.
    let query = format!("/start?a=1&belljar_token={}&b=2", stage.token);
    let sent = stage.plain("GET", &query, &[], b"")?.expect(303)?;
    holds(sent.header("location") == Some("/start?a=1&b=2"), format!("{sent:?}"))?;
    let cookie = sent.header("set-cookie").ok_or("a cookie")?.to_owned();
    holds(
        ["HttpOnly", "SameSite=Lax", "Path=/"].iter().all(|part| cookie.contains(part)) && !cookie.contains("Domain"),
        &cookie,
    )?;
    let cookie = cookie.split(';').next().ok_or("a cookie")?.to_owned();
    stage.plain("GET", "/", &[("Cookie", cookie.as_str())], b"")?.expect(200)?;
    stage.plain("POST", &query, &[], b"")?.expect(401)?;
    stage.plain("GET", "/?belljar_token=bp_wrong", &[], b"")?.expect(401)?;
    // Brought along by a page of another origin, it is worth nothing; by its own, it is.
    let own = format!("http://{}", stage.host);
    stage.plain("POST", "/", &[("Cookie", cookie.as_str()), ("Origin", own.as_str())], b"")?.expect(200)?;
    for origin in ["http://evil.example", "null", "http://localhost"] {
        stage.plain("POST", "/", &[("Cookie", cookie.as_str()), ("Origin", origin)], b"")?.expect(403)?;
    }
    // By a name that nobody was told there is nobody.
    for host in [format!("p{}.localhost", "0".repeat(32)), format!("x{}", stage.host)] {
        let status = client::receive(client::send(
            &stage.server.address,
            "GET",
            "/",
            &[("Host", host.as_str()), ("Belljar-Port-Token", stage.token.as_str())],
            b"",
        )?)?
        .status;
        holds(status == 404 || status == 421, format!("{host} {status}"))?;
    }
    // Opened again it has another token, and another name.
    let (host, token) = (stage.host.clone(), stage.token.clone());
    stage.open()?;
    holds(host != stage.host && token != stage.token, "another")?;
    stage.visit("GET", "/", &[], b"")?.expect(200)?;
    stage.plain("GET", "/", &[("Belljar-Port-Token", token.as_str())], b"")?.expect(401)?;
    let old = std::mem::replace(&mut stage.host, host);
    stage.plain("GET", "/", &[("Belljar-Port-Token", token.as_str())], b"")?.expect(404)?;
    stage.host = old;
    let listed = stage.server.get(&stage.path("ports"))?.expect(200)?;
    holds(
        listed.json()?["items"].as_array().is_some_and(|all| all.len() == 1) && !listed.text().contains(&stage.token),
        listed.text(),
    )?;
    holds(!stage.server.log().contains("bp_"), "no log has the token")
}

fn apart(who: Who) -> Result<(), String> {
    let stage = Stage::new(who)?;
    let bearer = format!("Bearer {}", stage.server.token);
    let cookies = format!("a=1; belljar_port={}; b=2", stage.token);
    let own = format!("http://{}", stage.host);
    let answer = stage.visit(
        "GET",
        "/",
        &[
            ("Authorization", bearer.as_str()),
            ("Cookie", cookies.as_str()),
            ("X-Forwarded-For", "1.2.3.4"),
            ("X-Hop", "1"),
            ("Connection", "X-Hop"),
            ("Origin", own.as_str()),
            ("Upgrade", "h2c"),
            ("TE", "trailers"),
        ],
        b"",
    )?;
    let answer = answer.expect(200)?;
    let text = answer.text();
    for ours in [stage.server.token.as_str(), &stage.token, "1.2.3.4", "belljar", "h2c", "trailers"] {
        holds(!text.contains(ours), format!("it saw `{ours}`: {text}"))?;
    }
    holds(seen(&answer, "x-hop")?.is_empty() && seen(&answer, "cookie")? == ["a=1; b=2"], &text)?;
    holds(
        seen(&answer, "host")? == [format!("localhost:{PORT}")]
            && seen(&answer, "origin")? == [format!("http://localhost:{PORT}")],
        &text,
    )?;
    holds(seen(&answer, "x-forwarded-host")? == [stage.host.clone()], &text)?;
    // The positive control: what is the guest's own is let through.
    let answer = stage.visit("GET", "/", &[("Authorization", "Basic dTpw"), ("Cookie", "own=2")], b"")?.expect(200)?;
    holds(seen(&answer, "authorization")? == ["Basic dTpw"] && seen(&answer, "cookie")? == ["own=2"], answer.text())?;
    // And what it says is for its own host alone.
    let said = stage.visit("GET", "/cookies", &[], b"")?.expect(200)?;
    let set: Vec<&str> = said
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"))
        .map(|(_, value)| value.as_str())
        .collect();
    holds(set == ["own=1; Path=/"], format!("{said:?}"))?;
    holds(said.header("strict-transport-security").is_none() && said.header("x-hop").is_none(), format!("{said:?}"))?;
    // A page that it serves is of another origin than the API, which answers none of those.
    let api = |origin: &str| stage.server.as_(&stage.server.token, "GET", "/v1/sandboxes", None, &[("Origin", origin)]);
    api(&own)?.expect(403)?;
    api("http://localhost")?.expect(200)?;
    // Nor has the API anything under its own name that a guest could say something with.
    stage.server.get(&stage.path(&format!("ports/{PORT}/")))?.expect(404)?;
    stage.server.get(&stage.path(&format!("ports/{PORT}/cookies")))?.expect(404).map(drop)
}

fn streams(who: Who) -> Result<(), String> {
    let stage = Stage::new(who)?;
    let body = vec![b'z'; 20_000_000];
    let file = stage.server.desk.home.join("large");
    told(std::fs::write(&file, &body))?;
    let token = format!("Belljar-Port-Token: {}", stage.token);
    let curl = |words: &[&str]| -> Result<Vec<u8>, String> {
        let output =
            told(Command::new("curl").args(["-sS", "--fail", "--noproxy", "*", "-H", &token]).args(words).output())?;
        holds(output.status.success(), String::from_utf8_lossy(&output.stderr))?;
        Ok(output.stdout)
    };
    let url = |path: &str| format!("http://{}{path}", stage.host);
    for more in [&[][..], &["-H", "Transfer-Encoding: chunked"]] {
        let (name, up) = (format!("@{}", file.display()), url("/up"));
        let words = [&["--data-binary", name.as_str()], more, &[up.as_str()]].concat();
        let saw: Value = told(serde_json::from_slice(&curl(&words)?))?;
        holds(saw["length"] == 20_000_000, &saw)?;
    }
    let read = curl(&[&url("/large")])?;
    holds(read.len() == 20_000_000 && read.iter().all(|byte| *byte == b'y'), read.len())?;
    let head = curl(&["-I", &url("/large")])?;
    holds(
        String::from_utf8_lossy(&head).to_lowercase().contains("content-length: 20000000"),
        String::from_utf8_lossy(&head),
    )?;
    // What is said is there before the rest is.
    let mut stream = client::send(
        &stage.server.address,
        "GET",
        "/stream",
        &[("Host", &stage.host), ("Belljar-Port-Token", &stage.token)],
        b"",
    )?;
    let mut heard = Vec::new();
    let mut buffer = [0; 1024];
    while !heard.windows(3).any(|part| part == b"one") {
        let count = told(stream.read(&mut buffer))?;
        holds(count > 0, "it goes on")?;
        heard.extend_from_slice(&buffer[..count]);
    }
    let bearer = format!("Bearer {}", stage.server.token);
    let path = format!("/v1/runs/{}/stdin", stage.run);
    client::receive(client::send(
        &stage.server.address,
        "POST",
        &path,
        &[("Authorization", bearer.as_str())],
        b"go\n",
    )?)?
    .expect(202)?;
    told(stream.read_to_end(&mut heard))?;
    holds(heard.windows(3).any(|part| part == b"two"), String::from_utf8_lossy(&heard))
}

fn websocket(who: Who) -> Result<(), String> {
    let python = peers_folder().join("clients/bin/python");
    let stage = Stage::new(who)?;
    let what = json!({"port": stage.port()?, "host": stage.host, "token": stage.token}).to_string();
    let mut child = told(
        Command::new(python)
            .args(["-c", include_str!("visitor.py"), &what])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn(),
    )?;
    let mut said = BufReader::new(child.stdout.take().ok_or("it says something")?);
    let mut line = String::new();
    told(said.read_line(&mut line))?;
    if line.trim() == "stays" {
        stage.close()?;
        line.clear();
        told(said.read_line(&mut line))?;
    }
    let mut why = String::new();
    if let Some(mut error) = child.stderr.take() {
        told(error.read_to_string(&mut why))?;
    }
    told(child.wait())?;
    holds(line.trim() == "cut", format!("{line}{why}"))
}

fn hostile(who: Who) -> Result<(), String> {
    let stage = Stage::new(who)?;
    for path in ["/garbage", "/unasked", "/endless"] {
        let answer = stage.visit("GET", path, &[], b"")?;
        holds(answer.status == 502 && !answer.text().contains("smuggled"), format!("{path}: {answer:?}"))?;
    }
    for _ in 0..3 {
        let answer = stage.visit("GET", "/two", &[], b"")?.expect(200)?;
        holds(answer.text() == "ok", answer.text())?;
    }
    // What is smuggled with a request is a part of it, or none.
    let (host, token) = (&stage.host, &stage.token);
    for raw in [
        format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nBelljar-Port-Token: {token}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: {host}\r\n\r\n"
        ),
        format!(
            "GET / HTTP/1.1\r\nHost: {host}\r\nHost: localhost\r\nBelljar-Port-Token: {token}\r\nConnection: close\r\n\r\n"
        ),
        format!(
            "GET http://localhost/v1/health HTTP/1.1\r\nHost: {host}\r\nBelljar-Port-Token: {token}\r\nConnection: close\r\n\r\n"
        ),
        format!(
            "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: {host}\r\nBelljar-Port-Token: {token}\r\nConnection: close\r\n\r\n"
        ),
        format!("TRACE / HTTP/1.1\r\nHost: {host}\r\nBelljar-Port-Token: {token}\r\nConnection: close\r\n\r\n"),
    ] {
        let mut stream = client::connect(&stage.server.address)?;
        told(std::io::Write::write_all(&mut stream, raw.as_bytes()))?;
        let mut answer = [0; 4096];
        let count = told(stream.read(&mut answer))?;
        let text = String::from_utf8_lossy(&answer[..count]).into_owned();
        holds(!text.contains("\"status\":\"ok\"") && !text.contains("\"path\": \"/smuggled\""), &text)?;
    }
    stage.visit("GET", "/", &[], b"")?.expect(200).map(drop)
}

fn ends(who: Who) -> Result<(), String> {
    let mut stage = Stage::new(who)?;
    let server = &stage.server;
    let (other, reads) = (server.make_token(&["--tenant", "other"])?, server.make_token(&["--scopes", "read"])?);
    let (ports, one) = (stage.path("ports"), stage.path(&format!("ports/{PORT}")));
    server.as_(&other, "POST", &ports, Some(&json!({"port": PORT})), &[])?.expect(404)?;
    server.as_(&other, "GET", &ports, None, &[])?.expect(404)?;
    server.as_(&other, "DELETE", &one, None, &[])?.expect(404)?;
    server.as_(&reads, "POST", &ports, Some(&json!({"port": PORT})), &[])?.expect(403)?;
    server.as_(&reads, "DELETE", &one, None, &[])?.expect(403)?;
    for wrong in [json!({"port": 0}), json!({"port": 70000}), json!({}), json!({"port": 1, "more": 1})] {
        server.post(&ports, &wrong)?.expect(422)?;
    }
    // Of another sandbox the same token is none.
    let second = server.post("/v1/sandboxes", &json!({}))?.expect(201)?.json()?;
    let id = second["id"].as_str().ok_or("an id")?;
    let its = server.post(&format!("/v1/sandboxes/{id}/ports"), &json!({"port": PORT}))?.expect(201)?.json()?;
    let host = its["host"].as_str().ok_or("a host")?;
    let answer = client::receive(client::send(
        &server.address,
        "GET",
        "/",
        &[("Host", host), ("Belljar-Port-Token", &stage.token)],
        b"",
    )?)?;
    answer.expect(401)?;
    server.get("/v1/sandboxes/served/ports")?.expect(200)?;
    stage.visit("GET", "/", &[], b"")?.expect(200)?;
    server.as_(&server.token, "DELETE", &format!("/v1/sandboxes/served/ports/{PORT}"), None, &[])?.expect(200)?;
    stage.visit("GET", "/", &[], b"")?.expect(404)?;
    stage.server.as_(&stage.server.token, "DELETE", &one, None, &[])?.expect(404)?;
    stage.open()?;
    stage.visit("GET", "/", &[], b"")?.expect(200)?;
    // It ends with the sandbox, and does not come back with it.
    stage.server.post(&stage.path("stop"), &json!({}))?.expect(200)?;
    until("nobody may come", || Ok(stage.visit("GET", "/", &[], b"")?.status == 404))?;
    stage.server.post(&ports, &json!({"port": PORT}))?.expect(409)?;
    stage.server.post(&stage.path("open"), &json!({}))?.expect(200)?;
    stage.visit("GET", "/", &[], b"")?.expect(404)?;
    stage.open()?;
    stage.begin()?;
    stage.visit("GET", "/", &[], b"")?.expect(200).map(drop)
}

fn network(who: Who) -> Result<(), String> {
    let stage = Stage::new(who)?;
    stage.visit("GET", "/large", &[], b"")?.expect(200)?;
    let path = stage.path("network");
    let items = || -> Result<Vec<Value>, String> {
        Ok(stage.server.get(&path)?.expect(200)?.json()?["items"].as_array().cloned().unwrap_or_default())
    };
    let of = |kind: &str| -> Result<Vec<Value>, String> {
        Ok(items()?.into_iter().filter(|one| one["type"] == kind).collect())
    };
    until("its end is on the record", || Ok(!of("network.closed")?.is_empty()))?;
    let closed = of("network.closed")?;
    holds(closed.iter().any(|one| one["data"]["bytes"][0].as_u64() > Some(20_000_000)), json!(closed))?;
    holds(of("network.visit")?.len() >= 2 && of("network.forward")?.len() == 1, json!(items()?))?;
    // Others' are not among them, and neither is anything else.
    let second = stage.server.post("/v1/sandboxes", &json!({}))?.expect(201)?.json()?;
    let id = second["id"].as_str().ok_or("an id")?;
    let none = stage.server.get(&format!("/v1/sandboxes/{id}/network"))?.expect(200)?.json()?;
    holds(none["items"].as_array().is_some_and(Vec::is_empty), &none)?;
    let other = stage.server.make_token(&["--tenant", "other"])?;
    stage.server.as_(&other, "GET", &path, None, &[])?.expect(404)?;
    let first = stage.server.get(&format!("{path}?limit=1&cursor=0"))?.expect(200)?.json()?;
    holds(first["items"].as_array().is_some_and(|all| all.len() == 1), &first)?;
    let next = first["next"].as_str().ok_or("a next")?;
    let rest = stage.server.get(&format!("{path}?cursor={next}"))?.expect(200)?.json()?;
    holds(rest["items"].as_array().map(Vec::len) == Some(items()?.len() - 1), &rest)?;
    holds(stage.server.get("/v1/ledger/verify")?.expect(200)?.json()?["sound"] == true, "the ledger is sound")
}
