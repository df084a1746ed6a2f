//! What there is more than before.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::house::{House, PATIENCE};

/// Once nothing more goes away by itself.
pub fn of(house: &House) -> Vec<String> {
    let until = Instant::now() + PATIENCE;
    loop {
        reap(None);
        let left = now(house);
        if left.is_empty() || Instant::now() > until {
            return left;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn now(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    // Whoever lost its parent is our child, and namespaces live as long as somebody is in them.
    for pid in below(std::process::id()) {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        found.push(format!("process {pid} {}", name.trim()));
    }
    let around = house.project.state.parent().unwrap_or(&house.project.state).display().to_string();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    found.extend(mounts.lines().filter(|line| line.contains(&around)).map(|line| format!("mount {line}")));
    for group in groups().difference(&house.groups) {
        // Named after its supervisor: one that lives is somebody else's.
        let name = group.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let supervisor = name.trim_start_matches("belljar-").split('-').next().unwrap_or_default();
        if !Path::new("/proc").join(supervisor).exists() {
            found.push(format!("group {}", group.display()));
        }
    }
    let state = &house.project.state;
    for folder in ["belljar-service-workspaces/local", "belljar/layers"] {
        for entry in fs::read_dir(state.join(folder)).into_iter().flatten().flatten() {
            found.push(format!("file {}", entry.path().display()));
        }
    }
    found
}

/// Those that have ended and wait for somebody to take notice, which is us: whoever waits for them to be gone waits for that. Not
/// the server, whose end is waited for by its number.
pub fn reap(server: Option<u32>) {
    use rustix::process::{Pid, WaitOptions, waitpid};
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    for number in numbers() {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        let ended = fields.next() == Some("Z") && fields.next().and_then(|parent| parent.parse().ok()) == Some(own);
        if ended && u32::try_from(number).ok() != server {
            // One that somebody else has waited for meanwhile is gone as well.
            waitpid(Pid::from_raw(number), WaitOptions::NOHANG).ok();
        }
    }
}

/// Children of a process, and theirs.
fn below(process: u32) -> Vec<i32> {
    let parent = |number: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let all: Vec<(i32, i32)> = numbers().into_iter().filter_map(|number| Some((number, parent(number)?))).collect();
    let mut found = vec![process as i32];
    let mut at = 0;
    while at < found.len() {
        let children: Vec<i32> =
            all.iter().filter(|(_, parent)| *parent == found[at]).map(|(number, _)| *number).collect();
        found.extend(children);
        at += 1;
    }
    found.split_off(1)
}

pub fn with_word(word: &str) -> Vec<i32> {
    numbers().into_iter().filter(|number| has_word(*number, word)).collect()
}

pub fn has_word(process: i32, word: &str) -> bool {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).any(|known| known == word.as_bytes())
}

fn numbers() -> Vec<i32> {
    let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
    listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Control groups of belljar's.
pub fn groups() -> BTreeSet<PathBuf> {
    fn look(folder: &Path, depth: u32, found: &mut BTreeSet<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with("belljar-") {
                    found.insert(entry.path());
                }
                look(&entry.path(), depth - 1, found);
            }
        }
    }
    let mut found = BTreeSet::new();
    look(Path::new("/sys/fs/cgroup"), 6, &mut found);
    found
}
