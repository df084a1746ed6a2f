//! What a person finds in the record after ordinary work.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::Value;

use crate::desk::Desk;

pub const ALL: &[(&str, Check)] = &[
    ("a_run_is_told_from_what_was_asked_to_how_it_ended", whole),
    ("every_program_that_is_started_is_told_with_its_words", programs),
    ("what_was_said_and_left_is_known_by_its_digest", digests),
    ("what_a_run_used_over_its_time_is_drawn", usage),
    ("time_of_children_counts_once", time_once),
    ("what_was_refused_is_found_as_such", refused),
    ("what_is_taken_is_recorded_before_and_after", commit),
    ("many_runs_at_once_make_one_chain", many),
    ("an_anchor_is_told_each_checkpoint", anchor),
];

/// The entries that are asked for.
pub fn entries(desk: &Desk, words: &[&str]) -> Result<Vec<Value>, String> {
    let said = desk.expect(&[&["log", "--json"], words].concat(), 0, "")?;
    let text = String::from_utf8_lossy(&said.out).into_owned();
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))).collect()
}

fn kinds(entries: &[Value]) -> Vec<&str> {
    entries.iter().filter_map(|entry| entry["type"].as_str()).collect()
}

pub fn sound(desk: &Desk) -> Result<Value, String> {
    let said = desk.expect(&["ledger", "verify", "--json"], 0, "")?;
    serde_json::from_slice(&said.out).map_err(|error| error.to_string())
}

fn whole(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let script = "import ctypes\nif ctypes.CDLL(None).unshare(0x10000000): open('made', 'w').write('x')";
    let said =
        desk.expect(&["run", "-q", "--json", "--agent", "tester", "--", "/usr/bin/python3", "-c", script], 0, "")?;
    let result: Value = serde_json::from_str(&said.error).map_err(|error| format!("{error}: {said:?}"))?;
    let run = result["run"].as_str().ok_or("the result has no run")?;
    let told = entries(&desk, &["--run", run])?;
    let wanted = [
        "run.asked", "run.judged", "sandbox.opening", "sandbox.armed", "program.started", "call.denied",
        "files.changed", "run.ended", "run.receipt",
    ];
    if kinds(&told) != wanted {
        return Err(format!("{:?}", kinds(&told)));
    }
    if told[0]["data"]["command"][2] != script || told.iter().any(|entry| entry["agent"] != "tester") {
        return Err(format!("{told:?}"));
    }
    if told[1]["data"]["ruling"] != "allow" || told[5]["denied"] != true || told[5]["data"]["call"] != "unshare" {
        return Err(format!("{told:?}"));
    }
    if told[2]["data"]["walls"]["system-calls"] != "fully" || told[7]["data"]["exit"] != 0 {
        return Err(format!("{told:?}"));
    }
    // Allowed by a rule that is named; tried from inside; what it left is a digest and a path.
    let proven = told[3]["data"]["proven"].as_array().map_or(0, Vec::len);
    let (rules, changed) = (&told[1]["data"]["rules"], &told[6]["data"]);
    if proven != 7 || !rules[0]["rule"].is_string() || changed["paths"][0]["path"] != "made" {
        return Err(format!("{told:?}"));
    }
    if changed["manifest"]["blake3"].as_str().map(str::len) != Some(64) {
        return Err(format!("{changed}"));
    }
    // The last run is the same; and in words.
    if entries(&desk, &["--run", "last"])? != told {
        return Err("`last` is another".to_owned());
    }
    let words = desk.expect(&["log", "--run", "last"], 0, "")?;
    let words = String::from_utf8_lossy(&words.out).into_owned();
    if !words.contains("unshare by") || !words.contains("1 added in") || !words.contains("exit 0") {
        return Err(words);
    }
    let report = sound(&desk)?;
    match (report["unsigned"].as_u64(), report["checkpoints"].as_u64()) {
        (Some(0), Some(1..)) => Ok(()),
        _ => Err(format!("{report}")),
    }
}

/// Also one that leaves its session and its parent, and one that is looked for along PATH.
fn programs(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let script = "/usr/bin/python3 -c 'import os; os.fork() or (os.setsid(), os.fork() or os.execlp(\"expr\", \"expr\", \"6\", \"*\", \"7\"))'\n\
                  env A=b printf x\n/bin/true one 'two words'\nnot-there || exec sleep 0.2";
    desk.expect(&["run", "-q", "--", "sh", "-c", script], 0, "")?;
    let told = entries(&desk, &["--run", "last", "--type", "program.started"])?;
    let words = |entry: &Value| -> Vec<String> {
        let words = entry["data"]["arguments"].as_array().into_iter().flatten();
        words.map(|word| word.as_str().unwrap_or_default().to_owned()).collect()
    };
    let all: Vec<Vec<String>> = told.iter().map(words).collect();
    for wanted in [
        &["sh", "-c", script][..],
        &["expr", "6", "*", "7"],
        &["env", "A=b", "printf", "x"],
        &["printf", "x"],
        &["/bin/true", "one", "two words"],
        &["sleep", "0.2"],
    ] {
        let count = all.iter().filter(|words| *words == wanted).count();
        if count != 1 {
            return Err(format!("{wanted:?} is there {count} times: {all:?}"));
        }
    }
    match told.iter().all(|entry| entry["data"]["parent"].is_number()) {
        true => Ok(()),
        false => Err(format!("{told:?}")),
    }
}

/// The same output and changes have the same digests, others have others; and they are those of what the caller got.
fn digests(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let run = |script: &str| -> Result<(Vec<u8>, Value, Value), String> {
        let said = desk.expect(&["run", "-q", "--", "sh", "-c", script], 0, "")?;
        let data = |kind: &str| -> Result<Value, String> {
            let found = entries(&desk, &["--run", "last", "--type", kind])?;
            Ok(found.first().map_or(Value::Null, |entry| entry["data"].clone()))
        };
        Ok((said.out, data("output.released")?, data("files.changed")?["manifest"]["blake3"].clone()))
    };
    let script = "printf 'one\\ntwo'; printf oops >&2; echo 1 > left; mkdir d; ln -s left link";
    let (out, said, left) = run(script)?;
    let expected = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    if said["stdout"]["blake3"] != expected(&out) || said["stdout"]["bytes"] != out.len() {
        return Err(format!("{said} of {out:?}"));
    }
    if said["stderr"]["blake3"] != expected(b"oops") {
        return Err(format!("{said}"));
    }
    // Also where nothing is taken out of it.
    desk.policy("[release]\nredact = false\n")?;
    let (_, again, left_again) = run(script)?;
    if again["stdout"] != said["stdout"] || left_again != left || !left.is_string() {
        return Err(format!("{said} and {again}, {left} and {left_again}"));
    }
    for other in ["echo 2 > left", "echo 1 > right", "chmod 700 left", "ln -sf d link", "rm -r d"] {
        let (_, _, changed) = run(&format!("{script}; {other}"))?;
        if changed == left {
            return Err(format!("`{other}` changed nothing"));
        }
    }
    Ok(())
}

fn usage(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let script = "import time\nend = time.process_time() + 1.5\nwhile time.process_time() < end: pass\ntime.sleep(1.2)";
    desk.expect(&["run", "-q", "--", "/usr/bin/python3", "-c", script], 0, "")?;
    let samples = entries(&desk, &["--run", "last", "--type", "run.sample"])?;
    let last = samples.last().map(|entry| &entry["data"]).ok_or("there are no samples")?;
    if last["processor"].as_f64().is_none_or(|time| time < 1.0) || last["memory"].as_u64().is_none_or(|size| size == 0)
    {
        return Err(format!("{samples:?}"));
    }
    if last["read"].as_u64().is_none_or(|size| size == 0) || last["processes"].as_u64().is_none_or(|count| count == 0) {
        return Err(format!("{samples:?}"));
    }
    let words = desk.expect(&["log", "--run", "last"], 0, "")?;
    let words = String::from_utf8_lossy(&words.out).into_owned();
    match words.contains("processor  ") && words.contains('█') && !words.contains("run.sample") {
        true => Ok(()),
        false => Err(words),
    }
}

/// Where no control group counts it: a child's time was its own, its parent's and its grandparent's.
fn time_once(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let spin = "import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end: pass";
    let nested = format!("for i in 1 2 3; do sh -c \"sh -c 'python3 -c \\\"{spin}\\\"; true'; true\"; done; true");
    let script = nested.replace("python3", "/usr/bin/python3");
    desk.expect(&["run", "-q", "--cpu-time", "4s", "--", "sh", "-c", &script], 0, "").map(drop)?;
    let endless = "while :; do :; done";
    let said = desk.say(&["run", "-q", "--cpu-time", "1s", "--timeout", "60s", "--json", "--", "sh", "-c", endless])?;
    match said.error.contains("\"cpu-time\"") {
        true => Ok(()),
        false => Err(format!("{said:?}")),
    }
}

fn refused(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[defaults]\nexec = \"allow\"\n[[rule]]\nid = \"no-curl\"\nwhen = { action = \"exec\", program = \"curl\" }\nthen = \"deny\"\nwhy = \"no curl here\"\n")?;
    desk.expect(&["run", "--", "true"], 0, "")?;
    desk.expect(&["run", "--", "curl", "x"], 123, "no curl here")?;
    // Not even well-formed, and still somebody asked for it.
    desk.expect(&["run", "--cwd", "/does/not/exist", "--", "true"], 125, "")?;
    let denied = entries(&desk, &["--denied"])?;
    if kinds(&denied) != ["run.judged", "run.ended"] || denied[0]["data"]["rules"][0]["rule"] != "no-curl" {
        return Err(format!("{denied:?}"));
    }
    let asked = entries(&desk, &["--type", "run.asked"])?;
    if asked.len() != 3 {
        return Err(format!("{asked:?}"));
    }
    sound(&desk).map(drop)
}

fn commit(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.put("a.txt", "one\n")?;
    desk.project.let_it_age();
    desk.expect(&["run", "-q", "--", "sh", "-c", "echo two > a.txt; echo three > b.txt"], 0, "")?;
    desk.expect(&["apply"], 0, "")?;
    let told = entries(&desk, &["--type", "commit"])?;
    if kinds(&told) != ["commit.begun", "commit.ended"] || told[1]["data"]["taken_count"] != 2 {
        return Err(format!("{told:?}"));
    }
    desk.expect(&["run", "-q", "--", "sh", "-c", "echo four > a.txt"], 0, "")?;
    desk.expect(&["discard"], 0, "")?;
    let told = entries(&desk, &["--type", "sandbox.discarded"])?;
    if told.len() != 1 {
        return Err(format!("{told:?}"));
    }
    sound(&desk).map(drop)
}

fn many(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let mut children = Vec::new();
    for _ in 0..10 {
        let mut command = desk.project.command(["run", "-q", "--workspace-mode", "readonly", "--", "true"]);
        children.push(command.spawn().map_err(|error| error.to_string())?);
    }
    for mut child in children {
        let status = child.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("{status}"));
        }
    }
    let ended = entries(&desk, &["--type", "run.ended"])?;
    sound(&desk)?;
    match ended.len() {
        10 => Ok(()),
        count => Err(format!("{count} of 10")),
    }
}

fn anchor(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let file = desk.project.work.join("anchor");
    let name = file.to_string_lossy().into_owned();
    desk.expect(&["ledger", "anchor", "--file", &name], 0, "")?;
    desk.expect(&["ledger", "anchor", "--command", "cat >> anchored-too"], 0, "")?;
    desk.expect(&["run", "-q", "--", "true"], 0, "")?;
    desk.expect(&["run", "-q", "--", "true"], 0, "")?;
    let read = |path: &std::path::Path| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let (first, second) = (read(&file)?, read(&desk.project.work.join("anchored-too"))?);
    if !first.ends_with(&second) || second.lines().count() != 2 {
        return Err(format!("{first}\n---\n{second}"));
    }
    let report = sound(&desk)?;
    if report["anchored"].as_u64() < Some(2) {
        return Err(format!("{report}"));
    }
    // Back to where it was before the last run, with the note of it gone: the anchor knows.
    let ledger = desk.home.join(".local/state/belljar/ledger");
    let segment = ledger.join("00000001.log");
    let text = read(&segment)?;
    let asked = text.lines().position(|line| line.contains("run.asked")).ok_or("no run")?;
    let kept: String = text.lines().take(asked).map(|line| format!("{line}\n")).collect();
    std::fs::write(&segment, kept).map_err(|error| error.to_string())?;
    std::fs::remove_file(ledger.join("head")).map_err(|error| error.to_string())?;
    let said = desk.expect(&["ledger", "verify"], 1, "")?;
    let words = String::from_utf8_lossy(&said.out).into_owned();
    if words.contains("rolled back") { Ok(()) } else { Err(words) }
}
