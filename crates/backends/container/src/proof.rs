//! Whether the walls really stand: what the kernel itself says of the container's first process.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use model::Wall;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::api::State;
use crate::configuration::{Configuration, User};
use crate::facts::Facts;
use crate::trouble::{Result, Unusable};

/// A handle on the first process, and the walls that the kernel says are up. Where it can't be seen (an engine in a
/// machine of its own, or a process that has ended already) nothing is proven, and nothing is claimed to be.
pub fn look(state: &State, id: &str, container: &Configuration, facts: &Facts) -> Result<(Option<OwnedFd>, Vec<Wall>)> {
    if state.pid <= 0 {
        return Ok((None, Vec::new()));
    }
    let Ok(handle) = sys::process::open(state.pid) else { return Ok((None, Vec::new())) };
    let until = Instant::now() + PATIENCE;
    loop {
        let wrong = match looked(state.pid, id, container, facts) {
            Seen::Nobody => return Ok((None, Vec::new())),
            Seen::Nothing => return Ok((Some(handle), Vec::new())),
            Seen::Standing(proven) => return Ok((Some(handle), proven)),
            Seen::Wrong(wall, message) => (wall, message),
        };
        // Some engines answer when their runtime was told to begin: it raises the last walls just before the first program.
        if Instant::now() < until {
            let mut ends = [PollFd::new(&handle, PollFlags::IN)];
            match poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 2_000_000 })) {
                Ok(_) | Err(Errno::INTR) => continue,
                Err(error) => {
                    return Err(Unusable::Failed { what: "wait for its walls".to_owned(), source: error.into() });
                }
            }
        }
        let (wall, message) = wrong;
        return Err(Unusable::Refused {
            wall,
            message: format!("the engine did not raise the wall `{wall}`: {message}; the container was ended"),
            fix: "see how the engine is configured; `belljar doctor` shows what it has".to_owned(),
        });
    }
}

/// How long a runtime may take from the word to go to the first program, on a busy host.
const PATIENCE: Duration = Duration::from_secs(2);

enum Seen {
    /// A number that means somebody else.
    Nobody,
    /// It can't be looked at, or has ended.
    Nothing,
    Standing(Vec<Wall>),
    Wrong(Wall, String),
}

fn looked(pid: i32, id: &str, container: &Configuration, facts: &Facts) -> Seen {
    let read = |what: &str| std::fs::read_to_string(format!("/proc/{pid}/{what}")).unwrap_or_default();
    // Read after the handle was opened, and compared with the container's own name: a number can mean somebody else.
    let groups = read("cgroup");
    if !groups.contains(id) && !watched_by(&read("stat"), id) {
        return Seen::Nobody;
    }
    // Another runtime's first process is not the payload's.
    if container.host_config.runtime.is_some() {
        return Seen::Nothing;
    }
    // After its control groups: one that has ended by now may have had none any more.
    let status = read("status");
    if has_ended(&status) {
        return Seen::Nothing;
    }
    let user = match container.user {
        User::Number { user, .. } => user.get(),
        // Its number outside is the caller's.
        User::CallerInNamespace => facts.caller.0,
    };
    if let Some((wall, message)) = missing(&status, user) {
        return Seen::Wrong(wall, message);
    }
    let mut proven = vec![Wall::User, Wall::Privileges, Wall::SystemCalls];
    for limit in limits(container, facts) {
        match limit.held(&groups, id, |file| std::fs::read_to_string(file).ok()) {
            Limited::Yes => proven.push(limit.wall),
            Limited::Unseen => {}
            Limited::No(message) => return Seen::Wrong(limit.wall, message),
        }
    }
    Seen::Standing(proven)
}

/// Whether whoever started it, by its words, watches over this container: some have no control group to be known by.
fn watched_by(stat: &str, id: &str) -> bool {
    let after_its_name = stat.rsplit(')').next().unwrap_or_default();
    let parent: i32 = after_its_name.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    parent > 1
        && std::fs::read(format!("/proc/{parent}/cmdline"))
            .is_ok_and(|words| words.split(|byte| *byte == 0).any(|word| word == id.as_bytes()))
}

fn has_ended(status: &str) -> bool {
    let state = status.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or_default();
    matches!(state.trim_start().bytes().next(), None | Some(b'Z' | b'X'))
}

/// A limit that a control group is to hold.
struct Limit {
    wall: Wall,
    controller: &'static str,
    /// In control groups of version 1, and of version 2.
    files: [&'static str; 2],
    most: u64,
}

enum Limited {
    Yes,
    /// The file that says so is not to be seen from here.
    Unseen,
    No(String),
}

/// Those that the engine says it holds.
fn limits(container: &Configuration, facts: &Facts) -> impl Iterator<Item = Limit> {
    let host = &container.host_config;
    let memory = Limit {
        wall: Wall::Memory,
        controller: "memory",
        files: ["memory.limit_in_bytes", "memory.max"],
        most: host.memory,
    };
    let processes =
        Limit { wall: Wall::ProcessCount, controller: "pids", files: ["pids.max", "pids.max"], most: host.pids_limit };
    [(facts.engine.memory, memory), (facts.engine.processes, processes)]
        .into_iter()
        .filter_map(|(said, limit)| said.then_some(limit))
}

impl Limit {
    /// `groups`: the control groups of the first process.
    fn held(&self, groups: &str, id: &str, read: impl Fn(&str) -> Option<String>) -> Limited {
        let parts = groups.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?))
        });
        let of = |wanted: &dyn Fn(&str) -> bool| parts.clone().find(|(names, _)| wanted(names)).map(|(_, path)| path);
        let named = of(&|names| names.split(',').any(|name| name == self.controller));
        let (path, mount, file) = match (named, of(&str::is_empty)) {
            (Some(path), _) => (path, format!("/sys/fs/cgroup/{}", self.controller), self.files[0]),
            (None, Some(path)) => (path, "/sys/fs/cgroup".to_owned(), self.files[1]),
            (None, None) => return Limited::Unseen,
        };
        if !path.contains(id) {
            return Limited::No(format!("it has no control group of its own for {}", self.controller));
        }
        // Some runtimes make further groups within the container's own, which has the limit.
        let own = Path::new(path).ancestors().filter_map(Path::to_str).take_while(|path| path.contains(id));
        let said: Vec<String> = own.filter_map(|path| read(&format!("{mount}{path}/{file}"))).collect();
        match said.iter().any(|said| said.trim().parse::<u64>().is_ok_and(|limit| limit <= self.most)) {
            true => Limited::Yes,
            false => match said.first() {
                None => Limited::Unseen,
                Some(said) => Limited::No(format!("{file} is {} and not {}", said.trim(), self.most)),
            },
        }
    }
}

/// What of the status of a process is not as it was asked for.
fn missing(status: &str, user: u32) -> Option<(Wall, String)> {
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().trim().to_owned()
    };
    if value("NoNewPrivs") != "1" {
        return Some((Wall::Privileges, "new privileges can be gained".to_owned()));
    }
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        if value(set).bytes().any(|digit| digit != b'0') || value(set).is_empty() {
            return Some((Wall::Privileges, format!("{set} is {}", value(set))));
        }
    }
    if value("Seccomp") != "2" {
        return Some((Wall::SystemCalls, "no filter is installed".to_owned()));
    }
    let uids = value("Uid");
    let wrong = |uid: &str| uid == "0" || uid.parse() != Ok(user);
    match uids.is_empty() || uids.split_ascii_whitespace().any(wrong) {
        true => Some((Wall::User, format!("its user is {uids}"))),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "Name:\tdocker-init\nUid:\t1000\t1000\t1000\t1000\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n\
        CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";

    #[test]
    fn each_wall_that_does_not_stand_is_seen() {
        assert_eq!(missing(SOUND, 1000), None);
        let broken = [
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0", Wall::Privileges),
            ("CapBnd:\t0000000000000000", "CapBnd:\t00000000a80425fb", Wall::Privileges),
            ("CapEff:\t0000000000000000\n", "", Wall::Privileges),
            ("Seccomp:\t2", "Seccomp:\t0", Wall::SystemCalls),
            ("Uid:\t1000\t1000", "Uid:\t0\t1000", Wall::User),
            ("Uid:\t1000", "Uid:\t1001", Wall::User),
        ];
        for (from, to, wall) in broken {
            assert_eq!(missing(&SOUND.replacen(from, to, 1), 1000).map(|found| found.0), Some(wall), "{to}");
        }
        assert!(missing("", 1000).is_some());
    }

    #[test]
    fn of_what_has_ended_nothing_is_said() {
        assert!(has_ended("Name:\tx\nState:\tZ (zombie)\n") && has_ended(""));
        assert!(!has_ended("Name:\tx\nState:\tS (sleeping)\n"));
    }

    #[test]
    fn a_limit_is_what_the_kernel_says_it_is() {
        let limit = Limit {
            wall: Wall::Memory,
            controller: "memory",
            files: ["memory.limit_in_bytes", "memory.max"],
            most: 4096,
        };
        let held = |groups: &str, at: &str, said: &str| {
            let read = |file: &str| (file == at).then(|| said.to_owned());
            match limit.held(groups, "abc", read) {
                Limited::Yes => "yes",
                Limited::Unseen => "unseen",
                Limited::No(_) => "no",
            }
        };
        let (older, at) =
            ("3:cpu,memory:/docker/abc\n0::/\n", "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes");
        assert_eq!(held(older, at, "4096\n"), "yes");
        assert_eq!(held(older, at, "9223372036854771712\n"), "no");
        assert_eq!(held(older, "elsewhere", "4096\n"), "unseen");
        let (unified, at) =
            ("0::/user.slice/libpod-abc.scope\n", "/sys/fs/cgroup/user.slice/libpod-abc.scope/memory.max");
        assert_eq!(held(unified, at, "4096\n"), "yes");
        assert_eq!(held(unified, at, "max\n"), "no");
        assert_eq!(held(&unified.replace('\n', "/container\n"), at, "4096\n"), "yes", "of the container as a whole");
        assert_eq!(held("3:memory:/everybody's\n", at, ""), "no", "a rootless engine that has none to give");
        assert_eq!(held("", at, ""), "unseen");
    }
}
