//! Reaches the binary of a process outside through /proc, to read it or to change it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/launcher_binary",
    wall: Wall::Processes,
    about: "read or overwrite a launcher's binary through /proc/PID/exe",
    flags: &[],
    prepare: |field| {
        let launcher = field.outside.join("launcher");
        let mut binary = fs::read("/bin/sleep")?;
        // What is behind the last section is no part of the program, and tells it from all others.
        binary.extend(field.secret.as_bytes());
        fs::write(&launcher, binary)?;
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755))?;
        field.give(&launcher)?;
        let mut command = Command::new(launcher);
        command.arg("20");
        field.tell("launcher", support::bystander(field, command)?);
        Ok(())
    },
    inside: |inside| {
        // SAFETY: takes nothing.
        let parent = unsafe { libc::getppid() };
        let processes = [inside.hint("launcher")?.to_owned(), parent.to_string(), "1".to_owned()];
        support::any(processes.iter().flat_map(|process| {
            let binary = format!("/proc/{process}/exe");
            let read = || {
                let contents = fs::read(&binary)?;
                inside.loot(&contents[contents.len().saturating_sub(64)..])
            };
            // The own binary is the attacker's to change; only the launcher's counts.
            let write = || match fs::read_link(&binary)? == inside.outside.join("launcher") {
                true => support::overwrite(Path::new(&binary)),
                false => Err(std::io::ErrorKind::InvalidInput.into()),
            };
            [read(), write()]
        }))
    },
    judge: Some(|field, _| {
        let contents = fs::read(field.outside.join("launcher")).unwrap_or_default();
        if !contents.ends_with(field.secret.as_bytes()) {
            return Verdict::Broken("the launcher's binary was changed".to_owned());
        }
        match field.looted() {
            true => Verdict::Broken("the launcher's binary was read".to_owned()),
            false => Verdict::Held,
        }
    }),
    control: Control::Bare,
};
