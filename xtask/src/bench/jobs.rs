//! The same job outside and inside: what a sandbox costs once it runs. Start-up does not count.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::contestant::belljar;

use super::samples::{Samples, Table, median, met, milliseconds};

/// A job: a shell command, repeated in one sandbox.
pub struct Job {
    pub name: &'static str,
    /// Where it is done outside.
    pub outside: PathBuf,
    /// Where it is done inside: the same folder, or a copy of it.
    pub inside: PathBuf,
    pub script: String,
    pub repeats: usize,
    pub first: First,
    /// Inside may take so many times as long; `None` if nothing was promised.
    pub wanted: Option<f64>,
}

/// What becomes of the first round of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// It warms caches and is left out.
    WarmsUp,
    Counts,
}

/// What comes before the command of a job to do it inside.
pub type Sandbox<'a> = dyn Fn(&Job) -> Command + 'a;

/// Does each job outside and in a sandbox, in turn. `place`: what that is, for the samples.
pub fn compare(
    jobs: &[Job],
    rounds: usize,
    (place, sandbox): (&str, &Sandbox<'_>),
    samples: &mut Samples,
) -> Result<Table, String> {
    let title = "The same job inside and outside, as root, medians";
    let mut table = Table::new(title, &["", "runs of each", "outside ms", "inside ms", "ratio", "wanted"]);
    for job in jobs {
        println!("{place}: {}", job.name);
        let (mut outside, mut inside) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            // Who goes first changes: neither always finds the caches that the other warmed.
            for sandboxed in [round % 2 == 0, round % 2 != 0] {
                let times = run(job, sandboxed.then_some(sandbox))?;
                for time in &times {
                    let where_ = if sandboxed { place } else { "outside" };
                    samples.keep(&format!("job {where_}"), job.name, "root", time.as_micros() as f64, "µs")?;
                }
                if sandboxed { inside.extend(times) } else { outside.extend(times) }
            }
        }
        let ratio = median(&inside).as_secs_f64() / median(&outside).as_secs_f64();
        table.rows.push(vec![
            job.name.to_owned(),
            inside.len().to_string(),
            milliseconds(median(&outside)),
            milliseconds(median(&inside)),
            format!("{ratio:.3} ×"),
            job.wanted.map_or_else(String::new, |wanted| met(ratio <= wanted, &format!("≤ {wanted} ×"))),
        ]);
    }
    Ok(table)
}

/// `belljar run -q`, to be gone on with.
pub fn belljar_run() -> Command {
    let mut command = Command::new(belljar());
    plain(&mut command).args(["run", "-q"]);
    command
}

/// The job's own times, as a shell in the same place measures them.
fn run(job: &Job, sandbox: Option<&Sandbox<'_>>) -> Result<Vec<Duration>, String> {
    let script = format!(
        "set -e; for round in $(seq {} {}); do from=$EPOCHREALTIME; {{ {}; }} >/dev/null 2>&1; to=$EPOCHREALTIME; \
         echo $(( ${{to/[.,]/}} - ${{from/[.,]/}} )); done",
        if job.first == First::WarmsUp { 0 } else { 1 },
        job.repeats,
        job.script
    );
    let shell = ["/bin/bash", "-c", &script];
    let mut command = match sandbox {
        Some(sandbox) => {
            let mut command = sandbox(job);
            command.arg("--").args(shell);
            command
        }
        None => {
            let mut command = Command::new(shell[0]);
            plain(&mut command).args(&shell[1..]);
            command
        }
    };
    let output = command
        .current_dir(if sandbox.is_some() { &job.inside } else { &job.outside })
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", job.name))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("{} failed (inside: {}) with {}: {said}", job.name, sandbox.is_some(), output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let times: Vec<_> = text.lines().filter_map(|line| line.parse().ok()).map(Duration::from_micros).collect();
    let left_out = usize::from(job.first == First::WarmsUp);
    match times.len() == job.repeats + left_out {
        true => Ok(times[left_out..].to_vec()),
        false => Err(format!("{} gave no times: {text}", job.name)),
    }
}

/// The environment of a login rather than that of `cargo xtask`, which sets where to build and spares rustup a search.
pub fn plain(command: &mut Command) -> &mut Command {
    let keep = ["PATH", "HOME"].map(|name| (name, std::env::var_os(name).unwrap_or_default()));
    command.env_clear().envs(keep)
}
