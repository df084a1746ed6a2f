//! Reads what other processes of the same user have open, are in, or see as their root.

use std::fs;
use std::process::Command;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/through_bystanders",
    wall: Wall::Processes,
    about: "read through the working folder, root and open files of the user's other processes",
    flags: &[],
    prepare: |field| {
        let mut command = Command::new("/bin/sleep");
        command.arg("20").current_dir(&field.outside).stdin(fs::File::open(field.outside.join("secret"))?);
        field.tell("bystander", support::bystander(field, command)?);
        Ok(())
    },
    inside: |inside| {
        let known = inside.hint("bystander")?.to_owned();
        let listed = fs::read_dir("/proc")?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        // By its number too: a process that is not listed may still be there.
        let processes: Vec<String> =
            listed.filter(|name| name.parse::<u32>().is_ok_and(|number| number > 1)).chain([known]).take(300).collect();
        let secret = inside.secret_file();
        support::any(processes.iter().flat_map(|process| {
            let own = format!("/proc/{process}");
            let root = format!("{own}/root{}", secret.display());
            [format!("{own}/cwd/secret"), format!("{own}/fd/0"), root].map(|path| {
                match fs::metadata(&path)?.is_file() {
                    true => inside.steal(path),
                    false => Err(std::io::ErrorKind::InvalidInput.into()),
                }
            })
        }))
    },
    judge: None,
    control: Control::Bare,
};
