//! What a sandbox can begin with: a template, another sandbox, a snapshot of one.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::holds;
use crate::server::{Server, mark, names, processes, until};

pub const ALL: &[(&str, Check)] = &[
    ("a_sandbox_begins_where_another_was", snapshots),
    ("a_sandbox_is_made_from_a_template_with_its_files_limits_and_policy", templates),
    ("who_removes_a_sandbox_takes_nobody_elses_files_along", apart),
    ("templates_are_their_tenants_alone_and_have_plain_names", bounds),
];

fn id(made: &Value) -> String {
    made["id"].as_str().unwrap_or_default().to_owned()
}

fn says(server: &Server, token: &str, id: &str, script: &str) -> Result<String, String> {
    let body = json!({"command": ["sh", "-c", script]});
    let ran = server.as_(token, "POST", &format!("/v1/sandboxes/{id}/exec"), Some(&body), &[])?.expect(200)?.json()?;
    let said = &ran["result"];
    Ok(format!("{}{}", said["stdout"]["text"].as_str().unwrap_or("?"), said["stderr"]["text"].as_str().unwrap_or("?")))
}

fn snapshots(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let own = server.token.clone();
    let says = |id: &str, script: &str| says(&server, &own, id, script);
    let body =
        json!({"name": "first", "open": false, "files": {"a": "0\n"}, "options": {"environment": {"A": "kept"}}});
    let first = id(&server.post("/v1/sandboxes", &body)?.expect(201)?.json()?);
    says(&first, "echo 1 > a; echo x > new")?;
    server.post(&format!("/v1/sandboxes/{first}/snapshots"), &json!({"name": "then"}))?.expect(201)?;
    says(&first, "echo 2 > a; rm new; echo y > later")?;
    let from = |from: Value, name: &str| {
        let body = json!({"from": from, "name": name, "open": false});
        server.post("/v1/sandboxes", &body)
    };
    let then = from(json!({"sandbox": "first", "snapshot": "then"}), "branch")?.expect(201)?.json()?;
    holds(then["name"] == "branch" && id(&then) != first, &then)?;
    holds(says(&id(&then), "cat a new; ls; echo $A")? == "1\nx\na\nnew\nkept\n", "as it was then, with its settings")?;
    let now = id(&from(json!({"sandbox": first}), "now")?.expect(201)?.json()?);
    holds(says(&now, "cat a; ls")? == "2\na\nlater\n", "as it is now")?;
    // Neither sees the others' changes, and only what it changed itself is its difference.
    says(&id(&then), "echo mine > own")?;
    holds(says(&first, "ls")? == "a\nlater\n" && says(&now, "ls")? == "a\nlater\n", "they are apart")?;
    let diff = server.get(&format!("/v1/sandboxes/{}/diff", id(&then)))?.expect(200)?.text();
    holds(diff.contains("own") && diff.contains("\"new\"") && !diff.contains("later"), &diff)?;
    // One that is removed takes nothing along.
    server.as_(&own, "DELETE", &format!("/v1/sandboxes/{first}"), None, &[])?.expect(200)?;
    holds(says(&id(&then), "cat a")? == "1\n", "the branch stays")?;
    // What there is not.
    for (wrong, status) in [
        (json!({"sandbox": "none"}), 404),
        (json!({"sandbox": now, "snapshot": "none"}), 404),
        (json!({"snapshot": "then"}), 422),
        (json!({}), 422),
        (json!({"sandbox": now, "template": "x"}), 422),
    ] {
        from(wrong, "other")?.expect(status)?;
    }
    from(json!({"sandbox": now}), "branch")?.expect(409)?;
    let other = server.make_token(&["--tenant", "other"])?;
    let body = json!({"from": {"sandbox": now}});
    server.as_(&other, "POST", "/v1/sandboxes", Some(&body), &[])?.expect(404)?;
    // One that is open has no files at rest; it says so.
    server.post(&format!("/v1/sandboxes/{now}/open"), &json!({}))?.expect(200)?;
    from(json!({"sandbox": now}), "third")?.expect(409)?;
    let forked = server.entries("sandbox.forked")?;
    holds(forked.len() == 2 && forked[0]["data"]["snapshot"] == "then", format!("{forked:?}"))
}

fn apart(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let own = server.token.clone();
    let made = id(&server.post("/v1/sandboxes", &json!({"open": false, "files": {"a": "b"}}))?.expect(201)?.json()?);
    // Runs, and what stands ready, are in no list.
    let mark = mark("apart");
    let script = "until [ -e go ]; do sleep 0.05; [ -e a ] || { echo gone; exit 1; }; i=$((i + 1)); [ $i -gt 40 ] && exit 0; done";
    let body = json!({"command": ["sh", "-c", script, mark], "files": {"a": "mine"}});
    let waits = server.send(&own, "POST", "/v1/run", Some(&body), &[])?;
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    let python = json!({"language": "python", "code": "import os; print(os.listdir('.'))"});
    let ready = || -> Result<bool, String> {
        Ok(server.post("/v1/run", &python)?.expect(200)?.json()?["result"]["backend_because"] == "it stood ready")
    };
    until("one stands ready", ready)?;
    server.as_(&own, "DELETE", &format!("/v1/sandboxes/{made}"), None, &[])?.expect(200)?;
    let ran = crate::client::receive(waits)?.expect(200)?.json()?;
    holds(ran["result"]["exit"] == 0, &ran)?;
    for _ in 0..4 {
        let ran = server.post("/v1/run", &python)?.expect(200)?.json()?;
        holds(ran["result"]["stdout"]["text"] == "['main.py']\n", ran)?;
    }
    // Its own files are gone.
    until("nothing but what stands ready is left", || {
        let left = names(&server.work().join("local"));
        Ok(left.iter().all(|folder| !server.work().join("local").join(folder).join("a").exists()))
    })
}

fn templates(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let put =
        |name: &str, body: &Value| server.as_(&server.token, "PUT", &format!("/v1/templates/{name}"), Some(body), &[]);
    let policy =
        "version = 1\n[[rule]]\nid = \"no-id\"\nwhen = { program = \"id\" }\nthen = \"deny\"\nwhy = \"not here\"\n";
    let template = json!({
        "description": "a small one", "files": {"lib/a.txt": "of the template\n"}, "policy": policy,
        "options": {"limits": {"timeout": 2.0}, "environment": {"A": "b"}},
    });
    put("small", &template)?.expect(200)?;
    let shown = server.get("/v1/templates/small")?.expect(200)?.json()?;
    holds(shown["description"] == "a small one" && shown["files"]["lib/a.txt"] == "of the template\n", &shown)?;
    holds(server.get("/v1/templates")?.expect(200)?.json()?["items"] == json!(["small"]), "it is listed")?;
    let body = json!({"open": false, "from": {"template": "small"}, "files": {"b.txt": "added\n", "belljar.toml": "version = 1\n"}});
    let made = id(&server.post("/v1/sandboxes", &body)?.expect(201)?.json()?);
    let said = says(&server, &server.token, &made, "cat lib/a.txt b.txt; echo $A")?;
    holds(said == "of the template\nadded\nb\n", said)?;
    // Its limits, too.
    let exec = format!("/v1/sandboxes/{made}/exec");
    let late = server.post(&exec, &json!({"command": ["sleep", "600"]}))?.expect(200)?.json()?;
    holds(late["result"]["overrun"] == "wall-time", &late)?;
    // Its policy holds, and no file that came along took its place.
    let refused = server.post(&exec, &json!({"command": ["id"]}))?.expect(403)?.json()?;
    holds(refused["denial"][0]["reason"] == "not here", &refused)?;
    server.post("/v1/run", &json!({"command": ["id"]}))?.expect(200)?;
    // It forbids, and allows nothing.
    server
        .desk
        .policy("[[rule]]\nid = \"no-whoami\"\nwhen = { program = \"whoami\" }\nthen = \"deny\"\nwhy = \"never\"\n")?;
    let more = "version = 1\n[[rule]]\nwhen = { program = \"whoami\" }\nthen = \"allow\"\nwhy = \"please\"\n";
    put("more", &json!({"policy": more}))?.expect(200)?;
    let made = id(&server
        .post("/v1/sandboxes", &json!({"from": {"template": "more"}, "open": false}))?
        .expect(201)?
        .json()?);
    let refused =
        server.post(&format!("/v1/sandboxes/{made}/exec"), &json!({"command": ["whoami"]}))?.expect(403)?.json()?;
    holds(refused["denial"][0]["reason"] == "never", refused)?;
    // A sandbox stays as it was made when its template goes.
    server.as_(&server.token, "DELETE", "/v1/templates/small", None, &[])?.expect(200)?;
    server.get("/v1/templates/small")?.expect(404)?;
    server.post("/v1/sandboxes", &json!({"from": {"template": "small"}}))?.expect(404)?;
    server.post(&exec, &json!({"command": ["true"]}))?.expect(200).map(drop)
}

fn bounds(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let put = |token: &str, name: &str, body: &Value| {
        server.as_(token, "PUT", &format!("/v1/templates/{name}"), Some(body), &[])
    };
    let own = server.token.clone();
    put(&own, "mine", &json!({"files": {"a": "b"}}))?.expect(200)?;
    let other = server.make_token(&["--tenant", "other", "--scopes", "run,read,admin"])?;
    server.as_(&other, "GET", "/v1/templates/mine", None, &[])?.expect(404)?;
    let body = json!({"from": {"template": "mine"}});
    server.as_(&other, "POST", "/v1/sandboxes", Some(&body), &[])?.expect(404)?;
    put(&other, "mine", &json!({"files": {"a": "theirs"}}))?.expect(200)?;
    holds(server.get("/v1/templates/mine")?.expect(200)?.json()?["files"]["a"] == "b", "each has its own")?;
    // Whoever only runs does not decide what others begin with.
    let runs = server.make_token(&["--agent", "coder", "--scopes", "run,files,read"])?;
    put(&runs, "mine", &json!({}))?.expect(403)?;
    server.as_(&runs, "POST", "/v1/sandboxes", Some(&body), &[])?.expect(201)?;
    for name in ["..%2Fmine", "a%2Fb", ".hidden", "a%00b", "a.json", "%C3%A4"] {
        put(&own, name, &json!({}))?.expect(422)?;
        server.get(&format!("/v1/templates/{name}"))?.expect(404)?;
    }
    for wrong in [
        json!({"files": {"../out": "x"}}),
        json!({"policy": "version = 1\nunknown = 1\n"}),
        json!({"policy": "version = 1\n", "files": {"belljar.toml": ""}}),
        json!({"options": {"limits": {"cpus": 0}}}),
        json!({"unknown": 1}),
    ] {
        put(&own, "wrong", &wrong)?.expect(422)?;
    }
    let given = json!({"from": {"template": "mine"}, "options": {"environment": {"A": "b"}}});
    server.post("/v1/sandboxes", &given)?.expect(422).map(drop)
}
