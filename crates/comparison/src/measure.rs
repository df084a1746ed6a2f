//! Starts things and looks at the clock.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Field;
use crate::contestant::Contestant;
use crate::corpus::{self, Program};

/// How many wait at the same time when their memory is measured.
const WAITING: usize = 4;
const BUSY: Duration = Duration::from_millis(1500);

/// Milliseconds from start to end; or why it did not work.
pub fn once(field: &Field, way: &Contestant, words: &[OsString]) -> Result<f64, String> {
    let mut command = way.command(field, words).map_err(|error| format!("no workspace could be made: {error}"))?;
    command.stderr(Stdio::piped());
    let began = Instant::now();
    let output = command.output().map_err(|error| format!("cannot be started: {error}"))?;
    let time = began.elapsed().as_secs_f64() * 1e3;
    match output.status.success() {
        true => Ok(time),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            Err(format!("{}: {}", output.status, last.chars().take(300).collect::<String>()))
        }
    }
}

/// The quickest of three, since others' work only ever makes it longer.
pub fn best(field: &Field, way: &Contestant, words: &[OsString]) -> Option<f64> {
    (0..3).filter_map(|_| once(field, way, words).ok()).min_by(f64::total_cmp)
}

/// Starts a second, with twice as many at once as there are processors.
pub fn throughput(field: &Field, way: &Contestant, words: &[OsString]) -> Option<f64> {
    let at_once = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    let (done, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while began.elapsed() < BUSY {
                    match once(field, way, words) {
                        Ok(_) => done.fetch_add(1, Ordering::Relaxed),
                        Err(_) => failed.fetch_add(1, Ordering::Relaxed),
                    };
                }
            });
        }
    });
    let (done, failed) = (done.into_inner(), failed.into_inner());
    (failed == 0 && done > 0).then(|| done as f64 / began.elapsed().as_secs_f64())
}

/// Bytes for each of a few that have started and wait: of every process that came with them, wherever it belongs.
pub fn memory(field: &Field, way: &Contestant, words: &[OsString]) -> Option<u64> {
    let before = processes();
    let mut waiting: Vec<Child> = Vec::new();
    let mut all_here = true;
    for _ in 0..WAITING {
        let command = way.command(field, words);
        let child = command.and_then(|mut command| command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn());
        let Ok(mut child) = child else {
            all_here = false;
            break;
        };
        // It says so when it is there.
        let mut line = String::new();
        let said = child.stdout.as_mut().map(|out| BufReader::new(out.by_ref()).read_line(&mut line));
        waiting.push(child);
        all_here &= matches!(said, Some(Ok(_))) && line.trim() == "here";
    }
    let new: HashSet<u32> = processes().difference(&before).copied().collect();
    let sum: u64 = new.iter().filter_map(|process| proportional(*process)).sum();
    for mut child in waiting {
        // Its input ends, and so does it.
        drop(child.stdin.take());
        all_here &= child.wait().is_ok();
    }
    (all_here && sum > 0).then(|| sum / WAITING as u64)
}

fn processes() -> HashSet<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// What it uses, with its part of what it shares with others.
fn proportional(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|number| number * 1024)
}

/// What came of a program of the corpus.
pub fn program(field: &Field, way: &Contestant, program: &Program) -> String {
    let Some(words) = program.words(way.ground) else {
        return "not for modules".to_owned();
    };
    let command = way.command(field, &words);
    let output = command.and_then(|mut command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).output());
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return corpus::NOT_THERE.to_owned(),
        Err(error) => return format!("cannot be started: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) if said.trim() == program.says => corpus::RUNS.to_owned(),
        Some(0) => format!("says something else: {}", said.trim().chars().take(60).collect::<String>()),
        Some(127) => corpus::NOT_THERE.to_owned(),
        Some(code) => format!("ends with {code}"),
        None => "is killed".to_owned(),
    }
}

pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let model = read("/proc/cpuinfo");
    let model = model.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':')).map(|(_, name)| name);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{processors} × {}, Linux {}", model.unwrap_or("processor").trim(), kernel.trim())
}
