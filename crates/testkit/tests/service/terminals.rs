//! Terminals over WebSocket, with a client that others wrote.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use belljar_testkit::Who;
use belljar_testkit::contestant::peers_folder;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::client::Address;
use crate::desk::Desk;
use crate::server::{Server, mark, processes, until};
use crate::{holds, told};

pub const ALL: &[(&str, Check)] = &[
    ("a_terminal_is_typed_in_resized_left_and_come_back_to", a_shell),
    ("a_page_brings_its_token_as_a_protocol_and_pages_of_others_are_not_let_in", from_a_page),
    ("what_a_terminal_shows_passes_the_release_gate", without_secrets),
    ("who_looks_slowly_keeps_nobody_waiting", slow),
    ("a_terminal_hears_signals_ends_when_told_and_is_on_the_record", ends),
    ("terminals_are_counted_judged_and_their_tenants_own", counted),
    ("who_looks_keeps_the_sandbox_open_and_who_has_left_does_not", idle),
    ("a_token_that_is_revoked_looks_at_nothing_any_more", revoked),
    ("a_killed_server_leaves_no_terminal", killed),
];

fn program() -> PathBuf {
    peers_folder().join("clients/bin/python")
}

pub fn why_not() -> Option<String> {
    (!program().exists()).then(|| "the Python library `websockets` is not installed".to_owned())
}

fn port(server: &Server) -> Result<u16, String> {
    match server.address {
        Address::Port(port) => Ok(port),
        Address::Sealed(_) | Address::Socket(_) => Err("it is on loopback".to_owned()),
    }
}

struct Stage {
    server: Server,
    sandbox: String,
    path: String,
}

impl Stage {
    fn new(who: Who, request: &Value) -> Result<Stage, String> {
        Stage::over(Server::start(who)?, &json!({}), request)
    }

    fn over(server: Server, sandbox: &Value, request: &Value) -> Result<Stage, String> {
        let made = server.post("/v1/sandboxes", sandbox)?.expect(201)?.json()?;
        let sandbox = made["id"].as_str().ok_or("an id")?.to_owned();
        let begun = server.post(&format!("/v1/sandboxes/{sandbox}/terminals"), request)?.expect(201)?;
        let path = begun.header("location").ok_or("where it is")?.to_owned();
        Ok(Stage { server, sandbox, path })
    }

    fn command(&self, story: &str) -> Result<Command, String> {
        let told = json!({
            "port": port(&self.server)?, "token": self.server.token, "path": self.path,
            "reads": self.server.make_token(&["--scopes", "read"])?,
            "other": self.server.make_token(&["--tenant", "other", "--scopes", "run,read"])?,
        });
        let mut command = Command::new(program());
        command.args(["-c", include_str!("terminals.py"), story, &told.to_string()]);
        Ok(command)
    }

    fn plays(&self, story: &str) -> Result<(), String> {
        let output = told(self.command(story)?.output())?;
        holds(output.status.success(), String::from_utf8_lossy(&output.stderr))
    }

    /// Somebody who looks until it is over, and looks by now.
    fn looks(&self) -> Result<Looking, String> {
        let mut child = told(self.command("until_it_is_over")?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())?;
        let mut said = BufReader::new(child.stdout.take().ok_or("it says something")?);
        let mut line = String::new();
        told(said.read_line(&mut line))?;
        if line.trim() != "attached" {
            let mut why = String::new();
            if let Some(mut error) = child.stderr.take() {
                drop(error.read_to_string(&mut why));
            }
            drop(child.wait());
            return Err(why);
        }
        Ok(Looking { child, said })
    }

    fn shown(&self) -> Result<Value, String> {
        self.server.get(&self.path)?.expect(200)?.json()
    }
}

struct Looking {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Looking {
    /// The code that the connection was closed with, and what was said at last.
    fn end(mut self) -> Result<String, String> {
        let mut line = String::new();
        told(self.said.read_line(&mut line))?;
        told(self.child.wait())?;
        Ok(line)
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn a_shell(who: Who) -> Result<(), String> {
    let stage = Stage::new(who, &json!({}))?;
    stage.plays("a_shell")?;
    let shown = stage.shown()?;
    holds(shown["status"] == "done" && shown["result"]["exit"] == 7 && shown["viewers"] == 0, &shown)?;
    // Also in one that is set up for it.
    let closed = stage.server.post("/v1/sandboxes", &json!({"open": false}))?.expect(201)?.json()?;
    let id = closed["id"].as_str().ok_or("an id")?;
    let begun = stage.server.post(&format!("/v1/sandboxes/{id}/terminals"), &json!({}))?.expect(201)?;
    let path = begun.header("location").ok_or("where it is")?.to_owned();
    Stage { server: stage.server, sandbox: id.to_owned(), path }.plays("a_shell")
}

fn from_a_page(who: Who) -> Result<(), String> {
    let stage = Stage::new(who, &json!({"command": ["sh"], "columns": 80, "rows": 24}))?;
    stage.plays("from_a_page")?;
    // No log has the token.
    let log = stage.server.log();
    holds(!log.contains(&stage.server.token), log)?;
    // Not asked for as a WebSocket, there is nothing.
    let plain = stage.server.get(&format!("{}/attach", stage.path))?.expect(426)?;
    holds(plain.text().contains("urn:belljar:problem:websocket"), plain.text())?;
    // A token among protocols is none where there is no WebSocket.
    let protocols = format!("belljar.terminal, belljar.bearer.{}", stage.server.token);
    let answer = crate::client::receive(crate::client::send(
        &stage.server.address,
        "GET",
        "/v1/sandboxes",
        &[("Sec-WebSocket-Protocol", protocols.as_str())],
        b"",
    )?)?;
    holds(answer.status == 401, format!("{answer:?}"))
}

fn without_secrets(who: Who) -> Result<(), String> {
    Stage::new(who, &json!({"command": ["bash"]}))?.plays("told_without_secrets")
}

fn slow(who: Who) -> Result<(), String> {
    Stage::new(who, &json!({"command": ["sh"]}))?.plays("slow")
}

fn ends(who: Who) -> Result<(), String> {
    let line = "trap 'echo heard; exit 9' USR1; echo ready; while :; do sleep 0.05; done";
    let stage = Stage::new(who, &json!({"command": ["sh", "-c", line], "options": {"environment": {"A": "b"}}}))?;
    stage.plays("signalled")?;
    let Stage { server, sandbox, path } = stage;
    let mark = mark("terminal");
    let endless = json!({"command": ["sh", "-c", "trap '' TERM; echo $TERM; while :; do sleep 1; done", mark]});
    let begun = server.post(&format!("/v1/sandboxes/{sandbox}/terminals"), &endless)?.expect(201)?.json()?;
    let id = begun["id"].as_str().ok_or("an id")?.to_owned();
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    let all = server.get(&format!("/v1/sandboxes/{sandbox}/terminals"))?.expect(200)?.json()?;
    let ids: Vec<&str> = all["items"].as_array().ok_or("a list")?.iter().filter_map(|one| one["id"].as_str()).collect();
    holds(
        ids.len() == 2
            && ids.contains(&id.as_str())
            && path.ends_with(ids.iter().find(|one| **one != id).ok_or("two")?),
        &all,
    )?;
    let own = format!("/v1/sandboxes/{sandbox}/terminals/{id}");
    let sized = server.post(&format!("{own}/resize"), &json!({"columns": 132, "rows": 50}))?.expect(200)?.json()?;
    holds(sized["columns"] == 132 && sized["rows"] == 50, &sized)?;
    server.post(&format!("{own}/resize"), &json!({"columns": 0, "rows": 50}))?.expect(422)?;
    let ended = server.as_(&server.token, "DELETE", &own, None, &[])?.expect(200)?.json()?;
    holds(ended["status"] == "done" && ended["result"]["signal"] == 1, &ended)?;
    holds(processes(&mark).is_empty(), "nothing of it runs")?;
    server.get(&own)?.expect(404)?;
    // Asked, judged, opened, ended; with a digest of what it showed.
    let asked = server.entries("run.asked")?;
    holds(asked.iter().any(|entry| entry["data"]["command"].to_string().contains(&mark)), "it was asked for")?;
    let ends = server.entries("output.released")?;
    holds(ends.iter().any(|entry| entry["data"]["terminal"].is_object()), json!(ends))?;
    holds(server.get("/v1/ledger/verify")?.expect(200)?.json()?["sound"] == true, "the ledger is sound")
}

fn counted(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[[rule]]\nwhen = { program = \"factor\" }\nthen = \"deny\"\nwhy = \"no numbers\"\n")?;
    let server = Server::with(desk, &["--open-per-tenant", "2"])?;
    let stage = Stage::over(server, &json!({"name": "named"}), &json!({"command": ["sh"]}))?;
    let (server, sandbox) = (&stage.server, &stage.sandbox);
    let full = server.post("/v1/sandboxes/named/terminals", &json!({}))?.expect(429)?;
    holds(full.text().contains("too-many-open"), full.text())?;
    // By its name it is the same sandbox.
    let id = stage.path.rsplit('/').next().ok_or("an id")?;
    server.get(&format!("/v1/sandboxes/named/terminals/{id}"))?.expect(200)?;
    server.get(&format!("/v1/sandboxes/other/terminals/{id}"))?.expect(404)?;
    server.get("/v1/sandboxes/other/terminals")?.expect(404)?;
    let (other, reads) = (server.make_token(&["--tenant", "other"])?, server.make_token(&["--scopes", "read"])?);
    for (method, path) in [("GET", &stage.path), ("DELETE", &stage.path), ("POST", &format!("{}/resize", stage.path))] {
        let body = (method == "POST").then(|| json!({"columns": 1, "rows": 1}));
        let answer = server.as_(&other, method, path, body.as_ref(), &[])?.expect(404)?;
        let none = server.as_(&other, method, &path.replace(id, "none"), body.as_ref(), &[])?.expect(404)?;
        holds(answer.json()?["detail"] == none.json()?["detail"], "the same answer as for none")?;
    }
    server.as_(&reads, "DELETE", &stage.path, None, &[])?.expect(403)?;
    let terminals = format!("/v1/sandboxes/{sandbox}/terminals");
    server.as_(&reads, "POST", &terminals, Some(&json!({})), &[])?.expect(403)?;
    server.as_(&server.token, "DELETE", &stage.path, None, &[])?.expect(200)?;
    for wrong in [json!({"columns": 0}), json!({"rows": 5000}), json!({"what": 1}), json!({"command": ["a\0b"]})] {
        server.post(&terminals, &wrong)?.expect(422)?;
    }
    // A refusal is one, and nothing is left of it.
    let no = server.post(&terminals, &json!({"command": ["factor", "6"]}))?.expect(403)?.json()?;
    holds(no["type"] == "urn:belljar:problem:refused", &no)?;
    let left = server.get(&terminals)?.expect(200)?.json()?;
    holds(left["items"].as_array().is_some_and(Vec::is_empty), &left)?;
    server.post(&terminals, &json!({}))?.expect(201).map(drop)
}

fn idle(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let stage = Stage::over(server, &json!({"idle": 1}), &json!({"command": ["sh"]}))?;
    let looking = stage.looks()?;
    let path = format!("/v1/sandboxes/{}", stage.sandbox);
    // Longer than it may be idle.
    let busy = stage.server.post("/v1/run", &json!({"command": ["sleep", "2.5"]}))?.expect(200)?.json()?;
    holds(busy["result"]["exit"] == 0, &busy)?;
    holds(stage.server.get(&path)?.expect(200)?.json()?["open"] == true, "who looks keeps it open")?;
    drop(looking);
    until("it is stopped", || Ok(stage.server.get(&path)?.expect(200)?.json()?["running"] == false))?;
    until("its terminal has ended", || Ok(stage.shown()?["status"] == "done"))
}

fn revoked(who: Who) -> Result<(), String> {
    let mut stage = Stage::new(who, &json!({"command": ["sh"]}))?;
    let token = stage.server.make_token(&["--scopes", "run", "--name", "who-looks"])?;
    let own = std::mem::replace(&mut stage.server.token, token.clone());
    let looking = stage.looks()?;
    stage.server.token = own;
    let listed = stage.server.desk.project.done(["token", "list"])?;
    let listed = String::from_utf8_lossy(&listed.out).into_owned();
    let line = listed.lines().find(|line| line.ends_with("who-looks")).ok_or(listed.clone())?;
    let id = line.split_whitespace().next().ok_or("an id")?;
    stage.server.desk.project.done(["token", "revoke", id])?;
    let end = looking.end()?;
    holds(end.starts_with("1008 "), &end)?;
    holds(stage.shown()?["status"] == "running", "the terminal goes on without")
}

fn killed(who: Who) -> Result<(), String> {
    let mark = mark("terminal-killed");
    let mut stage =
        Stage::new(who, &json!({"command": ["sh", "-c", "trap '' HUP TERM; while :; do sleep 1; done", mark]}))?;
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    let looking = stage.looks()?;
    stage.server.signal(9)?;
    stage.server.wait()?;
    holds(looking.end()?.starts_with("None"), "nobody says good-bye")?;
    until("nothing of it is left", || Ok(processes(&mark).is_empty()))?;
    stage.server.again()?;
    stage.server.get(&stage.path)?.expect(404)?;
    // Told to end, it says so to whoever looks.
    let opened = stage.server.post(&format!("/v1/sandboxes/{}/open", stage.sandbox), &json!({}))?.expect(200)?;
    holds(opened.json()?["open"] == true, "it opens again")?;
    let begun =
        stage.server.post(&format!("/v1/sandboxes/{}/terminals", stage.sandbox), &json!({"command": ["sh"]}))?;
    stage.path = begun.expect(201)?.header("location").ok_or("where it is")?.to_owned();
    let looking = stage.looks()?;
    stage.server.signal(15)?;
    holds(stage.server.wait()?.success(), "it ends in order")?;
    let end = looking.end()?;
    holds(end.starts_with("1000 ") && end.contains("\"exit\""), end)
}
