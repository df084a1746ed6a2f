//! What all formats want to know of an entry.

use jiff::Timestamp;
use model::Entry;
use serde_json::Value;

/// Of a summary, in bytes.
const LONGEST: usize = 1024;

/// Microseconds since 1970; nothing for what is no time.
pub fn micros(at: &str) -> u64 {
    at.parse::<Timestamp>().ok().and_then(|time| u64::try_from(time.as_microsecond()).ok()).unwrap_or(0)
}

pub fn text<'a>(data: &'a Value, name: &str) -> &'a str {
    data[name].as_str().unwrap_or_default()
}

/// The words of a list, with a blank between them.
pub fn words(list: &Value) -> String {
    let words: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.join(" ")
}

pub fn list<'a>(data: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    data[name].as_array().into_iter().flatten()
}

/// Not longer than `most` bytes, and still text.
pub fn shortened(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// An object as a line, safe to look at: what commands a terminal is written as JSON writes it, and reads back the same.
pub fn json_line(value: &Value) -> String {
    let text = value.to_string();
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if !commands(letter) {
            plain.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            plain += &format!("\\u{unit:04x}");
        }
    }
    plain
}

/// Control characters, line breaks of all kinds, and letters without a shape that change how others are shown.
pub fn commands(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The last name of a path.
pub fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// The rule that said no, as far as the entry names one.
pub fn rule(entry: &Entry) -> Option<&str> {
    let data = &entry.data;
    let first = list(data, "rules").find_map(|rule| rule["rule"].as_str());
    // Where it stands follows in brackets, and is another on every machine.
    let only = data["rule"].as_str().and_then(|rule| rule.split(" (").next());
    first.or(only).or(data["detector"].as_str()).or(data["call"].as_str())
}

/// How serious it is, as belljar sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    Ordinary,
    /// Somebody may want to look at it, in time.
    Notable,
    Refused,
    Alarm,
}

pub fn weight(entry: &Entry) -> Weight {
    match entry.kind.as_str() {
        "monitor.alert" => Weight::Alarm,
        // Programs try what they may not all the time; the sandbox holds.
        "call.denied" | "ledger.recovered" => Weight::Notable,
        _ if entry.denied => Weight::Refused,
        _ if entry.data["overrun"].is_string() || text(&entry.data, "outcome").starts_with("not-") => Weight::Notable,
        _ => Weight::Ordinary,
    }
}

/// What an entry says, in a few words. May hold anything that was in it.
pub fn summary(entry: &Entry) -> String {
    let data = &entry.data;
    let said = match entry.kind.as_str() {
        "run.asked" if data["files"].is_object() => {
            format!("files: {} {}", text(&data["files"], "operation"), text(&data["files"], "path"))
        }
        "run.asked" => words(&data["command"]),
        "run.judged" => match rule(entry) {
            Some(rule) => format!("{} by {rule}", text(data, "ruling")),
            None => text(data, "ruling").to_owned(),
        },
        "run.ended" => ended(data),
        "approval.asked" => words(&data["rules"]),
        "approval.answered" if data["yes"] == true => format!("yes, by {}", text(data, "by")),
        "approval.answered" => format!("no: {}", text(data, "why")),
        "sandbox.opening" => text(data, "backend").to_owned(),
        "program.started" => words(&data["arguments"]),
        "call.denied" => format!("{} by {}", text(data, "call"), text(data, "program")),
        "files.changed" | "commit.begun" | "commit.ended" => text(data, "sandbox").to_owned(),
        "files.worked" => format!("{} {}", text(data, "operation"), text(data, "path")),
        "code.ran" => format!("cell {} of {}", data["cell"], text(data, "context")),
        "context.interrupted" | "context.ended" | "context.forked" => {
            format!("{} in {}", text(data, "context"), text(data, "sandbox"))
        }
        "artifact.released" => text(data, "path").to_owned(),
        "artifact.withheld" => format!("{}: {}", text(data, "path"), text(data, "why")),
        "monitor.alert" => {
            format!("{} ({}): {}", text(data, "detector"), text(data, "severity"), text(data, "measured"))
        }
        "agent.suspended" | "agent.resumed" | "agent.throttled" | "agent.asked-about" => {
            format!("{} by {}", text(data, "agent"), text(data, "by"))
        }
        "secret.set" | "secret.removed" => format!("{} ({})", text(data, "name"), text(data, "source")),
        // Others say it in one of these, if at all.
        _ => ["message", "why", "agent", "anchor", "sandbox"]
            .iter()
            .map(|name| text(data, name))
            .find(|said| !said.is_empty())
            .unwrap_or_default()
            .to_owned(),
    };
    let whole = if said.is_empty() { entry.kind.clone() } else { format!("{}: {said}", entry.kind) };
    shortened(&whole, LONGEST).to_owned()
}

fn ended(data: &Value) -> String {
    match (text(data, "outcome"), data["overrun"].as_str(), data["exit"].as_i64(), data["signal"].as_i64()) {
        ("ran", Some(limit), ..) => format!("ended by its limit on {limit}"),
        ("ran", None, Some(code), _) => format!("exit {code}"),
        ("ran", None, None, Some(signal)) => format!("signal {signal}"),
        (outcome, ..) => format!("{outcome}: {}", text(data, "why")),
    }
}

#[cfg(test)]
pub mod samples {
    use model::Entry;
    use serde_json::{Value, json};

    use crate::Origin;

    pub fn origin() -> Origin {
        Origin { installation: "00112233445566778899aabbccddeeff".into(), host: "host".into(), version: "0.1.0".into() }
    }

    pub const RUN: &str = "0123456789abcdef0123456789abcdef";

    pub fn entry(number: u64, kind: &str, denied: bool, data: Value) -> Entry {
        Entry {
            number,
            at: format!("2026-11-16T14:20:{:02}.123456Z", number % 60),
            kind: kind.to_owned(),
            denied,
            run: Some(RUN.to_owned()),
            user: Some("anna".to_owned()),
            agent: Some("tester".to_owned()),
            data,
            hash: "ab".repeat(32),
        }
    }

    /// A run from what was asked to its receipt.
    pub fn run() -> Vec<Entry> {
        let usage = json!({"wall_time": 1.5, "user_time": 1.0, "system_time": 0.25, "peak_memory": 1048576});
        [
            ("run.asked", false, json!({"command": ["sh", "-c", "a\nb"], "program": "/bin/sh", "directory": "/w"})),
            ("run.judged", false, json!({"ruling": "ask", "rules": [{"rule": "r"}], "policy": "p"})),
            ("approval.asked", false, json!({"question": "q", "rules": ["r"]})),
            ("approval.answered", false, json!({"question": "q", "yes": true, "by": "anna"})),
            ("sandbox.opening", false, json!({"backend": "native", "walls": {"files": "fully"}})),
            ("program.started", false, json!({"process": 7, "parent": 1, "program": "/bin/sh", "arguments": ["sh"]})),
            ("call.denied", true, json!({"call": "unshare", "program": "sh", "times": 2})),
            ("run.ended", false, json!({"outcome": "ran", "exit": 3, "usage": usage, "denials": 2})),
            ("run.receipt", false, json!({"payload": "x"})),
        ]
        .into_iter()
        .zip(1..)
        .map(|((kind, denied, data), number)| entry(number, kind, denied, data))
        .collect()
    }
}
