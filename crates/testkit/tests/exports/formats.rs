//! Each format, read by a library that others use for it; and the control: what is damaged, they do not take.

use std::fs;
use std::process::Command;

use belljar_testkit::Who;
use belljar_testkit::twice::{trial, why_not};
use libtest_mimic::Trial;
use serde_json::Value;

use crate::desk::Desk;
use crate::{beside, python, told};

const FORMATS: [&str; 5] = ["ocsf", "cloudevents", "syslog", "otlp", "prometheus"];

pub fn trials() -> Vec<Trial> {
    let without = (!python().exists()).then(|| "readers of exports are not installed".to_owned());
    let who = Who::Ordinary;
    FORMATS
        .into_iter()
        .map(|format| {
            let why_not = why_not(who).or(without.clone());
            trial(&format!("others_read_{format}"), who, why_not, move || read_by_others(who, format))
        })
        .collect()
}

/// Ordinary work, with something of each kind: denials, a refusal, artifacts, a commit, hostile names.
pub fn work(desk: &Desk) -> Result<(), String> {
    desk.policy("[defaults]\nexec = \"allow\"\n[[rule]]\nid = \"no-curl\"\nwhen = { action = \"exec\", program = \"curl\" }\nthen = \"deny\"\nwhy = \"no curl here\"\n")?;
    desk.put("a.txt", "one\n")?;
    desk.project.let_it_age();
    let script = "import ctypes, os\nctypes.CDLL(None).unshare(0x10000000)\nopen('a.txt', 'w').write('two')\n\
                  os.mkdir('out')\nopen('out/b', 'w').write('x')\nprint('\\u2028')  # \u{85}\u{2028}\"]é\u{1b}[2J";
    let words = ["run", "-q", "--agent", "tester", "--artifact", "out", "--", "/usr/bin/python3", "-c", script];
    desk.expect(&words, 0, "")?;
    desk.expect(&["apply"], 0, "")?;
    desk.expect(&["run", "--", "curl", "x"], 123, "no curl here")?;
    desk.expect(&["run", "-q", "--", "sh", "-c", "exit 3"], 3, "").map(drop)
}

fn read(format: &str, text: &[u8], desk: &Desk) -> Result<Value, String> {
    let file = desk.home.join("exported");
    told(fs::write(&file, text))?;
    let output = told(Command::new(python()).arg(beside("readers.py")).arg(format).arg(&file).output())?;
    match output.status.success() {
        true => told(serde_json::from_slice(&output.stdout)),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn read_by_others(who: Who, format: &str) -> Result<(), String> {
    let desk = Desk::of(who)?;
    work(&desk)?;
    let all = desk.expect(&["export", "ndjson"], 0, "")?.out.split(|byte| *byte == b'\n').count() as u64 - 1;
    let said = desk.expect(&["export", format], 0, "")?;
    let found = read(format, &said.out, &desk)?;
    let count = |name: &str| found[name].as_f64().unwrap_or(0.0);
    let sum: f64 = found.as_object().into_iter().flatten().filter_map(|(_, count)| count.as_f64()).sum();
    let right = match format {
        "ocsf" => {
            sum == all as f64
                && ["0", "1001", "1007", "6002", "6003"].iter().all(|class| count(class) > 0.0)
                // A denied call, and the refused run, judged and ended.
                && count("2004") == 3.0
        }
        "cloudevents" => {
            sum == all as f64 && count("dev.belljar.run.ended") == 3.0 && count("dev.belljar.commit.ended") == 1.0
        }
        "syslog" => sum == all as f64 && count("warning") == 2.0 && count("notice") == 1.0,
        "otlp" => {
            count("execute_tool belljar") == 3.0
                && count("judge") == 3.0
                && count("supervise") == 2.0
                && count("event call.denied") == 1.0
                && count("event program.started") >= 2.0
        }
        _ => {
            count("belljar_runs_total{,ran}") == 1.0
                && count("belljar_runs_total{tester,ran}") == 1.0
                && count("belljar_refusals_total{no-curl}") == 1.0
                && count("belljar_run_seconds_count") == 2.0
                && count("belljar_denied_calls_total{unshare}") == 1.0
                && count("belljar_record_last_entry") == all as f64
        }
    };
    if !right {
        return Err(format!("of {all} entries: {found:#}"));
    }
    // The control.
    let text = String::from_utf8_lossy(&said.out).into_owned();
    let damaged = match format {
        "ocsf" => text.replace("\"finding_info\"", "\"finding_inf\""),
        "cloudevents" => text.replace("\"source\"", "\"sauce\""),
        "syslog" => text.replace(">1 ", "> "),
        "otlp" => text.replace("\"startTimeUnixNano\":\"", "\"startTimeUnixNano\":\"x"),
        _ => text.replace("_total{", "_total{{"),
    };
    match read(format, damaged.as_bytes(), &desk) {
        Err(_) => Ok(()),
        Ok(found) => Err(format!("the control failed: a damaged one was taken as {found}")),
    }
}
