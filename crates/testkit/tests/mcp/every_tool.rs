//! One plan with every tool in it, for each client, each way to talk and each revision.

use belljar_testkit::Who;
use serde_json::{Value, json};

use crate::client::Address;
use crate::clients::{self, Driver};
use crate::desk::Desk;
use crate::server::{Server, mark, processes, until};
use crate::{POLICY, holds, person, told};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Over {
    Stdio,
    Http,
}

impl Over {
    pub fn name(self) -> &'static str {
        match self {
            Over::Stdio => "stdio",
            Over::Http => "http",
        }
    }
}

pub fn check(who: Who, driver: Driver, mode: &'static str, over: Over) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(POLICY)?;
    desk.put("a.txt", "hello\n")?;
    desk.project.let_it_age();
    let mark = mark("mcp");
    let mut plan = json!({"mode": mode, "steps": steps(over, &mark)});
    let said = match over {
        Over::Stdio => {
            connect(&desk, &mut plan);
            let said = person::says_yes(&desk, || clients::drive(driver, &plan, &desk.home))?;
            let taken = told(std::fs::read_to_string(desk.project.work.join("sub/new.txt")))?;
            holds(taken == "two\nlines\n", format!("what a person agreed to is there: {taken}"))?;
            said
        }
        Over::Http => {
            let server = Server::with(desk, &[])?;
            let Address::Port(port) = server.address else { return Err("it is on loopback".to_owned()) };
            plan["url"] = format!("http://127.0.0.1:{port}/mcp").into();
            plan["token"] = server.make_token(&["--agent", "story", "--scopes", "run,files,read"])?.into();
            let said = person::says_yes(&server.desk, || clients::drive(driver, &plan, &server.desk.home))?;
            until("what was cancelled has ended", || Ok(processes(&mark).is_empty()))?;
            said
        }
    };
    until("what was cancelled has ended", || Ok(processes(&mark).is_empty()))?;
    let wanted = if mode == "legacy" { "2025-11-25" } else { mode };
    holds(said["version"] == wanted, &said["version"])?;
    look(&plan, &said["said"], mode == "legacy")
}

/// How a client starts it: as the owner of the project would.
fn connect(desk: &Desk, plan: &mut Value) {
    let command = desk.project.command(["mcp"]);
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    plan["command"] = text(command.get_program()).into();
    plan["args"] = command.get_args().map(text).collect::<Vec<_>>().into();
    plan["env"] = command
        .get_envs()
        .filter_map(|(name, value)| Some((text(name), Value::from(text(value?)))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    plan["cwd"] = desk.project.work.display().to_string().into();
}

fn steps(over: Over, mark: &str) -> Value {
    let line = "echo out; echo err >&2; echo made > made.txt; mkdir -p out; echo art > out/art.txt";
    let mut first = json!({"command": ["sh", "-c", line], "artifacts": ["out/*.txt"]});
    if over == Over::Http {
        first["files"] = json!({"a.txt": "hello\n"});
    }
    let s = "$sandbox";
    let endless = ["sh", "-c", "echo began; while :; do sleep 1; done", mark];
    json!([
        {"list": true},
        {"tool": "run_command", "arguments": first, "progress": true,
         "save": {"sandbox": "sandbox", "run": "run", "artifact": "artifacts.0.id"}},
        {"tool": "run_code", "arguments": {"sandbox": s, "language": "python", "code": "print(6 * 7)"}},
        {"tool": "read_file", "arguments": {"sandbox": s, "path": "a.txt"}},
        {"tool": "write_file", "arguments": {"sandbox": s, "path": "sub/new.txt", "text": "one\nlines\n"}},
        {"tool": "edit_file", "arguments": {"sandbox": s, "path": "sub/new.txt", "edits": [{"old": "one", "new": "two"}]}},
        {"tool": "list_files", "arguments": {"sandbox": s, "depth": 2}},
        {"tool": "search_files", "arguments": {"sandbox": s, "pattern": "hel+o", "regex": true}},
        {"tool": "snapshot", "arguments": {"sandbox": s, "name": "one"}},
        {"tool": "run_command", "arguments": {"sandbox": s, "command": ["rm", "made.txt"]}},
        {"tool": "rollback", "arguments": {"sandbox": s, "snapshot": "one"}},
        {"tool": "read_file", "arguments": {"sandbox": s, "path": "made.txt"}},
        {"tool": "fork", "arguments": {"sandbox": s, "count": 2}, "save": {"fork": "forks.0"}},
        {"tool": "write_file", "arguments": {"sandbox": "$fork", "path": "only-here.txt", "base64": "AAE="}},
        {"tool": "diff", "arguments": {"sandbox": s, "patch": true}},
        {"tool": "diff", "arguments": {"sandbox": s, "other": "$fork"}},
        {"tool": "list_artifacts", "arguments": {"of": "$run"}},
        {"tool": "get_artifact", "arguments": {"id": "$artifact"}},
        {"tool": "explain_denial", "arguments": {"command": ["who"]}},
        {"tool": "explain_denial", "arguments": {"run": "$run"}},
        {"tool": "run_command", "arguments": {"sandbox": s, "command": ["who"]}},
        {"tool": "request_permission", "arguments": {"sandbox": s, "command": ["id"]}, "again": true},
        {"tool": "run_command", "arguments": {"sandbox": s, "command": ["id"]}, "again": true},
        {"tool": "apply", "arguments": {"sandbox": s, "check": true}},
        {"tool": "apply", "arguments": {"sandbox": s}, "again": true},
        {"resources": true},
        {"read": "belljar://runs/$run/log"},
        {"read": "belljar://runs/$run/record"},
        {"read": "belljar://artifacts/$artifact"},
        {"tool": "run_command", "arguments": {"sandbox": s, "command": endless}, "progress": true, "cancel": true},
    ])
}

/// The next thing that was said, by what it was about.
fn look(plan: &Value, said: &Value, older: bool) -> Result<(), String> {
    let steps = plan["steps"].as_array().ok_or("steps")?;
    let said = said.as_array().ok_or("what was said")?;
    holds(steps.len() == said.len(), format!("{} of {}", said.len(), steps.len()))?;
    let tools: Vec<&str> =
        said[0]["tools"].as_array().ok_or("tools")?.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let called: std::collections::BTreeSet<&str> = steps.iter().filter_map(|step| step["tool"].as_str()).collect();
    holds(
        tools.len() == 16 && called == tools.iter().copied().collect(),
        format!("all are tried: {tools:?} {called:?}"),
    )?;
    let at = |number: usize| -> Result<&Value, String> {
        let result = &said[number]["result"];
        holds(result["isError"] != true, format!("step {number}: {result}"))?;
        Ok(&result["structuredContent"])
    };
    let is = |number: usize, field: &str, value: Value| -> Result<(), String> {
        let found = at(number)?.pointer(field).cloned().unwrap_or_default();
        holds(found == value, format!("step {number}, {field}: {}", said[number]))
    };
    is(1, "/stdout", json!("out\n"))?;
    is(1, "/stderr", json!("err\n"))?;
    is(1, "/exit", json!(0))?;
    holds(said[1]["notes"].as_array().is_some_and(|notes| !notes.is_empty()), "progress was told")?;
    is(2, "/stdout", json!("42\n"))?;
    is(3, "/text", json!("hello\n"))?;
    is(5, "/replaced", json!(1))?;
    let listed = at(6)?["entries"].to_string();
    holds(listed.contains("sub/new.txt") && listed.contains("made.txt"), listed)?;
    is(7, "/matches/0/line", json!(1))?;
    is(8, "/snapshot", json!("one"))?;
    is(9, "/exit", json!(0))?;
    is(10, "/snapshot", json!("one"))?;
    is(11, "/text", json!("made\n"))?;
    holds(at(12)?["forks"].as_array().is_some_and(|forks| forks.len() == 2), "two forks")?;
    let patch = at(14)?["patch"].as_str().unwrap_or_default().to_owned();
    holds(patch.contains("+two") && !patch.contains("only-here"), patch)?;
    let other = at(15)?["changes"].to_string();
    holds(other.contains("only-here.txt") && !other.contains("made.txt"), other)?;
    is(16, "/artifacts/0/released", json!(true))?;
    is(17, "/text", json!("art\n"))?;
    is(18, "/ruling", json!("deny"))?;
    at(19)?;
    let refused = &said[20]["result"];
    holds(refused["isError"] == true, refused)?;
    let error = &refused["structuredContent"]["error"];
    holds(error["kind"] == "refused" && error["rule"].as_str().is_some_and(|rule| rule.contains("no-who")), error)?;
    let text = refused["content"][0]["text"].as_str().unwrap_or_default();
    holds(text.contains("who") && text.contains("rule: ") && text.contains("fix: "), text)?;
    is(21, "/permitted", json!("by-answer"))?;
    is(22, "/exit", json!(0))?;
    holds(said[22]["asked"] == false, "what was asked for first is not asked again")?;
    holds(at(23)?["asked"].as_array().is_some_and(|asked| !asked.is_empty()), "a check says what would be asked")?;
    is(24, "/complete", json!(true))?;
    // The older revisions are told to come again; the newest waits within the call.
    holds(said[24]["asked"] == older, &said[24])?;
    let resources = said[25]["resources"].to_string();
    holds(resources.contains("belljar://runs/") && resources.contains("belljar://artifacts/"), resources)?;
    let log = said[26]["contents"][0]["text"].as_str().unwrap_or_default();
    holds(log.contains("out\n") && log.contains("err\n"), log)?;
    holds(said[27]["contents"][0]["text"].as_str().is_some_and(|text| text.contains("run.ended")), &said[27])?;
    holds(said[28]["contents"][0]["text"] == "art\n", &said[28])?;
    holds(said[29]["cancelled"] == true, &said[29])
}
