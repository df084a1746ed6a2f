//! How far somebody has taken it: nothing is left out, whenever we are killed, and nobody else goes on from the same place.

use std::collections::BTreeSet;
use std::io::{BufReader, Read, Write};
use std::process::Stdio;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::Value;

use crate::desk::Desk;
use crate::place::{answer, desk_with_runs, listen, numbers, post};
use crate::told;

pub const ALL: &[(&str, Check)] = &[
    ("a_kill_in_the_middle_loses_nothing", killed),
    ("it_goes_on_where_it_ended", goes_on),
    ("a_cursor_is_of_one_record_format_and_choice", of_one),
    ("a_run_that_had_no_end_is_told_once_with_all_of_it", open_run),
];

/// More than goes into one message, several times.
fn many_programs(desk: &Desk) -> Result<(), String> {
    let script = "i=0; while [ $i -lt 2300 ]; do /bin/true; i=$((i+1)); done";
    desk.expect(&["run", "-q", "--workspace-mode", "readonly", "--", "sh", "-c", script], 0, "").map(drop)
}

/// The place has read a message and we are killed before it answers, again and again.
fn killed(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    many_programs(&desk)?;
    let all = numbers(&String::from_utf8_lossy(&desk.expect(&["export", "ndjson"], 0, "")?.out));
    let (listener, at) = listen()?;
    let export = || desk.project.command(["export", "ndjson", "--cursor", "k", "--to", &format!("http://{at}/")]);
    let (mut answered, mut heard) = (Vec::new(), Vec::new());
    for taken_before in [0, 1, 0, 2] {
        let mut child = told(export().spawn())?;
        for _ in 0..taken_before {
            let (mut stream, _) = told(listener.accept())?;
            answered.extend(numbers(&post(&mut stream).ok_or("no post")?));
            answer(&mut stream, 200)?;
        }
        let (mut stream, _) = told(listener.accept())?;
        heard.extend(numbers(&post(&mut stream).ok_or("no post")?));
        told(child.kill().and_then(|()| child.wait()))?;
    }
    if heard.len() < 500 || answered.len() < 500 {
        return Err(format!("the control failed: {} and {}", heard.len(), answered.len()));
    }
    let mut child = told(export().spawn())?;
    loop {
        let (mut stream, _) = told(listener.accept())?;
        let more = numbers(&post(&mut stream).ok_or("no post")?);
        let last = more.last() == all.last();
        answered.extend(more);
        answer(&mut stream, 200)?;
        if last {
            break;
        }
    }
    if !told(child.wait())?.success() {
        return Err("the last one failed".to_owned());
    }
    let distinct: BTreeSet<u64> = answered.iter().copied().collect();
    match distinct.into_iter().eq(all.iter().copied()) {
        // What was answered is not sent again, but for a message whose answer came before it was noted.
        true if answered.len() <= all.len() + 2 * 500 => Ok(()),
        _ => Err(format!("{} answered of {}", answered.len(), all.len())),
    }
}

fn goes_on(who: Who) -> Result<(), String> {
    let desk = desk_with_runs(who, 1)?;
    let mut all = Vec::new();
    let mut more = || -> Result<usize, String> {
        let said = desk.expect(&["export", "ndjson", "--cursor", "here"], 0, "")?;
        all.extend_from_slice(&said.out);
        Ok(said.out.len())
    };
    if more()? == 0 || more()? != 0 {
        return Err("it did not go on".to_owned());
    }
    desk.expect(&["run", "-q", "--", "true"], 0, "")?;
    more()?;
    let whole = desk.expect(&["export", "ndjson"], 0, "")?.out;
    if all == whole { Ok(()) } else { Err("something is missing, or there twice".to_owned()) }
}

fn of_one(who: Who) -> Result<(), String> {
    let desk = desk_with_runs(who, 1)?;
    desk.expect(&["export", "ndjson", "--cursor", "c", "--since", "1h"], 0, "")?;
    desk.expect(&["export", "ndjson", "--cursor", "c", "--since", "2h"], 0, "")?;
    desk.expect(&["export", "ocsf", "--cursor", "c"], 125, "is of another format")?;
    desk.expect(&["export", "ndjson", "--denied", "--cursor", "c"], 125, "is of another choice of entries")?;
    // While one goes on from it, no other does.
    let (listener, at) = listen()?;
    let mut child =
        told(desk.project.command(["export", "ndjson", "--cursor", "d", "--to", &format!("http://{at}/")]).spawn())?;
    let held = told(listener.accept());
    let second = desk.expect(&["export", "ndjson", "--cursor", "d"], 125, "another `belljar export` goes on");
    told(child.kill().and_then(|()| child.wait()))?;
    held.and(second)?;
    // Another record, under the same name.
    let ledger = desk.home.join(".local/state/belljar/ledger");
    told(std::fs::remove_dir_all(&ledger))?;
    desk.expect(&["run", "-q", "--", "true"], 0, "")?;
    desk.expect(&["export", "ndjson", "--cursor", "c"], 125, "is of another record").map(drop)
}

fn open_run(who: Who) -> Result<(), String> {
    let desk = desk_with_runs(who, 1)?;
    let spans = || -> Result<Vec<Value>, String> {
        let said = desk.expect(&["export", "otlp", "--cursor", "t"], 0, "")?;
        let mut spans = Vec::new();
        for line in String::from_utf8_lossy(&said.out).lines() {
            let request: Value = told(serde_json::from_str(line))?;
            let told = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default();
            spans.extend(told);
        }
        Ok(spans)
    };
    let names = |spans: &[Value]| -> Vec<String> {
        spans.iter().map(|span| span["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let whole = ["execute_tool belljar", "judge", "enclose", "supervise"];
    let mut command = desk.project.command(["run", "-q", "--", "sh", "-c", "echo here; read line"]);
    let mut child = told(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())?;
    let mut stdout = BufReader::new(child.stdout.take().ok_or("it has an output")?);
    told(stdout.read_exact(&mut [0; 5]))?;
    // The one that ended before; then nothing, however often.
    let before = names(&spans()?);
    let during = spans()?;
    told(child.stdin.take().ok_or("it has an input")?.write_all(b"go on\n"))?;
    told(child.wait())?;
    let after = spans()?;
    if before != whole || !during.is_empty() || names(&after) != whole {
        return Err(format!("{before:?} {during:?} {after:?}"));
    }
    let asked = after[0]["attributes"].as_array().into_iter().flatten();
    let has = |name: &str| asked.clone().any(|attribute| attribute["key"] == name);
    match has("process.command_args") && has("process.exit.code") && !has("belljar.unfinished") && spans()?.is_empty() {
        true => Ok(()),
        false => Err(format!("{after:?}")),
    }
}
