//! The same requests on every backend: what is said, how it ends, what was changed and why it was refused must be the
//! same, but for differences that are written down with their reasons. One that is written down and is no more fails too.

mod cases;
mod explained;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use belljar_testkit::contestant::belljar;
use belljar_testkit::engine::{self, Engine};
use belljar_testkit::project::Said;
use belljar_testkit::{Project, Who};
use cases::{Case, Family};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

/// Backends that are compared with `native`, and what they can be asked.
const BACKENDS: [(&str, Family); 3] =
    [("gvisor", Family::System), ("container", Family::System), ("wasm", Family::Language)];

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = vec![Trial::test("every_difference_has_a_reason_in_the_documentation", documented)];
    for (backend, family) in BACKENDS {
        for who in [Who::Root, Who::Ordinary] {
            let missing = match backend {
                "container" => engine::missing(),
                _ => unusable(backend, who),
            };
            // Its name says why: it is listed, and never counted as passed.
            let name = match &missing {
                None => format!("{backend}_does_as_native_does_as_{}", who.name()),
                Some(why) => format!("{backend}_does_as_native_does_as_{} (skipped: {why})", who.name()),
            };
            let trial = Trial::test(name, move || compare(backend, family, who));
            trials.push(trial.with_ignored_flag(missing.is_some()));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Why a backend can't be used here, in a few words.
fn unusable(backend: &str, who: Who) -> Option<String> {
    let report = || -> Option<Value> {
        let project = Project::new(who).ok()?;
        let said = project.belljar(["doctor", "--json"]).ok()?;
        serde_json::from_slice(&said.out).ok()
    };
    let Some(report) = report() else {
        return Some(format!("`{} doctor` says nothing", belljar().display()));
    };
    let found = report["backends"].as_array().into_iter().flatten().find(|one| one["backend"] == backend);
    match found {
        None => Some("this belljar has none".to_owned()),
        Some(report) if report["usable"] == true => None,
        Some(report) => {
            let broken = report["features"].as_array().into_iter().flatten().find(|feature| feature["works"] == false);
            let why = broken.map(|feature| format!("{}: {}", feature["what"], feature["detail"]));
            Some(why.unwrap_or_else(|| "see belljar doctor".to_owned()).replace(['"', '\n'], ""))
        }
    }
}

/// What came of a request, as far as it must be the same everywhere.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    code: Option<i32>,
    out: String,
    outcome: String,
    overrun: String,
    rule: String,
    changes: String,
    host: BTreeMap<String, String>,
}

fn compare(backend: &str, family: Family, who: Who) -> Result<(), Failed> {
    let engine = if backend == "container" { Some(Engine::start()?) } else { None };
    let socket = engine.as_ref().map(|engine| format!("unix://{}", engine.socket().display()));
    // One for all of them: interpreters are compiled once.
    let keeper = Project::new(who).map_err(|error| error.to_string())?;
    let mut cases = cases::all(family);
    if who == Who::Root {
        // What root adds is who owns what: a part of them shows that.
        cases = cases.into_iter().step_by(4).collect();
    }
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    for case in &cases {
        let (native, other) = (ask("native", case, &keeper, None)?, ask(backend, case, &keeper, socket.as_deref())?);
        let explained = explained::why(backend, &case.name);
        match (native == other, explained) {
            (true, None) => {}
            (false, Some(_)) => seen.push(case.name.clone()),
            (false, None) => wrong.push(format!("{}: native {native:?}\n    {backend} {other:?}", case.name)),
            (true, Some(_)) if explained::everywhere(backend, &case.name) => {
                wrong.push(format!("{}: is the same now; take it out of the table", case.name));
            }
            (true, Some(_)) => {}
        }
    }
    eprintln!("{} requests; {} differ, each for a reason that is written down", cases.len(), seen.len());
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("{} of {} requests:\n{}", wrong.len(), cases.len(), wrong.join("\n")).into()),
    }
}

fn ask(backend: &str, case: &Case, keeper: &Project, engine: Option<&str>) -> Result<Came, String> {
    let words = |error: std::io::Error| error.to_string();
    let project = Project::new(keeper.who).map_err(words)?;
    for (name, contents) in cases::FILES {
        project.put(name, contents).map_err(words)?;
    }
    project.let_it_age();
    // Beside the project: what is in it is the sandbox's.
    let result = project.state.join("result.json");
    let mut command = project.command(["run", "-q", "--backend", backend, "--result-file"]);
    command.arg(&result).args(&case.flags).arg("--").args(&case.words).env("GIVEN", "around");
    command.env("XDG_STATE_HOME", &keeper.state);
    engine.map(|engine| command.env("DOCKER_HOST", engine));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(words)?;
    if let Some(mut input) = child.stdin.take() {
        match input.write_all(case.input.as_bytes()) {
            // Not everybody reads it.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(words(error)),
            _ => {}
        }
    }
    let said = Said::of(child.wait_with_output().map_err(words)?);
    let told: Value = match fs::read(&result) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", case.name))?,
        Err(_) => Value::Null,
    };
    let mut host = BTreeMap::new();
    for entry in fs::read_dir(&project.work).map_err(words)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        host.insert(name, fs::read_to_string(entry.path()).unwrap_or_default());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // A folder for each project: its name is not of what came of it.
    let out = String::from_utf8_lossy(&said.out).replace(&*project.work.to_string_lossy(), "WORK");
    Ok(Came {
        code: said.code,
        out,
        outcome: text(&told["outcome"]),
        overrun: text(&told["overrun"]),
        rule: text(&told["error"]["rule"]),
        changes: changes(&told["changes"]),
        host,
    })
}

/// How many of each kind, without the sandbox's name.
fn changes(told: &Value) -> String {
    let Some(told) = told.as_object() else { return String::new() };
    let counts = told.iter().filter(|(_, value)| value.is_u64()).map(|(name, value)| format!("{name} {value}"));
    counts.collect::<Vec<_>>().join(", ")
}

fn documented() -> Result<(), Failed> {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/backends.md");
    let page = fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    let missing: Vec<&str> =
        explained::TABLE.iter().map(|difference| difference.why).filter(|why| !page.contains(why)).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("docs/backends.md does not say: {missing:#?}").into()),
    }
}
