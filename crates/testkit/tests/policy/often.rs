//! How often and how much at once: counted over processes, and given back however they end.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::desk::Desk;

pub const ALL: &[(&str, Check)] = &[
    ("nobody_asks_more_often_than_they_may", often),
    ("nobody_has_more_at_once_than_they_may", at_once),
    ("what_cannot_be_counted_is_not_allowed", not_counted),
    ("two_limits_of_one_name_both_hold", two),
];

fn often(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[[agent]]\nname = \"claude-*\"\nrate = \"3/h\"\n")?;
    for name in ["claude-a", "claude-b", "claude-a"] {
        desk.expect(&["run", "--agent", name, "--", "true"], 0, "")?;
    }
    // Another name under the same pattern is no way around it.
    let said = desk.expect(&["run", "--json", "--agent", "claude-c", "--", "true"], 123, "asked 3 times")?;
    if !said.error.contains("\"retry\":\"later\"") {
        return Err(format!("it is not said that waiting helps: {said:?}"));
    }
    desk.expect(&["run", "--agent", "codex", "--", "true"], 0, "").map(|_| ())
}

fn at_once(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[[agent]]\nname = \"*\"\nconcurrent = 1\n")?;
    let mut long = desk.project.command(["run", "--", "sh", "-c", "echo ready; cat"]);
    let mut long = long
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut line = String::new();
    let out = long.stdout.take().ok_or("no output")?;
    BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
    let second = desk.expect(&["run", "--", "true"], 123, "rule: agent.concurrent");
    long.kill().map_err(|error| error.to_string())?;
    long.wait().map_err(|error| error.to_string())?;
    second?;
    // Killed without a word, and still its place is free.
    desk.expect(&["run", "--", "true"], 0, "").map(|_| ())
}

fn not_counted(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[[agent]]\nname = \"*\"\nrate = \"3/h\"\n")?;
    desk.expect(&["run", "--", "true"], 0, "")?;
    let folder = desk.home.join(".local/state/belljar/agents");
    let put = || -> std::io::Result<()> {
        std::fs::remove_dir_all(&folder)?;
        std::fs::write(&folder, "no folder")
    };
    put().map_err(|error| error.to_string())?;
    desk.expect(&["run", "--", "true"], 125, "must be counted").map(|_| ())
}

fn two(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[[agent]]\nname = \"*\"\nrate = \"1000/s\"\n[[agent]]\nname = \"*\"\nrate = \"3/h\"\n")?;
    for _ in 0..3 {
        desk.expect(&["run", "--", "true"], 0, "")?;
    }
    desk.expect(&["run", "--", "true"], 123, "asked 3 times").map(|_| ())
}
