//! Crashes with its limit on core files raised: the host must neither get a core file nor run a helper for it.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/core_file",
    wall: Wall::CleanUp,
    about: "crash so that the host writes a core file or runs its helper",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        // The own limit first: the program that crashes inherits it. A refusal is an answer like any other.
        let limit = [libc::RLIM_INFINITY; 2];
        let raised = [
            call(libc::SYS_prlimit64, [0, libc::RLIMIT_CORE as u64, limit.as_ptr() as u64, 0, 0, 0]).map(drop),
            call(libc::SYS_setrlimit, [libc::RLIMIT_CORE as u64, limit.as_ptr() as u64, 0, 0, 0, 0]).map(drop),
        ];
        let crashed = Command::new("/bin/sh").args(["-c", "ulimit -c unlimited; kill -SEGV $$"]).status()?;
        match crashed.core_dumped() {
            true => inside.loot("a core was dumped"),
            false => support::any(raised).and(Err(std::io::ErrorKind::PermissionDenied.into())),
        }
    },
    judge: Some(|field, run| {
        let files = support::on_disk(&field.workspace);
        let core = files.iter().find(|(path, _)| {
            path.file_name().is_some_and(|name| name == "core" || name.as_encoded_bytes().starts_with(b"core."))
        });
        match core {
            Some((path, _)) => Verdict::Broken(format!("a core file: {}", path.display())),
            None => support::nothing_gained(field, run),
        }
    }),
    control: Control::Bare,
};
