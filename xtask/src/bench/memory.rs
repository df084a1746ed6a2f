//! What one running sandbox adds to memory: every process of belljar's own, shared pages divided among sharers.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use testkit::Who;
use testkit::contestant::belljar;

use super::field::Field;
use super::runners::{Runner, quiet};
use super::samples::{Samples, Table, met};

const WANTED_KIB: u64 = 4096;

pub fn measure(field: &Field, samples: &mut Samples) -> Result<Table, String> {
    let mut table =
        Table::new("Memory of one running sandbox besides the command's", &["", "processes", "PSS KiB", "wanted"]);
    for who in [Who::Root, Who::Ordinary] {
        println!("memory: as {}", who.name());
        let before: HashSet<u32> = ours().into_iter().collect();
        let mut command = Runner::Belljar.command(field, &["/bin/sleep", "30"]);
        let mut child = quiet(&mut command, field, who, &field.project(who))
            .spawn()
            .map_err(|error| format!("cannot run belljar: {error}"))?;
        let asleep = wait_for_sleep(child.id());
        let own: Vec<u32> = ours().into_iter().filter(|pid| !before.contains(pid)).collect();
        let sizes: Vec<u64> = one_of_each_memory(&own).into_iter().filter_map(proportional_size).collect();
        // The supervisor takes the sandbox with it.
        child.kill().and_then(|()| child.wait()).map_err(|error| format!("cannot end the sandbox: {error}"))?;
        if !asleep || sizes.is_empty() {
            return Err("the sandbox did not come to run its command".to_owned());
        }
        let sum = sizes.iter().sum::<u64>();
        samples.keep("memory", "belljar", who.name(), sum as f64, "KiB")?;
        table.rows.push(vec![
            format!("as {}", who.name()),
            own.len().to_string(),
            sum.to_string(),
            met(sum <= WANTED_KIB, &format!("≤ {WANTED_KIB} KiB")),
        ]);
    }
    Ok(table)
}

/// Processes that run our binary. The command itself runs another.
fn ours() -> Vec<u32> {
    let binary = fs::canonicalize(belljar()).unwrap_or_default();
    processes()
        .filter(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| is(&program, &binary)))
        .collect()
}

fn is(program: &PathBuf, binary: &PathBuf) -> bool {
    // Inside another root the kernel shows the path from there, which ends the same.
    program == binary || program.file_name() == binary.file_name()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Until a process below `supervisor` has become `sleep`.
fn wait_for_sleep(supervisor: u32) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(5) {
        let asleep =
            |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep");
        if processes().any(|pid| asleep(pid) && descends(pid, supervisor)) {
            // Until it waits: libraries are loaded by then.
            std::thread::sleep(Duration::from_millis(100));
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

fn descends(mut pid: u32, ancestor: u32) -> bool {
    while pid > 1 && pid != ancestor {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        pid = parent.unwrap_or(0);
    }
    pid == ancestor
}

/// Processes that share one memory are counted once: the kernel gives each of them all of it.
fn one_of_each_memory(own: &[u32]) -> Vec<u32> {
    const MEMORY: u64 = 1;
    let same = |one: u32, other: u32| {
        let compared = testkit::inside::call(libc::SYS_kcmp, [one.into(), other.into(), MEMORY, 0, 0, 0]);
        compared.is_ok_and(|order| order == 0)
    };
    let first = |at: usize| !own[..at].iter().any(|earlier| same(*earlier, own[at]));
    (0..own.len()).filter(|at| first(*at)).map(|at| own[at]).collect()
}

pub fn proportional_size(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse().ok())
}

/// Pages that a process had at once, at most, in KiB.
pub fn largest_size(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
}

pub fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// All that came from a process.
pub fn below(ancestor: u32) -> Vec<u32> {
    processes().filter(|pid| *pid != ancestor && descends(*pid, ancestor)).collect()
}
