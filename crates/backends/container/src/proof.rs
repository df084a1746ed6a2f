//! Whether the walls really stand: what the kernel itself says of the container's first process.

use std::os::fd::OwnedFd;

use model::Wall;

use crate::api::State;
use crate::configuration::Configuration;
use crate::trouble::{Result, Unusable};

/// A handle on the first process, and the walls that the kernel says are up. Where it can't be seen (an engine in a
/// machine of its own, or a process that has ended already) nothing is proven, and nothing is claimed to be.
pub fn look(state: &State, id: &str, container: &Configuration) -> Result<(Option<OwnedFd>, Vec<Wall>)> {
    if state.pid <= 0 {
        return Ok((None, Vec::new()));
    }
    let Ok(handle) = sys::process::open(state.pid) else { return Ok((None, Vec::new())) };
    let read = |what: &str| std::fs::read_to_string(format!("/proc/{}/{what}", state.pid)).unwrap_or_default();
    // Read after the handle was opened, and compared with the container's own name: a number can mean somebody else.
    if !read("cgroup").contains(id) {
        return Ok((None, Vec::new()));
    }
    // Another runtime's first process is not the payload's.
    if container.host_config.runtime.is_some() {
        return Ok((Some(handle), Vec::new()));
    }
    let status = read("status");
    if status.is_empty() {
        return Ok((Some(handle), Vec::new()));
    }
    match missing(&status, container.user.numbers().0) {
        None => Ok((Some(handle), vec![Wall::User, Wall::Privileges, Wall::SystemCalls])),
        Some((wall, message)) => Err(Unusable::Refused {
            wall,
            message: format!("the engine did not raise the wall `{wall}`: {message}; the container was ended"),
            fix: "see how the engine is configured; `belljar doctor` shows what it has".to_owned(),
        }),
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
    // In a user namespace of the engine's the number is another; never root's.
    let wrong = |uid: &str| uid == "0" || (user != 0 && uid.parse() != Ok(user));
    match uids.is_empty() || uids.split_ascii_whitespace().any(wrong) && user != 0 {
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
}
