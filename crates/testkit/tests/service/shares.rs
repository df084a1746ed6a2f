//! How much each may have: tenants, and agents of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::json;

use crate::client::{self, Answer};
use crate::desk::Desk;
use crate::holds;
use crate::server::{Server, endless, mark, processes, until};

pub const ALL: &[(&str, Check)] = &[
    ("an_agent_has_a_measure_of_its_own_within_its_tenants", agents),
    ("a_tenant_that_floods_keeps_nobody_else_waiting", fair),
];

fn is_told_when(answer: &Answer, kind: &str, of: &str) -> Result<(), String> {
    let problem = answer.json()?;
    let said = problem["type"] == format!("urn:belljar:problem:{kind}")
        && problem["detail"].as_str().is_some_and(|detail| detail.contains(of));
    holds(answer.status == 429 && said, &problem)?;
    holds(answer.header("retry-after").is_some_and(|after| after.parse::<u64>().is_ok()), "it says when")
}

fn agents(who: Who) -> Result<(), String> {
    let flags = ["--jobs-per-agent", "1", "--queue-per-agent", "1", "--open-per-agent", "1", "--warm", "0"];
    let server = Server::with(Desk::of(who)?, &flags)?;
    let make = |agent: &str| server.make_token(&["--agent", agent, "--scopes", "run,files,read"]);
    let (one, two) = (make("one")?, make("two")?);
    let mark = mark("agents");
    let running = server.send(&one, "POST", "/v1/run", Some(&endless(&mark, true)), &[])?;
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    let waits = server.send(&one, "POST", "/v1/run", Some(&json!({"command": ["true"]})), &[])?;
    let mut refused = None;
    until("there is no place for that agent", || {
        let answer = server.as_(&one, "GET", "/v1/sandboxes", None, &[])?;
        let full = answer.status == 429;
        refused = Some(answer);
        Ok(full)
    })?;
    is_told_when(&refused.ok_or("an answer")?, "full", "this agent")?;
    // Another agent of the same tenant, and the person, do not notice.
    server.as_(&two, "POST", "/v1/run", Some(&json!({"command": ["true"]})), &[])?.expect(200)?;
    server.get("/v1/sandboxes")?.expect(200)?;
    drop((running, waits));
    until("it has ended", || Ok(processes(&mark).is_empty()))?;
    // What stays.
    let open = |token: &str| server.as_(token, "POST", "/v1/sandboxes", Some(&json!({"open": true})), &[]);
    until("it has a place again", || Ok(server.as_(&one, "GET", "/v1/sandboxes", None, &[])?.status == 200))?;
    let first = open(&one)?.expect(201)?.json()?;
    is_told_when(&open(&one)?, "too-many-open", "this agent")?;
    open(&two)?.expect(201)?;
    open(&server.token)?.expect(201)?;
    let stop = format!("/v1/sandboxes/{}/stop", first["id"].as_str().unwrap_or_default());
    server.as_(&one, "POST", &stop, None, &[])?.expect(200)?;
    open(&one)?.expect(201)?;
    drop(server);
    // How often.
    let server = Server::with(Desk::of(who)?, &["--rate-per-agent", "1"])?;
    let one = server.make_token(&["--agent", "one", "--scopes", "read"])?;
    let asks = |token: &str| server.as_(token, "GET", "/v1/sandboxes", None, &[]);
    let all: Vec<Answer> = (0..6).map(|_| asks(&one)).collect::<Result<_, _>>()?;
    holds(all[0].status == 200, "the first is answered")?;
    is_told_when(all.iter().find(|answer| answer.status == 429).ok_or("one is too many")?, "too-often", "this agent")?;
    asks(&server.token)?.expect(200).map(drop)
}

/// Jobs of the greedy tenant that wait at any time; without turns, whoever comes waits for all of them.
const FLOOD: usize = 24;

fn fair(who: Who) -> Result<(), String> {
    // As many places as one tenant may have: whoever comes later finds all taken.
    let flags = ["--jobs", "2", "--jobs-per-tenant", "2", "--queue", "64", "--warm", "0", "--rate", "10000"];
    let server = Server::with(Desk::of(who)?, &flags)?;
    let (greedy, modest) = (server.make_token(&["--tenant", "greedy"])?, server.make_token(&["--tenant", "modest"])?);
    let body = json!({"command": ["true"]});
    let (ended, over) = (AtomicUsize::new(0), std::sync::atomic::AtomicBool::new(false));
    let waited = std::thread::scope(|scope| -> Result<Vec<usize>, String> {
        let flood: Vec<_> = (0..FLOOD)
            .map(|_| {
                scope.spawn(|| -> Result<(), String> {
                    while !over.load(Ordering::Relaxed) {
                        server.as_(&greedy, "POST", "/v1/run", Some(&body), &[])?.expect(200)?;
                        ended.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        let modest = || -> Result<Vec<usize>, String> {
            until("the flood runs", || Ok(ended.load(Ordering::Relaxed) > 2))?;
            let mut waited = Vec::new();
            for _ in 0..9 {
                let before = ended.load(Ordering::Relaxed);
                server.as_(&modest, "POST", "/v1/run", Some(&body), &[])?.expect(200)?;
                waited.push(ended.load(Ordering::Relaxed) - before);
            }
            Ok(waited)
        };
        let waited = modest();
        over.store(true, Ordering::Relaxed);
        for one in flood {
            one.join().map_err(|_| "a client panicked")??;
        }
        waited
    })?;
    let mut sorted = waited.clone();
    sorted.sort_unstable();
    // One ends before it begins, and one or two beside it until it has ended; who stood at the end of one line would see all.
    holds(sorted[sorted.len() / 2] <= FLOOD / 3, format!("others that were served first: {waited:?}"))?;
    // Nobody was forgotten either.
    holds(ended.load(Ordering::Relaxed) >= FLOOD, "the greedy one is served, too")?;
    client::receive(server.send(&greedy, "GET", "/v1/ledger/verify", None, &[])?)?.expect(200).map(drop)
}
