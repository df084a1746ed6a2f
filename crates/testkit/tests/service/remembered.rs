//! Runs that the server does not remember: the record does.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::holds;
use crate::server::{Server, mark, processes, until};

pub const ALL: &[(&str, Check)] = &[("a_run_is_known_by_its_id_after_the_server_was_started_again", again)];

fn again(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[[rule]]\nid = \"no-id\"\nwhen = { program = \"id\" }\nthen = \"deny\"\nwhy = \"not here\"\n")?;
    let mut server = Server::with(desk, &[])?;
    let tenant = server.make_token(&["--tenant", "other"])?;
    let own = server.token.clone();
    let run = |server: &Server, token: &str, body: Value| -> Result<Value, String> {
        server.as_(token, "POST", "/v1/run", Some(&body), &[])?.expect(200)?.json()
    };
    let id = |shown: &Value| shown["id"].as_str().unwrap_or_default().to_owned();
    // As ever, and by one that stood ready.
    let exits = run(&server, &own, json!({"language": "sh", "code": "echo said; exit 3"}))?;
    let python = json!({"language": "python", "code": "print('said')"});
    run(&server, &own, python.clone())?;
    until("one stands ready", || {
        Ok(run(&server, &own, python.clone())?["result"]["backend_because"] == "it stood ready")
    })?;
    let warm = run(&server, &own, python)?;
    let theirs = run(&server, &tenant, json!({"command": ["true"]}))?;
    for shown in [&exits, &warm, &theirs] {
        holds(shown["result"]["run"] == shown["id"], format!("one id, in the answer and in the record: {shown}"))?;
    }
    let made = server.post("/v1/sandboxes", &json!({"open": true}))?.expect(201)?.json()?;
    let exec = format!("/v1/sandboxes/{}/exec", id(&made));
    let visited = server.post(&exec, &json!({"command": ["true"]}))?.expect(200)?.json()?;
    // One that goes on when the server is killed.
    let mark = mark("remembered");
    let endless = json!({"command": ["sh", "-c", "while :; do sleep 1; done", mark], "background": true});
    let begun = server.post(&exec, &endless)?.expect(202)?.json()?;
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    server.signal(libc::SIGKILL)?;
    server.wait()?;
    until("nothing is left", || Ok(processes(&mark).is_empty()))?;
    server.again()?;
    let known = |id: &str| -> Result<Value, String> { server.get(&format!("/v1/runs/{id}"))?.expect(200)?.json() };
    for (before, exit) in [(&exits, 3), (&warm, 0), (&visited, 0)] {
        let now = known(&id(before))?;
        let said = (&now["id"], &now["status"], &now["recorded"], &now["result"]["exit"]);
        holds(said == (&before["id"], &json!("done"), &json!(true), &json!(exit)), &now)?;
        holds(!now.to_string().contains("said"), "what it said is gone")?;
        let apart = now["created"].as_u64().zip(before["created"].as_u64()).map(|(now, then)| now.abs_diff(then));
        holds(apart.is_some_and(|apart| apart <= 5), format!("the same time: {now} {before}"))?;
    }
    until("its end is on the record", || Ok(known(&id(&begun))?["status"] == "done"))?;
    let refused = server.entries("run.ended")?;
    holds(refused.len() >= 4, "all ends are there")?;
    // A refusal is remembered as one; it has an id in the record only.
    server.post("/v1/run", &json!({"command": ["id"]}))?.expect(403)?;
    let refused = server.entries("run.ended")?.pop().ok_or("an entry")?;
    let shown = known(refused["run"].as_str().unwrap_or_default())?;
    holds(shown["status"] == "failed", shown)?;
    // Another tenant's is as none, and so is the start of an id.
    for none in [id(&theirs), id(&exits)[..12].to_owned(), "0".repeat(32)] {
        server.get(&format!("/v1/runs/{none}"))?.expect(404)?;
    }
    server.as_(&tenant, "GET", &format!("/v1/runs/{}", id(&theirs)), None, &[])?.expect(200)?;
    server.as_(&tenant, "GET", &format!("/v1/runs/{}", id(&exits)), None, &[])?.expect(404).map(drop)
}
