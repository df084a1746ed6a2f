//! What a session with an agent and a person is like, on the wire.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::raw::{Http, Stdio_, Talks, again, kind, message_of};
use crate::server::{Server, mark, processes, until};
use crate::{POLICY, holds, person, told};

pub const ALL: &[(&str, Check)] = &[
    ("the_newest_revision_needs_no_handshake_and_says_what_it_is", discovered),
    ("an_older_revision_shakes_hands_and_is_told_how_a_person_answers", older),
    ("an_older_revision_has_a_session_over_http", older_over_http),
    ("a_question_is_answered_outside_and_its_answer_is_worth_one_call", approved),
    ("changes_reach_real_files_only_by_a_persons_yes", taken),
    ("a_cancelled_call_ends_its_run", cancelled),
    ("a_sandbox_in_which_nothing_changed_is_not_left_behind", tidy),
    ("a_snippet_for_each_client_is_printed", printed),
];

pub fn desk(who: Who) -> Result<Desk, String> {
    let desk = Desk::of(who)?;
    desk.policy(POLICY)?;
    desk.put("a.txt", "hello\n")?;
    desk.project.let_it_age();
    Ok(desk)
}

fn discovered(who: Who) -> Result<(), String> {
    let desk = desk(who)?;
    let mut talk = Stdio_::start(&desk, &[])?;
    let said = talk.done("server/discover", json!({"_meta": crate::raw::meta()}))?;
    let versions = said["supportedVersions"].to_string();
    holds(["2025-06-18", "2025-11-25", "2026-07-28"].iter().all(|version| versions.contains(version)), versions)?;
    holds(!said["instructions"].as_str().unwrap_or_default().is_empty(), &said)?;
    let tools = talk.done("tools/list", json!({"_meta": crate::raw::meta()}))?;
    for tool in tools["tools"].as_array().ok_or("tools")? {
        let hints = &tool["annotations"];
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            holds(hints[hint].is_boolean(), format!("{hint} of {tool}"))?;
        }
        holds(tool["outputSchema"]["type"] == "object" && tool["inputSchema"]["type"] == "object", tool)?;
    }
    let ran = talk.tool("run_command", json!({"command": ["cat", "a.txt"]}))?;
    holds(ran["resultType"] == "complete" && ran["structuredContent"]["stdout"] == "hello\n", &ran)?;
    let id = ran["structuredContent"]["sandbox"].as_str().ok_or("its id is said")?;
    let listed = String::from_utf8_lossy(&desk.project.done(["ps", "--json"])?.out).into_owned();
    holds(listed.contains(id), listed)?;
    // The record knows who it was for.
    let log = String::from_utf8_lossy(&desk.project.done(["log", "--json"])?.out).into_owned();
    holds(log.contains("\"mcp\""), log)?;
    let unknown = talk.ask("tools/call", crate::raw::call("approve", &json!({})))?;
    holds(unknown.is_err_and(|error| error["code"] == -32602), "there is no tool that approves")?;
    talk.leave()
}

fn older(who: Who) -> Result<(), String> {
    let desk = desk(who)?;
    for version in ["2025-06-18", "2025-11-25"] {
        let mut talk = Stdio_::start(&desk, &[])?;
        let said = talk.shake_hands(version)?;
        holds(said["protocolVersion"] == version, &said)?;
        let asked = json!({"name": "run_command", "arguments": {"command": ["id"]}});
        let told_to = talk.done("tools/call", asked.clone())?;
        holds(
            told_to["isError"] == true && kind(&told_to) == "approval-needed" && told_to.get("resultType").is_none(),
            &told_to,
        )?;
        let id = told_to["structuredContent"]["error"]["more"]["question"].as_str().ok_or("the question")?.to_owned();
        let text = told_to["content"][0]["text"].as_str().unwrap_or_default();
        holds(text.contains(&format!("belljar approve {id}")), text)?;
        holds(person::parked(&desk)?.iter().any(|question| question["id"] == *id), "it waits for a person")?;
        // Coming again is no answer, and makes no second question.
        let once_more = talk.begin("tools/call", &asked)?;
        person::answer(&desk, &id, "--once")?;
        let ran = talk.end(once_more)?.map_err(|error| error.to_string())?;
        holds(ran["structuredContent"]["exit"] == 0, &ran)?;
        // Its end was handed out: the same again asks anew.
        let anew = talk.done("tools/call", asked)?;
        holds(kind(&anew) == "approval-needed", &anew)?;
        talk.leave()?;
        until("nobody waits when nobody asks", || Ok(person::parked(&desk)?.is_empty()))?;
    }
    Ok(())
}

fn older_over_http(who: Who) -> Result<(), String> {
    let server = Server::with(desk(who)?, &[])?;
    let http = Http { server: &server, token: server.token.clone() };
    let info = json!({"name": "raw", "version": "0"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let begun =
        http.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}), &[])?.expect(200)?;
    let session = begun.header("mcp-session-id").ok_or("a session")?.to_owned();
    let said = message_of(&begun).ok_or("an answer")?;
    holds(said["result"]["protocolVersion"] == "2025-06-18", &said)?;
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
    http.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), &headers)?.expect(202)?;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "run_command", "arguments": {"command": ["echo", "hi"]}}});
    let ran = message_of(&http.post(&call, &headers)?.expect(200)?).ok_or("an answer")?;
    holds(ran["result"]["structuredContent"]["stdout"] == "hi\n", &ran)?;
    // It is this token's: to another it is as if there were none.
    let other = Http { server: &server, token: server.make_token(&["--tenant", "two"])? };
    other.post(&call, &headers)?.expect(404)?;
    other.server.as_(&other.token, "DELETE", "/mcp", None, &headers)?.expect(404)?;
    other
        .server
        .as_(&other.token, "GET", "/mcp", None, &[&headers[..], &[("Accept", "text/event-stream")]].concat())?
        .expect(404)?;
    message_of(&http.post(&call, &headers)?.expect(200)?).ok_or("still there")?;
    let ended = server.as_(&server.token, "DELETE", "/mcp", None, &headers)?;
    holds((200..300).contains(&ended.status), ended.status)?;
    http.post(&call, &headers)?.expect(404).map(drop)
}

/// Over both ways: what is asked goes on while the client is away, and ends once.
fn approved(who: Who) -> Result<(), String> {
    let server = Server::with(desk(who)?, &[])?;
    let token = server.make_token(&["--agent", "coder", "--scopes", "run,files,read"])?;
    asks_and_hears(&mut Http { server: &server, token }, &server.desk)?;
    let mut talk = Stdio_::start(&server.desk, &["--agent", "coder"])?;
    asks_and_hears(&mut talk, &server.desk)?;
    talk.leave()
}

fn asks_and_hears(talk: &mut impl Talks, desk: &Desk) -> Result<(), String> {
    let arguments = json!({"command": ["id"]});
    let asked = talk.tool("run_command", arguments.clone())?;
    holds(asked["resultType"] == "input_required", &asked)?;
    let state = asked["requestState"].clone();
    let id = asked["_meta"]["belljar/question"].as_str().ok_or("the question")?.to_owned();
    let message = asked["inputRequests"]["person"]["params"]["message"].as_str().unwrap_or_default();
    holds(message.contains(&format!("belljar approve {id}")), &asked)?;
    let parked = person::parked(desk)?;
    holds(parked.len() == 1 && parked[0]["question"]["principal"]["agent"] == "coder", json!(parked))?;
    person::answer(desk, &id, "--once")?;
    let ran = talk.done("tools/call", again("run_command", &arguments, &state, None))?;
    holds(ran["resultType"] == "complete" && ran["structuredContent"]["exit"] == 0, &ran)?;
    // The answer was used.
    let replayed = talk.done("tools/call", again("run_command", &arguments, &state, None))?;
    holds(replayed["isError"] == true && kind(&replayed) == "request-state", &replayed)?;
    // A no is a no, and says who said it.
    let asked = talk.tool("run_command", arguments.clone())?;
    let id = asked["_meta"]["belljar/question"].as_str().ok_or("the question")?.to_owned();
    person::answer(desk, &id, "--deny")?;
    let denied = talk.done("tools/call", again("run_command", &arguments, &asked["requestState"], None))?;
    let text = denied["content"][0]["text"].as_str().unwrap_or_default();
    holds(denied["isError"] == true && text.contains("said no"), &denied)?;
    // Whoever declines at the client ends it: that much a form can do.
    let asked = talk.tool("run_command", arguments.clone())?;
    let no = json!({"person": {"action": "decline"}});
    let ended = talk.done("tools/call", again("run_command", &arguments, &asked["requestState"], Some(no)))?;
    holds(ended["isError"] == true, &ended)?;
    until("nobody is asked any more", || Ok(person::parked(desk)?.is_empty()))
}

fn taken(who: Who) -> Result<(), String> {
    let desk = desk(who)?;
    let mut talk = Stdio_::start(&desk, &[])?;
    talk.tool("write_file", json!({"path": "new.txt", "text": "new\n"}))?;
    let real = desk.project.work.join("new.txt");
    holds(!real.exists(), "it is in the sandbox alone")?;
    let asked = talk.tool("apply", json!({}))?;
    holds(asked["resultType"] == "input_required", &asked)?;
    let id = asked["_meta"]["belljar/question"].as_str().ok_or("the question")?.to_owned();
    let shown = json!(person::parked(&desk)?).to_string();
    holds(shown.contains("new.txt") && shown.contains("apply.by-agent"), shown)?;
    holds(!real.exists(), "nothing is taken before the answer")?;
    // What is agreed to is what was shown: a change after the question is none of it.
    talk.tool("write_file", json!({"path": "new.txt", "text": "something else\n"}))?;
    person::answer(&desk, &id, "--once")?;
    let other = talk.done("tools/call", again("apply", &json!({}), &asked["requestState"], None))?;
    let after = std::fs::read_to_string(&real).unwrap_or_default();
    holds(after != "something else\n", format!("nobody agreed to that: {other}"))?;
    // And to this one they do.
    let asked = talk.tool("apply", json!({"paths": ["new.txt"]}))?;
    let id = asked["_meta"]["belljar/question"].as_str().ok_or_else(|| format!("the question: {asked}"))?.to_owned();
    person::answer(&desk, &id, "--once")?;
    let done = talk.done("tools/call", again("apply", &json!({"paths": ["new.txt"]}), &asked["requestState"], None))?;
    holds(done["structuredContent"]["taken"][0]["path"] == "new.txt", &done)?;
    holds(told(std::fs::read_to_string(&real))? == "something else\n", "it is there")?;
    talk.leave()
}

fn cancelled(who: Who) -> Result<(), String> {
    let desk = desk(who)?;
    let mut talk = Stdio_::start(&desk, &[])?;
    talk.shake_hands("2025-11-25")?;
    let mark = mark("mcp-cancel");
    let endless = json!(["sh", "-c", "echo began; while :; do sleep 1; done", mark]);
    let call = json!({"name": "run_command", "arguments": {"command": endless}, "_meta": {"progressToken": "p"}});
    let id = talk.begin("tools/call", &call)?;
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    let note = loop {
        let heard = talk.hear()?;
        if heard["method"] == "notifications/progress" && heard["params"]["message"] == "began" {
            break heard;
        }
    };
    holds(note["params"]["progressToken"] == "p", &note)?;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    talk.send(cancel.to_string().as_bytes())?;
    until("it has ended", || Ok(processes(&mark).is_empty()))?;
    // The server is as before, and the sandbox is free again.
    let params = json!({"name": "run_command", "arguments": {"command": ["echo", "hi"]}});
    let ran = talk.done("tools/call", params)?;
    holds(ran["structuredContent"]["stdout"] == "hi\n", &ran)?;
    talk.leave()?;
    // A client that goes away takes its runs along.
    let mut talk = Stdio_::start(&desk, &[])?;
    talk.begin("tools/call", &crate::raw::call("run_command", &json!({"command": endless})))?;
    until("it runs", || Ok(!processes(&mark).is_empty()))?;
    talk.leave()?;
    until("it has ended", || Ok(processes(&mark).is_empty()))
}

fn tidy(who: Who) -> Result<(), String> {
    let desk = desk(who)?;
    let count = || -> Result<usize, String> {
        let listed: Value = told(serde_json::from_slice(&desk.project.done(["ps", "--json"])?.out))?;
        Ok(listed.as_array().or(listed["sandboxes"].as_array()).map_or(0, Vec::len))
    };
    let mut talk = Stdio_::start(&desk, &[])?;
    talk.tool("run_command", json!({"command": ["true"]}))?;
    holds(count()? == 1, "it is there while it is used")?;
    talk.leave()?;
    holds(count()? == 0, "and not when nothing is in it")?;
    let mut talk = Stdio_::start(&desk, &[])?;
    let wrote = talk.tool("write_file", json!({"path": "b.txt", "text": "b"}))?;
    let id = wrote["structuredContent"]["sandbox"].as_str().ok_or("its id")?.to_owned();
    talk.leave()?;
    holds(count()? == 1, "what was changed is kept")?;
    let mut talk = Stdio_::start(&desk, &["--sandbox", &id])?;
    let read = talk.tool("read_file", json!({"path": "b.txt"}))?;
    holds(read["structuredContent"]["text"] == "b", &read)?;
    talk.leave()
}

fn printed(who: Who) -> Result<(), String> {
    let desk = desk(who)?;
    for (client, file) in [
        ("claude-code", ".mcp.json"),
        ("codex", "~/.codex/config.toml"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".vscode/mcp.json"),
    ] {
        let said = desk.project.done(["mcp", "--print-config", client, "--json"])?;
        let said: Value = told(serde_json::from_slice(&said.out))?;
        holds(said["file"] == file && said["text"].as_str().is_some_and(|text| text.contains("\"mcp\"")), &said)?;
        let plain = String::from_utf8_lossy(&desk.project.done(["mcp", "--print-config", client])?.out).into_owned();
        holds(plain.contains(file) && plain.contains(said["text"].as_str().unwrap_or("?")), plain)?;
    }
    let help = String::from_utf8_lossy(&desk.project.done(["mcp", "--help"])?.out).into_owned();
    holds(help.contains("--print-config") && help.contains("belljar approve"), help)?;
    desk.expect(&["mcp", "--print-config", "emacs"], 125, "claude-code, codex, cursor or vscode").map(drop)
}
