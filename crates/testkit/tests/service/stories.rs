//! What a client does on an ordinary day.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::json;

use crate::client::{self, events};
use crate::desk::Desk;
use crate::server::{Server, names, until};
use crate::{holds, told};

pub const ALL: &[(&str, Check)] = &[
    ("a_run_answers_with_what_it_said_and_is_on_the_record", run),
    ("code_comes_with_files_and_its_changes_are_kept_and_taken", changes),
    ("a_stream_can_be_taken_up_again_where_it_was_left", stream),
    ("a_socket_is_its_owners_alone", socket),
    ("the_same_request_again_is_carried_out_once", idempotency),
    ("a_person_answers_over_the_api_and_the_run_goes_on", approval),
    ("what_an_agents_token_takes_a_person_is_asked_about", agent_takes),
    ("a_refusal_is_a_problem_with_its_rule_and_a_hint", refusal),
    ("the_api_describes_itself_without_anything_from_elsewhere", description),
];

fn run(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let health = client::receive(client::send(&server.address, "GET", "/v1/health", &[], b"")?)?.expect(200)?;
    holds(health.json()?["status"] == "ok", "it is well")?;
    let body = json!({"language": "sh", "code": "cat; echo $A >&2; exit 3", "stdin": "hello", "options": {"environment": {"A": "b"}}});
    let answer = server.post("/v1/run", &body)?.expect(200)?;
    holds(answer.header("x-request-id").is_some_and(|id| id.len() == 32), "a request has an id")?;
    let shown = answer.json()?;
    let result = &shown["result"];
    let said = (&result["exit"], &result["stdout"]["text"], &result["stderr"]["text"]);
    holds(said == (&json!(3), &json!("hello"), &json!("b\n")), &shown)?;
    let again = server.get(&format!("/v1/runs/{}", shown["id"].as_str().unwrap_or_default()))?.expect(200)?.json()?;
    holds(again["result"] == *result, "the same later")?;
    let run = result["run"].as_str().ok_or("it has a number")?;
    holds(server.get(&format!("/v1/ledger/receipts/{run}"))?.expect(200)?.json()?["payload"].is_string(), "a receipt")?;
    holds(server.get("/v1/ledger/verify")?.expect(200)?.json()?["sound"] == true, "the ledger is sound")?;
    // The same as this user's own belljar sees it.
    let log = server.desk.say(&["log", "--run", run, "--json"])?;
    holds(String::from_utf8_lossy(&log.out).contains("run.ended"), "it is in the user's own record")?;
    until("nothing is left of its files", || Ok(names(&server.work().join("local")).is_empty()))
}

fn changes(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let body = json!({"command": ["sh", "-c", "cat data/in.txt > out.txt"], "files": {"data/in.txt": "abc\n", "b": {"base64": "AAE="}}});
    let shown = server.post("/v1/run", &body)?.expect(200)?.json()?;
    let id = shown["result"]["changes"]["sandbox"].as_str().ok_or(format!("no changes: {shown}"))?.to_owned();
    holds(id.len() == 32, "a whole id")?;
    let diff = server.get(&format!("/v1/sandboxes/{id}/diff"))?.expect(200)?.json()?;
    holds(diff["changes"][0]["path"].as_str().is_some_and(|path| path.ends_with("out.txt")), &diff)?;
    holds(server.get(&format!("/v1/sandboxes/{id}/patch"))?.expect(200)?.text().contains("+abc"), "a patch")?;
    let exec = json!({"command": ["cat", "out.txt"]});
    let read = server.post(&format!("/v1/sandboxes/{id}/exec"), &exec)?.expect(200)?.json()?;
    holds(read["result"]["stdout"]["text"] == "abc\n", &read)?;
    server.post(&format!("/v1/sandboxes/{id}/snapshots"), &json!({"name": "here"}))?.expect(201)?;
    let forks = server.post(&format!("/v1/sandboxes/{id}/fork"), &json!({"count": 2}))?.expect(201)?.json()?;
    holds(forks["forks"].as_array().is_some_and(|forks| forks.len() == 2), &forks)?;
    let page = server.get("/v1/sandboxes?limit=2")?.expect(200)?.json()?;
    let next = page["next"].as_str().ok_or("there is more")?;
    let rest = server.get(&format!("/v1/sandboxes?limit=2&cursor={next}"))?.expect(200)?.json()?;
    holds(rest["items"].as_array().is_some_and(|items| items.len() == 1) && rest["next"].is_null(), &rest)?;
    let taken = server.post(&format!("/v1/sandboxes/{id}/apply"), &json!({}))?.expect(200)?.json()?;
    holds(taken["complete"] == true, &taken)?;
    for fork in forks["forks"].as_array().into_iter().flatten() {
        let fork = fork["id"].as_str().unwrap_or_default();
        server.as_(&server.token, "DELETE", &format!("/v1/sandboxes/{fork}"), None, &[])?.expect(200)?;
    }
    server.as_(&server.token, "DELETE", &format!("/v1/sandboxes/{id}"), None, &[])?.expect(200)?;
    server.get(&format!("/v1/sandboxes/{id}"))?.expect(404)?;
    holds(names(&server.work().join("local")).is_empty(), "its files go with it")
}

fn stream(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let body =
        json!({"command": ["sh", "-c", "echo one; echo two >&2; printf '\\303'; printf '\\244'"], "stream": true});
    let answer = server.post("/v1/run", &body)?.expect(200)?;
    holds(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")), "a stream")?;
    let all = events(&answer.text())?;
    let of = |kind: &str| -> String {
        all.iter().filter(|event| event.kind == kind).filter_map(|event| event.data["text"].as_str()).collect()
    };
    holds((of("stdout"), of("stderr")) == ("one\nä".to_owned(), "two\n".to_owned()), format!("{all:?}"))?;
    let last = all.last().ok_or("there are events")?;
    holds(last.kind == "result" && last.data["exit"] == 0, format!("{last:?}"))?;
    let id = all[0].data["id"].as_str().ok_or("it began")?;
    let more = [("Last-Event-ID", "2")];
    let rest = server.as_(&server.token, "GET", &format!("/v1/runs/{id}/events"), None, &more)?.expect(200)?;
    holds(events(&rest.text())? == all[2..], "the rest of it, and nothing twice")
}

fn socket(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let path = desk.project.state.join("api");
    let server = Server::with(desk, &["--listen", &format!("unix:{}", path.display())])?;
    let mode = told(fs::metadata(&path))?.permissions().mode() & 0o777;
    holds(mode == 0o600, format!("{mode:o}"))?;
    let shown = server.post("/v1/run", &json!({"command": ["echo", "hello"]}))?.expect(200)?.json()?;
    holds(shown["result"]["stdout"]["text"] == "hello\n", shown)
}

fn idempotency(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let body = json!({"command": ["echo", "once"]});
    let key = [("Idempotency-Key", "k-1")];
    let first = server.as_(&server.token, "POST", "/v1/run", Some(&body), &key)?.expect(200)?;
    let second = server.as_(&server.token, "POST", "/v1/run", Some(&body), &key)?.expect(200)?;
    holds(first.body == second.body && second.header("idempotency-replayed") == Some("true"), "the same answer")?;
    holds(server.entries("run.ended")?.len() == 1, "it ran once")?;
    let other = json!({"command": ["echo", "twice"]});
    let refused = server.as_(&server.token, "POST", "/v1/run", Some(&other), &key)?.expect(422)?.json()?;
    holds(refused["type"] == "urn:belljar:problem:key-used", refused)
}

fn approval(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[[rule]]\nwhen = { program = \"id\" }\nthen = \"ask\"\nwhy = \"a person looks\"\n")?;
    let server = Server::with(desk, &[])?;
    let agent = server.make_token(&["--agent", "coder", "--scopes", "run,read"])?;
    let waits = server.send(&agent, "POST", "/v1/run", Some(&json!({"command": ["id"]})), &[])?;
    let mut question = json!(null);
    until("there is a question", || {
        question = server.get("/v1/approvals")?.expect(200)?.json()?["items"][0].clone();
        Ok(question.is_object())
    })?;
    let id = question["id"].as_str().ok_or("it has an id")?;
    holds(question["question"]["principal"]["agent"] == "coder", &question)?;
    let place = format!("/v1/approvals/{id}");
    let yes = |digest: &serde_json::Value| json!({"decision": "once", "digest": digest});
    server.as_(&agent, "POST", &place, Some(&yes(&question["digest"])), &[])?.expect(403)?;
    server.post(&place, &yes(&json!("another")))?.expect(409)?;
    server.post(&place, &yes(&question["digest"]))?.expect(200)?;
    let ran = client::receive(waits)?.expect(200)?.json()?;
    holds(ran["result"]["exit"] == 0, &ran)?;
    server.post(&place, &yes(&question["digest"]))?.expect(404).map(drop)
}

fn agent_takes(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let agent = server.make_token(&["--agent", "coder", "--scopes", "run,files,read"])?;
    let work = server.desk.project.work.clone();
    let body = json!({"command": ["sh", "-c", "echo mine > made.txt"], "options": {"workspace": work}});
    let ran = server.as_(&agent, "POST", "/v1/run", Some(&body), &[])?.expect(200)?.json()?;
    let id = ran["result"]["changes"]["sandbox"].as_str().ok_or(format!("no changes: {ran}"))?.to_owned();
    let waits = server.send(&agent, "POST", &format!("/v1/sandboxes/{id}/apply"), Some(&json!({})), &[])?;
    let mut question = json!(null);
    until("there is a question", || {
        question = server.get("/v1/approvals")?.expect(200)?.json()?["items"][0].clone();
        Ok(question.is_object())
    })?;
    holds(!work.join("made.txt").exists(), "nothing is taken before somebody said so")?;
    let place = format!("/v1/approvals/{}", question["id"].as_str().unwrap_or_default());
    server.post(&place, &json!({"decision": "once", "digest": question["digest"]}))?.expect(200)?;
    let taken = client::receive(waits)?.expect(200)?.json()?;
    holds(taken["complete"] == true && work.join("made.txt").exists(), &taken)
}

fn refusal(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[[rule]]\nid = \"no-id\"\nwhen = { program = \"id\" }\nthen = \"deny\"\nwhy = \"not here\"\n")?;
    let server = Server::with(desk, &[])?;
    let answer = server.post("/v1/run", &json!({"command": ["id"]}))?.expect(403)?;
    holds(answer.header("content-type") == Some("application/problem+json"), "a problem")?;
    let problem = answer.json()?;
    let kind = (problem["type"].as_str(), problem["status"].as_u64(), problem["request_id"].as_str());
    holds(kind == (Some("urn:belljar:problem:refused"), Some(403), answer.header("x-request-id")), &problem)?;
    let said =
        problem["rule"].is_string() && problem["hint"].is_string() && problem["denial"][0]["reason"] == "not here";
    holds(said, &problem)?;
    let missing = server.post("/v1/run", &json!({"command": ["no-such-program-here"]}))?.expect(422)?.json()?;
    holds(missing["detail"].as_str().is_some_and(|detail| detail.contains("no-such-program-here")), missing)
}

fn description(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let open = |path: &str| client::receive(client::send(&server.address, "GET", path, &[], b"")?)?.expect(200);
    let document = open("/v1/openapi.json")?.json()?;
    holds(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")), &document["openapi"])?;
    for path in ["/v1/run", "/v1/sandboxes/{id}/exec", "/v1/approvals/{id}", "/v1/ledger"] {
        holds(document["paths"][path].is_object(), path)?;
    }
    let page = open("/v1/reference")?.text();
    holds(page.contains("/v1/sandboxes/{id}/exec"), "the page has all calls")?;
    holds(
        !page.contains("http://") && !page.contains("https://") && !page.contains("<script"),
        "and nothing from elsewhere",
    )
}
