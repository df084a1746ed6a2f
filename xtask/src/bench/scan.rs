//! `cargo xtask bench scan`: the scanner beside its peers on the same tree, and what the release gate costs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::Who;
use testkit::contestant::{belljar, peers_folder};

use super::field::Field;
use super::jobs::plain;
use super::policy::measured;
use super::runners::{quiet, time};
use super::samples::{Samples, Table, median, met, milliseconds, percentile};
use crate::place;

struct Amounts {
    /// Packages of Python's own library that are scanned; none: all of it.
    packages: &'static [&'static str],
    rounds: usize,
    starts: usize,
    in_each: usize,
    processes: usize,
    megabytes: usize,
}

const FULL: Amounts = Amounts { packages: &[], rounds: 3, starts: 300, in_each: 200, processes: 20, megabytes: 256 };
const QUICK: Amounts =
    Amounts { packages: &["json", "email"], rounds: 1, starts: 5, in_each: 10, processes: 2, megabytes: 8 };

pub fn scan(flags: &[&str]) -> Result<(), String> {
    let super::Wish { quick, markdown, runs } = super::Wish::read("scan", flags)?;
    let mut amounts = if quick { QUICK } else { FULL };
    amounts.starts = runs.unwrap_or(amounts.starts);
    crate::release::everything()?;
    let field = Field::make()?;
    let mut samples = Samples::open("scan")?;
    let tables = vec![
        alone(&amounts, &mut samples)?,
        beside_peers(&field, &amounts, &mut samples)?,
        through_the_gate(&field, &amounts, &mut samples)?,
        at_a_start(&field, &amounts, &mut samples)?,
    ];
    super::report(tables, quick, markdown, &samples);
    Ok(())
}

/// What a snippet takes, in a process that has scanned before and in a new one; and the redactor by itself.
fn alone(amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let mut table = Table::new("By themselves", &["", "samples", "p50 µs", "p99 µs", "wanted"]);
    let mut times: std::collections::BTreeMap<String, Vec<Duration>> = Default::default();
    for _ in 0..amounts.processes {
        for name in ["scan_speed", "redaction_speed"] {
            for (what, taken) in measured(name, amounts.in_each)? {
                let (first, rest) = taken.split_first().ok_or("no sample")?;
                times.entry(format!("{what}, cold")).or_default().push(*first);
                times.entry(what).or_default().extend(rest);
            }
        }
    }
    for (what, times) in &times {
        for time in times {
            samples.keep("scan", what, "root", time.as_secs_f64() * 1e6, "µs")?;
        }
        let microseconds = |time: Duration| time.as_secs_f64() * 1e6;
        let p50 = microseconds(median(times));
        // A megabyte in 3,333 µs is 300 megabytes a second.
        let most = match what {
            what if what.starts_with("a snippet") && what.ends_with("cold") => Some(5000.0),
            what if what.starts_with("a snippet") => Some(1000.0),
            what if what.starts_with("redact a megabyte") && !what.ends_with("cold") => Some(3333.0),
            _ => None,
        };
        let wanted = most.map_or(String::new(), |most| met(p50 < most, &format!("< {most} µs")));
        let p99 = microseconds(percentile(times, 0.99));
        table.rows.push(vec![what.clone(), times.len().to_string(), format!("{p50:.1}"), format!("{p99:.1}"), wanted]);
    }
    Ok(table)
}

/// How many times faster than this peer, at least.
const PEERS: &[(&str, f64)] = &[("bandit", 50.0), ("semgrep", 10.0)];

/// The same tree of Python, scanned by each, in turn.
fn beside_peers(field: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let tree = python_tree(field, amounts.packages)?;
    let rules = field.root.join("semgrep.yml");
    field.write(&rules, include_str!("semgrep.yml"), Who::Root)?;
    let mut table = Table::new(
        "The same Python tree, medians; a peer's finding exits with 1, which is no failure",
        &["", "runs", "ms", "times as long", "wanted"],
    );
    let mut ours = Vec::new();
    let mut theirs: Vec<Vec<Duration>> = vec![Vec::new(); PEERS.len()];
    for _ in 0..amounts.rounds {
        ours.push(ended(plain(Command::new(belljar()).args(["scan", "--json"]).arg(&tree)))?);
        for ((name, _), times) in PEERS.iter().zip(&mut theirs) {
            if let Some(mut command) = peer(name, &tree, &rules) {
                println!("scanning with {name}");
                times.push(ended(plain(&mut command))?);
            }
        }
    }
    let mut row = |name: &str, times: &[Duration], wanted: Option<f64>| -> Result<(), String> {
        for time in times {
            samples.keep("tree", name, "root", time.as_secs_f64() * 1e3, "ms")?;
        }
        let ratio = median(times).as_secs_f64() / median(&ours).as_secs_f64();
        let wanted = wanted.map_or(String::new(), |least| met(ratio >= least, &format!("≥ {least} ×")));
        let cells =
            [name.to_owned(), times.len().to_string(), milliseconds(median(times)), format!("{ratio:.1} ×"), wanted];
        table.rows.push(cells.to_vec());
        Ok(())
    };
    row("belljar scan", &ours.clone(), None)?;
    for ((name, least), times) in PEERS.iter().zip(&theirs) {
        match times.is_empty() {
            true => println!("{name} is not installed: not compared"),
            false => row(name, times, Some(*least))?,
        }
    }
    Ok(table)
}

fn peer(name: &str, tree: &Path, rules: &Path) -> Option<Command> {
    let program = peers_folder().join("scanners/bin").join(name);
    if !place::runs(&program) {
        return None;
    }
    let mut command = Command::new(program);
    match name {
        "bandit" => command.args(["--quiet", "--recursive", "--format", "json", "--output", "/dev/null"]).arg(tree),
        _ => command
            .args(["scan", "--quiet", "--metrics=off", "--disable-version-check", "--no-git-ignore", "--json"])
            .args(["--output", "/dev/null", "--config"])
            .arg(rules)
            .arg(tree),
    };
    // Its programs find each other by name.
    command.env("PATH", format!("{}:/usr/bin:/bin", peers_folder().join("scanners/bin").display()));
    Some(command)
}

/// Whatever the code: scanners tell with it what they found.
fn ended(command: &mut Command) -> Result<Duration, String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let status = command.status().map_err(|error| format!("cannot run `{}`: {error}", crate::steps::words(command)))?;
    match status.code() {
        Some(0 | 1) => Ok(started.elapsed()),
        _ => Err(format!("`{}` failed with {status}", crate::steps::words(command))),
    }
}

/// A copy without links, so that each scans the same files.
fn python_tree(field: &Field, packages: &[&str]) -> Result<PathBuf, String> {
    let from =
        place::said(Command::new("/usr/bin/python3").args(["-c", "import os; print(os.path.dirname(os.__file__))"]))
            .ok_or("there is no /usr/bin/python3")?;
    let tree = field.root.join("python");
    field.folder(&tree, Who::Root)?;
    let sources: Vec<PathBuf> = match packages {
        [] => vec![Path::new(&from).join(".")],
        packages => packages.iter().map(|package| Path::new(&from).join(package)).collect(),
    };
    crate::steps::run(Command::new("cp").args(["-r", "--no-preserve=ownership"]).args(sources).arg(&tree))?;
    crate::steps::run(
        Command::new("find").arg(&tree).args(["-not", "-name", "*.py", "-not", "-type", "d", "-delete"]),
    )?;
    Ok(tree)
}

/// A policy that lets output through as it is.
const OPEN: &str = "version = 1\n[release]\nredact = false\n";
/// One that says as little, and takes secrets out.
const SHUT: &str = "version = 1\n[release]\nredact = true\n";

/// Output to somebody who reads it, with the gate and without: a plain flood, and a build that talks.
fn through_the_gate(field: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let who = Who::Root;
    let config = field.home(who).join(".config/belljar");
    field.folder(&config, who)?;
    let folder = field.project(who);
    let log = folder.join("log");
    field.write(&log, &build_log(amounts.megabytes << 20), who)?;
    for (number, name) in ["a.c", "b.c", "c.c", "d.c"].iter().enumerate() {
        let text =
            format!("#include <stdio.h>\n#include <stdlib.h>\nint f{number}(int x) {{ return x + {number}; }}\n");
        field.write(&folder.join(name), &text, who)?;
    }
    let jobs = [
        ("a log of many megabytes", "cat log".to_owned(), None),
        // Talks as much as a compiler can: every header, every search, every option.
        (
            "a build that talks",
            "for f in a b c d; do gcc -v -H -Q -c $f.c -o /tmp/$f.o 2>&1; done; cat /dev/null".to_owned(),
            Some(1.03),
        ),
    ];
    let mut table = Table::new(
        "Through the release gate, as root, medians",
        &["", "runs of each", "without ms", "with ms", "ratio", "wanted"],
    );
    for (name, script, wanted) in jobs {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..amounts.rounds * 5 {
            for (policy, times) in [OPEN, SHUT].iter().zip(&mut times) {
                field.write(&config.join("policy.toml"), policy, who)?;
                let mut command = Command::new(belljar());
                command.args(["run", "-q", "--workspace-mode", "readonly", "--", "sh", "-c", &script]);
                times.push(read_to_the_end(quiet(&mut command, field, who, &folder))?);
            }
        }
        for (policy, times) in ["without", "with"].iter().zip(&times) {
            for time in times {
                samples.keep(&format!("gate {policy}"), name, "root", time.as_secs_f64() * 1e3, "ms")?;
            }
        }
        let ratio = median(&times[1]).as_secs_f64() / median(&times[0]).as_secs_f64();
        table.rows.push(vec![
            name.to_owned(),
            times[0].len().to_string(),
            milliseconds(median(&times[0])),
            milliseconds(median(&times[1])),
            format!("{ratio:.3} ×"),
            wanted.map_or(String::new(), |most| met(ratio <= most, &format!("≤ {most} ×"))),
        ]);
    }
    Ok(table)
}

/// As somebody does who wants the output: it is read, and thrown away.
fn read_to_the_end(command: &mut Command) -> Result<Duration, String> {
    let started = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| format!("cannot run belljar: {error}"))?;
    let mut output = child.stdout.take().ok_or("no output")?;
    std::io::copy(&mut output, &mut std::io::sink()).map_err(|error| format!("cannot read: {error}"))?;
    let status = child.wait().map_err(|error| format!("cannot wait: {error}"))?;
    match status.success() {
        true => Ok(started.elapsed()),
        false => Err(format!("`{}` failed with {status}", crate::steps::words(command))),
    }
}

/// Lines as compilers, test runners and package managers write them.
fn build_log(bytes: usize) -> String {
    let lines = [
        "   Compiling serde_json v1.0.154 (/home/user/.cargo/registry/src/index/serde_json-1.0.154)",
        "test engine::policies::tests::a_rule_that_can_not_be_evaluated_denies ... ok",
        "  ├─ node_modules/@types/node@22.10.2 sha512-5Xq3Zk4vVwqF1q0qgq3mPj7e0h3yq1pVwq0r8fQk2nM= (1.2 MB)",
        "gcc -O2 -Wall -Wextra -fPIC -I/usr/include/x86_64-linux-gnu -c src/main.c -o build/main.o",
        "warning: unused variable: `index` --> src/lib.rs:214:9 | 214 | let index = list.len();",
        "2026-11-16T10:33:13.482Z INFO  server::http request{method=GET path=/api/items id=7f1c} done in 3.2ms",
        "collected 412 items / tests/test_models.py ........................................ [ 37%]",
        "Get:12 deb bookworm/main amd64 libssl3 amd64 3.0.15-1~deb12u1 [2,025 kB]",
    ];
    let mut text = String::with_capacity(bytes + 128);
    for line in lines.iter().cycle() {
        if text.len() >= bytes {
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// A start with nothing to scan, read by somebody: with the gate and without.
fn at_a_start(field: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let who = Who::Root;
    let config = field.home(who).join(".config/belljar");
    let folder = field.project(who);
    let cases: [(&str, &str, &[&str], Option<f64>); 3] = [
        ("true, without the gate", OPEN, &["/bin/true"], None),
        ("true", SHUT, &["/bin/true"], Some(1.02)),
        ("a line of Python, scanned", SHUT, &["/usr/bin/python3", "-I", "-S", "-c", "print(6 * 7)"], None),
    ];
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); cases.len()];
    for _ in 0..amounts.starts {
        for ((name, policy, words, _), times) in cases.iter().zip(&mut times) {
            field.write(&config.join("policy.toml"), policy, who)?;
            let mut command = Command::new(belljar());
            command.args(["run", "-q", "--workspace-mode", "readonly", "--"]).args(*words);
            let took = time(quiet(&mut command, field, who, &folder).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
            samples.keep("start", name, who.name(), took.as_secs_f64() * 1e3, "ms")?;
            times.push(took);
        }
    }
    let mut table = Table::new("`belljar run`, as root", &["", "runs", "p50 ms", "p99 ms", "ratio", "wanted"]);
    let base = median(&times[0]).as_secs_f64();
    for ((name, _, _, wanted), times) in cases.iter().zip(&times) {
        let ratio = median(times).as_secs_f64() / base;
        table.rows.push(vec![
            (*name).to_owned(),
            times.len().to_string(),
            milliseconds(median(times)),
            milliseconds(percentile(times, 0.99)),
            format!("{ratio:.3} ×"),
            wanted.map_or(String::new(), |most| met(ratio <= most, &format!("≤ {most} ×"))),
        ]);
    }
    Ok(table)
}
