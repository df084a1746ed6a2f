//! What no honest client does.

use std::fs;

use belljar_testkit::Who;
use belljar_testkit::contestant::belljar;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::client;
use crate::raw::{ACCEPT, Http, Stdio_, Talks, again, call, kind, message_of, meta};
use crate::server::{Server, until};
use crate::stories::desk;
use crate::{holds, person, told};

pub const ALL: &[(&str, Check)] = &[
    ("a_state_that_was_changed_or_is_of_another_call_or_caller_opens_nothing", states),
    ("an_agent_can_not_approve_itself", itself),
    ("no_path_leads_out_of_the_sandbox", paths),
    ("another_tenants_sandbox_is_not_there", tenants),
    ("a_token_does_what_its_scopes_say", scopes),
    ("a_page_of_another_origin_or_name_gets_nothing", origins),
    ("what_is_no_message_ends_nothing_over_stdio", malformed),
    ("what_is_no_message_ends_nothing_over_http", malformed_over_http),
    ("a_token_is_in_no_log_and_no_answer", secrecy),
];

fn states(who: Who) -> Result<(), String> {
    let server = Server::with(desk(who)?, &[])?;
    let mut one = Http { server: &server, token: server.make_token(&["--agent", "one", "--scopes", "run,read"])? };
    let mut two = Http { server: &server, token: server.make_token(&["--agent", "two", "--scopes", "run,read"])? };
    let arguments = json!({"command": ["id"]});
    let asked = one.tool("run_command", arguments.clone())?;
    let state = asked["requestState"].as_str().ok_or("a state")?.to_owned();
    let id = asked["_meta"]["belljar/question"].as_str().ok_or("the question")?.to_owned();
    let refused = |talk: &mut Http<'_>, tool: &str, arguments: &Value, state: &str| -> Result<(), String> {
        let said = talk.done("tools/call", again(tool, arguments, &json!(state), None))?;
        holds(said["isError"] == true && kind(&said) == "request-state", &said)
    };
    for at in [0, 4, state.len() / 2, state.len() - 2] {
        let mut changed: Vec<u8> = state.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        refused(&mut one, "run_command", &arguments, &String::from_utf8_lossy(&changed))?;
    }
    for made_up in ["", "rs1.AAAA.AAAA", "null", &"A".repeat(10_000)] {
        refused(&mut one, "run_command", &arguments, made_up)?;
    }
    // The same state for something else, or by somebody else of the same tenant.
    refused(&mut one, "run_command", &json!({"command": ["id", "-u"]}), &state)?;
    refused(&mut one, "run_command", &json!({"command": ["id"], "stdin": ""}), &state)?;
    refused(&mut one, "request_permission", &arguments, &state)?;
    refused(&mut two, "run_command", &arguments, &state)?;
    // All of that changed nothing for whoever it belongs to.
    person::answer(&server.desk, &id, "--once")?;
    let ran = one.done("tools/call", again("run_command", &arguments, &json!(state), None))?;
    holds(ran["structuredContent"]["exit"] == 0, &ran)?;
    refused(&mut one, "run_command", &arguments, &state)?;
    // Another server has another key.
    let asked = one.tool("run_command", arguments.clone())?;
    let mut talk = Stdio_::start(&server.desk, &[])?;
    let said = talk.done("tools/call", again("run_command", &arguments, &asked["requestState"], None))?;
    holds(kind(&said) == "request-state", &said)
}

fn itself(who: Who) -> Result<(), String> {
    let desk = desk(who)?;
    let mut talk = Stdio_::start(&desk, &[])?;
    let arguments = json!({"command": ["id"]});
    let asked = talk.tool("run_command", arguments.clone())?;
    let id = asked["_meta"]["belljar/question"].as_str().ok_or("the question")?.to_owned();
    for tool in ["approve", "belljar_approve", "reply", "token_create"] {
        let said = talk.ask("tools/call", call(tool, &json!({"id": id, "decision": "once"})))?;
        holds(said.is_err(), format!("there is no `{tool}`"))?;
    }
    // From inside, by the program itself: it sees no question, and its answer reaches nobody.
    let own = belljar().display().to_string();
    let tried = talk.tool(
        "run_command",
        json!({"command": ["sh", "-c", format!("{own} approve {id} --once; belljar approve {id} --once; exit 0")]}),
    )?;
    holds(tried["isError"] != true, &tried)?;
    let waits =
        |id: &str| -> Result<bool, String> { Ok(person::parked(&desk)?.iter().any(|question| question["id"] == *id)) };
    holds(waits(&id)?, "it still waits")?;
    // By a file in the place of an answer: that place is not in the sandbox.
    let place = desk.project.state.join("belljar/approvals").join(format!("{id}.answer"));
    let wrote = talk.tool("write_file", json!({"path": place.display().to_string(), "text": "{}"}))?;
    holds(!place.exists(), &wrote)?;
    holds(waits(&id)?, "it still waits")?;
    // By an accepted form: that says nothing about who accepted. The person then says no, and no it is.
    let yes = json!({"person": {"action": "accept", "content": {"approve": true, "decision": "once"}}});
    let retried = talk.begin("tools/call", &again("run_command", &arguments, &asked["requestState"], Some(yes)))?;
    holds(waits(&id)?, "a form answers nothing")?;
    person::answer(&desk, &id, "--deny")?;
    let said = talk.end(retried)?.map_err(|error| error.to_string())?;
    let text = said["content"][0]["text"].as_str().unwrap_or_default();
    holds(said["isError"] == true && text.contains("said no"), &said)?;
    // Nothing ran.
    let log = String::from_utf8_lossy(&desk.project.done(["log", "--json"])?.out).into_owned();
    let started = log.lines().any(|line| line.contains("\"run.ended\"") && line.contains("\"id\"]"));
    holds(!started, "it did not run")?;
    talk.leave()
}

fn paths(who: Who) -> Result<(), String> {
    let desk = desk(who)?;
    let secret = desk.home.join("secret.txt");
    told(fs::write(&secret, "the-secret-outside"))?;
    told(desk.project.give(&secret))?;
    let mut talk = Stdio_::start(&desk, &[])?;
    let outside = secret.display().to_string();
    talk.tool("run_command", json!({"command": ["ln", "-s", outside, "link"]}))?;
    talk.tool("run_command", json!({"command": ["ln", "-s", "/", "root"]}))?;
    let name = secret.file_name().ok_or("a name")?.to_string_lossy().into_owned();
    let spellings = [
        outside.clone(),
        format!("../{name}"),
        format!("./x/../../{name}"),
        format!("root{outside}"),
        "link".to_owned(),
        format!("//{outside}"),
        format!("%2e%2e/{name}"),
        "/proc/1/root/etc/passwd\0".to_owned(),
        "/proc/self/environ".to_owned(),
        "/proc/1/environ".to_owned(),
        "/proc/self/fd/0".to_owned(),
        String::new(),
        "x".repeat(10_000),
    ];
    for path in &spellings {
        let read = talk.tool("read_file", json!({"path": path}))?;
        holds(read["isError"] == true && !read.to_string().contains("the-secret-outside"), format!("{path}: {read}"))?;
        let found = talk.tool("search_files", json!({"path": path, "pattern": "the-secret"}))?;
        holds(!found.to_string().contains("the-secret-outside"), format!("{path}: {found}"))?;
        let edited = talk.tool("edit_file", json!({"path": path, "edits": [{"old": "the", "new": "a"}]}))?;
        holds(edited["isError"] == true, format!("{path}: {edited}"))?;
        // Inside, a path may well lead somewhere that can be written to; what is outside stays as it is.
        talk.tool("write_file", json!({"path": path, "text": "overwritten"}))?;
        talk.tool("list_files", json!({"path": path, "depth": 2}))?;
    }
    holds(told(fs::read_to_string(&secret))? == "the-secret-outside", "it is as it was")?;
    holds(told(fs::read_to_string(desk.project.work.join("a.txt")))? == "hello\n", "real files are as they were")?;
    // The same for names of sandboxes.
    for sandbox in ["../../etc", "/", "", "last", "\0", &"x".repeat(100_000)] {
        let read = talk.tool("read_file", json!({"sandbox": sandbox, "path": "a.txt"}))?;
        holds(read["isError"] == true && kind(&read) == "not-found", &read)?;
    }
    for uri in ["belljar://artifacts/../../etc/passwd", "file:///etc/passwd", "belljar://runs/..%2f/log", ""] {
        let read = talk.ask("resources/read", json!({"uri": uri, "_meta": meta()}))?;
        holds(read.is_err(), uri)?;
    }
    talk.leave()
}

fn tenants(who: Who) -> Result<(), String> {
    let server = Server::with(desk(who)?, &[])?;
    let mut one = Http { server: &server, token: server.make_token(&["--tenant", "one"])? };
    let line = "echo mine > mine.txt; mkdir out; echo mine > out/art.txt";
    let ran = one.tool("run_command", json!({"command": ["sh", "-c", line], "artifacts": ["out/*"]}))?;
    let made = &ran["structuredContent"];
    let (id, run) = (made["sandbox"].as_str().ok_or("an id")?, made["run"].as_str().ok_or("a run")?);
    let artifact = made["artifacts"][0]["id"].as_str().ok_or("an artifact")?;
    let read = one.tool("read_file", json!({"sandbox": id, "path": "mine.txt"}))?;
    holds(read["structuredContent"]["text"] == "mine\n", &read)?;
    let nothing = "0".repeat(id.len());
    for token in [server.make_token(&["--tenant", "two"])?, server.token.clone()] {
        let mut other = Http { server: &server, token };
        for (tool, mut arguments) in [
            ("run_command", json!({"command": ["cat", "mine.txt"]})),
            ("run_code", json!({"language": "sh", "code": "cat mine.txt"})),
            ("read_file", json!({"path": "mine.txt"})),
            ("write_file", json!({"path": "mine.txt", "text": "yours"})),
            ("edit_file", json!({"path": "mine.txt", "edits": [{"old": "mine", "new": "yours"}]})),
            ("list_files", json!({})),
            ("search_files", json!({"pattern": "mine"})),
            ("diff", json!({})),
            ("apply", json!({})),
            ("snapshot", json!({})),
            ("rollback", json!({})),
            ("fork", json!({})),
            ("request_permission", json!({"command": ["true"]})),
            ("explain_denial", json!({"command": ["true"]})),
        ] {
            arguments["sandbox"] = id.into();
            let theirs = other.tool(tool, arguments.clone())?;
            arguments["sandbox"] = nothing.clone().into();
            let none = other.tool(tool, arguments)?;
            holds(theirs["isError"] == true && kind(&theirs) == "not-found", format!("{tool}: {theirs}"))?;
            holds(theirs == none, format!("{tool}: one can't be told from the other"))?;
        }
        let got = other.tool("get_artifact", json!({"id": artifact}))?;
        holds(kind(&got) == "not-found", &got)?;
        for uri in [
            format!("belljar://runs/{run}/log"),
            format!("belljar://runs/{run}/record"),
            format!("belljar://artifacts/{artifact}"),
        ] {
            holds(other.ask("resources/read", json!({"uri": uri, "_meta": meta()}))?.is_err(), uri)?;
        }
        let listed = other.done("resources/list", json!({"_meta": meta()}))?.to_string();
        holds(!listed.contains(run) && !listed.contains(artifact), listed)?;
        let denied = other.tool("explain_denial", json!({"run": run}))?;
        holds(denied["structuredContent"]["denials"].as_array().is_some_and(Vec::is_empty), denied)?;
    }
    // And a tenant that is not the user names no path of the host.
    let place = server.desk.project.work.join("a.txt").display().to_string();
    let read = one.tool("run_command", json!({"command": ["cat", place]}))?;
    holds(read["structuredContent"]["stdout"] == "", &read)
}

fn scopes(who: Who) -> Result<(), String> {
    let server = Server::with(desk(who)?, &[])?;
    let mut reads = Http { server: &server, token: server.make_token(&["--scopes", "read"])? };
    for (tool, arguments) in [
        ("run_command", json!({"command": ["true"]})),
        ("write_file", json!({"sandbox": "x", "path": "a", "text": "b"})),
        ("apply", json!({"sandbox": "x"})),
        ("request_permission", json!({"command": ["true"]})),
    ] {
        let said = reads.tool(tool, arguments)?;
        let rule = said["structuredContent"]["error"]["rule"].as_str().unwrap_or_default();
        holds(said["isError"] == true && rule.starts_with("token."), &said)?;
    }
    let mut runs = Http { server: &server, token: server.make_token(&["--scopes", "run"])? };
    let said = runs.tool("read_file", json!({"sandbox": "x", "path": "a"}))?;
    holds(kind(&said) == "scope", &said)?;
    holds(runs.ask("resources/list", json!({"_meta": meta()}))?.is_err(), "it looks at nothing")?;
    holds(runs.tool("run_command", json!({"command": ["true"]}))?["isError"] != true, "it runs")
}

fn origins(who: Who) -> Result<(), String> {
    let server = Server::with(desk(who)?, &[])?;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}}).to_string();
    let bearer = format!("Bearer {}", server.token);
    let ask = |method: &str, more: &[(&str, &str)]| -> Result<u16, String> {
        let headers = [
            &[
                ("Content-Type", "application/json"),
                ACCEPT,
                ("MCP-Protocol-Version", "2026-07-28"),
                ("Mcp-Method", "tools/list"),
            ][..],
            more,
        ]
        .concat();
        Ok(client::receive(client::send(&server.address, method, "/mcp", &headers, list.as_bytes())?)?.status)
    };
    let known = ("Authorization", bearer.as_str());
    for (more, wanted) in [
        (&[known][..], 200),
        (&[][..], 401),
        (&[("Authorization", "Bearer bj_nothing")][..], 401),
        (&[known, ("Host", "evil.example")][..], 421),
        (&[known, ("Host", "127.0.0.1.evil.example:80")][..], 421),
        (&[known, ("Origin", "https://evil.example")][..], 403),
        (&[known, ("Origin", "null")][..], 403),
        (&[known, ("Origin", "http://localhost.evil.example")][..], 403),
    ] {
        let status = ask("POST", more)?;
        holds(status == wanted, format!("{more:?}: {status}"))?;
    }
    // What a browser asks first is answered to nobody.
    let status = ask("OPTIONS", &[("Origin", "https://evil.example"), ("Access-Control-Request-Method", "POST")])?;
    holds(status == 403, status)
}

/// Lines that are no message, or none that means anything.
fn nonsense() -> Vec<Vec<u8>> {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000)).into_bytes();
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        text(""),
        text("hello"),
        text("{"),
        text("null"),
        text("[]"),
        text("[1,2,3]"),
        text("{}"),
        vec![0xff, 0xfe, 0x00, 0x80],
        vec![0; 1000],
        deep("[", "]"),
        deep("{\"a\":", "}"),
        text(r#"{"jsonrpc":"1.0","id":9,"method":"tools/list"}"#),
        text(r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#),
        text(r#"{"jsonrpc":"2.0","id":9,"method":7}"#),
        text(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call"}"#),
        text(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":[]}"#),
        text(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":7}}"#),
        text(r#"{"jsonrpc":"2.0","id":9,"method":"no/such"}"#),
        text(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#),
        text(r#"{"jsonrpc":"2.0","id":9,"error":{"code":1e999,"message":""}}"#),
        text(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":9,"method":"{}"}}"#, "x".repeat(1 << 20)).into_bytes(),
    ]
}

/// Arguments that are no arguments: answers of the tool, not its end.
fn wrong_arguments(talk: &mut impl Talks) -> Result<(), String> {
    for (tool, arguments) in [
        ("run_command", json!({})),
        ("run_command", json!({"command": []})),
        ("run_command", json!({"command": "ls"})),
        ("run_command", json!({"command": ["a\u{0}b"]})),
        ("run_command", json!({"command": ["true"], "timeout": -1})),
        ("run_command", json!({"command": ["true"], "timeout": 1e300})),
        ("run_command", json!({"command": ["true"], "unknown": 1})),
        ("run_command", json!({"command": ["true"], "environment": {"A=B": "c"}})),
        ("run_code", json!({"language": "cobol", "code": ""})),
        ("run_code", json!({"language": "python", "code": "x".repeat(1 << 20)})),
        ("fork", json!({"sandbox": "0".repeat(32), "count": 0})),
        ("fork", json!({"sandbox": "0".repeat(32), "count": -1})),
        ("explain_denial", json!({})),
        ("explain_denial", json!({"run": "../.."})),
        ("read_file", json!({"sandbox": "0".repeat(32), "path": "a", "length": 0})),
        ("write_file", json!({"sandbox": "0".repeat(32), "path": "a"})),
        ("write_file", json!({"sandbox": "0".repeat(32), "path": "a", "base64": "%%%"})),
        ("get_artifact", json!({"id": "\u{0}"})),
    ] {
        let said = talk.tool(tool, arguments.clone())?;
        holds(said["isError"] == true, format!("{tool} {arguments}: {said}"))?;
    }
    Ok(())
}

fn malformed(who: Who) -> Result<(), String> {
    let desk = desk(who)?;
    let mut talk = Stdio_::start(&desk, &[])?;
    talk.shake_hands("2025-11-25")?;
    for line in nonsense() {
        let one: Vec<u8> = line.into_iter().map(|byte| if byte == b'\n' { b' ' } else { byte }).collect();
        talk.send(&one)?;
    }
    // More than anybody sends at once.
    talk.send(&vec![b'x'; 20 << 20])?;
    let huge = json!({"jsonrpc": "2.0", "id": "huge", "method": "tools/call", "params": {"name": "run_command", "arguments": {"command": ["true"], "stdin": "x".repeat(18 << 20)}}});
    talk.send(huge.to_string().as_bytes())?;
    let id = talk.begin("tools/list", &json!({}))?;
    let tools = talk.end(id)?.map_err(|error| error.to_string())?;
    holds(tools["tools"].as_array().is_some_and(|tools| tools.len() == 16), "it still answers")?;
    wrong_arguments(&mut talk)?;
    let ran = talk.tool("run_command", json!({"command": ["echo", "hi"]}))?;
    holds(ran["structuredContent"]["stdout"] == "hi\n", ran)?;
    talk.leave()?;
    // A client that speaks nonsense from the start is told so, and the program ends.
    let mut other = Stdio_::start(&desk, &[])?;
    for line in nonsense() {
        if other.send(&line).is_err() {
            break;
        }
    }
    drop(other);
    let mut talk = Stdio_::start(&desk, &[])?;
    let ran = talk.tool("run_command", json!({"command": ["echo", "hi"]}))?;
    holds(ran["structuredContent"]["stdout"] == "hi\n", ran)
}

fn malformed_over_http(who: Who) -> Result<(), String> {
    let server = Server::with(desk(who)?, &["--body", "2M"])?;
    let pid = server.pid();
    let bearer = format!("Bearer {}", server.token);
    for newest in [true, false] {
        for body in nonsense() {
            let mut headers = vec![("Authorization", bearer.as_str()), ("Content-Type", "application/json"), ACCEPT];
            if newest {
                headers.extend([("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call")]);
            }
            let answer = client::receive(client::send(&server.address, "POST", "/mcp", &headers, &body)?)?;
            holds(
                answer.status < 500,
                format!("{} to {}", answer.status, String::from_utf8_lossy(&body[..body.len().min(80)])),
            )?;
        }
    }
    let mut talk = Http { server: &server, token: server.token.clone() };
    let large = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta(), "x": "x".repeat(3 << 20)}});
    talk.post(&large, &[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")])?.expect(413)?;
    let headers = [("Authorization", bearer.as_str()), ACCEPT];
    for (method, kind) in
        [("POST", "text/plain"), ("PUT", "application/json"), ("GET", "application/json"), ("PATCH", "x")]
    {
        let more = [&headers[..], &[("Content-Type", kind)]].concat();
        let answer = client::receive(client::send(&server.address, method, "/mcp", &more, b"{}")?)?;
        holds((400..500).contains(&answer.status), format!("{method} {kind}: {}", answer.status))?;
    }
    // What the headers say must be what the body says: who looks at the one must not be told something else by the other.
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}});
    let lied = talk.post(&list, &[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "ping")])?;
    holds(lied.status == 400, lied.status)?;
    wrong_arguments(&mut talk)?;
    let ran = talk.tool("run_command", json!({"command": ["echo", "hi"]}))?;
    holds(ran["structuredContent"]["stdout"] == "hi\n", ran)?;
    holds(server.pid() == pid && message_of(&server.get("/v1/health")?).is_none(), "it is the same server")
}

fn secrecy(who: Who) -> Result<(), String> {
    let server = Server::with(desk(who)?, &[])?;
    let token = server.make_token(&["--agent", "coder", "--scopes", "run,files,read"])?;
    let mut talk = Http { server: &server, token: token.clone() };
    let seen = talk.tool("run_command", json!({"command": ["sh", "-c", "env; cat /proc/self/environ; touch x"]}))?;
    let asked = talk.tool("run_command", json!({"command": ["id"]}))?;
    let wrong = talk.ask("tools/call", call("no-such", &json!({"token": token})))?;
    let refused =
        talk.done("tools/call", again("run_command", &json!({"command": ["id"]}), &json!("made-up"), None))?;
    let _kept: Value = talk.done("resources/list", json!({"_meta": meta()}))?;
    for said in [seen.to_string(), asked.to_string(), format!("{wrong:?}"), refused.to_string(), server.log()] {
        holds(!said.contains(&token[3..]), said)?;
    }
    let log = String::from_utf8_lossy(&server.desk.project.done(["log", "--json"])?.out).into_owned();
    holds(!log.contains(&token[3..]), "the record does not have it")?;
    server.signal(libc::SIGTERM)?;
    until("the question goes with the server", || Ok(person::parked(&server.desk)?.is_empty()))?;
    holds(!server.log().contains(&token[3..]), "nor does its farewell")
}
