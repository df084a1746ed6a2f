//! Tenants are places: what is another's is not there.

use std::fs;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::server::{Server, below};
use crate::{holds, told};

pub const ALL: &[(&str, Check)] = &[
    ("another_tenants_things_are_as_if_they_were_not_there", confusion),
    ("a_tenant_that_is_not_the_user_names_no_path_of_the_host", host_paths),
    ("a_token_does_what_its_scopes_say_and_no_more", scopes),
    ("an_agents_token_never_approves", agents),
    ("a_token_is_in_no_log_and_no_process", secrecy),
];

/// But for what tells one request from another.
fn plain(mut problem: Value) -> Value {
    problem["request_id"] = Value::Null;
    problem
}

fn confusion(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let (one, two) = (server.make_token(&["--tenant", "one"])?, server.make_token(&["--tenant", "two"])?);
    let made = server.as_(&one, "POST", "/v1/sandboxes", Some(&json!({"name": "mine", "files": {"a": "b"}})), &[])?;
    let id = made.expect(201)?.json()?["id"].as_str().ok_or("an id")?.to_owned();
    server.as_(&one, "GET", &format!("/v1/sandboxes/{id}"), None, &[])?.expect(200)?;
    let ran = server.as_(&one, "POST", "/v1/run", Some(&json!({"command": ["true"]})), &[])?.expect(200)?.json()?;
    let (run, recorded) = (ran["id"].as_str().unwrap_or_default(), ran["result"]["run"].as_str().unwrap_or_default());
    let nothing = "0".repeat(32);
    for token in [&two, &server.token] {
        for (theirs, none) in [
            (format!("/v1/sandboxes/{id}"), format!("/v1/sandboxes/{nothing}")),
            ("/v1/sandboxes/mine".to_owned(), "/v1/sandboxes/none".to_owned()),
            (format!("/v1/sandboxes/{id}/diff"), format!("/v1/sandboxes/{nothing}/diff")),
            (format!("/v1/runs/{run}"), format!("/v1/runs/{nothing}")),
            (format!("/v1/runs/{run}/events"), format!("/v1/runs/{nothing}/events")),
            (format!("/v1/ledger/receipts/{recorded}"), format!("/v1/ledger/receipts/{nothing}")),
        ] {
            let theirs = server.as_(token, "GET", &theirs, None, &[])?.expect(404)?.json()?;
            let none = server.as_(token, "GET", &none, None, &[])?.expect(404)?.json()?;
            holds(plain(theirs.clone()) == plain(none), theirs)?;
        }
        let exec = json!({"command": ["true"]});
        server.as_(token, "POST", &format!("/v1/sandboxes/{id}/exec"), Some(&exec), &[])?.expect(404)?;
        server.as_(token, "DELETE", &format!("/v1/sandboxes/{id}"), None, &[])?.expect(404)?;
        let listed = server.as_(token, "GET", "/v1/sandboxes", None, &[])?.expect(200)?.text();
        holds(!listed.contains(&id), "it is in nobody else's list")?;
        let log = server.as_(token, "GET", "/v1/ledger?limit=1000", None, &[])?.expect(200)?.text();
        holds(!log.contains(recorded), "nor in their ledger")?;
    }
    let verified = server.as_(&one, "GET", "/v1/ledger/verify", None, &[])?.expect(200)?.json()?;
    holds(verified["sound"] == true, verified)
}

fn host_paths(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let tenant = server.make_token(&["--tenant", "one"])?;
    let place = server.desk.project.work.display().to_string();
    for options in [
        json!({"workspace": place}),
        json!({"read": [place]}),
        json!({"write": [place]}),
        json!({"hide": [place]}),
        json!({"workspace_mode": "direct"}),
        json!({"directory": "../.."}),
        json!({"directory": "/"}),
    ] {
        let body = json!({"command": ["true"], "options": options});
        server.as_(&tenant, "POST", "/v1/run", Some(&body), &[])?.expect(422)?;
    }
    // The control: the user's own tenant works on the user's own folder.
    server.desk.put("here.txt", "hello")?;
    let body = json!({"command": ["cat", "here.txt"], "options": {"workspace": place}});
    let shown = server.post("/v1/run", &body)?.expect(200)?.json()?;
    holds(shown["result"]["stdout"]["text"] == "hello", &shown)?;
    // And a tenant's sandbox sees neither tokens nor what others keep.
    let look = json!({"command": ["sh", "-c", format!("ls -R {0} 2>/dev/null | grep -c tokens; true", server.desk.home.display())]});
    let seen = server.as_(&tenant, "POST", "/v1/run", Some(&look), &[])?.expect(200)?.json()?;
    holds(seen["result"]["stdout"]["text"] == "0\n", seen)
}

fn scopes(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let run = json!({"command": ["true"]});
    let reads = server.make_token(&["--scopes", "read"])?;
    let refused = server.as_(&reads, "POST", "/v1/run", Some(&run), &[])?.expect(403)?.json()?;
    holds(refused["rule"] == "token.run", refused)?;
    server.as_(&reads, "GET", "/v1/sandboxes", None, &[])?.expect(200)?;
    let runs = server.make_token(&["--scopes", "run"])?;
    server.as_(&runs, "POST", "/v1/run", Some(&run), &[])?.expect(200)?;
    for (method, path) in
        [("GET", "/v1/ledger"), ("GET", "/v1/approvals"), ("GET", "/v1/metrics"), ("DELETE", "/v1/sandboxes/x")]
    {
        server.as_(&runs, method, path, None, &[])?.expect(403)?;
    }
    server.as_(&runs, "PUT", "/v1/secrets/A", Some(&json!({"value": "something-long"})), &[])?.expect(403)?;
    let listed = String::from_utf8_lossy(&server.desk.project.done(["token", "list"])?.out).into_owned();
    let line = listed.lines().find(|line| line.ends_with("  run  ")).ok_or(format!("it is listed: {listed}"))?;
    server.desk.project.done(["token", "revoke", line.split(' ').next().unwrap_or_default()])?;
    server.as_(&runs, "POST", "/v1/run", Some(&run), &[])?.expect(401)?;
    server.as_("bj_nothing", "GET", "/v1/sandboxes", None, &[])?.expect(401)?;
    server.as_("", "GET", "/v1/sandboxes", None, &[])?.expect(401).map(drop)
}

fn agents(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    server.desk.expect(
        &["token", "create", "--agent", "coder", "--scopes", "run,approve"],
        125,
        "never on an agent's token",
    )?;
    let token = server.make_token(&["--agent", "coder", "--scopes", "run,read"])?;
    // Even if somebody writes it into the file.
    let path = server.desk.project.state.join("belljar-service/tokens.json");
    let mut kept: Value = told(serde_json::from_str(&told(fs::read_to_string(&path))?))?;
    for one in kept["tokens"].as_array_mut().into_iter().flatten().filter(|one| one["agent"] == "coder") {
        one["scopes"] = json!(["run", "read", "approve", "files", "admin"]);
    }
    told(fs::write(&path, kept.to_string()))?;
    server.as_(&token, "GET", "/v1/metrics", None, &[])?.expect(200)?;
    server.as_(&token, "GET", "/v1/approvals", None, &[])?.expect(403)?;
    // And an agent makes no tokens.
    let mut command = server.desk.project.command(["token", "create", "--scopes", "approve"]);
    crate::desk::expected(command.env("CLAUDECODE", "1"), 125, "may not make or revoke tokens").map(drop)
}

fn secrecy(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let token = server.make_token(&["--scopes", "run,read,admin"])?;
    server.as_(&token, "GET", "/v1/sandboxes", None, &[])?.expect(200)?;
    server.as_(&token, "POST", "/v1/run", Some(&json!({"command": 3})), &[])?.expect(422)?;
    server.as_(&format!("{token}x"), "GET", "/v1/sandboxes", None, &[])?.expect(401)?;
    let inside = server.as_(&token, "POST", "/v1/run", Some(&json!({"command": ["env"]})), &[])?.expect(200)?.text();
    let secret = |token: &str| token.trim_start_matches("bj_").to_owned();
    for secret in [secret(&token), secret(&server.token)] {
        holds(!server.log().contains(&secret), "not in the log")?;
        holds(!inside.contains(&secret), "not in a sandbox")?;
        for process in below(server.pid()).into_iter().chain([server.pid()]) {
            for file in ["cmdline", "environ"] {
                let bytes = fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
                holds(
                    !bytes.windows(secret.len()).any(|part| part == secret.as_bytes()),
                    format!("{file} of {process}"),
                )?;
            }
        }
    }
    Ok(())
}
