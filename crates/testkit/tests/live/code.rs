//! `belljar code`: once, and in a session that needs no server.

use std::io::Write;
use std::process::Stdio;

use belljar_testkit::project::Project;
use belljar_testkit::{Who, twice};
use serde_json::Value;

pub const ALL: &[(&str, twice::Check)] = &[
    ("code_runs_once_from_its_input_or_a_file", once),
    ("variables_of_a_session_stay_until_it_is_stopped", session),
    ("a_session_is_forked_with_its_variables", forked),
    ("results_of_a_session_are_kept_where_they_are_wanted", saved),
    ("a_session_whose_interpreter_ends_begins_anew_and_says_so", anew),
];

fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// What it exits with, and says on both outputs.
fn code(project: &Project, words: &[&str], input: &str) -> Result<(Option<i32>, String, String), String> {
    let mut command = project.command([&["code"], words].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = told(command.spawn())?;
    let mut stdin = child.stdin.take().ok_or("an input")?;
    // One that says no need not read it.
    drop(stdin.write_all(input.as_bytes()));
    drop(stdin);
    let output = told(child.wait_with_output())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.code(), text(&output.stdout), text(&output.stderr)))
}

fn is(said: (Option<i32>, String, String), code: i32, out: &str) -> Result<String, String> {
    match said.0 == Some(code) && said.1 == out {
        true => Ok(said.2),
        false => Err(format!("not {code} and {out:?}, but {said:?}")),
    }
}

fn once(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    is(code(&project, &["-q", "--lang", "python", "-"], "print(6 * 7)")?, 0, "42\n")?;
    is(code(&project, &["-q", "--lang", "bash", "-"], "exit 3")?, 3, "")?;
    told(project.put("script.sh", "echo \"from a file\"\n"))?;
    is(code(&project, &["-q", "--lang", "bash", "script.sh"], "")?, 0, "from a file\n")?;
    told(project.put("main.c", "#include <stdio.h>\nint main(void) { puts(\"compiled\"); return 4; }\n"))?;
    is(code(&project, &["-q", "main.c"], "")?, 4, "compiled\n")?;
    let unknown = is(code(&project, &["-q", "what"], "")?, 125, "")?;
    holds(unknown.contains("--lang"), &unknown)?;
    let none = is(code(&project, &["-q", "--lang", "c", "--session", "s", "-"], "")?, 125, "")?;
    holds(none.contains("no sessions"), &none)
}

fn holds(is: bool, what: &str) -> Result<(), String> {
    if is { Ok(()) } else { Err(what.to_owned()) }
}

const PYTHON: &[&str] = &["-q", "--lang", "python", "--session", "s", "-"];

fn session(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    is(code(&project, PYTHON, "x = 41\nprint('said')")?, 0, "said\n")?;
    is(code(&project, PYTHON, "x + 1")?, 0, "42\n")?;
    let failed = is(code(&project, PYTHON, "y = x\n1 / 0")?, 1, "")?;
    holds(failed.contains("ZeroDivisionError") && failed.contains("line 2"), &failed)?;
    let late =
        code(&project, &["-q", "--lang", "python", "--session", "s", "--timeout", "1s", "-"], "while True: pass")?;
    holds(late.2.contains("KeyboardInterrupt"), &format!("{late:?}"))?;
    is(code(&project, PYTHON, "y")?, 0, "41\n")?;
    // Another language beside it, over the same files.
    is(code(&project, &["-q", "--lang", "bash", "--session", "s", "-"], "z=5; echo new > made")?, 0, "")?;
    is(code(&project, &["-q", "--lang", "bash", "--session", "s", "-"], "echo $z; cat made")?, 0, "5\nnew\n")?;
    is(code(&project, PYTHON, "open('made').read()")?, 0, "'new\\n'\n")?;
    let result = is(code(&project, &["--json", "--lang", "python", "--session", "s", "-"], "x")?, 0, "")?;
    let result: Value = told(serde_json::from_str(result.lines().last().unwrap_or_default()))?;
    let part = &result["cell"]["results"][0]["parts"][0];
    holds(part["data"] == "41" && result["cell"]["fresh"] == false && result["outcome"] == "ran", &result.to_string())?;
    let stopped = code(&project, &["--stop", "s"], "")?;
    holds(stopped.0 == Some(0) && stopped.1.contains("ended"), &format!("{stopped:?}"))?;
    let again = code(&project, &["--stop", "s"], "")?;
    holds(again.0 == Some(125), &format!("{again:?}"))?;
    // Its files stay; its variables do not.
    is(code(&project, PYTHON, "('x' in globals(), open('made').read())")?, 0, "(False, 'new\\n')\n")?;
    code(&project, &["--stop", "s"], "").map(drop)
}

fn forked(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    is(
        code(
            &project,
            PYTHON,
            "x = 41\ndef f(): return x + 1\ngen = (i for i in [1])\nopen('made', 'w').write('parent') and None",
        )?,
        0,
        "",
    )?;
    let said = project.done(["fork", "s", "-n", "2", "--context", "python"])?;
    let said = String::from_utf8_lossy(&said.out).into_owned();
    holds(said.starts_with("s-1\ns-2\n") && said.contains("gen stayed behind"), &said)?;
    let session = |name: &'static str| ["-q", "--lang", "python", "--session", name, "-"];
    is(code(&project, &session("s-1"), "x = 1\nopen('made', 'w').write('fork')\nf()")?, 0, "2\n")?;
    for name in ["s", "s-2"] {
        is(code(&project, &session(name), "f(), open('made').read()")?, 0, "(42, 'parent')\n")?;
    }
    // As JSON; and what can't be is said.
    let told_json = project.done(["fork", "s-1", "--context", "python", "--json"])?;
    let told_json: Value = told(serde_json::from_slice(&told_json.out))?;
    let again = told_json["forks"][0]["name"].as_str().unwrap_or_default();
    holds(again == "s-1-1", &told_json.to_string())?;
    is(code(&project, &["-q", "--lang", "python", "--session", "s-1-1", "-"], "f()")?, 0, "2\n")?;
    let mut none = project.command(["fork", "s", "--context", "nothing"]);
    let none = told(none.output())?;
    holds(none.status.code() == Some(125), &String::from_utf8_lossy(&none.stderr))?;
    ["s", "s-1", "s-2", "s-1-1"].iter().try_for_each(|name| code(&project, &["--stop", name], "").map(drop))
}

fn saved(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    let shows = "class Rich:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n123'\n    def _repr_html_(self): return '<b>'\nRich()";
    let folder = project.work.join("results");
    let folder = folder.to_string_lossy();
    let words = ["-q", "--lang", "python", "--session", "s", "--save-results", &folder, "-"];
    let said = code(&project, &words, shows)?;
    holds(said.0 == Some(0), &format!("{said:?}"))?;
    let read = |name: &str| told(std::fs::read(format!("{folder}/{name}")));
    holds(read("python-1-1.png")? == b"\x89PNG\r\n\x1a\n123", "the image as it is")?;
    holds(read("python-1-1.html")? == b"<b>", "and the other")?;
    code(&project, &["--stop", "s"], "").map(drop)
}

fn anew(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    is(code(&project, PYTHON, "import os\nx = 41")?, 0, "")?;
    // What ends the interpreter is said, and the next begins anew.
    let ended = code(&project, PYTHON, "os._exit(7)")?;
    holds(ended.0 == Some(7) && ended.2.contains("variables are gone"), &format!("{ended:?}"))?;
    is(code(&project, PYTHON, "'x' in globals()")?, 0, "False\n")?;
    code(&project, &["--stop", "s"], "").map(drop)
}
