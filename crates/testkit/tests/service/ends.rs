//! How things end: a client that goes away, a server that is told to end, and one that is killed.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::json;

use crate::client;
use crate::desk::Desk;
use crate::server::{Server, below, endless, mark, names, processes, until};
use crate::{holds, told};

pub const ALL: &[(&str, Check)] = &[
    ("whoever_goes_away_ends_what_runs_for_them", disconnect),
    ("a_run_can_be_ended_and_says_so", cancel),
    ("a_server_that_is_told_to_end_answers_first", graceful),
    ("a_server_that_is_killed_leaves_nothing_and_the_next_one_serves", killed),
    ("a_second_server_over_the_same_state_is_refused", second),
];

fn was_cancelled(server: &Server) -> Result<(), String> {
    until("the ledger says so", || {
        let ended = server.entries("run.ended")?;
        // By the signal, or by us if it takes no notice of that.
        Ok(ended.last().is_some_and(|entry| entry["data"]["signal"] == 15 || entry["data"]["overrun"] == "cancelled"))
    })
}

fn disconnect(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let mark = mark("disconnect");
    let stream = server.begin_endless(&mark, false)?;
    drop(stream);
    until("the sandbox is gone", || Ok(processes(&mark).is_empty()))?;
    was_cancelled(&server)?;
    until("its files are gone", || Ok(names(&server.work().join("local")).is_empty()))?;
    holds(server.get("/v1/ledger/verify")?.expect(200)?.json()?["sound"] == true, "the ledger is sound")
}

fn cancel(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let mark = mark("cancel");
    let sent = server.send(&server.token, "POST", "/v1/run", Some(&endless(&mark, true)), &[])?;
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    // Its id is in its first event; the whole of it is read below.
    let (ids, stream) = first_event(sent)?;
    server.as_(&server.token, "DELETE", &format!("/v1/runs/{ids}"), None, &[])?.expect(202)?;
    let rest = told(read_rest(stream))?;
    holds(rest.contains("event: result") && rest.contains("\"signal\":15"), rest)?;
    holds(processes(&mark).is_empty(), "nothing of it is left")?;
    let shown = server.get(&format!("/v1/runs/{ids}"))?.expect(200)?.json()?;
    holds(shown["cancelled"] == true, shown)?;
    was_cancelled(&server)
}

fn first_event(mut stream: Box<dyn client::Stream>) -> Result<(String, Box<dyn client::Stream>), String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"}\n") {
        told(stream.read_exact(&mut byte))?;
        text.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let id = text.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()).ok_or(format!("no id: {text}"))?;
    Ok((id.to_owned(), stream))
}

fn read_rest(mut stream: Box<dyn client::Stream>) -> std::io::Result<String> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest)?;
    Ok(String::from_utf8_lossy(&rest).into_owned())
}

fn graceful(who: Who) -> Result<(), String> {
    let mut server = Server::start(who)?;
    let mark = mark("graceful");
    let long = json!({"command": ["sh", "-c", "sleep 3; echo done", mark]});
    let waits = server.send(&server.token, "POST", "/v1/run", Some(&long), &[])?;
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    let all = below(server.pid());
    server.signal(libc::SIGTERM)?;
    let shown = client::receive(waits)?.expect(200)?.json()?;
    holds(shown["result"]["stdout"]["text"] == "done\n", shown)?;
    let status = server.wait()?;
    holds(status.code() == Some(0), format!("{status:?} {}", server.log()))?;
    until("all of it has ended", || Ok(all.iter().all(|process| !is_alive(*process))))
}

/// Of this kind: one that waits to be taken away by its parent is none.
fn is_alive(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn killed(who: Who) -> Result<(), String> {
    let mut server = Server::start(who)?;
    let mark = mark("killed");
    let _stream = server.begin_endless(&mark, true)?;
    let all = below(server.pid());
    holds(all.len() > 3, "there are a launcher, carriers and a sandbox")?;
    server.signal(libc::SIGKILL)?;
    server.wait()?;
    until("nothing is left", || Ok(processes(&mark).is_empty() && all.iter().all(|process| !is_alive(*process))))?;
    let verified = server.desk.say(&["ledger", "verify"])?;
    holds(verified.code == Some(0), format!("{verified:?}"))?;
    server.again()?;
    was_cancelled(&server)?;
    holds(names(&server.work().join("local")).is_empty(), "files that nobody needs are gone")?;
    let running = server.get("/v1/sandboxes")?.expect(200)?.json()?;
    let none = running["items"].as_array().is_some_and(|items| items.iter().all(|item| item["running"] == false));
    holds(none, running)?;
    server.post("/v1/run", &json!({"command": ["true"]}))?.expect(200).map(drop)
}

fn second(who: Who) -> Result<(), String> {
    let server = Server::with(Desk::of(who)?, &[])?;
    server.desk.expect(&["serve", "--listen", "127.0.0.1:0"], 125, "another `belljar serve` uses").map(drop)
}
