//! Containers beside the engine's own client: `docker run` for a start from nothing, `docker exec` for one that waits.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::contestant::{belljar, built};
use testkit::engine::{self, Engine};

use super::Amounts;
use crate::bench::field::Field;
use crate::bench::samples::{Samples, Table, median, met, milliseconds, percentile};

/// Times `docker run` and `docker exec`, which the backend may take.
const COLD: f64 = 1.1;
const WARM: f64 = 1.2;

pub fn measure(_: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<Vec<Table>, String> {
    if let Some(why) = engine::missing() {
        println!("containers are not measured: {why}");
        return Ok(Vec::new());
    }
    let engine = match Engine::start() {
        Ok(engine) => engine,
        Err(why) => {
            println!("containers are not measured: {why}");
            return Ok(Vec::new());
        }
    };
    let folder = std::env::temp_dir().join(format!("belljar-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // Each takes a good part of a second.
    let counts = (amounts.starts.clamp(3, 40), amounts.warm.min(amounts.slow).clamp(3, 40));
    let measured = both(&engine, &folder, counts, samples);
    std::fs::remove_dir_all(&folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    measured
}

fn both(engine: &Engine, folder: &Path, counts: (usize, usize), samples: &mut Samples) -> Result<Vec<Table>, String> {
    let ours = || {
        let mut command = Command::new(belljar());
        command.args(["run", "-q", "--backend", "container", "--workspace-mode", "readonly", "--", "true"]);
        command.env("DOCKER_HOST", engine.host()).current_dir(folder);
        command
    };
    let docker = |words: &[&str]| {
        let mut command = Command::new("docker");
        command.arg("--host").arg(engine.host()).args(words);
        command
    };
    // Makes belljar's own image, which both then use.
    time(&mut ours())?;
    let listed = docker(&["images", "--format", "{{.Repository}}:{{.Tag}}", "belljar/busybox"]).output();
    let listed = listed.map_err(|error| error.to_string())?;
    let image = String::from_utf8_lossy(&listed.stdout).lines().next().unwrap_or_default().to_owned();
    let run = || docker(&["run", "--rm", "--init", "--network", "none", &image, "true"]);
    time(&mut run())?;
    let (mut cold, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..counts.0 {
        cold.push(time(&mut ours())?);
        peer.push(time(&mut run())?);
    }

    let kept = docker(&["run", "--detach", "--init", "--network", "none", &image, "sleep", "100000"]).output();
    let kept = kept.map_err(|error| error.to_string())?;
    let kept = String::from_utf8_lossy(&kept.stdout).trim().to_owned();
    let exec = || docker(&["exec", &kept, "true"]);
    time(&mut exec())?;
    let (mut warm, mut peer_warm) = (Vec::new(), Vec::new());
    for _ in 0..counts.1 {
        warm.push(one_warm(engine)?);
        peer_warm.push(time(&mut exec())?);
    }

    let mut table = Table::new("containers: `true`", &["", "p50 ms", "p90 ms", "× the client", "wanted"]);
    let mut row = |name: &str, times: &[Duration], beside: Option<(&[Duration], f64)>| -> Result<(), String> {
        for time in times {
            samples.keep("container", name, "root", time.as_secs_f64() * 1e3, "ms")?;
        }
        let (ratio, wanted) = match beside {
            Some((peer, most)) => {
                let ratio = median(times).as_secs_f64() / median(peer).as_secs_f64();
                (format!("{ratio:.2}"), met(ratio <= most, &format!("at most {most}")))
            }
            None => (String::new(), String::new()),
        };
        let name = name.to_owned();
        table.rows.push(vec![name, milliseconds(median(times)), milliseconds(percentile(times, 0.9)), ratio, wanted]);
        Ok(())
    };
    row("docker run", &peer, None)?;
    row("belljar, cold", &cold, Some((&peer, COLD)))?;
    row("docker exec", &peer_warm, None)?;
    row("belljar, in a container that waits", &warm, Some((&peer_warm, WARM)))?;
    Ok(vec![table])
}

/// From the word to go to the answer, in a container that stood before.
fn one_warm(engine: &Engine) -> Result<Duration, String> {
    let program = built("examples/warm");
    let output = Command::new(program).arg("1").env("DOCKER_HOST", engine.host()).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run the warm example: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let nanoseconds = text.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    match nanoseconds.filter(|_| output.status.success()) {
        Some(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        None => Err(format!("the warm example said: {text}")),
    }
}

fn time(command: &mut Command) -> Result<Duration, String> {
    let begun = Instant::now();
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(begun.elapsed()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
