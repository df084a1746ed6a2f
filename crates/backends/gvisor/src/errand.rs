//! Grant → the usher's orders. Pure, but for the caller's habit of naming rights of new files.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;

use guest::usher::Errand;
use model::{Command, Limits, Network, Powers, Step};
use rustix::fs::Mode;

/// `filter`: which calls the payload may make.
pub fn errand(powers: &Powers, payload: (u32, u32), filter: Vec<u8>) -> io::Result<Errand> {
    // The only way to ask for it is to set it.
    let umask = rustix::process::umask(Mode::empty());
    rustix::process::umask(umask);
    Ok(Errand { umask: umask.as_raw_mode(), filter, ..plain(powers, payload)? })
}

fn plain(powers: &Powers, (user, group): (u32, u32)) -> io::Result<Errand> {
    let Powers { command, files: _, environment, network, limits } = powers;
    let Command { program, arguments, directory, terminal } = command;
    // The others are held around gVisor, for all processes together.
    let Limits {
        wall_time: _,
        millicpus: _,
        cpu_time,
        memory: _,
        processes,
        disk: _,
        inodes: _,
        open_files,
        largest_file,
        output: _,
    } = limits;
    let string = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| io::Error::other("it has a zero byte in it"));
    let variable = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
        let mut entry = name.clone();
        entry.push("=");
        entry.push(value);
        string(&entry)
    };
    Ok(Errand {
        user,
        group,
        umask: 0,
        terminal: *terminal,
        closed: *network == Network::Closed,
        processes: *processes,
        open_files: *open_files,
        largest_file: *largest_file,
        cpu_seconds: cpu_time.map(|time| time.as_secs().saturating_add(1)),
        program: string(program.as_os_str())?,
        directory: string(directory.as_os_str())?,
        arguments: arguments.iter().map(|word| string(word)).collect::<io::Result<_>>()?,
        environment: environment.iter().map(variable).collect::<io::Result<_>>()?,
        filter: Vec::new(),
    })
}

/// For `explain`.
pub fn describe(powers: &Powers, payload: (u32, u32)) -> Vec<Step> {
    let by = |by: &'static str, does: String| Step { by, does };
    let Ok(errand) = plain(powers, payload) else { return Vec::new() };
    let mut steps = vec![
        by("usher", "forbid   inspection of itself, new privileges".to_owned()),
        by("usher", format!("unshare  user, as user {}", errand.user)),
        by("usher", "drop     all capabilities from all sets".to_owned()),
        by("usher", format!("limit    Processes {}", errand.processes)),
        by("usher", format!("limit    OpenFiles {}", errand.open_files)),
        by("usher", format!("limit    FileSize {}", errand.largest_file)),
    ];
    steps.extend(errand.cpu_seconds.map(|seconds| by("usher", format!("limit    CpuSeconds {seconds}"))));
    steps.extend(errand.trials().iter().map(|trial| by("usher", format!("try      {trial}"))));
    steps.push(by("usher", "seccomp  the list of calls, as natively; nobody is asked".to_owned()));
    let words: Vec<_> = powers.command.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    steps.push(by("payload", format!("chdir    {}", powers.command.directory.display())));
    steps.push(by("payload", format!("exec     {} with {words:?}", powers.command.program.display())));
    steps
}
