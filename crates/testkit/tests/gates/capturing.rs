//! What a run says, in its result: without secrets, whole or with its beginning and end, every other byte as it was.

use belljar_testkit::Who;
use belljar_testkit::project::Said;
use belljar_testkit::twice::Check;
use serde_json::Value;

use crate::desk::{Desk, Saying};

pub const ALL: &[(&str, Check)] = &[
    ("captured_output_is_what_passed_and_holds_no_secret", whole),
    ("of_long_output_the_beginning_and_the_end_are_captured", long),
    ("what_a_kept_sandbox_says_is_captured_too", kept),
    ("captured_output_without_a_result_is_wrong_usage", usage),
];

const NAME: &str = "DEPLOY_TOKEN";
const VALUE: &str = "seven-bells-under-9-glasses";

/// The result that was said last, on standard error.
fn result(said: &Said) -> Result<Value, String> {
    let line = said.error.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| format!("{error}: {said:?}"))
}

fn whole(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let script =
        format!("import os\nos.write(1, b'\\x1b[31m{VALUE} \\xff\\n')\nos.write(2, b'to the other side {VALUE}\\n')\n");
    let words = ["run", "--json", "--capture", "--", "/usr/bin/python3", "-c", &script];
    let mut command = desk.project.command(words);
    let said = Said::of_command(command.env(NAME, VALUE))?;
    let result = result(&said)?;
    let text = format!("\u{1b}[31m[redacted:{NAME}] \u{fffd}\n");
    let passed = format!("\x1b[31m[redacted:{NAME}] ").into_bytes();
    if said.out != [passed.as_slice(), b"\xff\n"].concat() {
        return Err(format!("it did not pass: {said:?}"));
    }
    let error = format!("to the other side [redacted:{NAME}]\n");
    if result["stdout"]["text"] != *text || result["stderr"]["text"] != *error || said.error.contains(VALUE) {
        return Err(format!("{result}"));
    }
    // Bytes that are no text are there as they were; text is only text.
    if !result["stdout"]["base64"].is_string() || !result["stderr"]["base64"].is_null() {
        return Err(format!("{result}"));
    }
    if said.error.contains('\u{1b}') {
        return Err(format!("the result commands a terminal: {said:?}"));
    }
    // The control: without it, the result says nothing of it; and the secret was there.
    let words = ["run", "--json", "--", "/usr/bin/python3", "-c", &script];
    let said = desk.say(&words)?;
    match self::result(&said)?["stdout"].is_null() && said.error.contains(VALUE) {
        true => Ok(()),
        false => Err(format!("the control failed: {said:?}")),
    }
}

fn long(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let words = ["run", "-q", "--result-file", "result.json", "--capture=1K", "--", "seq", "1", "100000"];
    let said = desk.expect(&words, 0, "")?;
    let text = std::fs::read(desk.project.work.join("result.json")).map_err(|error| error.to_string())?;
    let result: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let kept = &result["stdout"];
    let (head, tail) = (kept["text"].as_str().unwrap_or_default(), kept["tail"]["text"].as_str().unwrap_or_default());
    let counted = head.len() as u64 + kept["left_out"].as_u64().unwrap_or_default() + tail.len() as u64;
    let fits = head.len() + tail.len() <= 1024 && head.len() > 300 && tail.len() > 300;
    let whole = String::from_utf8_lossy(&said.out);
    let is_part = whole.starts_with(head) && whole.ends_with(tail) && whole.len() == 588_895;
    match fits && is_part && counted == 588_895 && kept["total"] == 588_895 {
        true => Ok(()),
        false => Err(format!("{kept}")),
    }
}

fn kept(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let id = desk.project.create()?;
    let said = desk.expect(&["exec", &id, "--json", "--capture", "--", "echo", "inside"], 0, "")?;
    match result(&said)?["stdout"]["text"].as_str() {
        Some("inside\n") => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn usage(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.expect(&["run", "--capture", "--", "true"], 125, "--result-file")?;
    desk.expect(&["run", "--json", "--capture=1T", "--", "true"], 125, "is the most").map(|_| ())
}
