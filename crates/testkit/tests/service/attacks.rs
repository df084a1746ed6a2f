//! What clients send that mean no good.

use std::io::{Read, Write};
use std::time::Instant;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::json;

use crate::client::{self, Address};
use crate::desk::Desk;
use crate::server::{Server, mark, names, until};
use crate::{holds, told};

pub const ALL: &[(&str, Check)] = &[
    ("bodies_and_headers_have_an_end", sizes),
    ("whoever_does_not_say_what_it_wants_is_not_waited_for", slow),
    ("pages_of_others_are_not_answered", browsers),
    ("no_name_of_a_file_leads_out_of_the_workspace", traversal),
    ("who_asks_too_much_is_told_when_to_come_again", too_much),
    ("nothing_is_served_beyond_loopback_in_the_clear", beyond),
    ("nonsense_is_a_problem_and_never_an_error_of_ours", nonsense),
];

fn sizes(who: Who) -> Result<(), String> {
    let server = Server::with(Desk::of(who)?, &["--body", "64K"])?;
    let body = json!({"command": ["true"], "stdin": "x".repeat(70 << 10)});
    server.post("/v1/run", &body)?.expect(413)?;
    let keyed = [("Idempotency-Key", "large")];
    server.as_(&server.token, "POST", "/v1/run", Some(&body), &keyed)?.expect(413)?;
    let long = "x".repeat(200 << 10);
    let answer = server.as_(&server.token, "GET", "/v1/sandboxes", None, &[("X-Long", long.as_str())])?;
    holds(answer.status == 431, format!("{}", answer.status))?;
    // It still serves.
    server.get("/v1/sandboxes")?.expect(200).map(drop)
}

fn slow(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let begun = Instant::now();
    let mut slow: Vec<_> = (0..20).map(|_| client::connect(&server.address)).collect::<Result<_, _>>()?;
    for stream in &mut slow {
        told(stream.write_all(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Slow: "))?;
    }
    // Meanwhile others are served.
    server.get("/v1/sandboxes")?.expect(200)?;
    for mut stream in slow {
        // It ends, with a complaint or without.
        drop(stream.read_to_end(&mut Vec::new()));
    }
    holds(begun.elapsed().as_secs() < 100, "they were closed by the server, not by our own patience")
}

fn browsers(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let status = |headers: &[(&str, &str)]| -> Result<u16, String> {
        Ok(server.as_(&server.token, "GET", "/v1/sandboxes", None, headers)?.status)
    };
    holds(status(&[("Host", "evil.example")])? == 421, "a name that was bent to loopback")?;
    holds(status(&[("Host", "127.0.0.1.evil.example:7070")])? == 421, "one that looks like it")?;
    holds(status(&[("Origin", "https://evil.example")])? == 403, "a page of somebody else's")?;
    holds(status(&[("Origin", "null")])? == 403, "a page of nobody's")?;
    holds(status(&[("Host", "localhost"), ("Origin", "http://localhost")])? == 200, "the control: our own")?;
    let asked = server.as_(&server.token, "OPTIONS", "/v1/run", None, &[("Access-Control-Request-Method", "POST")])?;
    holds(asked.header("access-control-allow-origin").is_none(), "nobody is let in from elsewhere")?;
    let bearer = format!("Bearer {}", server.token);
    let plain = [("Authorization", bearer.as_str()), ("Content-Type", "text/plain")];
    let sent = client::send(&server.address, "POST", "/v1/run", &plain, b"{\"command\":[\"true\"]}")?;
    client::receive(sent)?.expect(415).map(drop)
}

fn traversal(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let before = names(&server.desk.project.state);
    for name in ["../out", "/etc/belljar-out", "a/../../out", "a/./b", "a//b", "", ".", "..", "a/", "a\u{0}b"] {
        let body = json!({"command": ["true"], "files": {name: "x"}});
        let problem = server.post("/v1/run", &body)?.expect(422)?.json()?;
        holds(problem["type"] == "urn:belljar:problem:wrong-request", &problem)?;
    }
    let clash = json!({"command": ["true"], "files": {"a": "x", "a/b": "y"}});
    server.post("/v1/run", &clash)?.expect(422)?;
    for name in ["..a", "%2e%2e/a", "..\\a", "-rf", "ä"] {
        server.post("/v1/run", &json!({"command": ["true"], "files": {name: "x"}}))?.expect(200)?;
    }
    let after = names(&server.desk.project.state).into_iter().filter(|name| !before.contains(name));
    let new: Vec<String> = after.filter(|name| !name.starts_with("belljar")).collect();
    holds(new.is_empty(), format!("{new:?}"))?;
    until("nothing is left of their files", || Ok(names(&server.work().join("local")).is_empty()))
}

fn too_much(who: Who) -> Result<(), String> {
    let server = Server::with(Desk::of(who)?, &["--jobs-per-tenant", "1", "--queue", "1"])?;
    let other = server.make_token(&["--tenant", "other"])?;
    let running = server.begin_endless(&mark("full"), true)?;
    let waits = server.send(&server.token, "POST", "/v1/run", Some(&json!({"command": ["true"]})), &[])?;
    let mut refused = None;
    crate::server::until("there is no place", || {
        let answer = server.get("/v1/sandboxes")?;
        let full = answer.status == 429;
        refused = Some(answer);
        Ok(full)
    })?;
    let refused = refused.ok_or("an answer")?;
    holds(refused.header("retry-after").is_some_and(|after| after.parse::<u64>().is_ok()), "it says when")?;
    // Another tenant does not notice.
    server.as_(&other, "GET", "/v1/sandboxes", None, &[])?.expect(200)?;
    drop((running, waits));
    drop(server);
    let server = Server::with(Desk::of(who)?, &["--rate", "1"])?;
    let all: Vec<u16> = (0..6).map(|_| Ok(server.get("/v1/sandboxes")?.status)).collect::<Result<_, String>>()?;
    holds(all[0] == 200 && all.contains(&429), format!("{all:?}"))
}

fn beyond(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.expect(&["serve", "--listen", "0.0.0.0:0"], 125, "beyond this machine's loopback")?;
    desk.expect(&["serve", "--listen", "[::]:0"], 125, "beyond this machine's loopback").map(drop)
}

fn nonsense(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    for body in [
        json!(null),
        json!([]),
        json!({}),
        json!({"command": []}),
        json!({"command": ["a\u{0}b"]}),
        json!({"command": ["true"], "language": "python"}),
        json!({"language": "klingon", "code": ""}),
        json!({"command": ["true"], "unknown": 1}),
        json!({"command": ["true"], "timeout": -1}),
        json!({"command": ["true"], "timeout": 1e300}),
        json!({"command": ["true"], "options": {"limits": {"cpus": 0}}}),
        json!({"command": ["true"], "options": {"environment": {"A=B": "c"}}}),
        json!({"command": ["true"], "options": {"backend": "none-such"}}),
        json!({"command": ["true"], "options": {"workspace": "relative"}}),
        json!({"command": ["true"], "files": {"a": {"base64": "!"}}}),
    ] {
        let answer = server.post("/v1/run", &body)?;
        holds((400..500).contains(&answer.status), format!("{body}: {} {}", answer.status, answer.text()))?;
        holds(answer.json()?["type"].is_string(), "a problem")?;
    }
    for path in ["/", "/v1/none", "/v1/sandboxes/%ff", "/v1/sandboxes/..%2f..", "/v1/runs/%00"] {
        server.get(path)?.expect(404)?;
    }
    for path in [
        "/v1/sandboxes?limit=0", "/v1/sandboxes?limit=x", "/v1/sandboxes?cursor=x", "/v1/ledger?cursor=-1",
        "/v1/ledger?what=1",
    ] {
        server.get(path)?.expect(422)?;
    }
    server.as_(&server.token, "PATCH", "/v1/run", None, &[])?.expect(405)?;
    let Address::Port(_) = server.address else { return Err("it is on loopback".to_owned()) };
    let mut raw = client::connect(&server.address)?;
    told(raw.write_all(b"\x16\x03\x01\x02\x00nonsense\r\n\r\n"))?;
    drop(raw.read_to_end(&mut Vec::new()));
    server.get("/v1/sandboxes")?.expect(200).map(drop)
}
