//! `cargo xtask bench policy`: how long verdicts and loading take, and what a policy adds to a start.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use testkit::Who;
use testkit::contestant::belljar;

use super::field::Field;
use super::runners::{quiet, time};
use super::samples::{Samples, Table, median, met, milliseconds, percentile};
use crate::place;

/// Processes, and samples in each.
const FULL: (usize, usize, usize) = (30, 300, 300);
const QUICK: (usize, usize, usize) = (2, 20, 10);

pub fn policy(flags: &[&str]) -> Result<(), String> {
    let super::Wish { quick, markdown, runs } = super::Wish::read("policy", flags)?;
    let (processes, in_each, mut starts) = if quick { QUICK } else { FULL };
    starts = runs.unwrap_or(starts);
    crate::release::everything()?;
    let field = Field::make()?;
    let mut samples = Samples::open("policy")?;
    let mut tables = vec![alone(processes, in_each, &mut samples)?];
    for who in [Who::Root, Who::Ordinary] {
        tables.push(at_a_start(&field, who, starts, &mut samples)?);
    }
    super::report(tables, quick, markdown, &samples);
    Ok(())
}

/// The most that something may take, in microseconds at the median.
const WANTED: &[(&str, f64)] = &[
    ("load all layers, in a new process", 1000.0),
    ("verdict on words, 200 rules", 50.0),
    ("verdict on a line of three commands, 200 rules", 50.0),
    ("load 50 rules in Cedar, in a new process", 5000.0),
    ("verdict on exec, 200 rules in Cedar", 50.0),
];

/// Without a sandbox: what the two rule languages take.
fn alone(processes: usize, in_each: usize, samples: &mut Samples) -> Result<Table, String> {
    let mut times: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    for _ in 0..processes {
        for name in ["policy_speed", "cedar_speed"] {
            for (what, taken) in measured(name, in_each)? {
                // The first of a process pays for everything that is made once.
                let (first, rest) = taken.split_first().ok_or("no sample")?;
                times.entry(format!("{what}, in a new process")).or_default().push(*first);
                times.entry(what).or_default().extend(rest);
            }
        }
    }
    let mut table = Table::new("Policies by themselves", &["", "samples", "p50 µs", "p99 µs", "wanted"]);
    for (what, times) in &times {
        for time in times {
            samples.keep("policy", what, "root", time.as_secs_f64() * 1e6, "µs")?;
        }
        let microseconds = |time: Duration| time.as_secs_f64() * 1e6;
        let p50 = microseconds(median(times));
        let wanted = WANTED.iter().find(|(known, _)| known == what);
        let wanted = wanted.map_or(String::new(), |(_, most)| met(p50 < *most, &format!("< {most} µs")));
        let p99 = microseconds(percentile(times, 0.99));
        table.rows.push(vec![what.clone(), times.len().to_string(), format!("{p50:.1}"), format!("{p99:.1}"), wanted]);
    }
    Ok(table)
}

pub fn measured(example: &str, runs: usize) -> Result<Vec<(String, Vec<Duration>)>, String> {
    let program = std::env::current_exe().map_err(|error| format!("who am I? {error}"))?;
    let program = program.with_file_name("examples").join(example);
    let text = place::said(Command::new(&program).arg(runs.to_string()))
        .ok_or_else(|| format!("`{}` failed", program.display()))?;
    let object: BTreeMap<String, Vec<u64>> =
        serde_json::from_str(&text).map_err(|error| format!("`{}` says no samples: {error}", program.display()))?;
    let times = |times: Vec<u64>| times.into_iter().map(Duration::from_nanos).collect();
    Ok(object.into_iter().map(|(what, nanoseconds)| (what, times(nanoseconds))).collect())
}

/// `run -- true` with and without policies, one after the other in turn.
fn at_a_start(field: &Field, who: Who, starts: usize, samples: &mut Samples) -> Result<Table, String> {
    let user = "version = 1\nextends = [\"balanced\", \"python\", \"claude-code\"]\n";
    let project = include_str!("../../../crates/policy/examples/project.toml");
    let config = field.home(who).join(".config");
    field.folder(&config, who)?;
    field.folder(&config.join("belljar"), who)?;
    let with = field.root.join(format!("{}-with-policy", who.name()));
    field.folder(&with, who)?;
    field.write(&with.join("belljar.toml"), project, who)?;
    let plain = field.project(who);
    let cases: [(&str, &PathBuf, Option<&str>); 3] = [
        ("no policy", &plain, None),
        ("a project's policy", &with, None),
        ("a project's, and the user's with presets", &with, Some(user)),
    ];
    let file = config.join("belljar/policy.toml");
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); cases.len()];
    for _ in 0..starts {
        for (number, (name, folder, policy)) in cases.iter().enumerate() {
            if let Some(policy) = policy {
                field.write(&file, policy, who)?;
            }
            let mut command = Command::new(belljar());
            let took = time(quiet(command.args(["run", "-q", "--", "/bin/true"]), field, who, folder))?;
            if policy.is_some() {
                std::fs::remove_file(&file).map_err(|error| format!("cannot remove {}: {error}", file.display()))?;
            }
            samples.keep("start", name, who.name(), took.as_secs_f64() * 1e3, "ms")?;
            times[number].push(took);
        }
    }
    let title = format!("`belljar run -- true` as {}", who.name());
    let mut table = Table::new(title, &["", "runs", "p50 ms", "p99 ms", "ratio", "wanted"]);
    let base = median(&times[0]).as_secs_f64();
    for ((name, _, _), times) in cases.iter().zip(&times) {
        let ratio = median(times).as_secs_f64() / base;
        let wanted = if *name == "a project's policy" { met(ratio <= 1.05, "≤ 1.05 ×") } else { String::new() };
        table.rows.push(vec![
            (*name).to_owned(),
            times.len().to_string(),
            milliseconds(median(times)),
            milliseconds(percentile(times, 0.99)),
            format!("{ratio:.3} ×"),
            wanted,
        ]);
    }
    Ok(table)
}
