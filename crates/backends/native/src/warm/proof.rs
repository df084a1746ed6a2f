//! What the kernel says of somebody who claims to be behind walls.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use guest::wire::OFFERED;
use model::Wall;

/// Lines of its status that must be so.
const SO: [(&str, &str, Wall); 7] = [
    ("NoNewPrivs", "1", Wall::Privileges),
    ("Seccomp", "2", Wall::SystemCalls),
    ("CapInh", "0000000000000000", Wall::Privileges),
    ("CapPrm", "0000000000000000", Wall::Privileges),
    ("CapEff", "0000000000000000", Wall::Privileges),
    ("CapBnd", "0000000000000000", Wall::Privileges),
    ("CapAmb", "0000000000000000", Wall::Privileges),
];

/// By the group or by anybody, and by whom a list of its own names.
const OTHERS_WRITE: u32 = 0o022;

/// Whether `process` holds nothing, may gain nothing, is behind a filter, and is in the namespaces that were offered.
pub fn stands(process: i32, offered: &[OwnedFd]) -> Result<(), (Wall, String)> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))
        .map_err(|error| (Wall::Processes, format!("its status can't be read: {error}")))?;
    let line = |name: &str| status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()));
    for (name, so, wall) in SO {
        match line(name) {
            Some(value) if value == so => {}
            value => return Err((wall, format!("its `{name}` is {value:?} and not {so}"))),
        }
    }
    // The program that it is a copy of is one of the host, in the host's mounts, and it can name it: `/proc/self/exe`. Who
    // executes a program inside has it in a mount that is read-only; here, that it is somebody else's must do.
    let program = std::fs::metadata(format!("/proc/{process}/exe"))
        .map_err(|error| (Wall::Files, format!("its program can't be seen: {error}")))?;
    let user = line("Uid").and_then(|users| users.split_whitespace().next()?.parse().ok());
    if user.is_none_or(|user: u32| user == program.uid()) || program.mode() & OTHERS_WRITE != 0 {
        return Err((Wall::Files, "it could change the program that it is a copy of, which is its own".to_owned()));
    }
    // All but the last, which is no namespace.
    for (name, offered) in OFFERED[..OFFERED.len() - 1].iter().zip(offered) {
        let ours = rustix::fs::fstat(offered).map(|stat| (stat.st_dev, stat.st_ino));
        let its = std::fs::metadata(format!("/proc/{process}/ns/{name}")).map(|stat| (stat.dev(), stat.ino()));
        match (ours, its) {
            (Ok(ours), Ok(its)) if ours == its => {}
            (_, Err(error)) => return Err((Wall::Processes, format!("its namespace `{name}` can't be seen: {error}"))),
            _ => return Err((Wall::Processes, format!("it is in another namespace `{name}`"))),
        }
    }
    if offered.len() + 1 < OFFERED.len() {
        return Err((Wall::Processes, "not all namespaces were offered".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_behind_no_walls_is_found_out() {
        let own = std::process::id() as i32;
        assert!(stands(own, &[]).is_err());
        assert!(stands(i32::MAX, &[]).is_err());
    }
}
