//! Sandboxes that stay open, and runs that go on in the background.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::client::{self, events};
use crate::desk::Desk;
use crate::holds;
use crate::server::{Server, below, mark, processes, until};

pub const ALL: &[(&str, Check)] = &[
    ("a_sandbox_is_open_from_the_start_and_what_is_started_in_it_goes_on", stays),
    ("what_runs_in_the_background_is_fed_and_signalled_and_needs_nobody", background),
    ("a_sandbox_that_nobody_uses_or_whose_time_is_over_is_stopped", expires),
    ("a_paused_sandbox_stands_still_and_its_time_too", paused),
    ("a_killed_server_leaves_no_paused_sandbox_behind", killed_while_paused),
    ("open_sandboxes_are_counted_and_are_no_jobs", counted),
    ("what_needs_a_sandbox_at_rest_is_refused_while_it_is_open", at_rest),
    ("a_killed_server_leaves_no_open_sandbox_behind", killed),
    ("a_server_that_ends_stops_what_is_open", ended),
];

fn create(server: &Server, body: &Value) -> Result<String, String> {
    let made = server.post("/v1/sandboxes", body)?.expect(201)?.json()?;
    Ok(made["id"].as_str().ok_or("an id")?.to_owned())
}

fn shown(server: &Server, id: &str) -> Result<Value, String> {
    server.get(&format!("/v1/sandboxes/{id}"))?.expect(200)?.json()
}

fn exec(server: &Server, id: &str, line: &str) -> Result<Value, String> {
    let body = json!({"command": ["sh", "-c", line]});
    Ok(server.post(&format!("/v1/sandboxes/{id}/exec"), &body)?.expect(200)?.json()?["result"].clone())
}

fn begin(server: &Server, id: &str, words: &[&str], interactive: bool) -> Result<String, String> {
    let body = json!({"command": words, "background": true, "interactive": interactive});
    let begun = server.post(&format!("/v1/sandboxes/{id}/exec"), &body)?.expect(202)?;
    holds(begun.header("location").is_some(), "where it is")?;
    Ok(begun.json()?["id"].as_str().ok_or("an id")?.to_owned())
}

fn run(server: &Server, id: &str) -> Result<Value, String> {
    server.get(&format!("/v1/runs/{id}"))?.expect(200)?.json()
}

fn stays(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let mark = mark("stays");
    let id = create(&server, &json!({"name": "work", "files": {"a": "x"}}))?;
    let now = shown(&server, &id)?;
    holds(now["open"] == true && now["running"] == true && now["stays"]["idle"] == 300.0, &now)?;
    // Left running by one command, and there for the next.
    exec(&server, &id, &format!("sh -c 'while :; do sleep 1; done' {mark} >/dev/null 2>&1 & echo $! > pid"))?;
    until("it goes on", || Ok(!processes(&mark).is_empty()))?;
    let seen = exec(&server, "work", "kill -0 $(cat pid) && echo there; echo more > b")?;
    holds(seen["stdout"]["text"] == "there\n", &seen)?;
    server.post(&format!("/v1/sandboxes/{id}/open"), &json!({}))?.expect(409)?;
    let stopped = server.post("/v1/sandboxes/work/stop", &json!({}))?.expect(200)?.json()?;
    holds(stopped["open"] == false && stopped["running"] == false, &stopped)?;
    until("it ended with its sandbox", || Ok(processes(&mark).is_empty()))?;
    server.post(&format!("/v1/sandboxes/{id}/stop"), &json!({}))?.expect(409)?;
    holds(exec(&server, &id, "cat b")?["stdout"]["text"] == "more\n", "what it made stays")?;
    // A program that was made inside is found there, whether it is open or not.
    exec(&server, &id, "mkdir bin; printf '#!/bin/sh\\necho made inside\\n' > bin/made; chmod +x bin/made")?;
    let made =
        server.post(&format!("/v1/sandboxes/{id}/exec"), &json!({"command": ["bin/made"]}))?.expect(200)?.json()?;
    holds(made["result"]["stdout"]["text"] == "made inside\n", &made)?;
    let opened = server.post(&format!("/v1/sandboxes/{id}/open"), &json!({"idle": 0}))?.expect(200)?.json()?;
    holds(opened["open"] == true && opened["stays"]["stops_in"].is_null(), &opened)?;
    holds(exec(&server, &id, "cat b")?["stdout"]["text"] == "more\n", "and is there again")?;
    server.as_(&server.token, "DELETE", &format!("/v1/sandboxes/{id}"), None, &[])?.expect(200)?;
    server.get(&format!("/v1/sandboxes/{id}"))?.expect(404)?;
    // One that is not to be open is not.
    let closed = create(&server, &json!({"open": false}))?;
    holds(shown(&server, &closed)?["open"] == false, "not open")?;
    server.post("/v1/sandboxes", &json!({"open": false, "idle": 5}))?.expect(422)?;
    holds(server.get("/v1/ledger/verify")?.expect(200)?.json()?["sound"] == true, "the ledger is sound")
}

fn background(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    for open in [true, false] {
        let id = create(&server, &json!({"open": open}))?;
        let reads = begin(&server, &id, &["sh", "-c", "while read line; do echo got $line; done; echo end"], true)?;
        let put = |run: &str, query: &str, text: &str| {
            let bearer = format!("Bearer {}", server.token);
            let path = format!("/v1/runs/{run}/stdin{query}");
            client::receive(client::send(
                &server.address,
                "POST",
                &path,
                &[("Authorization", bearer.as_str())],
                text.as_bytes(),
            )?)
        };
        put(&reads, "", "one\n")?.expect(202)?;
        put(&reads, "?end=true", "two\n")?.expect(202)?;
        until("it has ended", || Ok(run(&server, &reads)?["status"] == "done"))?;
        put(&reads, "", "three\n")?.expect(409)?;
        let told = server.get(&format!("/v1/runs/{reads}/events"))?.expect(200)?.text();
        let said: String = events(&told)?
            .iter()
            .filter(|event| event.kind == "stdout")
            .filter_map(|event| event.data["text"].as_str())
            .collect();
        holds(said == "got one\ngot two\nend\n", told)?;
        // Nobody listened, and nobody has to.
        let signalled = begin(
            &server,
            &id,
            &["sh", "-c", "trap 'echo heard; exit 7' USR1; echo ready; while :; do sleep 0.1; done"],
            false,
        )?;
        until("it is ready", || {
            let told = server.get(&format!("/v1/runs/{signalled}"))?.expect(200)?.json()?;
            holds(told["status"] == "running", &told)?;
            let mut stream = server.send(&server.token, "GET", &format!("/v1/runs/{signalled}/events"), None, &[])?;
            let mut heard = [0; 1024];
            let count = std::io::Read::read(&mut stream, &mut heard).map_err(|error| error.to_string())?;
            Ok(String::from_utf8_lossy(&heard[..count]).contains("ready"))
        })?;
        server.post(&format!("/v1/runs/{signalled}/signal"), &json!({"signal": "STOP"}))?.expect(422)?;
        server.post(&format!("/v1/runs/{signalled}/signal"), &json!({"signal": "USR1"}))?.expect(202)?;
        until("it heard", || Ok(run(&server, &signalled)?["status"] == "done"))?;
        let ended = run(&server, &signalled)?;
        holds(ended["result"]["exit"] == 7 && ended["cancelled"] == false, &ended)?;
        server.post(&format!("/v1/runs/{signalled}/signal"), &json!({"signal": "TERM"}))?.expect(409)?;
        let exec = format!("/v1/sandboxes/{id}/exec");
        server.post(&exec, &json!({"command": ["true"], "interactive": true}))?.expect(422)?;
        server.post(&exec, &json!({"command": ["true"], "background": true, "stream": true}))?.expect(422)?;
    }
    Ok(())
}

fn expires(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let mark = mark("expires");
    let timed = create(&server, &json!({"expires": 1, "files": {"a": "kept"}}))?;
    let run = begin(&server, &timed, &["sh", "-c", "while :; do sleep 1; done", &mark], false)?;
    let idle = create(&server, &json!({"idle": 1}))?;
    // In use for longer than it may be idle.
    let busy = exec(&server, &idle, "sleep 2.5; echo done")?;
    holds(busy["stdout"]["text"] == "done\n", &busy)?;
    for id in [&timed, &idle] {
        until("it is stopped", || Ok(shown(&server, id)?["running"] == false))?;
    }
    until("nothing of it runs", || Ok(processes(&mark).is_empty()))?;
    let ended = self::run(&server, &run)?;
    holds(ended["status"] == "done" && ended["result"]["signal"] == 15, &ended)?;
    let entries = server.entries("sandbox.expired")?;
    let why = |id: &str| {
        let entry = entries.iter().find(|entry| entry["data"]["sandbox"] == id);
        entry.and_then(|entry| entry["data"]["why"].as_str()).unwrap_or_default().to_owned()
    };
    holds(why(&timed).contains("opened for 1 seconds"), why(&timed))?;
    holds(why(&idle).contains("nobody used it for 1 seconds"), why(&idle))?;
    holds(exec(&server, &timed, "cat a")?["stdout"]["text"] == "kept", "its files stay")
}

/// Whether it must work here. Where it need not, it is refused with what to do about it, and nothing is pretended.
fn pauses(server: &Server, who: Who, id: &str) -> Result<bool, String> {
    let answer = server.post(&format!("/v1/sandboxes/{id}/pause"), &json!({}))?;
    let groups = std::path::Path::new("/sys/fs/cgroup/freezer").exists();
    match answer.status {
        200 => Ok(true),
        _ if who == Who::Root && groups => Err(answer.text()),
        _ => {
            let problem = answer.expect(422)?.json()?;
            holds(problem["hint"].as_str().is_some_and(|hint| hint.contains("control groups")), &problem)?;
            Ok(false)
        }
    }
}

fn paused(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = create(&server, &json!({}))?;
    let line = "i=0; while :; do i=$((i+1)); echo $i > count.new; mv count.new count; sleep 0.02; done";
    let body = json!({"command": ["sh", "-c", line], "background": true, "timeout": 6});
    let counting = server.post(&format!("/v1/sandboxes/{id}/exec"), &body)?.expect(202)?.json()?;
    let counting = counting["id"].as_str().ok_or("an id")?.to_owned();
    let count = || -> Result<u64, String> {
        let read = server.get(&format!("/v1/sandboxes/{id}/files?path=count"))?;
        Ok(read.text().trim().parse().unwrap_or_default())
    };
    until("it counts", || Ok(count()? > 3))?;
    if !pauses(&server, who, &id)? {
        let before = count()?;
        return until("it was not paused by half", || Ok(count()? > before));
    }
    let now = shown(&server, &id)?;
    holds(now["stays"]["paused"] == true && now["open"] == true, &now)?;
    let exec_path = format!("/v1/sandboxes/{id}/exec");
    for _ in 0..2 {
        let refused = server.post(&exec_path, &json!({"command": ["true"]}))?.expect(409)?.json()?;
        holds(refused["hint"].as_str().is_some_and(|hint| hint.contains("/resume")), &refused)?;
        server.get(&format!("/v1/sandboxes/{id}/files?path=count"))?.expect(409)?;
        // Longer than its time limit.
        std::thread::sleep(std::time::Duration::from_secs(4));
    }
    holds(run(&server, &counting)?["status"] == "running", "its time does not run")?;
    server.post(&format!("/v1/sandboxes/{id}/pause"), &json!({}))?.expect(200)?;
    server.post(&format!("/v1/sandboxes/{id}/resume"), &json!({}))?.expect(200)?;
    let before = count()?;
    until("it goes on", || Ok(count()? > before))?;
    until("its time is over at last", || Ok(run(&server, &counting)?["status"] == "done"))?;
    let ended = run(&server, &counting)?;
    holds(ended["result"]["overrun"] == "wall-time", &ended)?;
    // Stopped while it stands still, it ends as any other.
    server.post(&format!("/v1/sandboxes/{id}/pause"), &json!({}))?.expect(200)?;
    let stopped = server.post(&format!("/v1/sandboxes/{id}/stop"), &json!({}))?.expect(200)?.json()?;
    holds(stopped["running"] == false, &stopped)?;
    server.post(&format!("/v1/sandboxes/{id}/pause"), &json!({}))?.expect(409)?;
    holds(
        !server.entries("sandbox.paused")?.is_empty() && !server.entries("sandbox.resumed")?.is_empty(),
        "on the record",
    )
}

fn killed_while_paused(who: Who) -> Result<(), String> {
    let mut server = Server::start(who)?;
    let mark = mark("paused-killed");
    let id = create(&server, &json!({}))?;
    begin(&server, &id, &["sh", "-c", "while :; do sleep 1; done", &mark], false)?;
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    pauses(&server, who, &id)?;
    server.signal(9)?;
    server.wait()?;
    until("nothing of it is left", || Ok(processes(&mark).is_empty()))?;
    server.again()?;
    until("it is in a true state", || Ok(shown(&server, &id)?["running"] == false))
}

fn counted(who: Who) -> Result<(), String> {
    let flags = ["--open-per-tenant", "2", "--jobs", "1", "--jobs-per-tenant", "1"];
    let server = Server::with(Desk::of(who)?, &flags)?;
    let (one, two) = (create(&server, &json!({}))?, create(&server, &json!({}))?);
    let full = server.post("/v1/sandboxes", &json!({}))?.expect(429)?;
    holds(full.header("retry-after").is_some() && full.text().contains("too-many-open"), full.text())?;
    holds(
        server.get("/v1/sandboxes")?.expect(200)?.json()?["items"].as_array().is_some_and(|all| all.len() == 2),
        "two",
    )?;
    // They are open, and the one job that there may be is free.
    holds(exec(&server, &one, "echo here")?["stdout"]["text"] == "here\n", "it runs")?;
    let body = json!({"command": ["true"], "background": true});
    server.post(&format!("/v1/sandboxes/{one}/exec"), &body)?.expect(429)?;
    let other = server.make_token(&["--tenant", "other"])?;
    server.as_(&other, "POST", "/v1/sandboxes", Some(&json!({})), &[])?.expect(201)?;
    server.post(&format!("/v1/sandboxes/{two}/stop"), &json!({}))?.expect(200)?;
    create(&server, &json!({})).map(drop)
}

fn at_rest(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = create(&server, &json!({"files": {"a": "x"}}))?;
    exec(&server, &id, "echo changed > a")?;
    let refused = ["snapshots", "rollback", "apply", "discard"];
    for what in refused {
        let answer = server.post(&format!("/v1/sandboxes/{id}/{what}"), &json!({}))?.expect(409)?.json()?;
        holds(answer["hint"].as_str().is_some_and(|hint| hint.contains("/stop")), &answer)?;
    }
    server.post(&format!("/v1/sandboxes/{id}/stop"), &json!({}))?.expect(200)?;
    server.post(&format!("/v1/sandboxes/{id}/snapshots"), &json!({}))?.expect(201)?;
    let taken = server.post(&format!("/v1/sandboxes/{id}/apply"), &json!({}))?.expect(200)?.json()?;
    holds(taken["complete"] == true, taken)
}

fn killed(who: Who) -> Result<(), String> {
    let mut server = Server::start(who)?;
    let mark = mark("open-killed");
    let id = create(&server, &json!({"files": {"a": "x"}}))?;
    begin(&server, &id, &["sh", "-c", "echo made > b; while :; do sleep 1; done", &mark], false)?;
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    let all = below(server.pid());
    server.signal(9)?;
    server.wait()?;
    until("nothing of it is left", || {
        let alive = |process: &&i32| std::path::Path::new(&format!("/proc/{process}/cmdline")).exists();
        Ok(processes(&mark).is_empty() && all.iter().filter(alive).count() == 0)
    })?;
    server.again()?;
    let now = shown(&server, &id)?;
    holds(now["running"] == false && now["open"] == false, &now)?;
    holds(exec(&server, &id, "cat b")?["stdout"]["text"] == "made\n", "what it made is there")?;
    server.post(&format!("/v1/sandboxes/{id}/open"), &json!({}))?.expect(200)?;
    holds(exec(&server, &id, "cat b")?["stdout"]["text"] == "made\n", "and it opens again")?;
    holds(server.get("/v1/ledger/verify")?.expect(200)?.json()?["sound"] == true, "the ledger is sound")
}

fn ended(who: Who) -> Result<(), String> {
    let mut server = Server::start(who)?;
    let mark = mark("open-ended");
    let id = create(&server, &json!({}))?;
    begin(&server, &id, &["sh", "-c", "while :; do sleep 1; done", &mark], false)?;
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    server.signal(15)?;
    holds(server.wait()?.success(), "it ends in order")?;
    until("nothing of it is left", || Ok(processes(&mark).is_empty()))?;
    server.again()?;
    holds(shown(&server, &id)?["running"] == false, "in a true state")?;
    let recorded = server.entries("run.ended")?;
    holds(!recorded.is_empty(), "its end is on the record")
}
