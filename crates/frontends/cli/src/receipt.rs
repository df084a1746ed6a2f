//! `belljar receipt`: the signed statement that a run ended with.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use model::{Records, Trouble};
use serde_json::Value;

use crate::words::{self, Layout};
use crate::{NOT_SET_UP, kept};

/// A receipt is a few kilobytes.
const LONGEST: u64 = 16 << 20;
const DOES_NOT_HOLD: u8 = 1;

pub fn receipt(matches: &ArgMatches, records: &dyn Records) -> u8 {
    let done = match matches.subcommand() {
        Some(("verify", matches)) => verify(matches, records),
        _ => show(matches, records),
    };
    done.unwrap_or_else(|trouble| kept::complain(&trouble))
}

fn show(matches: &ArgMatches, records: &dyn Records) -> Result<u8, Trouble> {
    let which = matches.get_one::<String>("which").map_or("last", String::as_str);
    let envelope = records.receipt(which)?;
    let shown = if matches.get_flag("statement") { records.open_receipt(&envelope, None)? } else { envelope };
    Ok(if words::print(words::json(&shown, Layout::Page)) { 0 } else { NOT_SET_UP })
}

fn verify(matches: &ArgMatches, records: &dyn Records) -> Result<u8, Trouble> {
    let file = matches.get_one::<PathBuf>("file").cloned().unwrap_or_default();
    let envelope = read(&file)?;
    let statement = match records.open_receipt(&envelope, matches.get_one::<PathBuf>("key").map(PathBuf::as_path)) {
        Ok(statement) => statement,
        Err(trouble) => {
            kept::complain(&trouble);
            return Ok(DOES_NOT_HOLD);
        }
    };
    let text = match matches.get_flag("json") {
        true => words::json(&statement, Layout::Page),
        false => Ok(words::page(lines(&statement))),
    };
    Ok(if words::print(text) { 0 } else { NOT_SET_UP })
}

fn read(file: &Path) -> Result<Value, Trouble> {
    let bad = |why: String| Trouble {
        message: format!("cannot read `{}`: {why}", file.display()),
        fix: "give a file that `belljar receipt ID` wrote".to_owned(),
    };
    let mut bytes = Vec::new();
    let read = match file == Path::new("-") {
        true => std::io::stdin().take(LONGEST).read_to_end(&mut bytes),
        false => std::fs::File::open(file).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes)),
    };
    read.map_err(|error| bad(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))
}

fn lines(statement: &Value) -> Vec<String> {
    let said = &statement["predicate"];
    let text = |value: &Value| value.as_str().unwrap_or("–").to_owned();
    let outcome = &said["outcome"];
    let how = match (outcome["overrun"].as_str(), outcome["exit"].as_i64(), outcome["signal"].as_i64()) {
        (Some(overrun), ..) => format!("ended by its limit on {overrun}"),
        (None, Some(code), _) => format!("exit {code}"),
        (None, None, signal) => format!("signal {}", signal.unwrap_or_default()),
    };
    let walls = said["walls"].as_object();
    let total = walls.map_or(0, serde_json::Map::len);
    let weak: Vec<&str> =
        walls.into_iter().flatten().filter(|(_, held)| *held != "fully").map(|(wall, _)| wall.as_str()).collect();
    let walls = match weak.is_empty() {
        true => format!("all {total} fully held"),
        false => format!("{} of {total} fully held; not: {}", total - weak.len(), weak.join(", ")),
    };
    let ledger = &said["ledger"];
    let mut lines = vec![
        "the receipt holds".to_owned(),
        format!("run       {}", text(&said["run"])),
        format!(
            "by        {}{}",
            text(&said["user"]),
            said["agent"].as_str().map_or(String::new(), |agent| format!(", agent {agent}"))
        ),
        format!("policy    {}", text(&said["policy"])),
        format!("input     {}", text(&said["input"]["blake3"])),
        format!("backend   {}: {walls}", text(&said["backend"])),
        format!("outcome   {how}, {} calls denied", outcome["denials"]),
        format!(
            "record    entry {} of {}: {}",
            ledger["entries"],
            text(&ledger["installation"]),
            text(&ledger["head"])
        ),
    ];
    for artifact in said["artifacts"].as_array().into_iter().flatten() {
        lines.push(format!("artifact  {}  {}", text(&artifact["blake3"]), text(&artifact["path"])));
    }
    for approval in said["approvals"].as_array().into_iter().flatten() {
        lines.push(format!("approved  {} by {}", text(&approval["question"]), text(&approval["by"])));
    }
    lines
}
