//! `cargo xtask bench ledger`: what recording costs a run, and how fast the record is written, searched and verified.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use testkit::Who;
use testkit::contestant::belljar;

use super::field::Field;
use super::runners::quiet;
use super::samples::{Samples, Table, median, met, milliseconds, percentile};
use crate::place;

struct Amounts {
    entries: u64,
    rounds: usize,
    milliseconds: u64,
    starts: usize,
}

const FULL: Amounts = Amounts { entries: 10_000_000, rounds: 10, milliseconds: 2000, starts: 200 };
const QUICK: Amounts = Amounts { entries: 100_000, rounds: 2, milliseconds: 200, starts: 10 };
const WRITERS: usize = 8;

pub fn ledger(flags: &[&str]) -> Result<(), String> {
    let super::Wish { quick, markdown, runs } = super::Wish::read("ledger", flags)?;
    let amounts = if quick { QUICK } else { FULL };
    crate::release::everything()?;
    let field = Field::make()?;
    let mut samples = Samples::open("ledger")?;
    let mut tables = Vec::new();
    let starts = runs.unwrap_or(amounts.starts);
    let mut table = Table::new(
        "What recording costs `belljar run -- true`",
        &["", "runs", "p50 ms", "p99 ms", "of the run", "wanted"],
    );
    for who in [Who::Root, Who::Ordinary] {
        table.rows.push(at_a_run(&field, who, starts, &mut samples)?);
    }
    tables.push(table);
    let folder = field.root.join("ledger");
    tables.push(writing(&folder, &amounts, &mut samples)?);
    tables.push(reading(&folder, &amounts, &mut samples)?);
    super::report(tables, quick, markdown, &samples);
    Ok(())
}

fn program() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("who am I? {error}"))?;
    Ok(program.with_file_name("examples").join("ledger_speed"))
}

fn said(words: &[&str], folder: &Path) -> Result<Vec<String>, String> {
    let mut command = Command::new(program()?);
    command.arg(words[0]).arg(folder).args(&words[1..]);
    let text = place::said(&mut command).ok_or_else(|| format!("`ledger_speed {}` failed", words[0]))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

fn number(words: &[String], place: usize) -> Result<u64, String> {
    words.get(place).and_then(|word| word.parse().ok()).ok_or_else(|| format!("no number in {words:?}"))
}

/// From its own trace: the time that the run spent on its record.
fn at_a_run(field: &Field, who: Who, starts: usize, samples: &mut Samples) -> Result<Vec<String>, String> {
    let (mut record, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..starts {
        let mut command = Command::new(belljar());
        command.args(["run", "-q", "--trace", "--json", "--workspace-mode", "readonly", "--", "/bin/true"]);
        let folder = field.project(who);
        let began = std::time::Instant::now();
        let output = quiet(&mut command, field, who, &folder).stderr(Stdio::piped()).output();
        whole.push(began.elapsed());
        let output = output.map_err(|error| error.to_string())?;
        let result: serde_json::Value = serde_json::from_slice(&output.stderr).map_err(|error| error.to_string())?;
        let steps = result["timing"].as_array().ok_or("the result has no timing")?;
        let step = steps.iter().find(|step| step["step"] == "engine: write the record");
        let nanoseconds = step.and_then(|step| step["nanoseconds"].as_u64()).ok_or("nothing was recorded")?;
        record.push(Duration::from_nanos(nanoseconds));
        samples.keep("record", "run -- true", who.name(), nanoseconds as f64 / 1e6, "ms")?;
    }
    let p50 = median(&record);
    let share = p50.as_secs_f64() / median(&whole).as_secs_f64();
    Ok(vec![
        format!("as {}", who.name()),
        record.len().to_string(),
        milliseconds(p50),
        milliseconds(percentile(&record, 0.99)),
        format!("{:.1} %", share * 100.0),
        met(p50 <= Duration::from_micros(500), "≤ 0.5 ms"),
    ])
}

fn writing(folder: &Path, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let mut table = Table::new("Entries a second, one at a time", &["", "entries/s", "wanted"]);
    for writers in [1, WRITERS] {
        let folder = folder.with_extension(format!("{writers}-writers"));
        let mut best = Vec::new();
        for _ in 0..amounts.rounds.min(5) {
            let children: Result<Vec<Child>, String> = (0..writers)
                .map(|_| {
                    let mut command = Command::new(program()?);
                    command.arg("write").arg(&folder).arg(amounts.milliseconds.to_string()).stdout(Stdio::piped());
                    command.spawn().map_err(|error| error.to_string())
                })
                .collect();
            let mut total = 0;
            for child in children? {
                let output = child.wait_with_output().map_err(|error| error.to_string())?;
                let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                total += text.parse::<u64>().map_err(|error| format!("a writer said `{text}`: {error}"))?;
            }
            let rate = total as f64 / (amounts.milliseconds as f64 / 1000.0);
            samples.keep("write", &format!("{writers} writers"), "root", rate, "1/s")?;
            best.push(rate);
        }
        best.sort_by(f64::total_cmp);
        let rate = best[best.len() / 2];
        let verified = said(&["verify"], &folder)?;
        if verified.last().map(String::as_str) != Some("true") {
            return Err(format!("the chain of {writers} writers is not sound: {verified:?}"));
        }
        std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        let wanted = if writers == WRITERS { met(rate >= 50_000.0, "≥ 50,000") } else { String::new() };
        table.rows.push(vec![format!("{writers} writers"), format!("{rate:.0}"), wanted]);
    }
    Ok(table)
}

fn reading(folder: &Path, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    println!("ledger: {} entries are written", amounts.entries);
    said(&["fill", &amounts.entries.to_string()], folder)?;
    let (mut denied, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..amounts.rounds {
        let words = said(&["denied"], folder)?;
        if number(&words, 1)? != 100 {
            return Err(format!("100 denied entries were not found: {words:?}"));
        }
        denied.push(Duration::from_nanos(number(&words, 0)?));
        samples.keep("denied", "last 100", "root", number(&words, 0)? as f64 / 1e6, "ms")?;
    }
    for _ in 0..amounts.rounds.min(3) {
        let words = said(&["verify"], folder)?;
        if words.last().map(String::as_str) != Some("true") {
            return Err(format!("the chain is not sound: {words:?}"));
        }
        let rate = number(&words, 1)? as f64 / (number(&words, 0)? as f64 / 1e9);
        samples.keep("verify", "all", "root", rate, "1/s")?;
        rates.push(rate);
    }
    rates.sort_by(f64::total_cmp);
    let rate = rates[rates.len() / 2];
    std::fs::remove_dir_all(folder).map_err(|error| error.to_string())?;
    let mut table = Table::new(format!("{} entries, read", amounts.entries), &["", "p50", "wanted"]);
    let p50 = median(&denied);
    table.rows.push(vec![
        "the last 100 that were denied".to_owned(),
        format!("{} ms", milliseconds(p50)),
        met(p50 < Duration::from_millis(50), "< 50 ms"),
    ]);
    table.rows.push(vec!["verified, entries/s".to_owned(), format!("{rate:.0}"), met(rate >= 1e6, "≥ 1,000,000")]);
    Ok(table)
}
