//! Misbehaviour for real: what is found, what follows from it, and that nobody gets out of it by themselves.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

use belljar_testkit::Who;
use belljar_testkit::project::Said;
use belljar_testkit::twice::Check;
use serde_json::Value;

use crate::desk::{Desk, expected};

pub const ALL: &[(&str, Check)] = &[
    ("a_run_that_turns_in_place_is_ended_and_its_agent_suspended", turning),
    ("a_run_that_turns_in_place_is_only_told_of_where_nothing_else_is_said", told),
    ("a_known_miner_is_ended_by_its_name", miner),
    ("a_scan_of_refused_calls_is_an_alert_and_ordinary_denials_are_none", scan),
    ("a_storm_of_refused_runs_suspends", storm),
    ("a_webhook_hears_of_an_alert_and_one_that_is_gone_holds_nothing_up", webhook),
    ("who_takes_another_name_each_time_is_found_among_all", names),
    ("who_is_throttled_begins_six_runs_a_minute", throttled),
    ("who_is_asked_about_does_not_run_without_an_answer", asked),
    ("whoever_is_suspended_by_hand_is_ended_and_stays_so", by_hand),
    ("neither_an_agent_nor_damage_ends_a_suspension", kept),
];

/// Forks that compute: together they get a share of the machine even where others have theirs.
const LOOP: &str = "import os\nfor _ in range(3): os.fork()\nwhile True: pass\n";
const NO_FALSE: &str =
    "[[rule]]\nid = \"no-false\"\nwhen = { program = \"false\" }\nthen = \"deny\"\nwhy = \"a test\"\n";

fn result(said: &Said) -> Result<Value, String> {
    let line = said.error.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| format!("{error}: {said:?}"))
}

fn entries(desk: &Desk, kind: &str) -> Result<Vec<Value>, String> {
    let said = desk.expect(&["log", "--type", kind, "--json"], 0, "")?;
    let text = String::from_utf8_lossy(&said.out).into_owned();
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))).collect()
}

fn wanted(holds: bool, why: impl std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{why:?}")) }
}

fn turning(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(
        "[monitor]\nrunaway = \"suspend\"\nmining = \"suspend\"\nrunaway_after = \"3s\"\nmining_after = \"3s\"\n",
    )?;
    let words = ["run", "--json", "--agent", "burner", "--timeout", "90s", "--", "/usr/bin/python3", "-c", LOOP];
    let said = desk.say(&words)?;
    let result = result(&said)?;
    wanted(result["overrun"] == "suspended" && result["alerts"][0]["measured"].is_string(), &said)?;
    let refused = desk.expect(&["run", "--json", "--agent", "burner", "--", "true"], 123, "monitor.suspended")?;
    wanted(refused.error.contains("belljar agents resume burner"), &refused)?;
    // Others go on.
    desk.expect(&["run", "--agent", "other", "--", "true"], 0, "")?;
    let alerts = entries(&desk, "monitor.alert")?;
    wanted(alerts.len() == 1 && alerts[0]["agent"] == "burner" && alerts[0]["data"]["response"] == "suspend", &alerts)?;
    wanted(entries(&desk, "agent.suspended")?.len() == 1, "no entry of the suspension")?;
    // Until a person says so.
    desk.expect(&["agents", "resume", "burner", "--why", "a test"], 0, "")?;
    desk.expect(&["run", "--agent", "burner", "--", "true"], 0, "")?;
    wanted(entries(&desk, "agent.resumed")?.len() == 1, "no entry of who resumed it")
}

fn told(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[monitor]\nrunaway_after = \"2s\"\nmining_after = \"2s\"\n")?;
    let words = ["run", "--json", "--agent", "burner", "--timeout", "15s", "--", "/usr/bin/python3", "-c", LOOP];
    let said = desk.expect(&words, 124, "alert: ")?;
    wanted(result(&said)?["overrun"] == "wall-time", &said)?;
    desk.expect(&["run", "--agent", "burner", "--", "true"], 0, "")?;
    // The control: what does as much and says so is no alert.
    let speaks = "import time\nend = time.time() + 6\nwhile time.time() < end: print(sum(range(400000)), flush=True)\n";
    let said = desk.expect(&["run", "--agent", "worker", "--", "/usr/bin/python3", "-c", speaks], 0, "")?;
    wanted(!said.error.contains("alert: "), &said)
}

fn miner(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[monitor]\nmining = \"suspend\"\n")?;
    desk.put("xmrig", "#!/bin/sh\nexec sleep 60\n")?;
    desk.put("worker", "#!/bin/sh\nexec sleep 2\n")?;
    let run = |agent: &str, line: &str| desk.say(&["run", "--json", "--agent", agent, "--", "sh", "-c", line]);
    let said = run("digger", "cp xmrig /tmp/xmrig; chmod +x /tmp/xmrig; /tmp/xmrig; echo went on")?;
    wanted(result(&said)?["overrun"] == "suspended" && said.error.contains("known miner"), &said)?;
    // The control: the same under another name.
    let said = run("worker", "cp worker /tmp/worker; chmod +x /tmp/worker; /tmp/worker; echo went on")?;
    wanted(said.code == Some(0) && !said.error.contains("alert: "), &said)
}

fn scan(who: Who) -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Ok(());
    }
    let desk = Desk::of(who)?;
    let calls = |numbers: &str| {
        format!(
            "import ctypes\nlibc = ctypes.CDLL(None)\nfor number in [{numbers}]: libc.syscall(number, 0, 0, 0, 0, 0)\n"
        )
    };
    let few = calls("165, 166, 250");
    let said = desk.expect(&["run", "--json", "--agent", "plain", "--", "/usr/bin/python3", "-c", &few], 0, "")?;
    wanted(result(&said)?["alerts"].is_null() && !said.error.contains("alert: "), &said)?;
    let many = calls(
        "155, 163, 165, 166, 167, 168, 169, 175, 176, 246, 248, 249, 250, 298, 303, 304, 308, 310, 312, 313, 321, 323, \
         425, 428, 429, 430, 432, 442",
    );
    let said = desk.expect(&["run", "--json", "--agent", "prober", "--", "/usr/bin/python3", "-c", &many], 0, "")?;
    let result = result(&said)?;
    wanted(result["alerts"][0]["detector"] == "scan", &said)?;
    let shown = desk.expect(&["agents", "prober", "--json"], 0, "")?;
    let shown: Value = serde_json::from_slice(&shown.out).map_err(|error| error.to_string())?;
    wanted(shown["alerts"] == 1 && shown["state"] == "active" && shown["entries"][0]["type"] == "monitor.alert", &shown)
}

fn storm(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(&format!("{NO_FALSE}[monitor]\nretries = \"suspend\"\n"))?;
    for _ in 0..11 {
        let said = desk.expect(&["run", "--agent", "mule", "--", "false"], 123, "no-false")?;
        wanted(!said.error.contains("alert: "), &said)?;
    }
    desk.expect(&["run", "--agent", "mule", "--", "false"], 123, "alert: retries")?;
    desk.expect(&["run", "--agent", "mule", "--", "true"], 123, "monitor.suspended")?;
    desk.expect(&["run", "--agent", "other", "--", "true"], 0, "").map(drop)
}

fn webhook(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    desk.policy(&format!("{NO_FALSE}[monitor]\nwebhook = \"http://{address}/alerts\"\n"))?;
    let heard = std::thread::spawn(move || -> std::io::Result<String> {
        let (mut stream, _) = listener.accept()?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line)? > 2 {
            if let Some(count) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = count.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    });
    let refuse = |agent: &str| -> Result<Said, String> {
        for _ in 0..11 {
            desk.expect(&["run", "--agent", agent, "--", "false"], 123, "no-false")?;
        }
        desk.expect(&["run", "--agent", agent, "--", "false"], 123, "alert: retries")
    };
    refuse("mule")?;
    let body = heard.join().map_err(|_| "nobody listened")?.map_err(|error| error.to_string())?;
    let event: Value = serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))?;
    let alert = entries(&desk, "monitor.alert")?.pop().ok_or("no alert")?;
    let id = event["id"].as_str().unwrap_or_default();
    wanted(event["type"] == "dev.belljar.monitor.alert" && id.ends_with(&format!("/{}", alert["n"])), &event)?;
    // Nobody listens any more: what follows from an alert holds all the same, and that it was not sent is said.
    let said = refuse("other")?;
    wanted(said.error.contains("the alert was not sent"), &said)?;
    wanted(entries(&desk, "monitor.not-sent")?.len() == 1, "no entry of what was not sent")
}

fn names(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(NO_FALSE)?;
    let mut last = None;
    for number in 0..12 {
        let name = format!("mule-{number}");
        last = Some(desk.expect(&["run", "--agent", &name, "--", "false"], 123, "no-false")?);
    }
    wanted(last.as_ref().is_some_and(|said| said.error.contains("of all agents together")), &last)
}

fn throttled(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(&format!("{NO_FALSE}[monitor]\nretries = \"throttle\"\n"))?;
    for _ in 0..12 {
        desk.expect(&["run", "--agent", "mule", "--", "false"], 123, "no-false")?;
    }
    for _ in 0..6 {
        desk.expect(&["run", "--agent", "mule", "--", "true"], 0, "")?;
    }
    let said = desk.expect(&["run", "--json", "--agent", "mule", "--", "true"], 123, "there is room again in")?;
    wanted(said.error.contains("\"retry\":\"later\"") && said.error.contains("monitor.throttled"), &said)
}

fn asked(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(&format!("{NO_FALSE}[approvals]\ntimeout = \"1s\"\n[monitor]\nretries = \"ask\"\n"))?;
    desk.expect(&["run", "--agent", "mule", "--", "true"], 0, "")?;
    for _ in 0..12 {
        desk.expect(&["run", "--agent", "mule", "--", "false"], 123, "no-false")?;
    }
    desk.expect(&["run", "--agent", "mule", "--", "true"], 122, "monitor.retries").map(drop)
}

fn by_hand(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let words = ["run", "--result-file", "result.json", "--agent", "busy", "--", "sh", "-c", "echo ready; cat"];
    let mut long = desk.project.command(words);
    let mut long = long
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut line = String::new();
    let out = long.stdout.take().ok_or("no output")?;
    BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
    desk.expect(&["agents", "suspend", "busy", "--why", "enough"], 0, "")?;
    // Nobody closes its input, which waiting for it would do: only the monitor ends it.
    let input = long.stdin.take();
    long.wait().map_err(|error| error.to_string())?;
    let text = std::fs::read(desk.project.work.join("result.json")).map_err(|error| error.to_string())?;
    let result: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    drop(input);
    wanted(result["overrun"] == "suspended", &result)?;
    let said = desk.expect(&["run", "--agent", "busy", "--", "true"], 123, "enough")?;
    wanted(said.error.contains("rule: monitor.suspended"), &said)
}

fn kept(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.expect(&["run", "--agent", "rogue", "--", "true"], 0, "")?;
    desk.expect(&["agents", "suspend", "rogue"], 0, "")?;
    let mut resume = desk.project.command(["agents", "resume", "rogue"]);
    expected(resume.env("CLAUDECODE", "1"), 125, "may not say who runs again")?;
    let folder = desk.home.join(".local/state/belljar/monitor");
    let files = std::fs::read_dir(&folder).map_err(|error| error.to_string())?;
    for file in files {
        let path = file.map_err(|error| error.to_string())?.path();
        std::fs::write(&path, "damaged").map_err(|error| error.to_string())?;
    }
    desk.expect(&["run", "--agent", "rogue", "--", "true"], 123, "is suspended")?;
    desk.expect(&["agents", "resume", "rogue"], 0, "")?;
    desk.expect(&["run", "--agent", "rogue", "--", "true"], 0, "").map(drop)
}
