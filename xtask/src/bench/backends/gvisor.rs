//! gVisor by itself, belljar over it, and a guest of belljar's that waits: `/bin/true` in each, in turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::Who;
use testkit::contestant::{Contestant, belljar, built};

use super::super::field::Field;
use super::super::runners::{quiet, time};
use super::super::samples::{Samples, Table, median, met, milliseconds, percentile};
use super::Amounts;
use crate::place;

/// Belljar over gVisor at most this many times gVisor by itself, and a warm guest this many times faster than a cold one.
const COLD: f64 = 1.1;
const WARM: f64 = 5.0;

pub fn measure(field: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<Vec<Table>, String> {
    let runs = amounts.starts.min(30);
    let Some(version) = Contestant::Gvisor.version() else {
        println!("left out: there is no runsc that belljar can use");
        return Ok(Vec::new());
    };
    let bundle = bundle(&field.root)?;
    let mut times = [const { Vec::new() }; 3];
    for round in 0..=runs {
        // By itself, it needs root; so all are measured as root.
        let all = [by_itself(&bundle, round), over_it(None), over_it(Some("gvisor"))];
        for (mut command, times) in all.into_iter().zip(&mut times) {
            let took = time(quiet(&mut command, field, Who::Root, &field.project(Who::Root)))?;
            // One beforehand: caches are warm for all.
            if round > 0 {
                times.push(took);
            }
        }
    }
    let [alone, native, cold] = times;
    let (within, waiting) = guests(runs, &field.project(Who::Root))?;
    let rows = [
        (format!("runsc run {version}"), alone.clone(), String::new()),
        ("belljar run, native".to_owned(), native, String::new()),
        ("belljar run --backend gvisor".to_owned(), cold.clone(), {
            let ratio = median(&cold).as_secs_f64() / median(&alone).as_secs_f64();
            met(ratio <= COLD, &format!("{ratio:.2} × runsc run, at most {COLD}"))
        }),
        ("a guest from nothing, in one process".to_owned(), within.clone(), String::new()),
        ("a guest that waits, in one process".to_owned(), waiting.clone(), {
            let ratio = median(&within).as_secs_f64() / median(&waiting).as_secs_f64();
            met(ratio >= WARM, &format!("{ratio:.1} × faster, at least {WARM}"))
        }),
    ];
    let mut table = Table::new("/bin/true behind gVisor, as root", &["", "runs", "p50 ms", "p99 ms", "wanted"]);
    for (name, times, wanted) in rows {
        for time in &times {
            samples.keep("start behind gVisor", &name, "root", time.as_secs_f64() * 1e6, "µs")?;
        }
        let (half, most) = (milliseconds(median(&times)), milliseconds(percentile(&times, 0.99)));
        table.rows.push(vec![name, times.len().to_string(), half, most, wanted]);
    }
    Ok(vec![table])
}

/// The same work: the host's files read-only, a folder to write to, no network.
fn bundle(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("bundle");
    let complain = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder.join("state")).map_err(complain)?;
    let config = serde_json::json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": { "uid": 1000, "gid": 1000 }, "args": ["/bin/true"], "env": [], "cwd": "/", "noNewPrivileges": true,
        },
        "root": { "path": "/", "readonly": true },
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/tmp", "type": "tmpfs", "source": "tmpfs" },
        ],
        "linux": { "namespaces": [
            { "type": "pid" }, { "type": "mount" }, { "type": "ipc" }, { "type": "uts" }, { "type": "network" },
        ] },
    });
    fs::write(folder.join("config.json"), config.to_string()).map_err(complain)?;
    Ok(folder)
}

fn by_itself(bundle: &Path, round: usize) -> Command {
    let mut command = Command::new("runsc");
    command.arg(format!("--root={}", bundle.join("state").display()));
    command.args(["--platform=systrap", "--network=none", "--ignore-cgroups", "run"]);
    command.arg(format!("--bundle={}", bundle.display())).arg(format!("bench-{}-{round}", std::process::id()));
    command
}

fn over_it(backend: Option<&str>) -> Command {
    let mut command = Command::new(belljar());
    command.args(["run", "-q"]);
    command.args(backend.map(|backend| format!("--backend={backend}")));
    command.args(["--", "/bin/true"]);
    command
}

/// From nothing, and those that wait.
fn guests(runs: usize, project: &Path) -> Result<(Vec<Duration>, Vec<Duration>), String> {
    let mut command = Command::new(built("examples/gvisor_warm"));
    let said = place::said(command.arg(runs.to_string()).current_dir(project)).ok_or("`gvisor_warm` failed")?;
    let of = |kind: &str| -> Vec<Duration> {
        let lines = said.lines().filter_map(|line| line.strip_prefix(kind)?.trim().parse().ok());
        lines.map(Duration::from_nanos).collect()
    };
    Ok((of("cold "), of("warm ")))
}
