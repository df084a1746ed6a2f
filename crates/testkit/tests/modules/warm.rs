//! The warm worker: many runs in one process, none of which sees another or outlasts its time.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use belljar_testkit::Who;
use belljar_testkit::contestant::belljar;
use belljar_testkit::modules::Kind;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::table::{Table, shown};

pub const ALL: &[(&str, Check)] = &[
    ("a_warm_worker_runs_many_requests_each_on_its_own", many),
    ("a_request_that_takes_too_long_ends_and_the_next_one_runs", late),
    ("a_request_that_traps_or_asks_for_too_much_harms_no_other", harm),
];

/// A worker in its jar, as a service would have it.
struct Worker {
    process: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Worker {
    fn start(table: &Table, memory: u64) -> Result<Worker, String> {
        let worker = belljar().with_file_name("belljar-wasm");
        let compiled = table.project.work.join("guest.code");
        let said = std::process::Command::new(&worker)
            .arg("compile")
            .arg(table.project.work.join(Kind::Plain.file()))
            .output();
        let said = said.map_err(|error| error.to_string())?;
        if !said.status.success() {
            return Err(String::from_utf8_lossy(&said.stderr).into_owned());
        }
        table.put("guest.code", said.stdout)?;
        let words = [
            "run",
            "-q",
            "--read",
            &shown(&worker),
            "--",
            &shown(&worker),
            "serve",
            "--compiled",
            &shown(&compiled),
            "--memory",
            &memory.to_string(),
            "--read",
            &shown(&table.project.work),
            "/work",
        ]
        .map(str::to_owned);
        let mut command = table.project.command(words);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| error.to_string())?;
        let (to, from) = (process.stdin.take().ok_or("no input")?, process.stdout.take().ok_or("no output")?);
        Ok(Worker { process, to, from })
    }

    fn ask(&mut self, words: &[&str], input: &str, milliseconds: u64) -> Result<(Value, String), String> {
        let words: Vec<&str> = ["guest"].iter().chain(words).copied().collect();
        let asking = json!({ "program": 0, "arguments": words, "milliseconds": milliseconds }).to_string();
        for piece in [asking.as_bytes(), input.as_bytes()] {
            let length = (piece.len() as u32).to_le_bytes();
            self.to.write_all(&length).and_then(|()| self.to.write_all(piece)).map_err(|error| error.to_string())?;
        }
        let mut pieces = Vec::new();
        for _ in 0..3 {
            let mut length = [0; 4];
            self.from.read_exact(&mut length).map_err(|error| error.to_string())?;
            let mut piece = vec![0; u32::from_le_bytes(length) as usize];
            self.from.read_exact(&mut piece).map_err(|error| error.to_string())?;
            pieces.push(piece);
        }
        let ended = serde_json::from_slice(&pieces[0]).map_err(|error| error.to_string())?;
        Ok((ended, String::from_utf8_lossy(&pieces[1]).into_owned()))
    }

    fn end(mut self) -> Result<(), String> {
        drop(self.to);
        let status = self.process.wait().map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("it ended with {status}")),
        }
    }
}

/// What the worker says is no text that could be searched for secrets: whoever asked does that with the answers.
const RAW: &str = "[release]\nredact = false\n";
const LONG: u64 = 30_000;

fn many(who: Who) -> Result<(), String> {
    let table = Table::with_policy(who, RAW)?;
    let mut worker = Worker::start(&table, 1 << 30)?;
    for number in 0..50 {
        let (ended, out) = worker.ask(&["say", &number.to_string()], "given", LONG)?;
        if ended != json!({ "code": 0 }) || !out.contains(&format!("words [\"{number}\"]")) || !out.contains("given") {
            return Err(format!("{number}: {ended} {out}"));
        }
        let (ended, _) = worker.ask(&["exit", &(number % 100).to_string()], "", LONG)?;
        if ended != json!({ "code": number % 100 }) {
            return Err(format!("{ended}"));
        }
    }
    let (ended, out) = worker.ask(&["read", "/work/notes/first.txt"], "", LONG)?;
    if ended != json!({ "code": 0 }) || out != "first\n" {
        return Err(format!("{ended} {out}"));
    }
    worker.end()
}

fn late(who: Who) -> Result<(), String> {
    let table = Table::with_policy(who, RAW)?;
    let mut worker = Worker::start(&table, 1 << 30)?;
    for words in [["compute"].as_slice(), &["spin"], &["sleep", "600"]] {
        let (ended, _) = worker.ask(words, "", 200)?;
        if ended != json!("late") {
            return Err(format!("{words:?}: {ended}"));
        }
        let (ended, _) = worker.ask(&["exit", "7"], "", LONG)?;
        if ended != json!({ "code": 7 }) {
            return Err(format!("after {words:?}: {ended}"));
        }
    }
    worker.end()
}

fn harm(who: Who) -> Result<(), String> {
    let table = Table::with_policy(who, RAW)?;
    let mut worker = Worker::start(&table, 64 << 20)?;
    let (ended, _) = worker.ask(&["trap"], "", LONG)?;
    if !ended["trap"].as_str().is_some_and(|why| why.contains("unreachable")) {
        return Err(format!("{ended}"));
    }
    for _ in 0..5 {
        // Kept from it, and nothing of it stays for the next.
        for (words, code) in [(["take", "100"], 3), (["take", "40"], 0)] {
            let (ended, _) = worker.ask(&words, "", LONG)?;
            if ended != json!({ "code": code }) {
                return Err(format!("{words:?}: {ended}"));
            }
        }
    }
    let (ended, _) = worker.ask(&["recurse"], "", LONG)?;
    if ended["trap"].is_null() {
        return Err(format!("{ended}"));
    }
    worker.end()
}
