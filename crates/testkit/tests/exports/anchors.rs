//! An anchor on another machine: each checkpoint is posted to it, and what it kept tells of a record that was rolled back.

use std::fs;
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::Value;

use crate::desk::Desk;
use crate::place::{Sink, listen};
use crate::told;

pub const ALL: &[(&str, Check)] = &[
    ("a_place_keeps_checkpoints_and_tells_of_a_rollback", kept),
    ("an_anchor_that_hangs_keeps_nobody_waiting_for_long", hangs),
];

fn run(desk: &Desk, said: &str) -> Result<(), String> {
    desk.expect(&["run", "--workspace-mode", "readonly", "--", "true"], 0, said).map(drop)
}

fn waiting(desk: &Desk) -> Result<u64, String> {
    let said = desk.expect(&["ledger", "anchor", "--json"], 0, "")?;
    let anchors: Value = told(serde_json::from_slice(&said.out))?;
    anchors[0][1].as_u64().ok_or(anchors.to_string())
}

fn kept(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    run(&desk, "")?;
    let sink = Sink::start(&desk.home.join("sink"), Some("IP:127.0.0.1"))?;
    desk.put("headers", "Authorization: Bearer sesame-open\n")?;
    let url = format!("https://127.0.0.1:{}/anchor?token=sesame", sink.port);
    // A stranger: what it did not get waits.
    desk.expect(&["ledger", "anchor", "--https", &url], 0, "")?;
    run(&desk, "did not prove who it is")?;
    if waiting(&desk)? != 1 || !sink.posts()?.is_empty() {
        return Err(format!("{} wait, and {:?} came", waiting(&desk)?, sink.posts()?));
    }
    let ca = sink.authority();
    desk.expect(&["ledger", "anchor", "--https", &url, "--ca", &ca, "--header-file", "headers"], 0, "")?;
    run(&desk, "")?;
    run(&desk, "")?;
    let posts = sink.posts()?;
    if waiting(&desk)? != 0 || posts.len() < 3 || posts[0]["headers"]["authorization"] != "Bearer sesame-open" {
        return Err(format!("{} wait, and {posts:?} came", waiting(&desk)?));
    }
    // A place that puts bodies one after the other has a file to verify with.
    let bodies: String = posts.iter().filter_map(|post| post["body"].as_str()).collect();
    desk.put("kept", &bodies)?;
    let said = desk.expect(&["ledger", "verify", "--json", "--anchor", "kept"], 0, "")?;
    let report: Value = told(serde_json::from_slice(&said.out))?;
    if report["anchored"].as_u64() != Some(posts.len() as u64) {
        return Err(format!("{report}"));
    }
    // Neither the record nor what is said of anchors has the token.
    let shown = desk.expect(&["ledger", "anchor"], 0, "")?;
    let ledger = desk.home.join(".local/state/belljar/ledger");
    let segment = ledger.join("00000001.log");
    let text = told(fs::read_to_string(&segment))?;
    if text.contains("sesame") || String::from_utf8_lossy(&shown.out).contains("sesame") {
        return Err("the token is shown".to_owned());
    }
    // Rolled back, with the note of its end gone.
    let runs: Vec<usize> =
        text.lines().enumerate().filter(|(_, line)| line.contains("run.asked")).map(|(at, _)| at).collect();
    let before: String = text.lines().take(*runs.last().ok_or("no run")?).map(|line| format!("{line}\n")).collect();
    told(fs::write(&segment, before))?;
    told(fs::remove_file(ledger.join("head")))?;
    let said = desk.expect(&["ledger", "verify", "--anchor", "kept"], 1, "")?;
    let words = String::from_utf8_lossy(&said.out).into_owned();
    if !words.contains("rolled back") {
        return Err(words);
    }
    desk.expect(&["ledger", "anchor", "--https", &url, "--remove"], 0, "").map(drop)
}

fn hangs(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    run(&desk, "")?;
    let (listener, at) = listen()?;
    let url = format!("http://{at}/");
    // Takes every connection, and never says a word.
    let serving = std::thread::spawn(move || listener.incoming().take(1).collect::<Result<Vec<_>, _>>());
    desk.expect(&["ledger", "anchor", "--https", &url], 0, "")?;
    let began = Instant::now();
    run(&desk, "took more than")?;
    let took = began.elapsed();
    drop(serving.join());
    if took > Duration::from_secs(9) || waiting(&desk)? != 1 {
        return Err(format!("{took:?}, {} wait", waiting(&desk)?));
    }
    // Not even an address.
    desk.expect(&["ledger", "anchor", "--https", "ftp://127.0.0.1/"], 125, "neither https:// nor http://").map(drop)
}
