//! `If-Match`: under the policy that was seen, or not at all.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::desk::Desk;
use crate::holds;
use crate::server::Server;

pub const ALL: &[(&str, Check)] = &[
    ("a_run_is_judged_under_the_policy_that_was_seen_or_not_at_all", runs),
    ("a_sandbox_has_the_policy_of_its_workspace_and_its_trust_counts", around),
];

fn tag(server: &Server, path: &str) -> Result<String, String> {
    let answer = server.get(path)?.expect(200)?;
    let tag = answer.header("etag").ok_or("it has an ETag")?.to_owned();
    let revision = answer.json()?["revision"].as_str().map(|revision| format!("\"{revision}\""));
    holds(revision.as_deref() == Some(tag.as_str()), "which is its revision")?;
    Ok(tag)
}

fn run(server: &Server, body: &Value, tags: &str) -> Result<Answer, String> {
    server.as_(&server.token, "POST", "/v1/run", Some(body), &[("If-Match", tags)])
}

fn is_other(answer: Answer, now: &str) -> Result<(), String> {
    let answer = answer.expect(412)?;
    holds(answer.header("etag") == Some(now), format!("it says which it is by now: {answer:?}"))?;
    let problem = answer.json()?;
    let said = (problem["type"].as_str(), problem["rule"].as_str());
    holds(said == (Some("urn:belljar:problem:policy-differs"), Some("policy.revision")), &problem)?;
    holds(problem["revision"] == now.trim_matches('"'), problem)
}

fn runs(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let built_in = tag(&server, "/v1/policies")?;
    let (command, code) = (json!({"command": ["true"]}), json!({"language": "python", "code": "print(1)"}));
    for body in [&command, &code, &code] {
        run(&server, body, &built_in)?.expect(200)?;
    }
    server
        .desk
        .policy("[[rule]]\nid = \"no-id\"\nwhen = { program = \"id\" }\nthen = \"deny\"\nwhy = \"not here\"\n")?;
    let second = tag(&server, "/v1/policies")?;
    holds(second != built_in, "another text is another revision")?;
    // Also where a sandbox stood ready that was made under the first.
    for body in [&command, &code] {
        is_other(run(&server, body, &built_in)?, &second)?;
        run(&server, body, &second)?.expect(200)?;
        run(&server, body, &format!("{built_in}, {second}"))?.expect(200)?;
        run(&server, body, "*")?.expect(200)?;
    }
    // What is refused is so by the policy that was expected.
    let refused = run(&server, &json!({"command": ["id"]}), &second)?.expect(403)?.json()?;
    holds(refused["rule"].as_str().is_some_and(|rule| rule.contains("no-id")), refused)?;
    for wrong in ["", "unquoted", "W/\"weak\"", "\"a\" \"b\""] {
        run(&server, &command, wrong)?.expect(422)?;
    }
    let ended = server.entries("run.ended")?;
    let refusals = ended.iter().filter(|entry| entry["data"]["rule"] == "policy.revision").count();
    holds(refusals == 2, format!("each is on the record: {refusals}"))?;
    // Sandboxes that are open, and those that are not.
    for open in [true, false] {
        let made = server.post("/v1/sandboxes", &json!({"open": open}))?.expect(201)?.json()?;
        let exec = format!("/v1/sandboxes/{}/exec", made["id"].as_str().unwrap_or_default());
        let exec = |tags: &str| server.as_(&server.token, "POST", &exec, Some(&command), &[("If-Match", tags)]);
        exec(&second)?.expect(200)?;
        is_other(exec(&built_in)?, &second)?;
    }
    Ok(())
}

fn around(who: Who) -> Result<(), String> {
    let server = Server::with(Desk::of(who)?, &[])?;
    let general = tag(&server, "/v1/policies")?;
    let work = server.desk.project.work.clone();
    server
        .desk
        .put("belljar.toml", "version = 1\n[[rule]]\nwhen = { program = \"id\" }\nthen = \"deny\"\nwhy = \"no\"\n")?;
    let made = server.post("/v1/sandboxes", &json!({"open": false, "options": {"workspace": work}}))?.expect(201)?;
    let id = made.json()?["id"].as_str().unwrap_or_default().to_owned();
    let (here, exec) = (format!("/v1/policies?sandbox={id}"), format!("/v1/sandboxes/{id}/exec"));
    let own = tag(&server, &here)?;
    holds(own != general, "a project's file has a say there")?;
    let exec = |tags: &str| {
        let body = json!({"command": ["true"]});
        server.as_(&server.token, "POST", &exec, Some(&body), &[("If-Match", tags)])
    };
    is_other(exec(&general)?, &own)?;
    exec(&own)?.expect(200)?;
    server.desk.project.done(["policy", "trust"])?;
    let trusted = tag(&server, &here)?;
    holds(trusted != own, "the same text means something else when it is trusted")?;
    is_other(exec(&own)?, &trusted)?;
    exec(&trusted)?.expect(200)?;
    server.get("/v1/policies?sandbox=none")?.expect(404).map(drop)
}
